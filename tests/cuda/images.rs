// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images in separate allocations of device memory: how the engine locates them, what it uploads,
//! and for which work it waits. tests/engine/images.rs compares random batches with the reference
//! engine.

use std::sync::Arc;

use nmsfilter_core::decoder::{self, Layout, Options};
use nmsfilter_core::device::{Device, DeviceBuffer, ForeignStream, PinnedBuffer, Ready, Stream};
use nmsfilter_core::engine::{Auto, Cpu, Cuda, Engine, EngineError, Job, Params};
use nmsfilter_core::tensor::{DeviceSlice, ElementType, Images, Shape, Storage, TensorView};

use crate::support::emulated::Emulated;
use crate::support::{engines, skip};

/// Four images with two windows each: x, y, side, score. In image 0 the first window suppresses the
/// second, in image 1 both survive, in image 2 the second has the higher score, and image 3 has no
/// candidates.
const WINDOWS: [[f32; 8]; 4] = [
    [0.0, 0.0, 9.0, 0.9, 1.0, 0.0, 9.0, 0.8],
    [0.0, 0.0, 9.0, 0.3, 20.0, 0.0, 9.0, 0.7],
    [0.0, 0.0, 9.0, 0.8, 1.0, 0.0, 9.0, 0.9],
    [0.0; 8],
];
const SURVIVORS: [&[u32]; 4] = [&[0], &[1, 0], &[1], &[]];
const BYTES: usize = 32;

fn bytes(image: usize) -> &'static [u8] {
    bytemuck::cast_slice(&WINDOWS[image])
}

/// Device memory with room for 16 images. The first images are at these positions.
fn memory(device: &Arc<Device>, positions: &[usize]) -> DeviceBuffer {
    memory_of(device, positions.iter().copied().enumerate())
}

/// Device memory with room for 16 images. Each item is an image and its position.
fn memory_of(device: &Arc<Device>, images: impl Iterator<Item = (usize, usize)>) -> DeviceBuffer {
    let mut pinned = PinnedBuffer::new(device, 16 * BYTES).unwrap();
    let copy = DeviceBuffer::new(device, 16 * BYTES).unwrap();
    for (image, position) in images {
        pinned.as_mut_slice()[position * BYTES..][..BYTES].copy_from_slice(bytes(image));
    }
    let stream = Stream::new(device).unwrap();
    stream.upload(&pinned, &copy, 16 * BYTES).unwrap();
    stream.synchronize().unwrap();
    copy
}

fn storage(memory: &DeviceBuffer, position: usize, ready: Ready) -> Storage<'_> {
    let address = memory.address() + (position * BYTES) as u64;
    // SAFETY: the memory has room for 16 images, and outlives the result.
    Storage::Device(unsafe { DeviceSlice::new(address, BYTES, ready) })
}

fn storages<'a>(memory: &'a DeviceBuffer, positions: &[usize]) -> Vec<Storage<'a>> {
    positions.iter().map(|&position| storage(memory, position, Ready::Now)).collect()
}

fn tensors(images: &dyn Images) -> [TensorView<'_>; 1] {
    let shape = Shape::new(&[images.count(), 2, 4]).unwrap();
    [TensorView::new("windows", ElementType::F32, shape, Storage::Images(images))]
}

fn layout(tensors: &[TensorView<'_>]) -> Layout {
    let options = Options { batch: true, ..Options::default() };
    decoder::choose(tensors, None, options).unwrap().layout
}

/// Returns the anchors of the survivors of each image, and the number of bytes uploaded.
fn run(engine: &mut dyn Engine, images: &dyn Images) -> Result<(Vec<Vec<u32>>, u64), EngineError> {
    let tensors = tensors(images);
    let outcome = engine.run(Job::new(
        &tensors,
        &layout(&tensors),
        &Params::default(),
        &engines::places(&layout(&tensors)),
    ))?;
    let anchors = |detections: &[nmsfilter_core::engine::Detection]| {
        detections.iter().map(|detection| detection.anchor).collect()
    };
    let survivors = outcome.groups().map(|image| anchors(image.survivors)).collect();
    Ok((survivors, outcome.device.bytes_uploaded))
}

/// Checks the survivors of all four images, and the number of bytes uploaded.
fn check(engine: &mut dyn Engine, images: &dyn Images, uploaded: u64, what: &str) {
    let (survivors, bytes) = run(engine, images).unwrap();
    assert_eq!(survivors, SURVIVORS, "{what}");
    assert_eq!(bytes, uploaded, "{what}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_table_is_uploaded_when_the_order_of_the_images_changes_and_not_after_a_batch_in_stride() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for (positions, uploaded) in [
        ([0, 1, 2, 3], 0),
        // There are gaps, but the distance from each image to the next is constant.
        ([1, 5, 9, 13], 0),
        ([9, 4, 12, 2], 4 * 8),
    ] {
        let memory = memory(&device, &positions);
        let what = format!("{positions:?}");
        check(&mut cuda, &storages(&memory, &positions), uploaded, &what);
        check(&mut cuda, &storages(&memory, &positions), 0, &what);
    }
    // The distance is negative: the images are in descending order.
    let positions = [3, 2, 1, 0];
    let descending = memory(&device, &positions);
    check(&mut cuda, &storages(&descending, &positions), 4 * 8, "descending");
    let in_stride = memory(&device, &[0, 2, 4, 6]);
    check(&mut cuda, &storages(&in_stride, &[0, 2, 4, 6]), 0, "in stride");
    check(&mut cuda, &storages(&descending, &positions), 0, "descending, again");
    // An image that is listed twice is at a distance of zero.
    let same = storages(&in_stride, &[2, 2]);
    assert_eq!(run(&mut cuda, &same).unwrap(), (vec![vec![1, 0]; 2], 0));
    let last_differs = storages(&in_stride, &[2, 2, 0]);
    let expected = vec![vec![1, 0], vec![1, 0], vec![0]];
    assert_eq!(run(&mut cuda, &last_differs).unwrap(), (expected, 3 * 8));
}

#[test]
#[ignore = "needs a GPU"]
fn images_in_host_memory_are_uploaded_beside_images_in_device_memory() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let memory = memory(&device, &[0, 1, 2, 3]);
    for on_host in 0..16 {
        let images = (0..4).map(|image| match on_host & 1 << image {
            0 => storage(&memory, image, Ready::Now),
            _ => Storage::Host(bytes(image)),
        });
        let count = u32::count_ones(on_host) as u64;
        let (survivors, uploaded) = run(&mut cuda, &images.collect::<Vec<_>>()).unwrap();
        assert_eq!(survivors, SURVIVORS, "{on_host:#b}");
        // Images in both kinds of memory need a table of addresses, which is uploaded unless the
        // previous run had an equal one.
        let copies = count * BYTES as u64;
        let table = if matches!(count, 0 | 4) { 0 } else { 4 * 8 };
        assert!([copies, copies + table].contains(&uploaded), "{on_host:#b}: {uploaded}");
    }
    let mut cpu = Cpu::default();
    let error = run(&mut cpu, &storages(&memory, &[0, 1, 2, 3])).unwrap_err().to_string();
    let expected = "tensor windows (f32 1x2x4), image 0 of 0 to 3: it is in device memory, which";
    assert!(error.starts_with(expected), "{error}");
    // A single image in device memory is reason enough to use the GPU.
    let mut images: Vec<Storage<'_>> = (0..3).map(|image| Storage::Host(bytes(image))).collect();
    images.push(storage(&memory, 3, Ready::Now));
    let tensors = tensors(&images);
    let mut auto = Auto::new(None);
    let outcome = auto
        .run(Job::new(
            &tensors,
            &layout(&tensors),
            &Params::default(),
            &engines::places(&layout(&tensors)),
        ))
        .unwrap();
    assert_eq!(outcome.engine, "cuda");
}

#[test]
#[ignore = "needs a GPU"]
fn an_image_on_another_gpu_is_an_error_and_a_batch_on_another_gpu_selects_that() {
    engines::require_gpu();
    let first = Device::open(0).unwrap();
    let Ok(second) = Device::open(1) else {
        skip::skip("a second GPU");
        return;
    };
    let positions = [7, 2, 5, 3];
    let (on_first, on_second) = (memory(&first, &positions), memory(&second, &positions));
    let mut mixed = storages(&on_first, &positions);
    mixed[2] = storage(&on_second, 5, Ready::Now);
    let mut fixed = Cuda::new(Some(0)).unwrap();
    let error = run(&mut fixed, &mixed).unwrap_err();
    assert_eq!(
        error,
        EngineError::OtherDevice {
            tensor: "windows (f32 1x2x4), image 2 of 0 to 3".into(),
            is: 1,
            expected: 0
        }
    );
    // An error in one batch does not affect the next, whose table is uploaded again.
    check(&mut fixed, &storages(&on_first, &positions), 4 * 8, "after an error");
    let mut free = Cuda::new(None).unwrap();
    check(&mut free, &storages(&on_second, &positions), 4 * 8, "all on the second");
    assert_eq!(free.device().ordinal(), 1);
    let error = run(&mut free, &mixed).unwrap_err();
    assert!(matches!(error, EngineError::OtherDevice { .. }), "{error}");
    // Two images are always at a constant distance. The engine still locates both.
    for (one, other) in [(&on_first, &on_second), (&on_second, &on_first)] {
        let pair = vec![storage(one, 7, Ready::Now), storage(other, 2, Ready::Now)];
        let error = run(&mut fixed, &pair).unwrap_err();
        assert!(matches!(error, EngineError::OtherDevice { is: 1, expected: 0, .. }), "{error}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn an_image_at_an_address_on_no_gpu_is_an_error() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let memory = memory(&device, &[7, 2, 5, 3]);
    let mut images = storages(&memory, &[7, 2, 5, 3]);
    // SAFETY: the engine locates the memory before a kernel reads it.
    images[1] = Storage::Device(unsafe { DeviceSlice::new(0, BYTES, Ready::Now) });
    let error = run(&mut cuda, &images).unwrap_err();
    let expected = "tensor windows (f32 1x2x4), image 1 of 0 to 3: its memory gives the address 0x0, which is on no GPU";
    assert_eq!(error, EngineError::Address(expected.into()));
}

/// The engine waits for the producer of each image, both with a constant distance and with a table.
#[test]
#[ignore = "needs a GPU"]
fn pending_work_on_any_image_is_waited_for() {
    engines::require_gpu();
    let Some(emulated) = Emulated::get() else { return };
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for positions in [[0, 1, 2, 3], [1, 4, 7, 10], [4, 3, 9, 0]] {
        for pending in 0..4 {
            // Until the producer's copy is done, another image occupies this position.
            let before = |(image, position)| {
                if image == pending { ((image + 1) % 4, position) } else { (image, position) }
            };
            let memory = memory_of(&device, positions.into_iter().enumerate().map(before));
            let producer = Stream::new(&device).unwrap();
            let address = memory.address() + (positions[pending] * BYTES) as u64;
            emulated.pending_copy(producer.as_raw(), address, bytes(pending));
            let mut images = storages(&memory, &positions);
            // SAFETY: the stream outlives the run.
            let ready = Ready::AfterStream(unsafe { ForeignStream::from_raw(producer.as_raw()) });
            images[pending] = storage(&memory, positions[pending], ready);
            let (survivors, _) = run(&mut cuda, &images).unwrap();
            assert_eq!(survivors, SURVIVORS, "{positions:?}, image {pending}");
        }
    }
}

/// Kernels may read memory at an address that differs from the host's address, as with pinned
/// memory. The engine must use the distances between the kernels' addresses.
#[test]
#[ignore = "needs a GPU"]
fn images_that_kernels_read_at_another_distance_are_read_there() {
    engines::require_gpu();
    let Some(emulated) = Emulated::get() else { return };
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let memories = [0, 2, 1].map(|image| memory_of(&device, [(image, 0)].into_iter()));
    let mut pair = [&memories[0], &memories[1]];
    pair.sort_by_key(|memory| memory.address());
    let images: Vec<Storage<'_>> =
        pair.iter().map(|memory| storage(memory, 0, Ready::Now)).collect();
    let (survivors, uploaded) = run(&mut cuda, &images).unwrap();
    assert_eq!((survivors.len(), uploaded), (2, 0), "two ascending addresses have a stride");
    emulated.set_device_pointer(pair[1].address(), memories[2].address());
    let (survivors, _) = run(&mut cuda, &images).unwrap();
    assert_eq!(survivors[1], SURVIVORS[1]);
    emulated.set_device_pointer(pair[1].address(), 0);
    let error = run(&mut cuda, &images).unwrap_err();
    assert!(matches!(error, EngineError::Address(_)), "{error}");
}
