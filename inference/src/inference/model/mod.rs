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
use nmsfilter_core::signature::{self, Description, Signature, SignatureError};
use numbers::PerChannel;
use ort::session::Session;
use ort::value::ValueType;
use output::model_tensor;

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
    /// The normalization ranges: the numbers that black and white (the pixel values 0 and 255) become, of each channel.
    pub ranges: Option<[[f64; 2]; 3]>,
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

impl Overrides {
    /// Returns whether the numbers of pixels are set.
    fn pixels_are_set(&self) -> bool {
        self.ranges.is_some() || self.mean.is_some() || self.std.is_some()
    }
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
        let metadata = metadata::read(session);
        let [inputs, outputs] = [session.inputs(), session.outputs()]
            .map(|outlets| outlets.iter().map(model_tensor).collect::<Vec<_>>());
        let mut overrides = overrides.clone();
        let picture = constants::picture(session.inputs(), &overrides.inputs)?;
        let mut description = Description::new(&inputs, &outputs, &metadata);
        if let Some(info) = InfoFile::beside(path)? {
            info.check_groups(inputs.iter().chain(&outputs).map(|&(name, ..)| name))?;
            if overrides.ranges.is_none() {
                overrides.ranges = info.ranges(picture.name())?;
            }
            for output in &mut description.outputs {
                output.id = info.value(&output.name, "id").or(output.id.take());
            }
        }
        // Who sets the facts that a signature says knows the model.
        let is_known = overrides.pixels_are_set() || overrides.order.is_some();
        let is_in_file = |name: &str, numbers| match inputs[..] {
            [(_, _, &[.., height, width])] => {
                let size = [width, height].map(|side| u32::try_from(side).unwrap_or(0));
                constants::are_in_file(path, name, numbers, size)
            }
            _ => false,
        };
        let chosen = match overrides.signature.as_deref() {
            Some("none") => Ok(None),
            None if description.has_ids() => Ok(None),
            name => signature::choose(&inputs, &outputs, name, is_in_file),
        };
        let (signature, signatures) = match chosen {
            Ok(signature) => (signature, Vec::new()),
            Err(SignatureError::Several(_)) if is_known => (None, Vec::new()),
            Err(SignatureError::Several(names)) => (None, names),
            Err(error) => return Err(InferenceError::Settings(format!("signature: {error}"))),
        };
        if let Some(signature) = signature {
            description.take(signature, &outputs);
        }
        let facts = description.facts;
        let (outputs, left_out) = output::describe(session.outputs(), &description)?;
        let input = InputSpec::new(picture, batch, &overrides, &facts, |is_signed| {
            input_scale::find(&std::fs::read(path).ok()?, picture.name(), is_signed)
        });
        let input = input.map_err(|error| match signatures.is_empty() {
            true => error,
            false => InferenceError::Settings(format!(
                "{error}; or set signature to the right one of those that the model has: {}",
                signatures.join(", ")
            )),
        })?;
        let info = ModelInfo {
            size: Some(input.size),
            letterbox: Some(overrides.letterbox.unwrap_or(facts.letterbox)),
            is_suppressed: facts.is_suppressed,
            signatures: signatures.into_iter().map(str::to_owned).collect(),
            task: metadata.task().map(ToOwned::to_owned),
            end2end: metadata.end2end(),
            keypoints: description.keypoints,
            keypoint_layout: metadata::keypoint_layout(&metadata),
            labels: overrides.labels.unwrap_or(description.labels),
            ..ModelInfo::default()
        };
        let pixels_vary = facts.pixels_vary && !is_known;
        Ok(Self { input, outputs, left_out, info, signature, pixels_vary })
    }
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
