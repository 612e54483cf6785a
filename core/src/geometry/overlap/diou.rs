// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distance-IoU: IoU minus the penalty d^2 / c^2, where d is the distance of the centers and c the
//! diagonal of the smallest box that encloses both boxes. It keeps some boxes with distant centers
//! that IoU would suppress.
//!
//! Source: Zheng, Wang, Liu, Li, Ye, Ren, "Distance-IoU Loss: Faster and Better Learning for
//! Bounding Box Regression", AAAI 2020, equations 5 to 7.

use super::Pair;
use crate::geometry::{greater, lesser};

/// d^2 / c^2. The sums of edges are twice the coordinates of the centers, so their differences are
/// halved, which is exact.
#[inline(always)]
pub(super) fn penalty(pair: &Pair) -> f32 {
    let (a, b) = (pair.higher.corners, pair.lower.corners);
    let dx = ((a.x1 + a.x2) - (b.x1 + b.x2)) * 0.5;
    let dy = ((a.y1 + a.y2) - (b.y1 + b.y2)) * 0.5;
    let width = greater(a.x2, b.x2) - lesser(a.x1, b.x1) + pair.offset;
    let height = greater(a.y2, b.y2) - lesser(a.y1, b.y1) + pair.offset;
    (dx * dx + dy * dy) / (width * width + height * height)
}
