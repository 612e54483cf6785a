// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contradictions of boxes, counts and scores that are made up.

use super::*;
use crate::decoder::by_name;
use crate::engine::Masks;

const MODEL: [f32; 2] = [640.0, 480.0];
const ANCHORS: usize = 100;
const BOXES: ReadBoxes = ReadBoxes {
    normalized: false,
    model: Some(MODEL),
    in_frame: true,
    is_unit_set: false,
    of_six: None,
    class_field: false,
};

fn reading(decoder: &str) -> Interpretation {
    let decoder = by_name(decoder).unwrap();
    Interpretation {
        decoder,
        rows_without_objectness: false,
        classes: 2,
        first_class: 0,
        labels: None,
        pairs: 1,
        threshold: 0.25,
        boxes: BOXES,
    }
}

/// Creates a survivor with these edges.
fn survivor([x1, y1, x2, y2]: [f32; 4], score: f32) -> Detection {
    Detection { x1, y1, x2, y2, score, ..Detection::default() }
}

/// A frame without columns and masks.
fn frame(survivors: &[Detection], candidates: usize, rejected: usize) -> GroupOutcome<'_> {
    GroupOutcome { survivors, columns: &[], masks: Masks::default(), candidates, rejected }
}

/// Collects the evidence of frames with these survivors, and with equally many candidates.
fn evidence_in(frames: &[&[Detection]]) -> Evidence {
    let mut evidence = Evidence::default();
    for &survivors in frames {
        evidence.add(&frame(survivors, survivors.len(), 0), ANCHORS, &reading("yolov8"));
    }
    evidence
}

/// Returns the contradiction of boxes with these edges in one frame.
fn found_in_boxes(boxes: &[[f32; 4]]) -> Option<Finding> {
    let survivors: Vec<_> = boxes.iter().map(|&edges| survivor(edges, 0.9)).collect();
    evidence_in(&[&survivors]).check(&reading("yolov8"))
}

fn found_in_counts(candidates: usize, rejected: usize) -> Option<Finding> {
    let mut evidence = Evidence::default();
    let edges = [10.0, 10.0, 90.0, 90.0];
    let survivors = vec![survivor(edges, 0.9); candidates];
    evidence.add(&frame(&survivors, candidates, rejected), ANCHORS, &reading("yolov8"));
    evidence.check(&reading("yolov8"))
}

fn found_in_score(decoder: &str, threshold: f32, score: f32) -> Option<Finding> {
    let frames = evidence_in(&[&[survivor([10.0, 10.0, 90.0, 90.0], score)], &[]]);
    frames.check_scores(&Interpretation { threshold, ..reading(decoder) })
}

#[test]
fn scores_above_1_contradict_decoders_of_probabilities() {
    for decoder in ["yolov5", "yolov8", "yolox", "ultraface"] {
        assert_eq!(found_in_score(decoder, 0.25, 1.0), None);
        assert_eq!(found_in_score(decoder, 0.25, 1.0 + 1.0 / 128.0), None);
        let contradiction = found_in_score(decoder, 0.25, 4.59);
        assert!(matches!(contradiction, Some(Finding::Score { score: 4.59, .. })));
        // The result does not depend on the threshold.
        assert_eq!(found_in_score(decoder, 2.0, 4.59), contradiction);
    }
}

#[test]
fn windows_have_any_score_and_boxes_those_of_which_the_threshold_is() {
    assert_eq!(found_in_score("windows", 0.25, 459.0), None);
    assert_eq!(found_in_score("boxes", 0.25, 1.0), None);
    let expected = Finding::UnboundedScore { score: 4.59, threshold: 0.25 };
    assert_eq!(found_in_score("boxes", 0.25, 4.59), Some(expected));
    assert_eq!(found_in_score("boxes", 1.5, 4.59), None);
    assert_eq!(found_in_score("boxes", -2.0, 4.59), None);
}

#[test]
fn frames_without_objects_contradict_nothing() {
    let evidence = evidence_in(&[&[], &[]]);
    assert!(evidence.is_empty());
    assert_eq!(evidence.check(&reading("yolov8")), None);
    assert_eq!(evidence.check_scores(&reading("yolov8")), None);
}

#[test]
fn rejected_anchors_contradict_the_reading_if_candidates_are_few() {
    assert_eq!(found_in_counts(1, 0), None);
    assert_eq!(found_in_counts(10, 29), None);
    let is_rejected =
        |contradiction: Option<Finding>| matches!(contradiction, Some(Finding::Rejected { .. }));
    assert!(is_rejected(found_in_counts(10, 30)));
    assert!(is_rejected(found_in_counts(0, 1)));
    assert!(is_rejected(found_in_counts(0, ANCHORS - 1)));
    let all = found_in_counts(0, ANCHORS);
    assert!(matches!(all, Some(Finding::AllRejected { anchors: ANCHORS, .. })));
}

#[test]
fn the_class_column_is_named_if_there_is_one() {
    let text = |class_field| {
        let reading = ReadBoxes { class_field, ..BOXES };
        let rejected = Finding::Rejected { rejected: 9, candidates: 1, reading };
        rejected.to_string()
    };
    let expected = "frame, or the class column has numbers that are negative or not whole";
    assert!(text(true).contains(expected), "{}", text(true));
    assert!(!text(false).contains("class column"), "{}", text(false));
}

/// The boxes of YOLOX before its decode step are offsets from grid cells, which are of any size.
#[test]
fn normalized_boxes_and_offsets_contradict_pixels_of_an_input_of_unknown_size() {
    let found = |normalized: bool, edges: [f32; 4], anchors: usize| {
        let boxes = ReadBoxes { model: None, normalized, ..BOXES };
        let reading = Interpretation { boxes, ..reading("yolov8") };
        let mut evidence = Evidence::default();
        let survivors = [survivor(edges, 0.9); 3];
        evidence.add(&frame(&survivors, 3, 0), anchors, &reading);
        evidence.check(&reading)
    };
    let of_unit = Some(Finding::Normalized { boxes: 3, model: None });
    assert_eq!(found(false, [0.1, 0.2, 0.5, 0.9], ANCHORS), of_unit);
    assert_eq!(found(true, [0.1, 0.2, 0.5, 0.9], ANCHORS), None);
    let offsets = [-1.5, -0.5, 2.5, 3.0];
    let in_corner = Some(Finding::InCorner { boxes: 3, model: None });
    assert_eq!(found(false, offsets, 8400), in_corner);
    let outside = found(true, offsets, 8400);
    assert!(matches!(outside, Some(Finding::Outside { boxes: 3, all: 3, .. })), "{outside:?}");
    // A short list of boxes does not tell the size of the input.
    assert_eq!(found(false, offsets, ANCHORS), None);
    assert_eq!(found(false, [10.0, 10.0, 90.0, 90.0], 8400), None);
}

#[test]
fn many_candidates_are_judged_at_once() {
    let is_much = |edges: [f32; 4], candidates: usize, rejected: usize| {
        let mut evidence = Evidence::default();
        let survivors = [survivor(edges, 0.9)];
        evidence.add(&frame(&survivors, candidates, rejected), ANCHORS, &reading("yolov8"));
        evidence.is_much()
    };
    let usual = [10.0, 10.0, 90.0, 90.0];
    assert!(!is_much(usual, 29, 0) && is_much(usual, 30, 0) && is_much(usual, 1, 29));
    let of_unit = [0.1, 0.1, 0.9, 0.9];
    assert!(!is_much(of_unit, 7, 0) && is_much(of_unit, 8, 0));
}

#[test]
fn boxes_within_the_first_pixel_are_normalized() {
    let normalized = [[0.1, 0.2, 0.5, 0.9], [-0.02, 0.0, 1.03, 1.0]];
    let expected = Finding::Normalized { boxes: 2, model: Some(MODEL) };
    assert_eq!(found_in_boxes(&normalized), Some(expected));
    assert_eq!(found_in_boxes(&[normalized[0], [0.0, 0.0, 3.0, 3.0]]), None);
    assert_eq!(found_in_boxes(&[normalized[0], [300.0, 200.0, 301.0, 201.0]]), None);
}

#[test]
fn a_small_object_in_the_corner_is_possible_and_several_are_not() {
    let at = |x: f32| [x, 2.0, x + 3.0, 5.0];
    assert_eq!(found_in_boxes(&[at(0.0)]), None);
    assert_eq!(found_in_boxes(&[at(0.0), at(4.0)]), None);
    let expected = Finding::InCorner { boxes: 3, model: Some(MODEL) };
    assert_eq!(found_in_boxes(&[at(0.0), at(4.0), at(8.0)]), Some(expected));
    assert_eq!(found_in_boxes(&[at(0.0), at(4.0), at(8.0), at(300.0)]), None);
    // This is a single object in many frames.
    let one = [survivor(at(0.0), 0.9)];
    assert_eq!(evidence_in(&[&one[..]; 30]).check(&reading("yolov8")), None);
}

#[test]
fn inputs_of_few_pixels_have_no_corner() {
    let model = Some([16.0, 16.0]);
    let survivors = [survivor([0.0, 0.0, 1.0, 1.0], 0.9)];
    let boxes = ReadBoxes { model, ..BOXES };
    let reading = Interpretation { boxes, ..reading("windows") };
    let mut evidence = Evidence::default();
    evidence.add(&frame(&survivors, 1, 0), ANCHORS, &reading);
    assert_eq!(evidence.check(&reading), None);
}

#[test]
fn boxes_partly_outside_are_possible_and_many_times_the_input_are_not() {
    // The head of a person at the lower edge. The person is three times as tall as the visible part.
    assert_eq!(found_in_boxes(&[[200.0, 100.0, 500.0, 1600.0]]), None);
    assert_eq!(found_in_boxes(&[[-600.0, -400.0, 1200.0, 900.0]]), None);
    let pixels_as_normalized = [10.0, 10.0, 640.0 * 90.0, 480.0 * 90.0];
    let huge = found_in_boxes(&[pixels_as_normalized, [10.0, 10.0, 90.0, 90.0]]);
    assert!(matches!(huge, Some(Finding::Huge { boxes: 1, all: 2, .. })));
    let few = [pixels_as_normalized, [10.0, 10.0, 90.0, 90.0], [10.0, 10.0, 90.0, 90.0]];
    assert_eq!(found_in_boxes(&few), None);
}

/// Returns the contradiction of frames with this number of anchors and candidates.
fn found_in_candidates(
    reading: Interpretation,
    anchors: usize,
    candidates: usize,
) -> Option<Finding> {
    let survivors = [survivor([10.0, 10.0, 90.0, 90.0], 0.9)];
    let mut evidence = Evidence::default();
    for _ in 0..3 {
        evidence.add(&frame(&survivors, candidates, 0), anchors, &reading);
    }
    evidence.check(&reading)
}

#[test]
fn most_anchors_of_a_detector_are_background() {
    let dense = Interpretation { rows_without_objectness: true, ..reading("yolov8") };
    assert_eq!(found_in_candidates(reading("yolov8"), 8400, 8400), None);
    assert_eq!(found_in_candidates(dense, 8400, 2099), None);
    let many = found_in_candidates(dense, 8400, 2100);
    assert!(matches!(many, Some(Finding::NoBackground { .. })), "{many:?}");
    assert_eq!(found_in_candidates(dense, 999, 999), None);
    assert_eq!(found_in_candidates(Interpretation { threshold: 0.001, ..dense }, 8400, 8400), None);
}

#[test]
fn a_list_of_boxes_has_no_background_unless_it_has_two_scores_a_box() {
    assert_eq!(found_in_candidates(reading("windows"), 8400, 8400), None);
    let pairs = reading("boxes");
    assert_eq!(found_in_candidates(Interpretation { classes: 1, ..pairs }, 8400, 8400), None);
    assert_eq!(found_in_candidates(Interpretation { classes: 80, ..pairs }, 8400, 8400), None);
    assert_eq!(found_in_candidates(pairs, 8400, 8399), None);
    let all = found_in_candidates(pairs, 8400, 8400);
    assert_eq!(all, Some(Finding::BackgroundClass { anchors: 3 * 8400 }));
}

/// TensorFlow's SSD has no class 0.
#[test]
fn a_class_before_the_first_contradicts_the_reading() {
    let with_class = |class| Detection { class, ..survivor([50.0, 50.0, 150.0, 250.0], 0.9) };
    let first_class = |first_class| Interpretation { first_class, ..reading("ssd-postprocess") };
    let found = |class, reading: &Interpretation| {
        evidence_in(&[&[with_class(2), with_class(class)]]).check(reading)
    };
    let (class, first, decoder) = (0, 1, "ssd-postprocess");
    let expected = Finding::ClassBeforeFirst { class, first, decoder };
    assert_eq!(found(0, &first_class(1)), Some(expected));
    assert_eq!(found(1, &first_class(1)), None);
    assert_eq!(found(0, &first_class(0)), None);
    assert_eq!(found(0, &Interpretation { threshold: 0.01, ..first_class(1) }), None);
}

/// 80 labels for the 90 class numbers of COCO.
#[test]
fn a_class_without_a_label_contradicts_the_labels() {
    let found = |class, first_class| {
        let reading =
            Interpretation { labels: Some(80), first_class, ..reading("ssd-postprocess") };
        let survivor = Detection { class, ..survivor([50.0, 50.0, 150.0, 250.0], 0.9) };
        check_labels(&[Detection::default(), survivor], &reading)
    };
    assert_eq!(found(79, 0), None);
    assert_eq!(found(80, 1), None);
    let without = |class, first| {
        let decoder = "ssd-postprocess";
        Some(Finding::ClassWithoutLabel { class, labels: 80, first, decoder })
    };
    assert_eq!(found(80, 0), without(80, 0));
    assert_eq!(found(81, 1), without(81, 1));
}

/// DETR's last class is "no object", pytorch-ssd's first is the background.
#[test]
fn a_class_that_nearly_all_anchors_have_is_the_background() {
    let found_of = |anchors: usize, classes: &[(u32, usize)], pairs: usize| {
        let reading = Interpretation { classes: 21, pairs, ..reading("boxes") };
        let of = |&(class, count): &(u32, usize)| {
            vec![Detection { class, ..survivor([50.0, 50.0, 150.0, 250.0], 0.9) }; count]
        };
        let survivors: Vec<Detection> = classes.iter().flat_map(of).collect();
        let mut evidence = Evidence::default();
        evidence.add(&frame(&survivors, survivors.len(), 0), anchors * pairs, &reading);
        evidence.check(&reading)
    };
    let found = |anchors, classes: &[(u32, usize)]| found_of(anchors, classes, 1);
    let column = |candidates, anchors, class, background| {
        Some(Finding::BackgroundColumn { candidates, anchors, class, background })
    };
    assert_eq!(found(100, &[(20, 97), (3, 3)]), column(100, 100, 20, "last"));
    assert_eq!(found_of(100, &[(20, 97), (3, 3)], 21), column(100, 100, 20, "last"));
    assert_eq!(found(799, &[(0, 796), (7, 3)]), column(799, 799, 0, "first"));
    assert_eq!(found(100, &[(5, 97), (3, 3)]), None, "a class in the middle");
    assert_eq!(found(400, &[(20, 97), (3, 3)]), None, "most anchors are no candidates");
    assert_eq!(found(40, &[(20, 40)]), None, "a list of boxes");
}
