// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of an image: the position of its pixels in a frame, and the images that it shares
//! suppression with.
//!
//! In: the [`ImagePlace`]s of a run, from a reader of frames. Out: for each image [`DecodePlace`], the numbers with which
//! an engine decodes it, and the ranges of images that are a group ([`image_groups`]).
//!
//! A frame that is scaled to the model's input is one image in a separate group. Its boxes stay in pixels of the model's
//! input, and the writer of results maps the few survivors. Tiles, regions of interest and objects are several images of
//! one group, whose boxes must be compared, so decode maps each box to pixels of the frame.

use std::ops::Range;

use super::edges::InnerEdges;
use super::params::{Params, SizeLimits};
use crate::decoder::Layout;
use crate::decoder::layout::Prototypes;
use crate::geometry::{Bounds, FrameMap, FrameRegion, Mapping};

/// The pixels in which an image's boxes are compared and returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BoxPixels {
    /// Pixels of the model's input.
    #[default]
    Model,
    /// Pixels of the frame. Requires [`ImagePlace::frame`].
    Frame,
}

/// The place of one image of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImagePlace {
    /// Width and height of the model's input in pixels, the factors for normalized coordinates. 1
    /// and 1 if they are unknown.
    pub model_size: [f32; 2],
    /// The position of the frame in the model's input, or `None` if the image is not in a frame.
    pub frame: Option<FrameMap>,
    /// The pixels of the image's boxes.
    pub boxes: BoxPixels,
    /// The visible part of the image, in the pixels of its boxes. Boxes that do not intersect it are rejected.
    pub visible: Bounds,
    /// The number of the image's group. Candidates are suppressed only by candidates of their
    /// group. The images of a group are consecutive: the first image is in group 0, and each
    /// following image is in the preceding image's group or in the next group.
    pub group: u32,
}

impl ImagePlace {
    /// An image that is not in a frame. Its boxes are in pixels of a model's input of this size.
    /// The image is the only one in group 0.
    pub const fn in_model(model_size: [f32; 2]) -> Self {
        Self { model_size, frame: None, boxes: BoxPixels::Model, visible: Bounds::ANY, group: 0 }
    }

    /// An image that is a whole frame, in a separate group. Boxes stay in pixels of the model's
    /// input.
    pub fn in_frame(mapping: &Mapping, group: u32) -> Self {
        Self {
            model_size: mapping.model(),
            frame: Some(mapping.frame_map()),
            boxes: BoxPixels::Model,
            visible: mapping.visible(),
            group,
        }
    }

    /// An image that is a region of a frame, such as a tile. Its boxes are in pixels of the frame, so that they can be
    /// compared with the boxes of the other images of the group.
    pub fn in_region(mapping: &Mapping, group: u32) -> Self {
        let FrameRegion { left, top, width, height } = mapping.region();
        let [left, top, right, bottom] =
            [left, top, left + width, top + height].map(|edge| edge as f32);
        let visible = Bounds { left, top, right, bottom };
        Self { boxes: BoxPixels::Frame, visible, ..Self::in_frame(mapping, group) }
    }

    /// This place for each of `images` images, each in a separate group.
    pub fn repeated(self, images: usize) -> Vec<Self> {
        (0..images as u32).map(|group| Self { group, ..self }).collect()
    }

    /// Pixels of the model's input per unit of the tensor.
    pub fn unit(&self, layout: &Layout) -> [f32; 2] {
        if layout.normalized { self.model_size } else { [1.0; 2] }
    }

    /// The numbers with which an engine decodes the image.
    pub(crate) fn decode_place(&self, layout: &Layout, params: &Params) -> DecodePlace {
        let unit = self.unit(layout);
        let (scale, offset, limit_ratio) = match (self.boxes, &self.frame) {
            (BoxPixels::Frame, Some(FrameMap { ratio, offset, .. })) => (
                [0, 1].map(|axis| (f64::from(unit[axis]) / ratio[axis]) as f32),
                [0, 1].map(|axis| (-offset[axis] / ratio[axis]) as f32),
                [1.0; 2],
            ),
            (BoxPixels::Model, Some(frame)) => (unit, [0.0; 2], frame.ratio),
            (_, None) => (unit, [0.0; 2], [1.0; 2]),
        };
        let sizes = scaled_limits(&params.sizes, limit_ratio);
        let edges = InnerEdges::new(self, params);
        DecodePlace { scale, offset, visible: self.visible, edges, sizes, limit_ratio }
    }

    /// Width and height of the model's input in pixels, for masks. If the size is unknown, it is a
    /// multiple of the prototypes' size.
    pub fn mask_model_size(&self, layout: &Layout, prototypes: &Prototypes) -> [f32; 2] {
        /// Pixels of the model's input per pixel of the prototypes, in all models of the YOLO family.
        const PROTOTYPE_STRIDE: f32 = 4.0;
        if self.model_size == [1.0; 2] && !layout.normalized {
            [prototypes.width, prototypes.height].map(|side| side as f32 * PROTOTYPE_STRIDE)
        } else {
            self.model_size
        }
    }
}

/// The indices of the images of each group. An engine has checked the numbers of the groups.
pub fn image_groups(images: &[ImagePlace]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    images.chunk_by(|before, next| before.group == next.group).map(move |group| {
        let first = end;
        end += group.len();
        first..end
    })
}

/// The number of groups of images. An engine has checked the numbers of the groups.
pub(crate) fn group_count(images: &[ImagePlace]) -> u32 {
    images.last().map_or(0, |last| last.group + 1)
}

/// The numbers with which the boxes of an image are decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DecodePlace {
    /// Pixels of boxes per unit of the tensor, along x and y.
    pub scale: [f32; 2],
    /// Added to corners after they are scaled, unless the offset is zero.
    pub offset: [f32; 2],
    /// Boxes outside this part are rejected.
    pub visible: Bounds,
    /// The edges at which boxes are dropped or have lower scores.
    pub edges: Option<InnerEdges>,
    /// The limits of sides for classes without limits, in pixels of boxes.
    pub sizes: SizeLimits,
    /// Pixels of boxes per pixel of the limits.
    pub limit_ratio: [f64; 2],
}

impl DecodePlace {
    /// The limits of the sides of a class's boxes, in pixels of boxes.
    #[inline]
    pub fn sizes(&self, params: &Params, class: u32) -> SizeLimits {
        match params.class_sizes(class) {
            None => self.sizes,
            Some(sizes) => scaled_limits(sizes, self.limit_ratio),
        }
    }

    /// Moves a corner, or the center of an oriented box.
    #[inline(always)]
    pub fn moved(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        // Adding zero would turn minus zero into zero.
        let moved = |value: f32, offset: f32| if offset == 0.0 { value } else { value + offset };
        [moved(x, self.offset[0]), moved(y, self.offset[1])]
    }
}

/// Limits in pixels of boxes. The product is computed in double precision and rounded once.
fn scaled_limits(limits: &SizeLimits, ratio: [f64; 2]) -> SizeLimits {
    let scaled = |sides: [f32; 2]| [0, 1].map(|axis| (f64::from(sides[axis]) * ratio[axis]) as f32);
    SizeLimits { min: scaled(limits.min), max: scaled(limits.max) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder;
    use crate::geometry::Letterbox;
    use crate::tensor::TensorView;

    #[test]
    fn limits_of_sides_in_a_stretched_frame_have_a_ratio_for_each_axis() {
        let windows = TensorView::from_slice("windows", &[0, 4], &[0.0f32; 0]);
        let choice = decoder::choose(&[windows], None, decoder::Options::default());
        let layout = choice.unwrap().layout;
        let sizes = SizeLimits { min: [8.0; 2], ..SizeLimits::ANY };
        let params = Params { sizes, ..Params::default() };
        let mapping = Mapping::new([1280, 480], [640, 480], Letterbox::None).unwrap();
        let place = ImagePlace::in_frame(&mapping, 0).decode_place(&layout, &params);
        assert_eq!(place.sizes.min, [4.0, 8.0]);
    }
}
