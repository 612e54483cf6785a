// Decode: a tensor's rows to candidates, as the rules of src/engine/mod.rs have it.
#pragma once

#include "workspace.cuh"

struct F32 {
    typedef float Stored;
    static DEVICE float to_float(float stored) { return stored; }
};

struct F16 {
    typedef uint16_t Stored;
    static DEVICE float to_float(uint16_t stored) { return half_to_float(stored); }
};

template <typename Element>
DEVICE float load_element(const Field &field, uint32_t anchor, uint32_t component) {
    const uint64_t index = anchor * field.anchor_stride + component * field.component_stride;
    return Element::to_float(__ldg((const typename Element::Stored *)field.address + index));
}

enum Verdict { CANDIDATE, DROPPED, REJECTED };

// The numbers that make a row's box.
template <typename Boxes> DEVICE float4 load_box(const KernelParams &params, uint32_t anchor) {
    float4 numbers;
    numbers.x = load_element<Boxes>(params.boxes, anchor, 0);
    numbers.y = load_element<Boxes>(params.boxes, anchor, 1);
    numbers.z = load_element<Boxes>(params.boxes, anchor, 2);
    numbers.w = params.box_format == SQUARE ? 0.0f : load_element<Boxes>(params.boxes, anchor, 3);
    return numbers;
}

DEVICE float threshold_of(const KernelParams &params, uint32_t class_index) {
    return class_index < params.class_threshold_count
               ? __ldg((const float *)params.class_thresholds + class_index)
               : params.threshold;
}

// Rules 2 to 4, once the row's best class is known, or that of the pair.
DEVICE Verdict make_score(const KernelParams &params, float objectness, float best, uint32_t best_class,
                      float &score) {
    if (!is_finite(best)) {
        return REJECTED;
    }
    const bool has_objectness = params.objectness.address != 0;
    score = add_rn(has_objectness ? mul_rn(objectness, best) : best, 0.0f); // minus zero becomes zero
    if (!is_finite(score)) {
        return REJECTED;
    }
    const float threshold = threshold_of(params, best_class);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return DROPPED;
    }
    return CANDIDATE;
}

// Rules 5 and 6. `box` holds its numbers, and then its corners.
DEVICE Verdict make_box(const KernelParams &params, float4 &box) {
    const float sx = params.scale[0], sy = params.scale[1];
    box.x = mul_rn(box.x, sx);
    box.y = mul_rn(box.y, sy);
    if (params.box_format == SQUARE) {
        const float side = box.z;
        box.z = add_rn(box.x, mul_rn(side, sx));
        box.w = add_rn(box.y, mul_rn(side, sy));
    } else {
        box.z = mul_rn(box.z, sx);
        box.w = mul_rn(box.w, sy);
        if (params.box_format == CENTER) {
            const float x = box.x, y = box.y;
            const float half_width = mul_rn(box.z, 0.5f), half_height = mul_rn(box.w, 0.5f);
            box.x = sub_rn(x, half_width);
            box.y = sub_rn(y, half_height);
            box.z = add_rn(x, half_width);
            box.w = add_rn(y, half_height);
        }
    }
    if (!is_finite(box.x) || !is_finite(box.y) || !is_finite(box.z) ||
        !is_finite(box.w)) {
        return REJECTED;
    }
    const float longest = 1.0e9f;
    const float width = sub_rn(box.z, box.x), height = sub_rn(box.w, box.y);
    if (width < 0.0f || height < 0.0f || width > longest || height > longest) {
        return REJECTED;
    }
    if (width == 0.0f || height == 0.0f || width < params.min_size[0] ||
        height < params.min_size[1] || width > params.max_size[0] || height > params.max_size[1]) {
        return DROPPED;
    }
    const float *const visible = params.visible;
    if (box.z <= visible[0] || box.x >= visible[2] || box.w <= visible[1] || box.y >= visible[3]) {
        return REJECTED;
    }
    return CANDIDATE;
}

// Scores that a thread has under way at a time: with eight threads to an anchor, all of 80 classes.
#define SCORES_PER_STEP 10u

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
DEVICE void begin_image(const KernelParams &params, Header *header) {
    // By words: left to itself, a compiler copies bytes.
    const uint64_t *const from = (const uint64_t *)&params;
    uint64_t *const to = (uint64_t *)&header->params;
#pragma unroll
    for (uint32_t i = 0; i < sizeof(KernelParams) / sizeof(uint64_t); i++) {
        to[i] = from[i];
    }
    header->start_time = device_clock();
}

// Counts the candidates and rejections of a warp, and stores the candidates: those for which there
// is room where they are `Bounded`. For all lanes to call.
template <bool Bounded>
DEVICE void store(const KernelParams &params, const Workspace &workspace, Verdict verdict, const float4 &box,
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
    slot = __shfl_sync(ALL_LANES, slot, 0) + lanes_before(found);
    if (verdict == CANDIDATE && (!Bounded || slot < params.capacity)) {
        workspace.candidate_box[slot] = box;
        workspace.candidate_key[slot] = rank_key(score, index);
        workspace.candidate_class[slot] = class_index;
    }
}

// An anchor is one thread's, or is shared by eight: where the scores of consecutive anchors lie
// side by side, by one lane of each of the block's eight warps, else by eight neighbouring lanes,
// so that loads coalesce either way.
template <typename Boxes, typename Scores>
DEVICE void decode(const KernelParams &params, void *memory) {
    BLOCK_SHARED(BestOfWarps, partial);
    grid_dependency_wait();
    const Workspace workspace(memory, params.capacity);
    const uint32_t lane = lane_index(), warp = warp_index();
    if (blockIdx.x == 0 && threadIdx.x == DECODE_THREADS - 1) {
        begin_image(params, workspace.header);
    }

    const bool by_warps = params.lanes_per_anchor != 1 && params.scores.anchor_stride == 1;
    uint64_t row;
    uint32_t part;
    if (params.lanes_per_anchor == 1) {
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

    Verdict verdict = row < params.anchors ? CANDIDATE : DROPPED;
    float objectness = 1.0f;
    if (verdict == CANDIDATE && params.objectness.address != 0) {
        objectness = load_element<Scores>(params.objectness, anchor, 0);
        if (!is_finite(objectness)) {
            verdict = REJECTED;
        } else if (objectness < params.lowest_threshold) {
            verdict = DROPPED;
        }
    }

    // Read now, while the scores are on their way, by whoever speaks for the row.
    float4 box = {};
    if (verdict == CANDIDATE && part == 0) {
        box = load_box<Boxes>(params, anchor);
    }
    const float lowest = __uint_as_float(0xff800000u); // minus infinity
    float best = lowest;
    uint32_t best_class = 0;
    if (verdict == CANDIDATE) {
        for (uint32_t c = part; c < params.classes; c += SCORES_PER_STEP * params.lanes_per_anchor) {
            float scores[SCORES_PER_STEP];
#pragma unroll
            for (uint32_t k = 0; k < SCORES_PER_STEP; k++) {
                const uint32_t at = c + k * params.lanes_per_anchor;
                scores[k] = at < params.classes ? load_element<Scores>(params.scores, anchor, at) : lowest;
            }
#pragma unroll
            for (uint32_t k = 0; k < SCORES_PER_STEP; k++) {
                if (scores[k] > best) {
                    best = scores[k];
                    best_class = c + k * params.lanes_per_anchor;
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
    } else if (params.lanes_per_anchor != 1) {
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
        verdict = make_score(params, objectness, best, best_class, score);
    }
    if (verdict == CANDIDATE) {
        verdict = make_box(params, box);
    }
    store<false>(params, workspace, verdict, box, score, anchor, best_class);
}

// A thread to each pair of anchor and class, in the order in which their scores are in memory, so
// that loads coalesce: class by class where the scores of consecutive anchors are side by side, else
// anchor by anchor. Most pairs end with their score, or with objectness, which neighbors share.
template <typename Boxes, typename Scores>
DEVICE void decode_multi(const KernelParams &params, void *memory) {
    grid_dependency_wait();
    const Workspace workspace(memory, params.capacity);
    if (blockIdx.x == 0 && threadIdx.x == DECODE_THREADS - 1) {
        begin_image(params, workspace.header);
    }

    const uint64_t thread = uint64_t(blockIdx.x) * DECODE_THREADS + threadIdx.x;
    const uint32_t pairs = params.anchors * params.classes; // fits: the host has seen to it
    Verdict verdict = thread < pairs ? CANDIDATE : DROPPED;
    uint32_t anchor = 0, class_index = 0;
    float objectness = 1.0f, score = 0.0f;
    if (verdict == CANDIDATE) {
        const bool by_class = params.scores.anchor_stride == 1;
        const uint32_t divisor = by_class ? params.anchors : params.classes;
        const uint32_t quotient = uint32_t(thread) / divisor;
        const uint32_t remainder = uint32_t(thread) - quotient * divisor;
        anchor = by_class ? remainder : quotient;
        class_index = by_class ? quotient : remainder;
        if (params.objectness.address != 0) {
            objectness = load_element<Scores>(params.objectness, anchor, 0);
            if (!is_finite(objectness)) {
                verdict = REJECTED;
            } else if (objectness < threshold_of(params, class_index)) {
                verdict = DROPPED;
            }
        }
    }
    if (verdict == CANDIDATE) {
        const float of_class = load_element<Scores>(params.scores, anchor, class_index);
        verdict = make_score(params, objectness, of_class, class_index, score);
    }
    float4 box = {};
    if (verdict == CANDIDATE) {
        box = load_box<Boxes>(params, anchor);
        verdict = make_box(params, box);
    }
    const uint32_t index = anchor * params.classes + class_index;
    store<true>(params, workspace, verdict, box, score, index, class_index);
}

#define DECODE(decoder, name, Boxes, Scores)                             \
    KERNEL(DECODE_THREADS, 4) name(const KernelParams params, void *workspace) { \
        decoder<Boxes, Scores>(params, workspace);                        \
    }
DECODE(decode, decode_f32_f32, F32, F32)
DECODE(decode, decode_f32_f16, F32, F16)
DECODE(decode, decode_f16_f32, F16, F32)
DECODE(decode, decode_f16_f16, F16, F16)
DECODE(decode_multi, decode_multi_f32_f32, F32, F32)
DECODE(decode_multi, decode_multi_f32_f16, F32, F16)
DECODE(decode_multi, decode_multi_f16_f32, F16, F32)
DECODE(decode_multi, decode_multi_f16_f16, F16, F16)
