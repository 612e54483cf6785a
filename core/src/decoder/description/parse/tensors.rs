// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections `tensor`.
//!
//! In: the lines of a section, and the levels. Out: its shapes, and the names of each of its tensors.

use std::borrow::Cow;

use super::super::error::Quoted;
use super::super::sections::{Entry, Keys, Parsed, all_sections};
use super::super::shape::Pattern;
use super::super::{DescriptionError, FewerAnchors, Levels, TensorRule};
use super::coverage;
use crate::decoder::layout::{MAX_GROUPS, MAX_SIZES};
use crate::decoder::{MAX_INPUTS, Role};

/// The greatest number of names of a tensor.
const MAX_NAMES: usize = 64;

/// The levels, and whether their strides, or the levels of the section's tensors, are any.
type OfLevels<'l> = (&'l Levels, bool);

/// All sections. `last` is the last line of the text.
pub(super) fn read<'a>(
    named: &mut Vec<Keys<'a>>,
    levels: OfLevels<'_>,
    last: usize,
) -> Parsed<Vec<TensorRule<'a>>> {
    let mut tensors: Vec<TensorRule<'a>> = Vec::new();
    for keys in all_sections(named, "tensor") {
        let tensor = tensor(keys, levels)?;
        let line = tensor.line;
        if tensors.iter().any(|other| other.name == tensor.name) {
            let text = format!("a second section [tensor {}]", Quoted(tensor.name));
            return Err(DescriptionError::new(line, text + "; expected one for each name"));
        }
        if tensor.has_open_number() && tensors.iter().any(TensorRule::has_open_number) {
            let text = format!("tensor {}: expected M or K in one section", Quoted(tensor.name));
            return Err(DescriptionError::new(line, text));
        }
        tensors.push(tensor);
    }
    let inputs: usize = tensors.iter().map(|tensor| tensor.roles.len()).sum();
    if !(1..=MAX_INPUTS).contains(&inputs) {
        let text = format!("expected 1 to {MAX_INPUTS} tensors, got {inputs}");
        return Err(DescriptionError::new(last, text));
    }
    Ok(tensors)
}

fn tensor<'a>(mut keys: Keys<'a>, of: OfLevels<'_>) -> Parsed<TensorRule<'a>> {
    let (levels, has_any_strides) = of;
    let name = keys.name;
    let shape = keys.required("shape")?;
    let per_level = keys.is_yes("per-level")?;
    let mut shapes = Vec::new();
    for text in shape.value.split(" or ").take(MAX_SIZES) {
        let pattern = Pattern::parse(text, per_level);
        shapes.push(pattern.map_err(|expected| shape.error(expected))?);
    }
    let has_any_levels = has_any_strides && per_level;
    let of = (levels, has_any_levels);
    let has_grid = *levels != Levels::None;
    if per_level && !has_grid {
        let reason = "per-level: expected strides or cells in [anchors]";
        return Err(DescriptionError::new(keys.line, reason));
    }
    let is_exact = keys.is_yes("exact")?;
    let is_ignored = keys.peek("ignored").is_some_and(|entry| entry.value == coverage::ALL);
    let fewer_anchors = keys.word(
        "fewer-anchors",
        FewerAnchors::Yes,
        &[
            ("yes", FewerAnchors::Yes),
            ("no", FewerAnchors::No),
            ("known-classes", FewerAnchors::KnownClasses),
        ],
    )?;
    let is_of_level = per_level || (has_grid && levels.groups() == 1);
    if !is_of_level && shapes.iter().any(|shape| shape.by_cell().is_some()) {
        return Err(shape.error("N, or per-level = yes for H and W"));
    }
    let open = |shape: &Pattern| shape.numbers().open;
    let has_first_kind = |shape: &Pattern| match (open(shape), open(&shapes[0])) {
        (Some(open), Some(first)) => open.has_kind_of(first),
        (open, first) => open == first,
    };
    if !shapes.iter().all(has_first_kind) {
        return Err(shape.error("M, or 2K or 3K, in each shape or in none"));
    }
    let count = if per_level { levels.groups() } else { 1 };
    let mut list = |key| match keys.take(key) {
        Some(entry) => name_list(entry, of, count),
        None => Ok(vec![Vec::new(); count]),
    };
    let lists = list("ids")?.into_iter().zip(list("names")?);
    let role = |(ids, names)| Role { name, ids, names, ..Role::default() };
    let mut roles: Vec<Role<'a>> = lists.map(role).collect();
    if let Some((entry, indices)) = keys.whole_numbers::<MAX_GROUPS>("index", 0..=255)? {
        if has_any_levels {
            return Err(entry.error("a list of strides with positions for each"));
        }
        if indices.len() != count {
            return Err(entry.error(&format!("{count} numbers, one for each tensor")));
        }
        for (of_level, index) in roles.iter_mut().zip(indices) {
            of_level.index = Some(index as usize);
        }
    }
    let ignored = coverage::ignored(&mut keys, &shapes)?;
    keys.finish("ids, names, shape, index, per-level, exact, fewer-anchors, ignored")?;
    let line = keys.line;
    Ok(TensorRule {
        name,
        line,
        shapes,
        per_level,
        is_exact,
        fewer_anchors,
        is_ignored,
        ignored,
        roles,
    })
}

/// Names separated by commas, for each of `count` tensors. The names of several tensors contain `{stride}`, or are
/// lists. A list of names for another number of tensors is left out if the strides are any.
fn name_list<'a>(
    entry: Entry<'a>,
    (levels, has_any_levels): OfLevels<'_>,
    count: usize,
) -> Parsed<Vec<Vec<Cow<'a, str>>>> {
    let mut lists = vec![Vec::new(); count];
    for (index, name) in entry.value.split(',').map(str::trim).enumerate() {
        if index >= MAX_NAMES || name.is_empty() {
            return Err(entry.error(&format!("1 to {MAX_NAMES} names separated by commas")));
        }
        match levels {
            Levels::Strides(strides)
                if (count > 1 || has_any_levels) && name.contains("{stride}") =>
            {
                for (list, stride) in lists.iter_mut().zip(strides) {
                    list.push(Cow::Owned(name.replace("{stride}", &stride.to_string())));
                }
            }
            _ => {
                // One more than are expected is enough to find that there are too many.
                let words: Vec<&str> = match count {
                    1 if !has_any_levels => vec![name],
                    _ => name.split_whitespace().take(count + 1).collect(),
                };
                if words.len() != count && has_any_levels {
                    continue;
                }
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
