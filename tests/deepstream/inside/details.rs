// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details of an object beyond its upright box: the angle of an oriented box, and masks.

use gstnmsfilter::deepstream::layout::Version;

use crate::libraries::{is_inside, version};
use crate::object::{Mask, Object};
use crate::run;
use crate::standin::{Batch, Frame, Layer, Tensors};

/// Returns the objects of a frame of 640x640 whose tensors are in host memory and have no batch
/// dimension.
fn objects(properties: &str, tensors: &[(&str, &[u32], Vec<f32>)]) -> Vec<Object> {
    let layers = tensors.iter().map(|(name, dims, elements)| Layer {
        name: Some(std::ffi::CString::new(*name).unwrap()),
        data_type: 0,
        dims: dims.to_vec(),
        counts: None,
        // The elements are leaked, so they outlive the pipeline.
        host: elements.clone().leak().as_ptr() as u64,
        device: 0,
    });
    let tensors =
        Tensors { unique_id: 1, size: [640, 640], layers: layers.collect(), ..Tensors::default() };
    let properties = format!("letterbox=none method=none num-classes=1 {properties}");
    let ran = run::with(&properties, 1, move |buffer| {
        let frame = Frame { pipeline: [640, 640], ..Frame::default() };
        Batch::attach(buffer, 1).add_frame(&frame).attach(&tensors, None);
    });
    ran.well().seen[0].frames[0].1.clone()
}

/// Returns columns of N numbers for eight anchors. `first` has the first anchors; the others are
/// zero, including their scores.
fn columns<const N: usize>(first: &[[f32; N]]) -> Vec<f32> {
    let anchor = |index: usize| first.get(index).copied().unwrap_or([0.0; N]);
    (0..N).flat_map(|row| (0..8).map(move |index| anchor(index)[row])).collect()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    let is_near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3);
    assert!(found.len() == expected.len() && is_near, "{found:?}, expected {expected:?}");
}

/// From 9.0 on, an oriented box that is inside of the frame becomes an object with the rectangle
/// before its rotation, and the angle in degrees. All other objects have the bounds of the box.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_of_oriented_boxes_have_their_angle() {
    if !is_inside() {
        return;
    }
    // Columns of cx, cy, w, h, score, angle. If the second box is not rotated, it reaches beyond
    // the left edge.
    let boxes = [
        [320.0, 240.0, 100.0, 40.0, 0.9, 0.5],
        [10.0, 300.0, 100.0, 16.0, 0.8, std::f32::consts::FRAC_PI_2],
    ];
    let columns = columns(&boxes);
    let found = objects("decoder=yolov8-obb", &[("output0", &[6, 8], columns)]);
    let (sin, cos) = 0.5f32.sin_cos();
    let half = [50.0 * cos + 20.0 * sin, 50.0 * sin + 20.0 * cos];
    let bounds = [320.0 - half[0], 240.0 - half[1], 2.0 * half[0], 2.0 * half[1]];
    let (rect, angle) = if version() >= Version::new(9, 0) {
        ([270.0, 220.0, 100.0, 40.0], 0.5f32.to_degrees())
    } else {
        (bounds, 0.0)
    };
    let [first, second] = &found[..] else { panic!("{found:?}") };
    assert_near(&first.rect, &rect);
    assert_near(&first.detector, &rect);
    assert_near(&[first.rotation_angle], &[angle]);
    assert_near(&second.rect, &[2.0, 250.0, 16.0, 100.0]);
    assert_eq!(second.rotation_angle, 0.0);
    assert!(first.mask.is_none() && second.mask.is_none());
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn objects_have_their_masks() {
    if !is_inside() {
        return;
    }
    // Columns of cx, cy, w, h, score and two coefficients.
    let boxes =
        [[150.0, 140.0, 100.0, 80.0, 0.9, 1.0, 0.0], [400.0, 400.0, 80.0, 40.0, 0.8, -2.0, 0.0]];
    let columns = columns(&boxes);
    // The mask of the first box covers its left quarter.
    let prototypes = (0..2 * 160 * 160).map(|i| if i % 160 < 40 { 1.0 } else { -1.0 }).collect();
    let tensors: [(&str, &[u32], Vec<f32>); 2] =
        [("output0", &[7, 8], columns), ("output1", &[2, 160, 160], prototypes)];
    let found = objects("decoder=yolov8-seg", &tensors);
    let [first, second] = &found[..] else { panic!("{found:?}") };
    // A prototype pixel covers four by four pixels of the frame.
    let row = |set: usize, all: usize| [vec![1.0; set], vec![0.0; all - set]].concat();
    let mask = |width: u32, height: u32, row: Vec<f32>| {
        let numbers = row.repeat(height as usize);
        Some(Mask { width, height, threshold: 0.5, numbers })
    };
    assert_near(&first.rect, &[100.0, 100.0, 100.0, 80.0]);
    assert_eq!(first.mask, mask(25, 20, row(15, 25)));
    assert_eq!(second.mask, mask(20, 10, row(20, 20)));
    // Masks can be disabled.
    let found = objects("decoder=yolov8-seg masks=false", &tensors);
    assert!(found.len() == 2 && found.iter().all(|object| object.mask.is_none()));
    // Masks can have a bit for each pixel of the frame.
    let found = objects("decoder=yolov8-seg mask-size=frame", &tensors);
    let large = found[0].mask.as_ref().expect("it has a mask");
    assert_eq!([large.width, large.height], [100, 80]);
    let edge = large.numbers[..100].iter().filter(|&&number| number == 1.0).count();
    assert!((57..=63).contains(&edge), "{edge} pixels of the first row are set");
}
