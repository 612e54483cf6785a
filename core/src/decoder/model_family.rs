// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model families, by the facts about the model that tensors carry.
//!
//! In: the task of the model, and whether it selects the detections itself. Out: the [`ModelFamily`], which has the
//! decoders of such models. Its text is part of errors and warnings. Outputs of these families have shapes that other
//! decoders accept, with numbers of another meaning.

use std::fmt;

use super::{Decoder, ModelTask, by_name, classifier, decoders};
use crate::wording::Setting;

/// A model family other than plain detectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFamily {
    /// The name in messages.
    name: &'static str,
    task: ModelTask,
}

/// The task of models without boxes.
const CLASSIFY: &str = "classify";

/// The tasks other than `detect`, with a description of the task's models.
const TASKS: [(&str, &str); 4] = [
    ("segment", "a segmentation model (task segment)"),
    ("pose", "a pose model (task pose)"),
    ("obb", "a model of oriented boxes (task obb)"),
    (CLASSIFY, "a classification model (task classify)"),
];

/// The names of the decoders for a task.
fn decoders_for(task: ModelTask) -> impl Iterator<Item = &'static str> {
    let is_for_task = move |decoder: &&&Decoder| decoder.family.task == Some(task);
    decoders().iter().filter(is_for_task).map(|decoder| decoder.name())
}

/// The decoder of end-to-end models for the task of `decoder`.
pub(crate) fn end_to_end(decoder: &str) -> Option<&'static str> {
    let task = by_name(decoder)?.family.task.filter(|task| !task.is_end2end)?;
    decoders_for(ModelTask { is_end2end: true, ..task }).next()
}

impl ModelFamily {
    /// The family of models for `task`; `None` if the task is unknown, or `detect`.
    pub fn for_task(task: &str, is_end2end: bool) -> Option<Self> {
        let &(task, name) = TASKS.iter().find(|(known, _)| *known == task)?;
        Some(Self { name, task: ModelTask { name: task, is_end2end } })
    }

    /// True if these are models without boxes, which a [`classifier`] reads.
    pub fn is_classifier(&self) -> bool {
        self.task.name == CLASSIFY
    }

    /// Returns true if a built-in decoder reads models of the family, which `can_be_end2end` even if that is not known.
    /// Users' layouts may read others.
    pub fn has_decoder(&self, name: &str, can_be_end2end: bool) -> bool {
        let end2end = ModelTask { is_end2end: true, ..self.task };
        let is_of = |task| task == self.task || (can_be_end2end && task == end2end);
        by_name(name).and_then(|decoder| decoder.family.task).is_some_and(is_of)
    }
}

impl fmt::Display for ModelFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "they are of {}: ", self.name)?;
        let set: Vec<String> =
            decoders_for(self.task).map(|name| Setting::Decoder.to(name)).collect();
        match set.is_empty() {
            true => write!(f, "set {}", Setting::Decoder.to(classifier::NAME)),
            false => write!(f, "set {}", set.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(task: &str, is_end2end: bool) -> Option<String> {
        ModelFamily::for_task(task, is_end2end).map(|family| family.to_string())
    }

    #[test]
    fn tasks_other_than_detect_are_families_with_decoders_of_their_own() {
        for end2end in [false, true] {
            for task in ["", "detect", "another"] {
                assert_eq!(text(task, end2end), None);
            }
        }
        let text = |task, end2end| text(task, end2end).unwrap();
        assert_eq!(
            text("segment", false),
            "they are of a segmentation model (task segment): set `decoder = yolov8-seg` or `decoder = yolov5-seg`"
        );
        assert_eq!(
            text("pose", true),
            "they are of a pose model (task pose): set `decoder = end2end-pose`"
        );
        assert!(text("classify", false).ends_with("set `decoder = classifier`"));
    }

    #[test]
    fn the_tasks_of_decoders_are_known() {
        for decoder in decoders() {
            if let Some(ModelTask { name, is_end2end }) = decoder.family.task {
                let family = ModelFamily::for_task(name, is_end2end).unwrap();
                assert!(family.has_decoder(decoder.name(), false), "{}", decoder.name());
            }
        }
        assert_eq!(end_to_end("yolov5-seg"), Some("end2end-seg"));
        assert_eq!(end_to_end("end2end-seg"), None);
        assert_eq!(end_to_end("yolov8"), None);
    }
}
