// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the text of a description to a [`Description`].
//!
//! In: any text. Out: a description whose parts fit each other, or an error with the line. The time is in proportion
//! to the length of the text.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrayvec::ArrayVec;

use super::error::Quoted;
use super::sections::{Entry, Keys, Parsed, Sections, all_sections, take_section};
use super::shape::{CellOrder, Count, Pattern};
use super::{
    AnchorRule, BoxFields, ColumnRule, Description, DescriptionError, FieldRule, Levels,
    ScoreFields, TensorNames, TensorRule,
};
use crate::decoder::layout::{
    Activation, Axes, BoxFormat, BoxRule, BoxTransform, ColumnKind, Combination, MAX_BINS,
    MAX_COLUMN_COMPONENTS, MAX_COLUMNS, MAX_GROUPS, MAX_SIZES, PointRule,
};
use crate::decoder::{MAX_CLASSES, MAX_INPUTS, Scores};

/// The kinds of sections, and their headers. The rows of the section `priors` are read before.
const SECTIONS: [(&str, &str); 6] = [
    ("tensor", "[tensor NAME]"),
    ("anchors", "[anchors]"),
    ("score", "[score]"),
    ("box", "[box]"),
    ("column", "[column NAME]"),
    ("priors", "[priors]"),
];

/// The greatest number of names of a tensor.
const MAX_NAMES: usize = 64;

/// The greatest stride, and the greatest number of cells in a row.
const MAX_STRIDE: u32 = 65_535;

impl<'a> Description<'a> {
    /// The description in `text`.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_LENGTH`], or is not in the [format](super).
    pub fn parse(text: &'a str) -> Parsed<Self> {
        let Sections { mut top, mut named, priors } = Sections::split(text)?;
        let last = text.lines().count().max(1);
        let name = top.required("name")?.value;
        let about = top.take("about").map(|entry| entry.value);
        let label = top.take("label").map(|entry| entry.value);
        let values = top.word(
            "values",
            Scores::Probabilities,
            &[
                ("probabilities", Scores::Probabilities),
                ("model", Scores::OfTheModel),
                ("any", Scores::Unbounded),
            ],
        )?;
        top.finish(&["name", "about", "label", "values"])?;
        let is_known = |keys: &&Keys<'_>| SECTIONS.iter().any(|(kind, _)| *kind == keys.kind);
        if let Some(other) = named.iter().find(|keys| !is_known(keys)) {
            let expected = SECTIONS.map(|(_, header)| header).join(", ");
            return Err(DescriptionError::expected(other.line, "section", &expected, other.kind));
        }

        let none = || Keys { line: last, kind: "anchors", name: "", entries: Vec::new() };
        let mut anchor_keys = take_section(&mut named, "anchors")?.unwrap_or_else(none);
        let levels = levels(&mut anchor_keys)?;
        let mut tensors: Vec<TensorRule<'a>> = Vec::new();
        let mut tensor_lines = Vec::new();
        for keys in all_sections(&mut named, "tensor") {
            let line = keys.line;
            let tensor = tensor(keys, &levels)?;
            if tensors.iter().any(|other| other.name == tensor.name) {
                let text = format!("a second section [tensor {}]", Quoted(tensor.name));
                return Err(DescriptionError::new(line, text + "; expected one for each name"));
            }
            tensors.push(tensor);
            tensor_lines.push(line);
        }
        let inputs: usize = tensors.iter().map(|tensor| tensor.names.len()).sum();
        if !(1..=MAX_INPUTS).contains(&inputs) {
            let text = format!("expected 1 to {MAX_INPUTS} tensors, got {inputs}");
            return Err(DescriptionError::new(last, text));
        }
        let mut fields = Fields { tensors: &tensors, used: vec![false; tensors.len()] };

        let section = |named: &mut Vec<Keys<'a>>, kind| {
            let missing =
                || DescriptionError::new(last, format!("the file needs a section [{kind}]"));
            take_section(named, kind)?.ok_or_else(missing)
        };
        let mut keys = section(&mut named, "box")?;
        let (boxes, box_line) = (boxes(&mut keys, &mut fields, &levels)?, keys.line);
        keys.finish(&[
            "box",
            "format",
            "axes",
            "transform",
            "bins",
            "variances",
            "unit",
            "angle",
            "angle-factor",
        ])?;
        let line = anchor_keys.line;
        let anchors = anchors(&mut anchor_keys, levels, &mut fields)?;
        anchor_keys.finish(&[
            "strides", "cells", "rounding", "offset", "per-cell", "order", "sizes", "priors",
            "count",
        ])?;
        let references = usize::from(anchors.levels != Levels::None)
            + usize::from(anchors.priors.is_some())
            + usize::from(priors.is_some());
        if references > 1 {
            let text = "expected one of strides, cells, priors and a section [priors], got several";
            return Err(DescriptionError::new(line, text));
        }
        if references == 0 && boxes.rule.format == BoxFormat::Distances {
            let text =
                "format: distances need anchors; expected strides, cells or priors in [anchors]";
            return Err(DescriptionError::new(box_line, text));
        }

        let mut keys = section(&mut named, "score")?;
        let score = score(&mut keys, &mut fields)?;
        keys.finish(&[
            "scores",
            "class",
            "objectness",
            "combine",
            "activation",
            "background",
            "first-class",
        ])?;

        let mut columns: Vec<ColumnRule<'a>> = Vec::new();
        for mut keys in all_sections(&mut named, "column") {
            let column = column(&mut keys, &mut fields, references > 0)?;
            let line = keys.line;
            keys.finish(&["numbers", "count", "kind", "relative", "unit"])?;
            columns.push(column);
            let components: usize = columns.iter().map(|column| column.components).sum();
            if columns.len() > MAX_COLUMNS || components > MAX_COLUMN_COMPONENTS {
                let text = format!(
                    "expected at most {MAX_COLUMNS} columns with {MAX_COLUMN_COMPONENTS} numbers together"
                );
                return Err(DescriptionError::new(line, text));
            }
        }
        if let Some(unused) = fields.used.iter().position(|used| !used) {
            let name = Quoted(tensors[unused].name);
            let text = format!("tensor {name} is in no field; remove its section, or use it");
            return Err(DescriptionError::new(tensor_lines[unused], text));
        }
        Ok(Self { name, about, label, values, tensors, anchors, score, boxes, columns, priors })
    }
}

/// The grids of the section `anchors`.
fn levels(keys: &mut Keys<'_>) -> Parsed<Levels> {
    let strides = keys.whole_numbers("strides", 1..=MAX_STRIDE)?;
    let cells = keys.whole_numbers("cells", 1..=MAX_STRIDE)?;
    for (entry, numbers) in strides.iter().chain(&cells) {
        if !numbers.is_sorted() && !numbers.iter().rev().is_sorted() {
            return Err(entry.error("numbers in ascending or descending order, as the levels"));
        }
    }
    match (strides, cells) {
        (None, None) => Ok(Levels::None),
        (Some((_, strides)), None) => Ok(Levels::Strides(strides)),
        (None, Some((_, cells))) => Ok(Levels::Cells(cells)),
        (Some(_), Some((entry, _))) => Err(entry.error("strides or cells, not both")),
    }
}

fn tensor<'a>(mut keys: Keys<'a>, levels: &Levels) -> Parsed<TensorRule<'a>> {
    let name = keys.name;
    let shape = keys.required("shape")?;
    let mut shapes = Vec::new();
    for text in shape.value.split(" or ").take(MAX_SIZES) {
        shapes.push(Pattern::parse(text).map_err(|expected| shape.error(expected))?);
    }
    let per_level = keys.is_yes("per-level")?;
    let has_grid = *levels != Levels::None;
    if per_level && !has_grid {
        let reason = "per-level: expected strides or cells in [anchors]";
        return Err(DescriptionError::new(keys.line, reason));
    }
    let is_of_level = per_level || (has_grid && levels.groups() == 1);
    if !is_of_level && shapes.iter().any(|shape| shape.cell_order().is_some()) {
        return Err(shape.error("N, or per-level = yes for H and W"));
    }
    let count = if per_level { levels.groups() } else { 1 };
    let mut names = vec![TensorNames::default(); count];
    if let Some(entry) = keys.take("ids") {
        for (level, ids) in name_list(entry, levels, count)?.into_iter().enumerate() {
            names[level].ids = ids;
        }
    }
    if let Some(entry) = keys.take("names") {
        for (level, list) in name_list(entry, levels, count)?.into_iter().enumerate() {
            names[level].names = list;
        }
    }
    if let Some((entry, indices)) = keys.whole_numbers::<MAX_GROUPS>("index", 0..=255)? {
        if indices.len() != count {
            return Err(entry.error(&format!("{count} numbers, one for each tensor")));
        }
        for (of_level, index) in names.iter_mut().zip(indices) {
            of_level.index = Some(index as usize);
        }
    }
    keys.finish(&["ids", "names", "shape", "index", "per-level"])?;
    Ok(TensorRule { name, shapes, per_level, names })
}

/// Names separated by commas, for each of `count` tensors. Those of several tensors contain `{stride}`, or are
/// lists.
fn name_list<'a>(
    entry: Entry<'a>,
    levels: &Levels,
    count: usize,
) -> Parsed<Vec<Vec<Cow<'a, str>>>> {
    let mut lists = vec![Vec::new(); count];
    for (index, name) in entry.value.split(',').map(str::trim).enumerate() {
        if index >= MAX_NAMES || name.is_empty() {
            return Err(entry.error(&format!("1 to {MAX_NAMES} names separated by commas")));
        }
        match levels {
            Levels::Strides(strides) if count > 1 && name.contains("{stride}") => {
                for (list, stride) in lists.iter_mut().zip(strides) {
                    list.push(Cow::Owned(name.replace("{stride}", &stride.to_string())));
                }
            }
            _ => {
                // One more than are expected is enough to find that there are too many.
                let words: Vec<&str> = match count {
                    1 => vec![name],
                    _ => name.split_whitespace().take(count + 1).collect(),
                };
                if words.len() != count {
                    let expected = format!("names with {{stride}}, or lists of {count} names");
                    return Err(entry.error(&expected));
                }
                for (list, word) in lists.iter_mut().zip(words) {
                    list.push(Cow::Borrowed(word));
                }
            }
        }
    }
    Ok(lists)
}

/// The tensors that fields can be of.
struct Fields<'t, 'a> {
    tensors: &'t [TensorRule<'a>],
    used: Vec<bool>,
}

impl Fields<'_, '_> {
    /// The field of `key`, with `components` numbers of an anchor, or of the image.
    fn of(
        &mut self,
        keys: &mut Keys<'_>,
        key: &str,
        components: impl FnOnce(&TensorRule<'_>) -> Count,
    ) -> Parsed<Option<FieldRule>> {
        let Some(entry) = keys.take(key) else { return Ok(None) };
        let mut words = entry.value.splitn(2, char::is_whitespace);
        let name = words.next().unwrap_or_default();
        let Some(tensor) = self.tensors.iter().position(|tensor| tensor.name == name) else {
            return Err(entry.error("the name of a section [tensor NAME], and a column"));
        };
        let column = match words.next() {
            None => Count::default(),
            Some(text) => Count::parse(text.trim())
                .ok_or_else(|| entry.error("a column such as 4, C or C+32 after the tensor"))?,
        };
        self.used[tensor] = true;
        let rule = &self.tensors[tensor];
        let components = components(rule);
        for shape in &rule.shapes {
            let numbers = shape.numbers();
            let needs_classes = column.has_classes || components.has_classes;
            // Both sides are linear in the number of classes.
            let is_inside = |classes| {
                column.of(classes).saturating_add(components.of(classes)) <= numbers.of(classes)
            };
            if (needs_classes && !numbers.has_classes) || !is_inside(1) || !is_inside(MAX_CLASSES) {
                return Err(entry.error(&format!(
                    "{} from column {} on to be within the tensor's shape {shape}",
                    Numbers(components),
                    Numbers(column),
                )));
            }
        }
        Ok(Some(FieldRule { tensor, column }))
    }

    /// The same of a field of each anchor.
    fn of_anchors(
        &mut self,
        keys: &mut Keys<'_>,
        key: &str,
        components: impl FnOnce(&TensorRule<'_>) -> Count,
    ) -> Parsed<Option<FieldRule>> {
        let entry = keys.peek(key);
        let field = self.of(keys, key, components)?;
        let has_anchors =
            |field: FieldRule| self.tensors[field.tensor].shapes.iter().all(Pattern::has_anchors);
        match (field, entry) {
            (Some(field), Some(entry)) if !has_anchors(field) => {
                return Err(entry.error("a tensor whose shape has N, or H and W"));
            }
            _ => {}
        }
        Ok(field)
    }
}

fn constant(constant: usize) -> Count {
    Count { constant, has_classes: false }
}

/// A number of columns in a message.
struct Numbers(Count);

impl std::fmt::Display for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Count { constant, has_classes: false } => write!(f, "{constant}"),
            Count { constant: 0, has_classes: true } => f.write_str("C"),
            Count { constant, has_classes: true } => write!(f, "{constant}+C"),
        }
    }
}

fn missing(keys: &Keys<'_>, key: &str) -> DescriptionError {
    DescriptionError::new(keys.line, format!("{} needs {key} = ...", keys.title()))
}

fn boxes(keys: &mut Keys<'_>, fields: &mut Fields<'_, '_>, levels: &Levels) -> Parsed<BoxFields> {
    let formats = [BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square, BoxFormat::Distances]
        .map(|format| (format.name(), format));
    let format = keys.word("format", BoxFormat::Corners, &formats)?;
    let axes = keys.word("axes", Axes::Xy, &[("xy", Axes::Xy), ("yx", Axes::Yx)])?;
    let transform_line = keys.peek("transform");
    let transform = keys.word(
        "transform",
        BoxTransform::None,
        &[
            ("none", BoxTransform::None),
            ("exp", BoxTransform::Exp),
            ("sigmoid", BoxTransform::Sigmoid),
            ("expectation", BoxTransform::Expectation),
        ],
    )?;
    let bins_line = keys.peek("bins");
    let bins = keys.whole_number("bins", 2..=MAX_BINS as u32)?.map(|bins| bins as usize);
    match (transform_line, bins_line) {
        (Some(entry), None) if transform == BoxTransform::Expectation => {
            return Err(entry.error("bins with expectation"));
        }
        (_, Some(entry)) if transform != BoxTransform::Expectation => {
            return Err(entry.error("transform = expectation"));
        }
        _ => {}
    }
    let mut rule = BoxRule { axes, transform, bins: bins.unwrap_or(1), ..BoxRule::decoded(format) };
    if let Some(entry) = keys.take("variances") {
        let mut words = entry.value.split_whitespace();
        let mut number = || words.next()?.parse().ok().filter(|number: &f32| number.is_normal());
        let numbers = number().and_then(|of_positions| Some([of_positions, number()?]));
        rule.variances = numbers.filter(|_| words.next().is_none()).ok_or_else(|| {
            entry.error("two numbers separated by a space, for positions and for sizes")
        })?;
    }
    let unit = keys.peek("unit");
    let normalized = keys.word("unit", false, &[("pixels", false), ("normalized", true)])?;
    match (levels, unit) {
        (Levels::Strides(_), Some(entry)) if normalized => {
            return Err(entry.error("pixels, the unit of strides"));
        }
        (Levels::Cells(_), _) if !normalized => {
            return Err(DescriptionError::new(
                keys.line,
                "section [box] needs unit = normalized with cells",
            ));
        }
        _ => {}
    }
    let angle_line = keys.peek("angle");
    let angle = fields.of_anchors(keys, "angle", |_| constant(1))?;
    match angle_line {
        Some(entry) if format != BoxFormat::Center => {
            return Err(entry.error("format = center with an angle"));
        }
        _ => {}
    }
    if let Some(entry) = keys.take("angle-factor") {
        let number = entry.value.parse().ok().filter(|number: &f32| number.is_normal());
        rule.angle_factor = number
            .filter(|_| angle.is_some())
            .ok_or_else(|| entry.error("a number other than 0, with an angle"))?;
    }
    let components = rule.components();
    let field = fields.of_anchors(keys, "box", |_| constant(components))?;
    Ok(BoxFields { field: field.ok_or_else(|| missing(keys, "box"))?, angle, rule, normalized })
}

fn anchors(keys: &mut Keys<'_>, levels: Levels, fields: &mut Fields<'_, '_>) -> Parsed<AnchorRule> {
    let groups = levels.groups();
    let has_grid = levels != Levels::None;
    // Each of these keys is about cells of a grid.
    let of_cells = ["rounding", "offset", "per-cell", "order", "sizes"];
    let entry = keys.entries.iter().find(|entry| !has_grid && of_cells.contains(&entry.key));
    if let Some(entry) = entry {
        return Err(entry.error("strides or cells in the same section"));
    }
    let rounds_up = keys.word("rounding", false, &[("down", false), ("up", true)])?;
    let offset = match keys.take("offset") {
        None => 0.0,
        Some(entry) => {
            let number = entry.value.parse().ok().filter(|number| (0.0..=1.0).contains(number));
            number.ok_or_else(|| entry.error("a number from 0 to 1"))?
        }
    };
    let per_cell = keys.whole_numbers::<MAX_GROUPS>("per-cell", 1..=256)?;
    let sizes =
        keys.take("sizes").map(|entry| sizes(entry, &levels)).transpose()?.unwrap_or_default();
    let per_cell: ArrayVec<usize, MAX_GROUPS> = match per_cell {
        Some((entry, _)) if !sizes.is_empty() => {
            return Err(entry.error("per-cell or sizes, not both"));
        }
        Some((entry, numbers)) => match numbers.as_slice() {
            [number] => (0..groups).map(|_| *number as usize).collect(),
            numbers if numbers.len() == groups => {
                numbers.iter().map(|number| *number as usize).collect()
            }
            _ => return Err(entry.error(&format!("one number, or {groups}, one for each level"))),
        },
        None if sizes.is_empty() => (0..groups).map(|_| 1).collect(),
        None => sizes.iter().map(ArrayVec::len).collect(),
    };
    let order = keys.peek("order");
    let mut by_cell = keys.word("order", true, &[("cell", true), ("anchor", false)])?;
    for shape in fields.tensors.iter().flat_map(|tensor| &tensor.shapes) {
        let Some(of_shape) = shape.cell_order() else { continue };
        if !shape.has_per_cell() {
            if per_cell.iter().any(|&number| number != 1) {
                let reason = format!("shape {shape}: expected A for several anchors of a cell");
                return Err(DescriptionError::new(keys.line, reason));
            }
            continue;
        }
        let of_shape = of_shape == CellOrder::CellFirst;
        if let (Some(entry), true) = (order, of_shape != by_cell) {
            return Err(entry.error("the order of the tensors' shapes"));
        }
        by_cell = of_shape;
    }
    let priors = fields.of_anchors(keys, "priors", |_| constant(4))?;
    let count = fields.of(keys, "count", |_| constant(1))?;
    if count.is_some_and(|count| fields.tensors[count.tensor].per_level) {
        return Err(DescriptionError::new(
            keys.line,
            "count: expected one tensor, not one for each level",
        ));
    }
    Ok(AnchorRule { levels, rounds_up, offset, per_cell, by_cell, sizes, priors, count })
}

/// The sizes of a cell's anchors.
type Sizes = ArrayVec<[f32; 2], MAX_SIZES>;

/// The sizes of the anchors of each level.
fn sizes(entry: Entry<'_>, of: &Levels) -> Parsed<ArrayVec<Sizes, MAX_GROUPS>> {
    let groups = of.groups();
    let error = || {
        entry.error(&format!(
            "1 to {MAX_SIZES} sizes such as 10x13 for each of {groups} levels, separated by commas"
        ))
    };
    let side = |text: &str| text.parse().ok().filter(|side: &f32| side.is_normal() && *side > 0.0);
    let mut levels = ArrayVec::new();
    for level in entry.value.split(',') {
        let mut sizes = ArrayVec::new();
        for word in level.split_whitespace() {
            let (width, height) = word.split_once('x').unwrap_or((word, word));
            let size = side(width).zip(side(height)).ok_or_else(error)?;
            sizes.try_push([size.0, size.1]).map_err(|_| error())?;
        }
        if sizes.is_empty() {
            return Err(error());
        }
        levels.try_push(sizes).map_err(|_| error())?;
    }
    if levels.len() != groups {
        return Err(error());
    }
    if is_reversed(of, &levels) {
        return Err(entry.error("larger sizes for levels with larger cells"));
    }
    Ok(levels)
}

/// Whether the anchors of the first level are smaller than those of the last, although its cells are larger, or the
/// other way round.
fn is_reversed(levels: &Levels, sizes: &[Sizes]) -> bool {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return false };
    let area = |sizes: &Sizes| {
        let sum: f32 = sizes.iter().map(|[width, height]| width * height).sum();
        sum / sizes.len() as f32
    };
    let cells = match levels {
        Levels::None => None,
        Levels::Strides(strides) => strides.last().partial_cmp(&strides.first()),
        Levels::Cells(cells) => cells.first().partial_cmp(&cells.last()),
    };
    let order = area(last).partial_cmp(&area(first));
    matches!(
        (cells, order),
        (Some(Ordering::Less), Some(Ordering::Greater))
            | (Some(Ordering::Greater), Some(Ordering::Less))
    )
}

fn score(keys: &mut Keys<'_>, fields: &mut Fields<'_, '_>) -> Parsed<ScoreFields> {
    let combination = keys.word(
        "combine",
        Combination::Product,
        &[("product", Combination::Product), ("square-root", Combination::SquareRoot)],
    )?;
    let activations = [Activation::None, Activation::Sigmoid, Activation::Softmax]
        .map(|activation| (activation.name(), activation));
    let activation = keys.word("activation", Activation::None, &activations)?;
    let background = keys.is_yes("background")?;
    let first_class = keys.whole_number("first-class", 0..=255)?.unwrap_or(0);
    let class_entry = keys.peek("class");
    let class = fields.of_anchors(keys, "class", |_| constant(1))?;
    if let (Some(entry), true) = (class_entry, background) {
        return Err(entry.error("no background where the class has a field"));
    }
    let scores_entry = keys.peek("scores");
    let scores = fields.of_anchors(keys, "scores", |tensor| {
        let has_classes = tensor.shapes.iter().any(|shape| shape.numbers().has_classes);
        // `C` includes the background.
        match has_classes && class.is_none() {
            true => Count { constant: 0, has_classes: true },
            false => constant(1 + usize::from(background)),
        }
    })?;
    let scores = scores.ok_or_else(|| missing(keys, "scores"))?;
    let shapes = &fields.tensors[scores.tensor].shapes;
    let has_classes = |shape: &Pattern| shape.numbers().has_classes;
    if let (Some(entry), false) =
        (scores_entry, shapes.iter().all(|shape| has_classes(shape) == has_classes(&shapes[0])))
    {
        return Err(entry.error("C in every shape of the tensor, or in none"));
    }
    let objectness = fields.of_anchors(keys, "objectness", |_| constant(1))?;
    Ok(ScoreFields { scores, class, objectness, combination, activation, background, first_class })
}

fn column<'a>(
    keys: &mut Keys<'a>,
    fields: &mut Fields<'_, '_>,
    has_reference: bool,
) -> Parsed<ColumnRule<'a>> {
    let count = keys.whole_number("count", 1..=MAX_COLUMN_COMPONENTS as u32)?;
    let components = count.ok_or_else(|| missing(keys, "count"))? as usize;
    let field = fields.of_anchors(keys, "numbers", |_| constant(components))?;
    let field = field.ok_or_else(|| missing(keys, "numbers"))?;
    let kind_line = keys.peek("kind");
    let words = [("numbers", 0), ("points", 2), ("points-with-visibility", 3)];
    let of_point = keys.word("kind", 0, &words)?;
    let relative_line = keys.take("relative");
    let unit_line = keys.peek("unit");
    let normalized = keys.word("unit", false, &[("pixels", false), ("normalized", true)])?;
    if of_point == 0 {
        return match relative_line.or(unit_line) {
            Some(entry) => Err(entry.error("kind = points in the same section")),
            None => {
                Ok(ColumnRule { name: keys.name, field, components, kind: ColumnKind::Numbers })
            }
        };
    }
    if let Some(entry) = kind_line.filter(|_| !components.is_multiple_of(of_point)) {
        return Err(entry.error(&format!("a count that is a multiple of {of_point}")));
    }
    let relative = relative_line
        .map(|entry| match entry.value.parse().ok().filter(|number: &f32| number.is_normal()) {
            Some(_) if !has_reference => Err(entry.error("strides, cells or priors in [anchors]")),
            Some(factor) => Ok(factor),
            None => Err(entry.error("a number other than 0")),
        })
        .transpose()?;
    if let Some(entry) = unit_line.filter(|_| relative.is_some()) {
        return Err(entry.error("relative points without it: they have the unit of the boxes"));
    }
    let rule = PointRule { components: of_point, relative, normalized };
    Ok(ColumnRule { name: keys.name, field, components, kind: ColumnKind::Points(rule) })
}
