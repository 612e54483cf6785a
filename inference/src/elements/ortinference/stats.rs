// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and times since the element started.
//!
//! In: each frame. Out: the structure of the property `stats`.

use std::time::Duration;

use crate::inference::instance::Run;
use gstnmsfilter::elements::times::Times;

/// The counts since the element started.
#[derive(Default)]
pub(super) struct Stats {
    /// The provider that ran the last frame.
    provider: Option<&'static str>,
    /// The number of frames on which the model ran.
    frames: u64,
    /// The number of frames that passed without inference.
    pub skipped: u64,
    /// The number of buffers that were dropped because they were late.
    pub dropped: u64,
    /// The number of inferred frames that had no region to run on.
    without_regions: u64,
    /// The number of regions on which the model ran. A whole frame is a region.
    regions: u64,
    bytes_uploaded: u64,
    /// The number of output sets, that is, of runs whose outputs are in memory at one time.
    output_sets: u64,
    /// The sum, over all regions, of the number of pictures in the region's run.
    batched: u64,
    /// The time per frame in the element.
    time: Times,
    /// The time per run on the GPU.
    gpu_time: Times,
}

impl Stats {
    /// Counts a frame with this number of regions, the last of which was part of `run`. `batched` is the number of
    /// pictures in the run of each region, added up. The element took `time` for the frame.
    pub fn count(
        &mut self,
        (regions, batched): (usize, usize),
        (provider, run): (&'static str, Run),
        bytes_uploaded: u64,
        time: Duration,
    ) {
        self.provider = Some(provider);
        self.frames += 1;
        self.regions += regions as u64;
        self.without_regions += u64::from(regions == 0);
        if regions == 0 {
            return;
        }
        self.bytes_uploaded += bytes_uploaded;
        self.output_sets = run.sets as u64;
        self.batched += batched as u64;
        self.time.add(time);
        if let Some(gpu_time) = run.gpu_time {
            self.gpu_time.add(gpu_time);
        }
    }

    /// Returns whether no frame has been counted.
    pub fn is_empty(&self) -> bool {
        self.frames + self.skipped + self.dropped == 0
    }

    /// Returns the structure for the property `stats` and for the message `ortinference-stats`. Times are in
    /// nanoseconds.
    pub fn structure(&self) -> gst::Structure {
        let structure = gst::Structure::builder("ortinference-stats")
            .field("frames", self.frames)
            .field("frames-skipped", self.skipped)
            .field("frames-dropped", self.dropped)
            .field("frames-without-regions", self.without_regions)
            .field("regions", self.regions)
            .field("provider", self.provider.unwrap_or("none"))
            .field("bytes-uploaded", self.bytes_uploaded)
            .field("output-sets", self.output_sets)
            .field("batch-mean", self.batched as f64 / self.regions.max(1) as f64);
        let structure = self.time.add_to(structure, "time");
        self.gpu_time.add_to(structure, "gpu-time").build()
    }
}
