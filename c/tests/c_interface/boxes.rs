// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression and merging of boxes without a decoder.

use super::*;

/// A handle of boxes that is freed when this is dropped.
struct BoxHandle(*mut Boxes);

impl BoxHandle {
    fn new() -> Self {
        let mut boxes = null_mut();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        let status = unsafe { nmsfilter_boxes_new(Backend::Cpu as u32, -1, &mut boxes) };
        assert_eq!(status, Status::Ok);
        Self(boxes)
    }

    fn set_params(&self, change: impl FnOnce(&mut BoxesParams)) -> Status {
        // SAFETY: zeros are valid in a structure of C.
        let mut params: BoxesParams = unsafe { zeroed() };
        let size = size_of::<BoxesParams>();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        assert_eq!(unsafe { nmsfilter_boxes_params_init(&mut params, size) }, Status::Ok);
        change(&mut params);
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_boxes_set_params(self.0, &params) }
    }

    fn error(&self) -> String {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        text(unsafe { nmsfilter_boxes_error_text(self.0) })
    }

    fn run(
        &self,
        corners: &Tensor,
        scores: &Tensor,
        groups: Option<&Tensor>,
    ) -> std::result::Result<Vec<u32>, (Status, String)> {
        let (mut kept, mut count) = (null(), 0);
        let groups = groups.map_or(null(), |groups| groups);
        let status =
            // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
            unsafe { nmsfilter_boxes_run(self.0, corners, scores, groups, &mut kept, &mut count) };
        match status {
            Status::Ok => Ok(array(kept, count)),
            status => Err((status, self.error())),
        }
    }
}

impl Drop for BoxHandle {
    fn drop(&mut self) {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_boxes_free(self.0) };
    }
}

#[test]
fn angles_in_degrees_are_warned_of() {
    let warning = |angle: f32| {
        let numbers = [50.0, 50.0, 40.0, 20.0, angle];
        let corners = Tensor { id: null(), ..tensor(c"", &[1, 5], &numbers) };
        let handle = BoxHandle::new();
        handle.run(&corners, &tensor(c"", &[1], &[0.9]), None).unwrap();
        // SAFETY: the handle is valid.
        let found = unsafe { nmsfilter_boxes_warning(handle.0) };
        if found.is_null() { String::new() } else { text(found) }
    };
    assert!(warning(30.0).starts_with("a box has an angle of 30 radians"));
    assert_eq!(warning(3.0), "");
    // SAFETY: NULL is allowed.
    assert!(unsafe { nmsfilter_boxes_warning(null()) }.is_null());
}

#[test]
fn boxes_alone_are_suppressed_in_groups() {
    let numbers = [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 11.0, 11.0, 20.0, 20.0, 30.0, 30.0];
    let corners = Tensor { id: null(), ..tensor(c"", &[3, 4], &numbers) };
    let scores = tensor(c"", &[3], &[0.8, 0.9, 0.7]);
    let handle = BoxHandle::new();
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 2]);
    let integers = [5i32, -3, 5];
    let mut groups = tensor(c"", &[3], &[]);
    groups.element_type = ElementType::I32 as u32;
    (groups.data, groups.bytes) = (integers.as_ptr().cast(), size_of_val(&integers));
    assert_eq!(handle.run(&corners, &scores, Some(&groups)).unwrap(), [1, 0, 2]);

    assert_eq!(handle.set_params(|params| params.iou_threshold = 0.7), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 0, 2]);
    assert_eq!(handle.set_params(|params| params.max_detections = 1), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1]);
    assert_eq!(handle.set_params(|params| params.method = 13), Status::InvalidArgument);
    assert_eq!(
        handle.set_params(|params| params.iou_threshold = f64::NAN),
        Status::InvalidArgument
    );
    assert_eq!(handle.error(), "params: iou_threshold: expected a number from 0 to 1, got NaN");
    let prob_iou = |params: &mut BoxesParams| params.overlap = Overlap::ProbIou as u32;
    assert_eq!(handle.set_params(prob_iou), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap_err().0, Status::Unsupported);
    assert_eq!(handle.set_params(|_| {}), Status::Ok);
    // The handle works after each of these errors.
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 2]);

    let few = tensor(c"", &[2], &[0.8, 0.9]);
    let expected = "expected scores [3] of type f32 or f16, got  (f32 2)";
    assert_eq!(
        handle.run(&corners, &few, None),
        Err((Status::InvalidArgument, expected.to_owned()))
    );
    assert_eq!(handle.run(&tensor(c"", &[0, 4], &[]), &tensor(c"", &[0], &[]), None), Ok(vec![]));
    let (mut kept, mut count) = (null(), 0);
    let status =
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_boxes_run(handle.0, null(), &scores, null(), &mut kept, &mut count) };
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(handle.error(), "boxes: expected a pointer, got NULL");
}

#[test]
fn boxes_alone_are_merged() {
    // Two halves of an object, another object, and a box below the threshold.
    let numbers = [
        [0.0, 0.0, 60.0, 50.0],
        [40.0, 0.0, 90.0, 50.0],
        [200.0, 0.0, 250.0, 50.0],
        [0.0, 0.0, 200.0, 50.0],
    ]
    .concat();
    let corners = tensor(c"", &[4, 4], &numbers);
    let scores = tensor(c"", &[4], &[0.8, 0.9, 0.7, 0.1]);
    let integers = [5i64, 5, -3, 5];
    let mut classes = tensor(c"", &[4], &[]);
    classes.element_type = ElementType::I64 as u32;
    (classes.data, classes.bytes) = (integers.as_ptr().cast(), size_of_val(&integers));

    let handle = BoxHandle::new();
    let merge = |params: &mut BoxesParams| {
        (params.method, params.overlap) = (Method::Merge as u32, Overlap::Smaller as u32);
        (params.iou_threshold, params.score_threshold) = (0.3, 0.5);
    };
    assert_eq!(handle.set_params(merge), Status::Ok);
    // SAFETY: zeros are valid in a structure of C.
    let mut merged: MergedBoxes = unsafe { zeroed() };
    let mut run = |classes: *const Tensor| {
        merged.size = size_of::<MergedBoxes>();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        let status = unsafe {
            nmsfilter_boxes_merge(handle.0, &corners, &scores, classes, null(), &mut merged)
        };
        assert_eq!(status, Status::Ok);
        merged
    };
    let found = run(&classes);
    assert_eq!(found.count, 2);
    assert_eq!(array(found.boxes, 8), [0.0, 0.0, 90.0, 50.0, 200.0, 0.0, 250.0, 50.0]);
    assert_eq!(array(found.scores, 2), [0.9, 0.7]);
    assert_eq!(array(found.classes, 2), [5, -3]);
    assert_eq!(array(found.keepers, 2), [1, 2]);
    assert_eq!(array(found.merged_ends, 2), [1, 1]);
    assert_eq!(array(found.merged, 1), [0]);
    assert!(run(null()).classes.is_null());

    let wrong_sigma = |params: &mut BoxesParams| params.sigma = -1.0;
    assert_eq!(handle.set_params(wrong_sigma), Status::InvalidArgument);
    assert_eq!(handle.error(), "params: sigma: expected a finite number above 0, got -1");
    merged.size = 1;
    let status =
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_boxes_merge(handle.0, &corners, &scores, null(), null(), &mut merged) };
    assert_eq!(status, Status::InvalidArgument);
}

#[test]
fn densities_and_embeddings_decide_which_boxes_alone_remain() {
    // The intersection is 0.6 of the union.
    let corners = tensor(c"", &[2, 4], &[0.0, 0.0, 40.0, 10.0, 10.0, 0.0, 50.0, 10.0]);
    let scores = tensor(c"", &[2], &[0.9, 0.8]);
    let handle = BoxHandle::new();
    let keepers = |column: *const Tensor| {
        // SAFETY: zeros are valid in a structure of C.
        let mut merged: MergedBoxes = unsafe { zeroed() };
        merged.size = size_of::<MergedBoxes>();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        let status = unsafe {
            nmsfilter_boxes_merge(handle.0, &corners, &scores, null(), column, &mut merged)
        };
        (status == Status::Ok).then(|| array(merged.keepers, merged.count).to_vec())
    };
    let adaptive = |params: &mut BoxesParams| params.method = Method::Adaptive as u32;
    assert_eq!(handle.set_params(adaptive), Status::Ok);
    assert_eq!(keepers(&tensor(c"", &[2], &[0.5, 0.7])), Some(vec![0]));
    assert_eq!(keepers(&tensor(c"", &[2], &[0.7, 0.5])), Some(vec![0, 1]));
    assert_eq!(keepers(null()), None);
    let expected = "expected densities [2] of type f32 or f16 for the method adaptive, got none";
    assert_eq!(handle.error(), expected);

    let embeddings = tensor(c"", &[2, 2], &[0.0, 0.0, 3.0, 4.0]);
    for (distance, iou_threshold, expected) in
        [(4.9, 0.9, vec![0, 1]), (5.0, 0.9, vec![0]), (4.9, 0.55, vec![0])]
    {
        let feature = |params: &mut BoxesParams| {
            params.method = Method::Feature as u32;
            params.embedding_distance = distance;
            params.embedding_iou_threshold = iou_threshold;
        };
        assert_eq!(handle.set_params(feature), Status::Ok);
        assert_eq!(keepers(&embeddings), Some(expected), "{distance}, {iou_threshold}");
    }
    let negative = |params: &mut BoxesParams| params.embedding_distance = -1.0;
    assert_eq!(handle.set_params(negative), Status::InvalidArgument);
    let expected = "params: embedding_distance: expected a finite number of at least 0, got -1";
    assert_eq!(handle.error(), expected);
}
