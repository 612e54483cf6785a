// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model's inputs and outputs.
//!
//! In: the inputs and outputs that ONNX Runtime reports, the model's metadata, the file
//! `MODEL.modelinfo`, and properties. Out: a [`Model`]: the picture that it takes ([`InputSpec`]), and the
//! outputs to attach ([`OutputSpec`]) with the ids by which `nmsfilter` chooses a decoder.
//!
//! Where several sources have a value, the first of this list counts: properties, the `.modelinfo`
//! file, the model's metadata, its shapes, defaults (RGB, 0 to 1 for floating-point inputs, 0 to 255 for
//! bytes).

pub mod batch_dimension;
mod info_file;
mod input;
mod metadata;
mod names;
pub mod numbers;
mod output;
mod protobuf;
pub mod varying_nodes;

use std::path::Path;

use numbers::PerChannel;
use ort::session::Session;
use ort::value::ValueType;

pub use info_file::{InfoFile, InfoFileError};
pub use input::{InputSpec, PixelElement};
pub use metadata::Metadata;
pub use output::OutputSpec;

/// The order of the dimensions of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLayout {
    /// Batch, channels, height, width.
    Nchw,
    /// Batch, height, width, channels.
    Nhwc,
}

/// The order of the channels of a pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelOrder {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red.
    Bgr,
}

/// What the user sets of the model; `None` where nothing is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Width and height of the model's input.
    pub size: [Option<u32>; 2],
    /// The order of its dimensions.
    pub layout: Option<InputLayout>,
    /// The order of its channels.
    pub order: Option<ChannelOrder>,
    /// The normalization range: the values of black and white, the pixel values 0 and 255.
    pub range: Option<[f64; 2]>,
    /// Subtracted from that.
    pub mean: Option<PerChannel>,
    /// Divides the difference.
    pub std: Option<PerChannel>,
}

/// A model as the element uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The picture that it takes.
    pub input: InputSpec,
    /// The outputs that are attached, in the order of the model.
    pub outputs: Vec<OutputSpec>,
    /// The names of its classes; empty if they are unknown.
    pub labels: Vec<String>,
    /// What it is trained for, such as `detect`.
    pub task: Option<String>,
    /// Whether it selects the detections itself.
    pub end2end: bool,
    /// The number of keypoints of a detection, and of the components of each.
    pub keypoints: Option<[u32; 2]>,
}

/// Why a model, or its properties or its `.modelinfo` file, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The model has no input, or more than one.
    #[error(
        "the model has {count} inputs{names}; expected one, the picture: export the model with that \
         input alone"
    )]
    Inputs {
        /// Their number.
        count: usize,
        /// Their names in parentheses after a space, if there are any.
        names: String,
    },
    /// The input is not a tensor of a supported element type.
    #[error("the model's input {name} is {found}; expected a tensor of f32, f16 or u8")]
    InputType {
        /// The name of the input.
        name: String,
        /// Its type.
        found: String,
    },
    /// The input does not have the dimensions of a picture.
    #[error(
        "the model's input {name} has the dimensions {dims}; expected a picture: [1,3,height,width], \
         [1,height,width,3], or 1 channel instead of 3{advice}"
    )]
    InputShape {
        /// The name of the input.
        name: String,
        /// Its dimensions.
        dims: String,
        /// What to do.
        advice: &'static str,
    },
    /// A side of the input is dynamic, and no source has it.
    #[error(
        "the model's input {name} has the dynamic dimensions {dims}: set input-width and input-height"
    )]
    DynamicInput {
        /// The name of the input.
        name: String,
        /// Its dimensions.
        dims: String,
    },
    /// The user's size is not the model's.
    #[error(
        "{property}={wanted}, but the model's input {name} has the dimensions {dims}; leave \
         {property} at 0, or use a model of that size"
    )]
    OtherSize {
        /// `input-width` or `input-height`.
        property: &'static str,
        /// Its value.
        wanted: u32,
        /// The name of the input.
        name: String,
        /// Its dimensions.
        dims: String,
    },
    /// A side of the input is too large.
    #[error("the model's input {name} is {width}x{height}; expected at most 16384 pixels a side")]
    TooLarge {
        /// The name of the input.
        name: String,
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// No output is a tensor that can be read.
    #[error(
        "the model has no output of type f32, f16, i8, u8, i32 or i64; its outputs are {outputs}: export the \
         model with its raw outputs"
    )]
    Outputs {
        /// Names and types.
        outputs: String,
    },
    /// An output has no fixed dimensions.
    #[error(
        "the model's output {name} has the dimensions {dims}, which depend on the picture; export the \
         model without suppression (nms=False) and with fixed sizes"
    )]
    VaryingOutput {
        /// The name of the output.
        name: String,
        /// Its dimensions.
        dims: String,
    },
    /// The user's batch is not the model's.
    #[error(
        "batch-size={wanted}, but the model's input {name} has the dimensions {dims}; leave batch-size at 0, or \
         use a model with that batch or a dynamic one"
    )]
    OtherBatch {
        /// The value of `batch-size`.
        wanted: usize,
        /// The name of the input.
        name: String,
        /// Its dimensions.
        dims: String,
    },
    /// The model cannot have another batch than 1.
    #[error(
        "batch-size={batch}: the model has a batch of 1, and cannot run with another: {problem}; leave batch-size at 0, or \
         export the model with a dynamic batch"
    )]
    OtherThanOne {
        /// The value of `batch-size`.
        batch: usize,
        /// What happened.
        problem: String,
    },
    /// An output is not one of each picture.
    #[error(
        "the model's output {name} has the dimensions {dims} for a batch of {batch}; expected {batch} as the first: \
         leave batch-size at 0, or export the model with a dynamic batch"
    )]
    OutputBatch {
        /// The name of the output.
        name: String,
        /// Its dimensions.
        dims: String,
        /// The number of pictures.
        batch: usize,
    },
    /// The `.modelinfo` file cannot be used.
    #[error(transparent)]
    InfoFile(#[from] InfoFileError),
    /// A property is not what it should be.
    #[error("{0}")]
    Property(String),
}

impl Model {
    /// Describes the model of `session`, whose file is `path`, for runs of `batch` pictures.
    ///
    /// # Errors
    /// If the model does not take pictures, or gives no tensor that can be read, or the `.modelinfo`
    /// file is of another model.
    pub fn new(
        session: &Session,
        path: &Path,
        batch: Option<usize>,
        overrides: &Overrides,
    ) -> Result<Self, ModelError> {
        let info = InfoFile::beside(path)?;
        let metadata = Metadata::of(session);
        let inputs = session.inputs();
        if let Some(info) = &info {
            info.check_groups(inputs.iter().chain(session.outputs()).map(|outlet| outlet.name()))?;
        }
        let [input] = inputs else {
            let names = inputs.iter().map(|input| input.name()).collect::<Vec<_>>().join(", ");
            let names = if names.is_empty() { names } else { format!(" ({names})") };
            return Err(ModelError::Inputs { count: inputs.len(), names });
        };
        Ok(Self {
            input: InputSpec::new(
                input.name(),
                input.dtype(),
                batch,
                overrides,
                info.as_ref(),
                &metadata,
            )?,
            outputs: output::describe(session.outputs(), info.as_ref(), &metadata)?,
            task: metadata.task().map(ToOwned::to_owned),
            end2end: metadata.end2end(),
            keypoints: metadata.keypoints(),
            labels: metadata.labels,
        })
    }
}

/// Dimensions as messages show them; dynamic ones are `?`.
pub fn dims_text(dims: &[i64]) -> String {
    let texts = dims.iter().map(|&dim| if dim < 0 { "?".to_owned() } else { dim.to_string() });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// A type as messages show it.
fn type_text(value: &ValueType) -> String {
    match value {
        ValueType::Tensor { ty, .. } => format!("a tensor of {ty}"),
        other => format!("{other}"),
    }
}
