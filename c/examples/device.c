/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Suppresses windows in the memory of a GPU, in the order of a CUDA stream: the host waits once, at the end.
 *
 *     cc device.c -o device $(pkg-config --cflags --libs nmsfilter) -lcuda
 *
 * It uses the CUDA driver API. Its functions are declared here, so that no CUDA toolkit is needed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nmsfilter/nmsfilter.h>

typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(CUcontext context);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemFree_v2(CUdeviceptr address);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamDestroy_v2(CUstream stream);

#define CU_STREAM_NON_BLOCKING 1

/* Left edge, upper edge, side and score: the second covers the first. */
static const float windows[3][4] = {
    { 100, 50, 80, 0.9f },
    { 104, 52, 80, 0.8f },
    { 300, 60, 90, 0.7f },
};

static void check_cuda(int result, const char *call)
{
    if (result != 0) {
        fprintf(stderr, "%s failed: %d\n", call, result);
        exit(1);
    }
}

static void check(NmsfilterStatus status, const Nmsfilter *filter)
{
    if (status != NMSFILTER_STATUS_OK) {
        fprintf(stderr, "%s\n", nmsfilter_error_text(filter));
        exit(1);
    }
}

int main(void)
{
    CUcontext context;
    CUstream stream;
    CUdeviceptr memory;
    Nmsfilter *filter = NULL;
    NmsfilterTensor tensor = { 0 };
    NmsfilterDeviceResult result = { 0 };
    NmsfilterDeviceCounts counts;
    NmsfilterDetection found[3];
    uint32_t i;

    check_cuda(cuInit(0), "cuInit");
    check_cuda(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check_cuda(cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
    check_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check_cuda(cuMemAlloc_v2(&memory, sizeof windows), "cuMemAlloc");
    /* What a model would write. */
    check_cuda(cuMemcpyHtoDAsync_v2(memory, windows, sizeof windows, stream), "cuMemcpyHtoDAsync");

    check(nmsfilter_new(NMSFILTER_BACKEND_CUDA, 0, &filter), NULL);
    tensor.size = sizeof tensor;
    tensor.id = "windows";
    tensor.dimensions = 2;
    tensor.shape[0] = 3;
    tensor.shape[1] = 4;
    tensor.memory = NMSFILTER_MEMORY_DEVICE;
    tensor.data = (const void *)(uintptr_t)memory;
    tensor.bytes = sizeof windows;
    result.size = sizeof result;
    check(nmsfilter_enqueue(filter, &tensor, 1, stream, &result), filter);

    /* Here kernels of the program could read the result. This one copies it to the host. */
    check_cuda(cuMemcpyDtoHAsync_v2(&counts, result.counts, sizeof counts, stream), "cuMemcpyDtoHAsync");
    check_cuda(cuMemcpyDtoHAsync_v2(found, result.detections, sizeof found, stream), "cuMemcpyDtoHAsync");
    check_cuda(cuStreamSynchronize(stream), "cuStreamSynchronize");
    for (i = 0; i < counts.detections && i < 3; i++)
        printf("window %u at %.0f,%.0f, score %.2f\n", (unsigned)found[i].anchor, found[i].x1, found[i].y1,
               found[i].score);

    nmsfilter_free(filter);
    cuMemFree_v2(memory);
    cuStreamDestroy_v2(stream);
    cuDevicePrimaryCtxRelease_v2(0);
    return 0;
}
