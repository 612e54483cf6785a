// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a frame that tensors belong to.
//!
//! In: the fields `region` and `parent` of the plugin's own tensor metadata. Out: a [`TensorRegion`].

use gst::glib;

use super::InputError;
use crate::bindings::field_name::FieldName;
pub use nmsfilter_core::geometry::FrameRegion;

static REGION: FieldName = FieldName::new("region");
static PARENT: FieldName = FieldName::new("parent");

/// The part of a frame on which a model ran: a tile, a region of interest, or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorRegion {
    /// The pixels of the frame.
    pub pixels: FrameRegion,
    /// The id of the region of interest or object of the buffer that has these pixels. `None` for tiles.
    pub parent: Option<i32>,
}

impl TensorRegion {
    /// Reads the fields, or returns `None` if there is no field `region`.
    ///
    /// # Errors
    /// If `region` is not an array of four int, of which width and height are above 0 and the others are not negative,
    /// or if `parent` is not an int.
    pub(super) fn read(structure: &gst::StructureRef) -> Result<Option<Self>, InputError> {
        let Some(value) = REGION.value(structure) else { return Ok(None) };
        let parent = PARENT.value(structure).map(|value| {
            let wrong = |_| format!("expected parent of type int, got {}", value.type_());
            value.get::<i32>().map_err(wrong)
        });
        let parent = parent.transpose().map_err(InputError::Malformed)?;
        let wrong = |got: &dyn std::fmt::Display| {
            InputError::Malformed(format!(
                "expected region as an array of four int: left and top, 0 or more, width and height, 1 or more; got \
                 {got}"
            ))
        };
        let array: gst::ArrayRef<'_> = value.get().map_err(|_| wrong(&value.type_()))?;
        let side = |value: &glib::SendValue| u32::try_from(value.get::<i32>().ok()?).ok();
        let sides: Option<Vec<u32>> = array.as_slice().iter().map(side).collect();
        match sides.as_deref() {
            Some(&[left, top, width, height]) if width > 0 && height > 0 => {
                Ok(Some(Self { pixels: FrameRegion { left, top, width, height }, parent }))
            }
            _ => Err(wrong(&format_args!("{value:?}"))),
        }
    }

    /// Writes the fields. Sides beyond the range of int are limited to it; no frame is so large.
    pub(super) fn write(&self, structure: &mut gst::StructureRef) {
        let FrameRegion { left, top, width, height } = self.pixels;
        let sides = [left, top, width, height].map(|side| i32::try_from(side).unwrap_or(i32::MAX));
        structure.set(REGION.name(), gst::Array::new(sides));
        if let Some(parent) = self.parent {
            structure.set(PARENT.name(), parent);
        }
    }
}
