// Order: a candidate's rank is the number of candidates that outrank it. Counting them is
// quadratic, yet cheaper than a sort's passes and barriers up to some tens of thousands, and a
// small part of what `decide` does with as many.
#pragma once

#include "workspace.cuh"

// Keys that a lane has under way at a time.
#define KEYS_AT_ONCE 8u

// Ranks `Tile` candidates at once, each key read being compared with all of theirs.
template <uint32_t Tile>
DEVICE void order_tile(const Workspace &workspace, const Frame &frame, uint32_t first,
                       uint32_t candidates, uint32_t limit) {
    const uint32_t lane = lane_index();
    uint64_t own[Tile];
    uint32_t outranking[Tile];
#pragma unroll
    for (uint32_t t = 0; t < Tile; t++) {
        own[t] = __ldg(&workspace.found_key[lesser(first + t, candidates - 1)]);
        outranking[t] = 0;
    }
    // Lane t carries candidate t to its place.
    const bool carries = lane < Tile && first + lane < candidates;
    float4 box = {};
    uint32_t class_index = 0;
    uint64_t key = 0;
    if (carries) {
        box = __ldg(&workspace.found_box[first + lane]);
        class_index = __ldg(&workspace.found_class[first + lane]);
        key = __ldg(&workspace.found_key[first + lane]);
    }

    for (uint32_t from = 0; from < candidates; from += KEYS_AT_ONCE * WARP) {
        uint64_t keys[KEYS_AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < KEYS_AT_ONCE; k++) {
            const uint32_t j = from + k * WARP + lane;
            keys[k] = j < candidates ? __ldg(&workspace.found_key[j]) : 0; // 0 outranks none
        }
#pragma unroll
        for (uint32_t k = 0; k < KEYS_AT_ONCE; k++) {
#pragma unroll
            for (uint32_t t = 0; t < Tile; t++) {
                outranking[t] += keys[k] > own[t];
            }
        }
    }

    uint32_t rank = 0;
#pragma unroll
    for (uint32_t t = 0; t < Tile; t++) {
        const uint32_t sum = warp_sum(outranking[t]);
        rank = lane == t ? sum : rank;
    }
    if (carries && rank < limit) {
        workspace.box[rank] = box;
        workspace.key[rank] = key;
        workspace.class_index[rank] = class_index;
        workspace.area[rank] = times(plus(minus(box.z, box.x), frame.pixel_offset),
                                     plus(minus(box.w, box.y), frame.pixel_offset));
        workspace.state[rank] = UNDECIDED;
        if (rank % 32 == 0) {
            workspace.alive[rank / 32] = 0;
        }
    }
}

KERNEL(THREADS, 4) order(void *memory) {
    const Header *const header = (const Header *)memory;
    const Frame &frame = header->frame;
    const uint32_t candidates = header->candidates, limit = contenders(header);
    const Workspace workspace(memory, frame.anchors);
    const uint32_t warp = blockIdx.x * WARPS + warp_index(), warps = gridDim.x * WARPS;
    if (candidates <= warps) {
        if (warp < candidates) {
            order_tile<1>(workspace, frame, warp, candidates, limit);
        }
        return;
    }
    for (uint64_t first = uint64_t(warp) * 4; first < candidates; first += uint64_t(warps) * 4) {
        order_tile<4>(workspace, frame, uint32_t(first), candidates, limit);
    }
}
