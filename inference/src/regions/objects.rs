// SPDX-License-Identifier: MIT OR Apache-2.0
//! The regions of interest and the objects of a buffer, as regions to run a model on.
//!
//! In: a buffer with `GstVideoRegionOfInterestMeta` or, from GStreamer 1.24, objects of the analytics library. Out: for
//! each of them, in their order, the pixels with a margin and the id. If a buffer has regions of interest, its objects are
//! ignored, because `nmsfilter` attaches both for each detection.

use gstnmsfilter::input::region::TensorRegion;
use gstnmsfilter::regions;
use nmsfilter_core::geometry::FrameRegion;

use super::RegionSettings;

/// A region of interest, or an object.
struct Found<'b> {
    label: Option<&'b str>,
    rectangle: [i64; 4],
    id: i32,
    is_predicted: bool,
}

/// The regions of a buffer, or its objects if there are no regions.
fn found(buffer: &gst::BufferRef) -> impl Iterator<Item = Found<'_>> {
    let rois = regions::iter(buffer).map(|region| Found {
        label: region.label.to_str().ok(),
        rectangle: region.rectangle.map(i64::from),
        id: region.id,
        is_predicted: region.is_predicted,
    });
    let has_rois = regions::count(buffer) > 0;
    let objects = move || if has_rois { Vec::new() } else { regions::objects(buffer) };
    rois.chain(std::iter::once_with(objects).flatten().map(|object| Found {
        label: object.label,
        rectangle: object.rectangle,
        id: object.id as i32,
        is_predicted: object.track.is_some_and(|track| track.is_lost),
    }))
}

/// Adds the regions of a buffer whose label is wanted.
pub(super) fn add(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    settings: &RegionSettings,
    chosen: &mut Vec<TensorRegion>,
) {
    let limit = match settings.roi_limit {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let wanted = found(buffer)
        .filter(|it| settings.roi_predicted || !it.is_predicted)
        .filter(|it| it.label.is_some_and(|label| settings.has_label(label)))
        .filter_map(|it| {
            let pixels = with_margin(it.rectangle, settings.roi_margin, frame)?;
            Some(TensorRegion { pixels, parent: Some(it.id) })
        });
    chosen.extend(wanted.take(limit));
}

/// The labels of the regions of a buffer, or of its objects if there are no regions.
pub(super) fn labels(buffer: &gst::BufferRef) -> impl Iterator<Item = &str> {
    found(buffer).filter_map(|it| it.label)
}

/// Adds `margin` x width to the left and to the right, and `margin` x height above and below, and limits the result to
/// the frame. `None` if no pixel is in the frame.
pub(super) fn with_margin(
    [left, top, width, height]: [i64; 4],
    margin: f64,
    frame: [u32; 2],
) -> Option<FrameRegion> {
    let side = |start: i64, length: i64, limit: u32| {
        let margin = (length as f64 * margin).round() as i64;
        let low = start.saturating_sub(margin).clamp(0, i64::from(limit)) as u32;
        let high = start.saturating_add(length).saturating_add(margin);
        let high = high.clamp(0, i64::from(limit)) as u32;
        (high > low).then(|| (low, high - low))
    };
    let (left, width) = side(left, width, frame[0])?;
    let (top, height) = side(top, height, frame[1])?;
    Some(FrameRegion { left, top, width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(rectangle: [i64; 4], margin: f64) -> Option<String> {
        with_margin(rectangle, margin, [640, 480]).map(|region| region.to_string())
    }

    #[test]
    fn a_margin_grows_both_sides_and_ends_at_the_frame() {
        assert_eq!(region([100, 50, 20, 10], 0.0).as_deref(), Some("100,50,20,10"));
        assert_eq!(region([100, 50, 20, 10], 0.25).as_deref(), Some("95,47,30,16"));
        assert_eq!(region([2, 470, 100, 10], 0.1).as_deref(), Some("0,469,112,11"));
        assert_eq!(region([-30, 0, 40, 480], 0.0).as_deref(), Some("0,0,10,480"));
    }

    #[test]
    fn a_region_without_pixels_in_the_frame_is_left_out() {
        for rectangle in [[640, 0, 10, 10], [0, 0, 0, 10], [-10, 0, 10, 10], [0, 0, 10, -5]] {
            assert_eq!(region(rectangle, 0.0), None, "{rectangle:?}");
        }
    }
}
