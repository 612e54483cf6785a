// SPDX-License-Identifier: MIT OR Apache-2.0
// Sorts the candidates of a group with many candidates: by rank, and by position. In: the
// candidates by slot. Out: the candidates by rank, and their slots in an order in which neighbors
// are close to one another in the plane.
//
// Both sorts are sample sorts, and three kernels perform both at once:
//
//   sort_count     each block sorts one sample, which gives the splitters between buckets;
//                  finds the buckets of its candidates, and counts the candidates of each
//   sort_scatter   moves the candidates to their buckets
//   sort_rank      a candidate's place is the first of its bucket, plus the number of lesser keys in it
//
// All keys differ, so that equal scores or equal boxes do not make a bucket large. The sample has
// no influence on the order; with a bad sample, buckets are large and the sort takes longer.
//
// The order by rank is cut into chunks (chunk.cuh) at the bucket boundaries nearest to the wanted
// sizes. The key of the order by position has these parts, from the upper bits on: the chunk; bits
// of the class, unless all classes conflict; the logarithm of the size; the place of the box's
// center on a Hilbert curve; and the slot. Coordinates on the curve are quantiles of the sample, so
// that any distribution of boxes uses the whole curve. Neighbors on a Hilbert curve are neighbors
// in the plane. The curve begins and ends at an edge of the plane. Every other size runs along the
// curve backwards, so that the last boxes of one size are close to the first boxes of the next.
#pragma once

#include "workspace.cuh"

// Groups with up to this many candidates use 256 buckets.
#define FEW_CANDIDATES (1u << 17)

static_assert(SORT_BUCKETS == SORT_THREADS && SORT_BUCKETS == 1024, "a thread has a bucket");

// The logarithm of the number of buckets.
DEVICE uint32_t sort_bucket_bits(uint32_t candidates) {
    return candidates <= FEW_CANDIDATES ? 8 : 10;
}
DEVICE uint32_t sort_buckets(uint32_t candidates) { return 1u << sort_bucket_bits(candidates); }

// The candidates of a block: consecutive slots, shared equally among the blocks, with the threads of
// whole warps.
struct BlockSlots {
    uint32_t first, end;

    DEVICE explicit BlockSlots(uint32_t candidates) {
        const uint32_t warps = (candidates + WARP - 1) / WARP;
        const uint32_t each = (warps + gridDim.x - 1) / gridDim.x * WARP;
        first = min(blockIdx.x * each, candidates);
        end = min(first + each, candidates);
    }
};

// The chunk of the candidates in a bucket of the sort by rank.
DEVICE uint32_t bucket_chunk(const Header *header, uint32_t candidates, uint32_t bucket) {
    const uint64_t rank = uint64_t(bucket) * candidates >> sort_bucket_bits(candidates);
    return chunk_of(uint32_t(rank), header->params.first_chunk);
}

// A key that ascends in the order of ranks.
DEVICE uint64_t ascending_key(RankKey key) { return ~key.bits; }

// A key that ascends with the number, which must not be NaN.
DEVICE uint64_t ascending_key(float number) {
    const uint32_t bits = __float_as_uint(number);
    return (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
}

// The number of splitters, not counting the last one, that are at most `key`.
DEVICE uint32_t bucket_of(const uint64_t *splitters, uint32_t buckets, uint64_t key) {
    uint32_t bucket = 0;
    for (uint32_t step = buckets / 2; step != 0; step /= 2) {
        bucket += splitters[bucket + step - 1] <= key ? step : 0;
    }
    return bucket;
}

// The place on a Hilbert curve through a square of SORT_BUCKETS columns and rows.
DEVICE uint32_t hilbert_place(uint32_t column, uint32_t row) {
    uint32_t place = 0;
#pragma unroll
    for (uint32_t side = SORT_BUCKETS / 2; side != 0; side /= 2) {
        const bool is_right = (column & side) != 0, is_lower = (row & side) != 0;
        // The four quarters come in the order upper left, lower left, lower right, upper right.
        place = place * 4 + (is_right ? (is_lower ? 2 : 3) : (is_lower ? 1 : 0));
        if (!is_lower) {
            // In the two upper quarters, the curve is mirrored at a diagonal.
            const uint32_t mirror = is_right ? SORT_BUCKETS - 1 : 0, x = column ^ mirror;
            column = row ^ mirror;
            row = x;
        }
    }
    return place;
}

// Twice the logarithm of the longer side to base 16, from 0 to 31.
DEVICE uint32_t size_level(const float4 &box) {
    const float side = fmaxf(sub_rn(box.z, box.x), sub_rn(box.w, box.y));
    const uint32_t exponent = __float_as_uint(side) >> 23; // sides are positive
    const uint32_t least = 127 - 16;
    return min(max(exponent, least) - least, 63u) / 2;
}

DEVICE float center(float low, float high) {
    return add_rn(mul_rn(low, 0.5f), mul_rn(high, 0.5f)); // no overflow
}

enum : uint32_t { RANK_KEYS = 0, X_KEYS = 1, Y_KEYS = 2, POSITION_KEYS = 3 };

struct SortSample {
    uint64_t splitters[4][SORT_BUCKETS];
    uint64_t exchange[SORT_THREADS];
};

DEVICE uint64_t shuffle_xor(uint64_t value, uint32_t distance) {
    const uint32_t low = __shfl_xor_sync(ALL_LANES, uint32_t(value), distance);
    const uint32_t high = __shfl_xor_sync(ALL_LANES, uint32_t(value >> 32), distance);
    return uint64_t(high) << 32 | low;
}

// Sorts the values of each run of `count` consecutive threads in ascending order (a bitonic sort).
// `count` is a power of two, at least WARP. Only the runs of the first `threads` threads are sorted.
DEVICE uint64_t sorted_by_thread(uint64_t value, uint32_t count, uint32_t threads, uint64_t *exchange) {
    const uint32_t thread = threadIdx.x;
#pragma unroll 1
    for (uint32_t size = 2; size <= count; size *= 2) {
        const bool is_ascending = (thread & size & (count - 1)) == 0;
#pragma unroll 1
        for (uint32_t distance = size / 2; distance != 0; distance /= 2) {
            if (distance >= WARP) {
                exchange[thread] = value;
                __syncthreads();
            }
            if (thread < threads) {
                const uint64_t other = distance < WARP ? shuffle_xor(value, distance)
                                                       : exchange[thread ^ distance];
                const bool keeps_lesser = is_ascending == ((thread & distance) == 0);
                value = (other < value) == keeps_lesser ? other : value;
            }
            if (distance >= WARP) {
                __syncthreads();
            }
        }
    }
    return value;
}

// The slot of element `i` of the sample. Slots are pseudo-random, so that no regularity of the
// input affects the sample.
DEVICE uint32_t sample_slot(uint32_t i, uint32_t candidates) {
    uint32_t bits = (i + 1) * 0x9e3779b9u;
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return uint32_t(uint64_t(bits ^ bits >> 16) * candidates >> 32);
}

DEVICE uint64_t position_key(const Workspace &workspace, const SortSample &sample,
                             uint32_t candidates, uint32_t slot, uint32_t rank_bucket) {
    const uint32_t buckets = sort_buckets(candidates);
    const float4 box = workspace.candidate_box[slot];
    const uint64_t x = ascending_key(center(box.x, box.z)), y = ascending_key(center(box.y, box.w));
    const uint32_t column = bucket_of(sample.splitters[X_KEYS], buckets, x);
    const uint32_t row = bucket_of(sample.splitters[Y_KEYS], buckets, y);
    const uint32_t class_index =
        workspace.header->params.class_agnostic ? 0 : workspace.candidate_class[slot];
    const uint64_t chunk = bucket_chunk(workspace.header, candidates, rank_bucket);
    const uint32_t level = size_level(box), place = hilbert_place(column, row);
    const uint32_t curve = level % 2 == 0 ? place : SORT_BUCKETS * SORT_BUCKETS - 1 - place;
    return chunk << 61 | uint64_t(class_index & 15) << 57 | uint64_t(level) << 52 |
           uint64_t(curve) << 32 | slot;
}
static_assert(MAX_CHUNKS <= 8 && SORT_BUCKETS <= 1 << 10, "the bits of the position key");

KERNEL(SORT_THREADS, 1) sort_count(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(SortSample, sample);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t candidates = candidate_count(header);
    const BlockSlots own(candidates);
    if (!is_sorted(header) || own.first == own.end) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const uint32_t buckets = sort_buckets(candidates), element = threadIdx.x % buckets;
    const uint32_t sampled = sample_slot(element, candidates);
    // Sort as many lists at a time as the threads allow.
    for (uint32_t first = RANK_KEYS; first <= Y_KEYS; first += SORT_THREADS / buckets) {
        const uint32_t list = first + threadIdx.x / buckets;
        const float4 box = workspace.candidate_box[sampled];
        const uint64_t key = list == RANK_KEYS ? ascending_key(workspace.candidate_key[sampled])
                             : list == X_KEYS  ? ascending_key(center(box.x, box.z))
                                               : ascending_key(center(box.y, box.w));
        const uint32_t threads = min((Y_KEYS + 1 - first) * buckets, SORT_THREADS);
        const uint64_t sorted = sorted_by_thread(key, buckets, threads, sample.exchange);
        if (list <= Y_KEYS) {
            sample.splitters[list][element] = sorted;
        }
    }
    __syncthreads();
    uint64_t position = 0;
    if (threadIdx.x < buckets) {
        const uint64_t key = ascending_key(workspace.candidate_key[sampled]);
        const uint32_t rank_bucket = bucket_of(sample.splitters[RANK_KEYS], buckets, key);
        position = position_key(workspace, sample, candidates, sampled, rank_bucket);
    }
    position = sorted_by_thread(position, buckets, buckets, sample.exchange);
    if (threadIdx.x < buckets) {
        sample.splitters[POSITION_KEYS][element] = position;
    }
    __syncthreads();

    for (uint32_t slot = own.first + threadIdx.x; slot < own.end; slot += SORT_THREADS) {
        const uint64_t key = ascending_key(workspace.candidate_key[slot]);
        BucketPlaces places;
        places.bucket[BY_RANK] = bucket_of(sample.splitters[RANK_KEYS], buckets, key);
        const uint64_t position =
            position_key(workspace, sample, candidates, slot, places.bucket[BY_RANK]);
        places.bucket[BY_POSITION] = bucket_of(sample.splitters[POSITION_KEYS], buckets, position);
#pragma unroll
        for (uint32_t order = BY_RANK; order <= BY_POSITION; order++) {
            places.number[order] =
                atomicAdd(&workspace.sort->count[order][places.bucket[order]], 1u);
        }
        workspace.bucket_places[slot] = places;
        workspace.position_key[slot] = position;
    }
}

struct BucketStarts {
    uint32_t first[2][SORT_BUCKETS + 1];
    uint32_t warp_count[2][SORT_THREADS / WARP];
    uint32_t chunk_first[MAX_CHUNKS + 1];
};
static_assert(SORT_THREADS / WARP == WARP, "a lane loads the count of each warp");

// Stores where buckets and chunks begin, for the following kernels. All threads of a block call it.
DEVICE void store_starts(const Workspace &workspace, BucketStarts &starts, uint32_t candidates) {
    const uint32_t buckets = sort_buckets(candidates), bucket = threadIdx.x;
    SortState &state = *workspace.sort;
#pragma unroll
    for (uint32_t order = BY_RANK; order <= BY_POSITION; order++) {
        state.first[order][bucket] = starts.first[order][bucket];
        if (bucket == 0) {
            state.first[order][SORT_BUCKETS] = candidates;
        }
    }
    // A chunk begins at the first bucket that belongs to it or to a later chunk.
    if (bucket < buckets) {
        const uint32_t from =
            bucket == 0 ? 0 : bucket_chunk(workspace.header, candidates, bucket - 1) + 1;
        const uint32_t to = bucket_chunk(workspace.header, candidates, bucket);
        for (uint32_t chunk = from; chunk <= to; chunk++) {
            starts.chunk_first[chunk] = starts.first[BY_RANK][bucket];
        }
        if (bucket == buckets - 1) {
            for (uint32_t chunk = to + 1; chunk <= MAX_CHUNKS; chunk++) {
                starts.chunk_first[chunk] = candidates;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t leaves = 0;
        for (uint32_t chunk = 0; chunk <= MAX_CHUNKS; chunk++) {
            state.chunk_first[chunk] = starts.chunk_first[chunk];
            state.leaf_first[chunk] = leaves;
            if (chunk < MAX_CHUNKS) {
                const uint32_t count = starts.chunk_first[chunk + 1] - starts.chunk_first[chunk];
                leaves += (count + LEAF_CANDIDATES - 1) / LEAF_CANDIDATES;
            }
        }
    }
}

KERNEL(SORT_THREADS, 1) sort_scatter(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(BucketStarts, starts);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    const uint32_t candidates = candidate_count(header);
    const BlockSlots slots(candidates);
    if (!is_sorted(header) || slots.first == slots.end) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const uint32_t lane = lane_index(), warp = warp_index();
    uint32_t own[2], inclusive_sum[2];
#pragma unroll
    for (uint32_t order = BY_RANK; order <= BY_POSITION; order++) {
        own[order] = inclusive_sum[order] = workspace.sort->count[order][threadIdx.x];
#pragma unroll
        for (uint32_t distance = 1; distance < WARP; distance *= 2) {
            const uint32_t below = __shfl_up_sync(ALL_LANES, inclusive_sum[order], distance);
            inclusive_sum[order] += lane >= distance ? below : 0;
        }
        if (lane == WARP - 1) {
            starts.warp_count[order][warp] = inclusive_sum[order];
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t order = BY_RANK; order <= BY_POSITION; order++) {
        const uint32_t before = warp_sum(lane < warp ? starts.warp_count[order][lane] : 0);
        starts.first[order][threadIdx.x] = before + inclusive_sum[order] - own[order];
    }
    __syncthreads();
    if (blockIdx.x == 0) {
        store_starts(workspace, starts, candidates);
    }

    for (uint32_t slot = slots.first + threadIdx.x; slot < slots.end; slot += SORT_THREADS) {
        const BucketPlaces places = workspace.bucket_places[slot];
        const uint64_t keys[2] = {ascending_key(workspace.candidate_key[slot]),
                                  workspace.position_key[slot]};
#pragma unroll
        for (uint32_t order = BY_RANK; order <= BY_POSITION; order++) {
            const uint32_t bucket = places.bucket[order];
            SortEntry *const entries =
                order == BY_RANK ? workspace.rank_entries : workspace.position_entries;
            entries[starts.first[order][bucket] + places.number[order]] =
                SortEntry{keys[order], slot, bucket};
        }
    }
}

// Candidates of a lane, whose keys are compared with one loaded key.
#define SORT_ITEMS 2u

// The keys that a warp compares with, some at a time.
struct SortKeys {
    uint64_t keys[CHUNK_THREADS / WARP][WARP];
};

KERNEL(CHUNK_THREADS, 4) sort_rank(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(SortKeys, shared);
    grid_dependency_wait();
    Header *const header = group_header<true>(workspaces, stride);
    if (!is_sorted(header)) {
        return;
    }
    const uint32_t candidates = candidate_count(header), limit = ranked_count(header);
    const Workspace workspace(header, header->params.capacity);
    const uint32_t lane = lane_index(), warps = gridDim.x * (CHUNK_THREADS / WARP);
    const uint32_t steps = (candidates + SORT_ITEMS * WARP - 1) / (SORT_ITEMS * WARP);
    // The decision that methods without suppression start with.
    const Decision initial = header->params.method == METHOD_NONE
                                 ? Decision::encode(Decision::SURVIVES, 1)
                                 : Decision::encode(Decision::UNDECIDED, 0);
    for (uint64_t step = blockIdx.x * (CHUNK_THREADS / WARP) + warp_index(); step < 2ull * steps;
         step += warps) {
        const uint32_t order = step < steps ? BY_RANK : BY_POSITION;
        const uint32_t first = uint32_t(step - (order == BY_RANK ? 0 : steps)) * SORT_ITEMS * WARP;
        const SortEntry *const entries =
            order == BY_RANK ? workspace.rank_entries : workspace.position_entries;
        SortEntry own[SORT_ITEMS];
        uint32_t place[SORT_ITEMS];
        // Keys in earlier buckets are less, and keys in later buckets are greater.
        const uint32_t last = min(first + SORT_ITEMS * WARP, candidates) - 1;
        const uint32_t from = workspace.sort->first[order][entries[first].bucket];
        const uint32_t to = workspace.sort->first[order][entries[last].bucket + 1];
#pragma unroll
        for (uint32_t k = 0; k < SORT_ITEMS; k++) {
            const uint32_t at = first + k * WARP + lane;
            own[k] = entries[min(at, last)];
            place[k] = from;
        }
        const auto load_key = [&](uint32_t at) { return at < to ? entries[at].key : ~uint64_t(0); };
        uint64_t *const keys = shared.keys[warp_index()];
        uint64_t next = load_key(from + lane);
        for (uint32_t i = from; i < to; i += WARP) {
            keys[lane] = next;
            __syncwarp();
            next = load_key(i + WARP + lane); // in flight while keys are compared
#pragma unroll 8
            for (uint32_t j = 0; j < WARP; j++) {
                const uint64_t key = keys[j];
#pragma unroll
                for (uint32_t k = 0; k < SORT_ITEMS; k++) {
                    place[k] += key < own[k].key;
                }
            }
            __syncwarp();
        }
#pragma unroll
        for (uint32_t k = 0; k < SORT_ITEMS; k++) {
            if (first + k * WARP + lane > last) {
                continue;
            }
            const uint32_t slot = own[k].slot;
            if (order == BY_POSITION) {
                workspace.slot_by_position[place[k]] = slot;
                continue;
            }
            workspace.rank_by_slot[slot] = place[k];
            if (place[k] < limit) {
                const RankKey key = {~own[k].key};
                RankedCandidate candidate;
                candidate.box = workspace.candidate_box[slot];
                candidate.score = key.score();
                candidate.class_index = workspace.candidate_class[slot];
                candidate.index = key.index();
                candidate.slot = 0;
                workspace.ranked[place[k]] = candidate;
                workspace.decision_by_rank[place[k]] = initial.bits;
            }
        }
    }
}
