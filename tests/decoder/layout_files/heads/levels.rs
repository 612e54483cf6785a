// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models with other strides than 8, 16 and 32.

use super::*;

const SIDE: usize = 128;

fn options() -> Options {
    model_size(SIDE as f32)
}

#[test]
fn heads_have_any_of_the_strides_from_4_to_128() {
    let mut rng = fastrand::Rng::with_seed(12);
    let all: [&[usize]; 7] = [
        &[4, 8, 16, 32],
        &[8, 16, 32, 64],
        &[4, 8, 16],
        &[16, 32],
        &[16],
        &[8, 32],
        &[4, 8, 16, 32, 64, 128],
    ];
    for strides in all {
        for is_channels_last in [false, true] {
            let format = Format { element: ElementType::F32, is_channels_last };
            let of = (SIDE, strides);
            let boxes = Level::of_strides(of, &mut rng, 64, bins, format);
            let scores = Level::of_strides(of, &mut rng, 5, probability, format);
            let expected = candidates(&boxes, &scores, Boxes::Bins, 0);
            let mut tensors = Level::views(&[&boxes, &scores]);
            compare_boxes(&survivors(&tensors, "yolov8-heads", options()), &expected);
            tensors.reverse();
            compare_boxes(&survivors(&tensors, "yolov8-heads", options()), &expected);

            let sums = sums(&scores);
            let known = Options { num_classes: 5, ..options() };
            let of_rknn = Level::views(&[&boxes, &scores, &sums]);
            compare_boxes(&survivors(&of_rknn, "yolov8-heads", known), &expected);

            let distances = Level::of_strides(of, &mut rng, 4, |rng, _| rng.f32() * 2.0, format);
            let expected = candidates(&distances, &scores, Boxes::Distances, 0);
            let tensors = Level::views(&[&distances, &scores]);
            compare_boxes(&survivors(&tensors, "yolov8-heads", options()), &expected);
        }
    }
}

/// A level, as its stride, its columns and rows of cells, and its tensors of boxes.
fn levels(choice: &Choice) -> Vec<([f32; 2], usize, usize)> {
    let level = |group: &nmsfilter_core::decoder::layout::Group| match &group.reference {
        BoxReference::Grid(grid) => (grid.stride, grid.columns, group.anchors),
        other => panic!("{other:?}"),
    };
    choice.layout.groups.iter().map(level).collect()
}

/// A family, with the channels of its tensors and the anchors of a cell.
type FamilyOfLevels = (&'static str, &'static [(&'static str, usize)], usize);

#[test]
fn the_levels_of_other_families_follow_from_shapes_and_names() {
    let families: [FamilyOfLevels; 6] = [
        ("nanodet", &[("cls", 5), ("dis", 32)], 1),
        ("picodet", &[("cls", 5), ("dis", 32)], 1),
        ("scrfd", &[("score", 1), ("bbox", 4)], 2),
        ("scrfd", &[("score", 1), ("bbox", 4), ("kps", 10)], 2),
        ("yunet", &[("cls", 1), ("obj", 1), ("bbox", 4)], 1),
        ("yunet", &[("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)], 1),
    ];
    for (name, parts, per_cell) in families {
        for strides in [&[4usize, 8, 16, 32][..], &[8, 16, 32, 64, 128], &[16, 32]] {
            for (is_named, size) in [(true, 256usize), (false, 256), (false, 416)] {
                // Shapes do not distinguish the score of YuNet from its objectness.
                if !is_named && name == "yunet" {
                    continue;
                }
                let rounds_up = ["nanodet", "picodet"].contains(&name);
                let cells =
                    |stride: usize| if rounds_up { size.div_ceil(stride) } else { size / stride };
                let mut tensors: Vec<(String, [usize; 3])> = Vec::new();
                for &stride in strides.iter().rev() {
                    for &(part, channels) in parts {
                        let anchors = cells(stride) * cells(stride) * per_cell;
                        let id = if is_named { format!("{part}_{stride}") } else { "a".to_owned() };
                        tensors.push((id, [1, anchors, channels]));
                    }
                }
                let tensors: Vec<(&str, &[usize])> =
                    tensors.iter().map(|(id, shape)| (id.as_str(), &shape[..])).collect();
                let choice = choose(&tensors, name, model_size(size as f32));
                let choice = choice.unwrap_or_else(|error| panic!("{name} {strides:?}: {error}"));
                let level = |&stride: &usize| {
                    let cells = cells(stride);
                    ([stride as f32; 2], cells, cells * cells * per_cell)
                };
                let expected: Vec<_> = strides.iter().map(level).collect();
                assert_eq!(levels(&choice), expected, "{name}, {size}");
                if is_named && name == "yunet" {
                    let by_id = with_zeros(&tensors, |tensors| {
                        decoder::choose(tensors, None, model_size(size as f32))
                    });
                    let choice = by_id.unwrap();
                    assert_eq!((choice.reason, levels(&choice)), (Reason::Id, expected));
                }
            }
        }
    }
}

/// All levels are in one tensor, whose number of anchors tells which they are.
#[test]
fn the_levels_of_one_tensor_follow_from_its_number_of_anchors() {
    for (name, channels) in [("yolox-raw", 7), ("nanodet", 34)] {
        for strides in [&[8usize, 16, 32][..], &[4, 8, 16, 32], &[8, 16, 32, 64], &[16, 32]] {
            let anchors = |stride: &usize| (320 / stride) * (320 / stride);
            let total: usize = strides.iter().map(anchors).sum();
            let tensors: [(&str, &[usize]); 1] = [("a", &[1, total, channels])];
            let choice = choose(&tensors, name, model_size(320.0)).unwrap();
            let level = |stride: &usize| ([*stride as f32; 2], 320 / stride, anchors(stride));
            let expected: Vec<_> = strides.iter().map(level).collect();
            assert_eq!(levels(&choice), expected, "{name}");
        }
        // Queries of RT-DETR can be as many as the cells of one grid.
        for anchors in [2101, 100, 25] {
            let tensors: [(&str, &[usize]); 1] = [("a", &[1, anchors, channels])];
            let error = message(&tensors, name, model_size(320.0));
            assert!(error.contains(&format!("{anchors} anchors")), "{error}");
        }
    }
}

/// The anchors of YOLOv5's models of 1280 pixels are from its yolov5n6.yaml.
#[test]
fn yolov5_with_four_strides_has_the_anchors_of_its_larger_models() {
    let side = |stride: usize| SIDE / stride;
    let shapes = [8, 16, 32, 64].map(|stride| [1, 3, side(stride), side(stride), 7]);
    let tensors: Vec<(&str, &[usize])> = shapes.iter().map(|shape| ("a", &shape[..])).collect();
    let total: usize = [8, 16, 32, 64].map(|stride| 3 * side(stride) * side(stride)).iter().sum();
    let one = [1, total, 7];
    for tensors in [tensors, vec![("a", &one[..])]] {
        let choice = choose(&tensors, "yolov5-raw", options()).unwrap();
        let sizes: Vec<Vec<[f32; 2]>> = choice
            .layout
            .groups
            .iter()
            .map(|group| {
                let BoxReference::Grid(grid) = &group.reference else { panic!("{group:?}") };
                grid.sizes.to_vec()
            })
            .collect();
        assert_eq!(
            sizes,
            [
                [[19.0, 27.0], [44.0, 40.0], [38.0, 94.0]],
                [[96.0, 68.0], [86.0, 152.0], [180.0, 137.0]],
                [[140.0, 301.0], [303.0, 264.0], [238.0, 542.0]],
                [[436.0, 615.0], [739.0, 380.0], [925.0, 792.0]],
            ]
        );
    }
}

#[test]
fn the_size_of_the_models_input_is_needed_for_any_number_of_levels() {
    for strides in [&[8usize, 16][..], &[8, 16, 32], &[4, 8, 16, 32, 64]] {
        let shapes: Vec<[usize; 4]> = strides
            .iter()
            .flat_map(|stride| [64, 5].map(|channels| [1, channels, 256 / stride, 256 / stride]))
            .collect();
        let tensors: Vec<(&str, &[usize])> =
            shapes.iter().map(|shape| ("a", shape.as_slice())).collect();
        let error = message(&tensors, "yolov8-heads", Options::default());
        assert!(error.contains("needs the size of the model's input"), "{error}");
    }
}

/// A level without all its tensors, and one of a stride that no model has, are not left out without a word.
#[test]
fn a_tensor_of_a_level_that_is_not_read_is_told() {
    let heads = |channels: usize, sides: &[usize]| -> Vec<[usize; 4]> {
        sides.iter().map(|&side| [1, channels, side, side]).collect()
    };
    let last = |shape: &[usize; 4]| [shape[0], shape[2], shape[3], shape[1]];
    for (boxes, scores) in [
        (heads(64, &[64, 32, 16, 8]), heads(5, &[32, 16, 8])),
        (heads(64, &[128, 32, 16, 8]), heads(5, &[128, 32, 16, 8])),
    ] {
        let first = [boxes, scores].concat();
        for shapes in [first.clone(), first.iter().map(last).collect()] {
            let left_out = shapes[0];
            let numbers: Vec<Vec<f32>> =
                shapes.iter().map(|shape| vec![0.0; shape.iter().product()]).collect();
            let tensors: Vec<TensorView<'_>> = shapes
                .iter()
                .zip(&numbers)
                .map(|(shape, numbers)| TensorView::from_slice("a", shape, numbers))
                .collect();
            let mut nms = Nms::new(Backend::Cpu, None).unwrap();
            nms.set_decoder(Some("yolov8-heads")).unwrap();
            nms.model_size = [256.0; 2];
            nms.run(&tensors).unwrap();
            let [warning] = nms.warnings() else { panic!("{:?}", nms.warnings()) };
            let [_, rows, columns, channels] = left_out;
            let text = warning.to_string();
            let part = format!("does not read the tensor a (f32 1x{rows}x{columns}x{channels})");
            assert!(text.contains(&part), "{text}");
        }
    }
}
