// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model families that no decoder reads, by what tensors have of their model.
//!
//! In: the task of the model description. Out: the [`UnreadFamily`], whose text is that of errors and
//! warnings. Outputs of these families have shapes that decoders accept, with numbers of another meaning.

use crate::input::model::ModelInfo;

/// A model family that no decoder reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("they are of {name}: models of this family are not read; use a model of the task detect")]
pub(super) struct UnreadFamily {
    name: &'static str,
}

impl UnreadFamily {
    /// The families, by task.
    const OF_TASKS: [(&'static str, &'static str); 4] = [
        ("segment", "a segmentation model (task segment)"),
        ("pose", "a pose model (task pose)"),
        ("obb", "a model of oriented boxes (task obb)"),
        ("classify", "a classification model (task classify)"),
    ];

    /// The family of a model; `None` if it is unknown, or decoders read it.
    pub fn of(model: &ModelInfo) -> Option<Self> {
        let task = model.task.as_deref().unwrap_or_default();
        let by_task = Self::OF_TASKS.into_iter().find(|(name, _)| *name == task);
        by_task.map(|(_, name)| Self { name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(model: ModelInfo) -> Option<String> {
        UnreadFamily::of(&model).map(|family| family.to_string())
    }

    #[test]
    fn tasks_without_a_decoder_are_families_that_are_not_read() {
        let model = ModelInfo::default;
        for end2end in [false, true] {
            assert_eq!(text(model().with_end2end(end2end)), None);
            for task in ["detect", "another"] {
                assert_eq!(text(model().with_task(task).with_end2end(end2end)), None);
            }
            for task in ["segment", "pose", "obb", "classify"] {
                let text = text(model().with_task(task).with_end2end(end2end)).unwrap();
                assert!(text.contains(&format!("(task {task}): models of this family")), "{text}");
                assert!(text.ends_with("use a model of the task detect"), "{text}");
            }
        }
    }
}
