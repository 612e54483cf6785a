/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * GStreamer 1.18, as far as its version is concerned: this program's function is found before GStreamer's.
 */
#include <gst/gst.h>
#include <stdio.h>

#include <nmsfilter/gst.h>

void gst_version(guint *major, guint *minor, guint *micro, guint *nano)
{
    *major = 1;
    *minor = 18;
    *micro = 6;
    *nano = 0;
}

int main(void)
{
    NmsfilterGstTensor tensor = { 0 };
    int is_refused = nmsfilter_gst_init() == NMSFILTER_GST_STATUS_GSTREAMER;

    tensor.size = sizeof tensor;
    is_refused &= nmsfilter_gst_attach_tensor(NULL, &tensor) == NMSFILTER_GST_STATUS_GSTREAMER;
    puts(nmsfilter_gst_error_text());
    return !is_refused;
}
