// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects, classes and tracks in `GstAnalyticsRelationMeta` (1.24). Objects can be oriented since 1.26.

use gst::glib;
use gst::glib::ffi::GQuark;
use gst::glib::translate::{IntoGlib, from_glib};

use crate::library::{MtdType, OrientedTable, RelationTable};
use crate::relations::{AnalyticsMtd, AnalyticsMtdRef, AnalyticsRelationMeta, added, table};

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $function:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl AnalyticsMtd for $name {
            fn mtd_type() -> Option<MtdType> {
                // SAFETY: the function has no preconditions.
                RelationTable::get().ok().map(|table| unsafe { (table.$function)() })
            }
        }
    };
}

kind! {
    /// An object: a box with a class and a score.
    AnalyticsODMtd, gst_analytics_od_mtd_get_mtd_type
}
kind! {
    /// Classes with scores.
    AnalyticsClassificationMtd, gst_analytics_cls_mtd_get_mtd_type
}
kind! {
    /// The track of an object.
    AnalyticsTrackingMtd, gst_analytics_tracking_mtd_get_mtd_type
}

/// The box of an object in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "left, top, width and height")]
pub struct Location {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

/// The box of an object in pixels, before it is rotated about its center.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "left, top, width, height, and the angle in radians")]
pub struct OrientedLocation {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
    pub r: f32,
}

/// A track. A time is `None` if it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The number of the track.
    pub id: u64,
    /// When the object was seen first.
    pub first_seen: Option<gst::ClockTime>,
    /// When the object was seen last.
    pub last_seen: Option<gst::ClockTime>,
    /// True if the object was not detected on this frame.
    pub is_lost: bool,
}

impl AnalyticsMtdRef<'_, AnalyticsODMtd> {
    /// The class, if there is one.
    pub fn obj_type(&self) -> Option<glib::Quark> {
        // SAFETY: the metadata has an object with this id.
        let quark = unsafe { (table().gst_analytics_od_mtd_get_obj_type)(&self.handle()) };
        // SAFETY: other numbers than 0 are quarks.
        (quark != 0).then(|| unsafe { from_glib(quark) })
    }

    /// The score; 0 if there is none.
    pub fn confidence_level(&self) -> f32 {
        let mut confidence = 0.0;
        // SAFETY: the metadata has an object with this id.
        unsafe {
            (table().gst_analytics_od_mtd_get_confidence_lvl)(&self.handle(), &mut confidence)
        };
        confidence
    }

    /// The box; of an oriented object, its box before the rotation.
    pub fn location(&self) -> Option<Location> {
        let Location { mut x, mut y, mut w, mut h } = Location::default();
        let (get, mut score) = (table().gst_analytics_od_mtd_get_location, 0.0);
        // SAFETY: the metadata has an object with this id. The function writes the five numbers.
        let is_found = unsafe { get(&self.handle(), &mut x, &mut y, &mut w, &mut h, &mut score) };
        (is_found != glib::ffi::GFALSE).then_some(Location { x, y, w, h })
    }

    /// The box and its angle, which is 0 before GStreamer 1.26.
    pub fn oriented_location(&self) -> Option<OrientedLocation> {
        let Ok(table) = OrientedTable::get() else {
            let Location { x, y, w, h } = self.location()?;
            return Some(OrientedLocation { x, y, w, h, r: 0.0 });
        };
        let OrientedLocation { mut x, mut y, mut w, mut h, mut r } = OrientedLocation::default();
        let (get, mut score) = (table.gst_analytics_od_mtd_get_oriented_location, 0.0);
        // SAFETY: the metadata has an object with this id. The function writes the six numbers.
        let is_found =
            unsafe { get(&self.handle(), &mut x, &mut y, &mut w, &mut h, &mut r, &mut score) };
        (is_found != glib::ffi::GFALSE).then_some(OrientedLocation { x, y, w, h, r })
    }
}

impl AnalyticsMtdRef<'_, AnalyticsClassificationMtd> {
    /// The number of classes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        // SAFETY: the metadata has classes with this id.
        unsafe { (table().gst_analytics_cls_mtd_get_length)(&self.handle()) }
    }

    /// The score of a class.
    ///
    /// # Panics
    /// If there is no class with this index.
    pub fn level(&self, index: usize) -> f32 {
        assert!(index < self.len());
        // SAFETY: as above; the index is less than the number of classes.
        unsafe { (table().gst_analytics_cls_mtd_get_level)(&self.handle(), index) }
    }

    /// The name of a class, if there is one.
    ///
    /// # Panics
    /// If there is no class with this index.
    pub fn quark(&self, index: usize) -> Option<glib::Quark> {
        assert!(index < self.len());
        // SAFETY: as above; other numbers than 0 are quarks.
        unsafe {
            let quark = (table().gst_analytics_cls_mtd_get_quark)(&self.handle(), index);
            (quark != 0).then(|| from_glib(quark))
        }
    }
}

impl AnalyticsMtdRef<'_, AnalyticsTrackingMtd> {
    /// The track, if it can be read.
    pub fn info(&self) -> Option<Track> {
        let (mut id, mut first, mut last, mut is_lost) = (0, u64::MAX, u64::MAX, 0);
        let get = table().gst_analytics_tracking_mtd_get_info;
        // SAFETY: the metadata has a track with this id. The function writes the four numbers.
        let is_found = unsafe { get(&self.handle(), &mut id, &mut first, &mut last, &mut is_lost) };
        // SAFETY: every number is a time, or stands for none.
        let [first_seen, last_seen] = [first, last].map(|time| unsafe { from_glib(time) });
        let is_lost = is_lost != glib::ffi::GFALSE;
        (is_found != glib::ffi::GFALSE).then_some(Track { id, first_seen, last_seen, is_lost })
    }
}

impl AnalyticsRelationMeta {
    /// Adds an object with a box in pixels, and returns its id.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn add_od_mtd(
        &mut self,
        class: glib::Quark,
        x: i32,
        y: i32,
        w: i32,
        h: i32,
        confidence: f32,
    ) -> Result<u32, glib::BoolError> {
        let (add, meta) = (table().gst_analytics_relation_meta_add_od_mtd, self.as_mut());
        // SAFETY: the metadata is writable.
        added("an object", |new| unsafe {
            add(meta, class.into_glib(), x, y, w, h, confidence, new)
        })
    }

    /// Adds an object with a box that is rotated about its center, and returns its id.
    ///
    /// # Errors
    /// If the running GStreamer has no oriented boxes, or if there is not enough memory.
    pub fn add_oriented_od_mtd(
        &mut self,
        class: glib::Quark,
        OrientedLocation { x, y, w, h, r }: OrientedLocation,
        confidence: f32,
    ) -> Result<u32, glib::BoolError> {
        let add = OrientedTable::get()?.gst_analytics_relation_meta_add_oriented_od_mtd;
        let meta = self.as_mut();
        // SAFETY: the metadata is writable.
        added("an oriented object", |new| unsafe {
            add(meta, class.into_glib(), x, y, w, h, r, confidence, new)
        })
    }

    /// Adds classes with their scores, and returns their id.
    ///
    /// # Errors
    /// If there is not enough memory.
    ///
    /// # Panics
    /// If the numbers of scores and classes differ.
    pub fn add_cls_mtd(
        &mut self,
        scores: &[f32],
        classes: &[glib::Quark],
    ) -> Result<u32, glib::BoolError> {
        assert_eq!(scores.len(), classes.len());
        let (add, meta) = (table().gst_analytics_relation_meta_add_cls_mtd, self.as_mut());
        // `glib::Quark` has the representation of `GQuark`.
        let quarks = classes.as_ptr().cast::<GQuark>().cast_mut();
        // SAFETY: the metadata is writable. The function only reads both arrays, which are equally long.
        added("classes", |new| unsafe {
            add(meta, scores.len(), scores.as_ptr().cast_mut(), quarks, new)
        })
    }

    /// Adds a track whose object was seen first at this time, and returns its id.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn add_tracking_mtd(
        &mut self,
        track: u64,
        first_seen: impl Into<Option<gst::ClockTime>>,
    ) -> Result<u32, glib::BoolError> {
        let (add, meta) = (table().gst_analytics_relation_meta_add_tracking_mtd, self.as_mut());
        let first_seen = first_seen.into().into_glib();
        // SAFETY: the metadata is writable.
        added("a track", |new| unsafe { add(meta, track, first_seen, new) })
    }

    /// Writes when the object of the track with this id was seen last, and that it is lost. Without effect if no track has
    /// the id.
    pub fn update_track(&mut self, id: u32, last_seen: gst::ClockTime, is_lost: bool) {
        let Some(track) = self.mtd::<AnalyticsTrackingMtd>(id) else { return };
        let mut handle = track.handle();
        // The address for writing, which the handle of a shared reference is not.
        handle.meta = self.as_mut();
        // SAFETY: the metadata is writable, and has a track with this id.
        unsafe {
            let update = table().gst_analytics_tracking_mtd_update_last_seen;
            update(&mut handle, last_seen.into_glib());
            if is_lost {
                (table().gst_analytics_tracking_mtd_set_lost)(&mut handle);
            }
        }
    }
}
