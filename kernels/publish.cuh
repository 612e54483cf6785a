// Publish: survivors by rank to where the host reads them, and the counters ready for another frame.
#pragma once

#include "workspace.cuh"

#define PUBLISH_WARPS (PUBLISH_THREADS / WARP)
// Survivors written between two barriers.
#define LISTED 2048u
#define DETECTION_WORDS 7u

struct Listing {
    uint32_t of_warp[PUBLISH_WARPS]; // survivors up to and with each warp's
    uint32_t rank[LISTED];
};

KERNEL(PUBLISH_THREADS, 1) publish(void *memory, Outcome *outcome) {
    BLOCK_SHARED(Listing, listing);
    Header *const header = (Header *)memory;
    const uint32_t contending = contenders(header);
    const uint32_t most = header->frame.max_detections;
    const Workspace workspace(memory, header->frame.anchors);
    const uint32_t lane = lane_index(), warp = warp_index();
    uint32_t *const destination = (uint32_t *)(outcome + 1);

    const uint32_t words = (contending + 31) / 32;
    uint32_t total = 0; // survivors of the words before
    for (uint32_t from = 0; from < words; from += PUBLISH_THREADS) {
        // Each thread has a word of 32 candidates; `position` is that of its first survivor.
        const uint32_t w = from + threadIdx.x;
        const uint32_t alive = w < words ? workspace.alive[w] : 0;
        uint32_t through = __popc(alive);
#pragma unroll
        for (uint32_t distance = 1; distance < WARP; distance *= 2) {
            const uint32_t below = __shfl_up_sync(ALL_LANES, through, distance);
            through += lane >= distance ? below : 0;
        }
        if (lane == WARP - 1) {
            listing.of_warp[warp] = through;
        }
        __syncthreads();
        uint32_t position = through - __popc(alive), here = 0;
#pragma unroll
        for (uint32_t i = 0; i < PUBLISH_WARPS; i++) {
            position += i < warp ? listing.of_warp[i] : 0;
            here += listing.of_warp[i];
        }
        const uint32_t room = most == 0 ? here : lesser(here, most - total);

        for (uint32_t start = 0; start < room; start += LISTED) {
            const uint32_t end = lesser(room, start + LISTED);
            uint32_t at = position;
            for (uint32_t left = alive; left != 0; left &= left - 1) {
                if (at >= start && at < end) {
                    listing.rank[at - start] = w * 32 + (__ffs(left) - 1);
                }
                at++;
            }
            __syncthreads();
            // Word by word, so that neighbours write side by side: the destination may be the
            // host's memory.
            const uint32_t count = (end - start) * DETECTION_WORDS;
            uint32_t *const to = destination + uint64_t(total + start) * DETECTION_WORDS;
            for (uint32_t q = threadIdx.x; q < count; q += PUBLISH_THREADS) {
                const uint32_t rank = listing.rank[q / DETECTION_WORDS];
                const uint32_t part = q % DETECTION_WORDS;
                uint32_t value;
                if (part < 4) {
                    value = ((const uint32_t *)&workspace.box[rank])[part];
                } else if (part == 5) {
                    value = workspace.class_index[rank];
                } else {
                    const uint64_t key = workspace.key[rank];
                    value = part == 4 ? __float_as_uint(key_score(key)) : key_anchor(key);
                }
                to[q] = value;
            }
            __syncthreads();
        }
        total += room;
        __syncthreads();
    }

    __syncthreads();
    if (threadIdx.x == 0) {
        outcome->candidates = header->candidates;
        outcome->rejected = header->rejected;
        outcome->survivors = total;
        outcome->rounds = contending != 0 && header->rounds == 0 ? 1 : header->rounds;
        header->candidates = 0;
        header->rejected = 0;
        header->ticket = 0;
        header->rounds = 0;
        // After the barrier this speaks for the whole block's writes.
        __threadfence_system();
        show(&outcome->sequence, header->frame.sequence);
    }
}
