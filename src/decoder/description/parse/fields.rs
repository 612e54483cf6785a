// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields: a tensor and its first column.
//!
//! In: the value of a key, and the tensors. Out: the field, within the shapes of its tensor.

use super::super::sections::{Keys, Parsed};
use super::super::shape::{Count, Pattern};
use super::super::{FieldRule, TensorRule};
use crate::decoder::MAX_CLASSES;

/// The tensors that fields can be of.
pub(super) struct Fields<'t, 'a> {
    pub tensors: &'t [TensorRule<'a>],
    pub used: Vec<bool>,
}
impl Fields<'_, '_> {
    /// The field of `key`, with `components` numbers of an anchor, or of the image.
    pub fn of(
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
    pub fn of_anchors(
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

/// A number that does not depend on the shapes of tensors.
pub(super) fn constant(constant: usize) -> Count {
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
