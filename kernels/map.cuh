// Map: how many outrank each candidate, which gives its place, and which of them meet it.
//
// A block asks about its share of the candidates, which lie in shared memory; its threads hold all
// candidates in registers, a few at a time, and answer. Most pairs are told apart by two edges'
// comparison; those that are not wait in a queue, and are tested a warp at a time. A candidate that
// none meets is a root: it survives whatever becomes of others.
#pragma once

#include "overlap.cuh"

#define MAP_WARPS (MAP_THREADS / WARP)
// Candidates that a block asks about at a time.
#define ASKED 128u
// Candidates that a thread holds at most, so that they stay in registers: older GPUs give a block
// half as many.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MOST_HELD 8u
#else
#define MOST_HELD 2u
#endif

// Pairs of a warp that may meet. A full group is tested as soon as there is one.
struct Queue {
    uint32_t slot[2 * WARP];
    uint32_t question[2 * WARP];
};

struct Questions {
    float4 reach[ASKED]; // the box, and what a pixel offset can add: who meets it reaches in there
    uint64_t key[ASKED];
    float4 box[ASKED];
    uint32_t class_index[ASKED];
    uint32_t outranking[ASKED];
    uint32_t hits[ASKED][HIT_WORDS];
    Queue queue[MAP_WARPS];
};
static_assert(ASKED % 2 == 0, "questions are answered in pairs");

// What a block is about: of its share of the candidates, `count` from the `first`. A block's are
// far apart, since the nearest are often of one object, and their pairs would all be one warp's.
struct Batch {
    uint32_t first, count, candidates;
    bool wants_hits;

    DEVICE uint32_t slot(uint32_t question) const {
        return blockIdx.x + (first + question) * gridDim.x;
    }
};

// Whoever meets `box` touches this. Twice the offset: rounding may not lose what the exact test
// would find.
DEVICE float4 reach_of(const float4 &box, float offset) {
    const float more = times(2.0f, offset);
    float4 reach;
    reach.x = minus(box.x, more);
    reach.y = minus(box.y, more);
    reach.z = plus(box.z, more);
    reach.w = plus(box.w, more);
    return reach;
}

// What no box touches.
DEVICE float4 nowhere() {
    const float infinity = __uint_as_float(0x7f800000u);
    float4 reach;
    reach.x = reach.y = infinity;
    reach.z = reach.w = -infinity;
    return reach;
}

// Adds `Unit` to `outranking` where `key` outranks `own`; sets `Bit` of `near` where its box also
// touches `reach`. Eight instructions, as the compilers would not have it.
template <uint32_t Unit, uint32_t Bit>
DEVICE void compare(uint64_t key, const float4 &box, uint64_t own, const float4 &reach,
                    uint32_t &outranking, uint32_t &near) {
#if defined(__CUDA_ARCH__)
    asm("{\n"
        "    .reg .pred p;\n"
        "    setp.gt.u64 p, %2, %3;\n"
        "    @p add.u32 %0, %0, %4;\n"
        "    setp.le.and.f32 p, %6, %12, p;\n"
        "    setp.ge.and.f32 p, %8, %10, p;\n"
        "    setp.le.and.f32 p, %7, %13, p;\n"
        "    setp.ge.and.f32 p, %9, %11, p;\n"
        "    @p or.b32 %1, %1, %5;\n"
        "}"
        : "+r"(outranking), "+r"(near)
        : "l"(key), "l"(own), "n"(Unit), "n"(Bit), "f"(box.x), "f"(box.y), "f"(box.z), "f"(box.w),
          "f"(reach.x), "f"(reach.y), "f"(reach.z), "f"(reach.w));
#else
    if (key > own) {
        outranking += Unit;
        if (box.x <= reach.z && box.z >= reach.x && box.y <= reach.w && box.w >= reach.y) {
            near |= Bit;
        }
    }
#endif
}

// The same for each of `Held`, from number `K` on, and a bit for each.
template <uint32_t Unit, uint32_t Held, uint32_t K = 0>
DEVICE void compare_all(const uint64_t (&key)[Held], const float4 (&box)[Held], uint64_t own,
                        const float4 &reach, uint32_t &outranking, uint32_t &near) {
    if constexpr (K < Held) {
        compare<Unit, 1u << K>(key[K], box[K], own, reach, outranking, near);
        compare_all<Unit, Held, K + 1>(key, box, own, reach, outranking, near);
    }
}

DEVICE void ask(Questions &questions, const Workspace &workspace, const Batch &batch) {
    if (threadIdx.x == 0 && batch.count % 2 != 0) {
        // Makes a pair of the last: none outranks it.
        questions.key[batch.count] = ~uint64_t(0);
        questions.reach[batch.count] = nowhere();
    }
    for (uint32_t q = threadIdx.x; q < batch.count; q += MAP_THREADS) {
        const uint32_t slot = batch.slot(q);
        const float4 box = workspace.found_box[slot];
        questions.reach[q] = batch.wants_hits ? reach_of(box, workspace.header->frame.pixel_offset) : nowhere();
        questions.box[q] = box;
        questions.key[q] = workspace.found_key[slot];
        questions.class_index[q] = workspace.found_class[slot];
        questions.outranking[q] = 0;
        questions.hits[q][0] = 0;
        questions.hits[q][1] = slot;
    }
}

// Tests the first `count` pairs of the warp's queue, at most 32, and notes those that meet.
DEVICE void test(Questions &questions, const Workspace &workspace, uint32_t count) {
    const Rule rule(workspace.header->frame); // again: registers are short
    const Queue &queue = questions.queue[warp_index()];
    const uint32_t lane = lane_index();
    __syncwarp();
    if (lane < count) {
        const uint32_t slot = queue.slot[lane], q = queue.question[lane];
        // Looked up only where it counts.
        const uint32_t class_index = rule.class_agnostic ? 0 : workspace.found_class[slot];
        const float4 box = workspace.found_box[slot];
        if (overlaps(box, questions.box[q], rule) &&
            concerns(class_index, questions.class_index[q], rule)) {
            const uint32_t at = atomicAdd(&questions.hits[q][0], 1u);
            if (at < HIT_ROOM) {
                questions.hits[q][HIT_WORDS - HIT_ROOM + at] = slot;
            }
        }
    }
    __syncwarp();
}

// Answers all questions for `Held` candidates per thread, of which the block's first is at slot
// `from`; where that is 0, asks them first, while the candidates are on their way.
template <uint32_t Held>
DEVICE void answer(Questions &questions, const Workspace &workspace, const Batch &batch,
                   uint32_t from, uint32_t &queued) {
    float4 box[Held];
    uint64_t key[Held];
#pragma unroll
    for (uint32_t k = 0; k < Held; k++) {
        const uint32_t slot = from + k * MAP_THREADS + threadIdx.x;
        const bool is_there = slot < batch.candidates;
        box[k] = workspace.found_box[is_there ? slot : 0];
        key[k] = is_there ? workspace.found_key[slot] : 0; // 0 outranks none
    }
    if (from == 0) {
        ask(questions, workspace, batch);
        __syncthreads();
    }
    const uint32_t lane = lane_index(), before = (1u << lane) - 1;
    if (from + threadIdx.x - lane >= batch.candidates) {
        return;
    }
    Queue &queue = questions.queue[warp_index()];
    for (uint32_t group = 0; group < batch.count; group += WARP) {
        uint32_t outranking_own = 0; // a lane for each question of the group
        for (uint32_t q = group; q < lesser(batch.count, group + WARP); q += 2) {
            // Two questions at a time; their counts share a word.
            uint32_t outranking = 0, near[2] = {};
            compare_all<1>(key, box, questions.key[q], questions.reach[q], outranking, near[0]);
            compare_all<1u << 16>(key, box, questions.key[q + 1], questions.reach[q + 1],
                                  outranking, near[1]);
            outranking = warp_sum(outranking);
            if (lane / 2 == (q - group) / 2) {
                outranking_own = lane % 2 == 0 ? outranking & 0xffffu : outranking >> 16;
            }
            if (!__any_sync(ALL_LANES, (near[0] | near[1]) != 0)) {
                continue;
            }
#pragma unroll 1
            for (uint32_t left = near[0] | near[1] << 16; __any_sync(ALL_LANES, left != 0);
                 left &= left - 1) {
                const bool is_near = left != 0;
                const uint32_t all = __ballot_sync(ALL_LANES, is_near);
                if (is_near) {
                    const uint32_t at = queued + __popc(all & before), bit = __ffs(left) - 1;
                    queue.slot[at] = from + bit % 16 * MAP_THREADS + threadIdx.x;
                    queue.question[at] = q + bit / 16;
                }
                queued += __popc(all);
                if (queued >= WARP) {
                    test(questions, workspace, WARP);
                    queued -= WARP;
                    if (lane < queued) {
                        queue.slot[lane] = queue.slot[WARP + lane];
                        queue.question[lane] = queue.question[WARP + lane];
                    }
                    __syncwarp();
                }
            }
        }
        // Warps add to the same counts as seldom as can be.
        if (outranking_own != 0) {
            atomicAdd(&questions.outranking[group + lane], outranking_own);
        }
    }
}

// With few per thread where few are left.
template <uint32_t Held>
DEVICE void answer_up_to(Questions &questions, const Workspace &workspace, const Batch &batch,
                         uint32_t from, uint32_t &queued) {
    if constexpr (Held > 1) {
        constexpr uint32_t FEWER = Held > 4 ? Held / 2 : Held - 1;
        if (batch.candidates - from <= FEWER * MAP_THREADS) {
            return answer_up_to<FEWER>(questions, workspace, batch, from, queued);
        }
    }
    answer<Held>(questions, workspace, batch, from, queued);
}

// Puts the candidates asked about into their places, but for those beyond `limit`.
DEVICE void place(const Questions &questions, const Workspace &workspace, const Batch &batch,
                  uint32_t limit) {
    const uint32_t lane = lane_index();
    for (uint32_t q = warp_index(); q < batch.count; q += MAP_WARPS) {
        const uint32_t rank = questions.outranking[q], hits = questions.hits[q][0];
        if (rank >= limit) {
            continue;
        }
        for (uint32_t i = lane; i < HIT_WORDS - HIT_ROOM + lesser(hits, HIT_ROOM); i += WARP) {
            workspace.hits[uint64_t(rank) * HIT_WORDS + i] = questions.hits[q][i];
        }
        if (lane == 0) {
            const uint64_t key = questions.key[q];
            Ranked ranked;
            ranked.box = questions.box[q];
            ranked.score = key_score(key);
            ranked.class_index = questions.class_index[q];
            ranked.anchor = key_anchor(key);
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
    const Frame &frame = header->frame;
    const uint32_t candidates = header->candidates, limit = contenders(header);
    const Workspace workspace(memory, frame.anchors);

    if (blockIdx.x >= candidates) {
        return;
    }
    const uint32_t share = (candidates - blockIdx.x - 1) / gridDim.x + 1;
    for (uint32_t first = 0; first < share; first += ASKED) {
        const Batch batch{first, lesser(share - first, ASKED), candidates, frame.method != NONE};
        uint32_t queued = 0;
        for (uint64_t from = 0; from < candidates; from += MOST_HELD * MAP_THREADS) {
            answer_up_to<MOST_HELD>(questions, workspace, batch, uint32_t(from), queued);
        }
        test(questions, workspace, queued);
        __syncthreads();
        place(questions, workspace, batch, limit);
        __syncthreads();
    }
}
