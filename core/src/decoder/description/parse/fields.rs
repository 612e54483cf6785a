// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields: a tensor and its first column.
//!
//! In: the value of a key, and the tensors. Out: the field, within the shapes of its tensor.

use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Pattern};
use super::super::{FieldRule, TensorRule};
use super::coverage::Columns;
use crate::decoder::MAX_CLASSES;

/// The tensors that fields can be of.
pub(super) struct Fields<'t, 'a> {
    pub tensors: &'t [TensorRule<'a>],
    pub used: Vec<bool>,
    /// The columns of fields, and those that the text ignores.
    pub columns: Vec<Vec<Columns>>,
    /// The least number that C can be, which includes the background.
    pub least_classes: usize,
}

impl Fields<'_, '_> {
    /// The field of `key`, with `components` numbers of an anchor, or of the image.
    pub fn field(
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
                .filter(|column| column.open.is_none())
                .ok_or_else(|| entry.error("a column such as 4, C or C+32 after the tensor"))?,
        };
        self.used[tensor] = true;
        let rule = &self.tensors[tensor];
        let components = components(rule);
        self.columns[tensor].push(Columns { first: column, number: components });
        for shape in &rule.shapes {
            let numbers = shape.numbers();
            let needs_classes = column.has_classes || components.has_classes;
            let has_open = components
                .open
                .is_none_or(|needed| numbers.open.is_some_and(|open| open.has_kind_of(needed)));
            // Both sides are linear in the number of classes.
            let is_inside = |classes| {
                let end =
                    column.with_classes(classes).saturating_add(components.with_classes(classes));
                end <= numbers.with_classes(classes)
            };
            if (needs_classes && !numbers.has_classes)
                || !has_open
                || !is_inside(self.least_classes)
                || !is_inside(MAX_CLASSES)
            {
                return Err(entry.error(&format!(
                    "{components} from column {column} on to be within the tensor's shape {shape}"
                )));
            }
        }
        Ok(Some(FieldRule { tensor, column }))
    }

    /// The field of `key`, with `components` numbers of an anchor.
    pub fn anchor_field(
        &mut self,
        keys: &mut Keys<'_>,
        key: &str,
        components: impl FnOnce(&TensorRule<'_>) -> Count,
    ) -> Parsed<Option<FieldRule>> {
        let field = self.field(keys, key, components)?;
        let has_anchors =
            |field: FieldRule| self.tensors[field.tensor].shapes.iter().all(Pattern::has_anchors);
        let is_wrong = field.is_some_and(|field| !has_anchors(field));
        keys.refuse(key, is_wrong, "a tensor whose shape has N, or H and W")?;
        Ok(field)
    }
}
