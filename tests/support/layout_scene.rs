// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts with parameters, generated from a seed.

use std::ops::Deref;

use fastrand::Rng;
use gstnmsfilter::internals::engine::{Overlap, Params};

use super::random_layout::RandomLayout;
use super::scene::any_params;

/// A layout, its tensors and parameters.
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

    /// With boxes that have angles.
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
    params
}

impl Deref for LayoutScene {
    type Target = RandomLayout;

    fn deref(&self) -> &RandomLayout {
        &self.random
    }
}
