// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of the dimensions of a tensor.

/// True if the numbers of an anchor or pixel, the channels, are before or after the anchors, where the shapes of all
/// tensors of a model leave both open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Channels {
    /// Unknown: shapes that can have both orders are an error.
    #[default]
    Auto = 0,
    /// For example `[1,C,H,W]` and `[1,4+C,N]`.
    First = 1,
    /// For example `[1,H,W,C]` and `[1,N,4+C]`.
    Last = 2,
}
