// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings of a program's runs.
//!
//! In: the facts of each new plan, and the outcome of each run. Out: a list of warnings, one of each kind.

use crate::contradictions::{Numbers, PlanFacts, PointEvidence, Reading, Warning, of_plan};
use crate::detail::Details;
use crate::engine::{Outcome, Params};
use crate::plan::Plan;

/// The number of images with candidates or rejected anchors after which their boxes are judged. One image can be an
/// exception, and a program may have only a few.
pub(super) const IMAGES: usize = 10;

/// The warnings so far, and what later ones depend on.
#[derive(Default)]
pub(super) struct Watch {
    warnings: Vec<Warning>,
    numbers: Numbers,
    /// The images with candidates or rejected anchors.
    images: usize,
}

impl Watch {
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Looks at a new plan, or at other parameters of it.
    pub fn begin(&mut self, facts: PlanFacts<'_>, reading: Reading) {
        if self.numbers.begin(reading) {
            self.images = 0;
        }
        of_plan(facts).for_each(|warning| self.push(warning));
    }

    /// Looks at the outcome of a run. Does not allocate unless there is a warning.
    pub fn add(&mut self, outcome: &Outcome<'_>, plan: &Plan, params: &Params) {
        if !self.numbers.are_open() {
            return;
        }
        let points = points(outcome, plan, params);
        if let Some(warning) = self.numbers.add(outcome, points, plan.anchors(params)) {
            self.push(warning);
        }
        let has_any =
            |image: &crate::engine::ImageOutcome<'_>| image.candidates + image.rejected > 0;
        self.images += outcome.images().filter(has_any).count();
        if self.images >= IMAGES
            && let Some(warning) = self.numbers.judge()
        {
            self.push(warning);
        }
    }

    fn push(&mut self, warning: Warning) {
        if !self.warnings.iter().any(|other| warning.has_kind_of(other)) {
            self.warnings.push(warning);
        }
    }
}

/// The evidence of the points of all survivors.
fn points(outcome: &Outcome<'_>, plan: &Plan, params: &Params) -> PointEvidence {
    let mut evidence = PointEvidence::default();
    let details: &Details = plan.details();
    if details.points().is_none() {
        return evidence;
    }
    for image in outcome.images() {
        let rows = image.columns.chunks(outcome.column_components());
        for (survivor, row) in image.survivors.iter().zip(rows) {
            let detail = details.of(&plan.choice().layout, params, survivor, row);
            evidence.add(survivor, detail.points());
        }
    }
    evidence
}
