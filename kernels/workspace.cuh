// What passes from kernel to kernel, in device memory.
#pragma once

#include "portable.cuh"

struct Header {
    uint32_t candidates; // counted up by decode, also beyond frame.capacity
    uint32_t rejected;   // likewise
    uint32_t rounds;     // the longest chain of decisions
    uint64_t start_time;      // by the device's clock
    KernelParams params; // as decode was given it
};
static_assert(sizeof(Header) <= HEADER_BYTES, "the header's room");

// Of a candidate, in the two lowest bits; the bits above are the length of the chain of decisions
// that led there.
enum : uint32_t { UNDECIDED = 0, SURVIVES = 1, SUPPRESSED = 2, DECISION = 3, DEPTH_SHIFT = 2 };

// A candidate in its place, beginning with the words of a Detection.
struct alignas(16) Ranked {
    float4 box; // x1, y1, x2, y2
    float score;
    uint32_t class_index;
    uint32_t index; // as the key's
    uint32_t reserved;
};

// Of a candidate's hits, those that outrank it and meet it: how many there are, the candidate's own
// slot, then theirs, of as many as there is room for.
#define CONFLICT_LIST_WORDS 64u
#define CONFLICT_LIST_CAPACITY (CONFLICT_LIST_WORDS - 2)
static_assert(CONFLICT_LIST_WORDS == 2 * WARP, "two to a lane");

// The arrays behind the header, each of padded(frame.capacity) elements.
struct Workspace {
    Header *header;

    // By slot, the order in which warps of decode arrive.
    float4 *candidate_box;
    uint64_t *candidate_key;
    uint32_t *candidate_class;
    uint32_t *decision_by_slot;

    // By rank.
    Ranked *ranked;
    uint32_t *conflicts; // HIT_WORDS each
    uint32_t *decision_by_rank; // as `state`

    DEVICE Workspace(void *memory, uint32_t capacity) {
        const uint64_t n = padded(capacity);
        header = (Header *)memory;
        char *const arrays = (char *)memory + HEADER_BYTES;
        conflicts = (uint32_t *)arrays;
        ranked = (Ranked *)(arrays + n * 256);
        candidate_box = (float4 *)(arrays + n * 288);
        candidate_key = (uint64_t *)(arrays + n * 304);
        candidate_class = (uint32_t *)(arrays + n * 312);
        decision_by_slot = (uint32_t *)(arrays + n * 316);
        decision_by_rank = (uint32_t *)(arrays + n * 320);
    }
};

// Greater is higher in rank: score descending, then `index` ascending, which is the anchor, or with
// multi_label that of the pair: anchor * classes + class. Scores are finite and never minus zero.
DEVICE uint64_t rank_key(float score, uint32_t index) {
    const uint32_t bits = __float_as_uint(score);
    const uint32_t ordered = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
    return uint64_t(ordered) << 32 | uint32_t(~index);
}
DEVICE uint32_t key_index(uint64_t key) { return ~uint32_t(key); }
DEVICE float key_score(uint64_t key) {
    const uint32_t ordered = uint32_t(key >> 32);
    return __uint_as_float((ordered & 0x80000000u) ? ordered & 0x7fffffffu : ~ordered);
}

// How many candidates there are in the workspace: none where there was not room for all.
DEVICE uint32_t candidate_count(const Header *header) {
    const uint32_t found = header->candidates;
    return found <= header->params.capacity ? found : 0;
}

// How many of them enter suppression.
DEVICE uint32_t ranked_count(const Header *header) {
    const uint32_t there = candidate_count(header), cap = header->params.max_candidates;
    return cap != 0 && cap < there ? cap : there;
}
