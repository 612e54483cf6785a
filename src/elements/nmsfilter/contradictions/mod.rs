// SPDX-License-Identifier: MIT OR Apache-2.0
//! Posts warnings about tensors that are probably misread.
//!
//! In: each new plan, and the result of each run. Out: element warnings, each posted once. What the core finds
//! (`core/src/reading`) and settings that contradict the model description (`settings.rs`) are reported with the plan, a
//! score that contradicts the decoder with the first frame that has one, and other numbers after one second of frames
//! with candidates or rejected anchors. Ten seconds without any are reported with the best score. At the end of a shorter
//! stream both are judged.

mod settings;

use std::mem::{self, Discriminant};
use std::sync::{Arc, Mutex};

use super::NmsFilter;
use super::plan::{FramePlan, PlanInput};
use super::settings::Settings;
use super::timeout::Timeout;
use crate::elements::lock;
use crate::output::Labels;
use nmsfilter_core::engine::{BoxPixels, Outcome};
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::names::Interface;
use nmsfilter_core::reading::{self, DetailEvidence, Numbers, PlanFacts, Quiet, Run, Warning};

use settings::SettingContradiction;

/// The time without detections after which a warning is posted. It is in seconds, since streams have one to a hundred
/// frames a second, and objects stay in view for seconds.
const QUIET: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// The contradictions found since the element started.
#[derive(Default)]
pub(super) struct Contradictions {
    numbers: Numbers,
    /// Starts with the first frame that has candidates or rejected anchors.
    started: Option<Timeout>,
    quiet: Quiet,
    /// Starts with the first frame without any.
    quiet_since: Option<Timeout>,
    posted: Arc<Mutex<Posted>>,
}

/// The warnings that the element has posted.
#[derive(Default)]
struct Posted {
    warnings: Vec<Warning>,
    settings: Vec<Discriminant<SettingContradiction>>,
}

impl Contradictions {
    /// Makes the state for another model, without posting a warning twice.
    #[cfg(feature = "v1_28")]
    pub fn of_other_model(&self) -> Self {
        Self { posted: self.posted.clone(), ..Self::default() }
    }

    /// Restarts with other tensors or settings.
    pub fn begin(
        &mut self,
        element: &NmsFilter,
        plan: &FramePlan,
        input: PlanInput<'_>,
        mapping: &Mapping,
        settings: &Settings,
        labels: &Labels,
    ) {
        if self.numbers.begin(plan.reading(mapping)) {
            self.started = None;
            (self.quiet, self.quiet_since) = (Quiet::default(), None);
        }
        let mut is_decoder_wrong = false;
        let facts = PlanFacts {
            choice: plan.choice(),
            tensors: &plan.quantization().applied(input.tensors),
            options: input.decoder_options(settings, labels),
            thresholds: &plan.params().thresholds,
            has_class_thresholds: settings.class_thresholds.is_some(),
            classes: settings.classes.as_deref(),
            family: input.family,
        };
        for warning in reading::of_plan(facts) {
            is_decoder_wrong |= warning.is_of_decoder();
            if warning.explains_silence() {
                self.quiet.stop();
            }
            self.post(element, warning);
        }
        for contradiction in
            settings::of_settings(plan, input, mapping, settings, labels, is_decoder_wrong)
        {
            let kind = mem::discriminant(&contradiction);
            let mut posted = lock(&self.posted);
            if !posted.settings.contains(&kind) {
                posted.settings.push(kind);
                drop(posted);
                gst::element_warning!(
                    element,
                    gst::LibraryError::Settings,
                    ("{contradiction}"),
                    ["{contradiction:?}"]
                );
            }
        }
    }

    /// Returns true if frames are still examined.
    pub fn are_open(&self) -> bool {
        self.numbers.are_open()
    }

    /// Adds the frames of a run with the current plan, each of `anchors` anchors, and the details of all survivors. `pts`
    /// is the timestamp of the buffer. Allocates with the first frame only.
    pub fn add(
        &mut self,
        element: &NmsFilter,
        outcome: &Outcome<'_>,
        run: Run<'_>,
        details: DetailEvidence,
        anchors: usize,
        pts: Option<gst::ClockTime>,
    ) {
        self.quiet.add(outcome, run);
        if self.quiet.has_begun() {
            let since = self.quiet_since.get_or_insert_with(|| Timeout::start_of(QUIET, pts));
            if since.has_expired(pts) {
                self.end_quiet(element, Some(run));
            }
        }
        if self.started.is_some_and(|started| started.has_expired(pts)) {
            self.judge_numbers(element);
            return;
        }
        // The rules for numbers are for boxes in pixels of the model's input; boxes of regions are in pixels of the frame.
        if run.images.iter().any(|image| image.boxes == BoxPixels::Frame) {
            return;
        }
        let warning = self.numbers.add(outcome, details, anchors);
        if self.started.is_none() && !self.numbers.are_empty() {
            self.started = Some(Timeout::start(pts));
        }
        if let Some(warning) = warning {
            self.post(element, warning);
        }
    }

    /// Judges the numbers at the end of the stream.
    pub fn judge(&mut self, element: &NmsFilter) {
        self.judge_numbers(element);
        self.end_quiet(element, None);
    }

    fn end_quiet(&mut self, element: &NmsFilter, run: Option<Run<'_>>) {
        if let Some(silence) = self.quiet.end(run) {
            self.post(element, silence.into());
        }
    }

    fn judge_numbers(&mut self, element: &NmsFilter) {
        if let Some(warning) = self.numbers.judge() {
            self.post(element, warning);
        }
    }

    /// Posts the warning, unless one of its kind was posted.
    fn post(&self, element: &NmsFilter, warning: Warning) {
        let mut posted = lock(&self.posted);
        if posted.warnings.iter().any(|other| warning.has_kind_of(other)) {
            return;
        }
        posted.warnings.push(warning.clone());
        drop(posted);
        let text = warning.text(Interface::Element);
        if warning.is_of_plan() {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("{text}"),
                ["{warning:?}"]
            );
        } else {
            gst::element_warning!(
                element,
                gst::StreamError::Format,
                ("{text}"),
                ["{:?}", self.numbers]
            );
        }
    }
}
