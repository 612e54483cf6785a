/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Decodes the output of a YOLOv8 model, 84 x 8400 numbers in host memory, and prints the detections that remain.
 *
 *     cc suppress.c -o suppress $(pkg-config --cflags --libs nmsfilter)
 *     ./suppress [FILE]
 *
 * FILE has the 705,600 numbers of type float in the machine's byte order. Without it, the output has two boxes of one
 * person and one of a bicycle.
 */
#include <stdio.h>
#include <stdlib.h>

#include <nmsfilter/nmsfilter.h>

#define NUMBERS 84
#define ANCHORS 8400

/* A box of a class, as the model gives it: center, size, and a score for each of 80 classes. Anchors are columns. */
static void set_box(float *output, size_t anchor, const float box[4], size_t class_id, float score)
{
    size_t i;

    for (i = 0; i < 4; i++)
        output[i * ANCHORS + anchor] = box[i];
    output[(4 + class_id) * ANCHORS + anchor] = score;
}

static int read_file(const char *path, float *output)
{
    FILE *file = fopen(path, "rb");
    size_t count;

    if (file == NULL) {
        perror(path);
        return 0;
    }
    count = fread(output, sizeof *output, NUMBERS * ANCHORS, file);
    fclose(file);
    if (count != NUMBERS * ANCHORS) {
        fprintf(stderr, "%s: expected %d numbers, got %zu\n", path, NUMBERS * ANCHORS, count);
        return 0;
    }
    return 1;
}

static int suppress(Nmsfilter *filter, const float *output)
{
    NmsfilterParams params;
    NmsfilterTensor tensor = { 0 };
    NmsfilterImage image = { 0 };
    const char *warning;
    size_t i;

    if (nmsfilter_set_decoder(filter, "yolov8") != NMSFILTER_STATUS_OK)
        return 0;
    if (nmsfilter_params_init(&params, sizeof params) != NMSFILTER_STATUS_OK)
        return 0;
    params.score_threshold = 0.3f;
    params.max_detections = 300;
    if (nmsfilter_set_params(filter, &params) != NMSFILTER_STATUS_OK)
        return 0;

    tensor.size = sizeof tensor;
    tensor.id = "output0";
    tensor.element_type = NMSFILTER_ELEMENT_TYPE_F32;
    tensor.dimensions = 3;
    tensor.shape[0] = 1;
    tensor.shape[1] = NUMBERS;
    tensor.shape[2] = ANCHORS;
    tensor.data = output;
    tensor.bytes = NUMBERS * ANCHORS * sizeof *output;
    if (nmsfilter_run(filter, &tensor, 1, NULL) != NMSFILTER_STATUS_OK)
        return 0;
    for (i = 0; (warning = nmsfilter_warning(filter, i)) != NULL; i++)
        fprintf(stderr, "warning: %s\n", warning);

    image.size = sizeof image;
    if (nmsfilter_image(filter, 0, &image) != NMSFILTER_STATUS_OK)
        return 0;
    for (i = 0; i < image.count; i++) {
        const NmsfilterDetection *found = &image.detections[i];
        printf("class %u at %.1f,%.1f to %.1f,%.1f, score %.2f\n", (unsigned)found->class_id, found->x1, found->y1,
               found->x2, found->y2, found->score);
    }
    return 1;
}

int main(int argc, char **argv)
{
    static const float person[4] = { 100, 200, 60, 160 }, same[4] = { 104, 202, 60, 160 }, bicycle[4] = { 400, 300, 90, 70 };
    float *output = calloc(NUMBERS * ANCHORS, sizeof *output);
    Nmsfilter *filter = NULL;
    int ok;

    if (output == NULL)
        return 1;
    set_box(output, 17, person, 0, 0.9f);
    set_box(output, 18, same, 0, 0.8f);
    set_box(output, 5000, bicycle, 1, 0.7f);
    if (argc > 1 && !read_file(argv[1], output)) {
        free(output);
        return 1;
    }
    ok = nmsfilter_new(NMSFILTER_BACKEND_AUTO, -1, &filter) == NMSFILTER_STATUS_OK && suppress(filter, output);
    if (!ok)
        fprintf(stderr, "%s\n", nmsfilter_error_text(filter));
    nmsfilter_free(filter);
    free(output);
    return ok ? 0 : 1;
}
