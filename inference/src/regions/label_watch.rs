// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices that no object has one of the labels that are wanted.
//!
//! In: the labels of the objects of frames without a region. Out: a [`MissingLabels`] after [`FRAMES`] frames with objects,
//! unless an object had a wanted label before. A label that is misspelled selects nothing for ever, and a detector that
//! knows the label can find none of these objects for a while: no error is possible.

use std::collections::BTreeSet;

use super::RegionSettings;

/// The number of frames with objects after which labels are missing.
pub const FRAMES: u32 = 100;

/// The greatest number of different labels in the text.
const MAX_LABELS: usize = 20;

/// The labels that objects had instead of the wanted ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "roi-labels={wanted}: no object of {FRAMES} frames with objects has such a label, so that the model did not run; \
     their labels are {}: correct roi-labels, unless such objects are rare", .found.iter().cloned().collect::<Vec<_>>().join(", ")
)]
pub struct MissingLabels {
    wanted: String,
    found: BTreeSet<String>,
}

/// Counts frames whose objects have none of the labels.
#[derive(Debug, Default)]
pub(super) struct LabelWatch {
    /// The labels that are wanted; `None` before the first frame.
    wanted: Option<String>,
    frames: u32,
    found: BTreeSet<String>,
    is_over: bool,
}

impl LabelWatch {
    /// Adds a frame with these labels of objects. Returns the labels once, if they are missing.
    pub fn add<'l>(
        &mut self,
        settings: &RegionSettings,
        mut labels: impl Iterator<Item = &'l str>,
    ) -> Option<MissingLabels> {
        if self.wanted != settings.roi_labels {
            *self = Self { wanted: settings.roi_labels.clone(), ..Self::default() };
        }
        let wanted = self.wanted.as_ref().filter(|_| !self.is_over)?;
        let mut has_objects = false;
        self.is_over = labels.any(|label| {
            has_objects = true;
            let is_wanted = settings.has_label(label);
            if !is_wanted && self.found.len() < MAX_LABELS && !self.found.contains(label) {
                self.found.insert(label.to_owned());
            }
            is_wanted
        });
        self.frames += u32::from(has_objects);
        if self.is_over || self.frames < FRAMES {
            return None;
        }
        self.is_over = true;
        Some(MissingLabels { wanted: wanted.clone(), found: std::mem::take(&mut self.found) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(
        wanted: &str,
        frames: impl Iterator<Item = &'static [&'static str]>,
    ) -> Vec<String> {
        let settings = RegionSettings { roi_labels: Some(wanted.to_owned()), ..Default::default() };
        let mut watch = LabelWatch::default();
        let add = |labels: &'static [&'static str]| watch.add(&settings, labels.iter().copied());
        frames.filter_map(add).map(|missing| missing.to_string()).collect()
    }

    fn repeated(
        labels: &'static [&'static str],
        frames: u32,
    ) -> impl Iterator<Item = &'static [&'static str]> {
        (0..frames).map(move |_| labels)
    }

    #[test]
    fn labels_that_no_object_has_are_reported_once() {
        let found = warnings("persons, cars", repeated(&["person", "dog", "dog"], 3 * FRAMES));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("roi-labels=persons, cars: no object of 100 frames"));
        assert!(found[0].contains("their labels are dog, person: correct roi-labels"), "{found:?}");
        assert_eq!(warnings("persons", repeated(&["person"], FRAMES - 1)), [""; 0]);
    }

    #[test]
    fn frames_without_objects_do_not_count_and_one_object_is_enough() {
        assert_eq!(warnings("person", repeated(&[], 9 * FRAMES)), [""; 0]);
        let frames = repeated(&["dog"], FRAMES - 1).chain(repeated(&["dog", "person"], 1));
        assert_eq!(warnings("person", frames.chain(repeated(&["dog"], FRAMES))), [""; 0]);
    }
}
