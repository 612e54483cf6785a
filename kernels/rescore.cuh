// SPDX-License-Identifier: MIT OR Apache-2.0
// Rescoring: Soft-NMS and Matrix NMS. In: the candidates part by part (merge.cuh), or by rank. Out:
// survivors with lower scores. The formulas are in core/src/engine/merging.rs.
//
//   merge_soften      a block per class, with a pass over its candidates for each survivor
//   merge_compensate  for each candidate, the greatest overlap with a candidate that outranks it
//   merge_decay       for each candidate, the least decay by a candidate that outranks it
#pragma once

#include "functions.cuh"
#include "merge.cuh"
#include "merge_block.cuh"

// A score multiplied by a factor. Scores of 0 and below do not change, and no factor raises them.
DEVICE float lowered(float score, float factor) {
    return score > 0.0f && factor < 1.0f ? mul_rn(score, factor) : score;
}

DEVICE float soft_factor(float overlap, const MergeParams &merge) {
    return merge.is_gaussian ? exponential(div_rn(-mul_rn(overlap, overlap), merge.sigma))
                             : sub_rn(1.0f, overlap);
}

DEVICE float matrix_decay(float overlap, float compensation, const MergeParams &merge) {
    if (merge.is_gaussian) {
        const float difference =
            sub_rn(mul_rn(compensation, compensation), mul_rn(overlap, overlap));
        return exponential(div_rn(difference, merge.sigma));
    }
    return compensation == 1.0f ? 1.0f
                                : div_rn(sub_rn(1.0f, overlap), sub_rn(1.0f, compensation));
}

// Marks a candidate that has survived or was dropped: NaN, which no score is.
DEVICE float done_score() { return __uint_as_float(0x7fc00000u); }

// Each candidate has one thread, which alone reads and changes its score. Scores only fall, so that
// a candidate is dropped as soon as its score is below the threshold.
KERNEL(PART_THREADS, 1) merge_soften(void *workspaces, uint64_t stride, const MergeParams merge) {
    BLOCK_SHARED(BlockMaximum, maximum);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    OverlapRule rule(header->params);
    uint32_t step = 0;
    for (uint32_t part = blockIdx.x; part < count; part += gridDim.x) {
        if (arrays.part[part] != part) {
            continue;
        }
        const uint32_t start = arrays.part_start[part], end = part_end(arrays, part, start, count);
        uint64_t best = 0;
        for (uint32_t place = start + threadIdx.x; place < end; place += PART_THREADS) {
            const RankedCandidate &candidate = arrays.ordered[place];
            arrays.score[place] = candidate.score;
            arrays.final_key[candidate.slot] = dropped_key(candidate.slot);
            const uint64_t key = RankKey::encode(candidate.score, place).bits;
            best = key > best ? key : best;
        }
        while ((best = maximum.of_block(best, step++)) != 0) {
            const RankKey taken = {best};
            RankedCandidate survivor = arrays.ordered[taken.index()];
            survivor.score = taken.score();
            best = 0;
            for (uint32_t place = start + threadIdx.x; place < end; place += PART_THREADS) {
                float score = arrays.score[place];
                if (score != score) {
                    continue;
                }
                if (place == taken.index()) {
                    arrays.score[place] = done_score();
                    store_survivor(arrays, header->params, survivor);
                    continue;
                }
                const RankedCandidate &other = arrays.ordered[place];
                const float4 box = other.box;
                if (!merge.is_gaussian) {
                    rule.set_class(header->params, other.class_index);
                }
                if (merge.is_gaussian || boxes_conflict(survivor.box, box, rule)) {
                    const float overlap = overlap_of(survivor.box, box, rule);
                    const float lower =
                        overlap > 0.0f ? lowered(score, soft_factor(overlap, merge)) : score;
                    if (lower != score) {
                        const uint32_t class_index = other.class_index;
                        const bool is_below = lower < class_threshold(header->params, class_index);
                        score = is_below ? done_score() : lower;
                        arrays.score[place] = score;
                    }
                }
                const uint64_t key = score == score ? RankKey::encode(score, place).bits : 0;
                best = key > best ? key : best;
            }
        }
    }
}

// Calls `visit` with each candidate that outranks a query, and with their overlap, if there is one.
// Then calls `store` for each query.
template <typename Visit, typename Store>
DEVICE void for_each_overlap(const Workspace &workspace, uint32_t count, const Visit &visit,
                             const Store &store) {
    if (count == 0) {
        return;
    }
    const OverlapRule rule(workspace.header->params);
    for_each_run<MERGE_QUERIES>(count, [&](uint32_t first) {
        const MergeQueries queries(workspace, first, count);
        const uint32_t end = min(first + MERGE_QUERIES, count);
        float results[MERGE_QUERIES];
#pragma unroll
        for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
            results[q] = visit.initial();
        }
        for (uint32_t from = 0; from < end; from += WARP) {
            const uint32_t other = from + lane_index(), at = min(other, count - 1);
            const RankedCandidate higher = workspace.ranked[at];
#pragma unroll
            for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
                if (other < first + q &&
                    classes_conflict(higher.class_index, queries.class_index[q], rule)) {
                    const float overlap = overlap_of(higher.box, queries.box[q], rule);
                    if (overlap > 0.0f) {
                        results[q] = visit.of(results[q], at, overlap);
                    }
                }
            }
        }
#pragma unroll
        for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
            const float result = visit.of_warp(results[q]);
            if (lane_index() == q && first + q < count) {
                store(first + q, result);
            }
        }
    });
}

// Overlaps are not negative, so that their bits are in their order.
struct GreatestOverlap {
    DEVICE float initial() const { return 0.0f; }
    DEVICE float of(float greatest, uint32_t, float overlap) const {
        return overlap > greatest ? overlap : greatest;
    }
    DEVICE float of_warp(float greatest) const {
        return __uint_as_float(warp_max(__float_as_uint(greatest)));
    }
};

// Decays are not negative, either. NaN is ignored.
struct LeastDecay {
    const float *compensation;
    const MergeParams &merge;

    DEVICE float initial() const { return 1.0f; }
    DEVICE float of(float least, uint32_t higher, float overlap) const {
        const float decay = matrix_decay(overlap, compensation[higher], merge);
        return decay < least ? decay : least;
    }
    DEVICE float of_warp(float least) const {
        return __uint_as_float(~warp_max(~__float_as_uint(least)));
    }
};

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_compensate(void *workspaces, uint64_t stride) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    for_each_overlap(workspace, ranked_count(header), GreatestOverlap(),
                     [&](uint32_t rank, float overlap) { arrays.compensation[rank] = overlap; });
}

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_decay(void *workspaces, uint64_t stride, const MergeParams merge) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    for_each_overlap(workspace, ranked_count(header), LeastDecay{arrays.compensation, merge},
                     [&](uint32_t rank, float factor) {
                         RankedCandidate survivor = workspace.ranked[rank];
                         survivor.score = lowered(survivor.score, factor);
                         survivor.slot = rank;
                         store_survivor(arrays, header->params, survivor);
                     });
}
