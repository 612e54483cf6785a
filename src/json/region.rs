// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts regions of interest to objects.

use super::object::{self, Class, Confidence, Keypoints, Label, Object, edges, normalized};
use super::runs::{self, MaskRuns};
use crate::output::oriented_pixels;
use crate::regions::{self, AttachedClass, AttachedKeypoints, AttachedMask, AttachedRegion};

/// Adds an object for each region of interest of a frame of this size.
pub(super) fn read(buffer: &gst::BufferRef, frame: [u32; 2], objects: &mut Vec<Object>) {
    objects.extend(regions::iter(buffer).map(|region| object(&region, frame)));
}

fn object(region: &AttachedRegion<'_>, frame: [u32; 2]) -> Object {
    let upright = region.rectangle.map(i64::from);
    let detection_label = || {
        // GStreamer itself only writes UTF-8, so a string with other bytes is ignored.
        let label = region.detection_label?.to_str().ok()?;
        (!label.is_empty()).then(|| Label::from(label.to_owned()))
    };
    let rotated = region.oriented.as_ref().map(oriented_pixels);
    Object {
        rect: rotated.map_or(upright, |(rect, _)| rect.map(i64::from)),
        upright,
        bounds: region.edges.unwrap_or_else(|| normalized(edges(upright), frame)),
        region_id: region.id.into(),
        parent_id: Some(region.parent_id.into()).filter(|&parent| parent >= 0),
        track_id: region.track_id.and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0),
        is_predicted: region.is_predicted,
        label: object::label(Some(region.label)).or_else(detection_label),
        label_id: region.class,
        confidence: region.confidence.map(Confidence::F64),
        rotation: rotated.map(|(_, angle)| angle),
        keypoints: region.keypoints.map(keypoints),
        mask: region.mask.and_then(mask),
        classification: region.classes().map(class).collect(),
    }
}

fn class(class: AttachedClass<'_>) -> Class {
    Class {
        label: class.label.map(|label| label.to_string_lossy().into_owned().into()),
        label_id: class.class,
        confidence: class.confidence.map(Confidence::F64),
        attribute_name: class.attribute.map(|name| name.to_string_lossy().into_owned().into()),
    }
}

fn keypoints(points: AttachedKeypoints<'_>) -> Keypoints {
    Keypoints {
        layout: points.layout().to_string_lossy().into_owned().into(),
        components: if points.has_visibility() { 3 } else { 2 },
        numbers: points.numbers().to_vec(),
    }
}

fn mask(AttachedMask { width, height, edges, bytes, .. }: AttachedMask<'_>) -> Option<MaskRuns> {
    let size = [width, height];
    runs::area(size)?;
    let width = width as usize;
    let pixels = bytes.chunks_exact(width.div_ceil(8)).flat_map(|row| {
        (0..width).map(move |column| row[column / 8] & (0x80 >> (column % 8)) != 0)
    });
    let [left, top, right, bottom] = edges;
    Some(MaskRuns::new([left, top, right - left, bottom - top], size, runs::runs(pixels)))
}
