// SPDX-License-Identifier: MIT OR Apache-2.0
// A stub driver that runs the kernels on the host: the functions of the CUDA driver that the plugin
// calls, for host memory and the emulated kernels. Built as libcuda.so.1 (libcuda.sh), it replaces
// NVIDIA's library in tests of the engine and of the kernels' logic; cuda_on_host.h describes what it
// does not test.
//
// NMSFILTER_EMULATED_DEVICES is the number of GPUs (default 1; 0: a driver without a GPU). The
// first has compute capability 9.0, the others 8.7. NMSFILTER_EMULATED_MULTIPROCESSORS is the number of
// multiprocessors of each (2): with few, a warp has many candidates, with many, several warps have few.
// Device memory is initialized with 0xa5, belongs to one GPU, and cannot be freed twice. Each allocation
// has exactly its size, so that AddressSanitizer reports accesses beyond it (kernels/check.sh).
//
// Kernels and copies are executed synchronously. Work of another producer, which a test adds to a
// stream (nmsfilter_emulated_pending_copy), is executed as late as CUDA allows: at the first wait
// for it.
#include "../nmsfilter.cu"
#include "../paper.cu"
#include "../resample.cu"

#include <map>
#include <mutex>
#include <set>
#include <string>

using cuda_on_host::Index;

typedef uint32_t Result;
enum : Result {
    DONE = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
};

#define EXPORT extern "C" __attribute__((visibility("default")))

struct Context {
    int ordinal;
};
struct Stream {
    Context *context;
    int priority;
    std::vector<std::function<void()>> pending;
};
struct Event {
    Context *context;
    Stream *recorded; // the stream that it was recorded in
};
struct Allocation {
    size_t bytes;
    int ordinal;             // -1: the host's
    Context *owner;          // nullptr: none, as for stream-ordered allocations
    uint64_t device_pointer; // its address in the current context; 0: not accessible
};
struct Function {
    const char *name;
    uint32_t threads;               // per block, in x; 0: any number
    std::vector<size_t> parameters; // their bytes
    uint32_t threads_y = 1;
};

struct Module {
    std::set<const Function *> functions;
};

static const Function FUNCTIONS[] = {
    {"decode_f32_f32", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_f32_f16", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_f16_f32", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_f16_f16", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_multi_f32_f32", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_multi_f32_f16", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_multi_f16_f32", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"decode_multi_f16_f16", DECODE_THREADS, {sizeof(KernelParams), 8, 8}},
    {"map", MAP_THREADS, {8, 8}},
    {"reduce", REDUCE_THREADS, {8, 8}},
    {"publish", PUBLISH_THREADS, {8, 8, 8, 8}},
    {"map_batch", MAP_THREADS, {8, 8}},
    {"reduce_batch", REDUCE_THREADS, {8, 8}},
    {"publish_batch", PUBLISH_THREADS, {8, 8, 8, 8}},
    {"decode_layout", DECODE_THREADS, {sizeof(KernelParams), 8, 8, sizeof(LayoutParams)}},
    {"decode_layout_multi", DECODE_THREADS, {sizeof(KernelParams), 8, 8, sizeof(LayoutParams)}},
    {"publish_columns", PUBLISH_THREADS, {8, 8, 8, 8, sizeof(ColumnParams), 8}},
    {"publish_columns_batch", PUBLISH_THREADS, {8, 8, 8, 8, sizeof(ColumnParams), 8}},
    {"resample_32", RESAMPLE_THREADS, {sizeof(ResampleParams)}},
    {"resample_16", RESAMPLE_THREADS, {sizeof(ResampleParams)}},
    {"resample_8", RESAMPLE_THREADS, {sizeof(ResampleParams)}},
    {"masks", MASK_THREADS, {8, 8, sizeof(MaskParams), 8}},
    {"frame_masks", MASK_THREADS, {8, 8, sizeof(MaskParams), 8}},
    {"decode_oriented", DECODE_THREADS, {sizeof(KernelParams), 8, 8, sizeof(LayoutParams)}},
    {"decode_oriented_multi", DECODE_THREADS, {sizeof(KernelParams), 8, 8, sizeof(LayoutParams)}},
    {"map_oriented", MAP_THREADS, {8, 8}},
    {"reduce_oriented", REDUCE_THREADS, {8, 8}},
    {"sort_count", SORT_THREADS, {8, 8}},
    {"sort_scatter", SORT_THREADS, {8, 8}},
    {"sort_rank", CHUNK_THREADS, {8, 8}},
    {"chunk_filter", CHUNK_THREADS, {8, 8, 4}},
    {"chunk_map", CHUNK_THREADS, {8, 8, 4}},
    {"chunk_reduce", REDUCE_THREADS, {8, 8, 4}},
    {"merge_claims", MERGE_THREADS, {8, 8}},
    {"merge_classes", MERGE_THREADS, {8, 8}},
    {"merge_roots", MERGE_THREADS, {8, 8}},
    {"merge_order", MERGE_THREADS, {8, 8}},
    {"merge_rank", MERGE_THREADS, {8, 8}},
    {"merge_grow", MERGE_THREADS, {8, 8, sizeof(MergeParams)}},
    {"merge_average", MERGE_THREADS, {8, 8}},
    {"merge_fuse", PART_THREADS, {8, 8}},
    {"merge_soften", PART_THREADS, {8, 8, sizeof(MergeParams)}},
    {"merge_compensate", MERGE_THREADS, {8, 8}},
    {"merge_decay", MERGE_THREADS, {8, 8, sizeof(MergeParams)}},
    {"merge_by_column", PART_THREADS, {8, 8, sizeof(ByColumnParams), sizeof(ColumnParams)}},
    {"indices", PUBLISH_THREADS, {8, 4, 8}},
    {"paper_map", 16, {8, 4, 4, 8, 4}, 16},
    {"paper_reduce", 0, {8, 8, 4, 4}},
};

static Context contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static thread_local std::vector<Context *> current;
static std::mutex lock;
static std::map<uint64_t, Allocation> allocations;
static std::set<Stream *> streams;
static std::set<Event *> events;
static int contexts_in_use;
// Of the calling thread, for tests.
static thread_local int context_waits, launch_priority, sorted_launches, resample_launches;
static thread_local int64_t device_bytes;

static const int LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5;

// The stream of a handle: null, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are the default stream of the current context.
// The lock is held.
static Stream *stream_of(Stream *handle) {
    static Stream defaults[8];
    if ((uintptr_t)handle > 2 || current.empty()) {
        return handle;
    }
    Stream *const stream = &defaults[current.back()->ordinal];
    stream->context = current.back();
    streams.insert(stream);
    return stream;
}

// Executes the pending work of `stream`. The lock is held.
static void finish(Stream &stream) {
    for (const auto &work : stream.pending) {
        work();
    }
    stream.pending.clear();
}

static int device_count() {
    const char *const count = getenv("NMSFILTER_EMULATED_DEVICES");
    return count ? atoi(count) : 1;
}

static uint32_t multiprocessors() {
    const char *const count = getenv("NMSFILTER_EMULATED_MULTIPROCESSORS");
    return count ? uint32_t(atoi(count)) : 2;
}

static Result allocate(void **at, size_t bytes, int ordinal, Context *owner) {
    if (bytes == 0) {
        return INVALID_VALUE;
    }
    void *memory;
    if (posix_memalign(&memory, 4096, bytes) != 0) {
        return OUT_OF_MEMORY;
    }
    memset(memory, 0xa5, bytes);
    *at = memory;
    std::lock_guard<std::mutex> guard(lock);
    allocations[(uint64_t)memory] = {bytes, ordinal, owner, (uint64_t)memory};
    device_bytes += ordinal >= 0 ? int64_t(bytes) : 0;
    return DONE;
}

static Result release(uint64_t at, bool of_host) {
    std::lock_guard<std::mutex> guard(lock);
    const auto found = allocations.find(at);
    if (found == allocations.end() || (found->second.ordinal < 0) != of_host) {
        return INVALID_VALUE;
    }
    device_bytes -= found->second.ordinal >= 0 ? int64_t(found->second.bytes) : 0;
    allocations.erase(found);
    free((void *)at);
    return DONE;
}

// The allocation that contains `bytes` from `at` on, or end(). The lock is held.
static std::map<uint64_t, Allocation>::iterator holding(uint64_t at, size_t bytes) {
    auto found = allocations.upper_bound(at);
    if (found == allocations.begin()) {
        return allocations.end();
    }
    --found;
    return at + bytes > found->first + found->second.bytes ? allocations.end() : found;
}

// Whether `bytes` from `at` on are device memory of one allocation.
static bool on_device(uint64_t at, size_t bytes) {
    std::lock_guard<std::mutex> guard(lock);
    const auto found = holding(at, bytes);
    return found != allocations.end() && found->second.ordinal >= 0;
}

// Stores an attribute of the address `at`. Returns whether the attribute is known and has a value.
static bool attribute_of(uint64_t at, int attribute, void *value) {
    const auto found = holding(at, 1);
    if (found == allocations.end()) {
        return false;
    }
    const Allocation &allocation = found->second;
    switch (attribute) {
    case 1: *(Context **)value = allocation.owner; return allocation.owner != nullptr;
    case 2: *(uint32_t *)value = allocation.ordinal < 0 ? 1 : 2; return true;
    case 3:
        *(uint64_t *)value =
            allocation.device_pointer ? allocation.device_pointer + (at - found->first) : 0;
        return allocation.device_pointer != 0;
    case 9: *(int *)value = allocation.ordinal < 0 ? 0 : allocation.ordinal; return true;
    default: return false;
    }
}

EXPORT Result cuInit(uint32_t) { return device_count() > 0 ? DONE : NO_DEVICE; }
EXPORT Result cuDriverGetVersion(int *version) {
    *version = 11040;
    return DONE;
}
EXPORT Result cuGetErrorName(Result code, const char **text) {
    switch (code) {
    case INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_PTX: *text = "CUDA_ERROR_INVALID_PTX"; break;
    case 46: *text = "CUDA_ERROR_DEVICE_UNAVAILABLE"; break;
    case INVALID_HANDLE: *text = "CUDA_ERROR_INVALID_HANDLE"; break;
    case ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: return INVALID_VALUE;
    }
    return DONE;
}
EXPORT Result cuGetErrorString(Result code, const char **text) {
    *text = "emulated";
    return code == 0 ? INVALID_VALUE : DONE;
}
EXPORT Result cuDeviceGetCount(int *count) {
    *count = device_count();
    return DONE;
}
EXPORT Result cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < device_count() && ordinal < 8 ? DONE : INVALID_DEVICE;
}
EXPORT Result cuDeviceGetName(char *name, int bytes, int) {
    snprintf(name, size_t(bytes), "emulated on the host");
    return DONE;
}
EXPORT Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = device == 0 ? 9 : 8; break; // compute capability, major
    case 76: *value = device == 0 ? 0 : 7; break; // minor
    case 16: *value = int(multiprocessors()); break;
    default: *value = 0;
    }
    return DONE;
}
EXPORT Result cuDevicePrimaryCtxRetain(Context **context, int device) {
    std::lock_guard<std::mutex> guard(lock);
    contexts_in_use++;
    *context = &contexts[device];
    return DONE;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(int) {
    std::lock_guard<std::mutex> guard(lock);
    contexts_in_use--;
    return DONE;
}
EXPORT Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = LEAST_PRIORITY;
    *greatest = GREATEST_PRIORITY;
    return current.empty() ? INVALID_CONTEXT : DONE;
}
EXPORT Result cuCtxPushCurrent_v2(Context *context) {
    current.push_back(context);
    return DONE;
}
EXPORT Result cuCtxPopCurrent_v2(Context **context) {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    *context = current.back();
    current.pop_back();
    return DONE;
}
EXPORT Result cuCtxSynchronize() {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    std::lock_guard<std::mutex> guard(lock);
    context_waits++;
    for (Stream *stream : streams) {
        if (stream->context == current.back()) {
            finish(*stream);
        }
    }
    return DONE;
}
// The module has those of the emulated kernels that are entries of the PTX.
EXPORT Result cuModuleLoadData(Module **module, const char *image) {
    std::unique_ptr<Module> loaded(new Module());
    for (const Function &function : FUNCTIONS) {
        if (strstr(image, (std::string(".entry ") + function.name + "(").c_str())) {
            loaded->functions.insert(&function);
        }
    }
    if (!strstr(image, ".version") || loaded->functions.empty()) {
        return INVALID_PTX;
    }
    *module = loaded.release();
    return DONE;
}
EXPORT Result cuModuleUnload(Module *module) {
    delete module;
    return DONE;
}
EXPORT Result cuModuleGetFunction(const Function **found, Module *module, const char *name) {
    for (const Function *function : module->functions) {
        if (strcmp(function->name, name) == 0) {
            *found = function;
            return DONE;
        }
    }
    return NOT_FOUND;
}
EXPORT Result cuMemAlloc_v2(uint64_t *at, size_t bytes) {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    return allocate((void **)at, bytes, current.back()->ordinal, current.back());
}
EXPORT Result cuMemFree_v2(uint64_t at) { return release(at, false); }
EXPORT Result cuMemHostAlloc(void **at, size_t bytes, uint32_t) {
    return current.empty() ? INVALID_CONTEXT : allocate(at, bytes, -1, current.back());
}
EXPORT Result cuMemFreeHost(void *at) { return release((uint64_t)at, true); }
EXPORT Result cuMemHostRegister_v2(void *at, size_t bytes, uint32_t) {
    return current.empty() || !at || !bytes ? INVALID_VALUE : DONE;
}
EXPORT Result cuMemHostUnregister(void *) { return DONE; }
EXPORT Result cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, uint32_t) {
    *device = (uint64_t)host;
    return DONE;
}
EXPORT Result cuMemsetD8Async(uint64_t at, uint8_t value, size_t bytes, void *) {
    if (!on_device(at, bytes)) {
        return INVALID_VALUE;
    }
    memset((void *)at, value, bytes);
    return DONE;
}
EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
    if (!on_device(to, bytes)) {
        return INVALID_VALUE;
    }
    memcpy((void *)to, from, bytes);
    return DONE;
}
EXPORT Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
    if (!on_device(from, bytes)) {
        return INVALID_VALUE;
    }
    memcpy(to, (const void *)from, bytes);
    return DONE;
}
// CUDA_MEMCPY2D.
struct RowsCopy {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch, width, rows;
};
EXPORT Result cuMemcpy2DAsync_v2(const RowsCopy *copy, void *) {
    const RowsCopy &c = *copy;
    const int of_device = 2;
    if (c.from_type != of_device || c.to_type != of_device || c.from_x || c.from_y || c.to_x || c.to_y ||
        c.width == 0 || c.rows == 0 || c.from_pitch < c.width || c.to_pitch < c.width ||
        !on_device(c.from, c.from_pitch * (c.rows - 1) + c.width) ||
        !on_device(c.to, c.to_pitch * (c.rows - 1) + c.width)) {
        return INVALID_VALUE;
    }
    for (size_t row = 0; row < c.rows; row++) {
        memcpy((void *)(c.to + row * c.to_pitch), (const void *)(c.from + row * c.from_pitch), c.width);
    }
    return DONE;
}
EXPORT Result cuPointerGetAttribute(void *value, int attribute, uint64_t at) {
    std::lock_guard<std::mutex> guard(lock);
    return attribute_of(at, attribute, value) ? DONE : INVALID_VALUE;
}
// Attributes that an address does not have are zero.
EXPORT Result cuPointerGetAttributes(uint32_t count, const int *attributes, void **values,
                                     uint64_t at) {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    std::lock_guard<std::mutex> guard(lock);
    for (uint32_t i = 0; i < count; i++) {
        memset(values[i], 0, attributes[i] == 1 || attributes[i] == 3 ? 8 : 4);
        attribute_of(at, attributes[i], values[i]);
    }
    return DONE;
}
EXPORT Result cuStreamCreateWithPriority(Stream **stream, uint32_t, int priority) {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    const int within = priority > LEAST_PRIORITY      ? LEAST_PRIORITY
                       : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY
                                                      : priority;
    *stream = new Stream{current.back(), within, {}};
    std::lock_guard<std::mutex> guard(lock);
    streams.insert(*stream);
    return DONE;
}
EXPORT Result cuStreamCreate(Stream **stream, uint32_t flags) {
    return cuStreamCreateWithPriority(stream, flags, LEAST_PRIORITY);
}
EXPORT Result cuStreamDestroy_v2(Stream *stream) {
    std::lock_guard<std::mutex> guard(lock);
    if (streams.erase(stream) == 0) {
        return INVALID_HANDLE;
    }
    finish(*stream);
    for (Event *event : events) {
        if (event->recorded == stream) {
            event->recorded = nullptr;
        }
    }
    delete stream;
    return DONE;
}
EXPORT Result cuStreamGetCtx(Stream *stream, Context **context) {
    std::lock_guard<std::mutex> guard(lock);
    stream = stream_of(stream);
    if (streams.count(stream) == 0) {
        return INVALID_HANDLE;
    }
    *context = stream->context;
    return DONE;
}
EXPORT Result cuStreamIsCapturing(Stream *, int *status) {
    *status = 0; // CU_STREAM_CAPTURE_STATUS_NONE
    return DONE;
}
EXPORT Result cuStreamQuery(Stream *) { return DONE; }
EXPORT Result cuStreamSynchronize(Stream *stream) {
    std::lock_guard<std::mutex> guard(lock);
    stream = stream_of(stream);
    if (streams.count(stream) == 0) {
        return INVALID_HANDLE;
    }
    finish(*stream);
    return DONE;
}
EXPORT Result cuEventCreate(Event **event, uint32_t) {
    if (current.empty()) {
        return INVALID_CONTEXT;
    }
    *event = new Event{current.back(), nullptr};
    std::lock_guard<std::mutex> guard(lock);
    events.insert(*event);
    return DONE;
}
EXPORT Result cuEventDestroy_v2(Event *event) {
    std::lock_guard<std::mutex> guard(lock);
    if (events.erase(event) == 0) {
        return INVALID_HANDLE;
    }
    delete event;
    return DONE;
}
EXPORT Result cuEventRecord(Event *event, Stream *stream) {
    std::lock_guard<std::mutex> guard(lock);
    stream = stream_of(stream);
    if (events.count(event) == 0 || streams.count(stream) == 0 ||
        event->context != stream->context) {
        return INVALID_HANDLE;
    }
    event->recorded = stream;
    return DONE;
}
EXPORT Result cuEventSynchronize(Event *event) {
    std::lock_guard<std::mutex> guard(lock);
    if (events.count(event) == 0) {
        return INVALID_HANDLE;
    }
    if (event->recorded) {
        finish(*event->recorded);
    }
    return DONE;
}
EXPORT Result cuStreamWaitEvent(Stream *stream, Event *event, uint32_t) {
    std::lock_guard<std::mutex> guard(lock);
    stream = stream_of(stream);
    if (streams.count(stream) == 0 || events.count(event) == 0) {
        return INVALID_HANDLE;
    }
    if (event->recorded) {
        finish(*event->recorded);
    }
    return DONE;
}

#include "graphs.h"

// For tests.

// A new context on a GPU, as cuCtxCreate makes one. It is never destroyed.
EXPORT Context *nmsfilter_emulated_context(int ordinal) { return new Context{ordinal}; }

// Sets the owner of an allocation; nullptr: no context.
EXPORT void nmsfilter_emulated_set_owner(uint64_t at, Context *owner) {
    std::lock_guard<std::mutex> guard(lock);
    allocations.at(at).owner = owner;
}

// Sets the address of an allocation in the engine's context; 0: not accessible.
EXPORT void nmsfilter_emulated_set_device_pointer(uint64_t at, uint64_t device_pointer) {
    std::lock_guard<std::mutex> guard(lock);
    allocations.at(at).device_pointer = device_pointer;
}

// Adds a copy to `stream`, which is executed at the first wait for it.
EXPORT void nmsfilter_emulated_pending_copy(Stream *stream, uint64_t to, const void *from,
                                            size_t bytes) {
    const std::vector<char> copy((const char *)from, (const char *)from + bytes);
    std::lock_guard<std::mutex> guard(lock);
    stream->pending.push_back([=] { memcpy((void *)to, copy.data(), copy.size()); });
}

// The number of calls of cuCtxSynchronize by this thread.
EXPORT int nmsfilter_emulated_context_waits() { return context_waits; }

// The priority of the stream of this thread's last graph launch.
EXPORT int nmsfilter_emulated_launch_priority() { return launch_priority; }

// The number of this thread's launches with an image whose candidates were sorted.
EXPORT int nmsfilter_emulated_sorted_launches() { return sorted_launches; }

// The number of this thread's launches of kernels of resample.cu.
EXPORT int nmsfilter_emulated_resample_launches() { return resample_launches; }

// The bytes of device memory that this thread has allocated, less those that it has freed.
EXPORT int64_t nmsfilter_emulated_device_bytes() { return device_bytes; }

// The number of references to primary contexts.
EXPORT int nmsfilter_emulated_contexts_in_use() {
    std::lock_guard<std::mutex> guard(lock);
    return contexts_in_use;
}
