// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements of a tensor for one kind of value.

/// The elements of a tensor for one kind of value (boxes, scores, objectness): component `c` of anchor `a` of
/// image `i` is element `offset + i * image_stride + a * anchor_stride + c * component_stride`. Anchors are
/// counted from 0 in each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The index of the tensor.
    pub tensor: usize,
    /// The index of the first element.
    pub offset: usize,
    /// Elements between corresponding components of consecutive images.
    pub image_stride: usize,
    /// Elements between corresponding components of consecutive anchors.
    pub anchor_stride: usize,
    /// Elements between consecutive components of an anchor.
    pub component_stride: usize,
}

impl Field {
    /// The field of all numbers of a tensor: a matrix for each image, with the numbers of an anchor beside each other,
    /// or with `by_component`, one component of all anchors after the other.
    pub(in crate::decoder) fn of_matrix(
        tensor: usize,
        anchors: usize,
        components: usize,
        by_component: bool,
    ) -> Self {
        // The shape has not been checked against the memory yet, so the product can overflow; engines return an error for
        // a field beyond the memory.
        let image_stride = anchors.saturating_mul(components);
        let (anchor_stride, component_stride) =
            if by_component { (1, anchors) } else { (components, 1) };
        Self { tensor, offset: 0, image_stride, anchor_stride, component_stride }
    }

    /// The field of image `image`, as a batch of one image, in the memory of all images.
    pub(crate) fn of_image(self, image: usize) -> Self {
        // Without anchors no element is read and any offset and stride is valid: both can overflow.
        Self { offset: self.offset.wrapping_add(image.wrapping_mul(self.image_stride)), ..self }
    }

    /// The index of the element for `component` of `anchor` of the first image.
    pub fn index(&self, anchor: usize, component: usize) -> usize {
        self.offset + anchor * self.anchor_stride + component * self.component_stride
    }
}
