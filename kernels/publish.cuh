// SPDX-License-Identifier: MIT OR Apache-2.0
// Publish: writes the results. In: the candidates and their decisions by rank. Out: the survivors
// by rank and the counts, in memory that the host reads. Publish also resets the header's counters
// for the next launch.
#pragma once

#include "workspace.cuh"

#define PUBLISH_WARPS (PUBLISH_THREADS / WARP)
// Decisions that a thread loads at a time.
#define PUBLISH_ITEMS_PER_THREAD 4u
#define DETECTION_WORDS 7u

struct alignas(16) DecisionVector {
    Decision items[PUBLISH_ITEMS_PER_THREAD];
};

struct SurvivorList {
    uint32_t warp_count[PUBLISH_WARPS]; // survivors among each warp's candidates
    uint32_t rank[PUBLISH_ITEMS_PER_THREAD * PUBLISH_THREADS];
};
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
    const uint32_t lane = lane_index(), warp = warp_index();
    uint32_t *const words = (uint32_t *)(detections + uint64_t(group_index<IsBatch>()) * capacity);

    uint32_t total = 0; // survivors written
    for (uint64_t from = 0; from < candidates && (max_detections == 0 || total < max_detections);
         from += PUBLISH_ITEMS_PER_THREAD * PUBLISH_THREADS) {
        const uint32_t first = uint32_t(from) + PUBLISH_ITEMS_PER_THREAD * threadIdx.x;
        DecisionVector decisions = {};
        if (first < candidates) {
            decisions = *(const DecisionVector *)(workspace.decision_by_rank + first);
        }
        uint32_t survivors = 0; // a bit per item
#pragma unroll
        for (uint32_t i = 0; i < PUBLISH_ITEMS_PER_THREAD; i++) {
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
        for (uint32_t i = 0; i < PUBLISH_ITEMS_PER_THREAD; i++) {
            if (survivors >> i & 1) {
                list.rank[position++] = first + i;
            }
        }
        __syncthreads();
        const uint32_t written = max_detections == 0 ? count : min(count, max_detections - total);
        uint32_t *const to = words + uint64_t(total) * DETECTION_WORDS;
        if (indices.classes == 0) {
            write_survivors<false>(workspace, list, written, indices.classes, to);
        } else {
            write_survivors<true>(workspace, list, written, indices.classes, to);
        }
        columns.write(workspace, list, written, indices,
                      uint64_t(group_index<IsBatch>()) * capacity + total);
        total += written;
        __syncthreads();
    }

    __syncthreads();
    if (threadIdx.x == 0) {
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
