// Publish: survivors by rank to where the host reads them, and the counters ready for another frame.
#pragma once

#include "workspace.cuh"

#define PUBLISH_WARPS (PUBLISH_THREADS / WARP)
// Candidates whose fate a thread reads at once.
#define PUBLISH_ITEMS_PER_THREAD 4u
#define DETECTION_WORDS 7u

struct alignas(16) DecisionVector {
    uint32_t of[PUBLISH_ITEMS_PER_THREAD];
};

struct SurvivorList {
    uint32_t of_warp[PUBLISH_WARPS]; // survivors of each warp's candidates
    uint32_t rank[PUBLISH_ITEMS_PER_THREAD * PUBLISH_THREADS];
};

// Writes the first `count` survivors of the listing. Word by word, so that neighbours write side by
// side: the destination may be the host's memory. `OfPairs`: what is ranked has the index of a pair,
// which divided by `classes` is its anchor.
template <bool OfPairs>
DEVICE void write_survivors(const Workspace &workspace, const SurvivorList &list, uint32_t count,
                            uint32_t classes, uint32_t *to) {
#pragma unroll 4
    for (uint32_t q = threadIdx.x; q < count * DETECTION_WORDS; q += PUBLISH_THREADS) {
        const uint32_t rank = list.rank[q / DETECTION_WORDS];
        const uint32_t *const words = (const uint32_t *)&workspace.ranked[rank];
        const uint32_t word = words[q % DETECTION_WORDS];
        const bool is_index = OfPairs && q % DETECTION_WORDS == DETECTION_WORDS - 1;
        to[q] = is_index ? word / classes : word;
    }
}

KERNEL(PUBLISH_THREADS, 1) publish(void *memory, ResultHeader *result) {
    BLOCK_SHARED(SurvivorList, list);
    grid_dependency_wait();
    Header *const header = (Header *)memory;
    const uint32_t ranked_candidates = ranked_count(header);
    const uint32_t most = header->params.max_detections;
    // By which a pair's index is divided, or 0.
    const uint32_t classes = header->params.multi_label ? header->params.classes : 0;
    const Workspace workspace(memory, header->params.capacity);
    const uint32_t lane = lane_index(), warp = warp_index();
    uint32_t *const destination = (uint32_t *)(result + 1);

    uint32_t total = 0; // survivors of the candidates before
    for (uint64_t from = 0; from < ranked_candidates; from += PUBLISH_ITEMS_PER_THREAD * PUBLISH_THREADS) {
        const uint32_t first = uint32_t(from) + PUBLISH_ITEMS_PER_THREAD * threadIdx.x;
        DecisionVector decisions = {};
        if (first < ranked_candidates) {
            decisions = *(const DecisionVector *)(workspace.decision_by_rank + first);
        }
        uint32_t alive = 0;
#pragma unroll
        for (uint32_t i = 0; i < PUBLISH_ITEMS_PER_THREAD; i++) {
            const bool survives =
                first + i < ranked_candidates && (decisions.of[i] & DECISION) == SURVIVES;
            alive |= uint32_t(survives) << i;
        }
        const uint32_t own = __popc(alive);
        uint32_t through = own;
#pragma unroll
        for (uint32_t distance = 1; distance < WARP; distance *= 2) {
            const uint32_t below = __shfl_up_sync(ALL_LANES, through, distance);
            through += lane >= distance ? below : 0;
        }
        if (lane == WARP - 1) {
            list.of_warp[warp] = through;
        }
        __syncthreads();
        const uint32_t of_warp = list.of_warp[lane];
        const uint32_t here = warp_sum(of_warp);
        uint32_t position = through - own + warp_sum(lane < warp ? of_warp : 0);
#pragma unroll
        for (uint32_t i = 0; i < PUBLISH_ITEMS_PER_THREAD; i++) {
            if (alive >> i & 1) {
                list.rank[position++] = first + i;
            }
        }
        __syncthreads();
        const uint32_t room = most == 0 ? here : min(here, most - total);
        uint32_t *const to = destination + uint64_t(total) * DETECTION_WORDS;
        if (classes == 0) {
            write_survivors<false>(workspace, list, room, classes, to);
        } else {
            write_survivors<true>(workspace, list, room, classes, to);
        }
        total += room;
        __syncthreads();
    }

    __syncthreads();
    if (threadIdx.x == 0) {
        result->candidates = header->candidates;
        result->rejected = header->rejected;
        result->survivors = total;
        result->rounds = ranked_candidates != 0 && header->rounds == 0 ? 1 : header->rounds;
        result->nanoseconds = uint32_t(device_clock() - header->start_time);
        header->candidates = 0;
        header->rejected = 0;
        header->rounds = 0;
        // After the barrier this speaks for the whole block's writes.
        __threadfence_system();
        store_relaxed(&result->sequence, header->params.sequence);
    }
}
static_assert(PUBLISH_WARPS == WARP, "a lane for each warp");
