// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines' part of `python -m nmsfilter`.

use nmsfilter_core::cuda::Device;
use nmsfilter_core::nms::{Backend, BoxNms};
use nmsfilter_core::tensor::TensorView;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::{Error, Result};

/// Runs a GPU, and compares its result with the CPU's: the name of the GPU.
#[pyfunction]
pub fn test_gpu(ordinal: u32) -> PyResult<String> {
    let device = Device::open(ordinal).map_err(Error::from)?;
    let (expected, found) = (kept(Backend::Cpu, None)?, kept(Backend::Cuda, Some(ordinal))?);
    if expected == found {
        Ok(device.to_string())
    } else {
        Err(PyRuntimeError::new_err(format!(
            "{device} keeps the boxes {found:?}, the CPU {expected:?}; please report this"
        )))
    }
}

/// The boxes that are kept of a grid of boxes, each of which overlaps its neighbors.
fn kept(backend: Backend, ordinal: Option<u32>) -> Result<Vec<u32>> {
    const SIDE: u32 = 24;
    let corner = |index: u32| [index % SIDE, index / SIDE].map(|place| place as f32 * 3.0);
    let boxes: Vec<[f32; 4]> = (0..SIDE * SIDE)
        .map(|index| {
            let [x, y] = corner(index);
            [x, y, x + 10.0, y + 10.0]
        })
        .collect();
    // Every number from 0 to 576 once.
    let scores: Vec<f32> =
        (0..SIDE * SIDE).map(|index| (index * 229 % 577) as f32 / 577.0).collect();
    let count = boxes.len();
    let mut nms = BoxNms::new(backend, ordinal)?;
    nms.iou_threshold = 0.3;
    let boxes = TensorView::from_slice("boxes", &[count, 4], boxes.as_flattened());
    let scores = TensorView::from_slice("scores", &[count], &scores);
    Ok(nms.run(&boxes, &scores, None)?.to_vec())
}
