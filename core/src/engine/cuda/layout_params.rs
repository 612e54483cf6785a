// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels for layouts in Rust. kernels/layout_params.cuh documents them; a test compares
//! both.
//!
//! In: a layout, and the tensors in device memory. Out: the parameters that kernels receive by
//! value.

use bytemuck::{Pod, Zeroable};

use super::interface::{DECODE_THREADS, ImageAddresses, Source, TensorSource, lanes_per_anchor};
use crate::decoder::layout::{
    BoxRule, Field, Group, Layout, MAX_COLUMNS, MAX_GROUPS, MAX_SIZES, Reference, ScoreRule,
};
use crate::engine::Params;
use crate::tensor::ElementType;

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LayoutField {
    address: u64,
    images: u64,
    image_stride: u64,
    anchor_stride: u64,
    component_stride: u64,
    element: u32,
    is_quantized: u32,
    scale: f32,
    zero_point: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct LayoutGroup {
    boxes: LayoutField,
    scores: LayoutField,
    objectness: LayoutField,
    class_index: LayoutField,
    priors: LayoutField,
    angle: LayoutField,
    first_anchor: u32,
    anchors: u32,
    first_block: u32,
    lanes: u32,
    reference: u32,
    columns: u32,
    per_cell: u32,
    by_cell: u32,
    stride: [f32; 2],
    offset: f32,
    size_count: u32,
    sizes: [[f32; 2]; MAX_SIZES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LayoutParams {
    groups: [LayoutGroup; MAX_GROUPS],
    count: LayoutField,
    group_count: u32,
    has_count: u32,
    has_objectness: u32,
    has_class: u32,
    components: u32,
    first_class: u32,
    classes: u32,
    background: u32,
    activation: u32,
    combination: u32,
    box_format: u32,
    axes: u32,
    transform: u32,
    bins: u32,
    variances: [f32; 2],
    angle_factor: f32,
    reserved: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ColumnParams {
    fields: [[LayoutField; MAX_COLUMNS]; MAX_GROUPS],
    first_anchor: [u32; MAX_GROUPS],
    first_component: [u32; MAX_COLUMNS],
    group_count: u32,
    column_count: u32,
    components: u32,
    reserved: u32,
}

const _: () = assert!(
    size_of::<LayoutField>() == 56
        && size_of::<LayoutGroup>() == 432
        && size_of::<LayoutParams>() == 3584
        && size_of::<ColumnParams>() == 1856
);

/// The size of a float4 in the table of priors, in bytes.
const PRIOR_BYTES: u64 = size_of::<[f32; 4]>() as u64;

/// `LayoutGroup::reference`
mod reference {
    pub const NONE: u32 = 0;
    pub const GRID: u32 = 1;
    pub const PRIORS: u32 = 2;
    pub const TABLE: u32 = 3;
}

/// `LayoutField::element`
fn element_number(element: ElementType) -> u32 {
    match element {
        // Memory of any other type is never read: no tensor source exists for it.
        ElementType::F32 | ElementType::Other(_) => 0,
        ElementType::F16 => 1,
        ElementType::I8 => 2,
        ElementType::U8 => 3,
        ElementType::I32 => 4,
        ElementType::I64 => 5,
    }
}

impl LayoutField {
    pub fn new(field: &Field, source: &Source) -> Self {
        let tensor: &TensorSource = source.tensor(field.tensor);
        let size = tensor.element.size().unwrap_or(0) as u64;
        // `validate` ensures that nothing wraps where there are anchors. Without anchors nothing is read.
        let bytes = |elements: usize| (elements as u64).wrapping_mul(size);
        Self {
            address: tensor.address.wrapping_add(bytes(field.offset)),
            images: tensor.images.table(),
            image_stride: match tensor.images {
                ImageAddresses::AsInLayout => bytes(field.image_stride),
                ImageAddresses::Stride(bytes) => bytes,
                ImageAddresses::Table(_) => 0,
            },
            anchor_stride: field.anchor_stride as u64,
            component_stride: field.component_stride as u64,
            element: element_number(tensor.element),
            is_quantized: tensor.quantization.is_some().into(),
            scale: tensor.quantization.map_or(1.0, |quantization| quantization.scale()),
            zero_point: tensor
                .quantization
                .map_or(0.0, |quantization| quantization.zero_point() as f32),
        }
    }

    /// The priors in the table at `address`, starting at number `first`.
    fn of_table(address: u64, first: usize) -> Self {
        Self {
            address: address.wrapping_add((first as u64).wrapping_mul(PRIOR_BYTES)),
            anchor_stride: 4,
            component_stride: 1,
            element: element_number(ElementType::F32),
            ..Self::default()
        }
    }
}

impl LayoutGroup {
    /// A group that follows other groups with `first_anchor` anchors in `first_block` blocks.
    fn new(
        group: &Group,
        source: &Source,
        first_anchor: u32,
        first_block: u32,
        lanes: u32,
    ) -> Self {
        let field = |field: &Field| LayoutField::new(field, source);
        let optional = |of: &Option<Field>| of.as_ref().map(field).unwrap_or_default();
        let mut made = Self {
            boxes: field(&group.boxes),
            scores: field(&group.scores),
            objectness: optional(&group.objectness),
            class_index: optional(&group.class),
            angle: optional(&group.angle),
            first_anchor,
            // `validate` has checked that anchors, and the numbers of a grid, fit in 32 bits.
            anchors: group.anchors as u32,
            first_block,
            lanes,
            ..Self::default()
        };
        match &group.reference {
            Reference::None => made.reference = reference::NONE,
            Reference::Priors(priors) => {
                made.reference = reference::PRIORS;
                made.priors = field(priors);
            }
            Reference::Table(first) => {
                made.reference = reference::TABLE;
                made.priors = LayoutField::of_table(source.priors, *first);
            }
            Reference::Grid(grid) => {
                made.reference = reference::GRID;
                made.columns = grid.columns as u32;
                made.per_cell = grid.per_cell as u32;
                made.by_cell = grid.by_cell.into();
                made.stride = grid.stride;
                made.offset = grid.offset;
                made.size_count = grid.sizes.len() as u32;
                made.sizes[..grid.sizes.len()].copy_from_slice(&grid.sizes);
            }
        }
        made
    }

    /// Blocks with a thread per anchor and lane.
    fn blocks(&self) -> u32 {
        let threads = u64::from(self.anchors) * u64::from(self.lanes);
        threads.div_ceil(u64::from(DECODE_THREADS)) as u32
    }
}

impl LayoutParams {
    pub fn new(source: &Source, layout: &Layout, params: &Params) -> Self {
        let ScoreRule { components, first_class, background, activation, combination } =
            layout.score;
        let BoxRule { format, axes, transform, bins, variances, angle_factor } = layout.boxes;
        let first = layout.groups.first();
        let mut made = Self {
            count: layout
                .count
                .as_ref()
                .map(|count| LayoutField::new(count, source))
                .unwrap_or_default(),
            group_count: layout.groups.len() as u32,
            has_count: layout.count.is_some().into(),
            has_objectness: first.is_some_and(|group| group.objectness.is_some()).into(),
            has_class: layout.has_class_field().into(),
            components: components as u32,
            first_class,
            classes: layout.classes as u32,
            background: background.into(),
            activation: activation as u32,
            combination: combination as u32,
            box_format: format as u32,
            axes: axes as u32,
            transform: transform as u32,
            bins: bins as u32,
            variances,
            angle_factor,
            ..Self::default()
        };
        let (mut anchors, mut blocks) = (0, 0);
        for (made, group) in made.groups.iter_mut().zip(&layout.groups) {
            // If an anchor has several pairs, all of its lanes append candidates.
            let lanes = match params.multi_label {
                true if components >= 8 => 8,
                true => 1,
                false => lanes_per_anchor(
                    components,
                    group.scores.anchor_stride,
                    layout.anchors(),
                    layout.images as u32,
                ),
            };
            *made = LayoutGroup::new(group, source, anchors, blocks, lanes);
            anchors += made.anchors;
            blocks += made.blocks();
        }
        made
    }

    /// Blocks of decode per image, for all groups.
    pub fn blocks(&self) -> u32 {
        let groups = &self.groups[..self.group_count as usize];
        groups.iter().map(LayoutGroup::blocks).sum::<u32>().max(1)
    }
}

impl ColumnParams {
    pub fn new(source: &Source, layout: &Layout) -> Self {
        let mut made = Self {
            group_count: layout.groups.len() as u32,
            column_count: layout.columns.len() as u32,
            // `validate` has checked that it fits.
            components: layout.column_components() as u32,
            ..Self::default()
        };
        let mut first = 0;
        for (made, column) in made.first_component.iter_mut().zip(&layout.columns) {
            *made = first;
            first += column.components as u32;
        }
        let mut anchors = 0;
        for (index, group) in layout.groups.iter().enumerate().take(MAX_GROUPS) {
            made.first_anchor[index] = anchors;
            anchors += group.anchors as u32;
            for (made, field) in made.fields[index].iter_mut().zip(&group.columns) {
                *made = LayoutField::new(field, source);
            }
        }
        made
    }
}

/// The bytes of the rows of columns behind the detections.
pub(super) fn columns_bytes(capacity: u32, groups: u32, components: u32) -> usize {
    groups as usize * capacity as usize * components as usize * size_of::<f32>()
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::super::interface::compare::{equal, fields};
    use super::*;
    use crate::decoder::layout::{Activation, Axes, BoxFormat, BoxTransform, Combination};
    use crate::device::kernel_headers;

    #[test]
    fn structures_and_constants_are_those_of_layout_params_cuh() {
        let mut program = String::from("#include \"layout_params.cuh\"\n#include <stddef.h>\n");
        fields!(
            program, LayoutField: address, images, image_stride, anchor_stride, component_stride,
            element, is_quantized, scale, zero_point,
        );
        fields!(
            program, LayoutGroup: boxes, scores, objectness, class_index, priors, angle,
            first_anchor, anchors, first_block, lanes, reference, columns, per_cell, by_cell, stride, offset,
            size_count, sizes,
        );
        fields!(
            program, LayoutParams: groups, count, group_count, has_count, has_objectness,
            has_class, components, first_class, classes, background, activation, combination,
            box_format, axes, transform, bins, variances, angle_factor, reserved,
        );
        fields!(
            program, ColumnParams: fields, first_anchor, first_component, group_count,
            column_count, components, reserved,
        );
        for (theirs, ours) in [
            ("MAX_GROUPS", MAX_GROUPS),
            ("MAX_SIZES", MAX_SIZES),
            ("MAX_COLUMNS", MAX_COLUMNS),
            ("CORNERS", BoxFormat::Corners as usize),
            ("CENTER", BoxFormat::Center as usize),
            ("SQUARE", BoxFormat::Square as usize),
            ("DISTANCES", BoxFormat::Distances as usize),
            ("ACTIVATION_NONE", Activation::None as usize),
            ("ACTIVATION_SIGMOID", Activation::Sigmoid as usize),
            ("ACTIVATION_SOFTMAX", Activation::Softmax as usize),
            ("COMBINATION_PRODUCT", Combination::Product as usize),
            ("COMBINATION_SQUARE_ROOT", Combination::SquareRoot as usize),
            ("AXES_XY", Axes::Xy as usize),
            ("AXES_YX", Axes::Yx as usize),
            ("TRANSFORM_NONE", BoxTransform::None as usize),
            ("TRANSFORM_EXP", BoxTransform::Exp as usize),
            ("TRANSFORM_SIGMOID", BoxTransform::Sigmoid as usize),
            ("TRANSFORM_EXPECTATION", BoxTransform::Expectation as usize),
            ("REFERENCE_NONE", reference::NONE as usize),
            ("REFERENCE_GRID", reference::GRID as usize),
            ("REFERENCE_PRIORS", reference::PRIORS as usize),
            ("REFERENCE_TABLE", reference::TABLE as usize),
        ] {
            equal(&mut program, theirs, ours);
        }
        for element in ElementType::READABLE {
            let name = format!("ELEMENT_{}", element.name().to_uppercase());
            equal(&mut program, &name, element_number(element) as usize);
        }
        kernel_headers::compile(&program);
    }
}
