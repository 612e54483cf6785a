// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the metadata in a model file (`metadata_props` in ONNX).
//!
//! In: a session. Out: the core's [`Metadata`], and the meaning of keypoints.

use gstnmsfilter::output::KeypointLayout;
use ort::session::Session;

pub use nmsfilter_core::signature::Metadata;

/// Reads the metadata of a session's model. The result is empty if ONNX Runtime cannot read the metadata.
pub fn read(session: &Session) -> Metadata {
    let Ok(metadata) = session.metadata() else {
        return Metadata::default();
    };
    let keys = metadata.custom_keys().unwrap_or_default();
    let value = |key: String| metadata.custom(&key).map(|value| (key, value));
    Metadata::new(keys.into_iter().filter_map(value).collect())
}

/// Returns the meaning of the keypoints by their names, which are lists in a dictionary by class.
pub fn keypoint_layout(metadata: &Metadata) -> Option<KeypointLayout> {
    // Every second part is between quotation marks.
    let names = metadata.value("kpt_names")?.split(['\'', '"']).skip(1).step_by(2);
    KeypointLayout::of_names(&names.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Metadata {
        let entry = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Metadata::new(entries.iter().map(entry).collect())
    }

    #[test]
    fn names_of_keypoints_say_whether_they_are_a_persons() {
        let layout = |text: &str| keypoint_layout(&with(&[("kpt_names", text)]));
        let person = "{0: ['nose', 'left_eye', 'right_eye', 'left_ear', 'right_ear', 'left_shoulder', \
                      'right_shoulder', 'left_elbow', 'right_elbow', 'left_wrist', 'right_wrist', 'left_hip', \
                      'right_hip', 'left_knee', 'right_knee', 'left_ankle', 'right_ankle']}";
        assert_eq!(layout(person), Some(KeypointLayout::Coco17));
        assert_eq!(layout(&person.replace('\'', "\"")), Some(KeypointLayout::Coco17));
        let dog = person.replace("'nose'", "'withers'");
        assert_eq!(layout(&dog), Some(KeypointLayout::Points));
        for none in ["{0: ['0', '1', '2']}", "{}", "None"] {
            assert_eq!(layout(none), None, "{none}");
        }
        assert_eq!(keypoint_layout(&with(&[])), None);
    }
}
