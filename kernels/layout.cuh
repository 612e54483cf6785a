// SPDX-License-Identifier: MIT OR Apache-2.0
// The numbers of a layout, and the formulas that turn them into a score and corners. The formulas
// follow core/src/engine/formula.rs, operation by operation; the rules are in
// core/src/engine/mod.rs.
//
// The interface of the kernels for layouts and for oriented boxes:
//
//   kernel                                  blocks               parameters
//   decode_layout, decode_layout_multi      those of all groups  params, workspace, stride, layout
//   decode_oriented, decode_oriented_multi  those of all groups  the same
//   map_oriented, reduce_oriented           any number           workspace, stride
//   publish_columns, publish_columns_batch  1                    workspace, stride, results,
//                                                                detections, columns, rows
//
// A group of the layout has a thread per anchor and lane, in blocks from LayoutGroup::first_block on.
// A block has anchors of one group.
//
// `layout` is a LayoutParams and `columns` a ColumnParams, both by value; `rows` is a float *.
// interface.cuh describes all other parameters, threads and memory. decode_layout replaces
// decode_<B>_<S>, and decode_layout_multi replaces decode_multi_<B>_<S>. These kernels ignore
// KernelParams' fields, box format and objectness. KernelParams::anchors is the number of anchors
// in all groups of the layout, and `classes` is LayoutParams::components.
//
// The kernels for oriented boxes take the places of decode_layout, decode_layout_multi, map_batch and
// reduce_batch where groups have angles. They are for any number of groups of images, and need a
// workspace with rectangles (workspace.cuh). The box format is BOX_FORMAT_CENTER, and
// KernelParams::pixel_offset is not read.
//
// publish_columns replaces publish if survivors carry columns along. Row i of an image group
// belongs to its survivor i. The rows of group n begin at rows[n * capacity * components].
#pragma once

#include "decode.cuh"
#include "functions.cuh"

static_assert(sizeof(KernelParams) + 16 + sizeof(LayoutParams) <= 4096,
              "the parameters of a kernel before CUDA 12.1");

struct I8 {
    typedef uint8_t Stored;
    static DEVICE float to_float(uint8_t stored) { return float(int8_t(stored)); }
};

struct U8 {
    typedef uint8_t Stored;
    static DEVICE float to_float(uint8_t stored) { return float(stored); }
};

struct I32 {
    typedef uint32_t Stored;
    static DEVICE float to_float(uint32_t stored) { return float(int32_t(stored)); }
};

struct I64 {
    typedef uint64_t Stored;
    static DEVICE float to_float(uint64_t stored) { return float(int64_t(stored)); }
};

// Like F16, except that NaN becomes quiet, which is how CPUs convert it. Columns carry the bits of
// NaN along, so the bits matter.
struct QuietF16 {
    typedef uint16_t Stored;
    static DEVICE float to_float(uint16_t stored) {
        const float number = half_to_float(stored);
        return number != number ? __uint_as_float(__float_as_uint(number) | 0x00400000u) : number;
    }
};

// Calls `act` with an object of the element type.
template <typename Act> DEVICE void with_element(uint32_t element, const Act &act) {
    switch (element) {
    case ELEMENT_F32: act(F32()); break;
    case ELEMENT_F16: act(QuietF16()); break;
    case ELEMENT_I8: act(I8()); break;
    case ELEMENT_U8: act(U8()); break;
    case ELEMENT_I32: act(I32()); break;
    default: act(I64());
    }
}

// The numbers of one field of one image.
struct LayoutNumbers {
    uint64_t first; // device address of component 0 of anchor 0
    uint64_t anchor_stride, component_stride;
    uint32_t element, is_quantized;
    float scale, zero_point;

    // In decode: the numbers of the block's image.
    DEVICE explicit LayoutNumbers(const LayoutField &field) : LayoutNumbers(field, blockIdx.y) {}

    DEVICE LayoutNumbers(const LayoutField &field, uint32_t image)
        : first(field.address), anchor_stride(field.anchor_stride),
          component_stride(field.component_stride), element(field.element),
          is_quantized(field.is_quantized), scale(field.scale), zero_point(field.zero_point) {
        first += field.images != 0 ? __ldg((const uint64_t *)field.images + image)
                                   : image * field.image_stride;
    }

    // Loads components `from`, `from` + `step` and so on of an anchor, up to but excluding `end`.
    // Numbers beyond the end are minus infinity. All numbers are loaded before the first is used.
    template <uint32_t N>
    DEVICE void load_some(uint32_t anchor, uint32_t from, uint32_t step, uint32_t end,
                          float (&numbers)[N]) const {
        with_element(element, [&](auto type) {
            using Element = decltype(type);
            typedef typename Element::Stored Stored;
            const Stored *const row = (const Stored *)first + anchor * anchor_stride;
            Stored stored[N];
#pragma unroll
            for (uint32_t k = 0; k < N; k++) {
                // Beyond the end, load the last component again rather than branch.
                stored[k] = __ldg(row + min(from + k * step, end - 1) * component_stride);
            }
#pragma unroll
            for (uint32_t k = 0; k < N; k++) {
                numbers[k] = Element::to_float(stored[k]);
            }
        });
        const bool is_number = is_quantized == 0;
#pragma unroll
        for (uint32_t k = 0; k < N; k++) {
            const float number =
                is_number ? numbers[k] : mul_rn(sub_rn(numbers[k], zero_point), scale);
            numbers[k] = from + k * step < end ? number : LOWEST_SCORE;
        }
    }

    DEVICE float load(uint32_t anchor, uint32_t component) const {
        float number[1];
        load_some(anchor, component, 1, component + 1, number);
        return number[0];
    }
};

#define INFINITE_SCORE __uint_as_float(0x7f800000u)

// Summands that a thread loads at a time.
#define SUMMANDS_PER_STEP 4u

// The greatest of `count` numbers of an anchor. NaN counts as less than any other number.
DEVICE float greatest_of(const LayoutNumbers &numbers, uint32_t anchor, uint32_t first,
                         uint32_t count) {
    float greatest = LOWEST_SCORE;
#pragma unroll 1
    for (uint32_t from = 0; from < count; from += SUMMANDS_PER_STEP) {
        float some[SUMMANDS_PER_STEP];
        numbers.load_some(anchor, first + from, 1, first + count, some);
#pragma unroll
        for (uint32_t k = 0; k < SUMMANDS_PER_STEP; k++) {
            greatest = some[k] > greatest ? some[k] : greatest;
        }
    }
    return greatest;
}

// Adds exp(x - greatest) for `count` numbers x of an anchor, one after the other.
struct ExponentialSum {
    float sum;
    float weighted; // by the number's position

    DEVICE ExponentialSum(const LayoutNumbers &numbers, uint32_t anchor, uint32_t first,
                          uint32_t count, float greatest)
        : sum(0.0f), weighted(0.0f) {
#pragma unroll 1
        for (uint32_t from = 0; from < count; from += SUMMANDS_PER_STEP) {
            float some[SUMMANDS_PER_STEP];
            numbers.load_some(anchor, first + from, 1, first + count, some);
#pragma unroll
            for (uint32_t k = 0; k < SUMMANDS_PER_STEP; k++) {
                if (from + k < count) {
                    const float weight = exponential(sub_rn(some[k], greatest));
                    sum = add_rn(sum, weight);
                    weighted = add_rn(weighted, mul_rn(weight, float(from + k)));
                }
            }
        }
    }
};

DEVICE float limited(float number) {
    const float above = number > 0.0f ? number : 0.0f;
    return above < 1.0f ? above : 1.0f;
}

// The score of a candidate, computed from its objectness, if the layout has it, and the class's
// probability.
DEVICE float combined_score(const LayoutParams &layout, float objectness, float probability) {
    float score = probability;
    if (layout.has_objectness != 0) {
        score = layout.combination == COMBINATION_PRODUCT
                    ? mul_rn(objectness, probability)
                    : sqrt_rn(mul_rn(limited(objectness), limited(probability)));
    }
    return add_rn(score, 0.0f); // minus zero becomes zero
}

// The reference that an anchor's box is relative to.
struct Prior {
    float point[2], size[2];
    float cell[2]; // the factor for positions with BOX_TRANSFORM_SIGMOID and BOX_TRANSFORM_SIGMOID_EXP
};

DEVICE Prior prior_of_cell(const LayoutGroup &group, uint32_t anchor) {
    uint32_t cell, index;
    if (group.by_cell != 0) {
        cell = anchor / group.per_cell;
        index = anchor - cell * group.per_cell;
    } else {
        const uint32_t cells = max(group.anchors / group.per_cell, 1u);
        index = anchor / cells;
        cell = anchor - index * cells;
    }
    const uint32_t y = cell / group.columns, x = cell - y * group.columns;
    Prior prior;
    prior.point[0] = mul_rn(add_rn(float(x), group.offset), group.stride[0]);
    prior.point[1] = mul_rn(add_rn(float(y), group.offset), group.stride[1]);
    const bool has_size = index < group.size_count;
    prior.size[0] = has_size ? group.sizes[index][0] : group.stride[0];
    prior.size[1] = has_size ? group.sizes[index][1] : group.stride[1];
    prior.cell[0] = group.stride[0];
    prior.cell[1] = group.stride[1];
    return prior;
}

DEVICE Prior prior_of_numbers(const LayoutGroup &group, uint32_t axes, uint32_t anchor) {
    float numbers[4];
    LayoutNumbers(group.priors).load_some(anchor, 0, 1, 4, numbers);
    if (group.reference == REFERENCE_KIND_PRIORS && axes == AXES_YX) {
        return {{numbers[1], numbers[0]}, {numbers[3], numbers[2]}, {numbers[3], numbers[2]}};
    }
    return {{numbers[0], numbers[1]}, {numbers[2], numbers[3]}, {numbers[2], numbers[3]}};
}

// The components of a box: either expectations or plain numbers of the tensor.
DEVICE float4 box_components(const LayoutParams &layout, const LayoutGroup &group,
                             uint32_t anchor) {
    const LayoutNumbers numbers(group.boxes);
    const uint32_t count = layout.box_format == BOX_FORMAT_SQUARE ? 3 : 4;
    if (layout.transform != BOX_TRANSFORM_EXPECTATION) {
        float box[4];
        numbers.load_some(anchor, 0, 1, count, box);
        return {box[0], box[1], box[2], box[3]};
    }
    float4 box = {};
#pragma unroll 1
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t first = i * layout.bins;
        const float greatest = greatest_of(numbers, anchor, first, layout.bins);
        const ExponentialSum sum(numbers, anchor, first, layout.bins, greatest);
        // The new component enters at the end, so that all indices of the vector are constant.
        box = {box.y, box.z, box.w, div_rn(sum.weighted, sum.sum)};
    }
    return count == 3 ? float4{box.y, box.z, box.w, 0.0f} : box;
}

// A box's components along one axis, with the reference they are relative to.
struct BoxAxis {
    const LayoutParams &layout;
    bool has_prior;
    float point, size, unit; // unit: the factor for positions
    float scale_xy;          // with BOX_TRANSFORM_SIGMOID_EXP: LayoutGroup::scale_xy, or 1

    DEVICE float position(float component) const {
        float value = mul_rn(component, layout.variances[0]);
        if (layout.transform == BOX_TRANSFORM_SIGMOID) {
            value = sub_rn(mul_rn(2.0f, sigmoid(value)), 0.5f);
        } else if (layout.transform == BOX_TRANSFORM_SIGMOID_EXP) {
            value = sub_rn(mul_rn(sigmoid(value), scale_xy), mul_rn(0.5f, sub_rn(scale_xy, 1.0f)));
        }
        return has_prior ? add_rn(point, mul_rn(value, unit)) : value;
    }

    DEVICE float length(float component) const {
        float value = mul_rn(component, layout.variances[1]);
        if (layout.transform == BOX_TRANSFORM_EXP ||
            layout.transform == BOX_TRANSFORM_SIGMOID_EXP) {
            value = exponential(value);
        } else if (layout.transform == BOX_TRANSFORM_SIGMOID) {
            const float twice = mul_rn(2.0f, sigmoid(value));
            value = mul_rn(twice, twice);
        }
        return has_prior ? mul_rn(value, size) : value;
    }

    // In: two components. Out: the lower and the higher corner.
    DEVICE void corners(float scale, float &low, float &high) const {
        switch (layout.box_format) {
        case BOX_FORMAT_CORNERS:
            low = mul_rn(position(low), scale);
            high = mul_rn(position(high), scale);
            break;
        case BOX_FORMAT_CENTER: {
            const float center = mul_rn(position(low), scale);
            const float half = mul_rn(mul_rn(length(high), scale), 0.5f);
            low = sub_rn(center, half);
            high = add_rn(center, half);
            break;
        }
        case BOX_FORMAT_SQUARE:
            low = mul_rn(position(low), scale);
            high = add_rn(low, mul_rn(length(high), scale));
            break;
        default: {
            const float before = mul_rn(mul_rn(low, layout.variances[0]), size);
            const float after = mul_rn(mul_rn(high, layout.variances[0]), size);
            low = mul_rn(sub_rn(point, before), scale);
            high = mul_rn(add_rn(point, after), scale);
        }
        }
    }
};

// The components of an anchor's box: x and z along the x axis, y and w along the y axis.
struct AnchorBox {
    float4 components;
    BoxAxis x, y;
};

// `anchor` is the anchor's number within its group.
DEVICE AnchorBox anchor_box(const LayoutParams &layout, const LayoutGroup &group, uint32_t anchor) {
    Prior prior = {{0.0f, 0.0f}, {1.0f, 1.0f}, {1.0f, 1.0f}};
    const bool has_prior = group.reference != REFERENCE_KIND_NONE;
    if (group.reference == REFERENCE_KIND_GRID) {
        prior = prior_of_cell(group, anchor);
    } else if (has_prior) {
        prior = prior_of_numbers(group, layout.axes, anchor);
    }
    float4 box = box_components(layout, group, anchor);
    if (layout.axes == AXES_YX) {
        box = {box.y, box.x, box.w, box.z};
        if (layout.box_format == BOX_FORMAT_SQUARE) {
            box.z = box.w;
        }
    }
    if (layout.box_format == BOX_FORMAT_SQUARE) {
        box.w = box.z;
    }
    const bool is_of_cell = layout.transform == BOX_TRANSFORM_SIGMOID ||
                            layout.transform == BOX_TRANSFORM_SIGMOID_EXP;
    const float scale_xy = group.reference == REFERENCE_KIND_GRID ? group.scale_xy : 1.0f;
    const float unit_x = is_of_cell ? prior.cell[0] : prior.size[0];
    const float unit_y = is_of_cell ? prior.cell[1] : prior.size[1];
    return {box,
            {layout, has_prior, prior.point[0], prior.size[0], unit_x, scale_xy},
            {layout, has_prior, prior.point[1], prior.size[1], unit_y, scale_xy}};
}

// Rule 5: computes the corners of an anchor's box.
DEVICE Verdict layout_box(const KernelParams &params, const LayoutParams &layout,
                          const LayoutGroup &group, uint32_t anchor, UprightBox &box) {
    const AnchorBox of = anchor_box(layout, group, anchor);
    const BoxScale scale(params);
    float4 &corners = box.bounds;
    corners = of.components;
    of.x.corners(scale.scale[0], corners.x, corners.z);
    of.y.corners(scale.scale[1], corners.y, corners.w);
    scale.move(corners);
    return check_box(box);
}
