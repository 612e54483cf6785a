// SPDX-License-Identifier: MIT OR Apache-2.0
// Decode for layouts (layout.cuh). In: the tensors of an image, the layout and the
// parameters. Out: see decode.cuh. Each number is read only if the anchor can still become a
// candidate after the numbers read before it. Few anchors therefore pay for the general box
// formulas.
#pragma once

#include "layout.cuh"

// Copies the block's group to shared memory. Compilers would otherwise copy parameters that are
// accessed by a computed index to each thread's local memory. All threads of the block call it.
DEVICE void load_group(const LayoutParams &layout, LayoutGroup &group) {
    uint32_t index = 0;
#pragma unroll
    for (uint32_t i = 1; i < MAX_GROUPS; i++) {
        index += i < layout.group_count && blockIdx.x >= layout.groups[i].first_block;
    }
    const uint64_t *const from = (const uint64_t *)&layout.groups[index];
    for (uint32_t i = threadIdx.x; i < sizeof(LayoutGroup) / sizeof(uint64_t); i += DECODE_THREADS) {
        ((uint64_t *)&group)[i] = from[i];
    }
    __syncthreads();
}

// One thread's share of an anchor's work. All anchors of a block are in one group. The work is
// shared exactly like in decode.cuh: one thread handles an anchor, or eight threads share it. The
// eight are one lane of each of the block's eight warps if the scores of consecutive anchors are
// contiguous, otherwise eight consecutive lanes.
struct AnchorPart {
    uint32_t anchor; // in the group
    uint32_t index;  // in the image
    uint32_t part;   // has the classes `part`, `part` + lanes, and so on
    uint32_t lanes;
    bool by_warps;
    Verdict verdict; // DROPPED: no such anchor exists

    DEVICE AnchorPart(const LayoutParams &layout, const LayoutGroup &of) {
        const uint32_t lane = lane_index(), block = blockIdx.x - of.first_block;
        lanes = of.lanes;
        by_warps = lanes != 1 && of.scores.anchor_stride == 1;
        uint64_t position;
        if (lanes == 1) {
            position = uint64_t(block) * DECODE_THREADS + threadIdx.x;
            part = 0;
        } else if (by_warps) {
            position = uint64_t(block) * WARP + lane;
            part = warp_index();
        } else {
            position = uint64_t(block) * (DECODE_THREADS / 8) + threadIdx.x / 8;
            part = lane % 8;
        }
        anchor = uint32_t(position);
        index = of.first_anchor + anchor;
        verdict = position < of.anchors ? CANDIDATE : DROPPED;
        if (layout.has_count != 0 && verdict == CANDIDATE) {
            // A count that is NaN means no anchors.
            const float count = LayoutNumbers(layout.count).load(0, 0);
            const bool is_valid =
                count >= 1.0f && (count >= 4294967296.0f || index < uint32_t(count));
            verdict = is_valid ? CANDIDATE : DROPPED;
        }
    }
};

// Rule 1, without comparing to a threshold: the objectness, or 1 if the layout has no objectness.
DEVICE Verdict layout_objectness(const LayoutParams &layout, const LayoutGroup &group,
                                 uint32_t anchor, float &objectness) {
    objectness = 1.0f;
    if (layout.has_objectness != 0) {
        objectness = LayoutNumbers(group.objectness).load(anchor, 0);
        if (!is_finite(objectness)) {
            return REJECTED;
        }
        if (layout.activation == ACTIVATION_SIGMOID) {
            objectness = sigmoid(objectness);
        }
    }
    return CANDIDATE;
}

// True if objectness alone puts the score below the threshold.
DEVICE bool is_objectness_below(const LayoutParams &layout, float objectness, float threshold) {
    return layout.has_objectness != 0 && layout.combination == COMBINATION_PRODUCT &&
           objectness < threshold;
}

// The class with the greatest score among one part of the classes, and a flag that is set if a
// score of that part is NaN or infinity.
struct BestOfPart {
    BestClass best;
    uint32_t is_invalid;

    DEVICE BestOfPart(const LayoutParams &layout, const LayoutNumbers &scores,
                      const AnchorPart &own)
        : best{LOWEST_SCORE, 0}, is_invalid(0) {
        const uint32_t end = layout.first_column + layout.components;
#pragma unroll 1
        for (uint32_t c = own.part; c < layout.components; c += SCORES_PER_STEP * own.lanes) {
            float some[SCORES_PER_STEP];
            scores.load_some(own.anchor, layout.first_column + c, own.lanes, end, some);
#pragma unroll
            for (uint32_t k = 0; k < SCORES_PER_STEP; k++) {
                is_invalid |= !(some[k] < INFINITE_SCORE);
                if (some[k] > best.score) {
                    best.score = some[k];
                    best.class_index = c + k * own.lanes;
                }
            }
        }
    }
};

// Softmax over all scores: the probability of the class with the greatest score, `best`. Returns
// false, without computing the sum, if the candidate's score is certain to be below `lowest`.
//
// The sum includes exp(0), so it is at least 1 unless it is NaN. The exponential of the class is
// therefore not less than its probability, and every later operation increases with its operand or
// stays equal. A product with negative objectness is the exception: it decreases, but it is not
// less than objectness, which has reached `lowest`.
DEVICE bool best_softmax(const LayoutParams &layout, const LayoutNumbers &scores, uint32_t anchor,
                         float objectness, float best, bool is_invalid, float lowest,
                         float &probability) {
    float background = LOWEST_SCORE;
    if (layout.score_columns != layout.components) {
        background = scores.load(anchor, layout.first_column != 0 ? 0 : layout.components);
    }
    const float greatest = background > best ? background : best;
    const float power = exponential(sub_rn(best, greatest));
    if (!is_invalid && background < INFINITE_SCORE &&
        combined_score(layout, objectness, power) < lowest) {
        return false;
    }
    const ExponentialSum exponentials(scores, anchor, 0, layout.score_columns, greatest);
    probability = div_rn(power, exponentials.sum);
    return true;
}

// Rules 3 and 4, for a known class: the score.
DEVICE Verdict layout_score(const KernelParams &params, const LayoutParams &layout,
                            float objectness, float probability, uint32_t class_index,
                            float &score) {
    score = combined_score(layout, objectness, probability);
    if (!is_finite(score)) {
        return REJECTED;
    }
    const float threshold = class_threshold(params, class_index);
    return score < threshold || is_objectness_below(layout, objectness, threshold) ? DROPPED
                                                                                   : CANDIDATE;
}

// Rules 2 to 4 for the best class. In: component `best.class_index` has the greatest score. Out:
// the score and the class. If the layout has a tensor with classes, the class is read from it.
DEVICE Verdict best_score(const KernelParams &params, const LayoutParams &layout,
                          const LayoutGroup &group, const LayoutNumbers &scores,
                          const AnchorPart &own, float objectness, const BestClass &best,
                          bool is_invalid, float &score, uint32_t &class_index) {
    if (!is_finite(best.score)) {
        return REJECTED;
    }
    float probability = best.score;
    if (layout.activation == ACTIVATION_SIGMOID) {
        probability = sigmoid(best.score);
    } else if (layout.activation == ACTIVATION_SOFTMAX &&
               !best_softmax(layout, scores, own.anchor, objectness, best.score, is_invalid,
                             params.lowest_threshold, probability)) {
        return DROPPED;
    }
    class_index = layout.first_class + best.class_index;
    if (layout.has_class != 0) {
        // Up to here the score is independent of the class, so it can be checked before the class
        // is known.
        score = combined_score(layout, objectness, probability);
        if (!is_finite(score)) {
            return REJECTED;
        }
        if (score < params.lowest_threshold) {
            return DROPPED;
        }
        const float number = LayoutNumbers(group.class_index).load(own.anchor, 0);
        if (!(number >= 0.0f && number < float(layout.classes)) ||
            float(uint32_t(number)) != number) {
            return REJECTED;
        }
        class_index = uint32_t(number);
    }
    return layout_score(params, layout, objectness, probability, class_index, score);
}

// The shared memory of a block.
struct DecodeLayoutShared {
    LayoutGroup group;
    BestOfWarps partial;
};

// Decodes each anchor to its best class, with boxes of the type `Box`.
template <typename Box>
DEVICE void decode_groups(DecodeLayoutShared &shared, const KernelParams &params, void *workspaces,
                          uint64_t stride, const LayoutParams &layout) {
    grid_dependency_wait();
    store_params(params, workspaces, stride);
    load_group(layout, shared.group);
    const LayoutGroup &group = shared.group;
    const AnchorPart own(layout, group);
    const LayoutNumbers scores(group.scores);
    Verdict verdict = own.verdict;
    float objectness = 1.0f;
    if (verdict == CANDIDATE) {
        verdict = layout_objectness(layout, group, own.anchor, objectness);
    }
    if (verdict == CANDIDATE && is_objectness_below(layout, objectness, params.lowest_threshold)) {
        verdict = DROPPED;
    }

    BestClass best = {LOWEST_SCORE, 0};
    uint32_t is_invalid = 0;
    if (verdict == CANDIDATE) {
        const BestOfPart of_part(layout, scores, own);
        best = of_part.best;
        is_invalid = of_part.is_invalid;
    }
    if (own.by_warps) {
        const uint32_t lane = lane_index(), warp = warp_index();
        shared.partial.score[warp][lane] = best.score;
        // A class has 16 bits.
        shared.partial.class_index[warp][lane] = best.class_index | is_invalid << 31;
        __syncthreads();
        if (warp != 0) {
            return;
        }
#pragma unroll
        for (uint32_t w = 1; w < DECODE_WARPS; w++) {
            const uint32_t packed = shared.partial.class_index[w][lane];
            best.combine({shared.partial.score[w][lane], packed & 0x7fffffffu});
            is_invalid |= packed >> 31;
        }
    } else if (own.lanes != 1) {
#pragma unroll
        for (uint32_t distance = 4; distance != 0; distance /= 2) {
            best.combine({__shfl_xor_sync(ALL_LANES, best.score, distance),
                          __shfl_xor_sync(ALL_LANES, best.class_index, distance)});
            is_invalid |= __shfl_xor_sync(ALL_LANES, is_invalid, distance);
        }
        if (own.part != 0) {
            verdict = DROPPED; // the first of the eight lanes continues with the anchor
        }
    }

    float score = 0.0f;
    uint32_t class_index = 0;
    if (verdict == CANDIDATE) {
        verdict = best_score(params, layout, group, scores, own, objectness, best, is_invalid != 0,
                             score, class_index);
    }
    Box box = {};
    if (verdict == CANDIDATE) {
        verdict = layout_box(params, layout, group, own.anchor, box);
    }
    if (verdict == CANDIDATE) {
        verdict = check_limits(params, box, class_index);
    }
    const OwnGroup image_group(params, workspaces, stride);
    append(params, image_group, verdict, box, score, image_group.first_anchor + own.index,
           class_index);
}

// Decodes to all pairs of anchor and class. Each thread handles some of an anchor's pairs, and
// computes the anchor's box and softmax sum only once.
template <typename Box>
DEVICE void decode_groups_multi(LayoutGroup &group, const KernelParams &params, void *workspaces,
                                uint64_t stride, const LayoutParams &layout) {
    grid_dependency_wait();
    store_params(params, workspaces, stride);
    load_group(layout, group);
    const AnchorPart own(layout, group);
    const LayoutNumbers scores(group.scores);
    float objectness = 1.0f;
    Verdict of_anchor = own.verdict;
    if (of_anchor == CANDIDATE) {
        of_anchor = layout_objectness(layout, group, own.anchor, objectness);
    }
    const bool has_softmax = layout.activation == ACTIVATION_SOFTMAX;
    const uint32_t columns = layout.score_columns;
    bool has_sum = false, has_box = false;
    float greatest = 0.0f, sum = 1.0f;
    Box box = {};
    Verdict of_box = DROPPED;

    const OwnGroup image_group(params, workspaces, stride);
    // All lanes of a warp take an equal number of steps.
#pragma unroll 1
    for (uint32_t first = 0; first < layout.components; first += own.lanes) {
        const uint32_t component = first + own.part;
        const uint32_t class_index = layout.first_class + component;
        Verdict verdict = component < layout.components ? of_anchor : DROPPED;
        float score = 0.0f;
        if (verdict == CANDIDATE &&
            is_objectness_below(layout, objectness, class_threshold(params, class_index))) {
            verdict = DROPPED;
        }
        if (verdict == CANDIDATE) {
            float probability = scores.load(own.anchor, layout.first_column + component);
            if (!is_finite(probability)) {
                verdict = REJECTED;
            } else {
                if (has_softmax && !has_sum) {
                    greatest = greatest_of(scores, own.anchor, 0, columns);
                    sum = ExponentialSum(scores, own.anchor, 0, columns, greatest).sum;
                    has_sum = true;
                }
                if (has_softmax) {
                    probability = div_rn(exponential(sub_rn(probability, greatest)), sum);
                } else if (layout.activation == ACTIVATION_SIGMOID) {
                    probability = sigmoid(probability);
                }
                verdict = layout_score(params, layout, objectness, probability, class_index, score);
            }
        }
        if (verdict == CANDIDATE) {
            if (!has_box) {
                of_box = layout_box(params, layout, group, own.anchor, box);
                has_box = true;
            }
            verdict = of_box == CANDIDATE ? check_limits(params, box, class_index) : of_box;
        }
        const uint32_t index = (image_group.first_anchor + own.index) * params.classes + component;
        append(params, image_group, verdict, box, score, index, class_index);
    }
}

KERNEL(DECODE_THREADS, 2)
decode_layout(const KernelParams params, void *workspaces, uint64_t stride,
              const LayoutParams layout) {
    BLOCK_SHARED(DecodeLayoutShared, shared);
    decode_groups<UprightBox>(shared, params, workspaces, stride, layout);
}
KERNEL(DECODE_THREADS, 2)
decode_layout_multi(const KernelParams params, void *workspaces, uint64_t stride,
                    const LayoutParams layout) {
    BLOCK_SHARED(LayoutGroup, group);
    decode_groups_multi<UprightBox>(group, params, workspaces, stride, layout);
}
