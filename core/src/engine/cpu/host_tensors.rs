// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors of a layout in host memory.
//!
//! In: tensors and layout. Out: the numbers of each field of an image, and the columns of its
//! survivors.

use arrayvec::ArrayVec;

use super::super::{Detection, EngineError};
use crate::decoder::MAX_INPUTS;
use crate::decoder::layout::{Field, Layout};
use crate::tensor::{Element, Elements, HostImages, Quantization, TensorView, with_elements};

/// The tensors of a layout in host memory.
pub(super) struct HostTensors<'t, 'a> {
    tensors: &'t [TensorView<'a>],
    /// The index of each tensor, and its elements.
    mapped: ArrayVec<(usize, HostImages<'t, 'a>), MAX_INPUTS>,
}

impl<'t, 'a> HostTensors<'t, 'a> {
    /// None yet, because a result would copy the arrays.
    pub fn new(tensors: &'t [TensorView<'a>]) -> Self {
        Self { tensors, mapped: ArrayVec::new() }
    }

    /// Maps the tensors of a layout.
    pub fn map(&mut self, layout: &Layout) -> Result<(), EngineError> {
        for &index in &layout.tensors() {
            self.mapped.push((index, HostImages::new(&self.tensors[index])?));
        }
        Ok(())
    }

    /// The tensors of image `image`.
    pub fn image(&self, image: usize) -> Result<ImageTensors<'t, 'a>, EngineError> {
        let mut elements = ArrayVec::new();
        for (index, host) in &self.mapped {
            elements.push((*index, host.holding(image)?));
        }
        Ok(ImageTensors { tensors: self.tensors, elements, image })
    }
}

/// The elements of the tensors of an image.
pub(super) struct ImageTensors<'t, 'a> {
    tensors: &'t [TensorView<'a>],
    elements: ArrayVec<(usize, Elements<'a>), MAX_INPUTS>,
    /// The index of the image.
    pub image: usize,
}

/// The numbers of a field of an image.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub elements: Elements<'a>,
    pub quantization: Option<Quantization>,
    /// The offset includes the image's offset.
    pub field: Field,
}

impl<'a> ImageTensors<'_, 'a> {
    pub fn numbers(&self, field: &Field) -> Numbers<'a> {
        // Otherwise compilers look for tensors of fields that a layout lacks, which valgrind reports.
        let wanted = std::hint::black_box(field.tensor);
        let tensor = &self.tensors[wanted];
        let (_, elements) = self
            .elements
            .iter()
            .find(|(index, _)| *index == wanted)
            .expect("every tensor of a layout is mapped");
        let field = if tensor.has_separate_images() { *field } else { field.of_image(self.image) };
        Numbers { elements: *elements, quantization: tensor.quantization, field }
    }

    /// Appends the columns of a survivor of the image.
    pub fn append_columns(&self, layout: &Layout, survivor: &Detection, to: &mut Vec<f32>) {
        (0..layout.columns.len())
            .for_each(|column| self.append_column(layout, column, survivor, to));
    }

    /// Appends a column of a candidate of the image.
    #[inline]
    pub fn append_column(
        &self,
        layout: &Layout,
        column: usize,
        candidate: &Detection,
        to: &mut Vec<f32>,
    ) {
        let anchor = candidate.anchor as usize % layout.anchors();
        let (group, anchor) = layout.locate(anchor).expect("an anchor is in a group");
        let components = layout.columns[column].components;
        self.numbers(&group.columns[column]).append_row(anchor, components, to);
    }
}

impl Numbers<'_> {
    #[inline(always)]
    pub fn at(&self, anchor: usize, component: usize) -> f32 {
        self.number(self.elements.to_f32(self.field.index(anchor, component)))
    }

    /// The first `count` components of an anchor, at most four; the others are zero.
    #[inline(always)]
    pub fn components(&self, anchor: usize, count: usize) -> [f32; 4] {
        let mut components = [0.0; 4];
        for (index, component) in components[..count].iter_mut().enumerate() {
            *component = self.at(anchor, index);
        }
        components
    }

    /// Appends the first `components` components of an anchor.
    #[inline]
    fn append_row(&self, anchor: usize, components: usize, to: &mut Vec<f32>) {
        with_elements!(self.elements, elements => self.append(elements, anchor, components, to));
    }

    #[inline]
    fn append<E: Element>(
        &self,
        elements: &[E],
        anchor: usize,
        components: usize,
        to: &mut Vec<f32>,
    ) {
        let field = self.field;
        let element = |component| elements[field.index(anchor, component)].to_f32();
        match self.quantization {
            None => to.extend((0..components).map(element)),
            Some(by) => to.extend((0..components).map(|index| by.number(element(index)))),
        }
    }

    /// The number that an element stands for.
    #[inline(always)]
    pub fn number(&self, element: f32) -> f32 {
        match self.quantization {
            Some(quantization) => quantization.number(element),
            None => element,
        }
    }
}
