// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensor of prototypes, from which masks are computed.
//!
//! In: the tensor's shape. Out: the number of images and prototypes, and where their pixels are.

use super::Options;
use super::layout::{Field, Prototypes};
use super::matrix::{check_batch, check_element_type};
use crate::tensor::TensorView;

/// The prototypes of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PrototypeImages {
    pub images: usize,
    pub channels: usize,
    height: usize,
    width: usize,
    /// Whether the channels of a pixel follow one another.
    is_channels_last: bool,
}

impl PrototypeImages {
    /// Those of a tensor `[1,M,H,W]` or `[1,H,W,M]`, whose `M` is `channels` if that is known, else the only one of
    /// both that is less than the others; `None` if the shape does not fit.
    pub fn of(tensor: &TensorView<'_>, channels: Option<usize>, options: Options) -> Option<Self> {
        check_element_type(tensor).ok()?;
        let (images, [a, b, c]) = match *tensor.shape {
            [a, b, c] if a.min(b).min(c) > 1 => (1, [a, b, c]),
            [images, a, b, c] => (images, [a, b, c]),
            _ => return None,
        };
        check_batch(tensor, images, options).ok()?;
        let is_channels_last = match channels {
            Some(channels) if a == channels => false,
            Some(channels) if c == channels => true,
            Some(_) => return None,
            None if a < b.min(c) => false,
            None if c < a.min(b) => true,
            None => return None,
        };
        let (channels, [height, width]) = if is_channels_last { (c, [a, b]) } else { (a, [b, c]) };
        let is_filled = channels > 0 && height > 0 && width > 0;
        is_filled.then_some(Self { images, channels, height, width, is_channels_last })
    }

    pub fn prototypes(self) -> Prototypes {
        let Self { channels, height, width, is_channels_last, .. } = self;
        let pixels = width.saturating_mul(height);
        let (anchor_stride, component_stride) =
            if is_channels_last { (channels, 1) } else { (1, pixels) };
        let image_stride = pixels.saturating_mul(channels);
        let field = Field { tensor: 1, offset: 0, image_stride, anchor_stride, component_stride };
        Prototypes { field, width, height, column: 0 }
    }
}
