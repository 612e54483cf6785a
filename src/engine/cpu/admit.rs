use super::super::{Detection, LONGEST_SIDE, Params};
use crate::head::BoxFormat;

/// What becomes of a row once its best class is known.
pub(super) enum Row {
    Candidate(Detection),
    Dropped,
    Rejected,
}

/// A row's scores, before its box is read.
pub(super) struct Scored {
    pub anchor: u32,
    pub objectness: Option<f32>,
    /// Minus infinity where no class score is a number.
    pub best: f32,
    pub class: u32,
}

/// Applies the rules of the engine's documentation from the best class on; `numbers` reads the
/// box, and only of rows whose score suffices.
pub(super) fn admit(
    row: Scored,
    params: &Params,
    format: BoxFormat,
    numbers: impl FnOnce() -> [f32; 4],
) -> Row {
    // Plus zero: scores are compared by their bits when ranked, and minus zero equals zero.
    let score = row.objectness.map_or(row.best, |objectness| objectness * row.best) + 0.0;
    if !row.best.is_finite() || !score.is_finite() {
        return Row::Rejected;
    }
    let threshold = params.thresholds.of(row.class);
    if row.objectness.map_or(score, |objectness| objectness.min(score)) < threshold {
        return Row::Dropped;
    }

    let [x1, y1, x2, y2] = corners(numbers(), format, params.scale);
    let (width, height) = (x2 - x1, y2 - y1);
    let finite = x1.is_finite() && y1.is_finite() && x2.is_finite() && y2.is_finite();
    let sound = |side: f32| (0.0..=LONGEST_SIDE).contains(&side);
    if !finite || !sound(width) || !sound(height) {
        return Row::Rejected;
    }
    let wanted = |side: f32, axis: usize| {
        side != 0.0 && side >= params.sizes.min[axis] && side <= params.sizes.max[axis]
    };
    if !wanted(width, 0) || !wanted(height, 1) {
        return Row::Dropped;
    }
    let Scored { anchor, class, .. } = row;
    Row::Candidate(Detection { x1, y1, x2, y2, score, class, anchor })
}

fn corners(numbers: [f32; 4], format: BoxFormat, [sx, sy]: [f32; 2]) -> [f32; 4] {
    let [a, b, c, d] = numbers;
    match format {
        BoxFormat::Corners => [a * sx, b * sy, c * sx, d * sy],
        BoxFormat::Centre => {
            let (cx, cy, half_w, half_h) = (a * sx, b * sy, c * sx / 2.0, d * sy / 2.0);
            [cx - half_w, cy - half_h, cx + half_w, cy + half_h]
        }
        BoxFormat::Square => {
            let (x, y) = (a * sx, b * sy);
            [x, y, x + c * sx, y + c * sy]
        }
    }
}
