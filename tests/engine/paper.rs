// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paper's windows. The paper's program computed the expected numbers of survivors.

use nmsfilter_core::decoder;
use nmsfilter_core::engine::{ClassThresholds, Engine, Job, Method, Overlap, Params, Reference};
use nmsfilter_core::tensor::TensorView;

use crate::settings::Settings;
use crate::support::{data, engines};
use crate::through_pipeline;

/// Returns the number of survivors of the first `n` windows. Both engines and a pipeline must
/// agree.
fn survivors(windows: &[f32], n: usize, params: &Params) -> usize {
    let tensors = [TensorView::from_slice("windows", &[n, 4], &windows[..n * 4])];
    let layout = decoder::choose(&tensors, None, decoder::Options::default()).unwrap().layout;
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let expected = reference
        .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
        .unwrap()
        .group(0);
    let found =
        fast.run(Job::new(&tensors, &layout, params, &engines::places(&layout))).unwrap().group(0);
    assert_eq!(expected.survivors, found.survivors, "of the first {n} windows");
    through_pipeline::expect_counts(
        &[("windows", &[n, 4], &windows[..n * 4])],
        Settings::Params(params, decoder::BoxFormat::default()),
        [found.candidates, found.survivors.len()],
    );
    found.survivors.len()
}

/// Returns parameters with a score threshold of zero, like the paper's program.
fn params(method: Method, overlap: Overlap, iou_threshold: f32) -> Params {
    Params {
        method,
        overlap,
        iou_threshold,
        thresholds: ClassThresholds::uniform(0.0),
        ..Params::default()
    }
}

#[test]
fn map_reduce_leaves_as_many_windows_as_the_papers_program() {
    let windows = data::oscars();
    let paper = Params {
        pixel_offset: 1.0,
        threshold_inclusive: true,
        ..params(Method::MapReduce, Overlap::Representative, 0.3)
    };
    let prefixes = [200, 360, 698, 1027, 2048, 2895, 2997];
    let left = prefixes.map(|n| survivors(&windows, n, &paper));
    assert_eq!(left, [26, 51, 95, 132, 144, 145, 145]);
}

#[test]
fn greedy_at_iou_0_3_leaves_as_many_windows_as_map_reduce() {
    let windows = data::oscars();
    let greedy = params(Method::Greedy, Overlap::Iou, 0.3);
    let left = [200, 360, 698, 1027, 2048, 2895].map(|n| survivors(&windows, n, &greedy));
    assert_eq!(left, [26, 51, 95, 132, 144, 145]);
}

#[test]
fn greedy_at_iou_0_5_leaves_more_windows_than_at_iou_0_3() {
    let windows = data::oscars();
    let greedy = params(Method::Greedy, Overlap::Iou, 0.5);
    let left = [200, 360, 698, 1027, 2048, 2895, 2997].map(|n| survivors(&windows, n, &greedy));
    assert_eq!(left, [26, 51, 95, 132, 154, 190, 201]);
}
