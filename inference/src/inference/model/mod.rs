// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a model's inputs and outputs.
//!
//! In: the inputs and outputs that ONNX Runtime reports, the model's metadata, the file `MODEL.modelinfo`, and
//! properties. Out: a [`Model`]: the picture that it takes ([`InputSpec`]), its other inputs ([`ConstantInput`]), and the
//! outputs to attach ([`OutputSpec`]) with the ids from which `nmsfilter` chooses a decoder.
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

use gstnmsfilter::output::KeypointLayout;
use nmsfilter_core::geometry::Letterbox;
use nmsfilter_core::signature::{self, OutputError, Signature};
use numbers::PerChannel;
use ort::session::Session;
use ort::value::ValueType;

pub use constants::{ConstantInput, InputNumbers};
pub use info_file::{InfoFile, InfoFileError};
pub use input::{InputSpec, PixelElement};
pub use metadata::Metadata;
pub use nmsfilter_core::signature::InputLayout;
pub use output::OutputSpec;

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
    /// The other inputs.
    pub constants: Vec<ConstantInput>,
    /// The outputs that are attached, in the model's order.
    pub outputs: Vec<OutputSpec>,
    /// The names and types of the outputs that cannot be attached.
    pub left_out: Vec<String>,
    /// The class names; empty if unknown.
    pub labels: Vec<String>,
    /// The task that the model was trained for, such as `detect`.
    pub task: Option<String>,
    /// True if the model selects the detections itself.
    pub end2end: bool,
    /// The number of keypoints per detection, and of components per keypoint.
    pub keypoints: Option<[u32; 2]>,
    /// The meaning of the keypoints of every class.
    pub keypoint_layout: Option<KeypointLayout>,
    /// The signature that is taken.
    pub signature: Option<&'static Signature>,
    /// The names of the model's signatures if there are several, of which none is taken.
    pub signatures: Vec<&'static str>,
    /// How frames are fitted into the input, if the signature or the metadata says it.
    pub letterbox: Option<Letterbox>,
    /// True if the detections need no suppression.
    pub is_suppressed: bool,
    /// True if models with the signature differ in the numbers of pixels, and nothing says them.
    pub pixels_vary: bool,
}

/// The reason why a model, its properties, or its `.modelinfo` file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No input can be the picture, or several can be it.
    #[error(
        "the model has {count} inputs{names}; expected one, the picture: set inputs=NAME=NUMBER,... for each other \
         input, or export the model with the picture alone"
    )]
    Inputs {
        /// The number of inputs.
        count: usize,
        /// The names and dimensions of the inputs, as text that begins with a space and is in parentheses; empty if
        /// there are no inputs.
        names: String,
    },
    /// The user has set numbers for an input that does not exist.
    #[error("inputs={name}=...: the model has no such input; its inputs are {inputs}")]
    NoSuchInput {
        /// The name.
        name: String,
        /// The names and dimensions of the inputs.
        inputs: String,
    },
    /// An input beside the picture cannot have the numbers.
    #[error(
        "the model's input {name} is {found} with the dimensions {dims}; expected {problem}: correct \
         inputs={name}=NUMBER,..."
    )]
    ConstantInput {
        /// The name of the input.
        name: String,
        /// The type of the input.
        found: String,
        /// The dimensions of the input.
        dims: String,
        /// The expected form.
        problem: String,
    },
    /// The input is not a tensor of a supported element type.
    #[error("the model's input {name} is {found}; expected a tensor of f32, f16, u8 or i8")]
    InputType {
        /// The name of the input.
        name: String,
        /// The type of the input.
        found: String,
    },
    /// The input does not have the dimensions of a picture.
    #[error(
        "the model's input {name} has the dimensions {dims}; expected a picture: [1,3,height,width], \
         [1,height,width,3], or 1 channel instead of 3, also without the first dimension{advice}"
    )]
    InputShape {
        /// The name of the input.
        name: String,
        /// The dimensions of the input.
        dims: String,
        /// The remedy.
        advice: &'static str,
    },
    /// A side of the input is dynamic, and no source provides its size.
    #[error(
        "the model's input {name} has the dynamic dimensions {dims}: set input-width and input-height"
    )]
    DynamicInput {
        /// The name of the input.
        name: String,
        /// The dimensions of the input.
        dims: String,
    },
    /// The user's size contradicts the model's fixed size.
    #[error(
        "{property}={wanted}, but the model's input {name} has the dimensions {dims}; leave \
         {property} at 0, or use a model of that size"
    )]
    OtherSize {
        /// `input-width` or `input-height`.
        property: &'static str,
        /// The value of the property.
        wanted: u32,
        /// The name of the input.
        name: String,
        /// The dimensions of the input.
        dims: String,
    },
    /// A side of the input is too large.
    #[error("the model's input {name} is {width}x{height}; expected at most 16384 pixels a side")]
    TooLarge {
        /// The name of the input.
        name: String,
        /// The width of the input.
        width: u32,
        /// The height of the input.
        height: u32,
    },
    /// No output is a tensor that can be read.
    #[error(
        "the model has no output of type f32, f16, i8, u8, i32 or i64; its outputs are {outputs}: export the \
         model with its raw outputs"
    )]
    Outputs {
        /// The names and types of the outputs.
        outputs: String,
    },
    /// More than one of an output's dimensions vary from picture to picture.
    #[error(
        "the model's output {name} has the dimensions {dims}, of which more than the number of rows depends on the \
         picture; export the model without suppression (nms=False) and with fixed sizes"
    )]
    VaryingOutput {
        /// The name of the output.
        name: String,
        /// The dimensions of the output.
        dims: String,
    },
    /// The rows of several pictures follow each other.
    #[error(
        "the model's output {name} has the rows of all pictures of a batch one after the other, and no number of their picture \
         in them: leave batch-size at 0, for runs of one picture"
    )]
    UnnamedRows {
        /// The name of the output.
        name: String,
    },
    /// The input cannot be the picture as it is, and there are several signatures, which say more.
    #[error("{error}; or set signature to the right one of those that the model has: {}", .signatures.join(", "))]
    Signatures {
        /// What is wrong with the input.
        error: Box<Self>,
        /// The names.
        signatures: Vec<&'static str>,
    },
    /// A run has more rows than can be attached.
    #[error(
        "the model's output {name} has {rows} rows; expected at most {limit}: export the model with a higher score \
         threshold or a limit of detections"
    )]
    ManyRows {
        /// The name of the output.
        name: String,
        /// The number of rows.
        rows: usize,
        /// The limit.
        limit: usize,
    },
    /// The user's batch size contradicts the model's fixed batch size.
    #[error(
        "batch-size={wanted}, but the model's input {name} has the dimensions {dims}; leave batch-size at 0, or \
         use a model with that batch or a dynamic one"
    )]
    OtherBatch {
        /// The value of `batch-size`.
        wanted: usize,
        /// The name of the input.
        name: String,
        /// The dimensions of the input.
        dims: String,
    },
    /// The model can only run with a batch of 1.
    #[error(
        "batch-size={batch}: the model has a batch of 1, and cannot run with another: {problem}; leave batch-size at 0, or \
         export the model with a dynamic batch"
    )]
    OtherThanOne {
        /// The value of `batch-size`.
        batch: usize,
        /// The reason.
        problem: String,
    },
    /// The pictures of a batch influence each other.
    #[error(
        "the model's output {name} of a picture depends on the other pictures of a batch of {batch}, as in dynamically \
         quantized models: leave batch-size at 0, or use a model with a batch of 1"
    )]
    Coupled {
        /// The name of the output.
        name: String,
        /// The number of pictures.
        batch: usize,
    },
    /// An output does not have a part per picture.
    #[error(
        "the model's output {name} has the dimensions {dims} for a batch of {batch}; expected {batch} as the first \
         dimension: leave batch-size at 0, or export the model with a dynamic batch"
    )]
    OutputBatch {
        /// The name of the output.
        name: String,
        /// The dimensions of the output.
        dims: String,
        /// The number of pictures.
        batch: usize,
    },
    /// The `.modelinfo` file cannot be used.
    #[error(transparent)]
    InfoFile(#[from] InfoFileError),
    /// The numbers of an output contradict the signature.
    #[error(transparent)]
    Signature(OutputError),
    /// The value of a property is invalid.
    #[error("{0}")]
    Property(String),
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
    ) -> Result<Self, ModelError> {
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
            _ => (None, found.iter().map(|signature| signature.name).collect()),
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
        let with_signatures = |error| match signatures.is_empty() {
            true => error,
            false => {
                ModelError::Signatures { error: Box::new(error), signatures: signatures.clone() }
            }
        };
        let input = InputSpec::new(name, dtype, batch, &overrides, info.as_ref(), &metadata, scale)
            .map_err(with_signatures)?;
        Ok(Self {
            is_suppressed: signature.is_some_and(|it| it.is_suppressed) || metadata.is_suppressed(),
            pixels_vary: signature.is_some_and(|it| it.facts.pixels_vary) && !is_known,
            signature,
            signatures,
            letterbox,
            constants: constants::describe(inputs, &overrides.inputs, &input)?,
            input,
            outputs,
            left_out,
            task: metadata.task().map(ToOwned::to_owned),
            end2end: metadata.end2end(),
            keypoints: metadata.keypoints(),
            keypoint_layout: metadata::keypoint_layout(&metadata),
            labels: metadata.labels,
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
) -> Result<&'static Signature, ModelError> {
    let Some(wanted) = signature::all().iter().find(|it| it.name == name) else {
        let names: Vec<&str> = signature::all().iter().map(|it| it.name).collect();
        let names = names.join(", ");
        return Err(ModelError::Property(format!(
            "signature: expected auto, none, or one of {names}; got {name}"
        )));
    };
    if find(session, path).iter().any(|it| it.name == name) {
        return Ok(wanted);
    }
    let forms = |patterns: &[signature::Pattern]| {
        patterns.iter().map(|it| it.form).collect::<Vec<_>>().join("; ")
    };
    Err(ModelError::Property(format!(
        "signature={name}: the model has other inputs or outputs; expected the inputs {} and the outputs {}",
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
