// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognizes models by the signature that their authors' export programs give them.
//!
//! In: the names, element types and dimensions of a model's inputs and outputs. Out: the [`Signature`]s whose names, types
//! and dimensions all of them have, together: usually one or none. One name says nothing: `boxes` is an output of many
//! families. So a model with one name, dimension, type or output more or less has another signature.
//!
//! `signatures.txt` has the signatures, and says what its lines mean.

mod description;
mod parse;

use std::sync::LazyLock;

use crate::geometry::Letterbox;
use crate::tensor::ElementType;

pub use description::{Description, OutputError, SeveralSignatures, describe};

/// The inputs and outputs of a family's models from one exporter, and what is known of these models.
#[derive(Debug)]
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
    /// Facts about the input.
    pub facts: Facts,
    /// True if the model's detections need no suppression.
    pub is_suppressed: bool,
    /// True if the detections are the best pairs of box and class, as many as boxes.
    pub selects_pairs: bool,
}

/// The pattern of an input or output.
#[derive(Debug)]
pub struct Pattern {
    /// Name, type and dimensions, as `signatures.txt` has them.
    pub form: &'static str,
    name: &'static str,
    types: &'static [ElementType],
    dims: &'static str,
    /// True if some models do not have it.
    pub is_optional: bool,
    /// The id of an output's tensor, or the word for a constant input's numbers; empty for none.
    pub meaning: &'static str,
    /// True if the first number of an output's rows is the number of their picture in the batch.
    pub has_images: bool,
    /// For an output of scores: the id if the numbers from this column on are logits.
    pub logits: Option<(&'static str, usize)>,
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
    /// How pixels become numbers; `None` for values from 0 to 1, or of bytes.
    pub normalization: Option<Normalization>,
    /// True if the first channel is blue.
    pub is_bgr: bool,
    /// True if models of the exporter have other normalizations and orders of channels, too.
    pub pixels_vary: bool,
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

/// A dimension of a constant input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// The number of pictures, or dynamic.
    Batch,
    /// The height of the picture, or dynamic.
    Height,
    /// The width of the picture, or dynamic.
    Width,
    /// This length.
    Fixed(i64),
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

/// Returns the signatures that a model has.
pub fn find(inputs: &[ModelTensor<'_>], outputs: &[ModelTensor<'_>]) -> Vec<&'static Signature> {
    find_with(inputs, outputs, |_, _| false)
}

/// Returns the signatures that a model has. `is_in_file` tells whether a constant input that the model does not have is in
/// its file instead, as numbers of this name with these values.
pub fn find_with(
    inputs: &[ModelTensor<'_>],
    outputs: &[ModelTensor<'_>],
    is_in_file: impl Fn(&str, ConstantNumbers) -> bool,
) -> Vec<&'static Signature> {
    all().iter().filter(|signature| signature.is_of(inputs, outputs, &is_in_file)).collect()
}

/// Returns the dimensions and the numbers of an input that some signature has.
pub fn constant((name, element, shape): ModelTensor<'_>) -> Option<(Vec<Dim>, ConstantNumbers)> {
    let inputs = || all().iter().flat_map(|signature| &signature.inputs);
    let is_of = |pattern: &&Pattern| {
        pattern.name == name && pattern.has_form(element, shape, &mut Words::new())
    };
    let (pattern, numbers) = inputs().filter(is_of).find_map(|it| it.numbers().map(|n| (it, n)))?;
    let dim = |text| match text {
        "H" => Dim::Height,
        "W" => Dim::Width,
        _ => str::parse(text).map_or(Dim::Batch, Dim::Fixed),
    };
    Some((pattern.dims.split(',').map(dim).collect(), numbers))
}

impl Signature {
    /// Returns the pattern of an output.
    pub fn output(&self, (name, element, shape): ModelTensor<'_>) -> Option<&Pattern> {
        let of_name = |name: &str| {
            let is_of = |pattern: &&Pattern| {
                pattern.name == name && pattern.has_form(element, shape, &mut Words::new())
            };
            self.outputs.iter().find(is_of)
        };
        of_name(name).or_else(|| of_name("*"))
    }

    /// Returns the id of the tensor for an output.
    pub fn id(&self, output: ModelTensor<'_>) -> Option<&'static str> {
        self.output(output).map(|pattern| pattern.meaning).filter(|id| !id.is_empty())
    }

    fn is_of(
        &self,
        inputs: &[ModelTensor<'_>],
        outputs: &[ModelTensor<'_>],
        is_in_file: &dyn Fn(&str, ConstantNumbers) -> bool,
    ) -> bool {
        let mut words = Words::new();
        let in_file =
            |it: &Pattern| it.numbers().is_some_and(|numbers| is_in_file(it.name, numbers));
        missing(inputs, &self.inputs, &mut words).is_some_and(|inputs| {
            missing(outputs, &self.outputs, &mut words).is_some_and(|outputs| outputs.is_empty())
                && inputs.into_iter().all(in_file)
        })
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

    /// True if the first dimension is that of rows, so that rows of several pictures follow each other.
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

    fn found(inputs: &[ModelTensor<'_>], outputs: &[ModelTensor<'_>]) -> Vec<&'static str> {
        find(inputs, outputs).iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn every_input_and_output_must_be_one_of_the_signature() {
        use ElementType::{F32, I64, U8};
        let images: ModelTensor<'_> = ("images", F32, &[1, 3, 640, 640]);
        let sizes: ModelTensor<'_> = ("orig_target_sizes", I64, &[1, 2]);
        let outputs: [ModelTensor<'_>; 3] =
            [("labels", I64, &[1, 300]), ("boxes", F32, &[1, 300, 4]), ("scores", F32, &[1, 300])];
        assert_eq!(found(&[images, sizes], &outputs), ["rt-detr"]);
        assert_eq!(found(&[images], &outputs), [""; 0]);
        let is_in_file = |name: &str, numbers| {
            (name, numbers) == ("orig_target_sizes", ConstantNumbers::WidthHeight)
        };
        assert_eq!(find_with(&[images], &outputs, is_in_file).len(), 1);
        assert_eq!(found(&[images, sizes, ("other", F32, &[1])], &outputs), [""; 0]);
        assert_eq!(found(&[images, sizes], &outputs[..2]), [""; 0]);
        let others = [outputs[0], outputs[1], ("scores", F32, &[1, 299])];
        assert_eq!(found(&[images, sizes], &others), [""; 0]);
        // Optional ones need not be there, but have their form if they are.
        let rows: [ModelTensor<'_>; 2] =
            [("multiclass_nms3_0.tmp_0", F32, &[-1, 6]), ("multiclass_nms3_0.tmp_2", I64, &[1])];
        let image: ModelTensor<'_> = ("image", F32, &[1, 3, 640, 640]);
        assert_eq!(found(&[image], &rows), ["paddle"]);
        assert_eq!(found(&[image, ("scale_factor", F32, &[1, 2])], &rows), ["paddle"]);
        assert_eq!(found(&[image, ("scale_factor", F32, &[1, 3])], &rows), [""; 0]);
        // An output of any name is the one of its form.
        let damo: [ModelTensor<'_>; 2] =
            [("952", F32, &[1, 8400, 4]), ("output", F32, &[1, 8400, 80])];
        assert_eq!(found(&[images], &damo), ["damo-yolo"]);
        assert_eq!(find(&[images], &damo)[0].id(damo[0]), Some("boxes"));
        let bytes = ("images", U8, &[1, 3, 640, 640][..]);
        assert_eq!(found(&[bytes], &damo), [""; 0]);
    }

    /// A tensor of a model: name, type and dimensions.
    type Owned = (String, ElementType, Vec<i64>);

    /// A model with a pattern of each input and output, of which a word has one length.
    fn model_of(patterns: &[Pattern], alternative: usize) -> Vec<Owned> {
        let length = |dim: &str| -> i64 {
            let side = |word: &str| if word == "H" { 640 } else { 1280 };
            if let Some((word, stride)) = dim.split_once('/') {
                return side(word) / stride.parse::<i64>().unwrap();
            }
            match dim.trim_start_matches('>').trim_end_matches('?') {
                "B" | "OB" => 2,
                "" => -1,
                "H" | "W" => side(dim),
                "N" | "Q" | "M" => 77,
                "A" | "K" | "C" | "D" | "MH" | "MW" => 21,
                cells if cells.contains('+') => {
                    let (of_cell, strides) = cells.split_once('x').unwrap_or(("1", cells));
                    let strides = strides.split('+').map(|it| it.parse::<i64>().unwrap());
                    let all: i64 = strides.map(|stride| (640 / stride) * (1280 / stride)).sum();
                    all * of_cell.parse::<i64>().unwrap()
                }
                least if dim.starts_with('>') => least.parse::<i64>().unwrap() + 1,
                number => number.parse().unwrap(),
            }
        };
        let tensor = |pattern: &Pattern| {
            let all: Vec<&str> = pattern.dims.split('|').collect();
            let dims = all[alternative.min(all.len() - 1)].split(',').map(length);
            (pattern.name.replace('*', "any"), pattern.types[0], dims.collect())
        };
        patterns.iter().map(tensor).collect()
    }

    fn found_of([inputs, outputs]: &[Vec<Owned>; 2]) -> Vec<&'static str> {
        fn views(tensors: &[Owned]) -> Vec<ModelTensor<'_>> {
            tensors.iter().map(|(name, element, dims)| (&**name, *element, &**dims)).collect()
        }
        found(&views(inputs), &views(outputs))
    }

    /// True if a dimension of the pattern can have any length: its word stands nowhere else.
    fn is_free(signature: &Signature, dims: &str, axis: usize) -> bool {
        let word = dims.split(',').nth(axis).unwrap();
        let all = signature.inputs.iter().chain(&signature.outputs);
        let stands = |dims: &str| {
            let parts = dims.split(',').filter(|dim| {
                let with_stride = dim.split_once('/').is_some_and(|(side, _)| side == word);
                let of_cells = dim.contains('+') && ["H", "W"].contains(&word);
                *dim == word || with_stride || of_cells
            });
            parts.count()
        };
        // The alternatives of a pattern are not compared with each other.
        let count: usize = all.map(|it| it.dims.split('|').map(stands).max().unwrap_or(0)).sum();
        let is_word = word.chars().all(|it| it.is_ascii_uppercase());
        word == "?" || word.starts_with('>') || (is_word && count == 1)
    }

    /// Each signature with one name, dimension or type changed, one output more, and one tensor less.
    #[test]
    fn a_model_that_is_nearly_one_of_a_signature_is_unknown() {
        for (signature, alternative) in all().iter().flat_map(|it| [(it, 0), (it, 1)]) {
            // Some have the same inputs and outputs.
            let forms = |it: &Signature| {
                [&it.inputs, &it.outputs].map(|of| of.iter().map(|it| it.form).collect::<Vec<_>>())
            };
            let same = all().iter().filter(|it| forms(it) == forms(signature)).map(|it| it.name);
            let name: &[&str] = &same.collect::<Vec<_>>();
            let patterns = [&signature.inputs, &signature.outputs];
            let whole = patterns.map(|of| model_of(of, alternative));
            assert_eq!(found_of(&whole), name);
            for (side, index) in
                [0, 1].into_iter().flat_map(|side| (0..whole[side].len()).map(move |at| (side, at)))
            {
                let pattern = &patterns[side][index];
                let with = |change: &dyn Fn(&mut Owned)| {
                    let mut model = whole.clone();
                    change(&mut model[side][index]);
                    found_of(&model)
                };
                if pattern.name != "*" {
                    let renamed = with(&|it| it.0.push('0'));
                    assert_eq!(renamed, [""; 0], "{name:?}: {} has another name", pattern.name);
                }
                for element in
                    [ElementType::F32, ElementType::I64, ElementType::U8, ElementType::I8]
                {
                    let taken = with(&|it| it.1 = element);
                    assert_eq!(
                        !taken.is_empty(),
                        pattern.types.contains(&element),
                        "{name:?}: {element:?}"
                    );
                }
                let dims: Vec<&str> = pattern.dims.split('|').collect();
                let dims = dims[alternative.min(dims.len() - 1)];
                for axis in 0..whole[side][index].2.len() {
                    // A side of a few pixels more can have as many cells.
                    let is_side = ["H", "W"].contains(&dims.split(',').nth(axis).unwrap());
                    for more in if is_side { [128, 256] } else { [1, 7] } {
                        let taken = with(&|it| it.2[axis] = it.2[axis].max(0) + more);
                        let can_be = is_free(signature, dims, axis) && !dims.starts_with('?');
                        assert!(
                            taken.is_empty() || taken == name && can_be,
                            "{name:?}: {} {dims}, dimension {axis}",
                            pattern.name
                        );
                    }
                }
                let longer = with(&|it| it.2.push(1));
                assert_eq!(longer, [""; 0], "{name:?}: {} has a further dimension", pattern.name);
                let mut fewer = whole.clone();
                fewer[side].remove(index);
                let expected = if pattern.is_optional { name } else { &[] };
                assert_eq!(found_of(&fewer), expected, "{name:?}: without {}", pattern.name);
                let mut more = whole.clone();
                let copy = more[side][index].clone();
                more[side].push(copy);
                assert_eq!(found_of(&more), [""; 0], "{name:?}: {} twice", pattern.name);
                more[side].last_mut().unwrap().0 = "another".to_owned();
                assert_eq!(found_of(&more), [""; 0], "{name:?}: another {}", pattern.name);
            }
        }
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
