// SPDX-License-Identifier: MIT OR Apache-2.0
//! DeepStream's objects as parents of regions on the buffer.
//!
//! In: the objects of the only frame of a batch, and regions that were found in them. Out: the regions with the ids that
//! these objects have as regions of interest, or else as objects of GStreamer's analytics library. An element such as
//! another `nmsfilter` has attached the objects in these forms, too; otherwise a region gets no parent.

use super::{FrameId, Region};
use crate::deepstream::{BatchMeta, DeepStreamError};
use crate::regions;

/// An object of DeepStream.
#[derive(Debug)]
pub(crate) struct ParentObject {
    label: Vec<u8>,
    /// Left, top, width and height in whole pixels.
    pixels: [u32; 4],
}

/// Returns the objects of `frame`, in the order in which they were attached.
///
/// # Errors
/// If the metadata is damaged.
pub(crate) fn objects(
    batch: BatchMeta<'_>,
    frame: FrameId,
) -> Result<Vec<ParentObject>, DeepStreamError> {
    let batch = batch.lock();
    let Some(meta) = batch.frames()?.nth(frame.index) else { return Ok(Vec::new()) };
    let object = |object| {
        let found = batch.read_object(object);
        let [x1, y1, width, height] = found.rect;
        let (x2, y2) = (x1 + width, y1 + height);
        let region = Region { x1, y1, x2, y2, confidence: 0.0, class: 0, parent: None };
        ParentObject { label: found.label, pixels: region.pixels(frame.size) }
    };
    Ok(batch.objects(meta?)?.into_iter().map(object).collect())
}

/// Returns `found` with the ids on `buffer` of the objects in which the regions were found.
pub(crate) fn with_ids(
    buffer: &gst::BufferRef,
    objects: &[ParentObject],
    found: &[Region],
) -> Vec<Region> {
    let id = |number: i32| id(buffer, objects.get(usize::try_from(number).ok()?)?);
    found.iter().map(|region| Region { parent: region.parent.and_then(id), ..*region }).collect()
}

/// Returns the id of the region of interest, or else of the object of the analytics library, that has the label and the
/// pixels of `object`.
fn id(buffer: &gst::BufferRef, object: &ParentObject) -> Option<i32> {
    let region = regions::iter(buffer).find(|region| {
        region.rectangle == object.pixels && region.label.to_bytes() == object.label
    });
    if let Some(region) = region {
        return Some(region.id);
    }
    let pixels = object.pixels.map(i64::from);
    let is_object = |found: &regions::AttachedObject| {
        found.rectangle == pixels
            && found.label.is_some_and(|label| label.as_bytes() == object.label)
    };
    let found = regions::objects(buffer).into_iter().find(is_object)?;
    i32::try_from(found.id).ok()
}
