// SPDX-License-Identifier: MIT OR Apache-2.0
// Indices: the anchors of detections as 64-bit integers, which arrays of indices have. In: the
// detections that publish wrote. Out: as many integers.
#pragma once

#include "workspace.cuh"

KERNEL(PUBLISH_THREADS, 1)
indices(const Detection *detections, uint32_t count, int64_t *to) {
    for (uint32_t i = threadIdx.x; i < count; i += PUBLISH_THREADS) {
        to[i] = detections[i].anchor;
    }
}
