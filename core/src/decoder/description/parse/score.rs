// SPDX-License-Identifier: MIT OR Apache-2.0
//! The section `score`.

use super::super::ScoreFields;
use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Pattern};
use super::fields::Fields;
use crate::decoder::layout::{Activation, Background, Combination, ScoreRule};

/// The section. `has_cells` is whether each anchor is a cell of a grid.
pub(super) fn read(
    mut keys: Keys<'_>,
    fields: &mut Fields<'_, '_>,
    has_cells: bool,
) -> Parsed<ScoreFields> {
    let keys = &mut keys;
    let combinations = Combination::ALL.map(|combination| (combination.name(), combination));
    let combination = keys.word("combine", Combination::Product, &combinations)?;
    let activations = Activation::ALL.map(|activation| (activation.name(), activation));
    let activation = keys.word("activation", Activation::None, &activations)?;
    let [none, first, last] = Background::ALL.map(Some);
    let background = keys.word(
        "background",
        none,
        &[
            ("none", none),
            ("first", first),
            ("last", last),
            ("auto", None),
            // The first versions of the format had only these.
            ("yes", first),
            ("no", none),
        ],
    )?;
    let peaks = keys.is_yes("peaks")?;
    let expected = "no peaks without strides or cells, or with several anchors of a cell";
    keys.refuse("peaks", peaks && !has_cells, expected)?;
    let first_class = keys.whole_number("first-class", 0..=255)?.unwrap_or(0);
    let class = fields.anchor_field(keys, "class", |_| Count::constant(1))?;
    keys.refuse("class", background != none, "no background where the class has a field")?;
    let scores = fields.anchor_field(keys, "scores", |tensor| {
        let has_classes = tensor.shapes.iter().any(|shape| shape.numbers().has_classes);
        // `C` includes the background.
        match has_classes && class.is_none() {
            true => Count { has_classes: true, ..Count::default() },
            false => Count::constant(1 + background.map_or(0, Background::columns)),
        }
    })?;
    let scores = scores.ok_or_else(|| keys.missing("scores"))?;
    let shapes = &fields.tensors[scores.tensor].shapes;
    let has_classes = |shape: &Pattern| shape.numbers().has_classes;
    let is_other = |shape: &Pattern| has_classes(shape) != has_classes(&shapes[0]);
    let is_mixed = shapes.iter().any(is_other);
    keys.refuse("scores", is_mixed, "C in every shape of the tensor, or in none")?;
    let objectness = fields.anchor_field(keys, "objectness", |_| Count::constant(1))?;
    keys.finish("scores, class, objectness, combine, peaks, activation, background, first-class")?;
    let rule =
        ScoreRule { first_class, activation, combination, peaks, ..ScoreRule::of_classes(0) };
    Ok(ScoreFields { scores, class, objectness, background, rule })
}
