// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the work of a run, so that a run that covers too little can fail.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Default)]
pub struct Counts {
    counts: BTreeMap<String, u64>,
}

impl Counts {
    pub fn add(&mut self, name: impl Into<String>, count: u64) {
        *self.counts.entry(name.into()).or_default() += count;
    }

    pub fn one(&mut self, name: impl Into<String>) {
        self.add(name, 1);
    }

    pub fn get(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.iter().try_for_each(|(name, count)| writeln!(f, "{count:>12}  {name}"))
    }
}
