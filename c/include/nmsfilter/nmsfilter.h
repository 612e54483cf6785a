/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * nmsfilter without GStreamer: decodes detector tensors and suppresses duplicate detections (non-maximum suppression), on
 * the CPU and on NVIDIA GPUs. cbindgen makes this file from the sources: do not edit it.
 *
 * Link with `pkg-config --cflags --libs nmsfilter`. The CUDA driver is loaded when a GPU is used, and is not needed otherwise.
 *
 * Functions return a status; nmsfilter_error_text has the text of the error. Structures begin with their size, so that later
 * versions can add fields: set all bytes to 0, or call the function that sets defaults if there is one, then set `size` and
 * the fields. Strings are UTF-8 and end with a zero byte. Pointers must be valid, or NULL where that is stated.
 *
 * A handle is used by one thread at a time; different threads can use different handles at the same time. Functions without a
 * handle can be called from any thread.
 */

#ifndef NMSFILTER_NMSFILTER_H
#define NMSFILTER_NMSFILTER_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. */
#define NMSFILTER_VERSION_MAJOR 0
#define NMSFILTER_VERSION_MINOR 1
#define NMSFILTER_VERSION_PATCH 0
#define NMSFILTER_VERSION (NMSFILTER_VERSION_MAJOR * 10000 + NMSFILTER_VERSION_MINOR * 100 + NMSFILTER_VERSION_PATCH)

/**
 * The result of a function.
 */
typedef enum NmsfilterStatus {
    /**
     * Success.
     */
    NMSFILTER_STATUS_OK = 0,
    /**
     * An argument is NULL, or a field of a structure has no valid value.
     */
    NMSFILTER_STATUS_INVALID_ARGUMENT = 1,
    /**
     * The decoder is unknown, no decoder reads the tensors, or the text is not a layout.
     */
    NMSFILTER_STATUS_DECODER = 2,
    /**
     * The memory of a tensor cannot be read: it is smaller than its shape requires, not aligned for its elements, or not in
     * the memory that the structure names.
     */
    NMSFILTER_STATUS_TENSOR = 3,
    /**
     * The backend cannot do this. The text names a backend that can.
     */
    NMSFILTER_STATUS_UNSUPPORTED = 4,
    /**
     * The GPU cannot be used, or a call of its driver failed.
     */
    NMSFILTER_STATUS_DEVICE = 5,
    /**
     * A defect of the library. Report it with the text of the error, and free the handle.
     */
    NMSFILTER_STATUS_INTERNAL = 6,
} NmsfilterStatus;

/**
 * The processor that decodes and suppresses.
 */
typedef enum NmsfilterBackend {
    /**
     * The GPU for tensors in device memory; for tensors in host memory the processor that takes less time. If the GPU
     * fails, the CPU.
     */
    NMSFILTER_BACKEND_AUTO = 0,
    /**
     * The CPU.
     */
    NMSFILTER_BACKEND_CPU = 1,
    /**
     * An NVIDIA GPU.
     */
    NMSFILTER_BACKEND_CUDA = 2,
} NmsfilterBackend;

/**
 * The form of the boxes that the decoder `boxes` reads. Other decoders define their form.
 */
typedef enum NmsfilterBoxFormat {
    /**
     * Left, upper, right and lower edge.
     */
    NMSFILTER_BOX_FORMAT_CORNERS = 0,
    /**
     * Center x, center y, width, height.
     */
    NMSFILTER_BOX_FORMAT_CENTER = 1,
    /**
     * Left edge, upper edge, side.
     */
    NMSFILTER_BOX_FORMAT_SQUARE = 2,
    /**
     * Distances from a point to the left, upper, right and lower edge.
     */
    NMSFILTER_BOX_FORMAT_DISTANCES = 3,
} NmsfilterBoxFormat;

/**
 * The order of a tensor's dimensions.
 */
typedef enum NmsfilterChannels {
    /**
     * The order that shapes have; an error if both fit.
     */
    NMSFILTER_CHANNELS_AUTO = 0,
    /**
     * The numbers of an anchor or pixel before the anchors, as [1,C,H,W] and [1,4+C,N].
     */
    NMSFILTER_CHANNELS_FIRST = 1,
    /**
     * After the anchors, as [1,H,W,C] and [1,N,4+C].
     */
    NMSFILTER_CHANNELS_LAST = 2,
} NmsfilterChannels;

/**
 * The unit of coordinates.
 */
typedef enum NmsfilterCoordinates {
    /**
     * The decoder's unit, if it has one; else normalized if the id ends in "-normalized", and pixels otherwise.
     */
    NMSFILTER_COORDINATES_AUTO = 0,
    /**
     * Pixels of the model's input.
     */
    NMSFILTER_COORDINATES_PIXELS = 1,
    /**
     * Fractions of the width and height of the model's input, 0 to 1.
     */
    NMSFILTER_COORDINATES_NORMALIZED = 2,
} NmsfilterCoordinates;

/**
 * The type of a tensor's elements.
 */
typedef enum NmsfilterElementType {
    /**
     * IEEE 754 single precision.
     */
    NMSFILTER_ELEMENT_TYPE_F32 = 0,
    /**
     * IEEE 754 half precision.
     */
    NMSFILTER_ELEMENT_TYPE_F16 = 1,
    /**
     * Signed integers of 8 bits, as quantized models have them.
     */
    NMSFILTER_ELEMENT_TYPE_I8 = 2,
    /**
     * Unsigned integers of 8 bits, as quantized models have them.
     */
    NMSFILTER_ELEMENT_TYPE_U8 = 3,
    /**
     * Signed integers of 32 bits.
     */
    NMSFILTER_ELEMENT_TYPE_I32 = 4,
    /**
     * Signed integers of 64 bits.
     */
    NMSFILTER_ELEMENT_TYPE_I64 = 5,
} NmsfilterElementType;

/**
 * The numbers that an input of a model takes.
 */
typedef enum NmsfilterInputNumbers {
    /**
     * The picture.
     */
    NMSFILTER_INPUT_NUMBERS_PICTURE = 0,
    /**
     * The width and the height of the picture, for each picture of a batch.
     */
    NMSFILTER_INPUT_NUMBERS_WIDTH_HEIGHT = 1,
    /**
     * The height and the width of the picture, for each picture of a batch.
     */
    NMSFILTER_INPUT_NUMBERS_HEIGHT_WIDTH = 2,
    /**
     * Ones.
     */
    NMSFILTER_INPUT_NUMBERS_ONES = 3,
} NmsfilterInputNumbers;

/**
 * The order of a picture's dimensions.
 */
typedef enum NmsfilterPictureLayout {
    /**
     * Batch, if the model has one, channels, height, width.
     */
    NMSFILTER_PICTURE_LAYOUT_NCHW = 0,
    /**
     * Batch, if the model has one, height, width, channels.
     */
    NMSFILTER_PICTURE_LAYOUT_NHWC = 1,
} NmsfilterPictureLayout;

/**
 * How frames were scaled to the model's input.
 */
typedef enum NmsfilterLetterbox {
    /**
     * Stretched: each axis by its own ratio, without borders.
     */
    NMSFILTER_LETTERBOX_NONE = 0,
    /**
     * Both axes by one ratio, with borders on both sides, as Ultralytics.
     */
    NMSFILTER_LETTERBOX_CENTER = 1,
    /**
     * Both axes by one ratio, with a border on the right or at the bottom, as YOLOX.
     */
    NMSFILTER_LETTERBOX_TOP_LEFT = 2,
} NmsfilterLetterbox;

/**
 * The pixels of masks.
 */
typedef enum NmsfilterMaskSize {
    /**
     * Pixels of the model's prototypes.
     */
    NMSFILTER_MASK_SIZE_PROTOTYPES = 0,
    /**
     * Pixels of the frame. NmsfilterParams has the frame's size and its position in the model's input.
     */
    NMSFILTER_MASK_SIZE_FRAME = 1,
} NmsfilterMaskSize;

/**
 * Where the elements of a tensor are.
 */
typedef enum NmsfilterMemory {
    /**
     * In host memory.
     */
    NMSFILTER_MEMORY_HOST = 0,
    /**
     * In device memory of a GPU's primary context, which the CUDA runtime uses.
     */
    NMSFILTER_MEMORY_DEVICE = 1,
} NmsfilterMemory;

/**
 * The rule by which candidates survive.
 */
typedef enum NmsfilterMethod {
    /**
     * Candidates survive that conflict with no survivor of higher score: exact greedy suppression.
     */
    NMSFILTER_METHOD_GREEDY = 0,
    /**
     * Candidates survive that conflict with no candidate of higher score, suppressed or not.
     */
    NMSFILTER_METHOD_MAP_REDUCE = 1,
    /**
     * All candidates survive.
     */
    NMSFILTER_METHOD_NONE = 2,
    /**
     * Survivors of NMSFILTER_METHOD_GREEDY, each with the union of its box and of the boxes that it suppresses.
     */
    NMSFILTER_METHOD_MERGE = 3,
    /**
     * Like NMSFILTER_METHOD_MERGE, but a box also merges with the boxes that its suppressed boxes suppress.
     */
    NMSFILTER_METHOD_MERGE_TRANSITIVE = 4,
    /**
     * Clusters of boxes, each with the mean of its boxes, weighted by score: Weighted Boxes Fusion.
     */
    NMSFILTER_METHOD_WEIGHTED_FUSION = 5,
    /**
     * Survivors of NMSFILTER_METHOD_GREEDY, each with the mean of its box and of the boxes that it suppresses, weighted by
     * score.
     */
    NMSFILTER_METHOD_WEIGHTED_AVERAGE = 6,
    /**
     * Candidates survive whose score reaches the threshold after conflicts have lowered it: Soft-NMS, linear.
     */
    NMSFILTER_METHOD_SOFT_LINEAR = 7,
    /**
     * Soft-NMS, Gaussian.
     */
    NMSFILTER_METHOD_SOFT_GAUSSIAN = 8,
    /**
     * Candidates survive whose score reaches the threshold after one pass has lowered it: Matrix NMS, linear.
     */
    NMSFILTER_METHOD_MATRIX_LINEAR = 9,
    /**
     * Matrix NMS, Gaussian.
     */
    NMSFILTER_METHOD_MATRIX_GAUSSIAN = 10,
    /**
     * NMSFILTER_METHOD_GREEDY, but the threshold is at least the density of the candidate of higher score: Adaptive-NMS.
     * Densities are a column of a layout with `kind = density`, or an argument of nmsfilter_boxes_merge.
     */
    NMSFILTER_METHOD_ADAPTIVE = 11,
    /**
     * NMSFILTER_METHOD_GREEDY, but candidates whose embeddings differ do not conflict: FeatureNMS. Embeddings are a column
     * of a layout with `kind = embedding`, or an argument of nmsfilter_boxes_merge.
     */
    NMSFILTER_METHOD_FEATURE = 12,
} NmsfilterMethod;

/**
 * The measure by which two boxes conflict. Boxes that do not intersect never conflict.
 */
typedef enum NmsfilterOverlap {
    /**
     * Intersection over union.
     */
    NMSFILTER_OVERLAP_IOU = 0,
    /**
     * Intersection over the area of the box of higher score.
     */
    NMSFILTER_OVERLAP_REPRESENTATIVE = 1,
    /**
     * Intersection over the smaller area.
     */
    NMSFILTER_OVERLAP_SMALLER = 2,
    /**
     * Distance-IoU.
     */
    NMSFILTER_OVERLAP_DIOU = 3,
    /**
     * For oriented boxes only: 1 - the Hellinger distance of the Gaussian distributions of the boxes.
     */
    NMSFILTER_OVERLAP_PROB_IOU = 4,
} NmsfilterOverlap;

/**
 * When device memory may be read: nmsfilter_run waits for that. nmsfilter_enqueue works in the order of its stream, which
 * waits for the events and for the other streams of tensors.
 */
typedef enum NmsfilterReady {
    /**
     * At once: the work that writes the memory has completed, or is before in the stream of nmsfilter_enqueue.
     */
    NMSFILTER_READY_NOW = 0,
    /**
     * After the CUevent in `ready_after`.
     */
    NMSFILTER_READY_AFTER_EVENT = 1,
    /**
     * After the work that was submitted to the CUstream in `ready_after` before the call. NULL is the default stream.
     */
    NMSFILTER_READY_AFTER_STREAM = 2,
} NmsfilterReady;

/**
 * The rule for boxes that touch an inner edge of a region, such as a tile.
 */
typedef enum NmsfilterRegionEdges {
    /**
     * They are like other boxes.
     */
    NMSFILTER_REGION_EDGES_KEEP = 0,
    /**
     * They are dropped.
     */
    NMSFILTER_REGION_EDGES_DROP = 1,
    /**
     * Their scores become `edge_score` of NmsfilterParams, so that they suppress no better box.
     */
    NMSFILTER_REGION_EDGES_LOWER = 2,
} NmsfilterRegionEdges;

/**
 * The function that turns scores into probabilities.
 */
typedef enum NmsfilterScoreActivation {
    /**
     * The decoder's activation.
     */
    NMSFILTER_SCORE_ACTIVATION_DEFAULT = 0,
    /**
     * None: scores are probabilities, or have no unit.
     */
    NMSFILTER_SCORE_ACTIVATION_NONE = 1,
    /**
     * The logistic function.
     */
    NMSFILTER_SCORE_ACTIVATION_SIGMOID = 2,
    /**
     * Softmax over all scores of an anchor.
     */
    NMSFILTER_SCORE_ACTIVATION_SOFTMAX = 3,
} NmsfilterScoreActivation;

/**
 * Which of an anchor's scores is the background's, also called "no object".
 */
typedef enum NmsfilterBackground {
    /**
     * The decoder's. With the decoder detr, the last if class_count or label_count is one less than the number of scores,
     * which then are softmax.
     */
    NMSFILTER_BACKGROUND_AUTO = 0,
    /**
     * None: each score belongs to a class.
     */
    NMSFILTER_BACKGROUND_NONE = 1,
    /**
     * The first. The next score belongs to class 0, or to class 1 if class_count or label_count counts the background.
     */
    NMSFILTER_BACKGROUND_FIRST = 2,
    /**
     * The last.
     */
    NMSFILTER_BACKGROUND_LAST = 3,
} NmsfilterBackground;

/**
 * Suppresses duplicates among boxes.
 */
typedef struct NmsfilterBoxes NmsfilterBoxes;

/**
 * Decodes tensors and suppresses duplicate detections.
 */
typedef struct Nmsfilter Nmsfilter;

/**
 * Facts about a model that its tensors do not contain. By default, all bytes but `size` are 0: nothing is known.
 */
typedef struct NmsfilterOptions {
    /**
     * sizeof(NmsfilterOptions).
     */
    size_t size;
    /**
     * The width of the model's input in pixels, by which normalized coordinates are multiplied; 0 if it is unknown, and
     * normalized boxes remain so. Some decoders and masks need it.
     */
    float model_width;
    /**
     * The height of the model's input.
     */
    float model_height;
    /**
     * 1 if the first of three dimensions is the number of images of a batch; 0 if other numbers than 1 are an error.
     */
    uint32_t batch;
    /**
     * An NmsfilterBoxFormat.
     */
    uint32_t box_format;
    /**
     * An NmsfilterCoordinates.
     */
    uint32_t coordinates;
    /**
     * An NmsfilterScoreActivation.
     */
    uint32_t score_activation;
    /**
     * The number of classes; 0 if it is unknown. Tensors with another number are an error.
     */
    size_t class_count;
    /**
     * The number of labels that are known; 0 if none are. It helps to choose a decoder, and is not required.
     */
    size_t label_count;
    /**
     * The number of keypoints of a detection; 0 if it is unknown.
     */
    uint32_t keypoint_count;
    /**
     * The number of components of a keypoint: 2 for x and y, 3 with a visibility.
     */
    uint32_t keypoint_components;
    /**
     * An NmsfilterBackground.
     */
    uint32_t background;
    /**
     * An NmsfilterChannels, for tensors whose shapes fit both orders of dimensions.
     */
    uint32_t channels;
} NmsfilterOptions;

/**
 * Rules for the detections of one class, which replace the rules for all classes. If all bytes except `size` are 0, the
 * structure has no effect.
 */
typedef struct NmsfilterClassRule {
    /**
     * sizeof(NmsfilterClassRule), equal in all elements of an array.
     */
    size_t size;
    /**
     * 1 if `iou_threshold` applies; else 0.
     */
    uint32_t has_iou_threshold;
    /**
     * Replaces `iou_threshold` of NmsfilterParams; 0 to 1.
     */
    float iou_threshold;
    /**
     * 1 if `min_size` and `max_size` apply; else 0.
     */
    uint32_t has_sizes;
    /**
     * Replaces `min_size` of NmsfilterParams.
     */
    float min_size[2];
    /**
     * Replaces `max_size` of NmsfilterParams.
     */
    float max_size[2];
    /**
     * The greatest number of detections of the class in an image; 0 for no limit. It applies before `max_detections` of
     * NmsfilterParams, and is an error with nmsfilter_enqueue.
     */
    uint32_t max_detections;
} NmsfilterClassRule;

/**
 * A part of a frame, in whole pixels. This record does not change.
 */
typedef struct NmsfilterRegion {
    /**
     * The first column.
     */
    uint32_t left;
    /**
     * The first row.
     */
    uint32_t top;
    /**
     * The number of columns.
     */
    uint32_t width;
    /**
     * The number of rows.
     */
    uint32_t height;
} NmsfilterRegion;

/**
 * Parameters of decoding and suppression. nmsfilter_params_init sets the defaults. Lengths are in pixels of the model's
 * input, except where a field says otherwise.
 */
typedef struct NmsfilterParams {
    /**
     * sizeof(NmsfilterParams).
     */
    size_t size;
    /**
     * The score that a detection must reach; 0.25 by default.
     */
    float score_threshold;
    /**
     * The overlap above which a detection is suppressed, 0 to 1; 0.45 by default.
     */
    float iou_threshold;
    /**
     * The scores that detections of the first classes must reach, in place of `score_threshold`; infinity excludes a class.
     * They are copied.
     */
    const float *class_score_thresholds;
    /**
     * The length of `class_score_thresholds`.
     */
    size_t class_score_threshold_count;
    /**
     * The rules of the first classes. They are copied.
     */
    const struct NmsfilterClassRule *class_rules;
    /**
     * The length of `class_rules`.
     */
    size_t class_rule_count;
    /**
     * An NmsfilterMethod.
     */
    uint32_t method;
    /**
     * An NmsfilterOverlap.
     */
    uint32_t overlap;
    /**
     * 1 if an overlap that is equal to the threshold is a conflict, too; else 0.
     */
    uint32_t threshold_inclusive;
    /**
     * 1 if detections of different classes can suppress each other; else 0.
     */
    uint32_t class_agnostic;
    /**
     * 1 if each class of an anchor that reaches its threshold is a detection; 2 if there also are at most as many detections
     * as anchors, as models with queries select them; 0 for the best class alone.
     */
    uint32_t multi_label;
    /**
     * Pixels that are added to the lengths of sides and intersections: 0, or 1 for coordinates that are indices of the first
     * and the last pixel.
     */
    float pixel_offset;
    /**
     * The least width and height of a box, at least 0; 0 by default. In pixels of the frame if `frame_size` is set.
     */
    float min_size[2];
    /**
     * The greatest width and height of a box, above 0 and at least `min_size`; infinite by default. In pixels of the frame
     * if `frame_size` is set.
     */
    float max_size[2];
    /**
     * The left, upper, right and lower edge of the visible part of the model's input, without the borders of a letterbox.
     * Boxes that do not intersect it are rejected. The whole plane by default.
     */
    float visible[4];
    /**
     * The greatest number of candidates of an image that are compared; 0, the default, for all.
     */
    size_t max_candidates;
    /**
     * The greatest number of detections of an image; 0, the default, for all.
     */
    size_t max_detections;
    /**
     * 1, the default, if masks are computed where the model gives them; else 0.
     */
    uint32_t masks;
    /**
     * An NmsfilterMaskSize.
     */
    uint32_t mask_size;
    /**
     * The width and height of the frame in pixels, 1 to 65536, or 0 and 0, the default, if there is no frame.
     * NMSFILTER_MASK_SIZE_FRAME needs a frame.
     */
    uint32_t frame_size[2];
    /**
     * Pixels of the model's input per pixel of the frame, horizontally and vertically, above 0. Ignored without a frame. With
     * 0 and 0, the default, they and `frame_offset` follow from `letterbox` and the model's size in NmsfilterOptions, and
     * `visible` by default, too.
     */
    double frame_ratio[2];
    /**
     * The left and upper edge of the frame in pixels of the model's input.
     */
    double frame_offset[2];
    /**
     * The width of the function of NMSFILTER_METHOD_SOFT_GAUSSIAN and NMSFILTER_METHOD_MATRIX_GAUSSIAN, above 0; 0 for
     * the default, 0.5.
     */
    float sigma;
    /**
     * 1 if NMSFILTER_METHOD_MERGE and NMSFILTER_METHOD_MERGE_TRANSITIVE lose boxes that do not overlap the grown box, as
     * SAHI does; 0, the default, if these boxes remain.
     */
    uint32_t lose_released;
    /**
     * An NmsfilterRegionEdges, for images that are `regions` of a frame; or for one such image, whose `visible` is the region,
     * and `frame_size`, `frame_ratio` and `frame_offset` say where the frame is. An edge of the region is inner if it is
     * inside the frame, and more than `edge_margin` away from the frame's edge.
     */
    uint32_t region_edges;
    /**
     * The distance from an inner edge at which boxes touch it, in pixels of the frame, at least 1; 0 for the default, 5.
     */
    float edge_margin;
    /**
     * The score that NMSFILTER_REGION_EDGES_LOWER lowers to, but not below the threshold of the class; 0.6 by default.
     */
    float edge_score;
    /**
     * The distance of embeddings above which candidates do not conflict with NMSFILTER_METHOD_FEATURE, at least 0; 1 by
     * default.
     */
    float embedding_distance;
    /**
     * The overlap, 0 to 1 and 0.9 by default, above which candidates conflict with NMSFILTER_METHOD_FEATURE even if their
     * embeddings differ.
     */
    float embedding_iou_threshold;
    /**
     * An NmsfilterLetterbox. Ignored without a frame, and if `frame_ratio` is set and there are no regions.
     */
    uint32_t letterbox;
    /**
     * Parts of a frame of `frame_size`, such as tiles, each of which was scaled to the model's input by `letterbox` as if it
     * were a frame. The images of a run are these parts of a frame, then those of the next frame, and so on. Results have
     * an image for each frame: its boxes, keypoints and oriented boxes are in pixels of the frame, and were compared with
     * those of all parts; row r of part i is anchor i * rows + r. Masks need NMSFILTER_MASK_SIZE_FRAME. They are copied.
     */
    const struct NmsfilterRegion *regions;
    /**
     * The length of `regions`; 0 if images are not parts of a frame.
     */
    size_t region_count;
} NmsfilterParams;

/**
 * A tensor: one output of a model. Set all bytes to 0, then `size` and the needed fields.
 */
typedef struct NmsfilterTensor {
    /**
     * sizeof(NmsfilterTensor).
     */
    size_t size;
    /**
     * The tensor's id or the name of the model's output, by which a decoder is chosen unless one is set; UTF-8 or NULL.
     */
    const char *id;
    /**
     * An NmsfilterElementType.
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
     * An NmsfilterMemory.
     */
    uint32_t memory;
    /**
     * An NmsfilterReady, of device memory.
     */
    uint32_t ready;
    /**
     * The CUevent or CUstream of `ready`.
     */
    void *ready_after;
    /**
     * The first element, or its device address. NULL with `images`.
     */
    const void *data;
    /**
     * In place of `data`, where the images of a batch are in separate allocations: an array with the address of the first
     * element of each image, one for each index of the shape's first dimension.
     */
    const void *const *images;
    /**
     * The number of bytes at `data`, or at the address of each image: at least as many as the shape (of an image)
     * requires.
     */
    size_t bytes;
    /**
     * The step of quantized elements of type i8 or u8, which stand for (element - zero_point) * scale; 0 if elements are
     * not quantized.
     */
    float scale;
    /**
     * The element that stands for 0.
     */
    int32_t zero_point;
} NmsfilterTensor;

/**
 * The result of a run.
 */
typedef struct NmsfilterResult {
    /**
     * sizeof(NmsfilterResult), which the caller sets.
     */
    size_t size;
    /**
     * The number of images. nmsfilter_image has the detections of each.
     */
    size_t image_count;
    /**
     * The engine that ran: "cpu" or "cuda". With NMSFILTER_BACKEND_AUTO it is chosen for each run.
     */
    const char *engine;
    /**
     * The bytes that were copied to the GPU.
     */
    uint64_t bytes_uploaded;
    /**
     * The bytes that were copied from the GPU.
     */
    uint64_t bytes_downloaded;
    /**
     * The time from the start of the first kernel to the end of the last kernel; 0 for a run on the CPU.
     */
    uint64_t device_nanoseconds;
} NmsfilterResult;

/**
 * A detection, in host and in device memory. This record does not change.
 */
typedef struct NmsfilterDetection {
    /**
     * The left edge, in pixels of the model's input; with regions, of the frame.
     */
    float x1;
    /**
     * The upper edge.
     */
    float y1;
    /**
     * The right edge.
     */
    float x2;
    /**
     * The lower edge.
     */
    float y2;
    /**
     * The score.
     */
    float score;
    /**
     * The index of the class, from 0.
     */
    uint32_t class_id;
    /**
     * The index of the anchor, from 0, within the image.
     */
    uint32_t anchor;
} NmsfilterDetection;

/**
 * An oriented box, in the pixels of NmsfilterDetection. This record does not change.
 */
typedef struct NmsfilterOrientedBox {
    /**
     * The x coordinate of the center.
     */
    float center_x;
    /**
     * The y coordinate of the center.
     */
    float center_y;
    /**
     * The side to which the angle belongs.
     */
    float width;
    /**
     * The other side.
     */
    float height;
    /**
     * The angle of the side `width` in radians, clockwise from the x axis.
     */
    float angle;
} NmsfilterOrientedBox;

/**
 * A keypoint, in the pixels of NmsfilterDetection. This record does not change.
 */
typedef struct NmsfilterPoint {
    /**
     * The x coordinate, as the model gives it: it can be NaN or infinite.
     */
    float x;
    /**
     * The y coordinate.
     */
    float y;
    /**
     * The visibility, as the model gives it; 1 if the model gives none.
     */
    float visibility;
} NmsfilterPoint;

/**
 * The mask of a detection: the pixels of its box only. This record does not change.
 */
typedef struct NmsfilterMask {
    /**
     * The column of the first pixel of a row, in pixels of the prototypes or of the frame.
     */
    uint32_t left;
    /**
     * The first row.
     */
    uint32_t top;
    /**
     * The number of pixels of a row; 0 if the detection has no mask.
     */
    uint32_t width;
    /**
     * The number of rows.
     */
    uint32_t height;
    /**
     * The rows, of `width` bits each, padded to whole bytes, the most significant bit first; NULL if the detection has no
     * mask.
     */
    const uint8_t *bytes;
} NmsfilterMask;

/**
 * The detections of an image, best first. Pointers are valid until the next run of the handle.
 */
typedef struct NmsfilterImage {
    /**
     * sizeof(NmsfilterImage), which the caller sets.
     */
    size_t size;
    /**
     * The number of detections.
     */
    size_t count;
    /**
     * The detections.
     */
    const struct NmsfilterDetection *detections;
    /**
     * The oriented box of each detection; NULL if boxes are upright.
     */
    const struct NmsfilterOrientedBox *oriented_boxes;
    /**
     * The keypoints, `points_per_detection` for the first detection, then for the second, and so on; NULL if the
     * model gives none.
     */
    const struct NmsfilterPoint *points;
    /**
     * The number of keypoints of each detection.
     */
    size_t points_per_detection;
    /**
     * The mask of each detection; NULL if no detection of the run has one.
     */
    const struct NmsfilterMask *masks;
    /**
     * Numbers of the tensor that detections carry along, as the layout names them: `columns_per_detection` for the first
     * detection, then for the second, and so on; NULL if the layout names none.
     */
    const float *columns;
    /**
     * The number of these numbers per detection.
     */
    size_t columns_per_detection;
    /**
     * The number of anchors (with `multi_label`, of anchors with a class) that reached the threshold.
     */
    size_t candidates;
    /**
     * The number of anchors that were rejected because their numbers are not finite, form no box, or one outside of the
     * visible part of the model's input.
     */
    size_t rejected;
} NmsfilterImage;

/**
 * The result of a run in device memory. It belongs to the handle and is valid, in the order of the run's stream, until the
 * handle's next run.
 */
typedef struct NmsfilterDeviceResult {
    /**
     * sizeof(NmsfilterDeviceResult), which the caller sets.
     */
    size_t size;
    /**
     * The number of the GPU.
     */
    uint32_t cuda_device;
    /**
     * The number of bytes from the NmsfilterDeviceCounts of an image to the next.
     */
    uint32_t count_size;
    /**
     * The number of images.
     */
    size_t image_count;
    /**
     * The number of detections per image for which there is memory.
     */
    size_t capacity;
    /**
     * The device address of `image_count` x NmsfilterDeviceCounts.
     */
    uint64_t counts;
    /**
     * The device address of `image_count` x `capacity` x NmsfilterDetection. Each image's detections are best first, and
     * followed by zeros.
     */
    uint64_t detections;
    /**
     * The device address of `image_count` x `capacity` x `columns_per_detection` numbers of type float that detections
     * carry along; 0 if there are none.
     */
    uint64_t columns;
    /**
     * The number of these numbers per detection.
     */
    size_t columns_per_detection;
} NmsfilterDeviceResult;

/**
 * How boxes are suppressed. nmsfilter_boxes_params_init sets the defaults.
 */
typedef struct NmsfilterBoxesParams {
    /**
     * sizeof(NmsfilterBoxesParams).
     */
    size_t size;
    /**
     * The overlap above which a box is suppressed, 0 to 1; 0.5 by default.
     */
    double iou_threshold;
    /**
     * An NmsfilterMethod.
     */
    uint32_t method;
    /**
     * An NmsfilterOverlap.
     */
    uint32_t overlap;
    /**
     * The greatest number of boxes to keep; 0, the default, for all.
     */
    size_t max_detections;
    /**
     * The score that the boxes of nmsfilter_boxes_merge must reach, before and after scores are lowered; minus infinity by
     * default.
     */
    float score_threshold;
    /**
     * See `sigma` of NmsfilterParams.
     */
    float sigma;
    /**
     * See `threshold_inclusive` of NmsfilterParams; 0 by default.
     */
    uint32_t threshold_inclusive;
    /**
     * 1 if boxes of different groups can suppress each other or merge; 0 by default.
     */
    uint32_t class_agnostic;
    /**
     * See `lose_released` of NmsfilterParams.
     */
    uint32_t lose_released;
    /**
     * See `embedding_distance` of NmsfilterParams.
     */
    float embedding_distance;
    /**
     * See `embedding_iou_threshold` of NmsfilterParams.
     */
    float embedding_iou_threshold;
} NmsfilterBoxesParams;

/**
 * The boxes of nmsfilter_boxes_merge, best first. The arrays are valid until the next run of the handle.
 */
typedef struct NmsfilterMergedBoxes {
    /**
     * sizeof(NmsfilterMergedBoxes).
     */
    size_t size;
    /**
     * The number of boxes.
     */
    size_t count;
    /**
     * The left, upper, right and lower edge of each box: 4 * `count` numbers.
     */
    const float *boxes;
    /**
     * The final score of each box.
     */
    const float *scores;
    /**
     * The class of each box, as passed; NULL if no classes were passed.
     */
    const int64_t *classes;
    /**
     * For each box, the index of the box from which its class is.
     */
    const uint32_t *keepers;
    /**
     * The indices of the boxes that were merged into the keepers, one list after the other.
     */
    const uint32_t *merged;
    /**
     * For each box, the end of its list in `merged`. The list begins where the preceding list ends, the first one at 0.
     */
    const size_t *merged_ends;
} NmsfilterMergedBoxes;

/**
 * An input or an output of a model. Set all bytes to 0, then all fields.
 */
typedef struct NmsfilterModelTensorInfo {
    /**
     * sizeof(NmsfilterModelTensorInfo).
     */
    size_t size;
    /**
     * The name; UTF-8.
     */
    const char *name;
    /**
     * The type of the elements, as ONNX and ONNX Runtime number it: 1 for float, 10 for half precision, and so on
     * (ONNXTensorElementDataType), which is not an NmsfilterElementType.
     */
    uint32_t onnx_type;
    /**
     * The number of dimensions, 0 to 8.
     */
    uint32_t dimensions;
    /**
     * The dimensions; -1 for those that are dynamic.
     */
    int64_t shape[8];
} NmsfilterModelTensorInfo;

/**
 * What a model's inputs and outputs say about it.
 */
typedef struct NmsfilterSignature {
    /**
     * sizeof(NmsfilterSignature), which the caller sets.
     */
    size_t size;
    /**
     * The name of the signature, which is valid until the process ends; NULL if the program that exported the model is not
     * known, and all other fields are 0.
     */
    const char *name;
    /**
     * The numbers that each input takes, in the model's order: an NmsfilterInputNumbers.
     */
    uint32_t inputs[4];
    /**
     * An NmsfilterLetterbox: how frames are fitted into the picture.
     */
    uint32_t letterbox;
    /**
     * The picture's width; 0 if it is dynamic, and such models have no usual size.
     */
    uint32_t width;
    /**
     * The picture's height.
     */
    uint32_t height;
    /**
     * An NmsfilterPictureLayout.
     */
    uint32_t layout;
    /**
     * 1 if the first channel is blue; 0 if it is red.
     */
    uint32_t is_bgr;
    /**
     * 1 if models of the exporter have other pixels, too: `is_bgr`, `range`, `mean` and `deviation` are then those of the
     * model's configuration.
     */
    uint32_t pixels_vary;
    /**
     * The numbers of black and white. A channel's value v, 0 to 255, becomes
     * (range[0] + v * (range[1] - range[0]) / 255 - mean) / deviation.
     */
    double range[2];
    /**
     * For red, green and blue.
     */
    double mean[3];
    /**
     * For red, green and blue.
     */
    double deviation[3];
    /**
     * The number of outputs with masks or keypoints, which are not read.
     */
    uint32_t unread;
} NmsfilterSignature;

/**
 * The counts of an image in device memory. Its beginning does not change; it has NmsfilterDeviceResult.count_size bytes.
 */
typedef struct NmsfilterDeviceCounts {
    /**
     * Reserved.
     */
    uint32_t reserved0;
    /**
     * The number of anchors (with `multi_label`, of anchors with a class) that reached the threshold.
     */
    uint32_t candidates;
    /**
     * The number of anchors that were rejected.
     */
    uint32_t rejected;
    /**
     * The number of detections.
     */
    uint32_t detections;
    /**
     * The greatest dependency depth of a decision.
     */
    uint32_t rounds;
    /**
     * The time from the start of the first kernel to the end of the last kernel.
     */
    uint32_t nanoseconds;
    /**
     * Reserved.
     */
    uint32_t reserved[2];
} NmsfilterDeviceCounts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library: major x 10000 + minor x 100 + patch. The header's version is NMSFILTER_VERSION.
 */
uint32_t nmsfilter_version(void);

/**
 * Makes a handle at `filter`, with the default options and parameters.
 *
 * `backend` is an NmsfilterBackend. `cuda_device` is the number of the GPU, or -1 for the one that holds the tensors, and of
 * tensors in host memory the first. NMSFILTER_BACKEND_AUTO opens no GPU here. If it fails, NULL is stored, and
 * nmsfilter_error_text(NULL) has the text.
 */
enum NmsfilterStatus nmsfilter_new(uint32_t backend,
                                   int32_t cuda_device,
                                   struct Nmsfilter **filter);

/**
 * Frees a handle and its results. NULL has no effect.
 */
void nmsfilter_free(struct Nmsfilter *filter);

/**
 * The text of the error of the last function of the handle that failed; with NULL, of the last function without a handle
 * that failed on this thread, such as nmsfilter_new. It is valid until the next function of the handle, or of the thread,
 * fails. Empty if none has failed.
 */
const char *nmsfilter_error_text(const struct Nmsfilter *filter);

/**
 * The name of a decoder, for nmsfilter_set_decoder; NULL from the number of decoders on.
 */
const char *nmsfilter_decoder_name(size_t index);

/**
 * Reads tensors by the decoder of this name, whatever their ids. NULL, which is the default, chooses the decoder by ids and
 * shapes.
 */
enum NmsfilterStatus nmsfilter_set_decoder(struct Nmsfilter *filter,
                                           const char *name);

/**
 * Reads tensors by a layout, whatever their ids. `text` is the content of a layout file. A copy remains until the process
 * ends, once for each text.
 */
enum NmsfilterStatus nmsfilter_set_layout(struct Nmsfilter *filter,
                                          const char *text);

/**
 * Sets the facts about the model that its tensors do not contain.
 */
enum NmsfilterStatus nmsfilter_set_options(struct Nmsfilter *filter, const struct NmsfilterOptions *options);

/**
 * Sets the parameters of decoding and suppression.
 */
enum NmsfilterStatus nmsfilter_set_params(struct Nmsfilter *filter, const struct NmsfilterParams *params);

/**
 * Decodes tensors and suppresses duplicate detections, for each image separately. Waits for the result.
 *
 * `tensors` is an array of structures that all have the size of the first. The memory of the tensors is read during the
 * call only. `result` can be NULL. Earlier results are not valid any more, also if the function fails.
 */
enum NmsfilterStatus nmsfilter_run(struct Nmsfilter *filter,
                                   const struct NmsfilterTensor *tensors,
                                   size_t tensor_count,
                                   struct NmsfilterResult *result);

/**
 * The detections of an image of the last run. Its pointers are valid until the next run of the handle.
 */
enum NmsfilterStatus nmsfilter_image(struct Nmsfilter *filter, size_t index, struct NmsfilterImage *image);

/**
 * Decodes and suppresses on a GPU in the order of a stream, and does not wait for it: the run reads tensors that earlier
 * work in `cuda_stream` writes to device memory, and later work in it reads the results in device memory.
 *
 * `cuda_stream` is a CUstream; NULL is the default stream. The memory of tensors must exist until the run has completed on
 * the GPU; tensors in host memory are copied during the call. Masks and the greatest number of detections of a class
 * need the host: they are errors. Results of nmsfilter_run are not valid any more, also if the function fails.
 */
enum NmsfilterStatus nmsfilter_enqueue(struct Nmsfilter *filter,
                                       const struct NmsfilterTensor *tensors,
                                       size_t tensor_count,
                                       void *cuda_stream,
                                       struct NmsfilterDeviceResult *result);

/**
 * Says that the last run was of the last image: what the images of the handle have shown is added to the warnings, even if
 * they are too few to be sure. Later runs are possible.
 */
enum NmsfilterStatus nmsfilter_finish(struct Nmsfilter *filter);

/**
 * A warning of the runs of the handle: the tensors are probably not of the decoder or the options with which they are read,
 * so that boxes are wrong, or nothing is detected. NULL from the number of warnings on. Warnings are in the order in which
 * they were found, each once. Some come after ten images only, and most need nmsfilter_run.
 * nmsfilter_finish judges fewer images.
 *
 * The text is valid until the handle is freed, or until nmsfilter_set_decoder or nmsfilter_set_layout.
 */
const char *nmsfilter_warning(const struct Nmsfilter *filter,
                              size_t index);

/**
 * Sets all fields of `params` to their defaults. `size` is sizeof(NmsfilterParams).
 */
enum NmsfilterStatus nmsfilter_params_init(struct NmsfilterParams *params, size_t size);

/**
 * Sets all fields of `params` to their defaults. `size` is sizeof(NmsfilterBoxesParams).
 */
enum NmsfilterStatus nmsfilter_boxes_params_init(struct NmsfilterBoxesParams *params, size_t size);

/**
 * Makes a handle at `boxes`, with the default parameters; nmsfilter_new explains the arguments. If it fails, NULL is
 * stored, and nmsfilter_boxes_error_text(NULL) has the text.
 */
enum NmsfilterStatus nmsfilter_boxes_new(uint32_t backend,
                                         int32_t cuda_device,
                                         struct NmsfilterBoxes **boxes);

/**
 * Frees a handle and its result. NULL has no effect.
 */
void nmsfilter_boxes_free(struct NmsfilterBoxes *boxes);

/**
 * The text of the error of the last function of the handle that failed, or with NULL of the thread; see
 * nmsfilter_error_text.
 */
const char *nmsfilter_boxes_error_text(const struct NmsfilterBoxes *boxes);

/**
 * Sets how boxes are suppressed.
 */
enum NmsfilterStatus nmsfilter_boxes_set_params(struct NmsfilterBoxes *boxes,
                                                const struct NmsfilterBoxesParams *params);

/**
 * Suppresses duplicates among boxes. `kept` becomes an array of the indices of the `count` boxes that are kept, best first.
 * It is valid until the next run of the handle.
 *
 * `corners` has the shape [N,4]: left, upper, right and lower edge; or [N,5]: center x, center y, width, height, and the
 * angle in radians, clockwise on the screen. `scores` has the shape [N]. Both are of type f32 or f16. `groups` is NULL, or
 * has the shape [N] and integers of type i32 or i64: boxes of different groups do not suppress each other.
 */
enum NmsfilterStatus nmsfilter_boxes_run(struct NmsfilterBoxes *boxes,
                                         const struct NmsfilterTensor *corners,
                                         const struct NmsfilterTensor *scores,
                                         const struct NmsfilterTensor *groups,
                                         const uint32_t **kept,
                                         size_t *count);

/**
 * The warning of the last nmsfilter_boxes_run: the angles of oriented boxes in host memory are probably degrees. NULL if
 * there is none. The text is valid until the next run of the handle.
 */
const char *nmsfilter_boxes_warning(const struct NmsfilterBoxes *boxes);

/**
 * Suppresses, merges or rescores boxes on the CPU, by `method` of NmsfilterBoxesParams. `merged` is written; its `size` must
 * be set.
 *
 * The tensors are as for nmsfilter_boxes_run, with corners of the shape [N,4]. `classes` is NULL or has the classes as
 * groups. `column` has the numbers that the method reads, of type f32 or f16: densities [N] for NMSFILTER_METHOD_ADAPTIVE,
 * embeddings [N,E] with E from 1 to 1024 for NMSFILTER_METHOD_FEATURE; NULL for other methods. Boxes without area, or with a
 * number that is not finite, remain unchanged.
 */
enum NmsfilterStatus nmsfilter_boxes_merge(struct NmsfilterBoxes *boxes,
                                           const struct NmsfilterTensor *corners,
                                           const struct NmsfilterTensor *scores,
                                           const struct NmsfilterTensor *classes,
                                           const struct NmsfilterTensor *column,
                                           struct NmsfilterMergedBoxes *merged);

/**
 * Suppresses on a GPU in the order of a stream, and does not wait for it, as nmsfilter_enqueue does. The index of a box that
 * is kept is `anchor` of its NmsfilterDetection.
 *
 * If `candidates` of NmsfilterDeviceCounts is less than the number of boxes, boxes are missing that nmsfilter_boxes_run keeps:
 * boxes without area or with a number that is not finite, and boxes of groups other than 0 to 65535.
 */
enum NmsfilterStatus nmsfilter_boxes_enqueue(struct NmsfilterBoxes *boxes,
                                             const struct NmsfilterTensor *corners,
                                             const struct NmsfilterTensor *scores,
                                             const struct NmsfilterTensor *groups,
                                             void *cuda_stream,
                                             struct NmsfilterDeviceResult *result);

/**
 * Recognizes a model by the names, element types and dimensions of all its inputs and outputs, as the element ortinference
 * does, and stores what is known of it at `signature`. An unknown model is no error.
 *
 * `options` and `params` can be NULL. Otherwise the fields that the signature decides are set: `model_width` and
 * `model_height`; `method`, `multi_label` and `letterbox`. Then pass them to nmsfilter_set_options and
 * nmsfilter_set_params.
 *
 * `name` is the signature that is taken; NULL for the only one. A model with the signatures of several exporters, or others
 * than `name`, is an error, whose text nmsfilter_error_text(NULL) has. The metadata of the file are not read.
 */
enum NmsfilterStatus nmsfilter_signature(const struct NmsfilterModelTensorInfo *inputs,
                                         size_t input_count,
                                         const struct NmsfilterModelTensorInfo *outputs,
                                         size_t output_count,
                                         const char *name,
                                         struct NmsfilterSignature *signature,
                                         struct NmsfilterOptions *options,
                                         struct NmsfilterParams *params);

/**
 * Prepares the outputs of a run for nmsfilter_run: replaces the ids of tensors, which are the names of the model's outputs,
 * by those by which the decoder of the signature is chosen, moves the tensors that are read to the front of the array, and
 * stores their number at `count`, which is that of all tensors before.
 *
 * Some signatures look at the tensors' numbers, in host memory: whether scores are logits, and whether all rows are of the
 * first picture.
 */
enum NmsfilterStatus nmsfilter_signature_tensors(const struct NmsfilterSignature *signature,
                                                 struct NmsfilterTensor *tensors,
                                                 size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NMSFILTER_NMSFILTER_H */
