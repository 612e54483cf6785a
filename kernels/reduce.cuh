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

DEVICE void store_decision(const Workspace &workspace, uint32_t rank, uint32_t slot, uint32_t decision,
                   uint32_t depth) {
    if (lane_index() == 0) {
        const uint32_t decision_by_slot = decision | depth << DEPTH_SHIFT;
        store_relaxed(&workspace.decision_by_slot[slot], decision_by_slot);
        store_relaxed(&workspace.decision_by_rank[rank], decision_by_slot);
        if (decision == SURVIVES && depth > 1) {
            atomicMax(&workspace.header->rounds, depth);
        }
    }
}

// Looks at the states of a candidate's hits until its warp gives up: some tenths of a microsecond
// each. Emulated blocks, which do start otherwise, give up soon.
#if defined(__CUDA_ARCH__)
#define SPIN_LIMIT 2000u
#else
#define SPIN_LIMIT 20u
#endif

// What becomes of a candidate by its hits whose states are at `states`, of which each lane has up
// to `Each`: bit i of `waits` for the i-th. SUPPRESSED, and `chain` that of the survivor, where one
// of them survives; SURVIVES where none does, and `chain` grows to the longest of the chains that led
// there. UNDECIDED after `most_looks` in vain.
template <uint32_t Each>
DEVICE uint32_t wait_for_conflicts(const uint32_t *const (&decisions)[Each], uint32_t pending, uint32_t max_loads,
                         uint32_t &depth) {
    uint32_t longest = 0;
    for (uint32_t loads = 1;; loads++) {
        uint32_t survivor = 0;
#pragma unroll
        for (uint32_t i = 0; i < Each; i++) {
            if (pending >> i & 1) {
                const uint32_t loaded = load_relaxed(decisions[i]);
                if ((loaded & DECISION) == SURVIVES) {
                    survivor = loaded;
                } else if ((loaded & DECISION) == SUPPRESSED) {
                    pending &= ~(1u << i);
                    longest = max(longest, loaded >> DEPTH_SHIFT);
                }
            }
        }
        const uint32_t by = __ballot_sync(ALL_LANES, survivor != 0);
        if (by != 0) {
            depth = __shfl_sync(ALL_LANES, survivor >> DEPTH_SHIFT, __ffs(by) - 1);
            return SUPPRESSED;
        }
        if (!__any_sync(ALL_LANES, pending != 0)) {
            depth = max(depth, warp_max(longest));
            return SURVIVES;
        }
        if (loads == max_loads) {
            return UNDECIDED;
        }
        backoff();
    }
}

// Groups of 32 candidates that a warp looks at at once.
#define GROUPS_PER_STEP 2u

// Where there are more hits than were listed: looks at all that outrank it, by rank, since the
// highest are the likeliest to survive.
DEVICE uint32_t wait_for_all_conflicts(const Workspace &workspace, uint32_t rank, uint32_t &depth) {
    const OverlapRule rule(workspace.header->params);
    const Ranked own = workspace.ranked[rank];
    for (uint32_t from = 0; from < rank; from += GROUPS_PER_STEP * WARP) {
        Ranked higher[GROUPS_PER_STEP];
#pragma unroll
        for (uint32_t k = 0; k < GROUPS_PER_STEP; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            higher[k] = workspace.ranked[other < rank ? other : 0];
        }
#pragma unroll
        for (uint32_t k = 0; k < GROUPS_PER_STEP; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            const bool conflict = other < rank && overlaps(higher[k].box, own.box, rule) &&
                             classes_compete(higher[k].class_index, own.class_index, rule);
            const uint32_t *const decision_by_rank[1] = {&workspace.decision_by_rank[other]};
            if (__any_sync(ALL_LANES, conflict)) {
                const uint32_t decision = wait_for_conflicts(decision_by_rank, conflict, SPIN_LIMIT, depth);
                if (decision != SURVIVES) {
                    return decision;
                }
            }
        }
    }
    return SURVIVES;
}

// Whether the candidate is decided.
DEVICE bool resolve(const Workspace &workspace, uint32_t method, uint32_t rank) {
    const uint32_t lane = lane_index();
    const uint32_t *const list = workspace.conflicts + uint64_t(rank) * CONFLICT_LIST_WORDS;
    const uint32_t words[2] = {load_relaxed(list + lane), load_relaxed(list + WARP + lane)};
    const uint32_t conflicts = __shfl_sync(ALL_LANES, words[0], 0);
    const uint32_t slot = __shfl_sync(ALL_LANES, words[0], 1);
    if (conflicts == 0) {
        return true; // a root
    }
    if (method == MAP_REDUCE) {
        store_decision(workspace, rank, slot, SUPPRESSED, 1);
        return true;
    }
    const bool first = lane >= 2 && lane - 2 < conflicts, second = WARP + lane - 2 < conflicts;
    const uint32_t *const decisions[2] = {&workspace.decision_by_slot[first ? words[0] : 0],
                                       &workspace.decision_by_slot[second ? words[1] : 0]};
    const uint32_t class_threshold_count = uint32_t(first) | uint32_t(second) << 1;
    uint32_t depth = 0;
    // Where so many meet it that not all are listed, one of those will mostly have survived by now.
    const bool all_listed = conflicts <= CONFLICT_LIST_CAPACITY;
    uint32_t decision = wait_for_conflicts(decisions, class_threshold_count, all_listed ? SPIN_LIMIT : 1, depth);
    if (!all_listed && decision != SUPPRESSED) {
        decision = wait_for_all_conflicts(workspace, rank, depth);
    }
    if (decision == UNDECIDED) {
        return false;
    }
    store_decision(workspace, rank, slot, decision, decision == SURVIVES ? depth + 1 : depth);
    return true;
}

// The first undecided rank of those from `rank` on that are below `end`, or that.
DEVICE uint32_t next_undecided(const Workspace &workspace, uint32_t rank, uint32_t end) {
    __syncwarp(); // what the warp itself has decided is seen by all of its lanes
    for (; rank < end; rank += WARP) {
        const uint32_t own = rank + lane_index();
        const bool is_undecided = own < end && (load_relaxed(&workspace.decision_by_rank[own]) & DECISION) == UNDECIDED;
        const uint32_t all = __ballot_sync(ALL_LANES, is_undecided);
        if (all != 0) {
            return rank + __ffs(all) - 1;
        }
    }
    return end;
}

KERNEL(REDUCE_THREADS, 1) reduce(void *memory) {
    grid_dependency_wait();
    const Header *const header = (const Header *)memory;
    const uint32_t count = ranked_count(header), method = header->params.method;
    // Compared at once, so that both are loaded at once.
    if ((count == 0) | (method == NONE)) {
        return;
    }
    const Workspace workspace(memory, header->params.capacity);
    for (uint64_t own = blockIdx.x * REDUCE_WARPS + warp_index(); own < count;
         own += gridDim.x * REDUCE_WARPS) {
        uint32_t rank = uint32_t(own);
        for (;;) {
            const bool resolved = resolve(workspace, method, rank);
            if (resolved && rank == own) {
                break;
            }
            rank = next_undecided(workspace, resolved ? rank + 1 : 0, uint32_t(own));
        }
    }
}
