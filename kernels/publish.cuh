// SPDX-License-Identifier: MIT OR Apache-2.0
// Publish: writes the results. In: the candidates and their decisions by rank. Out: the survivors
// by rank and the counts, in memory that the host reads. Publish also resets the header's counters
// for the next launch.
//
// One block publishes a group's survivors in steps of STEP_RANKS ranks. If that is not enough for
// all candidates, several blocks share them:
//
//   for each part of SHARED_RANKS ranks, one block each at a time
//       before = the number of survivors in all parts before, counted again by this block
//       write the part's survivors, from position `before` on
//   the block that finishes last writes the counts
//
// No block waits for another one.
#pragma once

#include "workspace.cuh"

#define PUBLISH_WARPS (PUBLISH_THREADS / WARP)
#define DETECTION_WORDS 7u

// Decisions that a thread loads at a time, if one block publishes all survivors.
#define STEP_ITEMS 4u
#define STEP_RANKS (STEP_ITEMS * PUBLISH_THREADS)
// Decisions that a thread loads at a time, if several blocks share a group's survivors.
#define SHARED_ITEMS 1u
#define SHARED_RANKS (SHARED_ITEMS * PUBLISH_THREADS)

template <uint32_t Items> struct alignas(4 * Items) DecisionVector {
    Decision items[Items];
};

struct SurvivorList {
    uint32_t warp_count[PUBLISH_WARPS]; // survivors among each warp's candidates
    uint32_t rank[STEP_RANKS];
};
static_assert(STEP_RANKS == PUBLISH_STEP_RANKS && SHARED_RANKS == PUBLISH_SHARED_RANKS,
              "the grid has a block for each part");
static_assert(PUBLISH_WARPS == WARP, "a lane loads the count of each warp");

// Writes the first `count` survivors of the list. Each thread writes one word, so that stores to
// the host's memory coalesce. With `HasPairIndex` a candidate's index stands for a pair of anchor
// and class, and the anchor is the index divided by `classes`.
template <bool HasPairIndex>
DEVICE void write_survivors(const Workspace &workspace, const SurvivorList &list, uint32_t count,
                            uint32_t classes, uint32_t *to) {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < count * DETECTION_WORDS; i += PUBLISH_THREADS) {
        const uint32_t rank = list.rank[i / DETECTION_WORDS];
        const uint32_t *const words = (const uint32_t *)&workspace.ranked[rank];
        const uint32_t word = words[i % DETECTION_WORDS];
        const bool is_index = HasPairIndex && i % DETECTION_WORDS == DETECTION_WORDS - 1;
        to[i] = is_index ? word / classes : word;
    }
}

// For layouts without columns.
struct NoColumns {
    DEVICE void write(const Workspace &, const SurvivorList &, uint32_t, const GroupIndices &,
                      uint64_t) const {}
};

// The sum of `count` over all threads of the block. Uses the list's counts.
DEVICE uint32_t block_sum(SurvivorList &list, uint32_t count) {
    const uint32_t of_warp = warp_sum(count);
    if (lane_index() == 0) {
        list.warp_count[warp_index()] = of_warp;
    }
    __syncthreads();
    const uint32_t sum = warp_sum(list.warp_count[lane_index()]);
    __syncthreads();
    return sum;
}

// The number of survivors among the ranks before `end`, a multiple of SHARED_RANKS.
DEVICE uint32_t survivors_before(const Workspace &workspace, SurvivorList &list, uint32_t end) {
    uint32_t count = 0;
#pragma unroll 4
    for (uint32_t rank = STEP_ITEMS * threadIdx.x; rank < end; rank += STEP_RANKS) {
        const auto decisions =
            *(const DecisionVector<STEP_ITEMS> *)(workspace.decision_by_rank + rank);
#pragma unroll
        for (uint32_t i = 0; i < STEP_ITEMS; i++) {
            count += decisions.items[i].kind() == Decision::SURVIVES;
        }
    }
    return block_sum(list, count);
}

// Lists the ranks of the survivors among `Items` * PUBLISH_THREADS ranks from `from` on, and returns
// their number.
template <uint32_t Items>
DEVICE uint32_t list_survivors(const Workspace &workspace, SurvivorList &list, uint32_t from,
                               uint32_t candidates) {
    const uint32_t lane = lane_index(), warp = warp_index();
    const uint32_t first = from + Items * threadIdx.x;
    DecisionVector<Items> decisions = {};
    if (first < candidates) {
        decisions = *(const DecisionVector<Items> *)(workspace.decision_by_rank + first);
    }
    uint32_t survivors = 0; // a bit per item
#pragma unroll
    for (uint32_t i = 0; i < Items; i++) {
        const bool survives =
            first + i < candidates && decisions.items[i].kind() == Decision::SURVIVES;
        survivors |= uint32_t(survives) << i;
    }
    // A prefix sum within each warp, then a prefix sum over the warps.
    const uint32_t own_count = __popc(survivors);
    uint32_t inclusive_sum = own_count;
#pragma unroll
    for (uint32_t distance = 1; distance < WARP; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, inclusive_sum, distance);
        inclusive_sum += lane >= distance ? below : 0;
    }
    if (lane == WARP - 1) {
        list.warp_count[warp] = inclusive_sum;
    }
    __syncthreads();
    const uint32_t warp_count = list.warp_count[lane];
    const uint32_t count = warp_sum(warp_count);
    uint32_t position = inclusive_sum - own_count + warp_sum(lane < warp ? warp_count : 0);
#pragma unroll
    for (uint32_t i = 0; i < Items; i++) {
        if (survivors >> i & 1) {
            list.rank[position++] = first + i;
        }
    }
    __syncthreads();
    return count;
}

// Adds this block's survivors to the counts. Returns true in the block that is the last of `blocks`;
// `total` is then the number of all survivors. One thread of each block calls it, after a barrier.
DEVICE bool is_last_block(Header *header, uint32_t blocks, uint32_t &total) {
    atomicAdd(&header->published, total);
    // Orders the block's writes before the count of blocks, so that the last block's sequence number
    // follows the writes of all blocks.
    __threadfence_system();
    if (atomicAdd(&header->finished_blocks, 1u) != blocks - 1) {
        return false;
    }
    __threadfence_system();
    total = load_relaxed(&header->published);
    header->published = 0;
    header->finished_blocks = 0;
    return true;
}

// `columns` writes the numbers that survivors carry along (publish_columns.cuh).
template <bool IsBatch, typename Columns>
DEVICE void publish_survivors(void *workspaces, uint64_t stride, ResultHeader *results,
                              Detection *detections, const Columns &columns) {
    BLOCK_SHARED(SurvivorList, list);
    grid_dependency_wait();
    Header *const header = group_header<IsBatch>(workspaces, stride);
    const uint32_t candidates = ranked_count(header);
    const uint32_t max_detections = header->params.max_detections;
    const GroupIndices indices(header);
    const uint32_t capacity = header->params.capacity;
    const Workspace workspace(header, capacity);
    const uint64_t first_of_group = uint64_t(group_index<IsBatch>()) * capacity;
    uint32_t *const words = (uint32_t *)(detections + first_of_group);

    uint32_t total = 0; // survivors written
    const bool is_shared = gridDim.x > 1 && candidates > STEP_RANKS;
    const uint32_t parts = (candidates + SHARED_RANKS - 1) / SHARED_RANKS;
    const uint32_t blocks = is_shared ? min(parts, gridDim.x) : 1;
    if (blockIdx.x >= blocks) {
        return;
    }
    const uint32_t ranks = is_shared ? SHARED_RANKS : STEP_RANKS;
    for (uint64_t from = uint64_t(blockIdx.x) * ranks;
         from < candidates && (is_shared || max_detections == 0 || total < max_detections);
         from += blocks * ranks) {
        const uint32_t first = uint32_t(from);
        uint32_t before = total, count;
        if (is_shared) {
            before = survivors_before(workspace, list, first);
            count = list_survivors<SHARED_ITEMS>(workspace, list, first, candidates);
        } else {
            count = list_survivors<STEP_ITEMS>(workspace, list, first, candidates);
        }
        const uint32_t wanted = max_detections - min(before, max_detections);
        const uint32_t written = max_detections == 0 ? count : min(count, wanted);
        uint32_t *const to = words + uint64_t(before) * DETECTION_WORDS;
        if (indices.classes == 0) {
            write_survivors<false>(workspace, list, written, indices.classes, to);
        } else {
            write_survivors<true>(workspace, list, written, indices.classes, to);
        }
        columns.write(workspace, list, written, indices, first_of_group + before);
        total += written;
        __syncthreads();
    }

    __syncthreads();
    if (threadIdx.x == 0 && (!is_shared || is_last_block(header, blocks, total))) {
        ResultHeader *const result = &results[group_index<IsBatch>()];
        result->candidates = header->candidates;
        result->rejected = header->rejected;
        result->survivors = total;
        result->rounds = candidates != 0 && header->rounds == 0 ? 1 : header->rounds;
        result->nanoseconds = uint32_t(device_clock() - header->start_time);
        header->candidates = 0;
        header->rejected = 0;
        header->rounds = 0;
        // After the barrier, this fence orders all writes of the block before the sequence number.
        __threadfence_system();
        store_relaxed(&result->sequence, header->params.sequence);
    }
}

KERNEL(PUBLISH_THREADS, 1)
publish(void *workspaces, uint64_t stride, ResultHeader *results, Detection *detections) {
    publish_survivors<false>(workspaces, stride, results, detections, NoColumns());
}
KERNEL(PUBLISH_THREADS, 1)
publish_batch(void *workspaces, uint64_t stride, ResultHeader *results, Detection *detections) {
    publish_survivors<true>(workspaces, stride, results, detections, NoColumns());
}
