// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognizes models by the signature that their authors' export programs give them.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs. Out: the [`Signature`]s whose names, types
//! and dimensions all of them have, together: usually one or none. One name says nothing: `boxes` is an output of many
//! families. So a model with one name, dimension, type or output more or less has another signature.
//!
//! `signatures.txt` has the signatures, and says what its lines mean.

mod description;
mod metadata;
mod names;
mod parse;

use std::sync::LazyLock;

use crate::geometry::Letterbox;
use crate::tensor::ElementType;

pub use description::{Description, Output, OutputError, SignatureError, choose, describe};
pub use metadata::Metadata;
pub use names::parse_names;

/// The inputs and outputs of a family's models from one exporter, and what is known of these models.
#[derive(Debug, Default, PartialEq)]
pub struct Signature {
    /// The name in messages.
    pub name: &'static str,
    /// The models, for people.
    pub models: &'static str,
    /// Where the exporter's code or documents are.
    pub source: &'static str,
    /// What the signature cannot say; empty if there is nothing.
    pub left: &'static str,
    /// The inputs: the picture, and those with constant numbers.
    pub inputs: Vec<Pattern>,
    /// The outputs.
    pub outputs: Vec<Pattern>,
    /// Facts about the picture and the detections.
    pub facts: Facts,
    /// True if it is taken before others that the model has, too.
    pub is_usual: bool,
}

/// The pattern of an input or output.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Name, type and dimensions, as `signatures.txt` has them.
    pub form: &'static str,
    name: &'static str,
    types: &'static [ElementType],
    dims: &'static str,
    /// True if some models do not have it.
    pub is_optional: bool,
    /// True if an output has masks or keypoints, which are not read.
    pub is_unread: bool,
    /// The id of an output's tensor, or the word for a constant input's numbers; empty for none.
    pub meaning: &'static str,
    /// True if the first number of an output's rows is the number of their picture in the batch.
    pub has_images: bool,
    /// Whether the last logit of an output means background; `None` if there is nothing to compare.
    pub background: Option<bool>,
    /// For an output of scores: the id if the numbers from this column on are logits.
    pub logits: Option<(&'static str, usize)>,
}

/// Facts about the picture that a model takes, and about its detections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// How the frame is fitted into it.
    pub letterbox: Letterbox,
    /// Width and height, where the model's are dynamic.
    pub size: Option<[u32; 2]>,
    /// The order of its dimensions.
    pub layout: Option<InputLayout>,
    /// How pixels become numbers; `None` for values from 0 to 1, or of bytes.
    pub normalization: Option<Normalization>,
    /// True if the first channel is blue.
    pub is_bgr: bool,
    /// True if models of the exporter have other normalizations and orders of channels, too.
    pub pixels_vary: bool,
    /// True if the detections need no suppression.
    pub is_suppressed: bool,
    /// True if the detections are the best pairs of box and class, as many as boxes.
    pub selects_pairs: bool,
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

/// The numbers of a constant input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantNumbers {
    /// Width and height of the model's input.
    WidthHeight,
    /// Height and width of the model's input.
    HeightWidth,
    /// Ones: no scaling, or no pixel that is padding.
    Ones,
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

/// Lengths of the words in dimensions.
type Words = Vec<(&'static str, i64)>;

/// All signatures.
pub fn all() -> &'static [Signature] {
    static SIGNATURES: LazyLock<Vec<Signature>> = LazyLock::new(|| {
        parse::signatures(include_str!("signatures.txt")).expect("a test parses the signatures")
    });
    &SIGNATURES
}

/// Returns the signatures that a model has. `is_in_file` tells whether a constant input that the model does not have is in
/// its file instead, as numbers of this name with these values.
pub fn find(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    is_in_file: impl Fn(&str, ConstantNumbers) -> bool,
) -> Vec<&'static Signature> {
    let in_file = |it: &Pattern| it.numbers().is_some_and(|numbers| is_in_file(it.name, numbers));
    let is_of = |signature: &&Signature| {
        let mut words = Words::new();
        missing(inputs, &signature.inputs, &mut words).is_some_and(|inputs| {
            let outputs = missing(outputs, &signature.outputs, &mut words);
            outputs.is_some_and(|outputs| outputs.is_empty()) && inputs.into_iter().all(in_file)
        })
    };
    all().iter().filter(is_of).collect()
}

/// Returns the pattern of an input with constant numbers that some signature has.
pub fn constant((name, element, shape): ModelTensor<'_>) -> Option<&'static Pattern> {
    let is_of = |pattern: &&Pattern| {
        pattern.name == name
            && pattern.numbers().is_some()
            && pattern.has_form(element, shape, &mut Words::new())
    };
    all().iter().flat_map(|signature| &signature.inputs).find(is_of)
}

impl Signature {
    /// Returns the pattern of an output.
    pub fn output(&self, (name, element, shape): ModelTensor<'_>) -> Option<&Pattern> {
        let fits = |pattern: &Pattern| pattern.has_form(element, shape, &mut Words::new());
        let is_any = |pattern: &&Pattern| pattern.name == "*" && fits(pattern);
        let named = self.outputs.iter().find(|pattern| pattern.name == name);
        named.or_else(|| self.outputs.iter().find(is_any))
    }
}

/// Returns the patterns that none of the tensors have, although they are required; `None` if a tensor has no pattern.
fn missing<'p>(
    tensors: &[ModelTensor<'_>],
    patterns: &'p [Pattern],
    words: &mut Words,
) -> Option<Vec<&'p Pattern>> {
    let mut left: Vec<_> = tensors.iter().collect();
    let mut missing = Vec::new();
    for pattern in patterns {
        let is_of = |&&(name, element, shape): &&ModelTensor<'_>| {
            [name, "*"].contains(&pattern.name) && pattern.has_form(element, shape, words)
        };
        match left.iter().position(is_of) {
            Some(index) => drop(left.swap_remove(index)),
            None if pattern.is_optional => {}
            None => missing.push(pattern),
        }
    }
    left.is_empty().then_some(missing)
}

impl Pattern {
    /// Returns the numbers of a constant input.
    pub fn numbers(&self) -> Option<ConstantNumbers> {
        match self.meaning {
            "size" => Some(ConstantNumbers::WidthHeight),
            "height-width" => Some(ConstantNumbers::HeightWidth),
            "ones" => Some(ConstantNumbers::Ones),
            _ => None,
        }
    }

    /// Returns the dimensions of a constant input for so many pictures of this width and height.
    pub fn shape(&self, batch: usize, [width, height]: [u32; 2]) -> Vec<usize> {
        let length = |dim: &str| match dim {
            "H" => height as usize,
            "W" => width as usize,
            _ => dim.parse().unwrap_or(batch),
        };
        self.dims.split(',').map(length).collect()
    }

    /// True if the first dimension counts rows: rows of several pictures follow each other.
    pub fn has_rows_first(&self) -> bool {
        let first = |dims: &'static str| dims.split(',').next().unwrap_or_default();
        self.dims.split('|').map(first).all(|dim| ["N", "M", "L"].contains(&dim))
    }

    /// Returns whether a tensor of this type and these dimensions has the pattern. Adds the lengths of words.
    fn has_form(&self, element: ElementType, shape: &[i64], words: &mut Words) -> bool {
        let known = words.len();
        let has_form = self.types.contains(&element)
            && self.dims.split('|').any(|dims| has_dims(shape, dims, words));
        if !has_form {
            words.truncate(known);
        }
        has_form
    }
}

fn has_dims(shape: &[i64], dims: &'static str, words: &mut Words) -> bool {
    let mut is_length = |(&length, dim): (&i64, &'static str)| {
        let of_word = |wanted: &str| {
            words.iter().find(|(word, _)| *word == wanted).map(|&(_, length)| length)
        };
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
        let cells = |side: i64, stride: i64| (side + stride - 1) / stride;
        if dim.contains('+') {
            let (of_cell, strides) = dim.split_once('x').unwrap_or(("1", dim));
            let strides = strides.split('+').filter_map(|stride| stride.parse().ok());
            let all = |(h, w)| strides.map(|stride| cells(h, stride) * cells(w, stride)).sum();
            let all = of_word("H").zip(of_word("W")).map(all);
            let of_cell = of_cell.parse().unwrap_or(1);
            return all.is_none_or(|all: i64| all * of_cell == length);
        }
        if let Some((side, stride)) = dim.split_once('/') {
            let side = of_word(side).zip(stride.parse().ok());
            return side.is_none_or(|(side, stride)| cells(side, stride) == length);
        }
        let known = of_word(dim);
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
        let mut sides = vec![("H", 64), ("W", 32)];
        for (cells, fits) in [(40, true), (42, false), (-1, true)] {
            assert_eq!(has_dims(&[cells], "8+16", &mut sides), fits, "{cells}");
        }
        assert!(has_dims(&[120, 3], "3x8+16,H/28", &mut sides));
        assert!(!has_dims(&[120, 2], "3x8+16,H/28", &mut sides));
    }

    /// Ids that no decoder has would hide the name of an output.
    #[test]
    fn ids_are_those_of_decoders() {
        let patterns = all().iter().flat_map(|it| &it.outputs);
        let ids = |it: &Pattern| [Some(it.meaning), it.logits.map(|(id, _)| id)];
        for id in patterns.flat_map(ids).flatten().filter(|id| !id.is_empty()) {
            assert!(crate::decoder::is_known(id), "{id}");
        }
    }
}
