// SPDX-License-Identifier: MIT OR Apache-2.0
// Map for oriented boxes. In and out: see map.cuh; the candidates' rectangles are a further input.
// Pairs go through three tests. The first compares the proxy boxes of the bounds. The second checks
// the bounds, the classes and an upper bound of the intersection's area. The third is the exact
// test, which takes ten times as long. Pairs wait in a queue of the warp between two tests, so that
// every lane has a pair to test.
#pragma once

#include "map.cuh"
#include "overlap_oriented.cuh"

// The first pair of an entry.
struct FirstPair {
    uint32_t query, slot;

    template <typename Groups>
    DEVICE FirstPair(QueueEntry entry, const Groups &groups, uint32_t from, uint32_t warp_from) {
        const uint32_t pair = entry.first_pair();
        query = entry.first_query() + pair / MAP_ITEMS_PER_THREAD;
        slot = groups.slot(from, warp_from, pair % MAP_ITEMS_PER_THREAD, entry.lane());
    }
};

struct OrientedTile : QueryTile {
    uint32_t exact_queue[MAP_WARPS][2 * WARP]; // of each warp: QueueEntry::bits with one pair
};

// A warp's pairs that wait for the second or the third test.
struct OrientedQueue : PairQueue {
    PairQueue exact;

    DEVICE uint32_t rest() const { return length + exact.length; }

    // Tests one pair from each of the last `count` entries, at most WARP entries, and adds pairs
    // that may conflict to the other queue.
    template <typename Groups>
    DEVICE void select(QueryTile &tile, const Workspace &workspace, const Groups &groups,
                       uint32_t from, uint32_t warp_from, uint32_t count) {
        OverlapRule rule(workspace.header->params); // loaded again, to save registers
        length -= count;
        QueueEntry entry = {0}, pair = {0};
        bool is_selected = false;
        if (lane_index() < count) {
            entry.bits = entries[length + lane_index()];
            pair = entry.only_first_pair();
            const FirstPair first(entry, groups, from, warp_from);
            const uint32_t q = first.query, slot = first.slot;
            const uint32_t own_slot = tile.conflicts[q].own_slot;
            const uint32_t class_index = rule.class_agnostic ? 0 : workspace.candidate_class[slot];
            const float4 box = workspace.candidate_box[slot];
            rule.set_class(workspace.header->params, tile.class_index[q]);
            // With METHOD_NONE, coordinates that are infinite in half precision let pairs reach
            // this test.
            is_selected =
                workspace.header->params.method != METHOD_NONE &&
                classes_conflict(class_index, tile.class_index[q], rule) &&
                may_conflict(box, tile.box[q], workspace.rectangle[slot].shape.z,
                             workspace.rectangle[own_slot].shape.z, rule);
            entry.remove_first_pair();
        }
        __syncwarp();
        add(entry.pairs() != 0, entry);
        exact.add(is_selected, pair);
    }

    // Tests the last `count` pairs of the other queue exactly.
    template <typename Groups>
    DEVICE void test_exactly(QueryTile &tile, const Workspace &workspace, const Groups &groups,
                             uint32_t from, uint32_t warp_from, uint32_t count) {
        OverlapRule rule(workspace.header->params);
        exact.length -= count;
        if (lane_index() < count) {
            const QueueEntry entry = {exact.entries[exact.length + lane_index()]};
            const FirstPair pair(entry, groups, from, warp_from);
            const uint32_t own_slot = tile.conflicts[pair.query].own_slot;
            rule.set_class(workspace.header->params, tile.class_index[pair.query]);
            const Rectangle higher = load_rectangle(workspace, pair.slot);
            const Rectangle lower = load_rectangle(workspace, own_slot);
            if (rectangles_conflict(higher, lower, rule)) {
                add_conflict(tile, pair.query, pair.slot);
            }
        }
        __syncwarp();
    }

    // Takes the next `count` entries, at most WARP. The pairs of the other queue are tested as soon
    // as it has enough for all lanes. A smaller `count` means that no entries follow.
    template <typename Groups>
    DEVICE void test(QueryTile &tile, const Workspace &workspace, const Groups &groups,
                     uint32_t from, uint32_t warp_from, uint32_t count) {
        select(tile, workspace, groups, from, warp_from, count);
        if (exact.length >= WARP || (count < WARP && length == 0)) {
            test_exactly(tile, workspace, groups, from, warp_from, min(exact.length, WARP));
        }
    }
};

struct MapOriented {
    typedef OrientedTile Tile;
    typedef OrientedQueue Queue;

    // Bounds are not shrunk: two boxes may intersect in a small part of their bounds only.
    static DEVICE ProxyBox proxy(const float4 &box, const OverlapRule &) {
        return ProxyBox{pack_half2(box.x, box.y), pack_half2(box.z, box.w)};
    }
    static DEVICE Queue queue(Tile &tile) {
        const uint32_t warp = warp_index();
        return {{tile.queue[warp], 0}, {tile.exact_queue[warp], 0}};
    }
    static DEVICE uint32_t ranked_slot(uint32_t own_slot) { return own_slot; }
    // The exact test is long and needs many registers, so compare_tile is compiled for a single
    // number of items.
    static constexpr uint32_t ITEMS = 4;
    static NMSFILTER_HOST_DEVICE constexpr uint32_t fewer_items(uint32_t) { return 0; }
    static constexpr bool HAS_GROUPS_FOR_SINGLE_IMAGES = true;
};

KERNEL(MAP_THREADS, 1) map_oriented(void *workspaces, uint64_t stride) {
    map_candidates<MapOriented, true>(workspaces, stride);
}
