// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oriented boxes: rectangles whose sides have any direction.
//!
//! In: boxes as layouts decode them. Out: their axis-aligned bounds, and for two boxes the area of their intersection
//! ([`intersection_area`]), an upper bound of it by which engines skip pairs ([`greatest_intersection`]), and the
//! probabilistic IoU ([`prob_iou`]), which engines may compare with a threshold without computing it
//! ([`DistanceLimit`]).
//!
//! All arithmetic is IEEE 754 single precision, each operation rounded separately (no fused multiply-add), in the order
//! written. `kernels/oriented.cuh` has equal operations in equal order.

mod conflict;
mod intersection;
#[cfg(test)]
#[path = "tests/pairs.rs"]
mod pairs;
mod prob_iou;
mod upper_bound;

pub use conflict::conflict;
pub use intersection::intersection_area;
pub use prob_iou::{DistanceLimit, prob_iou};
pub use upper_bound::greatest_intersection;

use super::Corners;
use crate::functions::{SinCos, sin_cos};

/// An oriented box, in pixels of the model's input, or of the frame to which it was mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct OrientedBox {
    /// The center: x to the right, y down.
    pub center: [f32; 2],
    /// Width and height: the lengths of the sides along (cos, sin) of the angle and along (-sin, cos).
    pub size: [f32; 2],
    /// The angle from the x axis to the sides of length `size[0]`, in radians: clockwise on the screen, because y is
    /// down.
    pub angle: f32,
}

impl OrientedBox {
    /// The smallest axis-aligned box that encloses this box. Its edges are NaN if the angle is NaN or greater than
    /// 10,000 in magnitude.
    pub fn bounds(&self) -> Corners {
        Rectangle::new(self).bounds()
    }
}

/// An oriented box as pairs of boxes are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Rectangle {
    /// The center.
    pub center: [f32; 2],
    /// Half the width and half the height.
    pub half: [f32; 2],
    /// Cosine and sine of the angle: the direction of the width.
    pub direction: [f32; 2],
    /// Width x height.
    pub area: f32,
}

impl Rectangle {
    /// The rectangle of an oriented box.
    #[inline]
    pub fn new(from: &OrientedBox) -> Self {
        let SinCos { sin, cos } = sin_cos(from.angle);
        let [width, height] = from.size;
        Self {
            center: from.center,
            half: [0.5 * width, 0.5 * height],
            direction: [cos, sin],
            area: width * height,
        }
    }

    /// The smallest axis-aligned box that encloses the rectangle.
    #[inline]
    pub fn bounds(&self) -> Corners {
        let ([x, y], [cos, sin]) = (self.center, self.direction);
        let [half_width, half_height] = self.half;
        let right = (half_width * cos).abs() + (half_height * sin).abs();
        let down = (half_width * sin).abs() + (half_height * cos).abs();
        Corners { x1: x - right, y1: y - down, x2: x + right, y2: y + down }
    }
}

/// The center of `other` in the coordinate system of `frame`, and cosine and sine of the angle between them.
#[inline(always)]
fn relative(frame: &Rectangle, other: &Rectangle) -> ([f32; 2], [f32; 2]) {
    let ([cos, sin], [other_cos, other_sin]) = (frame.direction, other.direction);
    let dx = other.center[0] - frame.center[0];
    let dy = other.center[1] - frame.center[1];
    let center = [dx * cos + dy * sin, dy * cos - dx * sin];
    (center, [cos * other_cos + sin * other_sin, cos * other_sin - sin * other_cos])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oriented(center: [f32; 2], size: [f32; 2], angle: f32) -> OrientedBox {
        OrientedBox { center, size, angle }
    }

    #[test]
    fn bounds_without_an_angle_are_the_box() {
        let bounds = oriented([10.0, 20.0], [8.0, 4.0], 0.0).bounds();
        assert_eq!(bounds, Corners { x1: 6.0, y1: 18.0, x2: 14.0, y2: 22.0 });
    }

    #[test]
    fn bounds_enclose_the_vertices() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let mut number = |scale: f32| (random.f32() - 0.5) * scale;
            let (center, angle) = ([number(1e3), number(1e3)], number(20.0));
            let of = oriented(center, [number(100.0).abs(), number(100.0).abs()], angle);
            let bounds = of.bounds();
            let (sin, cos) = f64::from(angle).sin_cos();
            let [x, y] = of.center.map(f64::from);
            let [w, h] = of.size.map(|side| f64::from(side) / 2.0);
            let vertices = [(w, h), (w, -h), (-w, h), (-w, -h)]
                .map(|(w, h)| [x + w * cos - h * sin, y + w * sin + h * cos]);
            let edge = |axis: usize, than: fn(f64, f64) -> f64| {
                vertices.iter().map(|vertex| vertex[axis]).reduce(than).unwrap()
            };
            let exact =
                [edge(0, f64::min), edge(1, f64::min), edge(0, f64::max), edge(1, f64::max)];
            let ours = [bounds.x1, bounds.y1, bounds.x2, bounds.y2].map(f64::from);
            for (ours, exact) in ours.into_iter().zip(exact) {
                assert!((ours - exact).abs() < 1e-4, "{of:?}: {ours} {exact}");
            }
        }
    }

    /// The angle is clockwise on the screen: at 30 degrees the right end of the width is below the left end.
    #[test]
    fn angles_are_clockwise() {
        let rectangle =
            Rectangle::new(&oriented([0.0; 2], [10.0, 0.0], std::f32::consts::FRAC_PI_6));
        let [cos, sin] = rectangle.direction;
        assert!(cos > 0.86 && cos < 0.87 && sin > 0.49 && sin < 0.51, "{rectangle:?}");
    }

    #[test]
    fn bounds_of_angles_out_of_range_are_nan() {
        for angle in [f32::NAN, f32::INFINITY, 1e30, -1.1e4] {
            let bounds = oriented([0.0; 2], [10.0; 2], angle).bounds();
            assert!(bounds.x1.is_nan() && bounds.y2.is_nan(), "{bounds:?}");
        }
    }
}
