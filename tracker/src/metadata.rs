// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the objects of a frame from the metadata of any element, and writes identities and predicted objects.
//!
//! In: regions of interest and, from GStreamer 1.24, objects of the analytics library. Out: each object once, with the
//! places of its identity. An identity is DL Streamer's structure `object_id` of the region, with the field `id` (int), and
//! a `GstAnalyticsTrackingMtd` that is related to the analytics object in both directions. A predicted object has the
//! field `predicted` (boolean, true) in `object_id`, and its `GstAnalyticsTrackingMtd` is lost.

use gst::glib;
use gst::glib::ffi::GQuark;
use gst::glib::translate::from_glib;
use gst_newer::{AnalyticsRelationMeta, RelTypes};
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::bindings::strings;
use gstnmsfilter::output::{add_region, roi_type};
use gstnmsfilter::regions;

/// The greatest difference between the rectangles of a region and of its analytics object, in pixels, and
/// between those of a region and its exact edges.
const TOLERANCE: u64 = 2;

/// An object of a frame.
#[derive(Clone)]
pub(crate) struct Object {
    /// The label.
    pub label: GQuark,
    /// The index of the class, if it is known.
    pub class: Option<i32>,
    /// The score; 1 if it is missing, so that objects of elements without scores have tracks.
    pub confidence: f64,
    /// Left, top, width and height in pixels of the frame.
    pub rectangle: [f32; 4],
    /// The index of its region of interest.
    pub region: Option<usize>,
    /// The id of its analytics object.
    pub object: Option<u32>,
    pixels: [i64; 4],
    is_tracked: bool,
}

/// The identity of an object.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    /// The id.
    pub id: i32,
    /// When the object was seen first, in nanoseconds.
    pub first_seen: u64,
    /// When the object was seen last; on other frames it is predicted.
    pub last_seen: u64,
}

/// Replaces the content of `objects` with the objects of a frame of this size that have no track yet.
pub(crate) fn read(buffer: &gst::BufferRef, frame: [u32; 2], objects: &mut Vec<Object>) {
    objects.clear();
    let metas = buffer.iter_meta::<VideoRegionOfInterestMeta>();
    objects.extend(regions::iter(buffer).zip(metas).enumerate().map(|(index, (region, meta))| {
        let pixels = region.rectangle.map(i64::from);
        Object {
            label: roi_type(&meta),
            class: region.class,
            confidence: region.confidence.unwrap_or(1.0),
            rectangle: exact(region.edges, pixels, frame),
            region: Some(index),
            object: None,
            pixels,
            is_tracked: region.track_id.is_some(),
        }
    }));
    add_objects(buffer, objects);
    objects.retain(|object| !object.is_tracked);
}

/// Returns the rectangle of normalized edges, which are not rounded to pixels, if they fit to the pixels.
fn exact(edges: Option<[f64; 4]>, pixels: [i64; 4], frame: [u32; 2]) -> [f32; 4] {
    let rounded = pixels.map(|side| side as f64);
    let scaled = edges.map(|[x1, y1, x2, y2]| {
        let [w, h] = frame.map(f64::from);
        [x1 * w, y1 * h, (x2 - x1) * w, (y2 - y1) * h]
    });
    let fits = |exact: &[f64; 4]| {
        exact.iter().zip(rounded).all(|(a, b)| (a - b).abs() <= TOLERANCE as f64)
    };
    scaled.filter(fits).unwrap_or(rounded).map(|side| side as f32)
}

/// Adds the analytics objects, to the regions of the same label and pixels where there are some.
fn add_objects(buffer: &gst::BufferRef, objects: &mut Vec<Object>) {
    let regions = objects.len();
    // Both lists usually have one order, so that the search begins after the previous region.
    let mut next = 0;
    regions::for_each_object(buffer, |found| {
        let is_same = |&index: &usize| {
            let region = &objects[index];
            let mut sides = region.pixels.iter().zip(&found.rectangle);
            region.object.is_none()
                && region.label == found.label_quark
                && sides.all(|(a, b)| a.abs_diff(*b) <= TOLERANCE)
        };
        if let Some(index) = (next..regions).chain(0..next).find(is_same) {
            objects[index].object = Some(found.id);
            objects[index].is_tracked |= found.track.is_some();
            next = (index + 1) % regions;
            return;
        }
        objects.push(Object {
            label: found.label_quark,
            class: None,
            confidence: f64::from(found.confidence),
            rectangle: found.rectangle.map(|side| side as f32),
            region: None,
            object: Some(found.id),
            pixels: found.rectangle,
            is_tracked: found.track.is_some(),
        });
    });
}

/// Writes the identities of objects that [`read`] has returned for the buffer.
pub(crate) fn write(
    buffer: &mut gst::BufferRef,
    objects: &[Object],
    identities: &[Option<Identity>],
) {
    let found = || objects.iter().zip(identities).filter_map(|(it, id)| Some((it, (*id)?)));
    let mut of_regions = found().filter_map(|(it, id)| Some((it.region?, id))).peekable();
    for (index, mut meta) in buffer.iter_meta_mut::<VideoRegionOfInterestMeta>().enumerate() {
        if let Some((_, identity)) = of_regions.next_if(|(region, _)| *region == index) {
            meta.add_param(structure(identity.id).build());
        }
    }
    if found().any(|(object, _)| object.object.is_some())
        && let Ok(mut meta) = AnalyticsRelationMeta::add(buffer)
    {
        for (object, identity) in found() {
            // Without memory for it, an object has no id.
            let _ = object.object.map(|object| add_track(&mut meta, object, identity, false));
        }
    }
}

fn structure(id: i32) -> gst::structure::Builder {
    gst::Structure::builder("object_id").field("id", id)
}

fn add_track(
    meta: &mut gst::MetaRefMut<'_, AnalyticsRelationMeta, gst::meta::Standalone>,
    object: u32,
    identity: Identity,
    is_predicted: bool,
) -> Result<(), glib::BoolError> {
    let first_seen = gst::ClockTime::from_nseconds(identity.first_seen);
    let track = meta.add_tracking_mtd(identity.id as u64, first_seen)?;
    meta.update_track(track, gst::ClockTime::from_nseconds(identity.last_seen), is_predicted);
    meta.set_relation(RelTypes::RELATE_TO, object, track)?;
    meta.set_relation(RelTypes::RELATE_TO, track, object)
}

/// Adds predicted objects to a frame of this size: the objects as they were seen last, their rectangles and identities.
pub(crate) fn add_predicted<'a>(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    predicted: impl Iterator<Item = (&'a Object, [f32; 4], Identity)>,
) {
    let [frame_width, frame_height] = frame.map(f64::from);
    let ids = regions::iter(buffer).map(|region| region.id.saturating_add(1));
    let mut id = ids.max().unwrap_or(0);
    for (seen, [left, top, width, height], identity) in predicted {
        let [x1, x2] = [left, left + width].map(|edge| f64::from(edge).clamp(0.0, frame_width));
        let [y1, y2] = [top, top + height].map(|edge| f64::from(edge).clamp(0.0, frame_height));
        let [x, y, right, bottom] = [x1, y1, x2, y2].map(|edge| edge.round() as u32);
        // Also true for NaN.
        if !(x < right && y < bottom) {
            continue;
        }
        let [w, h] = [right - x, bottom - y];
        // SAFETY: 0 stands for no label; other numbers are quarks that the metadata of a frame had.
        let label = (seen.label != 0).then(|| unsafe { from_glib(seen.label) });
        let label: glib::Quark = label.unwrap_or_else(|| glib::Quark::from_str(""));
        if seen.object.is_some()
            && let Ok(mut meta) = AnalyticsRelationMeta::add(buffer)
        {
            let [x, y, w, h] = [x, y, w, h].map(|side| side as i32);
            if let Ok(object) = meta.add_od_mtd(label, x, y, w, h, seen.confidence as f32) {
                id = object as i32;
                // Without memory for it, the object has no id.
                let _ = add_track(&mut meta, object, identity, true);
            }
        }
        if seen.region.is_none() {
            continue;
        }
        let detection = gst::Structure::builder("detection")
            .field_if_some("label_id", seen.class)
            .field_if_some("label", strings::of_quark(seen.label).and_then(|it| it.to_str().ok()))
            .field("confidence", seen.confidence)
            .field("x_min", x1 / frame_width)
            .field("y_min", y1 / frame_height)
            .field("x_max", x2 / frame_width)
            .field("y_max", y2 / frame_height)
            .build();
        let mut meta = add_region(buffer, label, [x, y, w, h]);
        meta.set_id(id);
        meta.add_param(detection);
        meta.add_param(structure(identity.id).field("predicted", true).build());
        id = id.saturating_add(1);
    }
}
