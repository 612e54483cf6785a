// SPDX-License-Identifier: MIT OR Apache-2.0
// Publish for layouts with columns (layout.cuh). In and out: see publish.cuh. The tensors of
// the columns are a further input, and the output includes the numbers of each survivor's columns,
// in single precision.
#pragma once

#include "layout.cuh"
#include "publish.cuh"

struct Columns {
    const ColumnParams &params;
    float *rows;

    // Writes the rows of the first `count` survivors of the list, one number per thread. `first` is
    // the position of the first row.
    DEVICE void write(const Workspace &workspace, const SurvivorList &list, uint32_t count,
                      const GroupIndices &indices, uint64_t first) const {
        const uint32_t components = params.components;
        float *const to = rows + first * components;
        for (uint32_t i = threadIdx.x; i < count * components; i += PUBLISH_THREADS) {
            const uint32_t survivor = i / components, number = i - survivor * components;
            const uint32_t index = workspace.ranked[list.rank[survivor]].index;
            const ImageAnchor of(indices, index);
            uint32_t group = 0, column = 0;
#pragma unroll
            for (uint32_t g = 1; g < MAX_GROUPS; g++) {
                group += g < params.group_count && of.anchor >= params.first_anchor[g];
            }
#pragma unroll
            for (uint32_t c = 1; c < MAX_COLUMNS; c++) {
                column += c < params.column_count && number >= params.first_component[c];
            }
            const LayoutNumbers numbers(params.fields[group][column], of.image);
            to[i] = numbers.load(of.anchor - params.first_anchor[group],
                                 number - params.first_component[column]);
        }
    }
};

KERNEL(PUBLISH_THREADS, 1)
publish_columns(void *workspaces, uint64_t stride, ResultHeader *results, Detection *detections,
                const ColumnParams columns, float *rows) {
    publish_survivors<false>(workspaces, stride, results, detections, Columns{columns, rows});
}
KERNEL(PUBLISH_THREADS, 1)
publish_columns_batch(void *workspaces, uint64_t stride, ResultHeader *results,
                      Detection *detections, const ColumnParams columns, float *rows) {
    publish_survivors<true>(workspaces, stride, results, detections, Columns{columns, rows});
}
