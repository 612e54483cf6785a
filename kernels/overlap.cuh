// When two boxes overlap too much, as the rules of src/engine/mod.rs have it.
#pragma once

#include "workspace.cuh"

// The frame's rules, for registers.
struct Rule {
    uint32_t overlap, inclusive, class_agnostic;
    float threshold, offset;

    DEVICE explicit Rule(const Frame &frame)
        : overlap(frame.overlap), inclusive(frame.threshold_inclusive),
          class_agnostic(frame.class_agnostic), threshold(frame.iou_threshold),
          offset(frame.pixel_offset) {}
};

DEVICE float area(const float4 &box, const Rule &rule) {
    return times(plus(minus(box.z, box.x), rule.offset), plus(minus(box.w, box.y), rule.offset));
}

// Whether `higher` suppresses `lower`, which it outranks, where their classes concern each other.
DEVICE bool overlaps(const float4 &higher, const float4 &lower, const Rule &rule) {
    const float width =
        plus(minus(fminf(higher.z, lower.z), fmaxf(higher.x, lower.x)), rule.offset);
    const float height =
        plus(minus(fminf(higher.w, lower.w), fmaxf(higher.y, lower.y)), rule.offset);
    const float intersection = times(width, height);
    const float higher_area = area(higher, rule), lower_area = area(lower, rule);
    float whole = minus(plus(higher_area, lower_area), intersection);
    if (rule.overlap != IOU) {
        whole = rule.overlap == SMALLER ? fminf(higher_area, lower_area) : higher_area;
    }
    const float limit = times(rule.threshold, whole);
    const bool too_much = rule.inclusive ? intersection >= limit : intersection > limit;
    return width > 0.0f && height > 0.0f && too_much;
}

DEVICE bool concerns(uint32_t class_index, uint32_t other, const Rule &rule) {
    return class_index == other || rule.class_agnostic != 0;
}
