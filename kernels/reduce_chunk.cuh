// SPDX-License-Identifier: MIT OR Apache-2.0
// Reduce for the candidates of a chunk (chunk.cuh). In: the candidates, by rank, that conflict with
// other candidates of the chunk, with their conflict lists. Out: a decision for each candidate, and
// the survivors, which are suppressors for later chunks. reduce.cuh explains the assumptions about
// forward progress.
#pragma once

#include "chunk.cuh"

// Conflict lists that contain ranks, of candidates of the chunk.
struct ChunkConflicts {
    static DEVICE uint32_t *decisions(const Workspace &workspace) {
        return workspace.decision_by_rank;
    }
    static DEVICE void store(const Workspace &workspace, uint32_t rank, uint32_t, Decision decision) {
        store_relaxed(&workspace.decision_by_rank[rank], decision.bits);
        if (decision.kind() == Decision::SURVIVES) {
            const uint32_t at = workspace.ranked[rank].slot;
            atomicOr(&workspace.leaf_suppressors[at / LEAF_CANDIDATES],
                     1u << at % LEAF_CANDIDATES);
        }
    }
    static DEVICE uint32_t wait_for_all(const Workspace &workspace, uint32_t rank, uint32_t &depth);
};

// wait_for_conflicts for all candidates of the chunk that outrank `rank`, in the order of
// positions. The function first looks for a survivor without waiting: among so many candidates, one
// has usually survived already.
DEVICE uint32_t ChunkConflicts::wait_for_all(const Workspace &workspace, uint32_t rank,
                                             uint32_t &depth) {
    const OverlapRule lowest(workspace.header->params);
    const RankedCandidate own = workspace.ranked[rank];
    const Region region = {shrunk_box(own.box, lowest), class_bit(own.class_index, lowest)};
    OverlapRule rule = lowest;
    rule.set_class(workspace.header->params, own.class_index);
    const SortState &sort = *workspace.sort;
    uint32_t chunk = 0;
    while (sort.chunk_first[chunk + 1] <= rank) {
        chunk++;
    }
    const LeafRange range = {workspace.leaf_candidates, sort.leaf_first[chunk],
                             sort.leaf_first[chunk + 1], 0, 1};
    uint32_t kind = Decision::UNDECIDED;
    for (uint32_t spin_limit = 1; kind == Decision::UNDECIDED; spin_limit = SPIN_LIMIT) {
        kind = Decision::SURVIVES;
        visit_leaves(workspace, range, region, lowest,
                     [&](const LeafCandidate &higher, const float4 &, bool can_conflict) {
            const bool conflict = can_conflict && higher.rank < rank &&
                                  boxes_conflict(higher.box, own.box, rule) &&
                                  classes_conflict(higher.class_index, own.class_index, rule);
            const uint32_t *const decisions[1] = {
                &workspace.decision_by_rank[conflict ? higher.rank : rank]};
            if (!__any_sync(ALL_LANES, conflict)) {
                return true;
            }
            const uint32_t of_leaf = wait_for_conflicts(decisions, conflict, spin_limit, depth);
            kind = of_leaf == Decision::SURVIVES ? kind : of_leaf;
            // On the first pass, continue with the leaves after an undecided one.
            return of_leaf == Decision::SURVIVES ||
                   (of_leaf == Decision::UNDECIDED && spin_limit == 1);
        });
        if (spin_limit != 1) {
            break;
        }
    }
    return kind;
}

KERNEL(REDUCE_THREADS, CHUNK_REDUCE_RESIDENT) chunk_reduce(void *workspaces, uint64_t stride, uint32_t chunk) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t method = header->params.method;
    if (!is_sorted(header) || method != METHOD_GREEDY) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const uint32_t first = workspace.sort->chunk_first[chunk];
    const uint32_t end = min(workspace.sort->chunk_first[chunk + 1], ranked_count(header));
    // A warp handles rank `first` plus its number, and from there every rank at a step of the
    // number of warps. It goes through them in ascending order; its lanes look for undecided ranks.
    const uint32_t warps = gridDim.x * REDUCE_WARPS;
    for (uint64_t from = uint64_t(first) + blockIdx.x * REDUCE_WARPS + warp_index(); from < end;
         from += uint64_t(WARP) * warps) {
        const uint64_t own = from + uint64_t(lane_index()) * warps;
        const bool is_undecided =
            own < end && Decision{load_relaxed(&workspace.decision_by_rank[own])}.kind() ==
                             Decision::UNDECIDED;
        uint32_t undecided = __ballot_sync(ALL_LANES, is_undecided);
        for (; undecided != 0; undecided &= undecided - 1) {
            const uint64_t rank = from + uint64_t(__ffs(undecided) - 1) * warps;
            resolve_with_fallback<ChunkConflicts>(workspace, method, uint32_t(rank), first);
        }
    }
}
