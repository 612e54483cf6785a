// SPDX-License-Identifier: MIT OR Apache-2.0
// Checks and times the kernels on a GPU, without the plugin.
//
//   nvcc -std=c++17 -O2 bench.cu -o bench -lcuda
//   ./bench kernels/ptx WINDOWS.csv SCENES [scenes at most] [check|batch|counts]
//
// It runs the PTX that the plugin embeds. `check` skips all measurements, `batch` all but those of
// batches, `counts` all but those of counts.h. WINDOWS.csv has a line `x,y,side,score` for each of the
// paper's windows. SCENES is a file that core/examples/scenes.rs has written. Prints what differs from the expected results, then
// tables.
//
// Scenes are compared with the results of engine::Reference that the file has, every other one with
// tables of images, and the paper's windows with known counts. Of other measured inputs, the kernels
// for a single image and those for batches must have the same results.
//
// A GPU time is that of a graph with 20 launches of all kernels, replayed 20 times between two
// events, divided by 400; the minimum of 5 such measurements. A wall time is that from the launch
// of a graph of four kernels until the host has read all sequence numbers from mapped memory; the
// median of 2000.
#include "../../kernels/emulate/scenes.h"
#include "../../kernels/interface.cuh"

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <sstream>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        const cudaError_t error = (call);                                                  \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(2);                                                                       \
        }                                                                                  \
    } while (0)

#define CHECK_DRIVER(call)                                                                      \
    do {                                                                                        \
        const CUresult error = (call);                                                          \
        if (error != CUDA_SUCCESS) {                                                            \
            fprintf(stderr, "%s:%d: error %d of the driver\n", __FILE__, __LINE__, int(error)); \
            exit(2);                                                                            \
        }                                                                                       \
    } while (0)

static cudaStream_t stream;
static uint32_t multiprocessors;
static bool has_grid_dependency; // whether the kernels do (portable.cuh)

__global__ void empty() {}

// The functions of the PTX.
static struct {
    CUfunction decode[2][2], decode_multi[2][2];
    CUfunction map[2], reduce[2], publish[2]; // for a single image, for batches
    CUfunction sort_count, sort_scatter, sort_rank, chunk_filter, chunk_map, chunk_reduce;
    CUfunction paper_map, paper_reduce;
} kernels;

static void load(const std::string &folder, int major) {
    CUmodule ours, papers;
    const char *const variant = major >= 9   ? "/nmsfilter.sm_90.ptx"
                                : major >= 8 ? "/nmsfilter.sm_80.ptx"
                                             : "/nmsfilter.sm_60.ptx";
    has_grid_dependency = major >= 9;
    CHECK_DRIVER(cuModuleLoad(&ours, (folder + variant).c_str()));
    CHECK_DRIVER(cuModuleLoad(&papers, (folder + "/paper.sm_60.ptx").c_str()));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode[0][0], ours, "decode_f32_f32"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode[0][1], ours, "decode_f32_f16"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode[1][0], ours, "decode_f16_f32"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode[1][1], ours, "decode_f16_f16"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode_multi[0][0], ours, "decode_multi_f32_f32"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode_multi[0][1], ours, "decode_multi_f32_f16"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode_multi[1][0], ours, "decode_multi_f16_f32"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.decode_multi[1][1], ours, "decode_multi_f16_f16"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.map[0], ours, "map"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.map[1], ours, "map_batch"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.reduce[0], ours, "reduce"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.reduce[1], ours, "reduce_batch"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.publish[0], ours, "publish"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.publish[1], ours, "publish_batch"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.sort_count, ours, "sort_count"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.sort_scatter, ours, "sort_scatter"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.sort_rank, ours, "sort_rank"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.chunk_filter, ours, "chunk_filter"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.chunk_map, ours, "chunk_map"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.chunk_reduce, ours, "chunk_reduce"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.paper_map, papers, "paper_map"));
    CHECK_DRIVER(cuModuleGetFunction(&kernels.paper_reduce, papers, "paper_reduce"));
}

// `follows`: it is not the first kernel, and is launched with programmatic dependency.
static void launch(CUfunction kernel, dim3 blocks, dim3 threads, std::vector<void *> parameters,
                   bool follows = false) {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = blocks.x;
    config.gridDimY = blocks.y;
    config.gridDimZ = blocks.z;
    config.blockDimX = threads.x;
    config.blockDimY = threads.y;
    config.blockDimZ = threads.z;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = follows && has_grid_dependency ? 1 : 0;
    CHECK_DRIVER(cuLaunchKernelEx(&config, kernel, parameters.data(), nullptr));
}

// Resets the counters of image blockIdx.x, as the last kernels do, for graphs without them: those at the
// start of its workspace, and those of a sort, if `sort_offset` is not 0.
__global__ void reset_counters(char *workspace, uint64_t stride, uint64_t sort_offset) {
    char *const image = workspace + blockIdx.x * stride;
    if (threadIdx.x < 3) {
        ((uint32_t *)image)[threadIdx.x] = 0;
    }
    if (sort_offset != 0) {
        for (uint32_t i = threadIdx.x; i < SORT_STATE_BYTES / 4; i += blockDim.x) {
            ((uint32_t *)(image + sort_offset))[i] = 0;
        }
    }
}

// Reads all of the memory once.
__global__ void read_all(const float4 *from, uint64_t count, float *to) {
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    float sum = 0.0f;
#pragma unroll 8
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float4 v = __ldg(from + i);
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == -1.0f) { // never: keeps the loads
        *to = sum;
    }
}

template <typename T> struct OnDevice {
    T *at = nullptr;
    explicit OnDevice(size_t count) { CHECK(cudaMalloc(&at, count * sizeof(T) + 16)); }
    explicit OnDevice(const std::vector<T> &values) : OnDevice(values.size()) {
        CHECK(cudaMemcpy(at, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
        // The copy from pageable memory may still be in progress.
        CHECK(cudaDeviceSynchronize());
    }
    ~OnDevice() { cudaFree(at); }
    OnDevice(const OnDevice &) = delete;
};

// A workspace, and results in mapped host memory, for batches of `images` with up to `capacity`
// candidates each. With memory for one image it uses the kernels for a single image.
struct Pipeline {
    uint32_t capacity, images, sort_limit;
    uint64_t stride;
    char *workspace = nullptr;
    ResultHeader *results = nullptr;
    Detection *detections = nullptr;

    explicit Pipeline(uint32_t capacity, uint32_t images = 1, uint32_t sort_limit = SORT_LIMIT)
        : capacity(capacity), images(images), sort_limit(sort_limit),
          stride(workspace_bytes(capacity, false, sort_limit)) {
        CHECK(cudaMalloc(&workspace, images * stride));
        CHECK(cudaMemset(workspace, 0, images * stride));
        CHECK(cudaHostAlloc(&results, results_bytes(capacity, images), cudaHostAllocMapped));
        detections = (Detection *)((char *)results + detections_offset(images));
    }
    ~Pipeline() {
        cudaFree(workspace);
        cudaFreeHost(results);
    }
    Pipeline(const Pipeline &) = delete;

    // A kernel with two or three parameters.
    void enqueue(CUfunction kernel, uint32_t blocks, uint32_t threads, const KernelParams &params,
                 uint32_t chunk = 0) const {
        void *memory = workspace;
        uint64_t bytes = stride;
        launch(kernel, dim3(blocks, params.images), threads, {&memory, &bytes, &chunk}, true);
    }

    // The first `count` of the kernels for sorted candidates.
    void enqueue_sort(const KernelParams &params, uint32_t count = UINT32_MAX) const {
        if (capacity <= sort_limit) {
            return;
        }
        const uint32_t images = params.images, m = multiprocessors;
        const auto next = [&](CUfunction kernel, uint32_t blocks, uint32_t threads,
                              uint32_t chunk) {
            if (count != 0) {
                enqueue(kernel, blocks, threads, params, chunk);
                count--;
            }
        };
        next(kernels.sort_count, sort_blocks(m, capacity, images), SORT_THREADS, 0);
        next(kernels.sort_scatter, sort_blocks(m, capacity, images), SORT_THREADS, 0);
        next(kernels.sort_rank, sort_rank_blocks(m, capacity, images), CHUNK_THREADS, 0);
        for (uint32_t chunk = 0; chunk < chunk_count(capacity, params.first_chunk); chunk++) {
            const uint32_t blocks = chunk_blocks(m, capacity, images);
            next(kernels.chunk_filter, blocks, CHUNK_THREADS, chunk);
            next(kernels.chunk_map, blocks, CHUNK_THREADS, chunk);
            next(kernels.chunk_reduce, reduce_blocks(m, capacity, images), REDUCE_THREADS, chunk);
        }
    }

    // The first `kernel_count` of the four kernels; the kernels for sorted candidates with reduce, the first
    // `sort_count` of them.
    void enqueue(const KernelParams &of, bool boxes_half, bool scores_half, int kernel_count = 4,
                 uint32_t sort_count = UINT32_MAX) const {
        KernelParams params = of;
        params.sort_limit = std::max(params.sort_limit, capacity > sort_limit ? 0 : UINT32_MAX);
        void *memory = workspace;
        uint64_t bytes = stride;
        ResultHeader *headers = results;
        Detection *survivors = detections;
        const bool is_batch = images > 1;
        const auto &decode = params.multi_label ? kernels.decode_multi : kernels.decode;
        const uint32_t blocks = params.multi_label
                                    ? decode_multi_blocks(params.anchors, params.classes)
                                    : decode_blocks(params.anchors, params.lanes_per_anchor);
        launch(decode[boxes_half][scores_half], dim3(blocks, params.images), DECODE_THREADS,
               {(void *)&params, &memory, &bytes});
        if (kernel_count > 1) {
            enqueue(kernels.map[is_batch], map_blocks(multiprocessors, params.capacity, params.images),
                    MAP_THREADS, params);
        }
        if (kernel_count > 2) {
            enqueue(kernels.reduce[is_batch],
                    reduce_blocks(multiprocessors, params.capacity, params.images), REDUCE_THREADS,
                    params);
            enqueue_sort(params, sort_count);
        }
        if (kernel_count > 3) {
            launch(kernels.publish[is_batch], dim3(1, params.images), PUBLISH_THREADS,
                   {&memory, &bytes, &headers, &survivors}, true);
        }
    }

    // Resets the counters for a graph without the last kernels.
    void reset() const {
        const uint64_t offset = capacity > sort_limit ? sort_state_offset(capacity) : 0;
        reset_counters<<<images, 256, 0, stream>>>(workspace, stride, offset);
    }
};

static cudaGraphExec_t capture(const std::function<void()> &work) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

// Microseconds of GPU time that `work` takes, of `repeats` squared in each measurement.
static double gpu_time(const std::function<void()> &work, int repeats = 20) {
    const cudaGraphExec_t exec = capture([&] {
        for (int i = 0; i < repeats; i++) {
            work();
        }
    });
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    double best = 1.0e9;
    for (int run = 0; run < 6; run++) {
        CHECK(cudaEventRecord(from, stream));
        for (int i = 0; i < repeats; i++) {
            CHECK(cudaGraphLaunch(exec, stream));
        }
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaEventSynchronize(to));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, from, to));
        if (run > 0) {
            best = std::min(best, milliseconds * 1000.0 / (repeats * repeats));
        }
    }
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    CHECK(cudaGraphExecDestroy(exec));
    return best;
}

static double median(const std::function<void()> &work) {
    std::vector<double> times;
    for (int i = 0; i < 2200; i++) {
        const auto from = std::chrono::steady_clock::now();
        work();
        const auto to = std::chrono::steady_clock::now();
        if (i >= 200) {
            times.push_back(std::chrono::duration<double, std::micro>(to - from).count());
        }
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

static KernelParams default_params(uint32_t anchors, uint32_t classes, uint32_t format) {
    KernelParams params;
    memset(&params, 0, sizeof params);
    params.anchors = anchors;
    params.classes = classes;
    params.images = 1;
    params.lanes_per_anchor = lanes_per_anchor(classes, 0, anchors, 1);
    params.box_format = format;
    params.scale[0] = params.scale[1] = 1.0f;
    params.max_size[0] = params.max_size[1] = INFINITY;
    params.iou_threshold = params.lowest_iou_threshold = 0.45f;
    params.class_agnostic = classes == 1; // as core/src/engine/cuda has it
    params.sequence = 1;
    params.capacity = anchors;
    params.sort_limit = SORT_LIMIT;
    params.first_chunk = FIRST_CHUNK;
    scenes::set_all_visible(params);
    return params;
}

// The parameters for a tensor whose rows have the box first and the score last.
static KernelParams params_of_rows(const float *rows, uint32_t anchors, uint32_t width,
                                   uint32_t format) {
    KernelParams params = default_params(anchors, 1, format);
    params.boxes = {(uint64_t)rows, 0, width, 1};
    params.scores = {(uint64_t)(rows + width - 1), 0, width, 1};
    return params;
}

// Whether the results of an image are the expected ones; prints what differs.
static bool same(const char *what, const scenes::Result &expected, const Pipeline &pipeline,
                 uint32_t image = 0, uint32_t capacity = 0) {
    const std::string wrong = scenes::difference(
        expected, pipeline.results[image], pipeline.detections + uint64_t(image) * capacity);
    if (!wrong.empty()) {
        printf("WRONG %s: %s\n", what, wrong.c_str());
    }
    return wrong.empty();
}

// The results of an image, to compare others with.
static scenes::Result result_of(const Pipeline &pipeline) {
    const ResultHeader &header = *pipeline.results;
    scenes::Result result;
    result.candidates = header.candidates;
    result.rejected = header.rejected;
    result.survivors.assign(pipeline.detections, pipeline.detections + header.survivors);
    return result;
}

// Runs a single image, and again with the kernels for batches, without sorting its candidates. Returns
// whether the results are the same.
static bool run_both(const char *what, const KernelParams &params, const Pipeline &pipeline) {
    const Pipeline batch(params.capacity, 2, UINT32_MAX);
    batch.enqueue(params, false, false);
    pipeline.enqueue(params, false, false);
    CHECK(cudaStreamSynchronize(stream));
    return same(what, result_of(batch), pipeline);
}

// Checks the scenes of a file, `most` at most; `checked` is how many. Returns whether all have the
// expected results.
static bool check_scenes(const char *path, uint32_t most, uint32_t &checked) {
    const uint32_t capacity = 8192, most_images = 8;
    const Pipeline single(capacity), batch(capacity, most_images);
    scenes::File file(path);
    scenes::Scene scene;
    bool right = true;
    for (checked = 0; right && checked < most && file.next(scene); checked++) {
        std::list<OnDevice<char>> tensors;
        std::vector<uint64_t> addresses;
        for (const scenes::Tensor &tensor : scene.tensors) {
            tensors.emplace_back(tensor.elements);
            addresses.push_back((uint64_t)tensors.back().at);
        }
        const OnDevice<float> thresholds(scene.thresholds);
        const uint32_t images = uint32_t(scene.expected.size());
        // Every other scene with tables of images.
        std::list<OnDevice<uint64_t>> lists;
        std::vector<uint64_t> tables(scene.tensors.size(), 0);
        for (uint32_t tensor = 0; checked % 2 == 1 && tensor < tables.size(); tensor++) {
            std::vector<uint64_t> table;
            for (uint32_t image = 0; image < images; image++) {
                table.push_back(addresses[tensor] + image * scene.image_stride(tensor));
            }
            lists.emplace_back(table);
            tables[tensor] = (uint64_t)lists.back().at;
        }
        KernelParams params = scene.params(addresses, (uint64_t)thresholds.at, tables);
        params.capacity = capacity;
        // In every third scene candidates are sorted.
        params.sort_limit = checked % 3 == 0 ? 0 : SORT_LIMIT;
        params.first_chunk = 1 + checked % 100;
        if (params.images > most_images) {
            fprintf(stderr, "%s: expected at most %u images, got %u\n", path, most_images,
                    params.images);
            exit(2);
        }
        const Pipeline &pipeline = params.images == 1 ? single : batch;
        pipeline.enqueue(params, scene.boxes_f16(), scene.scores_f16());
        CHECK(cudaStreamSynchronize(stream));
        for (uint32_t image = 0; image < params.images; image++) {
            const std::string what = "scene with the seed " + std::to_string(scene.seed) +
                                     ", image " + std::to_string(image) + " of " +
                                     std::to_string(params.images);
            right &= same(what.c_str(), scene.expected[image], pipeline, image, capacity);
        }
    }
    return right;
}

struct Times {
    double reset, decode, map, reduce, publish, wall, wall_sync;

    double all() const { return decode + map + reduce + publish; }
};

// The wall time from the call of `launch` until the host has read all sequence numbers.
static double wall_time(const Pipeline &pipeline, const KernelParams &params,
                        const std::function<void()> &launch) {
    const auto sequence = [&](uint32_t image) -> volatile uint32_t & {
        return pipeline.results[image].sequence;
    };
    return median([&] {
        for (uint32_t image = 0; image < params.images; image++) {
            sequence(image) = 0;
        }
        launch();
        for (uint32_t image = 0; image < params.images; image++) {
            while (sequence(image) != params.sequence) {
            }
        }
    });
}

static Times times_of(const Pipeline &pipeline, const KernelParams &params) {
    const auto reset = [&] { pipeline.reset(); };
    double through[5]; // of the first so many kernels
    for (int kernels = 0; kernels <= 4; kernels++) {
        through[kernels] = gpu_time([&] {
            reset();
            if (kernels > 0) {
                pipeline.enqueue(params, false, false, kernels);
            }
        });
        reset();
        CHECK(cudaStreamSynchronize(stream));
    }
    const cudaGraphExec_t exec = capture([&] { pipeline.enqueue(params, false, false); });
    const double wall = wall_time(pipeline, params, [&] {
        CHECK(cudaGraphLaunch(exec, stream));
    });
    CHECK(cudaStreamSynchronize(stream));
    const double wall_sync = median([&] {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
    });
    CHECK(cudaGraphExecDestroy(exec));
    return {through[0],
            through[1] - through[0],
            through[2] - through[1],
            through[3] - through[2],
            through[4] - through[3],
            wall,
            wall_sync};
}

// The wall time with an upload of the table from pinned memory before each launch, as for a batch
// whose table is another one each time.
static double wall_with_upload(const Pipeline &pipeline, const KernelParams &params,
                               const std::vector<uint64_t> &table, uint64_t *d_table) {
    const size_t bytes = table.size() * sizeof(uint64_t);
    uint64_t *pinned;
    CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault));
    const cudaGraphExec_t exec = capture([&] { pipeline.enqueue(params, false, false); });
    const double wall = wall_time(pipeline, params, [&] {
        memcpy(pinned, table.data(), bytes);
        CHECK(cudaMemcpyAsync(d_table, pinned, bytes, cudaMemcpyHostToDevice, stream));
        CHECK(cudaGraphLaunch(exec, stream));
    });
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFreeHost(pinned));
    return wall;
}

static void print_times(const char *what, uint32_t candidates, const ResultHeader &header,
                        const Times &t) {
    printf("%-26s %6u %6u %3u | %7.2f %7.2f %7.2f %7.2f | %7.2f %7.2f | %7.2f %7.2f\n", what,
           candidates, header.survivors, header.rounds, t.decode, t.map, t.reduce, t.publish,
           t.map + t.reduce, t.all(), t.wall, t.wall_sync);
}

// A tensor of YOLOv8, 84 x 8400: about 700 candidates in 40 clusters.
static const uint32_t YOLO_ANCHORS = 8400, YOLO_CLASSES = 80;
static const size_t YOLO_ELEMENTS = (4 + YOLO_CLASSES) * size_t(YOLO_ANCHORS);

static std::vector<float> yolo_tensor(uint64_t seed) {
    const size_t n = YOLO_ANCHORS;
    std::vector<float> tensor(YOLO_ELEMENTS);
    scenes::Random random(seed);
    for (size_t a = 0; a < n; a++) {
        const uint32_t cluster = random.below(40);
        const bool candidate = random.once_in(12);
        const float w = 30.0f + 60.0f * random.unit(), h = 30.0f + 60.0f * random.unit();
        const float x = 40.0f + 80.0f * float(cluster % 8) + 12.0f * random.unit();
        const float y = 60.0f + 120.0f * float(cluster / 8) + 12.0f * random.unit();
        const float part[4] = {x, y, w, h};
        for (size_t c = 0; c < 4; c++) {
            tensor[c * n + a] = part[c];
        }
        for (size_t c = 0; c < YOLO_CLASSES; c++) {
            tensor[(4 + c) * n + a] = 0.1f * random.unit();
        }
        if (candidate) {
            tensor[(4 + cluster % 3) * n + a] = 0.3f + 0.7f * random.unit();
        }
    }
    return tensor;
}

// The parameters for `images` such tensors, one after the other.
static KernelParams yolo_params(const float *tensor, uint32_t images, uint32_t capacity) {
    const uint32_t n = YOLO_ANCHORS;
    KernelParams params = default_params(n, YOLO_CLASSES, CENTER);
    params.threshold = params.lowest_threshold = 0.25f;
    params.boxes = {(uint64_t)tensor, YOLO_ELEMENTS, 1, n};
    params.scores = {(uint64_t)(tensor + 4 * size_t(n)), YOLO_ELEMENTS, 1, n};
    params.images = images;
    params.lanes_per_anchor = lanes_per_anchor(YOLO_CLASSES, 1, n, images);
    params.capacity = capacity;
    return params;
}

// Makes `params`, for one tensor with images at a constant stride, those for images by a table. The
// boxes are at the start of the tensor.
static void by_table(KernelParams &params, const uint64_t *table) {
    const uint64_t image = params.boxes.address;
    for (FieldParams *field : {&params.boxes, &params.scores}) {
        field->address -= image;
        field->image_stride = 0;
    }
    params.box_images = params.score_images = (uint64_t)table;
}

// Checks that the images of a batch of YOLOv8 tensors have the results of single images, at a
// constant stride and, in another order, by a table; with `timed`, prints a row for each size of
// batch and each of both: GPU microseconds per image, of each kernel and of all; wall microseconds
// per image, with a table also with its upload in each launch; and GPU microseconds of the same
// images one launch after the other, and of a kernel that only reads the tensors.
static bool batches(bool timed) {
    const uint32_t most = timed ? 64 : 4, capacity = 2048;
    std::vector<float> tensors;
    for (uint32_t image = 0; image < most; image++) {
        const std::vector<float> tensor = yolo_tensor(100 + image);
        tensors.insert(tensors.end(), tensor.begin(), tensor.end());
    }
    OnDevice<float> d_tensors(tensors), d_sum(1);
    const Pipeline single(capacity);
    const auto enqueue_single = [&](uint32_t image) {
        const float *const tensor = d_tensors.at + image * YOLO_ELEMENTS;
        single.enqueue(yolo_params(tensor, 1, capacity), false, false);
    };
    std::vector<scenes::Result> expected;
    for (uint32_t image = 0; image < most; image++) {
        enqueue_single(image);
        CHECK(cudaStreamSynchronize(stream));
        expected.push_back(result_of(single));
    }
    if (timed) {
        printf("\nbatches of 84x8400 f32, GPU us per image\n");
        printf("%6s %6s %7s | %7s %7s %7s %7s | %7s %7s %7s | %9s | %9s %9s %6s\n", "images", "",
               "n/image", "decode", "map", "reduce", "publish", "all", "wall", "upload", "one by 1",
               "read only", "read TB/s", "ratio");
    }
    bool right = true;
    for (uint32_t images : {1u, 4u, 16u, 64u}) {
        if (images > most) {
            continue;
        }
        const Pipeline pipeline(capacity, images);
        for (bool is_scattered : {false, true}) {
            // Image i of the batch is image order(i) of the tensors.
            const auto order = [&](uint32_t image) {
                return is_scattered ? (image * 5 + 2) % images : image;
            };
            KernelParams params = yolo_params(d_tensors.at, images, capacity);
            std::vector<uint64_t> table;
            for (uint32_t image = 0; image < images; image++) {
                table.push_back((uint64_t)(d_tensors.at + order(image) * YOLO_ELEMENTS));
            }
            const OnDevice<uint64_t> d_table(table);
            if (is_scattered) {
                by_table(params, d_table.at);
            }
            pipeline.enqueue(params, false, false);
            CHECK(cudaStreamSynchronize(stream));
            uint32_t candidates = 0;
            for (uint32_t image = 0; image < images; image++) {
                const std::string what = "image " + std::to_string(image) + " of " +
                                         std::to_string(images) +
                                         (is_scattered ? " by table" : "");
                right &= same(what.c_str(), expected[order(image)], pipeline, image, capacity);
                candidates += pipeline.results[image].candidates;
            }
            if (!timed) {
                continue;
            }
            const Times t = times_of(pipeline, params);
            const double m = images;
            printf("%6u %6s %7u | %7.2f %7.2f %7.2f %7.2f | %7.2f %7.2f ", images,
                   is_scattered ? "table" : "stride", candidates / images, t.decode / m, t.map / m,
                   t.reduce / m, t.publish / m, t.all() / m, t.wall / m);
            if (is_scattered) {
                printf("%7.2f\n", wall_with_upload(pipeline, params, table, d_table.at) / m);
                continue;
            }
            const double in_turn = gpu_time([&] {
                for (uint32_t image = 0; image < images; image++) {
                    enqueue_single(image);
                }
            });
            const uint64_t bytes = images * YOLO_ELEMENTS * sizeof(float);
            const double read = gpu_time([&] {
                read_all<<<multiprocessors * 8, 256, 0, stream>>>((const float4 *)d_tensors.at,
                                                                  bytes / sizeof(float4), d_sum.at);
            });
            printf("%7s | %9.2f | %9.2f %9.2f %6.2f\n", "", in_turn / m, read / m,
                   double(bytes) / read * 1.0e-6, t.all() / read);
        }
    }
    return right;
}

// Times the paper's kernels on the first `n` windows with `capacity` slots and `k` partitions, and
// prints a row. Returns whether they have the same survivors as this project's kernels with the
// paper's rules.
static bool paper_times(const std::vector<float> &windows, uint32_t n, uint32_t capacity,
                        uint32_t k, const float *d_windows, float *d_padded, uint8_t *d_matrix,
                        uint8_t *d_survives, const Pipeline &pipeline) {
    std::vector<float> padded(capacity * 4);
    std::copy_n(windows.begin(), n * 4, padded.begin());
    CHECK(cudaMemcpy(d_padded, padded.data(), padded.size() * 4, cudaMemcpyHostToDevice));
    const dim3 tiles((n + 15) / 16, (n + 15) / 16), tile(16, 16);
    const auto preset = [&] {
        CHECK(cudaMemsetAsync(d_matrix, 1, size_t(capacity) * capacity, stream));
    };
    const auto map = [&] {
        float theta = 0.3f;
        launch(kernels.paper_map, tiles, tile, {&d_padded, &n, &theta, &d_matrix, &capacity});
    };
    const auto reduce = [&] {
        launch(kernels.paper_reduce, capacity, capacity / k,
               {&d_matrix, &d_survives, &capacity, &k});
    };
    preset();
    map();
    reduce();
    std::vector<uint8_t> survives(capacity);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(survives.data(), d_survives, capacity, cudaMemcpyDeviceToHost));
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        left += survives[i];
    }
    // The same survivors from this project's kernels, with the paper's rules.
    KernelParams params = params_of_rows(d_windows, n, 4, SQUARE);
    params.method = MAP_REDUCE;
    params.overlap = REPRESENTATIVE;
    params.iou_threshold = 0.3f;
    params.threshold_inclusive = 1;
    params.pixel_offset = 1.0f;
    pipeline.enqueue(params, false, false);
    CHECK(cudaStreamSynchronize(stream));
    uint32_t shared = 0;
    for (uint32_t i = 0; i < pipeline.results->survivors; i++) {
        shared += survives[pipeline.detections[i].anchor];
    }
    const bool right = shared == left && pipeline.results->survivors == left;
    if (!right) {
        printf("WRONG map-reduce, n = %u: the paper's kernels leave %u, these %u, %u in common\n",
               n, left, pipeline.results->survivors, shared);
    }
    const double t_memset = gpu_time(preset), t_map = gpu_time(map), t_reduce = gpu_time(reduce);
    const double both = gpu_time([&] {
        map();
        reduce();
    });
    const double all = gpu_time([&] {
        preset();
        map();
        reduce();
    });
    printf("%-26s %6u %6u %6u | %7.2f %7.2f %7.2f | %8.2f %8.2f\n", "", capacity, n, left, t_memset,
           t_map, t_reduce, both, all);
    return right;
}

#include "counts.h"

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr,
                "usage: bench PTX_FOLDER WINDOWS.csv SCENES [scenes at most] [check|batch|counts]\n");
        return 2;
    }
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    multiprocessors = uint32_t(properties.multiProcessorCount);
    CHECK(cudaFree(nullptr)); // makes the context into which modules are loaded
    load(argv[1], properties.major);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    printf("%s, compute capability %d.%d, %u multiprocessors\n", properties.name, properties.major,
           properties.minor, multiprocessors);

    std::vector<float> windows;
    std::ifstream file(argv[2]);
    for (std::string line, number; std::getline(file, line);) {
        std::stringstream numbers(line);
        while (std::getline(numbers, number, ',')) {
            windows.push_back(strtof(number.c_str(), nullptr));
        }
    }
    if (windows.size() != 2997 * 4) {
        fprintf(stderr, "expected 2997 windows of 4 numbers in %s, got %zu numbers\n", argv[2],
                windows.size());
        return 2;
    }

    uint32_t checked;
    bool right = check_scenes(argv[3], argc > 4 ? uint32_t(atoi(argv[4])) : UINT32_MAX, checked);
    printf("random scenes: %u %s\n", checked, right ? "right" : "WRONG");

    const std::string mode = argc > 5 ? argv[5] : "";
    if (mode == "check" || mode == "batch") {
        right &= batches(mode == "batch");
        printf("%s\n", right ? "ALL RIGHT" : "SOMETHING IS WRONG");
        return right ? 0 : 1;
    }
    if (mode == "counts") {
        right &= counts::measure();
        printf("%s\n", right ? "ALL RIGHT" : "SOMETHING IS WRONG");
        return right ? 0 : 1;
    }
    const double launch_sync = median([&] {
        empty<<<1, 1, 0, stream>>>();
        CHECK(cudaStreamSynchronize(stream));
    });
    const double empties = gpu_time([&] {
        for (int i = 0; i < 3; i++) {
            empty<<<1, 1, 0, stream>>>();
        }
    });
    printf("empty launch + sync, wall: %.2f us; three empty kernels of a graph: %.2f us\n\n",
           launch_sync, empties);
    printf("%-26s %6s %6s %3s | %7s %7s %7s %7s | %7s %7s | %7s %7s\n", "GPU us, greedy", "n",
           "left", "rds", "decode", "map", "reduce", "publish", "m+r", "all", "wall", "w. sync");

    const uint32_t counts[] = {200, 360, 698, 1027, 2048, 2895, 2997};
    // What method=greedy leaves of them, by IoU threshold: tests/engine/paper.rs.
    const uint32_t left_at_0_3[] = {26, 51, 95, 132, 144, 145, 145};
    const uint32_t left_at_0_5[] = {26, 51, 95, 132, 154, 190, 201};
    OnDevice<float> d_windows(windows);
    {
        Pipeline pipeline(2997);
        for (size_t i = 0; i < std::size(counts); i++) {
            KernelParams params = params_of_rows(d_windows.at, counts[i], 4, SQUARE);
            for (float iou : {0.3f, 0.5f}) {
                params.iou_threshold = iou;
                char what[64];
                snprintf(what, sizeof what, "windows, IoU %.1f", iou);
                right &= run_both(what, params, pipeline);
                const uint32_t left = iou == 0.3f ? left_at_0_3[i] : left_at_0_5[i];
                if (pipeline.results->survivors != left) {
                    printf("WRONG %s: expected %u survivors of %u, got %u\n", what, left,
                           counts[i], pipeline.results->survivors);
                    right = false;
                }
                print_times(what, counts[i], *pipeline.results, times_of(pipeline, params));
            }
        }
    }

    for (uint32_t n : {1000u, 8400u, 30000u}) {
        std::vector<float> rows;
        scenes::Random random(n);
        for (uint32_t i = 0; i < n; i++) {
            const float x = 1820.0f * random.unit(), y = 980.0f * random.unit();
            const float w = 10.0f + 190.0f * random.unit(), h = 10.0f + 190.0f * random.unit();
            for (float value : {x, y, x + w, y + h, random.unit()}) {
                rows.push_back(value);
            }
        }
        OnDevice<float> d_rows(rows);
        Pipeline pipeline(n);
        const KernelParams params = params_of_rows(d_rows.at, n, 5, CORNERS);
        right &= run_both("random boxes", params, pipeline);
        print_times("random boxes, IoU 0.45", n, *pipeline.results, times_of(pipeline, params));
    }

    {
        const uint32_t n = YOLO_ANCHORS;
        const std::vector<float> tensor = yolo_tensor(8);
        OnDevice<float> d_tensor(tensor);
        Pipeline pipeline(n);
        const KernelParams params = yolo_params(d_tensor.at, 1, n);
        right &= run_both("yolov8", params, pipeline);
        print_times("yolov8 84x8400", pipeline.results->candidates, *pipeline.results,
                    times_of(pipeline, params));
    }

    right &= batches(true);

    printf("\n%-26s %6s %6s %6s | %7s %7s %7s | %8s %8s\n", "the paper's kernels, GPU us", "slots",
           "n", "left", "memset", "map", "reduce", "map+red.", "with it");
    // The paper's capacity for every n, and the least that holds n windows at the paper's best k.
    const uint32_t papers_capacity = 4096, k = 32;
    windows.resize(papers_capacity * 4);
    OnDevice<float> d_padded(papers_capacity * 4);
    OnDevice<uint8_t> d_matrix(size_t(papers_capacity) * papers_capacity);
    OnDevice<uint8_t> d_survives(papers_capacity);
    Pipeline pipeline(2997);
    for (bool is_fitted : {false, true}) {
        for (uint32_t n : counts) {
            const uint32_t step = 32 * k;
            const uint32_t capacity = is_fitted ? (n + step - 1) / step * step : papers_capacity;
            right &= paper_times(windows, n, capacity, k, d_windows.at, d_padded.at, d_matrix.at,
                                 d_survives.at, pipeline);
        }
    }

    printf("\n%s\n", right ? "ALL RIGHT" : "SOMETHING IS WRONG");
    return right ? 0 : 1;
}
