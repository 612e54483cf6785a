/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Attaches a detector's output to a frame, and prints the regions that nmsfilter attaches for it.
 *
 *     cc attach.c -o attach $(pkg-config --cflags --libs nmsfilter-gst gstreamer-app-1.0)
 *
 * GStreamer must find the plugin nmsfilter (GST_PLUGIN_PATH).
 */
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>

#include <nmsfilter/gst.h>

#define WIDTH 640
#define HEIGHT 480

static void check(NmsfilterGstStatus status)
{
    if (status != NMSFILTER_GST_STATUS_OK) {
        fprintf(stderr, "%s\n", nmsfilter_gst_error_text());
        exit(1);
    }
}

/* What is known of the model: it finds people, and its input has the pixels of the frame. */
static GstCaps *model_caps(void)
{
    const char *labels[] = { "person" };
    NmsfilterGstModel model = { 0 };
    GstCaps *caps = NULL;

    model.size = sizeof model;
    model.width = WIDTH;
    model.height = HEIGHT;
    model.letterbox = NMSFILTER_GST_LETTERBOX_NONE;
    model.labels = labels;
    model.label_count = 1;
    check(nmsfilter_gst_model_caps(&model, &caps));
    return caps;
}

/* Windows of left edge, upper edge, side and score, as a face detector gives them: two of one face, and one of
 * another. The memory is the caller's, and is freed when nothing reads it any more. */
static void attach_windows(GstBuffer *frame, GstCaps *model)
{
    static const float windows[3][4] = {
        { 100, 50, 80, 0.9f },
        { 104, 52, 80, 0.8f },
        { 300, 60, 90, 0.7f },
    };
    NmsfilterGstTensor tensor = { 0 };

    tensor.size = sizeof tensor;
    tensor.id = "windows";
    tensor.element_type = NMSFILTER_GST_ELEMENT_TYPE_F32;
    tensor.dimensions = 2;
    tensor.shape[0] = 3;
    tensor.shape[1] = 4;
    tensor.memory = NMSFILTER_GST_MEMORY_HOST;
    tensor.data = g_memdup2(windows, sizeof windows);
    tensor.bytes = sizeof windows;
    tensor.release = g_free;
    tensor.user_data = (void *)tensor.data;
    tensor.model = model;
    check(nmsfilter_gst_attach_tensor(frame, &tensor));
}

static void print_regions(GstBuffer *frame)
{
    NmsfilterGstRegion regions[100];
    size_t count = 0, i;

    check(nmsfilter_gst_read_regions(frame, regions, G_N_ELEMENTS(regions), sizeof regions[0], &count));
    for (i = 0; i < MIN(count, G_N_ELEMENTS(regions)); i++)
        printf("%s at %.1f,%.1f %.1fx%.1f, score %.2f\n", regions[i].label, regions[i].x_min * WIDTH,
               regions[i].y_min * HEIGHT, (regions[i].x_max - regions[i].x_min) * WIDTH,
               (regions[i].y_max - regions[i].y_min) * HEIGHT, regions[i].score);
}

int main(int argc, char **argv)
{
    GstElement *pipeline, *source, *sink;
    GstBuffer *frame;
    GstCaps *model;
    GstSample *sample;
    GError *error = NULL;

    gst_init(&argc, &argv);
    check(nmsfilter_gst_init());
    pipeline = gst_parse_launch("appsrc name=source format=time "
                                "caps=video/x-raw,format=RGB,width=640,height=480,framerate=30/1 "
                                "! nmsfilter ! appsink name=sink sync=false",
                                &error);
    if (error != NULL) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
    sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    gst_element_set_state(pipeline, GST_STATE_PLAYING);

    model = model_caps();
    frame = gst_buffer_new_allocate(NULL, 3 * WIDTH * HEIGHT, NULL);
    gst_buffer_memset(frame, 0, 0, 3 * WIDTH * HEIGHT);
    GST_BUFFER_PTS(frame) = 0;
    attach_windows(frame, model);
    gst_app_src_push_buffer(GST_APP_SRC(source), frame);
    gst_app_src_end_of_stream(GST_APP_SRC(source));

    sample = gst_app_sink_try_pull_sample(GST_APP_SINK(sink), 10 * GST_SECOND);
    if (sample != NULL) {
        print_regions(gst_sample_get_buffer(sample));
        gst_sample_unref(sample);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_caps_unref(model);
    gst_object_unref(source);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
    return sample == NULL;
}
