// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions of the stand-in that tests call: they make batches like nvstreammux, attach tensors
// like nvinfer, and read what nmsfilter attached. tests/deepstream/standin.rs has the declarations
// in Rust.
#pragma once

#include "headers.h"

// Returns the size of a structure below. The tests check that it agrees with Rust's size.
size_t standin_sizes(unsigned which);

// Batches.

typedef struct {
    guint batch_id, source_id, pad_index;
    gint frame_num;
    guint64 buf_pts, ntp_timestamp;
    guint pipeline_width, pipeline_height;
    guint source_frame_width, source_frame_height;
} StandinFrame;

// Adds an empty batch to the buffer. The batch is released with the buffer.
NvDsBatchMeta *standin_attach_batch(GstBuffer *buffer, guint max_frames);
// Adds an NvDsMeta without a batch.
void standin_attach_null_batch(GstBuffer *buffer);
NvDsFrameMeta *standin_add_frame(NvDsBatchMeta *batch, const StandinFrame *frame);
// Sets the fields of a new frame that nvstreammux sets.
void standin_describe_frame(NvDsFrameMeta *meta, const StandinFrame *frame);
// Returns the frame at this position in the batch's list, or null.
NvDsFrameMeta *standin_frame(NvDsBatchMeta *batch, guint index);
// Returns the object at this position in the frame's list, or null.
NvDsObjectMeta *standin_object(NvDsFrameMeta *frame, guint index);
// Adds an object of a primary detector, for tensors on objects.
NvDsObjectMeta *standin_add_object(NvDsFrameMeta *frame, gint component, gint class_id, const float box[4]);

// Surfaces.

typedef struct {
    // Numbers that the NvBufSurface claims.
    guint batch_size, num_filled;
    // Number of elements in its array. `sizes` has their widths and heights.
    guint count;
    gboolean no_list;  // surfaceList is null
    const guint *sizes;
    gsize bytes;  // of the memory, if not all of the NvBufSurface
} StandinSurfaces;

// Replaces the buffer's memory.
void standin_set_surfaces(GstBuffer *buffer, const StandinSurfaces *surfaces);

// Damage.

// Gives the batch another pool for readers of its metadata: 0 for objects, 1 for frames, 2 for user
// metadata. The pool's structures have this type and size. If the size is 0, the pool's address
// becomes null.
void standin_set_pool(NvDsBatchMeta *batch, guint which, gint meta_type, guint element_size);
// Sets the number of frames that the batch's metadata claims.
void standin_set_frame_count(NvDsBatchMeta *batch, guint count);
// Add an entry without data to the batch's list of frames, or to the frame's list of user metadata.
void standin_add_null_frame(NvDsBatchMeta *batch);
void standin_add_null_user_meta(NvDsFrameMeta *frame);
// Adds user metadata of a type that nmsfilter does not know.
void standin_add_other_user_meta(NvDsFrameMeta *frame);

// Tensors.

typedef struct StandinPool StandinPool;
typedef struct StandinOutput StandinOutput;

// Makes a pool of `count` batches of outputs, each with `bytes` of host memory.
StandinPool *standin_pool_new(guint count, size_t bytes);
// Waits for a batch of outputs, and returns null after the given time. The caller owns one
// reference.
StandinOutput *standin_pool_acquire(StandinPool *pool, guint milliseconds);
guint standin_pool_in_use(StandinPool *pool);
// Frees the pool. All batches of outputs must have been returned.
void standin_pool_free(StandinPool *pool);
void *standin_output_memory(StandinOutput *output);
guint standin_output_index(StandinOutput *output);
void standin_output_unref(StandinOutput *output);

typedef struct {
    const char *name;
    gint data_type;
    guint num_dims;
    guint dims[8];
    guint num_elements;
    void *host;
    void *device;
} StandinLayer;

enum {
    STANDIN_NO_DATA = 1,    // user_meta_data is null
    STANDIN_NO_LAYERS = 2,  // output_layers_info is null
    STANDIN_NO_HOST = 4,    // out_buf_ptrs_host is null
    STANDIN_NO_DEVICE = 8,  // out_buf_ptrs_dev is null
};

typedef struct {
    guint unique_id;
    gint gpu_id;
    guint width, height;
    // Ignored if the version lacks the member.
    gboolean maintain_aspect_ratio, symmetric_padding;
    guint flags;
    guint num_layers;
    const StandinLayer *layers;
    // Number of layers that the metadata claims; 0 for the true number.
    guint claimed_layers;
} StandinTensors;

// Attach the tensors, with one more reference to `output`, which may be null.
void standin_attach_to_frame(NvDsFrameMeta *frame, const StandinTensors *tensors, StandinOutput *output);
void standin_attach_to_object(NvDsObjectMeta *object, const StandinTensors *tensors, StandinOutput *output);

typedef struct {
    // Left, top, width and height.
    float rect[4];
    // scale_ratio_x, scale_ratio_y, offset_left, offset_top.
    double scaling[4];
    // May be null.
    NvDsObjectMeta *object;
} StandinRegion;

// Attaches tensors to a new region of interest. Regions of all frames are in one vector.
void standin_attach_to_roi(
    NvDsFrameMeta *frame, const StandinRegion *roi, const StandinTensors *tensors, StandinOutput *output);

// Reading a batch.

typedef struct {
    guint batch_id, source_id;
    guint num_obj_meta, listed_objects;
    gint infer_done;
    guint tensors, other_user_metas;
} StandinFrameState;

void standin_read_frame(NvDsFrameMeta *frame, StandinFrameState *state);

typedef struct {
    gint unique_component_id, class_id;
    guint64 object_id;
    float confidence, tracker_confidence;
    float rect[4], detector[4], tracker[4];
    float rotation_angle;
    guint border_width, has_bg_color;
    double border_color[4], bg_color[4];
    gint has_color_info, color_id;
    const char *display_text;
    guint x_offset, y_offset;
    const char *font_name;
    guint font_size;
    gint set_bg_clr;
    double font_color[4], text_bg_clr[4];
    char label[128];
    gint meta_type;
    // True if the object names its batch, and has no classifiers and no user metadata but tensors.
    gint is_plain;
    // Position of the parent in the frame's list, or -1.
    gint parent;
    guint tensors;
    const float *mask;
    guint mask_size, mask_width, mask_height;
    float mask_threshold;
} StandinObject;

// Copies at most `most` objects in the order of the list. Returns their number.
guint standin_read_objects(NvDsFrameMeta *frame, StandinObject *objects, guint most);

// Counts of this process.

typedef struct {
    gint64 batches, frames, objects, user_metas;  // in use
    gint64 tensors;                               // NvDsInferTensorMeta that exist
    gint64 texts;                                 // released with their objects
    gint64 locks;                                 // acquired
    gint64 unlocked;                              // changes without the lock
    gint64 held;                                  // locks that are held
    gint64 new_objects;                           // allocated by pools, not recycled
} StandinCounts;

void standin_counts(StandinCounts *counts);

// Functions for other files of the stand-in.

NvDsUserMeta *standin_acquire_user_meta(NvDsBatchMeta *batch);
// Releases user metadata that is in no list of the batch, its frames and objects.
void standin_release_user_meta(gpointer user, gpointer batch);
gpointer standin_copy_batch(gpointer batch, gpointer user_data);
void standin_release_batch(gpointer batch, gpointer user_data);
NvDsBatchMeta *standin_new_batch(guint max_frames);
extern gint64 standin_count_of_tensors;
