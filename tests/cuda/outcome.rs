//! What the tests of the engine share.

use gstnmsfilter::engine::Outcome;
use gstnmsfilter::head::{self, Layout};
use gstnmsfilter::tensor::Tensor;

/// How many random scenes are tried.
pub fn scenes() -> u64 {
    let said = std::env::var("NMSFILTER_TEST_SCENES").ok();
    said.map_or(300, |said| said.parse().expect("NMSFILTER_TEST_SCENES is a number"))
}

/// How many bytes are copied to the host: the counts of each launch, and the survivors.
pub fn bytes_down(outcome: &Outcome<'_>) -> u64 {
    32 * outcome.device.launches + 28 * outcome.survivors.len() as u64
}

/// The layout of tensors that have ids.
pub fn layout(tensors: &[Tensor<'_>]) -> Layout {
    head::choose(tensors, None, head::Options::default()).unwrap().layout
}
