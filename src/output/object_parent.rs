// SPDX-License-Identifier: MIT OR Apache-2.0
//! DeepStream's objects as parents of regions on the buffer.
//!
//! In: the objects of the only frame of a batch, and regions that were found in them. Out: the regions with the ids that
//! these objects have as regions of interest, or else as objects of GStreamer's analytics library. An element such as
//! another `nmsfilter` has attached the objects in these forms, too; otherwise a region gets no parent.

use super::{FrameId, Region};
use crate::deepstream::{BatchMeta, DeepStreamError, FoundObject};
use crate::regions;

/// Returns the regions `found` in `frame` with the ids on `buffer` of the objects in which they were found.
///
/// # Errors
/// If the metadata is damaged.
pub(crate) fn with_ids(
    batch: BatchMeta<'_>,
    buffer: &gst::BufferRef,
    frame: FrameId,
    found: &[Region],
) -> Result<Vec<Region>, DeepStreamError> {
    let batch = batch.lock();
    let meta = batch.frames()?.nth(frame.index).transpose()?;
    let objects = meta.map_or(Ok(Vec::new()), |meta| batch.objects(meta))?;
    let id = |number: i32| {
        let object = objects.get(usize::try_from(number).ok()?)?;
        id(buffer, &batch.read_object(*object), frame.size)
    };
    Ok(found.iter().map(|it| Region { parent: it.parent.and_then(id), ..*it }).collect())
}

/// Returns the id of the region of interest, or else of the object of the analytics library, that has the label and the
/// whole pixels of `object` in a frame of this size.
fn id(buffer: &gst::BufferRef, object: &FoundObject<'_>, frame: [u32; 2]) -> Option<i32> {
    let [x1, y1, width, height] = object.rect;
    let (x2, y2) = (x1 + width, y1 + height);
    let region = Region { x1, y1, x2, y2, confidence: 0.0, class: 0, parent: None };
    let pixels = region.pixels(frame);
    let region = regions::iter(buffer)
        .find(|region| region.rectangle == pixels && region.label.to_bytes() == object.label);
    if let Some(region) = region {
        return Some(region.id);
    }
    let pixels = pixels.map(i64::from);
    let is_object = |found: &regions::AttachedObject| {
        found.rectangle == pixels
            && found.label.is_some_and(|label| label.as_bytes() == object.label)
    };
    let found = regions::objects(buffer).into_iter().find(is_object)?;
    i32::try_from(found.id).ok()
}
