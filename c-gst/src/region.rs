// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions read back from buffers.

use std::ffi::c_char;
use std::ptr::null;

use gstnmsfilter::regions::{self, AttachedRegion};

use crate::Status;
use crate::border::{self, Failure, check_pointer};
use crate::gstreamer::{buffer, init};
use crate::status::run;

/// A region of interest of a buffer: a detection, or a region of another element.
///
/// Pointers are valid for as long as the region is on the buffer, and the buffer exists.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Region {
    /// The left edge, normalized to the frame (0 to 1) and clipped to it; NaN for regions without a detection. Edges of an
    /// oriented box are the edges of its bounds.
    pub x_min: f64,
    /// The upper edge.
    pub y_min: f64,
    /// The right edge.
    pub x_max: f64,
    /// The lower edge.
    pub y_max: f64,
    /// The score; NaN for regions without a detection.
    pub score: f64,
    /// The index of the class, from 0; -1 for regions without a detection.
    pub class_id: i32,
    /// The number of the region on the buffer; 0 if the element that attached it sets none.
    pub id: i32,
    /// The number of the region of which it is a part, or -1.
    pub parent_id: i32,
    /// The left edge in pixels of the frame.
    pub left: u32,
    /// The upper edge in pixels of the frame.
    pub top: u32,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The angle of the side `oriented_width` of an oriented box in radians, clockwise from the x axis; NaN if the box is
    /// upright.
    pub rotation: f32,
    /// The center of the oriented box in pixels of the frame; NaN if the box is upright.
    pub center_x: f32,
    /// The y coordinate of the center.
    pub center_y: f32,
    /// The sides of the oriented box in pixels of the frame; NaN if the box is upright.
    pub oriented_width: f32,
    /// The other side.
    pub oriented_height: f32,
    /// The number of keypoints; 0 if there are none.
    pub keypoint_count: u32,
    /// The number of components of a keypoint: 2 for x and y, 3 with a visibility.
    pub keypoint_components: u32,
    /// The number of pixels of a row of the mask; 0 without a mask.
    pub mask_width: u32,
    /// The number of rows of the mask.
    pub mask_height: u32,
    /// The left edge of the rectangle that the mask covers, in pixels of the frame. Part of it can be outside of the frame.
    pub mask_left: f64,
    /// The upper edge of the rectangle.
    pub mask_top: f64,
    /// The right edge of the rectangle.
    pub mask_right: f64,
    /// The lower edge of the rectangle.
    pub mask_bottom: f64,
    /// The name of the class. It is valid until the process ends, and may not be UTF-8 if another element has attached the
    /// region.
    pub label: *const c_char,
    /// `keypoint_count` x `keypoint_components` numbers: x and y in pixels of the frame, and the visibility; NULL if there
    /// are none. A point can be outside of the frame, NaN, or infinite.
    pub keypoints: *const f32,
    /// The meaning of the points: "coco-17", "face-5" or "points"; NULL without keypoints.
    pub keypoint_layout: *const c_char,
    /// `mask_height` rows of `mask_width` bits, each row padded to whole bytes, the most significant bit first; NULL if
    /// there is no mask.
    pub mask: *const u8,
    /// The number of classes that classifiers have found for the region, which nmsfilter_gst_read_classes() reads.
    pub class_count: usize,
}

/// A class that a classifier has found for a region.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Class {
    /// The score; NaN if it is not known.
    pub score: f64,
    /// The name of the class, which may not be UTF-8; NULL if it is not known. It is valid for as long as the region is on
    /// the buffer, and the buffer exists.
    pub label: *const c_char,
    /// The index of the class, from 0; -1 if it is not known.
    pub class_id: i32,
    /// What was classified, such as the name of the model's output; NULL if it is not known. As for the label, it may not
    /// be UTF-8, and is valid for as long as the region.
    pub attribute: *const c_char,
}

/// The number of bytes of the record of the first version of the header.
const FIRST_SIZE: usize = std::mem::offset_of!(Region, mask) + size_of::<*const u8>();

/// The number of bytes of the class of the first version of the header.
const FIRST_CLASS_SIZE: usize = std::mem::offset_of!(Class, attribute);

/// Reads the regions of interest of a buffer into an array of the caller's, in the order in which they were attached:
/// the regions of nmsfilter best first.
///
/// `regions` has room for `capacity` records of `region_size` bytes, which is sizeof(NmsfilterGstRegion); more bytes are
/// set to 0. `count` becomes the number of regions of the buffer, also if there are more than `capacity`, of which the
/// first are read then. With a `capacity` of 0, `regions` can be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_gst_read_regions(
    buffer: *mut gst::ffi::GstBuffer,
    regions: *mut Region,
    capacity: usize,
    region_size: usize,
    count: *mut usize,
) -> Status {
    run(|| {
        init()?;
        check_pointer(count, "count")?;
        if region_size < FIRST_SIZE {
            return Err(Failure::argument(format!(
                "region_size: expected at least {FIRST_SIZE}, got {region_size}; pass sizeof(NmsfilterGstRegion)"
            )));
        }
        if capacity > 0 {
            check_pointer(regions, "regions")?;
        }
        // SAFETY: the caller guarantees that the buffer exists.
        let buffer = unsafe { self::buffer(buffer) }?;
        let mut found = 0;
        for region in regions::iter(buffer).take(capacity) {
            // SAFETY: `regions` has room for this record.
            unsafe {
                border::write(regions.byte_add(found * region_size), region_size, &record(&region))
            };
            found += 1;
        }
        if found == capacity {
            found = regions::count(buffer);
        }
        // SAFETY: `count` is valid for writes.
        unsafe { *count = found };
        Ok(())
    })
}

fn record(region: &AttachedRegion<'_>) -> Region {
    let [left, top, width, height] = region.rectangle;
    let [x_min, y_min, x_max, y_max] = region.edges.unwrap_or([f64::NAN; 4]);
    let oriented = region.oriented.map(|oriented| (oriented.center, oriented.size, oriented.angle));
    let (center, size, rotation) = oriented.unwrap_or(([f32::NAN; 2], [f32::NAN; 2], f32::NAN));
    let points = region.keypoints.filter(|points| !points.is_empty());
    let mask = region.mask;
    let [mask_left, mask_top, mask_right, mask_bottom] = mask.map_or([0.0; 4], |mask| mask.edges);
    Region {
        x_min,
        y_min,
        x_max,
        y_max,
        score: region.confidence.unwrap_or(f64::NAN),
        class_id: region.class.unwrap_or(-1),
        id: region.id,
        parent_id: region.parent_id,
        left,
        top,
        width,
        height,
        rotation,
        center_x: center[0],
        center_y: center[1],
        oriented_width: size[0],
        oriented_height: size[1],
        keypoint_count: points.map_or(0, |points| points.len() as u32),
        keypoint_components: points.map_or(0, |points| 2 + u32::from(points.has_visibility())),
        mask_width: mask.map_or(0, |mask| mask.width),
        mask_height: mask.map_or(0, |mask| mask.height),
        mask_left,
        mask_top,
        mask_right,
        mask_bottom,
        label: region.label.as_ptr(),
        keypoints: points.map_or(null(), |points| points.numbers().as_ptr()),
        keypoint_layout: points.map_or(null(), |points| points.layout().as_ptr()),
        mask: mask.map_or(null(), |mask| mask.bytes.as_ptr()),
        class_count: region.class_count(),
    }
}

/// Reads the classes that classifiers have found for the region with the index `region`, in the order of
/// nmsfilter_gst_read_regions(), into an array of the caller's. The classes of a classifier are in descending order of their
/// scores; those of the next classifier follow.
///
/// `classes` has room for `capacity` records of `class_size` bytes, which is sizeof(NmsfilterGstClass); more bytes are set
/// to 0. `count` becomes the number of classes, also if there are more than `capacity`, of which the first are read then.
/// With a `capacity` of 0, `classes` can be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_gst_read_classes(
    buffer: *mut gst::ffi::GstBuffer,
    region: usize,
    classes: *mut Class,
    capacity: usize,
    class_size: usize,
    count: *mut usize,
) -> Status {
    run(|| {
        init()?;
        check_pointer(count, "count")?;
        if class_size < FIRST_CLASS_SIZE {
            return Err(Failure::argument(format!(
                "class_size: expected at least {FIRST_CLASS_SIZE}, got {class_size}; pass sizeof(NmsfilterGstClass)"
            )));
        }
        if capacity > 0 {
            check_pointer(classes, "classes")?;
        }
        // SAFETY: the caller guarantees that the buffer exists.
        let buffer = unsafe { self::buffer(buffer) }?;
        let Some(attached) = regions::iter(buffer).nth(region) else {
            return Err(Failure::argument(format!(
                "region: expected an index below {}, the number of regions on the buffer, got {region}",
                regions::count(buffer)
            )));
        };
        for (index, class) in attached.classes().take(capacity).enumerate() {
            let record = Class {
                score: class.confidence.unwrap_or(f64::NAN),
                label: class.label.map_or(null(), |label| label.as_ptr()),
                attribute: class.attribute.map_or(null(), |name| name.as_ptr()),
                class_id: class.class.unwrap_or(-1),
            };
            // SAFETY: `classes` has room for this record.
            unsafe { border::write(classes.byte_add(index * class_size), class_size, &record) };
        }
        // SAFETY: `count` is valid for writes.
        unsafe { *count = attached.class_count() };
        Ok(())
    })
}
