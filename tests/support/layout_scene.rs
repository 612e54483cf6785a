// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random layouts with parameters, generated from a seed.

use std::ops::Deref;

use fastrand::Rng;
use gstnmsfilter::internals::engine::Params;

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
        let layout = &random.layout;
        let mut params = any_params(rng, layout.anchors(), layout.score.components);
        if rng.u8(0..3) == 0 {
            params.scale = [2.0, 1.5];
        }
        Self { params, random }
    }
}

impl Deref for LayoutScene {
    type Target = RandomLayout;

    fn deref(&self) -> &RandomLayout {
        &self.random
    }
}
