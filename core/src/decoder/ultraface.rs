// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `ultraface`: Ultra-Light-Fast-Generic-Face-Detector, with the scores of background
//! and face per anchor, and normalized corners.

use super::groups::Groups;
use super::layout::{Background, BoxFormat, Coordinates, Layout, LayoutError, PlainLayout};
use super::matrix::{Matrix, check_images, check_lengths, shape_error};
use super::{Decoder, Form, Options, Role};
use crate::tensor::TensorView;

/// Reads scores `[1,N,2]` and boxes `[1,N,4]`.
pub struct UltraFace;

impl Decoder for UltraFace {
    fn name(&self) -> &'static str {
        "ultraface"
    }

    fn expects(&self) -> &str {
        "scores [1,N,2] (background, face) and boxes [1,N,4] (corners, 0 to 1)"
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &[&UltraFace]
    }

    fn groups(&self) -> Groups {
        Groups::Named(&["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out"])
    }

    fn label(&self, class: u32) -> Option<&'static str> {
        (class == 0).then_some("face")
    }
}

impl Form for UltraFace {
    fn roles(&self) -> &[Role] {
        // GStreamer uses the ids of the 320 x 240 model for all sizes of the model.
        const {
            &[
                Role {
                    dims: &[None, Some(2)],
                    ..Role::of_ids(
                        "scores",
                        &["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores"],
                    )
                },
                Role {
                    dims: &[None, Some(4)],
                    ..Role::of_ids(
                        "boxes",
                        &[
                            "ssd-mobilenet-v1-variant-1-out-boxes",
                            "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes",
                        ],
                    )
                },
            ]
        }
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let (scores, boxes) = (tensors[0], tensors[1]);
        let score_matrix = Matrix::of(scores, self, options)?;
        if score_matrix.columns != 2 {
            return Err(shape_error(scores, self));
        }
        let box_matrix = Matrix::of(boxes, self, options)?;
        if box_matrix.columns != 4 {
            return Err(shape_error(boxes, self));
        }
        check_images((boxes, box_matrix.images), (scores, score_matrix.images))?;
        check_lengths((boxes, box_matrix.rows), (scores, score_matrix.rows))?;
        let mut layout = Layout::from(PlainLayout {
            decoder: self.name(),
            images: box_matrix.images,
            anchors: box_matrix.rows,
            classes: 2,
            boxes: box_matrix.anchors_in_rows(1, 0),
            box_format: BoxFormat::Corners,
            scores: score_matrix.anchors_in_rows(0, 0),
            objectness: None,
            normalized: options.coordinates != Coordinates::Pixels,
        });
        layout.score.activation = options.score_activation.unwrap_or_default();
        // With two scores, one is left for the face.
        layout.set_background(options.background.unwrap_or(Background::First), None);
        Ok(layout)
    }
}
