// SPDX-License-Identifier: MIT OR Apache-2.0
// The functions that nvinfer needs of DeepStream's surface library, for a machine without a GPU.
// Surfaces are in host memory and have one plane of four bytes per pixel, no matter which format
// they claim.

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nvbufsurface.h"

int NvBufSurfaceCreate(NvBufSurface **surface, uint32_t batch, NvBufSurfaceCreateParams *params) {
    NvBufSurface *created = calloc(1, sizeof *created);
    NvBufSurfaceParams *list = calloc(batch, sizeof *list);
    const uint32_t pitch = 4 * params->width, size = pitch * params->height;
    char *memory = malloc((size_t)batch * size + 1);
    if (!created || !list || !memory) abort();
    created->batchSize = batch;
    created->isContiguous = true;
    created->memType = params->memType;
    created->surfaceList = list;
    for (uint32_t i = 0; i < batch; i++) {
        list[i].width = params->width;
        list[i].height = params->height;
        list[i].pitch = list[i].planeParams.pitch[0] = pitch;
        list[i].colorFormat = params->colorFormat;
        list[i].layout = params->layout;
        list[i].dataSize = size;
        list[i].dataPtr = memory + (size_t)i * size;
        list[i].planeParams.num_planes = 1;
    }
    *surface = created;
    return 0;
}

int NvBufSurfaceDestroy(NvBufSurface *surface) {
    if (surface->batchSize) free(surface->surfaceList[0].dataPtr);
    free(surface->surfaceList);
    free(surface);
    return 0;
}

int NvBufSurfaceMemSet(NvBufSurface *surface, int index, int plane, uint8_t value) {
    (void)plane;
    for (uint32_t i = 0; i < surface->batchSize; i++)
        if (index == -1 || (uint32_t)index == i)
            memset(surface->surfaceList[i].dataPtr, value, surface->surfaceList[i].dataSize);
    return 0;
}

// There is no device to report on.
int NvBufSurfaceGetDeviceInfo(NvBufSurfaceDeviceInfo *info) { return (void)info, -1; }

// Jetson boards only.
int NvBufSurfaceMapEglImage(NvBufSurface *surface, int index) { return (void)surface, (void)index, -1; }
int NvBufSurfaceUnMapEglImage(NvBufSurface *surface, int index) { return (void)surface, (void)index, -1; }
