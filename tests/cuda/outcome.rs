// SPDX-License-Identifier: MIT OR Apache-2.0
//! Helpers of the tests in this program.

use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::internals::decoder::{self, Layout};
use gstnmsfilter::internals::engine::Outcome;
use gstnmsfilter::tensor::{ElementType, TensorView};

/// The number of random scenes.
pub fn scenes() -> u64 {
    let value = std::env::var("NMSFILTER_TEST_SCENES").ok();
    value.map_or(300, |value| value.parse().expect("NMSFILTER_TEST_SCENES is a number"))
}

/// The number of bytes that are copied to the host: in each launch the counts of each image, and the
/// survivors.
pub fn bytes_downloaded(outcome: &Outcome<'_>) -> u64 {
    let survivors: usize = outcome.images().map(|image| image.survivors.len()).sum();
    32 * outcome.device().launches * outcome.images().len() as u64 + 28 * survivors as u64
}

/// A tensor of f32 in the memory of a buffer.
pub fn tensor_in(id: &str, shape: &[usize], data: &gst::BufferRef) -> NewTensor {
    NewTensor::new(id, ElementType::F32, shape, data.to_owned()).unwrap()
}

/// The layout of tensors that have ids.
pub fn layout(tensors: &[TensorView<'_>]) -> Layout {
    decoder::choose(tensors, None, decoder::Options::default()).unwrap().layout
}
