// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `GstAnalyticsODMtd` and its related metadata: tracks and, with GStreamer 1.26, masks.
//!
//! In: relation metadata, from any element. Out: objects.

use gst::glib::translate::IntoGlib;
use gst_newer::{
    AnalyticsClassificationMtd, AnalyticsMtdRef, AnalyticsODMtd, AnalyticsRelationMeta,
    AnalyticsSegmentationMtd, RelTypes,
};

use super::merge::Merger;
use super::object::{self, Class, Confidence, Object, edges, normalized};
use super::segmentation;
use crate::bindings::strings;
use crate::regions::{ANY_RELATION, AttachedObject, objects_of};
use nmsfilter_core::geometry::OrientedBox;

/// Adds the objects of a frame of this size to `objects`, which already has the objects that were read from regions
/// of interest.
pub(super) fn read(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    objects: &mut Vec<Object>,
    merger: &mut Merger,
) {
    for meta in buffer.iter_meta::<AnalyticsRelationMeta>() {
        // Most metadata has no masks, and searching the relations of an object reads a whole row of the relation matrix.
        let has_masks = meta.iter::<AnalyticsSegmentationMtd>().next().is_some();
        let found = meta.iter::<AnalyticsClassificationMtd>().filter(is_result);
        let mut without_object: Vec<u32> = found.map(|classes| classes.id()).collect();
        let has_classes = !without_object.is_empty();
        for found in objects_of(&meta) {
            let id = found.id;
            let mut object = object(&found, frame);
            let mut parents = meta.iter_direct_related::<AnalyticsODMtd>(id, RelTypes::IS_PART_OF);
            object.parent_id = parents.next().map(|parent| parent.id().into());
            let object = merger.add(objects, object);
            if has_classes {
                let of_object =
                    meta.iter_direct_related::<AnalyticsClassificationMtd>(id, ANY_RELATION);
                let of_object: Vec<_> = of_object.filter(is_result).collect();
                without_object.retain(|id| of_object.iter().all(|classes| classes.id() != *id));
                // A region of interest has the classes, too, with their numbers.
                if object.classification.is_empty() {
                    object.classification = of_object.iter().flat_map(classes).collect();
                }
            }
            if has_masks && object.mask.is_none() {
                let mut masks =
                    meta.iter_direct_related::<AnalyticsSegmentationMtd>(id, ANY_RELATION);
                object.mask = masks.next().and_then(|mask| segmentation::read(&mask));
            }
        }
        // Beside objects, such classes may belong to any of them: other elements do not relate them.
        if objects.is_empty() {
            let of_frame = |it: &AnalyticsMtdRef<'_, _>| without_object.contains(&it.id());
            let mut found = meta.iter::<AnalyticsClassificationMtd>().filter(of_frame).peekable();
            let id = found.peek().map(|first| first.id());
            objects
                .extend(id.map(|id| self::of_frame(found.flat_map(|it| classes(&it)), id, frame)));
        }
    }
}

/// True if classes were found. DL Streamer relates the list of all labels of a detector, each with the level 0, to every
/// object.
fn is_result(found: &AnalyticsMtdRef<'_, AnalyticsClassificationMtd>) -> bool {
    (0..found.len()).any(|index| found.level(index) != 0.0)
}

/// The classes of the whole frame, as an object with the label of the first.
fn of_frame(
    classification: impl Iterator<Item = Class>,
    region_id: u32,
    frame: [u32; 2],
) -> Object {
    let classification: Vec<Class> = classification.collect();
    let best = classification.first();
    let rect = [0, 0, frame[0].into(), frame[1].into()];
    Object {
        rect,
        upright: rect,
        bounds: normalized(edges(rect), frame),
        region_id: region_id.into(),
        label: best.and_then(|best| best.label.clone()),
        confidence: best.and_then(|best| best.confidence),
        classification,
        ..Object::default()
    }
}

fn classes(found: &AnalyticsMtdRef<'_, AnalyticsClassificationMtd>) -> Vec<Class> {
    let class = |index| Class {
        label: object::label(
            found.quark(index).and_then(|quark| strings::of_quark(quark.into_glib())),
        ),
        label_id: None,
        confidence: Some(Confidence::F32(found.level(index))),
        attribute_name: None,
    };
    (0..found.len()).map(class).collect()
}

fn object(found: &AttachedObject, frame: [u32; 2]) -> Object {
    let &AttachedObject { rectangle: rect, angle, track, .. } = found;
    let is_upright = angle == 0.0;
    let [x, y, w, h] = rect.map(|side| side as f32);
    let bounds = if is_upright {
        edges(rect)
    } else {
        let center = [x + w / 2.0, y + h / 2.0];
        let bounds = OrientedBox { center, size: [w, h], angle }.bounds();
        [bounds.x1, bounds.y1, bounds.x2, bounds.y2].map(f64::from)
    };
    Object {
        rect,
        upright: rect,
        bounds: normalized(bounds, frame),
        region_id: found.id.into(),
        track_id: track.map(|track| track.id),
        is_predicted: track.is_some_and(|track| track.is_lost),
        label: object::label(strings::of_quark(found.label_quark)),
        confidence: Some(Confidence::F32(found.confidence)),
        rotation: (!is_upright).then_some(angle),
        ..Object::default()
    }
}
