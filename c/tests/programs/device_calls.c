/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The same tensors in host memory and in device memory: nmsfilter_run after an event and after a stream,
 * nmsfilter_enqueue in the order of a stream, separate allocations, and boxes in groups.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nmsfilter/nmsfilter.h>

typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuCtxPushCurrent_v2(CUcontext context);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemFree_v2(CUdeviceptr address);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuEventCreate(CUevent *event, unsigned flags);
int cuEventRecord(CUevent event, CUstream stream);

#define EXPECT(condition)                                                                                             \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, nmsfilter_error_text(filter));        \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

enum { IMAGES = 2, ANCHORS = 500, NUMBERS = 8, BYTES = IMAGES * NUMBERS * ANCHORS * sizeof(float) };

static Nmsfilter *filter;
static CUstream stream;
static float output[IMAGES][NUMBERS][ANCHORS];
static NmsfilterDetection expected[IMAGES][ANCHORS];
static size_t expected_counts[IMAGES];

static float random_number(void)
{
    static uint32_t state = 1;

    state = state * 1664525 + 1013904223;
    return (float)(state >> 8) / (1 << 24);
}

static CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr address = 0;

    EXPECT(cuMemAlloc_v2(&address, bytes) == 0);
    EXPECT(cuMemcpyHtoDAsync_v2(address, from, bytes, stream) == 0);
    return address;
}

static const void *pointer(CUdeviceptr address)
{
    return (const void *)(uintptr_t)address;
}

static NmsfilterTensor output_tensor(void)
{
    NmsfilterTensor tensor;

    memset(&tensor, 0, sizeof tensor);
    tensor.size = sizeof tensor;
    tensor.id = "output0";
    tensor.dimensions = 3;
    tensor.shape[0] = IMAGES;
    tensor.shape[1] = NUMBERS;
    tensor.shape[2] = ANCHORS;
    tensor.data = output;
    tensor.bytes = BYTES;
    return tensor;
}

static void check_result(void)
{
    NmsfilterImage image;
    size_t i;

    memset(&image, 0, sizeof image);
    image.size = sizeof image;
    for (i = 0; i < IMAGES; i++) {
        EXPECT(nmsfilter_image(filter, i, &image) == NMSFILTER_STATUS_OK);
        EXPECT(image.count == expected_counts[i]);
        EXPECT(memcmp(image.detections, expected[i], image.count * sizeof *image.detections) == 0);
    }
}

static void make_expected(void)
{
    NmsfilterTensor tensor = output_tensor();
    NmsfilterImage image;
    size_t i, j, k;

    for (i = 0; i < IMAGES; i++)
        for (j = 0; j < NUMBERS; j++)
            for (k = 0; k < ANCHORS; k++)
                output[i][j][k] = j < 2 ? 300 * random_number() : j < 4 ? 10 + 60 * random_number() : random_number();
    EXPECT(nmsfilter_run(filter, &tensor, 1, NULL) == NMSFILTER_STATUS_OK);
    memset(&image, 0, sizeof image);
    image.size = sizeof image;
    for (i = 0; i < IMAGES; i++) {
        EXPECT(nmsfilter_image(filter, i, &image) == NMSFILTER_STATUS_OK);
        EXPECT(image.count > 10 && image.count < ANCHORS);
        expected_counts[i] = image.count;
        memcpy(expected[i], image.detections, image.count * sizeof *image.detections);
    }
}

static void set_up(uint32_t backend)
{
    NmsfilterOptions options;

    nmsfilter_free(filter);
    filter = NULL;
    EXPECT(nmsfilter_new(backend, backend == NMSFILTER_BACKEND_CUDA ? 0 : -1, &filter) == NMSFILTER_STATUS_OK);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.batch = 1;
    EXPECT(nmsfilter_set_options(filter, &options) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_set_decoder(filter, "yolov8") == NMSFILTER_STATUS_OK);
}

static void run_after_producers(void)
{
    NmsfilterTensor tensor = output_tensor();
    NmsfilterResult result;
    CUdeviceptr memory = upload(output, BYTES);
    CUevent event;

    memset(&result, 0, sizeof result);
    result.size = sizeof result;
    tensor.memory = NMSFILTER_MEMORY_DEVICE;
    tensor.data = pointer(memory);
    tensor.ready = NMSFILTER_READY_AFTER_STREAM;
    tensor.ready_after = stream;
    EXPECT(nmsfilter_run(filter, &tensor, 1, &result) == NMSFILTER_STATUS_OK);
    EXPECT(strcmp(result.engine, "cuda") == 0 && result.bytes_uploaded == 0 && result.bytes_downloaded > 0);
    check_result();
    EXPECT(cuEventCreate(&event, 2) == 0 && cuEventRecord(event, stream) == 0);
    tensor.ready = NMSFILTER_READY_AFTER_EVENT;
    tensor.ready_after = event;
    EXPECT(nmsfilter_run(filter, &tensor, 1, NULL) == NMSFILTER_STATUS_OK);
    check_result();
    cuMemFree_v2(memory);
}

static void enqueue(void)
{
    NmsfilterTensor tensor = output_tensor();
    NmsfilterDeviceResult result;
    NmsfilterDeviceCounts counts[IMAGES];
    NmsfilterDetection *found;
    CUdeviceptr memory[IMAGES];
    const void *images[IMAGES];
    size_t i;

    memory[0] = upload(output[0], BYTES / IMAGES);
    memory[1] = upload(output[1], BYTES / IMAGES);
    images[0] = pointer(memory[0]);
    images[1] = pointer(memory[1]);
    tensor.memory = NMSFILTER_MEMORY_DEVICE;
    tensor.data = NULL;
    tensor.images = images;
    tensor.bytes = BYTES / IMAGES;
    memset(&result, 0, sizeof result);
    result.size = sizeof result;
    EXPECT(nmsfilter_enqueue(filter, &tensor, 1, stream, &result) == NMSFILTER_STATUS_OK);
    EXPECT(result.image_count == IMAGES && result.count_size == sizeof counts[0] && result.cuda_device == 0);
    EXPECT(result.capacity >= ANCHORS && result.columns == 0);
    found = malloc(IMAGES * result.capacity * sizeof *found);
    EXPECT(cuMemcpyDtoHAsync_v2(counts, result.counts, sizeof counts, stream) == 0);
    EXPECT(cuMemcpyDtoHAsync_v2(found, result.detections, IMAGES * result.capacity * sizeof *found, stream) == 0);
    EXPECT(cuStreamSynchronize(stream) == 0);
    for (i = 0; i < IMAGES; i++) {
        const NmsfilterDetection *of_image = &found[i * result.capacity];
        EXPECT(counts[i].detections == expected_counts[i] && counts[i].rejected == 0);
        EXPECT(memcmp(of_image, expected[i], expected_counts[i] * sizeof *of_image) == 0);
        EXPECT(of_image[expected_counts[i]].score == 0);
        cuMemFree_v2(memory[i]);
    }
    free(found);
}

static void run_boxes(void)
{
    static const float corners[12] = { 0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30 }, scores[3] = { 0.8f, 0.9f, 0.7f };
    static const int64_t groups[3] = { 0, 0, 1 };
    NmsfilterTensor tensors[3];
    NmsfilterBoxes *boxes = NULL;
    NmsfilterDeviceResult result;
    NmsfilterDeviceCounts counts;
    NmsfilterDetection found[3];
    const uint32_t *kept = NULL;
    size_t count = 0, i;

    memset(tensors, 0, sizeof tensors);
    for (i = 0; i < 3; i++) {
        tensors[i].size = sizeof tensors[i];
        tensors[i].dimensions = i == 0 ? 2 : 1;
        tensors[i].shape[0] = 3;
        tensors[i].shape[1] = i == 0 ? 4 : 0;
        tensors[i].memory = NMSFILTER_MEMORY_DEVICE;
        tensors[i].ready = NMSFILTER_READY_AFTER_STREAM;
        tensors[i].ready_after = stream;
    }
    tensors[0].data = pointer(upload(corners, sizeof corners));
    tensors[0].bytes = sizeof corners;
    tensors[1].data = pointer(upload(scores, sizeof scores));
    tensors[1].bytes = sizeof scores;
    tensors[2].data = pointer(upload(groups, sizeof groups));
    tensors[2].bytes = sizeof groups;
    tensors[2].element_type = NMSFILTER_ELEMENT_TYPE_I64;
    EXPECT(nmsfilter_boxes_new(NMSFILTER_BACKEND_CUDA, 0, &boxes) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_boxes_run(boxes, &tensors[0], &tensors[1], &tensors[2], &kept, &count) == NMSFILTER_STATUS_OK);
    EXPECT(count == 2 && kept[0] == 1 && kept[1] == 2);
    memset(&result, 0, sizeof result);
    result.size = sizeof result;
    EXPECT(nmsfilter_boxes_enqueue(boxes, &tensors[0], &tensors[1], NULL, stream, &result) == NMSFILTER_STATUS_OK);
    EXPECT(cuMemcpyDtoHAsync_v2(&counts, result.counts, sizeof counts, stream) == 0);
    EXPECT(cuMemcpyDtoHAsync_v2(found, result.detections, sizeof found, stream) == 0);
    EXPECT(cuStreamSynchronize(stream) == 0);
    EXPECT(counts.candidates == 3 && counts.detections == 2 && found[0].anchor == 1 && found[1].anchor == 2);
    nmsfilter_boxes_free(boxes);
}

int main(void)
{
    CUcontext context;

    EXPECT(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxPushCurrent_v2(context) == 0);
    EXPECT(cuStreamCreate(&stream, 1) == 0);
    set_up(NMSFILTER_BACKEND_CPU);
    make_expected();
    set_up(NMSFILTER_BACKEND_CUDA);
    run_after_producers();
    enqueue();
    run_boxes();
    set_up(NMSFILTER_BACKEND_AUTO);
    run_after_producers();
    nmsfilter_free(filter);
    return 0;
}
