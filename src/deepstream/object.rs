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
use super::layout::{LABEL_SIZE, UNTRACKED_OBJECT_ID, bbox, color, font, mask, object, rect, text};
use super::record::Record;

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
    /// angles](super::layout::StructureLayout::rotation_angle).
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
            let added = NonNull::new(added).ok_or_else(|| {
                DeepStreamError(
                    "DeepStream has no room for another object: nvds_acquire_obj_meta_from_pool returned null"
                        .into(),
                )
            })?;
            let added: ObjectMeta<'_> = Record::new(added);
            added.write(object::COMPONENT_ID, new.component_id);
            added.write(object::CLASS, new.class);
            added.write(object::ID, UNTRACKED_OBJECT_ID);
            added.write(object::CONFIDENCE, new.confidence);
            added.part(object::DETECTOR_BOX).write(bbox::SIDES, new.rect);
            let rect = added.part(object::RECT);
            rect.write(rect::SIDES, new.rect);
            rect.write(rect::BORDER_WIDTH, 3);
            rect.part(rect::BORDER_COLOR).write(color::RGBA, new.colors.border);
            rect.write(rect::HAS_BACKGROUND, u32::from(new.colors.background.is_some()));
            if let Some(background) = new.colors.background {
                rect.part(rect::BACKGROUND).write(color::RGBA, background);
            }
            if let Some(rotation_angle) = layout.rotation_angle {
                rect.write(rotation_angle, new.rotation_angle);
            }
            if let Some(new_mask) = new_mask {
                add_mask(added.part(layout.object_mask), new_mask);
            }

            let label = truncated(new.label, LABEL_SIZE - 1);
            let field = added.at(layout.object_label).cast::<u8>();
            field.copy_from_nonoverlapping(label.as_ptr(), label.len());
            field.add(label.len()).write(0);

            let text = added.part(layout.object_text);
            let label = glib::ffi::g_strndup(new.label.as_ptr().cast(), new.label.len());
            text.write(text::TEXT, label);
            text.write(text::X, left as u32);
            text.write(text::Y, (top - 10.0) as u32);
            let font = text.part(text::FONT);
            font.write(font::NAME, FONT.as_ptr());
            font.write(font::SIZE, 11);
            font.part(font::COLOR).write(color::RGBA, WHITE);
            text.write(text::HAS_BACKGROUND, 1);
            text.part(text::BACKGROUND).write(color::RGBA, BLACK);
            let parent = parent.map_or(null_mut(), Record::as_ptr);
            (library.nvds_add_obj_meta_to_frame)(frame.as_ptr(), added.as_ptr(), parent);
        }
        Ok(())
    }

    /// Returns whether `frame` has an object with the component, class and rectangle of `wanted`, and with this parent.
    pub fn has_object(
        &self,
        frame: FrameMeta<'_>,
        wanted: &NewObject<'_>,
        parent: Option<ObjectMeta<'_>>,
    ) -> bool {
        let parent = parent.map_or(null_mut(), Record::as_ptr);
        self.object_list(frame).flatten().any(|found| {
            found.read(object::COMPONENT_ID) == wanted.component_id
                && found.read(object::CLASS) == wanted.class
                && found.read(object::PARENT) == parent
                && self.rect(found) == wanted.rect
        })
    }
}

/// Writes the mask of an object, in the form that nvinfer uses.
///
/// # Safety
/// `added` must be of a new object that is not in a list yet.
unsafe fn add_mask(added: Record<'_, mask::S>, new: ObjectMask<'_>) {
    let ObjectMask { width, height, is_set } = new;
    let size = width as usize * height as usize * size_of::<f32>();
    let Ok(bytes) = u32::try_from(size) else { return };
    // SAFETY: the array has an element per pixel, and is allocated with g_malloc, as DeepStream, which frees it, expects.
    unsafe {
        let data = glib::ffi::g_malloc(size).cast::<f32>();
        let pixels = (0..height).flat_map(|row| (0..width).map(move |column| (column, row)));
        for (index, (column, row)) in pixels.enumerate() {
            data.add(index).write(if is_set(column, row) { 1.0 } else { 0.0 });
        }
        added.write(mask::DATA, data);
        added.write(mask::SIZE, bytes);
        added.write(mask::THRESHOLD, 0.5);
        added.write(mask::WIDTH, width);
        added.write(mask::HEIGHT, height);
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
