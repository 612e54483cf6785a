// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the element creates a CUDA context, and when it logs the engine that it uses. Needs the
//! emulated GPU.
//!
//! This is a separate program with one test, because contexts and log messages belong to the whole
//! process.

#[path = "support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use gst::prelude::*;

use crate::support::emulated::Emulated;
use crate::support::engines;
use crate::support::pipeline::{self, parse, run, watch};

/// Collects the log messages at level 5 in which the element says on which processor it runs.
fn log() -> Arc<Mutex<Vec<String>>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    gst::log::set_threshold_for_name("nmsfilter", gst::DebugLevel::Debug);
    gst::log::add_log_function({
        let log = log.clone();
        move |category, _, _, _, _, _, message| {
            let text = message.get().map(|text| text.to_string()).unwrap_or_default();
            if category.name() == "nmsfilter" && text.starts_with("on ") {
                log.lock().unwrap().push(text);
            }
        }
    });
    log
}

/// Returns the number of contexts at the time when each frame left the element.
fn contexts(emulated: Emulated, description: &str) -> (Vec<i32>, pipeline::Ended) {
    let pipeline = parse(description);
    let seen = watch(&pipeline, "nms", move |_| emulated.contexts_in_use());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{description}");
    let seen = seen.lock().unwrap().clone();
    (seen, ended)
}

fn warns_of_missing_tensors_only(ended: &pipeline::Ended) -> bool {
    matches!(&ended.warnings[..], [only] if only.starts_with("no buffer of the stream carried tensors"))
}

#[test]
#[ignore = "needs a GPU"]
fn a_context_is_created_at_the_first_frame_with_tensors_or_at_start_with_backend_cuda() {
    engines::require_gpu();
    pipeline::init();
    let Some(emulated) = Emulated::get() else { return };
    let log = log();
    let logged = || std::mem::take(&mut *log.lock().unwrap());
    let auto = "! nmsfilter name=nms backend=auto";
    let people = "crowdtestsrc ! video/x-raw,width=160,height=90";

    // Without tensors no context is created.
    let (seen, ended) =
        contexts(emulated, &format!("videotestsrc num-buffers=20 {auto} ! fakesink"));
    assert_eq!(seen, vec![0; 20]);
    assert!(warns_of_missing_tensors_only(&ended), "{ended:?}");
    assert_eq!(
        logged(),
        ["on the CPU, or a GPU, which is opened at the first frame with tensors, 0 labels"]
    );

    // With tensors the context is created at the first frame, even if they are in host memory: the
    // engine measures the GPU later, and the creation must not delay a later frame.
    let source = people.replace("crowdtestsrc", "crowdtestsrc num-buffers=12");
    let (seen, ended) = contexts(emulated, &format!("{source} {auto} ! fakesink"));
    assert_eq!((seen, ended.warnings), (vec![1; 12], vec![]));
    let messages = logged();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[1].starts_with("on the CPU, or GPU 0 (emulated"), "{messages:?}");
    assert_eq!(emulated.contexts_in_use(), 0, "it is released when the element stops");

    // If the GPU cannot be used, there is one warning, at the first frame with tensors.
    let wrong = format!("{auto} cuda-device-id=7");
    let (_, ended) = contexts(emulated, &format!("{source} {wrong} ! fakesink"));
    assert_eq!(ended.warnings.len(), 1, "{ended:?}");
    assert!(ended.warnings[0].starts_with("there is no GPU 7"), "{ended:?}");
    let without = format!("videotestsrc num-buffers=20 {wrong} ! fakesink");
    let (_, ended) = contexts(emulated, &without);
    assert!(warns_of_missing_tensors_only(&ended), "no frame could use a GPU: {ended:?}");

    // With backend=cuda the context is created when the element starts.
    for (backend, expected) in [("cuda", 1), ("auto", 0), ("cpu", 0)] {
        let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
        element.set_property_from_str("backend", backend);
        element.set_state(gst::State::Paused).unwrap();
        assert_eq!(emulated.contexts_in_use(), expected, "{backend}");
        element.set_state(gst::State::Null).unwrap();
        assert_eq!(emulated.contexts_in_use(), 0, "{backend}");
    }
}
