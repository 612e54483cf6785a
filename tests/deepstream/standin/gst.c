// SPDX-License-Identifier: MIT OR Apache-2.0
// libnvdsgst_meta.so: the GstMeta that contains a batch.

#include "standin.h"

GType nvds_meta_api_get_type(void)
{
    static gsize type;
    if (g_once_init_enter(&type)) {
        static const gchar *tags[] = {"nvdsmeta", NULL};
        g_once_init_leave(&type, gst_meta_api_type_register("NvDsMetaAPI", tags));
    }
    return type;
}

static gboolean init(GstMeta *meta, gpointer params, GstBuffer *buffer)
{
    (void)params;
    (void)buffer;
    NvDsMeta *nvds = (NvDsMeta *)meta;
    nvds->meta_data = nvds->user_data = NULL;
    nvds->meta_type = -1;
    nvds->copyfunc = nvds->gst_to_nvds_meta_transform_func = NULL;
    nvds->freefunc = nvds->gst_to_nvds_meta_release_func = NULL;
    return TRUE;
}

static void release(GstMeta *meta, GstBuffer *buffer)
{
    (void)buffer;
    NvDsMeta *nvds = (NvDsMeta *)meta;
    if (nvds->freefunc)
        nvds->freefunc(nvds->meta_data, nvds->user_data);
}

static NvDsMeta *add(GstBuffer *buffer, gpointer data);

static gboolean transform(GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type, gpointer data)
{
    (void)from;
    (void)data;
    NvDsMeta *nvds = (NvDsMeta *)meta;
    if (!GST_META_TRANSFORM_IS_COPY(type) || !nvds->copyfunc)
        return FALSE;
    add(to, nvds->copyfunc(nvds->meta_data, nvds->user_data));
    return TRUE;
}

static const GstMetaInfo *info(void)
{
    static gsize registered;
    if (g_once_init_enter(&registered)) {
        const GstMetaInfo *new =
            gst_meta_register(nvds_meta_api_get_type(), "NvDsMeta", sizeof(NvDsMeta), init, release, transform);
        g_once_init_leave(&registered, (gsize)new);
    }
    return (const GstMetaInfo *)registered;
}

static NvDsMeta *add(GstBuffer *buffer, gpointer data)
{
    NvDsMeta *nvds = (NvDsMeta *)gst_buffer_add_meta(buffer, info(), NULL);
    nvds->meta_data = data;
    nvds->meta_type = NVDS_BATCH_GST_META;
    nvds->copyfunc = standin_copy_batch;
    nvds->freefunc = standin_release_batch;
    return nvds;
}

NvDsBatchMeta *standin_attach_batch(GstBuffer *buffer, guint max_frames)
{
    NvDsBatchMeta *batch = standin_new_batch(max_frames);
    add(buffer, batch);
    return batch;
}

void standin_attach_null_batch(GstBuffer *buffer)
{
    add(buffer, NULL);
}

NvDsBatchMeta *gst_buffer_get_nvds_batch_meta(GstBuffer *buffer)
{
    gpointer state = NULL, batch = NULL;
    for (GstMeta *meta; (meta = gst_buffer_iterate_meta_filtered(buffer, &state, nvds_meta_api_get_type()));) {
        NvDsMeta *nvds = (NvDsMeta *)meta;
        // If there are several, the last one is used.
        if (nvds->meta_type == NVDS_BATCH_GST_META)
            batch = nvds->meta_data;
    }
    return batch;
}
