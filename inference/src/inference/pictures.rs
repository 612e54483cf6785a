// SPDX-License-Identifier: MIT OR Apache-2.0
//! An element's frames, as pictures in the memory of a model's input.
//!
//! In: frames of one format and size, and where a picture of a batch is written. Out: that picture. On a GPU the bytes of
//! a frame in host memory are copied to pinned memory first, before the element enters a batch, so that other
//! elements do not wait for that; then a kernel makes the picture, in a stream of the element's own.

use std::sync::Arc;

use super::InputMemory;
use super::error::InferenceError;
use super::model::InputSpec;
use super::picture::{
    self, DeviceFrame, Formats, GpuResampler, Resampler, Rows, Scratch, Staged, Staging, Table,
};
use super::provider::GpuStream;
use gstnmsfilter::input::model::ModelInfo;
use nmsfilter_core::device::{Device, Event, OwnedEvent, Stream};
use nmsfilter_core::geometry::{FitRule, Letterbox};

/// Makes pictures of frames.
pub struct Pictures {
    input: InputSpec,
    /// The description of the model for frames with square pixels. It has the letterbox.
    info: ModelInfo,
    table: Table,
    // Dropped before the memory that its work reads, for which it waits.
    on_gpu: Option<PicturesOnGpu>,
    resamplers: Formats<Resamplers>,
    rows: Rows,
    /// The bytes that the GPU can read of the last frame, if that is in host memory.
    pub uploaded: u64,
}

/// What makes pictures of frames of one format.
struct Resamplers {
    resampler: Resampler,
    /// The description of the model for these frames; `None` if it is the one for square pixels.
    description: Option<gst::Caps>,
    scratch: Scratch,
    /// `None` if the model's input is in host memory.
    on_gpu: Option<GpuResampler>,
}

struct PicturesOnGpu {
    gpu: Arc<GpuStream>,
    /// Two frames' bytes, of which one is written while the kernel reads the other.
    staging: [(Staging, OwnedEvent); 2],
    /// The last one that was written.
    last: usize,
    /// Completes when a frame in device memory has been read.
    read: OwnedEvent,
}

/// A frame that can become a picture.
pub enum Prepared<'f> {
    /// The CPU makes the picture.
    OnHost(&'f gst::BufferRef),
    /// The frame's bytes are in pinned memory.
    Staged(Staged),
    /// The frame is in device memory.
    OnDevice(DeviceFrame<'f>),
}

impl Pictures {
    /// For a model with the input `input`, in the memory of `device` or of the host. `info` describes the model, and how
    /// frames with square pixels are fitted into its input.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn new(
        input: &InputSpec,
        info: ModelInfo,
        device: Option<&Arc<Device>>,
    ) -> Result<Self, InferenceError> {
        let on_gpu = match device {
            None => None,
            Some(device) => {
                let stream = Stream::new(device)?;
                let staging = || {
                    OwnedEvent::with_blocking_wait(device).map(|event| (Staging::default(), event))
                };
                Some(PicturesOnGpu {
                    gpu: Arc::new(GpuStream { device: device.clone(), stream }),
                    staging: [staging()?, staging()?],
                    last: 0,
                    read: OwnedEvent::with_blocking_wait(device)?,
                })
            }
        };
        Ok(Self {
            table: Table::new(input),
            input: input.clone(),
            info,
            resamplers: Formats::default(),
            rows: Rows::default(),
            on_gpu,
            uploaded: 0,
        })
    }

    /// Sets the format and size of the following frames. Does not allocate if frames of the same have been set before.
    ///
    /// # Errors
    /// If frames of this format cannot be converted, or the GPU fails.
    pub fn set_frame(&mut self, frame: &gst_video::VideoInfo) -> Result<(), InferenceError> {
        let Self { resamplers, input, info, on_gpu, table, .. } = self;
        resamplers.select(frame, || {
            let (rule, description) = fit_rule(info, frame)?;
            let resampler = Resampler::new(frame, input, rule)?;
            let on_gpu = match on_gpu {
                None => None,
                Some(on_gpu) => {
                    // Work that reads the memory of earlier ones.
                    on_gpu.gpu.stream.synchronize()?;
                    Some(GpuResampler::new(&on_gpu.gpu, &resampler, input, table)?)
                }
            };
            Ok(Resamplers { resampler, description, scratch: Scratch::default(), on_gpu })
        })
    }

    /// The description of the model for frames of the format that was set, if their pixels are not square and the
    /// letterbox depends on that.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before.
    pub fn description(&mut self) -> Option<gst::Caps> {
        self.resamplers.current().expect("the format of frames is set").description.clone()
    }

    /// Reads the frame, as far as that needs no memory for the picture.
    ///
    /// # Errors
    /// If the frame cannot be read.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before.
    pub fn prepare<'f>(
        &mut self,
        frame: &'f gst::BufferRef,
    ) -> Result<Prepared<'f>, InferenceError> {
        let current = self.resamplers.current().expect("the format of frames is set");
        let Resamplers { resampler, scratch, on_gpu: to_device, .. } = current;
        self.uploaded = 0;
        let Some((on_gpu, to_device)) = self.on_gpu.as_mut().zip(to_device.as_ref()) else {
            return Ok(Prepared::OnHost(frame));
        };
        if let Some(on_device) = DeviceFrame::new(frame, resampler, &on_gpu.gpu.stream)? {
            return Ok(Prepared::OnDevice(on_device));
        }
        on_gpu.last = 1 - on_gpu.last;
        let (staging, read) = &mut on_gpu.staging[on_gpu.last];
        read.synchronize()?;
        let staged =
            resampler.samples(frame, scratch, |planes| to_device.stage(planes, staging))??;
        self.uploaded = staged.bytes();
        Ok(Prepared::Staged(staged))
    }

    /// Makes picture number `index` of the input `input`. On a GPU the work is submitted, and the event is returned with
    /// which it completes; the event exists as long as `self`.
    ///
    /// # Errors
    /// If the frame cannot be read, or the GPU fails.
    ///
    /// # Safety
    /// `input` must be memory of the model's input, with room for the picture, on the device that `new` was given, or
    /// the host. Nothing else may access the picture's part from when `input` is free until the run for which it is
    /// written.
    pub unsafe fn write(
        &mut self,
        prepared: Prepared<'_>,
        input: InputMemory,
        index: usize,
    ) -> Result<Option<Event>, InferenceError> {
        let bytes = self.input.bytes();
        let address = input.address + (index * bytes) as u64;
        let current = self.resamplers.current().expect("the format of frames is set");
        let Resamplers { resampler, scratch, on_gpu: to_device, .. } = current;
        let frame = match (&mut self.on_gpu, to_device, prepared) {
            (Some(on_gpu), Some(to_device), prepared) => {
                // SAFETY: as the caller guarantees.
                return unsafe { on_gpu.write(to_device, prepared, input.free, address) }.map(Some);
            }
            (_, _, Prepared::OnHost(frame)) => frame,
            _ => unreachable!("frames are prepared for the processor that has the input"),
        };
        // SAFETY: the caller guarantees that the picture is in host memory, and that nothing else accesses it.
        let tensor = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes) };
        let to = (&self.input, &self.table);
        resampler.samples(frame, scratch, |planes| {
            picture::resample(resampler, planes, to, &mut self.rows, tensor);
        })?;
        Ok(None)
    }
}

/// How frames are fitted into the model's input, and the description of the model that says so, if it is another than
/// `info`.
fn fit_rule(
    info: &ModelInfo,
    frame: &gst_video::VideoInfo,
) -> Result<(FitRule, Option<gst::Caps>), InferenceError> {
    let letterbox = info.letterbox.unwrap_or_default();
    let par = frame.par();
    let ratio = [par.numer(), par.denom()].map(|number| u32::try_from(number).unwrap_or(0).max(1));
    if letterbox == Letterbox::None || ratio[0] == ratio[1] {
        return Ok((letterbox.into(), None));
    }
    let rule = FitRule::from(letterbox).with_pixel_aspect_ratio(ratio);
    Ok((rule, Some(info.clone().with_pixel_aspect_ratio(ratio).to_caps()?)))
}

impl PicturesOnGpu {
    /// # Safety
    /// As for [`Pictures::write`].
    unsafe fn write(
        &mut self,
        resampler: &GpuResampler,
        prepared: Prepared<'_>,
        free: Option<Event>,
        address: u64,
    ) -> Result<Event, InferenceError> {
        if let Some(free) = free {
            self.gpu.stream.wait_for(free)?;
        }
        let read = match prepared {
            Prepared::Staged(staged) => {
                let read = &self.staging[self.last].1;
                // SAFETY: the caller guarantees the output; the staging memory is written after `read` only.
                unsafe { resampler.resample(&staged, address, read) }?;
                read
            }
            Prepared::OnDevice(frame) => {
                // SAFETY: the caller guarantees the output, and the frame exists until `read` has completed.
                unsafe { resampler.resample_on_device(&frame, address, &self.read) }?;
                // Its memory may be written again as soon as the buffer has left the element.
                self.read.synchronize()?;
                drop(frame);
                &self.read
            }
            Prepared::OnHost(_) => unreachable!("frames are prepared for the GPU"),
        };
        // SAFETY: the event exists as long as `self`.
        Ok(unsafe { read.event() })
    }
}

impl Drop for PicturesOnGpu {
    fn drop(&mut self) {
        // A kernel may read the staging memory.
        let _ = self.gpu.stream.synchronize();
    }
}
