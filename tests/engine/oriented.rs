// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oriented boxes: random scenes, compared between the engine under test and the reference engine.

use std::ops::Range;

use nmsfilter_core::engine::{Engine, Job, Method, Overlap, Params, Reference};

use crate::support::engines::{self, bits};
use crate::support::oriented_scene::OrientedScene;
use crate::support::scene::has_class_limits;

/// Compares scenes with the reference. Returns the numbers of candidates, of survivors, of rejected anchors, and of
/// candidates that each measure suppressed.
fn compare(seeds: Range<u64>) -> [usize; 8] {
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let mut totals = [0; 8];
    for seed in seeds {
        let scene = OrientedScene::new(seed);
        let (tensors, layout, params) = ([scene.view()], &scene.layout, &scene.params);
        let expected =
            reference.run(Job::new(&tensors, layout, params, &engines::places(layout))).unwrap();
        let found = fast.run(Job::new(&tensors, layout, params, &engines::places(layout))).unwrap();
        for (index, (expected, found)) in expected.groups().zip(found.groups()).enumerate() {
            assert_eq!(bits(&found), bits(&expected), "seed {seed}, image {index}: {params:?}");
            totals[0] += expected.candidates;
            totals[1] += expected.survivors.len();
            totals[2] += expected.rejected;
            let is_capped = params.max_candidates != 0
                || params.max_detections != 0
                || has_class_limits(params);
            if !is_capped && params.method != Method::None {
                let less = expected.candidates - expected.survivors.len();
                totals[3 + params.overlap as usize] += less;
            }
        }
    }
    totals
}

#[test]
fn fast_equals_reference_bit_for_bit_and_in_order() {
    let scenes = engines::scene_count(20_000);
    let [candidates, left, rejected, suppressed @ ..] = engines::in_parts(scenes, compare);
    println!("{candidates} candidates, {left} survivors, {rejected} rejected, {suppressed:?}");
    let at_least = |count: u64| (count * scenes / 20_000) as usize;
    assert!(
        candidates > at_least(500_000) && left > at_least(100_000) && rejected > at_least(10_000)
    );
    for overlap in [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou] {
        assert!(suppressed[overlap as usize] > at_least(4_000), "{overlap:?}: {suppressed:?}");
    }
}

#[test]
fn greedy_suppression_keeps_what_no_candidate_suppresses() {
    let mut fast = engines::fast();
    for seed in 0..engines::scene_count(2_000) {
        let scene = OrientedScene::new(seed);
        let (tensors, layout) = ([scene.view()], &scene.layout);
        let params = Params { method: Method::Greedy, ..scene.params.clone() };
        let all = Params { method: Method::MapReduce, ..params.clone() };
        let greedy =
            fast.run(Job::new(&tensors, layout, &params, &engines::places(layout))).unwrap();
        let greedy: Vec<Vec<u32>> = greedy.groups().map(|image| anchors(&image)).collect();
        let map_reduce =
            fast.run(Job::new(&tensors, layout, &all, &engines::places(layout))).unwrap();
        for (greedy, image) in greedy.iter().zip(map_reduce.groups()) {
            let kept = anchors(&image);
            let is_capped = params.max_detections != 0 || has_class_limits(&params);
            assert!(is_capped || kept.iter().all(|anchor| greedy.contains(anchor)), "seed {seed}");
        }
    }
}

fn anchors(image: &nmsfilter_core::engine::GroupOutcome<'_>) -> Vec<u32> {
    image.survivors.iter().map(|survivor| survivor.anchor).collect()
}
