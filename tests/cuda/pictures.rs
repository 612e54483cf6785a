// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pictures of the regions of frames in batches on the GPU, compared with the CPU's, and the number of launches that make
//! them.

use std::sync::Arc;

use gst_video::VideoInfo;
use gstonnxruntime::inference::model::InputSpec;
use gstonnxruntime::inference::pictures::Pictures;
use gstonnxruntime::inference::session::InputMemory;
use nmsfilter_core::cuda::{Device, DeviceBuffer, Stream};
use nmsfilter_core::geometry::FrameRegion;

use crate::resample::{gpu_stream, random_case};
use crate::support::emulated::Emulated;
use crate::support::engines;

/// Batches of this many pictures.
const BATCH: usize = 8;

/// Pictures for two batches on a GPU and on the CPU.
struct Pair {
    input: InputSpec,
    on_gpu: Pictures,
    on_cpu: Pictures,
    device: Arc<Device>,
    batches: [DeviceBuffer; 2],
    /// The driver that counts launches.
    emulated: Option<Emulated>,
}

impl Pair {
    fn new(device: &Arc<Device>, input: &InputSpec, emulated: Option<Emulated>) -> Self {
        let new = |device| Pictures::new(input, Default::default(), device).unwrap();
        let batch = || DeviceBuffer::new(device, BATCH * input.bytes()).unwrap();
        Self {
            input: input.clone(),
            on_gpu: new(Some(device)),
            on_cpu: new(None),
            device: device.clone(),
            batches: [batch(), batch()],
            emulated,
        }
    }

    /// Makes the pictures of a frame with each converter: on the GPU from place `first` of a batch on, with the rest in the
    /// next batch. Asserts that they are equal, and returns the number of launches, if it can be counted.
    fn check(
        &mut self,
        frame: &gst::BufferRef,
        info: &VideoInfo,
        regions: &[FrameRegion],
        first: usize,
    ) -> Option<i32> {
        let bytes = self.input.bytes();
        let mut expected = vec![0u32; (regions.len() * bytes).div_ceil(4)];
        let input = InputMemory { address: expected.as_mut_ptr() as u64, free: None };
        self.on_cpu.set_frame(info).unwrap();
        let prepared = self.on_cpu.prepare(frame, regions.iter().copied()).unwrap();
        // SAFETY: `expected` has room for the pictures.
        unsafe { self.on_cpu.write(&prepared, 0..regions.len(), input, 0) }.unwrap();
        let expected = &bytemuck::cast_slice::<_, u8>(&expected)[..regions.len() * bytes];

        let emulated = self.emulated;
        let launches = || emulated.map_or(0, Emulated::resample_launches);
        let before = launches();
        self.on_gpu.set_frame(info).unwrap();
        let prepared = self.on_gpu.prepare(frame, regions.iter().copied()).unwrap();
        let split = regions.len().min(BATCH - first);
        let parts = [(0..split, first), (split..regions.len(), 0)];
        let stream = Stream::new(&self.device).unwrap();
        let mut found = Vec::new();
        for (batch, (part, place)) in self.batches.iter().zip(parts) {
            if part.is_empty() {
                continue;
            }
            let input = InputMemory { address: batch.address(), free: None };
            let mut pictures = vec![0; part.len() * bytes];
            // SAFETY: the batch has room for the pictures, and nothing else uses it.
            let written = unsafe { self.on_gpu.write(&prepared, part, input, place) }.unwrap();
            stream.wait_for(written.expect("the GPU makes the pictures")).unwrap();
            let address = batch.address() + (place * bytes) as u64;
            // SAFETY: the pictures are in the batch.
            unsafe { stream.download(address, &mut pictures) }.unwrap();
            found.extend(pictures);
        }
        self.on_gpu.release(prepared).unwrap();
        let count = launches() - before;
        let differing = found.chunks(bytes).zip(expected.chunks(bytes)).position(|(a, b)| a != b);
        assert_eq!(differing, None, "{info:?}, {regions:?} from {first}");
        emulated.map(|_| count)
    }
}

fn random_region(random: &mut fastrand::Rng, info: &VideoInfo) -> FrameRegion {
    let mut side = |side: u32| {
        let start = random.u32(..side);
        (start, random.u32(1..=side - start))
    };
    let ((left, width), (top, height)) = (side(info.width()), side(info.height()));
    FrameRegion { left, top, width, height }
}

/// Regions stay, change, come and go from frame to frame.
#[test]
#[ignore = "needs a GPU"]
fn the_cpu_and_the_gpu_make_the_same_pictures_with_one_launch_per_batch() {
    let (device, emulated) = (gpu_stream().device().clone(), Emulated::get());
    for seed in 0..engines::scene_count(200) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (frame, info, input, _) = random_case(random);
        let mut pair = Pair::new(&device, &input, emulated);
        let mut regions = Vec::new();
        for _ in 0..4 {
            regions.truncate(random.usize(..=BATCH));
            for region in &mut regions {
                if random.bool() {
                    *region = random_region(random, &info);
                }
            }
            while regions.is_empty() || (regions.len() < BATCH && random.bool()) {
                regions.push(random_region(random, &info));
            }
            let first = random.usize(..BATCH);
            let batches = if first + regions.len() > BATCH { 2 } else { 1 };
            if let Some(launches) = pair.check(&frame, &info, &regions, first) {
                assert_eq!(launches, batches, "seed {seed}: {} from {first}", regions.len());
            }
        }
    }
}

/// Streams with frames of other formats and sizes have elements of their own, or take turns in an element.
#[test]
#[ignore = "needs a GPU"]
fn formats_that_take_turns_have_regions_of_their_own() {
    let (device, emulated) = (gpu_stream().device().clone(), Emulated::get());
    let random = &mut fastrand::Rng::with_seed(3);
    let (.., input, _) = random_case(random);
    let mut pair = Pair::new(&device, &input, emulated);
    let streams: Vec<_> = (0..3)
        .map(|_| {
            let (frame, info, ..) = random_case(random);
            let regions: Vec<_> = (0..5).map(|_| random_region(random, &info)).collect();
            (frame, info, regions)
        })
        .collect();
    for count in [2, 5, 1, 3] {
        for (frame, info, regions) in &streams {
            let launches = pair.check(frame, info, &regions[..count], 0);
            assert!(launches.is_none_or(|launches| launches == 1), "{launches:?} launches");
        }
    }
}

/// The memory of a pool has other bytes in each frame. Pinned memory is uploaded whole, with the bytes behind the frame.
#[test]
#[ignore = "needs a GPU"]
fn memory_that_comes_back_is_pinned_and_read_anew_for_each_frame() {
    let device = gpu_stream().device().clone();
    let info = VideoInfo::builder(gst_video::VideoFormat::Nv12, 64, 48).build().unwrap();
    let input = InputSpec::with_size([32, 32], nmsfilter_core::tensor::ElementType::F32);
    let mut pair = Pair::new(&device, &input, None);
    let whole = [FrameRegion { left: 0, top: 0, width: 64, height: 48 }];
    let bytes_behind = 100;
    let new = || gst::Buffer::with_size(info.size() + bytes_behind).unwrap();
    let mut frame = new();
    let mut uploaded = Vec::new();
    for number in 0..12 {
        frame.get_mut().unwrap().map_writable().unwrap().fill(number * 20);
        pair.check(&frame, &info, &whole, 0);
        uploaded.push(pair.on_gpu.uploaded as usize - info.size());
    }
    let (copied, pinned) = uploaded.split_at(7);
    assert_eq!((copied, pinned), (&[0; 7][..], &[bytes_behind; 5][..]));
    // The memory of each of these frames is new.
    for number in 0..12 {
        let mut frame = new();
        frame.get_mut().unwrap().map_writable().unwrap().fill(number);
        pair.check(&frame, &info, &whole, 0);
        assert_eq!(pair.on_gpu.uploaded as usize, info.size());
    }
}
