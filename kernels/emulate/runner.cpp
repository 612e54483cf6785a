// The pipeline of kernels over host memory, for tests: a C interface.
#include "../nmsfilter.cu"
#include "../paper.cu"

using cuda_on_host::Index;
using cuda_on_host::launch;

extern "C" {

uint64_t nmsfilter_emulated_workspace_bytes(uint32_t capacity) { return workspace_bytes(capacity); }
uint64_t nmsfilter_emulated_results_bytes(uint32_t capacity) { return results_bytes(capacity); }
uint32_t nmsfilter_emulated_lanes_per_anchor(uint32_t classes) { return lanes_per_anchor(classes); }

static void decode_frame(const KernelParams &params, bool boxes_are_f16, bool scores_are_f16,
                         void *workspace) {
    if (params.multi_label) {
        if (boxes_are_f16) {
            scores_are_f16 ? decode_multi_f16_f16(params, workspace)
                           : decode_multi_f16_f32(params, workspace);
        } else {
            scores_are_f16 ? decode_multi_f32_f16(params, workspace)
                           : decode_multi_f32_f32(params, workspace);
        }
    } else if (boxes_are_f16) {
        scores_are_f16 ? decode_f16_f16(params, workspace) : decode_f16_f32(params, workspace);
    } else {
        scores_are_f16 ? decode_f32_f16(params, workspace) : decode_f32_f32(params, workspace);
    }
}

// One frame on an imagined device of `multiprocessors`, of whose blocks `resident` run at a time.
void nmsfilter_emulated_run(const KernelParams *params, int boxes_are_f16, int scores_are_f16,
                            void *workspace, ResultHeader *outcome, uint32_t multiprocessors,
                            uint32_t resident, uint64_t seed) {
    const uint32_t blocks = params->multi_label ? decode_multi_blocks(params->anchors, params->classes)
                                               : decode_blocks(params->anchors, params->lanes_per_anchor);
    launch(Index{blocks}, Index{DECODE_THREADS}, resident, seed,
           [=] { decode_frame(*params, boxes_are_f16, scores_are_f16, workspace); });
    launch(Index{map_blocks(multiprocessors, params->capacity)}, Index{MAP_THREADS}, resident,
           seed + 1, [=] { map(workspace); });
    launch(Index{reduce_blocks(multiprocessors, params->capacity)}, Index{REDUCE_THREADS}, resident,
           seed + 2, [=] { reduce(workspace); });
    launch(Index{1}, Index{PUBLISH_THREADS}, 1, seed + 3, [=] { publish(workspace, outcome); });
}

// The paper's two algorithms; `matrix` is preset here.
void nmsfilter_emulated_paper(const float *windows, uint32_t n, float theta, uint8_t *matrix,
                              uint8_t *survives, uint32_t capacity, uint32_t k, uint64_t seed) {
    memset(matrix, 1, size_t(capacity) * capacity);
    const uint32_t tiles = (n + 15) / 16;
    launch(Index{tiles, tiles}, Index{16, 16}, 4, seed,
           [=] { paper_map((const float4 *)windows, n, theta, matrix, capacity); });
    launch(Index{capacity}, Index{capacity / k}, 4, seed + 1,
           [=] { paper_reduce(matrix, survives, capacity, k); });
}
}
