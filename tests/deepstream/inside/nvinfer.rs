// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvstreammux, nvinfer and `nmsfilter`. The tests do nothing unless `nvinfer` started the process.
//!
//! nvinfer returns recorded outputs: frame n of the stream gets the outputs of recorded frame n
//! modulo [`RECORDED`].

use std::collections::HashMap;

use nmsfilter_core::geometry::Letterbox;

use crate::batch::{Scene, TestModel};
use crate::kit::Kit;
use crate::object::Object;
use crate::recording::{Cameras, Network, Recording, load_plugins};
use crate::run::Seen;
use crate::standin::Counts;
use crate::support::data;
use crate::support::pipeline::{Ended, parse, run, watch};
use crate::support::project;

/// Sizes that the cameras have in turn.
const SIZES: [[u32; 2]; 4] = [[1920, 1080], [640, 480], [720, 1280], [1280, 720]];
const BUFFERS: usize = 6;
const THRESHOLD: f32 = 0.25;
/// More than the number of cameras and not a multiple of it, so that consecutive frames of a camera
/// differ.
const RECORDED: usize = 19;

fn sizes(cameras: usize) -> Vec<[u32; 2]> {
    SIZES.into_iter().cycle().take(cameras).collect()
}

/// Returns the buffers that left the element `last` in the pipeline `behind`, in which `NVINFER`
/// stands for nvinfer.
fn seen(
    kit: &Kit,
    recording: &Recording,
    cameras: usize,
    network: Network,
    behind: &str,
) -> (Vec<Seen>, Ended) {
    let file = recording.configuration(network, THRESHOLD, cameras, kit);
    let nvinfer = format!("nvinfer name=nvinfer config-file-path={file}");
    let sizes = sizes(cameras);
    let cameras = Cameras { sizes: &sizes, buffers: BUFFERS, still: false };
    let pipeline = cameras.pipeline(kit, &behind.replace("NVINFER", &nvinfer));
    let seen = watch(&pipeline, "last", Seen::read);
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings, [""; 0]);
    drop(pipeline);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, ended)
}

/// The objects that `Reference` finds in a recorded frame, by its index and the frame's size.
struct Expected<'a> {
    recording: &'a Recording,
    known: HashMap<(usize, [u32; 2]), Vec<Object>>,
}

impl Expected<'_> {
    fn objects(&mut self, index: usize, size: [u32; 2]) -> &[Object] {
        let model = self.recording.model;
        self.known.entry((index, size)).or_insert_with(|| {
            let mut scene = Scene::new(1, 0).with_model(model);
            scene.score_threshold = THRESHOLD;
            scene.frames[0].seeds = vec![Some(index as u64)];
            scene.frames[0].meta.pipeline = size;
            scene.expected(0, 0, model.letterbox)
        })
    }
}

/// Calls `check` with the objects of each frame, the expected objects, and the frame's size. Fails
/// unless every camera has all of its frames. Returns the number of objects.
fn each_frame(
    seen: &[Seen],
    recording: &Recording,
    cameras: usize,
    mut check: impl FnMut(&[Object], &[Object], [u32; 2]),
) -> usize {
    let mut expected = Expected { recording, known: HashMap::new() };
    let (sizes, mut counts) = (sizes(cameras), vec![0; cameras]);
    let (mut number, mut objects) = (0, 0);
    for (state, found) in seen.iter().flat_map(|seen| &seen.frames) {
        let source = state.source_id as usize;
        counts[source] += 1;
        check(found, expected.objects(number % RECORDED, sizes[source]), sizes[source]);
        number += 1;
        objects += found.len();
    }
    assert_eq!(counts, vec![BUFFERS; cameras]);
    objects
}

#[test]
#[ignore = "run by `nvinfer` in a process of its own"]
fn objects_equal_the_reference() {
    let Some(kit) = Kit::given() else { return };
    for letterbox in Letterbox::ALL {
        let model = TestModel { letterbox, ..TestModel::default() };
        let recording = Recording::new(model, RECORDED);
        for cameras in [1, 4, 16, 64] {
            let behind = "NVINFER ! nmsfilter name=last decoder=yolov8 attach=nvds keep-tensors=false ! fakesink";
            let (seen, ended) = seen(&kit, &recording, cameras, Network::Attached, behind);
            let check = |found: &[Object], expected: &[Object], size| {
                assert_eq!(found, expected, "a frame of {size:?}, {letterbox:?}");
            };
            let objects = each_frame(&seen, &recording, cameras, check);
            assert!(objects > 10 * cameras * BUFFERS, "{objects}");
            let stats = ended.stats.last().unwrap();
            let stat = |name| stats.get::<u64>(name).unwrap();
            let bytes = [stat("bytes-uploaded"), stat("bytes-downloaded")];
            let (batches, launches) = (seen.len(), stat("launches"));
            println!(
                "{cameras} cameras, {batches} batches: {objects} objects, {launches} launches, bytes {bytes:?} |"
            );
            if !kit.is_on_host() {
                // A launch downloads 32 bytes per frame and 28 bytes per survivor. A batch can be
                // launched twice.
                let frames = (cameras * BUFFERS) as u64;
                assert!(bytes[1] <= 2 * (32 * frames + 28 * objects as u64), "{bytes:?}");
                assert!(bytes[0] <= 64 * frames, "{bytes:?}");
            }
        }
    }
    Counts::now().assert_nothing_left();
}

#[test]
#[ignore = "run by `nvinfer` in a process of its own"]
fn objects_of_half_precision_outputs_equal_the_reference() {
    let Some(kit) = Kit::given() else { return };
    let recording = Recording::new(TestModel { half: true, ..TestModel::default() }, RECORDED);
    let behind = "NVINFER ! nmsfilter name=last decoder=yolov8 attach=nvds ! fakesink";
    let (seen, _) = seen(&kit, &recording, 4, Network::Attached, behind);
    let check = |found: &[Object], expected: &[Object], _| assert_eq!(found, expected);
    assert!(each_frame(&seen, &recording, 4, check) > 10 * 4 * BUFFERS);
}

/// nvmsgconv makes a message of each frame's objects.
#[test]
#[ignore = "run by `nvinfer` in a process of its own"]
fn nvmsgconv_makes_messages_of_the_objects() {
    let Some(kit) = Kit::given() else { return };
    let recording = Recording::new(TestModel::default(), RECORDED);
    let behind = format!(
        "NVINFER ! nmsfilter decoder=yolov8 attach=nvds keep-tensors=false
            ! nvmsgconv name=last payload-type=1 msg2p-newapi=true frame-interval=1 msg2p-lib={} config={}
            ! fakesink",
        kit.libraries().join("libnvds_msgconv.so").display(),
        // nvmsgconv crashes unless it has a configuration.
        project::path("tests/deepstream/nvmsgconv/config.txt").display(),
    );
    let (seen, _) = seen(&kit, &recording, 4, Network::Attached, &behind);
    let check = |found: &[Object], expected: &[Object], _| assert_eq!(found, expected);
    assert!(each_frame(&seen, &recording, 4, check) > 10 * 4 * BUFFERS);
    let messages: u32 =
        seen.iter().flat_map(|seen| &seen.frames).map(|(state, _)| state.other_user_metas).sum();
    assert_eq!(messages as usize, 4 * BUFFERS);
}

/// The frames come from NVIDIA's H.264 decoder.
#[test]
#[ignore = "needs a GPU; run by `nvinfer` in a process of its own"]
fn objects_on_decoded_video_equal_the_reference() {
    let Some(kit) = Kit::given().filter(|kit| !kit.is_on_host()) else { return };
    let Some(video) = data::path("data/videos/towncentre_96f_1080p.mp4") else { return };
    let recording = Recording::new(TestModel::default(), RECORDED);
    let file = recording.configuration(Network::Attached, THRESHOLD, 1, &kit);
    load_plugins(&kit);
    let pipeline = parse(&format!(
        "filesrc location={} ! qtdemux ! h264parse ! nvv4l2decoder ! mux.sink_0
         nvstreammux name=mux batch-size=1 ! nvinfer config-file-path={file}
            ! nmsfilter name=last decoder=yolov8 attach=nvds keep-tensors=false ! fakesink",
        video.display()
    ));
    let seen = watch(&pipeline, "last", Seen::read);
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    let mut expected = Expected { recording: &recording, known: HashMap::new() };
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 96);
    for (number, seen) in seen.iter().enumerate() {
        let [(_, objects)] = &seen.frames[..] else { panic!("{} frames", seen.frames.len()) };
        assert_eq!(objects, expected.objects(number % RECORDED, [1920, 1080]), "frame {number}");
    }
}

/// Outputs that nvinfer does not copy to the host, as docs/jetson.md describes.
#[test]
#[ignore = "needs a GPU; run by `nvinfer` in a process of its own"]
fn outputs_that_are_not_copied_to_the_host_are_decoded() {
    let Some(kit) = Kit::given().filter(|kit| !kit.is_on_host()) else { return };
    let recording = Recording::new(TestModel::default(), RECORDED);
    let behind = "NVINFER ! nmsfilter name=last decoder=yolov8 attach=nvds ! fakesink";
    for cameras in [1, 16] {
        let (seen, _) = seen(&kit, &recording, cameras, Network::OnDevice, behind);
        let check = |found: &[Object], expected: &[Object], _| assert_eq!(found, expected);
        assert!(each_frame(&seen, &recording, cameras, check) > 10 * cameras * BUFFERS);
    }
}

/// nvinfer's own suppression keeps equal candidates, ordered by class and score, and draws equal
/// boxes. But if a box reaches beyond the left or upper border, nvinfer moves its corner without
/// changing the sides, and it drops boxes without pixels. Therefore only boxes inside of the frame
/// are compared.
#[test]
#[ignore = "run by `nvinfer` in a process of its own"]
fn nvinfers_own_suppression_finds_equal_objects() {
    let Some(kit) = Kit::given() else { return };
    let recording = Recording::new(TestModel::default(), RECORDED);
    let (seen, _) =
        seen(&kit, &recording, 16, Network::Parsed, "NVINFER ! identity name=last ! fakesink");
    let mut compared = 0;
    let check = |found: &[Object], expected: &[Object], [width, height]: [u32; 2]| {
        let inside = |object: &&Object| {
            let [left, top, w, h] = object.rect;
            left > 1.0
                && top > 1.0
                && left + w < width as f32 - 1.0
                && top + h < height as f32 - 1.0
        };
        let key = |object: &&Object| (object.class, object.confidence.to_bits());
        let sorted = |objects: &[Object]| {
            let mut all: Vec<Object> = objects.iter().filter(inside).cloned().collect();
            all.sort_by_key(|object| key(&object));
            all
        };
        let (found, expected) = (sorted(found), sorted(expected));
        assert_eq!(
            found.iter().map(|o| key(&o)).collect::<Vec<_>>(),
            expected.iter().map(|o| key(&o)).collect::<Vec<_>>()
        );
        for (found, expected) in found.iter().zip(&expected) {
            for (found, expected) in found.rect.iter().zip(expected.rect) {
                assert!((found - expected).abs() < 0.01, "{found:?} {expected:?}");
            }
        }
        compared += found.len();
    };
    each_frame(&seen, &recording, 16, check);
    assert!(compared > 10 * 16 * BUFFERS, "{compared}");
}
