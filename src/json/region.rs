// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of `GstVideoRegionOfInterestMeta`.
//!
//! In: regions of interest of any element, with the structures that `nmsfilter` attaches (`output/roi.rs`), those of DL
//! Streamer (`detection`, `object_id`), or none. Out: objects. A structure of which a field is missing, of another type,
//! or contradicts the others is not read.

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;

use super::object::{self, Keypoints, Label, Number, Object, edges, normalized};
use super::runs::{self, Mask};
use crate::geometry::OrientedBox;
use crate::output::{oriented_pixels, roi_type};
use crate::text;

/// Adds an object for each region of a frame of this size.
pub(super) fn read(buffer: &gst::BufferRef, frame: [u32; 2], objects: &mut Vec<Object>) {
    let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
    objects.extend(regions.map(|region| read_region(&region, frame)));
}

fn read_region(region: &gst::MetaRef<'_, VideoRegionOfInterestMeta>, frame: [u32; 2]) -> Object {
    let (x, y, w, h) = region.rect();
    let rect = [x, y, w, h].map(i64::from);
    let mut object = Object {
        rect,
        upright: rect,
        bounds: Some(normalized(edges(rect), frame)),
        region_id: region.id().into(),
        // 0 if there is none, although a region can have that id.
        parent_id: Some(region.parent_id().into()).filter(|&parent| parent > 0),
        label: object::label(text::of_quark(roi_type(region))),
        ..Object::default()
    };
    for structure in region.params() {
        match structure.name().as_str() {
            "detection" => read_detection(structure, &mut object),
            "keypoints" => object.keypoints = keypoints(structure),
            "mask" => object.mask = mask(structure),
            // Of DL Streamer.
            "object_id" => {
                let id = structure.get::<i32>("id").ok().and_then(|id| u64::try_from(id).ok());
                object.track_id = id.filter(|&id| id > 0);
            }
            _ => {}
        }
    }
    object
}

fn read_detection(structure: &gst::StructureRef, object: &mut Object) {
    let number = |name: &str| structure.get::<f64>(name).ok();
    if let [Some(x_min), Some(y_min), Some(x_max), Some(y_max)] =
        ["x_min", "y_min", "x_max", "y_max"].map(number)
    {
        object.bounds = Some([x_min, y_min, x_max, y_max]);
    }
    object.confidence = number("confidence").map(Number::F64);
    object.label_id = structure.get::<i32>("label_id").ok();
    if object.label.is_none() {
        object.label = label(structure, "label");
    }
    if let [Some(angle), Some(x), Some(y), Some(width), Some(height)] =
        ["rotation", "center-x", "center-y", "width", "height"].map(number)
    {
        let [x, y, width, height, angle] = [x, y, width, height, angle].map(|n| n as f32);
        let oriented = OrientedBox { center: [x, y], size: [width, height], angle };
        let (rect, rotation) = oriented_pixels(&oriented);
        object.rect = rect.map(i64::from);
        object.rotation = Some(rotation);
    }
}

/// A text that is not empty. One that is not UTF-8 is not read: GStreamer makes none.
fn label(structure: &gst::StructureRef, field: &str) -> Option<Label> {
    let text = text::of_value(structure.value(field).ok()?).ok()??;
    (!text.is_empty()).then(|| text.to_owned().into())
}

fn keypoints(structure: &gst::StructureRef) -> Option<Keypoints> {
    let number = |name: &str| {
        structure.get::<i32>(name).ok().and_then(|number| usize::try_from(number).ok())
    };
    let (count, components) = (number("count")?, number("components")?);
    let data = structure.get::<glib::Bytes>("data").ok()?;
    let bytes = count.checked_mul(components)?.checked_mul(size_of::<f32>())?;
    if !(2..=3).contains(&components) || data.len() != bytes {
        return None;
    }
    let numbers = data.chunks_exact(size_of::<f32>()).map(bytemuck::pod_read_unaligned).collect();
    let layout = label(structure, "layout").unwrap_or_default();
    Some(Keypoints { layout, components, numbers })
}

fn mask(structure: &gst::StructureRef) -> Option<Mask> {
    let side =
        |name: &str| structure.get::<i32>(name).ok().and_then(|number| u32::try_from(number).ok());
    let edge = |name: &str| structure.get::<f64>(name).ok();
    let [left, top] = [edge("left")?, edge("top")?];
    let rect = [left, top, edge("right")? - left, edge("bottom")? - top];
    let size = [side("width")?, side("height")?];
    runs::area(size)?;
    let data = structure.get::<glib::Bytes>("data").ok()?;
    let [width, height] = size.map(|side| side as usize);
    let stride = width.div_ceil(8);
    if data.len() != stride * height {
        return None;
    }
    let pixels = data.chunks_exact(stride).flat_map(|row| {
        (0..width).map(move |column| row[column / 8] & (0x80 >> (column % 8)) != 0)
    });
    Some(Mask { rect, size, runs: runs::runs(pixels) })
}
