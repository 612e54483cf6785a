// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter_core::nms::BoxNms`, compared with the definition of torchvision's nms and batched_nms.

use fastrand::Rng;
use nmsfilter_core::nms::{Backend, BoxNms, EngineError, NmsError, Overlap};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

use crate::support::engines;

fn nms(iou_threshold: f64) -> BoxNms {
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    let mut nms = BoxNms::new(backend, Some(0)).unwrap();
    nms.iou_threshold = iou_threshold;
    nms
}

/// Goes through the boxes by descending score. A box is kept unless its overlap with a kept box of
/// its group exceeds the threshold.
fn by_definition(boxes: &[[f32; 4]], scores: &[f32], groups: &[i64], threshold: f64) -> Vec<u32> {
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by(|&a, &b| scores[b].partial_cmp(&scores[a]).unwrap());
    let area = |b: &[f32; 4]| (b[2] - b[0]) * (b[3] - b[1]);
    // In C++ functions of this kind, the second argument is the result unless it compares less, or
    // greater.
    let max = |a: f32, b: f32| if a < b { b } else { a };
    let min = |a: f32, b: f32| if b < a { b } else { a };
    let mut kept: Vec<usize> = Vec::new();
    for index in order {
        let lower = &boxes[index];
        let is_suppressed = kept.iter().any(|&other| {
            let higher = &boxes[other];
            let width = max(0.0, min(higher[2], lower[2]) - max(higher[0], lower[0]));
            let height = max(0.0, min(higher[3], lower[3]) - max(higher[1], lower[1]));
            let intersection = width * height;
            let union = area(higher) + area(lower) - intersection;
            groups[index] == groups[other] && f64::from(intersection / union) > threshold
        });
        if !is_suppressed {
            kept.push(index);
        }
    }
    kept.into_iter().map(|index| index as u32).collect()
}

/// Random boxes. Some are on a grid, some have no area or a coordinate that is NaN, and many
/// scores are equal.
fn scene(rng: &mut Rng, count: usize) -> (Vec<[f32; 4]>, Vec<f32>) {
    let on_grid = rng.bool();
    let boxes = (0..count).map(|_| {
        let mut number =
            |most: f32| if on_grid { (rng.f32() * most).round() } else { rng.f32() * most };
        let (x, y, width, height) = (number(100.0), number(100.0), number(40.0), number(40.0));
        let mut corners = [x, y, x + width, y + height];
        match rng.u32(0..40) {
            0 => corners[2] = corners[0],
            1 => corners.swap(1, 3),
            2 => corners = [corners[2], corners[3], corners[0], corners[1]],
            3 => corners[rng.usize(0..4)] = f32::NAN,
            _ => {}
        }
        corners
    });
    let boxes = boxes.collect();
    let scores = (0..count).map(|_| match rng.u32(0..30) {
        0 => f32::NEG_INFINITY,
        1 => f32::INFINITY,
        2 => -rng.f32(),
        3 => -0.0,
        _ => (rng.f32() * 50.0).round() / 50.0,
    });
    (boxes, scores.collect())
}

/// 30 and 40 degrees, of boxes that have the angles of 30 and 40 radians.
#[test]
fn angles_in_degrees_are_noticed() {
    let boxes = |angles: [f32; 2]| {
        let row = |(index, angle)| [50.0 + 200.0 * index as f32, 50.0, 40.0, 20.0, angle];
        angles.into_iter().enumerate().flat_map(row).collect::<Vec<f32>>()
    };
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    let mut notice = |angles| {
        let boxes = boxes(angles);
        let boxes = TensorView::from_slice("boxes", &[2, 5], &boxes);
        let scores = TensorView::from_slice("scores", &[2], &[0.9f32, 0.8]);
        nms.run(&boxes, &scores, None).unwrap();
        nms.notice().map(|notice| notice.to_string())
    };
    let text = notice([30.0, -40.0]).unwrap();
    assert!(text.starts_with("a box has an angle of 40 radians, so angles are probably degrees"));
    assert_eq!(notice([3.1, -6.3]), None);
}

#[test]
fn boxes_of_all_kinds_give_the_survivors_of_the_definition() {
    let mut rng = Rng::with_seed(25);
    for case in 0..engines::scene_count(2000) {
        let count = rng.usize(0..120);
        let (boxes, scores) = scene(&mut rng, count);
        let threshold = f64::from(rng.u32(0..=20)) / 20.0;
        let boxes_tensor = TensorView::from_slice("boxes", &[count, 4], boxes.as_flattened());
        let scores_tensor = TensorView::from_slice("scores", &[count], &scores);
        let mut nms = nms(threshold);
        let expected = by_definition(&boxes, &scores, &vec![0; count], threshold);
        let kept = nms.run(&boxes_tensor, &scores_tensor, None).unwrap();
        assert_eq!(kept, expected, "case {case}, threshold {threshold}: {boxes:?} {scores:?}");

        let few = rng.i64(1..5);
        let far = if rng.bool() { i64::MAX / 4 } else { 1 };
        let groups: Vec<i64> = (0..count).map(|_| rng.i64(-few..few) * far).collect();
        let groups_tensor = TensorView::from_slice("groups", &[count], &groups);
        let expected = by_definition(&boxes, &scores, &groups, threshold);
        let kept = nms.run(&boxes_tensor, &scores_tensor, Some(&groups_tensor)).unwrap();
        assert_eq!(kept, expected, "case {case}, groups {groups:?}");

        nms.max_detections = 3;
        let kept = nms.run(&boxes_tensor, &scores_tensor, Some(&groups_tensor)).unwrap();
        assert_eq!(kept, &expected[..expected.len().min(3)], "case {case}");
    }
}

#[test]
fn an_overlap_equal_to_the_threshold_is_kept_for_thresholds_that_f32_rounds_up() {
    // The IoU is 1/10. In single precision, 0.1 is greater than the decimal 0.1, and equal to 1/10.
    let boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 10.0f32]];
    let scores = [0.9, 0.8f32];
    let tensor = TensorView::from_slice("boxes", &[2, 4], boxes.as_flattened());
    let scores = TensorView::from_slice("scores", &[2], &scores);
    assert_eq!(nms(0.1).run(&tensor, &scores, None).unwrap(), [0]);
    assert_eq!(nms(f64::from(0.1f32)).run(&tensor, &scores, None).unwrap(), [0, 1]);
}

#[test]
fn oriented_boxes_without_area_and_turned_apart_are_kept() {
    let boxes = [
        [50.0, 50.0, 40.0, 10.0, 0.0],
        // This box crosses the first: the intersection is 100, the union 700.
        [50.0, 50.0, 40.0, 10.0, std::f32::consts::FRAC_PI_2],
        // This is the first box, turned by 180 degrees.
        [50.0, 50.0, 40.0, 10.0, std::f32::consts::PI],
        [50.0, 50.0, 0.0, 10.0, 0.3],
        [50.0, 50.0, f32::NAN, 10.0, 0.3],
        // This box is too small for its distance from the origin, so rounding leaves it no bounds.
        [1e8, 1e8, 1e-3, 1e-3, 0.3f32],
    ];
    let scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.95f32];
    let tensor = TensorView::from_slice("boxes", &[6, 5], boxes.as_flattened());
    let scores = TensorView::from_slice("scores", &[6], &scores);
    let mut nms = nms(0.5);
    assert_eq!(nms.run(&tensor, &scores, None).unwrap(), [5, 0, 1, 3, 4]);
    nms.iou_threshold = 0.1;
    assert_eq!(nms.run(&tensor, &scores, None).unwrap(), [5, 0, 3, 4]);
    nms.overlap = Overlap::ProbIou;
    assert!(nms.run(&tensor, &scores, None).is_ok());
}

#[test]
fn tensors_that_cannot_be_read_or_ranked_are_errors_that_name_them() {
    let numbers = [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 9.0, 9.0f32];
    let boxes = TensorView::from_slice("boxes", &[2, 4], &numbers);
    let scores = TensorView::from_slice("scores", &[2], &[0.5, 0.6f32]);
    let mut nms = nms(0.5);
    let mut message = |boxes: &TensorView<'_>,
                       scores: &TensorView<'_>,
                       groups: Option<&TensorView<'_>>| {
        match nms.run(boxes, scores, groups).unwrap_err() {
            error @ NmsError::Input(_) => error.to_string(),
            error => panic!("{error:?}"),
        }
    };
    let transposed = TensorView::from_slice("boxes", &[4, 2], &numbers);
    assert_eq!(
        message(&transposed, &scores, None),
        "expected boxes [N,4] or [N,5] of type f32 or f16, got boxes (f32 4x2)"
    );
    let three = TensorView::from_slice("scores", &[3], &[0.5, 0.6, 0.7f32]);
    assert_eq!(
        message(&boxes, &three, None),
        "expected scores [2] of type f32 or f16, got scores (f32 3)"
    );
    let floats = TensorView::from_slice("groups", &[2], &[0.0, 1.0f32]);
    assert_eq!(
        message(&boxes, &scores, Some(&floats)),
        "expected groups [2] of type i32 or i64, got groups (f32 2)"
    );
    let nan = TensorView::from_slice("scores", &[2], &[0.5, f32::NAN]);
    assert_eq!(
        message(&boxes, &nan, None),
        "expected scores that are numbers, got NaN as the score of box 1"
    );
    let long = [0.0, 0.0, 2e9, 10.0, 1.0, 1.0, 9.0, 9.0f32];
    assert_eq!(
        message(&TensorView::from_slice("boxes", &[2, 4], &long), &scores, None),
        "expected boxes with sides of at most 10^9, got [0.0, 0.0, 2000000000.0, 10.0] as box 0"
    );
    for infinite in [[0.0, 0.0, f32::INFINITY, 1.0], [f32::NEG_INFINITY; 4]] {
        let numbers = [infinite, [1.0, 1.0, 9.0, 9.0]];
        let text = message(
            &TensorView::from_slice("boxes", &[2, 4], numbers.as_flattened()),
            &scores,
            None,
        );
        let expected = "expected boxes with sides of at most 10^9, got";
        assert_eq!(text, format!("{expected} {infinite:?} as box 0"));
    }
    let turned = [0.0, 0.0, 2.0, 10.0, 1e5f32];
    assert_eq!(
        message(
            &TensorView::from_slice("boxes", &[1, 5], &turned),
            &TensorView::from_slice("scores", &[1], &[0.5f32]),
            None
        ),
        "expected angles in radians of at most 10^4 in magnitude, got [0.0, 0.0, 2.0, 10.0, 100000.0] as box 0"
    );
    nms.iou_threshold = 1.5;
    let error = nms.run(&boxes, &scores, None).unwrap_err();
    assert!(matches!(error, NmsError::Param(_)), "{error:?}");
    assert_eq!(error.to_string(), "iou_threshold: expected a number from 0 to 1, got 1.5");
}

#[test]
fn a_measure_that_is_not_defined_for_the_boxes_is_an_error() {
    let numbers = [5.0, 5.0, 9.0, 9.0, 0.5, 4.0, 4.0, 8.0, 8.0, 0.1f32];
    let oriented = TensorView::from_slice("boxes", &[2, 5], &numbers);
    let upright = TensorView::from_slice("boxes", &[2, 4], &numbers[..8]);
    let scores = TensorView::from_slice("scores", &[2], &[0.5, 0.6f32]);
    let mut nms = nms(0.5);
    for (boxes, overlap, expected) in [
        (&upright, Overlap::ProbIou, "prob-iou is not defined for upright boxes; choose iou"),
        (&oriented, Overlap::Diou, "diou is not defined for oriented boxes; choose iou"),
    ] {
        nms.overlap = overlap;
        let error = nms.run(boxes, &scores, None).unwrap_err();
        assert!(matches!(error, NmsError::Engine(EngineError::Overlap { .. })), "{error:?}");
        assert_eq!(error.to_string(), format!("the overlap measure {expected}"));
    }
    nms.overlap = Overlap::Iou;
    assert!(nms.run(&upright, &scores, None).is_ok());
}

#[test]
fn more_than_65536_groups_are_an_error_and_as_many_are_not() {
    // The CPU engine is enough: groups are numbered on the host, and an emulated GPU would compare
    // all pairs.
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    for count in [65_536usize, 65_537] {
        let numbers: Vec<f32> = [0.0, 0.0, 1.0, 1.0].repeat(count);
        let scores = vec![0.5f32; count];
        let groups: Vec<i64> = (0..count as i64).map(|group| group - 7).collect();
        let boxes = TensorView::from_slice("boxes", &[count, 4], &numbers);
        let scores = TensorView::from_slice("scores", &[count], &scores);
        let groups = TensorView::from_slice("groups", &[count], &groups);
        match nms.run(&boxes, &scores, Some(&groups)) {
            Ok(kept) => assert_eq!((kept.len(), count), (count, 65_536)),
            Err(error) => {
                let expected = "expected at most 65536 different groups, got 65537";
                assert_eq!((error.to_string().as_str(), count), (expected, 65_537));
            }
        }
    }
}

#[test]
fn without_a_gpu_a_run_in_the_order_of_a_stream_is_an_error() {
    let boxes = TensorView::from_slice("boxes", &[0, 4], &[0.0f32; 0]);
    let scores = TensorView::from_slice("scores", &[0], &[0.0f32; 0]);
    let mut nms = BoxNms::new(Backend::Cpu, None).unwrap();
    assert!(nms.run(&boxes, &scores, None).unwrap().is_empty());
    // SAFETY: the CPU engine uses no stream.
    let stream = unsafe { nmsfilter_core::cuda::ForeignStream::from_raw(std::ptr::null_mut()) };
    let error = nms.enqueue(&boxes, &scores, None, stream).unwrap_err();
    assert_eq!(
        error.to_string(),
        "results in device memory: this engine does not use a GPU; choose the backend cuda"
    );
    // SAFETY: no address is returned.
    let error = unsafe { nms.run_in_stream(&boxes, &scores, None, stream, || None) }.unwrap_err();
    assert!(error.to_string().ends_with("choose the backend cuda"), "{error}");
    let half = TensorView::new(
        "boxes",
        ElementType::I32,
        Shape::new(&[1, 4]).unwrap(),
        Storage::Host(&[0; 16]),
    );
    assert!(matches!(nms.run(&half, &scores, None), Err(NmsError::Input(_))));
}
