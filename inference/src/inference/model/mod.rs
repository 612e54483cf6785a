// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a model's inputs and outputs.
//!
//! In: the inputs and outputs that ONNX Runtime reports, the model's metadata, the file `MODEL.modelinfo`, and
//! properties. Out: a [`Model`]: the picture that it takes ([`InputSpec`]), and the outputs to
//! attach ([`OutputSpec`]) with the ids from which `nmsfilter` chooses a decoder.
//!
//! If several sources provide a value, the first source in this list takes precedence: properties, the `.modelinfo`
//! file, the model's metadata, the model's shapes, the signature of a known exporter, defaults. The defaults are RGB, values
//! from 0 to 1 for floating-point inputs, and values from 0 to 255 for bytes.

pub mod batch_dimension;
pub mod constants;
mod info_file;
mod input;
mod input_scale;
mod metadata;
pub mod numbers;
mod output;
mod protobuf;
pub mod varying_nodes;

use std::path::Path;

use super::error::InferenceError;
use gstnmsfilter::input::model::ModelInfo;
use nmsfilter_core::geometry::Letterbox;
use nmsfilter_core::signature::{self, Signature};
use numbers::PerChannel;
use ort::session::Session;
use ort::value::ValueType;

pub use constants::{ConstantInput, InputNumbers};
pub use info_file::InfoFile;
pub use input::InputSpec;
pub use metadata::Metadata;
pub use nmsfilter_core::signature::InputLayout;
pub use output::{OutputSpec, onnx_type};

/// The order of a pixel's channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelOrder {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red.
    Bgr,
}

/// The properties of the model that the user has set; `None` where nothing is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Width and height of the model's input.
    pub size: [Option<u32>; 2],
    /// The order of the input's dimensions.
    pub layout: Option<InputLayout>,
    /// The order of the input's channels.
    pub order: Option<ChannelOrder>,
    /// The normalization range: the numbers that black and white (the pixel values 0 and 255) become.
    pub range: Option<[f64; 2]>,
    /// The numbers to subtract from the result of `range`.
    pub mean: Option<PerChannel>,
    /// The numbers by which the difference is divided.
    pub std: Option<PerChannel>,
    /// How frames are fitted into the model's input; `None` for what the signature says, or else in the center.
    pub letterbox: Option<Letterbox>,
    /// The names of the classes; `None` for those in the model's metadata.
    pub labels: Option<Vec<String>>,
    /// The numbers of inputs beside the picture.
    pub inputs: Vec<InputNumbers>,
    /// The name of the signature, or `none`; `None` if the model's inputs and outputs decide.
    pub signature: Option<String>,
}

/// A model that the element can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The picture that the model takes.
    pub input: InputSpec,
    /// The outputs that are attached, in the model's order.
    pub outputs: Vec<OutputSpec>,
    /// The names and types of the outputs that cannot be attached.
    pub left_out: Vec<String>,
    /// The description of the model that is attached to the tensors.
    pub info: ModelInfo,
    /// The signature that is taken.
    pub signature: Option<&'static Signature>,
    /// True if models with the signature differ in the numbers of pixels, and nothing says them.
    pub pixels_vary: bool,
}

impl Model {
    /// Describes the model of `session`, read from the file `path`, for runs of `batch` pictures.
    ///
    /// # Errors
    /// If the model does not take pictures, if no output is a tensor that can be read, or if the `.modelinfo` file
    /// belongs to another model.
    pub fn new(
        session: &Session,
        path: &Path,
        batch: Option<usize>,
        overrides: &Overrides,
    ) -> Result<Self, InferenceError> {
        let info = InfoFile::beside(path)?;
        let mut metadata = metadata::read(session);
        let inputs = session.inputs();
        if let Some(info) = &info {
            info.check_groups(inputs.iter().chain(session.outputs()).map(|outlet| outlet.name()))?;
        }
        let input = constants::picture(inputs, &overrides.inputs)?;
        let (name, dtype) = (input.name(), input.dtype());
        let (mut outputs, left_out) =
            output::describe(session.outputs(), info.as_ref(), &metadata)?;
        let found = match overrides.signature.as_deref() {
            Some("none") => Vec::new(),
            Some(name) => vec![find_named(session, path, name)?],
            None if outputs.iter().any(OutputSpec::has_id) => Vec::new(),
            None => signature::usual(find(session, path)),
        };
        let pixels_are_set = overrides.range.is_some()
            || overrides.mean.is_some()
            || overrides.std.is_some()
            || info.as_ref().map(|info| info.ranges(name)).transpose()?.flatten().is_some();
        // Who sets the facts that a signature says knows the model.
        let is_known = pixels_are_set || overrides.order.is_some();
        let (signature, signatures) = match found[..] {
            [signature] => (Some(signature), Vec::new()),
            _ if is_known => (None, Vec::new()),
            _ => (None, found.iter().map(|signature| signature.name.to_owned()).collect()),
        };
        let mut overrides = overrides.clone();
        let mut letterbox = metadata.is_rt_detr().then_some(Letterbox::None);
        if let Some(signature) = signature {
            let facts = signature.facts;
            overrides.order = overrides.order.or(facts.is_bgr.then_some(ChannelOrder::Bgr));
            if let Some(normalization) = facts.normalization.filter(|_| !pixels_are_set) {
                overrides.range = Some(normalization.range);
                overrides.mean = Some(normalization.mean);
                overrides.std = Some(normalization.std);
            }
            overrides.layout = overrides.layout.or(facts.layout);
            metadata.size = metadata.size.or(facts.size);
            letterbox = Some(facts.letterbox);
            outputs.iter_mut().for_each(|output| output.set_pattern(signature));
        }
        let scale = |is_signed| input_scale::find(&std::fs::read(path).ok()?, name, is_signed);
        let with_signatures = |error: InferenceError| match signatures.is_empty() {
            true => error,
            false => InferenceError::Settings(format!(
                "{error}; or set signature to the right one of those that the model has: {}",
                signatures.join(", ")
            )),
        };
        let input = InputSpec::new(name, dtype, batch, &overrides, info.as_ref(), &metadata, scale)
            .map_err(with_signatures)?;
        let info = ModelInfo {
            size: Some(input.size),
            letterbox: Some(overrides.letterbox.or(letterbox).unwrap_or(Letterbox::Center)),
            is_suppressed: signature.is_some_and(|it| it.is_suppressed) || metadata.is_suppressed(),
            signatures,
            task: metadata.task().map(ToOwned::to_owned),
            end2end: metadata.end2end(),
            keypoints: metadata.keypoints(),
            keypoint_layout: metadata::keypoint_layout(&metadata),
            labels: overrides.labels.unwrap_or(metadata.labels),
            ..ModelInfo::default()
        };
        Ok(Self {
            pixels_vary: signature.is_some_and(|it| it.facts.pixels_vary) && !is_known,
            signature,
            info,
            input,
            outputs,
            left_out,
        })
    }
}

/// Returns the signatures of the model; none if an input or output is not a tensor.
fn find(session: &Session, path: &Path) -> Vec<&'static Signature> {
    let tensors = [session.inputs(), session.outputs()].map(output::model_tensors);
    let [Some(inputs), Some(outputs)] = tensors else { return Vec::new() };
    signature::find_with(&inputs, &outputs, |name, numbers| match inputs[..] {
        [(_, _, &[.., height, width])] => {
            let size = [width, height].map(|side| u32::try_from(side).unwrap_or(0));
            constants::are_in_file(path, name, numbers, size)
        }
        _ => false,
    })
}

/// Returns the signature of this name.
///
/// # Errors
/// If there is none, or if the model does not have it.
fn find_named(
    session: &Session,
    path: &Path,
    name: &str,
) -> Result<&'static Signature, InferenceError> {
    let Some(wanted) = signature::all().iter().find(|it| it.name == name) else {
        let names: Vec<&str> = signature::all().iter().map(|it| it.name).collect();
        let names = names.join(", ");
        return Err(InferenceError::Settings(format!(
            "signature: expected auto, none, or one of {names}; got {name}"
        )));
    };
    if find(session, path).iter().any(|it| it.name == name) {
        return Ok(wanted);
    }
    let forms = |patterns: &[signature::Pattern]| {
        patterns.iter().map(|it| it.form).collect::<Vec<_>>().join("; ")
    };
    Err(InferenceError::Settings(format!(
        "signature={name}: the model has other inputs or outputs; expected the inputs {} and the \
         outputs {}",
        forms(&wanted.inputs),
        forms(&wanted.outputs),
    )))
}

/// Formats dimensions for messages; `?` stands for a dynamic dimension.
pub fn dims_text(dims: &[i64]) -> String {
    let texts = dims.iter().map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// Formats a type for messages.
fn type_text(value: &ValueType) -> String {
    match value {
        ValueType::Tensor { ty, .. } => format!("a tensor of {ty}"),
        other => format!("{other}"),
    }
}
