// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model families by what tensors have of their model.
//!
//! In: the task of the model, and whether it selects the detections itself. Out: the [`ModelFamily`], which has the
//! decoders of such models. Its text is
//! part of errors and warnings. Outputs of these families have shapes that other decoders accept, with numbers of
//! another meaning.

use std::fmt;

/// A model family other than that of plain detectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFamily {
    name: &'static str,
    decoders: &'static [&'static str],
}

/// The families of a task.
struct Task {
    task: &'static str,
    /// What models of the task are.
    name: &'static str,
    /// The decoders of models that do not select the detections themselves.
    one_to_many: &'static [&'static str],
    /// The decoder of models that do.
    end2end: &'static [&'static str],
}

const TASKS: [Task; 4] = [
    Task {
        task: "segment",
        name: "a segmentation model (task segment)",
        one_to_many: &["yolov8-seg", "yolov5-seg"],
        end2end: &["end2end-seg"],
    },
    Task {
        task: "pose",
        name: "a pose model (task pose)",
        one_to_many: &["yolov8-pose"],
        end2end: &["end2end-pose"],
    },
    Task {
        task: "obb",
        name: "a model of oriented boxes (task obb)",
        one_to_many: &["yolov8-obb"],
        end2end: &["end2end-obb"],
    },
    Task {
        task: "classify",
        name: "a classification model (task classify)",
        one_to_many: &[],
        end2end: &[],
    },
];

/// The decoder of end-to-end models of the task whose other models `decoder` reads; `None` if it is that of no task.
pub(crate) fn end_to_end(decoder: &str) -> Option<&'static str> {
    let task = TASKS.iter().find(|task| task.one_to_many.contains(&decoder))?;
    task.end2end.first().copied()
}

impl ModelFamily {
    /// The family of models of `task`; `None` if the task is unknown, or `detect`.
    pub fn of(task: &str, is_end2end: bool) -> Option<Self> {
        let Task { name, one_to_many, end2end, .. } = TASKS.iter().find(|of| of.task == task)?;
        Some(Self { name, decoders: if is_end2end { end2end } else { one_to_many } })
    }

    /// Whether a decoder reads models of the family, as far as is known: users' layouts may.
    pub fn has_decoder(&self, name: &str) -> bool {
        self.decoders.contains(&name)
    }
}

impl fmt::Display for ModelFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "they are of {}: ", self.name)?;
        match self.decoders {
            [] => f.write_str("models of this family are not read; use a model of the task detect"),
            decoders => write!(f, "set decoder={}", decoders.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(task: &str, is_end2end: bool) -> Option<String> {
        ModelFamily::of(task, is_end2end).map(|family| family.to_string())
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
            "they are of a segmentation model (task segment): set decoder=yolov8-seg or yolov5-seg"
        );
        assert_eq!(
            text("pose", true),
            "they are of a pose model (task pose): set decoder=end2end-pose"
        );
        assert!(text("classify", false).ends_with("use a model of the task detect"));
    }

    #[test]
    fn decoders_of_families_exist() {
        for Task { one_to_many, end2end, .. } in TASKS {
            for name in one_to_many.iter().chain(end2end) {
                assert!(crate::decoder::by_name(name).is_some(), "{name}");
            }
        }
    }
}
