// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of several streams, which are made by hand.

use gst::glib::translate::IntoGlibPtr;
use gst_newer::AnalyticsBatchMeta;

/// A stream of a batch: its number, its sticky events, and its objects.
pub type BatchStream = (u32, Vec<gst::Event>, Vec<gst::MiniObject>);

/// Makes a buffer with a batch of these streams.
pub fn batch(streams: Vec<BatchStream>) -> gst::Buffer {
    /// Copies the values to an array that the metadata can free. The result is null if there are no
    /// values.
    fn array<T: Copy>(values: &[T]) -> *mut T {
        // SAFETY: the memory is as large as the values.
        unsafe {
            let array = gst::glib::ffi::g_malloc0_n(values.len(), size_of::<T>()).cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), array, values.len());
            array
        }
    }
    let mut buffer = gst::Buffer::new();
    let mut meta = AnalyticsBatchMeta::add(buffer.get_mut().unwrap()).unwrap();
    let streams: Vec<_> = streams
        .into_iter()
        .map(|(index, events, objects)| {
            let events: Vec<_> = events.into_iter().map(IntoGlibPtr::into_glib_ptr).collect();
            let objects: Vec<_> = objects.into_iter().map(IntoGlibPtr::into_glib_ptr).collect();
            gst_newer::ffi::GstAnalyticsBatchStream {
                index,
                sticky_events: array(&events),
                n_sticky_events: events.len(),
                objects: array(&objects),
                n_objects: objects.len(),
                padding: [std::ptr::null_mut(); 4],
            }
        })
        .collect();
    // SAFETY: the metadata is writable, and takes ownership of the arrays.
    unsafe {
        let meta = &mut *meta.as_mut_ptr();
        (meta.streams, meta.n_streams) = (array(&streams), streams.len());
    }
    buffer
}

/// Returns an event with these caps.
pub fn caps_event(caps: &str) -> gst::Event {
    gst::event::Caps::new(&caps.parse().unwrap())
}
