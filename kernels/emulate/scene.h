// SPDX-License-Identifier: MIT OR Apache-2.0
// Random scenes for programs that check the kernels: parameters, and the tensors that they refer
// to.
#pragma once

#include "reference.h"

namespace reference {

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

// Sets the visible region to the whole plane.
inline void set_all_visible(KernelParams &params) {
    params.visible[0] = params.visible[1] = -INFINITY;
    params.visible[2] = params.visible[3] = INFINITY;
}

// Random parameters, and the tensors that they refer to, f32 or f16 each, with host addresses.
// Boxes and scores may be in one tensor.
struct Scene {
    std::vector<float> boxes_f32, scores_f32, thresholds;
    std::vector<uint16_t> boxes_f16, scores_f16;
    bool boxes_half = false, scores_half = false;
    KernelParams params;

    Scene(uint64_t seed, uint32_t most_anchors) {
        Random random(seed);
        memset(&params, 0, sizeof params);
        const uint32_t anchors =
            random.once_in(20) ? random.below(4) : random.below(most_anchors) + 1;
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

        // Columns of the tensors: the box, objectness, scores; in one tensor or two.
        const uint32_t of_scores = classes + has_objectness;
        std::vector<float> boxes(size_t(anchors) * (together ? sides + of_scores : sides));
        std::vector<float> scores(together ? 0 : size_t(anchors) * of_scores);
        const auto set_field = [&](Field &field, uint32_t first, uint32_t width, uint64_t &offset) {
            field.anchor_stride = columns ? 1 : width;
            field.component_stride = columns ? anchors : 1;
            offset = columns ? uint64_t(first) * anchors : first;
        };
        uint64_t box_offset, objectness_offset = 0, score_offset;
        const uint32_t width = together ? sides + of_scores : sides;
        set_field(params.boxes, 0, width, box_offset);
        const uint32_t before = together ? sides : 0, score_width = together ? width : of_scores;
        if (has_objectness) {
            set_field(params.objectness, before, score_width, objectness_offset);
        }
        set_field(params.scores, before + has_objectness, score_width, score_offset);
        std::vector<float> &score_values = together ? boxes : scores;

        // Boxes in clusters; in some scenes with rounded numbers, so that overlaps are equal to the
        // threshold, and scores are equal.
        const bool coarse = random.once_in(2);
        const uint32_t clusters = 1 + random.below(1 + anchors / 4);
        const float spread = 5.0f + 60.0f * random.unit();
        const auto coordinate = [&](float value) { return coarse ? floorf(value) : value; };
        const float confident = random.unit();
        for (uint32_t a = 0; a < anchors; a++) {
            Random of_cluster(seed * 1000 + random.below(clusters));
            const float x = coordinate(600.0f * of_cluster.unit() + spread * random.unit());
            const float y = coordinate(400.0f * of_cluster.unit() + spread * random.unit());
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
        params.boxes.address = store(boxes, boxes_half, boxes_f32, boxes_f16, box_offset);
        const uint64_t first_score = together
                                         ? params.boxes.address - box_offset * (boxes_half ? 2 : 4)
                                         : store(scores, scores_half, scores_f32, scores_f16, 0);
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
        params.lowest_threshold =
            params.class_threshold_count < classes ? params.threshold : INFINITY;
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
        set_all_visible(params);
        if (random.once_in(3)) {
            params.visible[random.below(4)] = float(random.below(600));
        }
        // Only with few pairs: with many a scene takes seconds.
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

    // Stores the values as a tensor. Returns the address of element `offset`.
    static uint64_t store(const std::vector<float> &values, bool half, std::vector<float> &f32,
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

} // namespace reference
