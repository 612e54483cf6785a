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

// A field of a plain layout as one of any layout.
inline LayoutField as_layout_field(const FieldParams &field, uint64_t images, bool is_f16) {
    LayoutField made = {};
    made.address = field.address;
    made.images = images;
    made.image_stride = field.image_stride * (is_f16 ? 2 : 4);
    made.anchor_stride = field.anchor_stride;
    made.component_stride = field.component_stride;
    made.element = is_f16 ? ELEMENT_F16 : ELEMENT_F32;
    return made;
}

// The plain layout of `params`, in two groups of anchors.
inline LayoutParams as_layout(const KernelParams &params, Precisions precisions) {
    LayoutParams layout;
    memset((void *)&layout, 0, sizeof layout);
    layout.group_count = 2;
    layout.has_objectness = params.has_objectness;
    layout.components = layout.classes = params.classes;
    layout.box_format = params.box_format;
    layout.bins = 1;
    layout.variances[0] = layout.variances[1] = 1.0f;
    uint32_t anchors = 0, blocks = 0;
    for (uint32_t i = 0; i < layout.group_count; i++) {
        LayoutGroup &group = layout.groups[i];
        const auto field = [&](const FieldParams &of, uint64_t images, bool is_f16) {
            LayoutField made = as_layout_field(of, images, is_f16);
            made.address += anchors * of.anchor_stride * (is_f16 ? 2 : 4);
            return made;
        };
        group.boxes = field(params.boxes, params.box_images, precisions.boxes_f16);
        group.scores = field(params.scores, params.score_images, precisions.scores_f16);
        group.objectness = field(params.objectness, params.score_images, precisions.scores_f16);
        group.first_anchor = anchors;
        group.anchors = i == 0 ? params.anchors / 3 : params.anchors - anchors;
        group.first_block = blocks;
        group.lanes = params.lanes_per_anchor;
        anchors += group.anchors;
        blocks += group_blocks(group.anchors, group.lanes);
    }
    return layout;
}

// The boxes of a layout as its columns.
inline ColumnParams box_columns(const LayoutParams &layout) {
    ColumnParams columns;
    memset((void *)&columns, 0, sizeof columns);
    columns.group_count = layout.group_count;
    columns.column_count = 1;
    columns.components = layout.box_format == SQUARE ? 3 : 4;
    for (uint32_t i = 0; i < layout.group_count; i++) {
        columns.fields[i][0] = layout.groups[i].boxes;
        columns.first_anchor[i] = layout.groups[i].first_anchor;
    }
    return columns;
}

// The boxes as coefficients of masks from prototypes of 7 by 5, with memory for some of the words.
inline MaskParams box_masks(const LayoutParams &layout, const std::vector<float> &prototypes,
                            uint64_t seed) {
    MaskParams masks;
    memset((void *)&masks, 0, sizeof masks);
    masks.group_count = layout.group_count;
    masks.channels = layout.box_format == SQUARE ? 3 : 4;
    for (uint32_t i = 0; i < layout.group_count; i++) {
        masks.coefficients[i] = layout.groups[i].boxes;
        masks.first_anchor[i] = layout.groups[i].first_anchor;
    }
    masks.prototypes.address = (uint64_t)prototypes.data();
    masks.prototypes.anchor_stride = 1;
    masks.prototypes.component_stride = 35;
    masks.prototype_size[0] = 7;
    masks.prototype_size[1] = 5;
    masks.frame_size[0] = masks.frame_size[1] = 50;
    for (uint32_t axis = 0; axis < 2; axis++) {
        masks.ratio[axis] = 1.0;
        masks.factor[axis] = masks.step[axis] = 0.1f;
        masks.origin[axis] = -0.5f;
    }
    masks.capacity = uint32_t(seed / 3 % 4) * 100;
    masks.limit = 1000;
    return masks;
}

// One launch of all kernels on a GPU with `multiprocessors`, of whose blocks `resident` run at
// a time. Parameters are those of interface.cuh. The kernels for batches run single images, too,
// with odd seeds, and the kernels for any layout run plain ones with every third seed. Their columns
// and masks are written to memory of exactly their size, and not compared.
inline void run(const KernelParams &params, Precisions precisions, void *workspace, uint64_t stride,
                ResultHeader *results, Detection *detections, uint32_t multiprocessors,
                uint32_t resident, uint64_t seed) {
    const uint32_t images = params.images, capacity = params.capacity;
    const bool is_batch = images != 1 || seed % 2 == 1;
    const uint32_t blocks = params.multi_label
                                ? decode_multi_blocks(params.anchors, params.classes)
                                : decode_blocks(params.anchors, params.lanes_per_anchor);
    if (seed % 3 == 0) {
        const LayoutParams layout = as_layout(params, precisions);
        launch(Index{layout_blocks(layout), images}, Index{DECODE_THREADS}, resident, seed, [&] {
            (params.multi_label ? decode_layout_multi : decode_layout)(params, workspace, stride,
                                                                       layout);
        });
    } else {
        launch(Index{blocks, images}, Index{DECODE_THREADS}, resident, seed,
               [&] { decode(params, precisions, workspace, stride); });
    }
    launch(Index{map_blocks(multiprocessors, capacity, images), images}, Index{MAP_THREADS},
           resident, seed + 1, [&] { (is_batch ? map_batch : map)(workspace, stride); });
    launch(Index{reduce_blocks(multiprocessors, capacity, images), images}, Index{REDUCE_THREADS},
           resident, seed + 2, [&] { (is_batch ? reduce_batch : reduce)(workspace, stride); });
    if (capacity > params.sort_limit) {
        const Index sort{sort_blocks(multiprocessors, capacity, images), images};
        const Index rank{sort_rank_blocks(multiprocessors, capacity, images), images};
        const Index chunks{chunk_blocks(multiprocessors, capacity, images), images};
        const Index by_rank{reduce_blocks(multiprocessors, capacity, images), images};
        launch(sort, Index{SORT_THREADS}, resident, seed + 5, [&] { sort_count(workspace, stride); });
        launch(sort, Index{SORT_THREADS}, resident, seed + 6,
               [&] { sort_scatter(workspace, stride); });
        launch(rank, Index{CHUNK_THREADS}, resident, seed + 7, [&] { sort_rank(workspace, stride); });
        for (uint32_t chunk = 0; chunk < chunk_count(capacity, params.first_chunk); chunk++) {
            launch(chunks, Index{CHUNK_THREADS}, resident, seed + 8,
                   [&] { chunk_filter(workspace, stride, chunk); });
            launch(chunks, Index{CHUNK_THREADS}, resident, seed + 9,
                   [&] { chunk_map(workspace, stride, chunk); });
            launch(by_rank, Index{REDUCE_THREADS}, resident, seed + 10,
                   [&] { chunk_reduce(workspace, stride, chunk); });
        }
    }
    if (seed % 3 == 0) {
        const ColumnParams columns = box_columns(as_layout(params, precisions));
        const std::vector<float> prototypes(4 * 35, 0.5f);
        const MaskParams masks = box_masks(as_layout(params, precisions), prototypes, seed);
        std::vector<uint32_t> words(images * masks.capacity);
        launch(Index{mask_blocks(multiprocessors, images), images}, Index{MASK_THREADS}, resident,
               seed + 4, [&] {
                   (seed % 2 == 0 ? ::masks : frame_masks)(workspace, stride, masks, words.data());
               });
        std::vector<float> rows(columns_bytes(capacity, images, columns.components) / sizeof(float));
        launch(Index{1, images}, Index{PUBLISH_THREADS}, resident, seed + 3, [&] {
            (is_batch ? publish_columns_batch : publish_columns)(workspace, stride, results,
                                                                 detections, columns, rows.data());
        });
        return;
    }
    launch(Index{1, images}, Index{PUBLISH_THREADS}, resident, seed + 3, [&] {
        (is_batch ? publish_batch : publish)(workspace, stride, results, detections);
    });
}

// The kernels for oriented boxes, whose angles are the first scores, in memory of exactly their size.
// What they find is not compared. The numbers of boxes must be four.
inline void run_oriented(KernelParams params, Precisions precisions, uint32_t multiprocessors,
                         uint64_t seed) {
    LayoutParams layout = as_layout(params, precisions);
    layout.box_format = CENTER;
    layout.angle_factor = 3.0f;
    for (uint32_t i = 0; i < layout.group_count; i++) {
        layout.groups[i].angle = layout.groups[i].scores;
    }
    params.box_format = CENTER;
    params.sort_limit = UINT32_MAX;
    const uint32_t images = params.images, capacity = params.capacity;
    const uint64_t stride = workspace_bytes(capacity, true, UINT32_MAX);
    void *const workspace = aligned_alloc(256, images * stride);
    memset(workspace, 0, images * stride);
    ResultHeader *const results = (ResultHeader *)aligned_alloc(16, results_bytes(capacity, images));
    Detection *const detections = (Detection *)((char *)results + detections_offset(images));
    launch(Index{layout_blocks(layout), images}, Index{DECODE_THREADS}, 3, seed, [&] {
        (params.multi_label ? decode_oriented_multi : decode_oriented)(params, workspace, stride,
                                                                       layout);
    });
    launch(Index{map_blocks(multiprocessors, capacity, images), images}, Index{MAP_THREADS}, 3,
           seed + 1, [&] { map_oriented(workspace, stride); });
    launch(Index{reduce_blocks(multiprocessors, capacity, images), images}, Index{REDUCE_THREADS}, 3,
           seed + 2, [&] { reduce_oriented(workspace, stride); });
    launch(Index{1, images}, Index{PUBLISH_THREADS}, 3, seed + 3,
           [&] { publish_batch(workspace, stride, results, detections); });
    free(results);
    free(workspace);
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
