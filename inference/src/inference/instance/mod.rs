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
//! A batch is complete if it has `batch` pictures, or an entry of each element that was in one of the last two
//! batches, or if its first picture has waited for the timeout; and if all its pictures are written. So elements that
//! are paused, stopped or slower than the others delay a batch twice, by the timeout. An element has one entry in a
//! batch and waits until the run of that is submitted, so that its frames stay in order. Slots without a picture have
//! what was there before; nothing reads their tensors. An element whose buffers have several frames enters with
//! several pictures.
//!
//! An instance without an id has one element. Instances with an id are found in [`INSTANCES`] as long as an element has
//! them.

mod thread;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::InferenceOptions;
use super::error::InferenceError;
use super::outputs::Slot;
use super::provider::Provider;
use super::session::{InputMemory, OpenModel};
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::Event;

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
    /// For the session's thread: a picture has been submitted, or an entry has been given up.
    arrived: Condvar,
    /// For the elements: a batch has been opened, or launched.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    members: Vec<Option<MemberState>>,
    batch: Option<Batch>,
    /// The number of the batch that is open or was last.
    number: u64,
    sets: Vec<SetState>,
    /// Why there will be no other batch.
    failure: Option<InferenceError>,
    is_stopped: bool,
}

/// An element of the instance.
#[derive(Clone, Copy)]
struct MemberState {
    /// The number of the last batch with an entry of the element, or that was open when the element was added; `None`
    /// if none is expected.
    last: Option<u64>,
}

/// A batch that takes pictures.
struct Batch {
    input: InputMemory,
    /// The entries of elements.
    entries: usize,
    /// Those of them whose pictures are submitted.
    submitted: usize,
    /// Those of them that were given up.
    given_up: usize,
    /// The places of pictures that entries have.
    places: usize,
    /// The pictures that are submitted.
    pictures: usize,
    /// The events of the pictures.
    written: Vec<Event>,
    /// When the first element entered.
    since: Option<Instant>,
}

/// What elements see of a set.
struct SetState {
    slots: Arc<[Slot]>,
    /// The number of the last batch.
    number: u64,
    /// The entries of it that still exist.
    entries: usize,
    /// Of its run.
    result: Result<Run, InferenceError>,
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
        let (of_thread, for_thread) = (shared.clone(), options.clone());
        let run = move || thread::run(&for_thread, provider, &of_thread, opened);
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
            // Elements have the error of a thread that has panicked.
            let _ = thread.join();
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
        state.members[index] = Some(MemberState { last: Some(state.number) });
        Self { instance: instance.clone(), index }
    }

    /// The model.
    pub fn model(&self) -> &OpenModel {
        &self.instance.model
    }

    /// No picture is expected until the next one comes: the stream has ended.
    pub fn pause(&self) {
        lock(&self.instance.shared.state).members[self.index] = Some(MemberState { last: None });
        // The batch may wait for this element.
        self.instance.shared.arrived.notify_all();
    }

    /// Enters the open batch, for which it waits, with `wanted` pictures or as many as there is room for, at least one.
    ///
    /// # Errors
    /// If the model has failed before.
    pub fn enter(&self, wanted: usize) -> Result<Entry<'_>, InferenceError> {
        let shared = &*self.instance.shared;
        let capacity = self.instance.model.model.input.batch;
        let mut state = lock(&shared.state);
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let number = state.number;
            let State { batch, members, .. } = &mut *state;
            if let Some(batch) = batch.as_mut().filter(|batch| batch.places < capacity) {
                let pictures = wanted.clamp(1, capacity - batch.places);
                let entry = Entry {
                    shared,
                    number,
                    input: batch.input,
                    first: batch.places,
                    pictures,
                    progress: Progress::Open,
                };
                batch.entries += 1;
                batch.places += pictures;
                batch.since.get_or_insert_with(Instant::now);
                members[self.index] = Some(MemberState { last: Some(number) });
                return Ok(entry);
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

/// An entry of a batch: memory for pictures, and then the tensors of each. Until it is dropped, no other run writes the
/// tensors.
pub struct Entry<'i> {
    shared: &'i Shared,
    /// The number of the batch.
    number: u64,
    /// The memory of the batch's pictures.
    pub input: InputMemory,
    /// The number of the first picture.
    pub first: usize,
    /// How many there are.
    pub pictures: usize,
    progress: Progress,
}

/// How far an entry is.
enum Progress {
    Open,
    Submitted,
    /// The index of the set, and its slots.
    Launched(usize, Arc<[Slot]>),
}

impl Entry<'_> {
    /// The pictures are written, once `written` has completed. Waits until the run is submitted.
    ///
    /// # Errors
    /// If the model fails.
    pub fn run(&mut self, written: Option<Event>) -> Result<Run, InferenceError> {
        let mut state = lock(&self.shared.state);
        if let Some(batch) = &mut state.batch {
            batch.submitted += 1;
            batch.pictures += self.pictures;
            batch.written.extend(written);
        }
        self.progress = Progress::Submitted;
        self.shared.arrived.notify_all();
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
            state = wait(&self.shared.changed, state);
        }
    }

    /// Calls `attach` with each tensor of the entry's picture number `index`, after [`run`](Self::run). `description`
    /// replaces the tensors' description of the model, if there is one.
    ///
    /// # Errors
    /// That of `attach`.
    ///
    /// # Panics
    /// If there are not so many pictures.
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

impl Drop for Entry<'_> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
