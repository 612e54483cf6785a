/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Recognizes a model by its inputs and outputs, and decodes the outputs of a run without further settings.
 *
 *     cc signature.c -o signature $(pkg-config --cflags --libs nmsfilter)
 *     ./signature
 *
 * The inputs and outputs are those of RT-DETR's export program. A program with ONNX Runtime gets names from
 * SessionGetInputName, types from GetTensorElementType and dimensions from GetDimensions, and the outputs from Run.
 */
#include <stdio.h>

#include <nmsfilter/nmsfilter.h>

/* ONNXTensorElementDataType has these numbers. */
enum { FLOAT = 1, INT64 = 7 };

#define INFO(of_name, type, ...)                                                                                      \
    {                                                                                                                 \
        .size = sizeof(NmsfilterModelTensorInfo), .name = of_name, .onnx_type = type, __VA_ARGS__                     \
    }

static const NmsfilterModelTensorInfo inputs[] = {
    INFO("images", FLOAT, .dimensions = 4, .shape = { -1, 3, 640, 640 }),
    INFO("orig_target_sizes", INT64, .dimensions = 2, .shape = { -1, 2 }),
};
static const NmsfilterModelTensorInfo outputs[] = {
    INFO("labels", INT64, .dimensions = 2, .shape = { -1, 300 }),
    INFO("boxes", FLOAT, .dimensions = 3, .shape = { -1, 300, 4 }),
    INFO("scores", FLOAT, .dimensions = 2, .shape = { -1, 300 }),
};

/* The outputs of a run with two queries, of which the second is no object. */
static const int64_t labels[] = { 16, 0 };
static const float boxes[] = { 100, 120, 300, 420, 5, 5, 600, 600 }, scores[] = { 0.9f, 0.01f };

#define TENSOR(of_name, type, array, ...)                                                                             \
    {                                                                                                                 \
        .size = sizeof(NmsfilterTensor), .id = of_name, .element_type = type, .data = array, .bytes = sizeof array,   \
        __VA_ARGS__                                                                                                   \
    }

static int decode(Nmsfilter *filter)
{
    NmsfilterTensor tensors[] = {
        TENSOR("labels", NMSFILTER_ELEMENT_TYPE_I64, labels, .dimensions = 2, .shape = { 1, 2 }),
        TENSOR("boxes", NMSFILTER_ELEMENT_TYPE_F32, boxes, .dimensions = 3, .shape = { 1, 2, 4 }),
        TENSOR("scores", NMSFILTER_ELEMENT_TYPE_F32, scores, .dimensions = 2, .shape = { 1, 2 }),
    };
    size_t count = 3, i;
    NmsfilterSignature signature = { .size = sizeof signature };
    NmsfilterOptions options = { .size = sizeof options };
    NmsfilterImage image = { .size = sizeof image };
    NmsfilterParams params;

    if (nmsfilter_params_init(&params, sizeof params) ||
        nmsfilter_signature(inputs, 2, outputs, 3, NULL, &signature, &options, &params)) {
        fprintf(stderr, "%s\n", nmsfilter_error_text(NULL));
        return 0;
    }
    if (signature.name == NULL) {
        fprintf(stderr, "the model's exporter is not known: set the decoder\n");
        return 0;
    }
    printf("%s: %ux%u pixels from %g to %g\n", signature.name, (unsigned)signature.width, (unsigned)signature.height,
           signature.range[0], signature.range[1]);
    for (i = 0; i < 2; i++)
        if (signature.inputs[i] == NMSFILTER_INPUT_NUMBERS_WIDTH_HEIGHT)
            printf("input %s is %u,%u\n", inputs[i].name, (unsigned)signature.width, (unsigned)signature.height);

    /* Here the model runs. */
    if (nmsfilter_signature_tensors(&signature, tensors, &count)) {
        fprintf(stderr, "%s\n", nmsfilter_error_text(NULL));
        return 0;
    }
    if (nmsfilter_set_options(filter, &options) || nmsfilter_set_params(filter, &params) ||
        nmsfilter_run(filter, tensors, count, NULL) || nmsfilter_image(filter, 0, &image)) {
        fprintf(stderr, "%s\n", nmsfilter_error_text(filter));
        return 0;
    }
    for (i = 0; i < image.count; i++) {
        const NmsfilterDetection *found = &image.detections[i];
        printf("class %u at %g,%g to %g,%g\n", (unsigned)found->class_id, found->x1, found->y1, found->x2, found->y2);
    }
    return 1;
}

int main(void)
{
    Nmsfilter *filter = NULL;
    int ok = nmsfilter_new(NMSFILTER_BACKEND_AUTO, -1, &filter) == NMSFILTER_STATUS_OK && decode(filter);

    nmsfilter_free(filter);
    return ok ? 0 : 1;
}
