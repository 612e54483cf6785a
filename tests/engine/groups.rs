// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of images, against runs without groups.
//!
//! The reference engine implements the rules of groups; these tests hold it, and the engine under test, to results that
//! do not depend on its code for groups: to a single image with the anchors of all images of a group, and to boxes that
//! were moved before they were passed.

use nmsfilter_core::decoder::{self, BoxFormat, Layout, Options};
use nmsfilter_core::engine::{
    BoxPixels, Engine, EngineError, ImagePlace, Job, Method, Params, Reference, SizeLimits,
};
use nmsfilter_core::geometry::{Bounds, FrameMap, Letterbox, Mapping};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines::{self, bits};

/// The bits of the survivors, and the numbers of candidates and of rejected anchors.
type GroupBits = (Vec<[u32; 7]>, usize, usize);

/// Runs images that are rows of x1, y1, x2, y2 and a score.
fn run(
    engine: &mut dyn Engine,
    images: &[Vec<[f32; 5]>],
    places: &[ImagePlace],
    params: &Params,
) -> Result<Vec<GroupBits>, EngineError> {
    let anchors = images[0].len();
    let boxes: Vec<f32> = images.iter().flatten().flat_map(|row| row[..4].to_vec()).collect();
    let scores: Vec<f32> = images.iter().flatten().map(|row| row[4]).collect();
    let tensors = [
        TensorView::from_slice("boxes", &[images.len(), anchors, 4], &boxes),
        TensorView::from_slice("scores", &[images.len(), anchors], &scores),
    ];
    let options = Options { box_format: BoxFormat::Corners, batch: true, ..Options::default() };
    let layout: Layout =
        decoder::choose(&tensors, decoder::by_name("boxes"), options).unwrap().layout;
    let outcome = engine.run(Job::new(&tensors, &layout, params, places))?;
    Ok(outcome.groups().map(|group| bits(&group)).collect())
}

fn every_engine() -> [Box<dyn Engine>; 2] {
    [Box::new(Reference::default()), engines::fast()]
}

/// Boxes in a crowd with integer coordinates; scores have ties.
fn any_boxes(rng: &mut fastrand::Rng, count: usize) -> Vec<[f32; 5]> {
    let mut number = |end: u32| rng.u32(0..end) as f32;
    (0..count)
        .map(|_| {
            let (x, y, w, h) = (number(120), number(60), 8.0 + number(30), 8.0 + number(30));
            [x, y, x + w, y + h, number(16) / 16.0]
        })
        .collect()
}

const MODEL: ImagePlace = ImagePlace::in_model([1.0; 2]);

#[test]
fn a_group_has_the_survivors_of_one_image_with_all_its_anchors() {
    let mut rng = fastrand::Rng::with_seed(36);
    for mut engine in every_engine() {
        for turn in 0..engines::scene_count(200) {
            let sizes: Vec<usize> = (0..rng.usize(1..5)).map(|_| rng.usize(1..6)).collect();
            let anchors = rng.usize(1..30);
            let groups: Vec<Vec<Vec<[f32; 5]>>> = sizes
                .iter()
                .map(|&size| (0..size).map(|_| any_boxes(&mut rng, anchors)).collect())
                .collect();
            let method = *rng.choice(&[Method::Greedy, Method::MapReduce, Method::None]).unwrap();
            let max_detections = *rng.choice(&[0, 3]).unwrap();
            let params = Params { method, max_detections, ..Params::default() };
            let places: Vec<ImagePlace> = (0..)
                .zip(&sizes)
                .flat_map(|(group, &size)| vec![ImagePlace { group, ..MODEL }; size])
                .collect();
            let found = run(&mut *engine, &groups.concat(), &places, &params).unwrap();
            for (group, found) in groups.iter().zip(found) {
                let alone = run(&mut *engine, &[group.concat()], &[MODEL], &params).unwrap();
                assert_eq!([found], alone[..], "{}, turn {turn}", engine.name());
            }
        }
    }
}

#[test]
fn parts_of_a_frame_have_the_survivors_of_boxes_in_pixels_of_the_frame() {
    let mut rng = fastrand::Rng::with_seed(37);
    for mut engine in every_engine() {
        for turn in 0..engines::scene_count(200) {
            let images = rng.usize(1..6);
            let in_model: Vec<Vec<[f32; 5]>> =
                (0..images).map(|_| any_boxes(&mut rng, 20)).collect();
            // Powers of two and whole numbers: the mapping is exact.
            let ratio = [*rng.choice(&[0.5, 1.0, 2.0]).unwrap(), 0.5];
            let corners: Vec<[f64; 2]> =
                (0..images).map(|_| [0, 1].map(|_| f64::from(rng.u32(0..60) * 4))).collect();
            let visible =
                if rng.bool() { Bounds::ANY } else { Bounds { left: 90.0, ..Bounds::ANY } };
            let places: Vec<ImagePlace> = corners
                .iter()
                .map(|corner| {
                    let offset = [0, 1].map(|axis| -corner[axis] * ratio[axis]);
                    let frame = Some(FrameMap { size: [800, 600], ratio, offset });
                    ImagePlace { frame, boxes: BoxPixels::Frame, visible, ..MODEL }
                })
                .collect();
            let limit = *rng.choice(&[0.0, 20.0]).unwrap();
            let sizes = SizeLimits { min: [limit; 2], ..SizeLimits::ANY };
            let params = Params { sizes, ..Params::default() };
            let found = run(&mut *engine, &in_model, &places, &params).unwrap();
            let mut in_frame = Vec::new();
            for (boxes, corner) in in_model.iter().zip(&corners) {
                let moved =
                    |edge: f32, axis: usize| (f64::from(edge) / ratio[axis] + corner[axis]) as f32;
                in_frame.extend(boxes.iter().map(|&[x1, y1, x2, y2, score]| {
                    [moved(x1, 0), moved(y1, 1), moved(x2, 0), moved(y2, 1), score]
                }));
            }
            let place = ImagePlace { visible, ..MODEL };
            let expected = run(&mut *engine, &[in_frame], &[place], &params).unwrap();
            assert_eq!(found, expected, "{}, turn {turn}", engine.name());
        }
    }
}

/// A frame that is one image keeps its boxes in pixels of the model's input, where limits of sizes are converted.
#[test]
fn limits_of_sizes_are_in_pixels_of_the_frame() {
    let mapping = Mapping::new([1280, 720], [640, 360], Letterbox::None).unwrap();
    let boxes = vec![[0.0, 0.0, 20.0, 20.0, 0.9], [100.0, 0.0, 119.0, 20.0, 0.8]];
    let sizes = SizeLimits { min: [40.0; 2], ..SizeLimits::ANY };
    let params = Params { sizes, ..Params::default() };
    for mut engine in every_engine() {
        let place = ImagePlace::in_frame(&mapping, 0);
        let found = run(&mut *engine, std::slice::from_ref(&boxes), &[place], &params).unwrap();
        let anchors: Vec<u32> = found[0].0.iter().map(|survivor| survivor[6]).collect();
        assert_eq!(anchors, [0], "{}", engine.name());
    }
}

#[test]
fn places_that_do_not_fit_are_an_error_of_every_engine() {
    let images = vec![any_boxes(&mut fastrand::Rng::with_seed(1), 4); 3];
    let at = |groups: [u32; 3]| groups.map(|group| ImagePlace { group, ..MODEL }).to_vec();
    let order = "expected the images of a group one after the other, and groups numbered from 0; \
                 correct the place";
    let in_frame = ImagePlace { boxes: BoxPixels::Frame, ..MODEL };
    let frame = FrameMap { size: [10, 10], ratio: [0.0, 1.0], offset: [0.0; 2] };
    let no_ratio = ImagePlace { frame: Some(frame), ..in_frame };
    for (places, expected) in [
        (at([1, 1, 2]), format!("the place of image 0: {order}")),
        (at([0, 2, 2]), format!("the place of image 1: {order}")),
        (at([0, 1, 0]), format!("the place of image 2: {order}")),
        (
            vec![MODEL; 2],
            "there are 2 places for 3 images; pass one place per image of the layout".into(),
        ),
        (
            vec![MODEL, in_frame, MODEL],
            "the place of image 1: expected a frame for boxes in pixels of the frame; correct the \
             place"
                .into(),
        ),
        (
            vec![MODEL, MODEL, no_ratio],
            "the place of image 2: expected a finite position of the frame in the model's input, and \
             a ratio above 0; correct the place"
                .into(),
        ),
    ] {
        for mut engine in every_engine() {
            let error = run(&mut *engine, &images, &places, &Params::default()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{}", engine.name());
        }
    }
}
