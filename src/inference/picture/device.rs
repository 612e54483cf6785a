// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packing on a GPU: the picture is in pinned memory of the host, one byte per channel, and
//! `kernels/pack.cu` reads it there and makes the model's input of it.
//!
//! In: a frame, and the address of the input tensor. Out: that tensor, in the order of the stream.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use super::pack_params::{PACK_THREADS, PackParams};
use super::{Picture, Scaler, Table};
use crate::device::{DeviceBuffer, DriverError, Kernel, Module, PinnedBuffer};
use crate::inference::error::InferenceError;
use crate::inference::model::{Input, InputLayout};
use crate::inference::provider::GpuStream;

/// PTX with the terminating zero that the driver expects.
const PTX: &CStr = match CStr::from_bytes_with_nul(
    concat!(include_str!("../../../kernels/ptx/pack.sm_60.ptx"), "\0").as_bytes(),
) {
    Ok(ptx) => ptx,
    Err(_) => panic!("PTX is text"),
};

/// Packs pictures on one GPU.
pub struct DevicePacker {
    gpu: Arc<GpuStream>,
    kernel: Kernel,
    /// The memory of the table.
    _table: DeviceBuffer,
    params: PackParams,
}

impl DevicePacker {
    /// A packer for pictures of `input`.
    ///
    /// # Errors
    /// If the kernel cannot be loaded or memory cannot be allocated.
    pub fn new(gpu: &Arc<GpuStream>, input: &Input, table: &Table) -> Result<Self, DriverError> {
        let name = match table {
            Table::F32(_) => c"pack_32",
            Table::F16(_) => c"pack_16",
            Table::U8(_) => c"pack_8",
        };
        let kernel = Module::load(&gpu.device, PTX)?.kernel(name)?;
        let bytes = table.bytes();
        let mut host = PinnedBuffer::new(&gpu.device, bytes.len())?;
        host.as_mut_slice().copy_from_slice(bytes);
        let on_device = DeviceBuffer::new(&gpu.device, bytes.len())?;
        gpu.stream.upload(&host, &on_device, bytes.len())?;
        gpu.stream.synchronize()?;

        let [width, height] = input.size;
        let channels = table.channels() as u32;
        let (pixel, row, channel) = match input.layout {
            InputLayout::Nchw => (1, width, width * height),
            InputLayout::Nhwc => (channels, channels * width, 1),
        };
        let params = PackParams {
            table: on_device.address(),
            width,
            height,
            channels,
            output_pixel_stride: pixel,
            output_row_stride: row,
            output_channel_stride: channel,
            ..PackParams::default()
        };
        Ok(Self { gpu: gpu.clone(), kernel, _table: on_device, params })
    }

    /// Memory for the pictures of `scaler`, which the GPU reads.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn picture(&self, scaler: &Scaler) -> Result<Picture, DriverError> {
        let pinned = Arc::new(PinnedBuffer::new(&self.gpu.device, scaler.picture_size())?);
        let mut data = gst::Buffer::new();
        let memory = gst::Memory::from_mut_slice(PinnedBytes(pinned.clone()));
        data.get_mut().expect("the buffer is new").append_memory(memory);
        Ok(Picture { data, pinned: Some(pinned) })
    }

    /// Makes the model's input at `output` of `frame`, asynchronously, in the order of the stream. Returns
    /// the number of bytes that the GPU reads from the host.
    ///
    /// # Errors
    /// If the frame cannot be mapped, or the GPU fails.
    ///
    /// # Safety
    /// `output` must be valid for writes of the input's size, and no work of another stream may access it.
    /// The last work that was submitted with `picture` must have completed.
    pub unsafe fn pack(
        &mut self,
        scaler: &Scaler,
        frame: &gst::BufferRef,
        picture: &mut Picture,
        output: u64,
    ) -> Result<u64, InferenceError> {
        let pinned = picture.pinned.clone().expect("`picture` has made it");
        let mut params = scaler.scale(frame, picture, |pixels| {
            let row = pixels.size[0] * pixels.pixel_stride;
            if !scaler.converts() {
                // SAFETY: the pinned memory has the size of the frame's picture, which is at least that of its
                // rows, and the last work that reads it has completed.
                let to = unsafe { std::slice::from_raw_parts_mut(pinned.as_ptr(), pinned.len()) };
                for (y, to) in to.chunks_exact_mut(row).take(pixels.size[1]).enumerate() {
                    to.copy_from_slice(pixels.row(y));
                }
            }
            let row_stride = if scaler.converts() { pixels.stride } else { row };
            PackParams {
                pixels: pinned.address(),
                output,
                row_stride: row_stride as u32,
                pixel_stride: pixels.pixel_stride as u32,
                channel_offsets: pixels.offsets.map(|offset| offset as u64),
                ..self.params
            }
        })?;
        let grid = params.grid();
        let mut arguments = [(&raw mut params).cast::<c_void>()];
        // SAFETY: the kernel has one parameter of this type. It reads the picture and the table, which `self`
        // owns, and writes the input, which the caller guarantees, in the order of the stream.
        unsafe {
            self.kernel.launch(&self.gpu.stream, grid, [PACK_THREADS, 1, 1], &mut arguments)?;
        }
        Ok(u64::from(params.row_stride) * u64::from(params.height))
    }
}

/// Pinned memory as the memory of a `GstBuffer`.
struct PinnedBytes(Arc<PinnedBuffer>);

impl AsRef<[u8]> for PinnedBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory exists as long as `self`. Only the scaler writes it, through the `GstBuffer`.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) }
    }
}

impl AsMut<[u8]> for PinnedBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; GStreamer maps the memory for one writer.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), self.0.len()) }
    }
}
