// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the objects that any element has attached to frames.
//!
//! In: a frame of a locked batch. Out: an [`ObjectMeta`] for each of its objects, and its fields as a [`FoundObject`].

use std::ffi::c_void;
use std::marker::PhantomData;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch};
use super::layout::{LABEL_SIZE, UNTRACKED_OBJECT_ID, frame, mask, object};
use super::object::RECT;
use super::record::Record;

/// An object of a frame, `NvDsObjectMeta`.
#[derive(Clone, Copy, Debug)]
pub struct ObjectMeta<'l>(pub(super) Record, PhantomData<&'l ()>);

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
        // SAFETY: the frame has this field in every layout, and the lock is held.
        let objects = unsafe { self.list(frame.0, frame::OBJECTS, "objects") };
        objects.map(|object| object.map(|object| ObjectMeta(object, PhantomData)))
    }

    /// Returns left, top, width and height of `object`.
    pub fn rect(&self, object: ObjectMeta<'_>) -> [f32; 4] {
        // SAFETY: the object has these fields in every layout.
        RECT.map(|field| unsafe { object.0.read(object::RECT + field) })
    }

    /// Returns the fields of `object`.
    pub fn read_object(&self, object: ObjectMeta<'_>) -> FoundObject<'_> {
        let (layout, found) = (self.layout(), object.0);
        // SAFETY: the object has these fields in this layout, and the lock is held.
        unsafe {
            let parent: *const c_void = found.read(object::PARENT);
            let label: [u8; LABEL_SIZE] = found.read(layout.object_label);
            let end = label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_SIZE);
            FoundObject {
                address: found.as_ptr(),
                parent: Some(parent).filter(|parent| !parent.is_null()),
                class: found.read(object::CLASS),
                track: Some(found.read(object::ID)).filter(|&id| id != UNTRACKED_OBJECT_ID),
                confidence: found.read(object::CONFIDENCE),
                rect: RECT.map(|field| found.read(object::RECT + field)),
                rotation: layout.rotation_angle.map(|angle| found.read(object::RECT + angle)),
                label: label[..end].to_vec(),
                mask: self.read_mask(found),
            }
        }
    }

    /// # Safety
    /// `found` must be an object of the batch.
    unsafe fn read_mask(&self, found: Record) -> Option<FoundMask<'_>> {
        let at = self.layout().object_mask;
        // SAFETY: the object has these fields in this layout. The array has this many bytes, and exists as long as
        // the object, which nobody removes while the lock is held.
        unsafe {
            let data: *const f32 = found.read(at + mask::DATA);
            let bytes: u32 = found.read(at + mask::SIZE);
            if data.is_null() || !data.is_aligned() {
                return None;
            }
            let count = bytes as usize / size_of::<f32>();
            Some(FoundMask {
                width: found.read(at + mask::WIDTH),
                height: found.read(at + mask::HEIGHT),
                threshold: found.read(at + mask::THRESHOLD),
                numbers: std::slice::from_raw_parts(data, count),
            })
        }
    }
}
