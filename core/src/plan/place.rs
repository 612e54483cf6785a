// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where images are.
//!
//! In: parameters whose lengths are in pixels of the frame. Out: those of an engine, which has the model's input only.

use crate::decoder::Layout;
use crate::engine::Params;
use crate::engine::SizeLimits;
use crate::geometry::Mapping;

/// Pixels of the model's input per pixel of the prototypes, where the size of the model's input is unknown: as all
/// models of YOLO have it.
const PROTOTYPE_STRIDE: f32 = 4.0;

/// Where the images of a run are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// In no frame: boxes remain in pixels of the model's input, which has this width and height.
    Input([f32; 2]),
    /// In a frame, with this mapping to its pixels.
    Frame(Mapping),
}

impl Place {
    /// Width and height of the model's input in pixels.
    fn model(&self) -> [f32; 2] {
        match self {
            Self::Input(size) => *size,
            Self::Frame(mapping) => mapping.model(),
        }
    }

    /// Sets what depends on the place: the scale; if the layout has prototypes, the size of the model's input and the
    /// mapping to the frame; and in a frame the size limits, which are in pixels of the frame
    /// before and of the model's input after, and the visible part of the model's input.
    pub fn apply(&self, layout: &Layout, params: &mut Params) {
        params.scale = if layout.normalized { self.model() } else { [1.0; 2] };
        if let Some(prototypes) = &layout.prototypes {
            params.model_size = match self {
                // The size is unknown.
                Self::Input([1.0, 1.0]) if !layout.normalized => {
                    [prototypes.width, prototypes.height].map(|side| side as f32 * PROTOTYPE_STRIDE)
                }
                _ => self.model(),
            };
            if let Self::Frame(mapping) = self {
                params.frame = Some(mapping.frame_map());
            }
        }
        if let Self::Frame(mapping) = self {
            let of_classes = params.class_rules.iter_mut().filter_map(|rule| rule.sizes.as_mut());
            for SizeLimits { min, max } in of_classes.chain([&mut params.sizes]) {
                [*min, *max] = [*min, *max].map(|sides| mapping.sides_in_model(sides));
            }
            params.visible = mapping.visible();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{self, Options};
    use crate::engine::ClassRule;
    use crate::geometry::Letterbox;
    use crate::tensor::TensorView;

    #[test]
    fn in_a_frame_size_limits_and_the_visible_part_are_mapped_to_the_models_input() {
        let tensor = TensorView::from_slice("windows", &[1, 4], &[0.0f32; 4]);
        let layout = decoder::choose(&[tensor], None, Options::default()).unwrap().layout;
        let mapping = Mapping::new([1280, 720], [640, 640], Letterbox::Center).unwrap();
        let sizes = SizeLimits { min: [8.0; 2], max: [f32::INFINITY; 2] };
        let rule = |sizes| ClassRule { sizes: Some(sizes), ..ClassRule::default() };
        let class_rules = vec![ClassRule::default(), rule(sizes)];
        let mut params = Params { sizes, class_rules, scale: [3.0; 2], ..Params::default() };
        Place::Frame(mapping).apply(&layout, &mut params);
        let sizes = SizeLimits { min: [4.0; 2], max: [f32::INFINITY; 2] };
        let class_rules = vec![ClassRule::default(), rule(sizes)];
        let visible = mapping.visible();
        assert_eq!(params, Params { sizes, class_rules, visible, ..Params::default() });
    }
}
