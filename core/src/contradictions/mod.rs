// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects tensors that are misread.
//!
//! In: the facts of each new plan, and the result of each run. Out: [`Warning`]s. A decoder or a setting that contradicts
//! the tensors (`plan.rs`) is found with the plan, a score that contradicts the decoder with the first frame that has one.
//! Other numbers (`evidence.rs`) are judged when the caller has seen enough frames with candidates or rejected anchors;
//! frames are not looked at afterwards. Images in which nothing is found are counted apart (`silence.rs`).

mod evidence;
mod numbers;
mod plan;
mod reading;
mod silence;

use std::fmt;
use std::mem::discriminant;

use crate::engine::Outcome;
use crate::names::Interface;

pub use evidence::DetailEvidence;
pub use plan::{PlanFacts, of_plan};
pub use reading::Reading;
pub use silence::{Quiet, Run, Silence};

use evidence::Evidence;
use numbers::NumberContradiction;
use plan::PlanContradiction;

/// Tensors, settings or results that are probably not as intended. Displayed with the names of the Rust interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning(Contradiction);

#[derive(Clone, Debug, PartialEq)]
enum Contradiction {
    Plan(PlanContradiction),
    Numbers(NumberContradiction),
    Silence(Silence),
}

impl Warning {
    /// The text with the names that `interface` has for settings.
    pub fn text(&self, interface: Interface) -> impl fmt::Display + '_ {
        Text { warning: self, interface }
    }

    /// Whether both are of one kind, whatever their numbers are.
    pub fn has_kind_of(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Contradiction::Plan(one), Contradiction::Plan(other)) => {
                discriminant(one) == discriminant(other)
            }
            (Contradiction::Numbers(one), Contradiction::Numbers(other)) => {
                discriminant(one) == discriminant(other)
            }
            (Contradiction::Silence(_), Contradiction::Silence(_)) => true,
            _ => false,
        }
    }

    /// Whether the decoder and the settings contradict the tensors, rather than numbers in the tensors the decoder.
    pub fn is_of_plan(&self) -> bool {
        matches!(self.0, Contradiction::Plan(_))
    }

    /// Whether nothing is detected, or nothing right, as long as the decoder or the thresholds are not corrected.
    pub fn explains_silence(&self) -> bool {
        matches!(&self.0, Contradiction::Plan(contradiction)
            if contradiction.is_of_decoder() || contradiction.is_of_thresholds())
    }

    /// Whether the decoder, and so the number of classes, is probably wrong.
    pub fn is_of_decoder(&self) -> bool {
        matches!(&self.0, Contradiction::Plan(contradiction) if contradiction.is_of_decoder())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(Interface::Rust).fmt(f)
    }
}

impl From<PlanContradiction> for Warning {
    fn from(contradiction: PlanContradiction) -> Self {
        Self(Contradiction::Plan(contradiction))
    }
}

impl From<Silence> for Warning {
    fn from(silence: Silence) -> Self {
        Self(Contradiction::Silence(silence))
    }
}

impl From<NumberContradiction> for Warning {
    fn from(contradiction: NumberContradiction) -> Self {
        Self(Contradiction::Numbers(contradiction))
    }
}

struct Text<'a> {
    warning: &'a Warning,
    interface: Interface,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.warning.0 {
            Contradiction::Plan(contradiction) => contradiction.write(f, self.interface),
            Contradiction::Numbers(contradiction) => contradiction.write(f, self.interface),
            Contradiction::Silence(silence) => silence.write(f, self.interface),
        }
    }
}

/// The numbers of one reading, from its first frame until they are judged.
#[derive(Debug, Default)]
pub struct Numbers {
    /// How the tensors are read; `None` before the first plan, and when the numbers have been judged.
    reading: Option<Reading>,
    evidence: Evidence,
}

impl Numbers {
    /// Begins anew if tensors are read otherwise than before. Returns whether they are.
    pub fn begin(&mut self, reading: Reading) -> bool {
        let is_other = self.reading != Some(reading);
        if is_other {
            *self = Self { reading: Some(reading), evidence: Evidence::default() };
        }
        is_other
    }

    /// Whether frames are looked at.
    pub fn are_open(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether no frame had a candidate or a rejected anchor.
    pub fn are_empty(&self) -> bool {
        self.evidence.is_empty()
    }

    /// Adds the frames of a run, each of `anchors` anchors, and the details of all survivors. Returns the warning of the
    /// scores, again with each run. Does not allocate.
    pub fn add(
        &mut self,
        outcome: &Outcome<'_>,
        details: DetailEvidence,
        anchors: usize,
    ) -> Option<Warning> {
        let reading = self.reading?;
        self.evidence.add_details(details);
        for frame in outcome.groups() {
            self.evidence.add(&frame, anchors, reading.boxes.model);
        }
        self.evidence.of_scores(&reading).map(Warning::from)
    }

    /// Judges the numbers. The following frames are not looked at.
    pub fn judge(&mut self) -> Option<Warning> {
        let reading = self.reading.take()?;
        self.evidence.of_boxes(&reading).map(Warning::from)
    }
}
