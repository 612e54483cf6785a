// SPDX-License-Identifier: MIT OR Apache-2.0
//! Element types of tensors.
//!
//! [`ElementType`] is the type at run time, [`Element`] the Rust type, and [`Elements`] the
//! elements in host memory.

use std::fmt;

use half::f16;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// IEEE 754 single precision, native byte order.
    #[default]
    F32,
    /// IEEE 754 half precision, native byte order.
    F16,
    /// Another type, with its name for messages. Such tensors cannot be read.
    Other(&'static str),
}

impl ElementType {
    /// Bytes per element, or `None` for a type that cannot be read.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::F32 => Some(size_of::<f32>()),
            Self::F16 => Some(size_of::<f16>()),
            Self::Other(_) => None,
        }
    }

    /// The type with this name, `f32` or `f16`, as in the plugin's own metadata.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "f32" => Some(Self::F32),
            "f16" => Some(Self::F16),
            _ => None,
        }
    }

    /// The type's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that a tensor's elements can have.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The element type of tensors of this type.
    const TYPE: ElementType;

    /// The value in single precision; the conversion is exact.
    fn to_f32(self) -> f32;

    /// The nearest value of this type, ties to even.
    fn from_f32(value: f32) -> Self;
}

impl Element for f32 {
    const TYPE: ElementType = ElementType::F32;

    fn to_f32(self) -> f32 {
        self
    }

    fn from_f32(value: f32) -> Self {
        value
    }
}

impl Element for f16 {
    const TYPE: ElementType = ElementType::F16;

    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }
}

/// A tensor's elements in host memory, by type.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Elements<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Half precision.
    F16(&'a [f16]),
}
