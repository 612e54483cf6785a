// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzes descriptions of layouts.
//!
//! In: the text of one of the crate's families, in which lines are removed, repeated or moved, or
//! words are replaced. The text must be a valid description, or give an error that names one of its
//! lines. Tensors with the shapes of a valid description must be decoded alike by all engines.

use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

use crate::Failure;
use crate::bytes::{Bytes, SPECIAL};
use crate::counts::Counts;

const WORDS: [&str; 51] = [
    "yes",
    "no",
    "0",
    "1",
    "2",
    "4",
    "8 16 32",
    "-1",
    "4294967296",
    "1e30",
    "nan",
    "N",
    "C",
    "N,4",
    "N,5+C",
    "4+C,N",
    "H,W,C",
    "A,H,W,5+C",
    "C+32",
    "corners",
    "center",
    "square",
    "distances",
    "exp",
    "sigmoid",
    "sigmoid-exp",
    "expectation",
    "softmax",
    "normalized",
    "pixels",
    "points",
    "points-with-visibility",
    "density",
    "embedding",
    "output",
    "output 4",
    "boxes",
    "scores",
    "up",
    "anchor",
    "0.1 0.2",
    "10x13 16x30, 1 1, 2x2",
    "größe",
    "known-classes",
    "K",
    "M",
    "H,W,M",
    "4+C+3K,N",
    "N,6+M",
    "K,3,N",
    "M,H,W",
];

const KEYS: [&str; 38] = [
    "name",
    "about",
    "label",
    "values",
    "shape",
    "ids",
    "names",
    "index",
    "per-level",
    "strides",
    "cells",
    "rounding",
    "offset",
    "scale-xy",
    "per-cell",
    "order",
    "sizes",
    "priors",
    "count",
    "scores",
    "class",
    "objectness",
    "combine",
    "activation",
    "background",
    "box",
    "format",
    "transform",
    "ignored",
    "bins",
    "angle",
    "kind",
    "relative",
    "shift",
    "visibility",
    "exact",
    "fewer-anchors",
    "prototypes",
];

pub fn drive(
    bytes: &mut Bytes<'_>,
    counts: &mut Counts,
    check: impl FnOnce(
        &mut Bytes<'_>,
        &[TensorView<'_>],
        &decoder::Layout,
        &mut Counts,
    ) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let text = text(bytes);
    counts.one("layouts: texts");
    let decoder = match decoder::from_text(&text) {
        Ok(decoder) => decoder,
        Err(error) => {
            let (line, lines) = (error.line, text.lines().count().max(1));
            return if (1..=lines).contains(&line) {
                Ok(())
            } else {
                Err(Failure(format!("{error} of line {line} of {lines}:\n{text}")))
            };
        }
    };
    counts.one("layouts: descriptions");
    let mut random = bytes.rng();
    let side = bytes.pick(&[32.0, 64.0, 33.0]);
    let (classes, anchors) = (bytes.pick(&[1, 2, 5, 20]), bytes.pick(&[21, 42, 5, 84, 0]));
    let shapes = shapes(&text, side, [anchors, classes]);
    let stores: Vec<Vec<u8>> = shapes
        .iter()
        .map(|shape| {
            let number = |_| {
                let number = match random.u8(..) {
                    0 => *random.choice(&SPECIAL).expect("there are some"),
                    1..100 => random.f32(),
                    _ => random.f32() * 20.0 - 4.0,
                };
                number.to_le_bytes()
            };
            (0..shape.iter().product()).flat_map(number).collect()
        })
        .collect();
    let tensors: Vec<TensorView<'_>> = shapes
        .iter()
        .zip(&stores)
        .filter_map(|(shape, store)| {
            Some(TensorView::new("", ElementType::F32, Shape::new(shape)?, Storage::Host(store)))
        })
        .collect();
    let options = Options { model_size: Some([side; 2]), ..Options::default() };
    match decoder::choose(&tensors, Some(decoder), options) {
        Ok(choice) => {
            counts.one("layouts: read");
            check(bytes, &tensors, &choice.layout, counts)
        }
        Err(_) => Ok(()),
    }
}

/// Returns the text of a family, with changes.
fn text(bytes: &mut Bytes<'_>) -> String {
    let family = bytes.pick(&decoder::texts());
    let mut lines: Vec<String> = bytes.pick(family).lines().map(str::to_owned).collect();
    for _ in 0..bytes.below(5) {
        let index = bytes.below(lines.len());
        match bytes.below(8) {
            0 => drop(lines.remove(index)),
            1 => {
                let line = lines[index].clone();
                let at = bytes.below(lines.len());
                lines.insert(at, line);
            }
            2 => lines.insert(index, format!("{} = {}", bytes.pick(&KEYS), bytes.pick(&WORDS))),
            3 => lines[index] = lines[index].chars().take(bytes.below(8)).collect(),
            4 => lines.swap(index, 0),
            _ => {
                let word = bytes.pick(&WORDS);
                match lines[index].split_once('=') {
                    Some((key, _)) => lines[index] = format!("{key}= {word}"),
                    None => lines[index] = word.to_owned(),
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// Returns shapes of tensors that fit the text, if they can be found line by line.
fn shapes(text: &str, side: f32, [anchors, classes]: [usize; 2]) -> Vec<Vec<usize>> {
    let sections = text.split('[').filter(|section| section.starts_with("tensor"));
    let mut shapes = Vec::new();
    for section in sections {
        let Some(line) = section.lines().find(|line| line.starts_with("shape")) else { continue };
        let Some((_, shape)) = line.split_once('=') else { continue };
        let shape = shape.split(" or ").next().unwrap_or_default();
        let is_per_level = section.contains("per-level = yes");
        let strides: &[f32] = if is_per_level { &[8.0, 16.0, 32.0, 64.0] } else { &[0.0] };
        let has_two = text.contains("per-cell = 2");
        for stride in strides {
            let cells = (side / stride).floor() as usize;
            let anchors =
                if is_per_level { cells * cells * if has_two { 2 } else { 1 } } else { anchors };
            let term = |term: &str| match term.trim() {
                "N" => anchors,
                "C" => classes,
                "A" => 3,
                "H" | "W" if is_per_level => cells.min(64),
                "H" => 16,
                "W" => 24,
                "M" => 8,
                "2K" => 10,
                "3K" => 15,
                number => number.parse::<usize>().unwrap_or(1).min(64),
            };
            let axis = |axis: &str| axis.split('+').map(term).sum::<usize>();
            shapes.push([1].into_iter().chain(shape.split(',').map(axis)).collect());
        }
    }
    shapes
}
