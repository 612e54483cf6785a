// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resampling on a GPU, with `kernels/resample.cu`.
//!
//! In: a frame, and the address of the model's input. Out: the model's input, which is written in stream order. The
//! bytes of a frame in host memory are copied to [`Staging`] memory first; a frame in device memory is read in
//! place.

use std::ffi::c_void;
use std::sync::Arc;

use super::device_frame::DeviceFrame;
use super::frame_format::CHANNELS;
use super::resample_params::{RESAMPLE_THREADS, ResampleComponent, ResampleParams};
use super::resampler::{BORDER, Plane, Resampler};
use super::table::Table;
use crate::inference::model::{InputLayout, InputSpec};
use crate::inference::provider::GpuStream;
use nmsfilter_core::device::{
    DeviceBuffer, DriverError, Kernel, Module, OwnedEvent, PinnedBuffer, RESAMPLE,
};

/// Memory from which the GPU can read a frame's bytes: pinned memory and, for a discrete GPU, also device memory.
/// The copy to device memory pays off because a copy engine reads pinned memory at the full rate of the bus. A
/// kernel that reads pinned memory waits for each access, and meanwhile occupies multiprocessors that the model
/// needs.
#[derive(Default)]
pub struct Staging {
    pinned: Option<PinnedBuffer>,
    device: Option<Arc<DeviceBuffer>>,
}

/// A frame in staging memory.
pub struct Staged {
    /// The parameters of the kernel, except for the output.
    params: ResampleParams,
    bytes: u64,
    /// Keeps the memory that contains the samples.
    _device: Option<Arc<DeviceBuffer>>,
}

impl Staged {
    /// Returns the number of bytes that the GPU can read from the host's memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Resamples frames of one format and size on one GPU.
pub struct GpuResampler {
    gpu: Arc<GpuStream>,
    kernel: Kernel,
    /// The memory of the table and the positions.
    _constants: DeviceBuffer,
    params: ResampleParams,
    /// The index of each component's plane.
    planes: [usize; CHANNELS],
}

impl GpuResampler {
    /// Copies the data of `resampler` to the GPU.
    ///
    /// # Errors
    /// If the kernel cannot be loaded, or memory cannot be allocated.
    pub fn new(
        gpu: &Arc<GpuStream>,
        resampler: &Resampler,
        input: &InputSpec,
        table: &Table,
    ) -> Result<Self, DriverError> {
        let name = match table {
            Table::F32(_) => c"resample_32",
            Table::F16(_) => c"resample_16",
            Table::U8(_) => c"resample_8",
        };
        let kernel = Module::load(&gpu.device, RESAMPLE.ptx())?.kernel(name)?;
        let mut constants = Constants::default();
        let table_at = constants.push(table.bytes());
        let positions_at = resampler.positions.each_ref().map(|positions| {
            [&positions.columns, &positions.rows].map(|at| constants.push(bytemuck::cast_slice(at)))
        });
        let memory = constants.upload(gpu)?;

        let mut components = [ResampleComponent::default(); CHANNELS];
        let mut planes = [0; CHANNELS];
        for (k, component) in resampler.format.components.iter().enumerate() {
            let [columns, rows] = positions_at[k].map(|at| memory.address() + at as u64);
            let pixel_stride = component.pixel_stride as u32;
            components[k] =
                ResampleComponent { columns, rows, pixel_stride, ..ResampleComponent::default() };
            planes[k] = component.plane;
        }
        let [width, height] = input.size;
        let channels = table.channels() as u32;
        let [pixel, row, channel] = match input.layout {
            InputLayout::Nchw => [1, width, width * height],
            InputLayout::Nhwc => [channels, channels * width, 1],
        };
        let fit = resampler.fit;
        let params = ResampleParams {
            components,
            table: memory.address() + table_at as u64,
            output: 0,
            matrix: resampler.format.color.matrix,
            bias: resampler.format.color.bias,
            component_count: resampler.format.components.len() as u32,
            channels,
            width,
            height,
            left: fit.offset[0],
            top: fit.offset[1],
            right: fit.offset[0] + fit.size[0],
            bottom: fit.offset[1] + fit.size[1],
            border: u32::from(BORDER),
            output_pixel_stride: pixel,
            output_row_stride: row,
            output_channel_stride: channel,
        };
        Ok(Self { gpu: gpu.clone(), kernel, _constants: memory, params, planes })
    }

    /// Copies a frame in host memory to memory that the GPU can read. The copy from pinned memory to device memory
    /// is asynchronous, in stream order.
    ///
    /// # Errors
    /// If memory cannot be allocated, or the copy cannot be submitted.
    pub fn stage(
        &self,
        planes: &[Plane<'_>],
        staging: &mut Staging,
    ) -> Result<Staged, DriverError> {
        let mut params = self.params;
        let components = params.component_count as usize;
        let is_first = |k: usize| !self.planes[..k].contains(&self.planes[k]);
        let bytes = (0..components).filter(|&k| is_first(k)).map(|k| planes[k].data.len()).sum();
        let device = &self.gpu.device;
        let pinned = match &mut staging.pinned {
            Some(pinned) if pinned.len() >= bytes => pinned,
            other => other.insert(PinnedBuffer::new(device, bytes)?),
        };
        let on_device = match &mut staging.device {
            _ if device.is_integrated() => None,
            Some(memory) if memory.len() >= bytes => Some(&*memory),
            other => Some(&*other.insert(Arc::new(DeviceBuffer::new(device, bytes)?))),
        };
        let address = on_device.map_or(pinned.address(), |memory| memory.address());
        let mut rest = pinned.as_mut_slice();
        let mut starts = [0; CHANNELS];
        let mut copied = 0;
        for k in 0..components {
            let plane = &planes[k];
            match self.planes[..k].iter().position(|&earlier| earlier == self.planes[k]) {
                Some(earlier) => starts[k] = starts[earlier],
                None => {
                    let (to, others) = rest.split_at_mut(plane.data.len());
                    to.copy_from_slice(plane.data);
                    starts[k] = copied;
                    copied += plane.data.len();
                    rest = others;
                }
            }
            params.components[k].samples = address + (starts[k] + plane.offset) as u64;
            params.components[k].row_stride = plane.stride as u32;
        }
        if let Some(memory) = on_device {
            self.gpu.stream.upload(pinned, memory, copied)?;
        }
        Ok(Staged { params, bytes: copied as u64, _device: on_device.cloned() })
    }

    /// Converts a staged frame to the model's input at `output`, asynchronously, in stream order. Then records
    /// `read`, after which the frame is not read anymore.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    ///
    /// # Safety
    /// `output` must be valid for writes of the input's size, and no work in another stream may access it. `frame`
    /// must be a result of [`stage`](Self::stage) of this resampler. The planes that were passed to `stage` must
    /// come from the [`Resampler`] with which `self` was created, because that one has checked their sizes. The
    /// staging memory must not be written before `read` has completed.
    pub unsafe fn resample(
        &self,
        frame: &Staged,
        output: u64,
        read: &OwnedEvent,
    ) -> Result<(), DriverError> {
        // SAFETY: the samples are in the staging memory, and the `Resampler` has checked that there are enough of
        // them. The caller guarantees the output.
        unsafe { self.launch(ResampleParams { output, ..frame.params }) }?;
        self.gpu.stream.record(read)
    }

    /// Converts a frame in device memory to the model's input at `output`, asynchronously, in stream order. Then
    /// records `read`, after which the frame is not read anymore.
    ///
    /// # Errors
    /// If the kernel cannot be launched.
    ///
    /// # Safety
    /// `output` must meet the conditions of [`resample`](Self::resample). `frame` must exist until `read` has
    /// completed.
    pub unsafe fn resample_on_device(
        &self,
        frame: &DeviceFrame<'_>,
        output: u64,
        read: &OwnedEvent,
    ) -> Result<(), DriverError> {
        let mut params = ResampleParams { output, ..self.params };
        for (to, (samples, row_stride)) in params.components.iter_mut().zip(frame.components) {
            (to.samples, to.row_stride) = (samples, row_stride);
        }
        // SAFETY: `DeviceFrame` has checked that there are enough samples, and its stream waits for the producer of
        // the frame. The caller guarantees that the frame exists, and guarantees the output.
        unsafe { self.launch(params) }?;
        self.gpu.stream.record(read)
    }

    /// # Safety
    /// The samples must be readable until the kernel has completed, and the output writable.
    unsafe fn launch(&self, mut params: ResampleParams) -> Result<(), DriverError> {
        let (grid, block) = (params.grid(), [RESAMPLE_THREADS, 1, 1]);
        let mut arguments = [(&raw mut params).cast::<c_void>()];
        // SAFETY: the kernel has a single parameter of this type. It reads the samples and the constants, which
        // `self` owns, and writes the output, in stream order.
        unsafe { self.kernel.launch(&self.gpu.stream, grid, block, &mut arguments) }
    }
}

/// Arrays in a single block of memory. Each begins at a multiple of 16 bytes.
#[derive(Default)]
struct Constants(Vec<u8>);

impl Constants {
    /// Appends an array, and returns its offset.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let at = self.0.len();
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(16), 0);
        at
    }

    fn upload(&self, gpu: &GpuStream) -> Result<DeviceBuffer, DriverError> {
        let mut host = PinnedBuffer::new(&gpu.device, self.0.len())?;
        host.as_mut_slice().copy_from_slice(&self.0);
        let memory = DeviceBuffer::new(&gpu.device, self.0.len())?;
        gpu.stream.upload(&host, &memory, self.0.len())?;
        gpu.stream.synchronize()?;
        Ok(memory)
    }
}
