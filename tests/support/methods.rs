// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random parameters for the methods that change boxes or scores, or read a column.

use fastrand::Rng;
use nmsfilter_core::decoder::Layout;
use nmsfilter_core::decoder::layout::{Column, ColumnKind, Field};
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

/// Adds a column to a layout of one group. Its numbers are in tensor number `tensor`, with the
/// dimensions image, anchor and component.
pub fn add_column(layout: &mut Layout, tensor: usize, kind: ColumnKind, components: usize) {
    let anchors = layout.anchors();
    layout.columns.push(Column { name: kind.name(), components, kind });
    for group in &mut layout.groups {
        group.columns.push(Field {
            tensor,
            offset: 0,
            image_stride: anchors * components,
            anchor_stride: components,
            component_stride: 1,
        });
    }
}

/// Numbers of a column. Densities equal usual thresholds, and many embeddings are equal; some
/// numbers are not finite.
pub fn column_numbers(rng: &mut Rng, count: usize) -> Vec<f32> {
    let number = |_| match rng.u32(0..200) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        _ => rng.u32(0..=4) as f32 * 0.25,
    };
    (0..count).map(number).collect()
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
