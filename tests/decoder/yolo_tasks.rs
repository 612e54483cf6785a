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
    decoder.forms()[0].layout(&tensors, options).ok()
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
    assert_eq!(keypoints(13, classes(0)), Some((1, 8, 2)));
    assert_eq!(keypoints(58, classes(3)), Some((3, 51, 3)));
    assert_eq!(keypoints(56, classes(51)), None);
    let shape = KeypointShape { count: 21, components: 2 };
    let options = Options { keypoints: Some(shape), ..Options::default() };
    assert_eq!(keypoints(48, options), Some((2, 42, 2)));
    assert_eq!(keypoints(46, options), None);
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
