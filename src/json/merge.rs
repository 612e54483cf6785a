// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges objects that a buffer has twice: as a region of interest and as an object of the analytics metadata.
//!
//! In: the objects of the regions, followed by the objects of the analytics metadata, one by one. Out: each object
//! once, with the fields of both. `nmsfilter` and DL Streamer give a region the id of its analytics object, unless
//! another region had this id before.

use super::object::{Confidence, Object};

/// The greatest difference between two rectangles that belong to one object, in pixels. When a frame is scaled, the
/// rectangles of regions and of analytics objects are rounded differently.
const TOLERANCE: u64 = 2;

/// Adds objects of the analytics metadata to the objects of the regions.
#[derive(Debug, Default)]
pub(super) struct Merger {
    /// For each region: whether its analytics object was found.
    is_merged: Vec<bool>,
    /// The index after the region that was found last. The search starts there, because both lists usually have one
    /// order.
    next: usize,
}

impl Merger {
    /// Starts with the first `regions` objects as the regions.
    pub fn begin(&mut self, regions: usize) {
        self.is_merged.clear();
        self.is_merged.resize(regions, false);
        self.next = 0;
    }

    /// Looks for the region that `found` belongs to, and adds the fields of `found` to it. If no region matches,
    /// `found` becomes an object. Returns the region or the new object.
    pub fn add<'o>(&mut self, objects: &'o mut Vec<Object>, found: Object) -> &'o mut Object {
        let regions = self.is_merged.len();
        let is_match = |index: &usize| !self.is_merged[*index] && is_same(&objects[*index], &found);
        let order = || (self.next..regions).chain(0..self.next);
        let has_id = |index: &usize| objects[*index].region_id == found.region_id;
        let same = order().filter(has_id).find(is_match).or_else(|| order().find(is_match));
        let Some(index) = same else {
            objects.push(found);
            return objects.last_mut().expect("it was added");
        };
        self.is_merged[index] = true;
        self.next = (index + 1) % regions;
        let region = &mut objects[index];
        // `parent_id` of `found` is the id of an analytics object, so it is valid only if regions have the ids of
        // analytics objects.
        if region.region_id == found.region_id {
            region.parent_id = region.parent_id.or(found.parent_id);
        }
        region.track_id = region.track_id.or(found.track_id);
        region.is_predicted |= found.is_predicted;
        region.confidence = region.confidence.or(found.confidence);
        if region.rotation.is_none() && found.rotation.is_some() {
            (region.rect, region.rotation) = (found.rect, found.rotation);
        }
        region
    }
}

/// Returns whether a region and an analytics object are one object.
fn is_same(region: &Object, found: &Object) -> bool {
    let is_near =
        |a: &[i64; 4], b: &[i64; 4]| a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= TOLERANCE);
    let is_confidence =
        |confidence: Confidence| found.confidence.is_some_and(|b| b.is_near(confidence));
    // Before GStreamer 1.26, the analytics metadata has the upright box of an oriented box.
    (is_near(&region.rect, &found.rect) || is_near(&region.upright, &found.rect))
        && region.label == found.label
        && region.confidence.is_none_or(is_confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(region_id: i64, left: i64, confidence: f32) -> Object {
        let rect = [left, 20, 30, 40];
        let label = Some("person".into());
        let confidence = Some(Confidence::F32(confidence));
        Object { rect, upright: rect, region_id, label, confidence, ..Object::default() }
    }

    fn merged(regions: &[Object], found: &[Object]) -> Vec<Object> {
        let (mut objects, mut merger) = (regions.to_vec(), Merger::default());
        merger.begin(objects.len());
        for found in found {
            merger.add(&mut objects, found.clone());
        }
        objects
    }

    #[test]
    fn a_region_with_the_id_of_an_object_is_that_object() {
        let regions = [object(0, 1, 0.9), object(1, 2, 0.8)];
        let tracked = Object { track_id: Some(7), ..object(1, 2, 0.8) };
        let expected = [regions[0].clone(), tracked.clone()];
        assert_eq!(merged(&regions, &[object(0, 1, 0.9), tracked]), expected);
    }

    #[test]
    fn ids_that_differ_do_not_double_an_object() {
        let regions = [object(5, 1, 0.9), object(6, 1, 0.9), object(7, 50, 0.8)];
        let found = [object(0, 1, 0.9), object(1, 1, 0.9), object(2, 50, 0.8)];
        assert_eq!(merged(&regions, &found), regions);
        // The id of a parent then is not the id of a region.
        let part = Object { parent_id: Some(0), ..found[1].clone() };
        assert_eq!(merged(&regions, &[found[0].clone(), part]), regions);
        // Another order gives this result, too.
        assert_eq!(merged(&regions, &[found[2].clone(), found[0].clone()]), regions);
    }

    #[test]
    fn objects_of_one_id_that_differ_are_two() {
        let region = object(0, 1, 0.9);
        for other in [
            object(0, 100, 0.9),
            object(0, 1, 0.8),
            Object { label: Some("dog".into()), ..region.clone() },
        ] {
            let both = [region.clone(), other.clone()];
            assert_eq!(merged(&both[..1], &both[1..]), both);
        }
    }

    #[test]
    fn a_region_that_was_scaled_has_the_confidence_of_its_object() {
        let region = Object { confidence: None, ..object(0, 1, 0.9) };
        let scaled = Object { rect: [2, 19, 30, 41], ..object(0, 1, 0.9) };
        assert_eq!(merged(&[region], &[scaled]), [object(0, 1, 0.9)]);
    }
}
