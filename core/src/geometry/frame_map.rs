// SPDX-License-Identifier: MIT OR Apache-2.0
//! The position of a frame in the model's input, as numbers.

/// The position of a frame's pixels in the model's input: `model = frame * ratio + offset`, along x and y.
///
/// If the image is a part of the frame, the equation is the one of that part: pixels of the frame outside of the part are
/// outside of the model's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameMap {
    /// Width and height of the frame in pixels; 1 to 65536 for masks in pixels of the frame.
    pub size: [u32; 2],
    /// Pixels of the model's input per pixel of the frame.
    pub ratio: [f64; 2],
    /// The left and upper edge of the frame in pixels of the model's input.
    pub offset: [f64; 2],
}
