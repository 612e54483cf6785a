// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the objects that any element has attached to frames.
//!
//! In: a frame of a locked batch. Out: an [`ObjectMeta`] for each of its objects, and its fields as a [`FoundObject`].

use std::ffi::c_void;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch};
use super::layout::{LABEL_SIZE, UNTRACKED_OBJECT_ID, frame, mask, object, rect};
use super::record::Record;

/// An object of a frame, `NvDsObjectMeta`.
pub type ObjectMeta<'l> = Record<'l, object::S>;

/// The fields of an object of a frame.
#[derive(Clone, Debug)]
pub struct FoundObject<'l> {
    /// The address of the object. Other objects refer to it by this address.
    pub address: *const c_void,
    /// The address of the object that this object is a part of.
    pub parent: Option<*const c_void>,
    /// The class.
    pub class: i32,
    /// The id of the track, if the object is tracked.
    pub track: Option<u64>,
    /// The score. Below 0 if the element that attached the object has no score.
    pub confidence: f32,
    /// Left, top, width and height.
    pub rect: [f32; 4],
    /// The angle by which `rect` is rotated about its center, in degrees, clockwise. `None` in versions without
    /// angles.
    pub rotation: Option<f32>,
    /// The label. Its encoding is unknown.
    pub label: Vec<u8>,
    /// The mask.
    pub mask: Option<FoundMask<'l>>,
}

/// The mask of an object. Its pixels cover the object's rectangle.
#[derive(Clone, Copy, Debug)]
pub struct FoundMask<'l> {
    /// The number of pixels per row.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
    /// A pixel belongs to the object if its number is greater than this.
    pub threshold: f32,
    /// The numbers of the pixels, row by row.
    pub numbers: &'l [f32],
}

impl LockedBatch<'_> {
    /// Returns the objects of `frame`, in the order in which they were attached.
    ///
    /// # Errors
    /// If the list is damaged.
    pub fn objects(&self, frame: FrameMeta<'_>) -> Result<Vec<ObjectMeta<'_>>, DeepStreamError> {
        let mut objects = self.object_list(frame).collect::<Result<Vec<_>, _>>()?;
        objects.reverse();
        Ok(objects)
    }

    /// Returns the objects of `frame`, in the order of the frame's list: the object that was added last comes first.
    pub fn object_list<'l>(
        &'l self,
        frame: FrameMeta<'_>,
    ) -> impl Iterator<Item = Result<ObjectMeta<'l>, DeepStreamError>> + Clone {
        self.list(frame, frame::OBJECTS, "objects")
    }

    /// Returns left, top, width and height of `object`.
    pub fn rect(&self, object: ObjectMeta<'_>) -> [f32; 4] {
        object.part(object::RECT).read(rect::SIDES)
    }

    /// Returns the fields of an object.
    pub fn read_object<'l>(&self, found: ObjectMeta<'l>) -> FoundObject<'l> {
        let layout = self.layout();
        let parent = found.read(object::PARENT).cast_const();
        let label = found.read(layout.object_label);
        let end = label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_SIZE);
        let rect = found.part(object::RECT);
        FoundObject {
            address: found.as_ptr(),
            parent: Some(parent).filter(|parent| !parent.is_null()),
            class: found.read(object::CLASS),
            track: Some(found.read(object::ID)).filter(|&id| id != UNTRACKED_OBJECT_ID),
            confidence: found.read(object::CONFIDENCE),
            rect: self.rect(found),
            rotation: layout.rotation_angle.map(|angle| rect.read(angle)),
            label: label[..end].to_vec(),
            mask: read_mask(found.part(layout.object_mask)),
        }
    }
}

/// Returns the mask of an object, if it has one.
fn read_mask(found: Record<'_, mask::S>) -> Option<FoundMask<'_>> {
    let data = found.read(mask::DATA);
    if data.is_null() || !data.is_aligned() {
        return None;
    }
    let count = found.read(mask::SIZE) as usize / size_of::<f32>();
    // SAFETY: the array has this many bytes, and exists as long as the object, which nobody removes while the lock is held.
    let numbers = unsafe { std::slice::from_raw_parts(data, count) };
    Some(FoundMask {
        width: found.read(mask::WIDTH),
        height: found.read(mask::HEIGHT),
        threshold: found.read(mask::THRESHOLD),
        numbers,
    })
}
