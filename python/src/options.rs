// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of arguments.
//!
//! In: objects of Python, or names. Out: values of the core, or an error with the argument's name.

use nmsfilter_core::geometry::{FrameRegion, Letterbox, MAX_OVERLAP, MAX_TILES, tiles};
use nmsfilter_core::nms::{
    Activation, Background, BoxFormat, Channels, ClassRule, ClassThresholds, Coordinates,
    KeypointShape, MAX_CLASSES, MaskSize, Method, Overlap, RegionEdges, SizeLimits,
    check_iou_threshold, check_sigma,
};
use nmsfilter_core::tensor::Quantization;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::error::{Error, Result};
use crate::input::type_name;

/// A whole number of at least 0.
fn count(name: &str, value: &Bound<'_, PyAny>) -> Result<usize> {
    value.extract().map_err(|_| {
        let expected = format!("{name}: expected a whole number from 0 to 2^64 - 1");
        match value.call_method0("__index__") {
            Ok(number) => Error::Input(format!("{expected}, got {number}")),
            Err(_) => Error::Type(format!("{expected}, got {}", type_name(value))),
        }
    })
}

/// Defines functions that read the argument of their name as a count.
macro_rules! counts {
    ($($name:ident),*) => {
        $(pub fn $name(value: &Bound<'_, PyAny>) -> PyResult<usize> {
            Ok(count(stringify!($name), value)?)
        })*
    };
}

counts!(max_detections, max_candidates, num_classes, image, detection);

fn number(name: &str, value: &Bound<'_, PyAny>) -> Result<f64> {
    let wrong = |_| Error::Type(format!("{name}: expected a number, got {}", type_name(value)));
    value.extract().map_err(wrong)
}

/// Whether an anchor can have several classes, and whether there are as many detections as anchors.
pub fn multi_label(value: &Bound<'_, PyAny>) -> PyResult<[bool; 2]> {
    if value.extract().is_ok_and(|text: &str| text == "queries") {
        return Ok([true; 2]);
    }
    let other = |_| other_type("multi_label: expected True, False or \"queries\"", value).into();
    value.extract().map(|is| [is, false]).map_err(other)
}

pub fn iou_threshold(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let threshold = number("iou_threshold", value)?;
    check_iou_threshold(threshold).map_err(Error::from)?;
    Ok(threshold)
}

pub fn pixel_offset(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    Ok(number("pixel_offset", value)? as f32)
}

pub fn sigma(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    let sigma = number("sigma", value)? as f32;
    check_sigma(sigma).map_err(Error::from)?;
    Ok(sigma)
}

pub fn embedding_distance(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    Ok(number("embedding_distance", value)? as f32)
}

pub fn embedding_iou_threshold(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    Ok(number("embedding_iou_threshold", value)? as f32)
}

/// The score that boxes must reach; `None` for any score.
pub fn least_score(value: &Bound<'_, PyAny>) -> PyResult<Option<f32>> {
    let number = || number("score_threshold", value).map(|score| score as f32);
    Ok((!value.is_none()).then(number).transpose()?)
}

/// A threshold of all classes, or one for each.
pub fn score_threshold(value: &Bound<'_, PyAny>) -> PyResult<Option<ClassThresholds>> {
    const NAME: &str = "score_threshold";
    if value.is_none() {
        return Ok(None);
    }
    let is_text_or_mapping =
        value.is_instance_of::<PyString>() || value.cast::<PyMapping>().is_ok();
    if is_text_or_mapping || (value.len().is_err() && value.extract::<f64>().is_err()) {
        return Err(Error::Type(format!(
            "{NAME}: expected a number, or a list with a number for each class, got {}",
            type_name(value)
        ))
        .into());
    }
    if value.len().is_err() {
        return Ok(Some(ClassThresholds::uniform(number(NAME, value)? as f32)));
    }
    let mut per_class = Vec::new();
    for (class, threshold) in value.try_iter()?.enumerate() {
        per_class.push(number(&format!("{NAME}[{class}]"), &threshold?)? as f32);
    }
    if per_class.is_empty() {
        let text = format!("{NAME}: expected a number for each class, got none");
        return Err(Error::Input(text).into());
    }
    Ok(Some(ClassThresholds { default: f32::INFINITY, per_class }))
}

pub fn model_size(value: &Bound<'_, PyAny>) -> PyResult<Option<[f32; 2]>> {
    let expected = "model_size: expected (width, height) of the model's input in pixels";
    value.extract().map_err(|_| other_type(expected, value).into())
}

/// The parts of a frame, as (left, upper, right, lower) edge in pixels, row by row: those of SAHI's get_slice_bboxes, for
/// Decoder's regions. Parts overlap by a fraction of their size (width, height), from 0 to 0.9; the last ones of a row and of a
/// column end at the frame's edge. A size larger than the frame is limited to it.
#[pyfunction]
#[pyo3(signature = (frame_size, size, overlap=0.2))]
pub fn slices(
    frame_size: &Bound<'_, PyAny>,
    size: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = overlap_of_slices)] overlap: f64,
) -> PyResult<Vec<(u32, u32, u32, u32)>> {
    let sides = |name: &str, value: &Bound<'_, PyAny>| -> Result<[u32; 2]> {
        let expected = format!("{name}: expected (width, height) in whole pixels, each at least 1");
        let sides: [u32; 2] = value.extract().map_err(|_| other_type(&expected, value))?;
        if sides == sides.map(|side: u32| side.clamp(1, i32::MAX as u32)) {
            return Ok(sides);
        }
        Err(Error::Input(format!("{expected}, got {}", text(value))))
    };
    let (frame, size) = (sides("frame_size", frame_size)?, sides("size", size)?);
    let tiles = tiles(frame, size, overlap).ok_or_else(|| {
        Error::Input(format!(
            "size: expected at most {MAX_TILES} slices, got {size:?}, which gives more"
        ))
    })?;
    let edges = |FrameRegion { left, top, width, height }| (left, top, left + width, top + height);
    Ok(tiles.into_iter().map(edges).collect())
}

fn overlap_of_slices(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let overlap = number("overlap", value)?;
    if (0.0..=MAX_OVERLAP).contains(&overlap) {
        return Ok(overlap);
    }
    let text = format!("overlap: expected a fraction from 0 to {MAX_OVERLAP}, got {overlap}");
    Err(Error::Input(text).into())
}

/// The names of classes.
pub fn labels(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    let expected = "labels: expected a list of the names of classes";
    value.extract().map_err(|_| other_type(expected, value).into())
}

/// Left, upper, right and lower edge of each.
pub fn regions(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<[u32; 4]>>> {
    let expected = "regions: expected (left, upper, right, lower) in whole pixels of the frame for at least one region";
    match value.extract::<Option<Vec<[u32; 4]>>>() {
        Ok(Some(regions)) if regions.is_empty() => {
            Err(Error::Input(format!("{expected}, got none")).into())
        }
        Ok(regions) => Ok(regions),
        Err(_) => Err(other_type(expected, value).into()),
    }
}

/// The names that arguments have in other libraries, and those here.
const FOREIGN: [(&str, &[&str]); 5] = [
    ("score_threshold", &["conf", "conf_thres", "conf_threshold", "confidence", "score_thr"]),
    ("iou_threshold", &["iou", "iou_thres", "iou_thr", "nms_threshold", "nms_thr", "threshold"]),
    ("max_detections", &["max_det", "max_num", "max_output_boxes", "topk"]),
    ("class_agnostic", &["agnostic", "agnostic_nms"]),
    ("model_size", &["imgsz", "image_size", "input_size"]),
];

/// Arguments that a function lacks are an error, which has the name that the argument has here.
pub fn refuse(function: &str, others: Option<&Bound<'_, PyDict>>) -> Result<()> {
    let Some((name, _)) = others.and_then(|others| others.iter().next()) else { return Ok(()) };
    let name = name.to_string();
    let known = FOREIGN.iter().find(|(_, names)| names.contains(&&*name.to_lowercase()));
    let here = known.map(|(here, _)| match *here {
        "iou_threshold" | "max_detections" => format!("; it is called {here} here"),
        _ if function == "Decoder" => format!("; it is called {here} here"),
        _ => format!("; {here} is an argument of Decoder"),
    });
    let here = here.unwrap_or_default();
    Err(Error::Type(format!("{function}() got an unexpected keyword argument '{name}'{here}")))
}

/// Left, upper, right and lower edge.
pub fn visible(value: &Bound<'_, PyAny>) -> PyResult<Option<[f32; 4]>> {
    let expected =
        "visible: expected the (left, upper, right, lower) edge in pixels of the model's input";
    value.extract().map_err(|_| other_type(expected, value).into())
}

pub fn frame_size(value: &Bound<'_, PyAny>) -> PyResult<Option<[u32; 2]>> {
    let expected = "frame_size: expected (width, height) of the frame in whole pixels";
    value.extract().map_err(|_| other_type(expected, value).into())
}

/// Width and height from a number for both, a pair, or `None` for no limit.
fn sides(name: &str, value: &Bound<'_, PyAny>) -> Result<Option<[f32; 2]>> {
    if let Ok(side) = value.extract::<f32>() {
        return Ok(Some([side; 2]));
    }
    let expected = "a number of pixels, (width, height), or None for no limit";
    value.extract().map_err(|_| other_type(&format!("{name}: expected {expected}"), value))
}

pub fn min_size(value: &Bound<'_, PyAny>) -> PyResult<Option<[f32; 2]>> {
    Ok(sides("min_size", value)?)
}

pub fn max_size(value: &Bound<'_, PyAny>) -> PyResult<Option<[f32; 2]>> {
    Ok(sides("max_size", value)?)
}

pub fn size_limits(min: Option<[f32; 2]>, max: Option<[f32; 2]>) -> SizeLimits {
    SizeLimits { min: min.unwrap_or(SizeLimits::ANY.min), max: max.unwrap_or(SizeLimits::ANY.max) }
}

/// The values of a dictionary by class number.
pub type ByClass<T> = Vec<(usize, T)>;

/// The values of a dictionary by class number, each read by `read` from its name and its object.
fn by_class<T>(
    argument: &str,
    example: &str,
    value: &Bound<'_, PyAny>,
    read: impl Fn(&str, &Bound<'_, PyAny>) -> Result<T>,
) -> Result<Option<ByClass<T>>> {
    if value.is_none() {
        return Ok(None);
    }
    let expected = || format!("{argument}: expected a dictionary by class number, as in {example}");
    let dictionary = value.cast::<PyDict>().map_err(|_| other_type(&expected(), value))?;
    let values = dictionary.iter().map(|(key, value)| {
        let class = key.extract().ok().filter(|&class: &usize| class < MAX_CLASSES);
        let class = class.ok_or_else(|| {
            Error::Input(format!(
                "{argument}: expected class numbers from 0 to {} as keys, got {}",
                MAX_CLASSES - 1,
                text(&key)
            ))
        })?;
        Ok((class, read(&format!("{argument}[{class}]"), &value)?))
    });
    values.collect::<Result<_>>().map(Some)
}

pub fn class_iou_thresholds(value: &Bound<'_, PyAny>) -> PyResult<Option<ByClass<f32>>> {
    let read =
        |name: &str, value: &Bound<'_, PyAny>| -> Result<f32> { Ok(number(name, value)? as f32) };
    Ok(by_class("class_iou_thresholds", "{0: 0.5, 7: 0.3}", value, read)?)
}

pub fn class_max_detections(value: &Bound<'_, PyAny>) -> PyResult<Option<ByClass<usize>>> {
    Ok(by_class("class_max_detections", "{0: 100, 7: 20}", value, count)?)
}

pub fn class_sizes(value: &Bound<'_, PyAny>) -> PyResult<Option<ByClass<SizeLimits>>> {
    let read = |name: &str, value: &Bound<'_, PyAny>| -> Result<SizeLimits> {
        let pair = value.extract::<[Bound<'_, PyAny>; 2]>();
        let expected = || format!("{name}: expected (minimum, maximum)");
        let [min, max] = pair.map_err(|_| other_type(&expected(), value))?;
        Ok(size_limits(sides(name, &min)?, sides(name, &max)?))
    };
    let example = "{0: ((16, 32), (400, 800)), 7: (None, 64)}";
    Ok(by_class("class_sizes", example, value, read)?)
}

/// The rules of classes, indexed by class.
pub fn class_rules(
    iou_thresholds: ByClass<f32>,
    max_detections: ByClass<usize>,
    sizes: ByClass<SizeLimits>,
) -> Vec<ClassRule> {
    fn rule(rules: &mut Vec<ClassRule>, class: usize) -> &mut ClassRule {
        if class >= rules.len() {
            rules.resize(class + 1, ClassRule::default());
        }
        &mut rules[class]
    }
    let mut rules = Vec::new();
    for (class, threshold) in iou_thresholds {
        rule(&mut rules, class).iou_threshold = Some(threshold);
    }
    for (class, limit) in max_detections {
        rule(&mut rules, class).max_detections = limit;
    }
    for (class, limits) in sizes {
        rule(&mut rules, class).sizes = Some(limits);
    }
    rules
}

pub fn keypoint_shape(value: &Bound<'_, PyAny>) -> PyResult<Option<KeypointShape>> {
    if value.is_none() {
        return Ok(None);
    }
    match value.extract() {
        Ok((count @ 1.., components @ 2..=3)) => Ok(Some(KeypointShape { count, components })),
        _ => Err(Error::Input(format!(
            "keypoint_shape: expected the number of keypoints, and 2 (x, y) or 3 (x, y, visibility), got {}",
            text(value)
        ))
        .into()),
    }
}

/// The error of a value of another type than expected. `expected` names the argument.
fn other_type(expected: &str, value: &Bound<'_, PyAny>) -> Error {
    Error::Type(format!("{expected}, got {}", text(value)))
}

/// Returns the text of `repr`.
fn text(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| type_name(value), |text| text.to_string())
}

/// Scale and zero point by the names of outputs; without a name, for each output.
pub type Quantizations = Vec<(Option<String>, Quantization)>;

/// A pair of scale and zero point, or a dictionary of pairs.
pub fn quantization(value: &Bound<'_, PyAny>) -> PyResult<Option<Quantizations>> {
    if value.is_none() {
        return Ok(None);
    }
    let pair = |pair: &Bound<'_, PyAny>| -> Result<Quantization> {
        let number = pair.extract().ok();
        let made = number.and_then(|(scale, zero_point)| Quantization::new(scale, zero_point));
        made.ok_or_else(|| {
            Error::Input(format!(
                "quantization: expected (scale, zero point) with a scale above 0, or a dictionary of these by the \
                 names of outputs, got {}",
                text(pair)
            ))
        })
    };
    let Ok(by_name) = value.cast::<PyDict>() else {
        return Ok(Some(vec![(None, pair(value)?)]));
    };
    let mut all = Vec::new();
    for (name, value) in by_name {
        let name = name.extract().map_err(|_| {
            let got = type_name(&name);
            Error::Type(format!("quantization: expected the names of outputs as keys, got {got}"))
        })?;
        all.push((Some(name), pair(&value)?));
    }
    Ok(Some(all))
}

/// The value of this name.
fn named<T: Copy>(argument: &str, name: &str, values: &[(&str, T)]) -> Result<T> {
    let found = values.iter().find(|(known, _)| *known == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let known: Vec<_> = values.iter().map(|(known, _)| format!("{known:?}")).collect();
        Error::Input(format!("{argument}: expected one of {}, got {name:?}", known.join(", ")))
    })
}

pub fn method(name: Option<&str>) -> Result<Method> {
    let Some(name) = name else { return Ok(Method::Greedy) };
    named(
        "method",
        name,
        &[Method::Greedy, Method::MapReduce].map(|method| (method.name(), method)),
    )
}

/// Any method.
pub fn any_method(name: Option<&str>) -> Result<Method> {
    let Some(name) = name else { return Ok(Method::Greedy) };
    named("method", name, &Method::ALL.map(|method| (method.name(), method)))
}

pub fn overlap(name: Option<&str>) -> Result<Overlap> {
    use Overlap::{Diou, Iou, ProbIou, Representative, Smaller};
    let Some(name) = name else { return Ok(Iou) };
    let all = [Iou, Smaller, Representative, Diou, ProbIou];
    named("overlap", name, &all.map(|overlap| (overlap.name(), overlap)))
}

pub fn mask_size(name: Option<&str>) -> Result<MaskSize> {
    let Some(name) = name else { return Ok(MaskSize::Prototypes) };
    let all = [MaskSize::Prototypes, MaskSize::Frame];
    named("mask_size", name, &all.map(|size| (size.name(), size)))
}

pub fn region_edges(name: Option<&str>) -> Result<RegionEdges> {
    let Some(name) = name else { return Ok(RegionEdges::Keep) };
    let all = [RegionEdges::Keep, RegionEdges::Drop, RegionEdges::Lower];
    named("region_edges", name, &all.map(|edges| (edges.name(), edges)))
}

pub fn edge_margin(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    Ok(number("edge_margin", value)? as f32)
}

pub fn edge_score(value: &Bound<'_, PyAny>) -> PyResult<f32> {
    Ok(number("edge_score", value)? as f32)
}

pub fn letterbox(name: Option<&str>) -> Result<Letterbox> {
    let Some(name) = name else { return Ok(Letterbox::None) };
    named("letterbox", name, &Letterbox::ALL.map(|letterbox| (letterbox.name(), letterbox)))
}

pub fn box_format(name: &str) -> Result<BoxFormat> {
    let all = [BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square, BoxFormat::Distances];
    named("box_format", name, &all.map(|format| (format.name(), format)))
}

const COORDINATES: [(&str, Coordinates); 3] = [
    ("auto", Coordinates::Auto),
    ("pixels", Coordinates::Pixels),
    ("normalized", Coordinates::Normalized),
];

pub fn coordinates(name: &str) -> Result<Coordinates> {
    named("coordinates", name, &COORDINATES)
}

pub fn coordinates_name(coordinates: Coordinates) -> &'static str {
    let found = COORDINATES.iter().find(|(_, known)| *known == coordinates);
    found.map_or("auto", |(name, _)| name)
}

const CHANNELS: [(&str, Channels); 3] =
    [("auto", Channels::Auto), ("first", Channels::First), ("last", Channels::Last)];

pub fn channels(name: &str) -> Result<Channels> {
    named("channels", name, &CHANNELS)
}

pub fn channels_name(channels: Channels) -> &'static str {
    let found = CHANNELS.iter().find(|(_, known)| *known == channels);
    found.map_or("auto", |(name, _)| name)
}

pub fn activation(name: &str) -> Result<Activation> {
    let all = [Activation::None, Activation::Sigmoid, Activation::Softmax];
    named("score_activation", name, &all.map(|activation| (activation.name(), activation)))
}

pub fn background(name: &str) -> Result<Background> {
    let all = [Background::None, Background::First, Background::Last];
    named("background", name, &all.map(|background| (background.name(), background)))
}
