// Decode: a tensor's rows to candidates, as the rules of src/engine/mod.rs have it.
#pragma once

#include "workspace.cuh"

struct F32 {
    typedef float Stored;
    static DEVICE float widened(float stored) { return stored; }
};

struct F16 {
    typedef uint16_t Stored;
    static DEVICE float widened(uint16_t stored) { return widen(stored); }
};

template <typename Element>
DEVICE float number(const Field &field, uint32_t anchor, uint32_t component) {
    const uint64_t index = anchor * field.anchor_stride + component * field.component_stride;
    return Element::widened(__ldg((const typename Element::Stored *)field.address + index));
}

enum Row { CANDIDATE, DROPPED, REJECTED };

// The numbers that make a row's box.
template <typename Boxes> DEVICE float4 box_numbers(const Frame &frame, uint32_t anchor) {
    float4 numbers;
    numbers.x = number<Boxes>(frame.boxes, anchor, 0);
    numbers.y = number<Boxes>(frame.boxes, anchor, 1);
    numbers.z = number<Boxes>(frame.boxes, anchor, 2);
    numbers.w = frame.box_format == SQUARE ? 0.0f : number<Boxes>(frame.boxes, anchor, 3);
    return numbers;
}

DEVICE float threshold_of(const Frame &frame, uint32_t class_index) {
    return class_index < frame.listed
               ? __ldg((const float *)frame.class_thresholds + class_index)
               : frame.threshold;
}

// Rules 2 to 4, once the row's best class is known, or that of the pair.
DEVICE Row make_score(const Frame &frame, float objectness, float best, uint32_t best_class,
                      float &score) {
    if (!finite_number(best)) {
        return REJECTED;
    }
    const bool has_objectness = frame.objectness.address != 0;
    score = plus(has_objectness ? times(objectness, best) : best, 0.0f); // minus zero becomes zero
    if (!finite_number(score)) {
        return REJECTED;
    }
    const float threshold = threshold_of(frame, best_class);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return DROPPED;
    }
    return CANDIDATE;
}

// Rules 5 and 6. `box` holds its numbers, and then its corners.
DEVICE Row make_box(const Frame &frame, float4 &box) {
    const float sx = frame.scale[0], sy = frame.scale[1];
    box.x = times(box.x, sx);
    box.y = times(box.y, sy);
    if (frame.box_format == SQUARE) {
        const float side = box.z;
        box.z = plus(box.x, times(side, sx));
        box.w = plus(box.y, times(side, sy));
    } else {
        box.z = times(box.z, sx);
        box.w = times(box.w, sy);
        if (frame.box_format == CENTRE) {
            const float x = box.x, y = box.y;
            const float half_width = times(box.z, 0.5f), half_height = times(box.w, 0.5f);
            box.x = minus(x, half_width);
            box.y = minus(y, half_height);
            box.z = plus(x, half_width);
            box.w = plus(y, half_height);
        }
    }
    if (!finite_number(box.x) || !finite_number(box.y) || !finite_number(box.z) ||
        !finite_number(box.w)) {
        return REJECTED;
    }
    const float longest = 1.0e9f;
    const float width = minus(box.z, box.x), height = minus(box.w, box.y);
    if (width < 0.0f || height < 0.0f || width > longest || height > longest) {
        return REJECTED;
    }
    if (width == 0.0f || height == 0.0f || width < frame.min_size[0] ||
        height < frame.min_size[1] || width > frame.max_size[0] || height > frame.max_size[1]) {
        return DROPPED;
    }
    const float *const visible = frame.visible;
    if (box.z <= visible[0] || box.x >= visible[2] || box.w <= visible[1] || box.y >= visible[3]) {
        return REJECTED;
    }
    return CANDIDATE;
}

// Scores that a thread has under way at a time: with eight threads to an anchor, all of 80 classes.
#define SCORES_AT_ONCE 10u

#define DECODE_WARPS (DECODE_THREADS / WARP)

// What a block's eight warps found, where they share anchors.
struct BestOfWarps {
    float score[DECODE_WARPS][WARP];
    uint32_t class_index[DECODE_WARPS][WARP];
};

DEVICE bool is_better(float score, uint32_t class_index, float best, uint32_t best_class) {
    return score > best || (score == best && class_index < best_class);
}

// Leaves the frame's numbers for the later kernels. For one thread of the grid to call.
DEVICE void begin_frame(const Frame &frame, Header *header) {
    // By words: left to itself, a compiler copies bytes.
    const uint64_t *const from = (const uint64_t *)&frame;
    uint64_t *const to = (uint64_t *)&header->frame;
#pragma unroll
    for (uint32_t i = 0; i < sizeof(Frame) / sizeof(uint64_t); i++) {
        to[i] = from[i];
    }
    header->began = device_clock();
}

// Counts the candidates and rejections of a warp, and stores the candidates: those for which there
// is room where they are `Bounded`. For all lanes to call.
template <bool Bounded>
DEVICE void store(const Frame &frame, const Workspace &workspace, Row verdict, const float4 &box,
                  float score, uint32_t index, uint32_t class_index) {
    Header *const header = workspace.header;
    const uint32_t lane = lane_index();
    const uint32_t rejected = __ballot_sync(ALL_LANES, verdict == REJECTED);
    if (rejected != 0 && lane == 0) {
        atomicAdd(&header->rejected, uint32_t(__popc(rejected)));
    }
    const uint32_t found = __ballot_sync(ALL_LANES, verdict == CANDIDATE);
    if (found == 0) {
        return;
    }
    uint32_t slot = 0;
    if (lane == 0) {
        slot = atomicAdd(&header->candidates, uint32_t(__popc(found)));
    }
    slot = __shfl_sync(ALL_LANES, slot, 0) + votes_before(found);
    if (verdict == CANDIDATE && (!Bounded || slot < frame.capacity)) {
        workspace.found_box[slot] = box;
        workspace.found_key[slot] = rank_key(score, index);
        workspace.found_class[slot] = class_index;
    }
}

// An anchor is one thread's, or is shared by eight: where the scores of consecutive anchors lie
// side by side, by one lane of each of the block's eight warps, else by eight neighbouring lanes,
// so that loads coalesce either way.
template <typename Boxes, typename Scores>
DEVICE void decode(const Frame &frame, void *memory) {
    BLOCK_SHARED(BestOfWarps, partial);
    take_turn();
    const Workspace workspace(memory, frame.capacity);
    const uint32_t lane = lane_index(), warp = warp_index();
    if (blockIdx.x == 0 && threadIdx.x == DECODE_THREADS - 1) {
        begin_frame(frame, workspace.header);
    }

    const bool by_warps = frame.lanes != 1 && frame.scores.anchor_stride == 1;
    uint64_t row;
    uint32_t part;
    if (frame.lanes == 1) {
        row = uint64_t(blockIdx.x) * DECODE_THREADS + threadIdx.x;
        part = 0;
    } else if (by_warps) {
        row = uint64_t(blockIdx.x) * WARP + lane;
        part = warp;
    } else {
        row = uint64_t(blockIdx.x) * (DECODE_THREADS / 8) + threadIdx.x / 8;
        part = lane % 8;
    }
    const uint32_t anchor = uint32_t(row);

    Row verdict = row < frame.anchors ? CANDIDATE : DROPPED;
    float objectness = 1.0f;
    if (verdict == CANDIDATE && frame.objectness.address != 0) {
        objectness = number<Scores>(frame.objectness, anchor, 0);
        if (!finite_number(objectness)) {
            verdict = REJECTED;
        } else if (objectness < frame.lowest_threshold) {
            verdict = DROPPED;
        }
    }

    // Read now, while the scores are on their way, by whoever speaks for the row.
    float4 box = {};
    if (verdict == CANDIDATE && part == 0) {
        box = box_numbers<Boxes>(frame, anchor);
    }
    const float lowest = __uint_as_float(0xff800000u); // minus infinity
    float best = lowest;
    uint32_t best_class = 0;
    if (verdict == CANDIDATE) {
        for (uint32_t c = part; c < frame.classes; c += SCORES_AT_ONCE * frame.lanes) {
            float scores[SCORES_AT_ONCE];
#pragma unroll
            for (uint32_t k = 0; k < SCORES_AT_ONCE; k++) {
                const uint32_t at = c + k * frame.lanes;
                scores[k] = at < frame.classes ? number<Scores>(frame.scores, anchor, at) : lowest;
            }
#pragma unroll
            for (uint32_t k = 0; k < SCORES_AT_ONCE; k++) {
                if (scores[k] > best) {
                    best = scores[k];
                    best_class = c + k * frame.lanes;
                }
            }
        }
    }

    // The first of the greatest: where parts are equal the lower class wins.
    if (by_warps) {
        partial.score[warp][lane] = best;
        partial.class_index[warp][lane] = best_class;
        __syncthreads();
        if (warp != 0) {
            return;
        }
#pragma unroll
        for (uint32_t w = 1; w < DECODE_WARPS; w++) {
            const float score = partial.score[w][lane];
            const uint32_t class_index = partial.class_index[w][lane];
            if (is_better(score, class_index, best, best_class)) {
                best = score;
                best_class = class_index;
            }
        }
    } else if (frame.lanes != 1) {
#pragma unroll
        for (uint32_t distance = 4; distance != 0; distance /= 2) {
            const float score = __shfl_xor_sync(ALL_LANES, best, distance);
            const uint32_t class_index = __shfl_xor_sync(ALL_LANES, best_class, distance);
            if (is_better(score, class_index, best, best_class)) {
                best = score;
                best_class = class_index;
            }
        }
        if (part != 0) {
            verdict = DROPPED; // the first of the eight speaks for the row
        }
    }

    float score = 0.0f;
    if (verdict == CANDIDATE) {
        verdict = make_score(frame, objectness, best, best_class, score);
    }
    if (verdict == CANDIDATE) {
        verdict = make_box(frame, box);
    }
    store<false>(frame, workspace, verdict, box, score, anchor, best_class);
}

// A thread to each pair of anchor and class, in the order in which their scores are in memory, so
// that loads coalesce: class by class where the scores of consecutive anchors are side by side, else
// anchor by anchor. Most pairs end with their score, or with objectness, which neighbors share.
template <typename Boxes, typename Scores>
DEVICE void decode_multi(const Frame &frame, void *memory) {
    take_turn();
    const Workspace workspace(memory, frame.capacity);
    if (blockIdx.x == 0 && threadIdx.x == DECODE_THREADS - 1) {
        begin_frame(frame, workspace.header);
    }

    const uint64_t thread = uint64_t(blockIdx.x) * DECODE_THREADS + threadIdx.x;
    const uint32_t pairs = frame.anchors * frame.classes; // fits: the host has seen to it
    Row verdict = thread < pairs ? CANDIDATE : DROPPED;
    uint32_t anchor = 0, class_index = 0;
    float objectness = 1.0f, score = 0.0f;
    if (verdict == CANDIDATE) {
        const bool by_class = frame.scores.anchor_stride == 1;
        const uint32_t divisor = by_class ? frame.anchors : frame.classes;
        const uint32_t quotient = uint32_t(thread) / divisor;
        const uint32_t rest = uint32_t(thread) - quotient * divisor;
        anchor = by_class ? rest : quotient;
        class_index = by_class ? quotient : rest;
        if (frame.objectness.address != 0) {
            objectness = number<Scores>(frame.objectness, anchor, 0);
            if (!finite_number(objectness)) {
                verdict = REJECTED;
            } else if (objectness < threshold_of(frame, class_index)) {
                verdict = DROPPED;
            }
        }
    }
    if (verdict == CANDIDATE) {
        const float of_class = number<Scores>(frame.scores, anchor, class_index);
        verdict = make_score(frame, objectness, of_class, class_index, score);
    }
    float4 box = {};
    if (verdict == CANDIDATE) {
        box = box_numbers<Boxes>(frame, anchor);
        verdict = make_box(frame, box);
    }
    const uint32_t index = anchor * frame.classes + class_index;
    store<true>(frame, workspace, verdict, box, score, index, class_index);
}

#define DECODE(decoder, name, Boxes, Scores)                             \
    KERNEL(DECODE_THREADS, 4) name(const Frame frame, void *workspace) { \
        decoder<Boxes, Scores>(frame, workspace);                        \
    }
DECODE(decode, decode_f32_f32, F32, F32)
DECODE(decode, decode_f32_f16, F32, F16)
DECODE(decode, decode_f16_f32, F16, F32)
DECODE(decode, decode_f16_f16, F16, F16)
DECODE(decode_multi, decode_multi_f32_f32, F32, F32)
DECODE(decode_multi, decode_multi_f32_f16, F32, F16)
DECODE(decode_multi, decode_multi_f16_f32, F16, F32)
DECODE(decode_multi, decode_multi_f16_f16, F16, F16)
