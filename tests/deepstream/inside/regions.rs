// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors of regions of interest, as nvinfer attaches them behind nvdspreprocess (`input-tensor-meta=1`): the detections of a
//! frame are one list. `errors` has the versions whose structures are not known.

use gstnmsfilter::deepstream::layout::Version;
use nmsfilter_core::geometry::{FitRule, Letterbox, Rounding};

use crate::batch::TestModel;
use crate::libraries::{is_inside, version};
use crate::object::Object;
use crate::parts::{Part, expected, tensors};
use crate::run::{self, Ran};
use crate::standin::{Batch, Frame};

const SIZE: [u32; 2] = [1280, 720];
const THRESHOLD: f32 = 0.25;

/// The regions of a frame, and the pixels that nvdspreprocess cuts out for each. The last is an object, the second of the
/// frame.
const REGIONS: [([f32; 4], [u32; 4], Option<usize>); 4] = [
    ([0.0, 0.0, 640.0, 720.0], [0, 0, 640, 720], None),
    ([600.0, 0.0, 680.0, 720.0], [600, 0, 680, 720], None),
    ([0.0, 0.0, 1280.0, 720.0], [0, 0, 1280, 720], None),
    ([301.5, 99.0, 203.0, 301.9], [302, 100, 202, 300], Some(1)),
];

fn is_read() -> bool {
    is_inside() && version() >= Version::new(8, 0)
}

fn model(letterbox: Letterbox) -> TestModel {
    TestModel { unique_id: 4, letterbox, ..TestModel::default() }
}

/// The ratio and the offset with which a region is fitted into the model's input.
fn scaling(model: &TestModel, [_, _, width, height]: [u32; 4]) -> [[f64; 2]; 2] {
    let rule = FitRule::from(model.letterbox).with_rounding(Rounding::EvenSides);
    let fit = rule.fit([width, height], model.input);
    let ratio = [0, 1].map(|axis| f64::from(fit.size[axis]) / f64::from([width, height][axis]));
    [ratio, fit.offset.map(f64::from)]
}

/// Adds frames with two objects and the regions. The tensors have settings of nvinfer's, which do not apply, because
/// nvdspreprocess has scaled: that nothing keeps the aspect ratio.
fn attach(buffer: &mut gst::BufferRef, model: &TestModel, frames: u32) {
    let batch = Batch::attach(buffer, frames);
    let said = TestModel { letterbox: Letterbox::None, ..*model };
    for batch_id in 0..frames {
        let frame = Frame { batch_id, source_id: batch_id, pipeline: SIZE, ..Frame::default() };
        let frame = batch.add_frame(&frame);
        let objects = [[1.0; 4], REGIONS[3].0].map(|rect| frame.add_object(9, 0, rect));
        for (number, (rect, pixels, object)) in (0..).zip(REGIONS) {
            let seed = 10 * u64::from(batch_id) + number;
            let object = object.map(|index| objects[index]);
            frame.attach_to_roi(rect, scaling(model, pixels), object, &tensors(&said, seed));
        }
    }
}

fn found(model: &TestModel, batch_id: u64) -> Vec<Object> {
    let part = |(number, (_, pixels, parent)): (u64, _)| Part {
        pixels,
        parent,
        seed: 10 * batch_id + number,
    };
    let parts: Vec<Part> = (0..).zip(REGIONS).map(part).collect();
    expected(model, SIZE, &parts, THRESHOLD)
}

fn run(more: &str, attach: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static) -> Ran {
    let properties = format!("decoder=yolov8 score-threshold={THRESHOLD} unique-id=4 {more}");
    run::with(&properties, 2, attach)
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn detections_in_the_regions_of_a_frame_are_one_list() {
    if !is_read() {
        return;
    }
    for letterbox in Letterbox::ALL {
        let model = model(letterbox);
        // Tensors of regions stay in any case.
        let ran = run("keep-tensors=false", move |buffer| attach(buffer, &model, 3)).well();
        for seen in &ran.seen {
            for (batch_id, (state, objects)) in (0..).zip(&seen.frames) {
                let expected = found(&model, batch_id);
                assert!(expected.len() > 40, "{}", expected.len());
                assert!(expected.iter().any(|object| object.parent == Some(1)));
                assert_eq!(objects[2..], expected[..], "frame {batch_id}, {letterbox:?}");
                assert_ne!(state.infer_done, 0);
            }
        }
    }
}

/// The region was not scaled to the model's input, so nobody knows where the boxes are.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_scaling_that_no_letterbox_gives_is_an_error() {
    if !is_read() {
        return;
    }
    let model = model(Letterbox::None);
    let ran = run("", move |buffer| {
        let frame = Frame { pipeline: SIZE, ..Frame::default() };
        let frame = Batch::attach(buffer, 1).add_frame(&frame);
        let rect = [0.0, 0.0, 640.0, 720.0];
        frame.attach_to_roi(rect, [[0.5; 2], [0.0; 2]], None, &tensors(&model, 1));
    });
    let error = ran.ended.error();
    assert!(error.contains("set processing-width and processing-height"), "{error}");
    assert!(ran.seen.is_empty());
}
