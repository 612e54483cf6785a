/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Calls of all functions, for AddressSanitizer and valgrind: every array is in an allocation of exactly its size, and is
 * freed as soon as the header allows it. Several threads work with buffers of their own.
 */
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nmsfilter/gst.h>

#define EXPECT(condition)                                                                                             \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, nmsfilter_gst_error_text());          \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)

enum { REGIONS = 20, THREADS = 4 };

static GstBuffer *new_buffer(void)
{
    static const float numbers[4] = { 10, 20, 30, 0.9f };
    const char *label = "person";
    GstBuffer *buffer = gst_buffer_new();
    NmsfilterGstTensor *tensor = calloc(1, sizeof *tensor);
    NmsfilterGstModel *model = calloc(1, sizeof *model);
    GstCaps *caps = NULL;
    char *id = g_strdup("windows");

    model->size = sizeof *model;
    model->labels = &label;
    model->label_count = 1;
    EXPECT(nmsfilter_gst_model_caps(model, &caps) == NMSFILTER_GST_STATUS_OK);
    free(model);
    tensor->size = sizeof *tensor;
    tensor->id = id;
    tensor->dimensions = 2;
    tensor->shape[0] = 1;
    tensor->shape[1] = 4;
    tensor->data = g_memdup2(numbers, sizeof numbers);
    tensor->bytes = sizeof numbers;
    tensor->model = caps;
    EXPECT(nmsfilter_gst_attach_tensor(buffer, tensor) == NMSFILTER_GST_STATUS_OK);
    tensor->memory = NMSFILTER_GST_MEMORY_HOST;
    tensor->release = g_free;
    tensor->user_data = (void *)tensor->data;
    EXPECT(nmsfilter_gst_attach_tensor(buffer, tensor) == NMSFILTER_GST_STATUS_OK);
    tensor->dimensions = 9;
    EXPECT(nmsfilter_gst_attach_tensor(buffer, tensor) == NMSFILTER_GST_STATUS_INVALID_ARGUMENT);
    free(tensor);
    g_free(id);
    gst_caps_unref(caps);
    return buffer;
}

static void add_regions(GstBuffer *buffer)
{
    const float points[6] = { 1, 2, 3, 4, 5, 6 };
    const guint8 rows[2] = { 0xff, 0xc0 };
    GstVideoRegionOfInterestMeta *meta;
    GBytes *data;
    int i;

    for (i = 0; i < REGIONS; i++) {
        meta = gst_buffer_add_video_region_of_interest_meta(buffer, "person", 1, 2, 3, 4);
        gst_video_region_of_interest_meta_add_param(
            meta, gst_structure_new("detection", "label_id", G_TYPE_INT, i, "confidence", G_TYPE_DOUBLE, 0.5, NULL));
        data = g_bytes_new(points, sizeof points);
        gst_video_region_of_interest_meta_add_param(
            meta, gst_structure_new("keypoints", "count", G_TYPE_INT, 2, "components", G_TYPE_INT, 3, "data",
                                    G_TYPE_BYTES, data, NULL));
        g_bytes_unref(data);
        data = g_bytes_new(rows, sizeof rows);
        gst_video_region_of_interest_meta_add_param(
            meta, gst_structure_new("mask", "width", G_TYPE_INT, 10, "height", G_TYPE_INT, 1, "left", G_TYPE_DOUBLE, 1.0,
                                    "top", G_TYPE_DOUBLE, 1.0, "right", G_TYPE_DOUBLE, 2.0, "bottom", G_TYPE_DOUBLE, 2.0,
                                    "data", G_TYPE_BYTES, data, NULL));
        g_bytes_unref(data);
    }
}

static void read_regions(GstBuffer *buffer)
{
    NmsfilterGstRegion *regions;
    size_t count = 0, i;

    EXPECT(nmsfilter_gst_read_regions(buffer, NULL, 0, sizeof *regions, &count) == NMSFILTER_GST_STATUS_OK);
    EXPECT(count == REGIONS);
    regions = malloc(count * sizeof *regions);
    EXPECT(nmsfilter_gst_read_regions(buffer, regions, count, sizeof *regions, &count) == NMSFILTER_GST_STATUS_OK);
    for (i = 0; i < count; i++) {
        EXPECT(regions[i].class_id == (int)i && strcmp(regions[i].label, "person") == 0);
        EXPECT(regions[i].keypoint_count == 2 && regions[i].keypoints[5] == 6 && regions[i].keypoint_layout[0] == 0);
        EXPECT(regions[i].mask[1] == 0xc0);
    }
    free(regions);
}

static gpointer work(gpointer unused)
{
    int i;

    for (i = 0; i < 3; i++) {
        GstBuffer *buffer = new_buffer();

        add_regions(buffer);
        read_regions(buffer);
        gst_buffer_unref(buffer);
    }
    return unused;
}

int main(void)
{
    GThread *threads[THREADS];
    int i;

    EXPECT(nmsfilter_gst_version() == NMSFILTER_GST_VERSION);
    EXPECT(nmsfilter_gst_init() == NMSFILTER_GST_STATUS_OK);
    for (i = 0; i < THREADS; i++)
        threads[i] = g_thread_new(NULL, work, NULL);
    for (i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    return 0;
}
