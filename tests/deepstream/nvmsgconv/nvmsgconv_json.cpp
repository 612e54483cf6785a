// SPDX-License-Identifier: MIT OR Apache-2.0
// Implements nvmsgconv_json.h: one nvmsgconv context for each kind of payload, and sample frames.

#include <cstring>

#include "nvdsmeta.h"
#include "nvmsgconv.h"

#include "nvmsgconv_json.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// The contexts do not change after they have read the file, so threads can share them.
static char *generate(NvDsPayloadType type, NvDsFrameMeta *frame, NvDsObjectMeta *object) {
    static NvDsMsg2pCtx *const full = nvds_msg2p_ctx_create(NVMSGCONV_CONFIG, NVDS_PAYLOAD_DEEPSTREAM);
    static NvDsMsg2pCtx *const minimal = nvds_msg2p_ctx_create(NVMSGCONV_CONFIG, NVDS_PAYLOAD_DEEPSTREAM_MINIMAL);
    NvDsMsg2pCtx *context = type == NVDS_PAYLOAD_DEEPSTREAM ? full : minimal;
    if (!context)
        return nullptr;
    NvDsMsg2pMetaInfo info{};
    info.frameMeta = frame;
    info.objMeta = object;
    NvDsPayload *payload = nvds_msg2p_generate_new(context, &info);
    // The payload has no terminating zero.
    char *text = payload->payload ? g_strndup(static_cast<char *>(payload->payload), payload->payloadSize) : nullptr;
    nvds_msg2p_release(context, payload);
    return text;
}

EXPORT char *nvmsgconv_json(NvDsFrameMeta *frame, NvDsObjectMeta *object) {
    return generate(NVDS_PAYLOAD_DEEPSTREAM, frame, object);
}

EXPORT char *nvmsgconv_json_minimal(NvDsFrameMeta *frame) {
    return generate(NVDS_PAYLOAD_DEEPSTREAM_MINIMAL, frame, nullptr);
}

EXPORT void nvmsgconv_free(char *text) { g_free(text); }

EXPORT NvDsFrameMeta *sample_frame(const SampleFrame *frame, const SampleObject *objects, uint32_t count) {
    NvDsFrameMeta *meta = g_new0(NvDsFrameMeta, 1);
    meta->base_meta.meta_type = NVDS_FRAME_META;
    meta->frame_num = frame->frame_num;
    meta->source_id = frame->source_id;
    meta->source_frame_width = frame->source_width;
    meta->source_frame_height = frame->source_height;
    meta->pipeline_width = frame->pipeline_width;
    meta->pipeline_height = frame->pipeline_height;
    meta->num_obj_meta = count;
    for (uint32_t i = 0; i < count; i++) {
        NvDsObjectMeta *object = g_new0(NvDsObjectMeta, 1);
        object->base_meta.meta_type = NVDS_OBJ_META;
        object->object_id = objects[i].object_id;
        object->class_id = objects[i].class_id;
        object->confidence = objects[i].confidence;
        object->rect_params.left = objects[i].left;
        object->rect_params.top = objects[i].top;
        object->rect_params.width = objects[i].width;
        object->rect_params.height = objects[i].height;
        g_strlcpy(object->obj_label, objects[i].label, sizeof object->obj_label);
        meta->obj_meta_list = g_list_append(meta->obj_meta_list, object);
    }
    return meta;
}

EXPORT NvDsObjectMeta *frame_object(NvDsFrameMeta *frame, uint32_t index) {
    return static_cast<NvDsObjectMeta *>(g_list_nth_data(frame->obj_meta_list, index));
}

EXPORT void sample_frame_free(NvDsFrameMeta *frame) {
    g_list_free_full(frame->obj_meta_list, g_free);
    g_free(frame);
}
