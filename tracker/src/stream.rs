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

use crate::algorithm::{Detection, Parameters, Tracker};
use crate::metadata::{Identity, Object};

/// The most objects of a class and frame that can have a track: the first ones.
pub const MAX_OBJECTS: usize = 2048;

/// The most pairs of tracks and objects that the library compares. If there are more, the tracks of the class begin anew.
const MAX_PAIRS: usize = 1 << 23;

/// The shortest gap between frames after which tracks begin anew.
const SHORTEST_GAP: f64 = 1.0;

/// A class without tracks is forgotten after this many nanoseconds; identities of the library are then not needed.
const SECOND: f64 = 1e9;

/// The next id of the process. 0 stands for no id, as in DL Streamer.
static NEXT_ID: AtomicI32 = AtomicI32::new(1);

/// Every id of the process was used: `object_id` has numbers of 32 bits.
#[derive(Debug, thiserror::Error)]
#[error("all 2147483647 ids of tracks were used; start the program again")]
pub struct NoIds;

fn new_id() -> Result<i32, NoIds> {
    let next = |id: i32| id.checked_add(1);
    NEXT_ID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| NoIds)
}

/// The tracks of a stream.
#[derive(Default)]
pub struct Stream {
    size: [u32; 2],
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
    /// Forgets all tracks if the frame of this size and time does not continue the stream. Without a time, frames have
    /// this duration in nanoseconds. Returns the time of the frame.
    pub fn advance(
        &mut self,
        size: [u32; 2],
        time: Option<u64>,
        duration: u64,
        parameters: &Parameters,
    ) -> u64 {
        let next = self.latest.map_or(0, |latest| latest.saturating_add(duration));
        let now = time.unwrap_or(next);
        if let Some(latest) = self.latest {
            let limit = parameters.max_age(0.0).max(SHORTEST_GAP) * SECOND
                + 1.5 * self.between.unwrap_or(duration) as f64;
            let is_gap = |between: u64| self.between.is_some() && between as f64 > limit;
            if self.size != size || now.checked_sub(latest).is_none_or(is_gap) {
                *self = Self::default();
            } else {
                self.between = Some(now - latest);
            }
        }
        (self.size, self.latest) = (size, Some(now));
        now
    }

    /// Gives identities to the objects of a frame with inference. Returns false if there were too many objects for all of
    /// them to be tracked.
    ///
    /// # Errors
    /// If no ids are left.
    pub fn update(
        &mut self,
        now: u64,
        duration: u64,
        objects: &[Object],
        (parameters, is_agnostic): (&Parameters, bool),
        identities: &mut Vec<Option<Identity>>,
    ) -> Result<bool, NoIds> {
        identities.clear();
        identities.resize(objects.len(), None);
        let step =
            self.updated.and_then(|updated| now.checked_sub(updated)).filter(|&step| step > 0);
        // A step is no longer than the one before, so that an interruption ends tracks.
        self.step = self.step.or(step);
        let limit = self.age_limit(duration, parameters);
        self.step = step.or(self.step);
        self.updated = Some(now);
        let name = |object: &Object| match is_agnostic {
            true => (0, None),
            false => (object.label, object.class),
        };
        for object in objects {
            if self.classes.iter().all(|class| class.name != name(object)) {
                let tracker = Tracker::new(parameters, duration as f64 / SECOND);
                let class = Class {
                    name: name(object),
                    tracker,
                    tracks: Vec::new(),
                    objects: 0,
                    seen: now,
                };
                self.classes.push(class);
            }
        }
        let mut is_complete = true;
        let Self { classes, indices, filter, .. } = self;
        for class in classes.iter_mut() {
            let of_class = objects.iter().enumerate().filter(|(_, it)| name(it) == class.name);
            indices.clear();
            indices.extend(of_class.filter(|(_, it)| is_trackable(it)).map(|(index, _)| index));
            is_complete &= indices.len() <= MAX_OBJECTS;
            indices.truncate(MAX_OBJECTS);
            if (class.tracks.len() + class.objects) * indices.len() > MAX_PAIRS {
                is_complete = false;
                class.tracks.clear();
                class.tracker = Tracker::new(parameters, duration as f64 / SECOND);
            }
            class.update(now, limit, objects, indices, filter, identities)?;
        }
        self.classes
            .retain(|class| !class.tracks.is_empty() || now.saturating_sub(class.seen) <= limit);
        Ok(is_complete)
    }

    /// Calls `add` with each object that was on the latest frame with inference, its predicted rectangle and identity.
    pub fn predict(
        &self,
        now: u64,
        duration: u64,
        parameters: &Parameters,
        mut add: impl FnMut(&Object, [f32; 4], Identity),
    ) {
        let Some(updated) = self.updated else { return };
        let elapsed = now.saturating_sub(updated);
        // A limit for streams whose inference has ended.
        if elapsed > self.age_limit(duration, parameters) {
            return;
        }
        // Before the second step, nothing moves.
        let steps = self.step.map_or(0.0, |step| elapsed as f32 / step as f32);
        for track in self.classes.iter().flat_map(|class| &class.tracks) {
            if track.identity.last_seen != updated {
                continue;
            }
            let next = self.filter.predict(&track.mean, &track.covariance).0;
            let rectangle = xyah_to_tlwh(&(track.mean + (next - track.mean) * steps));
            if is_rectangle(rectangle) {
                add(&track.object, rectangle, track.identity);
            }
        }
    }

    /// The greatest time between two detections of a track. The library deletes a track after its last frame, when the
    /// next could have a detection; half a frame is for times that are not exact.
    fn age_limit(&self, duration: u64, parameters: &Parameters) -> u64 {
        let step = self.step.unwrap_or(duration) as f64;
        (parameters.max_age(step / SECOND) * SECOND + 1.5 * step) as u64
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
        let matches = self.tracker.update(indices.iter().map(detection).collect());
        self.tracks.retain(|track| now.saturating_sub(track.identity.last_seen) <= limit);
        for track in &mut self.tracks {
            (track.mean, track.covariance) = filter.predict(&track.mean, &track.covariance);
        }
        for found in matches {
            let object = &objects[indices[found.detection]];
            let position = tlwh_to_xyah(&object.rectangle);
            let known = self.tracks.iter_mut().find(|track| track.number == found.track);
            let identity = match known {
                Some(track) => {
                    (track.mean, track.covariance) =
                        filter.update(&track.mean, &track.covariance, &position);
                    track.identity.last_seen = now;
                    track.object.clone_from(object);
                    track.identity
                }
                None => {
                    let identity = Identity { id: new_id()?, first_seen: now, last_seen: now };
                    let (mean, covariance) = filter.initiate(&position);
                    let object = object.clone();
                    let number = found.track;
                    self.tracks.push(Track { number, identity, object, mean, covariance });
                    identity
                }
            };
            identities[indices[found.detection]] = Some(identity);
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
