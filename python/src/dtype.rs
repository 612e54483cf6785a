// SPDX-License-Identifier: MIT OR Apache-2.0
//! Element types of arrays, as NumPy and DLPack name them.

use std::fmt;

use nmsfilter_core::tensor::ElementType;

use crate::dlpack;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F16,
    F32,
    F64,
    Bf16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

impl Dtype {
    pub const ALL: [Self; 13] = [
        Self::F16,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
    ];

    /// NumPy's name, which PyTorch and others have, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Bf16 => "bfloat16",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
        }
    }

    /// The bytes of an element.
    pub fn size(self) -> usize {
        usize::from(self.dlpack().bits) / 8
    }

    /// The type in DLPack.
    pub fn dlpack(self) -> dlpack::DataType {
        let (code, bits) = match self {
            Self::I8 => (0, 8),
            Self::I16 => (0, 16),
            Self::I32 => (0, 32),
            Self::I64 => (0, 64),
            Self::U8 => (1, 8),
            Self::U16 => (1, 16),
            Self::U32 => (1, 32),
            Self::U64 => (1, 64),
            Self::F16 => (2, 16),
            Self::F32 => (2, 32),
            Self::F64 => (2, 64),
            Self::Bf16 => (4, 16),
            Self::Bool => (6, 8),
        };
        dlpack::DataType { code, bits, lanes: 1 }
    }

    /// The type of this DLPack type; `None` for one that is not among them.
    pub fn from_dlpack(dtype: dlpack::DataType) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.dlpack() == dtype)
    }

    /// The kind and the bytes of an element in the array interface, such as `f4`; `None` for bfloat16, which it lacks.
    pub fn typestr(self) -> Option<&'static str> {
        Some(match self {
            Self::F16 => "f2",
            Self::F32 => "f4",
            Self::F64 => "f8",
            Self::Bf16 => return None,
            Self::I8 => "i1",
            Self::I16 => "i2",
            Self::I32 => "i4",
            Self::I64 => "i8",
            Self::U8 => "u1",
            Self::U16 => "u2",
            Self::U32 => "u4",
            Self::U64 => "u8",
            Self::Bool => "b1",
        })
    }

    /// The type of a `typestr` of the array interface, in native byte order.
    pub fn from_typestr(typestr: &str) -> Option<Self> {
        let (order, kind) = typestr.split_at_checked(1)?;
        let is_native = matches!(order, "|" | "=") || order == native_order();
        Self::ALL.into_iter().find(|known| is_native && known.typestr() == Some(kind))
    }

    /// The engines' type, if they read it.
    pub fn element(self) -> Option<ElementType> {
        Some(match self {
            Self::F16 => ElementType::F16,
            Self::F32 => ElementType::F32,
            Self::I8 => ElementType::I8,
            Self::U8 => ElementType::U8,
            Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
            _ => return None,
        })
    }
}

/// The byte order of the array interface.
pub fn native_order() -> &'static str {
    if cfg!(target_endian = "little") { "<" } else { ">" }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
