// SPDX-License-Identifier: MIT OR Apache-2.0
// Suppression for groups with many candidates, which are already sorted (sort.cuh). In: the
// candidates by rank, and their slots by position. Out: a decision for each candidate.
//
// The ranks are cut into chunks, and one chunk is decided after the other (the prefix algorithm of
// Blelloch, Fineman and Shun, cited in nmsfilter.cu). Survivors of earlier chunks suppress most
// candidates of later chunks, so few pairs are left to compare:
//
//   for each chunk, ascending in ranks
//       chunk_filter   suppresses the candidates that conflict with a suppressor of a chunk before
//       chunk_map      finds the conflicts among the others
//       chunk_reduce   decides these (reduce_chunk.cuh)
//
// With method=map-reduce every candidate is a suppressor. With the other methods only survivors
// are.
//
// Within a chunk, candidates are ordered by position, and each run of LEAF_CANDIDATES candidates
// forms a leaf. A leaf has a box that bounds its candidates, and a mask of their classes. A block
// keeps the candidates of one leaf in shared memory (LeafTile). The block's warps visit every leaf
// whose bounds intersect the bounds of the tile. During a visit, each lane holds one candidate of
// the visited leaf:
//
//   for each leaf whose bounds intersect the tile's
//       for each candidate q of the tile
//           if the shrunk boxes of q and of the lane's candidate intersect, add q to the lane's pairs
//       for each of the lane's pairs
//           test it exactly
//
// Bounds are computed from shrunk boxes (proxy_box.cuh). If two boxes conflict, their shrunk boxes
// intersect.
#pragma once

#include "proxy_box.cuh"
#include "reduce.cuh"

#define CHUNK_WARPS (CHUNK_THREADS / WARP)

// Blocks that are resident on a multiprocessor. Older architectures need more registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define CHUNK_RESIDENT 2
#define CHUNK_REDUCE_RESIDENT 1
#else
#define CHUNK_RESIDENT 4
#define CHUNK_REDUCE_RESIDENT 2
#endif

// The smallest box that contains the boxes of all lanes with `is_member`. If no lane is a member,
// the result is a box that intersects nothing.
DEVICE float4 bounds_of_warp(const float4 &box, bool is_member) {
    const float infinity = __uint_as_float(0x7f800000u);
    float4 bounds = {infinity, infinity, -infinity, -infinity};
    if (is_member) {
        bounds = box;
    }
#pragma unroll
    for (uint32_t distance = WARP / 2; distance != 0; distance /= 2) {
        bounds.x = fminf(bounds.x, __shfl_xor_sync(ALL_LANES, bounds.x, distance));
        bounds.y = fminf(bounds.y, __shfl_xor_sync(ALL_LANES, bounds.y, distance));
        bounds.z = fmaxf(bounds.z, __shfl_xor_sync(ALL_LANES, bounds.z, distance));
        bounds.w = fmaxf(bounds.w, __shfl_xor_sync(ALL_LANES, bounds.w, distance));
    }
    return bounds;
}

// Regions that only share an edge intersect. Proxy boxes follow this rule too.
DEVICE bool regions_intersect(const float4 &a, const float4 &b) {
    return a.x <= b.z && b.x <= a.z && a.y <= b.w && b.y <= a.w;
}

// The bit of a class in a mask of classes. Several classes share one bit.
DEVICE uint32_t class_bit(uint32_t class_index, const OverlapRule &rule) {
    return rule.class_agnostic ? 1 : 1u << class_index % 32;
}

// Where a leaf or a candidate is, and which classes it has.
struct Region {
    float4 bounds;
    uint32_t classes;
};

// The candidates of a leaf, one in each lane.
struct LeafCandidate {
    float4 box;
    uint32_t rank, class_index;

    DEVICE LeafCandidate(const Workspace &workspace, uint32_t leaf) {
        const uint64_t at = uint64_t(leaf) * LEAF_CANDIDATES + lane_index();
        box = workspace.leaf_box[at];
        rank = workspace.leaf_rank[at];
        class_index = workspace.leaf_class[at];
    }
};

// Leaves with a mask of candidates for each, and this warp's part of them. The warp takes every
// `parts`th leaf: leaves with close numbers are close in the plane, so this spreads the work
// evenly.
struct LeafRange {
    const uint32_t *masks;
    uint32_t first, end;
    uint32_t part, parts;
};

// Calls `visit` for each leaf that has candidates, in its mask, which can conflict with candidates
// in the region. `visit` receives the lane's candidate of that leaf, the candidate's shrunk box,
// and a flag that says if this candidate can conflict. Iteration ends when `visit` returns false.
// `lowest` is the rule with the lowest threshold. All lanes must call this function.
template <typename Visit>
DEVICE void visit_leaves(const Workspace &workspace, const LeafRange &range, const Region &region,
                         const OverlapRule &lowest, const Visit &visit) {
    for (uint64_t from = range.first + range.part; from < range.end; from += range.parts * WARP) {
        const uint64_t own = from + lane_index() * range.parts;
        const uint32_t leaf = own < range.end ? uint32_t(own) : range.first;
        const uint32_t mask = range.masks[leaf], classes = workspace.leaf_classes[leaf];
        const float4 bounds = workspace.leaf_bounds[leaf];
        uint32_t hits = __ballot_sync(ALL_LANES, own < range.end && mask != 0 &&
                                                     (classes & region.classes) != 0 &&
                                                     regions_intersect(bounds, region.bounds));
        while (hits != 0) {
            const uint32_t hit = __ffs(hits) - 1;
            hits &= hits - 1;
            const LeafCandidate candidate(workspace, uint32_t(from) + hit * range.parts);
            const uint32_t in_mask = __shfl_sync(ALL_LANES, mask, hit);
            const float4 shrunk = shrunk_box(candidate.box, lowest);
            const bool can_conflict =
                (in_mask >> lane_index() & 1) != 0 &&
                (class_bit(candidate.class_index, lowest) & region.classes) != 0 &&
                regions_intersect(shrunk, region.bounds);
            if (__any_sync(ALL_LANES, can_conflict) && !visit(candidate, shrunk, can_conflict)) {
                return;
            }
        }
    }
}

// The candidates of a leaf, in shared memory.
struct LeafTile {
    float4 box[LEAF_CANDIDATES], shrunk[LEAF_CANDIDATES];
    uint32_t rank[LEAF_CANDIDATES], class_index[LEAF_CANDIDATES];

    // Stores the lane's candidate. All lanes of one warp call it.
    DEVICE void store(const float4 &own, const float4 &own_shrunk, uint32_t own_rank,
                      uint32_t own_class) {
        const uint32_t lane = lane_index();
        box[lane] = own;
        shrunk[lane] = own_shrunk;
        rank[lane] = own_rank;
        class_index[lane] = own_class;
    }

    // The candidates in the mask `wanted` whose shrunk boxes intersect `other`.
    DEVICE uint32_t intersecting(uint32_t wanted, const float4 &other) const {
        uint32_t found = 0;
#pragma unroll 1
        for (uint32_t first = 0; first < LEAF_CANDIDATES; first += TESTS) {
            if ((wanted >> first & ((1u << TESTS) - 1)) == 0) {
                continue;
            }
            uint32_t of_these = 0;
#pragma unroll
            for (uint32_t k = 0; k < TESTS; k++) {
                of_these |= regions_intersect(shrunk[first + k], other) ? 1u << k : 0;
            }
            found |= of_these << first;
        }
        return found & wanted;
    }

    static constexpr uint32_t TESTS = 8; // without a branch
};

// True if `higher` conflicts with candidate `q` of the tile, which it outranks.
DEVICE bool conflicts(const LeafCandidate &higher, const LeafTile &tile, uint32_t q,
                      const KernelParams &params, const OverlapRule &lowest) {
    OverlapRule rule = lowest;
    rule.set_class(params, tile.class_index[q]);
    return boxes_conflict(higher.box, tile.box[q], rule) &&
           classes_conflict(higher.class_index, tile.class_index[q], rule);
}

struct FilterTile {
    LeafTile leaf;
    uint32_t suppressed; // a bit for each candidate of the leaf
};

KERNEL(CHUNK_THREADS, CHUNK_RESIDENT) chunk_filter(void *workspaces, uint64_t stride, uint32_t chunk) {
    BLOCK_SHARED(FilterTile, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    if (!is_sorted(header)) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    SortState &sort = *workspace.sort;
    if (chunk == 0 && blockIdx.x == 0) {
        for (uint32_t bucket = threadIdx.x; bucket < SORT_BUCKETS; bucket += CHUNK_THREADS) {
            sort.count[BY_RANK][bucket] = sort.count[BY_POSITION][bucket] = 0;
        }
    }
    const uint32_t method = header->params.method, limit = ranked_count(header);
    if (method == METHOD_NONE) {
        return;
    }
    const uint32_t lane = lane_index(), warp = warp_index();
    const uint32_t leaf_first = sort.leaf_first[chunk], leaf_end = sort.leaf_first[chunk + 1];
    for (uint32_t leaf = leaf_first + blockIdx.x; leaf < leaf_end; leaf += gridDim.x) {
        const OverlapRule lowest(header->params);
        const uint32_t position =
            sort.chunk_first[chunk] + (leaf - leaf_first) * LEAF_CANDIDATES + lane;
        bool exists = position < sort.chunk_first[chunk + 1];
        float4 box = {};
        uint32_t rank = 0, class_index = 0;
        if (exists) {
            const uint32_t slot = workspace.slot_by_position[position];
            box = workspace.candidate_box[slot];
            rank = workspace.rank_by_slot[slot];
            class_index = workspace.candidate_class[slot];
            exists = rank < limit;
        }
        const float4 shrunk = shrunk_box(box, lowest);
        const uint32_t classes = exists ? class_bit(class_index, lowest) : 0;
        const Region region = {bounds_of_warp(shrunk, exists), warp_or(classes)};
        const uint32_t candidates = __ballot_sync(ALL_LANES, exists);
        if (warp == 0) {
            shared.leaf.store(box, shrunk, rank, class_index);
            shared.suppressed = 0;
        }
        __syncthreads();
        uint32_t left = candidates;
        visit_leaves(workspace, {workspace.leaf_suppressors, 0, leaf_first, warp, CHUNK_WARPS}, region,
                     lowest,
                     [&](const LeafCandidate &higher, const float4 &its_shrunk, bool can_conflict) {
                         uint32_t pairs =
                             can_conflict ? shared.leaf.intersecting(left, its_shrunk) : 0;
                         uint32_t found = 0;
                         for (; pairs != 0; pairs &= pairs - 1) {
                             const uint32_t q = __ffs(pairs) - 1;
                             if (conflicts(higher, shared.leaf, q, header->params, lowest)) {
                                 found |= 1u << q;
                             }
                         }
                         const uint32_t own = warp_or(found);
                         uint32_t of_all_warps = 0;
                         if (lane == 0) {
                             of_all_warps = atomicOr(&shared.suppressed, own) | own;
                         }
                         left = candidates & ~__shfl_sync(ALL_LANES, of_all_warps, 0);
                         return left != 0;
                     });
        __syncthreads();
        if (warp == 0) {
            const bool is_suppressed = exists && (shared.suppressed >> lane & 1);
            const bool is_left = exists && !is_suppressed;
            const bool is_member = method == METHOD_MAP_REDUCE ? exists : is_left;
            const uint64_t at = uint64_t(leaf) * LEAF_CANDIDATES + lane;
            workspace.leaf_box[at] = box;
            workspace.leaf_rank[at] = rank;
            workspace.leaf_class[at] = class_index;
            if (is_suppressed) {
                workspace.decision_by_rank[rank] = Decision::encode(Decision::SUPPRESSED, 1).bits;
            } else if (is_left) {
                workspace.ranked[rank].slot = uint32_t(at);
            }
            const float4 bounds = bounds_of_warp(shrunk, is_member);
            const uint32_t of_members = warp_or(is_member ? classes : 0);
            const uint32_t of_left = __ballot_sync(ALL_LANES, is_left);
            if (lane == 0) {
                workspace.leaf_bounds[leaf] = bounds;
                workspace.leaf_classes[leaf] = of_members;
                workspace.leaf_candidates[leaf] = of_left;
                workspace.leaf_suppressors[leaf] = method == METHOD_MAP_REDUCE ? candidates : 0;
            }
        }
        __syncthreads();
    }
}

struct MapTile {
    LeafTile leaf;
    ConflictList conflicts[LEAF_CANDIDATES];
};

KERNEL(CHUNK_THREADS, CHUNK_RESIDENT) chunk_map(void *workspaces, uint64_t stride, uint32_t chunk) {
    BLOCK_SHARED(MapTile, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t method = header->params.method;
    if (!is_sorted(header) || method == METHOD_NONE) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const SortState &sort = *workspace.sort;
    const uint32_t lane = lane_index(), warp = warp_index();
    const uint32_t leaf_first = sort.leaf_first[chunk], leaf_end = sort.leaf_first[chunk + 1];
    const uint32_t *const masks =
        method == METHOD_MAP_REDUCE ? workspace.leaf_suppressors : workspace.leaf_candidates;
    for (uint32_t leaf = leaf_first + blockIdx.x; leaf < leaf_end; leaf += gridDim.x) {
        const uint32_t queries = workspace.leaf_candidates[leaf];
        if (queries == 0) {
            continue;
        }
        const OverlapRule lowest(header->params);
        if (warp == 0) {
            const LeafCandidate own(workspace, leaf);
            shared.leaf.store(own.box, shrunk_box(own.box, lowest), own.rank, own.class_index);
            shared.conflicts[lane].count = 0;
        }
        __syncthreads();
        const Region region = {workspace.leaf_bounds[leaf], workspace.leaf_classes[leaf]};
        uint32_t left = queries;
        visit_leaves(workspace, {masks, leaf_first, leaf_end, warp, CHUNK_WARPS}, region, lowest,
                     [&](const LeafCandidate &higher, const float4 &its_shrunk, bool can_conflict) {
                         uint32_t pairs =
                             can_conflict ? shared.leaf.intersecting(left, its_shrunk) : 0;
                         uint32_t found = 0;
                         for (; pairs != 0; pairs &= pairs - 1) {
                             const uint32_t q = __ffs(pairs) - 1;
                             if (higher.rank < shared.leaf.rank[q] &&
                                 conflicts(higher, shared.leaf, q, header->params, lowest)) {
                                 ConflictList &list = shared.conflicts[q];
                                 const uint32_t at = atomicAdd(&list.count, 1u);
                                 if (at < CONFLICT_LIST_CAPACITY) {
                                     list.slots[at] = higher.rank;
                                 }
                                 found |= 1u << q;
                             }
                         }
                         // One conflict is enough to suppress a candidate.
                         left &= method == METHOD_MAP_REDUCE ? ~warp_or(found) : ~0u;
                         return left != 0;
                     });
        __syncthreads();
        if (warp == 0) {
            const bool is_candidate = queries >> lane & 1;
            const bool survives = is_candidate && shared.conflicts[lane].count == 0;
            if (survives || (is_candidate && method == METHOD_MAP_REDUCE)) {
                const uint32_t kind = survives ? Decision::SURVIVES : Decision::SUPPRESSED;
                workspace.decision_by_rank[shared.leaf.rank[lane]] = Decision::encode(kind, 1).bits;
            }
            const uint32_t survivors = __ballot_sync(ALL_LANES, survives);
            if (lane == 0 && method != METHOD_MAP_REDUCE) {
                workspace.leaf_suppressors[leaf] = survivors;
            }
        }
        // Eight threads copy a list.
        const uint32_t query = threadIdx.x / CHUNK_WARPS;
        const uint32_t count = shared.conflicts[query].count;
        const uint32_t rank = shared.leaf.rank[query];
        if ((queries >> query & 1) != 0 && count != 0 && method != METHOD_MAP_REDUCE) {
            const uint32_t words = min(count, CONFLICT_LIST_CAPACITY);
            ConflictList &to = workspace.conflicts[rank];
            for (uint32_t i = threadIdx.x % CHUNK_WARPS; i < words; i += CHUNK_WARPS) {
                to.slots[i] = shared.conflicts[query].slots[i];
            }
            if (threadIdx.x % CHUNK_WARPS == 0) {
                to.count = count;
                to.own_slot = rank;
            }
        }
        __syncthreads();
    }
}
static_assert(CHUNK_THREADS / LEAF_CANDIDATES == CHUNK_WARPS, "threads that copy a list");
