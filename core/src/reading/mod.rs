// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects tensors that are misread.
//!
//! In: the facts of each new plan, and the result of each run. Out: [`Warning`]s. If the decoder or a setting
//! contradicts the tensors, this is found when the plan is made (`facts.rs`). If a score contradicts the decoder,
//! this is found in the first frame with such a score. The other numbers (`evidence.rs`) are judged once, when the
//! caller has seen enough frames with candidates or rejected anchors; later frames are not examined. Images in
//! which nothing is found are counted separately (`silence.rs`).

mod evidence;
mod facts;
mod numbers;
pub mod plan;
mod silence;
mod tensors_read;

use std::fmt;
use std::mem::discriminant;

use crate::engine::Outcome;
use crate::names::Interface;

pub use evidence::DetailEvidence;
pub use facts::{PlanFacts, of_plan};
pub use silence::{Quiet, Run, Silence};
pub use tensors_read::Reading;

use evidence::Evidence;
use facts::PlanContradiction;
use numbers::NumberContradiction;

/// A warning that tensors, settings or results are probably not what the user intended. `Display` uses the names of
/// the Rust interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning(Contradiction);

#[derive(Clone, Debug, PartialEq)]
enum Contradiction {
    Plan(PlanContradiction),
    Numbers(NumberContradiction),
    Silence(Silence),
}

impl Warning {
    /// Returns the text with the names that `interface` uses for settings.
    pub fn text(&self, interface: Interface) -> impl fmt::Display + '_ {
        Text { warning: self, interface }
    }

    /// Returns true if both are of one kind, whatever their numbers are.
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

    /// Returns true if the decoder and the settings contradict the tensors, rather than numbers in the tensors the
    /// decoder.
    pub fn is_of_plan(&self) -> bool {
        matches!(self.0, Contradiction::Plan(_))
    }

    /// Returns true if nothing is detected, or nothing right, as long as the decoder or the thresholds are not
    /// corrected.
    pub fn explains_silence(&self) -> bool {
        matches!(&self.0, Contradiction::Plan(contradiction)
            if contradiction.concerns_decoder() || contradiction.concerns_thresholds())
    }

    /// Returns true if the decoder, and so the number of classes, is probably wrong.
    pub fn is_of_decoder(&self) -> bool {
        matches!(&self.0, Contradiction::Plan(contradiction) if contradiction.concerns_decoder())
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

/// The evidence for one reading, from its first frame until it is judged.
#[derive(Debug, Default)]
pub struct Numbers {
    /// How the tensors are read; `None` before the first plan, and when the numbers have been judged.
    reading: Option<Reading>,
    evidence: Evidence,
}

impl Numbers {
    /// Starts again if the tensors are now read in another way. Returns whether they are.
    pub fn begin(&mut self, reading: Reading) -> bool {
        let is_other = self.reading != Some(reading);
        if is_other {
            *self = Self { reading: Some(reading), evidence: Evidence::default() };
        }
        is_other
    }

    /// Returns whether frames are still examined.
    pub fn are_open(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns true if no frame had a candidate or a rejected anchor.
    pub fn are_empty(&self) -> bool {
        self.evidence.is_empty()
    }

    /// Adds the frames of a run, each with `anchors` anchors, and the details of all survivors. Returns the warning
    /// about scores, if there is one, for every run. Does not allocate.
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
        self.evidence.check_scores(&reading).map(Warning::from)
    }

    /// Judges the numbers. Later frames are not examined.
    pub fn judge(&mut self) -> Option<Warning> {
        let reading = self.reading.take()?;
        self.evidence.check_boxes(&reading).map(Warning::from)
    }
}
