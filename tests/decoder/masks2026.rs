// SPDX-License-Identifier: MIT OR Apache-2.0
//! Masks of recorded outputs of real models. Masks of the prototypes' size are compared with the
//! results of a NumPy program (data/models2026); masks of the frame's size are compared with an
//! interpolation in double precision.

use std::path::Path;

use nmsfilter_core::decoder::Layout;
use nmsfilter_core::engine::{Engine, ImagePlace, Job, Mask, MaskSize, Params, Reference};
use nmsfilter_core::geometry::{Letterbox, Mapping};
use nmsfilter_core::tensor::TensorView;

use super::models2026::Case;
use crate::support::recorded::CASES;
use crate::support::{data, engines};

/// Returns the elements of the first array in an `.npz` file, which are of type u8.
fn npz(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"PK\x03\x04") && bytes[8] == 8, "expected a deflated file");
    let number = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let array = miniz_oxide::inflate::decompress_to_vec(&bytes[30 + number(26) + number(28)..]);
    let array = array.unwrap();
    let header = usize::from(u16::from_le_bytes([array[8], array[9]]));
    assert!(std::str::from_utf8(&array[10..10 + header]).unwrap().contains("'descr': '|u1'"));
    array[10 + header..].to_vec()
}

/// Returns the bit of a pixel. Each row of pixels begins with a new byte.
fn bit(rows: &[u8], width: usize, [x, y]: [usize; 2]) -> bool {
    rows[y * width.div_ceil(8) + x / 8] & (0x80 >> (x % 8)) != 0
}

/// Computes a logit for each pixel of the prototypes from a survivor's coefficients, in double
/// precision.
fn logits(tensors: &[TensorView<'_>], layout: &Layout, coefficients: &[f32]) -> Vec<f64> {
    let prototypes = layout.prototypes.unwrap();
    let tensor = &tensors[prototypes.field.tensor];
    let elements = tensor.elements().unwrap();
    let number = |pixel: usize, channel: usize| {
        let element = elements.to_f32(prototypes.field.index(pixel, channel));
        f64::from(tensor.quantization.map_or(element, |quantization| quantization.number(element)))
    };
    let logit = |pixel| {
        let channels = coefficients.iter().enumerate();
        channels
            .map(|(channel, &coefficient)| f64::from(coefficient) * number(pixel, channel))
            .sum()
    };
    (0..prototypes.pixels()).map(logit).collect()
}

/// Calls `act` for each case that has masks, with its name, its folder, and what is needed to
/// decode it.
fn with_cases(act: impl Fn(&str, &Path, &Case, &[TensorView<'_>], &Layout, &Params)) -> usize {
    let cases = CASES.iter().filter(|(_, decoder, _)| decoder.ends_with("-seg"));
    cases
        .filter_map(|(name, decoder, _)| {
            let folder = data::path(&format!("data/models2026/{name}"))?;
            let case = Case::read(&folder);
            case.with(decoder, |views, layout, params| {
                act(name, &folder, &case, views, layout, params);
            });
            Some(())
        })
        .count()
}

#[test]
fn recorded_outputs_have_the_expected_masks() {
    let cases = with_cases(|name, folder, case, views, layout, params| {
        let prototypes = layout.prototypes.unwrap();
        let (width, height) = (prototypes.width, prototypes.height);
        let expected = npz(&folder.join("masks.npz"));
        let expected: Vec<&[u8]> = expected.chunks(width.div_ceil(8) * height).collect();
        let (mut reference, mut fast) = (Reference::default(), engines::fast());
        for engine in [&mut reference as &mut dyn Engine, &mut *fast] {
            let outcome = engine.run(Job::new(views, layout, params, &case.places())).unwrap();
            let image = outcome.group(0);
            assert_eq!(image.survivors.len(), expected.len(), "{name}");
            let rows = image.columns.chunks(outcome.column_components);
            let mut set = 0;
            for (index, (expected, row)) in expected.iter().zip(rows).enumerate() {
                let mask = image.masks.get(index).unwrap();
                let logits = logits(views, layout, row);
                let (mut both, mut either) = (0, 0);
                for (pixel, logit) in logits.iter().enumerate() {
                    let at = [pixel % width, pixel / width];
                    let (expected, found) = (bit(expected, width, at), is_set(&mask, at));
                    let is_near = logit.abs() < 1e-4;
                    assert!(expected == found || is_near, "{name}, {index}, {at:?}");
                    both += usize::from(expected && found);
                    either += usize::from(expected || found);
                }
                assert!(both as f64 >= 0.99 * either as f64, "{name}, {index}: {both}, {either}");
                set += either;
            }
            assert!(set > 200, "{name}: {set} pixels are set");
        }
    });
    assert!(cases == 5 || data::path("data/models2026").is_none());
}

/// Returns true if the mask sets the pixel `at` of the whole prototypes or the whole frame.
fn is_set(mask: &Mask<'_>, at: [usize; 2]) -> bool {
    let first = [mask.left as usize, mask.top as usize];
    let [Some(x), Some(y)] = [0, 1].map(|axis| at[axis].checked_sub(first[axis])) else {
        return false;
    };
    let (width, height) = (mask.width as usize, mask.height as usize);
    x < width && y < height && bit(mask.bytes, width, [x, y])
}

#[test]
fn masks_of_the_frame_equal_an_interpolation_in_double_precision() {
    with_cases(|name, _, case, views, layout, params| {
        let frame = [250, 333];
        let model = case.model.map(|side| side as u32);
        let mapping = Mapping::new(frame, model, Letterbox::Center).unwrap();
        let params = Params { mask_size: MaskSize::Frame, ..params.clone() };
        let place = ImagePlace::in_frame(&mapping, 0);
        let outcome_of = |engine: &mut dyn Engine| {
            let outcome = engine.run(Job::new(views, layout, &params, &[place])).unwrap();
            let (image, mut compared, mut set) = (outcome.group(0), 0, 0);
            let rows = image.columns.chunks(outcome.column_components);
            for (index, row) in rows.enumerate() {
                let mask = image.masks.get(index).unwrap();
                let expected = FrameLogits::new(views, layout, row, &place);
                for y in mask.top..mask.top + mask.height {
                    for x in mask.left..mask.left + mask.width {
                        let logit = expected.at([x, y]);
                        if logit.abs() > 1e-3 {
                            let found = is_set(&mask, [x as usize, y as usize]);
                            assert_eq!(found, logit > 0.0, "{name}, {index}, {x}, {y}: {logit}");
                            compared += 1;
                            set += usize::from(found);
                        }
                    }
                }
            }
            assert!(compared > 1_000 && set > compared / 5 && set < compared, "{name}");
        };
        outcome_of(&mut Reference::default());
        outcome_of(&mut *engines::fast());
    });
}

/// Logits of the frame's pixels, interpolated in double precision.
struct FrameLogits {
    logits: Vec<f64>,
    /// Columns and rows of the prototypes.
    size: [usize; 2],
    /// How many prototype pixels a frame pixel spans, and where the frame's edge is in the
    /// prototypes.
    ratio: [f64; 2],
    offset: [f64; 2],
}

impl FrameLogits {
    fn new(
        tensors: &[TensorView<'_>],
        layout: &Layout,
        coefficients: &[f32],
        place: &ImagePlace,
    ) -> Self {
        let prototypes = layout.prototypes.unwrap();
        let size = [prototypes.width, prototypes.height];
        let frame = place.frame.unwrap();
        let prototypes_per_input_pixel =
            |axis: usize| size[axis] as f64 / f64::from(place.model_size[axis]);
        Self {
            logits: logits(tensors, layout, coefficients),
            size,
            ratio: [0, 1].map(|axis| frame.ratio[axis] * prototypes_per_input_pixel(axis)),
            offset: [0, 1].map(|axis| frame.offset[axis] * prototypes_per_input_pixel(axis)),
        }
    }

    /// Interpolates: sums up all pixels of the prototypes, weighted by their distance. At most four
    /// are nearer than 1 and have a weight.
    fn at(&self, pixel: [u32; 2]) -> f64 {
        let position = [0, 1].map(|axis| {
            let center = (f64::from(pixel[axis]) + 0.5) * self.ratio[axis] + self.offset[axis];
            (center - 0.5).clamp(0.0, self.size[axis] as f64 - 1.0)
        });
        let near = |axis: usize| {
            let first = position[axis].floor() as usize;
            (first..=first + 1).filter(move |&at| at < self.size[axis])
        };
        let weight = |axis: usize, at: usize| 1.0 - (position[axis] - at as f64).abs();
        let row_sum = |y: usize| -> f64 {
            near(0).map(|x| weight(0, x) * self.logits[y * self.size[0] + x]).sum()
        };
        near(1).map(|y| weight(1, y) * row_sum(y)).sum()
    }
}
