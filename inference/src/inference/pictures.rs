// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts an element's frames to pictures in the memory of the model's input.
//!
//! In: frames of one format and size, regions of them, and the address of a picture in a batch. Out: the picture of
//! each region, at this address and after it. On a GPU, a frame in host memory is first copied to pinned memory, unless
//! it is in a pool's memory, which is pinned itself. This happens before the element enters a batch, so that other
//! elements do not wait for the copy. Then one kernel makes the pictures of all regions in the batch, in a stream that
//! belongs to this element alone.

use std::ops::Range;
use std::sync::Arc;

use gst_video::VideoInfo;

use super::InputMemory;
use super::error::InferenceError;
use super::model::InputSpec;
use super::picture::{
    self, ComponentSamples, GpuResampler, GpuScalings, Resampler, Resampling, Rows, Scaling,
    Scratch, Staging, Table, component_samples, device_samples, pinned_frame,
};
use gstnmsfilter::input::cuda_memory::DeviceMapping;
use gstnmsfilter::input::model::ModelInfo;
use nmsfilter_core::device::{Device, DriverError, Event, OwnedEvent, Stream};
use nmsfilter_core::geometry::{FitRule, FrameRegion, Letterbox};

/// The maximum number of formats whose resamplers are kept. When another format comes, all of them are dropped.
const MAX_FORMATS: usize = 64;

/// Converts frames to pictures.
pub struct Pictures {
    input: InputSpec,
    /// The model description for frames with square pixels. It includes the letterbox.
    info: ModelInfo,
    table: Table,
    // This field is dropped before the memory that its GPU work reads; its destructor waits for that work.
    on_gpu: Option<PicturesOnGpu>,
    /// The resamplers for each format of frames that has occurred: the streams of a batch take turns, and each can have
    /// another format.
    resamplers: Vec<(VideoInfo, Resamplers)>,
    /// The index of the current format.
    current: usize,
    rows: Rows,
    /// The number of bytes of the last frame that the GPU can read; 0 unless the frame is in host memory.
    pub uploaded: u64,
}

/// The conversion of frames of one format to pictures.
struct Resamplers {
    resampler: Resampler,
    /// The rule by which regions of these frames are fitted into the model's input.
    rule: FitRule,
    /// The scaling of each region of the last frame. Earlier frames may have had more.
    scalings: Vec<Scaling>,
    /// The model description for these frames; `None` if the description for square pixels applies.
    description: Option<gst::Caps>,
    scratch: Scratch,
    /// `None` if the model's input is in host memory. Otherwise, the memory has all scalings.
    on_gpu: Option<(GpuResampler, GpuScalings)>,
}

struct PicturesOnGpu {
    stream: Arc<Stream>,
    /// Pinned memory for the bytes of two frames: the host writes one while the kernel reads the other.
    staging: [(Staging, OwnedEvent); 2],
    /// The index of the one that was written last.
    last: usize,
    /// Completes when a frame that is not copied by the host has been read.
    read: OwnedEvent,
}

/// A frame that is ready to become a picture.
pub struct Prepared<'f> {
    frame: &'f gst::BufferRef,
    /// Where the GPU reads the samples; `None` if the CPU will make the picture.
    samples: Option<ComponentSamples>,
    /// True if the samples are in staging memory.
    is_staged: bool,
    /// The mapping of a frame that is not copied by the host.
    mapping: Option<FrameMapping<'f>>,
}

/// Frames are readable as long as they are mapped.
#[expect(dead_code, reason = "it is only kept")]
enum FrameMapping<'f> {
    Device(DeviceMapping<'f>),
    Host(gst::memory::MemoryMap<'f, gst::memory::Readable>),
}

impl Pictures {
    /// Creates a converter for a model with the input `input`, in the memory of `device`, or of the host if there
    /// is no device. `info` describes the model, and how frames with square pixels are fitted into its input.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn new(
        input: &InputSpec,
        info: ModelInfo,
        device: Option<&Arc<Device>>,
    ) -> Result<Self, InferenceError> {
        let on_gpu = |device| {
            let event = || OwnedEvent::with_blocking_wait(device);
            Ok::<_, DriverError>(PicturesOnGpu {
                stream: Arc::new(Stream::new(device)?),
                staging: [(Staging::default(), event()?), (Staging::default(), event()?)],
                last: 0,
                read: event()?,
            })
        };
        Ok(Self {
            table: Table::new(input),
            input: input.clone(),
            info,
            resamplers: Vec::new(),
            current: 0,
            rows: Rows::default(),
            on_gpu: device.map(on_gpu).transpose()?,
            uploaded: 0,
        })
    }

    /// Sets the format and size of the frames that follow. Nothing is allocated if this format and size were set
    /// before.
    ///
    /// # Errors
    /// If frames of this format cannot be converted, or the GPU fails.
    pub fn set_frame(&mut self, frame: &VideoInfo) -> Result<(), InferenceError> {
        let Self { resamplers, input, info, on_gpu, table, .. } = self;
        if let Some(known) = resamplers.iter().position(|(known, _)| known == frame) {
            self.current = known;
            return Ok(());
        }
        let (rule, description) = fit_rule(info, frame)?;
        let resampler = Resampler::new(frame, input)?;
        let on_gpu = match on_gpu {
            None => None,
            Some(on_gpu) => {
                // Wait for work that reads memory of earlier formats, which may be freed now.
                on_gpu.stream.synchronize()?;
                let resampler = GpuResampler::new(&on_gpu.stream, &resampler, input, table)?;
                Some((resampler, GpuScalings::new(&on_gpu.stream, input)?))
            }
        };
        if resamplers.len() == MAX_FORMATS {
            resamplers.clear();
        }
        self.current = resamplers.len();
        let (scalings, scratch) = (Vec::new(), Scratch::default());
        let made = Resamplers { resampler, rule, description, scalings, scratch, on_gpu };
        resamplers.push((frame.clone(), made));
        Ok(())
    }

    /// Returns the model description for frames of the current format. `None` if the description for square pixels
    /// applies: the pixels are square, or there is no letterbox.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before.
    pub fn description(&self) -> Option<gst::Caps> {
        self.resamplers[self.current].1.description.clone()
    }

    /// Performs the part of the work for `regions` of a frame that does not need the memory of pictures.
    ///
    /// # Errors
    /// If the frame cannot be read, or the GPU fails.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before, or a region is not inside the frame.
    pub fn prepare<'f>(
        &mut self,
        frame: &'f gst::BufferRef,
        regions: impl IntoIterator<Item = FrameRegion>,
    ) -> Result<Prepared<'f>, InferenceError> {
        let (_, current) = &mut self.resamplers[self.current];
        current.select_regions(regions, &self.input)?;
        let Resamplers { resampler, scratch, on_gpu: to_device, .. } = current;
        self.uploaded = 0;
        let Some((on_gpu, (to_device, _))) = self.on_gpu.as_mut().zip(to_device.as_ref()) else {
            return Ok(Prepared { frame, samples: None, is_staged: false, mapping: None });
        };
        if let Some((samples, mapping)) = device_samples(frame, resampler, &on_gpu.stream)? {
            let mapping = Some(FrameMapping::Device(mapping));
            return Ok(Prepared { frame, samples: Some(samples), is_staged: false, mapping });
        }
        on_gpu.last = 1 - on_gpu.last;
        let (staging, read) = &mut on_gpu.staging[on_gpu.last];
        read.synchronize()?;
        if !resampler.converts()
            && let Some((memory, mapping)) = pinned_frame(frame, on_gpu.stream.device())
        {
            let address = to_device.upload(memory, memory.len(), &mut staging.device)?;
            on_gpu.stream.record(&on_gpu.read)?;
            self.uploaded = memory.len() as u64;
            let samples = Some(component_samples(frame, resampler, address, memory.len())?);
            let is_staged = address != memory.address();
            let mapping = Some(FrameMapping::Host(mapping));
            return Ok(Prepared { frame, samples, is_staged, mapping });
        }
        let (samples, bytes) =
            resampler.samples(frame, scratch, |planes| to_device.stage(planes, staging))??;
        self.uploaded = bytes;
        Ok(Prepared { frame, samples: Some(samples), is_staged: true, mapping: None })
    }

    /// Makes the pictures of `regions`, the numbers of regions for which the frame was prepared, one after the other, the
    /// first of them with number `first` of the input `input`. On a GPU, the work is only submitted;
    /// the returned event marks its completion, and exists as long as `self`.
    ///
    /// # Errors
    /// If the frame cannot be read, or the GPU fails.
    ///
    /// # Panics
    /// If neither this frame nor an earlier one of its format was prepared for that many regions.
    ///
    /// # Safety
    /// `input` must be memory for the model's input, on the device that `new` was given, or on the host; and it
    /// must have room for the pictures. Nothing else may access the pictures' part of this memory from the time when
    /// `input` is free until the run for which the pictures are written.
    pub unsafe fn write(
        &mut self,
        prepared: &Prepared<'_>,
        regions: Range<usize>,
        input: InputMemory,
        first: usize,
    ) -> Result<Option<Event>, InferenceError> {
        let bytes = self.input.bytes();
        let address = input.address + (first * bytes) as u64;
        let (_, current) = &mut self.resamplers[self.current];
        let Resamplers { resampler, scalings, scratch, on_gpu: to_device, .. } = current;
        let chosen = &scalings[regions.clone()];
        if let (Some(on_gpu), Some((to_device, scalings)), Some(samples)) =
            (&self.on_gpu, to_device, &prepared.samples)
        {
            if let Some(free) = input.free {
                on_gpu.stream.wait_for(free)?;
            }
            let of_staging = &on_gpu.staging[on_gpu.last].1;
            let read = if prepared.is_staged { of_staging } else { &on_gpu.read };
            // SAFETY: the caller guarantees the output. Staging memory is not written before `read` has completed, and a
            // frame that is not copied by the host is mapped until `release` has waited for it.
            unsafe { to_device.resample(samples, (scalings, regions), address, read) }?;
            // SAFETY: the event exists as long as `self`.
            return Ok(Some(unsafe { read.event() }));
        }
        let length = chosen.len() * bytes;
        // SAFETY: the caller guarantees that the pictures are in host memory, and that nothing else accesses them.
        let tensor = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) };
        let (input, table) = (&self.input, &self.table);
        resampler.samples(prepared.frame, scratch, |planes| {
            for (scaling, picture) in chosen.iter().zip(tensor.chunks_exact_mut(bytes)) {
                let of = Resampling { resampler, scaling, planes, input, table };
                picture::resample(of, &mut self.rows, picture);
            }
        })?;
        Ok(None)
    }

    /// Waits until a frame that is not copied by the host has been read: its memory may be overwritten as soon as the
    /// buffer has left the element.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn release(&mut self, prepared: Prepared<'_>) -> Result<(), InferenceError> {
        if let (Some(_), Some(on_gpu)) = (&prepared.mapping, &self.on_gpu) {
            on_gpu.read.synchronize()?;
        }
        Ok(())
    }
}

impl Resamplers {
    /// Computes the scalings of `regions`, except those that are equal to the regions with these numbers in earlier frames.
    fn select_regions(
        &mut self,
        regions: impl IntoIterator<Item = FrameRegion>,
        input: &InputSpec,
    ) -> Result<(), InferenceError> {
        let Self { resampler, rule, scalings, on_gpu, .. } = self;
        let mut changed: Option<Range<usize>> = None;
        for (number, region) in regions.into_iter().enumerate() {
            let known = scalings.get_mut(number);
            if known.as_ref().is_some_and(|known| known.region == region) {
                continue;
            }
            let scaling = Scaling::new(resampler, region, input, *rule);
            match known {
                Some(known) => *known = scaling,
                None => scalings.push(scaling),
            }
            changed = Some(changed.map_or(number, |changed| changed.start)..number + 1);
        }
        if let Some((changed, (_, memory))) = changed.zip(on_gpu.as_mut()) {
            let first = changed.start;
            if let Err(error) = memory.replace(scalings, changed) {
                // The memory does not have these scalings.
                scalings.truncate(first);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Determines how frames are fitted into the model's input. Also returns the model description that states this, if
/// it differs from `info`.
fn fit_rule(
    info: &ModelInfo,
    frame: &VideoInfo,
) -> Result<(FitRule, Option<gst::Caps>), InferenceError> {
    let letterbox = info.letterbox.unwrap_or_default();
    let par = frame.par();
    let ratio = [par.numer(), par.denom()].map(|number| u32::try_from(number).unwrap_or(0).max(1));
    if letterbox == Letterbox::None || ratio[0] == ratio[1] {
        return Ok((letterbox.into(), None));
    }
    let rule = FitRule::from(letterbox).with_pixel_aspect_ratio(ratio);
    let info = ModelInfo { pixel_aspect_ratio: Some(ratio), ..info.clone() };
    Ok((rule, Some(info.to_caps()?)))
}

impl Drop for PicturesOnGpu {
    fn drop(&mut self) {
        // Wait, because a kernel may still be reading the staging memory.
        let _ = self.stream.synchronize();
    }
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat;

    use super::*;
    use nmsfilter_core::tensor::ElementType;

    #[test]
    fn formats_take_turns_and_their_number_is_limited() {
        gst::init().unwrap();
        let format = |format, width| VideoInfo::builder(format, width, 16).build().unwrap();
        let gray = |width| format(VideoFormat::Gray8, width);
        let input = InputSpec::with_size([8, 8], ElementType::U8);
        let mut pictures = Pictures::new(&input, ModelInfo::default(), None).unwrap();
        let mut set = |frame: &VideoInfo| {
            let is_set = pictures.set_frame(frame).is_ok();
            let size = pictures.resamplers[pictures.current].1.resampler.frame_size();
            (is_set, size[0], pictures.resamplers.len())
        };
        assert_eq!(set(&gray(1)), (true, 1, 1));
        assert_eq!(set(&gray(2)), (true, 2, 2));
        assert_eq!(set(&gray(1)), (true, 1, 2), "known");
        assert_eq!(set(&format(VideoFormat::Encoded, 3)), (false, 1, 2), "no samples");
        for width in 3..=64 {
            assert_eq!(set(&gray(width)), (true, width, width as usize));
        }
        assert_eq!(set(&gray(65)), (true, 65, 1));
    }
}
