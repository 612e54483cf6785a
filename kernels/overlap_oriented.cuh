// SPDX-License-Identifier: MIT OR Apache-2.0
// Overlap of oriented boxes: decides if two candidates conflict
// (core/src/geometry/oriented/conflict.rs). Two tests reject most pairs before the exact one. The
// first checks that the bounds intersect, which is part of the rule. The second uses an upper bound
// of the intersection's area.
#pragma once

#include "oriented.cuh"
#include "overlap.cuh"

DEVICE Rectangle load_rectangle(const Workspace &workspace, uint32_t slot) {
    const float4 place = workspace.rectangle[slot].place, shape = workspace.rectangle[slot].shape;
    return Rectangle{place.x, place.y, place.z, place.w, shape.x, shape.y, shape.z};
}

DEVICE bool bounds_intersect(const float4 &a, const float4 &b) {
    return sub_rn(fminf(a.z, b.z), fmaxf(a.x, b.x)) > 0.0f &&
           sub_rn(fminf(a.w, b.w), fmaxf(a.y, b.y)) > 0.0f;
}

// True if boxes with these areas conflict, for overlaps measured by area. The function is
// monotonic: boxes that do not conflict with one intersection do not conflict with a smaller one.
DEVICE bool areas_conflict(float higher_area, float lower_area, float intersection,
                           const OverlapRule &rule) {
    float whole = sub_rn(add_rn(higher_area, lower_area), intersection);
    if (rule.overlap != OVERLAP_IOU) {
        whole = rule.overlap == OVERLAP_SMALLER ? lesser(higher_area, lower_area) : higher_area;
    }
    const float limit = mul_rn(rule.threshold, whole);
    return intersection > 0.0f &&
           (rule.inclusive ? intersection >= limit : intersection > limit);
}

// Returns false only if candidates with these bounds and areas cannot conflict. `higher` outranks
// `lower`.
DEVICE bool may_conflict(const float4 &higher, const float4 &lower, float higher_area,
                         float lower_area, const OverlapRule &rule) {
    if (!bounds_intersect(higher, lower)) {
        return false;
    }
    const float greatest =
        greatest_intersection(higher, lower, lesser(higher_area, lower_area));
    return rule.overlap == OVERLAP_PROB_IOU || areas_conflict(higher_area, lower_area, greatest, rule);
}

// True if the boxes conflict. Their bounds intersect, and `higher` outranks `lower`.
DEVICE bool rectangles_conflict(const Rectangle &higher, const Rectangle &lower,
                                const OverlapRule &rule) {
    if (rule.overlap == OVERLAP_PROB_IOU) {
        const float measure = prob_iou(higher, lower);
        return rule.inclusive ? measure >= rule.threshold : measure > rule.threshold;
    }
    return areas_conflict(higher.area, lower.area, intersection_area(higher, lower), rule);
}
