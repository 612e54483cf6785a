// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sixteen cameras of four sizes behind the new nvstreammux: through elements that copy and scale,
//! with different frame rates, and with cameras that are added and removed. The tests do nothing
//! unless `nvstreammux` started the process.
//!
//! The cameras are surfaces without pixels. Like nvinfer, a probe attaches tensors, with one box
//! that depends on source and frame.

use std::sync::{Arc, Mutex};

use gst::prelude::*;

use super::nvstreammux::one_box;
use crate::nvstreammux::PLUGIN;
use crate::run::Seen;
use crate::standin::{Batch, Counts, Surfaces, Tensors};
use crate::support::pipeline::{self, intercept, parse, run, watch};

const SIZES: [[u32; 2]; 4] = [[1920, 1080], [640, 480], [720, 1280], [2560, 1440]];
const CAMERAS: usize = 16;
const BUFFERS: usize = 12;
/// Side length of the model's input.
const SIDE: f32 = 640.0;

fn size(source: u32) -> [u32; 2] {
    SIZES[source as usize % SIZES.len()]
}

/// Returns the box of a frame in the model's input: left, top, width and height. Frames are
/// centered in the input. On the frame itself, the box has whole pixels.
fn in_model(source: u32, frame: i32) -> [f32; 4] {
    let (scale, offsets) = letterbox(source);
    let [left, top, width, height] = on_frame(source, frame);
    [left * scale + offsets[0], top * scale + offsets[1], width * scale, height * scale]
}

fn on_frame(source: u32, frame: i32) -> [f32; 4] {
    let step = (frame % 10) as f32;
    [40.0 + 10.0 * source as f32 + step, 100.0 + 7.0 * source as f32, 64.0 + step, 96.0]
}

/// Returns the scale from a frame to the input, and the borders, as nvinfer computes them.
fn letterbox(source: u32) -> (f32, [f32; 2]) {
    let [width, height] = size(source).map(|side| side as f32);
    let scale = SIDE / width.max(height);
    (scale, [(SIDE - width * scale) / 2.0, (SIDE - height * scale) / 2.0].map(f32::floor))
}

fn tensors(source: u32, frame: i32) -> Tensors {
    one_box(in_model(source, frame), true)
}

/// Source and frame number of each frame, in the order in which nvstreammux muxed them.
type Muxed = Arc<Mutex<Vec<(u32, i32)>>>;

/// A camera.
#[derive(Clone, Copy)]
struct Camera {
    source: u32,
    buffers: usize,
    /// Frames per second, for caps and timestamps.
    rate: u32,
    /// Microseconds to wait before each buffer.
    wait: u32,
}

impl Camera {
    fn new(source: u32, buffers: usize) -> Self {
        Self { source, buffers, rate: 30, wait: 0 }
    }

    /// Adds the camera to the pipeline, which may be playing.
    fn add(self, pipeline: &gst::Pipeline) {
        let Self { source, buffers, rate, wait } = self;
        let [width, height] = size(source);
        let description = format!(
            "fakesrc name=in{source} num-buffers={buffers} sizetype=empty format=time
                ! video/x-raw(memory:NVMM),format=NV12,width={width},height={height},framerate={rate}/1
                ! identity sleep-time={wait} ! queue max-size-buffers=2"
        );
        let bin = gst::parse::bin_from_description(&description, true).unwrap();
        bin.set_property("name", Self::name(source));
        pipeline.add(&bin).unwrap();
        let surfaces = Surfaces { sizes: vec![size(source)], ..Surfaces::default() };
        intercept(pipeline, &format!("in{source}"), move |buffer| surfaces.replace_memory(buffer));
        let pad =
            pipeline.by_name("mux").unwrap().request_pad_simple(&format!("sink_{source}")).unwrap();
        bin.static_pad("src").unwrap().link(&pad).unwrap();
        bin.sync_state_with_parent().unwrap();
    }

    fn name(source: u32) -> String {
        format!("camera{source}")
    }

    /// Removes the camera of this source from a playing pipeline.
    fn remove(pipeline: &gst::Pipeline, source: u32) {
        let bin = pipeline.by_name(&Self::name(source)).unwrap();
        let src = bin.static_pad("src").unwrap();
        let (send, blocked) = std::sync::mpsc::channel();
        src.add_probe(gst::PadProbeType::BLOCK_DOWNSTREAM, move |_, _| {
            // The receiver no longer exists after the first message.
            let _ = send.send(());
            gst::PadProbeReturn::Ok
        });
        blocked.recv_timeout(std::time::Duration::from_secs(30)).expect("the camera has data");
        let sink = src.peer().unwrap();
        src.unlink(&sink).unwrap();
        pipeline.by_name("mux").unwrap().release_request_pad(&sink);
        bin.set_state(gst::State::Null).unwrap();
        pipeline.remove(&bin).unwrap();
    }
}

/// Returns a pipeline of the cameras, nvstreammux `mux`, and the elements `behind`. Returns `None`
/// unless `nvstreammux` started the process.
fn muxed(behind: &str, cameras: &[Camera]) -> Option<(gst::Pipeline, Muxed)> {
    let plugin = std::env::var_os(PLUGIN)?;
    pipeline::init();
    gst::Plugin::load_file(plugin).unwrap();
    let pipeline = parse(&format!("nvstreammux name=mux batch-size={CAMERAS} ! {behind}"));
    for camera in cameras {
        camera.add(&pipeline);
    }
    let muxed = Muxed::default();
    let to = muxed.clone();
    intercept(&pipeline, "mux", move |buffer| {
        let mut counts = to.lock().unwrap();
        for frame in Batch::find(buffer).expect("nvstreammux attaches a batch").frames() {
            let source = frame.state().source_id;
            let number = counts.iter().filter(|(other, _)| *other == source).count() as i32;
            counts.push((source, number));
            frame.attach(&tensors(source, number), None);
        }
    });
    Some((pipeline, muxed))
}

/// Asserts that each frame has its box, on a frame that is `scale` times as large. Returns the
/// number of frames of each source.
fn assert_boxes(seen: &[Seen], muxed: &Muxed, scale: f32) -> Vec<usize> {
    let mut counts = vec![0; CAMERAS + 1];
    let frames = seen.iter().flat_map(|seen| &seen.frames);
    for ((state, objects), &(source, number)) in frames.zip(&*muxed.lock().unwrap()) {
        assert_eq!(state.source_id, source);
        counts[source as usize] += 1;
        let [object] = &objects[..] else { panic!("source {source}: {objects:?}") };
        for (found, expected) in object.rect.iter().zip(on_frame(source, number)) {
            let expected = expected * scale;
            assert!(
                (found - expected).abs() < 0.01,
                "source {source}, frame {number}: {:?}",
                object.rect
            );
        }
    }
    counts
}

fn all() -> Vec<Camera> {
    (0..CAMERAS as u32).map(|source| Camera::new(source, BUFFERS)).collect()
}

/// Runs the pipeline and checks the boxes after each of the named filters.
fn assert_runs(behind: &str, filters: &[&str], cameras: &[Camera], scale: f32) {
    let Some((pipeline, muxed)) = muxed(behind, cameras) else { return };
    if let Some(scaler) = pipeline.by_name("scaled") {
        scale_surfaces(&scaler, scale);
    }
    if let Some(copied) = pipeline.by_name("copied") {
        copied.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, |_, info| {
            let buffer = info.buffer_mut().unwrap();
            *buffer = buffer.copy();
            gst::PadProbeReturn::Ok
        });
    }
    let branches: Vec<_> = filters.iter().map(|name| watch(&pipeline, name, Seen::read)).collect();
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    for branch in branches {
        let counts = assert_boxes(&branch.lock().unwrap(), &muxed, scale);
        for camera in cameras {
            assert_eq!(counts[camera.source as usize], camera.buffers, "source {}", camera.source);
        }
    }
    Counts::now().assert_nothing_left();
}

/// Replaces the surfaces of each batch by surfaces of another size. Like nvvideoconvert, this
/// leaves the metadata unchanged.
fn scale_surfaces(element: &gst::Element, scale: f32) {
    element.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let buffer = info.buffer_mut().unwrap().make_mut();
        let sources: Vec<u32> = Batch::find(buffer)
            .expect("a batch")
            .frames()
            .map(|frame| frame.state().source_id)
            .collect();
        let sizes =
            sources.into_iter().map(|source| size(source).map(|side| (side as f32 * scale) as u32));
        Surfaces { sizes: sizes.collect(), ..Surfaces::default() }.replace_memory(buffer);
        gst::PadProbeReturn::Ok
    });
}

#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_of_sixteen_cameras_are_right() {
    assert_runs("nmsfilter name=nms decoder=yolov8 ! fakesink", &["nms"], &all(), 1.0);
}

#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_behind_a_copy_and_a_tee() {
    let behind = "identity name=copied ! tee name=t
          t. ! queue ! nmsfilter name=first decoder=yolov8 ! fakesink
          t. ! queue ! nmsfilter name=second decoder=yolov8 ! fakesink";
    assert_runs(behind, &["first", "second"], &all(), 1.0);
}

#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_behind_a_scaler() {
    for scale in [0.5, 2.0] {
        let behind = "identity name=scaled ! nmsfilter name=nms decoder=yolov8 ! fakesink";
        assert_runs(behind, &["nms"], &all(), scale);
    }
}

/// Cameras with 30, 15 and 7 frames per second: not all batches are full.
#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_with_cameras_of_different_rates() {
    let camera = |source: u32| {
        let slower = source % 3;
        Camera { source, buffers: BUFFERS >> slower, rate: 30 >> slower, wait: 3000 << slower }
    };
    let cameras: Vec<Camera> = (0..CAMERAS as u32).map(camera).collect();
    assert_runs("nmsfilter name=nms decoder=yolov8 ! fakesink", &["nms"], &cameras, 1.0);
}

/// One camera ends, others are added, and one is removed with its pad, while the rest continues.
#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_while_cameras_come_and_go() {
    let paced = |source, buffers| Camera { wait: 2000, ..Camera::new(source, buffers) };
    // Source 0 has more buffers than the test can wait for.
    let first = [paced(0, 1_000_000), paced(1, 20), paced(2, 300), paced(3, 300)];
    let later = [paced(4, 50), paced(5, 50)];
    let behind = "nmsfilter name=nms decoder=yolov8 ! fakesink";
    let Some((pipeline, muxed)) = muxed(behind, &first) else { return };
    let seen = watch(&pipeline, "nms", Seen::read);
    let wait_for = |source: u32, frames: usize| {
        for _ in 0..3000 {
            let count = muxed.lock().unwrap().iter().filter(|(other, _)| *other == source).count();
            if count >= frames {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("source {source} has fewer than {frames} frames");
    };
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for(2, 30);
            later[0].add(&pipeline);
            wait_for(4, 5);
            Camera::remove(&pipeline, 0);
            let others = muxed.lock().unwrap().len();
            later[1].add(&pipeline);
            wait_for(5, 5);
            assert!(muxed.lock().unwrap().len() > others);
        });
        run(&pipeline)
    });
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    let counts = assert_boxes(&seen.lock().unwrap(), &muxed, 1.0);
    for camera in first[1..].iter().chain(&later) {
        assert_eq!(counts[camera.source as usize], camera.buffers, "source {}", camera.source);
    }
    assert!(counts[0] > 30, "{counts:?}");
    Counts::now().assert_nothing_left();
}
