// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensor of prototypes, from which masks are computed.
//!
//! In: the tensor's shape. Out: the number of images and prototypes, and where their pixels are.

use std::fmt;

use super::fit::Fitting;
use super::open::unless;
use super::shape::Pattern;
use crate::decoder::check::{check_batch, check_element_type, open_order};
use crate::decoder::layout::{Field, LayoutProblem, Prototypes};
use crate::decoder::{Channels, LayoutError};
use crate::tensor::TensorView;
use crate::wording::Setting;

/// The prototypes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrototypeImages {
    pub images: usize,
    pub channels: usize,
    height: usize,
    width: usize,
    /// True if the channels of a pixel follow one another.
    is_channels_last: bool,
}

/// The ratio of the model's input to the prototypes, along each side, in the exports of Ultralytics.
const INPUT_PER_PROTOTYPE: f32 = 4.0;

/// The number of prototypes of nearly all models.
const USUAL_CHANNELS: usize = 32;

impl PrototypeImages {
    /// The prototypes in a tensor whose shape is one of `shapes`, `M,H,W` or `H,W,M`; `None` if the shape does not fit.
    /// `is_possible` tells whether a reading fits the other tensors.
    ///
    /// If both orders are possible, [`Options::channels`] decides, else the size of the model's input, else the number of
    /// prototypes: at most 32, of images with larger sides, else the order of the other tensors, if that is known.
    ///
    /// # Errors
    /// If both readings are possible. `has_num_classes` tells whether the number of classes is known.
    pub fn find(
        (tensor, shapes): (&TensorView<'_>, &[Pattern]),
        is_possible: impl Fn(&Self) -> bool,
        has_num_classes: bool,
        model: Fitting<'_>,
    ) -> Result<Option<Self>, LayoutError> {
        let (images, [a, b, c]) = match *tensor.shape {
            [a, b, c] if a.min(b).min(c) > 1 => (1, [a, b, c]),
            [images, a, b, c] => (images, [a, b, c]),
            _ => return Ok(None),
        };
        let is_readable = check_element_type(tensor).is_ok()
            && check_batch(tensor, images, model.options).is_ok()
            && a.min(b).min(c) > 0;
        if !is_readable {
            return Ok(None);
        }
        let reading = |shape: &Pattern| match shape.has_numbers_last() {
            false => Self { images, channels: a, height: b, width: c, is_channels_last: false },
            true => Self { images, channels: c, height: a, width: b, is_channels_last: true },
        };
        // Vectors are not images.
        let fits = |of: &Self| of.width > 1 && of.height > 1 && is_possible(of);
        let mut readings = shapes.iter().map(reading).filter(fits);
        let (first, last) = match (readings.next(), readings.next()) {
            (Some(first), Some(last)) => (first, last),
            (first, _) => return Ok(first),
        };
        let has_order = |reading: &Self| match model.options.channels {
            Channels::Auto => false,
            Channels::First => !reading.is_channels_last,
            Channels::Last => reading.is_channels_last,
        };
        let is_of_input = |reading: &Self| {
            let sides = [reading.width, reading.height];
            model.options.model_size == Some(sides.map(|side| side as f32 * INPUT_PER_PROTOTYPE))
        };
        let is_usual = |reading: &Self| {
            reading.channels <= USUAL_CHANNELS && USUAL_CHANNELS < reading.width.min(reading.height)
        };
        let only = |is: &dyn Fn(&Self) -> bool| match (is(&first), is(&last)) {
            (true, false) => Some(first),
            (false, true) => Some(last),
            _ => None,
        };
        let of_order = Some(first).filter(|_| model.of.has_order);
        let decide: [&dyn Fn(&Self) -> bool; 3] = [&has_order, &is_of_input, &is_usual];
        let found = decide.into_iter().find_map(only).or(of_order);
        found.map(Some).ok_or_else(|| {
            let decoder = model.of.name;
            let size = |it: Self| (it.channels, it.width, it.height);
            if size(first) == size(last) {
                return open_order(tensor, decoder);
            }
            let text = format!(
                "tensor {tensor}: decoder {decoder} can read it as {first} or {last}; set {}{} to first or last, or {} to \
                 the model's input",
                unless(has_num_classes, ", "),
                Setting::Channels,
                Setting::ModelSize
            );
            LayoutError::new(LayoutProblem::Prototypes, text)
        })
    }

    /// Returns true if the images have the aspect ratio of this size.
    pub fn has_ratio_of(&self, [width, height]: [f32; 2]) -> bool {
        self.width as f32 * height == self.height as f32 * width
    }

    /// The prototypes in the tensor with index `tensor`, whose coefficients are the column with index `column`.
    pub fn prototypes(self, tensor: usize, column: usize) -> Prototypes {
        let Self { channels, height, width, is_channels_last, .. } = self;
        let pixels = width.saturating_mul(height);
        let field = Field::of_matrix(tensor, pixels, channels, !is_channels_last);
        Prototypes { field, width, height, column }
    }
}

/// Writes a text such as `32 prototypes of 160x96`.
impl fmt::Display for PrototypeImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channels, width, height, .. } = self;
        write!(f, "{channels} prototypes of {width}x{height}")
    }
}
