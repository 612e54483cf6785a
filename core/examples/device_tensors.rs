// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a detector's output in the memory of an NVIDIA GPU, without GStreamer and without
//! copying it to the host:
//! ```sh
//! cargo run -p nmsfilter-core --example device_tensors
//! ```
//!
//! The program needs a GPU and its driver, but no CUDA toolkit.

use std::error::Error;

use nmsfilter_core::cuda::{Device, DeviceBuffer, OwnedEvent, PinnedBuffer, Ready, Stream};
use nmsfilter_core::nms::{Backend, Detection, Nms};
use nmsfilter_core::tensor::{DeviceSlice, ElementType, Shape, Storage, TensorView};

/// Four windows of x, y, side and score. The second and the fourth are duplicates.
const OUTPUT: [[f32; 4]; 4] = [
    [100.0, 50.0, 80.0, 0.9],
    [104.0, 54.0, 80.0, 0.6],
    [300.0, 60.0, 90.0, 0.7],
    [302.0, 62.0, 90.0, 0.5],
];

/// # Errors
/// Returns an error if there is no GPU, or if a call of its driver fails.
pub fn main() -> Result<(), Box<dyn Error>> {
    // This part replaces inference: work of another stream writes the tensor. If a program already
    // has a tensor from CUDA's runtime, TensorRT or ONNX Runtime, it only needs the address and
    // `Event::from_raw` or `ForeignStream::from_raw`.
    let device = Device::open(0)?;
    let bytes: &[u8] = bytemuck::cast_slice(&OUTPUT);
    let mut pinned = PinnedBuffer::new(&device, bytes.len())?;
    pinned.as_mut_slice().copy_from_slice(bytes);
    let memory = DeviceBuffer::new(&device, bytes.len())?;
    let (stream, written) = (Stream::new(&device)?, OwnedEvent::new(&device)?);
    stream.upload(&pinned, &memory, bytes.len())?;
    stream.record(&written)?;

    // SAFETY: the event is dropped after its last use, which is in `run`.
    let ready = Ready::After(unsafe { written.event() });
    // SAFETY: the memory is dropped after its last use, which is in `run`, and nothing writes to it
    // after the event.
    let slice = unsafe { DeviceSlice::new(memory.address(), memory.len(), ready) };
    let shape = Shape::new(&[4, 4]).expect("at most 8 dimensions");
    let tensors = [TensorView::new("windows", ElementType::F32, shape, Storage::Device(slice))];

    // The engine's stream waits for the event. This thread waits only for the survivors.
    let mut nms = Nms::new(Backend::Cuda, Some(device.ordinal()))?;
    let outcome = nms.run(&tensors)?;
    let survivors = outcome.group(0).survivors;
    for Detection { x1, y1, x2, y2, score, anchor, .. } in survivors {
        println!("anchor {anchor}: score {score}, {x1},{y1} to {x2},{y2}");
    }
    println!("{} bytes were copied to the host", outcome.device.bytes_downloaded);
    assert_eq!(survivors.iter().map(|found| found.anchor).collect::<Vec<_>>(), [0, 2]);
    Ok(())
}
