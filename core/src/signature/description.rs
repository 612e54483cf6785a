// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of models for programs that run them themselves.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs, and its metadata. Out: the [`Description`].

use super::{
    ConstantNumbers, Facts, InputLayout, Metadata, ModelTensor, Normalization, Pattern, Signature,
    constant, find, usual,
};
use crate::geometry::Letterbox;
use crate::tensor::{ElementType, TensorError, TensorView};

/// The least logit of no object, whose score then would reach the threshold.
const NO_OBJECT: f32 = -1.0;

/// Fewer queries can all have an object.
const FEW_QUERIES: usize = 50;

/// Facts about a model.
#[derive(Clone, Debug)]
pub struct Description {
    /// The name of the signature; `metadata` if the file's metadata have the ids of outputs.
    pub name: &'static str,
    /// For each input, the numbers that it takes; `None` for the picture.
    pub inputs: Vec<Option<ConstantNumbers>>,
    /// Facts about the picture. The size is `None` if it is dynamic, and there is no usual one.
    pub facts: Facts,
    /// The order of the picture's dimensions.
    pub layout: InputLayout,
    /// How pixels become numbers.
    pub normalization: Normalization,
    /// For each output that is read, its name, the id of its tensor, and what the signature says beside.
    pub ids: Vec<(String, String, Option<&'static Pattern>)>,
    /// The outputs with masks or keypoints, which are not read.
    pub unread: Vec<String>,
    /// True if the model's detections need no suppression.
    pub is_suppressed: bool,
    /// True if the detections are the best pairs of box and class.
    pub selects_pairs: bool,
    /// The class names; empty if unknown.
    pub labels: Vec<String>,
    /// The number of keypoints, and of their components.
    pub keypoints: Option<[u32; 2]>,
}

/// The reason why a model has no one signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Several exporters have its inputs and outputs.
    #[error("the model has the signatures of several exporters: {}; pass the name of the right one", .0.join(", "))]
    Several(Vec<&'static str>),
    /// It does not have the one of this name.
    #[error("the model does not have the signature {name}; it has {}", if .found.is_empty() { "none".to_owned() } else { .found.join(", ") })]
    Other {
        /// The name.
        name: String,
        /// The names of those that it has.
        found: Vec<&'static str>,
    },
}

/// Describes a model by its signature of this name; without a name by its metadata, such as Ultralytics', or its only
/// signature. `None` if it has neither.
///
/// # Errors
/// If it has several signatures, or others.
pub fn describe(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    metadata: &Metadata,
    name: Option<&str>,
) -> Result<Option<Description>, SignatureError> {
    let with_id = |&(name, _, dims): &ModelTensor<'_>| {
        Some((name.to_owned(), metadata.id(name, dims)?.to_owned(), None))
    };
    let ids: Vec<_> = outputs.iter().filter_map(with_id).collect();
    let mut description = if name.is_none() && !ids.is_empty() && inputs.len() == 1 {
        let letterbox = if metadata.is_rt_detr() { Letterbox::None } else { Letterbox::Center };
        Description {
            name: "metadata",
            facts: Facts { letterbox, size: metadata.size, ..Facts::default() },
            ids,
            is_suppressed: metadata.is_suppressed(),
            ..Description::of_picture()
        }
    } else {
        let all = find(inputs, outputs);
        let all = if name.is_none() { usual(all) } else { all };
        let names = || all.iter().map(|it| it.name).collect();
        let signature = match (name, &all[..]) {
            (Some(name), all) => {
                all.iter().find(|it| it.name == name).copied().ok_or_else(|| {
                    SignatureError::Other { name: name.to_owned(), found: names() }
                })?
            }
            (None, []) => return Ok(None),
            (None, [signature]) => signature,
            (None, _) => return Err(SignatureError::Several(names())),
        };
        let pattern = |&output: &ModelTensor<'_>| {
            let pattern = signature.output(output).filter(|it| !it.meaning.is_empty())?;
            Some((output.0.to_owned(), pattern.meaning.to_owned(), Some(pattern)))
        };
        Description {
            name: signature.name,
            inputs: inputs.iter().map(|&it| constant(it).map(|(_, numbers)| numbers)).collect(),
            facts: signature.facts,
            ids: outputs.iter().filter_map(pattern).collect(),
            unread: signature.unread(outputs),
            is_suppressed: signature.is_suppressed,
            selects_pairs: signature.selects_pairs,
            ..Description::of_picture()
        }
    };
    let picture = description.inputs.iter().position(Option::is_none);
    let Some(&(_, element, dims)) = picture.and_then(|picture| inputs.get(picture)) else {
        return Ok(None);
    };
    let &[.., first, second, last] = dims else { return Ok(None) };
    let is_nhwc = matches!(last, 1 | 3) && !matches!(first, 1 | 3);
    let found = if is_nhwc { InputLayout::Nhwc } else { InputLayout::Nchw };
    description.layout = description.facts.layout.unwrap_or(found);
    let sides = match description.layout {
        InputLayout::Nchw => [last, second],
        InputLayout::Nhwc => [second, first],
    };
    let [width, height] = sides.map(|side| u32::try_from(side).ok().filter(|&side| side > 0));
    if let Some(size) = width.zip(height) {
        description.facts.size = Some(size.into());
    }
    if element == ElementType::U8 {
        description.normalization.range = [0.0, 255.0];
    }
    if let Some(normalization) = description.facts.normalization {
        description.normalization = normalization;
    }
    description.labels.clone_from(&metadata.labels);
    description.keypoints = metadata.keypoints();
    Ok(Some(description))
}

impl Description {
    /// One of a model whose only input is a picture of the range 0 to 1.
    fn of_picture() -> Self {
        Self {
            name: "",
            inputs: vec![None],
            facts: Facts::default(),
            layout: InputLayout::Nchw,
            normalization: Normalization { range: [0.0, 1.0], mean: [0.0; 3], std: [1.0; 3] },
            ids: Vec::new(),
            unread: Vec::new(),
            is_suppressed: false,
            selects_pairs: false,
            labels: Vec::new(),
            keypoints: None,
        }
    }
}

/// The tensor of an output cannot be read by the signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The host cannot read it.
    #[error(
        "tensor {tensor} is in device memory, but its numbers decide how it is read; pass it in host memory"
    )]
    OnDevice {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// Its logits contradict the signature.
    #[error(
        "the logits of {tensor} contradict the signature, by which the last one of a row is {} of no object; take another \
         signature (transformers-softmax for DETR or YOLOS, transformers-sigmoid for RT-DETR or D-FINE), or none",
        if *background { "that" } else { "not that" }
    )]
    Background {
        /// The tensor, as displayed.
        tensor: String,
        /// Whether the last logit should mean no object.
        background: bool,
    },
    /// Its rows are of several pictures.
    #[error(
        "tensor {tensor} has rows of several pictures; run the model with one picture at a time"
    )]
    Pictures {
        /// The tensor, as displayed.
        tensor: String,
    },
}

impl Signature {
    /// The id by which the decoder is chosen, of a tensor with the name of an output as its id; `None` if the output is not
    /// read. Some ids depend on whether scores are probabilities or logits.
    ///
    /// # Errors
    /// If an id depends on numbers in device memory, if rows are of several pictures, or if the numbers contradict the
    /// signature.
    pub fn tensor_id(&self, tensor: &TensorView<'_>) -> Result<Option<&'static str>, OutputError> {
        let dims: Vec<i64> = tensor.shape.iter().map(|&length| length as i64).collect();
        // A dimension of the model can be dynamic, which has a length here.
        let with_dynamic = (0..dims.len()).map(|axis| {
            let mut dims = dims.clone();
            dims[axis] = -1;
            dims
        });
        let output = |dims: Vec<i64>| self.output((tensor.id, tensor.element, &dims));
        let pattern = output(dims.clone()).or_else(|| with_dynamic.map(output).find_map(|it| it));
        pattern.filter(|it| !it.meaning.is_empty()).map(|it| it.id(tensor)).transpose()
    }
}

impl Pattern {
    /// Returns true if the id of an output's tensor depends on its numbers, or if these can contradict the signature.
    pub fn depends_on_numbers(&self) -> bool {
        self.logits.is_some() || self.has_images || self.background.is_some()
    }

    /// The id of an output's tensor, which says whether scores are probabilities or logits.
    ///
    /// # Errors
    /// The errors of [`Signature::tensor_id`].
    pub fn id(&self, tensor: &TensorView<'_>) -> Result<&'static str, OutputError> {
        let is_needed = self.logits.is_some() || self.has_images;
        if !self.depends_on_numbers() || (!is_needed && tensor.is_on_device()) {
            return Ok(self.meaning);
        }
        if tensor.is_on_device() {
            return Err(OutputError::OnDevice { tensor: tensor.to_string() });
        }
        let (elements, len) = (tensor.elements()?, tensor.shape.elements().unwrap_or(0));
        let columns = tensor.shape.last().map_or(1, |&columns| columns.max(1));
        let number = |index: usize| elements.to_f32(index);
        if let Some(background) = self.background
            && is_contradicted(background, columns, number, len)
        {
            return Err(OutputError::Background { tensor: tensor.to_string(), background });
        }
        let mut numbers = (0..len).map(|index| (index % columns, number(index)));
        if self.has_images && numbers.any(|(column, number)| column == 0 && number > 0.0) {
            return Err(OutputError::Pictures { tensor: tensor.to_string() });
        }
        let Some((logits, first)) = self.logits else { return Ok(self.meaning) };
        let is_probability =
            numbers.all(|(column, number)| column < first || (0.0..=1.0).contains(&number));
        Ok(if is_probability { self.meaning } else { logits })
    }
}

/// Returns true if the `len` logits in rows of `columns` contradict [`Pattern::background`]. Most of a detector's queries are
/// of no object: the last logit is their best, or without background all are below 0.
fn is_contradicted(
    background: bool,
    columns: usize,
    number: impl Fn(usize) -> f32,
    len: usize,
) -> bool {
    let is_other = |&row: &usize| {
        let last = number(row + columns - 1);
        let best = (row..row + columns - 1).map(&number).fold(f32::NEG_INFINITY, f32::max);
        if background { best < 0.0 && last <= best } else { last > NO_OBJECT && last > best }
    };
    let rows = len / columns;
    let others = || (0..len).step_by(columns).filter(is_other).count();
    columns > 1 && (!background || rows >= FEW_QUERIES) && 2 * others() > rows
}
