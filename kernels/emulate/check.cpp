// Holds the emulated kernels to the rules on random scenes, for AddressSanitizer to watch: every
// array has exactly the bytes that the interface promises the kernels.
//
//   g++ -std=c++17 -O1 -g -fsanitize=address,undefined -ffp-contract=off check.cpp -o check
//   ./check [first seed] [scenes] [anchors at most]
#include "plain.h"
#include "runner.cpp"

#include <chrono>

int main(int argc, char **argv) {
    const uint64_t first = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
    const uint64_t scenes = argc > 2 ? strtoull(argv[2], nullptr, 10) : 300;
    const uint32_t most = argc > 3 ? uint32_t(strtoul(argv[3], nullptr, 10)) : 400;
    uint64_t candidates = 0, survivors = 0, rejected = 0, rounds = 0;
    for (uint64_t seed = first; seed < first + scenes; seed++) {
        const plain::Scene scene(seed, most);
        const Frame &frame = scene.frame;
        const plain::Result expected = plain::run(frame, scene.boxes_half, scene.scores_half);

        const auto bytes = workspace_bytes(frame.anchors);
        char *const workspace = (char *)aligned_alloc(256, bytes);
        memset(workspace, 0xa5, bytes);
        memset(workspace, 0, HEADER_BYTES);
        Outcome *const outcome = (Outcome *)aligned_alloc(16, outcome_bytes(frame.anchors));
        // Twice, since a frame leaves the workspace ready for the next; on devices from one
        // multiprocessor, where each warp does much, to many, where several share a candidate.
        for (int turn = 0; turn < 2; turn++) {
            const uint32_t multiprocessors = 1 + uint32_t(seed + turn) % 7;
            memset(outcome, 0xa5, outcome_bytes(frame.anchors));
            nmsfilter_emulated_run(&frame, scene.boxes_half, scene.scores_half, workspace, outcome,
                                   multiprocessors, 1 + uint32_t(seed % 5), seed * 10 + turn);
            std::string wrong =
                plain::difference(expected, *outcome, (const Detection *)(outcome + 1));
            if (wrong.empty() && outcome->sequence != frame.sequence) {
                wrong = "sequence";
            }
            if (!wrong.empty()) {
                fprintf(stderr, "scene %llu, turn %d: %s\n", (unsigned long long)seed, turn,
                        wrong.c_str());
                return 1;
            }
            rounds = std::max(rounds, uint64_t(outcome->rounds));
        }
        candidates += expected.candidates;
        rejected += expected.rejected;
        survivors += expected.survivors.size();
        free(workspace);
        free(outcome);
    }
    printf("%llu scenes: %llu candidates, %llu rejected, %llu survivors, at most %llu rounds\n",
           (unsigned long long)scenes, (unsigned long long)candidates,
           (unsigned long long)rejected, (unsigned long long)survivors, (unsigned long long)rounds);
}
