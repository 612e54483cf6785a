// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `.launch` files for DeepStream, and the nvinfer configurations in `pipelines/deepstream`.
//!
//! DeepStream is not installed where tests run, so its elements are replaced by GStreamer's. The
//! tests show that `play.sh` and GStreamer can parse the files, that the elements are linked as
//! intended, and that `nmsfilter` has the properties that the files set. They do not show that
//! DeepStream's elements have the properties in the files. NVIDIA has published the source of
//! nvinfer, so its property names and keys are compared with the source.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use gst::glib;
use gst::prelude::*;

use crate::support::pipeline::{Region, init, regions, run, watch};
use crate::support::play::words;
use crate::support::scratch::Scratch;
use crate::support::{data, project};

/// DeepStream's elements, cameras and files, with their replacements. Only the property `name` is
/// kept.
const REPLACED: [(&str, &[&str]); 13] = [
    ("filesrc", &SOURCE),
    ("nvarguscamerasrc", &SOURCE),
    ("nv3dsink", &["fakesink"]),
    ("nvdsosd", &["identity"]),
    ("nveglglessink", &["fakesink"]),
    ("nvinfer", &["identity"]),
    ("nvmultistreamtiler", &["identity"]),
    ("nvstreammux", &["funnel"]),
    ("nvtracker", &["identity"]),
    ("nvvideoconvert", &["videoconvert"]),
    ("uridecodebin", &SOURCE),
    ("v4l2src", &SOURCE),
    // Frames that the real element copies would lose the tensors of `crowdtestsrc`.
    ("videoflip", &["identity"]),
];

const FRAMES: usize = 4;
const SOURCE: [&str; 3] = ["crowdtestsrc", "decoder=yolov8", "num-buffers=4"];
const MEMORY: &str = "video/x-raw(memory:NVMM),format=NV12";

/// Replaces DeepStream's elements in the words of a pipeline.
fn replaced(words: &[String]) -> Vec<String> {
    let mut result: Vec<String> = Vec::new();
    let mut omit_properties = false;
    for word in words {
        if let Some((_, by)) = REPLACED.iter().find(|(element, _)| element == word) {
            result.extend(by.iter().map(|&word| word.to_owned()));
            omit_properties = true;
        } else if word == MEMORY {
            result.push("video/x-raw".to_owned());
        } else if !word.contains('=') {
            result.push(word.clone());
            omit_properties = false;
        } else if !omit_properties || word.starts_with("name=") {
            result.push(word.clone());
        }
    }
    result
}

/// Runs the pipeline that `play.sh` plays with these arguments. Returns the regions on each buffer
/// that leaves the element `out`.
///
/// The tensors of nvinfer contain the size of the model's input, unlike the tensors of
/// `crowdtestsrc`. Therefore the size is set as properties of `nmsfilter`: it is the frame's size,
/// so that the letterbox has no borders.
fn play(arguments: &[&str]) -> Vec<Vec<Region>> {
    init();
    let arguments = [arguments, &["nms=model-width=1920 model-height=1080"]].concat();
    let words = replaced(&words(&arguments));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let parsed = gst::parse::launchv(&words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let pipeline: gst::Pipeline = parsed.downcast().expect("several elements make a pipeline");
    let seen = watch(&pipeline, "out", regions);
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{words:?}");
    assert_eq!(ended.warnings, [""; 0], "{words:?}");
    assert_eq!(ended.stats.len(), 1, "stats are posted at the end");
    std::mem::take(&mut *seen.lock().unwrap())
}

fn assert_crowds(frames: &[Vec<Region>]) {
    for regions in frames {
        assert!((40..90).contains(&regions.len()), "{} regions", regions.len());
    }
}

/// Properties of a tracker, as `pipelines/README.md` sets them.
const TRACKER: &str = "tracker=nvtracker \
    ll-lib-file=/opt/nvidia/deepstream/deepstream/lib/libnvds_nvmultiobjecttracker.so";

#[test]
fn deepstream_camera_launch_has_a_chain_from_each_kind_of_camera_to_each_window() {
    for arguments in [
        &["deepstream-camera"][..],
        &["deepstream-camera", "camera=v4l2src device=/dev/video1", TRACKER],
        &["deepstream-camera", "camera=nvarguscamerasrc sensor-id=0", "sink=nv3dsink"],
    ] {
        let frames = play(arguments);
        // The queue before the muxer drops frames.
        assert!((1..=FRAMES).contains(&frames.len()), "{} frames", frames.len());
        assert_crowds(&frames);
    }
}

#[test]
fn deepstream_file_launch_writes_every_frame() {
    let folder = Scratch::new();
    let output = folder.join("boxes.avi");
    let set_output = format!("output={}", output.display());
    let frames = play(&["deepstream-file", "input=a.mp4", &set_output, TRACKER]);
    assert_eq!(frames.len(), FRAMES);
    assert_crowds(&frames);
    let size = std::fs::metadata(&output).unwrap().len();
    assert!(size > 10_000, "{size} bytes");
}

#[test]
fn deepstream_streams_launch_has_sixteen_streams() {
    let frames = play(&["deepstream-streams", "input=file:///a.mp4", "sink=fakesink", TRACKER]);
    assert_eq!(frames.len(), 16 * FRAMES);
    assert_crowds(&frames);
    let words = words(&["deepstream-streams", "input=rtsp://camera/stream", "live=true"]);
    let pads = words.iter().filter_map(|word| word.strip_prefix("mux.sink_"));
    let pads: HashSet<String> = pads.map(ToOwned::to_owned).collect();
    assert_eq!(pads, (0..16).map(|pad| pad.to_string()).collect());
    for word in ["live-source=true", "sync=true", "uri=rtsp://camera/stream"] {
        assert!(words.iter().any(|is| is == word), "{word}: {words:?}");
    }
}

/// Returns the texts in quotes that directly follow `before`.
fn quoted_after<'t>(text: &'t str, before: &str) -> HashSet<&'t str> {
    let pieces = text.split(before).skip(1);
    pieces.filter_map(|piece| piece.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

#[test]
fn nvinfer_has_all_properties_that_the_files_set() {
    let Some(folder) = data::path("deepstream-9.1/src/gst-plugins/gst-nvinfer") else { return };
    let source = std::fs::read_to_string(folder.join("gstnvinfer.cpp")).unwrap();
    let mut properties = HashSet::new();
    for kind in ["uint", "enum", "string", "boolean"] {
        properties.extend(quoted_after(&source, &format!("g_param_spec_{kind} (")));
    }
    for arguments in [
        &["deepstream-camera"][..],
        &["deepstream-file", "input=a.mp4"],
        &["deepstream-streams", "input=file:///a.mp4"],
    ] {
        let words = words(arguments);
        let after = words.iter().skip_while(|word| *word != "nvinfer").skip(1);
        let set: Vec<&str> = after.map_while(|word| Some(word.split_once('=')?.0)).collect();
        assert!(set.contains(&"config-file-path"), "{words:?}");
        for property in set {
            assert!(properties.contains(property), "{property}: {properties:?}");
        }
    }
}

/// Returns the keys of the group `property` that nvinfer's published source compares with.
fn keys_of_the_parser(folder: &Path) -> HashSet<String> {
    let header = std::fs::read_to_string(folder.join("gstnvinfer_property_parser.h")).unwrap();
    let parser = std::fs::read_to_string(folder.join("gstnvinfer_property_parser.cpp")).unwrap();
    let is_compared = |name: &str| {
        ["*key", "key"].iter().any(|key| parser.contains(&format!("!g_strcmp0 ({key}, {name})")))
    };
    let defined = header.lines().filter_map(|line| line.strip_prefix("#define "));
    defined
        .filter_map(|define| define.split_once(' '))
        .filter(|(name, _)| is_compared(name))
        .map(|(_, key)| key.trim().trim_matches('"').to_owned())
        .collect()
}

/// Returns the keys and values of the group `property` in a configuration.
fn properties(configuration: &str) -> Vec<(String, String)> {
    let file = glib::KeyFile::new();
    file.load_from_data(configuration, glib::KeyFileFlags::NONE).unwrap();
    assert_eq!(file.groups().iter().map(|group| group.as_str()).collect::<Vec<_>>(), ["property"]);
    let keys = file.keys("property").unwrap();
    keys.iter().map(|key| (key.to_string(), file.string("property", key).unwrap().into())).collect()
}

fn configuration(name: &str) -> String {
    std::fs::read_to_string(project::path("pipelines/deepstream").join(name)).unwrap()
}

#[test]
fn nvinfers_parser_knows_the_keys_of_the_configurations() {
    let Some(folder) = data::path("deepstream-9.1/src/gst-plugins/gst-nvinfer") else { return };
    let known = keys_of_the_parser(&folder);
    assert!(known.len() > 40, "{known:?}");
    // The document has the keys for outputs that are not copied to the host.
    let document = std::fs::read_to_string(project::path("docs/jetson.md")).unwrap();
    let (_, block) = document.split_once("```ini\n").expect("the document has such a block");
    let (block, _) = block.split_once("```").unwrap();
    let block = format!("[property]\n{block}");
    for text in [configuration("yolov8.txt"), configuration("yolov5.txt"), block] {
        for (key, _) in properties(&text) {
            assert!(known.contains(&key), "nvinfer does not know the key {key}");
        }
    }
}

#[test]
fn configurations_attach_raw_outputs_and_name_the_engine_as_nvinfer_does() {
    for (name, model) in [("yolov8.txt", "yolov8n.onnx"), ("yolov5.txt", "yolov5s.onnx")] {
        let properties = properties(&configuration(name));
        let value = |key: &str| {
            let found = properties.iter().find(|(is, _)| is == key);
            found.unwrap_or_else(|| panic!("{name} has no {key}")).1.as_str()
        };
        for (key, expected) in [
            ("network-type", "100"),
            ("output-tensor-meta", "1"),
            // The pipelines' `letterbox=center` requires these values.
            ("maintain-aspect-ratio", "1"),
            ("symmetric-padding", "1"),
            ("infer-dims", "3;640;640"),
            ("onnx-file", model),
        ] {
            assert_eq!(value(key), expected, "{name}: {key}");
        }
        assert_eq!(value("network-mode"), "2", "fp16 in the name of the engine");
        let engine = format!("{model}_b{}_gpu0_fp16.engine", value("batch-size"));
        assert_eq!(value("model-engine-file"), engine);
        let scale: f64 = value("net-scale-factor").parse().unwrap();
        assert!((scale * 255.0 - 1.0).abs() < 1e-12, "{scale}");
    }
    let words = words(&["deepstream-streams", "input=file:///a.mp4"]);
    let engine = "model-engine-file=pipelines/deepstream/yolov8n.onnx_b16_gpu0_fp16.engine";
    assert!(words.iter().any(|word| word == engine), "{words:?}");
}

/// The parser that finds no objects. Its arguments are addresses that the host cannot read, like
/// outputs in device memory.
#[test]
fn no_objects_returns_true_and_reads_nothing() {
    const CALL: &str = "#include <stdbool.h>
        bool NvDsInferParseNoObjects (const void *, const void *, const void *, const void *);
        int main (void)
        {
          const void *unreadable = (const void *) 16;
          return NvDsInferParseNoObjects (unreadable, unreadable, unreadable, unreadable) ? 0 : 1;
        }";
    let folder = Scratch::new();
    let (library, call) = (folder.join("libno_objects.so"), folder.join("call.c"));
    std::fs::write(&call, CALL).unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
    };
    let source = project::path("pipelines/deepstream/no_objects.c");
    run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source));
    let program = folder.join("call");
    run(Command::new("cc").arg("-o").arg(&program).arg(call).arg(&library));
    run(&mut Command::new(program));
}
