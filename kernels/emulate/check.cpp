// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks the emulated kernels against the rules (reference.h) for random scenes, and against the
// paper's kernels for random windows. Every array has exactly the size that interface.cuh states,
// so that AddressSanitizer reports accesses beyond it. Prints the first difference, or the counts
// of all scenes.
//
//   g++ -std=c++17 -O1 -g -fsanitize=address,undefined -ffp-contract=off check.cpp -o check
//   ./check [first seed] [scenes] [anchors at most]
#include "scene.h"
#include "runner.h"

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
    reference::Random random(seed);
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
    reference::set_all_visible(params);
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
                             const std::vector<reference::Result> &expected, uint64_t seed,
                             uint64_t &rounds) {
    Memory memory(params.capacity, params.images);
    for (int turn = 0; turn < 2; turn++) {
        const uint32_t multiprocessors = 1 + uint32_t(seed + turn) % 7;
        memory.clear();
        emulated::run(params, precisions, memory.workspace, memory.stride, memory.results,
                      memory.detections, multiprocessors, 1 + uint32_t(seed % 5), seed * 10 + turn);
        for (uint32_t image = 0; image < params.images; image++) {
            const ResultHeader &header = memory.results[image];
            reference::Result wanted = expected[image];
            if (wanted.candidates > params.capacity) {
                wanted.survivors.clear();
            }
            std::string wrong = reference::difference(
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

// The field of image `image`.
static Field of_image(Field field, uint32_t image, bool f16) {
    if (field.address != 0) {
        field.address += image * field.image_stride * (f16 ? 2 : 4);
    }
    return field;
}

// What each image of a batch should give: a run of its own.
static std::vector<reference::Result> expected_results(const KernelParams &params,
                                                       Precisions precisions) {
    std::vector<reference::Result> results;
    for (uint32_t image = 0; image < params.images; image++) {
        KernelParams single = params;
        single.boxes = of_image(params.boxes, image, precisions.boxes_f16);
        single.scores = of_image(params.scores, image, precisions.scores_f16);
        single.objectness = of_image(params.objectness, image, precisions.scores_f16);
        results.push_back(reference::run(single, precisions.boxes_f16, precisions.scores_f16));
    }
    return results;
}

struct Totals {
    uint64_t images = 0, candidates = 0, rejected = 0, survivors = 0, rounds = 0, repeated = 0;

    void print(uint64_t scenes) const {
        printf("%llu scenes, %llu images: %llu candidates, %llu rejected, %llu survivors, at most "
               "%llu rounds; %llu scenes run again with more capacity\n",
               (unsigned long long)scenes, (unsigned long long)images,
               (unsigned long long)candidates, (unsigned long long)rejected,
               (unsigned long long)survivors, (unsigned long long)rounds,
               (unsigned long long)repeated);
    }
};

// Checks one scene as one image, then its anchors divided among the images of a batch.
static std::string check_scene(const reference::Scene &scene, uint64_t seed, Totals &totals) {
    reference::Random random(seed ^ 0x5eed);
    const Precisions precisions{scene.boxes_half, scene.scores_half};
    for (const uint32_t images : {1u, 2 + random.below(4)}) {
        KernelParams params = scene.params;
        params.images = images;
        params.anchors /= images;
        for (Field *field : {&params.boxes, &params.scores, &params.objectness}) {
            field->image_stride = params.anchors * field->anchor_stride;
        }
        if (images > 1 && random.once_in(2)) {
            params.lanes_per_anchor = 1;
        }
        const auto expected = expected_results(params, precisions);
        uint32_t most = 0;
        for (const reference::Result &result : expected) {
            most = std::max(most, result.candidates);
            totals.candidates += result.candidates;
            totals.rejected += result.rejected;
            totals.survivors += result.survivors.size();
        }
        totals.images += images;
        params.capacity = params.multi_label ? params.anchors : std::max(params.anchors, 1u);
        if (images > 1 && random.once_in(2)) {
            params.capacity = 1 + random.below(params.anchors + 1);
        }
        if (most > params.capacity) {
            totals.repeated++;
            const std::string wrong = run_twice(params, precisions, expected, seed, totals.rounds);
            if (!wrong.empty()) {
                return "with too little capacity: " + wrong;
            }
            params.capacity = most;
        }
        const std::string wrong = run_twice(params, precisions, expected, seed, totals.rounds);
        if (!wrong.empty()) {
            return wrong;
        }
    }
    return std::string();
}

int main(int argc, char **argv) {
    const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
    const uint64_t scenes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 300;
    const uint32_t most = argc > 3 ? uint32_t(strtoul(argv[3], nullptr, 10)) : 400;
    Totals totals;
    for (uint64_t seed = first; seed < first + scenes; seed++) {
        const std::string wrong = check_scene(reference::Scene(seed, most), seed, totals);
        if (!wrong.empty()) {
            fprintf(stderr, "scene %llu: %s\n", (unsigned long long)seed, wrong.c_str());
            return 1;
        }
    }
    for (uint64_t seed = first; seed < first + 20; seed++) {
        if (!equals_paper(seed)) {
            fprintf(stderr, "windows %llu: other survivors than the paper's kernels\n",
                    (unsigned long long)seed);
            return 1;
        }
    }
    totals.print(scenes);
}
