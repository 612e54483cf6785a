// Map: how many outrank each candidate, which gives its place, and which of them meet it.
//
// A block asks about its share of the candidates, which lie in shared memory; its threads hold all
// candidates in registers, a few at a time, and answer. Most pairs are told apart by their outlines
// alone; those that are not wait in a queue, and are tested a warp at a time. A candidate that none
// meets is a root: it survives whatever becomes of others.
#pragma once

#include "outline.cuh"

#define MAP_WARPS (MAP_THREADS / WARP)
// Candidates that a block asks about at a time.
#define ASKED 128u
// Candidates that a thread holds at most, so that they stay in registers.
#define MOST_HELD 8u

struct Questions {
    Outline outline[ASKED];
    uint64_t key[ASKED];
    float4 box[ASKED];
    uint32_t class_index[ASKED];
    uint32_t outranking[ASKED];
    uint32_t hits[ASKED][HIT_WORDS];
    // Of each warp, what a lane found near to two questions: a bit for each candidate that it holds
    // and each of the two, then the first question, then the lane.
    uint32_t queue[MAP_WARPS][2 * WARP];
};
#define NEAR_BITS (2 * MOST_HELD)
#define LANE_SHIFT 27
static_assert(ASKED % 2 == 0, "questions are answered in pairs");
static_assert(ASKED <= 1u << (LANE_SHIFT - NEAR_BITS), "room for the question");
// The counts of the two share a word: what the second's counts for.
#define SECOND 4096u
static_assert(MOST_HELD * WARP < SECOND, "a warp's count of the first has room");
static_assert(NEAR_BITS <= 23 && SECOND * MOST_HELD < 1u << 23, "exact as floats");

// What a block is about: of its share of the candidates, `count` from the `first`. A block's are
// far apart, since the nearest are often of one object, and their pairs would all be one warp's.
struct Batch {
    uint32_t first, count, candidates;

    DEVICE uint32_t slot(uint32_t question) const {
        return blockIdx.x + (first + question) * gridDim.x;
    }
};

DEVICE void ask(Questions &questions, const Workspace &workspace, const Batch &batch,
                const Rule &rule, bool wants_hits) {
    if (threadIdx.x == 0 && batch.count % 2 != 0) {
        // Makes a pair of the last: none outranks it.
        questions.key[batch.count] = ~uint64_t(0);
        questions.outline[batch.count] = nowhere();
    }
    for (uint32_t q = threadIdx.x; q < batch.count; q += MAP_THREADS) {
        const uint32_t slot = batch.slot(q);
        const float4 box = workspace.found_box[slot];
        questions.outline[q] = wants_hits ? outline_of(box, rule) : nowhere();
        questions.box[q] = box;
        questions.key[q] = workspace.found_key[slot];
        questions.class_index[q] = workspace.found_class[slot];
        questions.outranking[q] = 0;
        questions.hits[q][0] = 0;
        questions.hits[q][1] = slot;
    }
}

// Pairs of the warp that wait to be tested.
struct Queue {
    uint32_t *entries;
    uint32_t length;

    // For all lanes to call.
    DEVICE void add(bool wanted, uint32_t entry) {
        const uint32_t all = __ballot_sync(ALL_LANES, wanted);
        if (wanted) {
            entries[length + votes_before(all)] = entry;
        }
        length += __popc(all);
        __syncwarp();
    }

    // Tests a pair of each of the last `count` entries, at most 32, and notes those that meet.
    // `from`: the slot of the block's first candidate.
    DEVICE void test(Questions &questions, const Workspace &workspace, uint32_t from,
                     uint32_t count) {
        const Rule rule(workspace.header->frame); // again: registers are short
        length -= count;
        uint32_t entry = 0;
        if (lane_index() < count) {
            entry = entries[length + lane_index()];
            const uint32_t bit = __ffs(entry) - 1;
            const uint32_t q =
                (entry >> NEAR_BITS & ((1u << (LANE_SHIFT - NEAR_BITS)) - 1)) + bit / MOST_HELD;
            const uint32_t slot = from + bit % MOST_HELD * MAP_THREADS + warp_index() * WARP +
                                  (entry >> LANE_SHIFT);
            // Looked up only where it counts.
            const uint32_t class_index = rule.class_agnostic ? 0 : workspace.found_class[slot];
            const float4 box = workspace.found_box[slot];
            // Boxes far out touch nowhere, too: of infinities in half precision nothing can be said.
            if (workspace.header->frame.method != NONE && overlaps(box, questions.box[q], rule) &&
                concerns(class_index, questions.class_index[q], rule)) {
                const uint32_t at = atomicAdd(&questions.hits[q][0], 1u);
                if (at < HIT_ROOM) {
                    questions.hits[q][HIT_WORDS - HIT_ROOM + at] = slot;
                }
            }
            entry &= entry - 1;
        }
        __syncwarp();
        add((entry & ((1u << NEAR_BITS) - 1)) != 0, entry);
    }
};

// Compares each of `Held` candidates, from number `K` on, with a question: a bit for each.
template <uint32_t Unit, uint32_t FirstBit, uint32_t Held, uint32_t K = 0>
DEVICE void compare_all(const uint64_t (&key)[Held], const Outline (&outline)[Held],
                        const Questions &questions, uint32_t q, float &outranking, float &near) {
    if constexpr (K < Held) {
        compare<Unit, FirstBit << K>(key[K], outline[K], questions.key[q], questions.outline[q],
                                     outranking, near);
        compare_all<Unit, FirstBit, Held, K + 1>(key, outline, questions, q, outranking, near);
    }
}

// Answers all questions for `Held` candidates per thread, of which the block's first is at slot
// `from`; where that is 0, asks them first, while the candidates are on their way.
template <uint32_t Held>
DEVICE void answer(Questions &questions, const Workspace &workspace, const Batch &batch,
                   uint32_t from) {
    float4 box[Held];
    uint64_t key[Held];
#pragma unroll
    for (uint32_t k = 0; k < Held; k++) {
        const uint32_t slot = from + k * MAP_THREADS + threadIdx.x;
        const bool is_there = slot < batch.candidates;
        box[k] = workspace.found_box[is_there ? slot : 0];
        key[k] = is_there ? workspace.found_key[slot] : 0; // 0 outranks none
    }
    const Rule rule(workspace.header->frame);
    const bool wants_hits = workspace.header->frame.method != NONE;
    keep_order();
    if (from == 0) {
        ask(questions, workspace, batch, rule, wants_hits);
    }
    Outline outline[Held];
#pragma unroll
    for (uint32_t k = 0; k < Held; k++) {
        outline[k] = outline_of(box[k], rule);
    }
    if (from == 0) {
        __syncthreads();
    }
    const uint32_t lane = lane_index();
    if (from + threadIdx.x - lane >= batch.candidates) {
        return;
    }
    Queue queue{questions.queue[warp_index()], 0};
    for (uint32_t group = 0; group < batch.count; group += 2 * WARP) {
        const uint32_t own = group + 2 * lane; // and the next: whose counts the lane gathers
        uint32_t outranking_own = 0;
        for (uint32_t q = group; q < lesser(batch.count, group + 2 * WARP); q += 2) {
            float outranking = NOTHING, nears = NOTHING;
            compare_all<1, 1>(key, outline, questions, q, outranking, nears);
            compare_all<SECOND, 1u << MOST_HELD>(key, outline, questions, q + 1, outranking, nears);
            const uint32_t both = warp_sum(counted(outranking));
            outranking_own = q == own ? both : outranking_own;
            const uint32_t near = counted(nears);
            if (__any_sync(ALL_LANES, near != 0)) {
                queue.add(near != 0, near | q << NEAR_BITS | lane << LANE_SHIFT);
                while (queue.length >= WARP) {
                    queue.test(questions, workspace, from, WARP);
                }
            }
        }
        // Warps add to the same counts as seldom as can be.
        if (outranking_own != 0) {
            atomicAdd(&questions.outranking[own], outranking_own % SECOND);
            atomicAdd(&questions.outranking[own + 1], outranking_own / SECOND);
        }
    }
    while (queue.length != 0) {
        queue.test(questions, workspace, from, lesser(queue.length, WARP));
    }
}

// With few per thread where few are left.
template <uint32_t Held>
DEVICE void answer_up_to(Questions &questions, const Workspace &workspace, const Batch &batch,
                         uint32_t from) {
    if constexpr (Held > 1) {
        constexpr uint32_t FEWER = Held > 4 ? Held - 2 : Held - 1;
        if (batch.candidates - from <= FEWER * MAP_THREADS) {
            return answer_up_to<FEWER>(questions, workspace, batch, from);
        }
    }
    answer<Held>(questions, workspace, batch, from);
}

// Lanes that put a candidate into its place: few have more hits than that, and a block has more
// candidates than warps.
#define PLACERS (WARP / 2)

// Puts the candidates asked about into their places, but for those beyond `limit`.
DEVICE void place(const Questions &questions, const Workspace &workspace, const Batch &batch,
                  uint32_t limit) {
    const uint32_t member = threadIdx.x % PLACERS;
    for (uint32_t q = threadIdx.x / PLACERS; q < batch.count; q += MAP_THREADS / PLACERS) {
        const uint32_t rank = questions.outranking[q], hits = questions.hits[q][0];
        if (rank >= limit) {
            continue;
        }
        const uint32_t words = HIT_WORDS - HIT_ROOM + lesser(hits, HIT_ROOM);
        for (uint32_t i = member; i < words; i += PLACERS) {
            workspace.hits[uint64_t(rank) * HIT_WORDS + i] = questions.hits[q][i];
        }
        if (member == 0) {
            const uint64_t key = questions.key[q];
            Ranked ranked;
            ranked.box = questions.box[q];
            ranked.score = key_score(key);
            ranked.class_index = questions.class_index[q];
            ranked.index = key_index(key);
            ranked.reserved = 0;
            workspace.ranked[rank] = ranked;
            const uint32_t state = hits == 0 ? SURVIVES | 1u << CHAIN_SHIFT : UNDECIDED;
            workspace.state[questions.hits[q][1]] = state;
            workspace.fate[rank] = state;
        }
    }
}

KERNEL(MAP_THREADS, 1) map(void *memory) {
    BLOCK_SHARED(Questions, questions);
    take_turn();
    const Header *const header = (const Header *)memory;
    const uint32_t candidates = stored(header), limit = contenders(header);
    if (blockIdx.x >= candidates) {
        return;
    }
    const Workspace workspace(memory, header->frame.capacity);
    const uint32_t share = (candidates - blockIdx.x - 1) / gridDim.x + 1;
    uint32_t first = 0;
    do { // The first round does not wait for the division.
        const Batch batch{first, lesser(share - first, ASKED), candidates};
        for (uint64_t from = 0; from < candidates; from += MOST_HELD * MAP_THREADS) {
            answer_up_to<MOST_HELD>(questions, workspace, batch, uint32_t(from));
        }
        __syncthreads();
        place(questions, workspace, batch, limit);
        __syncthreads();
        first += ASKED;
    } while (first < share);
}
