// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit of coordinates.

use crate::tensor::TensorView;

/// The unit of a tensor's coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Coordinates {
    /// The decoder's unit. If it has none: normalized if the tensor's id ends in `-normalized`, pixels
    /// otherwise.
    #[default]
    Auto = 0,
    /// Pixels of the model's input.
    Pixels = 1,
    /// Fractions of the width and height of the model's input, 0 to 1.
    Normalized = 2,
}

impl Coordinates {
    /// Returns true if the coordinates of `tensor` are normalized. `default` is whether its decoder defines so.
    pub(in crate::decoder) fn normalized(self, default: bool, tensor: &TensorView<'_>) -> bool {
        match self {
            Self::Auto => default || tensor.id.ends_with("-normalized"),
            Self::Pixels => false,
            Self::Normalized => true,
        }
    }
}
