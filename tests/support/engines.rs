// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine under test: `Cuda` if `NMSFILTER_TEST_BACKEND` is `cuda`, otherwise `Cpu`.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};

use nmsfilter_core::decoder::Layout;
use nmsfilter_core::device::Device;
use nmsfilter_core::engine::{Cpu, Cuda, Engine, GroupOutcome, ImagePlace, MAX_IMAGES, Mask};

/// The GPU, which is kept open, because creating a context takes long.
static GPU: LazyLock<Arc<Device>> =
    LazyLock::new(|| Device::open(0).expect("NMSFILTER_TEST_BACKEND=cuda needs a GPU"));

/// Returns true if the tests are to run on a GPU.
pub fn on_gpu() -> bool {
    match std::env::var("NMSFILTER_TEST_BACKEND").as_deref() {
        Ok("cuda") => true,
        Ok("cpu") | Err(_) => false,
        Ok(other) => panic!("expected NMSFILTER_TEST_BACKEND to be cpu or cuda, got {other}"),
    }
}

/// Returns a new engine under test, for comparison with `Reference`.
pub fn fast() -> Box<dyn Engine> {
    if on_gpu() {
        Box::new(Cuda::new(Some(GPU.ordinal())).expect("the kernels load"))
    } else {
        Box::new(Cpu::default())
    }
}

/// The place of each image of a layout: in no frame, in a separate group. A layout can have any number of images.
pub fn places(layout: &Layout) -> Vec<ImagePlace> {
    ImagePlace::in_model([1.0; 2]).repeated(layout.images.min(MAX_IMAGES + 1))
}

/// The number of random scenes to run: `count`, divided by `NMSFILTER_TEST_FEWER` if that is set, as
/// it is for the emulated GPU, which is slow.
pub fn scene_count(count: u64) -> u64 {
    let divisor = std::env::var("NMSFILTER_TEST_FEWER").ok();
    count / divisor.map_or(1, |divisor| divisor.parse().expect("NMSFILTER_TEST_FEWER is a number"))
}

/// Runs `run` on parts of the seeds below `count`, each in a separate thread with separate engines, since a machine with
/// a GPU has many cores. Returns the sums of the parts' totals.
pub fn in_parts<const N: usize>(
    count: u64,
    run: impl Fn(Range<u64>) -> [usize; N] + Sync,
) -> [usize; N] {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let parts = cores.min(8);
    let mut totals = [0; N];
    std::thread::scope(|scope| {
        let run = &run;
        let seeds = |part| part * count / parts..(part + 1) * count / parts;
        let threads = (0..parts).map(|part| scope.spawn(move || run(seeds(part))));
        for thread in threads.collect::<Vec<_>>() {
            let part = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            totals.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
    });
    totals
}

/// Returns true if a test runs this one of its combinations: each, or on the emulated GPU every second.
pub fn runs_combination(number: usize) -> bool {
    scene_count(20) > 1 || number.is_multiple_of(2)
}

/// Fails a test that needs a GPU if the tests run without one. Such tests are marked `#[ignore =
/// "needs a GPU"]`.
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
