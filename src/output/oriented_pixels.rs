// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts an oriented box to the form that `GstAnalyticsODMtd` uses.

use nmsfilter_core::geometry::OrientedBox;

/// Converts an oriented box to whole pixels: left, top, width and height before the rotation about its center, and
/// the angle in radians, clockwise, from 0 to 2 pi.
pub(crate) fn oriented_pixels(oriented: &OrientedBox) -> ([i32; 4], f32) {
    let side = |axis: usize| oriented.size[axis].round().max(1.0);
    let low = |axis: usize| (oriented.center[axis] - side(axis) / 2.0).round();
    let angle = f64::from(oriented.angle).rem_euclid(std::f64::consts::TAU);
    ([low(0), low(1), side(0), side(1)].map(|number| number as i32), angle as f32)
}
