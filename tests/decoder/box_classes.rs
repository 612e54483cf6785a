// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `boxes` reads the class of each box in a third tensor of any type, whatever exporters call it.

use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

/// Boxes of three objects that do not touch each other, and their scores.
const BOXES: [f32; 12] = [0., 0., 9., 9., 20., 0., 29., 9., 40., 0., 49., 9.];
const SCORES: [f32; 3] = [0.7, 0.9, 0.8];
/// The class of each box, and in the order of the scores.
const CLASSES: [u8; 3] = [16, 2, 7];
const BY_SCORE: [u32; 3] = [2, 7, 16];

/// The classes of the detections, and the warnings.
fn detect(tensors: &[TensorView<'_>], decoder: Option<&str>) -> (Vec<u32>, Vec<String>) {
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    nms.set_decoder(decoder).unwrap();
    let outcome = nms.run(tensors).unwrap_or_else(|error| panic!("{tensors:?}: {error}"));
    let classes = outcome.group(0).survivors.iter().map(|detection| detection.class).collect();
    (classes, nms.warnings().iter().map(ToString::to_string).collect())
}

/// The bytes of the classes as each type.
fn typed() -> [(ElementType, Vec<u8>); 4] {
    use ElementType::{F32, I32, I64, U8};
    let bytes = |to: fn(u8) -> Vec<u8>| CLASSES.iter().flat_map(|&class| to(class)).collect();
    [
        (U8, CLASSES.to_vec()),
        (I32, bytes(|class| i32::from(class).to_ne_bytes().to_vec())),
        (I64, bytes(|class| i64::from(class).to_ne_bytes().to_vec())),
        (F32, bytes(|class| f32::from(class).to_ne_bytes().to_vec())),
    ]
}

fn view<'a>(
    id: &'a str,
    shape: &[usize],
    (element, bytes): &'a (ElementType, Vec<u8>),
) -> TensorView<'a> {
    TensorView::new(id, *element, Shape::new(shape).unwrap(), Storage::Host(bytes))
}

#[test]
fn classes_are_found_by_names_of_many_exporters() {
    for prefix in ["", "onnx/"] {
        let ids = ["boxes", "scores"].map(|name| format!("{prefix}{name}"));
        let decoder = (!prefix.is_empty()).then_some("boxes");
        for name in ["labels", "class_idx", "classes", "det_classes", "pred_labels", "Cls_ids"] {
            for classes in typed() {
                for shape in [&[3][..], &[1, 3], &[3, 1], &[1, 3, 1]] {
                    let id = format!("{prefix}{name}");
                    let tensors = [
                        view(&id, shape, &classes),
                        TensorView::from_slice(&ids[0], &[1, 3, 4], &BOXES),
                        TensorView::from_slice(&ids[1], &[1, 3], &SCORES),
                    ];
                    let found = detect(&tensors, decoder);
                    assert_eq!(found, (BY_SCORE.to_vec(), vec![]), "{id} {classes:?} {shape:?}");
                }
            }
        }
    }
}

#[test]
fn the_only_integers_are_the_classes() {
    let [_, i32s, i64s, _] = typed();
    let of = |ids: [&str; 3], classes| {
        let tensors = [
            TensorView::from_slice(ids[0], &[3, 4], &BOXES),
            view(ids[1], &[3], classes),
            TensorView::from_slice(ids[2], &[3], &SCORES),
        ];
        detect(&tensors, Some("boxes"))
    };
    assert_eq!(of(["onnx/6379", "onnx/6381", "onnx/6383"], &i64s).0, BY_SCORE);
    assert_eq!(of(["onnx/boxes", "onnx/kind", "onnx/scores"], &i32s).0, BY_SCORE);
}

/// Such numbers have the shape of classes.
#[test]
fn other_numbers_of_boxes_are_no_classes_and_cause_a_warning() {
    let [bytes, .., i64s, floats] = typed();
    for (id, numbers) in
        [("onnx/selected_indices", &i64s), ("onnx/batch_idx", &bytes), ("onnx/centerness", &floats)]
    {
        for (boxes, scores) in [("onnx/boxes", "onnx/scores"), ("boxes", "scores")] {
            let tensors = [
                TensorView::from_slice(boxes, &[1, 3, 4], &BOXES),
                TensorView::from_slice(scores, &[1, 3], &SCORES),
                view(id, &[1, 3], numbers),
            ];
            let (classes, warnings) = detect(&tensors, Some("boxes"));
            assert_eq!(classes, [0; 3], "{id}");
            let expected = format!("decoder boxes does not read the tensor {id}");
            assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
        }
    }
    // The number of boxes is not the class of a single box.
    let count = [1i64];
    let tensors = [
        TensorView::from_slice("boxes", &[1, 1, 4], &BOXES[..4]),
        TensorView::from_slice("scores", &[1, 1], &SCORES[..1]),
        TensorView::from_slice("num_dets", &[1, 1], &count),
    ];
    assert_eq!(detect(&tensors, None), (vec![0], vec![]));
}

/// TensorFlow's outputs have these names, too, and y before x.
#[test]
fn a_number_of_rows_that_is_not_read_causes_a_warning() {
    let [.., floats] = typed();
    for (id, of_batch, decoder) in
        [("count", &[1][..], "ssd-postprocess"), ("num_dets", &[1, 1], "efficientnms")]
    {
        let tensors = [
            TensorView::from_slice("boxes", &[1, 3, 4], &BOXES),
            TensorView::from_slice("scores", &[1, 3], &SCORES),
            view("classes", &[1, 3], &floats),
            TensorView::from_slice(id, of_batch, &[3.0f32]),
        ];
        let (classes, warnings) = detect(&tensors, None);
        assert_eq!(classes, BY_SCORE);
        let advice = format!("`decoder = {decoder}` if");
        assert!(warnings.len() == 1 && warnings[0].contains(&advice), "{warnings:?}");
        assert_eq!(detect(&tensors, Some(decoder)), (BY_SCORE.to_vec(), vec![]));
    }
}

#[test]
fn two_tensors_of_floating_point_numbers_for_each_box_are_an_error() {
    let [.., floats] = typed();
    let tensors = [
        TensorView::from_slice("onnx/a", &[3, 4], &BOXES),
        view("onnx/b", &[3], &floats),
        TensorView::from_slice("onnx/c", &[3], &SCORES),
    ];
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    nms.set_decoder(Some("boxes")).unwrap();
    let Err(error) = nms.run(&tensors) else { panic!("it is not clear which are the scores") };
    let error = error.to_string();
    assert!(error.contains("boxes in 2 ways"), "{error}");
}
