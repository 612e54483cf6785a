// SPDX-License-Identifier: MIT OR Apache-2.0
//! Posts warnings of tensors that are misread.
//!
//! In: each new plan, and the result of each run. Out: element warnings, each posted once. What the core finds
//! (`src/contradictions`) and settings that contradict the model description (`settings.rs`) are reported with the plan, a
//! score that contradicts the decoder with the first frame that has one, and other numbers after one second of frames
//! with candidates or rejected anchors, or at the end of a shorter stream.

mod settings;

use std::mem::{self, Discriminant};
use std::sync::{Arc, Mutex};

use super::NmsFilter;
use super::plan::{PlanInput, StreamPlan};
use super::settings::Settings;
use super::timeout::Timeout;
use crate::contradictions::{self, Interface, Numbers, PlanFacts, PointEvidence, Warning};
use crate::elements::lock;
use crate::engine::Outcome;
use crate::geometry::Mapping;
use crate::output::Labels;

use settings::SettingContradiction;

/// What was found since the element started.
#[derive(Default)]
pub(super) struct Contradictions {
    numbers: Numbers,
    /// Started with the first frame that has candidates or rejected anchors.
    started: Option<Timeout>,
    posted: Arc<Mutex<Posted>>,
}

/// What the element has posted.
#[derive(Default)]
struct Posted {
    warnings: Vec<Warning>,
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
        plan: &StreamPlan,
        input: PlanInput<'_>,
        mapping: &Mapping,
        settings: &Settings,
        labels: &Labels,
    ) {
        if self.numbers.begin(plan.reading(mapping)) {
            self.started = None;
        }
        let mut is_decoder_wrong = false;
        let facts = PlanFacts {
            choice: plan.choice(),
            tensors: &plan.quantization().applied(input.tensors),
            options: input.decoder_options(settings, labels),
            thresholds: &plan.params(mapping).thresholds,
            has_class_thresholds: settings.class_thresholds.is_some(),
            classes: settings.classes.as_deref(),
            family: input.family,
        };
        for warning in contradictions::of_plan(facts) {
            is_decoder_wrong |= warning.is_of_decoder();
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

    /// Whether frames are looked at.
    pub fn are_open(&self) -> bool {
        self.numbers.are_open()
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
        if self.started.is_some_and(|started| started.has_expired(pts)) {
            self.judge(element);
            return;
        }
        let warning = self.numbers.add(outcome, points, anchors);
        if self.started.is_none() && !self.numbers.are_empty() {
            self.started = Some(Timeout::start(pts));
        }
        if let Some(warning) = warning {
            self.post(element, warning);
        }
    }

    /// Judges the numbers of a stream that ends.
    pub fn judge(&mut self, element: &NmsFilter) {
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
