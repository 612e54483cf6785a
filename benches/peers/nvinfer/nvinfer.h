// SPDX-License-Identifier: MIT OR Apache-2.0
// nvinfer's suppression (cluster-mode=2) without the rest of nvinfer.
//
// In: parsed objects, thresholds. Out: the indices of the survivors, and the time. The function is
// DeepStream's DetectPostprocessor::clusterAndFillDetectionOutputNMS, compiled from its published
// source.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A parsed object. As in nvinfer's parsers, the box is left edge, upper edge, width and height.
struct NvinferObject {
    float left, top, width, height, score;
    uint32_t class_index;
};

// Keys of nvinfer's configuration that suppression reads. They apply to all classes.
struct NvinferThresholds {
    float iou;         // nms-iou-threshold
    float postcluster; // post-cluster-threshold
    int32_t topk;      // topk, by class; -1: all
};

// Suppresses `count` objects `runs` times, at least once. Writes the indices of the survivors in
// nvinfer's order to `survivors`, which must have room for `count`. Writes the time of each run in
// microseconds to `times`, which must have room for `runs`. Returns the number of survivors. If
// `count` is greater than 2^24, returns -1 and writes nothing, because indices are stored in a
// float.
//
// A run begins with objects that are already grouped by class, as nvinfer's fillDetectionOutput
// leaves them after the parser and pre-cluster-threshold. It ends with the array of output objects,
// and includes its allocation. Labels are not set, and the time does not include freeing the array.
ptrdiff_t nvinfer_suppress(const struct NvinferObject *objects, size_t count, const struct NvinferThresholds *thresholds,
                           uint32_t *survivors, size_t runs, double *times);

// Suppresses once, with separate thresholds for each class: class c has thresholds[c], and there
// are `classes` of them. Also returns -1 if an object has a class without thresholds.
ptrdiff_t nvinfer_suppress_classes(const struct NvinferObject *objects, size_t count,
                                   const struct NvinferThresholds *thresholds, size_t classes, uint32_t *survivors);

// Returns the overlap of two objects of one class as nvinfer computes it: the smallest threshold at
// which both survive. The second object has the lower score.
float nvinfer_overlap(const struct NvinferObject *first, const struct NvinferObject *second);

#ifdef __cplusplus
}
#endif
