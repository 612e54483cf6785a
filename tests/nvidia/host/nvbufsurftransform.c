// SPDX-License-Identifier: MIT OR Apache-2.0
// DeepStream's library for scaling surfaces, for a machine without a GPU. It does not change any
// pixels.

#include <stdbool.h>

#include "nvbufsurftransform.h"

static struct NvBufSurfTransformSyncObj {
    int unused;
} done;

NvBufSurfTransform_Error NvBufSurfTransformSetSessionParams(NvBufSurfTransformConfigParams *params) {
    (void)params;
    return NvBufSurfTransformError_Success;
}

NvBufSurfTransform_Error NvBufSurfTransformAsync(NvBufSurface *from, NvBufSurface *to, NvBufSurfTransformParams *params,
                                                 NvBufSurfTransformSyncObj_t *object) {
    (void)params;
    *object = &done;
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
