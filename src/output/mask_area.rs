// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes which parts of the frame masks cover.
//!
//! In: an engine's masks, in pixels of the prototypes or of the frame. Out: edges in pixels of the frame.

use crate::decoder::Layout;
use crate::engine::{Mask, MaskSize, Params};
use crate::geometry::Mapping;

/// The pixel size of a run's masks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskPixels {
    /// The width and height of a mask pixel, in pixels of the model's input; `None` if mask pixels are pixels of
    /// the frame.
    in_model: Option<[f32; 2]>,
}

impl MaskPixels {
    /// Determines the pixel size in a run with `params` for images in a frame.
    pub fn of(layout: &Layout, params: &Params) -> Self {
        let prototypes = layout.prototypes.filter(|_| params.mask_size == MaskSize::Prototypes);
        let in_model = prototypes.map(|of| {
            let size = [of.width, of.height];
            [0, 1].map(|axis| params.model_size[axis] / size[axis] as f32)
        });
        Self { in_model }
    }

    /// Returns the left, upper, right and lower edge of the part of the frame that a mask covers. This part can
    /// extend beyond the frame.
    pub fn area(&self, mask: &Mask<'_>, mapping: &Mapping) -> [f32; 4] {
        let corners = [
            [mask.left, mask.top],
            // The sums are within the prototypes or the frame, so they do not overflow.
            [mask.left + mask.width, mask.top + mask.height],
        ];
        let [[left, top], [right, bottom]] = corners.map(|corner| {
            let [x, y] = corner.map(|number| number as f32);
            match self.in_model {
                Some([width, height]) => mapping.frame_point([x * width, y * height]),
                None => [x, y],
            }
        });
        [left, top, right, bottom]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{self, Options};
    use crate::geometry::Letterbox;
    use crate::plan::Place;
    use crate::tensor::TensorView;

    #[test]
    fn pixels_of_prototypes_are_mapped_through_the_letterbox_and_those_of_the_frame_are_not() {
        let mapping = Mapping::new([1280, 720], [640, 640], Letterbox::Center).unwrap();
        let (rows, prototypes) = ([0.0f32; 2 * 7], [0.0f32; 160 * 160]);
        let tensors = [
            TensorView::from_slice("output0", &[1, 2, 7], &rows),
            TensorView::from_slice("output1", &[1, 1, 160, 160], &prototypes),
        ];
        let decoder = decoder::by_name("end2end-seg");
        let layout = decoder::choose(&tensors, decoder, Options::default()).unwrap().layout;
        let mask = Mask { left: 40, top: 34, width: 80, height: 90, bytes: &[] };
        for (mask_size, expected) in [
            // A mask pixel is 4 pixels of the model's input, which are 8 pixels of the frame. The first row is in
            // the border.
            (MaskSize::Prototypes, [320.0, -8.0, 960.0, 712.0]),
            (MaskSize::Frame, [40.0, 34.0, 120.0, 124.0]),
        ] {
            let mut params = Params { mask_size, ..Params::default() };
            Place::Frame(mapping).apply(&layout, &mut params);
            assert_eq!(MaskPixels::of(&layout, &params).area(&mask, &mapping), expected);
        }
    }
}
