// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of an instance: opens the session, and runs the batches.
//!
//! In: pictures that elements have submitted. Out: filled output sets, each with the number of its batch.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{OpenBatch, Run, SetState, Shared, State, lock, wait};
use crate::inference::CAT;
use crate::inference::error::InferenceError;
use crate::inference::model::varying_nodes::varying_node;
use crate::inference::outputs::OutputSet;
use crate::inference::provider::Provider;
use crate::inference::session::{InputMemory, ModelSession, OpenModel};
use crate::inference::{CudaGraph, InferenceOptions};
use nmsfilter_core::device::Event;

/// Locked while a session is opened or closed, because ONNX Runtime can crash if several threads do this at once
/// (microsoft/onnxruntime#26610, #27089).
static SESSIONS: Mutex<()> = Mutex::new(());

/// Opens the session and sends the open model, or the error, to `opened`. Then runs batches until the instance is
/// dropped or the model fails.
pub(super) fn run(
    options: &InferenceOptions,
    provider: Provider,
    shared: &Shared,
    opened: Sender<Result<OpenModel, InferenceError>>,
) {
    let session = {
        let _others_wait = lock(&SESSIONS);
        open_session(options, provider)
    };
    let mut session = match session {
        Ok(session) => session,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let _ = opened.send(Ok(session.model.clone()));
    drop(opened);
    // If this thread panics, elements must get an error instead of waiting for it forever.
    let run = AssertUnwindSafe(|| run_batches(&mut session, shared, options.batch_timeout));
    if catch_unwind(run).is_err() {
        let problem = "the thread of the model has panicked".to_owned();
        fail(shared, &InferenceError::Session(problem));
    }
    let _others_wait = lock(&SESSIONS);
    drop(session);
}

impl State {
    /// Returns whether the batch takes no more entries. Some of its pictures may not be written yet.
    fn is_complete(&self, capacity: usize, timeout: Duration) -> bool {
        let Some(batch) = &self.batch else {
            return false;
        };
        let recent = self.number.saturating_sub(2 * batch.runs_of_frame);
        let expected = self.members.values().filter(|&&last| last >= recent).count();
        let has_expired =
            batch.is_released || batch.since.is_some_and(|since| since.elapsed() >= timeout);
        let is_full = batch.places >= capacity || batch.entries >= expected;
        batch.entries > 0 && (is_full || has_expired)
    }
}

/// Opens the session, with a CUDA graph if one is wanted and possible.
fn open_session(
    options: &InferenceOptions,
    provider: Provider,
) -> Result<ModelSession, InferenceError> {
    let with_graph = || match varying_node_of(&options.model) {
        Some(node) => Err(format!(
            "the outputs of the model's node {node} have sizes that depend on the picture"
        )),
        None => ModelSession::open(options, provider, true).map_err(|why| why.to_string()),
    };
    let no_graph = |problem: String| {
        InferenceError::Library(format!(
            "cuda-graph=on: {problem}; set cuda-graph=auto to run the model without a graph if necessary"
        ))
    };
    match (provider, options.cuda_graph) {
        (Provider::Cuda, CudaGraph::On) => with_graph().map_err(no_graph),
        (Provider::Cuda, CudaGraph::Auto) => with_graph().or_else(|why| {
            // If the cause is not the graph, opening the session without a graph fails, too.
            let session = ModelSession::open(options, provider, false)?;
            gst::debug!(CAT, "without a CUDA graph: {why}");
            Ok(session)
        }),
        (Provider::Cpu | Provider::TensorRt | Provider::Plugin, CudaGraph::On) => {
            Err(no_graph(format!("provider={} does not support CUDA graphs", provider.name())))
        }
        _ => ModelSession::open(options, provider, false),
    }
}

/// Returns the type of a node with outputs of varying size in the model at `path`, if there is one. Such a node
/// cannot be part of a CUDA graph.
fn varying_node_of(path: &Path) -> Option<&'static str> {
    // An unreadable file is not an error here. It becomes one when the session is opened.
    path.is_file().then(|| fs::read(path).ok()).flatten().and_then(|model| varying_node(&model))
}

/// Runs batches until the instance is dropped or the model fails.
fn run_batches(session: &mut ModelSession, shared: &Shared, timeout: Duration) {
    let mut sets: Vec<OutputSet> = Vec::new();
    let mut written = Vec::new();
    for index in (0..session.buffer_count()).cycle() {
        written.clear();
        open_batch(shared, session.input(index), written);
        let Some(batch) = complete_batch(session, shared, timeout) else {
            return;
        };
        let OpenBatch { pictures, submitted, .. } = batch;
        written = batch.written;
        if pictures == 0 {
            continue;
        }
        let set = match free_set(session, shared, &mut sets) {
            Ok(set) => set,
            Err(error) => return fail(shared, &error),
        };
        let result = session.run(index, &mut sets[set], &written);
        let failure = result.as_ref().err().filter(|error| error.is_gpu_failure()).cloned();
        let run = |gpu_time| Run { pictures, gpu_time, sets: sets.len() };
        let result = result.map(run);
        let mut state = lock(&shared.state);
        let number = state.number;
        let set_state = &mut state.sets[set];
        (set_state.number, set_state.entries, set_state.result) = (number, submitted, result);
        drop(state);
        if let Some(failure) = failure {
            return fail(shared, &failure);
        }
        shared.changed.notify_all();
    }
}

/// Ends the batches with this error, which all elements get.
fn fail(shared: &Shared, error: &InferenceError) {
    let mut state = lock(&shared.state);
    state.batch = None;
    state.failure = Some(error.clone());
    drop(state);
    shared.changed.notify_all();
}

/// Returns the index of an output set to whose tensors nothing has a reference, or allocates a new set.
fn free_set(
    session: &ModelSession,
    shared: &Shared,
    sets: &mut Vec<OutputSet>,
) -> Result<usize, InferenceError> {
    let state = lock(&shared.state);
    let is_free = |index: &usize| state.sets[*index].entries == 0 && sets[*index].renew();
    if let Some(free) = (0..sets.len()).find(is_free) {
        return Ok(free);
    }
    drop(state);
    let set = session.new_set()?;
    let (slots, result) = (set.slots.clone(), Ok(Run::default()));
    lock(&shared.state).sets.push(SetState { slots, number: 0, entries: 0, result });
    sets.push(set);
    Ok(sets.len() - 1)
}

/// Opens a batch whose pictures are written to `input`. `written` is an empty vector whose memory is reused.
fn open_batch(shared: &Shared, input: InputMemory, written: Vec<Event>) {
    let mut state = lock(&shared.state);
    state.number += 1;
    state.batch = Some(OpenBatch { input, written, ..OpenBatch::default() });
    drop(state);
    shared.changed.notify_all();
}

/// Waits until the batch is complete, and closes it. Returns `None` if the instance is dropped.
fn complete_batch(session: &ModelSession, shared: &Shared, timeout: Duration) -> Option<OpenBatch> {
    let capacity = session.model.model.input.batch;
    let mut state = lock(&shared.state);
    loop {
        if state.is_stopped {
            return None;
        }
        let is_complete = state.is_complete(capacity, timeout);
        if is_complete && state.batch.as_ref().is_some_and(OpenBatch::is_written) {
            return state.batch.take();
        }
        let since = state.batch.as_ref().and_then(|batch| batch.since);
        state = match since.filter(|_| !is_complete) {
            Some(since) => {
                let rest = timeout.saturating_sub(since.elapsed());
                let waited = shared.arrived.wait_timeout(state, rest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => wait(&shared.arrived, state),
        };
    }
}
