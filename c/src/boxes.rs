// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handle that suppresses boxes alone, without decoding.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null;

use nmsfilter_core::cuda::ForeignStream;
use nmsfilter_core::nms::{self, BoxNms, check_embedding, check_iou_threshold, check_sigma};

use crate::border::{self, c_text, sized_struct};
use crate::device_result::DeviceResult;
use crate::filter::{backend, ordinal};
use crate::options::flag;
use crate::params::{Method, Overlap, method, overlap, sigma};
use crate::status::{self, Errors, Handle, Status, create, run, thread_error};
use crate::tensor::{Tensor, Tensors};
use crate::words::in_c;

/// Suppresses duplicates among boxes.
pub struct Boxes {
    nms: BoxNms,
    errors: Errors,
    /// The text of the last run's warning.
    warning: Option<CString>,
}

impl Handle for Boxes {
    fn errors(&mut self) -> &mut Errors {
        &mut self.errors
    }
}

/// How boxes are suppressed. nmsfilter_boxes_params_init sets the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BoxesParams {
    /// sizeof(NmsfilterBoxesParams).
    pub size: usize,
    /// The overlap above which a box is suppressed, 0 to 1; 0.5 by default.
    pub iou_threshold: f64,
    /// An NmsfilterMethod.
    pub method: u32,
    /// An NmsfilterOverlap.
    pub overlap: u32,
    /// The greatest number of boxes to keep; 0, the default, for all.
    pub max_detections: usize,
    /// The score that the boxes of nmsfilter_boxes_merge must reach, before and after scores are lowered; minus infinity by
    /// default.
    pub score_threshold: f32,
    /// See `sigma` of NmsfilterParams.
    pub sigma: f32,
    /// See `threshold_inclusive` of NmsfilterParams; 0 by default.
    pub threshold_inclusive: u32,
    /// 1 if boxes of different groups can suppress each other or merge; 0 by default.
    pub class_agnostic: u32,
    /// See `lose_released` of NmsfilterParams.
    pub lose_released: u32,
    /// See `embedding_distance` of NmsfilterParams.
    pub embedding_distance: f32,
    /// See `embedding_iou_threshold` of NmsfilterParams.
    pub embedding_iou_threshold: f32,
}

sized_struct!(BoxesParams, "NmsfilterBoxesParams", max_detections: usize);

/// Sets all fields of `params` to their defaults. `size` is sizeof(NmsfilterBoxesParams).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_params_init(
    params: *mut BoxesParams,
    size: usize,
) -> Status {
    run(|| {
        border::check_pointer(params, "params")?;
        border::check_size::<BoxesParams>(size, "params")?;
        let nms::Params { embedding_distance, embedding_iou_threshold, .. } = Default::default();
        let defaults = BoxesParams {
            size,
            iou_threshold: 0.5,
            method: Method::Greedy as u32,
            overlap: Overlap::Iou as u32,
            max_detections: 0,
            score_threshold: f32::NEG_INFINITY,
            sigma: sigma(0.0),
            threshold_inclusive: 0,
            class_agnostic: 0,
            lose_released: 0,
            embedding_distance,
            embedding_iou_threshold,
        };
        // SAFETY: the caller guarantees that there are `size` bytes.
        unsafe { border::write(params, size, &defaults) };
        Ok(())
    })
}

/// Makes a handle at `boxes`, with the default parameters; nmsfilter_new explains the arguments. If it fails, NULL is
/// stored, and nmsfilter_boxes_error_text(NULL) has the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_new(
    backend: u32,
    cuda_device: i32,
    boxes: *mut *mut Boxes,
) -> Status {
    let new = || {
        let nms = BoxNms::new(self::backend(backend)?, ordinal(cuda_device)?)?;
        Ok(Boxes { nms, errors: Errors::default(), warning: None })
    };
    // SAFETY: the caller guarantees it.
    unsafe { create(boxes, new) }
}

/// Frees a handle and its result. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_free(boxes: *mut Boxes) {
    // SAFETY: the caller guarantees it.
    unsafe { status::free(boxes) }
}

/// The text of the error of the last function of the handle that failed, or with NULL of the thread; see
/// nmsfilter_error_text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_error_text(boxes: *const Boxes) -> *const c_char {
    // SAFETY: the caller guarantees it.
    unsafe { boxes.as_ref() }.map_or_else(thread_error, |boxes| boxes.errors.text())
}

/// Sets how boxes are suppressed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_set_params(
    boxes: *mut Boxes,
    params: *const BoxesParams,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Boxes::run(boxes, |boxes| {
            let params: BoxesParams = border::read(params, "params")?;
            let method = method("params", params.method)?;
            let overlap = overlap("params", params.overlap)?;
            check_iou_threshold(params.iou_threshold)?;
            let sigma = sigma(params.sigma);
            check_sigma(sigma)?;
            check_embedding(params.embedding_distance, params.embedding_iou_threshold)?;
            let threshold_inclusive =
                flag("params: threshold_inclusive", params.threshold_inclusive)?;
            let class_agnostic = flag("params: class_agnostic", params.class_agnostic)?;
            let lose_released = flag("params: lose_released", params.lose_released)?;
            boxes.nms.score_threshold = params.score_threshold;
            boxes.nms.sigma = sigma;
            boxes.nms.threshold_inclusive = threshold_inclusive;
            boxes.nms.class_agnostic = class_agnostic;
            boxes.nms.lose_released = lose_released;
            boxes.nms.embedding_distance = params.embedding_distance;
            boxes.nms.embedding_iou_threshold = params.embedding_iou_threshold;
            (boxes.nms.method, boxes.nms.overlap) = (method, overlap);
            boxes.nms.iou_threshold = params.iou_threshold;
            boxes.nms.max_detections = params.max_detections;
            Ok(())
        })
    }
}

/// Suppresses duplicates among boxes. `kept` becomes an array of the indices of the `count` boxes that are kept, best first.
/// It is valid until the next run of the handle.
///
/// `corners` has the shape [N,4]: left, upper, right and lower edge; or [N,5]: center x, center y, width, height, and the
/// angle in radians, clockwise on the screen. `scores` has the shape [N]. Both are of type f32 or f16. `groups` is NULL, or
/// has the shape [N] and integers of type i32 or i64: boxes of different groups do not suppress each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_run(
    boxes: *mut Boxes,
    corners: *const Tensor,
    scores: *const Tensor,
    groups: *const Tensor,
    kept: *mut *const u32,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Boxes::run(boxes, |boxes| {
            border::check_pointer(kept, "kept")?;
            border::check_pointer(count, "count")?;
            let tensors = read(corners, scores, groups)?;
            let views = tensors.views();
            let indices = boxes.nms.run(&views[0], &views[1], views.get(2))?;
            (*kept, *count) = (indices.as_ptr(), indices.len());
            let notice = boxes.nms.notice();
            boxes.warning = notice.map(|notice| c_text(&in_c(&notice)));
            Ok(())
        })
    }
}

/// The warning of the last nmsfilter_boxes_run: the angles of oriented boxes in host memory are probably degrees. NULL if
/// there is none. The text is valid until the next run of the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_warning(boxes: *const Boxes) -> *const c_char {
    // SAFETY: the caller guarantees it.
    let boxes = unsafe { boxes.as_ref() };
    boxes.and_then(|boxes| boxes.warning.as_ref()).map_or(null(), |text| text.as_ptr())
}

/// The boxes of nmsfilter_boxes_merge, best first. The arrays are valid until the next run of the handle.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MergedBoxes {
    /// sizeof(NmsfilterMergedBoxes).
    pub size: usize,
    /// The number of boxes.
    pub count: usize,
    /// The left, upper, right and lower edge of each box: 4 * `count` numbers.
    pub boxes: *const f32,
    /// The final score of each box.
    pub scores: *const f32,
    /// The class of each box, as passed; NULL if no classes were passed.
    pub classes: *const i64,
    /// For each box, the index of the box from which its class is.
    pub keepers: *const u32,
    /// The indices of the boxes that were merged into the keepers, one list after the other.
    pub merged: *const u32,
    /// For each box, the end of its list in `merged`. The list begins where the preceding list ends, the first one at 0.
    pub merged_ends: *const usize,
}

sized_struct!(MergedBoxes, "NmsfilterMergedBoxes", merged_ends: *const usize);

/// Suppresses, merges or rescores boxes on the CPU, by `method` of NmsfilterBoxesParams. `merged` is written; its `size` must
/// be set.
///
/// The tensors are as for nmsfilter_boxes_run, with corners of the shape [N,4]. `classes` is NULL or has the classes as
/// groups. `column` has the numbers that the method reads, of type f32 or f16: densities [N] for NMSFILTER_METHOD_ADAPTIVE,
/// embeddings [N,E] with E from 1 to 1024 for NMSFILTER_METHOD_FEATURE; NULL for other methods. Boxes without area, or with a
/// number that is not finite, remain unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_merge(
    boxes: *mut Boxes,
    corners: *const Tensor,
    scores: *const Tensor,
    classes: *const Tensor,
    column: *const Tensor,
    merged: *mut MergedBoxes,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Boxes::run(boxes, |boxes| {
            let size = border::size_at(merged, "merged")?;
            let tensors = read(corners, scores, classes)?;
            let views = tensors.views();
            let column = read_column(column)?;
            let column = column.views();
            let found = boxes.nms.merge(&views[0], &views[1], views.get(2), column.first())?;
            let result = MergedBoxes {
                size,
                count: found.keepers.len(),
                boxes: found.boxes.as_ptr().cast(),
                scores: found.scores.as_ptr(),
                classes: if classes.is_null() { null() } else { found.classes.as_ptr() },
                keepers: found.keepers.as_ptr(),
                merged: found.merged.as_ptr(),
                merged_ends: found.merged_ends.as_ptr(),
            };
            border::write(merged, size, &result);
            Ok(())
        })
    }
}

/// Suppresses on a GPU in the order of a stream, and does not wait for it, as nmsfilter_enqueue does. The index of a box that
/// is kept is `anchor` of its NmsfilterDetection.
///
/// If `candidates` of NmsfilterDeviceCounts is less than the number of boxes, boxes are missing that nmsfilter_boxes_run keeps:
/// boxes without area or with a number that is not finite, and boxes of groups other than 0 to 65535.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_boxes_enqueue(
    boxes: *mut Boxes,
    corners: *const Tensor,
    scores: *const Tensor,
    groups: *const Tensor,
    cuda_stream: *mut c_void,
    result: *mut DeviceResult,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Boxes::run(boxes, |boxes| {
            let size = border::size_at(result, "result")?;
            let tensors = read(corners, scores, groups)?;
            let views = tensors.views();
            let stream = ForeignStream::from_raw(cuda_stream);
            let outcome = boxes.nms.enqueue(&views[0], &views[1], views.get(2), stream)?;
            border::write(result, size, &DeviceResult { size, ..DeviceResult::new(&outcome) });
            Ok(())
        })
    }
}

/// The tensors of a call, in this order.
///
/// # Safety
/// The requirements of [`Tensors::read`].
unsafe fn read<'a>(
    corners: *const Tensor,
    scores: *const Tensor,
    groups: *const Tensor,
) -> Result<Tensors<'a>, border::Failure> {
    let groups = (!groups.is_null()).then_some(groups);
    let named = [(Some(corners), "boxes"), (Some(scores), "scores"), (groups, "groups")];
    // SAFETY: the caller guarantees it.
    unsafe { Tensors::read_named(named) }
}

/// The column of a call, or no tensor.
///
/// # Safety
/// The requirements of [`Tensors::read`].
unsafe fn read_column<'a>(column: *const Tensor) -> Result<Tensors<'a>, border::Failure> {
    let column = (!column.is_null()).then_some(column);
    // SAFETY: the caller guarantees it.
    unsafe { Tensors::read_named([(column, "column")]) }
}
