// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effect of parameters: thresholds, sizes, rules of classes, and the pixels of masks.

use super::*;

/// Runs the decoder `boxes` on boxes of descending scores, and returns the indices of those that are kept.
fn kept(boxes: &[[f32; 4]], classes: Option<&[f32]>, change: impl FnOnce(&mut Params)) -> Vec<u32> {
    let scores: Vec<f32> = (0..boxes.len()).map(|index| 0.9 - 0.1 * index as f32).collect();
    let count = boxes.len() as u64;
    let mut tensors = vec![
        tensor(c"boxes", &[count, 4], boxes.as_flattened()),
        tensor(c"scores", &[count], &scores),
    ];
    tensors.extend(classes.map(|classes| tensor(c"labels", &[count], classes)));
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"boxes"));
    handle.check(handle.set_options(|options| {
        (options.model_width, options.model_height) = (64.0, 64.0);
    }));
    handle.check(handle.set_params(change));
    handle.run(&tensors).unwrap_or_else(|(_, text)| panic!("{text}"));
    handle.detections(0).iter().map(|detection| detection.anchor).collect()
}

#[test]
fn suppression_obeys_the_threshold_and_the_pixel_offset() {
    // The first box covers half of the second.
    let boxes = [[0.0, 0.0, 10.0, 10.0], [0.0, 5.0, 10.0, 15.0]];
    for (threshold_inclusive, expected) in [(0, &[0, 1][..]), (1, &[0][..])] {
        let found = kept(&boxes, None, |params| {
            (params.overlap, params.iou_threshold) = (Overlap::Smaller as u32, 0.5);
            params.threshold_inclusive = threshold_inclusive;
        });
        assert_eq!(found, expected);
    }
    // Overlap of 4 x 9 of 9 x 9 pixels, or with the offset of 5 x 10 of 10 x 10.
    let boxes = [[0.0, 0.0, 9.0, 9.0], [0.0, 5.0, 9.0, 14.0]];
    for (pixel_offset, expected) in [(0.0, &[0, 1][..]), (1.0, &[0][..])] {
        let found = kept(&boxes, None, |params| {
            (params.overlap, params.iou_threshold) = (Overlap::Smaller as u32, 0.47);
            params.pixel_offset = pixel_offset;
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn boxes_of_other_sizes_or_outside_the_visible_part_are_rejected() {
    let boxes = [[0.0, 0.0, 10.0, 10.0], [20.0, 0.0, 40.0, 10.0], [50.0, 10.0, 80.0, 50.0]];
    assert_eq!(kept(&boxes, None, |params| params.min_size = [15.0, 5.0]), [1, 2]);
    assert_eq!(kept(&boxes, None, |params| params.max_size = [30.0, 15.0]), [0, 1]);
    assert_eq!(kept(&boxes, None, |params| params.visible = [0.0, 0.0, 64.0, 10.0]), [0, 1]);
    // Frames of 128 x 64 were stretched to the model's input: the boxes have widths of 20, 40 and 60 pixels of the frame.
    let found = kept(&boxes, None, |params| {
        (params.frame_size, params.frame_ratio) = ([128, 64], [0.5, 1.0]);
        (params.min_size, params.max_size) = ([21.0, 0.0], [59.0, 40.0]);
    });
    assert_eq!(found, [1]);
}

#[test]
fn rules_of_classes_replace_the_rules_of_all_classes() {
    // The overlap of neighbors is 3/7.
    let boxes = [
        [0.0, 0.0, 10.0, 10.0],
        [0.0, 4.0, 10.0, 14.0],
        [50.0, 0.0, 60.0, 10.0],
        [50.0, 4.0, 60.0, 14.0],
        [30.0, 0.0, 35.0, 5.0],
    ];
    let with = |change: fn(&mut ClassRule)| {
        // SAFETY: zeros are valid in each field.
        let mut rules: [ClassRule; 2] = unsafe { zeroed() };
        rules.iter_mut().for_each(|rule| rule.size = size_of::<ClassRule>());
        change(&mut rules[1]);
        kept(&boxes, Some(&[0.0, 0.0, 1.0, 1.0, 1.0]), |params| {
            (params.class_rules, params.class_rule_count) = (rules.as_ptr(), rules.len());
        })
    };
    assert_eq!(with(|_| {}), [0, 1, 2, 3, 4]);
    let found = with(|rule| (rule.has_iou_threshold, rule.iou_threshold) = (1, 0.4));
    assert_eq!(found, [0, 1, 2, 4]);
    assert_eq!(with(|rule| rule.max_detections = 2), [0, 1, 2, 3]);
    let found = with(|rule| {
        (rule.has_sizes, rule.min_size, rule.max_size) = (1, [6.0; 2], [f32::INFINITY; 2]);
    });
    assert_eq!(found, [0, 1, 2, 3]);
}

#[test]
fn masks_are_in_pixels_of_the_prototypes_or_of_the_frame() {
    // A box that covers the model's input of 8 x 8. The prototypes have 2 x 2 pixels; only the left ones are set.
    let mut numbers = vec![0.0; 6 * 20];
    for (row, number) in [4.0, 4.0, 8.0, 8.0, 0.9, 1.0].into_iter().enumerate() {
        numbers[row * 20] = number;
    }
    let tensors = [
        tensor(c"output0", &[1, 6, 20], &numbers),
        tensor(c"output1", &[1, 1, 2, 2], &[1.0, -1.0, 1.0, -1.0]),
    ];
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"yolov8-seg"));
    handle.check(handle.set_options(|options| {
        (options.model_width, options.model_height) = (8.0, 8.0);
    }));
    // Frames of 16 x 8 have 8 x 4 pixels of the model's input, below a border of 2 rows.
    for (mask_size, [width, height], bytes) in [
        (MaskSize::Prototypes, [2, 2], &[0x80; 2][..]),
        (MaskSize::Frame, [16, 8], &[0xff, 0].repeat(8)[..]),
    ] {
        handle.check(handle.set_params(|params| {
            params.mask_size = mask_size as u32;
            (params.frame_size, params.frame_ratio) = ([16, 8], [0.5; 2]);
            params.frame_offset = [0.0, 2.0];
        }));
        handle.run(&tensors).unwrap_or_else(|(_, text)| panic!("{text}"));
        let mask = array(handle.image(0).masks, 1)[0];
        assert_eq!([mask.left, mask.top, mask.width, mask.height], [0, 0, width, height]);
        assert_eq!(array(mask.bytes, bytes.len()), bytes);
    }
}
