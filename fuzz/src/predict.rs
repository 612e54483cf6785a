//! What `nmsfilter` must make of a frame, from the reference engine and the rules in words.
//!
//! This is the one place that knows what properties are called and mean.

use std::collections::BTreeMap;

use gst::prelude::*;
use gstnmsfilter::elements::nmsfilter::Decoder;
use gstnmsfilter::engine::{ClassThresholds, Engine, Params, Reference, Sizes};
use gstnmsfilter::head::{self, Choice, Head, MAX_CLASSES, Options};
use gstnmsfilter::region::{Attach, HAS_ANALYTICS, Mapping, Region};
use gstnmsfilter::tensor::{self, Tensor};

/// The properties whose effect is predicted; no frame is where another has been changed.
const PREDICTED: [&str; 24] = [
    "attach",
    "backend",
    "box-format",
    "class-agnostic",
    "class-thresholds",
    "classes",
    "coordinates",
    "cuda-device-id",
    "decoder",
    "iou-threshold",
    "keep-tensors",
    "label-file",
    "letterbox",
    "max-candidates",
    "max-detections",
    "max-size",
    "method",
    "min-size",
    "model-height",
    "model-width",
    "overlap",
    "pixel-offset",
    "score-threshold",
    "threshold-inclusive",
];

/// What becomes of a frame.
#[derive(Debug)]
pub enum Expected {
    /// An error, of this kind.
    Error(String),
    WithoutTensors,
    Decoded(Decoded),
    /// Whatever it likes, but soundly.
    Anything,
}

/// The counts of a frame and what is attached to it.
#[derive(Debug)]
pub struct Decoded {
    pub candidates: u64,
    pub rejected: u64,
    /// By rank; with the name of each class.
    pub regions: Vec<(Region, String)>,
    /// Whether regions of interest are attached at all.
    pub as_regions: bool,
    pub keeps_tensors: bool,
}

/// What an element knows apart from its properties.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Lines of the label file, as at the start.
    pub labels: Vec<String>,
    /// The size in the caps.
    pub frame: Option<[u32; 2]>,
    /// Whether model-width and model-height were both zero or both not at the start.
    pub began_with_half_a_model: bool,
}

/// The size that caps give.
pub fn frame_size(caps: &gst::Caps) -> Option<[u32; 2]> {
    let structure = caps.structure(0)?;
    let side = |name| structure.get::<i32>(name).ok().and_then(|side| side.try_into().ok());
    Some([side("width")?, side("height")?])
}

/// Whether exactly one of the model's sides is set.
pub fn has_half_a_model(element: &gst::Element) -> bool {
    let is_set = |name| element.property::<u32>(name) != 0;
    is_set("model-width") != is_set("model-height")
}

pub fn frame(element: &gst::Element, known: &Known, buffer: &gst::BufferRef) -> Expected {
    if has_other_settings(element) {
        return Expected::Anything;
    }
    let tensors = match tensor::read(buffer) {
        Ok(tensors) if tensors.is_empty() => return Expected::WithoutTensors,
        Ok(tensors) => tensors,
        Err(error) => return Expected::Error(kind(&error)),
    };
    if has_half_a_model(element) && !crate::known::HALF_A_MODEL_WHILE_PLAYING {
        return match known.began_with_half_a_model {
            true => Expected::Error("HalfModel".into()),
            false => Expected::Anything,
        };
    }
    match decoded(element, known, &tensors) {
        Ok(decoded) => Expected::Decoded(decoded),
        Err(kind) => Expected::Error(kind),
    }
}

fn has_other_settings(element: &gst::Element) -> bool {
    element.list_properties().iter().any(|spec| {
        let is_own = spec.owner_type() == element.type_();
        let is_writable = spec.flags().contains(gst::glib::ParamFlags::WRITABLE);
        let value = || element.property_value(spec.name());
        is_own
            && is_writable
            && !PREDICTED.contains(&spec.name())
            && value().compare(spec.default_value()) != Some(std::cmp::Ordering::Equal)
    })
}

fn decoded(
    element: &gst::Element,
    known: &Known,
    tensors: &[Tensor<'_>],
) -> Result<Decoded, String> {
    let wanted = element.property::<Decoder>("decoder").head();
    let options = Options {
        box_format: element.property("box-format"),
        coordinates: element.property("coordinates"),
    };
    let Choice { head, layout, .. } =
        head::choose(tensors, wanted, options).map_err(|error| kind(&error))?;
    let frame = known.frame.ok_or("NoCaps")?;
    let model = ["model-width", "model-height"].map(|name| element.property(name));
    let mapping =
        Mapping::new(frame, model, element.property("letterbox")).map_err(|error| kind(&error))?;
    let thresholds = thresholds(element, &known.labels)?;
    let scale = if layout.normalised { mapping.model() } else { [1.0; 2] };
    let params = params(element, &mapping, thresholds, scale);
    let mut reference = Reference::default();
    let outcome = reference.run(tensors, &layout, &params).map_err(|error| kind(&error))?;

    let name = |class: u32| name_of(class, &known.labels, head);
    let all = outcome.survivors.iter().filter_map(|survivor| mapping.region(survivor));
    let regions: Vec<_> = all.map(|region| (region, name(region.class))).collect();
    let outside = (outcome.survivors.len() - regions.len()) as u64;
    let attach = element.property::<Attach>("attach");
    Ok(Decoded {
        candidates: outcome.candidates as u64,
        rejected: outcome.rejected as u64 + outside,
        regions,
        as_regions: attach.contains(Attach::ROI),
        keeps_tensors: element.property("keep-tensors"),
    })
}

fn params(
    element: &gst::Element,
    mapping: &Mapping,
    thresholds: ClassThresholds,
    scale: [f32; 2],
) -> Params {
    let cap = |name| element.property::<u32>(name) as usize;
    let max = element.property::<f32>("max-size");
    Params {
        method: element.property("method"),
        overlap: element.property("overlap"),
        iou_threshold: element.property("iou-threshold"),
        threshold_inclusive: element.property("threshold-inclusive"),
        pixel_offset: element.property::<u32>("pixel-offset") as f32,
        class_agnostic: element.property("class-agnostic"),
        thresholds,
        sizes: Sizes {
            min: mapping.sides_in_model(element.property("min-size")),
            max: if max == 0.0 { [f32::INFINITY; 2] } else { mapping.sides_in_model(max) },
        },
        scale,
        max_candidates: cap("max-candidates"),
        max_detections: cap("max-detections"),
    }
}

/// The thresholds that `score-threshold`, `classes` and `class-thresholds` come to.
fn thresholds(element: &gst::Element, labels: &[String]) -> Result<ClassThresholds, String> {
    let score: f32 = element.property("score-threshold");
    let class = |name: &str| -> Result<usize, String> {
        let by_label = labels.iter().position(|label| label == name);
        let class = by_label.or_else(|| name.parse().ok());
        class.filter(|&class| class < MAX_CLASSES).ok_or_else(|| "UnknownClass".into())
    };
    let entries = |name| -> Vec<String> {
        let list = element.property::<Option<String>>(name).unwrap_or_default();
        list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(Into::into).collect()
    };
    let mut of: BTreeMap<usize, f32> = BTreeMap::new();
    for name in entries("classes") {
        of.insert(class(&name)?, score);
    }
    let keeps_others_out = !of.is_empty();
    for entry in entries("class-thresholds") {
        let (name, threshold) = entry.rsplit_once(':').ok_or("Entry")?;
        let threshold = threshold.trim().parse::<f32>().ok().filter(|t| t.is_finite());
        let (class, threshold) = (class(name.trim())?, threshold.ok_or("Entry")?);
        if !keeps_others_out || of.contains_key(&class) {
            of.insert(class, threshold);
        }
    }
    let default = if keeps_others_out { f32::INFINITY } else { score };
    let count = of.last_key_value().map_or(0, |(&last, _)| last + 1);
    let per_class = (0..count).map(|class| of.get(&class).copied().unwrap_or(default)).collect();
    Ok(ClassThresholds { default, per_class })
}

fn name_of(class: u32, labels: &[String], head: &dyn Head) -> String {
    let name = match labels.get(class as usize) {
        Some(label) => Some(label.as_str()).filter(|label| !label.is_empty()),
        None => head.label(class),
    };
    // Metadata keeps C strings, which end at the first zero.
    let name = name.map(|name| name.split('\0').next().unwrap_or_default());
    name.map_or_else(|| format!("class-{class}"), Into::into)
}

/// Whether the element must refuse to start, as far as that is known here.
pub fn refuses_to_start(element: &gst::Element, labels_are_sound: bool) -> bool {
    let attach = element.property::<Attach>("attach");
    (attach == Attach::ANALYTICS && !HAS_ANALYTICS) || !labels_are_sound
}

/// The name of an error's variant.
pub fn kind(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let names = text.split(['(', '{', ' ']).filter(|part| !part.is_empty());
    let wrappers = ["Tensor", "Layout", "Device", "Driver"];
    names.into_iter().find(|name| !wrappers.contains(name)).unwrap_or("error").to_owned()
}
