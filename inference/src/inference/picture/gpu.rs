// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resampling on a GPU, with `kernels/resample.cu`.
//!
//! In: a frame, regions of it, and the address of the model's input. Out: a picture of each region in the model's
//! input, which one kernel writes in stream order. The bytes of a frame in host memory are copied to [`Staging`] memory
//! first; a frame in device memory is read in place.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use arrayvec::ArrayVec;

use super::frame_format::CHANNELS;
use super::gpu_scalings::GpuScalings;
use super::resample_params::{RESAMPLE_THREADS, ResampleComponent, ResampleParams};
use super::resampler::{BORDER, Resampler};
use super::table::Table;
use crate::inference::model::{InputLayout, InputSpec};
use gstnmsfilter::frame::{Component, Plane};
use nmsfilter_core::device::{
    DeviceBuffer, DriverError, Kernel, Module, OwnedEvent, PinnedBuffer, RESAMPLE, Stream,
};

/// Memory from which the GPU can read a frame's bytes: pinned memory and, for a discrete GPU, also device memory.
/// The copy to device memory pays off because a copy engine reads pinned memory at the full rate of the bus. A
/// kernel that reads pinned memory waits for each access, and meanwhile occupies multiprocessors that the model
/// needs.
#[derive(Default)]
pub struct Staging {
    pinned: Option<PinnedBuffer>,
    /// Device memory for a frame, in pinned memory of a pool or of this staging memory.
    pub device: Option<DeviceBuffer>,
}

/// The device addresses of a frame's samples. For each component: the first sample, and the distance between two rows in
/// bytes.
pub type ComponentSamples = [(u64, u32); CHANNELS];

/// Resamples frames of one format and size on one GPU.
pub struct GpuResampler {
    stream: Arc<Stream>,
    kernel: Kernel,
    /// The memory of the table.
    _table: DeviceBuffer,
    /// The parameters that do not depend on the frame and the regions.
    params: ResampleParams,
    /// The components of the frames.
    components: ArrayVec<Component, CHANNELS>,
}

impl GpuResampler {
    /// Copies the table to the GPU.
    ///
    /// # Errors
    /// If the kernel cannot be loaded, or memory cannot be allocated.
    pub fn new(
        stream: &Arc<Stream>,
        resampler: &Resampler,
        input: &InputSpec,
        table: &Table,
    ) -> Result<Self, DriverError> {
        let name = match table {
            Table::F32(_) => c"resample_32",
            Table::F16(_) => c"resample_16",
            Table::U8(_) => c"resample_8",
        };
        let kernel = Module::load(stream.device(), RESAMPLE.ptx())?.kernel(name)?;
        let memory = DeviceBuffer::new(stream.device(), table.bytes().len())?;
        // SAFETY: the memory has this many bytes, and only work in this stream accesses it.
        unsafe { stream.write(table.bytes(), memory.address()) }?;
        let mut components = [ResampleComponent::default(); CHANNELS];
        for (to, component) in components.iter_mut().zip(&resampler.format.components) {
            to.pixel_stride = component.pixel_stride as u32;
        }
        let [width, height] = input.size;
        let channels = input.channels as u32;
        let [pixel, row, channel] = match input.layout {
            InputLayout::Nchw => [1, width, width * height],
            InputLayout::Nhwc => [channels, channels * width, 1],
        };
        let params = ResampleParams {
            components,
            table: memory.address(),
            matrix: resampler.format.color.matrix.map(|row| row.map(i32::from)),
            bias: resampler.format.color.bias,
            component_count: resampler.format.components.len() as u32,
            channels,
            width,
            height,
            border: u32::from(BORDER),
            output_pixel_stride: pixel,
            output_row_stride: row,
            output_channel_stride: channel,
            ..ResampleParams::default()
        };
        let components = resampler.format.components.clone();
        Ok(Self { stream: stream.clone(), kernel, _table: memory, params, components })
    }

    /// Copies a frame in host memory to memory that the GPU can read. The copy from pinned memory to device memory
    /// is asynchronous, in stream order. Returns the addresses at which the GPU reads the samples, and the number of bytes
    /// that it can read from the host's memory.
    ///
    /// # Errors
    /// If memory cannot be allocated, or the copy cannot be submitted.
    pub fn stage(
        &self,
        planes: &[Plane<'_>],
        staging: &mut Staging,
    ) -> Result<(ComponentSamples, u64), DriverError> {
        // The first component in the plane of component `k`.
        let first = |k: usize| {
            let is_same = |other: &Component| other.plane == self.components[k].plane;
            self.components.iter().position(is_same).unwrap_or(k)
        };
        let all = 0..self.components.len();
        let bytes = all.clone().filter(|&k| first(k) == k).map(|k| planes[k].data.len()).sum();
        let device = self.stream.device();
        let pinned = match &mut staging.pinned {
            Some(pinned) if pinned.len() >= bytes => pinned,
            other => other.insert(PinnedBuffer::new(device, bytes)?),
        };
        let mut rest = pinned.as_mut_slice();
        let mut starts = [0; CHANNELS];
        let mut copied = 0;
        for k in all.clone().filter(|&k| first(k) == k) {
            let data = planes[k].data;
            let (to, others) = rest.split_at_mut(data.len());
            to.copy_from_slice(data);
            starts[k] = copied;
            copied += data.len();
            rest = others;
        }
        let address = self.upload(pinned, bytes, &mut staging.device)?;
        let mut components = [(0, 0); CHANNELS];
        for k in all {
            let offset = starts[first(k)] + self.components[k].offset;
            components[k] = (address + offset as u64, planes[k].stride as u32);
        }
        Ok((components, bytes as u64))
    }

    /// Copies the first `bytes` bytes of pinned memory to `on_device`, which it enlarges, asynchronously, in stream order.
    /// An integrated GPU reads the host's memory as fast, so nothing is copied for it. Returns the address at which the GPU
    /// reads the bytes.
    ///
    /// # Errors
    /// If memory cannot be allocated, or the copy cannot be submitted.
    pub fn upload(
        &self,
        pinned: &PinnedBuffer,
        bytes: usize,
        on_device: &mut Option<DeviceBuffer>,
    ) -> Result<u64, DriverError> {
        let device = self.stream.device();
        if device.is_integrated() {
            return Ok(pinned.address());
        }
        let memory = match on_device {
            Some(memory) if memory.len() >= bytes => memory,
            other => other.insert(DeviceBuffer::new(device, bytes)?),
        };
        self.stream.upload(pinned, memory, bytes)?;
        Ok(memory.address())
    }

    /// Makes a picture of each region of a frame, one after the other, from the address `output` on. `regions` are the
    /// numbers of their scalings. One kernel makes all pictures, asynchronously, in stream order. Then records `read`,
    /// after which the frame is not read anymore.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    ///
    /// # Safety
    /// - `output` must be valid for writes of the pictures, and no work in another stream may access it.
    /// - `samples` must be the addresses of a frame that [`stage`](Self::stage) of this resampler has returned, or
    ///   [`device_samples`](super::device_samples) or [`component_samples`](super::component_samples) for this
    ///   [`Resampler`]. They must stay readable, and unchanged, until `read` has completed.
    /// - `scalings` must have scalings with these numbers, for regions of these frames, because a `Resampler` checks that
    ///   the samples of whole frames are in their memory.
    pub unsafe fn resample(
        &self,
        samples: &ComponentSamples,
        (scalings, regions): (&GpuScalings, Range<usize>),
        output: u64,
        read: &OwnedEvent,
    ) -> Result<(), DriverError> {
        let positions = scalings.address(regions.start);
        let mut params = ResampleParams { output, positions, ..self.params };
        for (to, &(samples, row_stride)) in params.components.iter_mut().zip(samples) {
            *to = ResampleComponent { samples, row_stride, ..*to };
        }
        let (grid, block) = (params.grid(regions.len() as u32), [RESAMPLE_THREADS, 1, 1]);
        let mut arguments = [(&raw mut params).cast::<c_void>()];
        // SAFETY: the kernel has a single parameter of this type. It reads the samples, which the caller guarantees, the
        // table and the positions, which exist until `read` and the recorded use have completed, and it writes the
        // output, in stream order.
        unsafe { self.kernel.launch(&self.stream, grid, block, &mut arguments) }?;
        scalings.record_use()?;
        self.stream.record(read)
    }
}
