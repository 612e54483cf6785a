// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory of this plugin and of other producers: parts, copies, and synchronization with
//! pending work. Needs `NMSFILTER_TEST_BACKEND=cuda`. Tests in which another producer's work is
//! pending run on the emulated GPU only.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::{self, MEMORY_TYPE, Uploader, from_buffer};
use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::device::{Device, DeviceBuffer, Event, OwnedEvent, PinnedBuffer, Stream};
use nmsfilter_core::engine::{Cuda, Engine, EngineError, Job, Params};
use nmsfilter_core::tensor::ElementType;

use crate::foreign_memory;
use crate::outcome::{layout, tensor_in};
use crate::support::emulated::{self, Emulated, GstCuda};
use crate::support::{engines, pipeline};

/// Evaluates to the emulated driver; returns from the test if another driver is loaded.
macro_rules! needs_emulated_gpu {
    () => {{
        start();
        let Some(emulated) = Emulated::get() else { return };
        emulated
    }};
}

fn start() {
    engines::require_gpu();
    pipeline::init();
}

const GST_CUDA_MEMORY_TYPE: &CStr = c"gst.cuda.memory";

/// Two windows, of which the first suppresses the second.
const WINDOWS: [f32; 8] = [10.0, 10.0, 20.0, 0.9, 12.0, 10.0, 20.0, 0.8];

/// The bytes 0, 1, 2, … in device memory.
fn numbers(count: u8) -> gst::Buffer {
    let bytes = gst::Buffer::from_mut_slice((0..count).collect::<Vec<u8>>());
    let shape = [usize::from(count) / 4];
    let tensor = NewTensor::new("n", ElementType::F32, &shape, bytes).unwrap();
    Uploader::new(0).unwrap().upload(&tensor).unwrap().data
}

/// The bytes of a buffer, mapped for the host.
fn on_host(buffer: &gst::BufferRef) -> Vec<u8> {
    buffer.map_readable().unwrap().as_slice().to_vec()
}

/// The device address of a buffer of f32; `None` if it is in host memory.
fn address(buffer: &gst::BufferRef) -> Option<u64> {
    let tensor = [tensor_in("t", &[buffer.size() / 4], buffer)];
    let tensors: Tensors<'_> = tensor.iter().collect();
    tensors.views()[0].device().unwrap().map(|slice| slice.address())
}

/// Returns the number of candidates and survivors of the windows in `data`.
fn decode(cuda: &mut Cuda, data: &gst::BufferRef) -> Result<(usize, usize), EngineError> {
    let windows = [tensor_in("windows", &[data.size() / 16, 4], data)];
    let tensors: Tensors<'_> = windows.iter().collect();
    let views = tensors.views();
    let outcome = cuda.run(Job::new(
        &views,
        &layout(&views),
        &Params::default(),
        &engines::places(&layout(&views)),
    ))?;
    assert_eq!(outcome.device.bytes_uploaded, 0, "the tensor is read in place");
    let image = outcome.group(0);
    Ok((image.candidates, image.survivors.len()))
}

#[test]
#[ignore = "needs a GPU"]
fn a_part_of_a_buffer_has_its_offset_into_the_same_device_memory() {
    start();
    let whole = numbers(64);
    let base = address(&whole).unwrap();
    let part = whole.copy_region(gst::BufferCopyFlags::MEMORY, 16..48).unwrap();
    assert_eq!(on_host(&part), (16..48).collect::<Vec<u8>>());
    assert_eq!(address(&part), Some(base + 16));
    let part_of_part = part.copy_region(gst::BufferCopyFlags::MEMORY, 8..).unwrap();
    drop((whole, part));
    assert_eq!(on_host(&part_of_part), (24..48).collect::<Vec<u8>>());
    assert_eq!(address(&part_of_part), Some(base + 24));
    assert!(part_of_part.peek_memory(0).flags().contains(gst::MemoryFlags::READONLY));
}

#[test]
#[ignore = "needs a GPU"]
fn memory_is_released_with_the_last_part_of_it() {
    start();
    let released = Arc::new(AtomicUsize::new(0));
    let buffer = DeviceBuffer::new(&Device::open(0).unwrap(), 64).unwrap();
    let memory = from_buffer(buffer, 64, {
        let released = released.clone();
        move |_| {
            released.fetch_add(1, Ordering::SeqCst);
        }
    });
    let part = memory.share(32..);
    drop(memory);
    assert_eq!(released.load(Ordering::SeqCst), 0);
    drop(part);
    assert_eq!(released.load(Ordering::SeqCst), 1);
}

#[test]
#[ignore = "needs a GPU"]
fn offset_and_size_of_resized_memory_apply_on_the_gpu_and_on_the_host() {
    start();
    let mut buffer = numbers(64);
    let base = address(&buffer).unwrap();
    buffer.make_mut().resize(4..24).unwrap();
    assert_eq!(address(&buffer), Some(base + 4));
    assert_eq!(on_host(&buffer), (4..24).collect::<Vec<u8>>());
    // A part of the buffer, and a tensor that is longer than the part.
    let part = buffer.copy_region(gst::BufferCopyFlags::MEMORY, 4..8).unwrap();
    assert_eq!((address(&part), on_host(&part)), (Some(base + 8), vec![8, 9, 10, 11]));
    let too_long = [tensor_in("t", &[6], &buffer)];
    let tensors: Tensors<'_> = too_long.iter().collect();
    let error = tensors.views()[0].device().unwrap_err().to_string();
    assert!(error.contains("needs 24 bytes, but its memory holds 20"), "{error}");
}

#[test]
#[ignore = "needs a GPU"]
fn a_deep_copy_is_in_host_memory_and_writable() {
    start();
    let mut buffer = numbers(64);
    let mut deep = buffer.copy_deep().unwrap();
    assert_eq!((address(&deep), on_host(&deep)), (None, (0..64).collect::<Vec<u8>>()));
    deep.make_mut().map_writable().unwrap().as_mut_slice()[0] = 9;
    assert_eq!(on_host(&buffer)[0], 0, "the original is unchanged");

    let copy = buffer.peek_memory(0).copy();
    assert_eq!(copy.map_readable().unwrap().as_slice(), (0..64).collect::<Vec<u8>>());
    // Read-only memory is replaced by a copy in host memory when the buffer is mapped for writing.
    buffer.make_mut().map_writable().unwrap().as_mut_slice()[0] = 9;
    assert_eq!((address(&buffer), on_host(&buffer)[0]), (None, 9));
}

#[test]
#[ignore = "needs a GPU"]
fn tensors_in_a_part_of_a_buffer_are_decoded_in_device_memory() {
    start();
    let numbers: Vec<f32> = [0.0; 4].into_iter().chain(WINDOWS).chain([0.0; 4]).collect();
    let tensor = NewTensor::from_vec("windows", &[4, 4], numbers).unwrap();
    let data = Uploader::new(0).unwrap().upload(&tensor).unwrap().data;
    let part = data.copy_region(gst::BufferCopyFlags::MEMORY, 16..48).unwrap();
    assert_eq!(decode(&mut Cuda::new(Some(0)).unwrap(), &part).unwrap(), (2, 1));
}

#[test]
#[ignore = "needs a GPU"]
fn memory_of_the_plugins_type_by_another_allocator_is_read_by_the_mapping_protocol() {
    start();
    let device = Device::open(0).unwrap();
    let bytes = bytemuck::cast_slice(&WINDOWS);
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for needs_sync in [false, true] {
        let (data, _) = foreign_memory::buffer_of_type(MEMORY_TYPE, &device, bytes, needs_sync);
        assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1), "needs_sync {needs_sync}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_ready_event_of_any_producers_memory_is_waited_for() {
    let emulated = needs_emulated_gpu!();
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let bytes = bytemuck::cast_slice(&WINDOWS);
    let producer = emulated.context(0);
    let stream = emulated.stream(producer);

    // The memory belongs to this plugin.
    let buffer = DeviceBuffer::new(&device, 32).unwrap();
    emulated.pending_copy(stream, buffer.address(), bytes);
    // SAFETY: the event is never destroyed.
    let event = unsafe { Event::from_raw(emulated.event(producer, stream)) };
    let address = buffer.address();
    // SAFETY: the buffer lives until the release function drops it, and it is written before the
    // event.
    let memory =
        unsafe { cuda_memory::wrap(&device, address, 32, Some(event), Box::new(|| drop(buffer))) };
    let part = memory.share(..);
    let mut data = gst::Buffer::new();
    data.make_mut().append_memory(part);
    drop(memory);
    assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1), "a part of the plugin's memory");

    // The memory belongs to another copy of this crate, or to any other program.
    for memory_type in [MEMORY_TYPE, GST_CUDA_MEMORY_TYPE] {
        let (data, address) = foreign_memory::buffer_of_type(memory_type, &device, &[0; 32], true);
        emulated.pending_copy(stream, address, bytes);
        emulated::set_ready_event(data.peek_memory(0), emulated.event(producer, stream));
        let before = emulated.context_waits();
        assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1), "{memory_type:?}");
        assert_eq!(emulated.context_waits(), before, "the event is enough");
    }
}

/// This is one test, because the stub library stays loaded for all later calls.
#[test]
#[ignore = "needs a GPU"]
fn pending_work_of_a_known_stream_or_context_is_waited_for() {
    let emulated = needs_emulated_gpu!();
    let device = Device::open(0).unwrap();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let bytes = bytemuck::cast_slice(&WINDOWS);
    let producer = emulated.context(0);
    let [stream, other] = [(); 2].map(|()| emulated.stream(producer));
    let pending = |owner, needs_sync| {
        let (data, address) =
            foreign_memory::buffer_of_type(GST_CUDA_MEMORY_TYPE, &device, &[0; 32], needs_sync);
        emulated.set_owner(address, owner);
        emulated.pending_copy(stream, address, bytes);
        data
    };

    // Unknown stream: the engine waits for the context that owns the memory.
    let before = emulated.context_waits();
    assert_eq!(decode(&mut cuda, &pending(producer, true)).unwrap(), (2, 1));
    assert_eq!(emulated.context_waits(), before + 1);

    // Neither stream nor context are known: an error.
    let data = pending(std::ptr::null_mut(), true);
    let error = decode(&mut cuda, &data).unwrap_err();
    let expected = "tensor windows (f32 2x4): work on its memory is pending";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(!error.is_device_error(), "not an error of the GPU");

    // Known stream: the engine waits in stream order, no matter who owns the memory.
    let library = GstCuda::load();
    for owner in [producer, std::ptr::null_mut()] {
        let data = pending(owner, true);
        library.set_stream(data.peek_memory(0), stream);
        let before = emulated.context_waits();
        assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1));
        assert_eq!(emulated.context_waits(), before, "no thread waits for a context");
    }

    // The engine does not wait for work unless the memory is marked as pending.
    let data = pending(producer, false);
    library.set_stream(data.peek_memory(0), stream);
    assert_eq!(decode(&mut cuda, &data).unwrap(), (0, 0), "the copy has not been executed");

    // The engine does not wait for work of another stream.
    let (data, address) =
        foreign_memory::buffer_of_type(GST_CUDA_MEMORY_TYPE, &device, bytes, true);
    library.set_stream(data.peek_memory(0), stream);
    emulated.pending_copy(other, address, &[0; 32]);
    assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1), "the other copy has not been executed");
}

#[test]
#[ignore = "needs a GPU"]
fn memory_that_the_engines_context_cannot_access_is_an_error() {
    let emulated = needs_emulated_gpu!();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let bytes = bytemuck::cast_slice(&WINDOWS);
    let device = Device::open(0).unwrap();
    let (data, address) =
        foreign_memory::buffer_of_type(GST_CUDA_MEMORY_TYPE, &device, bytes, false);
    emulated.set_owner(address, emulated.context(0));
    emulated.set_device_pointer(address, 0);
    let error = decode(&mut cuda, &data).unwrap_err();
    let expected = format!(
        "tensor windows (f32 2x4): its memory at {address:#x} is on GPU 0, where the engine's \
         context cannot access it"
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(!error.is_device_error(), "not an error of the GPU");
    // The error does not affect the next frame.
    emulated.set_device_pointer(address, address);
    assert_eq!(decode(&mut cuda, &data).unwrap(), (2, 1));
}

#[test]
#[ignore = "needs a GPU"]
fn memory_is_read_at_the_device_pointer_that_the_driver_reports() {
    let emulated = needs_emulated_gpu!();
    let device = Device::open(0).unwrap();
    let bytes = bytemuck::cast_slice(&WINDOWS);
    let mapped =
        |bytes| foreign_memory::buffer_of_type(GST_CUDA_MEMORY_TYPE, &device, bytes, false);
    let ((data, address), (_other, pointer)) = (mapped(&[0; 32]), mapped(bytes));
    emulated.set_device_pointer(address, pointer);
    assert_eq!(decode(&mut Cuda::new(Some(0)).unwrap(), &data).unwrap(), (2, 1));
}

#[test]
#[ignore = "needs a GPU"]
fn launches_have_the_highest_stream_priority() {
    let emulated = needs_emulated_gpu!();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let data = foreign_memory::buffer(&Device::open(0).unwrap(), &[0; 32], false);
    decode(&mut cuda, &data).unwrap();
    assert_eq!(emulated.launch_priority(), -5, "the range is 0 to -5");
}

/// A pool's buffer: device memory with an event. The pool can write it again once it is free.
struct Slot {
    buffer: gst::Buffer,
    owned: Arc<(DeviceBuffer, OwnedEvent)>,
    stream: Stream,
    pinned: PinnedBuffer,
}

impl Slot {
    fn new(len: usize) -> Self {
        let device = Device::open(0).unwrap();
        let on_device = DeviceBuffer::new(&device, len).unwrap();
        let owned = Arc::new((on_device, OwnedEvent::new(&device).unwrap()));
        let release = {
            let owned = owned.clone();
            Box::new(move || drop(owned))
        };
        // SAFETY: the release function owns a reference to the memory and to the event. `write` is
        // called after `renew`, or before there are other references.
        let memory = unsafe {
            let event = owned.1.event();
            cuda_memory::wrap(&device, owned.0.address(), len, Some(event), release)
        };
        let mut buffer = gst::Buffer::new();
        buffer.make_mut().append_memory(memory);
        let stream = Stream::new(&device).unwrap();
        Self { buffer, owned, stream, pinned: PinnedBuffer::new(&device, len).unwrap() }
    }

    fn is_free(&mut self) -> bool {
        self.buffer.get_mut().is_some_and(cuda_memory::renew)
    }

    fn write(&mut self, value: u8) {
        let (memory, event) = &*self.owned;
        event.synchronize().unwrap();
        self.pinned.as_mut_slice().fill(value);
        self.stream.upload(&self.pinned, memory, memory.len()).unwrap();
        self.stream.record(event).unwrap();
    }
}

#[test]
#[ignore = "needs a GPU"]
fn renewed_memory_is_copied_to_the_host_again_in_the_same_allocation() {
    start();
    let mut slot = Slot::new(64);
    slot.write(1);
    assert_eq!(on_host(&slot.buffer), [1; 64]);
    let host_address = |buffer: &gst::BufferRef| buffer.map_readable().unwrap().as_ptr().addr();
    let first = host_address(&slot.buffer);
    for value in 2..5 {
        assert!(slot.is_free());
        slot.write(value);
        assert_eq!(on_host(&slot.buffer), [value; 64]);
        assert_eq!(host_address(&slot.buffer), first);
        assert_eq!(address(&slot.buffer), Some(slot.owned.0.address()));
    }
    let Slot { buffer, owned, .. } = slot;
    assert_eq!(Arc::strong_count(&owned), 2);
    drop(buffer);
    assert_eq!(Arc::strong_count(&owned), 1, "it is released once, at the end");
}

#[test]
#[ignore = "needs a GPU"]
fn memory_with_another_reference_or_mapping_is_not_renewed() {
    start();
    let mut slot = Slot::new(64);
    slot.write(1);

    let other = slot.buffer.clone();
    assert!(!slot.is_free(), "another reference to the buffer");
    drop(other);
    assert!(slot.is_free());

    // The buffer has one reference, its memory has two.
    let copy = slot.buffer.copy();
    assert!(!slot.is_free(), "another buffer with the memory");
    drop(copy);
    assert!(slot.is_free());

    let part = slot.buffer.copy_region(gst::BufferCopyFlags::MEMORY, 8..16).unwrap();
    assert!(!slot.is_free(), "a part of the memory");
    drop(part);
    assert!(slot.is_free());

    // Maps the memory through a pointer that owns no reference.
    let memory = slot.buffer.peek_memory(0).as_mut_ptr();
    let mut info = std::mem::MaybeUninit::uninit();
    // SAFETY: the buffer owns a reference to the memory, `info` is initialized by the mapping, which
    // succeeds, and it is unmapped once.
    unsafe {
        let mapped = gst::ffi::gst_memory_map(memory, info.as_mut_ptr(), gst::ffi::GST_MAP_READ);
        assert_ne!(mapped, 0);
        assert!(!slot.is_free(), "a mapping");
        gst::ffi::gst_memory_unmap(memory, info.as_mut_ptr());
    }
    assert!(slot.is_free());
}

#[test]
#[ignore = "needs a GPU"]
fn only_a_single_memory_of_wrap_is_renewed() {
    start();
    let renew = |buffer: &mut gst::Buffer| cuda_memory::renew(buffer.get_mut().unwrap());
    assert!(!renew(&mut gst::Buffer::new()), "no memory");
    assert!(!renew(&mut gst::Buffer::from_mut_slice(vec![0u8; 4])), "host memory");
    let device = Device::open(0).unwrap();
    let (mut foreign, _) = foreign_memory::buffer_of_type(MEMORY_TYPE, &device, &[0; 32], false);
    assert!(!renew(&mut foreign), "memory of another allocator with the same type");

    let mut two = numbers(64);
    assert!(renew(&mut two));
    two.get_mut().unwrap().append_memory(gst::Memory::from_mut_slice(vec![0u8; 4]));
    assert!(!renew(&mut two), "two memories");

    let whole = numbers(64);
    let mut part = whole.copy_region(gst::BufferCopyFlags::MEMORY, 8..16).unwrap();
    assert!(!renew(&mut part), "a part");
    drop(whole);
    assert!(!renew(&mut part), "a part, which is the last reference to the memory");
}

#[test]
#[ignore = "needs a GPU"]
fn memory_can_be_renewed_while_other_threads_drop_their_references() {
    start();
    let mut slot = Slot::new(64);
    std::thread::scope(|scope| {
        let (to_readers, readers): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (to_reader, buffers) = std::sync::mpsc::channel::<(u8, gst::Buffer)>();
                let read = move || {
                    for (value, buffer) in buffers {
                        assert_eq!(on_host(&buffer), [value; 64]);
                    }
                };
                (to_reader, scope.spawn(read))
            })
            .unzip();
        for round in 0..2_000 {
            let value = (round % 251) as u8;
            while !slot.is_free() {
                std::hint::spin_loop();
                assert!(!readers.iter().any(|reader| reader.is_finished()), "a reader failed");
            }
            slot.write(value);
            // One reader gets a reference to the buffer, the other gets a buffer with shared
            // memory.
            let copies = [slot.buffer.clone(), slot.buffer.copy()];
            for (to_reader, copy) in to_readers.iter().zip(copies) {
                to_reader.send((value, copy)).unwrap();
            }
        }
        drop(to_readers);
    });
}
