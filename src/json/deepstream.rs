// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a DeepStream batch.
//!
//! In: the frames of a batch, with objects from any element. Out: one [`FrameDetections`] per frame, in the batch's order.

use super::object::{Confidence, Label, Object, normalized};
use super::runs::{self, MaskRuns};
use super::{FrameDetections, Rtp};
use crate::deepstream::{
    BatchMeta, DeepStreamError, FoundMask, FoundObject, FrameCaps, FrameMeta, LockedBatch, layout,
};
use crate::output::oriented_pixels;
use nmsfilter_core::geometry::OrientedBox;

/// Adds a [`FrameDetections`] for each frame of the batch in `buffer`.
///
/// # Errors
/// If the metadata is damaged.
pub(super) fn read(
    batch: BatchMeta<'_>,
    buffer: &gst::BufferRef,
    caps: FrameCaps,
    streams: &mut Vec<FrameDetections>,
) -> Result<(), DeepStreamError> {
    // SAFETY: the caps are the buffer's.
    let surfaces = unsafe { batch.surfaces(buffer, Some(caps)) };
    let batch = batch.lock();
    for frame in batch.frames()? {
        let frame = frame?;
        let size = batch.size(frame, surfaces.as_ref()).unwrap_or(caps.size);
        let rtp = |sender_ntp_unix_timestamp_ns| Rtp { sender_ntp_unix_timestamp_ns };
        streams.push(FrameDetections {
            stream_index: frame.read(layout::frame::PAD_INDEX),
            stream_id: frame.read(layout::frame::SOURCE_ID).to_string(),
            resolution: size.into(),
            timestamp: batch.timestamp(frame),
            rtp: batch.unix_time(frame).map(rtp),
            objects: objects(&batch, frame, size)?,
        });
    }
    Ok(())
}

/// Returns the objects of a frame of this size, in the order in which they were attached.
fn objects(
    batch: &LockedBatch<'_>,
    frame: FrameMeta<'_>,
    size: [u32; 2],
) -> Result<Vec<Object>, DeepStreamError> {
    let found = batch.objects(frame)?.into_iter().map(|object| batch.read_object(object));
    let found: Vec<_> = found.collect();
    let index_at = |address| found.iter().position(|object| object.address == address);
    let objects = (0..).zip(&found).map(|(index, found)| Object {
        region_id: index,
        parent_id: found.parent.and_then(index_at).map(|parent| parent as i64),
        ..object(found, size)
    });
    Ok(objects.collect())
}

/// Converts an object in a frame of this size.
fn object(found: &FoundObject<'_>, size: [u32; 2]) -> Object {
    let [left, top, width, height] = found.rect;
    let center = [left + width / 2.0, top + height / 2.0];
    let angle = found.rotation.unwrap_or(0.0).to_radians();
    let oriented = OrientedBox { center, size: [width, height], angle };
    let is_oriented = angle != 0.0;
    let ((rect, rotation), edges) = if is_oriented {
        let bounds = oriented.bounds();
        (oriented_pixels(&oriented), [bounds.x1, bounds.y1, bounds.x2, bounds.y2])
    } else {
        let rect = found.rect.map(|side| side.round() as i32);
        ((rect, 0.0), [left, top, left + width, top + height])
    };
    let rect = rect.map(i64::from);
    let label: Label = String::from_utf8_lossy(&found.label).into_owned().into();
    Object {
        rect,
        upright: rect,
        bounds: normalized(edges.map(f64::from), size),
        track_id: found.track,
        label: Some(label).filter(|label| !label.is_empty()),
        label_id: Some(found.class),
        confidence: Some(Confidence::F32(found.confidence)),
        rotation: is_oriented.then_some(rotation),
        mask: found.mask.as_ref().and_then(|mask| self::mask(mask, found.rect)),
        ..Object::default()
    }
}

/// Converts the mask of an object. DeepStream's mask covers the object's rectangle.
fn mask(found: &FoundMask<'_>, rect: [f32; 4]) -> Option<MaskRuns> {
    let size = [found.width, found.height];
    let area = runs::area(size)?;
    let pixels = found.numbers.get(..area)?;
    let runs = runs::runs(pixels.iter().map(|&number| number > found.threshold));
    Some(MaskRuns::new(rect.map(f64::from), size, runs))
}
