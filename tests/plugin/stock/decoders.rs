// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of GStreamer's tensor decoders, and an independent implementation of their rules.

use gst_newer::{AnalyticsODMtd, AnalyticsRelationMeta};

use crate::greedy::{Candidate, greedy};
use crate::tensors::Recorded;

/// A box as the stock decoders write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    /// Left, top, width and height, in whole pixels.
    pub rectangle: [i32; 4],
    /// Score of the object.
    pub score: f32,
}

/// Returns the objects on `buffer`, in the order in which they were written.
pub fn objects(buffer: &gst::BufferRef) -> Vec<Object> {
    let Some(meta) = buffer.meta::<AnalyticsRelationMeta>() else {
        return Vec::new();
    };
    let objects = meta.iter::<AnalyticsODMtd>().map(|object| {
        let location = object.location().unwrap();
        let rectangle = [location.x, location.y, location.w, location.h];
        Object { rectangle, score: object.confidence_level() }
    });
    objects.collect()
}

/// Returns the object that yolov8tensordec writes. Before it compares boxes, it converts them to
/// pixels: the upper left corner is truncated, and the sides are rounded.
pub fn yolov8_object(output: &Recorded, candidate: &Candidate) -> Object {
    let number = |i: usize| output.elements[i * output.shape[2] + candidate.anchor];
    let [cx, cy, w, h] = [0, 1, 2, 3].map(number);
    Object {
        rectangle: [cx - w / 2.0, cy - h / 2.0, w + 0.5, h + 0.5].map(|side| side as i32),
        score: candidate.score,
    }
}

/// Returns the candidates that yolov8tensordec keeps. It drops boxes whose center is beyond the
/// right or lower edge, or more than half a frame beyond the left or upper edge, and boxes that are
/// larger than the frame.
pub fn yolov8_candidates(
    output: &Recorded,
    candidates: &[Candidate],
    size: [u32; 2],
) -> Vec<Candidate> {
    let number = |anchor: usize, i: usize| output.elements[i * output.shape[2] + anchor];
    let inside = |candidate: &&Candidate| {
        [0, 1].into_iter().all(|axis| {
            let frame = size[axis] as f32;
            let (center, side) =
                (number(candidate.anchor, axis), number(candidate.anchor, axis + 2));
            -frame / 2.0 <= center && center <= frame && 0.0 < side && side <= frame
        })
    };
    candidates.iter().filter(inside).cloned().collect()
}

/// Computes the IoU as yolov8tensordec does: between boxes in pixels, clipped at the left and upper
/// edge.
pub fn yolov8_iou(output: &Recorded, a: &Candidate, b: &Candidate) -> f32 {
    pixel_iou(yolov8_object(output, a), yolov8_object(output, b))
}

fn pixel_iou(a: Object, b: Object) -> f32 {
    // Clips the box at the edge. The result is `None` if nothing is left.
    let span = |object: Object, axis: usize| {
        let (low, side) = (object.rectangle[axis], object.rectangle[axis + 2]);
        (low + side >= 0).then_some((low.max(0), low + side))
    };
    let mut inter = 1;
    for axis in [0, 1] {
        let (Some((a1, a2)), Some((b1, b2))) = (span(a, axis), span(b, axis)) else {
            return 0.0;
        };
        inter *= (a2.min(b2) - a1.max(b1)).max(0);
    }
    let area = |object| {
        let side = |axis| span(object, axis).map_or(0, |(low, high)| high - low);
        side(0) * side(1)
    };
    if inter == 0 {
        return 0.0;
    }
    inter as f32 / (area(a) + area(b) - inter) as f32
}

/// Returns the object that ultralightfacedetectortensordec writes. It rounds the corner and the
/// sides to pixels separately.
pub fn ultraface_object(candidate: &Candidate) -> Object {
    let [x1, y1, x2, y2] = candidate.corners;
    Object {
        rectangle: [x1, y1, x2 - x1, y2 - y1].map(|side| (side + 0.5) as i32),
        score: candidate.score,
    }
}

/// Returns the survivors of ultralightfacedetectortensordec. Its suppression is greedy, by the IoU
/// of boxes in fractions of the frame, with an inclusive threshold.
pub fn ultraface(boxes: &Recorded, candidates: &[Candidate], threshold: f32) -> Vec<Candidate> {
    let iou = |a: &Candidate, b: &Candidate| {
        let corners = |c: &Candidate| [0, 1, 2, 3].map(|i| boxes.elements[c.anchor * 4 + i]);
        let ([ax1, ay1, ax2, ay2], [bx1, by1, bx2, by2]) = (corners(a), corners(b));
        let (w, h) = (ax2.min(bx2) - ax1.max(bx1), ay2.min(by2) - ay1.max(by1));
        if w < 0.0 || h < 0.0 {
            return 0.0;
        }
        w * h / ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - w * h)
    };
    greedy(candidates, |a, b| iou(a, b) >= threshold)
}
