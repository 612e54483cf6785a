// Holds the emulated kernels to the rules on random scenes, and to the paper's kernels on random
// windows, for AddressSanitizer to watch: every array has exactly the bytes that the interface
// promises the kernels.
//
//   g++ -std=c++17 -O1 -g -fsanitize=address,undefined -ffp-contract=off check.cpp -o check
//   ./check [first seed] [scenes] [anchors at most]
#include "plain.h"
#include "runner.cpp"


// Whether method=map-reduce leaves of random windows what the paper's kernels leave.
static bool as_the_paper(uint64_t seed) {
    plain::Random random(seed);
    const uint32_t capacity = 512, k = 16, n = 1 + random.below(capacity);
    float4 *const windows = (float4 *)aligned_alloc(16, capacity * sizeof(float4));
    memset(windows, 0, capacity * sizeof(float4));
    for (uint32_t i = 0; i < n; i++) {
        // Scores differ: where they are equal, the paper keeps both.
        const float score = float((i * 7919u) % 4096u + 1) / 4096.0f;
        windows[i] = {float(random.below(300)), float(random.below(200)),
                      float(20 + random.below(60)), score};
    }
    std::vector<uint8_t> matrix(capacity * capacity), survives(capacity);
    nmsfilter_emulated_paper(&windows->x, n, 0.3f, matrix.data(), survives.data(), capacity, k,
                             seed);

    KernelParams params;
    memset(&params, 0, sizeof params);
    params.boxes = {(uint64_t)windows, 4, 1};
    params.scores = {(uint64_t)&windows->w, 4, 1};
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
    plain::see_all(params);
    char *const workspace = (char *)aligned_alloc(256, workspace_bytes(n));
    memset(workspace, 0, workspace_bytes(n));
    ResultHeader *const outcome = (ResultHeader *)aligned_alloc(16, results_bytes(n));
    nmsfilter_emulated_run(&params, 0, 0, workspace, outcome, 2, 3, seed);
    uint32_t left = 0;
    for (uint8_t survivor : survives) {
        left += survivor;
    }
    left -= capacity - n; // empty slots survive in the paper's vector
    bool same = outcome->survivors == left;
    const Detection *const found = (const Detection *)(outcome + 1);
    for (uint32_t i = 0; i < outcome->survivors; i++) {
        same = same && survives[found[i].anchor];
    }
    free(workspace);
    free(outcome);
    free(windows);
    return same;
}

// Empty where the kernels' outcome is as expected, else what differs. Twice, since a frame leaves the
// workspace ready for the next; on devices from one multiprocessor, where each warp does much, to
// many, where several share a candidate.
static std::string twice(const KernelParams &params, const plain::Scene &scene,
                         const plain::Result &expected, uint64_t seed, uint64_t &rounds) {
    const auto bytes = workspace_bytes(params.capacity);
    char *const workspace = (char *)aligned_alloc(256, bytes);
    memset(workspace, 0xa5, bytes);
    memset(workspace, 0, HEADER_BYTES);
    ResultHeader *const outcome = (ResultHeader *)aligned_alloc(16, results_bytes(params.capacity));
    std::string wrong;
    for (int turn = 0; turn < 2 && wrong.empty(); turn++) {
        const uint32_t multiprocessors = 1 + uint32_t(seed + turn) % 7;
        memset(outcome, 0xa5, results_bytes(params.capacity));
        nmsfilter_emulated_run(&params, scene.boxes_half, scene.scores_half, workspace, outcome,
                               multiprocessors, 1 + uint32_t(seed % 5), seed * 10 + turn);
        wrong = plain::difference(expected, *outcome, (const Detection *)(outcome + 1));
        if (wrong.empty() && outcome->sequence != params.sequence) {
            wrong = "sequence";
        }
        rounds = std::max(rounds, uint64_t(outcome->rounds));
    }
    free(workspace);
    free(outcome);
    return wrong;
}

int main(int argc, char **argv) {
    const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
    const uint64_t scenes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 300;
    const uint32_t most = argc > 3 ? uint32_t(strtoul(argv[3], nullptr, 10)) : 400;
    uint64_t candidates = 0, survivors = 0, rejected = 0, rounds = 0, without_room = 0;
    for (uint64_t seed = first; seed < first + scenes; seed++) {
        const plain::Scene scene(seed, most);
        KernelParams params = scene.params;
        const plain::Result expected = plain::run(params, scene.boxes_half, scene.scores_half);
        std::string wrong;
        if (params.multi_label && expected.candidates > params.capacity) {
            plain::Result none;
            none.candidates = expected.candidates;
            none.rejected = expected.rejected;
            wrong = twice(params, scene, none, seed, rounds);
            params.capacity = expected.candidates;
            without_room++;
        }
        if (wrong.empty()) {
            wrong = twice(params, scene, expected, seed, rounds);
        }
        if (!wrong.empty()) {
            fprintf(stderr, "scene %llu: %s\n", (unsigned long long)seed, wrong.c_str());
            return 1;
        }
        candidates += expected.candidates;
        rejected += expected.rejected;
        survivors += expected.survivors.size();
    }
    for (uint64_t seed = first; seed < first + 20; seed++) {
        if (!as_the_paper(seed)) {
            fprintf(stderr, "windows %llu: not what the paper's kernels leave\n",
                    (unsigned long long)seed);
            return 1;
        }
    }
    printf("%llu scenes: %llu candidates, %llu rejected, %llu survivors, at most %llu rounds; "
           "%llu scenes without room at first\n",
           (unsigned long long)scenes, (unsigned long long)candidates,
           (unsigned long long)rejected, (unsigned long long)survivors, (unsigned long long)rounds,
           (unsigned long long)without_room);
}
