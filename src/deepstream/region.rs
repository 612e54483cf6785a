// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions of interest: parts of frames that nvdspreprocess has cut out, and the outputs of models for them.
//!
//! In: a locked batch. Out: its regions. nvdspreprocess attaches them to the batch, as a `std::vector` of `NvDsRoiMeta`.
//! nvinfer attaches outputs to each of them, with `input-tensor-meta=1`.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::DeepStreamError;
use super::batch::{FrameMeta, LockedBatch, MAX_LIST, type_of};
use super::found_object::ObjectMeta;
use super::layout::{batch, rect, user};
use super::record::{Field, List, Record};

/// `GstNvDsPreProcessBatchMeta::roi_vector`. A `std::vector` of libstdc++ begins with the addresses of its first element
/// and of its end.
pub const REGIONS: usize = 32;

/// The kind of structures `NvDsRoiMeta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Region {}

/// `NvDsRoiMeta::roi`, with which the structure begins.
pub const ROI: Field<Region, rect::S> = Field::new(0);

/// The structures of regions of interest in some versions.
#[derive(Debug, PartialEq)]
pub struct RegionLayout {
    /// `NvDsBaseMeta::meta_type` of a `GstNvDsPreProcessBatchMeta` (`NVDS_PREPROCESS_BATCH_META`).
    pub batch_meta: i32,
    /// The size of an `NvDsRoiMeta`.
    pub size: usize,
    /// `frame_meta`.
    pub frame: Field<Region, *mut c_void>,
    /// `scale_ratio_x` and `scale_ratio_y`.
    pub scale_ratio: Field<Region, [f64; 2]>,
    /// `offset_left` and `offset_top`.
    pub offset: Field<Region, [f64; 2]>,
    /// `roi_user_meta_list`.
    pub user_metas: Field<Region, List<user::S>>,
    /// `object_meta`.
    pub object: Field<Region, *mut c_void>,
}

/// A region of interest, `NvDsRoiMeta`.
#[derive(Clone, Copy, Debug)]
pub struct RegionMeta<'l> {
    pub(super) record: Record<'l, Region>,
    pub(super) layout: &'static RegionLayout,
}

/// How a region was scaled: `region = (model - offset) / ratio`, for x and y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionScaling {
    /// Pixels of the model's input per pixel of the region.
    pub ratio: [f64; 2],
    /// Pixels of the model's input before the region.
    pub offset: [f64; 2],
}

impl LockedBatch<'_> {
    /// Returns the regions of interest of all frames, in the order in which they were attached; none if their layout is
    /// not known.
    ///
    /// # Errors
    /// If the metadata is damaged.
    pub fn regions(&self) -> Result<Vec<RegionMeta<'_>>, DeepStreamError> {
        let mut regions = Vec::new();
        let Some(layout) = &self.layout().regions else { return Ok(regions) };
        let version = self.version();
        for meta in self.list(self.0.batch, batch::USER_METAS, "user metadata") {
            let meta = meta?;
            if type_of(meta) != layout.batch_meta {
                continue;
            }
            let data = NonNull::new(meta.read(user::DATA));
            let data =
                data.ok_or_else(|| DeepStreamError::null(version, "a GstNvDsPreProcessBatchMeta"))?;
            // SAFETY: metadata of this type has a vector there.
            let [begin, end]: [usize; 2] = unsafe { data.byte_add(REGIONS).cast().read() };
            let bytes = end.wrapping_sub(begin);
            if end < begin || bytes % layout.size != 0 || bytes / layout.size > MAX_LIST {
                return Err(DeepStreamError::damaged(
                    version,
                    format_args!(
                        "regions of interest have {bytes} bytes; expected a multiple of {}",
                        layout.size
                    ),
                ));
            }
            let first = NonNull::new(std::ptr::with_exposed_provenance_mut::<c_void>(begin));
            let Some(first) = first.filter(|_| bytes > 0) else { continue };
            regions.extend((0..bytes / layout.size).map(|index| {
                // SAFETY: the vector has this many elements of this size.
                let record = unsafe { Record::new(first.byte_add(index * layout.size)) };
                RegionMeta { record, layout }
            }));
        }
        Ok(regions)
    }

    /// Returns left, top, width and height of `region`.
    pub fn region_rect(&self, region: RegionMeta<'_>) -> [f32; 4] {
        region.record.part(ROI).read(rect::SIDES)
    }

    /// Returns how `region` was scaled.
    pub fn region_scaling(&self, region: RegionMeta<'_>) -> RegionScaling {
        let RegionMeta { record, layout } = region;
        RegionScaling { ratio: record.read(layout.scale_ratio), offset: record.read(layout.offset) }
    }

    /// True if `region` is a part of `frame`.
    pub fn is_in_frame(&self, region: RegionMeta<'_>, frame: FrameMeta<'_>) -> bool {
        region.record.read(region.layout.frame) == frame.as_ptr()
    }

    /// True if `region` is `object`.
    pub fn is_object(&self, region: RegionMeta<'_>, object: ObjectMeta<'_>) -> bool {
        region.record.read(region.layout.object) == object.as_ptr()
    }
}
