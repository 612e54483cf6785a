// SPDX-License-Identifier: MIT OR Apache-2.0
//! NVIDIA's own nvinfer on objects (`process-mode=2`), and `nmsfilter`. The tests do nothing unless `nvinfer` started the
//! process.
//!
//! nvinfer runs on the objects of a frame from the newest to the oldest, and gives the object with the number n of the stream
//! the recorded outputs n modulo [`RECORDED`].

use fastrand::Rng;
use nmsfilter_core::geometry::{FitRule, FrameRegion, Letterbox, Mapping, Rounding};

use crate::batch::TestModel;
use crate::kit::Kit;
use crate::parts::{Part, expected};
use crate::recording::{Cameras, Network, Recording};
use crate::run::Seen;
use crate::standin::{Batch, Counts};
use crate::support::pipeline::{intercept, run, watch};

const SIZES: [[u32; 2]; 3] = [[1920, 1080], [640, 480], [720, 1280]];
const BUFFERS: usize = 5;
const RECORDED: usize = 19;
const THRESHOLD: f32 = 0.25;
/// The id of the element that found the objects.
const FIRST: i32 = 9;

/// The rectangles of the objects of a frame, in the order in which they are added: from none to six.
fn rectangles(source: u32, [width, height]: [u32; 2]) -> Vec<[f32; 4]> {
    let mut rng = Rng::with_seed(source.into());
    let rectangle = |_| {
        let [w, h] = [width, height].map(|side| 16.0 + rng.f32() * (side as f32 - 16.0));
        [rng.f32() * (width as f32 - w), rng.f32() * (height as f32 - h), w, h]
    };
    (0..3 * source).map(rectangle).collect()
}

/// The pixels that nvinfer scales for a rectangle: whole edges, rounded up to even numbers, sides rounded down.
fn cut([left, top, width, height]: [f32; 4]) -> [u32; 4] {
    let [left, top] = [left, top].map(|edge| (edge as u32).div_ceil(2) * 2);
    let [width, height] = [width, height].map(|side| side as u32 / 2 * 2);
    [left, top, width, height]
}

#[test]
#[ignore = "run by `nvinfer` in a process of its own"]
fn detections_in_objects_equal_the_reference() {
    let Some(kit) = Kit::given() else { return };
    for letterbox in Letterbox::ALL {
        let model = TestModel { letterbox, input: [416, 352], ..TestModel::default() };
        let recording = Recording::new(model, RECORDED).on_objects();
        // The batch is smaller than the number of objects of a buffer.
        let file = recording.configuration(Network::Attached, THRESHOLD, 4, &kit);
        let behind = format!(
            "identity name=objects ! nvinfer name=nvinfer config-file-path={file}
               ! nmsfilter name=last decoder=yolov8 unique-id={} attach=nvds keep-tensors=false ! fakesink",
            model.unique_id
        );
        let cameras = Cameras { sizes: &SIZES, buffers: BUFFERS, still: false };
        let pipeline = cameras.pipeline(&kit, &behind);
        intercept(&pipeline, "objects", |buffer| {
            for frame in Batch::find(buffer).unwrap().frames() {
                let source = frame.state().source_id;
                for rectangle in rectangles(source, SIZES[source as usize]) {
                    frame.add_object(FIRST, 1, rectangle);
                }
            }
        });
        let seen = watch(&pipeline, "last", Seen::read);
        transforms(&kit);
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]));
        drop(pipeline);
        let scaled = transforms(&kit);
        let (mut number, mut found) = (0, 0);
        for (state, objects) in seen.lock().unwrap().iter().flat_map(|seen| &seen.frames) {
            let size = SIZES[state.source_id as usize];
            let rectangles = rectangles(state.source_id, size);
            let mut parts = Vec::new();
            for (index, rectangle) in rectangles.iter().enumerate().rev() {
                let pixels = cut(*rectangle);
                if let Some(scaled) = &scaled {
                    assert_scaled(scaled[number], &model, size, pixels);
                }
                let seed = (number % RECORDED) as u64;
                parts.insert(0, Part { pixels, parent: Some(index), seed });
                number += 1;
            }
            let (before, after) = objects.split_at(rectangles.len());
            assert!(before.iter().all(|object| object.component == FIRST && object.tensors == 0));
            if !parts.is_empty() {
                assert_eq!(after, expected(&model, size, &parts, THRESHOLD), "{letterbox:?}");
            }
            found += after.len();
        }
        assert_eq!(number, 9 * BUFFERS);
        assert!(found > 10 * number, "{found}");
        let stats = ended.stats.last().unwrap();
        assert_eq!(stats.get::<u64>("frames-without-tensors").unwrap(), BUFFERS as u64);
    }
    Counts::now().assert_nothing_left();
}

/// Rectangles (top, left, width, height) that nvinfer cut out of a surface, and to which it scaled them.
type Scaled = [[u32; 4]; 2];

/// Returns the rectangles since the last call. `None` with a GPU, on which NVIDIA's library keeps none.
fn transforms(kit: &Kit) -> Option<Vec<Scaled>> {
    type Read = unsafe extern "C" fn(*mut [u32; 4], *mut [u32; 4], u32) -> u32;
    const MOST: usize = 4096;
    if !kit.is_on_host() {
        return None;
    }
    let [mut from, mut to] = [0; 2].map(|_| vec![[0; 4]; MOST]);
    // SAFETY: the library is loaded, has this function, and both arrays have room for `MOST` rectangles.
    let count = unsafe {
        let library = libloading::Library::new("libnvbufsurftransform.so").unwrap();
        let read = *library.get::<Read>(b"host_transforms").unwrap();
        read(from.as_mut_ptr(), to.as_mut_ptr(), MOST as u32) as usize
    };
    Some((0..count).map(|index| [from[index], to[index]]).collect())
}

/// Asserts that nvinfer has scaled these pixels to the part of the model's input that the mapping has.
fn assert_scaled([from, to]: Scaled, model: &TestModel, frame: [u32; 2], pixels: [u32; 4]) {
    let [left, top, width, height] = pixels;
    assert_eq!(from, [top, left, width, height]);
    let rule = FitRule::from(model.letterbox).with_rounding(Rounding::EvenSides);
    let region = FrameRegion { left, top, width, height };
    let visible = Mapping::of_region(frame, region, model.input, rule).unwrap().visible();
    let [top, left, width, height] = to.map(|side| side as f32);
    let found = [visible.left, visible.top, visible.right, visible.bottom];
    for (found, expected) in found.into_iter().zip([left, top, left + width, top + height]) {
        assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    }
}
