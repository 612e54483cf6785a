// SPDX-License-Identifier: MIT OR Apache-2.0
// Decode: makes candidates from tensors. In: the tensors of an image, its place, and the
// parameters. Out: the candidates of the image's group in any order, their number, and the number
// of rejected anchors. The rules are in core/src/engine/mod.rs.
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

// The numbers of one field, for the image that this block decodes.
template <typename Element> struct Numbers {
    typedef typename Element::Stored Stored;

    const FieldParams &field;
    const Stored *first; // number 0 of anchor 0

    DEVICE explicit Numbers(const FieldParams &field)
        : field(field),
          first((const Stored *)(field.address +
                                 blockIdx.y * field.image_stride * sizeof(Stored))) {}

    // Takes the image's address from a table of images.
    DEVICE void find_image(uint64_t table) {
        first = (const Stored *)(__ldg((const uint64_t *)table + blockIdx.y) + field.address);
    }

    DEVICE float load(uint32_t anchor, uint32_t component) const {
        const uint64_t index = anchor * field.anchor_stride + component * field.component_stride;
        return Element::to_float(__ldg(first + index));
    }
};

// The tensors of the block's image.
template <typename BoxElement, typename ScoreElement> struct Image {
    Numbers<BoxElement> boxes;
    Numbers<ScoreElement> scores, objectness;

    DEVICE explicit Image(const KernelParams &params)
        : boxes(params.boxes), scores(params.scores), objectness(params.objectness) {
        // All threads of a launch take this branch, or none do.
        if ((params.box_images | params.score_images) != 0) {
            if (params.box_images != 0) {
                boxes.find_image(params.box_images);
            }
            if (params.score_images != 0) {
                scores.find_image(params.score_images);
                objectness.find_image(params.score_images);
            }
        }
    }
};

// The block's image in the table.
DEVICE const PlacedImage &placed_image(const KernelParams &params) {
    return ((const PlacedImage *)params.placed_images)[blockIdx.y];
}

// The group that the block's image belongs to. Decode looks it up again at each use instead of
// holding it in registers.
struct OwnGroup {
    Header *header;
    uint32_t first_image;  // of the group
    uint32_t first_anchor; // of the image, among those of the group

    DEVICE OwnGroup(const KernelParams &params, void *workspaces, uint64_t stride)
        : first_image(blockIdx.y), first_anchor(0) {
        uint32_t group = blockIdx.y;
        // All threads of a launch take this branch, or none do.
        if (params.placed_images != 0) {
            const PlacedImage &own = placed_image(params);
            group = __ldg(&own.group);
            first_image = __ldg(&own.first_image);
            first_anchor = (blockIdx.y - first_image) * params.anchors;
        }
        header = (Header *)((char *)workspaces + group * stride);
    }
};

// Converts the block's image from numbers of the tensor to pixels of boxes.
struct BoxScale {
    float scale[2], offset[2];

    DEVICE explicit BoxScale(const KernelParams &params)
        : scale{params.place.scale[0], params.place.scale[1]},
          offset{params.place.offset[0], params.place.offset[1]} {
        if (params.placed_images != 0) {
            const float4 own = __ldg((const float4 *)placed_image(params).place.scale);
            scale[0] = own.x;
            scale[1] = own.y;
            offset[0] = own.z;
            offset[1] = own.w;
        }
    }

    // Adding zero would turn minus zero into plus zero.
    DEVICE float moved(float value, uint32_t axis) const {
        return offset[axis] == 0.0f ? value : add_rn(value, offset[axis]);
    }

    DEVICE void move(float4 &corners) const {
        corners.x = moved(corners.x, 0);
        corners.y = moved(corners.y, 1);
        corners.z = moved(corners.z, 0);
        corners.w = moved(corners.w, 1);
    }
};

// The numbers of an anchor's box, unchanged from the tensor.
template <typename Element>
DEVICE float4 load_box(const Numbers<Element> &boxes, uint32_t box_format, uint32_t anchor) {
    float4 numbers;
    numbers.x = boxes.load(anchor, 0);
    numbers.y = boxes.load(anchor, 1);
    numbers.z = boxes.load(anchor, 2);
    numbers.w = box_format == BOX_FORMAT_SQUARE ? 0.0f : boxes.load(anchor, 3);
    return numbers;
}

DEVICE float class_threshold(const KernelParams &params, uint32_t class_index) {
    return class_index < params.class_threshold_count
               ? __ldg((const float *)params.class_thresholds + class_index)
               : params.threshold;
}

// The result for an anchor, or for a pair of anchor and class. REJECTED means that the numbers are
// invalid; rejected anchors are counted.
enum Verdict { CANDIDATE, DROPPED, REJECTED };

// Rules 2 to 4: the score, from objectness and the score of the class.
DEVICE Verdict make_score(const KernelParams &params, float objectness, float class_score,
                          uint32_t class_index, float &score) {
    if (!is_finite(class_score)) {
        return REJECTED;
    }
    const bool has_objectness = params.has_objectness != 0;
    const float product = has_objectness ? mul_rn(objectness, class_score) : class_score;
    score = add_rn(product, 0.0f); // minus zero becomes zero
    if (!is_finite(score)) {
        return REJECTED;
    }
    const float threshold = class_threshold(params, class_index);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return DROPPED;
    }
    return CANDIDATE;
}

// An upright box, which is its own bounds.
struct UprightBox {
    float4 bounds; // x1, y1, x2, y2

    DEVICE float width() const { return sub_rn(bounds.z, bounds.x); }
    DEVICE float height() const { return sub_rn(bounds.w, bounds.y); }
    // True if the bounds are empty although both sides are longer than zero.
    DEVICE bool is_empty() const { return false; }
    // Stores further data of the candidate in this slot. Upright boxes have none.
    DEVICE void store(const Workspace &, uint32_t) const {}
};

// Rule 5: the checks of a box that are independent of its class.
template <typename Box> DEVICE Verdict check_box(const Box &of) {
    const float4 &box = of.bounds;
    if (!is_finite(box.x) || !is_finite(box.y) || !is_finite(box.z) || !is_finite(box.w)) {
        return REJECTED;
    }
    const float width = of.width(), height = of.height();
    if (width < 0.0f || height < 0.0f || width > float(MAX_BOX_SIDE) || height > float(MAX_BOX_SIDE)) {
        return REJECTED;
    }
    return of.is_empty() || width == 0.0f || height == 0.0f ? DROPPED : CANDIDATE;
}

// The rest of rule 5, and rule 6: checks the box's sides against the limits, and checks that the
// box is visible.
template <typename Box>
DEVICE Verdict check_limits(const KernelParams &params, const Box &of, uint32_t class_index) {
    const PlaceParams &place = params.place;
    // Minimum width and height, maximum width and height.
    float4 sizes = {place.min_size[0], place.min_size[1], place.max_size[0], place.max_size[1]};
    float4 visible = {place.visible[0], place.visible[1], place.visible[2], place.visible[3]};
    if (params.placed_images != 0) {
        sizes = __ldg((const float4 *)placed_image(params).place.min_size);
        visible = __ldg((const float4 *)placed_image(params).place.visible);
    }
    if (class_index < params.class_rule_count) {
        double x = place.limit_ratio[0], y = place.limit_ratio[1];
        if (params.placed_images != 0) {
            x = __ldg(&placed_image(params).place.limit_ratio[0]);
            y = __ldg(&placed_image(params).place.limit_ratio[1]);
        }
        const ClassRule &rule = ((const ClassRule *)params.class_rules)[class_index];
        sizes.x = float(mul_rn(double(__ldg(&rule.min_size[0])), x));
        sizes.y = float(mul_rn(double(__ldg(&rule.min_size[1])), y));
        sizes.z = float(mul_rn(double(__ldg(&rule.max_size[0])), x));
        sizes.w = float(mul_rn(double(__ldg(&rule.max_size[1])), y));
    }
    const float width = of.width(), height = of.height();
    if (width < sizes.x || height < sizes.y || width > sizes.z || height > sizes.w) {
        return DROPPED;
    }
    const float4 &box = of.bounds;
    if (box.z <= visible.x || box.x >= visible.z || box.w <= visible.y || box.y >= visible.w) {
        return REJECTED;
    }
    return CANDIDATE;
}

// Rule 7: drops a box that touches an inner edge of the block's image, or lowers its score. For
// images in the table.
DEVICE Verdict check_edges(const KernelParams &params, const float4 &box, uint32_t class_index,
                           float &score) {
    const PlacedImage &own = placed_image(params);
    const float4 limits = __ldg((const float4 *)own.edge_limits);
    if (box.x > limits.x && box.y > limits.y && box.z < limits.z && box.w < limits.w) {
        return CANDIDATE;
    }
    if (__ldg(&own.drops_at_edges) != 0) {
        return DROPPED;
    }
    const float threshold = class_threshold(params, class_index);
    const float edge_score = __ldg(&own.edge_score);
    const float most = threshold > edge_score ? threshold : edge_score;
    if (score > most) {
        score = add_rn(most, 0.0f); // minus zero becomes zero
    }
    return CANDIDATE;
}

// Rules 5 and 6: computes the corners. In: `box` has the tensor's numbers. Out: `box` has x1, y1,
// x2, y2.
DEVICE Verdict make_box(const KernelParams &params, float4 &box, uint32_t class_index) {
    const BoxScale scale(params);
    const float sx = scale.scale[0], sy = scale.scale[1];
    box.x = mul_rn(box.x, sx);
    box.y = mul_rn(box.y, sy);
    if (params.box_format == BOX_FORMAT_SQUARE) {
        const float side = box.z;
        box.z = add_rn(box.x, mul_rn(side, sx));
        box.w = add_rn(box.y, mul_rn(side, sy));
    } else {
        box.z = mul_rn(box.z, sx);
        box.w = mul_rn(box.w, sy);
        if (params.box_format == BOX_FORMAT_CENTER) {
            const float x = box.x, y = box.y;
            const float half_width = mul_rn(box.z, 0.5f), half_height = mul_rn(box.w, 0.5f);
            box.x = sub_rn(x, half_width);
            box.y = sub_rn(y, half_height);
            box.z = add_rn(x, half_width);
            box.w = add_rn(y, half_height);
        }
    }
    scale.move(box);
    const Verdict verdict = check_box(UprightBox{box});
    return verdict == CANDIDATE ? check_limits(params, UprightBox{box}, class_index) : verdict;
}

// Copies the parameters to the header, where map, reduce and publish read them. All threads call
// it, and one thread of the group's first image does the copy.
DEVICE void store_params(const KernelParams &params, void *workspaces, uint64_t stride) {
    if (blockIdx.x != 0 || threadIdx.x != DECODE_THREADS - 1) {
        return;
    }
    const OwnGroup own(params, workspaces, stride);
    if (blockIdx.y != own.first_image) {
        return;
    }
    Header *const header = own.header;
    // Copied word by word, because compilers copy a structure byte by byte.
    const uint64_t *const from = (const uint64_t *)&params;
    uint64_t *const to = (uint64_t *)&header->params;
#pragma unroll
    for (uint32_t i = 0; i < sizeof(KernelParams) / sizeof(uint64_t); i++) {
        to[i] = from[i];
    }
    header->first_image = own.first_image;
    header->start_time = device_clock();
}

// Applies rule 7, counts a warp's candidates and rejected anchors, and appends the candidates. All
// lanes call it. Candidates beyond the capacity are counted, but not stored.
template <typename Box>
DEVICE void append(const KernelParams &params, const OwnGroup &own, Verdict verdict, const Box &box,
                   float score, uint32_t index, uint32_t class_index) {
    if (params.placed_images != 0 && verdict == CANDIDATE) {
        verdict = check_edges(params, box.bounds, class_index, score);
    }
    Header *const header = own.header;
    const uint32_t lane = lane_index();
    const uint32_t rejected = __ballot_sync(ALL_LANES, verdict == REJECTED);
    if (rejected != 0 && lane == 0) {
        atomicAdd(&header->rejected, uint32_t(__popc(rejected)));
    }
    const uint32_t candidates = __ballot_sync(ALL_LANES, verdict == CANDIDATE);
    if (candidates == 0) {
        return;
    }
    uint32_t slot = 0;
    if (lane == 0) {
        slot = atomicAdd(&header->candidates, uint32_t(__popc(candidates)));
    }
    slot = __shfl_sync(ALL_LANES, slot, 0) + lanes_before(candidates);
    if (verdict == CANDIDATE && slot < params.capacity) {
        const Workspace workspace(header, params.capacity);
        workspace.candidate_box[slot] = box.bounds;
        workspace.candidate_key[slot] = RankKey::encode(score, index);
        workspace.candidate_class[slot] = class_index;
        box.store(workspace, slot);
    }
}

#define DECODE_WARPS (DECODE_THREADS / WARP)
// Scores that a thread loads at a time: with eight threads per anchor, all of 80 classes.
#define SCORES_PER_STEP 10u
#define LOWEST_SCORE __uint_as_float(0xff800000u) // minus infinity

// The class with the highest score. If several classes have equal scores, the lowest class wins.
struct BestClass {
    float score;
    uint32_t class_index;

    DEVICE void combine(const BestClass &other) {
        if (other.score > score || (other.score == score && other.class_index < class_index)) {
            *this = other;
        }
    }
};

// The best class among `part`, `part` + lanes_per_anchor, and so on.
template <typename Element>
DEVICE BestClass best_of_part(const KernelParams &params, const Numbers<Element> &numbers,
                              uint32_t anchor, uint32_t part) {
    BestClass best = {LOWEST_SCORE, 0};
    for (uint32_t c = part; c < params.classes; c += SCORES_PER_STEP * params.lanes_per_anchor) {
        float scores[SCORES_PER_STEP];
#pragma unroll
        for (uint32_t k = 0; k < SCORES_PER_STEP; k++) {
            const uint32_t at = c + k * params.lanes_per_anchor;
            scores[k] = at < params.classes ? numbers.load(anchor, at) : LOWEST_SCORE;
        }
#pragma unroll
        for (uint32_t k = 0; k < SCORES_PER_STEP; k++) {
            if (scores[k] > best.score) {
                best.score = scores[k];
                best.class_index = c + k * params.lanes_per_anchor;
            }
        }
    }
    return best;
}

// The results of a block's warps, where eight warps share anchors.
struct BestOfWarps {
    float score[DECODE_WARPS][WARP];
    uint32_t class_index[DECODE_WARPS][WARP];
};

// Decodes each anchor to its best class. Either one thread handles an anchor, or eight threads
// share it and each takes a part of the classes. If the scores of consecutive anchors are
// contiguous, the eight threads are one lane of each of the block's eight warps; otherwise they are
// eight consecutive lanes. Loads coalesce in both cases.
template <typename Boxes, typename Scores>
DEVICE void decode(const KernelParams &params, void *workspaces, uint64_t stride) {
    BLOCK_SHARED(BestOfWarps, partial);
    grid_dependency_wait();
    store_params(params, workspaces, stride);
    const Image<Boxes, Scores> image(params);
    const uint32_t lane = lane_index(), warp = warp_index();

    const bool by_warps = params.lanes_per_anchor != 1 && params.scores.anchor_stride == 1;
    uint64_t position;
    uint32_t part;
    if (params.lanes_per_anchor == 1) {
        position = uint64_t(blockIdx.x) * DECODE_THREADS + threadIdx.x;
        part = 0;
    } else if (by_warps) {
        position = uint64_t(blockIdx.x) * WARP + lane;
        part = warp;
    } else {
        position = uint64_t(blockIdx.x) * (DECODE_THREADS / 8) + threadIdx.x / 8;
        part = lane % 8;
    }
    const uint32_t anchor = uint32_t(position);

    Verdict verdict = position < params.anchors ? CANDIDATE : DROPPED;
    float objectness = 1.0f;
    if (verdict == CANDIDATE && params.has_objectness != 0) {
        objectness = image.objectness.load(anchor, 0);
        if (!is_finite(objectness)) {
            verdict = REJECTED;
        } else if (objectness < params.lowest_threshold) {
            verdict = DROPPED;
        }
    }

    // Loaded early, so that this load is in flight together with the loads of scores.
    float4 box = {};
    if (verdict == CANDIDATE && part == 0) {
        box = load_box(image.boxes, params.box_format, anchor);
    }
    BestClass best = {LOWEST_SCORE, 0};
    if (verdict == CANDIDATE) {
        best = best_of_part(params, image.scores, anchor, part);
    }

    if (by_warps) {
        partial.score[warp][lane] = best.score;
        partial.class_index[warp][lane] = best.class_index;
        __syncthreads();
        if (warp != 0) {
            return;
        }
#pragma unroll
        for (uint32_t w = 1; w < DECODE_WARPS; w++) {
            best.combine({partial.score[w][lane], partial.class_index[w][lane]});
        }
    } else if (params.lanes_per_anchor != 1) {
#pragma unroll
        for (uint32_t distance = 4; distance != 0; distance /= 2) {
            best.combine({__shfl_xor_sync(ALL_LANES, best.score, distance),
                          __shfl_xor_sync(ALL_LANES, best.class_index, distance)});
        }
        if (part != 0) {
            verdict = DROPPED; // the first of the eight lanes continues with the anchor
        }
    }

    float score = 0.0f;
    if (verdict == CANDIDATE) {
        verdict = make_score(params, objectness, best.score, best.class_index, score);
    }
    if (verdict == CANDIDATE) {
        verdict = make_box(params, box, best.class_index);
    }
    const OwnGroup own(params, workspaces, stride);
    append(params, own, verdict, UprightBox{box}, score, own.first_anchor + anchor,
           best.class_index);
}

// Decodes to all pairs of anchor and class. One thread handles one pair. Threads follow the order
// of the scores in memory, so that loads coalesce: class by class if the scores of consecutive
// anchors are contiguous, otherwise anchor by anchor. Most threads never load a box, because the
// score, or the objectness that neighboring threads share, is below the threshold.
template <typename Boxes, typename Scores>
DEVICE void decode_multi(const KernelParams &params, void *workspaces, uint64_t stride) {
    grid_dependency_wait();
    store_params(params, workspaces, stride);
    const Image<Boxes, Scores> image(params);

    const uint64_t thread = uint64_t(blockIdx.x) * DECODE_THREADS + threadIdx.x;
    const uint32_t pairs = params.anchors * params.classes; // 32 bits suffice: interface.cuh
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
        if (params.has_objectness != 0) {
            objectness = image.objectness.load(anchor, 0);
            if (!is_finite(objectness)) {
                verdict = REJECTED;
            } else if (objectness < class_threshold(params, class_index)) {
                verdict = DROPPED;
            }
        }
    }
    if (verdict == CANDIDATE) {
        const float class_score = image.scores.load(anchor, class_index);
        verdict = make_score(params, objectness, class_score, class_index, score);
    }
    float4 box = {};
    if (verdict == CANDIDATE) {
        box = load_box(image.boxes, params.box_format, anchor);
        verdict = make_box(params, box, class_index);
    }
    const OwnGroup own(params, workspaces, stride);
    const uint32_t index = (own.first_anchor + anchor) * params.classes + class_index;
    append(params, own, verdict, UprightBox{box}, score, index, class_index);
}

#define DECODE(decoder, name, Boxes, Scores)                                                       \
    KERNEL(DECODE_THREADS, 4) name(const KernelParams params, void *workspaces, uint64_t stride) { \
        decoder<Boxes, Scores>(params, workspaces, stride);                                        \
    }
DECODE(decode, decode_f32_f32, F32, F32)
DECODE(decode, decode_f32_f16, F32, F16)
DECODE(decode, decode_f16_f32, F16, F32)
DECODE(decode, decode_f16_f16, F16, F16)
DECODE(decode_multi, decode_multi_f32_f32, F32, F32)
DECODE(decode_multi, decode_multi_f32_f16, F32, F16)
DECODE(decode_multi, decode_multi_f16_f32, F16, F32)
DECODE(decode_multi, decode_multi_f16_f16, F16, F16)
