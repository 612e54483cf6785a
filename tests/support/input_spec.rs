// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a model's input.

use gstonnxruntime::inference::model::{ChannelOrder, InputLayout, InputSpec};
use nmsfilter_core::tensor::ElementType;

/// An input of RGB in planes, from 0 to 1.
pub fn input_spec(size: [u32; 2], element: ElementType) -> InputSpec {
    InputSpec {
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
