// SPDX-License-Identifier: MIT OR Apache-2.0
//! The input of a model that tests make up.

use super::{ChannelOrder, InputLayout, InputSpec, PixelElement};

impl InputSpec {
    /// An input of RGB in planes, from 0 to 1.
    pub fn with_size(size: [u32; 2], element: PixelElement) -> Self {
        Self {
            name: "images".to_owned(),
            element,
            layout: InputLayout::Nchw,
            has_batch: true,
            batch: 1,
            size,
            channels: 3,
            order: ChannelOrder::Rgb,
            ranges: [[0.0, 1.0]; 3],
            mean: [0.0; 3],
            std: [1.0; 3],
        }
    }
}
