// SPDX-License-Identifier: MIT OR Apache-2.0
// nvinfer's suppression (cluster-mode=2), without nvinfer.
//
// In: parsed objects, thresholds. Out: the indices of the survivors, and how long it took. The function is
// DetectPostprocessor::clusterAndFillDetectionOutputNMS of DeepStream, compiled from its published source.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A parsed object. Left, upper edge, width and height, as nvinfer's parsers write them.
struct NvinferObject {
    float left, top, width, height, score;
    uint32_t class_index;
};

// The keys of nvinfer's configuration that suppression reads, for all classes alike.
struct NvinferThresholds {
    float iou;         // nms-iou-threshold
    float postcluster; // post-cluster-threshold
    int32_t topk;      // topk, by class; -1: all
};

// Suppresses `count` objects `runs` times, at least once. Writes the indices of the survivors in nvinfer's
// order to `survivors`, which has room for `count`, and the time of each run in microseconds to `times`, which
// has room for `runs`. Returns the number of survivors, or -1 and writes nothing if `count` is greater than
// 2^24, because indices are carried in a float.
//
// A run begins with the objects divided by class, as nvinfer's fillDetectionOutput leaves them after the
// parser and pre-cluster-threshold, and ends with the array of output objects, whose allocation it includes.
// Labels are not set, and freeing the array is not timed.
ptrdiff_t nvinfer_suppress(const struct NvinferObject *objects, size_t count, const struct NvinferThresholds *thresholds,
                           uint32_t *survivors, size_t runs, double *times);

// The same once, with the thresholds of each class: those of class c are thresholds[c], of `classes`. Returns -1 also if
// an object is of another class.
ptrdiff_t nvinfer_suppress_classes(const struct NvinferObject *objects, size_t count,
                                   const struct NvinferThresholds *thresholds, size_t classes, uint32_t *survivors);

// The overlap of two objects of the same class as nvinfer computes it: the smallest threshold at which both
// survive. The second has the lower score.
float nvinfer_overlap(const struct NvinferObject *first, const struct NvinferObject *second);

#ifdef __cplusplus
}
#endif
