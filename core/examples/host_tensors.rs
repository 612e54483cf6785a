// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a detector's output in host memory, without GStreamer:
//!
//! ```sh
//! cargo run -p nmsfilter-core --example host_tensors
//! ```

use std::error::Error;

use nmsfilter_core::nms::{Backend, Detection, Nms};
use nmsfilter_core::tensor::TensorView;

/// Output of a YOLOv8 model with two classes and four anchors. The rows are x, y, width, height,
/// and the score of each class. Anchor 1 is a duplicate of anchor 0, and the scores of anchor 3 are
/// below the threshold.
const OUTPUT: [[f32; 4]; 6] = [
    [320.0, 324.0, 100.0, 500.0],
    [240.0, 244.0, 400.0, 300.0],
    [80.0, 80.0, 60.0, 50.0],
    [120.0, 120.0, 90.0, 50.0],
    [0.9, 0.6, 0.1, 0.1],
    [0.1, 0.1, 0.8, 0.2],
];

/// Returns the detections in one image.
///
/// # Errors
/// Returns an error if the shapes do not fit the model family, or if there are too few elements.
pub fn detect(nms: &mut Nms, output: &[f32]) -> Result<Vec<Detection>, Box<dyn Error>> {
    // The elements are not copied.
    let tensors = [TensorView::from_slice("output0", &[1, 6, 4], output)];
    // The result is borrowed from `nms` until its next run, so the survivors are copied.
    Ok(nms.run(&tensors)?.group(0).survivors.to_vec())
}

/// # Errors
/// Returns an error if [`detect`] does.
pub fn main() -> Result<(), Box<dyn Error>> {
    // Use one `Nms` per stream of images: after the first run, it allocates nothing.
    let mut nms = Nms::new(Backend::Cpu, None)?;
    nms.set_decoder(Some("yolov8"))?;
    nms.options.num_classes = 2;
    nms.params.iou_threshold = 0.45;
    let survivors = detect(&mut nms, OUTPUT.as_flattened())?;
    for Detection { x1, y1, x2, y2, class, score, anchor, .. } in &survivors {
        println!("anchor {anchor}: class {class}, score {score}, {x1},{y1} to {x2},{y2}");
    }
    assert_eq!(survivors.iter().map(|found| found.anchor).collect::<Vec<_>>(), [0, 2]);
    Ok(())
}
