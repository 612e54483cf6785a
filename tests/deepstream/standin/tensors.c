// SPDX-License-Identifier: MIT OR Apache-2.0
// libnvds_meta.so: frames with nvstreammux's fields, and a model's outputs as nvinfer attaches
// them.
//
// nvinfer has a pool of a few batches of outputs. It waits for a free one before it runs the model.
// Each NvDsInferTensorMeta of a batch holds a reference to the batch of outputs, which its
// release_func returns.

#include <string.h>

#include "standin.h"

struct StandinPool {
    GMutex lock;
    GCond freed;
    guint count, in_use;
    StandinOutput *outputs;
};

struct StandinOutput {
    StandinPool *pool;
    guint index;
    gint references;
    void *memory;
};

StandinPool *standin_pool_new(guint count, size_t bytes)
{
    StandinPool *pool = g_new0(StandinPool, 1);
    g_mutex_init(&pool->lock);
    g_cond_init(&pool->freed);
    pool->count = count;
    pool->outputs = g_new0(StandinOutput, count);
    for (guint i = 0; i < count; i++)
        pool->outputs[i] = (StandinOutput){.pool = pool, .index = i, .memory = g_malloc0(bytes)};
    return pool;
}

StandinOutput *standin_pool_acquire(StandinPool *pool, guint milliseconds)
{
    gint64 end = g_get_monotonic_time() + (gint64)milliseconds * 1000;
    StandinOutput *found = NULL;
    g_mutex_lock(&pool->lock);
    while (pool->in_use == pool->count)
        if (!g_cond_wait_until(&pool->freed, &pool->lock, end))
            break;
    for (guint i = 0; i < pool->count && !found; i++)
        if (pool->outputs[i].references == 0)
            found = &pool->outputs[i];
    if (found) {
        found->references = 1;
        pool->in_use++;
    }
    g_mutex_unlock(&pool->lock);
    return found;
}

guint standin_pool_in_use(StandinPool *pool)
{
    g_mutex_lock(&pool->lock);
    guint in_use = pool->in_use;
    g_mutex_unlock(&pool->lock);
    return in_use;
}

void standin_pool_free(StandinPool *pool)
{
    g_assert(pool->in_use == 0);
    for (guint i = 0; i < pool->count; i++)
        g_free(pool->outputs[i].memory);
    g_free(pool->outputs);
    g_mutex_clear(&pool->lock);
    g_cond_clear(&pool->freed);
    g_free(pool);
}

void *standin_output_memory(StandinOutput *output)
{
    return output->memory;
}

guint standin_output_index(StandinOutput *output)
{
    return output->index;
}

static StandinOutput *ref(StandinOutput *output)
{
    if (output) {
        g_mutex_lock(&output->pool->lock);
        g_assert(output->references > 0);
        output->references++;
        g_mutex_unlock(&output->pool->lock);
    }
    return output;
}

void standin_output_unref(StandinOutput *output)
{
    if (!output)
        return;
    StandinPool *pool = output->pool;
    g_mutex_lock(&pool->lock);
    g_assert(output->references > 0);
    if (--output->references == 0) {
        pool->in_use--;
        g_cond_signal(&pool->freed);
    }
    g_mutex_unlock(&pool->lock);
}

static void release_tensors(gpointer data, gpointer user_data)
{
    (void)user_data;
    NvDsUserMeta *user = data;
    NvDsInferTensorMeta *meta = user->user_meta_data;
    if (!meta)
        return;
    g_free(meta->output_layers_info);
    g_free(meta->out_buf_ptrs_host);
    g_free(meta->out_buf_ptrs_dev);
    standin_output_unref(meta->priv_data);
    g_free(meta);
    __atomic_sub_fetch(&standin_count_of_tensors, 1, __ATOMIC_RELAXED);
}

// The memory is shared, as in version 6.3 and later. Earlier versions copy it.
static gpointer copy_tensors(gpointer data, gpointer user_data)
{
    (void)user_data;
    NvDsInferTensorMeta *meta = ((NvDsUserMeta *)data)->user_meta_data;
    if (!meta)
        return NULL;
    NvDsInferTensorMeta *copy = g_malloc(sizeof *copy);
#if DEEPSTREAM >= 80
    *copy = *meta;
#else
    // The model description is not copied, so the copy keeps these invalid bytes.
    memset(copy, 0xa5, sizeof *copy);
    copy->unique_id = meta->unique_id;
    copy->num_output_layers = meta->num_output_layers;
    copy->gpu_id = meta->gpu_id;
#endif
    guint layers = meta->num_output_layers;
    copy->output_layers_info = g_memdup2(meta->output_layers_info, layers * sizeof *meta->output_layers_info);
    copy->out_buf_ptrs_host = g_memdup2(meta->out_buf_ptrs_host, layers * sizeof(void *));
    copy->out_buf_ptrs_dev = g_memdup2(meta->out_buf_ptrs_dev, layers * sizeof(void *));
    copy->priv_data = ref(meta->priv_data);
    __atomic_add_fetch(&standin_count_of_tensors, 1, __ATOMIC_RELAXED);
    return copy;
}

static NvDsInferTensorMeta *new_tensors(const StandinTensors *tensors, StandinOutput *output)
{
    guint layers = tensors->num_layers;
    // NVIDIA's allocator may return memory that is not zero, so fields that are not set below are
    // invalid.
    NvDsInferTensorMeta *meta = g_malloc(sizeof *meta);
    memset(meta, 0xa5, sizeof *meta);
    meta->unique_id = tensors->unique_id;
    meta->num_output_layers = layers;
    meta->gpu_id = tensors->gpu_id;
    meta->network_info = (NvDsInferNetworkInfo){tensors->width, tensors->height, 3};
#if DEEPSTREAM >= 61
    meta->maintain_aspect_ratio = tensors->maintain_aspect_ratio;
#endif
#if DEEPSTREAM >= 71
    meta->symmetric_padding = tensors->symmetric_padding;
#endif
    meta->output_layers_info = g_new0(NvDsInferLayerInfo, layers);
    meta->out_buf_ptrs_host = g_new0(void *, layers);
    meta->out_buf_ptrs_dev = g_new0(void *, layers);
    for (guint i = 0; i < layers; i++) {
        const StandinLayer *layer = &tensors->layers[i];
        NvDsInferLayerInfo *info = &meta->output_layers_info[i];
        info->dataType = (NvDsInferDataType)layer->data_type;
        info->inferDims.numDims = layer->num_dims;
        memcpy(info->inferDims.d, layer->dims, sizeof layer->dims);
        info->inferDims.numElements = layer->num_elements;
        info->bindingIndex = (int)i + 1;
        info->layerName = layer->name ? g_intern_string(layer->name) : NULL;
        // The header says that this pointer is not valid here.
        info->buffer = GSIZE_TO_POINTER(0xdead0000);
        meta->out_buf_ptrs_host[i] = layer->host;
        meta->out_buf_ptrs_dev[i] = layer->device;
    }
    if (tensors->flags & STANDIN_NO_LAYERS)
        g_clear_pointer(&meta->output_layers_info, g_free);
    if (tensors->flags & STANDIN_NO_HOST)
        g_clear_pointer(&meta->out_buf_ptrs_host, g_free);
    if (tensors->flags & STANDIN_NO_DEVICE)
        g_clear_pointer(&meta->out_buf_ptrs_dev, g_free);
    if (tensors->claimed_layers)
        meta->num_output_layers = tensors->claimed_layers;
    meta->priv_data = ref(output);
    __atomic_add_fetch(&standin_count_of_tensors, 1, __ATOMIC_RELAXED);
    return meta;
}

void standin_describe_frame(NvDsFrameMeta *meta, const StandinFrame *frame)
{
    meta->batch_id = frame->batch_id;
    meta->source_id = frame->source_id;
    meta->pad_index = frame->pad_index;
    meta->frame_num = frame->frame_num;
    meta->buf_pts = frame->buf_pts;
    meta->ntp_timestamp = frame->ntp_timestamp;
    meta->num_surfaces_per_frame = 1;
    meta->source_frame_width = frame->source_frame_width;
    meta->source_frame_height = frame->source_frame_height;
    meta->pipeline_width = frame->pipeline_width;
    meta->pipeline_height = frame->pipeline_height;
}

static NvDsUserMeta *with_tensors(NvDsBatchMeta *batch, const StandinTensors *tensors, StandinOutput *output)
{
    NvDsUserMeta *user = standin_acquire_user_meta(batch);
    user->base_meta.meta_type = (NvDsMetaType)NVDSINFER_TENSOR_OUTPUT_META;
    user->base_meta.release_func = release_tensors;
    user->base_meta.copy_func = copy_tensors;
    user->user_meta_data = tensors->flags & STANDIN_NO_DATA ? NULL : new_tensors(tensors, output);
    return user;
}

// The newest is the first in the lists of frames and objects, and the last in lists of batches.
static void add(NvDsBatchMeta *batch, GList **list, NvDsUserMeta *user)
{
    nvds_acquire_meta_lock(batch);
    if (list == &batch->batch_user_meta_list)
        *list = g_list_append(*list, user);
    else
        *list = g_list_prepend(*list, user);
    nvds_release_meta_lock(batch);
}

void standin_attach_to_frame(NvDsFrameMeta *frame, const StandinTensors *tensors, StandinOutput *output)
{
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
    add(batch, &frame->frame_user_meta_list, with_tensors(batch, tensors, output));
}

void standin_attach_to_object(NvDsObjectMeta *object, const StandinTensors *tensors, StandinOutput *output)
{
    NvDsBatchMeta *batch = object->base_meta.batch_meta;
    add(batch, &object->obj_user_meta_list, with_tensors(batch, tensors, output));
}

static gpointer copy_nothing(gpointer data, gpointer user_data)
{
    (void)data;
    return user_data;
}

void standin_add_other_user_meta(NvDsFrameMeta *frame)
{
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
    NvDsUserMeta *user = standin_acquire_user_meta(batch);
    user->base_meta.copy_func = copy_nothing;
    add(batch, &frame->frame_user_meta_list, user);
}

#if DEEPSTREAM >= 80
// A GstNvDsPreProcessBatchMeta, which is C++. A vector is the addresses of its first element, of its end, and of the
// end of its memory.
typedef struct {
    void *target_unique_ids[3];
    void *tensor_meta;
    NvDsRoiMeta *first, *end, *end_of_memory;
    void *private_data;
} Preprocessed;

static NvDsUserMeta *find_preprocessed(NvDsBatchMeta *batch)
{
    for (GList *link = batch->batch_user_meta_list; link; link = link->next) {
        NvDsUserMeta *user = link->data;
        if (user->base_meta.meta_type == NVDS_PREPROCESS_BATCH_META)
            return user;
    }
    return NULL;
}

static void release_preprocessed(gpointer data, gpointer user_data)
{
    (void)user_data;
    NvDsUserMeta *user = data;
    Preprocessed *preprocessed = user->user_meta_data;
    for (NvDsRoiMeta *roi = preprocessed->first; roi < preprocessed->end; roi++) {
        g_list_foreach(roi->roi_user_meta_list, standin_release_user_meta, user->base_meta.batch_meta);
        g_list_free(roi->roi_user_meta_list);
    }
    g_free(preprocessed->first);
    g_free(preprocessed);
}

void standin_attach_to_roi(
    NvDsFrameMeta *frame, const StandinRegion *region, const StandinTensors *tensors, StandinOutput *output)
{
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
    NvDsUserMeta *user = find_preprocessed(batch);
    if (!user) {
        user = standin_acquire_user_meta(batch);
        user->base_meta.batch_meta = batch;
        user->base_meta.meta_type = NVDS_PREPROCESS_BATCH_META;
        user->base_meta.release_func = release_preprocessed;
        user->user_meta_data = g_new0(Preprocessed, 1);
        add(batch, &batch->batch_user_meta_list, user);
    }
    Preprocessed *preprocessed = user->user_meta_data;
    const size_t count = preprocessed->end - preprocessed->first;
    preprocessed->first = g_renew(NvDsRoiMeta, preprocessed->first, count + 1);
    NvDsRoiMeta *roi = &preprocessed->first[count];
    preprocessed->end = preprocessed->end_of_memory = roi + 1;
    memset(roi, 0, sizeof *roi);
    roi->roi.left = region->rect[0];
    roi->roi.top = region->rect[1];
    roi->roi.width = region->rect[2];
    roi->roi.height = region->rect[3];
    roi->frame_meta = frame;
    roi->scale_ratio_x = region->scaling[0];
    roi->scale_ratio_y = region->scaling[1];
    roi->offset_left = region->scaling[2];
    roi->offset_top = region->scaling[3];
    roi->object_meta = region->object;
    add(batch, &roi->roi_user_meta_list, with_tensors(batch, tensors, output));
}
#else
#if DEEPSTREAM >= 71
static void release_roi(gpointer data, gpointer user_data)
{
    (void)user_data;
    g_free(((NvDsUserMeta *)data)->user_meta_data);
}

static gpointer copy_roi(gpointer data, gpointer user_data)
{
    (void)user_data;
    return g_memdup2(((NvDsUserMeta *)data)->user_meta_data, sizeof(NvDsRoiMeta));
}
#endif

// nvdspreprocess attaches a C++ structure to the batch, and nvinfer attaches tensors to the regions in it. Before 8.0,
// the element does not read this structure. The part that it can see without it is imitated: a copy of the tensors on the
// batch until 7.0, and a region without tensors on the frame in 7.1.
void standin_attach_to_roi(
    NvDsFrameMeta *frame, const StandinRegion *region, const StandinTensors *tensors, StandinOutput *output)
{
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
#if DEEPSTREAM >= 71
    (void)tensors;
    (void)output;
    NvDsRoiMeta *roi = g_new0(NvDsRoiMeta, 1);
    roi->roi.left = region->rect[0];
    roi->roi.top = region->rect[1];
    roi->roi.width = region->rect[2];
    roi->roi.height = region->rect[3];
    roi->frame_meta = frame;
    NvDsUserMeta *user = standin_acquire_user_meta(batch);
    user->base_meta.meta_type = NVDS_ROI_META;
    user->base_meta.release_func = release_roi;
    user->base_meta.copy_func = copy_roi;
    user->user_meta_data = roi;
    add(batch, &frame->frame_user_meta_list, user);
#else
    (void)region;
    add(batch, &batch->batch_user_meta_list, with_tensors(batch, tensors, output));
#endif
}
#endif
