// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the detections of a buffer as JSON.
//!
//! In: a buffer whose metadata has detections from this plugin or from other elements:
//! `GstVideoRegionOfInterestMeta`; `GstAnalyticsODMtd` (GStreamer 1.24); or a DeepStream batch. Out:
//! one line of JSON. [`Detections::read`] converts the metadata to plain structures ([`Object`]), and [`Line`]
//! converts these to text.
//!
//! The format contains all fields that DL Streamer's `gvametaconvert` writes, so that its readers can read it, and
//! a few more:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `resolution` | `{width, height}` | the size of the frame in pixels |
//! | `index` | integer | the number of frames, or of batches, before this one since the element started |
//! | `source` | string | the property `source`, if it is set |
//! | `file` | string | the path of the file that the frame comes from, if it is known |
//! | `timestamp` | integer | the stream time of the frame in nanoseconds, if the frame has a timestamp |
//! | `rtp` | object | `sender_ntp_unix_timestamp_ns`: the wall-clock time of the frame in nanoseconds since 1970, if its source gives one |
//! | `tags` | object | the property `tags`, if it is set |
//! | `inferred` | boolean | whether a model ran on the frame, if the frame has a mark ([`inference_mark`](crate::input)) |
//! | `objects` | array | the detections, in the order of the metadata; `[]` if there are none |
//! | `streams` | array | for a DeepStream batch, instead of `objects`: an entry per frame |
//!
//! An entry of `streams`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `stream_index`, `stream_id` | integer, string | the frame's `pad_index` and `source_id` |
//! | `resolution` | `{width, height}` | the size of the frame, if it is known |
//! | `timestamp` | integer | the frame's timestamp (`buf_pts`) in nanoseconds, if the frame has one |
//! | `rtp` | object | as above, from the frame's `ntp_timestamp` |
//! | `objects` | array | the detections, in the order in which they were attached |
//!
//! An entry of `objects`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `x`, `y`, `w`, `h` | integer | the box in pixels of the frame; with `rotation`, the box before it is rotated about its center |
//! | `region_id` | integer | the id of the region of interest or of the analytics object; with DeepStream, the index in `objects` |
//! | `parent_id` | integer | the `region_id` of the object that contains this object as a part, if there is one |
//! | `id` | integer | the id of the track, if the object is tracked |
//! | `predicted` | boolean | true if the object was not detected on this frame, but predicted by its track; else the field is left out |
//! | `roi_type` | string | the label, if there is one |
//! | `detection` | object | `bounding_box{x_min, y_min, x_max, y_max}` (0 to 1; for an oriented box, its bounds), `confidence`, `label_id` and `label`; unknown fields are left out |
//! | `rotation` | number | for an oriented box: the angle in radians, clockwise, from 0 to 2 pi, as in `GstAnalyticsODMtd` |
//! | `keypoints` | object | `layout` (`coco-17`, `face-5` or `points`) and `points`: an array of `[x, y]` or `[x, y, visibility]`, in pixels of the frame |
//! | `mask` | object | `x`, `y`, `w`, `h`: the rectangle of the frame that the mask covers; `width`, `height`: the size of the mask in mask pixels; `runs`: the lengths of runs of equal mask pixels, row by row from the upper left; the first run has pixels that are not set |
//! | `classification` | array | the classes that classifiers have found, one classifier after the other, the best first: `{label, label_id, confidence, attribute_name}`; unknown fields are left out |
//!
//! A number that is NaN or infinite is written as `null`. Bytes that are not valid UTF-8 are written as U+FFFD.

mod analytics;
mod deepstream;
mod line;
mod merge;
mod object;
mod region;
mod runs;
mod segmentation;

use crate::deepstream::layout::Version;
use crate::deepstream::{DeepStream, DeepStreamError, FrameCaps};

pub use line::Line;
use object::Object;

/// The detections of a buffer. One value is used for all buffers, so that its memory is allocated once.
#[derive(Debug, Default)]
pub struct Detections {
    deepstream: DeepStream,
    /// The objects of a buffer without a batch.
    objects: Vec<Object>,
    /// The frames of a batch.
    streams: Vec<FrameDetections>,
    is_batch: bool,
    merger: merge::Merger,
}

/// A frame of a batch.
#[derive(Debug, serde::Serialize)]
struct FrameDetections {
    stream_index: u32,
    /// A number; GStreamer's stream ids are strings.
    stream_id: String,
    resolution: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtp: Option<Rtp>,
    objects: Vec<Object>,
}

#[derive(Debug, serde::Serialize)]
struct Size {
    width: u32,
    height: u32,
}

impl From<[u32; 2]> for Size {
    fn from([width, height]: [u32; 2]) -> Self {
        Self { width, height }
    }
}

/// The wall-clock time, at the place and in the unit that DL Streamer's readers expect.
#[derive(Debug, serde::Serialize)]
struct Rtp {
    sender_ntp_unix_timestamp_ns: u64,
}

impl Detections {
    /// Creates an empty value. With `forced`, DeepStream's structures have the layout of this version.
    pub fn new(forced: Option<Version>) -> Self {
        Self { deepstream: DeepStream::new(forced), ..Self::default() }
    }

    /// Reads the metadata of `buffer`.
    ///
    /// # Errors
    /// If the buffer has DeepStream metadata, but DeepStream's libraries are missing, its structures are unknown,
    /// or the metadata is damaged.
    pub fn read(
        &mut self,
        buffer: &gst::BufferRef,
        caps: FrameCaps,
    ) -> Result<(), DeepStreamError> {
        self.objects.clear();
        self.streams.clear();
        self.is_batch = false;
        region::read(buffer, caps.size, &mut self.objects);
        self.merger.begin(self.objects.len());
        analytics::read(buffer, caps.size, &mut self.objects, &mut self.merger);
        if let Some(batch) = self.deepstream.batch(buffer)? {
            self.is_batch = true;
            deepstream::read(batch, buffer, caps, &mut self.streams)?;
            // If a batch has a single frame, `nmsfilter` can also attach the objects to the buffer itself.
            if let [only] = &mut self.streams[..]
                && only.objects.is_empty()
            {
                std::mem::swap(&mut only.objects, &mut self.objects);
            }
        }
        Ok(())
    }

    /// Returns whether there are no detections.
    pub fn is_empty(&self) -> bool {
        if self.is_batch {
            self.streams.iter().all(|stream| stream.objects.is_empty())
        } else {
            self.objects.is_empty()
        }
    }

    /// Removes the frames of a batch that have no detections.
    pub fn remove_empty_frames(&mut self) {
        self.streams.retain(|stream| !stream.objects.is_empty());
    }
}
