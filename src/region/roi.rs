use gst::glib;
use gst::glib::translate::IntoGlib;
use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

use super::{Labels, Region};

/// Adds one region of interest per region, with ids counting up from `first_id`.
///
/// Its structure `detection` has the fields that DL Streamer's elements read; coordinates there
/// run from 0 to 1.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    regions: &[Region],
    labels: &mut Labels,
    first_id: u32,
) {
    let size = frame.map(f64::from);
    for (id, region) in (first_id..).zip(regions) {
        let label = labels.quark(region.class);
        let mut meta = add(buffer, label, region.pixels(frame));
        meta.set_id(id as i32);
        meta.add_param(
            gst::Structure::builder("detection")
                .field("label_id", region.class as i32)
                .field("label", label.as_str())
                .field("confidence", f64::from(region.confidence))
                .field("x_min", f64::from(region.x1) / size[0])
                .field("y_min", f64::from(region.y1) / size[1])
                .field("x_max", f64::from(region.x2) / size[0])
                .field("y_max", f64::from(region.y2) / size[1])
                .build(),
        );
    }
}

/// As the binding's `add`, which knows no quarks: it copies the label and looks it up each time.
fn add(
    buffer: &mut gst::BufferRef,
    label: glib::Quark,
    [x, y, w, h]: [u32; 4],
) -> gst::MetaRefMut<'_, VideoRegionOfInterestMeta, gst::meta::Standalone> {
    // SAFETY: the buffer is writable, as the exclusive borrow says; the function gives the
    // metadata that it has just added to it.
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
