// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oriented boxes.

/// A box with an angle.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct OrientedBox {
    /// The center, in pixels.
    pub center: [f32; 2],
    /// Width and height, in pixels.
    pub size: [f32; 2],
    /// The angle in radians, clockwise: the side `width` lies along (cos, sin), with y downwards.
    pub angle: f32,
}
