// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a process of their own, because their libraries cannot be used or because they
//! measure memory.

mod nvinfer;
mod throughput;
mod times;

use gstnmsfilter::deepstream::layout::{StructureLayout, Version, known_versions};
use gstnmsfilter::deepstream::structures::StructureSizes;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use super::structures::{assert_error, damaged, set_sizes};
use crate::batch::{Producer, Scene, TestModel};
use crate::libraries::{is_inside, version};
use crate::run;
use crate::standin::{Counts, is_nvidias};
use crate::support::pipeline::{intercept, parse, run as run_pipeline};
use crate::support::{engines, process};

/// Returns the error of a stream with a batch, after checking that a stream without DeepStream's
/// metadata has none.
fn error(properties: &str) -> String {
    let plain = run::with("decoder=yolov8", 2, |_| ()).without_tensors();
    assert_eq!(plain.stat("frames-without-tensors"), 2);
    let ran = run::scenes(&[Scene::new(1, 1)], properties);
    assert!(ran.seen.is_empty());
    ran.ended.error().to_owned()
}

fn assert_runs_with(properties: &str) {
    let scene = Scene::new(3, 1);
    let ran = run::scenes(std::slice::from_ref(&scene), properties).well();
    assert!(assert_objects(&ran.seen[1], &scene, Letterbox::None) > 30);
}

/// Runs a stream that is decoded with exactly one warning, and returns the warning.
fn assert_runs_with_warning() -> String {
    let scene = Scene::new(3, 1);
    let ran = run::scenes(std::slice::from_ref(&scene), "");
    assert_eq!(ran.ended.error, None);
    assert!(assert_objects(&ran.seen[1], &scene, Letterbox::None) > 30);
    let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
    warning.clone()
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn an_unknown_version_with_known_sizes_is_decoded_with_a_warning() {
    if !is_inside() {
        return;
    }
    let reported = std::env::var("STANDIN_VERSION").unwrap();
    let layout = StructureLayout::for_version(version()).unwrap();
    let warning = assert_runs_with_warning();
    let sizes = format!("the sizes of {} and", layout.versions());
    let set = format!("deepstream-version={}", layout.last);
    let parts = [&format!("DeepStream {reported};"), &*sizes, &format!("set {set}, ")];
    assert!(parts.iter().all(|part| warning.contains(part)), "{warning}");
    // If the version is set, nothing is assumed, and there is no warning.
    assert_runs_with(&set);
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn an_unknown_version_with_unknown_sizes_is_an_error() {
    if !is_inside() {
        return;
    }
    let reported = std::env::var("STANDIN_VERSION").unwrap();
    let own = StructureLayout::for_version(version()).unwrap().sizes;
    for sizes in [
        StructureSizes { object: own.object + 4, ..own },
        StructureSizes { frame: own.frame + 4, ..own },
        StructureSizes { user: own.user + 4, ..own },
    ] {
        let ran = damaged("", move |batch| set_sizes(batch, sizes));
        let [version, sizes] = [format!("DeepStream {reported}"), sizes.to_string()];
        assert_error(&ran, &[&version, &sizes, &known_versions()]);
    }
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn a_stream_is_decoded_with_the_version_of_the_property() {
    if !is_inside() {
        return;
    }
    assert_runs_with(&format!("deepstream-version={}", version()));
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn a_missing_library_is_an_error() {
    if !is_inside() {
        return;
    }
    for properties in ["", "deepstream-version=7.1"] {
        let error = error(properties);
        for part in ["libnvds", "cannot open shared object file", "LD_LIBRARY_PATH"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn a_missing_function_is_an_error() {
    if !is_inside() {
        return;
    }
    let error = error("");
    let function = std::env::var("STANDIN_WITHOUT").unwrap();
    assert!(error.contains(&format!("has no function {function}")), "{error}");
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn a_library_without_a_version_asks_for_the_property() {
    if !is_inside() {
        return;
    }
    // Only 9.0 and 9.1 have structures of these sizes, so the sizes identify their layout.
    let text = if version() >= Version::new(9, 0) { assert_runs_with_warning() } else { error("") };
    assert!(text.contains("nvds_version") && text.contains("deepstream-version"), "{text}");
    assert_runs_with(&format!("deepstream-version={}", version()));
}

/// The variable `NMSFILTER_TEST_BATCHES` sets the number of batches. The default is 30,000, or 100
/// on the emulated GPU.
#[test]
#[ignore = "run by `failures` in a process of its own"]
fn memory_does_not_grow_with_the_number_of_batches() {
    if !is_inside() {
        return;
    }
    let is_emulated = engines::on_gpu() && std::env::var_os("NMSFILTER_EMULATED_CUDA").is_some();
    let batches = std::env::var("NMSFILTER_TEST_BATCHES").ok();
    let default = if is_emulated { 100 } else { 30_000 };
    let batches: u64 = batches.map_or(default, |batches| batches.parse().unwrap());
    let mut scene = Scene::new(4, 1).with_model(TestModel { anchors: 40, ..TestModel::default() });
    scene.frames[2].seeds[0] = None;
    scene.frames[3].meta.pipeline = [640, 480];
    let objects: u64 =
        (0..4).map(|index| scene.expected(index, 0, Letterbox::None).len() as u64).sum();
    assert!(objects > 10);
    let producer = Producer::new(&scene, 6);
    let pool = producer.pool(0);
    // The tee makes the second branch copy each batch.
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers={batches} ! {} ! tee name=t
           t. ! queue max-size-buffers=2 ! nmsfilter decoder=yolov8 letterbox=none keep-tensors=false ! fakesink
           t. ! queue max-size-buffers=2 ! fakesink",
        run::CAPS
    ));
    let before = Counts::now();
    let resident = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    intercept(&pipeline, "in", {
        let resident = resident.clone();
        let seen = std::sync::atomic::AtomicU64::new(0);
        move |buffer| {
            let index = seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if index.is_multiple_of(batches / 10) {
                resident.lock().unwrap().push(process::resident());
            }
            producer.attach(buffer);
        }
    });
    let ended = run_pipeline(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    let counts = Counts::now();
    counts.assert_nothing_left();
    assert_eq!(pool.in_use(), 0);
    // The text of every object was released.
    if !is_nvidias() {
        assert_eq!((counts.texts - before.texts) as u64, batches * objects);
        assert!(counts.new_objects < 100 * objects as i64, "objects are recycled: {counts:?}");
    }
    let resident = resident.lock().unwrap().clone();
    println!("{batches} batches: {resident:?} KiB, {counts:?}");
    // After the first tenth of the batches, everything has been allocated once. Only the emulated
    // GPU continues to touch more of its threads' stacks, of which each calling thread has 64 MiB.
    // 640 KiB are 27 bytes per batch.
    let most = match std::env::var_os("NMSFILTER_EMULATED_CUDA") {
        Some(_) => 128 << 10,
        None if is_nvidias() => 2048,
        None => 640,
    };
    let grown = resident[9].saturating_sub(resident[1]);
    assert!(grown < most, "{grown} KiB more: {resident:?}");
}
