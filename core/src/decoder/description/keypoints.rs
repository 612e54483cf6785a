// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many of an anchor's numbers are the scores of classes, and how many the components of keypoints.
//!
//! In: the shapes that a tensor can have, the number of an anchor's numbers, and what is known about the model. Out: the
//! division, if there is one, or examples of several.

use super::shape::{Count, Open, Pattern};
use crate::decoder::{KeypointShape, MAX_CLASSES, MAX_KEYPOINTS};

/// A division of an anchor's numbers: the number of classes, 0 if the shapes have no scores for them, and the keypoints.
type Split = (usize, KeypointShape);

/// The keypoints of COCO's persons, of which most models are.
const PERSON: Split = (1, KeypointShape { count: 17, components: 3 });

fn text((classes, KeypointShape { count, components }): &Split) -> String {
    let word = if *count == 1 { "keypoint" } else { "keypoints" };
    let keypoints = format!("{count} {word} of {components} numbers");
    match classes {
        0 => keypoints,
        1 => format!("1 class and {keypoints}"),
        classes => format!("{classes} classes and {keypoints}"),
    }
}

/// The keypoints in a division of an anchor's `numbers`, if there is one, where the known number of classes and shape of keypoints decide.
/// If neither does, it is the division of a model for persons, if that is possible.
///
/// # Errors
/// If several are possible: examples, as displayed.
pub(super) fn split(
    shapes: &[Pattern],
    numbers: usize,
    (classes, known): (Option<usize>, Option<KeypointShape>),
) -> Result<Option<KeypointShape>, String> {
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
            let points = KeypointShape { count: rest / components, components };
            let is_known = known.is_none_or(|known| known == points);
            let is_whole = rest.is_multiple_of(components);
            let is_possible = (1..=MAX_KEYPOINTS).contains(&points.count);
            (is_number && is_known && is_whole && is_possible).then_some((classes_of, points))
        })
    });
    let possible: Vec<Split> = possible.collect();
    let of_person = possible.iter().position(|(_, points)| *points == PERSON.1);
    match possible[..] {
        [] => Ok(None),
        [(_, only)] => Ok(Some(only)),
        _ if possible.contains(&PERSON) => Ok(Some(PERSON.1)),
        _ => {
            let examples = possible.iter().enumerate();
            let examples = examples.filter(|(index, _)| *index < 2 || Some(*index) == of_person);
            let texts: Vec<String> = examples.map(|(_, split)| text(split)).collect();
            Err(texts.join(", or "))
        }
    }
}
