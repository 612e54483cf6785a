// SPDX-License-Identifier: MIT OR Apache-2.0
//! An output layer of the model, and its tensor for some images.
//!
//! In: the metadata of a layer. Out: its name, element type and dimensions, and a view of the memory of each image.

use arrayvec::ArrayVec;

use crate::deepstream::{DeepStreamError, LayerMeta, LockedBatch};
use nmsfilter_core::tensor::{ElementType, MAX_DIMENSIONS, Shape, Storage, TensorView};

/// An output layer of the model.
#[derive(Debug, PartialEq)]
pub(crate) struct Layer<'a> {
    name: &'a str,
    element: ElementType,
    /// The dimensions without the batch dimension.
    dims: ArrayVec<usize, MAX_DIMENSIONS>,
}

impl<'a> Layer<'a> {
    /// Returns a layer without the batch dimension, or `None` if there are too many dimensions.
    ///
    /// Leading dimensions of 1 are removed as long as more than two dimensions are left: if a model's batch
    /// dimension is fixed, it may be part of these dimensions.
    pub fn new(
        batch: &LockedBatch<'a>,
        meta: &LayerMeta<'_>,
    ) -> Result<Option<Self>, DeepStreamError> {
        let Some((dims, elements)) = meta.dims() else {
            return Ok(None);
        };
        let name = batch.layer_name(meta).unwrap_or_default();
        if dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim)) != Some(elements) {
            return Err(DeepStreamError(format!(
                "layer {} has the dimensions {dims:?} and {elements} elements; expected the product of the dimensions",
                name.to_string_lossy()
            )));
        }
        let ones = dims.iter().take_while(|&&dim| dim == 1).count();
        let dims = &dims[ones.min(dims.len().saturating_sub(2))..];
        // The limit is one less than `MAX_DIMENSIONS`, because the batch becomes the first dimension.
        if dims.len() >= MAX_DIMENSIONS {
            return Ok(None);
        }
        let not_utf8 = |_| DeepStreamError("the name of a layer is not UTF-8".to_owned());
        let name = name.to_str().map_err(not_utf8)?;
        let (element, dims) = (meta.element_type(), dims.iter().copied().collect());
        Ok(Some(Self { name, element, dims }))
    }

    /// The number of bytes per image; 0 if tensors of the element type cannot be read.
    pub fn bytes(&self) -> usize {
        self.dims.iter().product::<usize>() * self.element.size().unwrap_or(0)
    }

    /// The tensor of this number of images, which is its first dimension.
    pub fn view<'v>(&'v self, images: usize, storage: Storage<'v>) -> TensorView<'v> {
        let mut dims = ArrayVec::<usize, MAX_DIMENSIONS>::new();
        dims.push(images);
        dims.extend(self.dims.iter().copied());
        let shape = Shape::new(&dims).expect("a layer has less than MAX_DIMENSIONS dimensions");
        TensorView::new(self.name, self.element, shape, storage)
    }
}
