// SPDX-License-Identifier: MIT OR Apache-2.0
// libstandin.so: the stand-in's producers for use with NVIDIA's own libraries, in place of meta.c
// and gst.c. NVIDIA's functions make the batches, as in nvstreammux.
//
// NVIDIA's library counts nothing. Only batches and tensors can be counted here; everything else in
// a batch is released with it.

#include "standin.h"

gint64 standin_count_of_tensors;
static gint64 batches;

// User metadata on each batch, whose callbacks tell when the batch is copied and released.

static gpointer count_copy(gpointer data, gpointer user_data)
{
    (void)data;
    (void)user_data;
    __atomic_add_fetch(&batches, 1, __ATOMIC_RELAXED);
    // A pointer that is not null is passed on to the next copy.
    return &batches;
}

static void count_release(gpointer data, gpointer user_data)
{
    (void)data;
    (void)user_data;
    __atomic_sub_fetch(&batches, 1, __ATOMIC_RELAXED);
}

static NvDsMeta *add(GstBuffer *buffer, NvDsBatchMeta *batch)
{
    NvDsMeta *meta =
        gst_buffer_add_nvds_meta(buffer, batch, NULL, nvds_batch_meta_copy_func, nvds_batch_meta_release_func);
    meta->meta_type = (GstNvDsMetaType)NVDS_BATCH_GST_META;
    return meta;
}

NvDsUserMeta *standin_acquire_user_meta(NvDsBatchMeta *batch)
{
    NvDsUserMeta *user = nvds_acquire_user_meta_from_pool(batch);
    // The library does not clear user metadata.
    user->base_meta.meta_type = NVDS_USER_META;
    user->base_meta.uContext = NULL;
    user->base_meta.copy_func = NULL;
    user->base_meta.release_func = NULL;
    user->user_meta_data = NULL;
    return user;
}

// With a batch, the library releases all metadata of its pool, in lists or not.
void standin_release_user_meta(gpointer user, gpointer batch)
{
    (void)user, (void)batch;
}

NvDsBatchMeta *standin_attach_batch(GstBuffer *buffer, guint max_frames)
{
    // A pool that begins without elements does not grow.
    max_frames = MAX(max_frames, 1);
    NvDsBatchMeta *batch = nvds_create_batch_meta(max_frames);
    batch->max_frames_in_batch = max_frames;
    add(buffer, batch);
    NvDsUserMeta *counter = standin_acquire_user_meta(batch);
    counter->base_meta.meta_type = NVDS_START_USER_META;
    counter->base_meta.copy_func = count_copy;
    counter->base_meta.release_func = count_release;
    counter->user_meta_data = count_copy(NULL, NULL);
    nvds_add_user_meta_to_batch(batch, counter);
    return batch;
}

void standin_attach_null_batch(GstBuffer *buffer)
{
    add(buffer, NULL);
}

NvDsFrameMeta *standin_add_frame(NvDsBatchMeta *batch, const StandinFrame *frame)
{
    nvds_acquire_meta_lock(batch);
    NvDsFrameMeta *meta = nvds_acquire_frame_meta_from_pool(batch);
    standin_describe_frame(meta, frame);
    nvds_add_frame_meta_to_batch(batch, meta);
    nvds_release_meta_lock(batch);
    return meta;
}

// NVIDIA's library would use the damaged pool.
void standin_set_pool(NvDsBatchMeta *batch, guint which, gint meta_type, guint element_size)
{
    (void)batch, (void)which, (void)meta_type, (void)element_size;
    g_assert_not_reached();
}

void standin_set_frame_count(NvDsBatchMeta *batch, guint count)
{
    batch->num_frames_in_batch = count;
}

void standin_add_null_frame(NvDsBatchMeta *batch)
{
    batch->frame_meta_list = g_list_append(batch->frame_meta_list, NULL);
    batch->num_frames_in_batch++;
}

// NVIDIA's library cannot release this list: it would read the null pointer.
void standin_add_null_user_meta(NvDsFrameMeta *frame)
{
    (void)frame;
    g_assert_not_reached();
}

void standin_counts(StandinCounts *counts)
{
    *counts = (StandinCounts){
        .batches = __atomic_load_n(&batches, __ATOMIC_RELAXED),
        .tensors = __atomic_load_n(&standin_count_of_tensors, __ATOMIC_RELAXED),
    };
}
