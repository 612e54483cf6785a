// SPDX-License-Identifier: MIT OR Apache-2.0
// libnvds_meta.so: functions with which tests read a batch.

#include <string.h>

#include "standin.h"

size_t standin_sizes(unsigned which)
{
    const size_t sizes[] = {
        sizeof(StandinFrame),  sizeof(StandinLayer),  sizeof(StandinTensors), sizeof(StandinFrameState),
        sizeof(StandinObject), sizeof(StandinCounts), sizeof(StandinSurfaces), sizeof(StandinRegion),
    };
    return which < G_N_ELEMENTS(sizes) ? sizes[which] : 0;
}

NvDsFrameMeta *standin_frame(NvDsBatchMeta *batch, guint index)
{
    return g_list_nth_data(batch->frame_meta_list, index);
}

NvDsObjectMeta *standin_object(NvDsFrameMeta *frame, guint index)
{
    return g_list_nth_data(frame->obj_meta_list, index);
}

NvDsObjectMeta *standin_add_object(NvDsFrameMeta *frame, gint component, gint class_id, const float box[4])
{
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
    nvds_acquire_meta_lock(batch);
    NvDsObjectMeta *object = nvds_acquire_obj_meta_from_pool(batch);
    object->unique_component_id = component;
    object->class_id = class_id;
    object->object_id = UNTRACKED_OBJECT_ID;
    object->rect_params.left = box[0];
    object->rect_params.top = box[1];
    object->rect_params.width = box[2];
    object->rect_params.height = box[3];
    nvds_add_obj_meta_to_frame(frame, object, NULL);
    nvds_release_meta_lock(batch);
    return object;
}

void standin_read_frame(NvDsFrameMeta *frame, StandinFrameState *state)
{
    *state = (StandinFrameState){
        .batch_id = frame->batch_id,
        .source_id = frame->source_id,
        .num_obj_meta = frame->num_obj_meta,
        .listed_objects = g_list_length(frame->obj_meta_list),
        .infer_done = frame->bInferDone,
    };
    for (GList *link = frame->frame_user_meta_list; link; link = link->next) {
        NvDsUserMeta *user = link->data;
        if (user && (int)user->base_meta.meta_type == NVDSINFER_TENSOR_OUTPUT_META)
            state->tensors++;
        else
            state->other_user_metas++;
    }
}

static void copy_color(double to[4], const NvOSD_ColorParams *color)
{
    to[0] = color->red;
    to[1] = color->green;
    to[2] = color->blue;
    to[3] = color->alpha;
}

static void copy_box(float to[4], const NvDsComp_BboxInfo *box)
{
    const NvBbox_Coords *coords = &box->org_bbox_coords;
    to[0] = coords->left;
    to[1] = coords->top;
    to[2] = coords->width;
    to[3] = coords->height;
}

static void read_object(const NvDsObjectMeta *object, NvDsBatchMeta *batch, StandinObject *to)
{
    const NvOSD_RectParams *rect = &object->rect_params;
    const NvOSD_TextParams *text = &object->text_params;
    memset(to, 0, sizeof *to);
    to->unique_component_id = object->unique_component_id;
    to->class_id = object->class_id;
    to->object_id = object->object_id;
    to->confidence = object->confidence;
    to->tracker_confidence = object->tracker_confidence;
    to->rect[0] = rect->left;
    to->rect[1] = rect->top;
    to->rect[2] = rect->width;
    to->rect[3] = rect->height;
    copy_box(to->detector, &object->detector_bbox_info);
    copy_box(to->tracker, &object->tracker_bbox_info);
#if DEEPSTREAM >= 90
    to->rotation_angle = rect->rotation_angle;
#endif
    to->border_width = rect->border_width;
    to->has_bg_color = rect->has_bg_color;
    copy_color(to->border_color, &rect->border_color);
    copy_color(to->bg_color, &rect->bg_color);
    to->has_color_info = rect->has_color_info;
    to->color_id = rect->color_id;
    to->display_text = text->display_text;
    to->x_offset = text->x_offset;
    to->y_offset = text->y_offset;
    to->font_name = text->font_params.font_name;
    to->font_size = text->font_params.font_size;
    to->set_bg_clr = text->set_bg_clr;
    copy_color(to->font_color, &text->font_params.font_color);
    copy_color(to->text_bg_clr, &text->text_bg_clr);
    memcpy(to->label, object->obj_label, sizeof to->label);
    to->meta_type = object->base_meta.meta_type;
    guint user_metas = 0;
    for (GList *link = object->obj_user_meta_list; link; link = link->next, user_metas++)
        if ((int)((NvDsUserMeta *)link->data)->base_meta.meta_type == NVDSINFER_TENSOR_OUTPUT_META)
            to->tensors++;
    to->is_plain =
        !object->classifier_meta_list && user_metas == to->tensors && object->base_meta.batch_meta == batch;
    to->mask = object->mask_params.data;
    to->mask_size = object->mask_params.size;
    to->mask_width = object->mask_params.width;
    to->mask_height = object->mask_params.height;
    to->mask_threshold = object->mask_params.threshold;
}

guint standin_read_objects(NvDsFrameMeta *frame, StandinObject *objects, guint most)
{
    guint count = 0;
    const StandinObject *end = objects + most;
    for (GList *link = frame->obj_meta_list; link && count < most; link = link->next)
        read_object(link->data, frame->base_meta.batch_meta, &objects[count++]);
    for (GList *link = frame->obj_meta_list; link && objects < end; link = link->next, objects++)
        objects->parent = g_list_index(frame->obj_meta_list, ((NvDsObjectMeta *)link->data)->parent);
    return count;
}
