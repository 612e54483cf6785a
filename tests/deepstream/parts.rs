// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a frame on which a model ran: objects, or regions of interest.
//!
//! In: the pixels of each part and the seed of its tensors. Out: the detections of the frame, by `Reference`, with all parts
//! in one group; and tensors for the stand-in.

use std::ffi::CString;

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::engine::{ClassThresholds, Engine, ImagePlace, Job, Params, Reference};
use nmsfilter_core::geometry::{FitRule, FrameRegion, Mapping, Rounding};
use nmsfilter_core::tensor::TensorView;

use crate::batch::{Elements, TestModel, outputs, tensors_of};
use crate::object::{Object, object};
use crate::standin::{Layer, Tensors};

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Left, top, width and height of the pixels that were scaled to the model's input.
    pub pixels: [u32; 4],
    /// The index of the object that has these pixels.
    pub parent: Option<usize>,
    pub seed: u64,
}

/// Returns the objects that are expected for the parts of a frame. `parts` are in the order of their images.
pub fn expected(model: &TestModel, frame: [u32; 2], parts: &[Part], threshold: f32) -> Vec<Object> {
    let rule = FitRule::from(model.letterbox).with_rounding(Rounding::EvenSides);
    let mapping = |part: &Part| {
        let [left, top, width, height] = part.pixels;
        let region = FrameRegion { left, top, width, height };
        Mapping::of_region(frame, region, model.input, rule).unwrap()
    };
    let places: Vec<ImagePlace> =
        parts.iter().map(|part| ImagePlace::in_region(&mapping(part), 0)).collect();
    // The tensors of all parts, one after the other.
    let mut all = Vec::<f32>::new();
    for part in parts {
        let [layer] = &outputs(model, part.seed)[..] else { panic!("{:?}", model.format) };
        let Elements::F32(elements) = &layer.elements else { panic!("half precision") };
        all.extend(elements);
    }
    let layers = outputs(model, 0);
    let dims: Vec<usize> = [parts.len()].iter().chain(&layers[0].dims).copied().collect();
    let views = [TensorView::from_slice(layers[0].name, &dims, &all)];
    let options = Options { batch: true, ..Options::default() };
    let wanted = decoder::by_name(model.format.decoder());
    let choice = decoder::choose(&views, wanted, options).unwrap();
    let params = Params {
        thresholds: ClassThresholds::uniform(threshold),
        max_detections: 1000,
        ..Params::default()
    };
    let mut reference = Reference::default();
    let outcome = reference.run(Job::new(&views, &choice.layout, &params, &places)).unwrap();
    let [width, height] = frame.map(|side| side as f32);
    let object = |survivor: &nmsfilter_core::engine::Detection| {
        let left = survivor.x1.clamp(0.0, width);
        let top = survivor.y1.clamp(0.0, height);
        let right = survivor.x2.clamp(0.0, width);
        let bottom = survivor.y2.clamp(0.0, height);
        let rect = [left, top, right - left, bottom - top];
        let (class, label) = (survivor.class as i32, format!("class-{}", survivor.class));
        let parent = parts[outcome.image_of(survivor)].parent;
        Object { parent, ..object(model.unique_id, class, survivor.score, rect, &label) }
    };
    outcome.group(0).survivors.iter().map(object).collect()
}

/// Returns the tensors of a part. Their memory is never freed.
pub fn tensors(model: &TestModel, seed: u64) -> Tensors {
    let layer = |layer: crate::batch::HostLayer| {
        let bytes = layer.elements.bytes().to_vec().leak();
        Layer {
            name: Some(CString::new(layer.name).unwrap()),
            data_type: i32::from(model.half),
            dims: layer.dims.iter().map(|&dim| dim as u32).collect(),
            counts: None,
            host: bytes.as_ptr() as u64,
            device: 0,
        }
    };
    Tensors { layers: outputs(model, seed).into_iter().map(layer).collect(), ..tensors_of(model) }
}
