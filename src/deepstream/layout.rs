// SPDX-License-Identifier: MIT OR Apache-2.0
//! The offsets of the fields in DeepStream's structures.
//!
//! In: a version of DeepStream. Out: the offsets, in bytes, of the fields that this crate reads and writes. All of
//! DeepStream's offsets and constants are in this file; all of its functions are in [`library`](super::library).
//!
//! DeepStream's structures have no version field, and some of them differ between versions. The offsets are for
//! 64-bit systems (LP64, equal on x86-64 and AArch64), and were taken from the headers of each version:
//! `nvdsmeta.h`, `gstnvdsinfer.h`, `nvdsinfer.h`, `nvll_osd_struct.h`, `nvds_roi_meta.h`, `nvbufsurface.h`. A test
//! compiles the offsets as assertions: against NVIDIA's headers of 9.1 and, for each older layout, against a
//! transcription of its structures (tests/deepstream).

use std::ffi::{CStr, c_char, c_void};

use super::DeepStreamError;
use super::record::{Field, List};
use super::region::RegionLayout;
use super::structures::StructureSizes;
pub use super::version::Version;
use nmsfilter_core::tensor::ElementType;

/// The tag of the API type of `NvDsMeta`, the `GstMeta` that contains the batch's metadata (`NVDS_META_STRING`).
pub const META_TAG: &CStr = c"nvdsmeta";

/// `NvDsBaseMeta::meta_type` of an `NvDsBatchMeta` of video frames (`NVDS_BATCH_META`), in all versions.
pub const BATCH_META: i32 = 1;

/// `NvDsMetaPool::meta_type` of pools of `NvDsFrameMeta` (`NVDS_FRAME_META`), in all versions.
pub const FRAME_META: i32 = 2;

/// `NvDsMetaPool::meta_type` of pools of `NvDsObjectMeta` (`NVDS_OBJ_META`), in all versions.
pub const OBJECT_META: i32 = 3;

/// `NvDsMetaPool::meta_type` of pools of `NvDsUserMeta` (`NVDS_USER_META`), in all versions.
pub const USER_META: i32 = 7;

/// `NvDsBaseMeta::meta_type` of an `NvDsInferTensorMeta` (`NVDSINFER_TENSOR_OUTPUT_META`), in all versions.
pub const TENSOR_OUTPUT_META: i32 = 12;

/// `NvDsObjectMeta::object_id` of an untracked object (`UNTRACKED_OBJECT_ID`).
pub const UNTRACKED_OBJECT_ID: u64 = u64::MAX;

/// The size of `NvDsObjectMeta::obj_label`, including its final zero byte (`MAX_LABEL_SIZE`).
pub const LABEL_SIZE: usize = 128;

/// The size of an `NvDsInferLayerInfo`. The layers of a model are an array of these.
pub const LAYER_SIZE: usize = 72;

/// The maximum number of dimensions of a layer, not counting the batch dimension (`NVDSINFER_MAX_DIMS`).
pub const MAX_DIMS: usize = 8;

/// Declares the offsets of the fields whose offset is equal in all versions, and a list of these fields. Fields of one type
/// that follow one another are an array.
macro_rules! fields {
    ($($(#[$doc:meta])* $module:ident: $structure:literal {
        $($(#[$field_doc:meta])* $constant:ident: $type:ty = $($name:literal)+ @ $offset:literal,)+
    })+) => {
        $($(#[$doc])* pub mod $module {
            use super::*;

            #[doc = concat!("The kind of structures `", $structure, "`.")]
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub enum S {}

            $(
                $(#[$field_doc])*
                #[doc = concat!($("`", $name, "` "),+)]
                pub const $constant: Field<S, $type> = Field::new($offset);
            )+
        })+

        /// The fields that have one offset in all versions: the names of structure and fields in DeepStream's headers, the
        /// offset of the first, and the size of all, in bytes.
        pub const FIELDS: &[(&str, &[&str], usize, usize)] =
            &[$($(($structure, &[$($name),+], $offset, size_of::<$type>()),)+)+];
    };
}

fields! {
    /// The metadata of a batch.
    batch: "NvDsBatchMeta" {
        BASE: base::S = "base_meta" @ 0,
        NUM_FRAMES: u32 = "num_frames_in_batch" @ 44,
        /// address of a `pool` of `frame`s
        FRAME_POOL: *mut c_void = "frame_meta_pool" @ 48,
        /// address of a `pool` of `object`s
        OBJECT_POOL: *mut c_void = "obj_meta_pool" @ 56,
        /// address of a `pool` of `user` metadata
        USER_POOL: *mut c_void = "user_meta_pool" @ 80,
        FRAMES: List<frame::S> = "frame_meta_list" @ 96,
        USER_METAS: List<user::S> = "batch_user_meta_list" @ 104,
    }
    /// A pool of structures of one type.
    pool: "NvDsMetaPool" {
        TYPE: i32 = "meta_type" @ 0,
        /// the size of one structure in bytes
        ELEMENT_SIZE: u32 = "element_size" @ 8,
    }
    /// The metadata of a frame.
    frame: "NvDsFrameMeta" {
        /// the index of the muxer's pad
        PAD_INDEX: u32 = "pad_index" @ 40,
        /// the index of the frame's `surface_params`
        BATCH_ID: u32 = "batch_id" @ 44,
        /// the timestamp in nanoseconds
        TIMESTAMP: u64 = "buf_pts" @ 56,
        /// the wall-clock time in nanoseconds since 1970, or 0
        UNIX_TIME: u64 = "ntp_timestamp" @ 64,
        /// the id of the source
        SOURCE_ID: u32 = "source_id" @ 72,
        INFER_DONE: i32 = "bInferDone" @ 100,
        OBJECTS: List<object::S> = "obj_meta_list" @ 104,
        USER_METAS: List<user::S> = "frame_user_meta_list" @ 120,
        /// width and height to which the muxer has scaled the frame, or 0
        SIZE: [u32; 2] = "pipeline_width" "pipeline_height" @ 160,
    }
    /// The memory of a buffer in NVMM memory.
    surface: "NvBufSurface" {
        /// the number of `surface_params`
        BATCH_SIZE: u32 = "batchSize" @ 4,
        /// the number of `surface_params` that have a frame
        NUM_FILLED: u32 = "numFilled" @ 8,
        /// array of `surface_params`
        SURFACES: *mut c_void = "surfaceList" @ 24,
    }
    /// A frame in NVMM memory.
    surface_params: "NvBufSurfaceParams" {
        SIZE: [u32; 2] = "width" "height" @ 0,
    }
    /// Metadata of any type.
    user: "NvDsUserMeta" {
        BASE: base::S = "base_meta" @ 0,
        DATA: *mut c_void = "user_meta_data" @ 40,
    }
    /// The first field of all metadata.
    base: "NvDsBaseMeta" {
        TYPE: i32 = "meta_type" @ 8,
    }
    /// A model's outputs for one frame.
    tensor: "NvDsInferTensorMeta" {
        UNIQUE_ID: u32 = "unique_id" @ 0,
        NUM_LAYERS: u32 = "num_output_layers" @ 4,
        /// array of `layer`s
        LAYERS: *mut c_void = "output_layers_info" @ 8,
        /// array of pointers
        HOST: *const u64 = "out_buf_ptrs_host" @ 16,
        /// array of pointers
        DEVICE: *const u64 = "out_buf_ptrs_dev" @ 24,
        GPU_ID: i32 = "gpu_id" @ 32,
        NETWORK: network::S = "network_info" @ 48,
    }
    /// A model's input.
    network: "NvDsInferNetworkInfo" {
        SIZE: [u32; 2] = "width" "height" @ 0,
    }
    /// An output layer of a model. Its field `buffer` is not valid here.
    layer: "NvDsInferLayerInfo" {
        TYPE: i32 = "dataType" @ 0,
        DIMS: dims::S = "inferDims" @ 4,
        /// C string
        NAME: *const c_char = "layerName" @ 48,
    }
    /// The dimensions of a layer without the batch dimension.
    dims: "NvDsInferDims" {
        NUM_DIMS: u32 = "numDims" @ 0,
        /// of which the first `numDims` count
        DIMS: [u32; MAX_DIMS] = "d" @ 4,
        /// the product of the dimensions
        ELEMENTS: u32 = "numElements" @ 36,
    }
    /// A detection.
    object: "NvDsObjectMeta" {
        /// address of another `object`, or null
        PARENT: *mut c_void = "parent" @ 40,
        COMPONENT_ID: i32 = "unique_component_id" @ 48,
        CLASS: i32 = "class_id" @ 52,
        /// `guint64`
        ID: u64 = "object_id" @ 56,
        /// the detector's box
        DETECTOR_BOX: bbox::S = "detector_bbox_info" @ 64,
        CONFIDENCE: f32 = "confidence" @ 96,
        /// the box that trackers and displays use
        RECT: rect::S = "rect_params" @ 104,
    }
    /// A box in pixels.
    bbox: "NvBbox_Coords" {
        SIDES: [f32; 4] = "left" "top" "width" "height" @ 0,
    }
    /// A rectangle to display.
    rect: "NvOSD_RectParams" {
        SIDES: [f32; 4] = "left" "top" "width" "height" @ 0,
        BORDER_WIDTH: u32 = "border_width" @ 16,
        BORDER_COLOR: color::S = "border_color" @ 24,
        /// 0 or 1
        HAS_BACKGROUND: u32 = "has_bg_color" @ 56,
        BACKGROUND: color::S = "bg_color" @ 64,
    }
    /// The mask of an object. It covers the object's rectangle.
    mask: "NvOSD_MaskParams" {
        /// array of `float`, freed with `g_free`; null if there is no mask
        DATA: *mut f32 = "data" @ 0,
        /// the size of the array in bytes
        SIZE: u32 = "size" @ 8,
        /// `float`: pixels with a greater number belong to the object
        THRESHOLD: f32 = "threshold" @ 12,
        WIDTH: u32 = "width" @ 16,
        HEIGHT: u32 = "height" @ 20,
    }
    /// Text to display.
    text: "NvOSD_TextParams" {
        /// C string, freed with `g_free`
        TEXT: *mut c_char = "display_text" @ 0,
        X: u32 = "x_offset" @ 8,
        Y: u32 = "y_offset" @ 12,
        FONT: font::S = "font_params" @ 16,
        /// 0 or 1
        HAS_BACKGROUND: i32 = "set_bg_clr" @ 64,
        BACKGROUND: color::S = "text_bg_clr" @ 72,
    }
    /// A font.
    font: "NvOSD_FontParams" {
        /// C string, not freed
        NAME: *const c_char = "font_name" @ 0,
        SIZE: u32 = "font_size" @ 8,
        COLOR: color::S = "font_color" @ 16,
    }
    /// A color with components from 0 to 1.
    color: "NvOSD_ColorParams" {
        RGBA: [f64; 4] = "red" "green" "blue" "alpha" @ 0,
    }
}

/// The fields that differ between versions. A field is `None` if a version does not have it: at this offset, the
/// structures of such a version have padding or end before it.
#[derive(Debug, PartialEq)]
pub struct StructureLayout {
    /// The first version with this layout.
    pub first: Version,
    /// The last version with this layout.
    pub last: Version,
    /// The sizes of the structures that a batch keeps in pools.
    pub sizes: StructureSizes,
    /// `NvDsInferTensorMeta::maintain_aspect_ratio`, a `gboolean`.
    pub maintain_aspect_ratio: Option<Field<tensor::S, i32>>,
    /// `NvDsInferTensorMeta::symmetric_padding`, a `gboolean`.
    pub symmetric_padding: Option<Field<tensor::S, i32>>,
    /// `NvOSD_RectParams::rotation_angle`, a `float`: degrees, clockwise, about the rectangle's center.
    pub rotation_angle: Option<Field<rect::S, f32>>,
    /// `NvDsObjectMeta::mask_params`, a [`mask`].
    pub object_mask: Field<object::S, mask::S>,
    /// `NvDsObjectMeta::text_params`, a [`text`].
    pub object_text: Field<object::S, text::S>,
    /// `NvDsObjectMeta::obj_label`, [`LABEL_SIZE`] bytes.
    pub object_label: Field<object::S, [u8; LABEL_SIZE]>,
    /// `NvDsObjectMeta::obj_user_meta_list`, a `GList` of [`user`] metadata.
    pub object_user_metas: Field<object::S, List<user::S>>,
    /// `NvDsBaseMeta::meta_type` of an `NvDsRoiMeta` on a frame (`NVDS_ROI_META`).
    pub roi_meta: Option<i32>,
    /// The size of an `NvBufSurface`.
    pub surface_size: usize,
    /// The size of an `NvBufSurfaceParams`. [`surface::SURFACES`] is an array of these.
    pub surface_params_size: usize,
    /// The structures of regions of interest. In the versions without them, the number of the type or the place of the
    /// outputs is not known from published sources.
    pub regions: Option<RegionLayout>,
}

/// All layouts, in the order of their versions.
///
/// They were compared with the headers of these versions on x86-64: 6.0, 6.0.1, 6.1, 6.1.1, 6.2, 6.3, 6.4, 7.0,
/// 7.1, 8.0, 9.0 and 9.1.
pub const LAYOUTS: [StructureLayout; 5] = [V6_0, V6_1, V7_1, V8_0, V9_0];

const V6_0: StructureLayout = StructureLayout {
    first: Version::new(6, 0),
    last: Version::new(6, 0),
    sizes: StructureSizes { object: 544, frame: 200, user: 48 },
    maintain_aspect_ratio: None,
    symmetric_padding: None,
    rotation_angle: None,
    object_mask: Field::new(208),
    object_text: Field::new(232),
    object_label: Field::new(336),
    object_user_metas: Field::new(472),
    roi_meta: None,
    surface_size: 64,
    surface_params_size: 384,
    regions: None,
};

const V6_1: StructureLayout = StructureLayout {
    first: Version::new(6, 1),
    last: Version::new(7, 0),
    maintain_aspect_ratio: Some(Field::new(60)),
    ..V6_0
};

const V7_1: StructureLayout = StructureLayout {
    first: Version::new(7, 1),
    last: Version::new(7, 1),
    symmetric_padding: Some(Field::new(64)),
    roi_meta: Some(29),
    ..V6_1
};

const V8_0: StructureLayout = StructureLayout {
    first: Version::new(8, 0),
    last: Version::new(8, 0),
    sizes: StructureSizes { object: 544, frame: 232, user: 48 },
    roi_meta: Some(30),
    surface_size: 72,
    surface_params_size: 416,
    regions: Some(RegionLayout {
        batch_meta: 28,
        size: 240,
        frame: Field::new(176),
        scale_ratio: Field::new(184),
        offset: Field::new(200),
        user_metas: Field::new(224),
        object: Field::new(232),
    }),
    ..V7_1
};

const V9_0: StructureLayout = StructureLayout {
    first: Version::new(9, 0),
    last: Version::new(9, 1),
    sizes: StructureSizes { object: 552, frame: 232, user: 48 },
    rotation_angle: Some(Field::new(104)),
    object_mask: Field::new(216),
    object_text: Field::new(240),
    object_label: Field::new(344),
    object_user_metas: Field::new(480),
    regions: Some(RegionLayout {
        batch_meta: 28,
        size: 248,
        frame: Field::new(184),
        scale_ratio: Field::new(192),
        offset: Field::new(208),
        user_metas: Field::new(232),
        object: Field::new(240),
    }),
    ..V8_0
};

/// Returns the range of known versions as text, as in "6.0 to 9.1".
pub fn known_versions() -> String {
    versions_with(|_| true).expect("there are layouts")
}

/// Returns the range of versions whose regions of interest are known as text.
pub fn versions_with_regions() -> String {
    versions_with(|layout| layout.regions.is_some()).expect("there is such a layout")
}

/// Returns the range of versions whose layouts have a property as text; `None` if there are none.
pub(super) fn versions_with(has: impl Fn(&StructureLayout) -> bool) -> Option<String> {
    let mut layouts = LAYOUTS.iter().filter(|layout| has(layout));
    let first = layouts.next()?;
    Some(Version::range(first.first, layouts.next_back().unwrap_or(first).last))
}

impl StructureLayout {
    /// Returns the layout of `version`, if it is known.
    pub(super) fn find(version: Version) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| (layout.first..=layout.last).contains(&version))
    }

    /// Returns the layout of `version`.
    ///
    /// # Errors
    /// If the layout of this version is unknown.
    pub fn for_version(version: Version) -> Result<&'static Self, DeepStreamError> {
        Self::find(version).ok_or_else(|| {
            DeepStreamError(format!(
                "deepstream-version: this plugin knows the structures of versions {}, not of {version}; set it to a known \
                 version with equal structures, or unset it to recognize the structures by their sizes",
                known_versions()
            ))
        })
    }

    /// Parses the property `deepstream-version`; `None` if it is unset.
    ///
    /// # Errors
    /// If the text is not a version, or if the layout of this version is unknown.
    pub fn parse_version(text: Option<&str>) -> Result<Option<Version>, DeepStreamError> {
        let version = text.map(str::parse).transpose()?;
        version.map(|version| Self::for_version(version).map(|_| version)).transpose()
    }

    /// Returns the versions with this layout as text.
    pub fn versions(&self) -> String {
        Version::range(self.first, self.last)
    }
}

/// The values of `NvDsInferDataType` and the corresponding element types, in numerical order. `INT64` exists since
/// 7.1, `UINT8` since 8.0.
pub const DATA_TYPES: [(&str, ElementType); 6] = [
    ("FLOAT", ElementType::F32),
    ("HALF", ElementType::F16),
    ("INT8", ElementType::I8),
    ("INT32", ElementType::I32),
    ("INT64", ElementType::I64),
    ("UINT8", ElementType::U8),
];

/// Returns the element type for a value of `NvDsInferDataType`.
pub fn element_type(number: i32) -> ElementType {
    usize::try_from(number)
        .ok()
        .and_then(|number| DATA_TYPES.get(number))
        .map_or(ElementType::Other("a type this plugin does not know"), |&(_, element)| element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_from_6_0_to_9_1_has_one_layout() {
        for (major, minors) in [(6, 0..=4), (7, 0..=1), (8, 0..=0), (9, 0..=1)] {
            for minor in minors {
                let version = Version::new(major, minor);
                let layouts = LAYOUTS.iter().filter(|l| l.first <= version && version <= l.last);
                assert_eq!(layouts.count(), 1, "{version}");
                assert!(StructureLayout::for_version(version).is_ok());
            }
        }
    }

    #[test]
    fn the_error_of_another_version_names_the_range() {
        let known = known_versions();
        for version in [Version::new(5, 1), Version::new(9, 2), Version::new(10, 0)] {
            let error = StructureLayout::for_version(version).unwrap_err().to_string();
            let expected = format!(
                "deepstream-version: this plugin knows the structures of versions {known}, not of {version};"
            );
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
