// SPDX-License-Identifier: MIT OR Apache-2.0
// Merging: the overlap of two boxes as a number, and the greatest key of a block.
#pragma once

#include "merge_params.cuh"
#include "overlap.cuh"
#include "sort.cuh"

// The overlap of two boxes, from 0 to 1. `higher` outranks `lower`.
DEVICE float overlap_of(const float4 &higher, const float4 &lower, const OverlapRule &rule) {
    const float width =
        add_rn(sub_rn(fminf(higher.z, lower.z), fmaxf(higher.x, lower.x)), rule.offset);
    const float height =
        add_rn(sub_rn(fminf(higher.w, lower.w), fmaxf(higher.y, lower.y)), rule.offset);
    if (!(width > 0.0f && height > 0.0f)) {
        return 0.0f;
    }
    const float intersection = mul_rn(width, height);
    const float higher_area = area(higher, rule), lower_area = area(lower, rule);
    float whole = sub_rn(add_rn(higher_area, lower_area), intersection);
    if (rule.overlap != OVERLAP_IOU) {
        whole = rule.overlap == OVERLAP_SMALLER ? fminf(higher_area, lower_area) : higher_area;
    }
    const float value = div_rn(intersection, whole);
    const float above = value > 0.0f ? value : 0.0f; // 0 for NaN
    return above < 1.0f ? above : 1.0f;
}

// The greatest keys of the warps of a block, for two steps.
struct BlockMaximum {
    uint64_t of_warp[2][PART_THREADS / WARP];

    // The greatest of the keys that the threads of the block pass. `step` counts the calls. One
    // barrier suffices, because a warp that is a step ahead writes to the other half.
    DEVICE uint64_t of_block(uint64_t key, uint32_t step) {
        uint64_t *const keys = of_warp[step % 2];
        key = greatest_of_warp(key);
        if (lane_index() == 0) {
            keys[warp_index()] = key;
        }
        __syncthreads();
        return greatest_of_warp(keys[lane_index() % (PART_THREADS / WARP)]);
    }

    static DEVICE uint64_t greatest_of_warp(uint64_t key) {
#pragma unroll
        for (uint32_t distance = WARP / 2; distance != 0; distance /= 2) {
            const uint64_t other = shuffle_xor(key, distance);
            key = other > key ? other : key;
        }
        return key;
    }
};
static_assert(PART_THREADS / WARP <= WARP, "the lanes load the keys of all warps");
