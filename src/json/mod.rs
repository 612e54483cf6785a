// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON text of a buffer's detections.
//!
//! In: a buffer with detections as metadata, of this plugin or of others: `GstVideoRegionOfInterestMeta`, with the
//! cargo feature `v1_24` `GstAnalyticsODMtd`, or a batch of DeepStream. Out: one line of JSON. [`Detections::read`]
//! makes plain structures ([`Object`]) of the metadata, and [`Line`] the text of these.
//!
//! The fields are those of DL Streamer's `gvametaconvert`, so that its readers read them, and some more:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `resolution` | `{width, height}` | the size of the frame in pixels |
//! | `index` | integer | the number of frames, or of batches, that came before this one since the element started |
//! | `source` | string | the property `source`, if it is set |
//! | `timestamp` | integer | the stream time of the frame in nanoseconds, if it has a timestamp |
//! | `tags` | object | the property `tags`, if it is set |
//! | `objects` | array | the detections, in the order of the metadata; `[]` if there are none |
//! | `streams` | array | instead of `objects`, of a batch of DeepStream: an entry for each frame |
//!
//! An entry of `streams`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `stream_index`, `stream_id` | integer, string | `pad_index` and `source_id` of the frame |
//! | `resolution` | `{width, height}` | the size of the frame, if it is known |
//! | `timestamp` | integer | the timestamp of the frame (`buf_pts`) in nanoseconds, if it has one |
//! | `objects` | array | the detections, in the order in which they were attached |
//!
//! An entry of `objects`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `x`, `y`, `w`, `h` | integer | the box in pixels of the frame; with `rotation`, the box before it is rotated about its center |
//! | `region_id` | integer | the id of the region of interest, or of the analytics object; with DeepStream the index in `objects` |
//! | `parent_id` | integer | the `region_id` of the object that this one is a part of, if there is one |
//! | `id` | integer | the id of the track, if the object is tracked |
//! | `roi_type` | string | the label, if there is one |
//! | `detection` | object | `bounding_box{x_min, y_min, x_max, y_max}` (0 to 1, of an oriented box the bounds), `confidence`, `label_id` and `label`, as far as they are known |
//! | `rotation` | number | of an oriented box: the angle in radians, clockwise, from 0 to 2 pi, as `GstAnalyticsODMtd` has it |
//! | `keypoints` | object | `layout` (`coco-17`, `face-5` or `points`) and `points`: an array of `[x, y]` or `[x, y, visibility]`, in pixels of the frame |
//! | `mask` | object | `x`, `y`, `w`, `h`: the rectangle of the frame that it covers; `width`, `height`: its pixels; `runs`: the lengths of runs of pixels, row by row from the upper left one, the first of pixels that are not set |
//!
//! Numbers that are NaN or infinite are `null`. Bytes of a text that are not UTF-8 are U+FFFD.

#[cfg(feature = "v1_24")]
mod analytics;
mod deepstream;
mod line;
#[cfg(any(test, feature = "v1_24"))]
mod merge;
mod object;
mod region;
mod runs;
#[cfg(feature = "v1_26")]
mod segmentation;

use crate::deepstream::layout::Version;
use crate::deepstream::{DeepStream, DeepStreamError};

pub use line::Line;
use object::Object;

/// What the caps of a buffer have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCaps {
    /// The width and height in pixels.
    pub size: [u32; 2],
    /// Whether frames are in NVMM memory.
    pub is_nvmm: bool,
}

/// The detections of a buffer. It keeps memory from buffer to buffer.
#[derive(Debug, Default)]
pub struct Detections {
    deepstream: Option<DeepStream>,
    /// The version of DeepStream whose structures are used; `None` for the one that the libraries report.
    forced: Option<Version>,
    /// Of a buffer without a batch.
    objects: Vec<Object>,
    /// Of each frame of a batch.
    streams: Vec<Stream>,
    is_batch: bool,
    #[cfg(feature = "v1_24")]
    merger: merge::Merger,
}

/// A frame of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stream {
    pub index: u32,
    pub source: u32,
    pub size: Option<[u32; 2]>,
    pub timestamp: Option<u64>,
    pub objects: Vec<Object>,
}

impl Detections {
    /// Detections with DeepStream's structures of the version `forced`, if there is one.
    pub fn new(forced: Option<Version>) -> Self {
        Self { forced, ..Self::default() }
    }

    /// Reads the metadata of `buffer`.
    ///
    /// # Errors
    /// If the buffer has metadata of DeepStream, and DeepStream's libraries or the structures are not known, or the
    /// metadata is damaged.
    pub fn read(
        &mut self,
        buffer: &gst::BufferRef,
        caps: FrameCaps,
    ) -> Result<(), DeepStreamError> {
        self.objects.clear();
        self.streams.clear();
        self.is_batch = false;
        self.read_regions(buffer, caps.size);
        if crate::deepstream::is_on(buffer) {
            let opened = match self.deepstream.take() {
                Some(opened) => opened,
                None => DeepStream::open(self.forced)?,
            };
            let opened = self.deepstream.insert(opened);
            if let Some(batch) = opened.batch(buffer)? {
                self.is_batch = true;
                deepstream::read(batch, buffer, caps, &mut self.streams)?;
                // nmsfilter also attaches the objects of an only frame to the buffer.
                if let [only] = &mut self.streams[..]
                    && only.objects.is_empty()
                {
                    std::mem::swap(&mut only.objects, &mut self.objects);
                }
            }
        }
        Ok(())
    }

    /// Reads the metadata of a buffer that is a frame of this size.
    fn read_regions(&mut self, buffer: &gst::BufferRef, size: [u32; 2]) {
        region::read(buffer, size, &mut self.objects);
        #[cfg(feature = "v1_24")]
        {
            self.merger.begin(self.objects.len());
            let Self { objects, merger, .. } = self;
            analytics::read(buffer, size, objects, merger);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self.is_batch {
            true => self.streams.iter().all(|stream| stream.objects.is_empty()),
            false => self.objects.is_empty(),
        }
    }

    /// Removes frames of a batch without detections.
    pub fn remove_empty_frames(&mut self) {
        self.streams.retain(|stream| !stream.objects.is_empty());
    }
}
