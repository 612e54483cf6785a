// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pixels of masks.
//!
//! In: prototypes, parameters, the place of an image, and a survivor's box. Out: the pixels that
//! the survivor's mask covers. For pixels of the frame, the output includes the prototype pixels
//! that each frame pixel is interpolated from. kernels/masks.cuh repeats these computations.

use super::MaskArea;
use crate::decoder::layout::{Layout, Prototypes};
use crate::engine::{BoxPixels, Detection, ImagePlace, MaskSize, Params};
use crate::geometry::FrameMap;

/// The pixels of the masks of an image. The size of `edges` are the numbers of columns and rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MaskGrid {
    /// Pixels of the prototypes.
    Prototypes {
        /// Maps to pixels of the model's input: `box * ratio + offset`.
        edges: FrameMap,
        /// Prototype pixels per pixel of the model's input.
        factor: [f32; 2],
    },
    /// Pixels of the frame.
    Frame {
        /// Maps to pixels of the frame: `(box - offset) / ratio`.
        edges: FrameMap,
        samples: [FrameSamples; 2],
    },
}

/// Maps pixels of the frame to pixels of the prototypes along an axis, from pixel center to pixel
/// center: `(pixel + 0.5) * step + origin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FrameSamples {
    /// The number of columns or rows of the prototypes.
    pub size: u32,
    pub step: f32,
    pub origin: f32,
}

/// The two columns or rows that a pixel of the frame lies between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub first: u32,
    pub second: u32,
    /// The weight of the second column or row.
    pub weight: f32,
}

impl MaskGrid {
    /// The pixels of an image's masks, from `prototypes` and the image's `place`.
    pub fn new(
        layout: &Layout,
        prototypes: &Prototypes,
        params: &Params,
        place: &ImagePlace,
    ) -> Self {
        let size = [prototypes.width as u32, prototypes.height as u32];
        let model_size = place.mask_model_size(layout, prototypes);
        let is_in_frame = place.boxes == BoxPixels::Frame;
        let identity = |size| FrameMap { size, ratio: [1.0; 2], offset: [0.0; 2] };
        match (params.mask_size, place.frame) {
            (MaskSize::Frame, Some(frame)) => {
                let samples = [0, 1].map(|axis| {
                    let factor = f64::from(size[axis]) / f64::from(model_size[axis]);
                    FrameSamples {
                        size: size[axis],
                        step: (frame.ratio[axis] * factor) as f32,
                        origin: (frame.offset[axis] * factor - 0.5) as f32,
                    }
                });
                let edges = if is_in_frame { identity(frame.size) } else { frame };
                Self::Frame { edges, samples }
            }
            _ => {
                let factor = [0, 1].map(|axis| size[axis] as f32 / model_size[axis]);
                let edges = match place.frame.filter(|_| is_in_frame) {
                    Some(frame) => FrameMap { size, ..frame },
                    None => identity(size),
                };
                Self::Prototypes { edges, factor }
            }
        }
    }

    /// The pixels that the mask of `detection` covers.
    pub fn area(&self, detection: &Detection) -> MaskArea {
        let &Detection { x1, y1, x2, y2, .. } = detection;
        let edges = [[x1, x2], [y1, y2]];
        let [[left, width], [top, height]] = [0, 1].map(|axis| self.span(axis, edges[axis]));
        MaskArea { left, top, width, height }
    }

    /// The first pixel, and the number of pixels, of a box along an axis.
    fn span(&self, axis: usize, [low, high]: [f32; 2]) -> [u32; 2] {
        let (first, end) = match self {
            Self::Prototypes { edges, factor } => {
                let edge = |edge: f32| {
                    let edge = (f64::from(edge) * edges.ratio[axis] + edges.offset[axis]) as f32;
                    // The first pixel that is not before the edge. The conversion saturates; NaN
                    // becomes 0.
                    ((edge * factor[axis]).ceil() as u32).min(edges.size[axis])
                };
                (edge(low), edge(high))
            }
            Self::Frame { edges, .. } => {
                let size = edges.size[axis];
                let edge = |edge: f32| {
                    let edge = (f64::from(edge) - edges.offset[axis]) / edges.ratio[axis];
                    (edge.clamp(0.0, f64::from(size)) as f32).round() as u32
                };
                let first = edge(low).min(size - 1);
                (first, edge(high).clamp(first + 1, size))
            }
        };
        [first, end.saturating_sub(first)]
    }
}

impl FrameSamples {
    /// The two columns or rows that pixel `pixel` of the frame lies between.
    pub fn at(&self, pixel: u32) -> Sample {
        let last = self.size - 1;
        let position = (pixel as f32 + 0.5) * self.step + self.origin;
        // NaN becomes 0.
        let position = if position > 0.0 { position } else { 0.0 };
        let position = if position < last as f32 { position } else { last as f32 };
        let first = position as u32;
        Sample { first, second: (first + 1).min(last), weight: position - first as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{self, Field};
    use crate::geometry::{Letterbox, Mapping};
    use crate::tensor::TensorView;

    fn prototypes(width: usize, height: usize) -> Prototypes {
        let field =
            Field { tensor: 0, offset: 0, image_stride: 0, anchor_stride: 1, component_stride: 1 };
        Prototypes { field, width, height, column: 0 }
    }

    /// The pixels of masks of an image at `place`, for a layout whose coordinates are pixels.
    fn grid(prototypes: &Prototypes, mask_size: MaskSize, place: &ImagePlace) -> MaskGrid {
        let boxes = TensorView::from_slice("boxes", &[0, 4], &[0.0f32; 0]);
        let scores = TensorView::from_slice("scores", &[0], &[0.0f32; 0]);
        let choice = decoder::choose(&[boxes, scores], None, decoder::Options::default());
        let params = Params { mask_size, ..Params::default() };
        MaskGrid::new(&choice.unwrap().layout, prototypes, &params, place)
    }

    fn detection([x1, y1, x2, y2]: [f32; 4]) -> Detection {
        Detection { x1, y1, x2, y2, ..Detection::default() }
    }

    #[test]
    fn a_mask_has_the_columns_from_the_left_edge_to_before_the_right_edge() {
        let place = ImagePlace::in_model([640.0, 320.0]);
        let grid = grid(&prototypes(160, 80), MaskSize::Prototypes, &place);
        let area = |left, top, width, height| MaskArea { left, top, width, height };
        for (corners, expected) in [
            ([0.0, 0.0, 640.0, 320.0], area(0, 0, 160, 80)),
            // 8 / 4 = 2 and 12 / 4 = 3: column 2, but not column 3.
            ([8.0, 4.0, 12.0, 8.0], area(2, 1, 1, 1)),
            ([8.1, 0.0, 12.1, 3.9], area(3, 0, 1, 1)),
            // No pixel lies between these edges.
            ([8.1, 0.0, 11.9, 4.0], area(3, 0, 0, 1)),
            ([-50.0, -1.0, 3.0, 1e9], area(0, 0, 1, 80)),
            ([700.0, 0.0, 800.0, 4.0], area(160, 0, 0, 1)),
        ] {
            assert_eq!(grid.area(&detection(corners)), expected, "{corners:?}");
        }
    }

    /// Boxes in one part of a frame are in pixels of the frame.
    #[test]
    fn boxes_in_pixels_of_the_frame_have_the_masks_of_boxes_in_the_models_input() {
        // A part of the frame, 320x160 pixels at (100, 50), is scaled to the model's input of
        // 640x320.
        let frame = FrameMap { size: [500, 300], ratio: [2.0; 2], offset: [-200.0, -100.0] };
        let place = ImagePlace { frame: Some(frame), ..ImagePlace::in_model([640.0, 320.0]) };
        let in_frame = ImagePlace { boxes: BoxPixels::Frame, ..place };
        for mask_size in [MaskSize::Prototypes, MaskSize::Frame] {
            let area = |place, corners| {
                grid(&prototypes(160, 80), mask_size, place).area(&detection(corners))
            };
            let expected = area(&place, [8.0, 4.0, 120.0, 60.0]);
            assert!(expected.bytes() > 0);
            assert_eq!(area(&in_frame, [104.0, 52.0, 160.0, 80.0]), expected, "{mask_size:?}");
        }
    }

    #[test]
    fn pixels_of_the_frame_are_between_the_centers_of_prototype_pixels() {
        let mapping = Mapping::new([1280, 720], [640, 640], Letterbox::Center).unwrap();
        let place = ImagePlace::in_frame(&mapping, 0);
        let grid = grid(&prototypes(160, 160), MaskSize::Frame, &place);
        let MaskGrid::Frame { samples: [x, y], .. } = grid else {
            panic!("expected pixels of the frame")
        };
        // A prototype pixel covers 8 pixels of the frame: the centers are at 4, 12, 20 ...
        assert_eq!(x.at(0), Sample { first: 0, second: 1, weight: 0.0 });
        assert_eq!(x.at(4), Sample { first: 0, second: 1, weight: 0.0625 });
        assert_eq!(x.at(11), Sample { first: 0, second: 1, weight: 0.9375 });
        assert_eq!(x.at(12), Sample { first: 1, second: 2, weight: 0.0625 });
        assert_eq!(x.at(1279), Sample { first: 159, second: 159, weight: 0.0 });
        // 140 rows of the model's input are border, which is 35 rows of the prototypes.
        assert_eq!(y.at(4), Sample { first: 35, second: 36, weight: 0.0625 });
    }
}
