// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests in a process of their own, with libraries that cannot be used, or because they measure the memory.

mod nvinfer;
mod throughput;
mod times;

use gstnmsfilter::internals::deepstream::layout::{StructureLayout, Version};
use gstnmsfilter::internals::deepstream::structures::StructureSizes;
use gstnmsfilter::internals::geometry::Letterbox;

use super::objects::assert_objects;
use super::structures::{assert_error, damaged, set_sizes};
use crate::batch::{Producer, Scene, TestModel};
use crate::libraries::{is_inside, version};
use crate::run;
use crate::standin::{Counts, is_nvidias};
use crate::support::pipeline::{intercept, parse, run as run_pipeline};
use crate::support::{engines, process};

/// The error of a batch, and that there is none without DeepStream's metadata.
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

/// The warning of a stream that is decoded, the only one.
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
fn an_unknown_version_with_known_sizes() {
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
    // Of a version that is set nothing is assumed.
    assert_runs_with(&set);
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn an_unknown_version_with_unknown_sizes() {
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
        assert_error(&ran, &[&version, &sizes, "6.0 to 9.1"]);
    }
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn the_version_that_is_set() {
    if !is_inside() {
        return;
    }
    assert_runs_with(&format!("deepstream-version={}", version()));
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn no_library() {
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
fn no_function() {
    if !is_inside() {
        return;
    }
    let error = error("");
    let function = std::env::var("STANDIN_WITHOUT").unwrap();
    assert!(error.contains(&format!("has no function {function}")), "{error}");
}

#[test]
#[ignore = "run by `failures` in a process of its own"]
fn no_version() {
    if !is_inside() {
        return;
    }
    // Those of 9.0 and 9.1 alone have their sizes.
    let text = match version() >= Version::new(9, 0) {
        true => assert_runs_with_warning(),
        false => error(""),
    };
    assert!(text.contains("nvds_version") && text.contains("deepstream-version"), "{text}");
    assert_runs_with(&format!("deepstream-version={}", version()));
}

/// `NMSFILTER_TEST_BATCHES` batches; 100,000 by default, or 100 on the emulated GPU.
#[test]
#[ignore = "run by `failures` in a process of its own"]
fn memory() {
    if !is_inside() {
        return;
    }
    let is_emulated = engines::on_gpu() && std::env::var_os("NMSFILTER_EMULATED_CUDA").is_some();
    let batches = std::env::var("NMSFILTER_TEST_BATCHES").ok();
    let default = if is_emulated { 100 } else { 100_000 };
    let batches: u64 = batches.map_or(default, |batches| batches.parse().unwrap());
    let mut scene = Scene::new(4, 1).with_model(TestModel { anchors: 40, ..TestModel::default() });
    scene.frames[2].seeds[0] = None;
    scene.frames[3].meta.pipeline = [640, 480];
    let objects: u64 =
        (0..4).map(|index| scene.expected(index, 0, Letterbox::None).len() as u64).sum();
    assert!(objects > 10);
    let producer = Producer::new(&scene, 6);
    let pool = producer.pool(0);
    // Each batch is copied for one of the branches of the tee.
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
    // The text of every object was freed.
    if !is_nvidias() {
        assert_eq!((counts.texts - before.texts) as u64, batches * objects);
        assert!(counts.new_objects < 100 * objects as i64, "objects are recycled: {counts:?}");
    }
    let resident = resident.lock().unwrap().clone();
    println!("{batches} batches: {resident:?} KiB, {counts:?}");
    // After the first tenth everything has been allocated once, but the emulated GPU uses the stacks of its threads,
    // 64 MiB for each calling thread, little by little.
    let most = if std::env::var_os("NMSFILTER_EMULATED_CUDA").is_some() { 128 << 10 } else { 2048 };
    let grown = resident[9].saturating_sub(resident[1]);
    assert!(grown < most, "{grown} KiB more: {resident:?}");
}
