// SPDX-License-Identifier: MIT OR Apache-2.0
// Written by NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header. Sources:
//   core/src/geometry/overlap/mod.rs
//   core/src/decoder/layout/mod.rs
//   core/src/engine/mod.rs


#pragma once

#include "integers.cuh"

// The greatest number of groups of a layout.
#define MAX_GROUPS 8

// The greatest number of columns of a layout.
#define MAX_COLUMNS 4

// The greatest number of components of all columns together.
#define MAX_COLUMN_COMPONENTS 1024

// The greatest number of anchors per grid cell with listed sizes.
#define MAX_SIZES 6

// The greatest length of a box's side, in pixels. Areas, and sums of two areas, do not overflow below it.
#define MAX_BOX_SIDE 1.0e9

// Threads per block.
#define DECODE_THREADS 256

#define MAP_THREADS 512

#define REDUCE_THREADS 512

#define PUBLISH_THREADS 1024

// One block publishes the survivors of up to this many candidates of a group.
#define PUBLISH_STEP_RANKS 4096

// With more candidates, each block publishes the survivors of this many.
#define PUBLISH_SHARED_RANKS 1024

#define SORT_THREADS 1024

#define CHUNK_THREADS 256

// The first chunk has about KernelParams::first_chunk candidates. Each further chunk multiplies the
// total number of candidates so far by about this number.
#define CHUNK_GROWTH 8

// The greatest number of chunks.
#define MAX_CHUNKS 8

// A group's workspace is a header of this size, and arrays.
#define HEADER_BYTES 512

// The size of the arrays (workspace.cuh) per candidate. Their capacity is rounded up to a multiple
// of 64, so that every array is aligned to 256 bytes.
#define BYTES_PER_CANDIDATE 324

// The size of one more array, per candidate, for kernels for oriented boxes.
#define RECTANGLE_BYTES 32

// The size of the SortState, for kernels that sort.
#define SORT_STATE_BYTES 16896

// The size of further arrays per candidate, for kernels that sort.
#define SORT_BYTES_PER_CANDIDATE 8

// The greatest number of candidates of a leaf.
#define LEAF_CANDIDATES 32

// The size of further arrays per leaf, for kernels that sort.
#define LEAF_BYTES (28 + (LEAF_CANDIDATES * 24))

// Threads per block.
#define MASK_THREADS 512

// Threads per block of most kernels that merge boxes or lower scores.
#define MERGE_THREADS 256

// Threads per block of merge_fuse, merge_soften and merge_by_column.
#define PART_THREADS 512

// The function that turns a tensor's scores into probabilities.
enum Activation : uint32_t {
    // None: scores are probabilities, or have no unit.
    ACTIVATION_NONE = 0,
    // The logistic function of each score and of objectness.
    ACTIVATION_SIGMOID = 1,
    // Softmax over all scores of an anchor, including the background's. Objectness is not changed.
    ACTIVATION_SOFTMAX = 2,
};

// The order of the components of the two axes.
enum Axes : uint32_t {
    // x before y, width before height.
    AXES_XY = 0,
    // y before x, height before width.
    AXES_YX = 1,
};

// The components of a box.
enum BoxFormat : uint32_t {
    // Left, upper, right and lower edge.
    BOX_FORMAT_CORNERS = 0,
    // Center x, center y, width, height.
    BOX_FORMAT_CENTER = 1,
    // Left edge, upper edge, side; a side of zero marks an empty slot.
    BOX_FORMAT_SQUARE = 2,
    // Distances from a point to the left, upper, right and lower edge.
    BOX_FORMAT_DISTANCES = 3,
};

// The function applied to the components of a box before they are related to the reference.
enum BoxTransform : uint32_t {
    // Nothing.
    BOX_TRANSFORM_NONE = 0,
    // Sizes are logarithms: exp. Positions are not changed.
    BOX_TRANSFORM_EXP = 1,
    // YOLOv5 to v7: positions are 2 sigmoid(v) - 0.5, sizes (2 sigmoid(v))^2.
    BOX_TRANSFORM_SIGMOID = 2,
    // YOLOv3 and v4: positions are sigmoids, scaled around the middle of the cell by [`Grid::scale_xy`]; sizes are
    // logarithms.
    BOX_TRANSFORM_SIGMOID_EXP = 4,
    // Each component is the expectation of a distribution over `bins` integers from 0 on, whose logits are the
    // tensor's numbers: [`BoxRule::bins`] for the first component, then for the second, and so on
    // (Generalized Focal Loss, Li et al. 2020).
    BOX_TRANSFORM_EXPECTATION = 3,
};

// How objectness and the score of a class are combined.
enum Combination : uint32_t {
    // Their product.
    COMBINATION_PRODUCT = 0,
    // The square root of the product of both, each limited to 0 to 1.
    COMBINATION_SQUARE_ROOT = 1,
};

// The type of a tensor's elements.
enum Element : uint32_t {
    ELEMENT_F32 = 0,
    ELEMENT_F16 = 1,
    ELEMENT_I8 = 2,
    ELEMENT_U8 = 3,
    ELEMENT_I32 = 4,
    ELEMENT_I64 = 5,
};

// The method of suppression, merging or rescoring, which decides which candidates survive.
//
// The section "Merging and rescoring" of the [rules](super) defines the methods that change boxes
// or scores.
enum Method : uint32_t {
    // A candidate survives if it conflicts with no survivor of higher rank: exact greedy
    // suppression.
    METHOD_GREEDY = 0,
    // A candidate survives if it conflicts with no candidate of higher rank, even one that is
    // suppressed: the single pass of Oro et al. 2020.
    METHOD_MAP_REDUCE = 1,
    // All candidates survive.
    METHOD_NONE = 2,
    // A survivor of [`Greedy`](Self::Greedy) gets the union of its box and of the boxes that it
    // suppresses: SAHI's greedy merging (`GREEDYNMM`).
    METHOD_MERGE = 3,
    // Like [`Merge`](Self::Merge), but a box also merges with the boxes that its suppressed boxes suppress:
    // SAHI's transitive merging (`NMM`), except that boxes join in descending rank, and there by index.
    METHOD_MERGE_TRANSITIVE = 4,
    // Boxes that overlap the weighted mean of a cluster join the cluster: Weighted Boxes Fusion
    // (Solovyev, Wang, Gabruseva 2021).
    METHOD_WEIGHTED_FUSION = 5,
    // A survivor of [`Greedy`](Self::Greedy) gets the mean of its box and of the boxes that it
    // suppresses, weighted by score: the weighted suppression of MediaPipe. Non-maximum weighted (`ensemble_boxes`)
    // weights by score times IoU, and a box joins the box of the greatest IoU.
    METHOD_WEIGHTED_AVERAGE = 6,
    // Conflicting candidates get lower scores, by the factor 1 - overlap: Soft-NMS (Bodla et al.
    // 2017).
    METHOD_SOFT_LINEAR = 7,
    // Intersecting candidates get lower scores, by a Gaussian function of the overlap: Soft-NMS
    // (Bodla et al. 2017).
    METHOD_SOFT_GAUSSIAN = 8,
    // Scores are lowered in one pass, by linear decay: Matrix NMS (Wang et al. 2020, SOLOv2).
    METHOD_MATRIX_LINEAR = 9,
    // Scores are lowered in one pass, by Gaussian decay: Matrix NMS (Wang et al. 2020, SOLOv2).
    METHOD_MATRIX_GAUSSIAN = 10,
    // Like [`Greedy`](Self::Greedy), but the threshold is at least the density of the candidate of
    // higher rank, a column of the layout: Adaptive-NMS (Liu, Huang, Wang 2019).
    METHOD_ADAPTIVE = 11,
    // Like [`Greedy`](Self::Greedy), but candidates with different embeddings, a column of the
    // layout, do not conflict: FeatureNMS (Salscheider 2020).
    METHOD_FEATURE = 12,
};

// The measure by which two boxes conflict; `t` is the threshold, `x` is multiplication. Boxes that
// do not intersect do not conflict.
enum Overlap : uint32_t {
    // Intersection over union: intersection > t x union.
    OVERLAP_IOU = 0,
    // Intersection over the area of the box of higher rank (Oro et al. 2020): intersection > t x that area.
    OVERLAP_REPRESENTATIVE = 1,
    // Intersection over the smaller area: intersection > t x smaller area.
    OVERLAP_SMALLER = 2,
    // Distance-IoU (Zheng et al. 2020): intersection / union - (distance of the centers / diagonal
    // of the enclosing box)^2 > t.
    OVERLAP_DIOU = 3,
    // For oriented boxes only: 1 - the Hellinger distance of the Gaussian distributions with the means and covariances
    // of the boxes (Llerena et al. 2021), greater than t.
    OVERLAP_PROB_IOU = 4,
};

// The reference that boxes are relative to. The table stores x before y; priors are stored in the
// order of LayoutParams::axes.
enum ReferenceKind : uint32_t {
    REFERENCE_KIND_NONE = 0,
    REFERENCE_KIND_GRID = 1,
    REFERENCE_KIND_PRIORS = 2,
    REFERENCE_KIND_TABLE = 3,
};

// Determines which groups of images have their candidates sorted, to avoid comparing all pairs.
struct SortLimits;

// The parameters of a launch of merge_by_column.
struct ByColumnParams {
    // The index of the column in ColumnParams.
    uint32_t column;
    uint32_t components;
    // 0 or 1: the column has embeddings, not densities.
    uint32_t is_embedding;
    float embedding_distance;
    float embedding_iou_threshold;
};

// The rules of a class.
struct ClassRule {
    // The threshold of pairs whose lower-ranked candidate has this class.
    float iou_threshold;
    // In the pixels in which sizes are set: PlaceParams::limit_ratio.
    float min_size[2];
    float max_size[2];
};

// Component c of anchor a of image i is the element at a * anchor_stride + c * component_stride
// from the image's address. The image's address is `address` + i * image_stride, or with a table of
// images `address` + entry i of the table.
struct LayoutField {
    // Device address of component 0 of anchor 0 of image 0; with a table, bytes.
    uint64_t address;
    // Device address of the table of images, of type uint64_t; 0: no table.
    uint64_t images;
    // In bytes.
    uint64_t image_stride;
    // In elements.
    uint64_t anchor_stride;
    // In elements.
    uint64_t component_stride;
    // An Element.
    uint32_t element;
    // 1: an element stands for (element - zero_point) * scale.
    uint32_t is_quantized;
    float scale;
    float zero_point;
};

// The columns of a layout.
struct ColumnParams {
    LayoutField fields[MAX_GROUPS][MAX_COLUMNS];
    uint32_t first_anchor[MAX_GROUPS];
    // The number of components of the preceding columns.
    uint32_t first_component[MAX_COLUMNS];
    uint32_t group_count;
    uint32_t column_count;
    // The components of all columns.
    uint32_t components;
    uint32_t reserved;
};

// A candidate or survivor.
struct Detection {
    // Left edge, in the pixels of [`ImagePlace::boxes`].
    float x1;
    // Upper edge, in the pixels of [`ImagePlace::boxes`].
    float y1;
    // Right edge; `x2 > x1`.
    float x2;
    // Lower edge; `y2 > y1`.
    float y2;
    // Score; finite, never minus zero.
    float score;
    // Index of the class, from 0.
    uint32_t class_;
    // Index of the anchor, from 0, within the image. In a group of several images, an image's
    // anchors follow the anchors of the preceding image.
    uint32_t anchor;
};

// The counts of a group of images, in the form that the GPU writes.
struct ResultHeader {
    // For runs that are waited for: becomes nonzero once the group's result is complete.
    uint32_t sequence;
    // The number of anchors, or of pairs with [`Params::multi_label`](super::Params::multi_label), that became candidates.
    uint32_t candidates;
    // The number of anchors, or of pairs, that were rejected.
    uint32_t rejected;
    // The number of survivors.
    uint32_t survivors;
    // The greatest dependency depth of a decision.
    uint32_t rounds;
    // The time from the start of the first kernel to the end of the last kernel.
    uint32_t nanoseconds;
    uint32_t reserved[2];
};

// Number c of anchor a of image i is the element at i * image_stride + a * anchor_stride + c *
// component_stride from the address. If the tensor has a table of images (KernelParams), it is the
// element at a * anchor_stride + c * component_stride from the sum of the address and entry i of
// the table, and image_stride is 0.
struct FieldParams {
    // Device address of number 0 of anchor 0 of image 0; with a table, bytes.
    uint64_t address;
    // In elements.
    uint64_t image_stride;
    // In elements.
    uint64_t anchor_stride;
    // In elements.
    uint64_t component_stride;
};

// The numbers with which the boxes of an image are decoded (core/src/engine/place.rs). Aligned to
// 16 bytes in a table.
struct PlaceParams {
    // Pixels of boxes per unit of the tensor.
    float scale[2];
    // Added to corners, or to the center of an oriented box, unless it is zero.
    float offset[2];
    // Left, top, right, bottom: boxes that do not intersect it are rejected.
    float visible[4];
    // The limit of classes without rules.
    float min_size[2];
    // The limit of classes without rules.
    float max_size[2];
    // The factor of the sizes of a ClassRule.
    double limit_ratio[2];
};

// The parameters of a launch. Plain data, aligned to 8 bytes, without padding.
struct KernelParams {
    FieldParams boxes;
    FieldParams scores;
    // The element type is the scores' type. Read with has_objectness.
    FieldParams objectness;
    // Device address of class_threshold_count floats, by class; or 0.
    uint64_t class_thresholds;
    // The number of classes with a threshold of their own.
    uint32_t class_threshold_count;
    // The threshold of all other classes.
    float threshold;
    // The minimum over all classes of the layout.
    float lowest_threshold;
    uint32_t images;
    // Anchors of each image.
    uint32_t anchors;
    uint32_t classes;
    // Threads that share an anchor's classes: 1 or 8.
    uint32_t lanes_per_anchor;
    // A BoxFormat.
    uint32_t box_format;
    // A Method.
    uint32_t method;
    // An Overlap.
    uint32_t overlap;
    float iou_threshold;
    float pixel_offset;
    // 0 or 1.
    uint32_t threshold_inclusive;
    // 0 or 1.
    uint32_t class_agnostic;
    // The greatest number of candidates of a group; 0: no limit.
    uint32_t max_candidates;
    // The greatest number of survivors of a group; 0: no limit.
    uint32_t max_detections;
    // The value of ResultHeader::sequence. Not 0.
    uint32_t sequence;
    // 0 or 1.
    uint32_t multi_label;
    // The number of candidates of a group that there is memory for.
    uint32_t capacity;
    // 0 or 1.
    uint32_t has_objectness;
    // For tensors whose images have no constant stride: the device address of a table with each
    // image's device address, `images` entries of type uint64_t. 0: no table.
    uint64_t box_images;
    // As box_images, for the scores and the objectness.
    uint64_t score_images;
    // Rules for single classes: the device address of class_rule_count entries of type ClassRule,
    // by class; or 0. iou_threshold and the sizes in PlaceParams apply to all other classes.
    uint64_t class_rules;
    uint32_t class_rule_count;
    // The minimum over all classes.
    float lowest_iou_threshold;
    // The number of candidates of a group above which they are sorted.
    uint32_t sort_limit;
    // The approximate number of candidates in the first chunk. Not 0.
    uint32_t first_chunk;
    // The place of every image, if there is no table.
    PlaceParams place;
    // The device address of a table with a PlacedImage for each image. 0: no table; image i is then
    // the only image of group i.
    uint64_t placed_images;
};

// A set of anchors whose numbers are in one set of fields. Fields that the layout lacks are not
// read.
struct LayoutGroup {
    LayoutField boxes;
    // With the background's score first or last, if there is one.
    LayoutField scores;
    LayoutField objectness;
    LayoutField class_index;
    // For REFERENCE_KIND_PRIORS and REFERENCE_KIND_TABLE.
    LayoutField priors;
    // Of oriented boxes.
    LayoutField angle;
    // The number of anchors in the preceding groups.
    uint32_t first_anchor;
    uint32_t anchors;
    // The number of blocks of the preceding groups.
    uint32_t first_block;
    // Threads that share an anchor's classes: 1 or 8.
    uint32_t lanes;
    // A ReferenceKind.
    uint32_t reference;
    // For REFERENCE_KIND_GRID, with the following fields: core/src/decoder/layout/box_rule.rs.
    uint32_t columns;
    uint32_t per_cell;
    // 0 or 1.
    uint32_t by_cell;
    float stride[2];
    float offset;
    uint32_t size_count;
    float scale_xy;
    uint32_t reserved;
    float sizes[MAX_SIZES][2];
};

// A layout (core/src/decoder/layout).
struct LayoutParams {
    LayoutGroup groups[MAX_GROUPS];
    // Read with has_count.
    LayoutField count;
    uint32_t group_count;
    // 0 or 1.
    uint32_t has_count;
    // 0 or 1.
    uint32_t has_objectness;
    // 0 or 1: the class is read from class_index.
    uint32_t has_class;
    // The number of classes' scores.
    uint32_t components;
    // The class of the first of these scores.
    uint32_t first_class;
    // A class that is read is less.
    uint32_t classes;
    // 0 or 1: the number of scores before the classes'.
    uint32_t first_column;
    // An Activation.
    uint32_t activation;
    // A Combination.
    uint32_t combination;
    // A BoxFormat.
    uint32_t box_format;
    // An Axes.
    uint32_t axes;
    // A BoxTransform.
    uint32_t transform;
    uint32_t bins;
    float variances[2];
    // The angle of an oriented box for the number 1: radians, clockwise.
    float angle_factor;
    // The number of all scores: of classes, and the background's before or after them.
    uint32_t score_columns;
};

// Determines which pixels the masks of an image have.
struct MaskPlaceParams {
    // Maps edges of boxes, with `offset`. For masks in pixels of the prototypes, the map leads to
    // the model's input: edge * ratio + offset. For masks in pixels of the frame, it leads to the
    // frame: (edge - offset) / ratio.
    double ratio[2];
    double offset[2];
    // Maps pixels of the frame to pixels of the prototypes: (pixel + 0.5) * step + origin.
    float step[2];
    float origin[2];
    // Pixels of the prototypes per pixel of the model's input.
    float factor[2];
    // Columns and rows.
    uint32_t frame_size[2];
};

// The parameters of the kernels for masks.
struct MaskParams {
    // "Anchor" row * width + column, with a component for each channel.
    LayoutField prototypes;
    LayoutField coefficients[MAX_GROUPS];
    // The place of every image, if there is no table.
    MaskPlaceParams place;
    // Device address of a table with a MaskPlaceParams for each image; 0: no table.
    uint64_t places;
    // Columns and rows.
    uint32_t prototype_size[2];
    uint32_t first_anchor[MAX_GROUPS];
    uint32_t group_count;
    uint32_t channels;
    // The number of words of a group that there is memory for.
    uint32_t capacity;
    // The greatest number of words of a group, less than 2^26.
    uint32_t limit;
};

// The parameters of a launch of a kernel that merges boxes or lowers scores.
struct MergeParams {
    // Of Gaussian decay.
    float sigma;
    // 0 or 1: linear decay.
    uint32_t is_gaussian;
    // 0 or 1: members that do not join are lost.
    uint32_t lose_released;
};

// One image of a group, an entry of the table KernelParams::placed_images. Images of one group are
// consecutive, and groups follow one another in order.
struct PlacedImage {
    PlaceParams place;
    uint32_t group;
    // The index of the group's first image.
    uint32_t first_image;
    // 1 if boxes that touch an inner edge are dropped; 0 if their scores are lowered.
    uint32_t drops_at_edges;
    // The score to which scores are lowered, but not below the threshold of the class.
    float edge_score;
    // Left, top, right, bottom, in pixels of boxes: a box inside these limits touches no inner edge.
    float edge_limits[4];
};




