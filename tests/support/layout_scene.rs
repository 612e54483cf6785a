// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts with parameters. Each is generated from a seed.

use std::ops::Deref;

use fastrand::Rng;
use gstnmsfilter::internals::engine::{FrameMap, MaskSize, Overlap, Params};

use super::random_layout::RandomLayout;
use super::scene::any_params;

/// A layout, its tensors, and parameters for it.
pub struct LayoutScene {
    pub params: Params,
    random: RandomLayout,
}

impl LayoutScene {
    pub fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let random = RandomLayout::new(rng);
        Self { params: params_of(rng, &random), random }
    }

    /// Generates a layout whose boxes have angles.
    pub fn oriented(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let random = RandomLayout::oriented(rng);
        let mut params = params_of(rng, &random);
        let overlaps = [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou];
        params.overlap = *rng.choice(&overlaps).unwrap();
        Self { params, random }
    }
}

fn params_of(rng: &mut Rng, random: &RandomLayout) -> Params {
    let layout = &random.layout;
    let mut params = any_params(rng, layout.anchors(), layout.score.components);
    if rng.u8(0..3) == 0 {
        params.scale = [2.0, 1.5];
    }
    if layout.prototypes.is_some() {
        any_mask_params(rng, &mut params);
    }
    params
}

impl Deref for LayoutScene {
    type Target = RandomLayout;

    fn deref(&self) -> &RandomLayout {
        &self.random
    }
}

/// Sets random mask parameters: a model's input that contains the boxes of random layouts, or a
/// part of them, and either mask size.
fn any_mask_params(rng: &mut Rng, params: &mut Params) {
    params.model_size = *rng.choice(&[[130.0, 130.0], [97.0, 250.0], [40.0, 33.3]]).unwrap();
    params.mask_size = *rng.choice(&[MaskSize::Prototypes, MaskSize::Frame]).unwrap();
    params.frame = (rng.u8(0..8) > 0).then(|| FrameMap {
        size: *rng.choice(&[[64, 48], [33, 90], [1, 1], [150, 40]]).unwrap(),
        ratio: *rng.choice(&[[1.0, 1.0], [2.7, 1.3], [0.4, 0.9]]).unwrap(),
        offset: *rng.choice(&[[0.0, 0.0], [0.0, 17.0], [-8.5, 3.0]]).unwrap(),
    });
}
