// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the parameters of the interfaces: the properties of `nmsfilter`, the structures of C, and the arguments
//! of Python's `Decoder`.
//!
//! A parameter has one name everywhere, with hyphens or underscores. [`EXCEPTIONS`] lists each parameter with another name,
//! or that an interface leaves out, with the reason.

use gst::glib;
use gst::prelude::*;
use nmsfilter_core::engine::{Params, ScalarKind};

/// How an interface offers a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// Under its name.
    Same,
    /// Under this name.
    As(&'static str),
    /// Not at all, for this reason.
    Not(&'static str),
}
use Form::{As, Not, Same};

const NO_GSTREAMER: Form = Not("belongs to buffers of GStreamer");
const NUMBERS: Form = Not("results have the numbers of classes");
const NUMBERED_POINTS: Form = Not("results have the numbers of points");
const FROM_CAPS: Form =
    Not("caps have the size of frames, and letterbox its position in the model's input");

const REGIONS: Form =
    Not("ortinference attaches them to buffers; calls of Python's Decoder have them");

/// Parameters with differences: the name of the property, and the forms in the element, in C and in Python.
const EXCEPTIONS: [(&str, [Form; 3]); 35] = [
    ("attach", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("backend", [Same, As("nmsfilter_new"), Not("the memory of the arrays selects the processor")]),
    (
        "batch",
        [
            Not("caps and metadata say what a buffer is"),
            Same,
            Not("the first dimension is the images"),
        ],
    ),
    ("class-iou-thresholds", [Same, As("class_rules"), Same]),
    ("class-max-detections", [Same, As("class_rules"), Same]),
    ("class-sizes", [Same, As("class_rules"), Same]),
    ("class-thresholds", [Same, As("class_score_thresholds"), As("score_threshold")]),
    ("classes", [Same, As("class_score_thresholds"), As("score_threshold")]),
    (
        "cuda-device-id",
        [Same, As("nmsfilter_new"), Not("the memory of the arrays selects the GPU")],
    ),
    ("decoder", [Same, As("nmsfilter_set_decoder"), Same]),
    ("deepstream-version", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("frame-offset", [FROM_CAPS, Same, As("letterbox")]),
    ("frame-ratio", [FROM_CAPS, Same, As("letterbox")]),
    ("frame-size", [FROM_CAPS, Same, Same]),
    ("keep-tensors", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("keypoint-components", [As("keypoint-shape"), Same, As("keypoint_shape")]),
    ("keypoint-count", [As("keypoint-shape"), Same, As("keypoint_shape")]),
    ("keypoint-layout", [Same, NUMBERED_POINTS, NUMBERED_POINTS]),
    ("keypoint-shape", [Same, As("keypoint_count"), Same]),
    ("label-count", [As("label-file"), Same, Not("num_classes has the same effect")]),
    ("label-file", [Same, NUMBERS, As("labels")]),
    ("layout-file", [Same, As("nmsfilter_set_layout"), As("layout")]),
    ("model-height", [Same, Same, As("model_size")]),
    ("model-width", [Same, Same, As("model_size")]),
    ("num-classes", [Same, As("class_count"), Same]),
    ("nvinfer-config", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("quantization", [Same, As("zero_point"), Same]),
    ("region-count", [REGIONS, Same, REGIONS]),
    ("regions", [REGIONS, Same, REGIONS]),
    (
        "size",
        [
            Not("versions of structures are a matter of C"),
            Same,
            Not("versions of structures are a matter of C"),
        ],
    ),
    ("stats", [Same, Not("results have counts"), Not("results have counts")]),
    ("tensors-from", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("unique-id", [Same, NO_GSTREAMER, NO_GSTREAMER]),
    ("visible", [FROM_CAPS, Same, Same]),
    ("class-count", [As("num-classes"), Same, As("num_classes")]),
];

const HEADER: &str = include_str!("../c/include/nmsfilter/nmsfilter.h");
const PYTHON: &str = include_str!("../python/src/decoder.rs");

fn properties() -> Vec<glib::ParamSpec> {
    gst::init().unwrap();
    gstnmsfilter::plugin_register_static().unwrap();
    let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
    let all = element.list_properties();
    all.iter().filter(|spec| spec.owner_type() == element.type_()).cloned().collect()
}

/// The part of `text` after `start` and before the next `end`.
fn between(text: &'static str, start: &str, end: &str) -> &'static str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{start} is missing"));
    rest.split_once(end).unwrap_or_else(|| panic!("{end} is missing")).0
}

/// The fields of a structure in the C header.
fn fields(structure: &str) -> Vec<&'static str> {
    let body = between(HEADER, &format!("typedef struct {structure} {{"), "\n}");
    let declarations = body.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let name = |declaration: &'static str| {
        let declaration = declaration.split('[').next().unwrap();
        declaration.rsplit([' ', '*']).next().unwrap()
    };
    declarations.map(name).collect()
}

/// The arguments of Python's `Decoder`, each with its default.
fn arguments() -> Vec<(&'static str, &'static str)> {
    let signature = between(PYTHON, "signature = (\n", "**others");
    signature.split(',').filter_map(|argument| argument.trim().split_once('=')).collect()
}

#[test]
fn each_interface_has_each_parameter_or_a_reason_to_leave_it_out() {
    let properties: Vec<String> = properties().iter().map(|it| it.name().to_owned()).collect();
    let fields = [fields("NmsfilterParams"), fields("NmsfilterOptions")].concat();
    // The pointer to entries and their number are one parameter.
    let is_length = |name: &str| {
        name.ends_with("_count")
            && fields.contains(&format!("{}s", &name[..name.len() - 6]).as_str())
    };
    let arguments: Vec<&str> = arguments().iter().map(|(name, _)| *name).collect();
    assert!(properties.len() > 40 && fields.len() > 30 && arguments.len() > 25);

    let in_element = |name: &str| properties.iter().any(|it| it == name);
    let in_c = |name: &str| fields.contains(&name);
    // Other parameters are arguments of functions, or fields of a tensor.
    let is_declared = |name: &str| {
        [format!(" {name}("), format!(" {name};")].iter().any(|it| HEADER.contains(it))
    };
    let in_python = |name: &str| arguments.contains(&name);

    let mut names = properties.clone();
    names.extend(fields.iter().filter(|it| !is_length(it)).map(|it| it.replace('_', "-")));
    names.extend(arguments.iter().map(|it| it.replace('_', "-")));
    names.extend(EXCEPTIONS.map(|(name, _)| name.to_owned()));
    names.sort_unstable();
    names.dedup();
    // Names by which C and Python offer a parameter of another name.
    let other_names: Vec<String> = EXCEPTIONS
        .iter()
        .flat_map(|(_, forms)| forms)
        .filter_map(|form| if let As(name) = form { Some(name.replace('_', "-")) } else { None })
        .collect();

    for name in names {
        let exception = EXCEPTIONS.iter().find(|(known, _)| *known == name);
        let forms = match exception {
            Some((_, forms)) => *forms,
            None if other_names.contains(&name) && !in_element(&name) => continue,
            None => [Same; 3],
        };
        for (index, interface) in ["the element", "C", "Python"].into_iter().enumerate() {
            let has = |name: &str| match index {
                0 => in_element(name),
                1 => in_c(name),
                _ => in_python(name),
            };
            let own_name = if index == 0 { name.clone() } else { name.replace('-', "_") };
            let has_same = has(&own_name);
            match forms[index] {
                Same => assert!(
                    has_same,
                    "{interface} lacks {own_name}; add it, or the reason to EXCEPTIONS"
                ),
                As(other) => {
                    let has_other = has(other) || (index == 1 && is_declared(other));
                    assert!(has_other, "{interface} lacks {other}, for {name}");
                    assert!(
                        !has_same,
                        "{interface} has {own_name}, too; remove it from EXCEPTIONS"
                    );
                }
                Not(reason) => assert!(!has_same, "{interface} has {own_name}, although {reason}"),
            }
        }
    }
}

/// The unit tests of C compare its defaults with [`Params`].
#[test]
fn scalars_have_one_default() {
    let (properties, arguments) = (properties(), arguments());
    for scalar in Params::SCALARS {
        let property = scalar.name.replace('_', "-");
        let spec = properties.iter().find(|spec| spec.name() == property).unwrap();
        let default = spec.default_value();
        let expected = match scalar.kind {
            // A list of thresholds is another value of this argument.
            ScalarKind::Number(..) if scalar.name == "score_threshold" => "None".to_owned(),
            ScalarKind::Number(..) => format!("{:?}", default.get::<f32>().unwrap()),
            ScalarKind::Count(_) => default.get::<u32>().unwrap().to_string(),
            // So is "queries" of this one.
            ScalarKind::Flag(_) if scalar.name == "multi_label" => "[false; 2]".to_owned(),
            ScalarKind::Flag(_) => default.get::<bool>().unwrap().to_string(),
        };
        let argument = arguments.iter().find(|(name, _)| *name == scalar.name).unwrap();
        assert_eq!(argument.1, expected, "{}", scalar.name);
    }
}
