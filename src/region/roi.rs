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
        let label = labels.quark(region.class).as_str();
        let [x, y, w, h] = region.pixels(frame);
        let mut meta = VideoRegionOfInterestMeta::add(buffer, label, (x, y, w, h));
        meta.set_id(id as i32);
        meta.add_param(
            gst::Structure::builder("detection")
                .field("label_id", region.class as i32)
                .field("label", label)
                .field("confidence", f64::from(region.confidence))
                .field("x_min", f64::from(region.x1) / size[0])
                .field("y_min", f64::from(region.y1) / size[1])
                .field("x_max", f64::from(region.x2) / size[0])
                .field("y_max", f64::from(region.y2) / size[1])
                .build(),
        );
    }
}
