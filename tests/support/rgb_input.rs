// SPDX-License-Identifier: MIT OR Apache-2.0
//! The input of a model that takes RGB in planes, from 0 to 1.

use gstonnxruntime::inference::model::{ChannelOrder, InputLayout, InputSpec};
use nmsfilter_core::tensor::ElementType;

pub fn rgb_input(size: [u32; 2], element: ElementType) -> InputSpec {
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
