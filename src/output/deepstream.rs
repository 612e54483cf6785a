// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writer of DeepStream's objects (`NvDsObjectMeta`).
//!
//! In: the regions of each frame of a batch, in the muxer's coordinates. Out: one object per region on its
//! frame, as nvinfer attaches them, so that nvtracker, nvdsosd and nvmsgconv use them.

use super::{Labels, Region};
use crate::deepstream::{BatchMeta, DeepStreamError, NewObject};

/// What to do with the frames of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The number of the inference element whose tensors were decoded. Objects have it as their component id.
    pub unique_id: u32,
    /// Whether objects are added.
    pub add_objects: bool,
    /// Whether the tensors are removed.
    pub remove_tensors: bool,
}

/// Adds the objects of each frame, in the order of its regions, and removes tensors, all while the batch's
/// lock is held. `frames` have the index of each frame in the batch's list, in ascending order.
///
/// # Errors
/// If the metadata is damaged, or DeepStream provides no object.
pub(crate) fn attach<'r>(
    batch: BatchMeta<'_>,
    frames: impl IntoIterator<Item = (usize, &'r [Region])>,
    labels: &mut Labels,
    task: Task,
) -> Result<(), DeepStreamError> {
    let batch = batch.lock();
    let mut frames = frames.into_iter().peekable();
    for (index, frame) in batch.frames()?.enumerate() {
        let Some((_, regions)) = frames.next_if(|(next, _)| *next == index) else {
            continue;
        };
        let frame = frame?;
        if task.add_objects {
            batch.set_infer_done(frame);
            for region in regions {
                batch.add_object(frame, &object(region, labels, task.unique_id))?;
            }
        }
        if task.remove_tensors {
            batch.remove_tensors(frame, task.unique_id);
        }
    }
    Ok(())
}

/// Whether the frame of this index already has an object for `region`.
pub(crate) fn is_attached(
    batch: BatchMeta<'_>,
    index: usize,
    region: &Region,
    labels: &mut Labels,
    unique_id: u32,
) -> bool {
    let batch = batch.lock();
    let frame = batch.frames().ok().and_then(|mut frames| frames.nth(index)?.ok());
    frame.is_some_and(|frame| batch.has_object(frame, &object(region, labels, unique_id)))
}

fn object<'l>(region: &Region, labels: &'l mut Labels, unique_id: u32) -> NewObject<'l> {
    let &Region { x1, y1, x2, y2, confidence, class } = region;
    NewObject {
        component_id: unique_id as i32,
        class: class as i32,
        confidence,
        rect: [x1, y1, x2 - x1, y2 - y1],
        label: labels.of(class).quark.as_str(),
    }
}
