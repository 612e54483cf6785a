// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines' rules for one anchor, starting from the best score.
//!
//! In: the best score and, if it is high enough, the components of the box. Out: a candidate, or
//! the information that the anchor is dropped or rejected.

use super::super::{Detection, MAX_ANGLE, MAX_BOX_SIDE, SizeLimits};
use super::decode::{Found, ImageRules};
use crate::decoder::BoxFormat;
use crate::geometry::oriented::Rectangle;
use crate::geometry::{Corners, OrientedBox};

/// The best score of an anchor, or with `multi_label` the score of a pair. The box has not been
/// read yet.
pub(super) struct Scored {
    pub anchor: u32,
    pub objectness: Option<f32>,
    /// The greatest class score; minus infinity or NaN if all class scores are NaN.
    pub best: f32,
    pub class: u32,
}

/// The anchor is rejected.
pub(super) struct Rejected;

/// Applies rules 3 to 7 of the [engines](super::super). `components` reads the box, and is called
/// only if the score is high enough. The function adds the candidate to `candidates`, because
/// returning the candidate would copy it through memory.
///
/// # Errors
/// Returns an error if the anchor is rejected. A dropped anchor is not an error.
#[inline(always)]
pub(super) fn make_candidate(
    scored: Scored,
    rules: &ImageRules<'_>,
    format: BoxFormat,
    components: impl FnOnce() -> [f32; 4],
    candidates: &mut Vec<Detection>,
) -> Result<(), Rejected> {
    // Adding zero turns minus zero into zero. The sort by rank compares the bits of scores.
    let score = match scored.objectness {
        None => scored.best + 0.0,
        Some(objectness) if scored.best.is_finite() => objectness * scored.best + 0.0,
        Some(_) => return Err(Rejected),
    };
    if !score.is_finite() {
        return Err(Rejected);
    }
    let threshold = rules.params.thresholds.of(scored.class);
    if score < threshold || scored.objectness.is_some_and(|objectness| objectness < threshold) {
        return Ok(());
    }

    let Scored { anchor, class, .. } = scored;
    let corners = corners(components(), format, rules.place.scale);
    add_box(corners, score, class, anchor, rules, candidates)
}

/// Applies the rest of rule 5, and rules 6 and 7, to the scaled corners of a box. `anchor` is the anchor's index in the image.
///
/// # Errors
/// Returns an error if the anchor is rejected. A dropped anchor is not an error.
#[inline(always)]
pub(super) fn add_box(
    [x1, y1, x2, y2]: [f32; 4],
    score: f32,
    class: u32,
    anchor: u32,
    rules: &ImageRules<'_>,
    candidates: &mut Vec<Detection>,
) -> Result<(), Rejected> {
    let ImageRules { params, place, first_anchor } = rules;
    let ([x1, y1], [x2, y2]) = (place.moved([x1, y1]), place.moved([x2, y2]));
    let (width, height) = (x2 - x1, y2 - y1);
    // If a corner is infinite or NaN, so is a side.
    if !(is_valid_side(width) & is_valid_side(height)) {
        return Err(Rejected);
    }
    let sizes = place.sizes(params, class);
    if !(is_outside_limits(width, 0, &sizes) | is_outside_limits(height, 1, &sizes)) {
        if !place.visible.intersects([x1, y1, x2, y2]) {
            return Err(Rejected);
        }
        if let Some(score) = judge_edges([x1, y1, x2, y2], score, class, rules) {
            let anchor = first_anchor + anchor;
            candidates.push(Detection { x1, y1, x2, y2, score, class, anchor });
        }
    }
    Ok(())
}

/// Rule 7: the score of a box, or `None` if the box is dropped at an inner edge.
#[inline(always)]
fn judge_edges(corners: [f32; 4], score: f32, class: u32, rules: &ImageRules<'_>) -> Option<f32> {
    match &rules.place.edges {
        None => Some(score),
        Some(edges) => edges.judge(corners, score, rules.params.thresholds.of(class)),
    }
}

#[inline(always)]
fn is_valid_side(side: f32) -> bool {
    (0.0..=MAX_BOX_SIDE).contains(&side)
}

/// Returns true if a box whose side along `axis` has this length is dropped.
#[inline(always)]
fn is_outside_limits(side: f32, axis: usize, sizes: &SizeLimits) -> bool {
    // A comparison with a limit of NaN is false.
    (side == 0.0) | (side < sizes.min[axis]) | (side > sizes.max[axis])
}

/// Applies the rest of rule 5, and rules 6 and 7, to a scaled oriented box. Adds the rectangle, too.
/// `anchor` is the anchor's index in the image.
///
/// # Errors
/// Returns an error if the anchor is rejected. A dropped anchor is not an error.
#[inline(always)]
pub(super) fn add_oriented_box(
    oriented: &OrientedBox,
    score: f32,
    class: u32,
    anchor: u32,
    rules: &ImageRules<'_>,
    found: &mut Found,
) -> Result<(), Rejected> {
    let ImageRules { params, place, first_anchor } = rules;
    let OrientedBox { center, size: [width, height], angle } = *oriented;
    let is_valid_angle = angle.abs() <= MAX_ANGLE;
    if !(is_valid_side(width) & is_valid_side(height) & is_valid_angle) {
        return Err(Rejected);
    }
    let rectangle = Rectangle::new(&OrientedBox { center: place.moved(center), ..*oriented });
    let Corners { x1, y1, x2, y2 } = rectangle.bounds();
    // If a number of the box is infinite or NaN, so is an edge.
    if ![x1, y1, x2, y2].iter().all(|edge| edge.is_finite()) {
        return Err(Rejected);
    }
    let is_empty = (x1 == x2) | (y1 == y2);
    let sizes = place.sizes(params, class);
    if is_empty | is_outside_limits(width, 0, &sizes) | is_outside_limits(height, 1, &sizes) {
        return Ok(());
    }
    if !place.visible.intersects([x1, y1, x2, y2]) {
        return Err(Rejected);
    }
    if let Some(score) = judge_edges([x1, y1, x2, y2], score, class, rules) {
        let anchor = first_anchor + anchor;
        found.candidates.push(Detection { x1, y1, x2, y2, score, class, anchor });
        found.rectangles.push(rectangle);
    }
    Ok(())
}

#[inline(always)]
fn corners(components: [f32; 4], format: BoxFormat, [sx, sy]: [f32; 2]) -> [f32; 4] {
    let [a, b, c, d] = components;
    match format {
        BoxFormat::Corners => [a * sx, b * sy, c * sx, d * sy],
        BoxFormat::Center => {
            let (cx, cy, half_w, half_h) = (a * sx, b * sy, c * sx / 2.0, d * sy / 2.0);
            [cx - half_w, cy - half_h, cx + half_w, cy + half_h]
        }
        BoxFormat::Square => {
            let (x, y) = (a * sx, b * sy);
            [x, y, x + c * sx, y + c * sy]
        }
        BoxFormat::Distances => unreachable!("not of plain layouts"),
    }
}
