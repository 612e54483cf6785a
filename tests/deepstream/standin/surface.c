// SPDX-License-Identifier: MIT OR Apache-2.0
// The memory of nvstreammux's buffers: an NvBufSurface whose array has an element for each frame of
// the batch. Linked into libnvdsgst_meta.so, or into libstandin.so with NVIDIA's own libraries.

#include "standin.h"

static void free_surface(gpointer data)
{
    NvBufSurface *surface = data;
    g_free(surface->surfaceList);
    g_free(surface);
}

void standin_set_surfaces(GstBuffer *buffer, const StandinSurfaces *surfaces)
{
    NvBufSurface *surface = g_new0(NvBufSurface, 1);
    surface->batchSize = surfaces->batch_size;
    surface->numFilled = surfaces->num_filled;
    surface->memType = NVBUF_MEM_SYSTEM;
    // The array is exactly as long as the number of surfaces, so that AddressSanitizer finds
    // accesses beyond its end.
    if (!surfaces->no_list)
        surface->surfaceList = g_new0(NvBufSurfaceParams, surfaces->count);
    for (guint i = 0; i < surfaces->count && surface->surfaceList; i++) {
        NvBufSurfaceParams *params = &surface->surfaceList[i];
        params->width = params->pitch = surfaces->sizes[2 * i];
        params->height = surfaces->sizes[2 * i + 1];
        params->colorFormat = NVBUF_COLOR_FORMAT_NV12;
        params->layout = NVBUF_LAYOUT_PITCH;
    }
    gsize bytes = surfaces->bytes ? surfaces->bytes : sizeof *surface;
    g_assert(bytes <= sizeof *surface);
    gst_buffer_replace_all_memory(
        buffer,
        gst_memory_new_wrapped(GST_MEMORY_FLAG_READONLY, surface, sizeof *surface, 0, bytes, surface, free_surface));
}
