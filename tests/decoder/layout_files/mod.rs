// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout files that users could write, and decoders of grids. The expected results are formulas in
//! this file.

mod grids;
mod heads;
mod matching;
mod values;

use nmsfilter_core::decoder::layout::{Activation, Reference as BoxReference};
use nmsfilter_core::decoder::{
    self, BoxFormat, Choice, ChoiceError, Coordinates, Decoder, LayoutError, LayoutProblem,
    Options, Reason,
};
use nmsfilter_core::engine::{
    ClassThresholds, Detection, Engine, ImagePlace, Job, Method, Params, Reference,
};
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, TensorView};

use super::support::engines;

use crate::with_zeros;

/// Random numbers between `-range` and `range`.
fn random(random: &mut fastrand::Rng, count: usize, range: f32) -> Vec<f32> {
    (0..count).map(|_| (random.f32() * 2.0 - 1.0) * range).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn model_size(side: f32) -> Options {
    Options { model_size: Some([side; 2]), ..Options::default() }
}

/// Returns all candidates whose score is at least `threshold`, in the order of anchors.
fn decoded(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
    threshold: f32,
) -> Vec<Detection> {
    let layout = decoder::choose(tensors, Some(decoder), options).unwrap().layout;
    let params = Params {
        thresholds: ClassThresholds::uniform(threshold),
        method: Method::None,
        ..Params::default()
    };
    let mut engine = Reference::default();
    let mut found = engine
        .run(Job::new(tensors, &layout, &params, &engines::places(&layout)))
        .unwrap()
        .group(0)
        .survivors
        .to_vec();
    found.sort_by_key(|detection| detection.anchor);
    found
}

/// An expected candidate: anchor, class, score and corners.
type Expected = (usize, usize, f64, [f64; 4]);

fn compare(found: &[Detection], expected: &[Expected]) {
    assert!(expected.len() > 20, "{} candidates", expected.len());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let (anchor, class, score, corners) = expected;
        let what = format!("{found:?}, {expected:?}");
        assert_eq!((found.anchor as usize, found.class as usize), (*anchor, *class), "{what}");
        assert!((f64::from(found.score) - score).abs() < 1e-5, "{what}");
        let sides = [found.x1, found.y1, found.x2, found.y2];
        let near = |(a, b): (f32, &f64)| (f64::from(a) - b).abs() < 0.01;
        assert!(sides.into_iter().zip(corners).all(near), "{what}");
    }
}

/// Returns the index of the greatest number, and the number.
fn best(numbers: impl Iterator<Item = f64>) -> (usize, f64) {
    numbers.enumerate().fold((0, f64::MIN), |best, new| if new.1 > best.1 { new } else { best })
}

fn center(x: f64, y: f64, width: f64, height: f64) -> [f64; 4] {
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

/// Returns the layout that the decoder `name` chooses for tensors of zeros.
fn choose(
    tensors: &[(&str, &[usize])],
    name: &str,
    options: Options,
) -> Result<Choice, ChoiceError> {
    with_zeros(tensors, |tensors| decoder::choose(tensors, decoder::by_name(name), options))
}

fn message(tensors: &[(&str, &[usize])], name: &str, options: Options) -> String {
    choose(tensors, name, options).err().expect("they do not fit").to_string()
}
