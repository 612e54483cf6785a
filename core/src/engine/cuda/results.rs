// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that the kernels write results to, and how to wait for them.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::interface::{COMPLETE, ResultHeader, detections_offset, results_bytes};
use super::layout_params::columns_bytes;
use crate::device::{Device, DriverError, PinnedBuffer, Stream};
use crate::engine::{Detection, EngineError, ResultMemory};

/// How long a thread polls without pause: longer than most launches take.
const SPIN_TIME: Duration = Duration::from_micros(200);
/// The polling time if waits take longer on average because the GPU is busy with other work.
const SHORT_SPIN_TIME: Duration = Duration::from_micros(20);
/// The pause between later polls: a sixteenth of the time since the wait began, within these
/// bounds.
const POLL_INTERVAL: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];
/// How often the driver is queried. A query takes a lock that launches need, too.
const DRIVER_INTERVAL: Duration = Duration::from_millis(5);
/// The time after which a launch counts as hung.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// With more engines than cores, a thread lets others run once in so many launches. Otherwise streams at full load
/// have the cores for the scheduler's time slices in turn, and a frame in a hundred waits several milliseconds.
const LAUNCHES_PER_TURN: u32 = 3;

/// The engines in this process.
static ENGINES: AtomicUsize = AtomicUsize::new(0);

/// The size of results. Each group has a header, and then `capacity` detections, of which the first
/// are the group's survivors. A row of columns per detection follows, then `mask_words` words of
/// masks per group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResultSize {
    pub capacity: u32,
    pub groups: u32,
    /// The number of values in a row of columns.
    pub column_components: u32,
    pub mask_words: u32,
}

impl ResultSize {
    pub fn bytes(&self) -> usize {
        self.masks_offset() + self.groups as usize * mask_bytes(self.mask_words)
    }

    /// The offset of the masks, a multiple of 4.
    fn masks_offset(&self) -> usize {
        let Self { capacity, groups, column_components, .. } = *self;
        results_bytes(capacity, groups) + columns_bytes(capacity, groups, column_components)
    }

    /// The addresses of results that begin at `first`.
    pub fn addresses(&self, first: u64) -> ResultMemory {
        ResultMemory {
            counts: first,
            detections: first + detections_offset(self.groups) as u64,
            columns: first + results_bytes(self.capacity, self.groups) as u64,
        }
    }
}

/// How long recent launches were waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// The running mean.
    mean: Duration,
    /// The least, which later waits raise slowly.
    least: Duration,
}

impl Waits {
    /// Adds a wait. If the results were complete when the thread awoke from a long sleep (`overslept`), they may have been so
    /// for most of it. Half of such a wait counts, or else the sleep would be the reason for the next one.
    fn add(&mut self, wait: Duration, overslept: bool) {
        let wait = if overslept { wait / 2 } else { wait };
        self.mean = (self.mean * 7 + wait) / 8;
        self.least = wait.min((self.least * 7 + wait) / 8);
    }

    /// How long a thread polls without pause.
    fn spin_time(self) -> Duration {
        if self.mean < SPIN_TIME { SPIN_TIME } else { SHORT_SPIN_TIME }
    }

    /// How long a thread sleeps that has waited for so long, and whether that is a long sleep: through most of the time that
    /// all recent launches have taken.
    fn sleep(self, waited: Duration) -> (Duration, bool) {
        let [shortest, longest] = POLL_INTERVAL;
        let interval = (waited / 16).clamp(shortest, longest);
        let expected = (self.least * 7 / 8).saturating_sub(waited).min(DRIVER_INTERVAL);
        (interval.max(expected), expected > interval)
    }
}

/// The results of a batch in pinned host memory, which the GPU writes to.
#[derive(Debug)]
pub(super) struct Results {
    device: Arc<Device>,
    size: ResultSize,
    buffer: PinnedBuffer,
    waits: Waits,
    cores: usize,
    launches: u32,
}

impl Results {
    pub fn new(device: &Arc<Device>) -> Result<Self, DriverError> {
        let size = ResultSize { capacity: 0, groups: 1, column_components: 0, mask_words: 0 };
        let buffer = PinnedBuffer::new(device, size.bytes())?;
        ENGINES.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            device: device.clone(),
            size,
            buffer,
            waits: Waits::default(),
            cores: thread::available_parallelism().map_or(1, NonZero::get),
            launches: 0,
        })
    }

    /// Makes room for results of exactly `size`. The addresses change.
    pub fn make_room(&mut self, size: ResultSize) -> Result<(), DriverError> {
        if self.buffer.len() < size.bytes() {
            // Every launch has been waited for, so nothing still writes to the old buffer.
            self.buffer = PinnedBuffer::new(&self.device, size.bytes())?;
        }
        self.size = size;
        Ok(())
    }

    pub fn addresses(&self) -> ResultMemory {
        self.size.addresses(self.buffer.address())
    }

    /// The device address of the masks.
    pub fn mask_address(&self) -> u64 {
        self.buffer.address() + self.size.masks_offset() as u64
    }

    /// Resets the headers of the first `groups` groups before a launch.
    pub fn clear(&mut self, groups: u32) {
        for group in 0..groups {
            self.sequence(group).store(0, Ordering::Release);
        }
    }

    /// Waits for the results of a launch with `groups` groups.
    ///
    /// The wait also ends when the launch's work has ended, when the stream reports an error (a
    /// lost GPU, or a fault of another kernel), or after [`TIME_LIMIT`].
    pub fn wait(&mut self, stream: &Stream, groups: u32) -> Result<(), EngineError> {
        self.launches = self.launches.wrapping_add(1);
        if self.launches.is_multiple_of(LAUNCHES_PER_TURN)
            && ENGINES.load(Ordering::Relaxed) > self.cores
        {
            thread::yield_now();
        }
        let began = Instant::now();
        let mut overslept = false;
        for group in 0..groups {
            overslept |= poll(self.sequence(group), stream, began, self.waits)?;
            let header = self.header(group);
            if header.sequence != COMPLETE || header.survivors > self.size.capacity {
                return Err(EngineError::NoResult);
            }
        }
        self.waits.add(began.elapsed(), overslept);
        Ok(())
    }

    /// The counts of a group. Call it after `wait`.
    pub fn header(&self, group: u32) -> ResultHeader {
        assert!(group < self.size.groups, "there are {} groups", self.size.groups);
        // SAFETY: the header is inside the buffer, and any bits are a valid value. The GPU does not
        // write to the header after its sequence number, and `wait` has waited for that number.
        unsafe { self.buffer.as_ptr().cast::<ResultHeader>().add(group as usize).read() }
    }

    /// The detections of all groups. A group's detections begin at `first`. The header counts the
    /// survivors, which come first; the rest has no meaning.
    pub fn detections(&self) -> &[Detection] {
        let count = self.size.groups as usize * self.size.capacity as usize;
        // SAFETY: the detections are inside the buffer, and any bits are a valid value. The GPU
        // writes to them only between `clear` and the end of `wait`, and both borrow `self`
        // mutably.
        unsafe { self.slice(detections_offset(self.size.groups), count) }
    }

    /// The rows of columns of all detections.
    pub fn columns(&self) -> &[f32] {
        let ResultSize { capacity, groups, .. } = self.size;
        let count = groups as usize * capacity as usize * self.column_components();
        // SAFETY: see `detections`; `results_bytes` is a multiple of 16.
        unsafe { self.slice(results_bytes(capacity, groups), count) }
    }

    /// A group's survivors and their rows of columns, for reordering. Call it after `wait`.
    pub fn survivors_mut(&mut self, group: u32) -> (&mut [Detection], &mut [f32]) {
        let (first, count) = (self.first(group), self.header(group).survivors as usize);
        let width = self.column_components();
        let detections = detections_offset(self.size.groups);
        let rows = results_bytes(self.size.capacity, self.size.groups);
        // SAFETY: see `detections` and `columns`. The two do not overlap, and `wait` has checked
        // that the survivors do not exceed the capacity.
        unsafe {
            let at = self.buffer.as_ptr();
            let detections = at.add(detections).cast::<Detection>().add(first);
            let rows = at.add(rows).cast::<f32>().add(first * width);
            (
                std::slice::from_raw_parts_mut(detections, count),
                std::slice::from_raw_parts_mut(rows, count * width),
            )
        }
    }

    /// The masks of all groups. A group's masks begin at `first_mask_byte`.
    pub fn masks(&self) -> &[u8] {
        let count = self.size.groups as usize * mask_bytes(self.size.mask_words);
        // SAFETY: see `detections`.
        unsafe { self.slice(self.size.masks_offset(), count) }
    }

    /// Numbers in the buffer.
    ///
    /// # Safety
    /// `count` numbers from byte `offset` on are in the buffer and aligned, and any bytes are valid numbers.
    unsafe fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: the caller guarantees it.
        unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().add(offset).cast(), count) }
    }

    /// The index of the first byte of a group's masks.
    pub fn first_mask_byte(&self, group: u32) -> usize {
        group as usize * mask_bytes(self.size.mask_words)
    }

    /// The number of values in a row of columns.
    pub fn column_components(&self) -> usize {
        self.size.column_components as usize
    }

    /// The index of a group's first detection.
    pub fn first(&self, group: u32) -> usize {
        group as usize * self.size.capacity as usize
    }

    /// The survivors of a group. Call it after `wait`.
    #[cfg(test)]
    pub fn survivors(&self, group: u32) -> &[Detection] {
        &self.detections()[self.first(group)..][..self.header(group).survivors as usize]
    }

    /// The first word of a group's header, which the GPU writes last.
    fn sequence(&self, group: u32) -> &AtomicU32 {
        assert!(group < self.size.groups, "there are {} groups", self.size.groups);
        // SAFETY: the header is inside the buffer, which is aligned to a page. While the GPU may
        // write to this word, it is only accessed atomically.
        unsafe { AtomicU32::from_ptr(self.buffer.as_ptr().add(detections_offset(group)).cast()) }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        ENGINES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The size in bytes of `words` words of masks.
fn mask_bytes(words: u32) -> usize {
    words as usize * size_of::<u32>()
}

/// Waits until the sequence number shows that the group's results are complete. Polls without pause at first, then sleeps
/// between polls, for as long as the stream has work and reports no error. Returns true if the results were complete
/// when the thread awoke from a long sleep.
fn poll(
    sequence: &AtomicU32,
    stream: &Stream,
    began: Instant,
    waits: Waits,
) -> Result<bool, EngineError> {
    let mut asked = began;
    let mut overslept = false;
    loop {
        for _ in 0..64 {
            if sequence.load(Ordering::Acquire) == COMPLETE {
                return Ok(overslept);
            }
            std::hint::spin_loop();
        }
        overslept = false;
        let now = Instant::now();
        let waited = now - began;
        if waited < waits.spin_time() {
            continue;
        }
        if now - asked >= DRIVER_INTERVAL {
            asked = now;
            // The driver also reports the launch's errors here.
            if stream.is_idle()? {
                return match sequence.load(Ordering::Acquire) {
                    COMPLETE => Ok(false),
                    _ => Err(EngineError::NoResult),
                };
            }
            if waited >= TIME_LIMIT {
                return Err(EngineError::Hung { seconds: TIME_LIMIT.as_secs() });
            }
        }
        let (sleep, is_long) = waits.sleep(waited);
        thread::sleep(sleep);
        overslept = is_long;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    #[test]
    fn a_thread_sleeps_at_once_no_longer_than_any_recent_launch_took() {
        let mut waits = Waits::default();
        let millisecond = Duration::from_millis(1);
        waits.add(millisecond, false);
        assert_eq!([waits.mean, waits.least], [millisecond / 8; 2], "from zero, slowly");
        (0..100).for_each(|_| waits.add(millisecond, false));
        assert!(waits.least > millisecond * 9 / 10 && waits.mean > millisecond * 9 / 10);
        waits.add(millisecond / 100, false);
        assert_eq!(waits.least, millisecond / 100, "one short wait is enough");
        assert!(waits.mean > millisecond / 2);
    }

    /// Waits for a launch as `poll` does, with a thread that awakes late.
    fn wait_for(launch: Duration, waits: &mut Waits) -> Duration {
        let (mut waited, mut overslept) = (launch.min(waits.spin_time()), false);
        while waited < launch {
            let (sleep, is_long) = waits.sleep(waited);
            waited += sleep + 60 * MICROSECOND;
            overslept = is_long;
        }
        waits.add(waited, overslept);
        waited
    }

    /// Launches are short again when other work on the GPU ends, or with fewer candidates.
    #[test]
    fn after_long_launches_a_short_one_is_soon_waited_for_without_a_sleep() {
        for long in [300, 700, 3_000, 20_000] {
            for short in [20, 45, 120] {
                let (long, short) = (long * MICROSECOND, short * MICROSECOND);
                let mut waits = Waits::default();
                (0..200).for_each(|_| _ = wait_for(long, &mut waits));
                (0..60).for_each(|_| _ = wait_for(short, &mut waits));
                assert_eq!(wait_for(short, &mut waits), short, "after {long:?}: {waits:?}");
            }
        }
    }
}
