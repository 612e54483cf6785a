// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer of `GstVideoRegionOfInterestMeta`.
//!
//! In: regions in pixels of the video frame. Out: one region of interest per region, with a
//! structure `detection` that has the confidence and the exact coordinates.

use std::ops::ControlFlow;

use gst::glib;
use gst::glib::translate::{IntoGlib, ToGlibPtrMut};
use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use super::{Labels, Region};

/// The structure `detection` for regions of `class`. It has the fields that the elements of DL Streamer read.
pub(super) fn detection(class: u32, label: glib::Quark) -> gst::Structure {
    gst::Structure::builder("detection")
        .field("label_id", class as i32)
        .field("label", label.as_str())
        .field("confidence", 0.0)
        .field("x_min", 0.0)
        .field("y_min", 0.0)
        .field("x_max", 0.0)
        .field("y_max", 0.0)
        .build()
}

/// The id after the greatest id of a region of interest on `buffer`, of which a negative one does not count; 0
/// without regions. Elements that set no ids leave them 0.
pub(super) fn next_id(buffer: &gst::BufferRef) -> u32 {
    let ids = buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|region| region.id());
    ids.filter_map(|id| u32::try_from(id).ok()).max().map_or(0, |greatest| greatest + 1)
}

/// Adds one region of interest per region, with consecutive ids from `first_id`; `i32::MAX` is followed by
/// `i32::MIN`. Coordinates in the
/// structure are normalized (0 to 1).
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: &[Region],
    labels: &mut Labels,
    first_id: u32,
) {
    let [width, height] = frame.map(f64::from);
    for (id, region) in (first_id..).zip(regions) {
        let label = labels.of(region.class);
        let mut meta = add(buffer, label.quark, region.pixels(frame));
        meta.set_id(id as i32);
        let [x1, y1, x2, y2] = [region.x1, region.y1, region.x2, region.y2].map(f64::from);
        let values =
            [f64::from(region.confidence), x1 / width, y1 / height, x2 / width, y2 / height];
        meta.add_param(with_values(&label.detection, values));
    }
}

/// Whether the buffer has a region of interest with this label and these pixels (left, top, width, height).
pub(super) fn is_attached(
    buffer: &gst::BufferRef,
    label: glib::Quark,
    [x, y, w, h]: [u32; 4],
) -> bool {
    buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .any(|meta| meta.rect() == (x, y, w, h) && roi_type(&meta) == label.into_glib())
}

/// The quark of a region's type. The method `roi_type` of the bindings assumes that the type is
/// UTF-8, and any element may have attached the region.
pub fn roi_type(meta: &gst::MetaRef<'_, VideoRegionOfInterestMeta>) -> glib::ffi::GQuark {
    // SAFETY: the pointer is valid for as long as `meta` is borrowed.
    unsafe { (*meta.as_ptr()).roi_type }
}

/// A copy of the structure with these values: confidence, left, top, right, bottom. Copying takes
/// half as long as building a structure, since field names are not looked up.
fn with_values(detection: &gst::Structure, values: [f64; 5]) -> gst::Structure {
    let mut detection = detection.clone();
    let mut values = values.into_iter();
    let mut fill = |value: &mut glib::Value| {
        if value.type_() == glib::Type::F64 {
            let number = values.next().expect("the structure has five fields of type double");
            // SAFETY: the type of the value is G_TYPE_DOUBLE.
            unsafe { glib::gobject_ffi::g_value_set_double(value.to_glib_none_mut().0, number) };
        }
        ControlFlow::Continue(())
    };
    #[cfg(feature = "v1_26")]
    detection.map_in_place_by_id(|_, value| fill(value));
    #[cfg(not(feature = "v1_26"))]
    let _ = detection.map_in_place(|_, value| fill(value));
    detection
}

/// Adds a region of interest. The method `add` of the bindings copies the label and looks it up each time.
fn add(
    buffer: &mut gst::BufferRef,
    label: glib::Quark,
    [x, y, w, h]: [u32; 4],
) -> gst::MetaRefMut<'_, VideoRegionOfInterestMeta, gst::meta::Standalone> {
    // SAFETY: the buffer is writable, since it is borrowed exclusively. The function returns the
    // metadata that it added to the buffer.
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
