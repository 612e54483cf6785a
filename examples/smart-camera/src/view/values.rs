// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the page shows. In: pictures, lines of the report, and failures of the source. Out: the latest
//! picture, and an event per second with the latest line. The events of the last minutes are kept, so that a
//! new page has a curve. A viewer that is too slow misses pictures and events; nobody waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::frames::Frames;
use crate::messages;

/// Number of events that are kept, one per second.
const EVENTS: usize = 300;

/// Least time between two pictures, so that a browser can follow.
const PERIOD: Duration = Duration::from_millis(66);

/// A JPEG picture.
pub type Picture = Arc<gst::buffer::MappedBuffer<gst::buffer::Readable>>;

/// The values.
pub struct Values {
    frames: Frames,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The fields of the latest line that has counts, as a JSON object.
    line: Option<String>,
    /// Number of lines since the latest event, and its Unix time in seconds.
    lines: u32,
    time: f64,
    failure: Option<Failure>,
    /// The latest events, and the number of the next.
    events: VecDeque<Arc<str>>,
    next_event: u64,
    /// Number of viewers of pictures, and when a frame was taken for them.
    viewers: u32,
    taken: Option<Instant>,
    /// The latest picture, while there are viewers, and its number.
    picture: Option<Picture>,
    pictures: u64,
}

/// Why no frames come.
struct Failure {
    /// Number of frames that had come. More frames end the failure.
    frames: u64,
    /// Unix time of its first failure in seconds.
    since: f64,
    why: String,
}

/// A viewer of pictures.
pub struct Viewer<'a> {
    values: &'a Values,
    /// The number of the latest picture.
    number: u64,
}

impl Viewer<'_> {
    /// Waits for another picture. Returns `None` if there is none for a second.
    pub fn next(&mut self) -> Option<Picture> {
        let is_known = |state: &mut State| state.picture.is_none() || state.pictures == self.number;
        let state = self.values.state();
        let wait = self.values.changed.wait_timeout_while(state, Duration::from_secs(1), is_known);
        let (state, timeout) = wait.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        self.number = state.pictures;
        state.picture.clone()
    }
}

impl Drop for Viewer<'_> {
    fn drop(&mut self) {
        let mut state = self.values.state();
        state.viewers -= 1;
        if state.viewers == 0 {
            // The next viewer would take it for a new one.
            state.picture = None;
        }
    }
}

impl Values {
    /// Makes values without a line and a picture.
    pub fn new(frames: Frames) -> Self {
        let why = "no frame so far".to_owned();
        let failure = Some(Failure { frames: 0, since: now(), why });
        let state = Mutex::new(State { failure, ..State::default() });
        Self { frames, state, changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. Its fields, as a JSON object, are shown until the next line that has counts.
    pub fn add_line(&self, counted: Option<&Vec<u8>>) {
        let mut state = self.state();
        state.lines += 1;
        if let Some(line) = counted {
            state.line = Some(String::from_utf8_lossy(line).into_owned());
        }
    }

    /// Sets why the source gives no frames, until there is another one.
    pub fn set_failure(&self, why: &str) {
        let (frames, why) = (self.frames.count(), messages::without_passwords(why));
        let mut state = self.state();
        let former = state.failure.take().filter(|former| former.frames == frames);
        let since = former.map_or_else(now, |former| former.since);
        state.failure = Some(Failure { frames, since, why });
    }

    /// Adds an event.
    pub fn tick(&self) {
        let (mut state, frames, time) = (self.state(), self.frames.count(), now());
        state.failure.take_if(|failure| frames > failure.frames);
        let failure = state.failure.as_ref();
        let failure = failure.map(|it| serde_json::json!({"since": it.since, "why": it.why}));
        let event = format!(
            "{{\"time\":{time},\"rate\":{},\"failure\":{},\"line\":{}}}",
            f64::from(state.lines) / (time - state.time).max(0.1),
            failure.unwrap_or_default(),
            state.line.as_deref().unwrap_or("null")
        );
        (state.lines, state.time) = (0, time);
        state.events.push_back(event.into());
        if state.events.len() > EVENTS {
            state.events.pop_front();
        }
        state.next_event += 1;
        self.changed.notify_all();
    }

    /// Waits for events from the one with this number on, of which the oldest may be missing, and increases the
    /// number.
    pub fn events(&self, next: &mut u64) -> Vec<Arc<str>> {
        let state = self.state();
        let wait = self.changed.wait_while(state, |state| state.next_event == *next);
        let state = wait.unwrap_or_else(PoisonError::into_inner);
        let new = (state.next_event - *next).min(state.events.len() as u64) as usize;
        *next = state.next_event;
        state.events.range(state.events.len() - new..).cloned().collect()
    }

    /// Sets the latest picture.
    pub fn show(&self, picture: gst::buffer::MappedBuffer<gst::buffer::Readable>) {
        let mut state = self.state();
        state.picture = (state.viewers > 0).then(|| Arc::new(picture));
        state.pictures += 1;
        self.changed.notify_all();
    }

    /// Adds a viewer of pictures.
    pub fn viewer(&self) -> Viewer<'_> {
        self.state().viewers += 1;
        Viewer { values: self, number: 0 }
    }

    /// Returns true if a picture is to be made of a frame that comes now.
    pub fn takes_frame(&self) -> bool {
        let mut state = self.state();
        let is_late = state.taken.is_none_or(|taken| taken.elapsed() >= PERIOD);
        let is_taken = is_late && state.viewers > 0;
        state.taken = if is_taken { Some(Instant::now()) } else { state.taken };
        is_taken
    }
}

/// Returns the Unix time in seconds.
fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |now| now.as_secs_f64())
}
