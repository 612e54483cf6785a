// SPDX-License-Identifier: MIT OR Apache-2.0
// The clustering of cluster-mode=1 and 3, which is in another library. The fields are those that nvinfer sets;
// the functions are not called.
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
