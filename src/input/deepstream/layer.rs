// SPDX-License-Identifier: MIT OR Apache-2.0
//! An output layer of the model, and its tensor for some images.
//!
//! In: the metadata of a layer. Out: its name, element type and dimensions, and a view of the memory of each image.

use arrayvec::ArrayVec;

use super::BatchImage;
use super::memory::LayerMemory;
use crate::deepstream::LayerMeta;
use crate::input::InputError;
use nmsfilter_core::tensor::{ElementType, Images, MAX_DIMENSIONS, Shape, Storage, TensorView};

/// An output layer of the model.
#[derive(Debug, Default)]
pub(super) struct Layer {
    name: String,
    element: ElementType,
    /// The dimensions without the batch dimension.
    dims: ArrayVec<usize, MAX_DIMENSIONS>,
    /// The number of bytes per image; 0 if tensors of the element type cannot be read.
    pub bytes: usize,
}

/// The element type and the dimensions of a layer.
pub(super) type LayerShape = (ElementType, ArrayVec<usize, MAX_DIMENSIONS>);

impl Layer {
    /// Returns the element type and the dimensions of a layer without the batch dimension, or `None` if there are
    /// too many dimensions.
    ///
    /// Leading dimensions of 1 are removed as long as more than two dimensions are left: if a model's batch
    /// dimension is fixed, it may be part of these dimensions.
    pub fn shape_of(meta: &LayerMeta<'_>) -> Result<Option<LayerShape>, InputError> {
        let Ok((dims, elements)) = meta.dims() else {
            return Ok(None);
        };
        if dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim)) != Some(elements) {
            let name = meta.name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let problem = format!(
                "layer {name} has the dimensions {dims:?} and {elements} elements; expected the product of the \
                 dimensions"
            );
            return Err(InputError::DeepStream { problem });
        }
        let ones = dims.iter().take_while(|&&dim| dim == 1).count();
        let dims = &dims[ones.min(dims.len().saturating_sub(2))..];
        let element = meta.element_type();
        // The limit is one less than `MAX_DIMENSIONS`, because the batch becomes the first dimension.
        Ok((dims.len() < MAX_DIMENSIONS).then(|| (element, dims.iter().copied().collect())))
    }

    pub fn set(
        &mut self,
        meta: &LayerMeta<'_>,
        (element, dims): LayerShape,
    ) -> Result<(), InputError> {
        let name = meta.name().map(|name| name.to_str()).transpose();
        let name = name.map_err(|_| InputError::DeepStream {
            problem: "the name of a layer is not UTF-8".to_owned(),
        })?;
        let name = name.unwrap_or_default();
        if self.name != name {
            self.name = name.to_owned();
        }
        self.bytes = dims.iter().product::<usize>() * element.size().unwrap_or(0);
        (self.element, self.dims) = (element, dims);
        Ok(())
    }

    pub fn is(&self, meta: &LayerMeta<'_>, (element, dims): &LayerShape) -> bool {
        let name = meta.name().map_or(&[][..], |name| name.to_bytes());
        self.name.as_bytes() == name && (self.element, &self.dims) == (*element, dims)
    }
}

/// A layer of some images.
#[derive(Debug)]
pub(crate) struct LayerImages<'a> {
    pub(super) layer: &'a Layer,
    pub(super) index: usize,
    pub(super) images: &'a [BatchImage],
    pub(super) memories: &'a [LayerMemory],
}

impl LayerImages<'_> {
    /// The first dimension is the number of images.
    pub fn view(&self) -> TensorView<'_> {
        let mut dims = ArrayVec::<usize, MAX_DIMENSIONS>::new();
        dims.push(self.images.len());
        dims.extend(self.layer.dims.iter().copied());
        let shape = Shape::new(&dims).expect("a layer has less than MAX_DIMENSIONS dimensions");
        TensorView::new(&self.layer.name, self.layer.element, shape, Storage::Images(self))
    }
}

impl Images for LayerImages<'_> {
    fn count(&self) -> usize {
        self.images.len()
    }

    fn storage(&self, index: usize) -> Storage<'_> {
        self.memories[self.images[index].first + self.index].storage()
    }
}
