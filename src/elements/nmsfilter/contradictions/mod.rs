// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects tensors that are misread.
//!
//! In: each new plan, and the result of each frame. Out: element warnings, each posted once. Settings that
//! contradict what is known of the tensors (`settings.rs`) are reported with the plan, a score that contradicts
//! the decoder with the first frame that has one, and other numbers (`src/contradictions`) after one second of frames
//! with objects, or at the end of a shorter stream. After that second frames are not looked at any more.

mod settings;

use std::mem::{self, Discriminant};
use std::sync::{Arc, Mutex};

use super::NmsFilter;
use super::timeout::Timeout;
use crate::contradictions::{Evidence, NumberContradiction, PointEvidence, Reading};
use crate::elements::lock;
use crate::engine::Outcome;

use settings::SettingContradiction;
pub(super) use settings::of_plan;

/// What was found since the element started.
#[derive(Default)]
pub(super) struct Contradictions {
    /// How the tensors are read; `None` before the first plan, and when the numbers have been judged.
    reading: Option<Reading>,
    evidence: Evidence,
    /// Started with the first frame that has candidates or rejected anchors.
    started: Option<Timeout>,
    posted: Arc<Mutex<Posted>>,
}

/// What the element has posted.
#[derive(Default)]
struct Posted {
    numbers: Vec<Discriminant<NumberContradiction>>,
    settings: Vec<Discriminant<SettingContradiction>>,
}

impl Contradictions {
    /// For another stream of the same element.
    pub fn of_other_stream(&self) -> Self {
        Self { posted: self.posted.clone(), ..Self::default() }
    }

    /// Begins anew, with other tensors or settings.
    pub fn begin(
        &mut self,
        element: &NmsFilter,
        reading: Reading,
        settings: &[SettingContradiction],
    ) {
        if self.reading != Some(reading) {
            (self.reading, self.started) = (Some(reading), None);
            self.evidence = Evidence::default();
        }
        for contradiction in settings {
            if is_first(&mut lock(&self.posted).settings, contradiction) {
                gst::element_warning!(
                    element,
                    gst::LibraryError::Settings,
                    ("{contradiction}"),
                    ["{contradiction:?}"]
                );
            }
        }
    }

    /// Whether frames are looked at.
    pub fn are_open(&self) -> bool {
        self.reading.is_some()
    }

    /// Adds the frames of a run with the current plan, each of `anchors` anchors, and the points of all survivors. `pts`
    /// is the timestamp of the buffer. Does not allocate.
    pub fn add(
        &mut self,
        element: &NmsFilter,
        outcome: &Outcome<'_>,
        points: PointEvidence,
        anchors: usize,
        pts: Option<gst::ClockTime>,
    ) {
        let Some(reading) = self.reading else { return };
        if self.started.is_some_and(|started| started.has_expired(pts)) {
            self.judge(element);
            return;
        }
        self.evidence.add_points(points);
        for frame in outcome.images() {
            self.evidence.add(&frame, anchors, reading.model);
        }
        if self.started.is_none() && !self.evidence.is_empty() {
            self.started = Some(Timeout::start(pts));
        }
        if let Some(contradiction) = self.evidence.of_scores(&reading) {
            self.post(element, &contradiction);
        }
    }

    /// Judges the numbers of a stream that ends.
    pub fn judge(&mut self, element: &NmsFilter) {
        if let Some(reading) = self.reading.take()
            && let Some(contradiction) = self.evidence.of_boxes(&reading)
        {
            self.post(element, &contradiction);
        }
    }

    fn post(&mut self, element: &NmsFilter, contradiction: &NumberContradiction) {
        if is_first(&mut lock(&self.posted).numbers, contradiction) {
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                ("{contradiction}"),
                ["{:?}", self.evidence]
            );
        }
    }
}

/// Whether no contradiction of this kind is among `posted`; adds it.
fn is_first<T>(posted: &mut Vec<Discriminant<T>>, contradiction: &T) -> bool {
    let kind = mem::discriminant(contradiction);
    let is_first = !posted.contains(&kind);
    if is_first {
        posted.push(kind);
    }
    is_first
}
