// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model families by what tensors have of their model.
//!
//! In: the task of the model description. Out: the [`ModelFamily`], which has the decoders of such models. Its text is
//! that of errors and warnings. Outputs of these families have shapes that other decoders accept, with numbers of
//! another meaning.

use std::fmt;

use crate::input::model::ModelInfo;

/// A model family other than that of plain detectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelFamily {
    name: &'static str,
    decoders: &'static [&'static str],
}

impl ModelFamily {
    /// The families, by task, with the decoders of models that do not select the detections themselves and of those
    /// that do.
    const OF_TASKS: [(&'static str, Self, Self); 4] = [
        (
            "segment",
            Self::new("a segmentation model (task segment)", &["yolov8-seg", "yolov5-seg"]),
            Self::new("a segmentation model (task segment)", &["end2end-seg"]),
        ),
        (
            "pose",
            Self::new("a pose model (task pose)", &["yolov8-pose"]),
            Self::new("a pose model (task pose)", &["end2end-pose"]),
        ),
        (
            "obb",
            Self::new("a model of oriented boxes (task obb)", &["yolov8-obb"]),
            Self::new("a model of oriented boxes (task obb)", &["end2end-obb"]),
        ),
        (
            "classify",
            Self::new("a classification model (task classify)", &[]),
            Self::new("a classification model (task classify)", &[]),
        ),
    ];

    const fn new(name: &'static str, decoders: &'static [&'static str]) -> Self {
        Self { name, decoders }
    }

    /// The family of a model; `None` if it is unknown, or that of plain detectors.
    pub fn of(model: &ModelInfo) -> Option<Self> {
        let task = model.task.as_deref().unwrap_or_default();
        let by_task = Self::OF_TASKS.into_iter().find(|(name, ..)| *name == task);
        by_task.map(|(_, one_to_many, end2end)| if model.end2end { end2end } else { one_to_many })
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

    fn text(model: ModelInfo) -> Option<String> {
        ModelFamily::of(&model).map(|family| family.to_string())
    }

    #[test]
    fn tasks_other_than_detect_are_families_with_decoders_of_their_own() {
        let model = ModelInfo::default;
        for end2end in [false, true] {
            assert_eq!(text(model().with_end2end(end2end)), None);
            for task in ["detect", "another"] {
                assert_eq!(text(model().with_task(task).with_end2end(end2end)), None);
            }
        }
        let text = |task, end2end| text(model().with_task(task).with_end2end(end2end)).unwrap();
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
        for (_, one_to_many, end2end) in ModelFamily::OF_TASKS {
            for name in one_to_many.decoders.iter().chain(end2end.decoders) {
                assert!(crate::decoder::by_name(name).is_some(), "{name}");
            }
        }
    }
}
