// SPDX-License-Identifier: MIT OR Apache-2.0
// Suppression among many candidates, which are sorted (sort.cuh). In: the candidates by rank, and their
// slots by position. Out: a decision for each.
//
// The ranks are cut into chunks, which are decided one after the other (Blelloch, Fineman, Shun, as in
// nmsfilter.cu: the algorithm with prefixes). Most candidates of later chunks are suppressed by survivors
// of the chunks before, so that few pairs are left to compare:
//
//   for each chunk, ascending in ranks
//       chunk_filter   suppresses the candidates that conflict with a suppressor of a chunk before
//       chunk_map      finds the conflicts among the others
//       chunk_reduce   decides these (reduce_chunk.cuh)
//
// Suppressors are survivors; with method=map-reduce, all candidates.
//
// In the order of positions each LEAF_CANDIDATES candidates of a chunk are a leaf: a box that bounds them,
// and a mask of their classes. Candidates are compared with those of a leaf where the bounds of both
// leaves intersect. Bounds are those of shrunk boxes (proxy_box.cuh), which intersect where boxes
// conflict.
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

// The smallest box that contains those of the lanes with `is_member`; one that intersects no other where
// there are none.
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

// Edges in common are an intersection, as of proxy boxes.
DEVICE bool regions_intersect(const float4 &a, const float4 &b) {
    return a.x <= b.z && b.x <= a.z && a.y <= b.w && b.y <= a.w;
}

// The bit of a class in a mask of classes. Several classes have the same.
DEVICE uint32_t class_bit(uint32_t class_index, const OverlapRule &rule) {
    return rule.class_agnostic ? 1 : 1u << class_index % 32;
}

// A leaf's or a candidate's place, and the classes in it.
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

    // That of another lane.
    DEVICE LeafCandidate(const LeafCandidate &of, uint32_t lane) {
        const auto shuffle = [&](float value) {
            return __uint_as_float(__shfl_sync(ALL_LANES, __float_as_uint(value), lane));
        };
        box = float4{shuffle(of.box.x), shuffle(of.box.y), shuffle(of.box.z), shuffle(of.box.w)};
        rank = __shfl_sync(ALL_LANES, of.rank, lane);
        class_index = __shfl_sync(ALL_LANES, of.class_index, lane);
    }
};

// Leaves, with a mask of candidates for each, and the warp's part of them: every `parts`th, because leaves
// that are close to one another have numbers that are, too.
struct LeafRange {
    const uint32_t *masks;
    uint32_t first, end;
    uint32_t part, parts;
};

// Calls `visit` for each leaf of which candidates in its mask can conflict with those in the region, with
// all candidates and the mask of these, until it returns false. `lowest` is the rule with the lowest
// threshold. All lanes call it.
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
            const bool can_conflict =
                (in_mask >> lane_index() & 1) != 0 &&
                (class_bit(candidate.class_index, lowest) & region.classes) != 0 &&
                regions_intersect(shrunk_box(candidate.box, lowest), region.bounds);
            const uint32_t left = __ballot_sync(ALL_LANES, can_conflict);
            if (left != 0 && !visit(candidate, left)) {
                return;
            }
        }
    }
}

// Calls `visit` with each candidate of a leaf whose bit is set in `mask`. All lanes call it.
template <typename Visit>
DEVICE void visit_candidates(const LeafCandidate &candidates, uint32_t mask, const Visit &visit) {
    while (mask != 0) {
        visit(LeafCandidate(candidates, __ffs(mask) - 1));
        mask &= mask - 1;
    }
}

// Whether the candidates conflict, where `higher` outranks the other.
DEVICE bool conflicts(const LeafCandidate &higher, const float4 &box, uint32_t class_index,
                      const OverlapRule &rule) {
    return boxes_conflict(higher.box, box, rule) &&
           classes_conflict(higher.class_index, class_index, rule);
}

// The candidates of a leaf that the block's warps have found to be suppressed, a bit per lane.
struct SuppressedLanes {
    uint32_t lanes;

    // Adds those of this warp. Returns those of all warps. All lanes call it.
    DEVICE uint32_t add(bool is_suppressed) {
        const uint32_t own = __ballot_sync(ALL_LANES, is_suppressed);
        uint32_t all = 0;
        if (lane_index() == 0) {
            all = atomicOr(&lanes, own) | own;
        }
        return __shfl_sync(ALL_LANES, all, 0);
    }
};

KERNEL(CHUNK_THREADS, CHUNK_RESIDENT) chunk_filter(void *workspaces, uint64_t stride, uint32_t chunk) {
    BLOCK_SHARED(SuppressedLanes, suppressed);
    grid_dependency_wait();
    Header *const header = image_header<true>(workspaces, stride);
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
    if (method == NONE) {
        return;
    }
    const uint32_t lane = lane_index(), warp = warp_index();
    const uint32_t leaf_first = sort.leaf_first[chunk], leaf_end = sort.leaf_first[chunk + 1];
    for (uint32_t leaf = leaf_first + blockIdx.x; leaf < leaf_end; leaf += gridDim.x) {
        if (threadIdx.x == 0) {
            suppressed.lanes = 0;
        }
        __syncthreads();
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
        OverlapRule rule = lowest;
        rule.set_class(header->params, class_index);
        const uint32_t candidates = __ballot_sync(ALL_LANES, exists);
        uint32_t done = 0;
        visit_leaves(workspace, {workspace.leaf_suppressors, 0, leaf_first, warp, CHUNK_WARPS}, region,
                     lowest, [&](const LeafCandidate &higher, uint32_t mask) {
                         bool is_suppressed = false;
                         visit_candidates(higher, mask, [&](const LeafCandidate &one) {
                             is_suppressed |= conflicts(one, box, class_index, rule);
                         });
                         done = suppressed.add(exists && is_suppressed);
                         return done != candidates;
                     });
        __syncthreads();
        if (warp == 0) {
            const bool is_suppressed = exists && (suppressed.lanes >> lane & 1);
            const bool is_left = exists && !is_suppressed;
            const bool is_member = method == MAP_REDUCE ? exists : is_left;
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
            const uint32_t left = __ballot_sync(ALL_LANES, is_left);
            if (lane == 0) {
                workspace.leaf_bounds[leaf] = bounds;
                workspace.leaf_classes[leaf] = of_members;
                workspace.leaf_candidates[leaf] = left;
                workspace.leaf_suppressors[leaf] = method == MAP_REDUCE ? candidates : 0;
            }
        }
        __syncthreads();
    }
}

KERNEL(CHUNK_THREADS, CHUNK_RESIDENT) chunk_map(void *workspaces, uint64_t stride, uint32_t chunk) {
    struct Lists {
        ConflictList of[LEAF_CANDIDATES];
    };
    BLOCK_SHARED(Lists, lists);
    grid_dependency_wait();
    Header *const header = image_header<true>(workspaces, stride);
    const uint32_t method = header->params.method;
    if (!is_sorted(header) || method == NONE) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const SortState &sort = *workspace.sort;
    const uint32_t lane = lane_index(), warp = warp_index();
    const uint32_t leaf_first = sort.leaf_first[chunk], leaf_end = sort.leaf_first[chunk + 1];
    const uint32_t *const masks =
        method == MAP_REDUCE ? workspace.leaf_suppressors : workspace.leaf_candidates;
    for (uint32_t leaf = leaf_first + blockIdx.x; leaf < leaf_end; leaf += gridDim.x) {
        const uint32_t queries = workspace.leaf_candidates[leaf];
        if (queries == 0) {
            continue;
        }
        if (threadIdx.x < LEAF_CANDIDATES) {
            lists.of[threadIdx.x].count = 0;
        }
        __syncthreads();
        const OverlapRule lowest(header->params);
        OverlapRule rule = lowest;
        const LeafCandidate own(workspace, leaf);
        rule.set_class(header->params, own.class_index);
        bool is_query = queries >> lane & 1;
        const Region region = {workspace.leaf_bounds[leaf], workspace.leaf_classes[leaf]};
        visit_leaves(workspace, {masks, leaf_first, leaf_end, warp, CHUNK_WARPS}, region, lowest,
                     [&](const LeafCandidate &higher, uint32_t mask) {
                         visit_candidates(higher, mask, [&](const LeafCandidate &one) {
                             if (is_query && one.rank < own.rank &&
                                 conflicts(one, own.box, own.class_index, rule)) {
                                 ConflictList &list = lists.of[lane];
                                 const uint32_t at = atomicAdd(&list.count, 1u);
                                 if (at < CONFLICT_LIST_CAPACITY) {
                                     list.slots[at] = one.rank;
                                 }
                                 // One conflict is enough.
                                 is_query = method != MAP_REDUCE;
                             }
                         });
                         return __any_sync(ALL_LANES, is_query);
                     });
        __syncthreads();
        if (warp == 0) {
            const bool is_candidate = queries >> lane & 1;
            const bool survives = is_candidate && lists.of[lane].count == 0;
            if (survives || (is_candidate && method == MAP_REDUCE)) {
                const uint32_t kind = survives ? Decision::SURVIVES : Decision::SUPPRESSED;
                workspace.decision_by_rank[own.rank] = Decision::encode(kind, 1).bits;
            }
            const uint32_t survivors = __ballot_sync(ALL_LANES, survives);
            if (lane == 0 && method != MAP_REDUCE) {
                workspace.leaf_suppressors[leaf] = survivors;
            }
        }
        // Eight threads copy a list.
        const uint32_t query = threadIdx.x / CHUNK_WARPS;
        const uint32_t count = lists.of[query].count;
        const uint32_t rank = workspace.leaf_rank[uint64_t(leaf) * LEAF_CANDIDATES + query];
        if ((queries >> query & 1) != 0 && count != 0 && method != MAP_REDUCE) {
            const uint32_t words = min(count, CONFLICT_LIST_CAPACITY);
            ConflictList &to = workspace.conflicts[rank];
            for (uint32_t i = threadIdx.x % CHUNK_WARPS; i < words; i += CHUNK_WARPS) {
                to.slots[i] = lists.of[query].slots[i];
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
