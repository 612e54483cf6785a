// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading a tensor's elements.

use super::MAX_DIMENSIONS;

/// The reason why a tensor cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor {tensor}: {problem}")]
pub struct TensorError {
    /// The tensor, as displayed.
    pub tensor: String,
    /// Its problem.
    pub problem: TensorProblem,
}

impl TensorError {
    /// The error of this tensor.
    pub fn new(tensor: impl std::fmt::Display, problem: TensorProblem) -> Self {
        Self { tensor: tensor.to_string(), problem }
    }
}

/// The problems of tensors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// The memory is smaller than the shape requires.
    #[error(
        "its shape needs {needed} bytes, but its memory holds {held}; \
         correct the shape or the memory"
    )]
    TooShort {
        /// The number of bytes that the shape and the element type require.
        needed: usize,
        /// The number of bytes of the memory.
        held: usize,
    },
    /// The number of bytes of the shape overflows `usize`.
    #[error("its dimensions multiply to more elements than memory can hold")]
    TooLarge,
    /// The number of memories of images is not the first dimension.
    #[error(
        "expected its first dimension to be the number of images, but there are \
         memories of {held}; correct the shape, or pass a memory for each image"
    )]
    ImageCount {
        /// The number of images that have a memory.
        held: usize,
    },
    /// The images are in separate allocations, and all of them are to be read as one.
    #[error(
        "its images are in separate allocations and cannot be read as one; \
         read each image by itself (TensorView::image)"
    )]
    SeparateImages,
    /// The shape has more dimensions than [`MAX_DIMENSIONS`].
    #[error("expected at most {MAX_DIMENSIONS} dimensions, got {count}")]
    Dimensions {
        /// The number of dimensions.
        count: usize,
    },
    /// The element type cannot be read.
    #[error("expected elements of type f32, f16, i8, u8, i32 or i64; convert it upstream")]
    ElementType,
    /// The metadata has no memory.
    #[error("its metadata carries no memory; attach the elements with it")]
    Missing,
    /// The memory does not start at a multiple of the element size.
    #[error(
        "its memory starts at an address that is no multiple of {align} bytes; \
         copy the elements to memory that is aligned for their type"
    )]
    Misaligned {
        /// The required alignment in bytes.
        align: usize,
    },
    /// The memory could not be mapped.
    #[error("its memory cannot be mapped for reading: {cause}")]
    Map {
        /// The cause.
        cause: String,
    },
    /// The CPU cannot read the tensor, because it is in device memory that cannot be mapped to host memory.
    #[error(
        "it is in device memory, which the CPU cannot read; \
         use the backend cuda, or pass the tensor in host memory"
    )]
    NotOnHost,
}
