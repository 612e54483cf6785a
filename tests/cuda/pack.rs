// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules, kernels and events of `gstnmsfilter::cuda`, and the kernels of kernels/pack.cu, compared with
//! plain loops.

use std::ffi::CStr;
use std::sync::Arc;

use bytemuck::Pod;
use gstnmsfilter::cuda::{Device, DeviceBuffer, Kernel, Module, OwnedEvent, PinnedBuffer, Stream};
use gstnmsfilter::inference::picture::{PACK_THREADS, PackParams};

use crate::support::emulated::Emulated;
use crate::support::engines;

const PTX: &str = concat!(include_str!("../../kernels/ptx/pack.sm_60.ptx"), "\0");

fn pack_module(device: &Arc<Device>) -> Module {
    Module::load(device, CStr::from_bytes_with_nul(PTX.as_bytes()).unwrap()).unwrap()
}

/// The index of the output element of a channel of a pixel, and of the byte that it is made of.
fn indices(params: &PackParams, [x, y, c]: [u32; 3]) -> (usize, usize) {
    let element = c * params.output_channel_stride
        + y * params.output_row_stride
        + x * params.output_pixel_stride;
    let byte = y * params.row_stride + x * params.pixel_stride;
    (element as usize, byte as usize + params.channel_offsets[c as usize] as usize)
}

/// The output of `len` elements that a plain loop writes. Elements that it does not write keep the bytes
/// `FILL`.
fn plain<T: Pod>(params: &PackParams, pixels: &[u8], table: &[T], len: usize) -> Vec<T> {
    let mut output = vec![T::zeroed(); len];
    bytemuck::cast_slice_mut::<T, u8>(&mut output).fill(FILL);
    for y in 0..params.height {
        for x in 0..params.width {
            for c in 0..params.channels {
                let (element, byte) = indices(params, [x, y, c]);
                output[element] = table[c as usize * 256 + usize::from(pixels[byte])];
            }
        }
    }
    output
}

const FILL: u8 = 0x5a;

/// A GPU with a stream and a kernel.
struct Gpu {
    stream: Stream,
    kernel: Kernel,
}

impl Gpu {
    fn upload<T: Pod>(&self, values: &[T]) -> DeviceBuffer {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut pinned = PinnedBuffer::new(self.stream.device(), bytes.len()).unwrap();
        pinned.as_mut_slice().copy_from_slice(bytes);
        let buffer = DeviceBuffer::new(self.stream.device(), bytes.len()).unwrap();
        self.stream.upload(&pinned, &buffer, bytes.len()).unwrap();
        self.stream.synchronize().unwrap();
        buffer
    }

    /// The output of the kernel, `len` elements. The addresses of `params` are replaced.
    fn pack<T: Pod>(&self, params: &PackParams, pixels: &[u8], table: &[T], len: usize) -> Vec<T> {
        let (pixels, table) = (self.upload(pixels), self.upload(table));
        let output = self.upload(&vec![FILL; len * size_of::<T>()]);
        let mut params = PackParams {
            pixels: pixels.address(),
            table: table.address(),
            output: output.address(),
            ..*params
        };
        let grid = [params.width.div_ceil(PACK_THREADS), params.height, 1];
        let mut result = vec![T::zeroed(); len];
        let bytes = bytemuck::cast_slice_mut(&mut result);
        // SAFETY: the kernel has one parameter of this type. It reads and writes what `indices` names,
        // and has completed when the download has.
        unsafe {
            let params = &mut [(&raw mut params).cast()];
            self.kernel.launch(&self.stream, grid, [PACK_THREADS, 1, 1], params).unwrap();
            self.stream.download(output.address(), bytes).unwrap();
        }
        result
    }
}

/// Frames of random sizes, formats and layouts.
fn pack_equals_a_plain_loop<T: Pod + PartialEq + std::fmt::Debug>(
    name: &CStr,
    random_element: impl Fn(&mut fastrand::Rng) -> T,
) {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let gpu = Gpu { stream, kernel: pack_module(&device).kernel(name).unwrap() };
    for seed in 0..engines::scene_count(400) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (width, height) = (random.u32(1..300), random.u32(1..20));
        let channels = if random.bool() { 3 } else { 1 };
        // Packed pixels of 1 to 4 bytes with the channels in any order, or planes.
        let is_planar = random.bool();
        let pixel_stride = if is_planar { 1 } else { random.u32(channels..5) };
        let row_stride = width * pixel_stride + random.u32(0..9);
        let mut channel_offsets = [0, 1, 2];
        if is_planar {
            channel_offsets = channel_offsets.map(|c| c * u64::from(row_stride * height));
        }
        random.shuffle(&mut channel_offsets[..channels as usize]);
        let planes = if is_planar { channels } else { 1 };
        let pixels: Vec<u8> = (0..planes * row_stride * height).map(|_| random.u8(..)).collect();
        let table: Vec<T> = (0..channels * 256).map(|_| random_element(random)).collect();

        // NCHW or NHWC, as a part of a larger input.
        let (input_width, input_height) = (width + random.u32(0..5), height + random.u32(0..5));
        let [output_pixel_stride, output_row_stride, output_channel_stride] = match random.bool() {
            true => [1, input_width, input_width * input_height],
            false => [channels, input_width * channels, 1],
        };
        let params = PackParams {
            channel_offsets,
            width,
            height,
            row_stride,
            pixel_stride,
            channels,
            output_pixel_stride,
            output_row_stride,
            output_channel_stride,
            ..PackParams::default()
        };
        let len = (input_width * input_height * channels) as usize;
        let expected = plain(&params, &pixels, &table, len);
        assert!(gpu.pack(&params, &pixels, &table, len) == expected, "seed {seed}: {params:?}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn pack_32_equals_a_plain_loop() {
    pack_equals_a_plain_loop(c"pack_32", |random| random.u32(..));
}

#[test]
#[ignore = "needs a GPU"]
fn pack_16_equals_a_plain_loop() {
    pack_equals_a_plain_loop(c"pack_16", |random| random.u16(..));
}

#[test]
#[ignore = "needs a GPU"]
fn pack_8_equals_a_plain_loop() {
    pack_equals_a_plain_loop(c"pack_8", |random| random.u8(..));
}

#[test]
#[ignore = "needs a GPU"]
fn a_module_of_other_text_or_without_the_kernel_is_an_error() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let error = Module::load(&device, c"no PTX").unwrap_err();
    assert_eq!(error.call, "cuModuleLoadData");
    // The first bytes of machine code, which has no terminating zero.
    let error = Module::load(&device, c"\x7fELF\x02\x01\x01").unwrap_err();
    assert_eq!((error.code, error.name.as_str()), (218, "CUDA_ERROR_INVALID_PTX"));
    let error = pack_module(&device).kernel(c"pack_64").unwrap_err();
    assert_eq!((error.call, error.code), ("cuModuleGetFunction", 500));
}

#[test]
#[ignore = "needs a GPU"]
fn an_event_completes_after_the_work_that_it_was_recorded_after() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let event = OwnedEvent::new(&device).unwrap();
    // It has not been recorded.
    event.synchronize().unwrap();
    stream.record(&event).unwrap();
    event.synchronize().unwrap();

    let Some(emulated) = Emulated::get() else { return };
    let buffer = DeviceBuffer::new(&device, 4).unwrap();
    let content = || {
        let mut bytes = [0; 4];
        // SAFETY: the buffer has 4 bytes.
        unsafe { Stream::new(&device).unwrap().download(buffer.address(), &mut bytes) }.unwrap();
        bytes
    };
    for value in [1, 2] {
        emulated.pending_copy(stream.as_raw(), buffer.address(), &[value; 4]);
        stream.record(&event).unwrap();
        assert_ne!(content(), [value; 4], "the copy is pending");
        event.synchronize().unwrap();
        assert_eq!(content(), [value; 4]);
    }
}
