// SPDX-License-Identifier: MIT OR Apache-2.0
//! Element types of tensors.
//!
//! [`ElementType`] is the type at run time, [`Element`] the Rust type, and [`Elements`] the
//! elements in host memory.

use std::fmt;
use std::ops::RangeInclusive;

use half::f16;

/// Declares the types that can be read, each with the Rust type whose name it has.
macro_rules! element_types {
    ($($(#[$attribute:meta])* $variant:ident: $type:ident,)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ElementType {
            $($(#[$attribute])* $variant,)*
            /// Another type, with its name for messages. Such tensors cannot be read.
            Other(&'static str),
        }

        impl ElementType {
            /// The types that can be read.
            pub const READABLE: [Self; 6] = [$(Self::$variant),*];

            /// Bytes per element, or `None` for a type that cannot be read.
            pub fn size(self) -> Option<usize> {
                match self {
                    $(Self::$variant => Some(size_of::<$type>()),)*
                    Self::Other(_) => None,
                }
            }

            /// The type's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($type),)*
                    Self::Other(name) => name,
                }
            }
        }

        /// A tensor's elements in host memory, by type.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub enum Elements<'a> {
            $(#[doc = concat!("Elements of type `", stringify!($type), "`.")] $variant(&'a [$type]),)*
        }

        impl<'a> Elements<'a> {
            /// The elements in `bytes`, which are aligned for them. A type that cannot be read counts as f32.
            pub(super) fn new(element: ElementType, bytes: &'a [u8]) -> Self {
                match element {
                    $(ElementType::$variant => Self::$variant(cast(bytes)),)*
                    ElementType::Other(_) => Self::F32(cast(bytes)),
                }
            }
        }
    };
}

element_types! {
    /// IEEE 754 single precision, native byte order.
    #[default]
    F32: f32,
    /// IEEE 754 half precision, native byte order.
    F16: f16,
    /// Signed integers of 8 bits, as quantized models have them.
    I8: i8,
    /// Unsigned integers of 8 bits, as quantized models have them.
    U8: u8,
    /// Signed integers of 32 bits: classes and counts.
    I32: i32,
    /// Signed integers of 64 bits: classes and counts.
    I64: i64,
}

/// Evaluates an expression for the slice of elements, whose type it does not need to know.
macro_rules! with_elements {
    ($of:expr, $elements:ident => $value:expr) => {
        match $of {
            $crate::tensor::Elements::F32($elements) => $value,
            $crate::tensor::Elements::F16($elements) => $value,
            $crate::tensor::Elements::I8($elements) => $value,
            $crate::tensor::Elements::U8($elements) => $value,
            $crate::tensor::Elements::I32($elements) => $value,
            $crate::tensor::Elements::I64($elements) => $value,
        }
    };
}
pub(crate) use with_elements;

/// The elements in `bytes`, whose length and alignment were checked. An empty buffer has no alignment.
fn cast<T: Element>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

impl ElementType {
    /// Types that cannot be read, so that their tensors can be skipped: `Other` with these names.
    const NOT_READABLE: [&str; 7] = ["f64", "bf16", "i16", "u16", "u32", "u64", "bool"];

    /// The type with this name, as in the plugin's own metadata: one of [`READABLE`](Self::READABLE), or
    /// [`Other`](Self::Other) for a common type that cannot be read. `None` if no type has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let other = || Self::NOT_READABLE.into_iter().find(|other| *other == name).map(Self::Other);
        Self::READABLE.into_iter().find(|element| element.name() == name).or_else(other)
    }

    /// Returns true if the elements are floating-point numbers that can be read.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }

    /// Returns true if the elements are integers that can be read.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::U8 | Self::I32 | Self::I64)
    }

    /// The zero points that a quantized tensor of this type can have: the elements. `None` if the type is not quantized.
    pub fn zero_points(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::I8 => Some(i8::MIN.into()..=i8::MAX.into()),
            Self::U8 => Some(u8::MIN.into()..=u8::MAX.into()),
            Self::F32 | Self::F16 | Self::I32 | Self::I64 | Self::Other(_) => None,
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

    /// The value in single precision: exact, or for integers of more than 24 bits the nearest value, ties to
    /// even.
    fn to_f32(self) -> f32;
}

impl Element for f16 {
    const TYPE: ElementType = ElementType::F16;

    fn to_f32(self) -> f32 {
        self.to_f32()
    }
}

macro_rules! element {
    ($rust:ty, $element:ident) => {
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$element;

            fn to_f32(self) -> f32 {
                self as f32
            }
        }
    };
}
element!(f32, F32);
element!(i8, I8);
element!(u8, U8);
element!(i32, I32);
element!(i64, I64);

impl Elements<'_> {
    /// The element of this index in single precision, as [`Element::to_f32`] converts it.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub fn to_f32(&self, index: usize) -> f32 {
        match self {
            Self::F32(elements) => elements[index],
            _ => self.converted(index),
        }
    }

    /// [`to_f32`](Self::to_f32) for other types than f32, which are rarer: a function that is not
    /// inlined everywhere.
    fn converted(&self, index: usize) -> f32 {
        with_elements!(*self, elements => elements[index].to_f32())
    }
}

/// The numbers that the elements of a quantized tensor stand for: `(element - zero_point) * scale`, in single
/// precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    scale: f32,
    zero_point: i32,
}

impl Quantization {
    /// The greatest magnitude of a zero point. Differences from elements of 8 bits are exact in single
    /// precision.
    pub const MAX_ZERO_POINT: i32 = 1 << 16;

    /// `None` if `scale` is not a positive normal number, or `zero_point` exceeds
    /// [`MAX_ZERO_POINT`](Self::MAX_ZERO_POINT). A scale above zero keeps the order of the elements.
    pub fn new(scale: f32, zero_point: i32) -> Option<Self> {
        let is_valid = scale > 0.0
            && scale.is_normal()
            && zero_point.unsigned_abs() <= Self::MAX_ZERO_POINT.unsigned_abs();
        is_valid.then_some(Self { scale, zero_point })
    }

    /// The step from one number to the next.
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// The element that stands for 0.
    pub fn zero_point(self) -> i32 {
        self.zero_point
    }

    /// The number that `element` stands for. `element` is a whole number of less than 24 bits.
    pub fn number(self, element: f32) -> f32 {
        (element - self.zero_point as f32) * self.scale
    }
}
