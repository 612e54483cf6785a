// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenes of oriented boxes. Each is generated from a seed.
//!
//! Boxes are equal, touch, contain each other, cross, or differ slightly. Some are huge, tiny or
//! without area, some numbers are not finite, and angles can have any size.

use arrayvec::ArrayVec;
use fastrand::Rng;
use half::f16;
use nmsfilter_core::decoder::layout::{
    Activation, Background, BoxFormat, BoxRule, Combination, Field, Group, Layout, Reference,
    ScoreRule,
};
use nmsfilter_core::engine::{Overlap, Params};
use nmsfilter_core::tensor::{ElementType, Quantization, Shape, Storage, TensorView};

use super::scene::any_params;

/// Center x and y, width, height and angle.
type Row = [f32; 5];

/// A layout of oriented boxes, its tensor, and parameters for it.
#[derive(Debug)]
pub struct OrientedScene {
    pub layout: Layout,
    pub params: Params,
    element: ElementType,
    quantization: Option<Quantization>,
    /// Number of elements in all images.
    elements: usize,
    bytes: Vec<u8>,
}

impl OrientedScene {
    pub fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let images = *rng.choice(&[1, 1, 1, 2, 3]).unwrap();
        let classes = *rng.choice(&[1, 1, 2, 15]).unwrap();
        let anchors = match rng.u8(0..40) {
            // There are enough boxes for the spatial grid.
            0 => rng.usize(300..900),
            1..10 => rng.usize(0..12),
            _ => rng.usize(12..120),
        };
        let element = match rng.u8(0..4) {
            0 => ElementType::F16,
            1 => ElementType::U8,
            _ => ElementType::F32,
        };
        let mut params = any_params(rng, anchors, classes);
        let measures = [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou];
        params.overlap = *rng.choice(&measures).unwrap();
        if rng.u8(0..4) == 0 {
            params.iou_threshold = rng.f32();
        }
        let width = 5 + classes;
        let mut numbers = Vec::new();
        for _ in 0..images {
            let boxes = boxes(rng, anchors);
            // Numbers are stored anchor by anchor, or component by component.
            for row in boxes {
                numbers.extend(row);
                numbers.extend((0..classes).map(|_| score(rng)));
            }
        }
        let by_anchor = rng.bool();
        if !by_anchor {
            numbers = (0..images * width * anchors)
                .map(|at| {
                    let (image, in_image) = (at / (width * anchors), at % (width * anchors));
                    let (component, anchor) = (in_image / anchors, in_image % anchors);
                    numbers[(image * anchors + anchor) * width + component]
                })
                .collect();
        }
        let field = |component: usize| Field {
            tensor: 0,
            offset: component * if by_anchor { 1 } else { anchors },
            image_stride: width * anchors,
            anchor_stride: if by_anchor { width } else { 1 },
            component_stride: if by_anchor { 1 } else { anchors },
        };
        let layout = Layout {
            decoder: "random",
            images,
            classes,
            groups: ArrayVec::from_iter([Group {
                anchors,
                boxes: field(0),
                sizes: None,
                angle: Some(field(4)),
                scores: field(5),
                objectness: None,
                class: None,
                reference: Reference::None,
                columns: Vec::new(),
            }]),
            score: ScoreRule {
                components: classes,
                first_class: 0,
                background: Background::None,
                activation: Activation::None,
                combination: Combination::Product,
                peaks: false,
            },
            boxes: BoxRule {
                angle_factor: *rng.choice(&[1.0, 1.0, -1.0, std::f32::consts::PI / 180.0]).unwrap(),
                ..BoxRule::decoded(BoxFormat::Center)
            },
            count: None,
            columns: Vec::new(),
            pairs: None,
            image: None,
            prototypes: None,
            priors: None,
            normalized: false,
        };
        // One scale applies to pixels, angles and scores, so only few scores are distinct.
        let quantization = Quantization::new(1.0, 0).filter(|_| element == ElementType::U8);
        let elements = numbers.len();
        let bytes = match element {
            ElementType::F32 => bytemuck::cast_slice(&numbers).to_vec(),
            ElementType::F16 => {
                numbers.iter().flat_map(|&n| f16::from_f32(n).to_bits().to_ne_bytes()).collect()
            }
            _ => numbers.iter().map(|&number| number as u8).collect(),
        };
        Self { layout, params, element, quantization, elements, bytes }
    }

    /// Returns the tensor.
    pub fn view(&self) -> TensorView<'_> {
        let images = self.layout.images;
        let shape = Shape::new(&[images, self.elements / images]).unwrap();
        TensorView::new("oriented", self.element, shape, Storage::Host(&self.bytes))
            .with_quantization(self.quantization)
    }
}

fn score(rng: &mut Rng) -> f32 {
    match rng.u8(0..60) {
        0 => f32::NAN,
        1 => 1.0,
        2..8 => 0.5,
        _ => rng.f32(),
    }
}

fn angle(rng: &mut Rng) -> f32 {
    use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    match rng.u8(0..20) {
        0 => 0.0,
        1 => rng.i32(-8..=8) as f32 * FRAC_PI_2,
        2 => rng.i32(-8..=8) as f32 * FRAC_PI_4,
        3 => (rng.f32() - 0.5) * 2e4,
        4 => rng.i32(-180..=180) as f32,
        _ => (rng.f32() - 0.5) * 2.0 * PI,
    }
}

/// Generates the boxes of an image.
fn boxes(rng: &mut Rng, count: usize) -> Vec<Row> {
    let scale = *rng.choice(&[1.0, 1.0, 1.0, 1.0, 1e6, 1e-3, 1e-20]).unwrap();
    let on_grid = rng.u8(0..6) == 0;
    let mut boxes: Vec<Row> = Vec::new();
    while boxes.len() < count {
        let side =
            |rng: &mut Rng| if on_grid { rng.u8(1..9).into() } else { 5.0 + rng.f32() * 60.0 };
        let at = |rng: &mut Rng| if on_grid { rng.u8(0..16).into() } else { rng.f32() * 300.0 };
        let size = [side(rng), side(rng)];
        let a = if on_grid { 0.0 } else { angle(rng) };
        let mut next = [at(rng), at(rng), size[0], size[1], a];
        next[..4].iter_mut().for_each(|number| *number *= scale);
        if let Some(&[x, y, w, h, a]) = rng.choice(&boxes) {
            let (sin, cos) = (a as f64).sin_cos();
            let (sin, cos) = (sin as f32, cos as f32);
            let mut near = |number: f32, by: f32| number + (rng.f32() - 0.5) * by;
            next = match near(4.0, 8.0) as u8 {
                // The box is equal to another one, or differs slightly.
                0 => {
                    let by = 0.3 * (w + h);
                    [near(x, by), near(y, by), near(w, 0.3 * w), near(h, 0.3 * h), near(a, 0.5)]
                }
                1 => [x, y, w, h, a],
                // The rectangle is unchanged, but its width and height are exchanged.
                2 => [x, y, h, w, a + std::f32::consts::FRAC_PI_2],
                // The box touches the other one, or shares part of a side.
                3 => [x + w * cos, y + w * sin, w, h, a],
                4 => [x + 0.5 * w * cos, y + 0.5 * w * sin, 0.5 * w, h, a],
                // The box is inside of the other one.
                5 => [x, y, 0.6 * w, 0.5 * h, near(a, 0.2)],
                // The box crosses the other one.
                6 => [x, y, 0.1 * h, 6.0 * w, near(a, 1.0)],
                _ => next,
            };
        }
        let mut any = |numbers: &[f32]| *rng.choice(numbers).unwrap();
        let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, f32::MAX];
        match any(&[0.0, 1.0, 2.0, 3.0]) * any(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) {
            1.0 => next[any(&[0.0, 1.0, 2.0, 3.0, 4.0]) as usize] = any(&bad),
            2.0 => next[any(&[2.0, 3.0]) as usize] = any(&[0.0, -0.0, -1.0, 2e9, 1e-30, 1e9]),
            3.0 => next[4] = any(&[1e4, -1e4, 10_000.001, 3e4, 1e-40]),
            _ => {}
        }
        boxes.push(next);
    }
    boxes
}
