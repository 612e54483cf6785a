// SPDX-License-Identifier: MIT OR Apache-2.0
// Reduce: decides which candidates survive. In: the candidates by rank, with their conflict lists.
// Out: a decision for each candidate. All rounds of the algorithm (nmsfilter.cu) run in one launch.
//
//   for each rank of the warp, ascending
//       loop
//           if a candidate of the conflict list survives: suppressed; next rank
//           if all of the conflict list are suppressed: survives; next rank
//           back off
//
// A decision depends only on decisions of higher ranks, and never on the order of execution.
//
// Forward progress. A warp waits for higher-ranked candidates of its group. Candidates among the
// first REDUCE_WARPS * gridDim.x ranks are resolved by blocks of lower or equal number. Like CUB's
// decoupled look-back, this code assumes two things: blocks start in the order of their linear
// numbers, in which the blocks of a group are consecutive, and a block that has started is not
// starved. Then every warp waited for has started. A warp's later ranks may depend on blocks that
// have not started, if the blocks of a group are not all resident at one time. CUDA guarantees
// neither assumption. A warp that has reached the spin limit therefore resolves all higher
// undecided ranks on its own, in order of rank, in which each can be decided at once
// (resolve_with_fallback). The fallback is slower, but the launch always ends and the results are
// identical.
#pragma once

#include "overlap.cuh"

#define REDUCE_WARPS (REDUCE_THREADS / WARP)

// How often a conflict list's decisions are loaded before the spin limit is reached. Each load
// takes some tenths of a microsecond. The emulator starts blocks in another order, so it uses a low
// limit.
#if defined(__CUDA_ARCH__)
#define SPIN_LIMIT 2000u
#else
#define SPIN_LIMIT 20u
#endif

// `own` is the identifier that stands for the candidate in conflict lists.
template <typename Conflicts>
DEVICE void store_decision(const Workspace &workspace, uint32_t rank, uint32_t own, uint32_t kind,
                           uint32_t depth) {
    if (lane_index() == 0) {
        const Decision decision = Decision::encode(kind, depth);
        Conflicts::store(workspace, rank, own, decision);
        if (kind == Decision::SURVIVES && depth > 1) {
            atomicMax(&workspace.header->rounds, depth);
        }
    }
}

// Waits for the decisions of candidates that conflict with a lower-ranked one. Each lane has up to
// `Each` of them: bit i of `pending` is set if decisions[i] is in use. Returns
// - SUPPRESSED if one of them survives; `depth` becomes the survivor's depth;
// - SURVIVES if all are suppressed; `depth` becomes the maximum of itself and their depths;
// - UNDECIDED if neither is known after `spin_limit` loads.
template <uint32_t Each>
DEVICE uint32_t wait_for_conflicts(const uint32_t *const (&decisions)[Each], uint32_t pending,
                                   uint32_t spin_limit, uint32_t &depth) {
    uint32_t max_depth = 0;
    for (uint32_t spins = 1;; spins++) {
        Decision survivor = {0};
#pragma unroll
        for (uint32_t i = 0; i < Each; i++) {
            if (pending >> i & 1) {
                const Decision decision = {load_relaxed(decisions[i])};
                if (decision.kind() == Decision::SURVIVES) {
                    survivor = decision;
                } else if (decision.kind() == Decision::SUPPRESSED) {
                    pending &= ~(1u << i);
                    max_depth = max(max_depth, decision.depth());
                }
            }
        }
        const uint32_t with_survivor = __ballot_sync(ALL_LANES, survivor.bits != 0);
        if (with_survivor != 0) {
            depth = __shfl_sync(ALL_LANES, survivor.depth(), __ffs(with_survivor) - 1);
            return Decision::SUPPRESSED;
        }
        if (!__any_sync(ALL_LANES, pending != 0)) {
            depth = max(depth, warp_max(max_depth));
            return Decision::SURVIVES;
        }
        if (spins == spin_limit) {
            return Decision::UNDECIDED;
        }
        backoff();
    }
}

// Groups of WARP candidates that a warp loads at a time.
#define GROUPS_PER_STEP 2u

// Conflict lists that contain slots, of all higher-ranked candidates.
template <typename Conflicts> struct ConflictsBySlot {
    // The decisions, indexed by the identifiers in conflict lists.
    static DEVICE uint32_t *decisions(const Workspace &workspace) {
        return workspace.decision_by_slot;
    }
    static DEVICE void store(const Workspace &workspace, uint32_t rank, uint32_t slot,
                             Decision decision) {
        store_relaxed(&workspace.decision_by_slot[slot], decision.bits);
        store_relaxed(&workspace.decision_by_rank[rank], decision.bits);
    }
    static DEVICE uint32_t wait_for_all(const Workspace &workspace, uint32_t rank, uint32_t &depth);
};

// Conflicts of upright boxes. reduce_oriented.cuh has the counterpart for oriented boxes.
struct UprightConflicts : ConflictsBySlot<UprightConflicts> {
    // True if the candidates conflict. `higher` outranks `lower`.
    static DEVICE bool conflict(const Workspace &, const RankedCandidate &higher,
                                const RankedCandidate &lower, const OverlapRule &rule) {
        return boxes_conflict(higher.box, lower.box, rule) &&
               classes_conflict(higher.class_index, lower.class_index, rule);
    }
};

// wait_for_conflicts for incomplete conflict lists. Waits for all candidates that outrank `rank`,
// in the order of ranks, because the highest are the most likely to survive.
template <typename Conflicts>
DEVICE uint32_t ConflictsBySlot<Conflicts>::wait_for_all(const Workspace &workspace, uint32_t rank,
                                                         uint32_t &depth) {
    OverlapRule rule(workspace.header->params);
    const RankedCandidate own = workspace.ranked[rank];
    rule.set_class(workspace.header->params, own.class_index);
    for (uint32_t from = 0; from < rank; from += GROUPS_PER_STEP * WARP) {
        RankedCandidate higher[GROUPS_PER_STEP];
#pragma unroll
        for (uint32_t k = 0; k < GROUPS_PER_STEP; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            higher[k] = workspace.ranked[other < rank ? other : 0];
        }
#pragma unroll
        for (uint32_t k = 0; k < GROUPS_PER_STEP; k++) {
            const uint32_t other = from + k * WARP + lane_index();
            const bool conflict =
                other < rank && Conflicts::conflict(workspace, higher[k], own, rule);
            const uint32_t *const decisions[1] = {&workspace.decision_by_rank[other]};
            if (__any_sync(ALL_LANES, conflict)) {
                const uint32_t kind = wait_for_conflicts(decisions, conflict, SPIN_LIMIT, depth);
                if (kind != Decision::SURVIVES) {
                    return kind;
                }
            }
        }
    }
    return Decision::SURVIVES;
}

// Decides the candidate of this rank. Returns false if the spin limit was reached.
template <typename Conflicts>
DEVICE bool resolve(const Workspace &workspace, uint32_t method, uint32_t rank) {
    const uint32_t lane = lane_index();
    const uint32_t *const list = (const uint32_t *)&workspace.conflicts[rank];
    // The lane's two words of a ConflictList.
    const uint32_t words[2] = {load_relaxed(list + lane), load_relaxed(list + WARP + lane)};
    const uint32_t count = __shfl_sync(ALL_LANES, words[0], 0);
    const uint32_t own = __shfl_sync(ALL_LANES, words[0], 1);
    if (count == 0) {
        return true; // undominated: map has stored that it survives
    }
    if (method == METHOD_MAP_REDUCE) {
        store_decision<Conflicts>(workspace, rank, own, Decision::SUPPRESSED, 1);
        return true;
    }
    const bool has_first = lane >= 2 && lane - 2 < count, has_second = WARP + lane - 2 < count;
    const uint32_t *const by_name = Conflicts::decisions(workspace);
    const uint32_t *const decisions[2] = {&by_name[has_first ? words[0] : 0],
                                          &by_name[has_second ? words[1] : 0]};
    const uint32_t pending = uint32_t(has_first) | uint32_t(has_second) << 1;
    uint32_t depth = 0;
    // An incomplete list is only loaded once: among so many candidates, one has usually survived
    // already.
    const bool is_complete = count <= CONFLICT_LIST_CAPACITY;
    uint32_t kind = wait_for_conflicts(decisions, pending, is_complete ? SPIN_LIMIT : 1, depth);
    if (!is_complete && kind != Decision::SUPPRESSED) {
        kind = Conflicts::wait_for_all(workspace, rank, depth);
    }
    if (kind == Decision::UNDECIDED) {
        return false;
    }
    store_decision<Conflicts>(workspace, rank, own, kind,
                              kind == Decision::SURVIVES ? depth + 1 : depth);
    return true;
}

// The first undecided rank in the range from `rank` up to but excluding `end`, or `end` if all are
// decided.
DEVICE uint32_t next_undecided(const Workspace &workspace, uint32_t rank, uint32_t end) {
    __syncwarp(); // makes the warp's own decisions visible to all of its lanes
    for (; rank < end; rank += WARP) {
        const uint32_t own = rank + lane_index();
        const bool is_undecided =
            own < end &&
            Decision{load_relaxed(&workspace.decision_by_rank[own])}.kind() == Decision::UNDECIDED;
        const uint32_t undecided = __ballot_sync(ALL_LANES, is_undecided);
        if (undecided != 0) {
            return rank + __ffs(undecided) - 1;
        }
    }
    return end;
}

// Decides the candidate of rank `own`. Once the spin limit is reached, the fallback decides all
// undecided ranks from `first` on, and then `own`, in order of rank, so that no decision that they
// depend on is missing. Other warps may decide some of them concurrently, with an identical result.
template <typename Conflicts>
DEVICE void resolve_with_fallback(const Workspace &workspace, uint32_t method, uint32_t own,
                                  uint32_t first = 0) {
    uint32_t rank = own;
    for (;;) {
        const bool resolved = resolve<Conflicts>(workspace, method, rank);
        if (resolved && rank == own) {
            return;
        }
        rank = next_undecided(workspace, resolved ? rank + 1 : first, own);
    }
}

template <typename Conflicts, bool IsBatch>
DEVICE void reduce_candidates(void *workspaces, uint64_t stride) {
    grid_dependency_wait();
    Header *const header = group_header<IsBatch>(workspaces, stride);
    const uint32_t count = ranked_count(header), method = header->params.method;
    // Tested in one condition, so that all words are loaded before the branch.
    if ((count == 0) | (method == METHOD_NONE) | is_sorted(header)) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    for (uint64_t rank = blockIdx.x * REDUCE_WARPS + warp_index(); rank < count;
         rank += gridDim.x * REDUCE_WARPS) {
        resolve_with_fallback<Conflicts>(workspace, method, uint32_t(rank));
    }
}

KERNEL(REDUCE_THREADS, 1) reduce(void *workspaces, uint64_t stride) {
    reduce_candidates<UprightConflicts, false>(workspaces, stride);
}
KERNEL(REDUCE_THREADS, 1) reduce_batch(void *workspaces, uint64_t stride) {
    reduce_candidates<UprightConflicts, true>(workspaces, stride);
}
