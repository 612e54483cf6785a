// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model that elements share: a thread with the model's session, and the batches that it runs.
//!
//! In: pictures of several elements. Out: for each picture, the tensors of its slot.
//!
//! ```text
//! element:  enter ─► write the picture ─► submit ─► wait for the launch ─► attach the tensors of its slot
//! thread:   open a batch ─► wait until it is complete ─► run the model ─► open the next
//! ```
//!
//! A batch is complete when all its pictures are written and one of the following holds:
//!
//! - it has `batch` pictures;
//! - each element that took part in one of the last two batches has an entry in it. If a frame needs several runs, these
//!   are the batches of the last two such frames: its last batch, which it fills in part, waits for other elements, too;
//! - its first picture has waited for the timeout;
//! - an element with a picture in it stops or is flushed ([`Interrupt`]).
//!
//! So an element that is paused, stopped or slower than the others delays two batches at most, each by the timeout.
//! An element has one entry per batch, and waits until the batch's run is submitted, so that its frames stay in
//! order. Elements get places in the order in which they came: otherwise the one that was just served, whose thread
//! runs, would enter again before those that wait. An element whose buffers have several frames enters with several
//! pictures. Slots without a picture keep the tensors of an earlier run; nothing reads them.
//!
//! An instance without an id belongs to one element. An instance with an id is found in `INSTANCES` as long as an
//! element uses it.

mod interrupt;
mod thread;

pub use interrupt::Interrupt;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::InferenceOptions;
use super::error::InferenceError;
use super::outputs::Slot;
use super::provider::Provider;
use super::session::{InputMemory, OpenModel};
use gstnmsfilter::elements::lock;
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::Event;

/// A model that elements share.
pub struct Instance {
    /// The properties of the open model.
    pub model: OpenModel,
    options: InferenceOptions,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The instances that have an id.
static INSTANCES: Mutex<Vec<(String, Provider, Weak<Instance>)>> = Mutex::new(Vec::new());

/// The state that the session's thread and the elements share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the session's thread: a picture was submitted, or an entry was given up.
    arrived: Condvar,
    /// Wakes the elements: a batch was opened or launched.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The elements from which entries are expected. For each, the number of the last batch with its entry; for a new
    /// element, of the batch that was open when it was added.
    members: HashMap<usize, u64>,
    /// The number of elements that have been added.
    added: usize,
    batch: Option<OpenBatch>,
    /// The elements that wait for room in a batch, in the order in which they came, with the numbers of their pictures.
    waiting: VecDeque<(usize, usize)>,
    /// The number of the open batch, or of the last one if none is open.
    number: u64,
    sets: Vec<SetState>,
    /// The reason why no further batch will be run.
    failure: Option<InferenceError>,
    is_stopped: bool,
}

/// A batch that is being filled with pictures.
#[derive(Default)]
struct OpenBatch {
    input: InputMemory,
    /// The number of entries.
    entries: usize,
    /// The number of entries whose pictures are submitted.
    submitted: usize,
    /// The number of entries that were given up.
    given_up: usize,
    /// The number of places for pictures that entries have taken.
    places: usize,
    /// The greatest number of runs that a frame with an entry needs.
    runs_of_frame: u64,
    /// The number of submitted pictures.
    pictures: usize,
    /// The events that mark when the pictures are written.
    written: Vec<Event>,
    /// The time at which the first element entered.
    since: Option<Instant>,
    /// True if the batch waits for no further pictures.
    is_released: bool,
}

/// The elements' view of an output set.
struct SetState {
    slots: Arc<[Slot]>,
    /// The number of the last batch whose outputs were written to the set.
    number: u64,
    /// The number of this batch's entries that still exist.
    entries: usize,
    /// The result of this batch's run.
    result: Result<Run, InferenceError>,
}

/// A run of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// The number of pictures.
    pub pictures: usize,
    /// The time that an earlier run took on the GPU, if it is known.
    pub gpu_time: Option<Duration>,
    /// The number of output sets, that is, of runs whose outputs are in memory together.
    pub sets: usize,
}

impl OpenBatch {
    /// Returns whether no entry has pictures that are still to be submitted.
    fn is_written(&self) -> bool {
        self.submitted + self.given_up == self.entries
    }
}

impl Instance {
    /// Opens the model on `provider`, or returns the existing instance with this id.
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used, or if the existing instance has other options.
    pub fn open(
        options: &InferenceOptions,
        provider: Provider,
    ) -> Result<Arc<Self>, InferenceError> {
        let Some(id) = &options.instance_id else {
            return Self::start(options, provider).map(Arc::new);
        };
        // Other elements wait here until the model is open.
        let mut instances = lock(&INSTANCES);
        instances.retain(|(.., instance)| instance.strong_count() > 0);
        let at = instances.iter().position(|(other, with, _)| other == id && *with == provider);
        if let Some(at) = at
            && let Some(instance) = instances[at].2.upgrade()
            && lock(&instance.shared.state).failure.is_none()
        {
            let differing = options.differing(&instance.options);
            if !differing.is_empty() {
                return Err(InferenceError::Settings(format!(
                    "model-instance-id={id}: another element with this id has other values of \
                     {differing}; set the same values, or another id"
                )));
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
        let (thread_shared, thread_options) = (shared.clone(), options.clone());
        let run = move || thread::run(&thread_options, provider, &thread_shared, opened);
        let thread = Builder::new().name("ortinference".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            InferenceError::Session(format!("a thread cannot be started: {error}"))
        })?;
        let ended = || Err(InferenceError::Session("the thread of the model has ended".to_owned()));
        let model = result.recv().unwrap_or_else(|_| ended())?;
        Ok(Self { model, options: options.clone(), shared, thread: Some(thread) })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        lock(&self.shared.state).is_stopped = true;
        self.shared.arrived.notify_all();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the elements have already received an error.
            let _ = thread.join();
        }
    }
}

/// An element's membership in an instance.
pub struct Member {
    instance: Arc<Instance>,
    index: usize,
    interrupt: Arc<Interrupt>,
}

impl Member {
    /// Adds an element to `instance`, whose waits `interrupt` ends.
    pub fn new(instance: &Arc<Instance>, interrupt: &Arc<Interrupt>) -> Self {
        interrupt.attach(&instance.shared);
        let mut state = lock(&instance.shared.state);
        let State { members, added, number, .. } = &mut *state;
        let index = *added;
        *added += 1;
        members.insert(index, *number);
        Self { instance: instance.clone(), index, interrupt: interrupt.clone() }
    }

    /// Returns the open model.
    pub fn model(&self) -> &OpenModel {
        &self.instance.model
    }

    /// Tells the instance that the stream has ended: batches do not wait for this element until its next picture
    /// comes.
    pub fn pause(&self) {
        lock(&self.instance.shared.state).members.remove(&self.index);
        // The open batch may be waiting for this element.
        self.instance.shared.arrived.notify_all();
    }

    /// Enters the next batch that has room, and waits for it if necessary. The entry has as many of the `pictures` as there
    /// is room for, but at least one. `pictures` are the rest of a frame's `of_frame`, at least one.
    ///
    /// # Errors
    /// If the model has failed, or waits are [interrupted](Interrupt).
    pub fn enter(
        &self,
        pictures: usize,
        of_frame: usize,
    ) -> Result<BatchEntry<'_>, InferenceError> {
        let shared = &*self.instance.shared;
        let capacity = self.instance.model.model.input.batch;
        let runs_of_frame = of_frame.div_ceil(capacity) as u64;
        let mut state = lock(&shared.state);
        state.waiting.push_back((self.index, pictures));
        loop {
            let interrupted = || self.interrupt.is_set().then_some(InferenceError::Interrupted);
            if let Some(failure) = state.failure.clone().or_else(interrupted) {
                state.waiting.retain(|(index, _)| *index != self.index);
                // Another element may be the next.
                shared.changed.notify_all();
                return Err(failure);
            }
            let number = state.number;
            let State { batch, members, waiting, .. } = &mut *state;
            let position = waiting.iter().position(|(index, _)| *index == self.index);
            let position = position.expect("it waits");
            // Elements that came earlier keep their room, so that all that have room can enter at once.
            let earlier: usize = waiting.range(..position).map(|(_, pictures)| pictures).sum();
            let room = |batch: &OpenBatch| capacity.saturating_sub(batch.places + earlier);
            if let Some(batch) = batch.as_mut().filter(|batch| room(batch) > 0) {
                waiting.remove(position);
                let pictures = pictures.clamp(1, room(batch));
                let entry = BatchEntry {
                    shared,
                    interrupt: &self.interrupt,
                    number,
                    input: batch.input,
                    first: batch.places,
                    pictures,
                    progress: Progress::Open,
                };
                batch.entries += 1;
                batch.places += pictures;
                batch.runs_of_frame = batch.runs_of_frame.max(runs_of_frame);
                batch.since.get_or_insert_with(Instant::now);
                members.insert(self.index, number);
                return Ok(entry);
            }
            state = wait(&shared.changed, state);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.pause();
    }
}

/// An entry in a batch: first memory for pictures, later each picture's tensors. No other run overwrites the
/// tensors until the entry is dropped.
pub struct BatchEntry<'i> {
    shared: &'i Shared,
    interrupt: &'i Interrupt,
    /// The number of the batch.
    number: u64,
    /// The memory for the batch's pictures.
    pub input: InputMemory,
    /// The number of the entry's first picture in the batch.
    pub first: usize,
    /// The number of the entry's pictures.
    pub pictures: usize,
    progress: Progress,
}

/// The progress of an entry.
enum Progress {
    Open,
    Submitted,
    /// The index of the output set, and the set's slots.
    Launched(usize, Arc<[Slot]>),
}

impl BatchEntry<'_> {
    /// Submits the entry's pictures, which are complete when `written` completes. Waits until the batch's run is
    /// submitted, which an [`Interrupt`] hastens.
    ///
    /// # Errors
    /// If the model fails.
    pub fn run(&mut self, written: Option<Event>) -> Result<Run, InferenceError> {
        let mut state = lock(&self.shared.state);
        if let Some(batch) = &mut state.batch {
            batch.submitted += 1;
            batch.pictures += self.pictures;
            batch.written.extend(written);
            if batch.is_written() {
                self.shared.arrived.notify_all();
            }
        }
        self.progress = Progress::Submitted;
        loop {
            let launched = state.sets.iter().position(|set| set.number == self.number);
            if let Some(index) = launched {
                let set = &state.sets[index];
                self.progress = Progress::Launched(index, set.slots.clone());
                return set.result.clone();
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let number = state.number;
            let is_open = |batch: &&mut OpenBatch| number == self.number && !batch.is_released;
            if self.interrupt.is_set()
                && let Some(batch) = state.batch.as_mut().filter(is_open)
            {
                batch.is_released = true;
                self.shared.arrived.notify_all();
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// Calls `attach` with each tensor of the entry's picture with number `index`. Has an effect only after
    /// [`run`](Self::run). If there is a `description`, it replaces the tensors' model description.
    ///
    /// # Errors
    /// If `attach` returns an error.
    ///
    /// # Panics
    /// If the entry has no picture with this number.
    pub fn tensors<E>(
        &self,
        index: usize,
        description: Option<&gst::Caps>,
        mut attach: impl FnMut(&NewTensor) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(index < self.pictures, "the entry has {} pictures", self.pictures);
        match &self.progress {
            Progress::Launched(_, slots) => {
                lock(&slots[self.first + index]).iter().try_for_each(|tensor| match description {
                    None => attach(tensor),
                    Some(model) => attach(&tensor.clone().with_model(model.clone())),
                })
            }
            Progress::Open | Progress::Submitted => Ok(()),
        }
    }
}

impl Drop for BatchEntry<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        match self.progress {
            Progress::Open => {
                if let Some(batch) = &mut state.batch {
                    batch.given_up += 1;
                }
                self.shared.arrived.notify_all();
            }
            Progress::Submitted => {}
            Progress::Launched(set, _) => state.sets[set].entries -= 1,
        }
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
