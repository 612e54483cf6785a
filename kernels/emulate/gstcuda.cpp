// SPDX-License-Identifier: MIT OR Apache-2.0
// A stub of GStreamer's CUDA library (1.24 and later) for tests: the functions that give the stream
// of a GstCudaMemory. nmsfilter_emulated_set_stream makes a memory a GstCudaMemory with that
// stream.
#include <map>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))

static std::mutex lock;
static std::map<const void *, void *> streams;

EXPORT int gst_is_cuda_memory(const void *memory) {
    std::lock_guard<std::mutex> guard(lock);
    return streams.count(memory) != 0;
}

// A GstCudaStream, here the CUstream itself.
EXPORT void *gst_cuda_memory_get_stream(const void *memory) {
    std::lock_guard<std::mutex> guard(lock);
    const auto found = streams.find(memory);
    return found == streams.end() ? nullptr : found->second;
}

EXPORT void *gst_cuda_stream_get_handle(void *stream) { return stream; }

EXPORT void nmsfilter_emulated_set_stream(const void *memory, void *stream) {
    std::lock_guard<std::mutex> guard(lock);
    streams[memory] = stream;
}
