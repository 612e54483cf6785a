// SPDX-License-Identifier: MIT OR Apache-2.0
//! `provider=plugin`: libraries, devices and options, with the provider library in `tests/provider`.

use std::path::{Path, PathBuf};

use gst::prelude::*;

use crate::element::{self, file, has_onnx_runtime, run_pipeline, stats};
use crate::messages::error;
use crate::support::onnx::{Element, identity};
use crate::support::pipeline::{self, parse};
use crate::support::scratch::{Scratch, ScratchFile};

const DIMS: [i64; 4] = [1, 3, 12, 16];

/// The path of the provider library, which Cargo builds into the folder of the test programs.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libtest_provider.so")
}

fn model() -> ScratchFile {
    file(&identity(DIMS, Element::F32))
}

/// Returns the error for `provider=plugin` with the library and further properties.
fn error_with(properties: &str) -> String {
    let library = library().display().to_string();
    let model = model();
    let properties = format!(
        "model={} provider=plugin provider-library={library} {properties}",
        model.display()
    );
    error(&properties).replace(&library, "LIBRARY")
}

/// Returns the field `provider-device` of the message `ortinference-model`, which the pipeline posts when it starts.
fn device_of(pipeline: &gst::Pipeline) -> Option<String> {
    pipeline.set_state(gst::State::Paused).unwrap();
    let bus = pipeline.bus().unwrap();
    let message =
        bus.timed_pop_filtered(gst::ClockTime::from_seconds(60), &[gst::MessageType::Element]);
    let device = message.unwrap().structure().unwrap().get("provider-device").ok();
    pipeline.set_state(gst::State::Null).unwrap();
    device
}

/// Returns the message with which the provider fails when it is created.
fn report(properties: &str, options: &str) -> String {
    let message = error_with(&format!("{properties} provider-options=report=1{options}"));
    let begins = format!(
        "provider=plugin cannot be used with provider-options=report=1{}: ",
        options.replace('"', "")
    );
    let rest = message.strip_prefix(&begins).unwrap_or_else(|| panic!("{message}"));
    rest.strip_suffix("; correct the options, or install what is missing").unwrap().to_owned()
}

/// Returns a pipeline with three different frames.
fn pipeline_with(model: &Path, provider: &str) -> gst::Pipeline {
    parse(&format!(
        "videotestsrc num-buffers=3 pattern=snow ! video/x-raw,format=RGB,width=16,height=12
           ! ortinference name=inference model={} {provider} ! fakesink",
        model.display()
    ))
}

#[test]
fn the_provider_runs_the_model_on_each_frame() {
    if !has_onnx_runtime() {
        return;
    }
    let model = model();
    let expected = run_pipeline(&pipeline_with(&model, "provider=cpu"));
    assert_ne!(expected[0], expected[1]);
    let plugin = format!("provider=plugin provider-library={}", library().display());
    for device in ["", "provider-device=CPU:1"] {
        let options = "provider-options=negate=1,level=3 threads=1";
        let pipeline = pipeline_with(&model, &format!("{plugin} {device} {options}"));
        let found = run_pipeline(&pipeline);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            let negated: Vec<_> = expected.f32().iter().map(|number| -number).collect();
            assert_eq!(found.f32(), negated);
        }
        assert_eq!(stats(&pipeline).get::<String>("provider").unwrap(), "plugin");
        let name = device_of(&pipeline).unwrap();
        let begins = if device.is_empty() { "cpu:0" } else { "cpu:1" };
        assert!(name.starts_with(&format!("{begins} (TestExecutionProvider, ")), "{name}");
    }
    assert_eq!(device_of(&pipeline_with(&model, "provider=cpu threads=1")), None);
}

/// ONNX Runtime runs the nodes on the CPU without an error.
#[test]
fn a_provider_that_does_not_support_the_model_is_a_warning() {
    if !has_onnx_runtime() {
        return;
    }
    let model = model();
    let plugin = format!("provider=plugin provider-library={}", library().display());
    let ended = pipeline::run(&pipeline_with(&model, &plugin));
    assert_eq!(ended.error, None);
    let [warning] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    let begins = "provider=plugin: the first node of the model runs on the CPU instead of cpu:0 (TestExecutionProvider, ";
    assert!(warning.starts_with(begins), "{warning}");
}

#[test]
fn the_device_is_the_first_or_the_chosen_one() {
    if !has_onnx_runtime() {
        return;
    }
    for (properties, device) in [
        ("", "device 0"),
        ("provider-device=cpu", "device 0"),
        ("provider-device=cpu:0", "device 0"),
        ("provider-device=CPU:1", "device 1"),
    ] {
        let report = report(properties, "");
        assert!(report.contains(device), "{properties}: {report}");
    }
}

#[test]
fn a_device_that_the_library_does_not_offer_is_an_error_that_lists_the_devices() {
    if !has_onnx_runtime() {
        return;
    }
    for device in ["gpu", "cpu:2", "intel"] {
        let message = error_with(&format!("provider-device={device}"));
        let begins = format!(
            "provider-device={device}: \"LIBRARY\" does not offer this device on this machine; set one of: cpu:0 \
             (TestExecutionProvider, "
        );
        assert!(message.starts_with(&begins), "{message}");
        assert!(message.contains(", cpu:1 (TestExecutionProvider, "), "{message}");
    }
}

#[test]
fn a_library_without_devices_is_an_error_that_names_the_machines_cpu() {
    if !has_onnx_runtime() {
        return;
    }
    let folder = Scratch::new();
    let path = folder.join("libnone.so");
    std::fs::copy(library(), &path).unwrap();
    let model = model();
    let properties =
        format!("model={} provider=plugin provider-library={}", model.display(), path.display());
    let message = error(&properties);
    let begins = format!(
        "provider-library={path:?} offers no device on this machine, which has a CPU from "
    );
    assert!(message.starts_with(&begins), "{message}");
    // The library is registered once, and gives this error again.
    assert_eq!(error(&properties), message);
}

#[test]
fn options_reach_the_provider_unchanged() {
    if !has_onnx_runtime() {
        return;
    }
    let report = report("", ",level=\"0.50,a=b\"");
    assert!(report.contains(r#"[("level", "0.50,a=b"), ("report", "1")]"#), "{report}");
}

#[test]
fn an_option_that_the_provider_does_not_know_is_an_error_with_its_message() {
    if !has_onnx_runtime() {
        return;
    }
    let message = error_with("provider-options=speed=2");
    let begins = "provider=plugin cannot be used with provider-options=speed=2: ";
    assert!(message.starts_with(begins), "{message}");
    assert!(message.contains("unknown option \"speed\""), "{message}");
}

/// The provider is created together with the session, so ONNX Runtime reports both in one call.
#[test]
fn a_file_that_is_no_model_is_an_error_of_the_model() {
    if !has_onnx_runtime() {
        return;
    }
    let file = ScratchFile::new("onnx", b"no model");
    let properties = format!(
        "model={} provider=plugin provider-library={}",
        file.display(),
        library().display()
    );
    let message = error(&properties);
    assert!(
        message.starts_with(&format!("the model {:?} cannot be opened: ", &*file)),
        "{message}"
    );
}

#[test]
fn a_file_that_is_missing_or_no_library_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let (folder, model) = (Scratch::new(), model());
    let message = |path: &std::path::Path| {
        error(&format!(
            "model={} provider=plugin provider-library={}",
            model.display(),
            path.display()
        ))
    };
    let missing = folder.join("libmissing.so");
    let begins = format!("provider-library={missing:?} cannot be read: No such file or directory");
    assert!(message(&missing).starts_with(&begins), "{}", message(&missing));
    let text = folder.join("libtext.so");
    std::fs::write(&text, "no library").unwrap();
    let begins = format!("provider-library={text:?} cannot be loaded: ");
    assert!(message(&text).starts_with(&begins), "{}", message(&text));
}

#[test]
fn properties_that_contradict_the_provider_are_errors() {
    element::init();
    let plugin = "only provider=plugin uses it; set provider=plugin, or leave";
    let options =
        "provider-options is set, but only the providers cuda, tensorrt and plugin have options";
    for (properties, parts) in [
        ("provider-library=/x.so", ["provider-library is set", plugin]),
        ("provider=cpu provider-device=gpu", ["provider-device is set", plugin]),
        ("provider=auto provider-options=a=1", [options, "leave provider-options unset"]),
        ("provider=cpu provider-options=a=1", [options, "leave provider-options unset"]),
        ("provider=tensorrt provider-options=a", ["expected key=value", "got \"a\""]),
        ("provider=cuda provider-options=device_id=1", ["device_id", "set cuda-device-id"]),
        ("provider=tensorrt provider-options=trt_cuda_graph_enable=1", ["graph", "leave it out"]),
    ] {
        let message = error(&format!("model=/x.onnx {properties}"));
        assert!(parts.iter().all(|part| message.contains(part)), "{properties}: {message}");
    }
    if has_onnx_runtime() {
        let model = model();
        let message = error(&format!("model={} provider=plugin", model.display()));
        assert!(message.starts_with("provider=plugin needs provider-library: "), "{message}");
    }
}

/// Two elements with an equal instance id and different options cannot share a model.
#[test]
fn elements_that_share_a_model_need_equal_options() {
    if !has_onnx_runtime() {
        return;
    }
    let model = model();
    let inference = |options: &str| {
        format!(
            "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=16,height=12
               ! ortinference model={} model-instance-id=plugin provider=plugin provider-library={} {options} ! fakesink ",
            model.display(),
            library().display()
        )
    };
    let other = "provider-device=cpu:1 provider-options=level=1 threads=1";
    let pipeline = parse(&(inference("") + &inference(other)));
    let ended = pipeline::run(&pipeline);
    let message = ended.error();
    let differing = "provider-device, provider-options, threads";
    assert!(message.contains(&format!("has other values of {differing};")), "{message}");
}
