// Reduce: what becomes of the candidates that others meet. All rounds to the fixpoint are one
// kernel.
//
// A greedy candidate is suppressed as soon as one of its hits is known to survive, and survives
// once all of them are known to be suppressed; until then its warp looks again at their states.
// Candidates are handed out by rank, and each depends on higher ranks only, which are in the hands
// of warps that run already. So the highest-ranked undecided one can always be decided, and no
// warp waits for ever, however few blocks the device runs at a time. What is decided does not
// depend on who comes first.
#pragma once

#include "overlap.cuh"

#define REDUCE_WARPS (REDUCE_THREADS / WARP)

DEVICE void decide(const Workspace &workspace, uint32_t rank, uint32_t slot, uint32_t decision,
                   uint32_t chain) {
    if (lane_index() == 0) {
        const uint32_t state = decision | chain << CHAIN_SHIFT;
        show(&workspace.state[slot], state);
        show(&workspace.fate[rank], state);
        if (decision == SURVIVES && chain > 1) {
            atomicMax(&workspace.header->rounds, chain);
        }
    }
}

// Waits for the candidates whose states are at `states`, of which each lane has up to `Each`: bit i
// of `waits` for the i-th. `chain` grows to the longest of the chains that led there. True, and
// `chain` that of the survivor, where one of them survives. `Once`: looks at them once, and is true
// where one of them is known to survive.
template <bool Once = false, uint32_t Each>
DEVICE bool one_survives(const uint32_t *const (&states)[Each], uint32_t waits, uint32_t &chain) {
    uint32_t longest = 0;
    for (;;) {
        uint32_t survivor = 0;
#pragma unroll
        for (uint32_t i = 0; i < Each; i++) {
            if (waits >> i & 1) {
                const uint32_t seen = look(states[i]);
                if ((seen & DECISION) == SURVIVES) {
                    survivor = seen;
                } else if ((seen & DECISION) == SUPPRESSED) {
                    waits &= ~(1u << i);
                    longest = greater(longest, seen >> CHAIN_SHIFT);
                }
            }
        }
        const uint32_t by = __ballot_sync(ALL_LANES, survivor != 0);
        if (by != 0) {
            chain = __shfl_sync(ALL_LANES, survivor >> CHAIN_SHIFT, __ffs(by) - 1);
            return true;
        }
        if (Once) {
            return false;
        }
        if (!__any_sync(ALL_LANES, waits != 0)) {
            chain = greater(chain, warp_max(longest));
            return false;
        }
        rest();
    }
}

// Groups of 32 candidates that a warp looks at at once.
#define SEEN_AT_ONCE 2u

// Where there are more hits than were listed: looks at all that outrank it, by rank, since the
// highest are the likeliest to survive.
DEVICE bool suppressed_by_any(const Workspace &workspace, const Rule &rule, uint32_t rank,
                              uint32_t &chain) {
    const Ranked own = workspace.ranked[rank];
    for (uint32_t from = 0; from < rank; from += SEEN_AT_ONCE * WARP) {
        Ranked higher[SEEN_AT_ONCE];
#pragma unroll
        for (uint32_t k = 0; k < SEEN_AT_ONCE; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            higher[k] = workspace.ranked[other < rank ? other : 0];
        }
#pragma unroll
        for (uint32_t k = 0; k < SEEN_AT_ONCE; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            const bool hit = other < rank && overlaps(higher[k].box, own.box, rule) &&
                             concerns(higher[k].class_index, own.class_index, rule);
            const uint32_t *const fate[1] = {&workspace.fate[other]};
            if (__any_sync(ALL_LANES, hit) && one_survives(fate, hit, chain)) {
                return true;
            }
        }
    }
    return false;
}

DEVICE void settle(const Workspace &workspace, const Rule &rule, uint32_t method, uint32_t rank) {
    const uint32_t lane = lane_index();
    const uint32_t *const list = workspace.hits + uint64_t(rank) * HIT_WORDS;
    const uint32_t words[2] = {list[lane], list[WARP + lane]};
    const uint32_t hits = __shfl_sync(ALL_LANES, words[0], 0);
    const uint32_t slot = __shfl_sync(ALL_LANES, words[0], 1);
    if (hits == 0) {
        return; // a root
    }
    if (method == MAP_REDUCE) {
        decide(workspace, rank, slot, SUPPRESSED, 1);
        return;
    }
    const bool first = lane >= 2 && lane - 2 < hits, second = WARP + lane - 2 < hits;
    const uint32_t *const states[2] = {&workspace.state[first ? words[0] : 0],
                                       &workspace.state[second ? words[1] : 0]};
    const uint32_t listed = uint32_t(first) | uint32_t(second) << 1;
    uint32_t chain = 0;
    bool suppressed;
    if (hits <= HIT_ROOM) {
        suppressed = one_survives(states, listed, chain);
    } else {
        // Where so many meet it, one of those listed will mostly have survived by now.
        suppressed = one_survives<true>(states, listed, chain) ||
                     suppressed_by_any(workspace, rule, rank, chain);
    }
    decide(workspace, rank, slot, suppressed ? SUPPRESSED : SURVIVES,
           suppressed ? chain : chain + 1);
}

KERNEL(REDUCE_THREADS, 1) reduce(void *memory) {
    BLOCK_SHARED(uint32_t, ticket);
    take_turn();
    Header *const header = (Header *)memory;
    for (;;) {
        if (threadIdx.x == 0) {
            ticket = atomicAdd(&header->ticket, REDUCE_WARPS);
        }
        const uint32_t count = contenders(header);
        const Workspace workspace(memory, header->frame.anchors);
        const Rule rule(header->frame);
        __syncthreads();
        const uint32_t first = ticket, rank = first + warp_index();
        if (rank < count) {
            settle(workspace, rule, header->frame.method, rank);
        }
        // With as many blocks as turns, each takes one.
        if (first >= count || count <= gridDim.x * REDUCE_WARPS) {
            return;
        }
        __syncthreads();
    }
}
