// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of the dimensions of all tensors of a model is one decision.

use nmsfilter_core::decoder::Channels;

use super::*;

/// A number of channels, and the strides of an input, of which one has as many cells in a row.
const CUBES: [(usize, usize, &[usize]); 3] =
    [(8, 64, &[8, 16, 32]), (16, 128, &[8, 16, 32]), (5, 80, &[8, 16])];

#[test]
fn scores_with_three_equal_sides_have_the_order_of_the_boxes() {
    let mut rng = fastrand::Rng::with_seed(13);
    for (classes, side, strides) in CUBES {
        for element in ELEMENTS {
            for is_channels_last in [false, true] {
                let format = Format { element, is_channels_last };
                let of = (side, strides);
                let boxes = Level::of_strides(of, &mut rng, 64, bins, format);
                let scores = Level::of_strides(of, &mut rng, classes, probability, format);
                let tensors = Level::views(&[&boxes, &scores]);
                let found = survivors(&tensors, "yolov8-heads", model_size(side as f32));
                compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Bins, 0));
            }
        }
    }
}

/// 64 numbers for each box at stride 8 of 512 pixels, and four at stride 16 of 64.
#[test]
fn boxes_with_three_equal_sides_have_the_order_of_the_scores() {
    let mut rng = fastrand::Rng::with_seed(14);
    for is_channels_last in [false, true] {
        let format = Format { element: ElementType::F32, is_channels_last };
        for (side, channels, kind) in [(512, 64, Boxes::Bins), (64, 4, Boxes::Distances)] {
            let of = (side, &STRIDES[..]);
            let number = |rng: &mut fastrand::Rng, channel: usize| match kind {
                Boxes::Bins => bins(rng, channel),
                Boxes::Distances => rng.f32() * 2.0,
            };
            let boxes = Level::of_strides(of, &mut rng, channels, number, format);
            let scores = Level::of_strides(of, &mut rng, 5, probability, format);
            let tensors = Level::views(&[&boxes, &scores]);
            let found = survivors(&tensors, "yolov8-heads", model_size(side as f32));
            compare_boxes(&found, &candidates(&boxes, &scores, kind, 0));
        }
    }
}

/// Coefficients `[8,8,8]`, keypoints `[15,15,15]`, and prototypes `[16,16,16]`.
#[test]
fn coefficients_keypoints_and_prototypes_with_three_equal_sides_have_the_order_of_the_boxes() {
    let mut rng = fastrand::Rng::with_seed(15);
    for is_channels_last in [false, true] {
        let format = Format { element: ElementType::F32, is_channels_last };
        for (name, side, channels) in [
            ("yolov8-heads-seg", 64, 16),
            ("yolov8-heads-seg", 128, 32),
            ("yolov8-heads-pose", 120, 15),
        ] {
            let strides: &[usize] = if side == 120 { &[4, 8] } else { &STRIDES };
            let of = (side, strides);
            let boxes = Level::of_strides(of, &mut rng, 64, bins, format);
            let scores = Level::of_strides(of, &mut rng, 1, probability, format);
            let more = Level::of_strides(of, &mut rng, channels, signed, format);
            let prototypes =
                Level::of_strides((side, &[4]), &mut rng, channels, signed, format).remove(0);
            let mut tensors = Level::views(&[&boxes, &scores, &more]);
            if name.ends_with("seg") {
                tensors.push(prototypes.tensor.view("z"));
            }
            let found = survivors(&tensors, name, model_size(side as f32));
            compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Bins, 0));
            let choice = decoder::choose(&tensors, decoder::by_name(name), model_size(side as f32));
            if let Some(masks) = choice.unwrap().layout.prototypes {
                assert_eq!(masks.field.component_stride == 1, is_channels_last);
            }
            for found in &found {
                let of_anchor = Level::row(&more, found.detection.anchor as usize);
                let is_near = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-5;
                assert!(found.columns.iter().zip(of_anchor).all(is_near), "{name}");
            }
        }
    }
}

/// If each tensor has three equal sides, a setting decides.
#[test]
fn a_model_of_cubes_needs_the_order_of_channels() {
    let mut rng = fastrand::Rng::with_seed(16);
    let name = "yolov8-heads";
    for is_channels_last in [false, true] {
        let format = Format { element: ElementType::F32, is_channels_last };
        // One stride, of 64 x 64 cells with 64 numbers for the box and 64 classes.
        let of = (512, &[8usize][..]);
        let boxes = Level::of_strides(of, &mut rng, 64, bins, format);
        let scores = Level::of_strides(of, &mut rng, 64, probability, format);
        let tensors = [boxes[0].tensor.view("box_8"), scores[0].tensor.view("cls_8")];
        let options = model_size(512.0);
        let error = decoder::choose(&tensors, decoder::by_name(name), options).err().unwrap();
        let error = error.to_string();
        assert!(
            error.ends_with("first or last; set `options.channels` to first or last"),
            "{error}"
        );
        let channels = if is_channels_last { Channels::Last } else { Channels::First };
        let found = survivors(&tensors, name, Options { channels, ..options });
        compare_boxes(&found, &candidates(&boxes, &scores, Boxes::Bins, 0));
    }
}

/// YOLOv8 for 64x64 pixels and 80 classes has 84 anchors of 84 numbers. Where one order fits, the setting has no effect.
#[test]
fn a_square_tensor_needs_the_order_of_channels() {
    let of = |id: &'static str, shape: &'static [usize], name: Option<&str>, channels: Channels| {
        with_zeros(&[(id, shape)], |tensors| {
            let decoder = name.and_then(decoder::by_name);
            decoder::choose(tensors, decoder, Options { channels, ..Options::default() })
                .map(|choice| choice.layout.groups[0].boxes.anchor_stride)
        })
    };
    for (id, name) in [("yolo-v8-out", None), ("a", Some("yolov8")), ("a", None)] {
        let error = of(id, &[1, 84, 84], name, Channels::Auto).unwrap_err().to_string();
        assert!(error.ends_with("; set `options.channels` to first or last"), "{error}");
        assert_eq!(of(id, &[1, 84, 84], name, Channels::First), Ok(1));
        assert_eq!(of(id, &[1, 84, 189], name, Channels::Last), Ok(1));
    }
    for (id, name) in [("yolo-v8-out", None), ("a", Some("yolov8"))] {
        assert_eq!(of(id, &[1, 84, 84], name, Channels::Last), Ok(84));
        assert_eq!(of(id, &[1, 189, 84], name, Channels::First), Ok(84));
    }
    assert!(of("a", &[1, 84, 84], None, Channels::Last).is_err(), "it could be another family's");
}
