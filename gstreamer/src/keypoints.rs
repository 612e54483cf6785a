// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of `GstAnalyticsKeypointMtd`, as published before GStreamer 1.30.

use std::ffi::CStr;
use std::ptr::null;

use gst::glib;

use crate::library::KeypointTable;
use crate::relations::{AnalyticsRelationMeta, added};

impl AnalyticsRelationMeta {
    /// Adds a group of points in pixels with their confidences, and returns its id. The skeleton has pairs of indices of
    /// points.
    ///
    /// # Errors
    /// If the running GStreamer has no keypoints, or if there is not enough memory.
    ///
    /// # Panics
    /// If the numbers of points and confidences differ.
    pub fn add_keypoints_group(
        &mut self,
        tag: &CStr,
        points: &[[i32; 2]],
        confidences: &[f32],
        skeleton: &[[i32; 2]],
    ) -> Result<u32, glib::BoolError> {
        /// `GST_ANALYTICS_KEYPOINT_DIMENSIONS_2D`.
        const TWO_DIMENSIONS: i32 = 2;
        assert_eq!(points.len(), confidences.len());
        let add = KeypointTable::get()?.gst_analytics_relation_meta_add_keypoints_group;
        let meta = self.as_mut();
        let (positions, pairs) = (points.as_flattened(), skeleton.as_flattened());
        // SAFETY: the metadata is writable. The function copies the text and the arrays, whose lengths it gets.
        added("keypoints", |new| unsafe {
            add(
                meta,
                tag.as_ptr(),
                TWO_DIMENSIONS,
                positions.len(),
                positions.as_ptr(),
                points.len(),
                confidences.as_ptr(),
                null(),
                pairs.len(),
                pairs.as_ptr(),
                new,
            )
        })
    }
}
