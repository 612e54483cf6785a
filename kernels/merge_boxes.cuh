// SPDX-License-Identifier: MIT OR Apache-2.0
// Merging: the boxes of claims and of clusters. In: the candidates part by part (merge.cuh). Out:
// the survivors. The formulas are in core/src/engine/merging.rs.
//
//   merge_grow     a warp per claim: members join the keeper's box, in descending rank
//   merge_average  a warp per claim: the weighted mean of its boxes
//   merge_fuse     a block per class: each candidate, in descending rank, joins a cluster
//
// Keepers keep their scores in merge_grow and merge_average, so that ranks do not change.
#pragma once

#include "merge.cuh"
#include "merge_block.cuh"

// The smallest box that has both boxes in it. Of equal edges, the first box's is taken.
DEVICE float4 union_box(const float4 &grown, const float4 &member) {
    float4 both;
    both.x = member.x < grown.x ? member.x : grown.x;
    both.y = member.y < grown.y ? member.y : grown.y;
    both.z = member.z > grown.z ? member.z : grown.z;
    both.w = member.w > grown.w ? member.w : grown.w;
    return both;
}

DEVICE float from_lane(float value, uint32_t lane) {
    return __uint_as_float(__shfl_sync(ALL_LANES, __float_as_uint(value), lane));
}

// Tests a lane's member each against a box that grows, in the order of lanes. `exist` has a bit for
// each lane with a member. Returns the lanes whose members join. Members up to the next that makes
// the box larger are decided at once.
DEVICE uint32_t join(float4 &grown, const float4 &member, uint32_t exist, const OverlapRule &rule) {
    uint32_t joined = 0;
    for (uint32_t undecided = exist; undecided != 0;) {
        const bool joins =
            (undecided >> lane_index() & 1) != 0 && boxes_conflict(grown, member, rule);
        const float4 both = union_box(grown, member);
        const bool is_larger = both.x != grown.x || both.y != grown.y || both.z != grown.z ||
                               both.w != grown.w;
        const uint32_t joining = __ballot_sync(ALL_LANES, joins);
        const uint32_t growing = __ballot_sync(ALL_LANES, joins && is_larger);
        const uint32_t next = growing & (0u - growing); // the lowest lane's bit
        const uint32_t decided = undecided & (next | (next - 1));
        joined |= joining & decided;
        undecided &= ~decided;
        if (growing != 0) {
            const uint32_t from = __ffs(growing) - 1;
            grown.x = from_lane(both.x, from);
            grown.y = from_lane(both.y, from);
            grown.z = from_lane(both.z, from);
            grown.w = from_lane(both.w, from);
        }
    }
    return joined;
}

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_grow(void *workspaces, uint64_t stride, const MergeParams merge) {
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header), lane = lane_index();
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    OverlapRule rule(header->params);
    // A member that is tested again must exceed the threshold, as in SAHI, if it may be lost.
    rule.inclusive = rule.inclusive != 0 && merge.lose_released == 0;
    for_each_run<1>(count, [&](uint32_t rank) {
        if (arrays.part[rank] != rank) {
            return;
        }
        const uint32_t start = arrays.part_start[rank];
        uint32_t end = part_end(arrays, rank, start, count);
        for (;;) {
            const RankedCandidate keeper = arrays.ordered[start];
            float4 grown = keeper.box;
            // Released members move to the beginning. They are a claim in turn.
            uint32_t released = 0;
            for (uint32_t from = start + 1; from < end; from += WARP) {
                const bool exists = from + lane < end;
                const RankedCandidate member = arrays.ordered[min(from + lane, end - 1)];
                rule.set_class(header->params, member.class_index);
                const uint32_t exist = __ballot_sync(ALL_LANES, exists);
                const uint32_t left = exist & ~join(grown, member.box, exist, rule);
                __syncwarp();
                if (left >> lane & 1) {
                    arrays.ordered[start + released + lanes_before(left)] = member;
                }
                if (exists) {
                    workspace.decision_by_rank[member.slot] =
                        Decision::encode(Decision::SUPPRESSED, 1).bits;
                }
                released += __popc(left);
            }
            __syncwarp();
            if (lane == 0) {
                workspace.ranked[keeper.slot].box = grown;
                workspace.decision_by_rank[keeper.slot] =
                    Decision::encode(Decision::SURVIVES, 1).bits;
            }
            if (released == 0 || merge.lose_released != 0) {
                return;
            }
            end = start + released;
        }
    });
}

DEVICE double weight_of(float score) { return score > 0.0f ? double(score) : 0.0; }

// The weighted mean, or `keeper` if the mean is not finite or has no area.
DEVICE float4 mean_or(const float4 &mean, const float4 &keeper) {
    const bool is_box = is_finite(mean.x) && is_finite(mean.y) && is_finite(mean.z) &&
                        is_finite(mean.w) && mean.x < mean.z && mean.y < mean.w;
    return is_box ? mean : keeper;
}

// Members of claims, some at a time: the four edges, and the score.
struct MergeMembers {
    float numbers[MERGE_WARPS][WARP][5];
};

KERNEL(MERGE_THREADS, MERGE_RESIDENT) merge_average(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(MergeMembers, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header), lane = lane_index();
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    float(*const members)[5] = shared.numbers[warp_index()];
    for_each_run<1>(count, [&](uint32_t rank) {
        if (arrays.part[rank] != rank) {
            return;
        }
        const uint32_t start = arrays.part_start[rank];
        const uint32_t end = part_end(arrays, rank, start, count);
        // Lanes 0 to 3 add an edge each, in the order of ranks.
        const uint32_t edge = lane % 4;
        double sum = 0.0, weights = 0.0;
        for (uint32_t from = start; from < end; from += WARP) {
            const RankedCandidate member = arrays.ordered[min(from + lane, end - 1)];
            float *const own = members[lane];
            own[0] = member.box.x;
            own[1] = member.box.y;
            own[2] = member.box.z;
            own[3] = member.box.w;
            own[4] = member.score;
            __syncwarp();
            const uint32_t those = min(end - from, WARP);
            for (uint32_t i = 0; i < those; i++) {
                const double weight = weight_of(members[i][4]);
                sum = add_rn(sum, mul_rn(weight, double(members[i][edge])));
                weights = add_rn(weights, weight);
            }
            __syncwarp();
        }
        const float mean = float(sum / weights);
        const float4 all = {from_lane(mean, 0), from_lane(mean, 1), from_lane(mean, 2),
                            from_lane(mean, 3)};
        if (lane == 0) {
            workspace.ranked[rank].box = mean_or(all, arrays.ordered[start].box);
        }
    });
}

// Adds a candidate to the sums of a cluster.
DEVICE void add_to(Cluster &cluster, const RankedCandidate &candidate) {
    const double weight = weight_of(candidate.score);
    const float edges[4] = {candidate.box.x, candidate.box.y, candidate.box.z, candidate.box.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        cluster.edges[i] = add_rn(cluster.edges[i], mul_rn(weight, double(edges[i])));
    }
    cluster.weights = add_rn(cluster.weights, weight);
    cluster.scores = add_rn(cluster.scores, double(candidate.score));
    cluster.count++;
}

// Each cluster has one thread, which alone reads and changes its box. No barrier is needed for that.
KERNEL(PART_THREADS, 1) merge_fuse(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(BlockMaximum, maximum);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t count = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const MergeArrays arrays(workspace);
    OverlapRule rule(header->params);
    uint32_t step = 0;
    for (uint32_t part = blockIdx.x; part < count; part += gridDim.x) {
        if (arrays.part[part] != part) {
            continue;
        }
        const uint32_t start = arrays.part_start[part], end = part_end(arrays, part, start, count);
        float4 *const boxes = arrays.cluster_box + start;
        Cluster *const all = arrays.cluster + start;
        uint32_t clusters = 0;
        for (uint32_t place = start; place < end; place++) {
            const RankedCandidate candidate = arrays.ordered[place];
            rule.set_class(header->params, candidate.class_index);
            // The greatest overlap; of equal overlaps, the first cluster.
            uint64_t best = 0;
            for (uint32_t c = threadIdx.x; c < clusters; c += PART_THREADS) {
                const float4 box = boxes[c];
                if (boxes_conflict(box, candidate.box, rule)) {
                    const uint64_t overlap =
                        __float_as_uint(overlap_of(box, candidate.box, rule));
                    const uint64_t key = overlap << 32 | uint32_t(~c);
                    best = key > best ? key : best;
                }
            }
            best = maximum.of_block(best, step++);
            const bool is_new = best == 0;
            const uint32_t joined = is_new ? clusters++ : ~uint32_t(best);
            if (joined % PART_THREADS == threadIdx.x) {
                Cluster cluster = {};
                if (!is_new) {
                    cluster = all[joined];
                }
                cluster.keeper = is_new ? place : cluster.keeper;
                add_to(cluster, candidate);
                all[joined] = cluster;
                float4 box = candidate.box;
                if (!is_new) {
                    const float4 mean = {float(cluster.edges[0] / cluster.weights),
                                         float(cluster.edges[1] / cluster.weights),
                                         float(cluster.edges[2] / cluster.weights),
                                         float(cluster.edges[3] / cluster.weights)};
                    box = mean_or(mean, arrays.ordered[cluster.keeper].box);
                }
                boxes[joined] = box;
            }
            if (threadIdx.x == 0) {
                arrays.final_key[candidate.slot] = dropped_key(candidate.slot);
            }
        }
        __syncthreads();
        for (uint32_t c = threadIdx.x; c < clusters; c += PART_THREADS) {
            RankedCandidate survivor = arrays.ordered[all[c].keeper];
            survivor.box = boxes[c];
            // Adding zero turns minus zero into zero.
            survivor.score = add_rn(float(all[c].scores / double(all[c].count)), 0.0f);
            store_survivor(arrays, header->params, survivor);
        }
    }
}
