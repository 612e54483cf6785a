// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds objects to frames.
//!
//! In: a [`NewObject`]. Out: an `NvDsObjectMeta` on a frame of a locked batch, with the fields that nvinfer also
//! sets.

use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};

use gst::glib;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch};
use super::found_object::ObjectMeta;
use super::layout::{
    LABEL_SIZE, UNTRACKED_OBJECT_ID, bbox, color, font, frame, mask, object, rect, text,
};
use super::record::Record;

/// The offsets of the four numbers in a structure of [`layout`](super::layout): a box, a rectangle, a color.
const BOX: [usize; 4] = [bbox::LEFT, bbox::TOP, bbox::WIDTH, bbox::HEIGHT];
pub(super) const RECT: [usize; 4] = [rect::LEFT, rect::TOP, rect::WIDTH, rect::HEIGHT];
const COLOR: [usize; 4] = [color::RED, color::GREEN, color::BLUE, color::ALPHA];

/// An object to add to a frame.
#[derive(Clone, Copy, Debug)]
pub struct NewObject<'a> {
    /// The id of the element that ran the model.
    pub component_id: i32,
    /// The class.
    pub class: i32,
    /// The score.
    pub confidence: f32,
    /// Left, top, width and height in the muxer's coordinates.
    pub rect: [f32; 4],
    /// The angle by which `rect` is rotated about its center, in degrees, clockwise. Ignored in versions [without
    /// angles](LockedBatch::has_rotation).
    pub rotation_angle: f32,
    /// The name of the class.
    pub label: &'a str,
    /// The colors of the rectangle.
    pub colors: ObjectColors,
}

/// The colors with which nvdsosd draws an object's rectangle: red, green, blue and alpha from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectColors {
    /// The color of the border.
    pub border: [f64; 4],
    /// The color of the area, if it is filled.
    pub background: Option<[f64; 4]>,
}

impl Default for ObjectColors {
    /// Returns nvinfer's defaults: a red border.
    fn default() -> Self {
        Self { border: [1.0, 0.0, 0.0, 1.0], background: None }
    }
}

/// The mask of an object. Its pixels cover the object's rectangle.
#[derive(Clone, Copy)]
pub struct ObjectMask<'a> {
    /// The number of pixels per row.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
    /// Returns whether the pixel in this column and row belongs to the object.
    pub is_set: &'a dyn Fn(u32, u32) -> bool,
}

impl LockedBatch<'_> {
    /// Adds an object to `frame`, with the border and the text that nvinfer gives to its objects. `parent` is the
    /// object of the frame in which it was found.
    ///
    /// Fields that this function does not set are zero. The object is added immediately after it was acquired,
    /// because nvdsosd draws every acquired object.
    ///
    /// # Errors
    /// If DeepStream does not return an object.
    pub fn add_object(
        &self,
        frame: FrameMeta<'_>,
        new: &NewObject<'_>,
        new_mask: Option<ObjectMask<'_>>,
        parent: Option<ObjectMeta<'_>>,
    ) -> Result<(), DeepStreamError> {
        const BLACK: [f64; 4] = [0.0, 0.0, 0.0, 1.0];
        const WHITE: [f64; 4] = [1.0; 4];
        const FONT: &CStr = c"Serif";
        let library = self.0.library;
        let layout = self.layout();
        let [left, top, ..] = new.rect;
        // SAFETY: the lock is held. The object is new, is not in a list yet, and has these fields in this layout.
        // Its text is allocated with g_malloc, as DeepStream expects, and the font's name is static.
        unsafe {
            let added = (library.nvds_acquire_obj_meta_from_pool)(self.0.batch.as_ptr());
            let added = Record(NonNull::new(added).ok_or(DeepStreamError::NoObject)?);
            added.write(object::COMPONENT_ID, new.component_id);
            added.write(object::CLASS, new.class);
            added.write(object::ID, UNTRACKED_OBJECT_ID);
            added.write(object::CONFIDENCE, new.confidence);
            added.write_four(object::DETECTOR_BOX, BOX, new.rect);
            added.write_four(object::RECT, RECT, new.rect);
            added.write(object::RECT + rect::BORDER_WIDTH, 3u32);
            added.write_four(object::RECT + rect::BORDER_COLOR, COLOR, new.colors.border);
            added.write(
                object::RECT + rect::HAS_BACKGROUND,
                u32::from(new.colors.background.is_some()),
            );
            if let Some(background) = new.colors.background {
                added.write_four(object::RECT + rect::BACKGROUND, COLOR, background);
            }
            if let Some(rotation_angle) = layout.rotation_angle {
                added.write(object::RECT + rotation_angle, new.rotation_angle);
            }
            if let Some(new_mask) = new_mask {
                self.add_mask(added, new_mask);
            }

            let label = truncated(new.label, LABEL_SIZE - 1);
            let field = added.at(layout.object_label).cast::<u8>();
            field.copy_from_nonoverlapping(label.as_ptr(), label.len());
            field.add(label.len()).write(0);

            let at = layout.object_text;
            let text = glib::ffi::g_strndup(new.label.as_ptr().cast(), new.label.len());
            added.write(at + text::TEXT, text);
            added.write(at + text::X, left as u32);
            added.write(at + text::Y, (top - 10.0) as u32);
            added.write(at + text::FONT + font::NAME, FONT.as_ptr());
            added.write(at + text::FONT + font::SIZE, 11u32);
            added.write_four(at + text::FONT + font::COLOR, COLOR, WHITE);
            added.write(at + text::HAS_BACKGROUND, 1i32);
            added.write_four(at + text::BACKGROUND, COLOR, BLACK);
            let parent = parent.map_or(null_mut(), |parent| parent.0.as_ptr());
            (library.nvds_add_obj_meta_to_frame)(frame.0.as_ptr(), added.as_ptr(), parent);
        }
        Ok(())
    }

    /// Adds a mask to an object, in the form that nvinfer uses.
    ///
    /// # Safety
    /// `added` must be a new object that is not in a list yet.
    unsafe fn add_mask(&self, added: Record, new: ObjectMask<'_>) {
        let ObjectMask { width, height, is_set } = new;
        let size = width as usize * height as usize * size_of::<f32>();
        let Ok(bytes) = u32::try_from(size) else { return };
        let at = self.layout().object_mask;
        // SAFETY: the object has these fields in this layout. The array has an element per pixel, and is allocated
        // with g_malloc, as DeepStream, which frees it, expects.
        unsafe {
            let data = glib::ffi::g_malloc(size).cast::<f32>();
            let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (column, row)));
            for (index, (column, row)) in pixels.enumerate() {
                data.add(index).write(if is_set(column, row) { 1.0 } else { 0.0 });
            }
            added.write(at + mask::DATA, data);
            added.write(at + mask::SIZE, bytes);
            added.write(at + mask::THRESHOLD, 0.5f32);
            added.write(at + mask::WIDTH, width);
            added.write(at + mask::HEIGHT, height);
        }
    }

    /// Returns whether objects have an angle in this version.
    pub fn has_rotation(&self) -> bool {
        self.layout().rotation_angle.is_some()
    }

    /// Returns whether `frame` has an object with the component, class and rectangle of `wanted`, and with this parent.
    pub fn has_object(
        &self,
        frame: FrameMeta<'_>,
        wanted: &NewObject<'_>,
        parent: Option<ObjectMeta<'_>>,
    ) -> bool {
        let parent = parent.map_or(null_mut(), |parent| parent.0.as_ptr());
        // SAFETY: the frame and its objects have these fields in every layout.
        unsafe {
            self.list(frame.0, frame::OBJECTS, "objects").flatten().any(|found| {
                found.read::<i32>(object::COMPONENT_ID) == wanted.component_id
                    && found.read::<i32>(object::CLASS) == wanted.class
                    && found.read::<*mut std::ffi::c_void>(object::PARENT) == parent
                    && RECT.map(|field| found.read::<f32>(object::RECT + field)) == wanted.rect
            })
        }
    }
}

/// Returns the longest part of `text` that has at most `most` bytes and ends between characters.
fn truncated(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::truncated;

    #[test]
    fn labels_are_truncated_between_characters() {
        assert_eq!(truncated("person", 127), "person");
        assert_eq!(truncated("person", 3), "per");
        assert_eq!(truncated("aä", 2), "a");
        assert_eq!(truncated("aä", 3), "aä");
    }
}
