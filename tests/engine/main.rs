//! Every engine: the results of other projects, recorded tensors, random scenes, and layouts that
//! do not fit their tensors.

#[path = "../support/mod.rs"]
mod support;

mod candidates;
mod layout;
mod paper;
mod properties;
mod recorded;
mod vectors;
