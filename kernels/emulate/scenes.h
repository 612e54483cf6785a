// SPDX-License-Identifier: MIT OR Apache-2.0
// Scenes with expected results, for programs that check the kernels: check.cpp and
// tests/gpu/bench.cu. In: a file that core/examples/scenes.rs has written; its first comment documents
// the format. Out: tensors, parameters, and the results of engine::Reference for each image.
#pragma once

#include "../interface.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

namespace scenes {

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

// The results of an image.
struct Result {
    uint32_t candidates = 0, rejected = 0;
    std::vector<Detection> survivors;
};

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
        const Detection &wanted = expected.survivors[i];
        if (memcmp(&wanted, &detections[i], sizeof(Detection)) != 0) {
            if (wanted.anchor != detections[i].anchor) {
                return count("anchor of a survivor", wanted.anchor, detections[i].anchor);
            }
            if (wanted.class_index != detections[i].class_index) {
                return count("class of a survivor", wanted.class_index, detections[i].class_index);
            }
            return "box or score of the survivor with the anchor " + std::to_string(wanted.anchor);
        }
    }
    return std::string();
}

// The elements have exactly the size of the tensor, so that AddressSanitizer reports accesses
// beyond it.
struct Tensor {
    bool is_f16;
    std::vector<char> elements;
};

// Where a field of KernelParams is.
struct Place {
    uint32_t tensor;
    uint64_t offset; // in elements
};

struct Scene {
    uint64_t seed;
    std::vector<Tensor> tensors;
    std::vector<float> thresholds; // by class
    std::vector<Result> expected;  // by image

    // The element types of the tensors of the boxes and of the scores.
    bool boxes_f16() const { return tensors[boxes.tensor].is_f16; }
    bool scores_f16() const { return tensors[scores.tensor].is_f16; }

    // The parameters of a launch, with capacity for a candidate per anchor. `addresses` are those
    // of the tensors, `class_thresholds` is that of the thresholds.
    KernelParams params(const std::vector<uint64_t> &addresses, uint64_t class_thresholds) const {
        const auto address = [&](const Place &place) {
            return place.tensor == NO_TENSOR
                       ? 0
                       : addresses[place.tensor] +
                             place.offset * (tensors[place.tensor].is_f16 ? 2 : 4);
        };
        KernelParams params = without_addresses;
        params.boxes.address = address(boxes);
        params.scores.address = address(scores);
        params.objectness.address = address(objectness);
        params.has_objectness = objectness.tensor != NO_TENSOR;
        params.class_thresholds = thresholds.empty() ? 0 : class_thresholds;
        return params;
    }

    // The parameters with tables of images: `tables` has the address of the table for each tensor,
    // or 0 for one that is read at `addresses`.
    KernelParams params(const std::vector<uint64_t> &addresses, uint64_t class_thresholds,
                        const std::vector<uint64_t> &tables) const {
        std::vector<uint64_t> bases = addresses;
        for (size_t tensor = 0; tensor < tables.size(); tensor++) {
            bases[tensor] = tables[tensor] != 0 ? 0 : addresses[tensor];
        }
        KernelParams params = this->params(bases, class_thresholds);
        params.box_images = tables[boxes.tensor];
        params.score_images = tables[scores.tensor];
        for (FieldParams *field : {&params.boxes, &params.scores, &params.objectness}) {
            const bool of_boxes = field == &params.boxes;
            if ((of_boxes ? params.box_images : params.score_images) != 0) {
                field->image_stride = 0;
            }
        }
        return params;
    }

    // Bytes from the numbers of an image in a tensor to those of the next.
    uint64_t image_stride(uint32_t tensor) const {
        const FieldParams &field =
            tensor == boxes.tensor ? without_addresses.boxes : without_addresses.scores;
        return field.image_stride * (tensors[tensor].is_f16 ? 2 : 4);
    }

  private:
    static const uint32_t NO_TENSOR = 0xffffffff;

    Place boxes, scores, objectness;
    KernelParams without_addresses;

    friend class File;
};

// A file of scenes. Ends the program if the file is not one.
class File {
  public:
    explicit File(const char *path) : path(path), file(fopen(path, "rb")) {
        char magic[8];
        if (file == nullptr) {
            fail("cannot be opened");
        }
        read(magic, sizeof magic);
        if (memcmp(magic, "nmsscene", sizeof magic) != 0) {
            fail("was not written by core/examples/scenes.rs");
        }
        left = number<uint32_t>();
    }
    ~File() { fclose(file); }
    File(const File &) = delete;

    // Reads the next scene. Returns whether there is one.
    bool next(Scene &scene) {
        if (left == 0) {
            return false;
        }
        left--;
        scene.seed = number<uint64_t>();
        scene.tensors.resize(number<uint32_t>());
        for (Tensor &tensor : scene.tensors) {
            tensor.is_f16 = number<uint32_t>() != 0;
            tensor.elements = std::vector<char>(number<uint64_t>());
            read(tensor.elements.data(), tensor.elements.size());
        }
        KernelParams &params = scene.without_addresses;
        memset(&params, 0, sizeof params);
        params.sequence = uint32_t(scene.seed) + 1;
        read_field(scene.boxes, params.boxes);
        read_field(scene.scores, params.scores);
        read_field(scene.objectness, params.objectness);
        params.class_threshold_count = number<uint32_t>();
        scene.thresholds = std::vector<float>(params.class_threshold_count);
        read(scene.thresholds.data(), scene.thresholds.size() * sizeof(float));
        for (float *at : {&params.threshold, &params.lowest_threshold}) {
            *at = number<float>();
        }
        for (uint32_t *at :
             {&params.images, &params.anchors, &params.classes, &params.box_format, &params.method,
              &params.overlap, &params.threshold_inclusive, &params.class_agnostic,
              &params.multi_label, &params.max_candidates, &params.max_detections}) {
            *at = number<uint32_t>();
        }
        read(params.scale, sizeof params.scale);
        read(params.min_size, sizeof params.min_size);
        read(params.max_size, sizeof params.max_size);
        read(params.visible, sizeof params.visible);
        for (float *at : {&params.iou_threshold, &params.pixel_offset}) {
            *at = number<float>();
        }
        params.lowest_iou_threshold = params.iou_threshold;
        params.lanes_per_anchor = lanes_per_anchor(params.classes, params.scores.anchor_stride,
                                                   params.anchors, params.images);
        params.capacity = std::max(params.anchors, 1u);
        params.sort_limit = UINT32_MAX; // candidates are not sorted
        params.first_chunk = 1;
        scene.expected.resize(params.images);
        for (Result &result : scene.expected) {
            result.candidates = number<uint32_t>();
            result.rejected = number<uint32_t>();
            result.survivors = std::vector<Detection>(number<uint32_t>());
            read(result.survivors.data(), result.survivors.size() * sizeof(Detection));
        }
        return true;
    }

  private:
    const std::string path;
    FILE *const file;
    uint32_t left;

    [[noreturn]] void fail(const char *what) const {
        fprintf(stderr, "%s: %s\n", path.c_str(), what);
        exit(2);
    }

    // The host is little-endian, as the file is.
    void read(void *to, size_t bytes) {
        if (bytes != 0 && fread(to, bytes, 1, file) != 1) {
            fail("ends within a scene");
        }
    }

    template <typename T> T number() {
        T number;
        read(&number, sizeof number);
        return number;
    }

    void read_field(Place &place, FieldParams &field) {
        place.tensor = number<uint32_t>();
        place.offset = number<uint64_t>();
        field.image_stride = number<uint64_t>();
        field.anchor_stride = number<uint64_t>();
        field.component_stride = number<uint64_t>();
    }
};

} // namespace scenes
