// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `GstVideoRegionOfInterestMeta`.
//!
//! In: regions in pixels of the video frame. Out: one region of interest per region, with the structures in the
//! tables below. GStreamer removes regions of interest when it scales, crops or rotates the frame, so their
//! coordinates always refer to the frame to which they were attached. Readers look up fields by name, so the
//! structures need no version: new fields may be added, but no field changes its type or meaning.
//!
//! Every region has a structure `detection`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `label_id`, `label` | int, string | the class |
//! | `confidence` | double | the score |
//! | `x_min`, `y_min`, `x_max`, `y_max` | double | the box (or the bounds of an oriented box), normalized to the frame (0 to 1) and clipped to it |
//! | `center-x`, `center-y`, `width`, `height` | double | only for oriented boxes: center and sides in pixels of the frame, not clipped |
//! | `parent_id` | int | only for detections in a region of interest or an object: its id, which is also the parent id of the region |
//! | `rotation` | double | only for oriented boxes: the angle of the side `width` in radians, clockwise from the x axis |
//!
//! If the model outputs points, a region has a structure `keypoints`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `count` | int | the number of points |
//! | `components` | int | 2: x, y; 3: x, y, visibility |
//! | `layout` | string | `coco-17`, `face-5`, or `points` ([`KeypointLayout`]) |
//! | `data` | GBytes | `count` x `components` numbers of type f32 in the machine's byte order. x and y are in pixels of the frame and not changed otherwise: a point can be outside the region or the frame, NaN, or infinite |
//!
//! If the model outputs masks, a region has a structure `mask`:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `width`, `height` | int | the size of the mask in mask pixels |
//! | `left`, `top`, `right`, `bottom` | double | the rectangle that the mask covers, in pixels of the frame; at the frame's edges, part of it can be outside |
//! | `data` | GBytes | `height` rows of `width` bits; each row is padded to whole bytes, and begins with the most significant bit |

use arrayvec::ArrayVec;
use gst::glib;
use gst::glib::translate::IntoGlib;
use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use super::detailed::{DetailedRegion, DetailedRegions, MaskRows};
use super::{KeypointLayout, Labels};
use crate::regions;
use nmsfilter_core::decoder::layout::MAX_COLUMN_COMPONENTS;
use nmsfilter_core::engine::detail::Point;
use nmsfilter_core::geometry::OrientedBox;

/// Returns the number after the greatest id of any region of interest on `buffer`, or 0 if there are no regions.
/// Negative ids are ignored. Elements that set no ids leave them 0.
pub(super) fn next_id(buffer: &gst::BufferRef) -> u32 {
    let ids = buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|region| region.id());
    ids.filter_map(|id| u32::try_from(id).ok()).max().map_or(0, |greatest| greatest + 1)
}

/// Adds one region of interest per region, with consecutive ids starting at `first_id`. The id after `i32::MAX` is
/// `i32::MIN`.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: DetailedRegions<'_>,
    labels: &mut Labels,
    first_id: u32,
) {
    let [width, height] = frame.map(f64::from);
    for (id, detailed) in (first_id..).zip(regions.iter()) {
        let DetailedRegion { region, oriented, points, has_visibility, mask } = detailed;
        let layout = labels.keypoint_layout(region.class, points.len());
        let label = labels.label(region.class);
        let mut meta = add(buffer, label.quark, region.pixels(frame));
        meta.set_id(id as i32);
        if let Some(parent) = region.parent {
            meta.set_parent_id(parent);
        }
        let [x1, y1, x2, y2] = [region.x1, region.y1, region.x2, region.y2].map(f64::from);
        let values =
            [f64::from(region.confidence), x1 / width, y1 / height, x2 / width, y2 / height];
        let mut detection = label.detection.with_numbers(values);
        if let Some(oriented) = oriented {
            set_oriented(&mut detection, &oriented);
        }
        if let Some(parent) = region.parent {
            detection.set("parent_id", parent);
        }
        meta.add_param(detection);
        if !points.is_empty() {
            meta.add_param(keypoints(points, has_visibility, layout));
        }
        if let Some(mask) = mask {
            meta.add_param(self::mask(&mask));
        }
    }
}

/// Sets the fields of an oriented box.
fn set_oriented(detection: &mut gst::Structure, oriented: &OrientedBox) {
    let &OrientedBox { center, size, angle } = oriented;
    let values = [
        ("rotation", angle),
        ("center-x", center[0]),
        ("center-y", center[1]),
        ("width", size[0]),
        ("height", size[1]),
    ];
    for (name, value) in values {
        detection.set(name, f64::from(value));
    }
}

/// Creates the structure `keypoints`.
fn keypoints(points: &[Point], has_visibility: bool, layout: KeypointLayout) -> gst::Structure {
    let data = if has_visibility {
        glib::Bytes::from(bytemuck::cast_slice::<_, u8>(points))
    } else {
        // A layout has at most this many numbers.
        let positions: ArrayVec<[f32; 2], { MAX_COLUMN_COMPONENTS / 2 }> =
            points.iter().map(|point| [point.x, point.y]).collect();
        glib::Bytes::from(bytemuck::cast_slice::<_, u8>(&positions))
    };
    gst::Structure::builder("keypoints")
        .field("count", points.len() as i32)
        .field("components", if has_visibility { 3 } else { 2 })
        .field("layout", layout.name())
        .field("data", data)
        .build()
}

/// Creates the structure `mask`.
fn mask(mask: &MaskRows<'_>) -> gst::Structure {
    let [left, top, right, bottom] = mask.shape.area.map(f64::from);
    gst::Structure::builder("mask")
        .field("width", mask.shape.width as i32)
        .field("height", mask.shape.height as i32)
        .field("left", left)
        .field("top", top)
        .field("right", right)
        .field("bottom", bottom)
        .field("data", glib::Bytes::from(mask.rows))
        .build()
}

/// Returns whether the buffer has a region of interest with this label, these pixels (left, top, width, height), and this
/// parent: a detector that runs on the regions of another one can find one box in several of them.
pub(super) fn is_attached(
    buffer: &gst::BufferRef,
    label: glib::Quark,
    [x, y, w, h]: [u32; 4],
    parent: Option<i32>,
) -> bool {
    let is_alike = |(_, meta): &(usize, gst::MetaRef<'_, VideoRegionOfInterestMeta>)| {
        meta.rect() == (x, y, w, h) && roi_type(meta) == label.into_glib()
    };
    let has_parent = |(index, _)| {
        let attached = regions::iter(buffer).nth(index);
        attached.is_some_and(|region| region.parent_id == parent.unwrap_or(-1))
    };
    buffer.iter_meta::<VideoRegionOfInterestMeta>().enumerate().filter(is_alike).any(has_parent)
}

/// Returns the quark of a region's type. The method `roi_type` of the Rust bindings assumes that the type is UTF-8,
/// but any element may have attached the region.
pub fn roi_type(meta: &gst::MetaRef<'_, VideoRegionOfInterestMeta>) -> glib::ffi::GQuark {
    // SAFETY: the pointer is valid for as long as `meta` is borrowed.
    unsafe { (*meta.as_ptr()).roi_type }
}

/// Adds a region of interest. The method `add` of the Rust bindings would copy the label and look it up each time.
pub fn add(
    buffer: &mut gst::BufferRef,
    label: glib::Quark,
    [x, y, w, h]: [u32; 4],
) -> gst::MetaRefMut<'_, VideoRegionOfInterestMeta, gst::meta::Standalone> {
    // SAFETY: the buffer is borrowed exclusively, so it is writable. The function returns the metadata that it has
    // added to the buffer.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_region_of_interest_meta_id(
            buffer.as_mut_ptr(),
            label.into_glib(),
            x,
            y,
            w,
            h,
        );
        VideoRegionOfInterestMeta::from_mut_ptr(buffer, meta)
    }
}
