// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model that elements share: its session on a thread of its own, and the batches that it runs.
//!
//! In: pictures of several elements. Out: for each the tensors of its slot.
//!
//! ```text
//! element:  enter ─► write the picture ─► submit ─► wait for the launch ─► attach the tensors of its slot
//! thread:   open a batch ─► wait until it is complete ─► run the model ─► open the next
//! ```
//!
//! A batch is complete if it has `batch` pictures, or one of each element that was in one of the last two batches, or if
//! its first picture has waited for the timeout; and if all its pictures are written. So elements that are paused,
//! stopped or slower than the others delay a batch twice, by the timeout. An element has one picture in a batch and waits
//! until the run of that is submitted, so that its frames stay in order. Slots without a picture have what was there
//! before; nothing reads their tensors.
//!
//! An instance without an id has one element. Instances with an id are found in [`INSTANCES`] as long as an element has
//! them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::debug_category::CAT;
use super::error::InferenceError;
use super::outputs::{OutputSet, Slot};
use super::provider::Provider;
use super::session::{InputMemory, ModelSession, OpenModel};
use super::{CudaGraph, InferenceOptions};
use crate::device::Event;
use crate::input::custom_meta::NewTensor;

/// A model that elements share.
pub struct Instance {
    /// What is known of the model.
    pub model: OpenModel,
    options: InferenceOptions,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Instances with an id.
static INSTANCES: Mutex<Vec<(String, Provider, Weak<Instance>)>> = Mutex::new(Vec::new());

/// What the session's thread and the elements share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// For the session's thread: a picture has been submitted, or a place has been given back.
    arrived: Condvar,
    /// For the elements: a batch has been opened, or launched.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The elements: the number of the last batch with a picture of each.
    members: Vec<Option<u64>>,
    batch: Option<Batch>,
    /// The number of the batch that is open or was last.
    number: u64,
    sets: Vec<SetState>,
    /// Why there will be no other batch.
    failure: Option<InferenceError>,
    is_stopped: bool,
}

/// A batch that takes pictures.
struct Batch {
    set: usize,
    input: InputMemory,
    /// The places that elements have.
    taken: usize,
    /// Those of them whose picture is written, or that were given back.
    settled: usize,
    written: Vec<Event>,
    /// Whether it has any picture.
    has_picture: bool,
    /// When the first place was taken.
    since: Option<Instant>,
}

/// What elements see of a set.
struct SetState {
    slots: Arc<[Slot]>,
    /// The elements that have a place.
    places: usize,
    /// Of the last run; `None` while it is open.
    result: Option<Result<Run, InferenceError>>,
}

/// A run of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// The number of pictures.
    pub pictures: usize,
    /// The time that an earlier run took on the GPU, if that is known.
    pub gpu_time: Option<Duration>,
    /// The number of runs whose outputs have memory.
    pub sets: usize,
}

impl Instance {
    /// Opens the model on `provider`, or returns the instance with the same id.
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used, or the instance has other options.
    pub fn open(
        options: &InferenceOptions,
        provider: Provider,
    ) -> Result<Arc<Self>, InferenceError> {
        let Some(id) = &options.instance_id else {
            return Self::start(options, provider).map(Arc::new);
        };
        // Others wait until the model is open.
        let mut instances = lock(&INSTANCES);
        instances.retain(|(.., instance)| instance.strong_count() > 0);
        let at = instances.iter().position(|(other, with, _)| other == id && *with == provider);
        if let Some(at) = at
            && let Some(instance) = instances[at].2.upgrade()
            && lock(&instance.shared.state).failure.is_none()
        {
            let differing = options.differing(&instance.options);
            if !differing.is_empty() {
                return Err(InferenceError::OtherOptions { id: id.clone(), differing });
            }
            return Ok(instance);
        }
        let instance = Arc::new(Self::start(options, provider)?);
        let weak = Arc::downgrade(&instance);
        match at {
            Some(at) => instances[at].2 = weak,
            None => instances.push((id.clone(), provider, weak)),
        }
        Ok(instance)
    }

    fn start(options: &InferenceOptions, provider: Provider) -> Result<Self, InferenceError> {
        let shared = Arc::<Shared>::default();
        let (opened, result) = mpsc::channel();
        let (of_thread, options) = (shared.clone(), options.clone());
        let (batch_timeout, for_thread) = (options.batch_timeout, options.clone());
        let run = move || match open_session(&for_thread, provider) {
            Ok(session) => {
                let _ = opened.send(Ok(session.model.clone()));
                drop(opened);
                run_batches(session, &of_thread, batch_timeout);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = thread::Builder::new().name("ortinference".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            InferenceError::Session(format!("a thread cannot be started: {error}"))
        })?;
        let ended = || Err(InferenceError::Session("the thread of the model has ended".to_owned()));
        let model = result.recv().unwrap_or_else(|_| ended())?;
        Ok(Self { model, options, shared, thread: Some(thread) })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        lock(&self.shared.state).is_stopped = true;
        self.shared.arrived.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            gst::warning!(CAT, "the thread of a model has panicked");
        }
    }
}

/// An element among those of an instance.
pub struct Member {
    instance: Arc<Instance>,
    index: usize,
}

impl Member {
    /// Adds an element.
    pub fn new(instance: &Arc<Instance>) -> Self {
        let mut state = lock(&instance.shared.state);
        let index = match state.members.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                state.members.push(None);
                state.members.len() - 1
            }
        };
        state.members[index] = Some(state.number);
        Self { instance: instance.clone(), index }
    }

    /// The model.
    pub fn model(&self) -> &OpenModel {
        &self.instance.model
    }

    /// Takes a place in the open batch, for which it waits.
    ///
    /// # Errors
    /// If the model has failed before.
    pub fn enter(&self) -> Result<Place<'_>, InferenceError> {
        let shared = &*self.instance.shared;
        let capacity = self.instance.model.model.input.batch;
        let mut state = lock(&shared.state);
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let number = state.number;
            let State { batch, sets, members, .. } = &mut *state;
            if let Some(batch) = batch.as_mut().filter(|batch| batch.taken < capacity) {
                let place = Place {
                    shared,
                    set: batch.set,
                    slots: sets[batch.set].slots.clone(),
                    input: batch.input,
                    index: batch.taken,
                    is_settled: false,
                };
                batch.taken += 1;
                batch.since.get_or_insert_with(Instant::now);
                sets[batch.set].places += 1;
                members[self.index] = Some(number);
                return Ok(place);
            }
            state = wait(&shared.changed, state);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.instance.shared.state).members[self.index] = None;
        // The batch may wait for this element.
        self.instance.shared.arrived.notify_all();
    }
}

/// A place in a batch: memory for a picture, and then the tensors of that picture. Until it is dropped, no other run
/// writes the tensors.
pub struct Place<'i> {
    shared: &'i Shared,
    set: usize,
    slots: Arc<[Slot]>,
    /// The memory of the batch's pictures.
    pub input: InputMemory,
    /// The number of the picture.
    pub index: usize,
    is_settled: bool,
}

impl Place<'_> {
    /// The picture is written, once `written` has completed. Waits until the run is submitted.
    ///
    /// # Errors
    /// If the model fails.
    pub fn run(&mut self, written: Option<Event>) -> Result<Run, InferenceError> {
        let mut state = lock(&self.shared.state);
        self.settle(&mut state, |batch| {
            batch.has_picture = true;
            batch.written.extend(written);
        });
        loop {
            if let Some(result) = &state.sets[self.set].result {
                return result.clone();
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// Calls `attach` with each of the picture's tensors.
    ///
    /// # Errors
    /// That of `attach`.
    pub fn tensors<E>(&self, attach: impl FnMut(&NewTensor) -> Result<(), E>) -> Result<(), E> {
        lock(&self.slots[self.index]).iter().try_for_each(attach)
    }

    fn settle(&mut self, state: &mut State, change: impl FnOnce(&mut Batch)) {
        if let Some(batch) = state.batch.as_mut().filter(|_| !self.is_settled) {
            batch.settled += 1;
            change(batch);
        }
        self.is_settled = true;
        self.shared.arrived.notify_all();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        self.settle(&mut state, |_| {});
        state.sets[self.set].places -= 1;
    }
}

impl State {
    /// Whether the batch is complete, but for pictures that are not written yet.
    fn is_complete(&self, capacity: usize, timeout: Duration) -> bool {
        let Some(batch) = &self.batch else {
            return false;
        };
        let recent = self.number.saturating_sub(2);
        let expected = self.members.iter().flatten().filter(|&&last| last >= recent).count();
        let has_expired = batch.since.is_some_and(|since| since.elapsed() >= timeout);
        batch.taken > 0 && (batch.taken >= expected.min(capacity) || has_expired)
    }
}

/// Opens the session, with a CUDA graph if that is wanted and possible.
fn open_session(
    options: &InferenceOptions,
    provider: Provider,
) -> Result<ModelSession, InferenceError> {
    let graph = |why: InferenceError| InferenceError::Graph { problem: why.to_string() };
    match (provider, options.cuda_graph) {
        (Provider::Cuda, CudaGraph::On) => {
            ModelSession::open(options, provider, true).map_err(graph)
        }
        (Provider::Cuda, CudaGraph::Auto) => match ModelSession::open(options, provider, true) {
            Ok(session) => Ok(session),
            Err(why) => {
                // If that is not because of the graph, it is an error again.
                let session = ModelSession::open(options, provider, false)?;
                gst::debug!(CAT, "without a CUDA graph: {why}");
                Ok(session)
            }
        },
        (Provider::Cpu | Provider::TensorRt, CudaGraph::On) => {
            let problem = format!("provider={} has none", provider.name());
            Err(InferenceError::Graph { problem })
        }
        _ => ModelSession::open(options, provider, false),
    }
}

/// Runs batches until the instance is dropped or the model fails.
fn run_batches(mut session: ModelSession, shared: &Shared, timeout: Duration) {
    let mut sets: Vec<OutputSet> = Vec::new();
    let mut written = Vec::new();
    for station in (0..session.stations()).cycle() {
        let open = open_batch(&mut session, shared, station, &mut sets);
        let Ok(set) = open.inspect_err(|error| fail(shared, error)) else {
            return;
        };
        let Some(batch) = complete_batch(&session, shared, timeout) else {
            return;
        };
        let result = if batch.has_picture {
            written.clear();
            written.extend(batch.written);
            session.run(station, &sets[set], &written)
        } else {
            Ok(None)
        };
        let run = |gpu_time| Run { pictures: batch.settled, gpu_time, sets: sets.len() };
        let failure = result.as_ref().err().filter(|error| error.is_of_gpu()).cloned();
        let mut state = lock(&shared.state);
        state.sets[set].result = Some(result.map(run));
        drop(state);
        if let Some(failure) = failure {
            fail(shared, &failure);
            return;
        }
        shared.changed.notify_all();
    }
}

/// Ends the batches; elements get the error.
fn fail(shared: &Shared, error: &InferenceError) {
    let mut state = lock(&shared.state);
    state.batch = None;
    state.failure = Some(error.clone());
    drop(state);
    shared.changed.notify_all();
}

/// Opens a batch whose outputs are written to a free set, of which the index is returned.
fn open_batch(
    session: &mut ModelSession,
    shared: &Shared,
    station: usize,
    sets: &mut Vec<OutputSet>,
) -> Result<usize, InferenceError> {
    let places = |state: &State, index: usize| state.sets[index].places;
    let mut state = lock(&shared.state);
    let free = (0..sets.len()).find(|&index| places(&state, index) == 0 && sets[index].renew());
    let set = match free {
        Some(set) => set,
        None => {
            drop(state);
            let set = session.new_set()?;
            state = lock(&shared.state);
            state.sets.push(SetState { slots: set.slots.clone(), places: 0, result: None });
            sets.push(set);
            sets.len() - 1
        }
    };
    state.sets[set].result = None;
    state.number += 1;
    state.batch = Some(Batch {
        set,
        input: session.input(station),
        taken: 0,
        settled: 0,
        written: Vec::new(),
        has_picture: false,
        since: None,
    });
    drop(state);
    shared.changed.notify_all();
    Ok(set)
}

/// Waits until the batch is complete, and closes it; `None` if the instance is dropped.
fn complete_batch(session: &ModelSession, shared: &Shared, timeout: Duration) -> Option<Batch> {
    let capacity = session.model.model.input.batch;
    let mut state = lock(&shared.state);
    loop {
        if state.is_stopped {
            return None;
        }
        let is_complete = state.is_complete(capacity, timeout);
        if is_complete && state.batch.as_ref().is_some_and(|batch| batch.settled == batch.taken) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
