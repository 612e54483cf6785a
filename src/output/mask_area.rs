// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes which parts of the frame masks cover.
//!
//! In: an engine's masks, in pixels of the prototypes or of the frame. Out: edges in pixels of the frame.

use nmsfilter_core::decoder::Layout;
use nmsfilter_core::engine::{ImagePlace, Mask, MaskSize, Params};
use nmsfilter_core::geometry::Mapping;

/// Returns the left, upper, right and lower edge of the part of the frame that a mask of an image at `place` covers. This
/// part can extend beyond the frame.
pub(crate) fn mask_area(
    mask: &Mask<'_>,
    (layout, params): (&Layout, &Params),
    place: &ImagePlace,
    mapping: &Mapping,
) -> [f32; 4] {
    let prototypes = layout.prototypes.filter(|_| params.mask_size == MaskSize::Prototypes);
    // The width and height of a mask pixel, in pixels of the model's input.
    let pixel = prototypes.map(|prototypes| {
        let model = place.mask_model_size(layout, &prototypes);
        // A conversion of 32 bits has no branch, which valgrind reports where a compiler makes it in advance, although the
        // layout has no prototypes.
        let size = [prototypes.width, prototypes.height].map(|side| side as u32);
        [0, 1].map(|axis| model[axis] / size[axis] as f32)
    });
    // The sums are within the prototypes or the frame, so they do not overflow.
    let corners = [[mask.left, mask.top], [mask.left + mask.width, mask.top + mask.height]];
    let [[left, top], [right, bottom]] = corners.map(|corner| {
        let [x, y] = corner.map(|number| number as f32);
        match pixel {
            Some([width, height]) => mapping.frame_point([x * width, y * height]),
            None => [x, y],
        }
    });
    [left, top, right, bottom]
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmsfilter_core::decoder::{self, Options};
    use nmsfilter_core::engine::{Cpu, Engine, Job};
    use nmsfilter_core::geometry::Letterbox;
    use nmsfilter_core::tensor::TensorView;

    #[test]
    fn pixels_of_prototypes_are_mapped_through_the_letterbox_and_those_of_the_frame_are_not() {
        let mapping = Mapping::new([1280, 720], [640, 640], Letterbox::Center).unwrap();
        let prototypes = [0.0f32; 160 * 160];
        for (mask_size, corners, pixels, expected) in [
            // 4 pixels of the model's input, which are 8 of the frame; the first row is in the border.
            (
                MaskSize::Prototypes,
                [160.0, 136.0, 480.0, 496.0],
                [40, 34, 80, 90],
                [320.0, -8.0, 960.0, 712.0],
            ),
            (
                MaskSize::Frame,
                [20.0, 157.0, 60.0, 202.0],
                [40, 34, 80, 90],
                [40.0, 34.0, 120.0, 124.0],
            ),
        ] {
            let [x1, y1, x2, y2] = corners;
            let row = [x1, y1, x2, y2, 0.9f32, 0.0, 1.0];
            let tensors = [
                TensorView::from_slice("output0", &[1, 1, 7], &row),
                TensorView::from_slice("output1", &[1, 1, 160, 160], &prototypes),
            ];
            let decoder = decoder::by_name("end2end-seg");
            let layout = decoder::choose(&tensors, decoder, Options::default()).unwrap().layout;
            let params = Params { mask_size, ..Params::default() };
            let place = ImagePlace::in_frame(&mapping, 0);
            let mut engine = Cpu::default();
            let outcome =
                engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap().group(0);
            let mask = outcome.masks.get(0).expect("the survivor has a mask");
            assert_eq!([mask.left, mask.top, mask.width, mask.height], pixels);
            let found = mask_area(&mask, (&layout, &params), &place, &mapping);
            assert_eq!(found, expected);
        }
    }
}
