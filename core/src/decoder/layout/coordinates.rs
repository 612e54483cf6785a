// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit of coordinates.

use crate::tensor::TensorView;

/// The unit of a tensor's coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Coordinates {
    /// As the decoder defines it. If it does not: normalized if the tensor's id ends in `-normalized`, pixels
    /// otherwise.
    #[default]
    Auto = 0,
    /// Pixels of the model's input.
    Pixels = 1,
    /// Fractions of the width and height of the model's input, 0 to 1.
    Normalized = 2,
}

impl Coordinates {
    /// Whether the coordinates of `tensor` are normalized, if its decoder does not define it.
    pub(in crate::decoder) fn normalized(self, tensor: &TensorView<'_>) -> bool {
        self.normalized_or(false, tensor)
    }

    /// The same of a decoder whose coordinates are normalized if `default` is true.
    pub(in crate::decoder) fn normalized_or(self, default: bool, tensor: &TensorView<'_>) -> bool {
        match self {
            Self::Auto => default || tensor.id.ends_with("-normalized"),
            Self::Pixels => false,
            Self::Normalized => true,
        }
    }
}
