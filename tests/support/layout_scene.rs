// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts with parameters. Each is generated from a seed.

use std::ops::Deref;

use fastrand::Rng;
use nmsfilter_core::engine::{BoxPixels, ImagePlace, MaskSize, Overlap, Params};
use nmsfilter_core::geometry::{Bounds, FrameMap};

use super::random_layout::RandomLayout;
use super::scene::{any_edge_rule, any_params, any_place};

/// A layout, its tensors, parameters and the place of each image.
pub struct LayoutScene {
    pub params: Params,
    places: Vec<ImagePlace>,
    random: RandomLayout,
}

impl LayoutScene {
    /// Images that are groups by themselves.
    pub fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let random = RandomLayout::new(rng);
        Self::with(rng, random)
    }

    /// Images with boxes that have angles.
    pub fn oriented(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let random = RandomLayout::oriented(rng);
        Self::with_angles(rng, random)
    }

    /// Up to 64 images in groups.
    pub fn groups(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let images = any_images(rng);
        let random = RandomLayout::of_images(rng, images, false);
        let mut scene = Self::with(rng, random);
        any_groups(rng, &mut scene.places, false);
        any_edges(rng, &mut scene.params, &mut scene.places);
        scene
    }

    /// Up to 64 images in groups, with boxes that have angles.
    pub fn oriented_groups(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let images = any_images(rng);
        let random = RandomLayout::of_images(rng, images, true);
        let mut scene = Self::with_angles(rng, random);
        any_groups(rng, &mut scene.places, true);
        any_edges(rng, &mut scene.params, &mut scene.places);
        scene
    }

    fn with_angles(rng: &mut Rng, random: RandomLayout) -> Self {
        let mut scene = Self::with(rng, random);
        let overlaps = [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou];
        scene.params.overlap = *rng.choice(&overlaps).unwrap();
        scene
    }

    fn with(rng: &mut Rng, mut random: RandomLayout) -> Self {
        let layout = &mut random.layout;
        let mut params = any_params(rng, layout.anchors(), layout.score.components);
        let mut place = any_place(rng);
        if rng.u8(0..3) == 0 {
            layout.normalized = true;
            place.model_size = [2.0, 1.5];
        }
        if layout.prototypes.is_some() {
            any_masks(rng, &mut params, &mut place);
        }
        let places = place.repeated(random.layout.images);
        Self { params, places, random }
    }

    /// The place of each image.
    pub fn places(&self) -> Vec<ImagePlace> {
        self.places.clone()
    }
}

fn any_images(rng: &mut Rng) -> usize {
    match rng.u8(0..16) {
        0 => 64,
        1..4 => rng.usize(5..20),
        _ => rng.usize(1..5),
    }
}

/// Puts images into groups. Some groups are in pixels of a frame, of which each image is a part: near the part of the image
/// before it, or far from it.
fn any_groups(rng: &mut Rng, places: &mut [ImagePlace], is_oriented: bool) {
    let per_group = *rng.choice(&[1, 3, 64]).unwrap();
    let (mut group, mut is_in_frame) = (0, rng.bool());
    let mut corner = [0.0, 0.0];
    for (index, place) in places.iter_mut().enumerate() {
        if index > 0 && rng.u32(0..per_group) == 0 {
            group += 1;
            is_in_frame = rng.bool();
            corner = [0.0, 0.0];
        }
        place.group = group;
        if rng.u8(0..8) == 0 {
            // No box of the image is visible.
            place.visible = Bounds { left: -9.0e6, top: -9.0e6, right: -8.0e6, bottom: -8.0e6 };
        }
        if !is_in_frame {
            continue;
        }
        let step = *rng.choice(&[0.0, 7.5, 40.0, 4000.0]).unwrap();
        corner = corner.map(|edge: f64| edge + if rng.bool() { step } else { 0.0 });
        let x = *rng.choice(&[1.0, 0.5, 2.0, 1.0 / 3.0]).unwrap();
        let y = if is_oriented { x } else { *rng.choice(&[x, x, 0.75]).unwrap() };
        let size = place.frame.map_or([400, 300], |frame| frame.size);
        let offset = [-corner[0] * x, -corner[1] * y];
        place.frame = Some(FrameMap { size, ratio: [x, y], offset });
        place.boxes = BoxPixels::Frame;
        if place.visible != Bounds::ANY && rng.bool() {
            place.visible = Bounds::ANY;
        }
    }
    // With masks of frames, an image in no frame beside others in a frame is an error.
    let frame = places.iter().find_map(|place| place.frame);
    for place in places {
        place.frame = place.frame.or(frame);
    }
}

/// Makes tiles, whose edges cut boxes, of some images in a frame, and chooses a rule for such boxes.
fn any_edges(rng: &mut Rng, params: &mut Params, places: &mut [ImagePlace]) {
    any_edge_rule(rng, params);
    for place in places {
        if let (BoxPixels::Frame, Some(frame)) = (place.boxes, place.frame)
            && place.visible == Bounds::ANY
            && rng.bool()
        {
            let [left, top] = [0, 1].map(|axis| (-frame.offset[axis] / frame.ratio[axis]) as f32);
            place.visible = Bounds { left, top, right: left + 90.0, bottom: top + 70.0 };
        }
    }
}

impl Deref for LayoutScene {
    type Target = RandomLayout;

    fn deref(&self) -> &RandomLayout {
        &self.random
    }
}

/// A model's input in which boxes of random layouts are, or a part of it, and masks of both sizes.
fn any_masks(rng: &mut Rng, params: &mut Params, place: &mut ImagePlace) {
    place.model_size = *rng.choice(&[[130.0, 130.0], [97.0, 250.0], [40.0, 33.3]]).unwrap();
    params.mask_size = *rng.choice(&[MaskSize::Prototypes, MaskSize::Frame]).unwrap();
    place.frame = (rng.u8(0..8) > 0).then(|| FrameMap {
        size: *rng.choice(&[[64, 48], [33, 90], [1, 1], [150, 40]]).unwrap(),
        ratio: *rng.choice(&[[1.0, 1.0], [2.7, 1.3], [0.4, 0.9]]).unwrap(),
        offset: *rng.choice(&[[0.0, 0.0], [0.0, 17.0], [-8.5, 3.0]]).unwrap(),
    });
}
