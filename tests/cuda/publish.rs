// SPDX-License-Identifier: MIT OR Apache-2.0
//! Survivors that several blocks of a group publish: groups of more than 4096 candidates.

use fastrand::Rng;
use nmsfilter_core::engine::{ClassThresholds, Cpu, Engine, Job, Params};
use nmsfilter_core::tensor::TensorView;

use crate::groups::layout;
use crate::sorted::{sorting, windows};
use crate::support::engines::{self, bits};

/// The most candidates whose survivors one block publishes.
const STEP: usize = 4096;
/// Candidates of each block, if there are more.
const PART: usize = 1024;

#[test]
#[ignore = "needs a GPU"]
fn survivors_of_many_candidates_equal_the_cpu() {
    engines::require_gpu();
    let mut rng = Rng::with_seed(11);
    // Sorting takes less time in the emulator than the comparison of all pairs.
    let mut cuda = sorting(100, 50_000);
    let mut cpu = Cpu::default();
    let frames: [&[usize]; 6] = [
        &[STEP],
        &[STEP + 1],
        &[STEP + PART],
        &[9 * PART - 1],
        // Groups that one block publishes, beside others.
        &[STEP + 7, 10, 9 * PART, 0, STEP],
        &[30],
    ];
    let limits = [(0, 0), (PART, 0), (STEP + 3, 0), (0, 5 * PART + 3)];
    for (turn, (limit, max_candidates)) in limits.into_iter().enumerate() {
        let frames = frames.into_iter().enumerate();
        for (_, counts) in frames.filter(|(i, _)| engines::runs_combination(turn + i)) {
            let anchors = counts.iter().max().unwrap() + 5;
            let numbers = windows(&mut rng, counts, anchors, [1900.0, 1000.0], [4.0, 9.0]);
            let tensors =
                [TensorView::from_slice("windows", &[counts.len(), anchors, 4], &numbers)];
            let layout = layout(&tensors);
            let params = Params {
                thresholds: ClassThresholds::uniform(0.3),
                max_detections: limit,
                max_candidates,
                ..Params::default()
            };
            let places = engines::places(&layout);
            let expected = cpu.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
            // The second run shows that the first one has reset its counts.
            for run in 0..2 {
                let found = cuda.run(Job::new(&tensors, &layout, &params, &places)).unwrap();
                for (expected, found) in expected.groups().zip(found.groups()) {
                    let case = format!("{counts:?}, at most {limit}, run {run}");
                    assert_eq!(bits(&expected), bits(&found), "{case}");
                }
            }
        }
    }
}
