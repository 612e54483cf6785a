// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks the emulated kernels against the results of engine::Reference for the scenes of a file,
// and against the paper's kernels for random windows; and the kernels of resample.cu within arrays of
// their size. Every array has exactly the size that interface.cuh and resample.cuh state, so that
// AddressSanitizer reports accesses beyond it. Prints the first difference, or the counts of all
// scenes.
//
//   cargo run -p nmsfilter-core --example scenes -- SCENES 1 300
//   g++ -std=c++17 -O1 -g -fsanitize=address,undefined -ffp-contract=off check.cpp -o check
//   ./check SCENES
#include "scenes.h"
#include "runner.h"

#include "../resample.cu"

using emulated::Precisions;

// A workspace and results for a batch.
struct Memory {
    uint64_t stride;
    char *workspace;
    ResultHeader *results;
    Detection *detections;
    uint64_t bytes;

    Memory(uint32_t capacity, uint32_t images, uint32_t sort_limit)
        : stride(workspace_bytes(capacity, false, sort_limit)), bytes(results_bytes(capacity, images)) {
        workspace = (char *)aligned_alloc(256, images * stride);
        memset(workspace, 0xa5, images * stride);
        for (uint32_t image = 0; image < images; image++) {
            memset(workspace + image * stride, 0, HEADER_BYTES);
            if (capacity > sort_limit) {
                memset(workspace + image * stride + sort_state_offset(capacity), 0,
                       SORT_STATE_BYTES);
            }
        }
        results = (ResultHeader *)aligned_alloc(16, bytes);
        detections = (Detection *)((char *)results + detections_offset(images));
        clear();
    }
    ~Memory() {
        free(workspace);
        free(results);
    }
    Memory(const Memory &) = delete;

    void clear() { memset((void *)results, 0xa5, bytes); }
};

// Whether method=map-reduce has the survivors of the paper's kernels for random windows.
static bool equals_paper(uint64_t seed) {
    scenes::Random random(seed);
    const uint32_t capacity = 512, k = 16, n = 1 + random.below(capacity);
    float4 *const windows = (float4 *)aligned_alloc(16, capacity * sizeof(float4));
    memset(windows, 0, capacity * sizeof(float4));
    for (uint32_t i = 0; i < n; i++) {
        // All scores differ: of two equal scores the paper's kernels suppress neither.
        const float score = float((i * 7919u) % 4096u + 1) / 4096.0f;
        windows[i] = {float(random.below(300)), float(random.below(200)),
                      float(20 + random.below(60)), score};
    }
    std::vector<uint8_t> matrix(capacity * capacity), survives(capacity);
    emulated::run_paper(windows, n, 0.3f, matrix.data(), survives.data(), capacity, k, seed);

    KernelParams params;
    memset(&params, 0, sizeof params);
    params.boxes = {(uint64_t)windows, 0, 4, 1};
    params.scores = {(uint64_t)&windows->w, 0, 4, 1};
    params.images = 1;
    params.anchors = n;
    params.classes = params.lanes_per_anchor = 1;
    params.box_format = SQUARE;
    params.scale[0] = params.scale[1] = 1.0f;
    params.max_size[0] = params.max_size[1] = INFINITY;
    params.method = MAP_REDUCE;
    params.overlap = REPRESENTATIVE;
    params.iou_threshold = 0.3f;
    params.pixel_offset = 1.0f;
    params.threshold_inclusive = 1;
    params.capacity = n;
    params.sort_limit = seed % 5 == 0 ? 0 : UINT32_MAX;
    params.first_chunk = 50;
    scenes::set_all_visible(params);
    const Memory memory(n, 1, params.sort_limit);
    emulated::run(params, {false, false}, memory.workspace, memory.stride, memory.results,
                  memory.detections, 2, 3, seed);
    uint32_t left = 0;
    for (uint8_t survivor : survives) {
        left += survivor;
    }
    left -= capacity - n; // slots without a window survive
    bool same = memory.results->survivors == left;
    for (uint32_t i = 0; i < memory.results->survivors; i++) {
        same = same && survives[memory.detections[i].anchor];
    }
    free(windows);
    return same;
}

// Runs a batch and compares each image with what is expected. Returns what differs, or nothing.
// Twice with one workspace, because a launch must leave it ready for the next, and with different
// numbers of multiprocessors: with one, each warp has many candidates, with many, several warps
// have few.
static std::string run_twice(const KernelParams &params, Precisions precisions,
                             const std::vector<scenes::Result> &expected, uint64_t seed,
                             uint64_t &rounds) {
    Memory memory(params.capacity, params.images, params.sort_limit);
    for (int turn = 0; turn < 2; turn++) {
        const uint32_t multiprocessors = 1 + uint32_t(seed + turn) % 7;
        memory.clear();
        emulated::run(params, precisions, memory.workspace, memory.stride, memory.results,
                      memory.detections, multiprocessors, 1 + uint32_t(seed % 5), seed * 10 + turn);
        for (uint32_t image = 0; image < params.images; image++) {
            const ResultHeader &header = memory.results[image];
            scenes::Result wanted = expected[image];
            if (wanted.candidates > params.capacity) {
                wanted.survivors.clear();
            }
            std::string wrong = scenes::difference(
                wanted, header, memory.detections + uint64_t(image) * params.capacity);
            if (wrong.empty() && header.sequence != params.sequence) {
                wrong = "sequence";
            }
            if (!wrong.empty()) {
                return "image " + std::to_string(image) + " of " + std::to_string(params.images) +
                       ": " + wrong;
            }
            rounds = std::max(rounds, uint64_t(header.rounds));
        }
    }
    return std::string();
}

struct Totals {
    uint64_t scenes = 0, images = 0, candidates = 0, rejected = 0, survivors = 0, rounds = 0,
             repeated = 0, scattered = 0;

    void print() const {
        printf("%llu scenes, %llu images: %llu candidates, %llu rejected, %llu survivors, at most "
               "%llu rounds; %llu scenes run again with more capacity, %llu with tables of "
               "images\n",
               (unsigned long long)scenes, (unsigned long long)images,
               (unsigned long long)candidates, (unsigned long long)rejected,
               (unsigned long long)survivors, (unsigned long long)rounds,
               (unsigned long long)repeated, (unsigned long long)scattered);
    }
};

// Tables of images for some tensors of a scene. An image is copied to memory of exactly its size,
// where the images of the tensor are one behind the other.
struct Tables {
    std::vector<std::vector<char>> copies;
    std::vector<std::vector<uint64_t>> tables;
    std::vector<uint64_t> addresses; // of the tables; 0: none for this tensor

    Tables(const scenes::Scene &scene, scenes::Random &random) : tables(scene.tensors.size()) {
        const uint32_t images = uint32_t(scene.expected.size());
        for (uint32_t t = 0; t < tables.size(); t++) {
            const std::vector<char> &elements = scene.tensors[t].elements;
            const uint64_t stride = scene.image_stride(t);
            const bool is_contiguous = stride * images == elements.size();
            // The last image first, so that addresses do not ascend.
            tables[t].resize(images);
            for (uint32_t image = images; image-- > 0;) {
                const char *at = elements.data() + image * stride;
                if (is_contiguous) {
                    copies.emplace_back(at, at + stride);
                    at = copies.back().data();
                }
                tables[t][image] = (uint64_t)at;
            }
            addresses.push_back(random.once_in(4) ? 0 : (uint64_t)tables[t].data());
        }
    }
};

// Checks a scene: with capacity for all anchors or, for some batches, with a random one; where an
// image has more candidates than that, again with capacity for all candidates.
static std::string check_scene(const scenes::Scene &scene, Totals &totals) {
    scenes::Random random(scene.seed ^ 0x5eed);
    std::vector<uint64_t> addresses;
    for (const scenes::Tensor &tensor : scene.tensors) {
        addresses.push_back((uint64_t)tensor.elements.data());
    }
    const uint64_t thresholds = (uint64_t)scene.thresholds.data();
    const Tables tables(scene, random);
    const bool is_scattered = random.once_in(2);
    KernelParams params = is_scattered ? scene.params(addresses, thresholds, tables.addresses)
                                       : scene.params(addresses, thresholds);
    totals.scattered += (params.box_images | params.score_images) != 0;
    const Precisions precisions{scene.boxes_f16(), scene.scores_f16()};
    if (random.once_in(12)) {
        params.sort_limit = random.below(40);
        params.first_chunk = 1 + random.below(100);
    }
    if (params.images > 1 && random.once_in(2)) {
        params.lanes_per_anchor = 1;
    }
    if (params.images > 1 && random.once_in(2)) {
        params.capacity = 1 + random.below(params.anchors + 1);
    }
    if (scene.seed % 3 == 1 && params.box_format != SQUARE) {
        emulated::run_oriented(params, precisions, 1 + uint32_t(scene.seed % 7), scene.seed);
    }
    uint32_t most = 0;
    for (const scenes::Result &result : scene.expected) {
        most = std::max(most, result.candidates);
        totals.candidates += result.candidates;
        totals.rejected += result.rejected;
        totals.survivors += result.survivors.size();
    }
    totals.scenes++;
    totals.images += params.images;
    if (most > params.capacity) {
        totals.repeated++;
        const std::string wrong =
            run_twice(params, precisions, scene.expected, scene.seed, totals.rounds);
        if (!wrong.empty()) {
            return "with too little capacity: " + wrong;
        }
        params.capacity = most;
    }
    return run_twice(params, precisions, scene.expected, scene.seed, totals.rounds);
}

// Whether a kernel of resample.cu reads and writes within arrays of exactly their size, and writes each
// element of the output. That it writes the right ones is a test in Rust (tests/cuda/resample.rs).
template <typename Element>
static bool fills_its_output(void (*kernel)(ResampleParams), uint64_t seed) {
    scenes::Random random(seed);
    ResampleParams params;
    memset(&params, 0, sizeof params);
    params.component_count = random.once_in(2) ? 1 : 3;
    params.channels = random.once_in(2) ? 1 : 3;
    params.width = 1 + random.below(300);
    params.height = 1 + random.below(5);
    params.left = random.below(params.width);
    params.top = random.below(params.height);
    params.right = params.left + 1 + random.below(params.width - params.left);
    params.bottom = params.top + 1 + random.below(params.height - params.top);
    params.output_pixel_stride = 1;
    params.output_row_stride = params.width;
    params.output_channel_stride = params.width * params.height;
    std::vector<uint8_t> samples[RESAMPLE_CHANNELS];
    std::vector<uint32_t> columns[RESAMPLE_CHANNELS], rows[RESAMPLE_CHANNELS];
    for (uint32_t k = 0; k < params.component_count; k++) {
        ResampleComponent &component = params.components[k];
        const uint32_t width = 1 + random.below(20), height = 1 + random.below(20);
        component.pixel_stride = 1 + random.below(4);
        component.row_stride = width * component.pixel_stride;
        samples[k].assign((width * height - 1) * component.pixel_stride + 1, 7);
        for (uint32_t x = params.left; x < params.right; x++) {
            columns[k].push_back(random.below((width - 1) * 256 + 1));
        }
        for (uint32_t y = params.top; y < params.bottom; y++) {
            rows[k].push_back(random.below((height - 1) * 256 + 1));
        }
        component.samples = (uint64_t)samples[k].data();
        component.columns = (uint64_t)columns[k].data();
        component.rows = (uint64_t)rows[k].data();
    }
    std::vector<Element> table(params.channels * RESAMPLE_VALUES, 1);
    std::vector<Element> output(params.channels * params.width * params.height, 0);
    params.table = (uint64_t)table.data();
    params.output = (uint64_t)output.data();
    const uint32_t blocks = (params.width + RESAMPLE_THREADS - 1) / RESAMPLE_THREADS;
    cuda_on_host::launch({blocks, params.height}, {RESAMPLE_THREADS}, 3, seed,
                         [&] { kernel(params); });
    for (const Element element : output) {
        if (element != 1) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: check SCENES\n");
        return 2;
    }
    Totals totals;
    scenes::File file(argv[1]);
    for (scenes::Scene scene; file.next(scene);) {
        const std::string wrong = check_scene(scene, totals);
        if (!wrong.empty()) {
            fprintf(stderr, "seed %llu: %s\n", (unsigned long long)scene.seed, wrong.c_str());
            return 1;
        }
    }
    for (uint64_t seed = 1; seed <= 20; seed++) {
        if (!equals_paper(seed)) {
            fprintf(stderr, "windows %llu: other survivors than the paper's kernels\n",
                    (unsigned long long)seed);
            return 1;
        }
    }
    for (uint64_t seed = 1; seed <= 50; seed++) {
        if (!fills_its_output<uint32_t>(resample_32, seed) ||
            !fills_its_output<uint16_t>(resample_16, seed) ||
            !fills_its_output<uint8_t>(resample_8, seed)) {
            fprintf(stderr, "frame %llu: not all of the output is written\n",
                    (unsigned long long)seed);
            return 1;
        }
    }
    totals.print();
}
