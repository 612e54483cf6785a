// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors that a file accepts, and errors for others.

use super::*;

#[test]
fn a_grid_of_another_model_size_is_an_error_with_both_numbers() {
    assert_eq!(
        message(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(416.0)),
        "tensor out (f32 1x8400x85): it has 8400 anchors, but decoder yolox-raw expects 3549: grids of \
         stride 8, 16, 32 on a model input of 416x416; set `model_size` to the \
         model's input"
    );
    assert_eq!(
        message(&[("out", &[1, 8400, 85])], "yolox-raw", Options::default()),
        "tensor out (f32 1x8400x85): decoder yolox-raw needs the size of the model's input; \
         set `model_size`"
    );
    assert!(choose(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(640.0)).is_ok());
    let unnamed: [(&str, &[usize]); 3] =
        [("a", &[1, 3, 8, 8, 7]), ("b", &[1, 3, 4, 4, 7]), ("c", &[1, 3, 2, 2, 7])];
    let text = message(&unnamed, "yolov5-raw", Options::default());
    assert!(text.contains("decoder yolov5-raw needs the size of the model's input"), "{text}");
    for size in [f32::NAN, f32::INFINITY, -1.0, 0.0, 1e30] {
        assert!(choose(&[("out", &[1, 8400, 85])], "yolox-raw", model_size(size)).is_err());
    }
    let levels: [(&str, &[usize]); 6] = [
        ("score_8", &[1, 12800, 1]),
        ("score_16", &[1, 3200, 1]),
        ("score_32", &[1, 800, 1]),
        ("bbox_8", &[1, 12800, 4]),
        ("bbox_16", &[1, 3200, 4]),
        ("bbox_32", &[1, 800, 4]),
    ];
    assert!(choose(&levels, "scrfd", model_size(640.0)).is_ok());
    let text = message(&levels, "scrfd", model_size(320.0));
    assert!(text.starts_with("tensor score_8 (f32 1x12800x1): it has 12800 anchors"), "{text}");
    assert!(text.contains("expects 3200: grids of stride 8 on a model input of 320x320"), "{text}");
    // The input can be rectangular. If a stride does not divide a side, the number of cells is
    // rounded.
    let size = Options { model_size: Some([320.0, 192.0]), ..Options::default() };
    assert!(choose(&[("out", &[1, 1260, 85])], "yolox-raw", size).is_ok());
}

/// The outputs of insightface's models are named by numbers, and have no batch dimension.
#[test]
fn tensors_of_levels_are_found_by_names_or_by_shapes_also_without_a_batch_dimension() {
    let shapes: [&[usize]; 6] =
        [&[12800, 1], &[3200, 1], &[800, 1], &[12800, 4], &[3200, 4], &[800, 4]];
    for (names, reason) in [
        (["448", "471", "494", "451", "474", "497"], Reason::Name),
        (["443", "468", "493", "446", "471", "496"], Reason::Name),
        (["onnx/443", "onnx/468", "onnx/493", "onnx/446", "onnx/471", "onnx/496"], Reason::Name),
        (["a", "b", "c", "d", "e", "f"], Reason::Shape),
    ] {
        let mut tensors: Vec<(&str, &[usize])> = names.into_iter().zip(shapes).collect();
        tensors.reverse();
        for batch in [false, true] {
            let choice = choose(&tensors, "scrfd", Options { batch, ..model_size(640.0) }).unwrap();
            assert_eq!((choice.reason, choice.layout.images), (reason, 1), "{names:?} {batch}");
            let tensors = choice.layout.groups.iter().map(|g| [g.scores.tensor, g.boxes.tensor]);
            assert_eq!(tensors.collect::<Vec<_>>(), [[5, 2], [4, 1], [3, 0]]);
        }
    }
}

#[test]
fn tensors_of_equal_shapes_need_names() {
    let shapes: [&[usize]; 3] = [&[1, 6400, 1], &[1, 1600, 1], &[1, 400, 1]];
    let bbox: [&[usize]; 3] = [&[1, 6400, 4], &[1, 1600, 4], &[1, 400, 4]];
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let all: Vec<&[usize]> = shapes.into_iter().chain(shapes).chain(bbox).collect();
    let unnamed: Vec<(&str, &[usize])> = names.into_iter().zip(all.iter().copied()).collect();
    let text = message(&unnamed, "yunet", model_size(640.0));
    assert!(text.contains("yunet in 8 ways; give the tensor"), "{text}");
    let names =
        ["cls_8", "cls_16", "cls_32", "obj_8", "obj_16", "obj_32", "bbox_8", "bbox_16", "bbox_32"];
    let named: Vec<(&str, &[usize])> = names.into_iter().zip(all).collect();
    let choice = choose(&named, "yunet", model_size(640.0)).unwrap();
    assert_eq!((choice.layout.anchors(), choice.reason), (8400, Reason::Id));
}

/// When 16 tensors have one shape, their orders are not tried one by one.
#[test]
fn many_tensors_of_one_shape_are_matched_quickly() {
    let text = (0..16).fold("name = many\n".to_owned(), |text, index| {
        let shape = if index == 15 { "N,5" } else { "N,4" };
        text + &format!("[tensor t{index}]\nshape = {shape}\n")
    });
    let unused = decoder::from_text(&text).err().unwrap().to_string();
    assert!(unused.contains("expected at most") || unused.contains("needs"), "{unused}");
    let strides = "1 2 4 8 16 32 64 128";
    let text = format!(
        "name = many\n[tensor a]\nshape = N,4\nper-level = yes\n[tensor b]\nshape = N\nper-level = yes\n\
         [anchors]\nstrides = {strides}\nrounding = up\n[score]\nscores = b\n[box]\nbox = a\n"
    );
    let decoder = decoder::from_text(&text).unwrap();
    // The levels have one anchor each. Field `a` has its 8 tensors, but `b` has one fewer than it
    // needs.
    let (boxes, scores) = ([0.0f32; 4], [0.0f32; 1]);
    let mut tensors: Vec<TensorView<'_>> =
        (0..17).map(|_| TensorView::from_slice("a", &[1, 4], &boxes)).collect();
    tensors.extend((0..7).map(|_| TensorView::from_slice("b", &[1, 1], &scores)));
    let error = decoder::choose(&tensors, Some(decoder), model_size(1.0)).err().unwrap();
    assert!(error.to_string().contains("many in many ways"), "{error}");
}

#[test]
fn rows_of_six_numbers_with_another_decoder_may_be_end_to_end() {
    let may_be = |name: &str, shape: &[usize], options: Options| {
        let choice = choose(&[("out", shape)], name, options).unwrap();
        decoder::misread::may_be_end_to_end(&choice, options)
    };
    let unknown = Options::default();
    for shape in [&[1, 300, 6][..], &[1, 8400, 6]] {
        for name in ["yolov8", "yolov5", "yolox", "detr"] {
            assert!(may_be(name, shape, unknown), "{name}");
        }
        assert!(!may_be("end2end", shape, unknown));
        assert!(!may_be("yolov8", shape, Options { num_classes: 2, ..unknown }));
        assert!(!may_be("yolov5", shape, Options { num_classes: 1, ..unknown }));
    }
    assert!(!may_be("yolov8", &[1, 6, 8400], unknown));
    assert!(!may_be("yolov8", &[1, 300, 7], unknown));
}

#[test]
fn integer_tensors_that_no_role_needs_do_not_matter() {
    let (numbers, zeros, rows) = ([1i64; 3], vec![0.0f32; 84 * 2100], [[0.0f32; 6]; 3]);
    let extra = || TensorView::from_slice("indices", &[1, 3], &numbers);
    let yolov8 = [extra(), TensorView::from_slice("out", &[1, 84, 2100], &zeros)];
    for decoder in [None, decoder::by_name("yolov8")] {
        let choice = decoder::choose(&yolov8, decoder, Options::default()).unwrap();
        assert_eq!(choice.layout.tensors().as_slice(), [1]);
    }
    let end2end = [extra(), TensorView::from_slice("out", &[1, 3, 6], rows.as_flattened())];
    let decoder = decoder::by_name("end2end");
    let layout = decoder::choose(&end2end, decoder, Options::default()).unwrap().layout;
    assert_eq!(layout.tensors().as_slice(), [1]);
}

#[test]
fn numbers_of_boxes_and_scores_cannot_be_integers_without_a_scale() {
    let (integers, bytes) = ([0i64; 18], [0u8; 18]);
    let decoder = decoder::by_name("end2end");
    let error = |tensor: TensorView<'_>| {
        decoder::choose(&[tensor], decoder, Options::default()).err().unwrap()
    };
    let found = error(TensorView::from_slice("output0", &[1, 3, 6], &integers));
    assert!(
        matches!(
            found,
            ChoiceError::Layout(LayoutError { problem: LayoutProblem::ElementType, .. })
        ),
        "{found}"
    );
    let found = error(TensorView::from_slice("output0", &[1, 3, 6], &bytes));
    assert!(
        matches!(
            found,
            ChoiceError::Layout(LayoutError { problem: LayoutProblem::NotQuantized, .. })
        ),
        "{found}"
    );
    let quantized = TensorView::from_slice("output0", &[1, 3, 6], &bytes)
        .with_quantization(Quantization::new(0.5, 0));
    assert!(decoder::choose(&[quantized], decoder, Options::default()).is_ok());
    let mut other = TensorView::from_slice::<f32>("output0", &[1, 0, 6], &[]);
    other.element = ElementType::Other("f64");
    assert!(matches!(
        error(other),
        ChoiceError::Layout(LayoutError { problem: LayoutProblem::ElementType, .. })
    ));
}

/// If the names are unknown, the fixed output order of the postprocessing operations identifies the
/// outputs.
#[test]
fn postprocessed_outputs_are_found_by_their_order() {
    let tflite: [(&str, &[usize]); 4] =
        [("a", &[1, 10, 4]), ("b", &[1, 10]), ("c", &[1, 10]), ("d", &[1])];
    let layout = choose(&tflite, "ssd-postprocess", Options::default()).unwrap().layout;
    let group = &layout.groups[0];
    let roles = [group.boxes.tensor, group.class.unwrap().tensor, group.scores.tensor];
    assert_eq!((roles, layout.count.unwrap().tensor), ([0, 1, 2], 3));
    let tensorflow: [(&str, &[usize]); 4] =
        [("d", &[1]), ("b", &[1, 10]), ("c", &[1, 10]), ("a", &[1, 10, 4])];
    let layout = choose(&tensorflow, "ssd-postprocess", Options::default()).unwrap().layout;
    let group = &layout.groups[0];
    let roles = [group.boxes.tensor, group.class.unwrap().tensor, group.scores.tensor];
    assert_eq!((roles, layout.count.unwrap().tensor), ([3, 1, 2], 0));
    assert!(layout.normalized);
    // Another order is rejected.
    let other: [(&str, &[usize]); 4] =
        [("b", &[1, 10]), ("a", &[1, 10, 4]), ("c", &[1, 10]), ("d", &[1])];
    let text = message(&other, "ssd-postprocess", Options::default());
    assert!(text.contains("ssd-postprocess in 2 ways"), "{text}");
}

#[test]
fn different_numbers_of_anchors_are_an_error_with_both_numbers() {
    let text =
        message(&[("pred_boxes", &[1, 9, 4]), ("logits", &[1, 8, 80])], "detr", Options::default());
    assert_eq!(
        text,
        "tensor pred_boxes (f32 1x9x4) has 9 anchors, tensor logits (f32 1x8x80) has 8; \
         expected the same number"
    );
}

/// If the logits have another number of anchors than the boxes, they must not be read as a single
/// tensor that has both boxes and scores.
#[test]
fn logits_of_other_boxes_are_not_read_as_a_single_tensor() {
    let text = message(&[("a", &[1, 9, 4]), ("b", &[1, 8, 80])], "detr", Options::default());
    assert!(text.contains("has 9 anchors") && text.contains("has 8; expected"), "{text}");
    let choice = choose(&[("b", &[1, 8, 80])], "detr", Options::default()).unwrap();
    assert_eq!(choice.layout.classes, 76);
}

/// Shapes that claim more elements than fit into memory give an error, or a layout that engines
/// refuse.
#[test]
fn enormous_shapes_do_not_overflow() {
    let texts = [
        "name = a\n[tensor t]\nshape = 4+C,N\n[score]\nscores = t 4\nfirst-class = 255\n[box]\nbox = t\n",
        "name = b\n[tensor t]\nshape = N,C+4\n[score]\nscores = t\nbackground = yes\n[box]\nbox = t C\n",
        "name = c\n[tensor t]\nshape = N,6\nignored = 5\n[anchors]\nstrides = 1 1 1\nper-cell = 256\n[score]\nscores = t 4\n\
         [box]\nbox = t\n",
    ];
    for text in texts {
        let decoder = decoder::from_text(text).unwrap();
        for shape in
            [[usize::MAX; 3], [1, usize::MAX, 6], [1, 6, usize::MAX], [1, usize::MAX, usize::MAX]]
        {
            let mut tensor = TensorView::from_slice::<f32>("t", &[1, 0, 0], &[]);
            tensor.shape = Shape::new(&shape).unwrap();
            for model_size in [None, Some([f32::MAX; 2]), Some([65_535.0; 2])] {
                let options = Options { batch: true, model_size, ..Options::default() };
                if let Ok(choice) = decoder::choose(&[tensor.clone()], Some(decoder), options) {
                    let mut engine = Reference::default();
                    let run = engine.run(Job::new(
                        &[tensor.clone()],
                        &choice.layout,
                        &Params::default(),
                        &engines::places(&choice.layout),
                    ));
                    assert!(run.is_err());
                }
            }
        }
    }
}
