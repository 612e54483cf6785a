// SPDX-License-Identifier: MIT OR Apache-2.0
// DeepStream's library for scaling surfaces, for a machine without a GPU. It does not change any
// pixels, and keeps the rectangles that it was called with.

#include <pthread.h>
#include <stdbool.h>

#include "nvbufsurftransform.h"

static struct NvBufSurfTransformSyncObj {
    int unused;
} done;

enum { MOST = 65536 };
static NvBufSurfTransformRect sources[MOST], targets[MOST];
static uint32_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void copy(uint32_t to[4], const NvBufSurfTransformRect *rect) {
    to[0] = rect->top;
    to[1] = rect->left;
    to[2] = rect->width;
    to[3] = rect->height;
}

// Copies the rectangles of the calls since the last call of this function: what was cut out of each
// surface, and where it went. Each has top, left, width and height. Returns their number.
uint32_t host_transforms(uint32_t from[][4], uint32_t to[][4], uint32_t most) {
    pthread_mutex_lock(&lock);
    const uint32_t copied = count < most ? count : most;
    for (uint32_t i = 0; i < copied; i++) {
        copy(from[i], &sources[i]);
        copy(to[i], &targets[i]);
    }
    count = 0;
    pthread_mutex_unlock(&lock);
    return copied;
}

NvBufSurfTransform_Error NvBufSurfTransformSetSessionParams(NvBufSurfTransformConfigParams *params) {
    (void)params;
    return NvBufSurfTransformError_Success;
}

NvBufSurfTransform_Error NvBufSurfTransformAsync(NvBufSurface *from, NvBufSurface *to, NvBufSurfTransformParams *params,
                                                 NvBufSurfTransformSyncObj_t *object) {
    *object = &done;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < from->numFilled && count < MOST; i++, count++) {
        sources[count] = params->src_rect[i];
        targets[count] = params->dst_rect[i];
    }
    pthread_mutex_unlock(&lock);
    return from->numFilled <= to->batchSize ? NvBufSurfTransformError_Success : NvBufSurfTransformError_Invalid_Params;
}

NvBufSurfTransform_Error NvBufSurfTransformSyncObjWait(NvBufSurfTransformSyncObj_t object, uint32_t milliseconds) {
    (void)object, (void)milliseconds;
    return NvBufSurfTransformError_Success;
}

NvBufSurfTransform_Error NvBufSurfTransformSyncObjDestroy(NvBufSurfTransformSyncObj_t *object) {
    (void)object;
    return NvBufSurfTransformError_Success;
}
