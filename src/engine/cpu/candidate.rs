use super::super::{Detection, MAX_SIDE, Params};
use crate::decoder::BoxFormat;

/// A row's best score, or with `multi_label` a pair's, before the box is read.
pub(super) struct Scored {
    pub anchor: u32,
    pub objectness: Option<f32>,
    /// Minus infinity, or not a number, where no class score is a number.
    pub best: f32,
    pub class: u32,
}

/// A row's components make no sense.
pub(super) struct Rejected;

/// Applies the rules of the engine's documentation from the best class on; `components` reads the
/// box, and only of rows whose score suffices. Adds the candidate to `candidates`, where it is
/// written once: a detection handed on is copied through memory.
///
/// # Errors
/// Where the row is rejected, and not only dropped.
#[inline(always)]
pub(super) fn make_candidate(
    scored: Scored,
    params: &Params,
    format: BoxFormat,
    components: impl FnOnce() -> [f32; 4],
    candidates: &mut Vec<Detection>,
) -> Result<(), Rejected> {
    // Plus zero: scores are compared by their bits when ranked, and minus zero equals zero.
    let score = match scored.objectness {
        None => scored.best + 0.0,
        Some(objectness) if scored.best.is_finite() => objectness * scored.best + 0.0,
        Some(_) => return Err(Rejected),
    };
    if !score.is_finite() {
        return Err(Rejected);
    }
    let threshold = params.thresholds.of(scored.class);
    if score < threshold || scored.objectness.is_some_and(|objectness| objectness < threshold) {
        return Ok(());
    }

    let [x1, y1, x2, y2] = corners(components(), format, params.scale);
    let (width, height) = (x2 - x1, y2 - y1);
    // Where a corner is not finite a side is not, either.
    let is_valid_side = |side: f32| (0.0..=MAX_SIDE).contains(&side);
    if !(is_valid_side(width) & is_valid_side(height)) {
        return Err(Rejected);
    }
    // A limit that is not a number limits nothing.
    let is_outside_limits = |side: f32, axis: usize| {
        (side == 0.0) | (side < params.sizes.min[axis]) | (side > params.sizes.max[axis])
    };
    if !(is_outside_limits(width, 0) | is_outside_limits(height, 1)) {
        if !params.visible.intersects([x1, y1, x2, y2]) {
            return Err(Rejected);
        }
        let Scored { anchor, class, .. } = scored;
        candidates.push(Detection { x1, y1, x2, y2, score, class, anchor });
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
    }
}
