// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cases of `tests/engine` whose survivors other projects give, once more: each also through a pipeline.

#[path = "../support/mod.rs"]
mod support;

#[path = "../engine/candidates.rs"]
mod candidates;
#[path = "../engine/oriented_vectors.rs"]
mod oriented_vectors;
#[path = "../engine/paper.rs"]
mod paper;
#[path = "../engine/recorded.rs"]
mod recorded;
#[path = "../engine/settings.rs"]
mod settings;
mod through_pipeline;
#[path = "../engine/vectors.rs"]
mod vectors;
