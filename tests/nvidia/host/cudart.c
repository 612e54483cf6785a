// SPDX-License-Identifier: MIT OR Apache-2.0
// CUDA's runtime library for a machine without a GPU. Device 0 uses host memory, and all work on a
// stream is complete when the call returns. Kernels cannot be launched.
//
// build.sh adds the other functions that DeepStream's libraries call. They return
// cudaErrorNotSupported.

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "host");
    return cudaSetDevice(device);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    *free = *total = (size_t)16 << 30;
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "error"; }
const char *cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }

cudaError_t cudaMalloc(void **memory, size_t size) {
    // CUDA's allocations have this alignment.
    return posix_memalign(memory, 256, size ? size : 1) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaMallocHost(void **memory, size_t size) { return cudaMalloc(memory, size); }

cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory) { return cudaFree(memory); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    (void)kind;
    memcpy(to, from, size);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}

cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
    (void)stream;
    for (size_t row = 0; row < height; row++) memset((char *)memory + row * pitch, value, width);
    return cudaSuccess;
}

// Only the addresses of streams and events are used.
static char stream_, event_;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
    (void)flags, (void)priority;
    *stream = (cudaStream_t)&stream_;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    (void)flags;
    *event = (cudaEvent_t)&event_;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return (void)stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return (void)stream, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return (void)event, cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return (void)event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return (void)event, (void)stream, cudaSuccess; }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    return (void)stream, (void)event, (void)flags, cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags) {
    (void)flags;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}
