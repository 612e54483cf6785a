// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs the kernels on the host for a batch: what check.cpp calls.
#pragma once

#include "../nmsfilter.cu"
#include "../paper.cu"

namespace emulated {

using cuda_on_host::Index;
using cuda_on_host::launch;

// The element types of the boxes' tensor and of the scores' tensor.
struct Precisions {
    bool boxes_f16, scores_f16;
};

inline void decode(const KernelParams &params, Precisions precisions, void *workspace,
                   uint64_t stride) {
    using Kernel = void (*)(KernelParams, void *, uint64_t);
    static const Kernel kernels[2][2][2] = {
        {{decode_f32_f32, decode_f32_f16}, {decode_f16_f32, decode_f16_f16}},
        {{decode_multi_f32_f32, decode_multi_f32_f16},
         {decode_multi_f16_f32, decode_multi_f16_f16}}};
    kernels[params.multi_label][precisions.boxes_f16][precisions.scores_f16](params, workspace,
                                                                             stride);
}

// One launch of the four kernels on a GPU with `multiprocessors`, of whose blocks `resident` run at
// a time. Parameters are those of interface.cuh. The kernels for batches run single images, too,
// with odd seeds.
inline void run(const KernelParams &params, Precisions precisions, void *workspace, uint64_t stride,
                ResultHeader *results, Detection *detections, uint32_t multiprocessors,
                uint32_t resident, uint64_t seed) {
    const uint32_t images = params.images, capacity = params.capacity;
    const bool is_batch = images != 1 || seed % 2 == 1;
    const uint32_t blocks = params.multi_label
                                ? decode_multi_blocks(params.anchors, params.classes)
                                : decode_blocks(params.anchors, params.lanes_per_anchor);
    launch(Index{blocks, images}, Index{DECODE_THREADS}, resident, seed,
           [&] { decode(params, precisions, workspace, stride); });
    launch(Index{map_blocks(multiprocessors, capacity, images), images}, Index{MAP_THREADS},
           resident, seed + 1, [&] { (is_batch ? map_batch : map)(workspace, stride); });
    launch(Index{reduce_blocks(multiprocessors, capacity, images), images}, Index{REDUCE_THREADS},
           resident, seed + 2, [&] { (is_batch ? reduce_batch : reduce)(workspace, stride); });
    launch(Index{1, images}, Index{PUBLISH_THREADS}, resident, seed + 3, [&] {
        (is_batch ? publish_batch : publish)(workspace, stride, results, detections);
    });
}

// The paper's two kernels. `matrix` has capacity * capacity bytes.
inline void run_paper(const float4 *windows, uint32_t n, float theta, uint8_t *matrix,
                      uint8_t *survives, uint32_t capacity, uint32_t k, uint64_t seed) {
    memset(matrix, 1, size_t(capacity) * capacity);
    const uint32_t tiles = (n + 15) / 16;
    launch(Index{tiles, tiles}, Index{16, 16}, 4, seed,
           [&] { paper_map(windows, n, theta, matrix, capacity); });
    launch(Index{capacity}, Index{capacity / k}, 4, seed + 1,
           [&] { paper_reduce(matrix, survives, capacity, k); });
}

} // namespace emulated
