// The rules of src/engine/mod.rs once more, plainly, for programs that hold the kernels to them
// without Rust: the check under AddressSanitizer, and the bench on a GPU. And scenes to do it with.
#pragma once

#include "../interface.cuh"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

namespace plain {

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

// Towards zero; good enough to make scenes of.
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

inline float number(const Field &field, bool is_half, uint64_t anchor, uint64_t component) {
    const uint64_t index = anchor * field.anchor_stride + component * field.component_stride;
    return is_half ? half_to_float(((const uint16_t *)field.address)[index])
                   : ((const float *)field.address)[index];
}

inline float threshold_of(const KernelParams &params, uint32_t class_index) {
    return class_index < params.class_threshold_count ? ((const float *)params.class_thresholds)[class_index]
                                      : params.threshold;
}

enum Row { CANDIDATE_ROW, DROPPED_ROW, REJECTED_ROW };

// Rules 1 to 6, of the classes from `first` on that are before `end`.
inline Row decode(const KernelParams &params, bool boxes_half, bool scores_half, uint32_t anchor,
                  uint32_t first, uint32_t end, Detection &found) {
    const bool has_objectness = params.objectness.address != 0;
    float objectness = 1.0f, lowest = INFINITY;
    for (uint32_t c = first; c < end; c++) {
        lowest = std::min(lowest, threshold_of(params, c));
    }
    if (has_objectness) {
        objectness = number(params.objectness, scores_half, anchor, 0);
        if (!isfinite(objectness)) {
            return REJECTED_ROW;
        }
        if (objectness < lowest) {
            return DROPPED_ROW;
        }
    }
    float best = -INFINITY;
    uint32_t class_index = first;
    for (uint32_t c = first; c < end; c++) {
        const float score = number(params.scores, scores_half, anchor, c);
        if (score > best) {
            best = score;
            class_index = c;
        }
    }
    if (!isfinite(best)) {
        return REJECTED_ROW;
    }
    const float score = (has_objectness ? objectness * best : best) + 0.0f;
    if (!isfinite(score)) {
        return REJECTED_ROW;
    }
    const float threshold = threshold_of(params, class_index);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return DROPPED_ROW;
    }
    float p[4] = {};
    const uint32_t parts = params.box_format == SQUARE ? 3 : 4;
    for (uint32_t i = 0; i < parts; i++) {
        p[i] = number(params.boxes, boxes_half, anchor, i) * params.scale[i % 2];
    }
    if (params.box_format == CENTER) {
        const float x = p[0], y = p[1], w = p[2], h = p[3];
        p[0] = x - w / 2.0f;
        p[1] = y - h / 2.0f;
        p[2] = x + w / 2.0f;
        p[3] = y + h / 2.0f;
    } else if (params.box_format == SQUARE) {
        const float side = number(params.boxes, boxes_half, anchor, 2);
        p[2] = p[0] + side * params.scale[0];
        p[3] = p[1] + side * params.scale[1];
    }
    for (float corner : p) {
        if (!isfinite(corner)) {
            return REJECTED_ROW;
        }
    }
    const float w = p[2] - p[0], h = p[3] - p[1];
    if (w < 0.0f || h < 0.0f || w > 1.0e9f || h > 1.0e9f) {
        return REJECTED_ROW;
    }
    if (w == 0.0f || h == 0.0f || w < params.min_size[0] || h < params.min_size[1] ||
        w > params.max_size[0] || h > params.max_size[1]) {
        return DROPPED_ROW;
    }
    const float *const visible = params.visible;
    if (p[2] <= visible[0] || p[0] >= visible[2] || p[3] <= visible[1] || p[1] >= visible[3]) {
        return REJECTED_ROW;
    }
    found = {p[0], p[1], p[2], p[3], score, class_index, anchor};
    return CANDIDATE_ROW;
}

inline bool meet(const Detection &higher, const Detection &lower, const KernelParams &params) {
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

// What the frame, whose addresses are the host's, should give.
inline Result run(const KernelParams &params, bool boxes_half, bool scores_half) {
    Result result;
    std::vector<Detection> ranked;
    // All classes of an anchor at once, or with multi_label one by one.
    const uint32_t classes = params.multi_label ? 1 : params.classes;
    for (uint32_t anchor = 0; anchor < params.anchors; anchor++) {
        for (uint32_t first = 0; first < params.classes; first += classes) {
            Detection found;
            switch (decode(params, boxes_half, scores_half, anchor, first, first + classes, found)) {
            case CANDIDATE_ROW: ranked.push_back(found); break;
            case REJECTED_ROW: result.rejected++; break;
            case DROPPED_ROW: break;
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
            suppressed = meet(among[j], ranked[i], params);
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

// Empty where the outcome and the detections behind it are the result; else what differs.
inline std::string difference(const Result &expected, const ResultHeader &outcome,
                              const Detection *found) {
    const auto count = [](const char *what, uint64_t wanted, uint64_t got) {
        return std::string(what) + ": expected " + std::to_string(wanted) + ", got " +
               std::to_string(got);
    };
    if (outcome.candidates != expected.candidates) {
        return count("candidates", expected.candidates, outcome.candidates);
    }
    if (outcome.rejected != expected.rejected) {
        return count("rejected", expected.rejected, outcome.rejected);
    }
    if (outcome.survivors != expected.survivors.size()) {
        return count("survivors", expected.survivors.size(), outcome.survivors);
    }
    for (size_t i = 0; i < expected.survivors.size(); i++) {
        if (memcmp(&expected.survivors[i], &found[i], sizeof(Detection)) != 0) {
            if (expected.survivors[i].anchor == found[i].anchor) {
                return count("class of a survivor", expected.survivors[i].class_index,
                             found[i].class_index);
            }
            return count("anchor of a survivor", expected.survivors[i].anchor, found[i].anchor);
        }
    }
    return std::string();
}

struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state >> 16;
    }
    uint32_t below(uint32_t n) { return uint32_t(next() % n); }
    float unit() { return float(next() & 0xffffff) / 16777216.0f; }
    bool once_in(uint32_t n) { return below(n) == 0; }
};

inline void see_all(KernelParams &params) {
    params.visible[0] = params.visible[1] = -INFINITY;
    params.visible[2] = params.visible[3] = INFINITY;
}

// A random frame and the tensors it reads, f32 or f16 each. The addresses in `frame` are the
// host's; `boxes` and `scores` may be the same tensor.
struct Scene {
    std::vector<float> boxes_f32, scores_f32, thresholds;
    std::vector<uint16_t> boxes_f16, scores_f16;
    bool boxes_half = false, scores_half = false;
    KernelParams params;

    Scene(uint64_t seed, uint32_t most_anchors) {
        Random random(seed);
        memset(&params, 0, sizeof params);
        const uint32_t anchors = random.once_in(20) ? random.below(4) : random.below(most_anchors) + 1;
        const uint32_t class_choices[] = {1, 1, 2, 3, 7, 8, 9, 40, 80, 91, 200};
        const uint32_t classes = class_choices[random.below(11)];
        const bool columns = random.once_in(2), together = random.once_in(2);
        const bool has_objectness = random.once_in(3);
        params.anchors = anchors;
        params.classes = classes;
        params.lanes_per_anchor = lanes_per_anchor(classes, 0, anchors, 1);
        params.images = 1;
        params.box_format = random.below(3);
        const uint32_t sides = params.box_format == SQUARE ? 3 : 4;
        boxes_half = random.once_in(2);
        scores_half = together ? boxes_half : random.once_in(2);

        // Numbers per anchor: boxes first, then objectness, then scores, in one tensor or two.
        const uint32_t of_scores = classes + has_objectness;
        std::vector<float> boxes(size_t(anchors) * (together ? sides + of_scores : sides));
        std::vector<float> scores(together ? 0 : size_t(anchors) * of_scores);
        const auto place = [&](Field &field, uint32_t first, uint32_t width, uint64_t &offset) {
            field.anchor_stride = columns ? 1 : width;
            field.component_stride = columns ? anchors : 1;
            offset = columns ? uint64_t(first) * anchors : first;
        };
        uint64_t box_offset, objectness_offset = 0, score_offset;
        const uint32_t width = together ? sides + of_scores : sides;
        place(params.boxes, 0, width, box_offset);
        const uint32_t before = together ? sides : 0, score_width = together ? width : of_scores;
        if (has_objectness) {
            place(params.objectness, before, score_width, objectness_offset);
        }
        place(params.scores, before + has_objectness, score_width, score_offset);
        std::vector<float> &score_values = together ? boxes : scores;

        // A crowd: boxes gather around some places, on a coarse grid now and then, so that
        // overlaps fall on thresholds and scores are equal.
        const bool coarse = random.once_in(2);
        const uint32_t places = 1 + random.below(1 + anchors / 4);
        const float spread = 5.0f + 60.0f * random.unit();
        const auto coordinate = [&](float value) { return coarse ? floorf(value) : value; };
        const float confident = random.unit();
        for (uint32_t a = 0; a < anchors; a++) {
            Random at_place(seed * 1000 + random.below(places));
            const float x = coordinate(600.0f * at_place.unit() + spread * random.unit());
            const float y = coordinate(400.0f * at_place.unit() + spread * random.unit());
            const float w = coordinate(20.0f + 60.0f * random.unit());
            const float h = coordinate(20.0f + 60.0f * random.unit());
            float part[4] = {x, y, x + w, y + h};
            if (params.box_format != CORNERS) {
                part[2] = w;
                part[3] = h;
            }
            if (random.once_in(40)) {
                const float odd[] = {0.0f, -1.0f, NAN, INFINITY, 1.0e20f, 3.0e9f, 1.0e-41f};
                part[random.below(4)] = odd[random.below(7)];
            }
            for (uint32_t c = 0; c < sides; c++) {
                boxes[box_offset + a * params.boxes.anchor_stride +
                      c * params.boxes.component_stride] = part[c];
            }
            if (has_objectness) {
                score_values[objectness_offset + a * params.objectness.anchor_stride] =
                    odd_score(random, coarse, confident);
            }
            for (uint32_t c = 0; c < classes; c++) {
                score_values[score_offset + a * params.scores.anchor_stride +
                             c * params.scores.component_stride] =
                    odd_score(random, coarse, classes > 8 ? confident / 8 : confident);
            }
        }
        params.boxes.address = keep(boxes, boxes_half, boxes_f32, boxes_f16, box_offset);
        const uint64_t first_score =
            together ? params.boxes.address - box_offset * (boxes_half ? 2 : 4)
                     : keep(scores, scores_half, scores_f32, scores_f16, 0);
        const uint64_t size = scores_half ? 2 : 4;
        params.scores.address = first_score + score_offset * size;
        if (has_objectness) {
            params.objectness.address = first_score + objectness_offset * size;
        }

        params.threshold = random.once_in(4) ? -1.0f : 0.5f * random.unit();
        if (random.once_in(3)) {
            const uint32_t class_threshold_count = 1 + random.below(classes + 2);
            for (uint32_t c = 0; c < class_threshold_count; c++) {
                thresholds.push_back(random.once_in(5) ? INFINITY : random.unit());
            }
        }
        params.class_threshold_count = uint32_t(thresholds.size());
        params.class_thresholds = thresholds.empty() ? 0 : (uint64_t)thresholds.data();
        params.lowest_threshold = params.class_threshold_count < classes ? params.threshold : INFINITY;
        for (uint32_t c = 0; c < std::min(params.class_threshold_count, classes); c++) {
            params.lowest_threshold = std::min(params.lowest_threshold, thresholds[c]);
        }
        params.scale[0] = random.once_in(3) ? 1.5f : 1.0f;
        params.scale[1] = random.once_in(3) ? 0.7f : 1.0f;
        params.min_size[0] = random.once_in(4) ? 30.0f : 0.0f;
        params.min_size[1] = random.once_in(4) ? 30.0f : 0.0f;
        params.max_size[0] = random.once_in(4) ? 70.0f : INFINITY;
        params.max_size[1] = random.once_in(4) ? 70.0f : INFINITY;
        params.method = random.once_in(4) ? random.below(3) : uint32_t(GREEDY);
        params.overlap = random.once_in(2) ? random.below(3) : uint32_t(IOU);
        params.iou_threshold = coarse ? 0.25f * float(random.below(5)) : random.unit();
        params.pixel_offset = random.once_in(3) ? 1.0f : 0.0f;
        params.threshold_inclusive = random.once_in(2);
        params.class_agnostic = random.once_in(2);
        params.max_candidates = random.once_in(4) ? 1 + random.below(anchors + 1) : 0;
        params.max_detections = random.once_in(4) ? 1 + random.below(30) : 0;
        params.sequence = uint32_t(seed) + 1;
        see_all(params);
        if (random.once_in(3)) {
            params.visible[random.below(4)] = float(random.below(600));
        }
        // Not where there would be so many candidates that a scene takes seconds.
        params.multi_label = random.once_in(2) && uint64_t(anchors) * classes <= most_anchors;
        params.capacity = params.anchors;
    }

  private:
    static float odd_score(Random &random, bool coarse, float confident) {
        if (random.once_in(200)) {
            const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, -0.3f, 1.0e-6f};
            return odd[random.below(6)];
        }
        const float score = random.unit() < confident ? random.unit() : 0.1f * random.unit();
        return coarse ? floorf(score * 16.0f) / 16.0f : score;
    }

    static uint64_t keep(const std::vector<float> &values, bool half, std::vector<float> &f32,
                         std::vector<uint16_t> &f16, uint64_t offset) {
        if (!half) {
            f32 = values;
            return (uint64_t)(f32.data() + offset);
        }
        for (float value : values) {
            f16.push_back(float_to_half(value));
        }
        return (uint64_t)(f16.data() + offset);
    }
};

} // namespace plain
