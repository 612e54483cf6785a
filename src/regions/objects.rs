// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the objects of GStreamer's analytics library on a video buffer.

use gst::glib::ffi::GQuark;
use gst::glib::translate::IntoGlib;
use gst_newer::{AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsTrackingMtd, RelTypes};

use crate::bindings::strings;

/// An object (`GstAnalyticsODMtd`) on a buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AttachedObject {
    /// The id of the object in the buffer's relation metadata.
    pub id: u32,
    /// The name of the class. `None` if it is missing or not UTF-8.
    pub label: Option<&'static str>,
    /// The name of the class; 0 if it is missing.
    pub label_quark: GQuark,
    /// Left, top, width and height in pixels of the frame; of an oriented object, those before the rotation about its
    /// center.
    pub rectangle: [i64; 4],
    /// The angle in radians, clockwise; 0 if the object is upright.
    pub angle: f32,
    /// The score.
    pub confidence: f32,
    /// The track that is related to the object.
    pub track: Option<AttachedTrack>,
}

/// The track of an object (`GstAnalyticsTrackingMtd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttachedTrack {
    /// The number of the track.
    pub id: u64,
    /// True if the object was not detected on this frame: its place is predicted.
    pub is_lost: bool,
}

/// The types of relation between an object and its track or mask, which differ from element to element.
pub(crate) const ANY_RELATION: RelTypes =
    RelTypes::IS_PART_OF.union(RelTypes::CONTAIN).union(RelTypes::RELATE_TO);

/// Returns the objects of `buffer`, in the order in which they were attached.
pub fn objects(buffer: &gst::BufferRef) -> Vec<AttachedObject> {
    let mut objects = Vec::new();
    for_each_object(buffer, |object| objects.push(object));
    objects
}

/// Calls `read` with each of the [`objects`], without an allocation.
pub fn for_each_object(buffer: &gst::BufferRef, mut read: impl FnMut(AttachedObject)) {
    let metas = buffer.iter_meta::<AnalyticsRelationMeta>();
    metas.for_each(|meta| objects_of(&meta).for_each(&mut read));
}

/// Returns the objects in this metadata.
pub(crate) fn objects_of(meta: &AnalyticsRelationMeta) -> impl Iterator<Item = AttachedObject> {
    // Without tracks, no relations are searched.
    let has_tracks = meta.iter::<AnalyticsTrackingMtd>().next().is_some();
    meta.iter::<AnalyticsODMtd>().filter_map(move |object| {
        let (id, location) = (object.id(), object.oriented_location()?);
        let label_quark = object.obj_type().map_or(0, IntoGlib::into_glib);
        Some(AttachedObject {
            id,
            label: strings::of_quark(label_quark).and_then(|label| label.to_str().ok()),
            label_quark,
            rectangle: [location.x, location.y, location.w, location.h].map(i64::from),
            angle: location.r,
            confidence: object.confidence_level(),
            track: if has_tracks { track(meta, id) } else { None },
        })
    })
}

/// Returns the track that is related to the object with this id.
fn track(meta: &AnalyticsRelationMeta, object: u32) -> Option<AttachedTrack> {
    let track =
        meta.iter_direct_related::<AnalyticsTrackingMtd>(object, ANY_RELATION).next()?.info()?;
    Some(AttachedTrack { id: track.id, is_lost: track.is_lost })
}
