// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks the emulated kernels against the results of engine::Reference for the scenes of a file,
// and against the paper's kernels for random windows; and the kernels of pack.cu against a plain
// loop. Every array has exactly the size that interface.cuh and pack.cuh state, so that
// AddressSanitizer reports accesses beyond it. Prints the first difference, or the counts of all
// scenes.
//
//   cargo run --no-default-features --example scenes -- SCENES 1 300
//   g++ -std=c++17 -O1 -g -fsanitize=address,undefined -ffp-contract=off check.cpp -o check
//   ./check SCENES
#include "scenes.h"
#include "runner.h"

#include "../pack.cu"

using emulated::Precisions;

// A workspace and results for a batch.
struct Memory {
    uint64_t stride;
    char *workspace;
    ResultHeader *results;
    Detection *detections;
    uint64_t bytes;

    Memory(uint32_t capacity, uint32_t images)
        : stride(workspace_bytes(capacity)), bytes(results_bytes(capacity, images)) {
        workspace = (char *)aligned_alloc(256, images * stride);
        memset(workspace, 0xa5, images * stride);
        for (uint32_t image = 0; image < images; image++) {
            memset(workspace + image * stride, 0, HEADER_BYTES);
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
    scenes::set_all_visible(params);
    const Memory memory(n, 1);
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
    Memory memory(params.capacity, params.images);
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
    uint64_t scenes = 0, images = 0, candidates = 0, rejected = 0, survivors = 0, rounds = 0, repeated = 0;

    void print() const {
        printf("%llu scenes, %llu images: %llu candidates, %llu rejected, %llu survivors, at most "
               "%llu rounds; %llu scenes run again with more capacity\n",
               (unsigned long long)scenes, (unsigned long long)images,
               (unsigned long long)candidates, (unsigned long long)rejected,
               (unsigned long long)survivors, (unsigned long long)rounds,
               (unsigned long long)repeated);
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
    KernelParams params = scene.params(addresses, (uint64_t)scene.thresholds.data());
    const Precisions precisions{scene.boxes_f16(), scene.scores_f16()};
    if (params.images > 1 && random.once_in(2)) {
        params.lanes_per_anchor = 1;
    }
    if (params.images > 1 && random.once_in(2)) {
        params.capacity = 1 + random.below(params.anchors + 1);
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

// Whether a kernel of pack.cu writes what a plain loop writes, for a random frame of packed pixels
// or of planes, to planes or to packed elements.
template <typename Element> static bool packs(void (*kernel)(PackParams), uint64_t seed) {
    scenes::Random random(seed);
    PackParams params;
    memset(&params, 0, sizeof params);
    const bool of_planes = random.once_in(2), to_planes = random.once_in(2);
    const uint32_t channels = random.once_in(2) ? 1 : 3;
    const uint32_t width = 1 + random.below(300), height = 1 + random.below(5);
    params.channels = channels;
    params.width = width;
    params.height = height;
    params.pixel_stride = of_planes ? 1 : channels;
    params.row_stride = width * params.pixel_stride;
    params.output_pixel_stride = to_planes ? 1 : channels;
    params.output_row_stride = width * params.output_pixel_stride;
    params.output_channel_stride = to_planes ? width * height : 1;
    for (uint32_t c = 0; c < channels; c++) {
        params.channel_offsets[c] = (channels - 1 - c) * (of_planes ? width * height : 1);
    }

    const uint32_t count = width * height * channels;
    std::vector<uint8_t> pixels(count);
    std::vector<Element> table(channels * PACK_VALUES), output(count);
    for (uint8_t &pixel : pixels) {
        pixel = uint8_t(random.next());
    }
    for (Element &element : table) {
        element = Element(random.next());
    }
    params.pixels = (uint64_t)pixels.data();
    params.table = (uint64_t)table.data();
    params.output = (uint64_t)output.data();
    const uint32_t blocks = (width + PACK_THREADS - 1) / PACK_THREADS;
    cuda_on_host::launch({blocks, height}, {PACK_THREADS}, 3, seed, [&] { kernel(params); });
    for (uint32_t c = 0; c < channels; c++) {
        for (uint32_t pixel = 0; pixel < width * height; pixel++) {
            const uint8_t value =
                pixels[params.channel_offsets[c] + pixel * params.pixel_stride];
            if (output[c * params.output_channel_stride + pixel * params.output_pixel_stride] !=
                table[c * PACK_VALUES + value]) {
                return false;
            }
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
        if (!packs<uint32_t>(pack_32, seed) || !packs<uint16_t>(pack_16, seed) ||
            !packs<uint8_t>(pack_8, seed)) {
            fprintf(stderr, "pixels %llu: not packed as a plain loop packs them\n",
                    (unsigned long long)seed);
            return 1;
        }
    }
    totals.print();
}
