// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers that a file reads: scores, classes, priors, batches.

use super::*;
use nmsfilter_core::decoder::layout::Background;

#[test]
fn end2end_rows_are_corners_with_score_and_class() {
    let rows = [[10.0f32, 20.0, 30.0, 40.0, 0.9, 7.0], [1.0, 2.0, 3.0, 4.0, 0.8, 0.5]];
    let tensors = [TensorView::from_slice("yolo-26-end2end-out", &[1, 2, 6], rows.as_flattened())];
    let choice = decoder::choose(&tensors, None, Options::default()).unwrap();
    assert_eq!((choice.decoder.name(), choice.reason), ("end2end", Reason::Id));
    let mut engine = Reference::default();
    let outcome = engine
        .run(Job::new(
            &tensors,
            &choice.layout,
            &Params::default(),
            &engines::places(&choice.layout),
        ))
        .unwrap();
    let [found] = outcome.group(0).survivors else { panic!("{:?}", outcome.group(0)) };
    let corners = [found.x1, found.y1, found.x2, found.y2];
    assert_eq!((corners, found.score, found.class), ([10.0, 20.0, 30.0, 40.0], 0.9, 7));
    assert_eq!(outcome.group(0).rejected, 1, "a class that is no whole number");
    // The number of classes is a limit.
    let few = Options { num_classes: 7, ..Options::default() };
    let layout = decoder::choose(&tensors, None, few).unwrap().layout;
    assert_eq!(
        engine
            .run(Job::new(&tensors, &layout, &Params::default(), &engines::places(&layout)))
            .unwrap()
            .group(0)
            .rejected,
        2
    );
}

#[test]
fn the_option_score_activation_replaces_the_description() {
    let (boxes, logits) = ([0.5f32, 0.5, 0.2, 0.2].repeat(2), [3.0f32, -1.0, 0.25, 0.5]);
    let tensors = [
        TensorView::from_slice("pred_boxes", &[1, 2, 4], &boxes),
        TensorView::from_slice("logits", &[1, 2, 2], &logits),
    ];
    let run = |score_activation| {
        let options = Options { score_activation, labels: 2, ..Options::default() };
        // DETR models, which have softmax and a class for "no object", use these names as well. The
        // names therefore choose no decoder.
        assert!(decoder::choose(&tensors, None, options).is_err());
        let choice = decoder::choose(&tensors, decoder::by_name("detr"), options).unwrap();
        assert_eq!(choice.reason, Reason::Name);
        assert!(choice.layout.normalized);
        let mut engine = Reference::default();
        let params = Params { method: Method::None, ..Params::default() };
        let places = [ImagePlace::in_model([100.0; 2])];
        let outcome = engine.run(Job::new(&tensors, &choice.layout, &params, &places)).unwrap();
        outcome.group(0).survivors.iter().map(|found| found.score).collect::<Vec<_>>()
    };
    let near = |found: Vec<f32>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        let pairs = found.iter().zip(expected);
        assert!(pairs.into_iter().all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6), "{found:?}");
    };
    near(run(None), &[sigmoid(3.0), sigmoid(0.5)]);
    near(run(Some(Activation::Sigmoid)), &[sigmoid(3.0), sigmoid(0.5)]);
    near(run(Some(Activation::Softmax)), &[sigmoid(4.0), sigmoid(0.25)]);
    near(run(Some(Activation::None)), &[3.0, 0.5]);
}

/// The background counts in the sum of softmax, and nowhere else.
#[test]
fn the_background_of_retinaface_is_read_with_softmax_only() {
    let tensors: [(&str, &[usize]); 2] = [("loc", &[1, 42, 4]), ("conf", &[1, 42, 2])];
    for (score_activation, offset, background) in [
        (None, 1, Background::None),
        (Some(Activation::Sigmoid), 1, Background::None),
        (Some(Activation::Softmax), 0, Background::First),
    ] {
        let options = Options { score_activation, ..model_size(32.0) };
        let layout = choose(&tensors, "retinaface", options).unwrap().layout;
        let scores = layout.groups[0].scores;
        assert_eq!((scores.offset, scores.anchor_stride), (offset, 2));
        assert_eq!((layout.score.background, layout.score.components), (background, 1));
        assert_eq!(layout.classes, 1);
    }
}

#[test]
fn labels_in_a_tensor_are_the_classes_of_boxes() {
    let (boxes, scores) = ([[0.0f32, 0.0, 9.0, 9.0]; 3], [0.9f32, 0.8, 0.7]);
    let run = |labels: TensorView<'_>, options: Options| {
        let tensors = [
            labels,
            TensorView::from_slice("boxes", &[1, 3, 4], boxes.as_flattened()),
            TensorView::from_slice("scores", &[1, 3], &scores),
        ];
        let choice = decoder::choose(&tensors, None, options).unwrap();
        assert_eq!((choice.decoder.name(), choice.reason), ("boxes", Reason::Id));
        let params = Params { method: Method::None, ..Params::default() };
        let mut engine = Reference::default();
        let outcome = engine
            .run(Job::new(&tensors, &choice.layout, &params, &engines::places(&choice.layout)))
            .unwrap();
        outcome.group(0).survivors.iter().map(|found| found.class).collect::<Vec<_>>()
    };
    let any = Options::default();
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3], &[62i64, 0, -1]), any), [62, 0]);
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3, 1], &[62i32, 0, 7]), any), [62, 0, 7]);
    assert_eq!(run(TensorView::from_slice("labels", &[3], &[62.0f32, 0.5, 7.0]), any), [62, 7]);
    let eight = Options { num_classes: 8, ..any };
    assert_eq!(run(TensorView::from_slice("labels", &[1, 3], &[62i64, 0, 7]), eight), [0, 7]);
    // Without the name, an integer tensor is ignored.
    assert_eq!(run(TensorView::from_slice("indices", &[1, 3], &[62i64, 0, 7]), any), [0, 0, 0]);
}

#[test]
fn batches_are_read_with_every_form() {
    let batch = Options { batch: true, ..model_size(64.0) };
    type Tensors<'a> = &'a [(&'a str, &'a [usize])];
    let cases: [(&str, Tensors<'_>, usize); 6] = [
        ("end2end", &[("output0", &[3, 300, 6])], 300),
        ("yolox-raw", &[("output", &[3, 84, 7])], 84),
        ("detr", &[("pred_boxes", &[3, 9, 4]), ("logits", &[3, 9, 80])], 9),
        (
            "yolov5-raw",
            &[("a", &[3, 3, 8, 8, 7]), ("b", &[3, 3, 4, 4, 7]), ("c", &[3, 3, 2, 2, 7])],
            252,
        ),
        (
            "efficientnms",
            &[
                ("num_dets", &[3, 1]),
                ("det_boxes", &[3, 9, 4]),
                ("det_scores", &[3, 9]),
                ("det_classes", &[3, 9]),
            ],
            9,
        ),
        (
            "ssd-postprocess",
            &[("count", &[3]), ("boxes", &[3, 9, 4]), ("scores", &[3, 9]), ("classes", &[3, 9])],
            9,
        ),
    ];
    for (name, tensors, anchors) in cases {
        let choice = choose(tensors, name, batch).unwrap();
        assert_eq!((choice.layout.images, choice.layout.anchors()), (3, anchors), "{name}");
        // All elements that the layout addresses exist.
        with_zeros(tensors, |tensors| {
            let mut engine = Reference::default();
            let places = engines::places(&choice.layout);
            let outcome =
                engine.run(Job::new(tensors, &choice.layout, &Params::default(), &places)).unwrap();
            assert_eq!(outcome.groups().len(), 3);
        });
        let text = message(tensors, name, model_size(64.0));
        assert!(text.contains("a batch dimension of 1, got 3"), "{name}: {text}");
    }
    let text = message(&[("pred_boxes", &[2, 9, 4]), ("logits", &[3, 9, 80])], "detr", batch);
    assert!(text.contains("is a batch of 2") && text.contains("one of 3"), "{text}");
}

#[test]
fn priors_can_be_in_the_file() {
    let text = "
        name = file-priors
        [tensor boxes]
        shape = N,4
        [tensor scores]
        shape = N,C
        [score]
        scores = scores
        activation = softmax
        background = yes
        [box]
        box = boxes
        format = center
        transform = exp
        variances = 0.1 0.2
        [priors]
        10 20 8 4   # the first anchor
        30 40 16 8
    ";
    let decoder = decoder::from_text(text).unwrap();
    let (boxes, scores) = ([0.0f32; 12], [0.0f32, 1.0, 2.0].repeat(3));
    let choose = |anchors: usize| {
        let tensors = [
            TensorView::from_slice("a", &[1, anchors, 4], &boxes[..anchors * 4]),
            TensorView::from_slice("b", &[1, anchors, 3], &scores[..anchors * 3]),
        ];
        let layout = decoder::choose(&tensors, Some(decoder), Options::default())?.layout;
        assert_eq!(layout.groups[0].reference, BoxReference::Table(0));
        let mut engine = Reference::default();
        let params = Params { method: Method::None, ..Params::default() };
        let outcome =
            engine.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
        let corners = |d: &Detection| (d.class, [d.x1, d.y1, d.x2, d.y2]);
        Ok::<_, ChoiceError>(outcome.group(0).survivors.iter().map(corners).collect::<Vec<_>>())
    };
    let expected = [(1, [6.0, 18.0, 14.0, 22.0]), (1, [22.0, 36.0, 38.0, 44.0])];
    assert_eq!(choose(2).unwrap(), expected);
    let text = choose(3).unwrap_err().to_string();
    assert!(text.contains("it has 3 anchors, but the layout file has 2 priors"), "{text}");
}

/// A file can express the decoder `windows`, with an equal layout.
#[test]
fn a_file_of_windows_has_the_layout_of_the_decoder() {
    let text = "
        name = windows
        values = any
        [tensor windows]
        shape = N,4
        [score]
        scores = windows 3
        [box]
        box = windows
        format = square
    ";
    let decoder = decoder::from_text(text).unwrap();
    let zeros = [0.0f32; 28];
    for shape in [&[7, 4][..], &[1, 7, 4]] {
        let tensors = [TensorView::from_slice("windows", shape, &zeros)];
        for coordinates in [Coordinates::Auto, Coordinates::Normalized, Coordinates::Pixels] {
            let options = Options { coordinates, ..Options::default() };
            let layout = |decoder| decoder::choose(&tensors, decoder, options).unwrap().layout;
            let file_layout = layout(Some(decoder));
            assert_eq!(file_layout, layout(decoder::by_name("windows")));
            assert_eq!(file_layout.plain(&tensors).unwrap().box_format, BoxFormat::Square);
        }
    }
}

/// Files can express the decoders `ultraface` and `yolov5`, with equal layouts.
#[test]
fn files_of_ultraface_and_yolov5_have_the_layouts_of_the_decoders() {
    let ultraface = "
        name = ultraface
        [tensor scores]
        shape = N,2
        [tensor boxes]
        shape = N,4
        [score]
        scores = scores
        background = yes
        [box]
        box = boxes
        unit = normalized
    ";
    let yolov5 = "
        name = yolov5
        [tensor output]
        shape = N,5+C
        [score]
        scores = output 5
        objectness = output 4
        [box]
        box = output
        format = center
    ";
    let zeros = [0.0f32; 9 * 8];
    let face =
        |id, columns: usize| TensorView::from_slice(id, &[1, 9, columns], &zeros[..9 * columns]);
    let cases = [
        ("ultraface", ultraface, vec![face("a", 2), face("b", 4)]),
        ("yolov5", yolov5, vec![face("c", 8)]),
    ];
    for (name, text, tensors) in cases {
        let layout = |decoder, coordinates| {
            let options = Options { coordinates, ..Options::default() };
            decoder::choose(&tensors, decoder, options).unwrap().layout
        };
        let file = Some(decoder::from_text(text).unwrap());
        for coordinates in [Coordinates::Auto, Coordinates::Normalized, Coordinates::Pixels] {
            assert_eq!(layout(file, coordinates), layout(decoder::by_name(name), coordinates));
        }
    }
}

#[test]
fn a_program_reads_tensors_by_a_layout_text() {
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    let error = nms.set_layout("name = a\nsize = 3").unwrap_err();
    assert_eq!(error.line, 2);
    let rows = [[10.0f32, 20.0, 30.0, 40.0, 0.9]];
    let tensors = [TensorView::from_slice("out", &[1, 1, 5], rows.as_flattened())];
    nms.set_layout(
        "name = rows\n[tensor out]\nshape = N,5\n[score]\nscores = out 4\n[box]\nbox = out\n",
    )
    .unwrap();
    assert_eq!(nms.run(&tensors).unwrap().group(0).survivors.len(), 1);
}

/// `C` includes the background. With `1+C` the last class would be lost, so it is refused unless the column is named as
/// ignored.
#[test]
fn every_number_of_an_anchor_is_in_a_field_or_ignored() {
    let text = |shape: &str, of_tensor: &str| {
        format!(
            "name = columns\n[tensor scores]\nshape = {shape}\n{of_tensor}[tensor boxes]\nshape = N,4\n\
             [score]\nscores = scores\nbackground = yes\n[box]\nbox = boxes\n"
        )
    };
    let error = decoder::from_text(&text("N,1+C", "")).err().unwrap().to_string();
    let expected = "line 2: tensor scores: an anchor has 1+C numbers, but no field reads those from column C on";
    assert!(error.starts_with(expected), "{error}");

    // Three anchors, of which each is one of three classes after the background.
    let boxes = [[0.0f32, 0.0, 9.0, 9.0], [20.0, 0.0, 29.0, 9.0], [40.0, 0.0, 49.0, 9.0]].concat();
    let scores = [[0.1f32, 0.9, 0.2, 0.3], [0.1, 0.2, 0.8, 0.3], [0.1, 0.2, 0.3, 0.7]].concat();
    let tensors = [
        TensorView::from_slice("s", &[1, 3, 4], &scores),
        TensorView::from_slice("b", &[1, 3, 4], &boxes),
    ];
    let classes = |text: &str| {
        let decoder = decoder::from_text(text).unwrap();
        let found = decoded(&tensors, decoder, Options::default(), 0.25);
        found.iter().map(|it| (it.class, it.score)).collect::<Vec<_>>()
    };
    let named = |text: String| {
        let text = text.replace("[tensor scores]", "[tensor scores]\nnames = s");
        text.replace("[tensor boxes]", "[tensor boxes]\nnames = b")
    };
    assert_eq!(classes(&named(text("N,C", ""))), [(0, 0.9), (1, 0.8), (2, 0.7)]);
    let ignored = text("N,1+C", "ignored = C\n");
    assert_eq!(classes(&named(ignored)), [(0, 0.9), (1, 0.8), (1, 0.3)]);

    for (shape, of_tensor, unread) in [
        ("N,C+5", "", Some("from column C on")),
        ("N,C+5", "ignored = C 5\n", None),
        ("N,C+5", "ignored = C 2, C+3 2\n", Some("from column C+2 to before column C+3")),
        ("N,C+5", "ignored = C+1 4\n", Some("from column C to before column C+1")),
    ] {
        let error = decoder::from_text(&text(shape, of_tensor)).err().map(|it| it.to_string());
        match unread {
            None => assert_eq!(error, None),
            Some(unread) => {
                let error = error.unwrap();
                let unread =
                    unread.replace("C+2", "2+C").replace("C+3", "3+C").replace("C+1", "1+C");
                assert!(error.contains(&format!("no field reads those {unread} ")), "{error}");
            }
        }
    }
    for value in ["5 2", "C C", "x", "1 2 3", "", "C+9", "0 1,", "M"] {
        let text = text("N,C+5", &format!("ignored = {value}\n"));
        assert!(decoder::from_text(&text).is_err(), "{value}");
    }
    // Classes between other numbers, keypoints, and numbers that no field reads after the box.
    let row = |shape: &str, column: &str| {
        let text = format!(
            "name = row\n[tensor t]\nshape = {shape}\n[score]\nscores = t 4\n[box]\nbox = t\n\
             [column k]\nnumbers = t C+4\ncount = {column}\n"
        );
        decoder::from_text(&text).err().map(|error| error.to_string())
    };
    assert_eq!(row("N,4+C+3K", "K\nkind = points"), None);
    assert_eq!(row("N,C+6", "2"), None);
    assert!(row("N,C+6", "1").unwrap().contains("from column 5+C on"));
}
