// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognizes models by the signature that their authors' export programs give them.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs. Out: the [`Signature`]s whose names, types
//! and dimensions all of them have, together: usually one or none. One name says nothing: `boxes` is an output of many
//! families. So a model with one name, dimension, type or output more or less has another signature.

mod constants;
mod table;

pub use self::constants::{ConstantNumbers, Dim, constant};
use self::table::SIGNATURES;
use crate::geometry::Letterbox;
use crate::tensor::ElementType;

/// The inputs and outputs of a family's models from one exporter, and what is known of these models.
#[derive(Debug)]
pub struct Signature {
    /// The name in messages.
    pub name: &'static str,
    /// The inputs, also those that [`constant`] has.
    inputs: &'static [Pattern],
    /// The outputs with the ids of their tensors. An empty id stands for none.
    outputs: &'static [(Pattern, &'static str)],
    /// Facts about the input.
    pub facts: Facts,
}

/// The pattern of an input or output.
#[derive(Debug)]
struct Pattern {
    name: &'static str,
    types: &'static [ElementType],
    /// The dimensions, separated by commas: a length; `3?` for a length that may be dynamic; `>5` for a greater length;
    /// `?` for a dynamic one; or a word for any length, dynamic or not, the same wherever the word stands.
    dims: &'static str,
}

/// Facts about the picture that a model takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// How the frame is fitted into it.
    pub letterbox: Letterbox,
    /// Width and height, where the model's are dynamic.
    pub size: Option<[u32; 2]>,
    /// The order of its dimensions.
    pub layout: Option<InputLayout>,
    /// How pixels become numbers; `None` if models of the family differ in this.
    pub normalization: Option<Normalization>,
}

/// How pixels become numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalization {
    /// The numbers that black and white become.
    pub range: [f64; 2],
    /// The numbers to subtract from these.
    pub mean: [f64; 3],
    /// The numbers by which the difference is divided.
    pub std: [f64; 3],
}

impl Signature {
    /// Returns the id of the tensor for an output.
    pub fn id(&self, output: &str) -> Option<&'static str> {
        let (_, id) = self.outputs.iter().find(|(pattern, _)| pattern.name == output)?;
        Some(*id).filter(|id| !id.is_empty())
    }

    fn is_of(&self, inputs: &[ModelTensor<'_>], outputs: &[ModelTensor<'_>]) -> bool {
        let mut words = Vec::new();
        are_of(inputs, self.inputs.iter(), &mut words)
            && are_of(outputs, self.outputs.iter().map(|(pattern, _)| pattern), &mut words)
    }
}

/// The order of a picture's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLayout {
    /// Batch, if the model has one, channels, height, width.
    Nchw,
    /// Batch, if the model has one, height, width, channels.
    Nhwc,
}

/// An input or output of a model: its name, element type and dimensions, of which those below 0 are dynamic.
pub type ModelTensor<'m> = (&'m str, ElementType, &'m [i64]);

/// Returns the signatures that a model has.
pub fn find(inputs: &[ModelTensor<'_>], outputs: &[ModelTensor<'_>]) -> Vec<&'static Signature> {
    fitting(SIGNATURES, inputs, outputs)
}

fn fitting<'s>(
    signatures: &'s [Signature],
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
) -> Vec<&'s Signature> {
    signatures.iter().filter(|signature| signature.is_of(inputs, outputs)).collect()
}

/// Returns whether these tensors, in any order, are those of the patterns. `words` has the lengths of words.
fn are_of<'p>(
    tensors: &[ModelTensor<'_>],
    mut patterns: impl ExactSizeIterator<Item = &'p Pattern>,
    words: &mut Vec<(&'static str, i64)>,
) -> bool {
    let is_of = |pattern: &Pattern| {
        let tensor = tensors.iter().find(|(name, ..)| *name == pattern.name);
        tensor.is_some_and(|(_, ty, shape)| {
            pattern.types.contains(ty) && has_dims(shape, pattern.dims, words)
        })
    };
    tensors.len() == patterns.len() && patterns.all(is_of)
}

fn has_dims(shape: &[i64], dims: &'static str, words: &mut Vec<(&'static str, i64)>) -> bool {
    let mut is_length = |(&length, dim): (&i64, &'static str)| {
        if dim == "?" {
            return length < 0;
        }
        if let Some(least) = dim.strip_prefix('>') {
            return least.parse().is_ok_and(|least: i64| length > least);
        }
        if let Ok(fixed) = dim.trim_end_matches('?').parse::<i64>() {
            return length == fixed || length < 0 && dim.ends_with('?');
        }
        if length < 0 {
            return true;
        }
        let known = words.iter().find(|(word, _)| *word == dim).map(|&(_, length)| length);
        words.push((dim, length));
        known.is_none_or(|known| known == length)
    };
    shape.len() == dims.split(',').count() && shape.iter().zip(dims.split(',')).all(&mut is_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_lengths_and_words() {
        let mut words = Vec::new();
        assert!(has_dims(&[1, 3, 40, -1], "B,3,H,W", &mut words));
        // Each word has one length.
        assert!(!has_dims(&[1, 41], "B,H", &mut words));
        assert!(has_dims(&[-1, 40], "B,H", &mut words));
        for (dims, fits) in [
            ("?,4", false),
            ("7,4", true),
            ("7?,4", true),
            ("8?,4", false),
            (">6,4", true),
            (">7,4", false),
            ("N,4,1", false),
            ("N", false),
        ] {
            assert_eq!(has_dims(&[7, 4], dims, &mut Vec::new()), fits, "{dims}");
        }
        assert!(has_dims(&[-1, 4], "?,4", &mut Vec::new()));
        assert!(has_dims(&[-1, 4], "7?,4", &mut Vec::new()));
        assert!(!has_dims(&[-1, 4], "7,4", &mut Vec::new()));
        assert!(!has_dims(&[-1, 4], ">5,4", &mut Vec::new()));
    }

    #[test]
    fn all_signatures_that_a_model_has_are_found() {
        let output = |dims| Pattern { name: "rows", types: &[ElementType::F32], dims };
        let signature = |name, outputs: [(Pattern, &'static str); 1]| Signature {
            name,
            inputs: &[],
            outputs: Box::leak(Box::new(outputs)),
            facts: SIGNATURES[0].facts,
        };
        let signatures = [
            signature("a", [(output("N,7"), "")]),
            signature("b", [(output("N,8"), "")]),
            signature("c", [(output("9,>6"), "")]),
        ];
        let found = |dims: [i64; 2]| {
            let found = fitting(&signatures, &[], &[("rows", ElementType::F32, &dims)]);
            found.iter().map(|signature| signature.name).collect::<Vec<_>>()
        };
        assert_eq!(found([9, 7]), ["a", "c"]);
        assert_eq!(found([5, 8]), ["b"]);
        assert_eq!(found([5, 9]), [""; 0]);
    }

    /// Ids that no decoder has would hide the name of an output.
    #[test]
    fn ids_are_those_of_decoders() {
        let ids = SIGNATURES.iter().flat_map(|it| it.outputs).map(|(_, id)| *id);
        for id in ids.filter(|id| !id.is_empty()) {
            assert!(crate::decoder::is_known(id), "{id}");
        }
    }
}
