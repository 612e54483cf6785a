// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several streams on one buffer that `analyticscombiner` makes, with models before and after the
//! combiner.

use gstnmsfilter::input::inference_mark::is_inferred;

use crate::detections::{Region, regions};
use crate::element::{self, has_onnx_runtime, ids, tensors};
use crate::frames::{self, Picture};
use crate::support::onnx::{Element, constant, identity};
use crate::support::{data, pipeline};

const FACES: &str = "data/models/version-RFB-320.onnx";
const OBJECTS: &str = "data/models/yolov8n_int8_320.onnx";

/// Returns sources of real frames, which differ in size, format and length. If a file is missing,
/// returns `None` and reports a skip.
fn sources() -> Option<[String; 3]> {
    let file = |name: &str| Some(format!("filesrc location={}", data::path(name)?.display()));
    Some([
        format!(
            "{} ! decodebin ! identity eos-after=10 ! videoconvert ! videoscale ! video/x-raw,format=I420,width=960,height=540",
            file("data/videos/towncentre_96f_1080p.mp4")?
        ),
        format!(
            "{} ! decodebin ! imagefreeze num-buffers=7 ! videoconvert ! videoscale
               ! video/x-raw,format=RGB,width=800,height=600,framerate=5/1",
            file("data/images/crowd_selfie.jpg")?
        ),
        format!(
            "{} ! decodebin ! imagefreeze num-buffers=6 ! videoconvert ! videoscale
               ! video/x-raw,format=GRAY8,width=480,height=640,framerate=10/1",
            file("data/images/street.png")?
        ),
    ])
}

/// Returns an `ortinference` with this model. If the file is missing, returns `None` and reports a
/// skip.
fn inference(model: &str) -> Option<String> {
    Some(format!("ortinference provider=cpu model={}", data::path(model)?.display()))
}

/// Returns the regions of each frame that arrives at each of these sinks.
fn run(description: &str, sinks: &[&str]) -> Vec<Vec<Vec<Region>>> {
    let pipeline = pipeline::parse(description);
    let seen: Vec<_> = sinks.iter().map(|sink| pipeline::watch(&pipeline, sink, regions)).collect();
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{description}");
    seen.iter().map(|seen| std::mem::take(&mut *seen.lock().unwrap())).collect()
}

/// Asserts that combined streams have the regions that the streams have separately. `before` has
/// the elements before the combiner, `behind` the elements between the combiner and `nmsfilter`.
/// Separate streams run through the elements of `alone`, each with its own `nmsfilter`.
fn equal_those_alone(before: [&str; 3], behind: &str, alone: [&str; 3]) {
    let Some(sources) = sources() else { return };
    let expected = sources.iter().zip(alone).map(|(source, inference)| {
        let description = format!("{source} ! {inference} ! nmsfilter ! fakesink name=out");
        run(&description, &["out"]).remove(0)
    });
    let expected: Vec<_> = expected.collect();
    let inputs = sources.iter().zip(before).enumerate().map(|(index, (source, inference))| {
        format!("{source} ! {inference} ! queue ! c.sink_{index}  ")
    });
    let description = format!(
        "{} analyticscombiner name=c batch-duration=200000000 ! {behind} ! nmsfilter ! analyticssplitter name=s
           s.src_0_0 ! queue ! fakesink name=out0
           s.src_0_1 ! queue ! fakesink name=out1
           s.src_0_2 ! queue ! fakesink name=out2",
        inputs.collect::<String>()
    );
    let has_regions = |stream: &&Vec<Vec<Region>>| stream.iter().all(|frame| !frame.is_empty());
    assert!(expected.iter().filter(has_regions).count() > 1, "{expected:?}");
    let found = run(&description, &["out0", "out1", "out2"]);
    for (stream, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "stream {stream}");
        for (frame, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(found, expected, "stream {stream}, frame {frame}");
        }
    }
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [10, 7, 6]);
}

#[test]
fn models_before_a_combiner_are_each_decoded() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let (Some(faces), Some(objects)) = (inference(FACES), inference(OBJECTS)) else { return };
    if has_onnx_runtime() {
        let models = [&*objects, &faces, &objects];
        equal_those_alone(models, "identity", models);
    }
}

#[test]
fn one_model_behind_a_combiner_infers_all_streams() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let Some(objects) = inference(OBJECTS) else { return };
    if has_onnx_runtime() {
        equal_those_alone(["identity"; 3], &objects, [&*objects; 3]);
    }
}

/// Tiles of different streams are not compared, whether they were inferred before the combiner or behind it.
#[test]
fn tiles_of_combined_streams_are_suppressed_per_stream() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    let Some(objects) = inference(OBJECTS) else { return };
    if has_onnx_runtime() {
        let tiles = "regions=tiles tile-width=640 tile-height=640 full-frame=false";
        let objects = format!("{objects} {tiles}");
        let alone = [&*objects; 3];
        equal_those_alone(["identity"; 3], &objects, alone);
        equal_those_alone(alone, "identity", alone);
    }
}

#[test]
fn frames_on_one_buffer_are_run_together() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    if !has_onnx_runtime() {
        return;
    }
    // The model returns its input. A buffer has six frames: four of them are one run, and two are
    // the next.
    let model = element::file(&identity("n,3,12,16", Element::F32));
    let streams = [[16, 12], [32, 24], [16, 12]];
    let sources = streams.iter().enumerate().map(|(stream, [width, height])| {
        format!(
            "videotestsrc name=in{stream} num-buffers=10 ! video/x-raw,format=RGB,width={width},height={height},framerate=10/1
               ! queue ! c.sink_{stream} s.src_0_{stream} ! queue ! fakesink name=out{stream} "
        )
    });
    let description = format!(
        "analyticscombiner name=c batch-duration=200000000
           ! ortinference name=inference provider=cpu range=0,255 batch-size=4 model={} ! analyticssplitter name=s {}",
        model.display(),
        sources.collect::<String>()
    );
    let pipeline = pipeline::parse(&description);
    let color = |stream: usize, frame: u64| [frame as u8 * 20, stream as u8 * 100, 7];
    for (stream, size) in streams.into_iter().enumerate() {
        pipeline::intercept(&pipeline, &format!("in{stream}"), move |buffer| {
            frames::write(buffer, &Picture::solid(size, color(stream, buffer.offset())));
        });
    }
    let seen = [0, 1, 2].map(|stream| {
        pipeline::watch(&pipeline, &format!("out{stream}"), |buffer| {
            (buffer.offset(), Picture::from_planes(&tensors(buffer)[0]))
        })
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    for (stream, seen) in seen.iter().enumerate() {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 10, "stream {stream}");
        for (index, (offset, picture)) in seen.iter().enumerate() {
            assert_eq!(*offset, index as u64, "stream {stream}");
            assert_eq!(
                *picture,
                Picture::solid([16, 12], color(stream, *offset)),
                "stream {stream}"
            );
        }
    }
    let stats = element::stats(&pipeline);
    assert_eq!(stats.get::<u64>("frames").unwrap(), 30);
    // Mean batch size over all frames: (4 x 4 + 2 x 2) / 6.
    let mean: f64 = stats.get("batch-mean").unwrap();
    assert!((mean - 20.0 / 6.0).abs() < 1e-9, "{mean}");
}

#[test]
fn frames_that_others_hold_and_streams_of_other_media_are_not_changed() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    if !has_onnx_runtime() {
        return;
    }
    let model = element::file(&constant([1, 3, 48, 64], "found", &[1, 4], &[8.0, 4.0, 8.0, 0.9]));
    let description = format!(
        "videotestsrc num-buffers=9 ! video/x-raw,width=64,height=48,framerate=10/1 ! tee name=t
           t. ! queue ! fakesink name=held
           t. ! queue ! c.sink_0
         audiotestsrc num-buffers=9 ! queue ! c.sink_1
         analyticscombiner name=c ! ortinference provider=cpu model={} ! analyticssplitter name=s
           s.src_0_0 ! queue ! fakesink name=video
           s.src_0_1 ! queue ! fakesink name=audio",
        model.display()
    );
    let pipeline = pipeline::parse(&description);
    let held = pipeline::watch(&pipeline, "held", |buffer| -> gst::Buffer {
        // SAFETY: the buffer is valid. The additional reference keeps it shared.
        unsafe { gst::glib::translate::from_glib_none(buffer.as_ptr()) }
    });
    let seen = ["video", "audio"].map(|sink| pipeline::watch(&pipeline, sink, ids));
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    let held = held.lock().unwrap();
    assert!(held.len() == 9 && held.iter().all(|buffer| ids(buffer).is_empty()));
    assert_eq!(*seen[0].lock().unwrap(), vec![vec!["onnx/found".to_owned()]; 9]);
    assert_eq!(*seen[1].lock().unwrap(), vec![Vec::<String>::new(); 9]);
}

#[test]
fn inference_interval_counts_buffers_and_each_of_their_frames_has_a_mark() {
    crate::support::needs::needs!(batches, "analyticscombiner");
    if !has_onnx_runtime() {
        return;
    }
    let model = element::file(&identity("n,3,12,16", Element::F32));
    let sources = [0, 1].map(|stream| {
        format!(
            "videotestsrc num-buffers=8 ! video/x-raw,format=RGB,width=16,height=12,framerate=10/1
               ! queue ! c.sink_{stream} s.src_0_{stream} ! queue ! fakesink name=out{stream} "
        )
    });
    let description = format!(
        "analyticscombiner name=c batch-duration=200000000
           ! ortinference name=inference provider=cpu inference-interval=1 model={} ! analyticssplitter name=s {}",
        model.display(),
        sources.concat()
    );
    let pipeline = pipeline::parse(&description);
    let seen = ["out0", "out1"].map(|sink| {
        pipeline::watch(&pipeline, sink, |frame| (is_inferred(frame), ids(frame).len()))
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    // A buffer has two frames of each stream.
    let (inferred, passed) = ((Some(true), 1), (Some(false), 0));
    let two_buffers = [inferred, inferred, passed, passed];
    for seen in seen {
        assert_eq!(*seen.lock().unwrap(), [two_buffers, two_buffers].concat());
    }
    let counts = ["frames", "frames-skipped"].map(|name| element::stat(&pipeline, name));
    assert_eq!(counts, [8, 8]);
}
