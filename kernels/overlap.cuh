// SPDX-License-Identifier: MIT OR Apache-2.0
// Overlap: decides if two boxes conflict, i.e. if their overlap exceeds the threshold. The rules
// are in core/src/engine/mod.rs.
#pragma once

#include "workspace.cuh"

// The parameters of the overlap test, kept in registers. The threshold is either the lowest of all
// classes, which excludes no conflicting pair, or the threshold of the lower-ranked candidate's
// class.
struct OverlapRule {
    uint32_t overlap, inclusive, class_agnostic;
    float threshold, offset;

    DEVICE explicit OverlapRule(const KernelParams &params)
        : overlap(params.overlap), inclusive(params.threshold_inclusive),
          class_agnostic(params.class_agnostic), threshold(params.lowest_iou_threshold),
          offset(params.pixel_offset) {}

    // Prepares the exact test for a lower-ranked candidate of this class.
    DEVICE void set_class(const KernelParams &params, uint32_t class_index) {
        const ClassRule *const rules = (const ClassRule *)params.class_rules;
        threshold = class_index < params.class_rule_count
                        ? __ldg(&rules[class_index].iou_threshold)
                        : params.iou_threshold;
    }
};

DEVICE float area(const float4 &box, const OverlapRule &rule) {
    return mul_rn(add_rn(sub_rn(box.z, box.x), rule.offset),
                  add_rn(sub_rn(box.w, box.y), rule.offset));
}

// True if the boxes conflict. `higher` outranks `lower`.
DEVICE bool boxes_conflict(const float4 &higher, const float4 &lower, const OverlapRule &rule) {
    const float width =
        add_rn(sub_rn(fminf(higher.z, lower.z), fmaxf(higher.x, lower.x)), rule.offset);
    const float height =
        add_rn(sub_rn(fminf(higher.w, lower.w), fmaxf(higher.y, lower.y)), rule.offset);
    const float intersection = mul_rn(width, height);
    const float higher_area = area(higher, rule), lower_area = area(lower, rule);
    float whole = sub_rn(add_rn(higher_area, lower_area), intersection);
    if (rule.overlap != OVERLAP_IOU) {
        whole = rule.overlap == OVERLAP_SMALLER ? fminf(higher_area, lower_area) : higher_area;
    }
    const float limit = mul_rn(rule.threshold, whole);
    const bool exceeds = rule.inclusive ? intersection >= limit : intersection > limit;
    return width > 0.0f && height > 0.0f && exceeds;
}

// True if candidates of these two classes can conflict.
DEVICE bool classes_conflict(uint32_t class_index, uint32_t other, const OverlapRule &rule) {
    return class_index == other || rule.class_agnostic != 0;
}
