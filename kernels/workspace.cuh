// SPDX-License-Identifier: MIT OR Apache-2.0
// The workspace: data that the kernels pass to one another in device memory. In: the address of all
// groups' workspaces and their stride. Out: the typed arrays of one group, and the packed words in
// them.
//
// A group's header comes first. These arrays follow it, each with padded(capacity) elements:
//
//   array              element          indexed by  written by    read by           bytes
//   conflicts          ConflictList     rank        map           reduce            256
//   ranked             RankedCandidate  rank        map           reduce, publish    32
//   candidate_box      float4           slot        decode        map                16
//   candidate_key      RankKey          slot        decode        map                 8
//   candidate_class    uint32_t         slot        decode        map                 4
//   decision_by_slot   Decision         slot        map, reduce   reduce              4
//   decision_by_rank   Decision         rank        map, reduce   reduce, publish     4
//   rectangle          StoredRectangle  slot        decode        map, reduce        32
//
// Only kernels for oriented boxes have memory for rectangles and access it. candidate_box holds the
// bounds of oriented boxes. Graphs with a capacity above KernelParams::sort_limit have a SortState
// and the following arrays in place of rectangles. The arrays of the first three lines share the
// memory of the conflicts, and are in use before the conflicts are:
//
//   array              element          indexed by   written by    read by                  bytes
//   bucket_places      BucketPlaces     slot         sort_count    sort_scatter             16
//   position_key       uint64_t         slot         sort_count    sort_scatter              8
//   rank_entries, position_entries
//                      SortEntry        bucket       sort_scatter  sort_rank            2 x 16
//   rank_by_slot       uint32_t         slot         sort_rank     chunk_filter              4
//   slot_by_position   uint32_t         position     sort_rank     chunk_filter              4
//   leaf_box           float4           leaf, lane   chunk_filter  chunk kernels            16
//   leaf_rank          uint32_t         leaf, lane   chunk_filter  chunk kernels             4
//   leaf_class         uint32_t         leaf, lane   chunk_filter  chunk kernels             4
//   leaf_bounds        float4           leaf         chunk_filter  chunk kernels
//   leaf_classes, leaf_candidates
//                      uint32_t         leaf         chunk_filter  chunk kernels
//   leaf_suppressors   uint32_t         leaf         chunk kernels chunk_filter
//
// A slot is a candidate's position in the order in which decode's warps append candidates, so it
// differs from run to run. A rank is a candidate's position in the order of the keys, so it is
// equal in every run. Decisions are kept by both: conflict lists contain slots, because map finds
// conflicts before ranks are known.
#pragma once

#include "portable.cuh"

struct Header {
    uint32_t candidates;      // counted by decode, also beyond params.capacity; reset by publish
    uint32_t rejected;        // likewise
    uint32_t rounds;          // the greatest depth of a decision; likewise
    uint32_t first_image;     // of the group
    uint32_t published;       // survivors that blocks of publish have written; reset by publish
    uint32_t finished_blocks; // likewise: blocks of publish that have written theirs
    uint64_t start_time;      // device_clock at the start of decode
    KernelParams params;      // decode's argument
};
static_assert(sizeof(Header) <= HEADER_BYTES, "the header's memory");

// A candidate's place in the order, as one number. A greater key outranks a lesser one: scores
// descend, and candidates with equal scores are ordered by ascending `index`. The index is the
// anchor, or with multi_label anchor * classes + class; an image's anchors are counted after the
// anchors of the group's earlier images. Scores are finite and never minus zero.
struct RankKey {
    uint64_t bits;

    static DEVICE RankKey encode(float score, uint32_t index) {
        const uint32_t bits = __float_as_uint(score);
        const uint32_t ordered = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
        return RankKey{uint64_t(ordered) << 32 | uint32_t(~index)};
    }
    DEVICE float score() const {
        const uint32_t ordered = uint32_t(bits >> 32);
        return __uint_as_float((ordered & 0x80000000u) ? ordered & 0x7fffffffu : ~ordered);
    }
    DEVICE uint32_t index() const { return ~uint32_t(bits); }

    // A key that outranks no other key, and a key that no other key outranks.
    static DEVICE RankKey lowest() { return RankKey{0}; }
    static DEVICE RankKey highest() { return RankKey{~uint64_t(0)}; }
};

// The decision about a candidate, with its dependency depth: the length of the longest sequence of
// decisions that ends with this one, in which each decision depends on the one before.
struct Decision {
    enum Kind : uint32_t { UNDECIDED = 0, SURVIVES = 1, SUPPRESSED = 2 };

    uint32_t bits;

    static DEVICE Decision encode(uint32_t kind, uint32_t depth) {
        return Decision{kind | depth << 2};
    }
    DEVICE uint32_t kind() const { return bits & 3; }
    DEVICE uint32_t depth() const { return bits >> 2; }
};

// A candidate by rank. Its first words are laid out like a Detection.
struct alignas(16) RankedCandidate {
    float4 box; // x1, y1, x2, y2
    float score;
    uint32_t class_index;
    uint32_t index; // RankKey::index
    uint32_t slot;  // of an oriented candidate; of a sorted one leaf * LEAF_CANDIDATES + lane; else 0
};

// A Rectangle (oriented.cuh).
struct StoredRectangle {
    float4 place; // x, y, half_width, half_height
    float4 shape; // cos, sin, area, 0
};
static_assert(sizeof(StoredRectangle) == RECTANGLE_BYTES, "interface.cuh");

// The candidates that outrank a candidate and conflict with it. If `count` exceeds the capacity of
// `slots`, reduce compares the candidate with all candidates that outrank it.
#define CONFLICT_LIST_WORDS 64u
#define CONFLICT_LIST_CAPACITY (CONFLICT_LIST_WORDS - 2)
struct ConflictList {
    uint32_t count;
    uint32_t own_slot;
    uint32_t slots[CONFLICT_LIST_CAPACITY];
};
static_assert(CONFLICT_LIST_WORDS == 2 * WARP, "a lane loads two words");
static_assert(sizeof(ConflictList) == CONFLICT_LIST_WORDS * 4, "no padding");

// The most buckets that a sort uses.
#define SORT_BUCKETS 1024u

// For each of the two sorts, by rank and by position: a candidate's bucket, and its number in the
// bucket, in no particular order.
enum : uint32_t { BY_RANK = 0, BY_POSITION = 1 };
struct alignas(16) BucketPlaces {
    uint32_t bucket[2], number[2];
};

// A candidate in a bucket. All keys differ, and a sort puts entries in ascending order of their
// keys.
struct alignas(16) SortEntry {
    uint64_t key;
    uint32_t slot, bucket;
};

// Counts of a group whose candidates are sorted.
struct SortState {
    uint32_t count[2][SORT_BUCKETS];     // entries of each bucket; reset by chunk_filter
    uint32_t first[2][SORT_BUCKETS + 1]; // the entries before each bucket
    uint32_t chunk_first[MAX_CHUNKS + 1]; // the candidates in chunks before, by rank and by position
    uint32_t leaf_first[MAX_CHUNKS + 1];  // the leaves of chunks before
};
static_assert(sizeof(SortState) <= SORT_STATE_BYTES && SORT_STATE_BYTES % 256 == 0,
              "the memory of the state");

// The image group that a block of map or a later kernel handles. Kernels for a single group have no
// instructions for it.
template <bool IsBatch> DEVICE uint32_t group_index() { return IsBatch ? blockIdx.y : 0; }

// The header of the block's group, with which its workspace begins.
template <bool IsBatch> DEVICE Header *group_header(void *workspaces, uint64_t stride) {
    return (Header *)((char *)workspaces + group_index<IsBatch>() * stride);
}

// Explains the index of a group's candidate (RankKey::index).
struct GroupIndices {
    uint32_t classes;     // the divisor of a pair's index; 0 where candidates are anchors
    uint32_t anchors;     // of an image; 0 where every image is a group
    uint32_t first_image; // of the group

    DEVICE explicit GroupIndices(const Header *header)
        : classes(header->params.multi_label != 0 ? header->params.classes : 0),
          anchors(header->params.placed_images != 0 ? header->params.anchors : 0),
          first_image(header->first_image) {}
};

// An anchor of an image.
struct ImageAnchor {
    uint32_t image, anchor;

    DEVICE ImageAnchor(const GroupIndices &of, uint32_t index)
        : image(of.first_image), anchor(of.classes == 0 ? index : index / of.classes) {
        if (of.anchors != 0) {
            const uint32_t images_before = anchor / of.anchors;
            image += images_before;
            anchor -= images_before * of.anchors;
        }
    }
};

// The workspace of one group of images.
struct Workspace {
    Header *header;
    ConflictList *conflicts;
    RankedCandidate *ranked;
    float4 *candidate_box;
    RankKey *candidate_key;
    uint32_t *candidate_class;
    uint32_t *decision_by_slot; // Decision::bits: words for relaxed accesses
    uint32_t *decision_by_rank;
    StoredRectangle *rectangle;
    SortState *sort;
    BucketPlaces *bucket_places;
    uint64_t *position_key;
    SortEntry *rank_entries, *position_entries;
    uint32_t *rank_by_slot, *slot_by_position;
    float4 *leaf_box;
    uint32_t *leaf_rank, *leaf_class;
    float4 *leaf_bounds;
    uint32_t *leaf_classes, *leaf_candidates, *leaf_suppressors;

    // For each array, the bytes per candidate of all arrays before it.
    enum Offset : uint64_t {
        CONFLICTS = 0,
        RANKED = CONFLICTS + sizeof(ConflictList),
        CANDIDATE_BOX = RANKED + sizeof(RankedCandidate),
        CANDIDATE_KEY = CANDIDATE_BOX + sizeof(float4),
        CANDIDATE_CLASS = CANDIDATE_KEY + sizeof(RankKey),
        DECISION_BY_SLOT = CANDIDATE_CLASS + sizeof(uint32_t),
        DECISION_BY_RANK = DECISION_BY_SLOT + sizeof(uint32_t),
        END = DECISION_BY_RANK + sizeof(uint32_t),
    };

    DEVICE Workspace(Header *header, uint32_t capacity) : header(header) {
        const uint64_t n = padded(capacity);
        char *const arrays = (char *)header + HEADER_BYTES;
        conflicts = (ConflictList *)(arrays + n * CONFLICTS);
        ranked = (RankedCandidate *)(arrays + n * RANKED);
        candidate_box = (float4 *)(arrays + n * CANDIDATE_BOX);
        candidate_key = (RankKey *)(arrays + n * CANDIDATE_KEY);
        candidate_class = (uint32_t *)(arrays + n * CANDIDATE_CLASS);
        decision_by_slot = (uint32_t *)(arrays + n * DECISION_BY_SLOT);
        decision_by_rank = (uint32_t *)(arrays + n * DECISION_BY_RANK);
        rectangle = (StoredRectangle *)(arrays + n * END);

        bucket_places = (BucketPlaces *)arrays;
        rank_entries = (SortEntry *)(bucket_places + n);
        position_entries = rank_entries + n;
        position_key = (uint64_t *)(position_entries + n);
        sort = (SortState *)((char *)header + sort_state_offset(capacity));
        const uint64_t leaves = leaf_capacity(capacity);
        rank_by_slot = (uint32_t *)((char *)sort + SORT_STATE_BYTES);
        slot_by_position = rank_by_slot + n;
        leaf_box = (float4 *)(slot_by_position + n);
        leaf_bounds = leaf_box + leaves * LEAF_CANDIDATES;
        leaf_rank = (uint32_t *)(leaf_bounds + leaves);
        leaf_class = leaf_rank + leaves * LEAF_CANDIDATES;
        leaf_classes = leaf_class + leaves * LEAF_CANDIDATES;
        leaf_candidates = leaf_classes + leaves;
        leaf_suppressors = leaf_candidates + leaves;
    }
};
static_assert(Workspace::END == BYTES_PER_CANDIDATE, "interface.cuh");
static_assert(sizeof(BucketPlaces) + 2 * sizeof(SortEntry) + sizeof(uint64_t) <= sizeof(ConflictList),
              "the memory of the conflicts has the arrays of the sort");
static_assert(LEAF_CANDIDATES == WARP, "a lane has a candidate of a leaf");

// The number of candidates in the workspace: 0 if it lacks memory for all candidates.
DEVICE uint32_t candidate_count(const Header *header) {
    const uint32_t counted = header->candidates;
    return counted <= header->params.capacity ? counted : 0;
}

// The number of candidates that take part in suppression: the highest ranks, up to max_candidates.
DEVICE uint32_t ranked_count(const Header *header) {
    const uint32_t count = candidate_count(header), cap = header->params.max_candidates;
    return cap != 0 && cap < count ? cap : count;
}

// True if the candidates are sorted, so that the kernels sort_* and chunk_* decide them instead of
// map and reduce.
DEVICE bool is_sorted(const Header *header) {
    return candidate_count(header) > header->params.sort_limit;
}
