// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the regions of interest of a video buffer, attached by `nmsfilter` or by other elements.
//!
//! In: a buffer with `GstVideoRegionOfInterestMeta`. Out: an [`AttachedRegion`] per region, in the order in which
//! they were attached; `nmsfilter` attaches the region with the highest score first. Nothing is copied or
//! allocated.
//!
//! `nmsfilter` attaches the structures `detection`, `keypoints`, `mask` and `classification` to a region. Other elements
//! attach other structures, or none; a structure with a label is a class ([`AttachedClass`]). Since any element may have attached the region, a field is `None` if it is missing, has an
//! unexpected type, or contradicts other fields.
//!
//! ```
//! use gstnmsfilter::regions;
//!
//! fn print(buffer: &gst::BufferRef) {
//!     for region in regions::iter(buffer) {
//!         let [left, top, width, height] = region.rectangle;
//!         let label = region.label.to_string_lossy();
//!         println!("{label} at {left},{top} {width}x{height}, confidence {:?}", region.confidence);
//!         for [x, y, visibility] in region.keypoints.iter().flat_map(|points| points.iter()) {
//!             println!("    a point at {x},{y}, visibility {visibility}");
//!         }
//!     }
//! }
//! ```

mod field;
mod keypoints;
mod mask;
mod objects;

use std::ffi::CStr;
use std::marker::PhantomData;

use gst::glib::GStr;
use gst_video::VideoRegionOfInterestMeta;
use gst_video::ffi::GstVideoRegionOfInterestMeta;

use crate::bindings::field_name::FieldName;
use crate::bindings::strings;
use field::field;
pub use keypoints::AttachedKeypoints;
pub use mask::AttachedMask;
use nmsfilter_core::geometry::OrientedBox;
pub(crate) use objects::{ANY_RELATION, objects_of};
pub use objects::{AttachedObject, AttachedTrack, for_each_object, objects};

/// A region of interest of a buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AttachedRegion<'a> {
    /// The id of the region. 0 if the element that attached the region sets no ids.
    pub id: i32,
    /// The id of the parent region, or -1 if the region has no parent: `parent_id` in the structure `detection`, else the
    /// metadata's `parent_id`, if it is above 0. Elements that set no parent leave that 0, although 0 is also an id.
    pub parent_id: i32,
    /// Left, top, width and height in pixels of the frame.
    pub rectangle: [u32; 4],
    /// The name of the class, which is the region's type. It may not be UTF-8. It is valid until the process ends.
    pub label: &'static CStr,
    /// The index of the class, from 0: `label_id` in the structure `detection`.
    pub class: Option<i32>,
    /// The name of the class: `label` in the structure `detection`.
    pub detection_label: Option<&'a CStr>,
    /// The id of the track: `id` in DL Streamer's structure `object_id`.
    pub track_id: Option<i32>,
    /// True if the region was not detected on this frame, but predicted: `predicted` in the structure `object_id`.
    pub is_predicted: bool,
    /// The score: `confidence` in the structure `detection`.
    pub confidence: Option<f64>,
    /// The left, upper, right and lower edge, normalized to the frame (0 to 1): `x_min`, `y_min`, `x_max` and
    /// `y_max` in the structure `detection`. Unlike [`rectangle`](Self::rectangle), they are not rounded to pixels.
    pub edges: Option<[f64; 4]>,
    /// The oriented box in pixels of the frame; `None` if the box is upright.
    pub oriented: Option<OrientedBox>,
    /// The keypoints.
    pub keypoints: Option<AttachedKeypoints<'a>>,
    /// The mask.
    pub mask: Option<AttachedMask<'a>>,
    params: Params<'a>,
    class_count: usize,
}

/// A class that a classifier has found for a region: a structure whose name begins with `classification`, or another one,
/// such as `tint`, with a `label` and with a `label_id` or a `confidence`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttachedClass<'a> {
    /// The index of the class, from 0: `label_id`.
    pub class: Option<i32>,
    /// The name of the class: `label`. It may not be UTF-8.
    pub label: Option<&'a CStr>,
    /// The score: `confidence`.
    pub confidence: Option<f64>,
    /// The attribute that was classified, such as the name of the model's output: `attribute_name`, or else the name of
    /// the structure if it is not `classification`. It may not be UTF-8.
    pub attribute: Option<&'a CStr>,
}

/// True if a structure that has none of the other names is a class.
fn is_class(structure: &gst::StructureRef) -> bool {
    if structure.name().as_bytes().starts_with(b"classification") {
        return true;
    }
    field!("label").string(structure).is_some()
        && (field!("label_id").int(structure).is_some()
            || field!("confidence").double(structure).is_some())
}

/// The names of structures that are no classes.
const OTHERS: [&str; 4] = ["detection", "keypoints", "mask", "object_id"];

/// Returns the regions of interest of `buffer`.
pub fn iter(buffer: &gst::BufferRef) -> impl Iterator<Item = AttachedRegion<'_>> {
    buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|meta| {
        // SAFETY: the buffer owns the metadata, which exists and does not change as long as the buffer is borrowed.
        AttachedRegion::new(unsafe { &*meta.as_ptr() })
    })
}

/// Returns the number of regions of interest of `buffer`.
pub fn count(buffer: &gst::BufferRef) -> usize {
    buffer.iter_meta::<VideoRegionOfInterestMeta>().count()
}

impl<'a> AttachedRegion<'a> {
    /// Returns the number of [`classes`](Self::classes).
    pub fn class_count(&self) -> usize {
        self.class_count
    }

    /// Returns the classes that classifiers have found: the classes of each classifier best first, one classifier after
    /// the other.
    pub fn classes(&self) -> impl Iterator<Item = AttachedClass<'a>> + use<'a> {
        let is_class = |structure: &&'a gst::StructureRef| {
            !OTHERS.contains(&structure.name().as_str()) && is_class(structure)
        };
        self.params.filter(is_class).take(self.class_count).map(|structure| {
            let name = Some(structure.name()).filter(|&name| name != "classification");
            AttachedClass {
                class: field!("label_id").int(structure),
                label: field!("label").string(structure),
                confidence: field!("confidence").double(structure),
                attribute: field!("attribute_name")
                    .string(structure)
                    .or(name.map(GStr::to_cstr_until_nul)),
            }
        })
    }

    fn new(meta: &'a GstVideoRegionOfInterestMeta) -> Self {
        let mut region = Self {
            id: meta.id,
            parent_id: if meta.parent_id > 0 { meta.parent_id } else { -1 },
            rectangle: [meta.x, meta.y, meta.w, meta.h],
            label: strings::of_quark(meta.roi_type).unwrap_or_default(),
            class: None,
            detection_label: None,
            track_id: None,
            is_predicted: false,
            confidence: None,
            edges: None,
            oriented: None,
            keypoints: None,
            mask: None,
            params: Params { list: meta.params, lifetime: PhantomData },
            class_count: 0,
        };
        let mut has = [false; OTHERS.len()];
        for structure in region.params {
            let name = structure.name().as_str();
            // If several structures have one name, the first counts, as in `gst_video_region_of_interest_meta_get_param`.
            let other = OTHERS.iter().position(|other| *other == name);
            if other.is_some_and(|other| std::mem::replace(&mut has[other], true)) {
                continue;
            }
            match name {
                "detection" => region.set_detection(structure),
                "keypoints" => region.keypoints = AttachedKeypoints::new(structure),
                "mask" => region.mask = AttachedMask::new(structure),
                "object_id" => {
                    region.track_id = field!("id").int(structure);
                    region.is_predicted = field!("predicted").boolean(structure) == Some(true);
                }
                _ => region.class_count += usize::from(is_class(structure)),
            }
        }
        region
    }

    fn set_detection(&mut self, detection: &'a gst::StructureRef) {
        self.class = field!("label_id").int(detection);
        self.detection_label = field!("label").string(detection);
        self.confidence = field!("confidence").double(detection);
        let [x_min, y_min] = [field!("x_min"), field!("y_min")].map(|name| name.double(detection));
        let [x_max, y_max] = [field!("x_max"), field!("y_max")].map(|name| name.double(detection));
        if let (Some(x_min), Some(y_min), Some(x_max), Some(y_max)) = (x_min, y_min, x_max, y_max) {
            self.edges = Some([x_min, y_min, x_max, y_max]);
        }
        // Looking up a missing field is slow, because it compares all fields. An upright box has exactly the fields
        // above, so the fields of an oriented box and the parent are only looked up if there are other fields.
        let is_complete = self.class.is_some()
            && self.detection_label.is_some()
            && self.confidence.is_some()
            && self.edges.is_some();
        if !is_complete || detection.len() > UPRIGHT_FIELDS {
            self.oriented = oriented_box(detection);
            if let Some(parent) = field!("parent_id").int(detection) {
                self.parent_id = parent;
            }
        }
    }
}

/// The number of fields of the structure `detection` of an upright box without a parent.
const UPRIGHT_FIELDS: usize = 7;

/// The oriented box of a structure `detection`.
fn oriented_box(detection: &gst::StructureRef) -> Option<OrientedBox> {
    let number = |name: &FieldName| name.double(detection).map(|number| number as f32);
    // An upright box has none of these fields.
    let angle = number(field!("rotation"))?;
    let center = [number(field!("center-x"))?, number(field!("center-y"))?];
    let size = [number(field!("width"))?, number(field!("height"))?];
    Some(OrientedBox { center, size, angle })
}

/// Iterates over the structures of a region.
#[derive(Clone, Copy, Debug)]
struct Params<'a> {
    list: *const gst::glib::ffi::GList,
    lifetime: PhantomData<&'a gst::StructureRef>,
}

impl<'a> Iterator for Params<'a> {
    type Item = &'a gst::StructureRef;

    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the list is NULL or valid, and its elements are structures, which exist and do not change during
        // `'a`.
        unsafe {
            let item = self.list.as_ref()?;
            self.list = item.next;
            Some(gst::StructureRef::from_glib_borrow(item.data.cast::<gst::ffi::GstStructure>()))
        }
    }
}
