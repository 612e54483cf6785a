// SPDX-License-Identifier: MIT OR Apache-2.0
// A sequential reference implementation of the rules of src/engine/mod.rs, for programs without
// Rust that check the kernels: check.cpp and tests/gpu/bench.cu. In: parameters with host
// addresses. Out: the expected results. engine::Reference is the oracle of the tests in Rust, which
// run the same kernels.
#pragma once

#include "../interface.cuh"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reference {

struct Result {
    uint32_t candidates = 0, rejected = 0;
    std::vector<Detection> survivors;
};

inline float half_to_float(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    return exponent == 0 ? sign * ldexpf(float(fraction), -24)
                         : sign * ldexpf(float(1024 + fraction), exponent - 25);
}

// Rounds towards zero.
inline uint16_t float_to_half(float value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float size = fabsf(value);
    if (isnan(value)) {
        return 0x7e00;
    }
    if (size >= 65536.0f) {
        return uint16_t(sign | 0x7c00);
    }
    uint16_t best = 0;
    for (uint16_t step = 0x4000; step != 0; step = uint16_t(step >> 1)) {
        const uint16_t next = uint16_t(best | step);
        if (next < 0x7c00 && half_to_float(next) <= size) {
            best = next;
        }
    }
    return uint16_t(sign | best);
}

inline float load(const Field &field, bool is_half, uint64_t anchor, uint64_t component) {
    const uint64_t index = anchor * field.anchor_stride + component * field.component_stride;
    return is_half ? half_to_float(((const uint16_t *)field.address)[index])
                   : ((const float *)field.address)[index];
}

inline float class_threshold(const KernelParams &params, uint32_t class_index) {
    return class_index < params.class_threshold_count
               ? ((const float *)params.class_thresholds)[class_index]
               : params.threshold;
}

enum class Verdict { CANDIDATE, DROPPED, REJECTED };

// Rules 1 to 6, for the classes from `first` to before `end`.
inline Verdict decode(const KernelParams &params, bool boxes_half, bool scores_half,
                      uint32_t anchor, uint32_t first, uint32_t end, Detection &candidate) {
    const bool has_objectness = params.objectness.address != 0;
    float objectness = 1.0f, lowest = INFINITY;
    for (uint32_t c = first; c < end; c++) {
        lowest = std::min(lowest, class_threshold(params, c));
    }
    if (has_objectness) {
        objectness = load(params.objectness, scores_half, anchor, 0);
        if (!isfinite(objectness)) {
            return Verdict::REJECTED;
        }
        if (objectness < lowest) {
            return Verdict::DROPPED;
        }
    }
    float best = -INFINITY;
    uint32_t class_index = first;
    for (uint32_t c = first; c < end; c++) {
        const float score = load(params.scores, scores_half, anchor, c);
        if (score > best) {
            best = score;
            class_index = c;
        }
    }
    if (!isfinite(best)) {
        return Verdict::REJECTED;
    }
    const float score = (has_objectness ? objectness * best : best) + 0.0f;
    if (!isfinite(score)) {
        return Verdict::REJECTED;
    }
    const float threshold = class_threshold(params, class_index);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return Verdict::DROPPED;
    }
    float p[4] = {};
    const uint32_t parts = params.box_format == SQUARE ? 3 : 4;
    for (uint32_t i = 0; i < parts; i++) {
        p[i] = load(params.boxes, boxes_half, anchor, i) * params.scale[i % 2];
    }
    if (params.box_format == CENTER) {
        const float x = p[0], y = p[1], w = p[2], h = p[3];
        p[0] = x - w / 2.0f;
        p[1] = y - h / 2.0f;
        p[2] = x + w / 2.0f;
        p[3] = y + h / 2.0f;
    } else if (params.box_format == SQUARE) {
        const float side = load(params.boxes, boxes_half, anchor, 2);
        p[2] = p[0] + side * params.scale[0];
        p[3] = p[1] + side * params.scale[1];
    }
    for (float corner : p) {
        if (!isfinite(corner)) {
            return Verdict::REJECTED;
        }
    }
    const float w = p[2] - p[0], h = p[3] - p[1];
    if (w < 0.0f || h < 0.0f || w > 1.0e9f || h > 1.0e9f) {
        return Verdict::REJECTED;
    }
    if (w == 0.0f || h == 0.0f || w < params.min_size[0] || h < params.min_size[1] ||
        w > params.max_size[0] || h > params.max_size[1]) {
        return Verdict::DROPPED;
    }
    const float *const visible = params.visible;
    if (p[2] <= visible[0] || p[0] >= visible[2] || p[3] <= visible[1] || p[1] >= visible[3]) {
        return Verdict::REJECTED;
    }
    candidate = {p[0], p[1], p[2], p[3], score, class_index, anchor};
    return Verdict::CANDIDATE;
}

inline bool conflicts(const Detection &higher, const Detection &lower, const KernelParams &params) {
    if (higher.class_index != lower.class_index && !params.class_agnostic) {
        return false;
    }
    const float offset = params.pixel_offset;
    const auto area = [=](const Detection &d) {
        return (d.x2 - d.x1 + offset) * (d.y2 - d.y1 + offset);
    };
    const float w = std::min(higher.x2, lower.x2) - std::max(higher.x1, lower.x1) + offset;
    const float h = std::min(higher.y2, lower.y2) - std::max(higher.y1, lower.y1) + offset;
    if (w <= 0.0f || h <= 0.0f) {
        return false;
    }
    const float intersection = w * h;
    const float whole = params.overlap == IOU ? area(higher) + area(lower) - intersection
                        : params.overlap == REPRESENTATIVE ? area(higher)
                                                           : std::min(area(higher), area(lower));
    const float limit = params.iou_threshold * whole;
    return params.threshold_inclusive ? intersection >= limit : intersection > limit;
}

// The expected results of one image.
inline Result run(const KernelParams &params, bool boxes_half, bool scores_half) {
    Result result;
    std::vector<Detection> ranked;
    // Classes that are decoded together: all of an anchor, or with multi_label one.
    const uint32_t classes = params.multi_label ? 1 : params.classes;
    for (uint32_t anchor = 0; anchor < params.anchors; anchor++) {
        for (uint32_t first = 0; first < params.classes; first += classes) {
            Detection candidate;
            switch (decode(params, boxes_half, scores_half, anchor, first, first + classes,
                           candidate)) {
            case Verdict::CANDIDATE: ranked.push_back(candidate); break;
            case Verdict::REJECTED: result.rejected++; break;
            case Verdict::DROPPED: break;
            }
        }
    }
    result.candidates = uint32_t(ranked.size());
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Detection &a, const Detection &b) { return a.score > b.score; });
    if (params.max_candidates != 0 && ranked.size() > params.max_candidates) {
        ranked.resize(params.max_candidates);
    }
    for (size_t i = 0; i < ranked.size(); i++) {
        const std::vector<Detection> &among = params.method == GREEDY ? result.survivors : ranked;
        const size_t count = params.method == GREEDY       ? result.survivors.size()
                             : params.method == MAP_REDUCE ? i
                                                           : 0;
        bool suppressed = false;
        for (size_t j = 0; j < count && !suppressed; j++) {
            suppressed = conflicts(among[j], ranked[i], params);
        }
        if (!suppressed) {
            result.survivors.push_back(ranked[i]);
        }
    }
    if (params.max_detections != 0 && result.survivors.size() > params.max_detections) {
        result.survivors.resize(params.max_detections);
    }
    return result;
}

// What differs between the expected results and those of an image; empty if nothing does.
inline std::string difference(const Result &expected, const ResultHeader &header,
                              const Detection *detections) {
    const auto count = [](const char *what, uint64_t wanted, uint64_t got) {
        return std::string(what) + ": expected " + std::to_string(wanted) + ", got " +
               std::to_string(got);
    };
    if (header.candidates != expected.candidates) {
        return count("candidates", expected.candidates, header.candidates);
    }
    if (header.rejected != expected.rejected) {
        return count("rejected", expected.rejected, header.rejected);
    }
    if (header.survivors != expected.survivors.size()) {
        return count("survivors", expected.survivors.size(), header.survivors);
    }
    for (size_t i = 0; i < expected.survivors.size(); i++) {
        if (memcmp(&expected.survivors[i], &detections[i], sizeof(Detection)) != 0) {
            if (expected.survivors[i].anchor == detections[i].anchor) {
                return count("class of a survivor", expected.survivors[i].class_index,
                             detections[i].class_index);
            }
            return count("anchor of a survivor", expected.survivors[i].anchor,
                         detections[i].anchor);
        }
    }
    return std::string();
}

} // namespace reference
