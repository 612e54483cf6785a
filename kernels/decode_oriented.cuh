// SPDX-License-Identifier: MIT OR Apache-2.0
// Decode for layouts of oriented boxes. In and out: see decode_layout.cuh. In addition, each
// candidate's rectangle is stored, and the candidate's box is the bounds of the rectangle.
#pragma once

#include "decode_layout.cuh"
#include "oriented.cuh"

// An oriented box with its bounds.
struct BoundedRectangle {
    float4 bounds;
    OrientedBox box;
    Rectangle rectangle;

    DEVICE float width() const { return box.width; }
    DEVICE float height() const { return box.height; }
    // Rounding can make the bounds of a small box empty if the box is far from the origin.
    DEVICE bool is_empty() const { return bounds.x == bounds.z || bounds.y == bounds.w; }
    DEVICE void store(const Workspace &workspace, uint32_t slot) const {
        const Rectangle &of = rectangle;
        workspace.rectangle[slot].place = {of.x, of.y, of.half_width, of.half_height};
        workspace.rectangle[slot].shape = {of.cos, of.sin, of.area, 0.0f};
    }
};

// Rule 5: computes an anchor's oriented box and its bounds.
DEVICE Verdict layout_box(const KernelParams &params, const LayoutParams &layout,
                          const LayoutGroup &group, uint32_t anchor, BoundedRectangle &made) {
    const AnchorBox of = anchor_box(layout, group, anchor);
    const BoxScale scale(params);
    OrientedBox &box = made.box;
    box.x = scale.moved(mul_rn(of.x.position(of.components.x), scale.scale[0]), 0);
    box.y = scale.moved(mul_rn(of.y.position(of.components.y), scale.scale[1]), 1);
    box.width = mul_rn(of.x.length(of.components.z), scale.scale[0]);
    box.height = mul_rn(of.y.length(of.components.w), scale.scale[1]);
    box.angle = mul_rn(LayoutNumbers(group.angle).load(anchor, 0), layout.angle_factor);
    // Infinite numbers, NaN, and angles beyond the limit all lead to bounds that are not finite.
    made.rectangle = rectangle(box);
    made.bounds = bounds(made.rectangle);
    return check_box(made);
}

KERNEL(DECODE_THREADS, 2)
decode_oriented(const KernelParams params, void *workspaces, uint64_t stride,
                const LayoutParams layout) {
    BLOCK_SHARED(DecodeLayoutShared, shared);
    decode_groups<BoundedRectangle>(shared, params, workspaces, stride, layout);
}
KERNEL(DECODE_THREADS, 2)
decode_oriented_multi(const KernelParams params, void *workspaces, uint64_t stride,
                      const LayoutParams layout) {
    BLOCK_SHARED(LayoutGroup, group);
    decode_groups_multi<BoundedRectangle>(group, params, workspaces, stride, layout);
}
