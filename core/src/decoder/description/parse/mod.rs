// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the text of a description to a [`Description`].
//!
//! In: any text. Out: a description whose parts fit each other, or an error with the line. The time is in proportion
//! to the length of the text. There is one module for each kind of section.

mod anchors;
mod boxes;
mod columns;
mod coverage;
mod fields;
mod score;
mod tensors;

pub(super) use self::coverage::Columns;
use self::fields::Fields;
use super::error::Quoted;
use super::levels::{STRIDES, USUAL};
use super::sections::{Keys, Parsed, Sections, all_sections, take_section};
use super::shape::{Open, Pattern};
use super::{AnchorRule, BoxFields, Description, DescriptionError, Levels, TensorRule};
use crate::decoder::Scores;
use crate::decoder::layout::BoxFormat;

/// The kinds of sections, and their headers. The rows of the section `priors` are read before.
const SECTIONS: [(&str, &str); 6] = [
    ("tensor", "[tensor NAME]"),
    ("anchors", "[anchors]"),
    ("score", "[score]"),
    ("box", "[box]"),
    ("column", "[column NAME]"),
    ("priors", "[priors]"),
];

impl<'a> Description<'a> {
    /// The description in `text`.
    ///
    /// # Errors
    /// If the text is longer than [`MAX_LENGTH`](super::MAX_LENGTH), or is not in the [format](super).
    pub fn parse(text: &'a str) -> Parsed<Self> {
        Self::with_strides(text, &STRIDES[USUAL])
    }

    /// The description in `text`, where `strides = any` are these, in ascending order.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse), and if the tensors of these strides are more than
    /// [`MAX_INPUTS`](crate::decoder::MAX_INPUTS).
    pub(in crate::decoder) fn with_strides(text: &'a str, strides: &[u32]) -> Parsed<Self> {
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
        top.finish("name, about, label, values")?;
        let is_known = |keys: &&Keys<'_>| SECTIONS.iter().any(|(kind, _)| *kind == keys.kind);
        if let Some(other) = named.iter().find(|keys| !is_known(keys)) {
            let expected = SECTIONS.map(|(_, header)| header).join(", ");
            return Err(DescriptionError::expected(other.line, "section", &expected, other.kind));
        }

        let empty = || Keys::new(last, "anchors", "");
        let mut anchor_keys = take_section(&mut named, "anchors")?.unwrap_or_else(empty);
        let has_any_strides =
            anchor_keys.peek("strides").is_some_and(|entry| entry.value == anchors::ANY);
        let levels = anchors::levels(&mut anchor_keys, strides)?;
        let tensors = tensors::read(&mut named, (&levels, has_any_strides), last)?;
        let used = vec![false; tensors.len()];
        let has_background = |keys: &Keys<'_>| {
            let value = keys.peek("background").map_or("", |entry| entry.value);
            keys.kind == "score" && ["first", "last", "yes"].contains(&value)
        };
        let least_classes = 1 + usize::from(named.iter().any(has_background));
        let columns = tensors.iter().map(|tensor| tensor.ignored.clone()).collect();
        let mut fields = Fields { tensors: &tensors, used, columns, least_classes };

        let required = |named: &mut Vec<Keys<'a>>, kind| {
            let missing =
                || DescriptionError::new(last, format!("the file needs a section [{kind}]"));
            take_section(named, kind)?.ok_or_else(missing)
        };
        let keys = required(&mut named, "box")?;
        let lines = [anchor_keys.line, keys.line];
        let boxes = boxes::read(keys, &mut fields, &levels)?;
        let anchors = anchors::read(anchor_keys, levels, &mut fields)?;
        let has_reference = check_reference(&anchors, priors.is_some(), &boxes, lines)?;
        let has_cells =
            anchors.levels != Levels::None && anchors.per_cell.iter().all(|&number| number == 1);
        let score = score::read(required(&mut named, "score")?, &mut fields, has_cells)?;
        let columns =
            columns::read(all_sections(&mut named, "column"), &mut fields, has_reference)?;
        // Only prototypes tell how many coefficients there are.
        let is_mask = |shape: &Pattern| shape.numbers().open == Some(Open::Coefficients);
        let has_masks = |tensor: &TensorRule<'_>| tensor.shapes.iter().any(is_mask);
        if let Some(masks) = tensors.iter().position(has_masks)
            && !columns.iter().any(|column| column.prototypes.is_some())
        {
            let name = Quoted(tensors[masks].name);
            let text = format!("tensor {name}: M needs a section [column NAME] with count = M");
            return Err(DescriptionError::new(tensors[masks].line, text));
        }
        let is_wrong = |&index: &usize| fields.used[index] == tensors[index].is_ignored;
        if let Some(wrong) = (0..tensors.len()).find(is_wrong) {
            let name = Quoted(tensors[wrong].name);
            let text = match tensors[wrong].is_ignored {
                true => format!("tensor {name} is in a field; expected none of an ignored tensor"),
                false => format!("tensor {name} is in no field; remove its section, or use it"),
            };
            return Err(DescriptionError::new(tensors[wrong].line, text));
        }
        for (tensor, columns) in tensors.iter().zip(&fields.columns) {
            if !tensor.is_ignored {
                coverage::check(tensor, columns)?;
            }
        }
        Ok(Self {
            name,
            expected: "",
            about,
            label,
            values,
            tensors,
            anchors,
            has_any_strides,
            has_order: false,
            score,
            boxes,
            columns,
            priors,
        })
    }
}

/// Returns true if boxes are relative to anchors. `lines` are the lines of the sections `anchors` and `box`.
///
/// # Errors
/// If anchors are stated in several ways, or missing although boxes need them.
fn check_reference(
    anchors: &AnchorRule,
    has_table: bool,
    boxes: &BoxFields,
    [anchors_line, box_line]: [usize; 2],
) -> Parsed<bool> {
    let references = usize::from(anchors.levels != Levels::None)
        + usize::from(anchors.priors.is_some())
        + usize::from(has_table);
    if references > 1 {
        let text = "expected one of strides, cells, priors and a section [priors], got several";
        return Err(DescriptionError::new(anchors_line, text));
    }
    if references == 0 && boxes.rule.format == BoxFormat::Distances {
        let text = "format: distances need anchors; expected strides, cells or priors in [anchors]";
        return Err(DescriptionError::new(box_line, text));
    }
    Ok(references > 0)
}
