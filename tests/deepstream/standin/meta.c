// SPDX-License-Identifier: MIT OR Apache-2.0
// libnvds_meta.so: a batch's metadata, with its pools, lock, frames, objects and user metadata.
//
// NVIDIA's library is closed. This file imitates what its headers and the sources of nvinfer
// document: elements of pools are recycled, and cleared when they are released; their texts and
// masks are freed by g_free; user metadata is released by its release_func, which gets the
// NvDsUserMeta.

#include <string.h>

#include "standin.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER
#elif defined(__clang__)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER
#endif
#endif
#ifdef WITH_ADDRESS_SANITIZER
// Nothing may access an element while it is in a pool.
void __asan_poison_memory_region(void const volatile *address, size_t bytes);
void __asan_unpoison_memory_region(void const volatile *address, size_t bytes);
#define POISON(address, bytes) __asan_poison_memory_region(address, bytes)
#define UNPOISON(address, bytes) __asan_unpoison_memory_region(address, bytes)
#else
#define POISON(address, bytes) (void)(bytes)
#define UNPOISON(address, bytes) (void)(bytes)
#endif

// A batch, followed by the stand-in's own bookkeeping.
typedef struct {
    NvDsBatchMeta meta;
    NvDsMetaPool frames, objects, user_metas;
    // Pools that the metadata refers to instead of the true ones.
    NvDsMetaPool others[3];
    // The thread that holds the lock, and how many times. Only the holder writes these fields.
    GThread *holder;
    guint held;
} Batch;

static StandinCounts counts;
gint64 standin_count_of_tensors;

static void add(gint64 *count, gint64 number)
{
    __atomic_add_fetch(count, number, __ATOMIC_RELAXED);
}

static Batch *of(NvDsBatchMeta *batch)
{
    return (Batch *)batch;
}

// Pools. Callers hold the lock of the batch.

static void check_lock(NvDsBatchMeta *batch)
{
    if (__atomic_load_n(&of(batch)->holder, __ATOMIC_RELAXED) != g_thread_self())
        add(&counts.unlocked, 1);
}

static void init_pool(NvDsMetaPool *pool, NvDsMetaType type, guint element_size)
{
    pool->meta_type = type;
    pool->element_size = element_size;
}

static gpointer take(NvDsMetaPool *pool, gint64 *in_use)
{
    GList *link = pool->empty_list;
    gpointer element;
    if (link) {
        element = link->data;
        pool->empty_list = g_list_delete_link(link, link);
        pool->num_empty_elements--;
        UNPOISON(element, pool->element_size);
    } else {
        element = g_malloc0(pool->element_size);
        pool->max_elements_in_pool++;
        if (pool->meta_type == NVDS_OBJ_META)
            add(&counts.new_objects, 1);
    }
    pool->num_full_elements++;
    add(in_use, 1);
    return element;
}

static void give_back(NvDsMetaPool *pool, gpointer element, gint64 *in_use)
{
    memset(element, 0, pool->element_size);
    POISON(element, pool->element_size);
    pool->empty_list = g_list_prepend(pool->empty_list, element);
    pool->num_empty_elements++;
    pool->num_full_elements--;
    add(in_use, -1);
}

static void free_element(gpointer element, gpointer pool)
{
    UNPOISON(element, ((const NvDsMetaPool *)pool)->element_size);
    g_free(element);
}

static void empty(NvDsMetaPool *pool)
{
    g_assert(pool->num_full_elements == 0);
    g_list_foreach(pool->empty_list, free_element, pool);
    g_list_free(pool->empty_list);
}

static void init_base(NvDsBaseMeta *base, NvDsBatchMeta *batch, NvDsMetaType type)
{
    base->batch_meta = batch;
    base->meta_type = type;
}

// Lock.

void nvds_acquire_meta_lock(NvDsBatchMeta *meta)
{
    g_rec_mutex_lock(&meta->meta_mutex);
    Batch *batch = of(meta);
    __atomic_store_n(&batch->holder, g_thread_self(), __ATOMIC_RELAXED);
    batch->held++;
    add(&counts.locks, 1);
    add(&counts.held, 1);
}

void nvds_release_meta_lock(NvDsBatchMeta *meta)
{
    Batch *batch = of(meta);
    g_assert(batch->held > 0);
    add(&counts.held, -1);
    if (--batch->held == 0)
        __atomic_store_n(&batch->holder, NULL, __ATOMIC_RELAXED);
    g_rec_mutex_unlock(&meta->meta_mutex);
}

// User metadata.

NvDsUserMeta *standin_acquire_user_meta(NvDsBatchMeta *batch)
{
    nvds_acquire_meta_lock(batch);
    NvDsUserMeta *user = take(&of(batch)->user_metas, &counts.user_metas);
    init_base(&user->base_meta, batch, NVDS_USER_META);
    nvds_release_meta_lock(batch);
    return user;
}

void standin_release_user_meta(gpointer data, gpointer batch)
{
    NvDsUserMeta *user = data;
    if (!user)
        return;
    if (user->base_meta.release_func)
        user->base_meta.release_func(user, NULL);
    give_back(&of(batch)->user_metas, user, &counts.user_metas);
}

static void release_user_metas(NvDsBatchMeta *batch, GList *list)
{
    g_list_foreach(list, standin_release_user_meta, batch);
    g_list_free(list);
}

static void remove_user_meta(NvDsBatchMeta *batch, GList **list, NvDsUserMeta *user)
{
    check_lock(batch);
    GList *link = g_list_find(*list, user);
    g_assert(link);
    *list = g_list_delete_link(*list, link);
    standin_release_user_meta(user, batch);
}

void nvds_remove_user_meta_from_frame(NvDsFrameMeta *frame, NvDsUserMeta *user)
{
    remove_user_meta(frame->base_meta.batch_meta, &frame->frame_user_meta_list, user);
}

void nvds_remove_user_meta_from_object(NvDsObjectMeta *object, NvDsUserMeta *user)
{
    remove_user_meta(object->base_meta.batch_meta, &object->obj_user_meta_list, user);
}

// Each copy is prepended, so the copied list is in reverse order.
static GList *copied_user_metas(NvDsBatchMeta *batch, GList *list)
{
    GList *copies = NULL;
    for (; list; list = list->next) {
        NvDsUserMeta *user = list->data;
        // User metadata without a copy_func cannot be copied.
        if (!user || !user->base_meta.copy_func)
            continue;
        NvDsUserMeta *copy = standin_acquire_user_meta(batch);
        copy->user_meta_data = user->base_meta.copy_func(user, NULL);
        copy->base_meta = user->base_meta;
        copy->base_meta.batch_meta = batch;
        copies = g_list_prepend(copies, copy);
    }
    return copies;
}

// Objects.

NvDsObjectMeta *nvds_acquire_obj_meta_from_pool(NvDsBatchMeta *batch)
{
    check_lock(batch);
    NvDsObjectMeta *object = take(&of(batch)->objects, &counts.objects);
    init_base(&object->base_meta, batch, NVDS_OBJ_META);
    return object;
}

void nvds_add_obj_meta_to_frame(NvDsFrameMeta *frame, NvDsObjectMeta *object, NvDsObjectMeta *parent)
{
    check_lock(frame->base_meta.batch_meta);
    object->parent = parent;
    // The newest object is the first in the list.
    frame->obj_meta_list = g_list_prepend(frame->obj_meta_list, object);
    frame->num_obj_meta++;
}

static void release_object(gpointer data, gpointer user_data)
{
    NvDsObjectMeta *object = data;
    NvDsBatchMeta *batch = user_data;
    release_user_metas(batch, object->obj_user_meta_list);
    if (object->text_params.display_text)
        add(&counts.texts, 1);
    g_free(object->text_params.display_text);
    g_free(object->mask_params.data);
    give_back(&of(batch)->objects, object, &counts.objects);
}

static void copy_objects(NvDsFrameMeta *to, GList *list)
{
    NvDsBatchMeta *batch = to->base_meta.batch_meta;
    for (; list; list = list->next) {
        NvDsObjectMeta *object = list->data, *copy = nvds_acquire_obj_meta_from_pool(batch);
        *copy = *object;
        copy->base_meta.batch_meta = batch;
        copy->text_params.display_text = g_strdup(object->text_params.display_text);
        copy->mask_params.data = g_memdup2(object->mask_params.data, object->mask_params.size);
        copy->classifier_meta_list = NULL;
        copy->obj_user_meta_list = copied_user_metas(batch, object->obj_user_meta_list);
        nvds_add_obj_meta_to_frame(to, copy, NULL);
    }
}

// Frames.

static NvDsFrameMeta *append_frame(NvDsBatchMeta *batch)
{
    NvDsFrameMeta *frame = take(&of(batch)->frames, &counts.frames);
    init_base(&frame->base_meta, batch, NVDS_FRAME_META);
    batch->frame_meta_list = g_list_append(batch->frame_meta_list, frame);
    batch->num_frames_in_batch++;
    return frame;
}

NvDsFrameMeta *standin_add_frame(NvDsBatchMeta *batch, const StandinFrame *frame)
{
    nvds_acquire_meta_lock(batch);
    NvDsFrameMeta *meta = append_frame(batch);
    standin_describe_frame(meta, frame);
    nvds_release_meta_lock(batch);
    return meta;
}

static void release_frame(gpointer data, gpointer user_data)
{
    NvDsFrameMeta *frame = data;
    NvDsBatchMeta *batch = user_data;
    if (!frame)
        return;
    g_list_foreach(frame->obj_meta_list, release_object, batch);
    g_list_free(frame->obj_meta_list);
    release_user_metas(batch, frame->frame_user_meta_list);
    give_back(&of(batch)->frames, frame, &counts.frames);
}

static void copy_frame(gpointer data, gpointer user_data)
{
    NvDsFrameMeta *frame = data;
    NvDsBatchMeta *batch = user_data;
    if (!frame) {
        standin_add_null_frame(batch);
        return;
    }
    NvDsFrameMeta *copy = append_frame(batch);
    *copy = *frame;
    copy->base_meta.batch_meta = batch;
    // DeepStream does not copy these fields.
    copy->pipeline_width = copy->pipeline_height = 0;
    copy->num_obj_meta = 0;
    copy->obj_meta_list = copy->display_meta_list = NULL;
    copy_objects(copy, frame->obj_meta_list);
    copy->frame_user_meta_list = copied_user_metas(batch, frame->frame_user_meta_list);
}

void standin_set_pool(NvDsBatchMeta *batch, guint which, gint meta_type, guint element_size)
{
    NvDsMetaPool **pools[] = {&batch->obj_meta_pool, &batch->frame_meta_pool, &batch->user_meta_pool};
    g_assert(which < G_N_ELEMENTS(pools));
    NvDsMetaPool *other = &of(batch)->others[which];
    init_pool(other, (NvDsMetaType)meta_type, element_size);
    *pools[which] = element_size ? other : NULL;
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

void standin_add_null_user_meta(NvDsFrameMeta *frame)
{
    frame->frame_user_meta_list = g_list_append(frame->frame_user_meta_list, NULL);
}

// Batches. Released batches are kept with their pools, and used again.

static GMutex kept_lock;
static GQueue kept = G_QUEUE_INIT;
enum { MOST_KEPT = 16 };

NvDsBatchMeta *standin_new_batch(guint max_frames)
{
    g_mutex_lock(&kept_lock);
    Batch *batch = g_queue_pop_head(&kept);
    g_mutex_unlock(&kept_lock);
    if (!batch) {
        batch = g_new0(Batch, 1);
        g_rec_mutex_init(&batch->meta.meta_mutex);
        init_pool(&batch->frames, NVDS_FRAME_META, sizeof(NvDsFrameMeta));
        init_pool(&batch->objects, NVDS_OBJ_META, sizeof(NvDsObjectMeta));
        init_pool(&batch->user_metas, NVDS_USER_META, sizeof(NvDsUserMeta));
        init_base(&batch->meta.base_meta, &batch->meta, NVDS_BATCH_META);
    }
    batch->meta.frame_meta_pool = &batch->frames;
    batch->meta.obj_meta_pool = &batch->objects;
    batch->meta.user_meta_pool = &batch->user_metas;
    batch->meta.max_frames_in_batch = max_frames;
    add(&counts.batches, 1);
    return &batch->meta;
}

void standin_release_batch(gpointer data, gpointer user_data)
{
    (void)user_data;
    Batch *batch = data;
    if (!batch)
        return;
    NvDsBatchMeta *meta = &batch->meta;
    g_assert(batch->held == 0);
    g_list_foreach(meta->frame_meta_list, release_frame, meta);
    g_list_free(meta->frame_meta_list);
    release_user_metas(meta, meta->batch_user_meta_list);
    meta->frame_meta_list = meta->batch_user_meta_list = NULL;
    meta->num_frames_in_batch = 0;
    g_assert(batch->objects.num_full_elements == 0 && batch->user_metas.num_full_elements == 0);
    add(&counts.batches, -1);

    g_mutex_lock(&kept_lock);
    gboolean keep = kept.length < MOST_KEPT;
    if (keep)
        g_queue_push_head(&kept, batch);
    g_mutex_unlock(&kept_lock);
    if (!keep) {
        empty(&batch->frames);
        empty(&batch->objects);
        empty(&batch->user_metas);
        g_rec_mutex_clear(&meta->meta_mutex);
        g_free(batch);
    }
}

gpointer standin_copy_batch(gpointer data, gpointer user_data)
{
    (void)user_data;
    NvDsBatchMeta *batch = data;
    if (!batch)
        return NULL;
    NvDsBatchMeta *copy = standin_new_batch(batch->max_frames_in_batch);
    nvds_acquire_meta_lock(batch);
    nvds_acquire_meta_lock(copy);
    g_list_foreach(batch->frame_meta_list, copy_frame, copy);
    copy->num_frames_in_batch = batch->num_frames_in_batch;
    copy->batch_user_meta_list = g_list_reverse(copied_user_metas(copy, batch->batch_user_meta_list));
    nvds_release_meta_lock(copy);
    nvds_release_meta_lock(batch);
    return copy;
}

void standin_counts(StandinCounts *result)
{
    *result = counts;
    result->tensors = __atomic_load_n(&standin_count_of_tensors, __ATOMIC_RELAXED);
}
