// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warnings of a program's runs.
//!
//! In: the facts of each new plan, and the outcome of each run. Out: a list of warnings, one of each kind.

use crate::engine::{GroupOutcome, ImagePlace, Outcome};
use crate::reading::plan::Plan;
use crate::reading::{DetailEvidence, Numbers, PlanFacts, Quiet, Reading, Run, Warning, of_plan};
use crate::tensor::TensorView;

/// The number of images with candidates or rejected anchors after which their boxes are judged, and of images without, after
/// which nothing is found. One image can be an exception, and a program may have only a few.
const IMAGES: usize = 10;

/// The warnings so far, and the facts on which later ones depend.
#[derive(Default)]
pub(super) struct Watch {
    warnings: Vec<Warning>,
    numbers: Numbers,
    /// The images with candidates or rejected anchors.
    images: usize,
    quiet: Quiet,
}

impl Watch {
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Looks at a new plan, or at other parameters of it.
    pub fn begin(&mut self, facts: PlanFacts<'_>, reading: Reading) {
        if self.numbers.begin(reading) {
            (self.images, self.quiet) = (0, Quiet::default());
        }
        for warning in of_plan(facts) {
            if warning.explains_silence() {
                self.quiet.stop();
            }
            self.push(warning);
        }
    }

    /// Looks at the outcome of a run. Does not allocate unless there is a warning.
    pub fn add(
        &mut self,
        outcome: &Outcome<'_>,
        tensors: &[TensorView<'_>],
        plan: &Plan,
        images: &[ImagePlace],
    ) {
        let layout = &plan.choice().layout;
        let run = Run { tensors, layout, params: plan.params(), images };
        self.quiet.add(outcome, run);
        if self.quiet.images() >= IMAGES
            && let Some(silence) = self.quiet.end(Some(run))
        {
            self.push(silence.into());
        }
        if !self.numbers.are_open() {
            return;
        }
        let details = details(outcome, plan, images);
        if let Some(warning) = self.numbers.add(outcome, details, plan.anchors()) {
            self.push(warning);
        }
        let has_any = |image: &GroupOutcome<'_>| image.candidates + image.rejected > 0;
        self.images += outcome.groups().filter(has_any).count();
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

/// The evidence of the details of all survivors.
fn details(outcome: &Outcome<'_>, plan: &Plan, images: &[ImagePlace]) -> DetailEvidence {
    let mut evidence = DetailEvidence::default();
    let details = plan.details();
    if details.points().is_none() && !details.is_oriented() {
        return evidence;
    }
    let layout = &plan.choice().layout;
    for (image, place) in outcome.groups().zip(images) {
        let rows = image.columns.chunks(outcome.column_components());
        for (survivor, row) in image.survivors.iter().zip(rows) {
            let detail = details.of(layout, place.unit(layout), survivor, row);
            evidence.add(survivor, &detail);
        }
    }
    evidence
}
