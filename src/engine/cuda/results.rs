//! Where the GPU leaves its results, and waiting for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::interface::{Outcome, WHOLE, outcome_bytes};
use crate::device::{Device, DeviceBuffer, DriverError, PinnedBuffer, Stream};
use crate::engine::{Detection, EngineError};

/// How long a thread looks for a result without pause: longer than most frames take, and so short
/// that a GPU busy with others' work costs no core.
const PATIENCE: Duration = Duration::from_micros(200);
/// How long it sleeps between later looks.
const PAUSE: Duration = Duration::from_micros(50);

/// Detections that are copied with the counts, in the hope that there are no more.
const COPIED_AT_ONCE: usize = 256;

/// An outcome and the survivors behind it.
#[derive(Debug)]
pub(super) struct Results {
    device: Arc<Device>,
    capacity: u32,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// The host's memory, which the GPU writes to.
    Mapped(PinnedBuffer),
    /// The GPU's memory, and what was copied from there.
    Copied(DeviceBuffer, Vec<Detection>),
}

impl Results {
    pub fn new(device: &Arc<Device>, copied: bool) -> Result<Self, DriverError> {
        let place = Self::place(device, 0, copied)?;
        Ok(Self { device: device.clone(), capacity: 0, place })
    }

    fn place(device: &Arc<Device>, capacity: u32, copied: bool) -> Result<Place, DriverError> {
        let bytes = outcome_bytes(capacity);
        Ok(match copied {
            true => Place::Copied(DeviceBuffer::new(device, bytes)?, Vec::new()),
            false => Place::Mapped(PinnedBuffer::new(device, bytes)?),
        })
    }

    /// Makes room for `capacity` survivors, elsewhere if need be.
    pub fn make_room(&mut self, capacity: u32) -> Result<(), DriverError> {
        if self.capacity < capacity {
            let copied = matches!(self.place, Place::Copied(..));
            self.place = Self::place(&self.device, capacity, copied)?;
            self.capacity = capacity;
        }
        Ok(())
    }

    /// The device's address, where the last kernel writes.
    pub fn address(&self) -> u64 {
        match &self.place {
            Place::Mapped(buffer) => buffer.address(),
            Place::Copied(buffer, _) => buffer.address(),
        }
    }

    /// Makes ready for a frame.
    pub fn clear(&mut self) {
        if let Place::Mapped(buffer) = &self.place {
            sequence(buffer).store(0, Ordering::Release);
        }
    }

    /// Waits for the outcome of what was launched; returns it and the bytes that came from the GPU.
    pub fn wait(&mut self, stream: &Stream) -> Result<(Outcome, u64), EngineError> {
        let (outcome, bytes) = match &mut self.place {
            Place::Mapped(buffer) => {
                watch(sequence(buffer), stream)?;
                // SAFETY: an outcome is there, whole, and is written to no more.
                let outcome = unsafe { buffer.as_ptr().cast::<Outcome>().read() };
                let survivors = outcome.survivors as usize * size_of::<Detection>();
                (outcome, size_of::<Outcome>() + survivors)
            }
            Place::Copied(buffer, detections) => {
                stream.synchronize()?;
                copy(stream, buffer, self.capacity as usize, detections)?
            }
        };
        if outcome.sequence != WHOLE || outcome.survivors > self.capacity {
            return Err(EngineError::NoResult);
        }
        Ok((outcome, bytes as u64))
    }

    /// The first `count` survivors.
    pub fn survivors(&self, count: u32) -> &[Detection] {
        let count = count as usize;
        match &self.place {
            Place::Copied(_, detections) => &detections[..count],
            Place::Mapped(buffer) => {
                assert!(count <= self.capacity as usize, "`wait` has checked it");
                // SAFETY: as many detections are there, of which any bits are a value, and are
                // written to no more before `self` is borrowed again.
                unsafe {
                    let first = buffer.as_ptr().add(size_of::<Outcome>()).cast();
                    std::slice::from_raw_parts(first, count)
                }
            }
        }
    }
}

/// The outcome's first word, which the GPU writes last.
fn sequence(buffer: &PinnedBuffer) -> &AtomicU32 {
    // SAFETY: an outcome begins the buffer, which is aligned to a page; this word of it is only
    // ever seen as an atomic one while the GPU may write.
    unsafe { AtomicU32::from_ptr(buffer.as_ptr().cast()) }
}

/// Waits until the GPU has said that the outcome is whole.
fn watch(sequence: &AtomicU32, stream: &Stream) -> Result<(), EngineError> {
    let began = Instant::now();
    loop {
        for _ in 0..64 {
            if sequence.load(Ordering::Acquire) == WHOLE {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if began.elapsed() < PATIENCE {
            continue;
        }
        // Where work has failed, this says so.
        if stream.is_idle()? {
            return match sequence.load(Ordering::Acquire) {
                WHOLE => Ok(()),
                _ => Err(EngineError::NoResult),
            };
        }
        thread::sleep(PAUSE);
    }
}

/// Copies the outcome, and the survivors to `detections`; returns it and how many bytes that took.
fn copy(
    stream: &Stream,
    from: &DeviceBuffer,
    capacity: usize,
    detections: &mut Vec<Detection>,
) -> Result<(Outcome, usize), DriverError> {
    const HEADER: usize = size_of::<Outcome>();
    const SIZE: usize = size_of::<Detection>();
    let mut first = [0u8; HEADER + COPIED_AT_ONCE * SIZE];
    let at_once = capacity.min(COPIED_AT_ONCE);
    let mut bytes = HEADER + at_once * SIZE;
    // SAFETY: the buffer has room for as many detections as its capacity says.
    unsafe { stream.download(from.address(), &mut first[..bytes]) }?;
    let outcome: Outcome = bytemuck::pod_read_unaligned(&first[..HEADER]);
    let count = (outcome.survivors as usize).min(capacity);
    detections.clear();
    detections.extend(
        first[HEADER..bytes]
            .chunks_exact(SIZE)
            .take(count)
            .map(bytemuck::pod_read_unaligned::<Detection>),
    );
    if count > at_once {
        detections.resize(count, Detection::default());
        let rest = bytemuck::cast_slice_mut(&mut detections[at_once..]);
        bytes += rest.len();
        // SAFETY: as above.
        unsafe { stream.download(from.address() + (HEADER + at_once * SIZE) as u64, rest) }?;
    }
    Ok((outcome, bytes))
}
