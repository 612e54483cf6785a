// SPDX-License-Identifier: MIT OR Apache-2.0
//! Model families that no decoder reads, by what tensors have of their model.
//!
//! In: task and `end2end` of the model description. Out: the [`UnreadFamily`], whose text is that of errors and
//! warnings. Outputs of these families have shapes that decoders accept, with numbers of another meaning.

use crate::input::model::ModelInfo;

/// A model family that no decoder reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("they are of {name}: models of this family are not read; {advice}")]
pub(super) struct UnreadFamily {
    name: &'static str,
    advice: &'static str,
}

const OTHER_TASK: &str = "use a model of the task detect";

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
        match by_task {
            Some((_, name)) => Some(Self { name, advice: OTHER_TASK }),
            None => model.end2end.then_some(Self {
                name: "an end-to-end model (end2end)",
                advice: "export it with end2end=False",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(model: ModelInfo) -> Option<String> {
        UnreadFamily::of(&model).map(|family| family.to_string())
    }

    #[test]
    fn tasks_without_a_decoder_and_end_to_end_models_are_families_that_are_not_read() {
        let model = ModelInfo::default;
        assert_eq!(text(model()), None);
        assert_eq!(text(model().with_task("detect")), None);
        assert_eq!(text(model().with_task("another")), None);
        let end2end = text(model().with_task("detect").with_end2end(true));
        assert_eq!(
            end2end.as_deref(),
            Some(
                "they are of an end-to-end model (end2end): models of this family are not read; export it \
                 with end2end=False"
            )
        );
        for task in ["segment", "pose", "obb", "classify"] {
            let text = text(model().with_task(task).with_end2end(true)).unwrap();
            assert!(text.contains(&format!("(task {task}): models of this family")), "{text}");
            assert!(text.ends_with("use a model of the task detect"), "{text}");
        }
    }
}
