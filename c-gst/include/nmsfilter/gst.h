/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * nmsfilter with GStreamer: attaches tensors to buffers for the element nmsfilter, and reads the regions that it attached.
 * cbindgen makes this file from the sources: do not edit it.
 *
 * Link with `pkg-config --cflags --libs nmsfilter-gst`.
 *
 * Functions return a status; nmsfilter_gst_error_text has the text of the error. Structures begin with their size, so that
 * later versions can add fields: set all bytes to 0, then `size` and the fields. Functions can be called from any thread, but
 * while a thread writes a buffer, no other thread may use it. Strings are UTF-8 and end with a zero byte. Pointers must be
 * valid, or NULL where that is stated.
 */

#ifndef NMSFILTER_GST_H
#define NMSFILTER_GST_H

#include <stddef.h>
#include <stdint.h>
#include <gst/gst.h>

/* The version of this header. */
#define NMSFILTER_GST_VERSION_MAJOR 0
#define NMSFILTER_GST_VERSION_MINOR 1
#define NMSFILTER_GST_VERSION_PATCH 0
#define NMSFILTER_GST_VERSION (NMSFILTER_GST_VERSION_MAJOR * 10000 + NMSFILTER_GST_VERSION_MINOR * 100 + NMSFILTER_GST_VERSION_PATCH)

/**
 * The result of a function.
 */
typedef enum NmsfilterGstStatus {
    /**
     * Success.
     */
    NMSFILTER_GST_STATUS_OK = 0,
    /**
     * An argument is NULL, or a field of a structure has no valid value.
     */
    NMSFILTER_GST_STATUS_INVALID_ARGUMENT = 1,
    /**
     * GStreamer cannot be initialized, or is older than 1.20.
     */
    NMSFILTER_GST_STATUS_GSTREAMER = 2,
    /**
     * The memory of a tensor is smaller than its shape requires, or not aligned for its elements.
     */
    NMSFILTER_GST_STATUS_TENSOR = 3,
    /**
     * The GPU cannot be used, or a call of its driver failed.
     */
    NMSFILTER_GST_STATUS_DEVICE = 4,
    /**
     * A defect of the library. Report it with the text of the error.
     */
    NMSFILTER_GST_STATUS_INTERNAL = 5,
} NmsfilterGstStatus;

/**
 * The type of a tensor's elements.
 */
typedef enum NmsfilterGstElementType {
    /**
     * IEEE 754 single precision.
     */
    NMSFILTER_GST_ELEMENT_TYPE_F32 = 0,
    /**
     * IEEE 754 half precision.
     */
    NMSFILTER_GST_ELEMENT_TYPE_F16 = 1,
    /**
     * Signed integers of 8 bits, as quantized models have them.
     */
    NMSFILTER_GST_ELEMENT_TYPE_I8 = 2,
    /**
     * Unsigned integers of 8 bits, as quantized models have them.
     */
    NMSFILTER_GST_ELEMENT_TYPE_U8 = 3,
    /**
     * Signed integers of 32 bits.
     */
    NMSFILTER_GST_ELEMENT_TYPE_I32 = 4,
    /**
     * Signed integers of 64 bits.
     */
    NMSFILTER_GST_ELEMENT_TYPE_I64 = 5,
} NmsfilterGstElementType;

/**
 * How the frame was fitted into the model's input. All its rows and columns are scaled; with the aspect ratio, the shorter
 * side is rounded to the nearest pixel (Center; of two the even one) or down (TopLeft), and the border above or at the left is
 * rounded down.
 */
typedef enum NmsfilterGstLetterbox {
    /**
     * Unknown: the element's property `letterbox` applies.
     */
    NMSFILTER_GST_LETTERBOX_UNKNOWN = 0,
    /**
     * Scaled to the size of the input, also if that changes its aspect ratio.
     */
    NMSFILTER_GST_LETTERBOX_NONE = 1,
    /**
     * Scaled with its aspect ratio, in the center, with borders at both sides.
     */
    NMSFILTER_GST_LETTERBOX_CENTER = 2,
    /**
     * Scaled with its aspect ratio, in the upper left corner, with a border at the right or the lower side.
     */
    NMSFILTER_GST_LETTERBOX_TOP_LEFT = 3,
} NmsfilterGstLetterbox;

/**
 * Where the elements of a tensor are, and who owns them.
 */
typedef enum NmsfilterGstMemory {
    /**
     * In host memory, which is copied: it can be freed or written after the call.
     */
    NMSFILTER_GST_MEMORY_COPIED = 0,
    /**
     * In host memory, which is not copied: it must exist and not be written until `release` is called.
     */
    NMSFILTER_GST_MEMORY_HOST = 1,
    /**
     * In device memory, which is not copied: it must exist, and not be written after `cuda_event`, until `release` is
     * called.
     */
    NMSFILTER_GST_MEMORY_DEVICE = 2,
} NmsfilterGstMemory;

/**
 * A description of a model. Set all bytes to 0, then `size` and the known fields.
 */
typedef struct NmsfilterGstModel {
    /**
     * sizeof(NmsfilterGstModel).
     */
    size_t size;
    /**
     * The width of the model's input in pixels; 0 if it is unknown.
     */
    uint32_t width;
    /**
     * The height of the model's input.
     */
    uint32_t height;
    /**
     * An NmsfilterGstLetterbox.
     */
    uint32_t letterbox;
    /**
     * 1 if the model selects the detections itself, so that its output has a row for each of them; else 0.
     */
    uint32_t end2end;
    /**
     * The names of the classes, class 0 first; UTF-8. NULL is a class without a name.
     */
    const char *const *labels;
    /**
     * The number of labels.
     */
    size_t label_count;
    /**
     * The task of the model, such as "detect" or "segment"; NULL if it is unknown.
     */
    const char *task;
    /**
     * The number of keypoints of a detection; 0 if it is unknown, or if there are none.
     */
    uint32_t keypoint_count;
    /**
     * The number of components of a keypoint: 2 for x and y, 3 with a visibility.
     */
    uint32_t keypoint_components;
    /**
     * The meaning of the keypoints of every class: "coco-17", "face-5" or "points"; NULL if it is unknown.
     */
    const char *keypoint_layout;
    /**
     * 1 if the detections need no suppression; else 0.
     */
    uint32_t suppressed;
    /**
     * The number of best pairs of box and class that are the detections of a frame, as of RT-DETR with sigmoid; 0 if a box
     * has one class.
     */
    uint32_t queries;
} NmsfilterGstModel;

/**
 * A tensor to attach: one output of a model. Set all bytes to 0, then `size` and the needed fields.
 */
typedef struct NmsfilterGstTensor {
    /**
     * sizeof(NmsfilterGstTensor).
     */
    size_t size;
    /**
     * The tensor's id or the name of the model's output, by which the element chooses a decoder; UTF-8. It is copied.
     */
    const char *id;
    /**
     * An NmsfilterGstElementType.
     */
    uint32_t element_type;
    /**
     * The number of dimensions, 0 to 8.
     */
    uint32_t dimensions;
    /**
     * The dimensions, slowest first. Elements are contiguous and row-major.
     */
    uint64_t shape[8];
    /**
     * An NmsfilterGstMemory.
     */
    uint32_t memory;
    /**
     * The number of the GPU (cuDeviceGet) with NMSFILTER_GST_MEMORY_DEVICE. Its primary context owns the memory, as with
     * the CUDA runtime.
     */
    uint32_t cuda_device;
    /**
     * The first element, or its device address with NMSFILTER_GST_MEMORY_DEVICE.
     */
    const void *data;
    /**
     * The number of bytes at `data`, at least as many as the shape requires.
     */
    size_t bytes;
    /**
     * Called once, from any thread, when nothing reads the memory any more; NULL if it exists until the process ends. It
     * is not called if the function fails: the memory is then still the caller's. It is not called for
     * NMSFILTER_GST_MEMORY_COPIED.
     */
    void (*release)(void *user_data);
    /**
     * The argument of `release`.
     */
    void *user_data;
    /**
     * A CUevent that was recorded after the work that writes the device memory, which must exist until `release` is called;
     * NULL if that work has completed, or with `cuda_stream`.
     */
    void *cuda_event;
    /**
     * In place of `cuda_event`, a CUstream: the memory is read after the work that was submitted to it before the call.
     * For a default stream CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, since NULL is no stream.
     */
    void *cuda_stream;
    /**
     * The step of quantized elements of type i8 or u8, which stand for (element - zero_point) * scale; 0 if elements are
     * not quantized.
     */
    float scale;
    /**
     * The element that stands for 0.
     */
    int32_t zero_point;
    /**
     * The model description, from nmsfilter_gst_model_caps, or NULL. A reference is added. One tensor of a
     * buffer is enough.
     */
    GstCaps *model;
    /**
     * The name of the element or program that attaches the tensor, by which nmsfilter selects one of several
     * models (its property `tensors-from`); UTF-8, or NULL. It is copied.
     */
    const char *source;
    /**
     * Left, top, width and height of the part of the frame on which the model ran, in pixels of the frame; a width of 0
     * for the whole frame. The tensors of a part are attached one after the other. Either all tensors of a source have
     * a region, or none.
     */
    uint32_t region[4];
    /**
     * 1 if `parent` is set, which needs a region; else 0.
     */
    uint32_t has_parent;
    /**
     * The id of the region of interest with the pixels of `region`; detections in it get it as parent_id.
     */
    int32_t parent;
} NmsfilterGstTensor;

/**
 * A region of interest of a buffer: a detection, or a region of another element.
 *
 * Pointers are valid for as long as the region is on the buffer, and the buffer exists.
 */
typedef struct NmsfilterGstRegion {
    /**
     * The left edge, normalized to the frame (0 to 1) and clipped to it; NaN for regions without a detection. Edges of an
     * oriented box are the edges of its bounds.
     */
    double x_min;
    /**
     * The upper edge.
     */
    double y_min;
    /**
     * The right edge.
     */
    double x_max;
    /**
     * The lower edge.
     */
    double y_max;
    /**
     * The score; NaN for regions without a detection.
     */
    double score;
    /**
     * The index of the class, from 0; -1 for regions without a detection.
     */
    int32_t class_id;
    /**
     * The number of the region on the buffer; 0 if the element that attached it sets none.
     */
    int32_t id;
    /**
     * The number of the region of which it is a part, or -1.
     */
    int32_t parent_id;
    /**
     * The left edge in pixels of the frame.
     */
    uint32_t left;
    /**
     * The upper edge in pixels of the frame.
     */
    uint32_t top;
    /**
     * The width in pixels.
     */
    uint32_t width;
    /**
     * The height in pixels.
     */
    uint32_t height;
    /**
     * The angle of the side `oriented_width` of an oriented box in radians, clockwise from the x axis; NaN if the box is
     * upright.
     */
    float rotation;
    /**
     * The center of the oriented box in pixels of the frame; NaN if the box is upright.
     */
    float center_x;
    /**
     * The y coordinate of the center.
     */
    float center_y;
    /**
     * The sides of the oriented box in pixels of the frame; NaN if the box is upright.
     */
    float oriented_width;
    /**
     * The other side.
     */
    float oriented_height;
    /**
     * The number of keypoints; 0 if there are none.
     */
    uint32_t keypoint_count;
    /**
     * The number of components of a keypoint: 2 for x and y, 3 with a visibility.
     */
    uint32_t keypoint_components;
    /**
     * The number of pixels of a row of the mask; 0 without a mask.
     */
    uint32_t mask_width;
    /**
     * The number of rows of the mask.
     */
    uint32_t mask_height;
    /**
     * The left edge of the rectangle that the mask covers, in pixels of the frame. Part of it can be outside of the frame.
     */
    double mask_left;
    /**
     * The upper edge of the rectangle.
     */
    double mask_top;
    /**
     * The right edge of the rectangle.
     */
    double mask_right;
    /**
     * The lower edge of the rectangle.
     */
    double mask_bottom;
    /**
     * The name of the class. It is valid until the process ends, and may not be UTF-8 if another element has attached the
     * region.
     */
    const char *label;
    /**
     * `keypoint_count` x `keypoint_components` numbers: x and y in pixels of the frame, and the visibility; NULL if there
     * are none. A point can be outside of the frame, NaN, or infinite.
     */
    const float *keypoints;
    /**
     * The meaning of the points: "coco-17", "face-5" or "points"; NULL without keypoints.
     */
    const char *keypoint_layout;
    /**
     * `mask_height` rows of `mask_width` bits, each row padded to whole bytes, the most significant bit first; NULL if
     * there is no mask.
     */
    const uint8_t *mask;
    /**
     * The number of classes that classifiers have found for the region, which nmsfilter_gst_read_classes() reads.
     */
    size_t class_count;
} NmsfilterGstRegion;

/**
 * A class that a classifier has found for a region.
 */
typedef struct NmsfilterGstClass {
    /**
     * The score; NaN if it is not known.
     */
    double score;
    /**
     * The name of the class, which may not be UTF-8; NULL if it is not known. It is valid for as long as the region is on
     * the buffer, and the buffer exists.
     */
    const char *label;
    /**
     * The index of the class, from 0; -1 if it is not known.
     */
    int32_t class_id;
    /**
     * What was classified, such as the name of the model's output; NULL if it is not known. As for the label, it may not
     * be UTF-8, and is valid for as long as the region.
     */
    const char *attribute;
} NmsfilterGstClass;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library: major x 10000 + minor x 100 + patch. The header's version is NMSFILTER_GST_VERSION.
 */
uint32_t nmsfilter_gst_version(void);

/**
 * The text of the error of the last function that returned another status than NMSFILTER_GST_STATUS_OK on this thread:
 * what was expected, what came, and what to do. It is valid until another function fails on this thread. Empty if none
 * has failed.
 */
const char *nmsfilter_gst_error_text(void);

/**
 * Initializes GStreamer if the program has not done so, and registers the metadata of tensors. The other functions call
 * this, too: a program calls it to learn early whether GStreamer can be used.
 */
enum NmsfilterGstStatus nmsfilter_gst_init(void);

/**
 * Makes the caps that describe a model, for the field `model` of NmsfilterGstTensor. Make them once, and attach them with
 * the tensors of every frame. The caller owns the reference (gst_caps_unref).
 */
enum NmsfilterGstStatus nmsfilter_gst_model_caps(const struct NmsfilterGstModel *model,
                                                 GstCaps **caps);

/**
 * Attaches a tensor to a buffer, after the tensors that are attached already. The element nmsfilter reads it.
 *
 * The buffer must be writable (gst_buffer_make_writable). The structure is read during the call only.
 */
enum NmsfilterGstStatus nmsfilter_gst_attach_tensor(GstBuffer *buffer,
                                                    const struct NmsfilterGstTensor *tensor);

/**
 * Reads the regions of interest of a buffer into an array of the caller's, in the order in which they were attached:
 * the regions of nmsfilter best first.
 *
 * `regions` has room for `capacity` records of `region_size` bytes, which is sizeof(NmsfilterGstRegion); more bytes are
 * set to 0. `count` becomes the number of regions of the buffer, also if there are more than `capacity`, of which the
 * first are read then. With a `capacity` of 0, `regions` can be NULL.
 */
enum NmsfilterGstStatus nmsfilter_gst_read_regions(GstBuffer *buffer,
                                                   struct NmsfilterGstRegion *regions,
                                                   size_t capacity,
                                                   size_t region_size,
                                                   size_t *count);

/**
 * Reads the classes that classifiers have found for the region with the index `region`, in the order of
 * nmsfilter_gst_read_regions(), into an array of the caller's. The classes of a classifier are in descending order of their
 * scores; those of the next classifier follow.
 *
 * `classes` has room for `capacity` records of `class_size` bytes, which is sizeof(NmsfilterGstClass); more bytes are set
 * to 0. `count` becomes the number of classes, also if there are more than `capacity`, of which the first are read then.
 * With a `capacity` of 0, `classes` can be NULL.
 */
enum NmsfilterGstStatus nmsfilter_gst_read_classes(GstBuffer *buffer,
                                                   size_t region,
                                                   struct NmsfilterGstClass *classes,
                                                   size_t capacity,
                                                   size_t class_size,
                                                   size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NMSFILTER_GST_H */
