// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inner edges of regions: rule 7 of the [engines](super).
//!
//! In: the place of an image, and the parameters. Out: [`InnerEdges`], which judge the boxes of the image.
//!
//! A tile cuts objects at its edges, and the model finds the part that is in the tile. Another tile or the whole frame
//! often shows all of the object, but the box of the part can have the higher score.
//!
//! # Rule
//! The region of an image is [`ImagePlace::visible`]. An edge of the region is *inner* if it is inside the frame, and
//! more than [`Params::edge_margin`] pixels of the frame away from the frame's edge on that side. At other edges, and in
//! a whole frame, objects end with the picture. An image that is not in a frame has no inner edges.
//!
//! A box *touches* an inner edge if the box's edge on that side is at most [`Params::edge_margin`] pixels of the frame
//! inside the inner edge, or beyond it. The limit is computed in pixels of boxes, in double precision and rounded once.
//! Oriented boxes touch if their bounds do.
//!
//! - [`RegionEdges::Keep`] changes nothing.
//! - [`RegionEdges::Drop`] drops an anchor whose box touches an inner edge.
//! - [`RegionEdges::Lower`] replaces the score of such a box by [`Params::edge_score`], or by the threshold of its class
//!   if the threshold is greater, unless the score is less already. The box therefore stays a candidate. The new score
//!   decides the rank, is the weight where boxes are averaged, and is the score of the result.
//!
//! Frigate lowers to 0.6 within 5 pixels, which are the defaults; it lowers the score for the suppression only, and
//! also raises lower scores to 0.6. TAPPAS drops within a tenth of the tile: a margin of a tenth of the tile's side.

use super::place::{BoxPixels, ImagePlace};
use super::{Params, RegionEdges};
use crate::geometry::{Bounds, FrameMap};

/// The limits that boxes of an image touch, and the rule for boxes that touch them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InnerEdges {
    /// A box touches an inner edge unless all edges of the box are inside these limits. In pixels of boxes; infinite
    /// where the region's edge is not inner.
    pub limits: Bounds,
    /// [`Params::edge_score`], or `None` if boxes that touch are dropped.
    pub score: Option<f32>,
}

impl InnerEdges {
    /// The inner edges of an image, or `None` if boxes at its edges are like others.
    pub fn new(place: &ImagePlace, params: &Params) -> Option<Self> {
        let score = match params.region_edges {
            RegionEdges::Keep => return None,
            RegionEdges::Drop => None,
            RegionEdges::Lower => Some(params.edge_score),
        };
        let limits = limits(place, place.frame.as_ref()?, f64::from(params.edge_margin));
        (limits != Bounds::ANY).then_some(Self { limits, score })
    }

    /// The score of a box with these edges (left, upper, right, lower) and this score, or `None` if the box is dropped.
    /// `threshold` is the score threshold of its class.
    #[inline]
    pub fn judge(&self, [x1, y1, x2, y2]: [f32; 4], score: f32, threshold: f32) -> Option<f32> {
        let Bounds { left, top, right, bottom } = self.limits;
        if !(x1 <= left || y1 <= top || x2 >= right || y2 >= bottom) {
            return Some(score);
        }
        let edge_score = self.score?;
        let most = if threshold > edge_score { threshold } else { edge_score };
        // Adding zero turns minus zero into zero.
        Some(if score > most { most + 0.0 } else { score })
    }
}

/// The limits that boxes touch, in pixels of boxes.
fn limits(place: &ImagePlace, frame: &FrameMap, margin: f64) -> Bounds {
    let Bounds { left, top, right, bottom } = place.visible;
    // Pixels of boxes per pixel of the frame, and the frame's origin.
    let (ratio, origin) = match place.boxes {
        BoxPixels::Model => (frame.ratio, frame.offset),
        BoxPixels::Frame => ([1.0; 2], [0.0; 2]),
    };
    let in_frame = |edge: f32, axis: usize| (f64::from(edge) - origin[axis]) / ratio[axis];
    let low = |edge: f32, axis: usize| {
        let is_inner = in_frame(edge, axis) > margin;
        let limit = f64::from(edge) + margin * ratio[axis];
        if is_inner { limit as f32 } else { f32::NEG_INFINITY }
    };
    let high = |edge: f32, axis: usize| {
        let is_inner = f64::from(frame.size[axis]) - in_frame(edge, axis) > margin;
        let limit = f64::from(edge) - margin * ratio[axis];
        if is_inner { limit as f32 } else { f32::INFINITY }
    };
    Bounds { left: low(left, 0), top: low(top, 1), right: high(right, 0), bottom: high(bottom, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{FrameRegion, Letterbox, Mapping};

    const FRAME: [u32; 2] = [1000, 800];

    fn params(region_edges: RegionEdges) -> Params {
        Params { region_edges, edge_margin: 5.0, ..Params::default() }
    }

    fn region(left: u32, top: u32, width: u32, height: u32) -> ImagePlace {
        let region = FrameRegion { left, top, width, height };
        let mapping = Mapping::of_region(FRAME, region, [320, 320], Letterbox::Center).unwrap();
        ImagePlace::in_region(&mapping, 0)
    }

    fn limits_of(place: &ImagePlace) -> Option<[f32; 4]> {
        let edges = InnerEdges::new(place, &params(RegionEdges::Drop))?;
        let Bounds { left, top, right, bottom } = edges.limits;
        Some([left, top, right, bottom])
    }

    const INF: f32 = f32::INFINITY;

    #[test]
    fn edges_far_from_the_frames_edge_are_inner() {
        assert_eq!(limits_of(&region(100, 200, 300, 400)), Some([105.0, 205.0, 395.0, 595.0]));
        // The upper left tile, and the lower right one.
        assert_eq!(limits_of(&region(0, 0, 500, 400)), Some([-INF, -INF, 495.0, 395.0]));
        assert_eq!(limits_of(&region(500, 400, 500, 400)), Some([505.0, 405.0, INF, INF]));
        // At a distance of the margin, and one pixel more.
        assert_eq!(limits_of(&region(5, 6, 990, 788)), Some([-INF, 11.0, INF, 789.0]));
    }

    #[test]
    fn whole_frames_and_images_in_no_frame_have_no_inner_edges() {
        assert_eq!(limits_of(&region(0, 0, 1000, 800)), None);
        for letterbox in Letterbox::ALL {
            for frame in [FRAME, [801, 997], [3840, 2161], [65_536, 1]] {
                let mapping = Mapping::new(frame, [320, 240], letterbox).unwrap();
                // Rounding to f32 moves the edges of a letterboxed frame by less than the least margin.
                let least = Params { edge_margin: 1.0, ..params(RegionEdges::Drop) };
                assert_eq!(InnerEdges::new(&ImagePlace::in_frame(&mapping, 0), &least), None);
            }
        }
        let in_model = ImagePlace {
            visible: Bounds { left: 100.0, ..Bounds::ANY },
            ..ImagePlace::in_model([320.0; 2])
        };
        assert_eq!(limits_of(&in_model), None);
        // A region that is partly outside of the frame.
        let visible = Bounds { left: -20.0, top: 10.0, right: 500.0, bottom: 900.0 };
        let place = ImagePlace { visible, ..region(0, 0, 500, 400) };
        assert_eq!(limits_of(&place), Some([-INF, 15.0, 495.0, INF]));
    }

    #[test]
    fn boxes_in_pixels_of_the_models_input_have_the_margin_there() {
        let frame = FrameMap { size: FRAME, ratio: [0.5, 2.0], offset: [-50.0, 30.0] };
        // Columns 100 to 740 of the frame, and rows from its upper edge to row 145.
        let visible = Bounds { left: 0.0, top: 30.0, right: 320.0, bottom: 320.0 };
        let place = ImagePlace { frame: Some(frame), visible, ..ImagePlace::in_model([320.0; 2]) };
        assert_eq!(limits_of(&place), Some([2.5, -INF, 317.5, 310.0]));
    }

    #[test]
    fn a_box_touches_at_a_limit_and_beyond_it() {
        let edges = InnerEdges::new(&region(100, 200, 300, 400), &params(RegionEdges::Drop));
        let is_kept = |corners| edges.unwrap().judge(corners, 0.9, 0.25).is_some();
        assert!(is_kept([106.0, 206.0, 394.0, 594.0]));
        for corners in [
            [105.0, 300.0, 200.0, 400.0],
            [90.0, 300.0, 200.0, 400.0],
            [300.0, 205.0, 350.0, 400.0],
            [300.0, 300.0, 395.0, 400.0],
            [300.0, 300.0, 350.0, 595.0],
            [0.0, 0.0, 900.0, 900.0],
        ] {
            assert!(!is_kept(corners), "{corners:?}");
        }
    }

    #[test]
    fn a_score_is_lowered_to_the_edge_score_or_to_the_threshold() {
        let lowered = |edge_score, score, threshold| {
            let params = Params { edge_score, ..params(RegionEdges::Lower) };
            let edges = InnerEdges::new(&region(100, 200, 300, 400), &params).unwrap();
            let inside = edges.judge([110.0, 210.0, 390.0, 590.0], score, threshold);
            assert_eq!(inside, Some(score));
            edges.judge([100.0, 210.0, 390.0, 590.0], score, threshold).unwrap()
        };
        assert_eq!(lowered(0.6, 0.9, 0.25), 0.6);
        assert_eq!(lowered(0.6, 0.5, 0.25), 0.5, "no score rises");
        assert_eq!(lowered(0.6, 0.9, 0.7), 0.7, "a candidate stays a candidate");
        assert_eq!(lowered(0.0, 0.9, 0.25), 0.25, "after all other candidates");
        assert_eq!(lowered(-0.0, 0.9, -1.0).to_bits(), 0, "never minus zero");
    }
}
