//! Where the GPU leaves its results, and waiting for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::interface::{ResultHeader, COMPLETE, results_bytes};
use crate::device::{Device, DriverError, PinnedBuffer, Stream};
use crate::engine::{Detection, EngineError};

/// How long a thread looks for a result without pause: longer than most frames take, and so short
/// that a GPU busy with others' work costs no core.
const PATIENCE: Duration = Duration::from_micros(200);
/// How long it sleeps between later looks.
const PAUSE: Duration = Duration::from_micros(50);

/// An outcome and the survivors behind it, in the host's memory, which the GPU writes to.
#[derive(Debug)]
pub(super) struct Results {
    device: Arc<Device>,
    capacity: u32,
    buffer: PinnedBuffer,
}

impl Results {
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        let buffer = PinnedBuffer::new(device, results_bytes(0))?;
        Ok(Self { device: device.clone(), capacity: 0, buffer })
    }

    /// Makes room for `capacity` survivors, elsewhere if need be.
    pub fn make_room(&mut self, capacity: u32) -> Result<(), DriverError> {
        if self.capacity < capacity {
            self.buffer = PinnedBuffer::new(&self.device, results_bytes(capacity))?;
            self.capacity = capacity;
        }
        Ok(())
    }

    /// The device's address, where the last kernel writes.
    pub fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Makes ready for a frame.
    pub fn clear(&mut self) {
        sequence(&self.buffer).store(0, Ordering::Release);
    }

    /// Waits for the outcome of what was launched; returns it and the bytes that came from the GPU.
    ///
    /// Waits for as long as the launch takes: there is no limit of its own. What bounds it is the
    /// work before it on the GPU and the driver, which reports a launch that cannot end (on a GPU
    /// that is lost, or after another kernel's fault) as an error of the stream.
    pub fn wait(&mut self, stream: &Stream) -> Result<(ResultHeader, u64), EngineError> {
        watch(sequence(&self.buffer), stream)?;
        // SAFETY: an outcome is there, whole, and is written to no more.
        let outcome = unsafe { self.buffer.as_ptr().cast::<ResultHeader>().read() };
        if outcome.sequence != COMPLETE || outcome.survivors > self.capacity {
            return Err(EngineError::NoResult);
        }
        let survivors = outcome.survivors as usize * size_of::<Detection>();
        Ok((outcome, (size_of::<ResultHeader>() + survivors) as u64))
    }

    /// The first `count` survivors.
    pub fn survivors(&self, count: u32) -> &[Detection] {
        assert!(count <= self.capacity, "`wait` has checked it");
        // SAFETY: as many detections are there, of which any bits are a value, and are written to
        // no more before `self` is borrowed again.
        unsafe {
            let first = self.buffer.as_ptr().add(size_of::<ResultHeader>()).cast();
            std::slice::from_raw_parts(first, count as usize)
        }
    }
}

/// The outcome's first word, which the GPU writes last.
fn sequence(buffer: &PinnedBuffer) -> &AtomicU32 {
    // SAFETY: an outcome begins the buffer, which is aligned to a page; this word of it is only
    // ever seen as an atomic one while the GPU may write.
    unsafe { AtomicU32::from_ptr(buffer.as_ptr().cast()) }
}

/// Waits until the GPU has said that the outcome is whole; looks without pause first, then at
/// intervals, for as long as the stream has work and reports no error.
fn watch(sequence: &AtomicU32, stream: &Stream) -> Result<(), EngineError> {
    let began = Instant::now();
    loop {
        for _ in 0..64 {
            if sequence.load(Ordering::Acquire) == COMPLETE {
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
                COMPLETE => Ok(()),
                _ => Err(EngineError::NoResult),
            };
        }
        thread::sleep(PAUSE);
    }
}
