// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames in device memory.
//!
//! In: a buffer with GStreamer's CUDA memory. Out: the device address of each component's samples, from which a
//! kernel can read them.

use gst::glib;

use super::frame_format::CHANNELS;
use super::gpu::ComponentSamples;
use super::resampler::Resampler;
use crate::inference::error::InferenceError;
use gstnmsfilter::frame::FrameError;
use gstnmsfilter::input::cuda_memory::DeviceMapping;
use nmsfilter_core::device::{Location, Stream};

/// Maps a frame in device memory. Returns the addresses of its samples, which are readable as long as the mapping exists;
/// `None` if kernels in `stream` cannot read its memory. Work that is submitted to `stream` afterwards waits for the
/// producer of the frame.
///
/// # Errors
/// If the memory cannot be mapped, or has fewer bytes than the frame needs.
pub fn device_samples<'f>(
    frame: &'f gst::BufferRef,
    resampler: &Resampler,
    stream: &Stream,
) -> Result<Option<(ComponentSamples, DeviceMapping<'f>)>, InferenceError> {
    let mapping = DeviceMapping::new(frame)
        .map_err(|problem| glib::bool_error!("its memory cannot be mapped: {problem}"))?;
    let Some(mapping) = mapping.filter(|_| !resampler.converts()) else {
        return Ok(None);
    };
    let slice = mapping.slice();
    let Location::Accessible(address) = stream.device().locate(slice.address())? else {
        return Ok(None);
    };
    if !stream.wait_for_producer(slice.ready(), slice.address())? {
        return Ok(None);
    }
    let components = component_samples(frame, resampler, address, slice.len())?;
    Ok(Some((components, mapping)))
}

/// Returns the device addresses of a frame's samples, in memory of `len` bytes at `address` that contains the whole frame.
///
/// # Errors
/// If the memory has fewer bytes than the frame needs.
pub fn component_samples(
    frame: &gst::BufferRef,
    resampler: &Resampler,
    address: u64,
    len: usize,
) -> Result<ComponentSamples, FrameError> {
    let layout = &resampler.layout;
    let meta = layout.meta(frame)?;
    let mut components = [(0, 0); CHANNELS];
    for (to, component) in components.iter_mut().zip(&resampler.format.components) {
        let (offset, extent) = layout.plane_at(meta, component.plane, len)?;
        *to = (address + (offset + component.offset) as u64, extent.stride as u32);
    }
    Ok(components)
}
