// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects tensors that are misread.
//!
//! In: the counts and the survivors of runs. Out: what contradicts the decoder and the settings.

mod numbers;

pub(crate) use numbers::{Evidence, NumberContradiction, PointEvidence, Reading};
