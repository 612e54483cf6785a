// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random parameters for the methods that change boxes or scores.

use fastrand::Rng;
use nmsfilter_core::engine::{Method, Overlap, Params};

use super::engines;

/// The methods that change boxes or scores.
pub fn changing() -> Vec<Method> {
    Method::ALL.into_iter().filter(|method| !method.only_suppresses()).collect()
}

/// Returns `params` with a method that reads a column, and with its parameters.
pub fn with_column_method(rng: &mut Rng, params: &Params) -> Params {
    let method = *rng.choice(&[Method::Adaptive, Method::Feature]).unwrap();
    Params {
        method,
        embedding_distance: *rng.choice(&[0.3, 1.0, 0.0, 2.5]).unwrap(),
        embedding_iou_threshold: *rng.choice(&[0.9, 0.6, 1.0, 0.0]).unwrap(),
        ..with_any_method(rng, params)
    }
}

/// Returns `params` with a method that changes boxes or scores, and with its parameters.
pub fn with_any_method(rng: &mut Rng, params: &Params) -> Params {
    let overlaps = [Overlap::Iou, Overlap::Smaller, Overlap::Representative, Overlap::Diou];
    // The CUDA engine has no DIoU.
    let overlaps = if engines::on_gpu() { &overlaps[..3] } else { &overlaps };
    Params {
        method: *rng.choice(&changing()).unwrap(),
        overlap: *rng.choice(overlaps).unwrap(),
        sigma: *rng.choice(&[0.5, 0.1, 3.0]).unwrap(),
        lose_released: rng.bool(),
        ..params.clone()
    }
}
