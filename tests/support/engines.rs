// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine under test: `Cpu`, or `Cuda` where `NMSFILTER_TEST_BACKEND` is `cuda`.

use std::sync::{Arc, LazyLock};

use gstnmsfilter::internals::decoder::Layout;
use gstnmsfilter::internals::device::Device;
use gstnmsfilter::internals::engine::{
    Cpu, Cuda, Engine, GroupOutcome, ImagePlace, MAX_IMAGES, Mask,
};

/// Kept open, because creating a context takes long.
static GPU: LazyLock<Arc<Device>> =
    LazyLock::new(|| Device::open(0).expect("NMSFILTER_TEST_BACKEND=cuda needs a GPU"));

/// Whether the tests are to run on a GPU.
pub fn on_gpu() -> bool {
    match std::env::var("NMSFILTER_TEST_BACKEND").as_deref() {
        Ok("cuda") => true,
        Ok("cpu") | Err(_) => false,
        Ok(other) => panic!("expected NMSFILTER_TEST_BACKEND to be cpu or cuda, got {other}"),
    }
}

/// A new engine under test, to compare with `Reference`.
pub fn fast() -> Box<dyn Engine> {
    match on_gpu() {
        true => Box::new(Cuda::new(Some(GPU.ordinal())).expect("the kernels load")),
        false => Box::new(Cpu::default()),
    }
}

/// The place of each image of a layout: in no frame, in a group by itself.
pub fn places(layout: &Layout) -> Vec<ImagePlace> {
    // More images are an error, whatever their places are.
    ImagePlace::in_model([1.0; 2]).repeated(layout.images.min(MAX_IMAGES + 1))
}

/// The number of random scenes to run: `count`, divided by `NMSFILTER_TEST_FEWER` if that is set, as
/// it is for the emulated GPU, which is slow.
pub fn scene_count(count: u64) -> u64 {
    let divisor = std::env::var("NMSFILTER_TEST_FEWER").ok();
    count / divisor.map_or(1, |divisor| divisor.parse().expect("NMSFILTER_TEST_FEWER is a number"))
}

/// Fails a test that needs a GPU if the tests do not run on one. Such tests are marked `#[ignore = "needs a
/// GPU"]`.
pub fn require_gpu() {
    assert!(on_gpu(), "set NMSFILTER_TEST_BACKEND=cuda, or leave out --include-ignored");
}

/// The masks of the survivors.
pub fn masks<'a>(outcome: &GroupOutcome<'a>) -> Vec<Option<Mask<'a>>> {
    (0..outcome.survivors.len()).map(|survivor| outcome.masks.get(survivor)).collect()
}

/// The bits of the survivors, and the counts of candidates and of rejected anchors.
pub fn bits(outcome: &GroupOutcome<'_>) -> (Vec<[u32; 7]>, usize, usize) {
    let survivors = outcome.survivors.iter().map(|d| {
        let [x1, y1, x2, y2, score] = [d.x1, d.y1, d.x2, d.y2, d.score].map(f32::to_bits);
        [x1, y1, x2, y2, score, d.class, d.anchor]
    });
    (survivors.collect(), outcome.candidates, outcome.rejected)
}
