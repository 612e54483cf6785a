// Reduce: what becomes of the candidates that others meet. All rounds to the fixpoint are one
// kernel.
//
// A greedy candidate is suppressed as soon as one of its hits is known to survive, and survives
// once all of them are known to be suppressed; until then its warp looks again at their states.
// Warps take candidates by rank, and each depends on higher ranks only, which are in the hands of
// warps that run already, as GPUs start blocks. Where one started them otherwise, a warp that has
// looked in vain too often decides all ranks above its own by itself: taken in their order, each can
// be decided at once. What is decided does not depend on who comes first.
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

// Looks at the states of a candidate's hits until its warp gives up: some tenths of a microsecond
// each. Emulated blocks, which do start otherwise, give up soon.
#if defined(__CUDA_ARCH__)
#define PATIENCE 2000u
#else
#define PATIENCE 20u
#endif

// What becomes of a candidate by its hits whose states are at `states`, of which each lane has up
// to `Each`: bit i of `waits` for the i-th. SUPPRESSED, and `chain` that of the survivor, where one
// of them survives; SURVIVES where none does, and `chain` grows to the longest of the chains that led
// there. UNDECIDED after `most_looks` in vain.
template <uint32_t Each>
DEVICE uint32_t wait_for(const uint32_t *const (&states)[Each], uint32_t waits, uint32_t most_looks,
                         uint32_t &chain) {
    uint32_t longest = 0;
    for (uint32_t looks = 1;; looks++) {
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
            return SUPPRESSED;
        }
        if (!__any_sync(ALL_LANES, waits != 0)) {
            chain = greater(chain, warp_max(longest));
            return SURVIVES;
        }
        if (looks == most_looks) {
            return UNDECIDED;
        }
        rest();
    }
}

// Groups of 32 candidates that a warp looks at at once.
#define SEEN_AT_ONCE 2u

// Where there are more hits than were listed: looks at all that outrank it, by rank, since the
// highest are the likeliest to survive.
DEVICE uint32_t wait_for_all(const Workspace &workspace, uint32_t rank, uint32_t &chain) {
    const Rule rule(workspace.header->frame);
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
            if (__any_sync(ALL_LANES, hit)) {
                const uint32_t decision = wait_for(fate, hit, PATIENCE, chain);
                if (decision != SURVIVES) {
                    return decision;
                }
            }
        }
    }
    return SURVIVES;
}

// Whether the candidate is decided.
DEVICE bool settle(const Workspace &workspace, uint32_t method, uint32_t rank) {
    const uint32_t lane = lane_index();
    const uint32_t *const list = workspace.hits + uint64_t(rank) * HIT_WORDS;
    const uint32_t words[2] = {look(list + lane), look(list + WARP + lane)};
    const uint32_t hits = __shfl_sync(ALL_LANES, words[0], 0);
    const uint32_t slot = __shfl_sync(ALL_LANES, words[0], 1);
    if (hits == 0) {
        return true; // a root
    }
    if (method == MAP_REDUCE) {
        decide(workspace, rank, slot, SUPPRESSED, 1);
        return true;
    }
    const bool first = lane >= 2 && lane - 2 < hits, second = WARP + lane - 2 < hits;
    const uint32_t *const states[2] = {&workspace.state[first ? words[0] : 0],
                                       &workspace.state[second ? words[1] : 0]};
    const uint32_t listed = uint32_t(first) | uint32_t(second) << 1;
    uint32_t chain = 0;
    // Where so many meet it that not all are listed, one of those will mostly have survived by now.
    const bool all_listed = hits <= HIT_ROOM;
    uint32_t decision = wait_for(states, listed, all_listed ? PATIENCE : 1, chain);
    if (!all_listed && decision != SUPPRESSED) {
        decision = wait_for_all(workspace, rank, chain);
    }
    if (decision == UNDECIDED) {
        return false;
    }
    decide(workspace, rank, slot, decision, decision == SURVIVES ? chain + 1 : chain);
    return true;
}

// The first undecided rank of those from `rank` on that are below `end`, or that.
DEVICE uint32_t next_undecided(const Workspace &workspace, uint32_t rank, uint32_t end) {
    __syncwarp(); // what the warp itself has decided is seen by all of its lanes
    for (; rank < end; rank += WARP) {
        const uint32_t own = rank + lane_index();
        const bool is_undecided = own < end && (look(&workspace.fate[own]) & DECISION) == UNDECIDED;
        const uint32_t all = __ballot_sync(ALL_LANES, is_undecided);
        if (all != 0) {
            return rank + __ffs(all) - 1;
        }
    }
    return end;
}

KERNEL(REDUCE_THREADS, 1) reduce(void *memory) {
    take_turn();
    const Header *const header = (const Header *)memory;
    const uint32_t count = contenders(header), method = header->frame.method;
    // Compared at once, so that both are loaded at once.
    if ((count == 0) | (method == NONE)) {
        return;
    }
    const Workspace workspace(memory, header->frame.capacity);
    for (uint64_t own = blockIdx.x * REDUCE_WARPS + warp_index(); own < count;
         own += gridDim.x * REDUCE_WARPS) {
        uint32_t rank = uint32_t(own);
        for (;;) {
            const bool settled = settle(workspace, method, rank);
            if (settled && rank == own) {
                break;
            }
            rank = next_undecided(workspace, settled ? rank + 1 : 0, uint32_t(own));
        }
    }
}
