// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the objects of GStreamer's analytics library on a video buffer.

use gst::glib::translate::IntoGlib;
use gst_analytics::{AnalyticsMetaRefExt, AnalyticsODMtd, AnalyticsRelationMeta};

use crate::bindings::strings;

/// An object (`GstAnalyticsODMtd`) on a buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AttachedObject {
    /// The id of the object in the buffer's relation metadata.
    pub id: u32,
    /// The name of the class. `None` if it is missing or not UTF-8.
    pub label: Option<&'static str>,
    /// Left, top, width and height in pixels of the frame.
    pub rectangle: [i64; 4],
}

/// Returns the objects of `buffer`, in the order in which they were attached. The rectangle of an oriented object is its
/// rectangle before the rotation.
pub fn objects(buffer: &gst::BufferRef) -> Vec<AttachedObject> {
    let mut objects = Vec::new();
    for meta in buffer.iter_meta::<AnalyticsRelationMeta>() {
        for object in meta.iter::<AnalyticsODMtd>() {
            let Ok(location) = object.location() else { continue };
            let label = object.obj_type().and_then(|label| strings::of_quark(label.into_glib()));
            let rectangle = [location.x, location.y, location.w, location.h].map(i64::from);
            let label = label.and_then(|label| label.to_str().ok());
            objects.push(AttachedObject { id: object.id(), label, rectangle });
        }
    }
    objects
}
