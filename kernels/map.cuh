// Map: how many outrank each candidate, which gives its place, and which of them meet it.
//
// A block asks about its share of the candidates, which lie in shared memory; its threads hold all
// candidates in registers, a few at a time, and answer. Most pairs are told apart by their outlines
// alone; those that are not wait in a queue, and are tested a warp at a time. A candidate that none
// meets is a root: it survives whatever becomes of others.
#pragma once

#include "proxy_box.cuh"

#define MAP_WARPS (MAP_THREADS / WARP)
// Candidates that a block asks about at a time.
#define TILE_QUERIES 128u
// Candidates that a thread holds at most, so that they stay in registers.
#define MAP_ITEMS_PER_THREAD 8u

struct QueryTile {
    ProxyBox proxy[TILE_QUERIES];
    uint64_t key[TILE_QUERIES];
    float4 box[TILE_QUERIES];
    uint32_t class_index[TILE_QUERIES];
    uint32_t outranking[TILE_QUERIES];
    uint32_t conflicts[TILE_QUERIES][CONFLICT_LIST_WORDS];
    // Of each warp, what a lane found near to two questions: a bit for each candidate that it holds
    // and each of the two, then the first question, then the lane.
    uint32_t queue[MAP_WARPS][2 * WARP];
};
#define PAIR_BITS (2 * MAP_ITEMS_PER_THREAD)
#define LANE_SHIFT 27
static_assert(TILE_QUERIES % 2 == 0, "questions are answered in pairs");
static_assert(TILE_QUERIES <= 1u << (LANE_SHIFT - PAIR_BITS), "room for the question");
// The counts of the two share a word: what the second's counts for.
#define SECOND_COUNT 4096u
static_assert(MAP_ITEMS_PER_THREAD * WARP < SECOND_COUNT, "a warp's count of the first has room");
static_assert(PAIR_BITS <= 23 && SECOND_COUNT * MAP_ITEMS_PER_THREAD < 1u << 23, "exact as floats");

// What a block is about: of its share of the candidates, `count` from the `first`. A block's are
// far apart, since the nearest are often of one object, and their pairs would all be one warp's.
struct TileRange {
    uint32_t first, count, candidates;

    DEVICE uint32_t slot(uint32_t question) const {
        return blockIdx.x + (first + question) * gridDim.x;
    }
};

DEVICE void load_tile(QueryTile &tile, const Workspace &workspace, const TileRange &range,
                const OverlapRule &rule, bool needs_conflicts) {
    if (threadIdx.x == 0 && range.count % 2 != 0) {
        // Makes a pair of the last: none outranks it.
        tile.key[range.count] = ~uint64_t(0);
        tile.proxy[range.count] = empty_box();
    }
    for (uint32_t q = threadIdx.x; q < range.count; q += MAP_THREADS) {
        const uint32_t slot = range.slot(q);
        const float4 box = workspace.candidate_box[slot];
        tile.proxy[q] = needs_conflicts ? proxy_box(box, rule) : empty_box();
        tile.box[q] = box;
        tile.key[q] = workspace.candidate_key[slot];
        tile.class_index[q] = workspace.candidate_class[slot];
        tile.outranking[q] = 0;
        tile.conflicts[q][0] = 0;
        tile.conflicts[q][1] = slot;
    }
}

// Pairs of the warp that wait to be tested.
struct PairQueue {
    uint32_t *entries;
    uint32_t length;

    // For all lanes to call.
    DEVICE void add(bool wanted, uint32_t entry) {
        const uint32_t all = __ballot_sync(ALL_LANES, wanted);
        if (wanted) {
            entries[length + lanes_before(all)] = entry;
        }
        length += __popc(all);
        __syncwarp();
    }

    // Tests a pair of each of the last `count` entries, at most 32, and notes those that meet.
    // `from`: the slot of the block's first candidate.
    DEVICE void test(QueryTile &tile, const Workspace &workspace, uint32_t from,
                     uint32_t count) {
        const OverlapRule rule(workspace.header->params); // again: registers are short
        length -= count;
        uint32_t entry = 0;
        if (lane_index() < count) {
            entry = entries[length + lane_index()];
            const uint32_t bit = __ffs(entry) - 1;
            const uint32_t q =
                (entry >> PAIR_BITS & ((1u << (LANE_SHIFT - PAIR_BITS)) - 1)) + bit / MAP_ITEMS_PER_THREAD;
            const uint32_t slot = from + bit % MAP_ITEMS_PER_THREAD * MAP_THREADS + warp_index() * WARP +
                                  (entry >> LANE_SHIFT);
            // Looked up only where it counts.
            const uint32_t class_index = rule.class_agnostic ? 0 : workspace.candidate_class[slot];
            const float4 box = workspace.candidate_box[slot];
            // Boxes far out touch nowhere, too: of infinities in half precision nothing can be said.
            if (workspace.header->params.method != NONE && overlaps(box, tile.box[q], rule) &&
                classes_compete(class_index, tile.class_index[q], rule)) {
                const uint32_t at = atomicAdd(&tile.conflicts[q][0], 1u);
                if (at < CONFLICT_LIST_CAPACITY) {
                    tile.conflicts[q][CONFLICT_LIST_WORDS - CONFLICT_LIST_CAPACITY + at] = slot;
                }
            }
            entry &= entry - 1;
        }
        __syncwarp();
        add((entry & ((1u << PAIR_BITS) - 1)) != 0, entry);
    }
};

// Compares each of `Held` candidates, from number `K` on, with a question: a bit for each.
template <uint32_t Unit, uint32_t FirstBit, uint32_t Items, uint32_t K = 0>
DEVICE void compare_items(const uint64_t (&key)[Items], const ProxyBox (&proxy)[Items],
                        const QueryTile &tile, uint32_t q, float &outranking, float &pairs) {
    if constexpr (K < Items) {
        compare<Unit, FirstBit << K>(key[K], proxy[K], tile.key[q], tile.proxy[q],
                                     outranking, pairs);
        compare_items<Unit, FirstBit, Items, K + 1>(key, proxy, tile, q, outranking, pairs);
    }
}

// Answers all questions for `Held` candidates per thread, of which the block's first is at slot
// `from`; where that is 0, asks them first, while the candidates are on their way.
template <uint32_t Items>
DEVICE void compare_tile(QueryTile &tile, const Workspace &workspace, const TileRange &range,
                   uint32_t from) {
    float4 box[Items];
    uint64_t key[Items];
#pragma unroll
    for (uint32_t k = 0; k < Items; k++) {
        const uint32_t slot = from + k * MAP_THREADS + threadIdx.x;
        const bool is_there = slot < range.candidates;
        box[k] = workspace.candidate_box[is_there ? slot : 0];
        key[k] = is_there ? workspace.candidate_key[slot] : 0; // 0 outranks none
    }
    const OverlapRule rule(workspace.header->params);
    const bool needs_conflicts = workspace.header->params.method != NONE;
    compiler_barrier();
    if (from == 0) {
        load_tile(tile, workspace, range, rule, needs_conflicts);
    }
    ProxyBox proxy[Items];
#pragma unroll
    for (uint32_t k = 0; k < Items; k++) {
        proxy[k] = proxy_box(box[k], rule);
    }
    if (from == 0) {
        __syncthreads();
    }
    const uint32_t lane = lane_index();
    if (from + threadIdx.x - lane >= range.candidates) {
        return;
    }
    PairQueue queue{tile.queue[warp_index()], 0};
    for (uint32_t group = 0; group < range.count; group += 2 * WARP) {
        const uint32_t own = group + 2 * lane; // and the next: whose counts the lane gathers
        uint32_t outranking_own = 0;
        for (uint32_t q = group; q < min(range.count, group + 2 * WARP); q += 2) {
            float outranking = COUNTER_ZERO, intersecting = COUNTER_ZERO;
            compare_items<1, 1>(key, proxy, tile, q, outranking, intersecting);
            compare_items<SECOND_COUNT, 1u << MAP_ITEMS_PER_THREAD>(key, proxy, tile, q + 1, outranking, intersecting);
            const uint32_t both = warp_sum(counter_value(outranking));
            outranking_own = q == own ? both : outranking_own;
            const uint32_t pairs = counter_value(intersecting);
            if (__any_sync(ALL_LANES, pairs != 0)) {
                queue.add(pairs != 0, pairs | q << PAIR_BITS | lane << LANE_SHIFT);
                while (queue.length >= WARP) {
                    queue.test(tile, workspace, from, WARP);
                }
            }
        }
        // Warps add to the same counts as seldom as can be.
        if (outranking_own != 0) {
            atomicAdd(&tile.outranking[own], outranking_own % SECOND_COUNT);
            atomicAdd(&tile.outranking[own + 1], outranking_own / SECOND_COUNT);
        }
    }
    while (queue.length != 0) {
        queue.test(tile, workspace, from, min(queue.length, WARP));
    }
}

// With few per thread where few are left.
template <uint32_t Items>
DEVICE void compare_tile_up_to(QueryTile &tile, const Workspace &workspace, const TileRange &range,
                         uint32_t from) {
    if constexpr (Items > 1) {
        constexpr uint32_t FEWER = Items > 4 ? Items - 2 : Items - 1;
        if (range.candidates - from <= FEWER * MAP_THREADS) {
            return compare_tile_up_to<FEWER>(tile, workspace, range, from);
        }
    }
    compare_tile<Items>(tile, workspace, range, from);
}

// Lanes that put a candidate into its place: few have more hits than that, and a block has more
// candidates than warps.
#define SCATTER_LANES (WARP / 2)

// Puts the candidates asked about into their places, but for those beyond `limit`.
DEVICE void scatter(const QueryTile &tile, const Workspace &workspace, const TileRange &range,
                  uint32_t limit) {
    const uint32_t member = threadIdx.x % SCATTER_LANES;
    for (uint32_t q = threadIdx.x / SCATTER_LANES; q < range.count; q += MAP_THREADS / SCATTER_LANES) {
        const uint32_t rank = tile.outranking[q], conflicts = tile.conflicts[q][0];
        if (rank >= limit) {
            continue;
        }
        const uint32_t words = CONFLICT_LIST_WORDS - CONFLICT_LIST_CAPACITY + min(conflicts, CONFLICT_LIST_CAPACITY);
        for (uint32_t i = member; i < words; i += SCATTER_LANES) {
            workspace.conflicts[uint64_t(rank) * CONFLICT_LIST_WORDS + i] = tile.conflicts[q][i];
        }
        if (member == 0) {
            const uint64_t key = tile.key[q];
            Ranked ranked;
            ranked.box = tile.box[q];
            ranked.score = key_score(key);
            ranked.class_index = tile.class_index[q];
            ranked.index = key_index(key);
            ranked.reserved = 0;
            workspace.ranked[rank] = ranked;
            const uint32_t decision_by_slot = conflicts == 0 ? SURVIVES | 1u << DEPTH_SHIFT : UNDECIDED;
            workspace.decision_by_slot[tile.conflicts[q][1]] = decision_by_slot;
            workspace.decision_by_rank[rank] = decision_by_slot;
        }
    }
}

KERNEL(MAP_THREADS, 1) map(void *memory) {
    BLOCK_SHARED(QueryTile, tile);
    grid_dependency_wait();
    const Header *const header = (const Header *)memory;
    const uint32_t candidates = candidate_count(header), limit = ranked_count(header);
    if (blockIdx.x >= candidates) {
        return;
    }
    const Workspace workspace(memory, header->params.capacity);
    const uint32_t share = (candidates - blockIdx.x - 1) / gridDim.x + 1;
    uint32_t first = 0;
    do { // The first round does not wait for the division.
        const TileRange range{first, min(share - first, TILE_QUERIES), candidates};
        for (uint64_t from = 0; from < candidates; from += MAP_ITEMS_PER_THREAD * MAP_THREADS) {
            compare_tile_up_to<MAP_ITEMS_PER_THREAD>(tile, workspace, range, uint32_t(from));
        }
        __syncthreads();
        scatter(tile, workspace, range, limit);
        __syncthreads();
        first += TILE_QUERIES;
    } while (first < share);
}
