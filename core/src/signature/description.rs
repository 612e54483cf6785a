// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of models for programs that run them themselves.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs, and its metadata. Out: the [`Description`].

use super::{
    ConstantNumbers, Facts, InputLayout, Metadata, ModelTensor, Normalization, Pattern, Signature,
    all, constant, find,
};
use crate::geometry::Letterbox;
use crate::tensor::{ElementType, TensorView};

/// The least logit of no object, whose score then would reach the threshold.
const NO_OBJECT: f32 = -1.0;

/// Fewer queries can all have an object.
const FEW_QUERIES: usize = 50;

/// Facts about a model.
#[derive(Clone, Debug)]
pub struct Description {
    /// The name of the signature; `metadata` if none is taken.
    pub name: &'static str,
    /// For each input, the numbers that it takes; `None` for the picture.
    pub inputs: Vec<Option<ConstantNumbers>>,
    /// The outputs.
    pub outputs: Vec<Output>,
    /// Facts about the picture and the detections.
    pub facts: Facts,
    /// The class names; empty if unknown.
    pub labels: Vec<String>,
    /// The number of keypoints, and of their components.
    pub keypoints: Option<[u32; 2]>,
}

/// An output of a model.
#[derive(Clone, Debug)]
pub struct Output {
    /// The name.
    pub name: String,
    /// The id of its tensor; `None` if nothing says one.
    pub id: Option<String>,
    /// What the signature says of it.
    pub pattern: Option<&'static Pattern>,
}

/// The reason why a model has no one signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Several exporters have its inputs and outputs.
    #[error("the model has the signatures of several exporters: {}; pass the name of the right one", .0.join(", "))]
    Several(Vec<&'static str>),
    /// It does not have the one of this name.
    #[error("{0}")]
    Other(String),
}

/// Describes a model by its signature of this name; without a name by its metadata, such as Ultralytics', or its only
/// signature. `None` if it has neither. Otherwise order of dimensions and normalization are known.
///
/// # Errors
/// If it has several signatures, or others.
pub fn describe(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    metadata: &Metadata,
    name: Option<&str>,
) -> Result<Option<Description>, SignatureError> {
    let mut description = Description::new(inputs, outputs, metadata);
    if name.is_some() || !description.has_ids() || inputs.len() != 1 {
        match choose(inputs, outputs, name, |_, _| false)? {
            Some(signature) => description.take(signature, outputs),
            None => return Ok(None),
        }
    }
    let picture = description.inputs.iter().position(Option::is_none);
    let Some(&(_, element, dims)) = picture.and_then(|picture| inputs.get(picture)) else {
        return Ok(None);
    };
    let &[.., first, second, last] = dims else { return Ok(None) };
    let is_nhwc = matches!(last, 1 | 3) && !matches!(first, 1 | 3);
    let facts = &mut description.facts;
    let found = if is_nhwc { InputLayout::Nhwc } else { InputLayout::Nchw };
    let sides = match *facts.layout.get_or_insert(found) {
        InputLayout::Nchw => [last, second],
        InputLayout::Nhwc => [second, first],
    };
    let [width, height] = sides.map(|side| u32::try_from(side).ok().filter(|&side| side > 0));
    if let Some(size) = width.zip(height) {
        facts.size = Some(size.into());
    }
    let white = if element == ElementType::U8 { 255.0 } else { 1.0 };
    let usual = Normalization { range: [0.0, white], mean: [0.0; 3], std: [1.0; 3] };
    facts.normalization.get_or_insert(usual);
    Ok(Some(description))
}

/// Returns the model's signature of this name; without a name its only one, if any. [`find`] says what `is_in_file` is.
///
/// # Errors
/// If it has several signatures, or others.
pub fn choose(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    name: Option<&str>,
    is_in_file: impl Fn(&str, ConstantNumbers) -> bool,
) -> Result<Option<&'static Signature>, SignatureError> {
    let mut found = find(inputs, outputs, is_in_file);
    let names = |found: &[&'static Signature]| found.iter().map(|it| it.name).collect::<Vec<_>>();
    let Some(name) = name else {
        let has_usual = found.iter().any(|it| it.is_usual);
        found.retain(|it| it.is_usual || !has_usual);
        return match found[..] {
            [] => Ok(None),
            [signature] => Ok(Some(signature)),
            _ => Err(SignatureError::Several(names(&found))),
        };
    };
    let wanted = found.iter().find(|it| it.name == name).copied();
    wanted.map(Some).ok_or_else(|| {
        let forms =
            |patterns: &[Pattern]| patterns.iter().map(|it| it.form).collect::<Vec<_>>().join("; ");
        let expected = all().iter().find(|it| it.name == name).map_or_else(
            || format!("one of {}", names(&all().iter().collect::<Vec<_>>()).join(", ")),
            |it| format!("the inputs {} and the outputs {}", forms(&it.inputs), forms(&it.outputs)),
        );
        let found = if found.is_empty() { "none".to_owned() } else { names(&found).join(", ") };
        SignatureError::Other(format!(
            "the model does not have the signature {name}; it has {found}; expected {expected}"
        ))
    })
}

impl Description {
    /// Describes a model by its metadata alone.
    pub fn new(
        inputs: &[ModelTensor<'_>],
        outputs: &[ModelTensor<'_>],
        metadata: &Metadata,
    ) -> Self {
        let output = |&(name, _, dims): &ModelTensor<'_>| Output {
            name: name.to_owned(),
            id: metadata.id(name, dims),
            pattern: None,
        };
        let letterbox = if metadata.is_rt_detr() { Letterbox::None } else { Letterbox::Center };
        Self {
            name: "metadata",
            inputs: match inputs {
                // The only input is the picture.
                [_] => vec![None],
                _ => inputs.iter().map(|&it| constant(it).and_then(Pattern::numbers)).collect(),
            },
            outputs: outputs.iter().map(output).collect(),
            facts: Facts {
                letterbox,
                size: metadata.size,
                is_suppressed: metadata.is_suppressed(),
                ..Facts::default()
            },
            labels: metadata.labels.clone(),
            keypoints: metadata.keypoints(),
        }
    }

    /// Returns whether the id of an output is known.
    pub fn has_ids(&self) -> bool {
        self.outputs.iter().any(|output| output.id.is_some())
    }

    /// Takes what a signature says. Of the metadata remain the size, labels, and whether detections need no suppression.
    pub fn take(&mut self, signature: &'static Signature, outputs: &[ModelTensor<'_>]) {
        let Facts { size, is_suppressed, .. } = self.facts;
        self.name = signature.name;
        self.facts = signature.facts;
        self.facts.size = size.or(self.facts.size);
        self.facts.is_suppressed |= is_suppressed;
        for (output, &tensor) in self.outputs.iter_mut().zip(outputs) {
            output.pattern = signature.output(tensor);
            if let Some(read) = output.pattern.filter(|it| !it.meaning.is_empty()) {
                output.id = Some(read.meaning.to_owned());
            }
        }
    }

    /// The names of the outputs with masks or keypoints, which are not read.
    pub fn unread(&self) -> Vec<&str> {
        let unread = self.outputs.iter().filter(|it| it.pattern.is_some_and(|it| it.is_unread));
        unread.map(|it| &*it.name).collect()
    }
}

/// The tensor of an output cannot be read by the signature. The text says why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(String);

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
            return Err(OutputError(format!(
                "tensor {tensor} is in device memory, but its numbers decide how it is read; pass it in host memory"
            )));
        }
        let elements = tensor.elements().map_err(|error| OutputError(error.to_string()))?;
        let len = tensor.shape.elements().unwrap_or(0);
        let columns = tensor.shape.last().map_or(1, |&columns| columns.max(1));
        let number = |index: usize| elements.to_f32(index);
        if let Some(background) = self.background
            && is_contradicted(background, columns, number, len)
        {
            let meaning = if background { "that" } else { "not that" };
            return Err(OutputError(format!(
                "the logits of {tensor} contradict the signature, by which the last one of a row is {meaning} of no object; \
                 take another signature (transformers-softmax for DETR or YOLOS, transformers-sigmoid for RT-DETR or \
                 D-FINE), or none"
            )));
        }
        let mut numbers = (0..len).map(|index| (index % columns, number(index)));
        if self.has_images && numbers.any(|(column, number)| column == 0 && number > 0.0) {
            return Err(OutputError(format!(
                "tensor {tensor} has rows of several pictures; run the model with one picture at a time"
            )));
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
