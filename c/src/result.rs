// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a run in host memory.

use std::ffi::{CStr, c_char};
use std::ptr::null;

use nmsfilter_core::nms::{self, DetailedOutcome};

use crate::border::{Failure, sized_struct};

/// A detection, in host and in device memory. This record does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Detection {
    /// The left edge, in pixels of the model's input; with regions, of the frame.
    pub x1: f32,
    /// The upper edge.
    pub y1: f32,
    /// The right edge.
    pub x2: f32,
    /// The lower edge.
    pub y2: f32,
    /// The score.
    pub score: f32,
    /// The index of the class, from 0.
    pub class_id: u32,
    /// The index of the anchor, from 0, within the image.
    pub anchor: u32,
}

// The kernels write them, too.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Detection>() == size_of::<nms::Detection>());
    assert!(offset_of!(Detection, x1) == offset_of!(nms::Detection, x1));
    assert!(offset_of!(Detection, y1) == offset_of!(nms::Detection, y1));
    assert!(offset_of!(Detection, x2) == offset_of!(nms::Detection, x2));
    assert!(offset_of!(Detection, y2) == offset_of!(nms::Detection, y2));
    assert!(offset_of!(Detection, score) == offset_of!(nms::Detection, score));
    assert!(offset_of!(Detection, class_id) == offset_of!(nms::Detection, class));
    assert!(offset_of!(Detection, anchor) == offset_of!(nms::Detection, anchor));
};

/// An oriented box, in the pixels of NmsfilterDetection. This record does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct OrientedBox {
    /// The x coordinate of the center.
    pub center_x: f32,
    /// The y coordinate of the center.
    pub center_y: f32,
    /// The side to which the angle belongs.
    pub width: f32,
    /// The other side.
    pub height: f32,
    /// The angle of the side `width` in radians, clockwise from the x axis.
    pub angle: f32,
}

/// A keypoint, in the pixels of NmsfilterDetection. This record does not change.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Point {
    /// The x coordinate, as the model gives it: it can be NaN or infinite.
    pub x: f32,
    /// The y coordinate.
    pub y: f32,
    /// The visibility, as the model gives it; 1 if the model gives none.
    pub visibility: f32,
}

/// The mask of a detection: the pixels of its box only. This record does not change.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Mask {
    /// The column of the first pixel of a row, in pixels of the prototypes or of the frame.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The number of pixels of a row; 0 if the detection has no mask.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
    /// The rows, of `width` bits each, padded to whole bytes, the most significant bit first; NULL if the detection has no
    /// mask.
    pub bytes: *const u8,
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Result {
    /// sizeof(NmsfilterResult), which the caller sets.
    pub size: usize,
    /// The number of images. nmsfilter_image has the detections of each.
    pub image_count: usize,
    /// The engine that ran: "cpu" or "cuda". With NMSFILTER_BACKEND_AUTO it is chosen for each run.
    pub engine: *const c_char,
    /// The bytes that were copied to the GPU.
    pub bytes_uploaded: u64,
    /// The bytes that were copied from the GPU.
    pub bytes_downloaded: u64,
    /// The time from the start of the first kernel to the end of the last kernel; 0 for a run on the CPU.
    pub device_nanoseconds: u64,
}

sized_struct!(Result, "NmsfilterResult", device_nanoseconds: u64);

/// The detections of an image, best first. Pointers are valid until the next run of the handle.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Image {
    /// sizeof(NmsfilterImage), which the caller sets.
    pub size: usize,
    /// The number of detections.
    pub count: usize,
    /// The detections.
    pub detections: *const Detection,
    /// The oriented box of each detection; NULL if boxes are upright.
    pub oriented_boxes: *const OrientedBox,
    /// The keypoints, `points_per_detection` for the first detection, then for the second, and so on; NULL if the
    /// model gives none.
    pub points: *const Point,
    /// The number of keypoints of each detection.
    pub points_per_detection: usize,
    /// The mask of each detection; NULL if no detection of the run has one.
    pub masks: *const Mask,
    /// Numbers of the tensor that detections carry along, as the layout names them: `columns_per_detection` for the first
    /// detection, then for the second, and so on; NULL if the layout names none.
    pub columns: *const f32,
    /// The number of these numbers per detection.
    pub columns_per_detection: usize,
    /// The number of anchors (with `multi_label`, of anchors with a class) that reached the threshold.
    pub candidates: usize,
    /// The number of anchors that were rejected because their numbers are not finite, form no box, or one outside of the
    /// visible part of the model's input.
    pub rejected: usize,
}

sized_struct!(Image, "NmsfilterImage", rejected: usize);

/// The copy of an outcome, which remains until the next run. Its memory is used again.
#[derive(Default)]
pub struct Results {
    images: Vec<ImageRange>,
    detections: Vec<Detection>,
    oriented_boxes: Vec<OrientedBox>,
    points: Vec<Point>,
    points_per_detection: usize,
    masks: Vec<Mask>,
    mask_bytes: Vec<u8>,
    columns: Vec<f32>,
    columns_per_detection: usize,
}

/// Where the detections of an image are.
struct ImageRange {
    first: usize,
    count: usize,
    candidates: usize,
    rejected: usize,
}

impl Results {
    pub fn clear(&mut self) {
        self.images.clear();
        self.detections.clear();
        self.oriented_boxes.clear();
        self.points.clear();
        self.points_per_detection = 0;
        self.masks.clear();
        self.mask_bytes.clear();
        self.columns.clear();
        self.columns_per_detection = 0;
    }

    /// Copies an outcome, in place of the earlier one.
    pub fn set(&mut self, detailed: &DetailedOutcome<'_>) -> Result {
        self.clear();
        let outcome = &detailed.outcome;
        self.columns_per_detection = outcome.column_components;
        for (index, image) in outcome.groups().enumerate() {
            self.images.push(ImageRange {
                first: self.detections.len(),
                count: image.survivors.len(),
                candidates: image.candidates,
                rejected: image.rejected,
            });
            self.columns.extend_from_slice(image.columns);
            for (number, survivor) in image.survivors.iter().enumerate() {
                self.push(detailed, index, number, survivor);
            }
        }
        self.set_mask_pointers();
        let device = outcome.device;
        Result {
            size: size_of::<Result>(),
            image_count: self.images.len(),
            engine: engine_name(outcome.engine).as_ptr(),
            bytes_uploaded: device.bytes_uploaded,
            bytes_downloaded: device.bytes_downloaded,
            device_nanoseconds: device.time.as_nanos() as u64,
        }
    }

    fn push(
        &mut self,
        detailed: &DetailedOutcome<'_>,
        image: usize,
        number: usize,
        survivor: &nms::Detection,
    ) {
        let &nms::Detection { x1, y1, x2, y2, score, class, anchor, .. } = survivor;
        self.detections.push(Detection { x1, y1, x2, y2, score, class_id: class, anchor });
        if let Some(oriented) = detailed.oriented_box(image, number) {
            let nms::OrientedBox { center, size, angle } = oriented;
            self.oriented_boxes.push(OrientedBox {
                center_x: center[0],
                center_y: center[1],
                width: size[0],
                height: size[1],
                angle,
            });
        }
        let before = self.points.len();
        let point =
            |point: nms::Point| Point { x: point.x, y: point.y, visibility: point.visibility };
        self.points.extend(detailed.points_of(image, number).map(point));
        self.points_per_detection = self.points.len() - before;
        // The bytes move until all are there.
        self.masks.push(match detailed.outcome.group(image).masks.get(number) {
            Some(mask) => {
                self.mask_bytes.extend_from_slice(mask.bytes);
                let nms::Mask { left, top, width, height, .. } = mask;
                Mask { left, top, width, height, bytes: null() }
            }
            None => Mask { left: 0, top: 0, width: 0, height: 0, bytes: null() },
        });
    }

    fn set_mask_pointers(&mut self) {
        if self.mask_bytes.is_empty() {
            self.masks.clear();
        }
        let mut bytes = self.mask_bytes.as_slice();
        for mask in self.masks.iter_mut().filter(|mask| mask.width > 0) {
            mask.bytes = bytes.as_ptr();
            bytes = &bytes[mask.width.div_ceil(8) as usize * mask.height as usize..];
        }
    }

    /// # Errors
    /// If there is no such image.
    pub fn image(&self, index: usize) -> std::result::Result<Image, Failure> {
        let ImageRange { first, count, candidates, rejected } =
            *self.images.get(index).ok_or_else(|| {
                Failure::argument(format!(
                    "index: expected that of one of {} images of the last run, got {index}",
                    self.images.len()
                ))
            })?;
        Ok(Image {
            size: size_of::<Image>(),
            count,
            detections: part(&self.detections, first, 1),
            oriented_boxes: part(&self.oriented_boxes, first, 1),
            points: part(&self.points, first, self.points_per_detection),
            points_per_detection: self.points_per_detection,
            masks: part(&self.masks, first, 1),
            columns: part(&self.columns, first, self.columns_per_detection),
            columns_per_detection: self.columns_per_detection,
            candidates,
            rejected,
        })
    }
}

/// Returns the address of a detection's elements; NULL if detections have none.
fn part<T>(elements: &[T], first: usize, per_detection: usize) -> *const T {
    match elements.get(first * per_detection..) {
        Some(rest) if !elements.is_empty() => rest.as_ptr(),
        _ => null(),
    }
}

fn engine_name(name: &str) -> &'static CStr {
    match name {
        "cpu" => c"cpu",
        "cuda" => c"cuda",
        other => unreachable!("the engine {other} is not in ordinary builds"),
    }
}
