/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of all functions, right ones and wrong ones, for AddressSanitizer and valgrind: every array is in an
 * allocation of exactly its size, and is freed as soon as the header allows it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nmsfilter/nmsfilter.h>

#define EXPECT(condition)                                                                                             \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, nmsfilter_error_text(filter));        \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

static Nmsfilter *filter;

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes > 0 ? bytes : 1);

    if (to == NULL)
        abort();
    memcpy(to, from, bytes);
    return to;
}

static NmsfilterTensor tensor_of(const char *id, uint64_t rows, uint64_t columns, const float *data)
{
    NmsfilterTensor tensor;

    memset(&tensor, 0, sizeof tensor);
    tensor.size = sizeof tensor;
    tensor.id = id;
    tensor.dimensions = 2;
    tensor.shape[0] = rows;
    tensor.shape[1] = columns;
    tensor.data = data;
    tensor.bytes = (size_t)(rows * columns) * sizeof(float);
    return tensor;
}

static const float windows[12] = { 100, 50, 80, 0.9f, 104, 54, 80, 0.6f, 300, 60, 90, 0.7f };

/* Reads every number of the image. */
static double sum(const NmsfilterImage *image)
{
    double sum = 0;
    size_t i, j;

    for (i = 0; i < image->count; i++) {
        sum += image->detections[i].x1 + image->detections[i].score + image->detections[i].anchor;
        if (image->oriented_boxes != NULL)
            sum += image->oriented_boxes[i].angle;
        for (j = 0; j < image->points_per_detection; j++)
            sum += image->points[i * image->points_per_detection + j].x;
        for (j = 0; j < image->columns_per_detection; j++)
            sum += image->columns[i * image->columns_per_detection + j];
        if (image->masks != NULL && image->masks[i].bytes != NULL)
            for (j = 0; j < (image->masks[i].width + 7) / 8 * image->masks[i].height; j++)
                sum += image->masks[i].bytes[j];
    }
    return sum;
}

static NmsfilterImage image_at(size_t index)
{
    NmsfilterImage *image = calloc(1, sizeof *image), found;

    image->size = sizeof *image;
    EXPECT(nmsfilter_image(filter, index, image) == NMSFILTER_STATUS_OK);
    found = *image;
    free(image);
    return found;
}

static void run_windows(void)
{
    float *data = copy(windows, sizeof windows);
    NmsfilterTensor tensor = tensor_of("windows", 3, 4, data), *tensors = copy(&tensor, sizeof tensor);
    NmsfilterResult *result = calloc(1, sizeof *result);
    NmsfilterImage image;

    result->size = sizeof *result;
    EXPECT(nmsfilter_run(filter, tensors, 1, result) == NMSFILTER_STATUS_OK);
    EXPECT(result->image_count == 1 && strcmp(result->engine, "cpu") == 0);
    /* Results are in the handle's memory. */
    free(result);
    free(tensors);
    free(data);
    image = image_at(0);
    EXPECT(image.count == 2 && image.detections[0].anchor == 0 && image.detections[1].anchor == 2);
    EXPECT(sum(&image) > 0);
}

static void run_batch(void)
{
    const void *images[2];
    NmsfilterOptions options;
    NmsfilterTensor tensor = tensor_of("windows", 2, 3, NULL);

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.batch = 1;
    EXPECT(nmsfilter_set_options(filter, &options) == NMSFILTER_STATUS_OK);
    images[0] = copy(windows, sizeof windows);
    images[1] = copy(windows, sizeof windows);
    tensor.dimensions = 3;
    tensor.shape[2] = 4;
    tensor.images = images;
    tensor.bytes = sizeof windows;
    EXPECT(nmsfilter_run(filter, &tensor, 1, NULL) == NMSFILTER_STATUS_OK);
    free((void *)images[0]);
    free((void *)images[1]);
    EXPECT(image_at(0).count == 2 && image_at(1).count == 2);
}

/* Boxes with masks: 6 + 4 numbers of each anchor, of which two are not empty, and 4 prototypes of 8 x 8. */
static void run_masks(void)
{
    enum { ANCHORS = 20 };
    static const float numbers[2][10] = {
        { 8, 8, 8, 8, 0.9f, 0, 1, 0, 0, 0 },
        { 20, 20, 6, 6, 0, 0.8f, -1, 1, 0, 0 },
    };
    float *data = calloc(10 * ANCHORS, sizeof *data), *prototypes = malloc(4 * 64 * sizeof *prototypes);
    NmsfilterTensor tensors[2];
    NmsfilterOptions options;
    NmsfilterImage image;
    size_t i;

    for (i = 0; i < 20; i++)
        data[i / 2 * ANCHORS + i % 2] = numbers[i % 2][i / 2];
    for (i = 0; i < 4 * 64; i++)
        prototypes[i] = (float)(i % 5) - 1.5f;
    tensors[0] = tensor_of("output0", 1, 10, data);
    tensors[0].dimensions = 3;
    tensors[0].shape[2] = ANCHORS;
    tensors[0].bytes = 10 * ANCHORS * sizeof *data;
    tensors[1] = tensor_of("output1", 1, 4, prototypes);
    tensors[1].dimensions = 4;
    tensors[1].shape[2] = tensors[1].shape[3] = 8;
    tensors[1].bytes = 4 * 64 * sizeof *prototypes;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.class_count = 2;
    options.model_width = options.model_height = 32;
    EXPECT(nmsfilter_set_options(filter, &options) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_set_decoder(filter, "yolov8-seg") == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_run(filter, tensors, 2, NULL) == NMSFILTER_STATUS_OK);
    free(data);
    free(prototypes);
    image = image_at(0);
    EXPECT(image.count == 2 && image.masks != NULL && image.masks[0].bytes != NULL);
    EXPECT(isfinite(sum(&image)));
    EXPECT(nmsfilter_set_decoder(filter, NULL) == NMSFILTER_STATUS_OK);
    options.class_count = 0;
    EXPECT(nmsfilter_set_options(filter, &options) == NMSFILTER_STATUS_OK);
}

static void set_params(void)
{
    NmsfilterParams *params = malloc(sizeof *params);
    float *thresholds = calloc(3, sizeof *thresholds);
    NmsfilterClassRule *rules = calloc(2, sizeof *rules);

    EXPECT(nmsfilter_params_init(params, sizeof *params) == NMSFILTER_STATUS_OK);
    EXPECT(params->size == sizeof *params && params->masks == 1 && params->max_size[0] > 1e30f);
    rules[0].size = rules[1].size = sizeof *rules;
    rules[0].max_detections = 5;
    params->class_score_thresholds = thresholds;
    params->class_score_threshold_count = 3;
    params->class_rules = rules;
    params->class_rule_count = 2;
    EXPECT(nmsfilter_set_params(filter, params) == NMSFILTER_STATUS_OK);
    free(thresholds);
    free(rules);
    free(params);
}

static void run_wrong(void)
{
    NmsfilterTensor tensor = tensor_of("windows", 3, 4, windows);
    NmsfilterImage image;
    NmsfilterDeviceResult result;
    Nmsfilter *none = NULL;

    memset(&image, 0, sizeof image);
    memset(&result, 0, sizeof result);
    EXPECT(nmsfilter_image(filter, 0, &image) == NMSFILTER_STATUS_INVALID_ARGUMENT);
    EXPECT(strstr(nmsfilter_error_text(filter), "sizeof(NmsfilterImage)") != NULL);
    tensor.bytes -= 1;
    EXPECT(nmsfilter_run(filter, &tensor, 1, NULL) == NMSFILTER_STATUS_TENSOR);
    EXPECT(nmsfilter_run(filter, NULL, 1, NULL) == NMSFILTER_STATUS_INVALID_ARGUMENT);
    EXPECT(nmsfilter_run(NULL, NULL, 0, NULL) == NMSFILTER_STATUS_INVALID_ARGUMENT);
    EXPECT(nmsfilter_set_layout(filter, "name x\nnonsense\n") == NMSFILTER_STATUS_DECODER);
    EXPECT(nmsfilter_enqueue(filter, &tensor, 1, NULL, &result) == NMSFILTER_STATUS_INVALID_ARGUMENT);
    EXPECT(nmsfilter_new(7, 0, &none) == NMSFILTER_STATUS_INVALID_ARGUMENT && none == NULL);
    EXPECT(strlen(nmsfilter_error_text(NULL)) > 0);
}

static void run_boxes(void)
{
    static const float corners[12] = { 0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30 };
    static const float scores[3] = { 0.8f, 0.9f, 0.7f };
    float *data = copy(corners, sizeof corners), *numbers = copy(scores, sizeof scores);
    NmsfilterTensor boxes = tensor_of(NULL, 3, 4, data), of_scores = tensor_of(NULL, 3, 1, numbers);
    NmsfilterBoxesParams params;
    NmsfilterBoxes *handle = NULL;
    const uint32_t *kept = NULL;
    size_t count = 0;

    of_scores.dimensions = 1;
    EXPECT(nmsfilter_boxes_new(NMSFILTER_BACKEND_CPU, -1, &handle) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_boxes_params_init(&params, sizeof params) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_boxes_set_params(handle, &params) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_boxes_run(handle, &boxes, &of_scores, NULL, &kept, &count) == NMSFILTER_STATUS_OK);
    free(data);
    free(numbers);
    EXPECT(count == 2 && kept[0] == 1 && kept[1] == 2);
    EXPECT(nmsfilter_boxes_run(handle, &boxes, NULL, NULL, &kept, &count) == NMSFILTER_STATUS_INVALID_ARGUMENT);
    EXPECT(strlen(nmsfilter_boxes_error_text(handle)) > 0);
    nmsfilter_boxes_free(handle);
    nmsfilter_boxes_free(NULL);
}

static NmsfilterModelTensorInfo info_of(const char *name, uint32_t onnx_type, uint32_t dimensions, int64_t last)
{
    NmsfilterModelTensorInfo info;
    uint32_t i;

    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    info.name = name;
    info.onnx_type = onnx_type;
    info.dimensions = dimensions;
    for (i = 0; i < dimensions; i++)
        info.shape[i] = i + 1 == dimensions ? last : i == 1 ? 3 : -1;
    return info;
}

static void find_signature(void)
{
    NmsfilterModelTensorInfo named[2] = { info_of("images", 1, 4, 64), info_of("output", 1, 2, 7) };
    NmsfilterModelTensorInfo *inputs = copy(&named[0], sizeof *named), *outputs = copy(&named[1], sizeof *named);
    static const float rows[14] = { 0, 10, 20, 30, 40, 5, 0.9f, 0, 50, 5, 90, 60, 7, 0.8f };
    float *numbers = copy(rows, sizeof rows);
    NmsfilterTensor list[2] = { tensor_of("other", 2, 7, numbers), tensor_of("output", 2, 7, numbers) };
    NmsfilterTensor *tensors = copy(list, sizeof list);
    NmsfilterSignature *signature = calloc(1, sizeof *signature);
    NmsfilterOptions *options = calloc(1, sizeof *options);
    NmsfilterParams *params = calloc(1, sizeof *params);
    size_t count = 2;

    signature->size = sizeof *signature;
    options->size = sizeof *options;
    EXPECT(nmsfilter_params_init(params, sizeof *params) == NMSFILTER_STATUS_OK);
    outputs->shape[0] = -1;
    EXPECT(nmsfilter_signature(inputs, 1, outputs, 1, NULL, signature, options, params) == NMSFILTER_STATUS_OK);
    free(inputs);
    free(outputs);
    EXPECT(strcmp(signature->name, "yolov7-end2end") == 0 && params->method == NMSFILTER_METHOD_NONE);
    EXPECT(nmsfilter_signature_tensors(signature, tensors, &count) == NMSFILTER_STATUS_OK && count == 1);
    EXPECT(nmsfilter_set_decoder(filter, NULL) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_set_params(filter, params) == NMSFILTER_STATUS_OK);
    free(params);
    free(signature);
    EXPECT(nmsfilter_run(filter, tensors, count, NULL) == NMSFILTER_STATUS_OK);
    EXPECT(image_at(0).count == 2);
    free(options);
    free(tensors);
    free(numbers);
}

/* Two parts of a frame see one window. */
static void run_regions(void)
{
    static const NmsfilterRegion parts[2] = { { 0, 0, 200, 100 }, { 100, 0, 200, 100 } };
    static const float seen[8] = { 110, 20, 40, 0.9f, 10, 20, 40, 0.8f };
    float *numbers = copy(seen, sizeof seen);
    NmsfilterRegion *regions = copy(parts, sizeof parts);
    NmsfilterTensor tensor = tensor_of("windows", 2, 4, numbers);
    NmsfilterOptions options = { 0 };
    NmsfilterParams params;
    const NmsfilterDetection *found;

    options.size = sizeof options;
    options.batch = 1;
    EXPECT(nmsfilter_set_options(filter, &options) == NMSFILTER_STATUS_OK);
    EXPECT(nmsfilter_params_init(&params, sizeof params) == NMSFILTER_STATUS_OK);
    params.frame_size[0] = 300;
    params.frame_size[1] = 100;
    params.regions = regions;
    params.region_count = 2;
    EXPECT(nmsfilter_set_params(filter, &params) == NMSFILTER_STATUS_OK);
    free(regions);
    tensor.dimensions = 3;
    tensor.shape[1] = 1;
    tensor.shape[2] = 4;
    EXPECT(nmsfilter_run(filter, &tensor, 1, NULL) == NMSFILTER_STATUS_OK);
    EXPECT(image_at(0).count == 1);
    found = image_at(0).detections;
    EXPECT(found->x1 == 110 && found->y2 == 60 && found->anchor == 0);
    free(numbers);
}

int main(void)
{
    EXPECT(nmsfilter_version() == NMSFILTER_VERSION);
    EXPECT(strcmp(nmsfilter_decoder_name(0), "windows") == 0);
    EXPECT(nmsfilter_new(NMSFILTER_BACKEND_CPU, -1, &filter) == NMSFILTER_STATUS_OK);
    run_windows();
    run_batch();
    run_masks();
    set_params();
    run_wrong();
    run_boxes();
    find_signature();
    run_regions();
    nmsfilter_free(filter);
    nmsfilter_free(NULL);
    return 0;
}
