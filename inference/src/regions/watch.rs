// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices that the model has run on no object of a stream.
//!
//! In: for each frame, the labels of its objects, and whether the model runs on one of them. Out: a notice once,
//! after [`FRAMES`] frames with objects or [`EMPTY_FRAMES`] frames without any, or at the end of the stream. No error is
//! possible: a label that is misspelled selects nothing for ever, and a detector can find nothing for a while.

use std::collections::BTreeSet;

use super::RegionSettings;

/// The number of frames with objects after which the model should have run.
pub const FRAMES: u32 = 100;

/// The number of frames after which one should have had an object.
pub const EMPTY_FRAMES: u32 = 300;

/// The greatest number of different labels in the text.
const MAX_LABELS: usize = 20;

/// Counts the frames on which the model did not run, until it runs.
#[derive(Debug, Default)]
pub(crate) struct RegionWatch {
    /// The labels that are wanted; `None` for all.
    wanted: Option<String>,
    frames: u32,
    frames_with_objects: u32,
    /// The labels that are not wanted.
    found: BTreeSet<String>,
    has_wanted: bool,
    is_over: bool,
}

impl RegionWatch {
    /// Adds a frame with these labels of objects. `runs` says if the model runs on one of them. Returns a notice once, if
    /// the model should have run.
    pub fn add<'l>(
        &mut self,
        settings: &RegionSettings,
        labels: impl Iterator<Item = &'l str>,
        runs: bool,
    ) -> Option<String> {
        if self.wanted != settings.roi_labels {
            *self = Self { wanted: settings.roi_labels.clone(), ..Self::default() };
        }
        self.is_over |= runs;
        if self.is_over {
            return None;
        }
        let mut has_objects = false;
        for label in labels {
            has_objects = true;
            if settings.has_label(label) {
                self.has_wanted = true;
            } else if self.found.len() < MAX_LABELS && !self.found.contains(label) {
                self.found.insert(label.to_owned());
            }
        }
        self.frames += 1;
        self.frames_with_objects += u32::from(has_objects);
        let is_enough = match self.frames_with_objects {
            0 => self.frames >= EMPTY_FRAMES,
            frames => frames >= FRAMES,
        };
        if is_enough { self.finish() } else { None }
    }

    /// Returns a notice once, by all frames so far, if the model has not run.
    pub fn finish(&mut self) -> Option<String> {
        if self.frames == 0 || std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let frames = self.frames_with_objects;
        Some(match &self.wanted {
            _ if frames == 0 => format!(
                "regions=rois: none of {} frames had a region of interest or an object, so that the model did not run: put a \
                 detector in front of this element, and no element between them that drops metadata, unless there was \
                 nothing to detect",
                self.frames
            ),
            Some(wanted) if !self.has_wanted => format!(
                "roi-labels={wanted}: no object of {frames} frames with objects has such a label, so that the model did not \
                 run; their labels are {}: correct roi-labels, unless such objects are rare",
                self.found.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
            _ => format!(
                "regions=rois: no object of {frames} frames with objects has a pixel in its frame, so that the model did not \
                 run: correct the coordinates of the element that attaches them"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERSON: &[&str] = &["person", "dog", "dog"];

    /// Returns the notices while frames come, and at the end. The model runs where a frame has a wanted label.
    fn notices(wanted: Option<&str>, frames: &[(u32, &[&str])]) -> [Vec<String>; 2] {
        let settings =
            RegionSettings { roi_labels: wanted.map(ToOwned::to_owned), ..Default::default() };
        let mut watch = RegionWatch::default();
        let mut while_playing = Vec::new();
        for (count, labels) in frames {
            for _ in 0..*count {
                let runs = labels.iter().any(|label| settings.has_label(label));
                let notice = watch.add(&settings, labels.iter().copied(), runs);
                while_playing.extend(notice);
            }
        }
        let mut at_the_end = Vec::new();
        // A second stream end, such as after a seek, repeats nothing.
        for _ in 0..2 {
            at_the_end.extend(watch.finish());
        }
        [while_playing, at_the_end]
    }

    #[test]
    fn labels_that_no_object_has_are_reported_once() {
        let wanted = Some("persons, cars");
        let [found, at_the_end] = notices(wanted, &[(3 * FRAMES, PERSON)]);
        assert_eq!((found.len(), at_the_end.len()), (1, 0));
        assert!(found[0].starts_with("roi-labels=persons, cars: no object of 100 frames"));
        assert!(found[0].contains("their labels are dog, person: correct roi-labels"), "{found:?}");
        // A shorter stream shows it at its end.
        for frames in [1, FRAMES - 1] {
            let [found, at_the_end] = notices(wanted, &[(frames, PERSON), (5, &[])]);
            assert_eq!((found.len(), at_the_end.len()), (0, 1));
            let expected = format!("no object of {frames} frames with objects");
            assert!(at_the_end[0].contains(&expected), "{at_the_end:?}");
        }
    }

    #[test]
    fn frames_without_any_object_are_reported_after_300_or_at_the_end() {
        for wanted in [None, Some("person")] {
            let [found, at_the_end] = notices(wanted, &[(3 * EMPTY_FRAMES, &[])]);
            assert_eq!((found.len(), at_the_end.len()), (1, 0));
            assert!(found[0].starts_with("regions=rois: none of 300 frames had"), "{found:?}");
            let [found, at_the_end] = notices(wanted, &[(EMPTY_FRAMES - 1, &[])]);
            assert_eq!((found.len(), at_the_end.len()), (0, 1));
            assert!(at_the_end[0].contains("none of 299 frames had"), "{at_the_end:?}");
        }
        assert_eq!(notices(None, &[]), [[""; 0]; 2]);
    }

    #[test]
    fn one_run_is_enough() {
        let wanted = Some("person");
        let nothing: [[&str; 0]; 2] = [[]; 2];
        assert_eq!(
            notices(wanted, &[(FRAMES - 1, &["dog"]), (1, PERSON), (500, &["dog"])]),
            nothing
        );
        assert_eq!(notices(None, &[(EMPTY_FRAMES - 1, &[]), (1, &["dog"]), (500, &[])]), nothing);
    }

    #[test]
    fn objects_outside_of_their_frames_have_another_reason() {
        for labels in [None, Some("dog")] {
            let roi_labels = labels.map(ToOwned::to_owned);
            let settings = RegionSettings { roi_labels, ..Default::default() };
            let mut watch = RegionWatch::default();
            assert_eq!(watch.add(&settings, ["dog"].into_iter(), false), None);
            let notice = watch.finish().unwrap();
            let expected =
                "regions=rois: no object of 1 frames with objects has a pixel in its frame";
            assert!(notice.starts_with(expected), "{notice}");
        }
    }

    #[test]
    fn other_labels_begin_anew() {
        let settings = |labels: &str| RegionSettings {
            roi_labels: Some(labels.to_owned()),
            ..Default::default()
        };
        let mut watch = RegionWatch::default();
        let dogs = || ["dog"].into_iter();
        assert_eq!(watch.add(&settings("dog"), dogs(), true), None);
        assert_eq!(watch.add(&settings("cat"), dogs(), false), None);
        let notice = watch.finish().unwrap();
        assert!(notice.starts_with("roi-labels=cat: no object of 1 frames"), "{notice}");
    }
}
