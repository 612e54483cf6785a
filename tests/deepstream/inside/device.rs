// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors in device memory. `versions` runs these tests if `NMSFILTER_TEST_BACKEND` is `cuda`.

use gstnmsfilter::deepstream::layout::Version;
use nmsfilter_core::device::Device;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Memory, Scene};
use crate::libraries::{is_inside, version};
use crate::run::{self, Ran};
use crate::support::engines;
use crate::support::skip::skip;

fn assert_right(ran: &Ran, scene: &Scene) {
    for seen in &ran.seen {
        assert!(assert_objects(seen, scene, Letterbox::None) > 40);
    }
    assert_eq!(ran.seen.len(), 2);
}

/// Host memory that is stale or missing is not read. Nothing is uploaded, and a batch is one
/// launch.
#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn device_memory_is_read_in_place() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    for memory in [Memory::Stale, Memory::Device, Memory::Both] {
        let mut scene = Scene::new(8, 1);
        scene.memory = memory;
        let ran = run::scenes(std::slice::from_ref(&scene), "backend=cuda").well();
        assert_right(&ran, &scene);
        assert_eq!(ran.stat("bytes-uploaded"), 0, "{memory:?}");
        // The first batch may take two launches, because it may need a larger workspace.
        assert!((2..=3).contains(&ran.stat("launches")), "{}", ran.stat("launches"));
        let expected = 32 * 16 + 28 * ran.stat("survivors");
        let downloaded = ran.stat("bytes-downloaded");
        assert!(downloaded >= expected && downloaded < 2 * expected, "{downloaded} {expected}");
    }
}

/// If the addresses of frames have no constant stride, a table of addresses is uploaded once.
#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn frames_without_a_constant_stride_are_read_in_place() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    let mut scene = Scene::new(8, 2);
    scene.scattered = true;
    let ran = run::scenes(std::slice::from_ref(&scene), "backend=cuda").well();
    assert_right(&ran, &scene);
    let uploaded = ran.stat("bytes-uploaded");
    assert!((1..=2 * 2 * 8 * 8).contains(&uploaded), "{uploaded} bytes uploaded");
    assert!((2..=3).contains(&ran.stat("launches")), "{}", ran.stat("launches"));
}

/// Frames of two sizes are one launch. It needs a table of their places, which is uploaded once.
#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn frames_of_two_sizes_are_read_in_place() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    let mut scene = Scene::new(8, 3);
    for frame in scene.frames.iter_mut().step_by(2) {
        frame.meta.pipeline = [640, 480];
    }
    let ran = run::scenes(std::slice::from_ref(&scene), "backend=cuda").well();
    assert_right(&ran, &scene);
    assert_eq!(ran.stat("bytes-uploaded"), 8 * 96, "96 bytes for each of 8 frames");
    assert!((2..=3).contains(&ran.stat("launches")), "{}", ran.stat("launches"));
}

#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn host_memory_is_uploaded_if_there_is_no_device_memory() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    let mut scene = Scene::new(8, 4);
    scene.memory = Memory::Host;
    let ran = run::scenes(std::slice::from_ref(&scene), "backend=cuda").well();
    assert_right(&ran, &scene);
    let model = scene.models[0];
    let bytes = 4 * (4 + model.classes) * model.anchors * 8;
    assert_eq!(ran.stat("bytes-uploaded"), 2 * bytes as u64);
}

/// By default, the engine runs on the GPU that contains the tensors. The metadata names this GPU,
/// too.
#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn memory_of_a_second_gpu_is_read_in_place() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    if Device::open(1).is_err() {
        return skip("a second GPU");
    }
    for properties in ["backend=cuda", "backend=auto", "backend=cpu"] {
        let mut scene = Scene::new(4, 7);
        (scene.gpu, scene.memory) = (1, Memory::Device);
        let ran = run::scenes(std::slice::from_ref(&scene), properties).well();
        assert_right(&ran, &scene);
        assert_eq!(ran.stat("bytes-uploaded"), 0, "{properties}");
    }
}

/// The CPU engine copies from the GPU where host memory may be stale.
#[test]
#[ignore = "needs a GPU; run by `versions` in a process of its own"]
fn the_cpu_never_reads_stale_host_memory() {
    if !is_inside() {
        return;
    }
    engines::require_gpu();
    let has_current_host_memory = version() <= Version::new(6, 3);
    let memories = if has_current_host_memory {
        [Memory::Both, Memory::Device]
    } else {
        [Memory::Stale, Memory::Device]
    };
    for memory in memories {
        let mut scene = Scene::new(4, 5);
        scene.memory = memory;
        let ran = run::scenes(std::slice::from_ref(&scene), "backend=cpu").well();
        assert_right(&ran, &scene);
    }
    if has_current_host_memory {
        // Until 6.3 host memory is never stale. The stale tensors therefore show here that the CPU
        // engine reads host memory instead of copying from the GPU.
        let mut scene = Scene::new(4, 6);
        scene.memory = Memory::Stale;
        let ran = run::scenes(std::slice::from_ref(&scene), "backend=cpu").well();
        let objects = &ran.seen[0].frames[0].1;
        assert_ne!(*objects, scene.expected(0, 0, Letterbox::None));
    }
}
