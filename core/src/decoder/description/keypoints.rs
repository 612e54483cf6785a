// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many of an anchor's numbers are the scores of classes, and how many the components of keypoints.
//!
//! In: the shapes that a tensor can have, the number of an anchor's numbers, and what is known about the model. Out: the
//! division, if there is one, or examples of several.

use super::shape::{Count, Open, Pattern};
use crate::decoder::{KeypointShape, MAX_CLASSES, MAX_KEYPOINTS};

/// A division of an anchor's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// The number of classes; 0 if the shapes have no scores for them.
    classes: usize,
    /// The number of keypoints, and of the components of each.
    count: usize,
    pub components: usize,
}

impl Split {
    /// The keypoints of COCO's persons, of which most models are.
    const PERSON: Self = Self { classes: 1, count: 17, components: 3 };

    /// The numbers of keypoints.
    pub fn numbers(self) -> usize {
        self.count * self.components
    }

    fn has_keypoints_of(self, other: Self) -> bool {
        (self.count, self.components) == (other.count, other.components)
    }

    fn text(self) -> String {
        let word = if self.count == 1 { "keypoint" } else { "keypoints" };
        let keypoints = format!("{} {word} of {} numbers", self.count, self.components);
        match self.classes {
            0 => keypoints,
            1 => format!("1 class and {keypoints}"),
            classes => format!("{classes} classes and {keypoints}"),
        }
    }
}

/// The division of an anchor's `numbers`, if there is one, where the known number of classes and shape of keypoints decide.
/// If neither does, it is the division of a model for persons, if that is possible.
///
/// # Errors
/// If several are possible: examples, as displayed.
pub(super) fn split(
    shapes: &[Pattern],
    numbers: usize,
    (classes, known): (Option<usize>, Option<KeypointShape>),
) -> Result<Option<Split>, String> {
    let mut counts: Vec<Count> = Vec::new();
    for count in shapes.iter().map(Pattern::numbers) {
        if !counts.contains(&count) {
            counts.push(count);
        }
    }
    let possible = (0..=MAX_CLASSES.min(numbers)).flat_map(|classes_of| {
        counts.iter().filter_map(move |count| {
            let Some(Open::Keypoints(components)) = count.open else { return None };
            let is_number = match (count.has_classes, classes) {
                (true, Some(known)) => classes_of == known,
                (true, None) => classes_of > 0,
                (false, _) => classes_of == 0,
            };
            let rest = numbers.checked_sub(count.constant)?.checked_sub(classes_of)?;
            let split = Split { classes: classes_of, count: rest / components, components };
            let is_known = known.is_none_or(|known| {
                (known.count, known.components) == (split.count, split.components)
            });
            let is_whole = rest.is_multiple_of(components);
            let is_possible = (1..=MAX_KEYPOINTS).contains(&split.count);
            (is_number && is_known && is_whole && is_possible).then_some(split)
        })
    });
    let possible: Vec<Split> = possible.collect();
    let of_person = possible.iter().position(|split| split.has_keypoints_of(Split::PERSON));
    match possible[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ if possible.contains(&Split::PERSON) => Ok(Some(Split::PERSON)),
        _ => {
            let examples = possible.iter().enumerate();
            let examples = examples.filter(|(index, _)| *index < 2 || Some(*index) == of_person);
            let texts: Vec<String> = examples.map(|(_, split)| split.text()).collect();
            Err(texts.join(", or "))
        }
    }
}
