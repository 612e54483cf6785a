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

use std::ffi::CStr;

use super::region::RegionLayout;
use super::structures::{StructureLayoutError, StructureSizes};
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

/// A field of a structure, by its names in DeepStream's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureField {
    /// The name of the structure.
    pub structure: &'static str,
    /// The name of the field.
    pub name: &'static str,
    /// The offset of the field in bytes.
    pub offset: usize,
}

/// Declares the offsets of the fields whose offset is equal in all versions, and a list of these fields.
macro_rules! fields {
    ($($(#[$doc:meta])* $module:ident: $structure:literal {
        $($(#[$field_doc:meta])* $constant:ident = $name:literal @ $offset:literal,)+
    })+) => {
        $($(#[$doc])* pub mod $module {
            $($(#[$field_doc])* #[doc = concat!("`", $name, "`")] pub const $constant: usize = $offset;)+
        })+

        /// The fields that have one offset in all versions.
        pub const FIELDS: &[StructureField] = &[
            $($(StructureField { structure: $structure, name: $name, offset: $offset },)+)+
        ];
    };
}

fields! {
    /// The metadata of a batch.
    batch: "NvDsBatchMeta" {
        /// `base`
        BASE = "base_meta" @ 0,
        /// `guint`
        NUM_FRAMES = "num_frames_in_batch" @ 44,
        /// address of a `pool` of `frame`s
        FRAME_POOL = "frame_meta_pool" @ 48,
        /// address of a `pool` of `object`s
        OBJECT_POOL = "obj_meta_pool" @ 56,
        /// address of a `pool` of `user` metadata
        USER_POOL = "user_meta_pool" @ 80,
        /// `GList` of `frame`s
        FRAMES = "frame_meta_list" @ 96,
        /// `GList` of `user` metadata
        USER_METAS = "batch_user_meta_list" @ 104,
    }
    /// A pool of structures of one type.
    pool: "NvDsMetaPool" {
        /// `NvDsMetaType`
        TYPE = "meta_type" @ 0,
        /// `guint`: the size of one structure in bytes
        ELEMENT_SIZE = "element_size" @ 8,
    }
    /// The metadata of a frame.
    frame: "NvDsFrameMeta" {
        /// `guint`: the index of the muxer's pad
        PAD_INDEX = "pad_index" @ 40,
        /// `guint`: the index of the frame's `surface_params`
        BATCH_ID = "batch_id" @ 44,
        /// `guint64`: the timestamp in nanoseconds
        TIMESTAMP = "buf_pts" @ 56,
        /// `guint64`: the wall-clock time in nanoseconds since 1970, or 0
        UNIX_TIME = "ntp_timestamp" @ 64,
        /// `guint`: the id of the source
        SOURCE_ID = "source_id" @ 72,
        /// `gboolean`
        INFER_DONE = "bInferDone" @ 100,
        /// `GList` of `object`s
        OBJECTS = "obj_meta_list" @ 104,
        /// `GList` of `user` metadata
        USER_METAS = "frame_user_meta_list" @ 120,
        /// `guint`: the width to which the muxer has scaled the frame, or 0
        WIDTH = "pipeline_width" @ 160,
        /// `guint`: the height to which the muxer has scaled the frame, or 0
        HEIGHT = "pipeline_height" @ 164,
    }
    /// The memory of a buffer in NVMM memory.
    surface: "NvBufSurface" {
        /// `uint32_t`: the number of `surface_params`
        BATCH_SIZE = "batchSize" @ 4,
        /// `uint32_t`: the number of `surface_params` that have a frame
        NUM_FILLED = "numFilled" @ 8,
        /// array of `surface_params`
        SURFACES = "surfaceList" @ 24,
    }
    /// A frame in NVMM memory.
    surface_params: "NvBufSurfaceParams" {
        /// `uint32_t`
        WIDTH = "width" @ 0,
        /// `uint32_t`
        HEIGHT = "height" @ 4,
    }
    /// Metadata of any type.
    user: "NvDsUserMeta" {
        /// `base`
        BASE = "base_meta" @ 0,
        /// pointer
        DATA = "user_meta_data" @ 40,
    }
    /// The first field of all metadata.
    base: "NvDsBaseMeta" {
        /// `NvDsMetaType`
        TYPE = "meta_type" @ 8,
    }
    /// A model's outputs for one frame.
    tensor: "NvDsInferTensorMeta" {
        /// `guint`
        UNIQUE_ID = "unique_id" @ 0,
        /// `guint`
        NUM_LAYERS = "num_output_layers" @ 4,
        /// array of `layer`s
        LAYERS = "output_layers_info" @ 8,
        /// array of pointers
        HOST = "out_buf_ptrs_host" @ 16,
        /// array of pointers
        DEVICE = "out_buf_ptrs_dev" @ 24,
        /// `gint`
        GPU_ID = "gpu_id" @ 32,
        /// `network`
        NETWORK = "network_info" @ 48,
    }
    /// A model's input.
    network: "NvDsInferNetworkInfo" {
        /// `unsigned int`
        WIDTH = "width" @ 0,
        /// `unsigned int`
        HEIGHT = "height" @ 4,
    }
    /// An output layer of a model. Its field `buffer` is not valid here.
    layer: "NvDsInferLayerInfo" {
        /// `NvDsInferDataType`
        TYPE = "dataType" @ 0,
        /// `dims`
        DIMS = "inferDims" @ 4,
        /// C string
        NAME = "layerName" @ 48,
    }
    /// The dimensions of a layer without the batch dimension.
    dims: "NvDsInferDims" {
        /// `unsigned int`
        NUM_DIMS = "numDims" @ 0,
        /// array of [`MAX_DIMS`](super::MAX_DIMS) `unsigned int`
        DIMS = "d" @ 4,
        /// `unsigned int`: the product of the dimensions
        ELEMENTS = "numElements" @ 36,
    }
    /// A detection.
    object: "NvDsObjectMeta" {
        /// address of another `object`, or null
        PARENT = "parent" @ 40,
        /// `gint`
        COMPONENT_ID = "unique_component_id" @ 48,
        /// `gint`
        CLASS = "class_id" @ 52,
        /// `guint64`
        ID = "object_id" @ 56,
        /// `bbox`: the detector's box
        DETECTOR_BOX = "detector_bbox_info" @ 64,
        /// `gfloat`
        CONFIDENCE = "confidence" @ 96,
        /// `rect`: the box that trackers and displays use
        RECT = "rect_params" @ 104,
    }
    /// A box in pixels.
    bbox: "NvBbox_Coords" {
        /// `float`
        LEFT = "left" @ 0,
        /// `float`
        TOP = "top" @ 4,
        /// `float`
        WIDTH = "width" @ 8,
        /// `float`
        HEIGHT = "height" @ 12,
    }
    /// A rectangle to display.
    rect: "NvOSD_RectParams" {
        /// `float`
        LEFT = "left" @ 0,
        /// `float`
        TOP = "top" @ 4,
        /// `float`
        WIDTH = "width" @ 8,
        /// `float`
        HEIGHT = "height" @ 12,
        /// `unsigned int`
        BORDER_WIDTH = "border_width" @ 16,
        /// `color`
        BORDER_COLOR = "border_color" @ 24,
        /// `unsigned int`, 0 or 1
        HAS_BACKGROUND = "has_bg_color" @ 56,
        /// `color`
        BACKGROUND = "bg_color" @ 64,
    }
    /// The mask of an object. It covers the object's rectangle.
    mask: "NvOSD_MaskParams" {
        /// array of `float`, freed with `g_free`; null if there is no mask
        DATA = "data" @ 0,
        /// `unsigned int`: the size of the array in bytes
        SIZE = "size" @ 8,
        /// `float`: pixels with a greater number belong to the object
        THRESHOLD = "threshold" @ 12,
        /// `unsigned int`
        WIDTH = "width" @ 16,
        /// `unsigned int`
        HEIGHT = "height" @ 20,
    }
    /// Text to display.
    text: "NvOSD_TextParams" {
        /// C string, freed with `g_free`
        TEXT = "display_text" @ 0,
        /// `unsigned int`
        X = "x_offset" @ 8,
        /// `unsigned int`
        Y = "y_offset" @ 12,
        /// `font`
        FONT = "font_params" @ 16,
        /// `int`, 0 or 1
        HAS_BACKGROUND = "set_bg_clr" @ 64,
        /// `color`
        BACKGROUND = "text_bg_clr" @ 72,
    }
    /// A font.
    font: "NvOSD_FontParams" {
        /// C string, not freed
        NAME = "font_name" @ 0,
        /// `unsigned int`
        SIZE = "font_size" @ 8,
        /// `color`
        COLOR = "font_color" @ 16,
    }
    /// A color with components from 0 to 1.
    color: "NvOSD_ColorParams" {
        /// `double`
        RED = "red" @ 0,
        /// `double`
        GREEN = "green" @ 8,
        /// `double`
        BLUE = "blue" @ 16,
        /// `double`
        ALPHA = "alpha" @ 24,
    }
}

/// The fields that differ between versions. A field is `None` if a version does not have it: at this offset, the
/// structures of such a version have padding or end before it.
#[derive(Debug, PartialEq, Eq)]
pub struct StructureLayout {
    /// The first version with this layout.
    pub first: Version,
    /// The last version with this layout.
    pub last: Version,
    /// The sizes of the structures that a batch keeps in pools.
    pub sizes: StructureSizes,
    /// `NvDsInferTensorMeta::maintain_aspect_ratio`, a `gboolean`.
    pub maintain_aspect_ratio: Option<usize>,
    /// `NvDsInferTensorMeta::symmetric_padding`, a `gboolean`.
    pub symmetric_padding: Option<usize>,
    /// `NvOSD_RectParams::rotation_angle`, a `float`: degrees, clockwise, about the rectangle's center.
    pub rotation_angle: Option<usize>,
    /// `NvDsObjectMeta::mask_params`, a [`mask`].
    pub object_mask: usize,
    /// `NvDsObjectMeta::text_params`, a [`text`].
    pub object_text: usize,
    /// `NvDsObjectMeta::obj_label`, [`LABEL_SIZE`] bytes.
    pub object_label: usize,
    /// `NvDsObjectMeta::obj_user_meta_list`, a `GList` of [`user`] metadata.
    pub object_user_metas: usize,
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
    object_mask: 208,
    object_text: 232,
    object_label: 336,
    object_user_metas: 472,
    roi_meta: None,
    surface_size: 64,
    surface_params_size: 384,
    regions: None,
};

const V6_1: StructureLayout = StructureLayout {
    first: Version::new(6, 1),
    last: Version::new(7, 0),
    maintain_aspect_ratio: Some(60),
    ..V6_0
};

const V7_1: StructureLayout = StructureLayout {
    first: Version::new(7, 1),
    last: Version::new(7, 1),
    symmetric_padding: Some(64),
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
        frame: 176,
        scale_ratio: [184, 192],
        offset: [200, 208],
        user_metas: 224,
        object: 232,
    }),
    ..V7_1
};

const V9_0: StructureLayout = StructureLayout {
    first: Version::new(9, 0),
    last: Version::new(9, 1),
    sizes: StructureSizes { object: 552, frame: 232, user: 48 },
    rotation_angle: Some(104),
    object_mask: 216,
    object_text: 240,
    object_label: 344,
    object_user_metas: 480,
    regions: Some(RegionLayout {
        batch_meta: 28,
        size: 248,
        frame: 184,
        scale_ratio: [192, 200],
        offset: [208, 216],
        user_metas: 232,
        object: 240,
    }),
    ..V8_0
};

/// Returns the range of known versions as text, as in "6.0 to 9.1".
pub fn known_versions() -> String {
    versions_with(|_| true)
}

/// Returns the range of versions whose regions of interest are known as text.
pub fn versions_with_regions() -> String {
    versions_with(|layout| layout.regions.is_some())
}

fn versions_with(has: fn(&&StructureLayout) -> bool) -> String {
    let mut layouts = LAYOUTS.iter().filter(has);
    let first = layouts.next().expect("some version has it");
    Version::range(first.first, layouts.next_back().unwrap_or(first).last)
}

impl StructureLayout {
    /// Returns the layout of `version`.
    ///
    /// # Errors
    /// If the layout of this version is unknown.
    pub fn for_version(version: Version) -> Result<&'static Self, StructureLayoutError> {
        LAYOUTS
            .iter()
            .find(|layout| (layout.first..=layout.last).contains(&version))
            .ok_or(StructureLayoutError::Unknown { version })
    }

    /// Parses a version.
    ///
    /// # Errors
    /// If the text is not a version, or if the layout of this version is unknown.
    pub fn parse_version(text: &str) -> Result<Version, StructureLayoutError> {
        let version = text.parse()?;
        Self::for_version(version)?;
        Ok(version)
    }

    /// Returns the versions with this layout as text.
    pub fn versions(&self) -> String {
        Version::range(self.first, self.last)
    }

    /// All fields that this layout has, including [`FIELDS`].
    pub fn fields(&self) -> impl Iterator<Item = StructureField> {
        let field = |structure, name, offset: Option<usize>| {
            offset.map(|offset| StructureField { structure, name, offset })
        };
        let (tensor, object) = ("NvDsInferTensorMeta", "NvDsObjectMeta");
        let own = [
            field(tensor, "maintain_aspect_ratio", self.maintain_aspect_ratio),
            field(tensor, "symmetric_padding", self.symmetric_padding),
            field("NvOSD_RectParams", "rotation_angle", self.rotation_angle),
            field(object, "mask_params", Some(self.object_mask)),
            field(object, "text_params", Some(self.object_text)),
            field(object, "obj_label", Some(self.object_label)),
            field(object, "obj_user_meta_list", Some(self.object_user_metas)),
        ];
        FIELDS.iter().copied().chain(own.into_iter().flatten())
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
