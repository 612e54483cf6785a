// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions, and where they are found.
//!
//! In: nothing. Out: tables of functions, one for each part of GStreamer that a version has introduced, or [`Missing`]. A
//! table has all of its functions or does not exist. The types of the functions are those of GStreamer's headers, and are
//! equal in all versions that have them.

use std::ffi::{c_char, c_float, c_int, c_uint, c_void};
use std::fmt;
use std::sync::OnceLock;

use gst::ffi::{GstBuffer, GstCaps, GstClockTime, GstMetaInfo, GstStructure};
use gst::glib::ffi::{GQuark, GType, gboolean};
use gst::glib::gobject_ffi::GValue;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use crate::ffi::*;

/// The reason why the running GStreamer cannot do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, such as a type of metadata.
    what: &'static str,
    /// The minor version of GStreamer that has it.
    since: u32,
    library: &'static str,
}

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, since, library } = self;
        let running = minor();
        if running < *since {
            write!(f, "GStreamer 1.{running} has no {what}, which is new in 1.{since}")
        } else {
            write!(f, "{what} is in GStreamer's library {library}, which is not installed")
        }
    }
}

impl From<Missing> for gst::glib::BoolError {
    fn from(missing: Missing) -> Self {
        gst::glib::bool_error!("{missing}")
    }
}

static HIDDEN_FROM: OnceLock<u32> = OnceLock::new();

/// Hides what GStreamer has since 1.`minor` and later, so that tests see what an older GStreamer would do. Without effect
/// on what has been used already.
#[doc(hidden)]
pub fn hide_from(minor: u32) {
    let _ = HIDDEN_FROM.set(minor);
}

/// The running GStreamer's minor version, without what is hidden.
fn minor() -> u32 {
    let (_, minor, ..) = gst::version();
    // An odd number is the development version before the next even one.
    let minor = minor.next_multiple_of(2);
    HIDDEN_FROM.get().map_or(minor, |&hidden| minor.min(hidden.saturating_sub(2)))
}

/// GStreamer's core library, to which every program is linked.
const CORE: &str = "libgstreamer-1.0.so.0";
/// The video library, to which the plugins are linked.
const VIDEO: &str = "libgstvideo-1.0.so.0";
/// The analytics library, of GStreamer's bad plugins.
const ANALYTICS: &str = "libgstanalytics-1.0.so.0";

/// Opens a library, which stays open: first one that the process has loaded, then the file beside GStreamer's core
/// library, then one that the dynamic loader finds.
fn open(name: &'static str) -> Option<&'static Library> {
    /// Opens a library only if it is already loaded.
    const RTLD_NOLOAD: c_int = 4;
    static OPENED: [OnceLock<Option<Library>>; 3] = [const { OnceLock::new() }; 3];
    let index = [CORE, VIDEO, ANALYTICS].iter().position(|known| *known == name)?;
    let library = OPENED[index].get_or_init(|| {
        let beside = folder().filter(|_| name == ANALYTICS).map(|it| format!("{it}/{name}"));
        // SAFETY: the initializers of GStreamer's libraries have no preconditions.
        let open = |file: &str, flags| unsafe { Library::open(Some(file), RTLD_LAZY | flags) };
        open(name, RTLD_NOLOAD)
            .or_else(|_| open(beside.as_deref().unwrap_or(name), RTLD_LOCAL))
            .or_else(|_| open(name, RTLD_LOCAL))
            .ok()
    });
    library.as_ref()
}

/// The folder of GStreamer's core library, in which the process has the versions that belong together.
fn folder() -> Option<&'static str> {
    let mut info = DlInfo { file: std::ptr::null(), rest: [std::ptr::null(); 3] };
    // SAFETY: the function is in the core library, and `info` has the layout of `Dl_info`.
    let is_found = unsafe { dladdr(gst::ffi::gst_version as *const c_void, &mut info) };
    if is_found == 0 || info.file.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a library ends with a zero byte, and stays as long as the library is loaded.
    let file = unsafe { std::ffi::CStr::from_ptr(info.file) }.to_str().ok()?;
    file.strip_suffix(CORE)?.strip_suffix('/')
}

/// Makes GStreamer load the plugin again, where it would take its elements and their pads from the registry, after its
/// libraries have been replaced, removed or added: these depend on what the running GStreamer has.
pub fn load_again_after_updates(plugin: &gst::Plugin) {
    if let Some(folder) = folder() {
        let flags = gst::PluginDependencyFlags::empty();
        plugin.add_dependency(&[], &[folder], &[CORE, VIDEO, ANALYTICS], flags);
    }
}

/// `Dl_info`: the file with an address, and what is not used here.
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    rest: [*const c_void; 3],
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
}

/// Returns whether metadata of this kind are as large as this crate's structure, to which a later version may add fields.
///
/// # Safety
/// The address is null, or that of a structure.
unsafe fn is_as_large(info: *const GstMetaInfo, size: usize) -> bool {
    // SAFETY: this function requires it.
    unsafe { info.as_ref() }.is_some_and(|info| info.size >= size)
}

/// Declares a table of functions: what it is for, the library, and the minor version that has introduced them. If a
/// structure of metadata is read directly, the function that returns its size is named, too.
macro_rules! table {
    ($table:ident, $what:literal, $library:ident, $since:literal $(, $info:ident: $structure:ty)?: $(
        fn $function:ident($($argument:ty),*) $(-> $result:ty)?;
    )*) => {
        pub(crate) struct $table {
            $(pub $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            pub(crate) fn get() -> Result<&'static Self, Missing> {
                static TABLE: OnceLock<Option<$table>> = OnceLock::new();
                TABLE.get_or_init(Self::find).as_ref().ok_or(Missing {
                    what: $what,
                    since: $since,
                    library: $library,
                })
            }

            fn find() -> Option<Self> {
                if minor() < $since {
                    return None;
                }
                let library = open($library)?;
                // SAFETY: the fields have the types that the functions have in GStreamer's headers.
                unsafe {
                    $(
                        let info: unsafe extern "C" fn() -> *const GstMetaInfo =
                            *library.get(stringify!($info).as_bytes()).ok()?;
                        if !is_as_large(info(), size_of::<$structure>()) {
                            return None;
                        }
                    )?
                    Some(Self { $($function: *library.get(stringify!($function).as_bytes()).ok()?,)* })
                }
            }
        }
    };
}

/// The type of a kind of metadata in `GstAnalyticsRelationMeta`.
pub(crate) type MtdType = usize;
type Relation = *mut GstAnalyticsRelationMeta;
type Mtd = *const GstAnalyticsMtd;
type NewMtd = *mut GstAnalyticsMtd;

table! { FormatTable, "list of video formats", VIDEO, 18:
    fn gst_video_formats_raw(*mut c_uint) -> *const c_int;
}

table! { CustomMetaTable, "GstCustomMeta", CORE, 20:
    fn gst_meta_register_custom(
        *const c_char, *const *const c_char, Option<unsafe extern "C" fn()>, *mut c_void, Option<unsafe extern "C" fn()>
    ) -> *const GstMetaInfo;
    fn gst_meta_info_is_custom(*const GstMetaInfo) -> gboolean;
    fn gst_buffer_add_custom_meta(*mut GstBuffer, *const c_char) -> *mut c_void;
    fn gst_custom_meta_get_structure(*mut c_void) -> *mut GstStructure;
}

table! { RelationTable, "GstAnalyticsRelationMeta", ANALYTICS, 24:
    fn gst_analytics_relation_meta_api_get_type() -> GType;
    fn gst_buffer_add_analytics_relation_meta(*mut GstBuffer) -> Relation;
    fn gst_buffer_add_analytics_relation_meta_full(
        *mut GstBuffer, *mut GstAnalyticsRelationMetaInitParams
    ) -> Relation;
    fn gst_analytics_relation_get_length(*const GstAnalyticsRelationMeta) -> usize;
    fn gst_analytics_relation_meta_get_relation(*const GstAnalyticsRelationMeta, c_uint, c_uint) -> c_uint;
    fn gst_analytics_relation_meta_set_relation(Relation, c_uint, c_uint, c_uint) -> gboolean;
    fn gst_analytics_relation_meta_get_mtd(Relation, c_uint, MtdType, NewMtd) -> gboolean;
    fn gst_analytics_relation_meta_iterate(Relation, *mut *mut c_void, MtdType, NewMtd) -> gboolean;
    fn gst_analytics_relation_meta_get_direct_related(
        Relation, c_uint, c_uint, MtdType, *mut *mut c_void, NewMtd
    ) -> gboolean;
    fn gst_analytics_od_mtd_get_mtd_type() -> MtdType;
    fn gst_analytics_relation_meta_add_od_mtd(
        Relation, GQuark, c_int, c_int, c_int, c_int, c_float, NewMtd
    ) -> gboolean;
    fn gst_analytics_od_mtd_get_obj_type(Mtd) -> GQuark;
    fn gst_analytics_od_mtd_get_confidence_lvl(Mtd, *mut c_float) -> gboolean;
    fn gst_analytics_od_mtd_get_location(
        Mtd, *mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_float
    ) -> gboolean;
    fn gst_analytics_cls_mtd_get_mtd_type() -> MtdType;
    fn gst_analytics_relation_meta_add_cls_mtd(
        Relation, usize, *mut c_float, *mut GQuark, NewMtd
    ) -> gboolean;
    fn gst_analytics_cls_mtd_get_length(Mtd) -> usize;
    fn gst_analytics_cls_mtd_get_level(Mtd, usize) -> c_float;
    fn gst_analytics_cls_mtd_get_quark(Mtd, usize) -> GQuark;
    fn gst_analytics_tracking_mtd_get_mtd_type() -> MtdType;
    fn gst_analytics_relation_meta_add_tracking_mtd(Relation, u64, GstClockTime, NewMtd) -> gboolean;
    fn gst_analytics_tracking_mtd_get_info(
        Mtd, *mut u64, *mut GstClockTime, *mut GstClockTime, *mut gboolean
    ) -> gboolean;
    fn gst_analytics_tracking_mtd_update_last_seen(NewMtd, GstClockTime) -> gboolean;
    fn gst_analytics_tracking_mtd_set_lost(NewMtd) -> gboolean;
}

table! { OrientedTable, "oriented GstAnalyticsODMtd", ANALYTICS, 26:
    fn gst_analytics_relation_meta_add_oriented_od_mtd(
        Relation, GQuark, c_int, c_int, c_int, c_int, c_float, c_float, NewMtd
    ) -> gboolean;
    fn gst_analytics_od_mtd_get_oriented_location(
        Mtd, *mut c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_float, *mut c_float
    ) -> gboolean;
}

table! { SegmentationTable, "GstAnalyticsSegmentationMtd", ANALYTICS, 26:
    fn gst_analytics_segmentation_mtd_get_mtd_type() -> MtdType;
    fn gst_analytics_relation_meta_add_segmentation_mtd(
        Relation, *mut GstBuffer, c_int, usize, *mut c_uint, c_int, c_int, c_uint, c_uint, NewMtd
    ) -> gboolean;
    fn gst_analytics_segmentation_mtd_get_mask(
        Mtd, *mut c_int, *mut c_int, *mut c_uint, *mut c_uint
    ) -> *mut GstBuffer;
    fn gst_analytics_segmentation_mtd_get_region_count(Mtd) -> usize;
    fn gst_analytics_segmentation_mtd_get_region_id(Mtd, usize) -> c_uint;
}

table! { TensorTable, "GstTensorMeta", ANALYTICS, 26, gst_tensor_meta_get_info: GstTensorMeta:
    fn gst_tensor_meta_api_get_type() -> GType;
    fn gst_buffer_add_tensor_meta(*mut GstBuffer) -> *mut GstTensorMeta;
    fn gst_tensor_meta_set(*mut GstTensorMeta, c_uint, *mut *mut GstTensor);
    fn gst_tensor_alloc(usize) -> *mut GstTensor;
    fn gst_tensor_copy(*const GstTensor) -> *mut GstTensor;
    fn gst_tensor_free(*mut GstTensor);
}

table! { UniqueListTable, "tensors in caps", CORE, 28:
    fn gst_value_unique_list_get_type() -> GType;
    fn gst_value_unique_list_get_size(*const GValue) -> c_uint;
    fn gst_value_unique_list_get_value(*const GValue, c_uint) -> *const GValue;
}

table! { BatchTable, "GstAnalyticsBatchMeta", ANALYTICS, 28, gst_analytics_batch_meta_get_info: GstAnalyticsBatchMeta:
    fn gst_analytics_batch_meta_api_get_type() -> GType;
    fn gst_buffer_add_analytics_batch_meta(*mut GstBuffer) -> *mut GstAnalyticsBatchMeta;
    fn gst_analytics_batch_stream_get_caps(*mut GstAnalyticsBatchStream) -> *mut GstCaps;
}

table! { KeypointTable, "GstAnalyticsKeypointMtd", ANALYTICS, 30:
    fn gst_analytics_relation_meta_add_keypoints_group(
        Relation, *const c_char, c_int, usize, *const c_int, usize, *const c_float, *const u8, usize, *const c_int,
        NewMtd
    ) -> gboolean;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_is_smaller_than_its_structure_is_not_read() {
        let [smaller, equal, larger] = [24, 32, 40].map(|size| {
            // SAFETY: a structure of numbers, addresses and optional functions can be all zero.
            let mut info: GstMetaInfo = unsafe { std::mem::zeroed() };
            info.size = size;
            // SAFETY: the structure is there.
            unsafe { is_as_large(&info, size_of::<GstTensorMeta>()) }
        });
        assert_eq!([smaller, equal, larger], [false, true, true]);
        // SAFETY: null is allowed.
        assert!(!unsafe { is_as_large(std::ptr::null(), 0) });
    }
}
