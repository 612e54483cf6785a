// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders of masks, keypoints and oriented boxes: how the numbers of an anchor are divided.

use nmsfilter_core::decoder::layout::ColumnKind;
use nmsfilter_core::decoder::{self, KeypointShape, Layout, Options};
use nmsfilter_core::tensor::TensorView;

fn layout(name: &str, shapes: &[&[usize]], options: Options) -> Option<Layout> {
    let decoder = decoder::by_name(name).unwrap();
    let tensors: Vec<TensorView<'_>> = shapes
        .iter()
        .map(|shape| TensorView::from_slice("", shape, vec![0.0f32; shape.iter().product()].leak()))
        .collect();
    let tensors: Vec<&TensorView<'_>> = tensors.iter().collect();
    decoder.forms[0].layout(&tensors, options).ok()
}

fn classes(classes: usize) -> Options {
    Options { num_classes: classes, ..Options::default() }
}

#[test]
fn prototypes_are_found_in_both_orders_of_their_dimensions() {
    for prototypes in [[1, 32, 160, 160], [1, 160, 160, 32]] {
        for output in [[1, 116, 8400], [1, 8400, 116]] {
            for options in [Options::default(), classes(80)] {
                let layout = layout("yolov8-seg", &[&output, &prototypes], options).unwrap();
                let masks = layout.prototypes.unwrap();
                assert_eq!((layout.classes, masks.width, masks.height), (80, 160, 160));
                assert_eq!(layout.columns[0].components, 32);
            }
        }
    }
    assert!(layout("yolov8-seg", &[&[1, 36, 8400], &[1, 32, 160, 160]], classes(0)).is_none());
    assert!(layout("yolov8-seg", &[&[1, 116, 8400], &[1, 32, 160, 160]], classes(79)).is_none());
    let rectangular = layout("yolov8-seg", &[&[1, 37, 900], &[1, 32, 48, 80]], classes(0)).unwrap();
    let masks = rectangular.prototypes.unwrap();
    assert_eq!((masks.width, masks.height, rectangular.classes), (80, 48, 1));
}

#[test]
fn the_number_of_keypoints_follows_from_that_of_classes_and_the_other_way_round() {
    let keypoints = |values: usize, options| {
        let layout = layout("yolov8-pose", &[&[1, values, 8400]], options)?;
        Some((
            layout.classes,
            layout.columns[0].components,
            match layout.columns[0].kind {
                ColumnKind::Points(rule) => rule.components,
                _ => 0,
            },
        ))
    };
    assert_eq!(keypoints(56, classes(0)), Some((1, 51, 3)));
    assert_eq!(keypoints(58, classes(3)), Some((3, 51, 3)));
    assert_eq!(keypoints(57, classes(2)), Some((2, 51, 3)));
    assert_eq!(keypoints(57, classes(1)), Some((1, 52, 2)));
    assert_eq!(keypoints(39, classes(1)), Some((1, 34, 2)));
    // The only division.
    assert_eq!(keypoints(7, classes(0)), Some((1, 2, 2)));
    assert_eq!(keypoints(56, classes(51)), None);
    let shape = KeypointShape { count: 21, components: 2 };
    let options = Options { keypoints: Some(shape), ..Options::default() };
    assert_eq!(keypoints(48, options), Some((2, 42, 2)));
    assert_eq!(keypoints(46, options), None);
}

/// Returns the error of `choose`, or the number of classes, and the numbers of keypoints and of the components of each.
fn division(name: &str, shape: &[usize], options: Options) -> Result<[usize; 3], String> {
    let numbers = vec![0.0f32; shape.iter().product()];
    let tensors = [TensorView::from_slice("a", shape, &numbers)];
    let choice = decoder::choose(&tensors, decoder::by_name(name), options);
    let layout = choice.map_err(|error| error.to_string())?.layout;
    let ColumnKind::Points(rule) = layout.columns[0].kind else { panic!("{:?}", layout.columns) };
    let count = layout.columns[0].components / rule.components;
    Ok([layout.score.components, count, rule.components])
}

/// Tiger-pose has 12 points of two numbers, which are as many as 8 of three. The division of an anchor's numbers into scores
/// and keypoints is never guessed, except for persons.
#[test]
fn several_divisions_of_an_anchors_numbers_are_an_error_that_names_what_decides() {
    let keypoints = |count, components| Options {
        keypoints: Some(KeypointShape { count, components }),
        ..Options::default()
    };
    let labels = |labels| Options { labels, ..Options::default() };
    for shape in [|numbers| [1, numbers, 2100], |numbers| [1, 2100, numbers]] {
        let of = |numbers, options| division("yolov8-pose", &shape(numbers), options);
        for (numbers, examples) in [
            (
                57,
                "1 class and 26 keypoints of 2 numbers, or 2 classes and 17 keypoints of 3 numbers",
            ),
            (29, "1 class and 8 keypoints of 3 numbers, or 1 class and 12 keypoints of 2 numbers"),
            // Two divisions, and one for a person's keypoints.
            (
                68,
                "1 class and 21 keypoints of 3 numbers, or 2 classes and 31 keypoints of 2 numbers, or 13 classes and \
                 17 keypoints of 3 numbers",
            ),
        ] {
            let error = of(numbers, Options::default()).unwrap_err();
            let end = format!("{examples}; set `options.num_classes` or `options.keypoints`");
            assert!(error.ends_with(&end), "{error}");
        }
        for (numbers, options) in [(29, classes(1)), (29, labels(1)), (77, classes(1))] {
            let error = of(numbers, options).unwrap_err();
            assert!(error.ends_with("; set `options.keypoints`"), "{error}");
        }
        for (numbers, options, expected) in [
            (56, Options::default(), [1, 17, 3]),
            // Labels that are not the model's.
            (56, labels(80), [1, 17, 3]),
            (57, classes(2), [2, 17, 3]),
            (57, labels(2), [2, 17, 3]),
            (57, keypoints(17, 3), [2, 17, 3]),
            (57, keypoints(26, 2), [1, 26, 2]),
            (29, keypoints(12, 2), [1, 12, 2]),
            (29, keypoints(8, 3), [1, 8, 3]),
            (68, classes(1), [1, 21, 3]),
            (77, keypoints(24, 3), [1, 24, 3]),
        ] {
            assert_eq!(of(numbers, options).as_ref(), Ok(&expected), "{numbers}, {options:?}");
        }
    }
    let of = |numbers, options| division("end2end-pose", &[1, 300, numbers], options);
    let error = of(30, Options::default()).unwrap_err();
    assert!(error.ends_with("12 keypoints of 2 numbers; set `options.keypoints`"), "{error}");
    assert_eq!(of(30, keypoints(12, 2)), Ok([1, 12, 2]));
    assert_eq!(of(57, Options::default()), Ok([1, 17, 3]));
    assert_eq!(of(40, Options::default()), Ok([1, 17, 2]));
}

#[test]
fn rows_of_end_to_end_models_can_be_fewer_than_their_numbers() {
    let layout_of = |name, shape: &[usize]| layout(name, &[shape], Options::default());
    assert_eq!(layout_of("end2end-pose", &[1, 10, 57]).unwrap().columns[0].components, 51);
    assert!(layout_of("end2end-obb", &[1, 300, 7]).unwrap().is_oriented());
    assert!(layout_of("end2end-obb", &[1, 300, 6]).is_none());
    assert!(layout_of("end2end-obb", &[1, 300, 8]).is_none());
}

/// Prototypes that can be read in two ways are read as the file has them.
#[test]
fn a_file_can_have_one_order_of_the_dimensions_of_prototypes() {
    let text = |shape: &str| {
        format!(
            "name = masks-of-file\n[tensor output]\nshape = N,4+C+M\n[tensor prototypes]\nshape = {shape}\n\
             [score]\nscores = output 4\n[box]\nbox = output\n[column mask]\nnumbers = output C+4\ncount = M\n\
             prototypes = prototypes\n"
        )
    };
    let (output, prototypes) = (vec![0.0f32; 900 * 40], vec![0.0f32; 32 * 160 * 24]);
    let tensors = [
        TensorView::from_slice("a", &[1, 900, 40], &output),
        TensorView::from_slice("b", &[1, 32, 160, 24], &prototypes),
    ];
    let masks = |shape: &str| {
        let decoder = decoder::from_text(&text(shape)).unwrap();
        let choice = decoder::choose(&tensors, Some(decoder), Options::default())?;
        let masks = choice.layout.prototypes.unwrap();
        Ok::<_, decoder::ChoiceError>((choice.layout.classes, masks.width, masks.height))
    };
    assert_eq!(masks("M,H,W").unwrap(), (4, 24, 160));
    assert_eq!(masks("H,W,M").unwrap(), (12, 160, 32));
    assert!(masks("M,H,W or H,W,M").is_err());
}
