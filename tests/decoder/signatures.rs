// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models that are recognized by all their inputs and outputs together, and those that are nearly so.

use nmsfilter_core::signature::{
    ConstantNumbers, ModelTensor, Pattern, Signature, SignatureError, all, choose, find,
};
use nmsfilter_core::tensor::ElementType;

fn name_of(pattern: &Pattern) -> &'static str {
    pattern.form.split(' ').next().unwrap()
}

fn types_of(pattern: &Pattern) -> &'static [ElementType] {
    use ElementType::{F16, F32, I32, I64, U8};
    match pattern.form.split(' ').nth(1).unwrap() {
        "float" => &[F32, F16],
        "integer" => &[I64, I32],
        "number" => &[F32, F16, I64, I32],
        _ => &[U8],
    }
}

fn dims_of(pattern: &Pattern) -> &'static str {
    pattern.form.split(' ').nth(2).unwrap()
}

fn found(inputs: &[ModelTensor<'_>], outputs: &[ModelTensor<'_>]) -> Vec<&'static str> {
    match choose(inputs, outputs, None, |_, _| false) {
        Ok(found) => found.iter().map(|signature| signature.name).collect(),
        Err(SignatureError::Several(names)) => names,
        Err(error) => panic!("{error}"),
    }
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
    assert_eq!(find(&[images], &outputs, is_in_file).len(), 1);
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
    let damo: [ModelTensor<'_>; 2] = [("952", F32, &[1, 8400, 4]), ("output", F32, &[1, 8400, 80])];
    assert_eq!(found(&[images], &damo), ["damo-yolo"]);
    assert_eq!(find(&[images], &damo, |_, _| false)[0].output(damo[0]).unwrap().meaning, "boxes");
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
        let all: Vec<&str> = dims_of(pattern).split('|').collect();
        let dims = all[alternative.min(all.len() - 1)].split(',').map(length);
        (name_of(pattern).replace('*', "any"), types_of(pattern)[0], dims.collect())
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
    let count: usize = all.map(|it| dims_of(it).split('|').map(stands).max().unwrap_or(0)).sum();
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
            if name_of(pattern) != "*" {
                let renamed = with(&|it| it.0.push('0'));
                assert_eq!(renamed, [""; 0], "{name:?}: {} has another name", name_of(pattern));
            }
            for element in [ElementType::F32, ElementType::I64, ElementType::U8, ElementType::I8] {
                let taken = with(&|it| it.1 = element);
                assert_eq!(
                    !taken.is_empty(),
                    types_of(pattern).contains(&element),
                    "{name:?}: {element:?}"
                );
            }
            let dims: Vec<&str> = dims_of(pattern).split('|').collect();
            let dims = dims[alternative.min(dims.len() - 1)];
            for axis in 0..whole[side][index].2.len() {
                // A side of a few pixels more can have as many cells.
                let is_side = ["H", "W"].contains(&dims.split(',').nth(axis).unwrap());
                for more in if is_side { [128, 256] } else { [1, 7] } {
                    let taken = with(&|it| it.2[axis] = it.2[axis].max(0) + more);
                    let can_be = is_free(signature, dims, axis) && !dims.starts_with('?');
                    // Of several none is taken.
                    let is_open = taken != name && taken.len() > 1;
                    assert!(
                        taken.is_empty() || is_open || taken == name && can_be,
                        "{name:?}: {} {dims}, dimension {axis}",
                        name_of(pattern)
                    );
                }
            }
            let longer = with(&|it| it.2.push(1));
            assert_eq!(longer, [""; 0], "{name:?}: {} has a further dimension", name_of(pattern));
            let mut fewer = whole.clone();
            fewer[side].remove(index);
            let expected = if pattern.is_optional { name } else { &[] };
            assert_eq!(found_of(&fewer), expected, "{name:?}: without {}", name_of(pattern));
            let mut more = whole.clone();
            let copy = more[side][index].clone();
            more[side].push(copy);
            assert_eq!(found_of(&more), [""; 0], "{name:?}: {} twice", name_of(pattern));
            more[side].last_mut().unwrap().0 = "another".to_owned();
            assert_eq!(found_of(&more), [""; 0], "{name:?}: another {}", name_of(pattern));
        }
    }
}
