// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames in host memory of a pool, which a GPU can read.
//!
//! In: a buffer. Out: its memory, pinned, if it comes back again and again, as the memory of a buffer pool does. Such a
//! frame is not copied by the host. Memory is pinned until it is freed. Memory that is new for each frame is never
//! pinned, because that takes longer than the copy.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use gst::glib;
use gst::memory::{MemoryMap, Readable};

use gstnmsfilter::elements::lock;
use nmsfilter_core::device::{Device, PinnedBuffer};

/// Memory is pinned when it comes for this time. More than once, because several elements may read each frame.
const VISITS: u32 = 8;

/// The visits of a memory block, and its registration with the driver, until the memory is freed.
#[derive(Default)]
struct PoolMemory {
    visits: AtomicU32,
    /// `None` if it cannot be pinned.
    pinned: OnceLock<Option<PinnedBuffer>>,
}

/// Returns the memory of a frame for `device`, and its mapping; `None` if it is not from a pool, or cannot be pinned.
pub fn pinned_frame<'f>(
    frame: &'f gst::BufferRef,
    device: &Arc<Device>,
) -> Option<(&'f PinnedBuffer, MemoryMap<'f, Readable>)> {
    if frame.n_memory() != 1 {
        return None;
    }
    let memory = frame.peek_memory(0);
    // Memory of other allocators may have another address each time that it is mapped.
    if !memory.is_type(glib::gstr!("SystemMemory")) {
        return None;
    }
    let known = pool_memory(memory);
    if known.visits.fetch_add(1, Ordering::Relaxed) + 1 < VISITS {
        return None;
    }
    let mapping = memory.map_readable().ok()?;
    // SAFETY: the memory exists until `known` is freed, and nothing borrows the result mutably.
    let pin = || unsafe { PinnedBuffer::register(device, &mapping) }.ok();
    let pinned = known.pinned.get_or_init(pin).as_ref()?;
    let is_same = pinned.as_ptr().cast_const() == mapping.as_ptr() && pinned.len() == mapping.len();
    (is_same && Arc::ptr_eq(pinned.device(), device)).then_some((pinned, mapping))
}

/// Returns the record of a memory block. GStreamer keeps it with the memory.
fn pool_memory(memory: &gst::MemoryRef) -> &PoolMemory {
    static CHANGE: Mutex<()> = Mutex::new(());
    // Another copy of this library has another address, and perhaps another structure.
    static KEY: LazyLock<glib::Quark> =
        LazyLock::new(|| glib::Quark::from_str(format!("nmsfilter-pool-memory-{:p}", &CHANGE)));
    unsafe extern "C" fn free(known: glib::ffi::gpointer) {
        // SAFETY: GStreamer calls this once, with the pointer that it was given.
        drop(unsafe { Box::from_raw(known.cast::<PoolMemory>()) });
    }
    let _guard = lock(&CHANGE);
    let (object, key) =
        (memory.as_ptr().cast_mut().cast(), glib::translate::IntoGlib::into_glib(*KEY));
    // SAFETY: the memory is a mini object, and exists. What is set with the key is not replaced, and exists as long as
    // the memory. The lock ensures that it is set once.
    unsafe {
        let mut known = gst::ffi::gst_mini_object_get_qdata(object, key).cast::<PoolMemory>();
        if known.is_null() {
            known = Box::into_raw(Box::default());
            gst::ffi::gst_mini_object_set_qdata(object, key, known.cast(), Some(free));
        }
        &*known
    }
}
