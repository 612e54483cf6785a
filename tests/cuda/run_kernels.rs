// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels of a run as graphs, which benchmarks measure.

use nmsfilter_core::engine::{Cuda, Engine, Job, RunKernels};

use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

/// Launches a graph, and waits for it.
fn launch(kernels: &RunKernels<'_>, count: usize, times: u32, resets: bool) {
    let graph = kernels.repeated(count, times, resets).unwrap();
    let stream = kernels.stream();
    {
        let driver = stream.device().enter().unwrap();
        // SAFETY: the graph and the run's memory exist until the stream has completed the launch.
        unsafe { graph.launch(&driver, stream) }.unwrap();
    }
    stream.synchronize().unwrap();
}

#[test]
#[ignore = "needs a GPU"]
fn kernels_run_again_in_part_and_as_a_whole_and_the_engine_runs_after_them() {
    engines::require_gpu();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for sort_limit in [u32::MAX, 20] {
        cuda.sort_above(sort_limit, 1 << 20);
        for seed in 0..engines::scene_count(40) {
            let scene = Scene::any(seed);
            let (tensors, layout) = scene.tensors();
            let outcome =
                cuda.run(Job::new(&tensors, &layout, &scene.params, &scene.places())).unwrap();
            let expected = bits(&outcome.group(0));
            let kernels = cuda
                .kernels_of(Job::new(&tensors, &layout, &scene.params, &scene.places()))
                .unwrap();
            let names = kernels.names();
            let is_sorted = names.len() > 4;
            let starts = ["decode", "map", "reduce", "sort_count", "sort_scatter", "sort_rank"];
            let starts = starts[..if is_sorted { 6 } else { 3 }].iter();
            assert!(starts.zip(&names).all(|(start, name)| name.starts_with(start)), "{names:?}");
            assert!(!is_sorted || names[6] == "chunk_filter", "{names:?}");
            assert!(names.last().unwrap().starts_with("publish"), "{names:?}");
            let count = names.len();
            for part in 0..=count {
                launch(&kernels, part, 3, true);
            }
            // The memsets reset what the parts left; after the last kernels there is nothing to reset.
            launch(&kernels, count, 1, true);
            launch(&kernels, count, 2, false);
            drop(kernels);
            let outcome =
                cuda.run(Job::new(&tensors, &layout, &scene.params, &scene.places())).unwrap();
            assert_eq!(bits(&outcome.group(0)), expected, "seed {seed}: {scene:?}");
        }
    }
}
