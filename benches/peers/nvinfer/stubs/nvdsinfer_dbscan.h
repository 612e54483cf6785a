// SPDX-License-Identifier: MIT OR Apache-2.0
// Clustering for cluster-mode=1 and 3, which is in a different library. The fields are the ones
// that nvinfer sets. The functions are never called.
#pragma once
#include <cstddef>

#include "nvdsinfer.h"

struct NvDsInferDBScan;

struct NvDsInferDBScanClusteringParams {
    float eps;
    unsigned minBoxes;
    float minScore;
    bool enableATHRFilter;
    float thresholdATHR;
};

void NvDsInferDBScanCluster(NvDsInferDBScan *, NvDsInferDBScanClusteringParams *, NvDsInferObjectDetectionInfo *,
                            size_t *);
void NvDsInferDBScanClusterHybrid(NvDsInferDBScan *, NvDsInferDBScanClusteringParams *,
                                  NvDsInferObjectDetectionInfo *, size_t *);
