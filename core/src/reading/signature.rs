// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts of tensors on which a reading depends.

use crate::tensor::{ElementType, Quantization, Shape, TensorView};

/// The facts on which the choice of a decoder depends, for each tensor.
#[derive(Default)]
pub struct Signatures(Vec<Signature>);

/// The facts of one tensor on which the choice of a decoder depends.
#[derive(Default)]
struct Signature {
    id: String,
    element: ElementType,
    quantization: Option<Quantization>,
    shape: Shape,
}

impl Signatures {
    /// True if these tensors have these ids, element types and shapes.
    pub fn has_tensors(&self, tensors: &[TensorView<'_>]) -> bool {
        let is_of = |(known, tensor): (&Signature, &TensorView<'_>)| {
            let Signature { id, element, quantization, shape } = known;
            (&**id, *element, *quantization, shape) == tensor.signature()
        };
        self.0.len() == tensors.len() && self.0.iter().zip(tensors).all(is_of)
    }

    /// True if these tensors have these ids, in any shapes.
    pub fn has_ids(&self, tensors: &[TensorView<'_>]) -> bool {
        self.0.len() == tensors.len()
            && self.0.iter().zip(tensors).all(|(known, tensor)| known.id == tensor.id)
    }

    /// Takes the signatures of these tensors. Does not allocate if their ids are known.
    pub fn set(&mut self, tensors: &[TensorView<'_>]) {
        self.0.resize_with(tensors.len(), Signature::default);
        for (signature, tensor) in self.0.iter_mut().zip(tensors) {
            if signature.id != tensor.id {
                signature.id = tensor.id.to_owned();
            }
            signature.element = tensor.element;
            signature.quantization = tensor.quantization;
            signature.shape = tensor.shape.clone();
        }
    }
}
