// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts the result of a frame in `nmsfilter`.
//!
//! In: the values of properties, caps, and a buffer with tensors. Out: [`Expected`], computed with
//! the reference engine and the documented rules. Only this module depends on the names and
//! meanings of properties.

use std::collections::BTreeMap;

use gst_newer::Capabilities;
use gstnmsfilter::deepstream::layout::StructureLayout;
use gstnmsfilter::elements::nmsfilter::enums::{self, NmsFilterLetterbox};
use gstnmsfilter::input::Tensors;
use gstnmsfilter::output::Region;
use nmsfilter_core::decoder::{
    self, Choice, ChoiceError, MAX_CLASSES, Options, Scores, classifier,
};
use nmsfilter_core::engine::{
    ClassRule, ClassThresholds, Cuda, Engine, EngineError, ImagePlace, Job, Params, Reference,
    Scalar, ScalarKind, SizeLimits,
};
use nmsfilter_core::geometry::{Letterbox, Mapping};
use nmsfilter_core::reading::{self, BoxReading, Classifiers, Facts};
use nmsfilter_core::tensor::TensorView;

use crate::engines;
use crate::snapshot::Snapshot;

/// Properties whose effect is predicted, beside those in the core's table. After any other property
/// was changed, no frame is predicted.
const PREDICTED: [&str; 28] = [
    "attach",
    "backend",
    "background",
    "box-format",
    "channels",
    "class-iou-thresholds",
    "class-max-detections",
    "class-sizes",
    "class-thresholds",
    "classes",
    "coordinates",
    "cuda-device-id",
    "decoder",
    "deepstream-version",
    "keep-tensors",
    "keypoint-layout",
    "label-file",
    "letterbox",
    "max-size",
    "method",
    "min-size",
    "model-height",
    "model-width",
    "num-classes",
    "overlap",
    "pixel-offset",
    "region-edges",
    "unique-id",
];

/// The result of a frame.
#[derive(Debug)]
pub enum Expected {
    /// An error of this kind.
    Error(String),
    WithoutTensors,
    Decoded(Decoded),
    /// The result is not predicted, but the element must not crash.
    Anything,
}

/// The counts of a frame and the regions that are attached to it.
#[derive(Debug)]
pub struct Decoded {
    pub candidates: u64,
    pub rejected: u64,
    /// Regions by rank, each with its label.
    pub regions: Vec<(Region, String)>,
    /// True if regions of interest are attached at all.
    pub as_regions: bool,
    pub keeps_tensors: bool,
    /// True if earlier settings are in force, because the current settings cannot be used.
    pub by_earlier_settings: bool,
}

/// The state of an element since it was started, without its properties.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Labels that were read from the label file at the start.
    pub labels: Vec<String>,
    /// Value of `backend` at the start.
    backend: String,
    /// Size of frames in the caps.
    pub frame: Option<[u32; 2]>,
    /// Last settings that could be used.
    in_force: Option<Snapshot>,
    /// True if a frame was decoded.
    has_decoded: bool,
    /// True if a property was changed whose effect is not predicted.
    is_unpredictable: bool,
}

impl Known {
    pub fn new(settings: &Snapshot, labels: Vec<String>) -> Self {
        // Some of these properties are read only at the start.
        let is_unpredictable = has_unpredicted(settings);
        Self { labels, backend: settings.nick("backend"), is_unpredictable, ..Self::default() }
    }
}

fn has_unpredicted(settings: &Snapshot) -> bool {
    let is_scalar = |name: &str| Params::SCALARS.iter().any(|scalar| property(scalar) == name);
    settings.changed().any(|name| !PREDICTED.contains(&name) && !is_scalar(name))
}

/// Returns the name of the property.
fn property(scalar: &Scalar) -> String {
    scalar.name.replace('_', "-")
}

/// Returns the frame size in caps.
pub fn frame_size(caps: &gst::Caps) -> Option<[u32; 2]> {
    let structure = caps.structure(0)?;
    let side = |name| structure.get::<i32>(name).ok().and_then(|side| side.try_into().ok());
    Some([side("width")?, side("height")?])
}

/// Returns the labels in a label file. Returns `None` if the file is not valid text, has no label, or
/// is a list on one line or a table. The fuzzer writes no other forms, such as numbered lines.
pub fn labels(file: &[u8]) -> Option<Vec<String>> {
    let text = str::from_utf8(file).ok().filter(|text| !text.contains('\0'))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut labels: Vec<String> = text.split('\n').map(|line| line.trim().to_owned()).collect();
    while labels.last().is_some_and(String::is_empty) {
        labels.pop();
    }
    let filled = || labels.iter().filter(|label| !label.is_empty());
    let is_list = filled().count() == 1 && filled().all(|label| label.contains(','));
    let is_table = filled().count() > 1 && filled().all(|label| label.matches('\t').count() == 1);
    if is_list || is_table {
        return None;
    }
    Some(labels).filter(|labels| !labels.is_empty())
}

/// Predicts the result of pushing `buffer` next. The push can bring settings into force.
pub fn frame(settings: &Snapshot, known: &mut Known, buffer: &gst::BufferRef) -> Expected {
    known.is_unpredictable |= has_unpredicted(settings);
    // Tensors in `GstTensorMeta` and tensors in the plugin's own metadata belong to two inference
    // elements. The element reads only one of them.
    known.is_unpredictable |= has_both_kinds(buffer);
    // A file that cannot be read is an error at the start, and a pending setting while playing.
    known.is_unpredictable |= settings.nick("decoder") == "layout";
    // A classifier gives classes instead of boxes.
    known.is_unpredictable |= settings.nick("decoder") == classifier::NAME;
    if known.is_unpredictable {
        return Expected::Anything;
    }
    let tensors = match Tensors::of(buffer) {
        Ok(tensors) if tensors.is_empty() => return Expected::WithoutTensors,
        Ok(tensors) => tensors,
        Err(error) => return Expected::Error(kind(&error)),
    };
    let tensors = &*tensors.views();
    let plan = match Plan::new(settings, known, tensors) {
        Ok(plan) => {
            known.in_force = Some(settings.clone());
            plan
        }
        Err(error) => {
            // Settings that cannot be used are an error until a frame was decoded.
            let earlier = known.in_force.as_ref().filter(|_| known.has_decoded);
            match earlier.and_then(|earlier| Plan::new(earlier, known, tensors).ok()) {
                Some(plan) => Plan { by_earlier_settings: true, ..plan },
                None => return Expected::Error(error),
            }
        }
    };
    match plan.decoded(known, tensors) {
        Ok(decoded) => {
            known.has_decoded = true;
            Expected::Decoded(decoded)
        }
        Err(error) => Expected::Error(error),
    }
}

fn has_both_kinds(buffer: &gst::BufferRef) -> bool {
    let has = |name| buffer.iter_meta::<gst::Meta>().any(|meta| meta.api().name() == name);
    has("NmsFilterTensor-api") && has("GstTensorMetaAPI")
}

/// The name of an error, as [`kind`] returns it.
struct ErrorKind(String);

impl From<String> for ErrorKind {
    fn from(kind: String) -> Self {
        Self(kind)
    }
}

impl From<ChoiceError> for ErrorKind {
    fn from(error: ChoiceError) -> Self {
        Self(kind(&error))
    }
}

impl From<EngineError> for ErrorKind {
    fn from(error: EngineError) -> Self {
        Self(kind(&error))
    }
}

/// Everything that follows from settings, tensors and caps.
struct Plan {
    reading: reading::Reading,
    mapping: Mapping,
    as_regions: bool,
    keeps_tensors: bool,
    by_earlier_settings: bool,
}

impl Plan {
    fn new(settings: &Snapshot, known: &Known, tensors: &[TensorView<'_>]) -> Result<Self, String> {
        check(settings)?;
        let options = Options {
            box_format: settings.get::<enums::BoxFormat>("box-format").into(),
            coordinates: settings.get::<enums::Coordinates>("coordinates").into(),
            channels: settings.get::<enums::Channels>("channels").into(),
            num_classes: settings.get::<u32>("num-classes") as usize,
            labels: known.labels.len(),
            batch: false,
            model_size: model_size(settings, known.frame),
            background: settings.get::<enums::Background>("background").chosen(),
            ..Options::default()
        };
        let decoder = decoder::by_name(&settings.nick("decoder"));
        let has_class_thresholds = false;
        let of_core = reading::Settings {
            decoder,
            classifiers: Classifiers::Never,
            options,
            has_class_thresholds,
            classes: None,
        };
        // Every engine rejects what the reference engine rejects.
        let facts =
            Facts { tensors, family: None, in_frame: true, engine: Some(&Reference::default()) };
        let frame = known.frame.ok_or_else(|| "NoCaps".to_owned());
        let model = ["model-width", "model-height"].map(|name| settings.get(name));
        let mapping = frame.and_then(|frame| {
            // The tensors have no model description.
            let letterbox = settings.get::<NmsFilterLetterbox>("letterbox").chosen();
            Mapping::new(frame, model, letterbox.unwrap_or(Letterbox::None))
                .map_err(|error| kind(&error))
        });
        let params = |choice: Option<&Choice>| {
            let choice = choice.expect("classifiers are not read");
            let class_rules = class_rules(settings, &known.labels, choice)?;
            let thresholds = thresholds(settings, &known.labels, choice)?;
            mapping.clone()?;
            Ok::<_, ErrorKind>(Params { class_rules, ..params(settings, thresholds) })
        };
        let reading = reading::read(&facts, &of_core, params).map_err(|ErrorKind(kind)| kind)?;
        let mapping = mapping?;
        if known.backend == "cuda" {
            let boxes = boxes(&reading);
            let supports = |cuda: &mut Cuda| cuda.supports(&boxes.choice().layout, boxes.params());
            let supported = engines::with_cuda(supports).unwrap_or(Ok(()));
            supported.map_err(|error| kind(&error))?;
        }
        let as_regions = settings.nicks("attach").iter().any(|kind| kind == "roi");
        let keeps_tensors = settings.get("keep-tensors");
        Ok(Self { reading, mapping, as_regions, keeps_tensors, by_earlier_settings: false })
    }

    fn decoded(self, known: &Known, tensors: &[TensorView<'_>]) -> Result<Decoded, String> {
        let boxes = boxes(&self.reading);
        let choice = boxes.choice();
        let place = ImagePlace::in_frame(&self.mapping, 0);
        let mut reference = Reference::default();
        let outcome = reference.run(Job::new(tensors, &choice.layout, boxes.params(), &[place]));
        let outcome = outcome.map_err(|error| kind(&error))?;
        let image = outcome.group(0);
        let region = |survivor| {
            let region = Region::of(survivor, &self.mapping).expect("every survivor is visible");
            (region, name_of(region.class, &known.labels, choice))
        };
        Ok(Decoded {
            candidates: image.candidates as u64,
            rejected: image.rejected as u64,
            regions: image.survivors.iter().map(region).collect(),
            as_regions: self.as_regions,
            keeps_tensors: self.keeps_tensors,
            by_earlier_settings: self.by_earlier_settings,
        })
    }
}

/// The reading of boxes.
fn boxes(reading: &reading::Reading) -> &BoxReading {
    reading.boxes().expect("classifiers are not read")
}

/// Returns the errors of settings that do not depend on tensors.
fn check(settings: &Snapshot) -> Result<(), String> {
    if cannot_attach(settings) {
        return Err("NoAnalytics".into());
    }
    let number = |name: &str| settings.get::<f32>(name);
    let is_nan = |scalar: &Scalar| {
        matches!(scalar.kind, ScalarKind::Number(..)) && number(&property(scalar)).is_nan()
    };
    let is_size_nan = ["min-size", "max-size"].into_iter().any(|name| number(name).is_nan());
    if is_size_nan || Params::SCALARS.iter().any(is_nan) {
        return Err("NotANumber".into());
    }
    if number("max-size") > 0.0 && number("max-size") < 1.0 {
        return Err("SizeBelowPixel".into());
    }
    if number("max-size") > 0.0 && number("min-size") > number("max-size") {
        return Err("SizeLimits".into());
    }
    // No buffer has DeepStream's metadata.
    let kinds = settings.nicks("attach");
    let has = |kind: &str| kinds.iter().any(|nick| nick == kind);
    if has("nvds") && !has("roi") && !(has("analytics") && Capabilities::get().relations.is_ok()) {
        return Err("NothingForFrame".into());
    }
    Ok(())
}

fn cannot_attach(settings: &Snapshot) -> bool {
    settings.nicks("attach") == ["analytics"] && Capabilities::get().relations.is_err()
}

/// Returns the parameters. Lengths are in pixels of the frame.
fn params(settings: &Snapshot, thresholds: ClassThresholds) -> Params {
    let mut params = Params::default();
    for scalar in Params::SCALARS {
        let name = &property(scalar);
        match scalar.kind {
            ScalarKind::Flag(flag) => (flag.set)(&mut params, settings.get(name)),
            ScalarKind::Count(count) => {
                (count.set)(&mut params, settings.get::<u32>(name) as usize);
            }
            ScalarKind::Number(field, _) => (field.set)(&mut params, settings.get(name)),
        }
    }
    let max = settings.get::<f32>("max-size");
    Params {
        method: settings.get::<enums::Method>("method").into(),
        overlap: settings.get::<enums::Overlap>("overlap").into(),
        pixel_offset: settings.get::<u32>("pixel-offset") as f32,
        region_edges: settings.get::<enums::RegionEdges>("region-edges").into(),
        thresholds,
        sizes: SizeLimits {
            min: [settings.get("min-size"); 2],
            max: [if max == 0.0 { f32::INFINITY } else { max }; 2],
        },
        ..params
    }
}

/// Returns the thresholds that `score-threshold`, `classes` and `class-thresholds` set.
fn thresholds(
    settings: &Snapshot,
    labels: &[String],
    choice: &Choice,
) -> Result<ClassThresholds, String> {
    let score: f32 = settings.get("score-threshold");
    let mut thresholds: BTreeMap<usize, f32> = BTreeMap::new();
    for name in entries(settings, "classes") {
        thresholds.extend(classes_of(&name, labels, choice)?.into_iter().map(|it| (it, score)));
    }
    let excludes_others = !thresholds.is_empty();
    let values = by_class(settings, "class-thresholds", labels, choice, |text| {
        text.parse::<f32>().ok().filter(|threshold| threshold.is_finite())
    })?;
    let has_probabilities = choice.decoder.scores == Scores::Probabilities;
    for (class, threshold) in values {
        if threshold >= 2.0 && has_probabilities {
            return Err("Percentage".into());
        }
        if !excludes_others || thresholds.contains_key(&class) {
            thresholds.insert(class, threshold);
        }
    }
    let default = if excludes_others { f32::INFINITY } else { score };
    let count = thresholds.last_key_value().map_or(0, |(&last, _)| last + 1);
    let per_class =
        (0..count).map(|class| thresholds.get(&class).copied().unwrap_or(default)).collect();
    Ok(ClassThresholds { default, per_class })
}

/// Returns the rules that `class-max-detections`, `class-iou-thresholds` and `class-sizes` set.
fn class_rules(
    settings: &Snapshot,
    labels: &[String],
    choice: &Choice,
) -> Result<Vec<ClassRule>, String> {
    let mut rules: BTreeMap<usize, ClassRule> = BTreeMap::new();
    for (class, limit) in
        by_class(settings, "class-max-detections", labels, choice, |text| text.parse::<u32>().ok())?
    {
        rules.entry(class).or_default().max_detections = limit as usize;
    }
    for (class, threshold) in by_class(settings, "class-iou-thresholds", labels, choice, |text| {
        text.parse().ok().filter(|threshold| (0.0..=1.0).contains(threshold))
    })? {
        rules.entry(class).or_default().iou_threshold = Some(threshold);
    }
    for (class, limits) in by_class(settings, "class-sizes", labels, choice, sizes)? {
        rules.entry(class).or_default().sizes = Some(limits);
    }
    let count = rules.last_key_value().map_or(0, |(&last, _)| last + 1);
    Ok((0..count).map(|class| rules.get(&class).copied().unwrap_or_default()).collect())
}

/// Parses the limits in an entry of `class-sizes`.
fn sizes(text: &str) -> Option<SizeLimits> {
    let numbers = |text: &str| -> Option<Vec<f32>> {
        let sides = text.split('x').map(|side| side.trim().parse::<f32>().ok());
        let sides: Option<Vec<f32>> = sides.collect();
        sides.filter(|sides| sides.len() == 2 && sides.iter().all(|s| s.is_finite() && *s >= 0.0))
    };
    let (min, max) = text.split_once("..")?;
    let [is_min, is_max] = [min, max].map(|part| !part.trim().is_empty());
    let min = if is_min { numbers(min)? } else { vec![0.0; 2] };
    let max = if is_max { numbers(max)? } else { vec![f32::INFINITY; 2] };
    let is_range = min.iter().zip(&max).all(|(min, max)| min <= max && *max >= 1.0);
    (is_range && (is_min || is_max))
        .then(|| SizeLimits { min: [min[0], min[1]], max: [max[0], max[1]] })
}

/// Returns the entries of a list that has values for classes.
fn by_class<T: Copy>(
    settings: &Snapshot,
    property: &str,
    labels: &[String],
    choice: &Choice,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(usize, T)>, String> {
    let read = |entry: String| -> Result<(Vec<usize>, T), String> {
        let (name, value) = entry.rsplit_once(':').ok_or("Entry")?;
        let value = parse(value.trim()).ok_or("Entry")?;
        Ok((classes_of(name.trim(), labels, choice)?, value))
    };
    let mut found = Vec::new();
    for entry in entries(settings, property) {
        let (classes, value) = read(entry)?;
        if found.iter().any(|(other, _)| classes.contains(other)) {
            return Err("Repeated".into());
        }
        found.extend(classes.into_iter().map(|class| (class, value)));
    }
    Ok(found)
}

fn classes_of(name: &str, labels: &[String], choice: &Choice) -> Result<Vec<usize>, String> {
    let classes: Vec<usize> = if !name.is_empty() && name.chars().all(|c| c.is_ascii_digit()) {
        name.parse().into_iter().collect()
    } else {
        (0..(labels.len() + choice.layout.first_label() as usize).max(choice.layout.classes))
            .filter(|&class| name_of(class as u32, labels, choice) == name)
            .collect()
    };
    let is_known = classes.last().is_some_and(|&last| last < MAX_CLASSES);
    if is_known { Ok(classes) } else { Err("UnknownClass".into()) }
}

/// Returns the entries of a list.
fn entries(settings: &Snapshot, property: &str) -> Vec<String> {
    let list = settings.get::<Option<String>>(property).unwrap_or_default();
    // Escaped characters are temporarily replaced by characters that no property contains.
    let list = list.replace(r"\\", "\u{e000}").replace(r"\,", "\u{e001}");
    let entry = |entry: &str| entry.replace('\u{e000}', r"\").replace('\u{e001}', ",");
    list.split(',').map(|text| entry(text).trim().to_owned()).filter(|e| !e.is_empty()).collect()
}

fn name_of(class: u32, labels: &[String], choice: &Choice) -> String {
    let line = class.checked_sub(choice.layout.first_label());
    let name = match line.and_then(|line| labels.get(line as usize)) {
        Some(label) => Some(label.as_str()).filter(|label| !label.is_empty()),
        None => choice.decoder.label(class),
    };
    name.map_or_else(|| format!("class-{class}"), Into::into)
}

/// Returns true if the element must refuse to start. A missing GPU is not considered.
pub fn refuses_to_start(settings: &Snapshot, labels_are_valid: bool) -> bool {
    let version = settings.get::<Option<String>>("deepstream-version");
    let is_known = |text: String| {
        text.parse().is_ok_and(|version| StructureLayout::for_version(version).is_ok())
    };
    // The generated values of the property layout-file never name a valid description.
    let needs_layout_file = settings.nick("decoder") == "layout";
    // The generated values of the property nvinfer-config never name a file.
    let config = settings.get::<Option<String>>("nvinfer-config").filter(|path| !path.is_empty());
    cannot_attach(settings)
        || config.is_some()
        || !labels_are_valid
        || !version.is_none_or(is_known)
        || needs_layout_file
}

/// Returns the size of the model's input: the properties if they are set, otherwise the frame's
/// size.
fn model_size(settings: &Snapshot, frame: Option<[u32; 2]>) -> Option<[f32; 2]> {
    let set: [u32; 2] = ["model-width", "model-height"].map(|name| settings.get(name));
    let size = if set == [0, 0] { frame } else { Some(set) };
    size.filter(|size| !size.contains(&0)).map(|size| size.map(|side| side as f32))
}

/// Returns the name of an error's innermost variant, ignoring wrappers.
pub fn kind(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let names = text.split(['(', '{', ' ']).filter(|part| !part.is_empty());
    let wrappers = ["Tensor", "TensorView", "Layout", "Device", "Driver"];
    names.into_iter().find(|name| !wrappers.contains(name)).unwrap_or("error").to_owned()
}
