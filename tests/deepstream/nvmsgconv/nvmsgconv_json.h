// SPDX-License-Identifier: MIT OR Apache-2.0
// DeepStream's payload generator, for tests.
//
// In: the metadata of a frame and an object, with DeepStream 9.1's layout. Out: the JSON text that
// the element nvmsgconv sends. The generator is compiled from its published source.
#pragma once
#include <stdint.h>

struct _NvDsFrameMeta;
struct _NvDsObjectMeta;

#ifdef __cplusplus
extern "C" {
#endif

// Returns the message of one object (payload-type=0, msg2p-newapi=1), or null. nvmsgconv_free frees
// it.
char *nvmsgconv_json(struct _NvDsFrameMeta *frame, struct _NvDsObjectMeta *object);

// Returns the message of a frame with all of its objects (payload-type=1, msg2p-newapi=1), or null.
char *nvmsgconv_json_minimal(struct _NvDsFrameMeta *frame);

void nvmsgconv_free(char *text);

// Fields of a frame and of an object that detectors write, for tests without a pipeline.
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

// Makes a frame with these objects. Needs NVIDIA's headers, but not its libraries.
struct _NvDsFrameMeta *sample_frame(const struct SampleFrame *frame, const struct SampleObject *objects, uint32_t count);

// Returns an object of a frame, or null.
struct _NvDsObjectMeta *frame_object(struct _NvDsFrameMeta *frame, uint32_t index);

void sample_frame_free(struct _NvDsFrameMeta *frame);

#ifdef __cplusplus
}
#endif
