// SPDX-License-Identifier: MIT OR Apache-2.0
//! The planners of the streams whose frames the element decodes.
//!
//! In: the stream of the next frame. Out: its [`Planner`]. Buffers that are frames, and batches of DeepStream, are one
//! stream. A batch of GStreamer's analytics library has several, each with a model, settings in force and a plan of its
//! own, as if each had an `nmsfilter` to itself.

use super::planner::Planner;
use super::settings::Settings;
use crate::input::deepstream::BatchCaps;

/// The greatest number of streams whose planners are kept when they are in no batch. A further one takes the place of the
/// one that has not had a frame for the longest time.
const MAX_STREAMS: usize = 256;

/// The planner of the current stream, and those of others.
pub(super) struct Planners {
    /// Of buffers that are frames, or batches of DeepStream.
    buffers: Planner,
    streams: Vec<Stream>,
    /// The index in `streams`; `None` for `buffers`.
    current: Option<usize>,
    /// The number of selections, and what it was before the current batch.
    selections: u64,
    before_batch: u64,
}

/// A stream of batches.
struct Stream {
    number: u32,
    caps: BatchCaps,
    planner: Planner,
    /// The number of the last selection.
    selected: u64,
}

impl Planners {
    pub fn new(buffers: Planner) -> Self {
        Self { buffers, streams: Vec::new(), current: None, selections: 0, before_batch: 0 }
    }

    /// The planner of the current stream.
    pub fn current(&mut self) -> &mut Planner {
        match self.current {
            Some(index) => &mut self.streams[index].planner,
            None => &mut self.buffers,
        }
    }

    /// Makes the buffers' own stream the current one, whose following frames have other caps.
    pub fn select_buffers(&mut self) {
        self.current = None;
        self.buffers.discard_plan();
    }

    /// The index of the stream of batches with this number, if its last frame had these caps.
    #[cfg(feature = "v1_28")]
    pub fn stream(&self, number: u32, caps: BatchCaps) -> Option<usize> {
        self.streams.iter().position(|stream| stream.number == number && stream.caps == caps)
    }

    /// The planner of the stream with this index.
    #[cfg(feature = "v1_28")]
    pub fn of_stream(&self, index: usize) -> &Planner {
        &self.streams[index].planner
    }

    /// The same, to change it.
    #[cfg(feature = "v1_28")]
    pub fn of_stream_mut(&mut self, index: usize) -> &mut Planner {
        &mut self.streams[index].planner
    }

    /// Begins a batch: indices of streams are valid until the next.
    #[cfg(feature = "v1_28")]
    pub fn begin_batch(&mut self) {
        self.before_batch = self.selections;
    }

    /// Makes the stream of batches with this number the current one, and returns its index. Its next frame has these caps.
    /// Does not allocate if the stream is known.
    #[cfg_attr(
        not(feature = "v1_28"),
        expect(dead_code, reason = "GStreamer before 1.28 has no such batches")
    )]
    pub fn select_stream(&mut self, number: u32, caps: BatchCaps) -> usize {
        self.selections += 1;
        let known = self.streams.iter().position(|stream| stream.number == number);
        let index = known.unwrap_or_else(|| {
            let planner = self.buffers.for_other_stream();
            let stream = Stream { number, caps, planner, selected: 0 };
            let oldest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.selected);
            match oldest.map(|(index, stream)| (index, stream.selected)) {
                Some((oldest, selected))
                    if self.streams.len() >= MAX_STREAMS && selected <= self.before_batch =>
                {
                    self.streams[oldest] = stream;
                    oldest
                }
                _ => {
                    self.streams.push(stream);
                    self.streams.len() - 1
                }
            }
        });
        let stream = &mut self.streams[index];
        stream.selected = self.selections;
        if stream.caps != caps {
            stream.caps = caps;
            stream.planner.discard_plan();
        }
        self.current = Some(index);
        index
    }

    /// Stores the element's settings in each planner if they have changed.
    pub fn update_settings(&mut self, settings: &Settings) {
        self.all().for_each(|planner| planner.update_settings(settings));
    }

    /// The planners of all streams.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Planner> {
        let streams = self.streams.iter_mut().map(|stream| &mut stream.planner);
        std::iter::once(&mut self.buffers).chain(streams)
    }
}
