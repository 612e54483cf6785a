// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the running GStreamer has.

use std::fmt;
use std::sync::OnceLock;

use crate::library::{
    BatchTable, CustomMetaTable, KeypointTable, Missing, OrientedTable, RelationTable,
    SegmentationTable, TensorTable, UniqueListTable,
};

/// What the running GStreamer has: for each part, that it is there or why it is missing. The text names what is missing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// `GstCustomMeta` (1.20), as which the plugins' tensors and marks are attached.
    pub custom_meta: Result<(), Missing>,
    /// `GstAnalyticsRelationMeta` with objects, classes and tracks (1.24).
    pub relations: Result<(), Missing>,
    /// Oriented boxes of objects (1.26).
    pub oriented: Result<(), Missing>,
    /// `GstAnalyticsSegmentationMtd` (1.26).
    pub segmentation: Result<(), Missing>,
    /// `GstTensorMeta` (1.26).
    pub tensors: Result<(), Missing>,
    /// Tensors in caps (1.28).
    pub tensor_caps: Result<(), Missing>,
    /// `GstAnalyticsBatchMeta` (1.28).
    pub batches: Result<(), Missing>,
    /// `GstAnalyticsKeypointMtd` (1.30).
    pub keypoints: Result<(), Missing>,
}

impl Capabilities {
    /// What the running GStreamer has, which must be initialized, or loading plugins. Its libraries are searched in the
    /// first call only.
    pub fn get() -> &'static Self {
        static ALL: OnceLock<Capabilities> = OnceLock::new();
        ALL.get_or_init(|| Self {
            custom_meta: CustomMetaTable::get().map(|_| ()),
            relations: RelationTable::get().map(|_| ()),
            oriented: OrientedTable::get().map(|_| ()),
            segmentation: SegmentationTable::get().map(|_| ()),
            tensors: TensorTable::get().map(|_| ()),
            tensor_caps: UniqueListTable::get().map(|_| ()),
            batches: BatchTable::get().map(|_| ()),
            keypoints: KeypointTable::get().map(|_| ()),
        })
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { custom_meta, relations, oriented, segmentation, .. } = self;
        let Self { tensors, tensor_caps, batches, keypoints, .. } = self;
        let parts = [custom_meta, relations, oriented, segmentation];
        let parts = parts.into_iter().chain([tensors, tensor_caps, batches, keypoints]);
        let missing: Vec<String> =
            parts.filter_map(|it| it.err()).map(|it| it.to_string()).collect();
        if missing.is_empty() {
            f.write_str("GStreamer has all that is used")
        } else {
            f.write_str(&missing.join("; "))
        }
    }
}
