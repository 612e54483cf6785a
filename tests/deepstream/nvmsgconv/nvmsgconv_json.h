// SPDX-License-Identifier: MIT OR Apache-2.0
// DeepStream's payload generator, for tests.
//
// In: the metadata of a frame and of an object, as DeepStream 9.1 lays them out. Out: the JSON text that
// the element nvmsgconv sends. The generator is compiled from its published source.
#pragma once
#include <stdint.h>

struct _NvDsFrameMeta;
struct _NvDsObjectMeta;

#ifdef __cplusplus
extern "C" {
#endif

// The message of one object (payload-type=0, msg2p-newapi=1), or null. Freed with nvmsgconv_free.
char *nvmsgconv_json(struct _NvDsFrameMeta *frame, struct _NvDsObjectMeta *object);

// The message of a frame with all its objects (payload-type=1, msg2p-newapi=1), or null.
char *nvmsgconv_json_minimal(struct _NvDsFrameMeta *frame);

void nvmsgconv_free(char *text);

// A frame, and the fields of an object that detectors write, for tests without a pipeline.
struct SampleFrame {
    int32_t frame_num;
    uint32_t source_id, source_width, source_height, pipeline_width, pipeline_height;
};
struct SampleObject {
    uint64_t object_id;
    int32_t class_id;
    float confidence, left, top, width, height;
    const char *label;
};

// A frame with these objects, made with NVIDIA's headers and without its libraries.
struct _NvDsFrameMeta *sample_frame(const struct SampleFrame *frame, const struct SampleObject *objects, uint32_t count);

// An object of a frame, or null.
struct _NvDsObjectMeta *frame_object(struct _NvDsFrameMeta *frame, uint32_t index);

void sample_frame_free(struct _NvDsFrameMeta *frame);

#ifdef __cplusplus
}
#endif
