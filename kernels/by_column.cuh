// SPDX-License-Identifier: MIT OR Apache-2.0
// Greedy suppression in which a column decides, too: Adaptive-NMS and FeatureNMS. In: the candidates
// class by class (merge.cuh), which all survive so far, and the tensors of the column. Out:
// decisions. The formulas are in core/src/engine/pair_rules.rs.
//
//   for each part, by a block
//       for each candidate that survives so far, in the order of ranks
//           load its numbers in the column
//           for each later candidate that survives so far, in parallel
//               suppress it if both conflict
#pragma once

#include "layout.cuh"
#include "merge.cuh"
#include "merge_block.cuh"

// A candidate's numbers in the column.
struct ColumnRow {
    LayoutNumbers numbers;
    uint32_t anchor; // in its group of the layout

    static DEVICE ColumnRow of(const ColumnParams &columns, uint32_t column, const ImageAnchor &of) {
        uint32_t group = 0;
#pragma unroll
        for (uint32_t g = 1; g < MAX_GROUPS; g++) {
            group += g < columns.group_count && of.anchor >= columns.first_anchor[g];
        }
        return {LayoutNumbers(columns.fields[group][column], of.image),
                of.anchor - columns.first_anchor[group]};
    }
    DEVICE float load(uint32_t component) const { return numbers.load(anchor, component); }
};

struct ByColumnShared {
    BlockMaximum maximum;
    float row[MAX_COLUMN_COMPONENTS]; // of the survivor that the block compares with
};

// True if the distance of two embeddings is at most the distance whose square is `limit`.
DEVICE bool are_near(const float *row, const ColumnRow &other, uint32_t components, float limit) {
    float sum = 0.0f;
#pragma unroll 1
    for (uint32_t c = 0; c < components; c++) {
        const float difference = sub_rn(row[c], other.load(c));
        sum = add_rn(sum, mul_rn(difference, difference));
        if (sum > limit) { // no further component makes the sum smaller
            return false;
        }
    }
    return sum <= limit;
}

// Each candidate has one thread, which alone reads and changes its decision.
KERNEL(PART_THREADS, 1)
merge_by_column(void *workspaces, uint64_t stride, const ByColumnParams by,
                const ColumnParams columns) {
    BLOCK_SHARED(ByColumnShared, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    const GroupIndices indices(header);
    const float limit = mul_rn(by.embedding_distance, by.embedding_distance);
    OverlapRule rule(header->params);
    uint32_t step = 0;
    for (uint32_t part = blockIdx.x; part < count; part += gridDim.x) {
        if (arrays.part[part] != part) {
            continue;
        }
        const uint32_t start = arrays.part_start[part], end = part_end(arrays, part, start, count);
        // The greatest complement of a place is the first place.
        uint64_t next = start + threadIdx.x < end ? ~uint64_t(start + threadIdx.x) : 0;
        while ((next = shared.maximum.of_block(next, step++)) != 0) {
            const uint32_t taken = uint32_t(~next);
            const RankedCandidate survivor = arrays.ordered[taken];
            const ColumnRow own =
                ColumnRow::of(columns, by.column, ImageAnchor(indices, survivor.index));
            for (uint32_t c = threadIdx.x; c < by.components; c += PART_THREADS) {
                shared.row[c] = own.load(c);
            }
            __syncthreads();
            next = 0;
            // This thread's first place after the survivor's.
            const uint32_t passed = (taken - start) / PART_THREADS * PART_THREADS;
            uint32_t place = start + passed + threadIdx.x;
            place += place <= taken ? PART_THREADS : 0;
            for (; place < end; place += PART_THREADS) {
                const RankedCandidate &other = arrays.ordered[place];
                uint32_t &decision = workspace.decision_by_rank[other.slot];
                if (Decision{decision}.kind() != Decision::SURVIVES) {
                    continue;
                }
                const float4 box = other.box;
                rule.set_class(header->params, other.class_index);
                if (by.is_embedding == 0) {
                    const float density = shared.row[0] > 1.0f ? 1.0f : shared.row[0];
                    rule.threshold = density > rule.threshold ? density : rule.threshold;
                }
                bool conflict = boxes_conflict(survivor.box, box, rule);
                if (conflict && by.is_embedding != 0) {
                    rule.threshold = by.embedding_iou_threshold;
                    conflict = boxes_conflict(survivor.box, box, rule) ||
                               are_near(shared.row,
                                        ColumnRow::of(columns, by.column,
                                                      ImageAnchor(indices, other.index)),
                                        by.components, limit);
                }
                if (conflict) {
                    decision = Decision::encode(Decision::SUPPRESSED, 1).bits;
                } else if (next == 0) {
                    next = ~uint64_t(place);
                }
            }
        }
    }
}
