// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules, kernels and events of `nmsfilter_core::cuda`, and the kernels of kernels/resample.cu, compared
//! with the CPU.

use std::sync::Arc;

use gst::glib::translate::IntoGlib;
use gst_video::{VideoFormat, VideoInfo};
use gstnmsfilter::input::cuda_memory;
use gstnmsfilter::input::model::Letterbox;
use gstonnxruntime::inference::model::{ChannelOrder, InputLayout, InputSpec};
use gstonnxruntime::inference::picture::{
    GpuResampler, GpuScalings, Resampler, Resampling, Rows, Scaling, Scratch, Staging, Table,
    device_samples, resample,
};
use nmsfilter_core::cuda::{Device, DeviceBuffer, Module, OwnedEvent, PinnedBuffer, Stream};
use nmsfilter_core::device::RESAMPLE;
use nmsfilter_core::geometry::FrameRegion;
use nmsfilter_core::tensor::ElementType;

use crate::support::emulated::Emulated;
use crate::support::engines;
use crate::support::pipeline;

fn resample_module(device: &Arc<Device>) -> Arc<Module> {
    Module::load(device, RESAMPLE.ptx()).unwrap()
}

/// Formats with 8 bits per component: planar, with and without subsampling, packed, and gray.
const FORMATS: [VideoFormat; 13] = [
    VideoFormat::Rgb,
    VideoFormat::Bgra,
    VideoFormat::Xrgb,
    VideoFormat::Gbr,
    VideoFormat::I420,
    VideoFormat::Nv12,
    VideoFormat::Nv21,
    VideoFormat::Yuy2,
    VideoFormat::Uyvy,
    VideoFormat::Vyuy,
    VideoFormat::Y444,
    VideoFormat::Ayuv,
    VideoFormat::Gray8,
];

/// Returns a frame of random bytes, and the input of a random model.
pub fn random_case(random: &mut fastrand::Rng) -> (gst::Buffer, VideoInfo, InputSpec, Letterbox) {
    let mut side = |most| random.u32(1..most);
    let (frame, model) = ([side(200), side(100)], [side(300), side(40)]);
    let info = VideoInfo::builder(FORMATS[random.usize(..FORMATS.len())], frame[0], frame[1])
        .build()
        .unwrap();
    let bytes: Vec<u8> = (0..info.size()).map(|_| random.u8(..)).collect();
    let element = [ElementType::F32, ElementType::F16, ElementType::U8][random.usize(..3)];
    let input = InputSpec {
        layout: if random.bool() { InputLayout::Nchw } else { InputLayout::Nhwc },
        channels: if random.bool() { 3 } else { 1 },
        order: if random.bool() { ChannelOrder::Rgb } else { ChannelOrder::Bgr },
        ranges: [[-1.0, 1.0], [0.0, 255.0], [0.0, 1.0]],
        mean: [0.5, 0.25, 0.125],
        ..InputSpec::with_size(model, element)
    };
    let letterbox = Letterbox::ALL[random.usize(..3)];
    (gst::Buffer::from_mut_slice(bytes), info, input, letterbox)
}

/// The bytes of `frame` in device memory.
pub fn on_device(gpu: &Stream, frame: &gst::BufferRef) -> gst::Buffer {
    let bytes = frame.map_readable().unwrap();
    let mut pinned = PinnedBuffer::new(gpu.device(), bytes.len()).unwrap();
    pinned.as_mut_slice().copy_from_slice(&bytes);
    let memory = DeviceBuffer::new(gpu.device(), bytes.len()).unwrap();
    gpu.upload(&pinned, &memory, bytes.len()).unwrap();
    gpu.synchronize().unwrap();
    let mut buffer = gst::Buffer::new();
    let memory = cuda_memory::from_buffer(memory, bytes.len(), drop);
    buffer.get_mut().unwrap().append_memory(memory);
    buffer
}

/// Initializes GStreamer and returns a stream of the GPU under test.
pub fn gpu_stream() -> Arc<Stream> {
    engines::require_gpu();
    pipeline::init();
    let device = Device::open(0).unwrap();
    Arc::new(Stream::new(&device).unwrap())
}

/// Returns a resampler for NV12 frames of 64x48 pixels, with their description.
fn of_nv12() -> (VideoInfo, Resampler) {
    let info = VideoInfo::builder(VideoFormat::Nv12, 64, 48).build().unwrap();
    let input = InputSpec::with_size([32, 32], ElementType::F32);
    let resampler = Resampler::new(&info, &input).unwrap();
    (info, resampler)
}

/// A frame that is too small for its caps.
#[test]
#[ignore = "needs a GPU"]
fn a_frame_with_too_few_bytes_is_an_error() {
    let gpu = gpu_stream();
    let (info, resampler) = of_nv12();
    let frame = |len| on_device(&gpu, &gst::Buffer::from_mut_slice(vec![0u8; len]));
    let whole = frame(info.size());
    assert!(device_samples(&whole, &resampler, &gpu).unwrap().is_some());
    let small = frame(info.size() - 64);
    let error = device_samples(&small, &resampler, &gpu).expect_err("it is too small");
    let expected = "plane 1 of the frame has 1472 bytes from its first row on and a stride of 64";
    assert!(error.to_string().contains(expected), "{error}");
}

/// An element written in C can set the fields of a `GstVideoMeta` to any values.
#[test]
#[ignore = "needs a GPU"]
fn a_frame_in_device_memory_whose_layout_does_not_fit_is_an_error() {
    let gpu = gpu_stream();
    let (info, resampler) = of_nv12();
    let error = |change: &dyn Fn(&mut gst_video::ffi::GstVideoMeta)| {
        let mut frame = on_device(&gpu, &gst::Buffer::from_mut_slice(vec![0u8; info.size()]));
        let flags = gst_video::VideoFrameFlags::empty();
        let writable = frame.get_mut().unwrap();
        let meta = gst_video::VideoMeta::add(writable, flags, info.format(), 64, 48).unwrap();
        // SAFETY: the metadata belongs to the buffer, which is not shared.
        change(unsafe { &mut *meta.as_ptr().cast_mut() });
        let result = device_samples(&frame, &resampler, &gpu);
        result.err().map(|error| error.to_string())
    };
    assert_eq!(error(&|_| ()), None);
    assert_eq!(error(&|meta| (meta.width, meta.height) = (96, 64)), None);
    for (message, change) in [
        (
            "a stride of 264; expected 24 rows",
            (|meta| meta.stride[1] = 264) as fn(&mut gst_video::ffi::GstVideoMeta),
        ),
        ("a stride of 4096; expected 48 rows", |meta| meta.stride[0] = 4096),
        ("a stride of 63; expected 48 rows", |meta| meta.stride[0] = 63),
        ("in reverse order", |meta| meta.stride[0] = -64),
        ("plane 1 of the frame has 1535 bytes", |meta| meta.offset[1] = 48 * 64 + 1),
        ("plane 1 of the frame has 0 bytes", |meta| meta.offset[1] = usize::MAX),
        ("has 1 planes; NV12 has 2", |meta| meta.n_planes = 1),
        ("has 5 planes; NV12 has 2", |meta| meta.n_planes = 5),
        ("is for NV12 of 64x47", |meta| meta.height = 47),
        ("is for I420 of 64x48", |meta| meta.format = VideoFormat::I420.into_glib()),
    ] {
        let found = error(&change).unwrap_or_default();
        assert!(found.contains(message), "{found:?}, expected {message:?}");
    }
}

/// Returns the scaling of a whole frame or of a region of it.
fn random_scaling(
    random: &mut fastrand::Rng,
    resampler: &Resampler,
    input: &InputSpec,
    letterbox: Letterbox,
) -> Scaling {
    if random.bool() {
        return Scaling::new(
            resampler,
            FrameRegion::whole(resampler.frame_size()),
            input,
            letterbox,
        );
    }
    let [(left, width), (top, height)] = resampler.frame_size().map(|side| {
        let start = random.u32(..side);
        (start, random.u32(1..=side - start))
    });
    Scaling::new(resampler, FrameRegion { left, top, width, height }, input, letterbox)
}

#[test]
#[ignore = "needs a GPU"]
fn the_cpu_and_the_gpu_make_the_same_input_of_a_frame_or_regions() {
    let gpu = gpu_stream();
    let (mut rows, mut scratch, mut staging) =
        (Rows::default(), Scratch::default(), Staging::default());
    for seed in 0..engines::scene_count(400) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (frame, info, input, letterbox) = random_case(random);
        let resampler = Resampler::new(&info, &input).unwrap();
        let count = random.usize(1..5);
        let scalings: Vec<Scaling> =
            (0..count).map(|_| random_scaling(random, &resampler, &input, letterbox)).collect();
        let table = Table::new(&input);
        let on_gpu = GpuResampler::new(&gpu, &resampler, &input, &table).unwrap();
        // The scalings from number `first` on replace others. Pictures are made of them alone.
        let first = random.usize(..count);
        let mut others = scalings.clone();
        others[first..].fill_with(|| random_scaling(random, &resampler, &input, letterbox));
        let mut scalings_on_gpu = GpuScalings::new(&gpu, &input).unwrap();
        scalings_on_gpu.replace(&others, 0..count).unwrap();
        scalings_on_gpu.replace(&scalings, first..count).unwrap();
        // The elements have the tensor's alignment.
        let bytes = (count - first) * input.bytes();
        let mut expected = vec![0u32; bytes.div_ceil(4)];
        let expected = &mut bytemuck::cast_slice_mut(&mut expected)[..bytes];
        let output = DeviceBuffer::new(gpu.device(), bytes).unwrap();
        let mut found = vec![0; bytes];
        let read = OwnedEvent::new(gpu.device()).unwrap();
        let regions = || (&scalings_on_gpu, first..count);
        resampler
            .samples(&frame, &mut scratch, |planes| {
                let pictures = expected.chunks_exact_mut(input.bytes());
                for (scaling, picture) in scalings[first..].iter().zip(pictures) {
                    let (resampler, input, table) = (&resampler, &input, &table);
                    let of = Resampling { resampler, scaling, planes, input, table };
                    resample(of, &mut rows, picture);
                }
                let (samples, _) = on_gpu.stage(planes, &mut staging).unwrap();
                // SAFETY: the output has the pictures' size, and the last work with `staging` has completed.
                unsafe { on_gpu.resample(&samples, regions(), output.address(), &read) }.unwrap();
            })
            .unwrap();
        let mut check = |what: &str| {
            // SAFETY: `found` is as long as the output.
            unsafe { gpu.download(output.address(), &mut found) }.unwrap();
            let differing = found.iter().zip(&*expected).position(|(a, b)| a != b);
            let region = differing.map(|byte| &scalings[first + byte / input.bytes()]);
            assert_eq!(
                differing, None,
                "seed {seed}, {what}: {info:?}, {input:?}, {region:?} of {count} from {first}"
            );
            gpu.zero(&output).unwrap();
        };
        check("frame in host memory");

        let frame = on_device(&gpu, &frame);
        let found = device_samples(&frame, &resampler, &gpu).unwrap();
        let (samples, _mapping) = found.expect("it is in this GPU's memory");
        // SAFETY: the output has the pictures' size, and the frame exists until the download has completed.
        unsafe { on_gpu.resample(&samples, regions(), output.address(), &read) }.unwrap();
        read.synchronize().unwrap();
        check("frame in device memory");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_module_of_other_text_or_without_the_kernel_is_an_error() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let error = Module::load(&device, c"no PTX").unwrap_err();
    assert_eq!(error.call, "cuModuleLoadData");
    // The module is the beginning of machine code, without a terminating zero.
    let error = Module::load(&device, c"\x7fELF\x02\x01\x01").unwrap_err();
    assert_eq!((error.code, error.name.as_str()), (218, "CUDA_ERROR_INVALID_PTX"));
    let error = resample_module(&device).kernel(c"resample_64").unwrap_err();
    assert_eq!((error.call, error.code), ("cuModuleGetFunction", 500));
}

#[test]
#[ignore = "needs a GPU"]
fn an_event_completes_after_the_work_that_it_was_recorded_after() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let event = OwnedEvent::new(&device).unwrap();
    // The event has not been recorded yet.
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
