// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcomes of runs with one reading.
//!
//! In: each outcome. Out: notices, as soon as there is enough evidence for them.

use std::time::Duration;

use super::evidence::{Evidence, check_labels};
use super::interpretation::Interpretation;
use super::notice::Notice;
use super::silence::Quiet;
use crate::engine::detail::Details;
use crate::engine::{BoxPixels, GroupOutcome, Job, Outcome};

/// The time after which little evidence is judged. One image can be an exception.
const EVIDENCE: Duration = Duration::from_secs(1);

/// The time without detections after which that is told. It is in seconds, since streams have one to a hundred images a
/// second, and objects stay in view for seconds.
pub(super) const QUIET: Duration = Duration::from_secs(10);

/// The number of images that replaces both times without a clock. A program may have only a few.
const IMAGES: usize = 10;

/// The evidence for an interpretation.
pub(super) struct Watch {
    interpretation: Interpretation,
    evidence: Evidence,
    /// False once the evidence has been judged.
    is_open: bool,
    /// Starts with the first image that has candidates or rejected anchors.
    since: Option<Duration>,
    /// True if a score has contradicted the decoder.
    is_score_told: bool,
    /// True if a class has had no label.
    is_label_told: bool,
    quiet: Quiet,
}

impl Watch {
    /// Images in which nothing is found are not counted if that `is_explained` by another notice.
    pub fn new(interpretation: Interpretation, is_explained: bool) -> Self {
        Self {
            interpretation,
            evidence: Evidence::default(),
            is_open: true,
            since: None,
            is_score_told: false,
            is_label_told: false,
            quiet: Quiet::new(is_explained),
        }
    }

    /// Continues an earlier one for an equal interpretation.
    pub fn follow(&mut self, mut earlier: Self) {
        if self.interpretation == earlier.interpretation {
            earlier.quiet.is_over |= self.quiet.is_over;
            *self = earlier;
        }
    }

    pub fn restart_clock(&mut self) {
        (self.since, self.quiet.since) = (None, None);
    }

    pub fn observe(
        &mut self,
        run: Job<'_>,
        outcome: &Outcome<'_>,
        of: &Details,
        now: Option<Duration>,
    ) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.quiet.add(outcome, run);
        if self.quiet.is_due(now) {
            notices.extend(self.quiet.end(Some(run)));
        }
        if !self.is_label_told {
            let check =
                |image: GroupOutcome<'_>| check_labels(image.survivors, &self.interpretation);
            let found = outcome.groups().find_map(check).map(Notice);
            self.is_label_told = found.is_some();
            notices.extend(found);
        }
        // The rules for numbers are for boxes in pixels of the model's input; boxes of regions are in pixels of the frame.
        if !self.is_open || run.images.iter().any(|image| image.boxes == BoxPixels::Frame) {
            return notices;
        }
        let anchors = run.layout.anchors().saturating_mul(self.interpretation.pairs);
        for image in outcome.groups() {
            self.evidence.add(&image, anchors, &self.interpretation);
        }
        self.add_details(run, outcome, of);
        if !self.is_score_told
            && let Some(score) = self.evidence.check_scores(&self.interpretation)
        {
            self.is_score_told = true;
            notices.push(Notice(score));
        }
        if self.evidence.is_empty() {
            return notices;
        }
        if is_over(&mut self.since, now, EVIDENCE, self.evidence.images) {
            notices.extend(self.judge());
        } else if self.evidence.is_much() {
            let found = self.evidence.check(&self.interpretation).map(Notice);
            self.is_open = found.is_none();
            notices.extend(found);
        }
        notices
    }

    pub fn finish(&mut self) -> Vec<Notice> {
        self.judge().into_iter().chain(self.quiet.end(None)).collect()
    }

    /// Adds the details of all survivors.
    fn add_details(&mut self, run: Job<'_>, outcome: &Outcome<'_>, of: &Details) {
        if of.points().is_none() && !of.is_oriented() {
            return;
        }
        for (image, place) in outcome.groups().zip(run.images) {
            let rows = image.columns.chunks(outcome.column_components);
            for (survivor, row) in image.survivors.iter().zip(rows) {
                let detail = of.of(run.layout, place.unit(run.layout), survivor, row);
                self.evidence.add_detail(survivor, &detail);
            }
        }
    }

    /// Judges the numbers. Later images are not examined.
    fn judge(&mut self) -> Option<Notice> {
        let is_open = std::mem::replace(&mut self.is_open, false);
        is_open.then(|| self.evidence.check(&self.interpretation)).flatten().map(Notice)
    }
}

/// Returns true if the time `since` the first call is over, or without a clock, if there were enough images.
pub(super) fn is_over(
    since: &mut Option<Duration>,
    now: Option<Duration>,
    duration: Duration,
    images: usize,
) -> bool {
    match now {
        Some(now) => now.saturating_sub(*since.get_or_insert(now)) >= duration,
        None => images >= IMAGES,
    }
}
