// SPDX-License-Identifier: MIT OR Apache-2.0
// Merging: claims of candidates, and the order in which their parts are processed. In: the
// candidates and decisions by rank. Out: the candidates part by part. The rules are in
// core/src/engine/mod.rs, and the sequences of kernels in merge_params.cuh.
//
// A part is a set of candidates that is processed independently of all others: a claim, or the
// candidates of a class, or of all classes if these are compared. Its number is the rank of its
// first candidate, the keeper of a claim.
//
//   merge_claims   for each candidate, the first one that claims it
//   merge_roots    for each candidate, the keeper that is reached from claim to claim
//   merge_classes  for each candidate, the first one of its class
//   merge_order    sorts the candidates by part, then by rank
//
// Forward progress. No warp waits for another block, so nothing is assumed about the order in which
// blocks start or about how many of them are resident.
#pragma once

#include "decode.cuh"
#include "merge_params.cuh"
#include "overlap.cuh"

#define MERGE_WARPS (MERGE_THREADS / WARP)
// Blocks that are resident on a multiprocessor. Older architectures need more registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MERGE_RESIDENT 2
#else
#define MERGE_RESIDENT 4
#endif
// Queries of a warp, which are compared with one set of loaded candidates.
#define MERGE_QUERIES 4u

// A cluster of weighted fusion: the sums of the products of weight and edge, of the weights, and of
// the scores.
struct alignas(16) Cluster {
    double edges[4];
    double weights, scores;
    uint32_t keeper; // place
    uint32_t count;
};

// The arrays of the merging kernels, each with padded(capacity) elements. They share the memory of
// the conflicts, which are not needed any more. A place is a position in the order of parts.
//
//   array         element          indexed by      written by                 bytes
//   ordered       RankedCandidate  place           merge_order, merge_grow       32
//   survivor      RankedCandidate  keeper's rank   fuse, soften, decay           32
//   cluster       Cluster          place           merge_fuse                    64
//   cluster_box   float4           place           merge_fuse                    16
//   final_key     uint64_t         keeper's rank   fuse, soften, decay            8
//   part          uint32_t         rank            claims, roots, classes         4
//   part_start    uint32_t         part            merge_order                    4
//   ordered_part  uint32_t         place           merge_order                    4
//   score         float            place           merge_soften                   4
//   compensation  float            rank            merge_compensate               4
//
// The slot of an ordered candidate is its rank.
struct MergeArrays {
    RankedCandidate *ordered, *survivor;
    Cluster *cluster;
    float4 *cluster_box;
    uint64_t *final_key;
    uint32_t *part, *part_start, *ordered_part;
    float *score, *compensation;

    DEVICE explicit MergeArrays(const Workspace &workspace) {
        const uint64_t n = padded(workspace.header->params.capacity);
        ordered = (RankedCandidate *)workspace.conflicts;
        survivor = ordered + n;
        cluster = (Cluster *)(survivor + n);
        cluster_box = (float4 *)(cluster + n);
        final_key = (uint64_t *)(cluster_box + n);
        part = (uint32_t *)(final_key + n);
        part_start = part + n;
        ordered_part = part_start + n;
        score = (float *)(ordered_part + n);
        compensation = score + n;
    }
};
static_assert(2 * sizeof(RankedCandidate) + sizeof(Cluster) + sizeof(float4) + sizeof(uint64_t) +
                      3 * sizeof(uint32_t) + 2 * sizeof(float) <=
                  sizeof(ConflictList),
              "the memory of the conflicts has the arrays of merging");

// Calls `act` with the first rank of each run of `Items` ranks that this warp handles.
template <uint32_t Items, typename Act> DEVICE void for_each_run(uint32_t count, const Act &act) {
    const uint64_t step = uint64_t(gridDim.x) * MERGE_WARPS * Items;
    // Neighboring runs go to different blocks.
    for (uint64_t first = (uint64_t(warp_index()) * gridDim.x + blockIdx.x) * Items; first < count;
         first += step) {
        act(uint32_t(first));
    }
}

// Candidates of consecutive ranks, which all lanes hold. Queries beyond the last rank do not exist.
struct MergeQueries {
    float4 box[MERGE_QUERIES];
    uint32_t class_index[MERGE_QUERIES];
    float threshold[MERGE_QUERIES];
    uint32_t exist; // a bit for each query

    DEVICE MergeQueries(const Workspace &workspace, uint32_t first, uint32_t count) : exist(0) {
        OverlapRule rule(workspace.header->params);
#pragma unroll
        for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
            const RankedCandidate &query = workspace.ranked[min(first + q, count - 1)];
            box[q] = query.box;
            class_index[q] = query.class_index;
            rule.set_class(workspace.header->params, class_index[q]);
            threshold[q] = rule.threshold;
            exist |= first + q < count ? 1u << q : 0;
        }
    }
};

// For each query, finds the first candidate that survives so far, outranks the query and conflicts
// with it; with `ByClass` it is enough that their classes are compared. A query without such a
// candidate is the first of its part.
template <bool ByClass> DEVICE void find_parts(void *workspaces, uint64_t stride) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header), lane = lane_index();
    if (count == 0) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    const bool is_greedy = header->params.method == METHOD_GREEDY;
    for_each_run<MERGE_QUERIES>(count, [&](uint32_t first) {
        OverlapRule rule(header->params);
        const MergeQueries queries(workspace, first, count);
        uint32_t found[MERGE_QUERIES];
        uint32_t wanted = queries.exist;
#pragma unroll
        for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
            const uint32_t rank = found[q] = first + q;
            // No survivor of greedy suppression is claimed.
            if (is_greedy && rank < count &&
                Decision{workspace.decision_by_rank[rank]}.kind() == Decision::SURVIVES) {
                wanted &= ~(1u << q);
            }
        }
        const uint32_t end = min(first + MERGE_QUERIES, count);
        for (uint32_t from = 0; wanted != 0 && from < end; from += WARP) {
            const uint32_t other = from + lane, at = min(other, count - 1);
            const RankedCandidate higher = workspace.ranked[at];
            const bool survives =
                Decision{workspace.decision_by_rank[at]}.kind() == Decision::SURVIVES;
#pragma unroll
            for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
                if (wanted >> q & 1) {
                    rule.threshold = queries.threshold[q];
                    const bool matches =
                        survives && other < first + q &&
                        (ByClass || boxes_conflict(higher.box, queries.box[q], rule)) &&
                        classes_conflict(higher.class_index, queries.class_index[q], rule);
                    const uint32_t votes = __ballot_sync(ALL_LANES, matches);
                    if (votes != 0) {
                        found[q] = from + __ffs(votes) - 1;
                        wanted &= ~(1u << q);
                    }
                }
            }
        }
#pragma unroll
        for (uint32_t q = 0; q < MERGE_QUERIES; q++) {
            if (lane == q && first + q < count) {
                arrays.part[first + q] = found[q];
            }
        }
    });
}

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_claims(void *workspaces, uint64_t stride) {
    find_parts<false>(workspaces, stride);
}
KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_classes(void *workspaces, uint64_t stride) {
    find_parts<true>(workspaces, stride);
}

// Follows claims to their keeper. Other threads may shorten the chain meanwhile; every
// candidate of the chain has an equal keeper.
KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_roots(void *workspaces, uint64_t stride) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    for (uint64_t at = uint64_t(blockIdx.x) * MERGE_THREADS + threadIdx.x; at < count;
         at += uint64_t(gridDim.x) * MERGE_THREADS) {
        uint32_t keeper = load_relaxed(&arrays.part[at]);
        for (;;) {
            const uint32_t next = load_relaxed(&arrays.part[keeper]);
            if (next == keeper) {
                break;
            }
            keeper = next;
        }
        store_relaxed(&arrays.part[at], keeper);
    }
}

// The keys that a warp compares with, some at a time.
struct MergeKeys {
    uint64_t keys[MERGE_WARPS][WARP];
};

// Calls `store` with each rank and its place: the number of lesser keys. All keys differ.
template <typename Key, typename Store>
DEVICE void for_each_place(MergeKeys &shared, uint32_t count, const Key &key_of,
                           const Store &store) {
    const uint32_t lane = lane_index();
    uint64_t *const keys = shared.keys[warp_index()];
    const auto load_key = [&](uint32_t rank) { return rank < count ? key_of(rank) : ~uint64_t(0); };
    for_each_run<WARP>(count, [&](uint32_t first) {
        const uint64_t own = load_key(first + lane);
        uint32_t place = 0;
        uint64_t next = load_key(lane);
        for (uint32_t from = 0; from < count; from += WARP) {
            keys[lane] = next;
            __syncwarp();
            next = load_key(from + WARP + lane); // in flight while keys are compared
#pragma unroll 8
            for (uint32_t i = 0; i < WARP; i++) {
                place += keys[i] < own;
            }
            __syncwarp();
        }
        if (first + lane < count) {
            store(first + lane, place);
        }
    });
}

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_order(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(MergeKeys, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    for_each_place(
        shared, count,
        [&](uint32_t rank) { return uint64_t(arrays.part[rank]) << 32 | rank; },
        [&](uint32_t rank, uint32_t place) {
            RankedCandidate candidate = workspace.ranked[rank];
            candidate.slot = rank;
            arrays.ordered[place] = candidate;
            arrays.ordered_part[place] = arrays.part[rank];
            if (arrays.part[rank] == rank) {
                arrays.part_start[rank] = place;
            }
        });
}

// The place after the last candidate of a part that begins at place `start`. All lanes call it.
DEVICE uint32_t part_end(const MergeArrays &arrays, uint32_t part, uint32_t start, uint32_t count) {
    for (uint32_t from = start;; from += WARP) {
        const uint32_t place = from + lane_index();
        const uint32_t outside = __ballot_sync(
            ALL_LANES, place >= count || arrays.ordered_part[min(place, count - 1)] != part);
        if (outside != 0) {
            return from + __ffs(outside) - 1;
        }
    }
}

// The key of a survivor, which ascends in the order of final ranks.
DEVICE uint64_t survivor_key(float score, uint32_t rank) {
    return ~RankKey::encode(score, rank).bits;
}
// The key of a candidate that does not survive, which comes after all survivors.
DEVICE uint64_t dropped_key(uint32_t rank) { return uint64_t(0xffffffffu) << 32 | rank; }

// Stores the result for the candidate of rank `slot`, with its final box and score.
DEVICE void store_survivor(const MergeArrays &arrays, const KernelParams &params,
                           const RankedCandidate &survivor) {
    const uint32_t rank = survivor.slot;
    const bool is_below = survivor.score < class_threshold(params, survivor.class_index);
    arrays.survivor[rank] = survivor;
    arrays.final_key[rank] = is_below ? dropped_key(rank) : survivor_key(survivor.score, rank);
}

// Replaces the candidates by rank with the survivors in the order of their final ranks.
KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_rank(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(MergeKeys, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    for_each_place(
        shared, count, [&](uint32_t rank) { return arrays.final_key[rank]; },
        [&](uint32_t rank, uint32_t place) {
            const bool survives = arrays.final_key[rank] >> 32 != 0xffffffffu;
            if (survives) {
                workspace.ranked[place] = arrays.survivor[rank];
            }
            workspace.decision_by_rank[place] =
                Decision::encode(survives ? Decision::SURVIVES : Decision::SUPPRESSED, 1).bits;
        });
}
