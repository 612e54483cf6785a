// SPDX-License-Identifier: MIT OR Apache-2.0
// The parameters of the kernels for layouts: a layout (core/src/decoder/layout) with the device
// addresses of its tensors. core/src/engine/cuda/layout_params.rs repeats these definitions in
// Rust; a test there compares every offset and constant.
//
//   kernel                                  blocks               parameters
//   decode_layout, decode_layout_multi      those of all groups  params, workspace, stride, layout
//   decode_oriented, decode_oriented_multi  those of all groups  the same
//   map_oriented, reduce_oriented           any number           workspace, stride
//   publish_columns, publish_columns_batch  1                    workspace, stride, results,
//                                                                detections, columns, rows
//
// A group of the layout has a thread per anchor and lane, in blocks from LayoutGroup::first_block on, of which a block
// has anchors of one group.
//
// `layout` is a LayoutParams and `columns` a ColumnParams, both by value; `rows` is a float *.
// interface.cuh describes all other parameters, threads and memory. decode_layout replaces
// decode_<B>_<S>, and decode_layout_multi replaces decode_multi_<B>_<S>. These kernels ignore
// KernelParams' fields, box format and objectness. KernelParams::anchors is the number of anchors
// in all groups of the layout, and `classes` is LayoutParams::components.
//
// The kernels for oriented boxes take the places of decode_layout, decode_layout_multi, map_batch and
// reduce_batch where groups have angles. They are for any number of groups of images, and need a
// workspace with rectangles (workspace.cuh). The box format is CENTER, and KernelParams::pixel_offset is
// not read.
//
// publish_columns replaces publish if survivors carry columns along. Row i of an image group
// belongs to its survivor i. The rows of group n begin at rows[n * capacity * components].
#pragma once

#include "interface.cuh"

// core/src/decoder/layout
#define MAX_GROUPS 8
#define MAX_SIZES 6
#define MAX_COLUMNS 4

// LayoutField::element: the type of elements.
enum : uint32_t {
    ELEMENT_F32 = 0,
    ELEMENT_F16 = 1,
    ELEMENT_I8 = 2,
    ELEMENT_U8 = 3,
    ELEMENT_I32 = 4,
    ELEMENT_I64 = 5
};
// LayoutGroup::reference: the reference that boxes are relative to. The table stores x before y;
// priors are stored in the order of LayoutParams::axes.
enum : uint32_t {
    REFERENCE_NONE = 0,
    REFERENCE_GRID = 1,
    REFERENCE_PRIORS = 2,
    REFERENCE_TABLE = 3
};
// LayoutParams::box_format: CORNERS, CENTER or SQUARE (interface.cuh), or this.
enum : uint32_t { DISTANCES = 3 };
// LayoutParams::activation, combination, axes, transform.
enum : uint32_t { ACTIVATION_NONE = 0, ACTIVATION_SIGMOID = 1, ACTIVATION_SOFTMAX = 2 };
enum : uint32_t { COMBINATION_PRODUCT = 0, COMBINATION_SQUARE_ROOT = 1 };
enum : uint32_t { AXES_XY = 0, AXES_YX = 1 };
enum : uint32_t {
    TRANSFORM_NONE = 0,
    TRANSFORM_EXP = 1,
    TRANSFORM_SIGMOID = 2,
    TRANSFORM_EXPECTATION = 3
};

// Component c of anchor a of image i is the element at a * anchor_stride + c * component_stride
// from the image's address. The image's address is `address` + i * image_stride, or with a table of
// images `address` + entry i of the table.
struct LayoutField {
    uint64_t address; // device address of component 0 of anchor 0 of image 0; with a table, bytes
    uint64_t images;  // device address of the table of images, of type uint64_t; 0: no table
    uint64_t image_stride;     // in bytes
    uint64_t anchor_stride;    // in elements
    uint64_t component_stride; // in elements
    uint32_t element;
    uint32_t is_quantized; // 1: an element stands for (element - zero_point) * scale
    float scale;
    float zero_point;
};

// A set of anchors whose numbers are in one set of fields. Fields that the layout lacks are not
// read.
struct LayoutGroup {
    LayoutField boxes;
    LayoutField scores; // with the background's score first, if there is one
    LayoutField objectness;
    LayoutField class_index;
    LayoutField priors;    // of REFERENCE_PRIORS and REFERENCE_TABLE
    LayoutField angle;     // of oriented boxes
    uint32_t first_anchor; // the number of anchors in the groups before
    uint32_t anchors;
    uint32_t first_block; // the number of blocks of the groups before
    uint32_t lanes;       // threads that share an anchor's classes: 1 or 8
    uint32_t reference;
    // For REFERENCE_GRID: core/src/decoder/layout/box_rule.rs
    uint32_t columns;
    uint32_t per_cell;
    uint32_t by_cell; // 0 or 1
    float stride[2];
    float offset;
    uint32_t size_count;
    float sizes[MAX_SIZES][2];
};

struct LayoutParams {
    LayoutGroup groups[MAX_GROUPS];
    LayoutField count; // read with has_count
    uint32_t group_count;
    uint32_t has_count;      // 0 or 1
    uint32_t has_objectness; // 0 or 1
    uint32_t has_class;      // 0 or 1: the class is read from class_index
    uint32_t components;     // scores of classes
    uint32_t first_class;    // the class of the first of them
    uint32_t classes;        // a class that is read is less
    uint32_t background;     // 0 or 1: the scores before those of classes
    uint32_t activation;
    uint32_t combination;
    uint32_t box_format;
    uint32_t axes;
    uint32_t transform;
    uint32_t bins;
    float variances[2];
    float angle_factor; // of oriented boxes: radians, clockwise, for 1
    uint32_t reserved;
};

struct ColumnParams {
    LayoutField fields[MAX_GROUPS][MAX_COLUMNS];
    uint32_t first_anchor[MAX_GROUPS];
    uint32_t first_component[MAX_COLUMNS]; // the components of the columns before
    uint32_t group_count;
    uint32_t column_count;
    uint32_t components; // of all columns
    uint32_t reserved;
};

static_assert(sizeof(LayoutField) == 56 && sizeof(LayoutGroup) == 432 &&
                  sizeof(LayoutParams) == 3584 && sizeof(ColumnParams) == 1856,
              "core/src/engine/cuda/layout_params.rs");
static_assert(sizeof(KernelParams) + 16 + sizeof(LayoutParams) <= 4096,
              "the parameters of a kernel before CUDA 12.1");
