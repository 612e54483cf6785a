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

inline float threshold_of(const Frame &frame, uint32_t class_index) {
    return class_index < frame.listed ? ((const float *)frame.class_thresholds)[class_index]
                                      : frame.threshold;
}

enum Row { CANDIDATE_ROW, DROPPED_ROW, REJECTED_ROW };

// Rules 1 to 6, of the classes from `first` on that are before `end`.
inline Row decode(const Frame &frame, bool boxes_half, bool scores_half, uint32_t anchor,
                  uint32_t first, uint32_t end, Detection &found) {
    const bool has_objectness = frame.objectness.address != 0;
    float objectness = 1.0f, lowest = INFINITY;
    for (uint32_t c = first; c < end; c++) {
        lowest = std::min(lowest, threshold_of(frame, c));
    }
    if (has_objectness) {
        objectness = number(frame.objectness, scores_half, anchor, 0);
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
        const float score = number(frame.scores, scores_half, anchor, c);
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
    const float threshold = threshold_of(frame, class_index);
    if (score < threshold || (has_objectness && objectness < threshold)) {
        return DROPPED_ROW;
    }
    float p[4] = {};
    const uint32_t parts = frame.box_format == SQUARE ? 3 : 4;
    for (uint32_t i = 0; i < parts; i++) {
        p[i] = number(frame.boxes, boxes_half, anchor, i) * frame.scale[i % 2];
    }
    if (frame.box_format == CENTRE) {
        const float x = p[0], y = p[1], w = p[2], h = p[3];
        p[0] = x - w / 2.0f;
        p[1] = y - h / 2.0f;
        p[2] = x + w / 2.0f;
        p[3] = y + h / 2.0f;
    } else if (frame.box_format == SQUARE) {
        const float side = number(frame.boxes, boxes_half, anchor, 2);
        p[2] = p[0] + side * frame.scale[0];
        p[3] = p[1] + side * frame.scale[1];
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
    if (w == 0.0f || h == 0.0f || w < frame.min_size[0] || h < frame.min_size[1] ||
        w > frame.max_size[0] || h > frame.max_size[1]) {
        return DROPPED_ROW;
    }
    const float *const visible = frame.visible;
    if (p[2] <= visible[0] || p[0] >= visible[2] || p[3] <= visible[1] || p[1] >= visible[3]) {
        return REJECTED_ROW;
    }
    found = {p[0], p[1], p[2], p[3], score, class_index, anchor};
    return CANDIDATE_ROW;
}

inline bool meet(const Detection &higher, const Detection &lower, const Frame &frame) {
    if (higher.class_index != lower.class_index && !frame.class_agnostic) {
        return false;
    }
    const float offset = frame.pixel_offset;
    const auto area = [=](const Detection &d) {
        return (d.x2 - d.x1 + offset) * (d.y2 - d.y1 + offset);
    };
    const float w = std::min(higher.x2, lower.x2) - std::max(higher.x1, lower.x1) + offset;
    const float h = std::min(higher.y2, lower.y2) - std::max(higher.y1, lower.y1) + offset;
    if (w <= 0.0f || h <= 0.0f) {
        return false;
    }
    const float intersection = w * h;
    const float whole = frame.overlap == IOU ? area(higher) + area(lower) - intersection
                        : frame.overlap == REPRESENTATIVE ? area(higher)
                                                          : std::min(area(higher), area(lower));
    const float limit = frame.iou_threshold * whole;
    return frame.threshold_inclusive ? intersection >= limit : intersection > limit;
}

// What the frame, whose addresses are the host's, should give.
inline Result run(const Frame &frame, bool boxes_half, bool scores_half) {
    Result result;
    std::vector<Detection> ranked;
    // All classes of an anchor at once, or with multi_label one by one.
    const uint32_t classes = frame.multi_label ? 1 : frame.classes;
    for (uint32_t anchor = 0; anchor < frame.anchors; anchor++) {
        for (uint32_t first = 0; first < frame.classes; first += classes) {
            Detection found;
            switch (decode(frame, boxes_half, scores_half, anchor, first, first + classes, found)) {
            case CANDIDATE_ROW: ranked.push_back(found); break;
            case REJECTED_ROW: result.rejected++; break;
            case DROPPED_ROW: break;
            }
        }
    }
    result.candidates = uint32_t(ranked.size());
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Detection &a, const Detection &b) { return a.score > b.score; });
    if (frame.max_candidates != 0 && ranked.size() > frame.max_candidates) {
        ranked.resize(frame.max_candidates);
    }
    for (size_t i = 0; i < ranked.size(); i++) {
        const std::vector<Detection> &among = frame.method == GREEDY ? result.survivors : ranked;
        const size_t count = frame.method == GREEDY       ? result.survivors.size()
                             : frame.method == MAP_REDUCE ? i
                                                          : 0;
        bool suppressed = false;
        for (size_t j = 0; j < count && !suppressed; j++) {
            suppressed = meet(among[j], ranked[i], frame);
        }
        if (!suppressed) {
            result.survivors.push_back(ranked[i]);
        }
    }
    if (frame.max_detections != 0 && result.survivors.size() > frame.max_detections) {
        result.survivors.resize(frame.max_detections);
    }
    return result;
}

// Empty where the outcome and the detections behind it are the result; else what differs.
inline std::string difference(const Result &expected, const Outcome &outcome,
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

inline void see_all(Frame &frame) {
    frame.visible[0] = frame.visible[1] = -INFINITY;
    frame.visible[2] = frame.visible[3] = INFINITY;
}

// A random frame and the tensors it reads, f32 or f16 each. The addresses in `frame` are the
// host's; `boxes` and `scores` may be the same tensor.
struct Scene {
    std::vector<float> boxes_f32, scores_f32, thresholds;
    std::vector<uint16_t> boxes_f16, scores_f16;
    bool boxes_half = false, scores_half = false;
    Frame frame;

    Scene(uint64_t seed, uint32_t most_anchors) {
        Random random(seed);
        memset(&frame, 0, sizeof frame);
        const uint32_t anchors = random.once_in(20) ? random.below(4) : random.below(most_anchors) + 1;
        const uint32_t class_choices[] = {1, 1, 2, 3, 7, 8, 9, 40, 80, 91, 200};
        const uint32_t classes = class_choices[random.below(11)];
        const bool columns = random.once_in(2), together = random.once_in(2);
        const bool has_objectness = random.once_in(3);
        frame.anchors = anchors;
        frame.classes = classes;
        frame.lanes = lanes_for(classes);
        frame.box_format = random.below(3);
        const uint32_t sides = frame.box_format == SQUARE ? 3 : 4;
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
        place(frame.boxes, 0, width, box_offset);
        const uint32_t before = together ? sides : 0, score_width = together ? width : of_scores;
        if (has_objectness) {
            place(frame.objectness, before, score_width, objectness_offset);
        }
        place(frame.scores, before + has_objectness, score_width, score_offset);
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
            if (frame.box_format != CORNERS) {
                part[2] = w;
                part[3] = h;
            }
            if (random.once_in(40)) {
                const float odd[] = {0.0f, -1.0f, NAN, INFINITY, 1.0e20f, 3.0e9f, 1.0e-41f};
                part[random.below(4)] = odd[random.below(7)];
            }
            for (uint32_t c = 0; c < sides; c++) {
                boxes[box_offset + a * frame.boxes.anchor_stride +
                      c * frame.boxes.component_stride] = part[c];
            }
            if (has_objectness) {
                score_values[objectness_offset + a * frame.objectness.anchor_stride] =
                    odd_score(random, coarse, confident);
            }
            for (uint32_t c = 0; c < classes; c++) {
                score_values[score_offset + a * frame.scores.anchor_stride +
                             c * frame.scores.component_stride] =
                    odd_score(random, coarse, classes > 8 ? confident / 8 : confident);
            }
        }
        frame.boxes.address = keep(boxes, boxes_half, boxes_f32, boxes_f16, box_offset);
        const uint64_t first_score =
            together ? frame.boxes.address - box_offset * (boxes_half ? 2 : 4)
                     : keep(scores, scores_half, scores_f32, scores_f16, 0);
        const uint64_t size = scores_half ? 2 : 4;
        frame.scores.address = first_score + score_offset * size;
        if (has_objectness) {
            frame.objectness.address = first_score + objectness_offset * size;
        }

        frame.threshold = random.once_in(4) ? -1.0f : 0.5f * random.unit();
        if (random.once_in(3)) {
            const uint32_t listed = 1 + random.below(classes + 2);
            for (uint32_t c = 0; c < listed; c++) {
                thresholds.push_back(random.once_in(5) ? INFINITY : random.unit());
            }
        }
        frame.listed = uint32_t(thresholds.size());
        frame.class_thresholds = thresholds.empty() ? 0 : (uint64_t)thresholds.data();
        frame.lowest_threshold = frame.listed < classes ? frame.threshold : INFINITY;
        for (uint32_t c = 0; c < std::min(frame.listed, classes); c++) {
            frame.lowest_threshold = std::min(frame.lowest_threshold, thresholds[c]);
        }
        frame.scale[0] = random.once_in(3) ? 1.5f : 1.0f;
        frame.scale[1] = random.once_in(3) ? 0.7f : 1.0f;
        frame.min_size[0] = random.once_in(4) ? 30.0f : 0.0f;
        frame.min_size[1] = random.once_in(4) ? 30.0f : 0.0f;
        frame.max_size[0] = random.once_in(4) ? 70.0f : INFINITY;
        frame.max_size[1] = random.once_in(4) ? 70.0f : INFINITY;
        frame.method = random.once_in(4) ? random.below(3) : uint32_t(GREEDY);
        frame.overlap = random.once_in(2) ? random.below(3) : uint32_t(IOU);
        frame.iou_threshold = coarse ? 0.25f * float(random.below(5)) : random.unit();
        frame.pixel_offset = random.once_in(3) ? 1.0f : 0.0f;
        frame.threshold_inclusive = random.once_in(2);
        frame.class_agnostic = random.once_in(2);
        frame.max_candidates = random.once_in(4) ? 1 + random.below(anchors + 1) : 0;
        frame.max_detections = random.once_in(4) ? 1 + random.below(30) : 0;
        frame.sequence = uint32_t(seed) + 1;
        see_all(frame);
        if (random.once_in(3)) {
            frame.visible[random.below(4)] = float(random.below(600));
        }
        // Not where there would be so many candidates that a scene takes seconds.
        frame.multi_label = random.once_in(2) && uint64_t(anchors) * classes <= most_anchors;
        frame.capacity = frame.anchors;
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
