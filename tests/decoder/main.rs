// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which decoder reads which tensors, and the errors when no decoder or several decoders fit.

#[path = "../support/core.rs"]
mod support;

mod background;
mod box_classes;
mod choice;
mod classifier;
mod description;
mod exports;
mod layout_files;
mod masks2026;
mod models2026;
mod points;
mod prototypes;
mod refusals;
mod rows_of_images;
mod score_activation;
mod signatures;
mod tensor_ids;
mod yolo_tasks;
mod yolox;

use nmsfilter_core::tensor::TensorView;

/// Calls `act` with tensors of zeros that have these ids and shapes.
fn with_zeros<T>(tensors: &[(&str, &[usize])], act: impl FnOnce(&[TensorView<'_>]) -> T) -> T {
    let zeros: Vec<Vec<f32>> =
        tensors.iter().map(|(_, shape)| vec![0.0; shape.iter().product()]).collect();
    let views: Vec<TensorView<'_>> = tensors
        .iter()
        .zip(&zeros)
        .map(|((id, shape), zeros)| TensorView::from_slice(id, shape, zeros))
        .collect();
    act(&views)
}
