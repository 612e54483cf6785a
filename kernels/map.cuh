// SPDX-License-Identifier: MIT OR Apache-2.0
// Map: compares all pairs of candidates. In: the candidates by slot. Out: the candidates by rank.
// Each has a list of the candidates that outrank it and conflict with it. Candidates with an empty
// list survive.
//
//   for each query tile of the block          QUERY_TILE candidates of the block's share
//       load the tile into shared memory
//       for each candidate c                  in the threads' registers, some at a time
//           for each query q of the tile
//               if c outranks q
//                   q.rank += 1
//                   if the proxy boxes intersect, add (c, q) to the warp's queue
//       test the pairs in the queues exactly, a pair per lane; conflicts go to the query's list
//       scatter the queries to their ranks
//
// A candidate's rank is the number of candidates that outrank it, so no sort is needed.
//
// Each warp of a block holds different candidates and compares them with all queries. In a batch,
// an image group has few blocks and each block has many queries, but often too few candidates for
// all of its warps. Warps then form groups (WarpGroups): every group has all candidates in its
// registers and handles a part of the queries. With more candidates per thread, sums and votes of a
// warp take a smaller share of the time.
#pragma once

#include "proxy_box.cuh"

#define MAP_WARPS (MAP_THREADS / WARP)
// Queries in shared memory at a time.
#define QUERY_TILE 128u
// The most candidates that a thread has in registers at a time. With nine, a block reads the 8400
// anchors of many models in two rounds. Older architectures need more registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MAP_ITEMS_PER_THREAD 8u
#else
#define MAP_ITEMS_PER_THREAD 9u
#endif
// The limit for kernels in which warps form groups.
#define MAP_ITEMS_PER_GROUP_THREAD 6u

struct QueryTile {
    ProxyBox proxy[QUERY_TILE];
    RankKey key[QUERY_TILE];
    float4 box[QUERY_TILE];
    uint32_t class_index[QUERY_TILE];
    uint32_t rank[QUERY_TILE];
    ConflictList conflicts[QUERY_TILE];
    uint32_t queue[MAP_WARPS][2 * WARP]; // of each warp: QueueEntry::bits
};

// Pairs that wait for the exact test: pairs of one lane's candidates with one or both of two
// consecutive queries. Bit k of `pairs` is the pair of the lane's candidate k with the first query,
// and bit MAP_ITEMS_PER_THREAD + k is the pair with the second query.
struct QueueEntry {
    enum : uint32_t {
        PAIR_BITS = 2 * MAP_ITEMS_PER_THREAD,
        LANE_SHIFT = 27,
        QUERY_BITS = LANE_SHIFT - PAIR_BITS,
    };

    uint32_t bits;

    static DEVICE QueueEntry encode(uint32_t pairs, uint32_t query, uint32_t lane) {
        return QueueEntry{pairs | query << PAIR_BITS | lane << LANE_SHIFT};
    }
    DEVICE uint32_t pairs() const { return bits & ((1u << PAIR_BITS) - 1); }
    DEVICE uint32_t first_query() const { return bits >> PAIR_BITS & ((1u << QUERY_BITS) - 1); }
    DEVICE uint32_t lane() const { return bits >> LANE_SHIFT; }

    DEVICE uint32_t first_pair() const { return __ffs(bits) - 1; }
    DEVICE void remove_first_pair() { bits &= bits - 1; }

    // A copy of the entry with its first pair only.
    DEVICE QueueEntry only_first_pair() const {
        return QueueEntry{(bits & (0u - bits)) | (bits & ~((1u << PAIR_BITS) - 1))};
    }
};
static_assert(QUERY_TILE % 2 == 0, "queries are compared in pairs");
static_assert(QUERY_TILE <= 1u << QueueEntry::QUERY_BITS, "an entry has bits for the query");
static_assert(QueueEntry::PAIR_BITS <= MantissaCounter::BITS,
              "pairs are counted as bits of a float");

// The counts of two queries in one word.
struct CountPair {
    enum : uint32_t { FIRST = 1, SECOND = 4096 }; // the increments for either query

    uint32_t bits;

    DEVICE uint32_t first() const { return bits % SECOND; }
    DEVICE uint32_t second() const { return bits / SECOND; }
};
static_assert(MAP_ITEMS_PER_THREAD * WARP < CountPair::SECOND, "a warp's count of the first query");
static_assert(CountPair::SECOND * MAP_ITEMS_PER_THREAD < 1u << MantissaCounter::BITS,
              "a thread's counts are exact");

// The queries of a tile: `count` candidates of the block's share, starting at number `first`. A
// block's candidates are spread over the slots. Candidates of one object have slots close to one
// another, and without the spread all of their pairs would go to one warp's queue.
struct TileRange {
    uint32_t first, count, candidates;

    DEVICE uint32_t slot(uint32_t query) const { return blockIdx.x + (first + query) * gridDim.x; }
};

// How the block's warps share candidates and queries. Here all warps are one group.
template <bool IsBatch> struct OneGroup {
    static DEVICE uint32_t threads() { return MAP_THREADS; }
    static DEVICE uint32_t thread() { return threadIdx.x; }
    static DEVICE uint32_t groups() { return 1; }
    static DEVICE uint32_t group() { return 0; }
    // The slot of a lane's candidate number `item`. The block's candidates begin at slot `from`,
    // and the warp's at slot `warp_from`. The kernel for a single image group computes `warp_from`
    // again for each pair to save a register in the loop over the queries.
    static DEVICE uint32_t slot(uint32_t from, uint32_t warp_from, uint32_t item, uint32_t lane) {
        return IsBatch ? warp_from + item * threads() + lane
                       : from + item * threads() + warp_index() * WARP + lane;
    }
};

// Each group has as many warps as the candidates need. The last warps may belong to no group.
struct WarpGroups {
    uint32_t warps; // of a group

    DEVICE explicit WarpGroups(uint32_t candidates) {
        const uint32_t items = MAP_ITEMS_PER_GROUP_THREAD * WARP;
        warps = (candidates + items - 1) / items;
    }
    // True if the warps form at least two groups.
    static DEVICE bool suffice(uint32_t candidates) {
        return candidates <= MAP_WARPS / 2 * MAP_ITEMS_PER_GROUP_THREAD * WARP;
    }

    DEVICE uint32_t threads() const { return warps * WARP; }                     // of a group
    DEVICE uint32_t thread() const { return threadIdx.x - group() * threads(); } // in its group
    DEVICE uint32_t groups() const { return MAP_WARPS / warps; }
    DEVICE uint32_t group() const { return warp_index() / warps; }
    DEVICE uint32_t slot(uint32_t, uint32_t warp_from, uint32_t item, uint32_t lane) const {
        return warp_from + item * threads() + lane;
    }
};

template <typename Map>
DEVICE void load_tile(QueryTile &tile, const Workspace &workspace, const TileRange &range,
                      const OverlapRule &rule, bool needs_conflicts) {
    if (threadIdx.x == 0 && range.count % 2 != 0) {
        // The last query's partner.
        tile.key[range.count] = RankKey::highest();
        tile.proxy[range.count] = empty_box();
    }
    for (uint32_t q = threadIdx.x; q < range.count; q += MAP_THREADS) {
        const uint32_t slot = range.slot(q);
        const float4 box = workspace.candidate_box[slot];
        tile.proxy[q] = needs_conflicts ? Map::proxy(box, rule) : empty_box();
        tile.box[q] = box;
        tile.key[q] = workspace.candidate_key[slot];
        tile.class_index[q] = workspace.candidate_class[slot];
        tile.rank[q] = 0;
        tile.conflicts[q].count = 0;
        tile.conflicts[q].own_slot = slot;
    }
}

// Adds the candidate of slot `slot` to the conflict list of query `q`.
DEVICE void add_conflict(QueryTile &tile, uint32_t q, uint32_t slot) {
    ConflictList &list = tile.conflicts[q];
    const uint32_t at = atomicAdd(&list.count, 1u);
    if (at < CONFLICT_LIST_CAPACITY) {
        list.slots[at] = slot;
    }
}

// A warp's pairs that wait for the exact test.
struct PairQueue {
    uint32_t *entries;
    uint32_t length;

    // The number of pairs that still wait.
    DEVICE uint32_t rest() const { return length; }

    // All lanes call it.
    DEVICE void add(bool has_entry, QueueEntry entry) {
        const uint32_t adding = __ballot_sync(ALL_LANES, has_entry);
        if (has_entry) {
            entries[length + lanes_before(adding)] = entry.bits;
        }
        length += __popc(adding);
        __syncwarp();
    }

    // Tests one pair from each of the last `count` entries, at most WARP entries, and appends
    // conflicting pairs to the queries' lists. The group's candidates begin at slot `from`, the
    // warp's at slot `warp_from`.
    template <typename Groups>
    DEVICE void test(QueryTile &tile, const Workspace &workspace, const Groups &groups,
                     uint32_t from, uint32_t warp_from, uint32_t count) {
        OverlapRule rule(workspace.header->params); // loaded again, to save registers
        length -= count;
        QueueEntry entry = {0};
        if (lane_index() < count) {
            entry.bits = entries[length + lane_index()];
            const uint32_t pair = entry.first_pair();
            const uint32_t q = entry.first_query() + pair / MAP_ITEMS_PER_THREAD;
            const uint32_t slot =
                groups.slot(from, warp_from, pair % MAP_ITEMS_PER_THREAD, entry.lane());
            const uint32_t class_index = rule.class_agnostic ? 0 : workspace.candidate_class[slot];
            const float4 box = workspace.candidate_box[slot];
            rule.set_class(workspace.header->params, tile.class_index[q]);
            // With METHOD_NONE, coordinates that are infinite in half precision let pairs reach
            // this test.
            if (workspace.header->params.method != METHOD_NONE && boxes_conflict(box, tile.box[q], rule) &&
                classes_conflict(class_index, tile.class_index[q], rule)) {
                add_conflict(tile, q, slot);
            }
            entry.remove_first_pair();
        }
        __syncwarp();
        add(entry.pairs() != 0, entry);
    }
};

// Map for upright boxes. map_oriented.cuh has the counterpart for oriented boxes.
struct MapUpright {
    typedef QueryTile Tile;
    typedef PairQueue Queue;

    static DEVICE ProxyBox proxy(const float4 &box, const OverlapRule &rule) {
        return proxy_box(box, rule);
    }
    static DEVICE Queue queue(Tile &tile) { return {tile.queue[warp_index()], 0}; }
    // RankedCandidate::slot
    static DEVICE uint32_t ranked_slot(uint32_t) { return 0; }
    // The most items per thread, and the numbers below `items` for which compare_tile is compiled;
    // 0: none.
    static constexpr uint32_t ITEMS = MAP_ITEMS_PER_THREAD;
    static NMSFILTER_HOST_DEVICE constexpr uint32_t fewer_items(uint32_t items) {
        return items > 8 || items <= 4 ? items - 1 : items - 2;
    }
    // True if a single image group can have warp groups, too.
    static constexpr bool HAS_GROUPS_FOR_SINGLE_IMAGES = false;
};

// Compares the thread's candidates, beginning with number `K`, with query `q`. Counts the
// candidates that outrank `q` in units of `Unit`, and sets a bit, counting from `FirstBit`, for
// each candidate that needs the exact test.
template <uint32_t Unit, uint32_t FirstBit, uint32_t Items, uint32_t K = 0>
DEVICE void compare_items(const RankKey (&key)[Items], const ProxyBox (&proxy)[Items],
                          const QueryTile &tile, uint32_t q, MantissaCounter &outranking,
                          MantissaCounter &intersecting) {
    if constexpr (K < Items) {
        count_outranking<Unit>(key[K], tile.key[q], outranking);
        mark_intersecting<(FirstBit << K)>(key[K], proxy[K], tile.key[q], tile.proxy[q],
                                           intersecting);
        compare_items<Unit, FirstBit, Items, K + 1>(key, proxy, tile, q, outranking, intersecting);
    }
}

// Compares `Items` candidates per thread, beginning at slot `from`, with the queries. If `from` is
// 0, the function loads the tile first, while the loads of the candidates are in flight.
template <typename Map, uint32_t Items, typename Groups>
DEVICE void compare_tile(typename Map::Tile &tile, const Workspace &workspace, const TileRange &range,
                         const Groups &groups, uint32_t from) {
    float4 box[Items];
    RankKey key[Items];
#pragma unroll
    for (uint32_t k = 0; k < Items; k++) {
        const uint32_t slot = from + k * groups.threads() + groups.thread();
        const bool exists = slot < range.candidates;
        box[k] = workspace.candidate_box[exists ? slot : 0];
        key[k] = exists ? workspace.candidate_key[slot] : RankKey::lowest();
    }
    const OverlapRule rule(workspace.header->params);
    const bool needs_conflicts = workspace.header->params.method != METHOD_NONE;
    compiler_barrier();
    if (from == 0) {
        load_tile<Map>(tile, workspace, range, rule, needs_conflicts);
    }
    ProxyBox proxy[Items];
#pragma unroll
    for (uint32_t k = 0; k < Items; k++) {
        proxy[k] = Map::proxy(box[k], rule);
    }
    if (from == 0) {
        __syncthreads();
    }
    const uint32_t lane = lane_index();
    const uint32_t warp_from = from + groups.thread() - lane;
    if (warp_from >= range.candidates || groups.group() >= groups.groups()) {
        return;
    }
    typename Map::Queue queue = Map::queue(tile);
    for (uint32_t group = 0; group < range.count; group += 2 * WARP) {
        // This lane collects the counts of this query and the next, because one atomic addition per
        // group is cheaper than one per query.
        const uint32_t own = group + 2 * lane;
        CountPair own_counts = {0};
        const uint32_t end = min(range.count, group + 2 * WARP);
        for (uint32_t q = group + 2 * groups.group(); q < end; q += 2 * groups.groups()) {
            MantissaCounter outranking, intersecting;
            compare_items<CountPair::FIRST, 1>(key, proxy, tile, q, outranking, intersecting);
            compare_items<CountPair::SECOND, 1u << MAP_ITEMS_PER_THREAD>(key, proxy, tile, q + 1,
                                                                         outranking, intersecting);
            const uint32_t counts = warp_sum(outranking.count());
            own_counts.bits = q == own ? counts : own_counts.bits;
            const uint32_t pairs = intersecting.count();
            if (__any_sync(ALL_LANES, pairs != 0)) {
                queue.add(pairs != 0, QueueEntry::encode(pairs, q, lane));
                while (queue.length >= WARP) {
                    queue.test(tile, workspace, groups, from, warp_from, WARP);
                }
            }
        }
        if (own_counts.bits != 0) {
            atomicAdd(&tile.rank[own], own_counts.first());
            atomicAdd(&tile.rank[own + 1], own_counts.second());
        }
    }
    while (queue.rest() != 0) {
        queue.test(tile, workspace, groups, from, warp_from, min(queue.length, WARP));
    }
}

// compare_tile with the fewest items per thread, up to `Items`, that cover the remaining
// candidates.
template <typename Map, uint32_t Items, bool IsBatch>
DEVICE void compare_tile_up_to(typename Map::Tile &tile, const Workspace &workspace,
                               const TileRange &range, uint32_t from) {
    if constexpr (Map::fewer_items(Items) != 0) {
        constexpr uint32_t FEWER = Map::fewer_items(Items);
        if (range.candidates - from <= FEWER * MAP_THREADS) {
            return compare_tile_up_to<Map, FEWER, IsBatch>(tile, workspace, range, from);
        }
    }
    compare_tile<Map, Items>(tile, workspace, range, OneGroup<IsBatch>(), from);
}

// Lanes that copy one query. Most lists have fewer words, and a block has more queries than warps.
#define SCATTER_LANES (WARP / 2)

// Stores the queries by rank, up to but excluding rank `limit`.
template <typename Map>
DEVICE void scatter(const QueryTile &tile, const Workspace &workspace, const TileRange &range,
                    uint32_t limit) {
    const uint32_t member = threadIdx.x % SCATTER_LANES;
    for (uint32_t q = threadIdx.x / SCATTER_LANES; q < range.count;
         q += MAP_THREADS / SCATTER_LANES) {
        const ConflictList &list = tile.conflicts[q];
        const uint32_t rank = tile.rank[q], count = list.count;
        if (rank >= limit) {
            continue;
        }
        const uint32_t *const from = (const uint32_t *)&list;
        uint32_t *const to = (uint32_t *)&workspace.conflicts[rank];
        const uint32_t words =
            CONFLICT_LIST_WORDS - CONFLICT_LIST_CAPACITY + min(count, CONFLICT_LIST_CAPACITY);
        for (uint32_t i = member; i < words; i += SCATTER_LANES) {
            to[i] = from[i];
        }
        if (member == 0) {
            const RankKey key = tile.key[q];
            RankedCandidate candidate;
            candidate.box = tile.box[q];
            candidate.score = key.score();
            candidate.class_index = tile.class_index[q];
            candidate.index = key.index();
            candidate.slot = Map::ranked_slot(list.own_slot);
            workspace.ranked[rank] = candidate;
            const Decision decision = count == 0 ? Decision::encode(Decision::SURVIVES, 1)
                                                 : Decision::encode(Decision::UNDECIDED, 0);
            workspace.decision_by_slot[list.own_slot] = decision.bits;
            workspace.decision_by_rank[rank] = decision.bits;
        }
    }
}

template <typename Map, bool IsBatch>
DEVICE void map_candidates(void *workspaces, uint64_t stride) {
    BLOCK_SHARED(typename Map::Tile, tile);
    grid_dependency_wait();
    Header *const header = group_header<IsBatch>(workspaces, stride);
    const uint32_t candidates = candidate_count(header), limit = ranked_count(header);
    // Tested in one condition, so that all words are loaded before the branch.
    if ((blockIdx.x >= candidates) | is_sorted(header)) {
        return;
    }
    const Workspace workspace(header, header->params.capacity);
    const uint32_t share = (candidates - blockIdx.x - 1) / gridDim.x + 1;
    uint32_t first = 0;
    do { // A do loop, so that the first tile need not wait for the division.
        const TileRange range{first, min(share - first, QUERY_TILE), candidates};
        if (IsBatch && (Map::HAS_GROUPS_FOR_SINGLE_IMAGES || gridDim.y > 1) &&
            WarpGroups::suffice(candidates)) {
            compare_tile<Map, MAP_ITEMS_PER_GROUP_THREAD>(tile, workspace, range,
                                                          WarpGroups(candidates), 0);
        } else {
            for (uint64_t from = 0; from < candidates; from += Map::ITEMS * MAP_THREADS) {
                compare_tile_up_to<Map, Map::ITEMS, IsBatch>(tile, workspace, range,
                                                             uint32_t(from));
            }
        }
        __syncthreads();
        scatter<Map>(tile, workspace, range, limit);
        __syncthreads();
        first += QUERY_TILE;
    } while (first < share);
}

KERNEL(MAP_THREADS, 1) map(void *workspaces, uint64_t stride) {
    map_candidates<MapUpright, false>(workspaces, stride);
}
KERNEL(MAP_THREADS, 1) map_batch(void *workspaces, uint64_t stride) {
    map_candidates<MapUpright, true>(workspaces, stride);
}
