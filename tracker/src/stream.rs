// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracks of a stream.
//!
//! In: the time of each frame, and the objects of frames on which a model ran. Out: identities of these objects, and the
//! predicted objects of other frames. The library advances on frames with inference only, since its filters have steps of
//! equal length; between two steps, positions are interpolated along the predicted step.

use std::sync::atomic::{AtomicI32, Ordering};

use gst::glib::ffi::GQuark;
use trackforge::utils::geometry::{tlwh_to_xyah, xyah_to_tlwh};
use trackforge::utils::kalman::{CovarianceMatrix, KalmanFilter, StateVector};

use crate::algorithm::{self, Detection, Tracker};
use crate::metadata::{Identity, Object};
use crate::settings::Settings;

/// The most objects of a class and frame that can have a track: the first ones.
pub(crate) const MAX_OBJECTS: usize = 2048;

/// The most pairs of tracks and objects that the library compares. If there are more, the tracks of the class begin anew.
const MAX_PAIRS: usize = 1 << 23;

/// The shortest gap between frames after which tracks begin anew, in seconds.
const SHORTEST_GAP: f64 = 1.0;

/// Nanoseconds.
const SECOND: f64 = 1e9;

/// The next id of the process. 0 stands for no id, as in DL Streamer.
static NEXT_ID: AtomicI32 = AtomicI32::new(1);

/// Every id of the process was used: `object_id` has numbers of 32 bits.
#[derive(Debug, thiserror::Error)]
#[error("all 2147483647 ids of tracks were used; start the program again")]
pub(crate) struct NoIds;

fn new_id() -> Result<i32, NoIds> {
    let next = |id: i32| id.checked_add(1);
    NEXT_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| NoIds)
}

/// What caps say about frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FrameCaps {
    pub size: [u32; 2],
    /// The duration in nanoseconds.
    pub duration: u64,
}

/// The tracks of a stream.
#[derive(Default)]
pub(crate) struct Stream {
    caps: FrameCaps,
    /// The time of the latest frame, and the time between it and the one before, in nanoseconds.
    latest: Option<u64>,
    between: Option<u64>,
    /// The same for frames with inference.
    updated: Option<u64>,
    step: Option<u64>,
    filter: KalmanFilter,
    classes: Vec<Class>,
    /// The indices of a class's objects.
    indices: Vec<usize>,
}

/// The tracks of a class, or of all with `class-agnostic`.
struct Class {
    name: (GQuark, Option<i32>),
    tracker: Tracker,
    tracks: Vec<Track>,
    /// The number of objects on the latest frame with inference.
    objects: usize,
    seen: u64,
}

/// A track with an id.
struct Track {
    /// The number that the library has for it.
    number: u64,
    identity: Identity,
    object: Object,
    mean: StateVector,
    covariance: CovarianceMatrix,
}

impl Stream {
    /// Begins a frame. Forgets all tracks if the frame does not continue the stream.
    pub fn advance(&mut self, caps: FrameCaps, time: Option<u64>, settings: &Settings) {
        let next = self.latest.map_or(0, |latest| latest.saturating_add(caps.duration));
        let now = time.unwrap_or(next);
        if let Some(latest) = self.latest {
            let limit = settings.max_age(0.0).max(SHORTEST_GAP) * SECOND
                + 1.5 * self.between.unwrap_or(caps.duration) as f64;
            let is_gap = |between: u64| self.between.is_some() && between as f64 > limit;
            if self.caps.size != caps.size || now.checked_sub(latest).is_none_or(is_gap) {
                *self = Self::default();
            } else {
                self.between = Some(now - latest);
            }
        }
        (self.caps, self.latest) = (caps, Some(now));
    }

    /// Gives identities to the objects of a frame with inference. Returns false if there were too many objects for all of
    /// them to be tracked.
    ///
    /// # Errors
    /// If no ids are left.
    pub fn update(
        &mut self,
        objects: &[Object],
        settings: &Settings,
        identities: &mut Vec<Option<Identity>>,
    ) -> Result<bool, NoIds> {
        identities.clear();
        identities.resize(objects.len(), None);
        let now = self.latest.unwrap_or(0);
        let since = self.updated.and_then(|updated| now.checked_sub(updated));
        let step = since.filter(|&step| step > 0);
        // A step is no longer than the one before, so that an interruption ends tracks.
        self.step = self.step.or(step);
        let limit = self.age_limit(settings);
        self.step = step.or(self.step);
        self.updated = Some(now);
        let duration = self.caps.duration as f64 / SECOND;
        let new_tracker = || algorithm::tracker(settings, duration);
        let name = |object: &Object| match settings.class_agnostic {
            true => (0, None),
            false => (object.label, object.class),
        };
        for name in objects.iter().map(name) {
            if self.classes.iter().all(|class| class.name != name) {
                let (tracker, tracks) = (new_tracker(), Vec::new());
                self.classes.push(Class { name, tracker, tracks, objects: 0, seen: now });
            }
        }
        let mut is_complete = true;
        let Self { classes, indices, filter, .. } = self;
        for class in classes.iter_mut() {
            indices.clear();
            indices.extend((0..objects.len()).filter(|&index| {
                name(&objects[index]) == class.name && is_trackable(&objects[index])
            }));
            is_complete &= indices.len() <= MAX_OBJECTS;
            indices.truncate(MAX_OBJECTS);
            if (class.tracks.len() + class.objects) * indices.len() > MAX_PAIRS {
                is_complete = false;
                class.tracks.clear();
                class.tracker = new_tracker();
            }
            class.update(now, limit, objects, indices, filter, identities)?;
        }
        // The library's tracks of a class that was not seen for so long are not needed.
        self.classes
            .retain(|class| !class.tracks.is_empty() || now.saturating_sub(class.seen) <= limit);
        Ok(is_complete)
    }

    /// The objects of the latest frame with inference, with their predicted rectangles on this frame.
    pub fn predicted(
        &self,
        settings: &Settings,
    ) -> impl Iterator<Item = (&Object, [f32; 4], Identity)> {
        let elapsed = self.latest.unwrap_or(0).saturating_sub(self.updated.unwrap_or(0));
        // Before the second step, nothing moves.
        let steps = self.step.map_or(0.0, |step| elapsed as f32 / step as f32);
        // A limit for streams whose inference has ended.
        let is_late = elapsed > self.age_limit(settings);
        let tracks = self.classes.iter().flat_map(|class| &class.tracks);
        let seen = move |track: &&Track| !is_late && Some(track.identity.last_seen) == self.updated;
        tracks.filter(seen).filter_map(move |track| {
            let next = self.filter.predict(&track.mean, &track.covariance).0;
            let rectangle = xyah_to_tlwh(&(track.mean + (next - track.mean) * steps));
            is_rectangle(rectangle).then_some((&track.object, rectangle, track.identity))
        })
    }

    /// The greatest time between two detections of a track. The library deletes a track after its last frame, when the
    /// next could have a detection; half a frame is for times that are not exact.
    fn age_limit(&self, settings: &Settings) -> u64 {
        let step = self.step.unwrap_or(self.caps.duration) as f64;
        (settings.max_age(step / SECOND) * SECOND + 1.5 * step) as u64
    }
}

impl Class {
    fn update(
        &mut self,
        now: u64,
        limit: u64,
        objects: &[Object],
        indices: &[usize],
        filter: &KalmanFilter,
        identities: &mut [Option<Identity>],
    ) -> Result<(), NoIds> {
        if !indices.is_empty() {
            self.seen = now;
        }
        self.objects = indices.len();
        let detection = |&index: &usize| -> Detection {
            (objects[index].rectangle, objects[index].confidence as f32, 0)
        };
        let matches = (self.tracker)(indices.iter().map(detection).collect());
        self.tracks.retain(|track| now.saturating_sub(track.identity.last_seen) <= limit);
        for track in &mut self.tracks {
            (track.mean, track.covariance) = filter.predict(&track.mean, &track.covariance);
        }
        for found in matches {
            let index = indices[found.detection];
            let object = &objects[index];
            let position = tlwh_to_xyah(&object.rectangle);
            let number = found.track;
            if let Some(track) = self.tracks.iter_mut().find(|track| track.number == number) {
                (track.mean, track.covariance) =
                    filter.update(&track.mean, &track.covariance, &position);
                track.identity.last_seen = now;
                track.object.clone_from(object);
                identities[index] = Some(track.identity);
            } else {
                let identity = Identity { id: new_id()?, first_seen: now, last_seen: now };
                let (mean, covariance) = filter.initiate(&position);
                let object = object.clone();
                self.tracks.push(Track { number, identity, object, mean, covariance });
                identities[index] = Some(identity);
            }
        }
        Ok(())
    }
}

fn is_trackable(object: &Object) -> bool {
    is_rectangle(object.rectangle) && object.confidence.is_finite()
}

fn is_rectangle(rectangle: [f32; 4]) -> bool {
    rectangle.iter().all(|side| side.is_finite()) && rectangle[2] > 0.0 && rectangle[3] > 0.0
}
