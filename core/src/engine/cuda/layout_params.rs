// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels for layouts. The structures and enumerations are also in
//! kernels/interface_generated.cuh.
//!
//! In: a layout, and the tensors in device memory. Out: the parameters that kernels receive by
//! value.

use bytemuck::{Pod, Zeroable};

use super::interface::{DECODE_THREADS, Source, TensorSource, lanes_per_anchor};
use crate::decoder::layout::{
    BoxRule, Field, Group, Layout, MAX_COLUMNS, MAX_GROUPS, MAX_SIZES, Reference, ScoreRule,
};
use crate::engine::Params;
use crate::tensor::ElementType;

/// The type of a tensor's elements.
#[repr(u32)]
enum Element {
    F32 = 0,
    F16 = 1,
    I8 = 2,
    U8 = 3,
    I32 = 4,
    I64 = 5,
}

/// The reference that boxes are relative to. The table stores x before y; priors are stored in the
/// order of LayoutParams::axes.
#[repr(u32)]
enum ReferenceKind {
    None = 0,
    Grid = 1,
    Priors = 2,
    Table = 3,
}

/// Component c of anchor a of image i is the element at a * anchor_stride + c * component_stride
/// from the image's address. The image's address is `address` + i * image_stride, or with a table of
/// images `address` + entry i of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LayoutField {
    /// Device address of component 0 of anchor 0 of image 0; with a table, bytes.
    pub address: u64,
    /// Device address of the table of images, of type uint64_t; 0: no table.
    images: u64,
    /// In bytes.
    pub image_stride: u64,
    /// In elements.
    pub anchor_stride: u64,
    /// In elements.
    pub component_stride: u64,
    /// An Element.
    element: u32,
    /// 1: an element stands for (element - zero_point) * scale.
    is_quantized: u32,
    scale: f32,
    zero_point: f32,
}

/// A set of anchors whose numbers are in one set of fields. Fields that the layout lacks are not
/// read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct LayoutGroup {
    boxes: LayoutField,
    /// With the background's score first or last, if there is one.
    scores: LayoutField,
    objectness: LayoutField,
    class_index: LayoutField,
    /// For REFERENCE_KIND_PRIORS and REFERENCE_KIND_TABLE.
    priors: LayoutField,
    /// Of oriented boxes.
    angle: LayoutField,
    /// The number of anchors in the preceding groups.
    first_anchor: u32,
    anchors: u32,
    /// The number of blocks of the preceding groups.
    first_block: u32,
    /// Threads that share an anchor's classes: 1 or 8.
    lanes: u32,
    /// A ReferenceKind.
    reference: u32,
    /// For REFERENCE_KIND_GRID, with the following fields: core/src/decoder/layout/box_rule.rs.
    columns: u32,
    per_cell: u32,
    /// 0 or 1.
    by_cell: u32,
    stride: [f32; 2],
    offset: f32,
    size_count: u32,
    scale_xy: f32,
    reserved: u32,
    sizes: [[f32; 2]; MAX_SIZES],
}

/// A layout (core/src/decoder/layout).
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct LayoutParams {
    groups: [LayoutGroup; MAX_GROUPS],
    /// Read with has_count.
    count: LayoutField,
    group_count: u32,
    /// 0 or 1.
    has_count: u32,
    /// 0 or 1.
    has_objectness: u32,
    /// 0 or 1: the class is read from class_index.
    has_class: u32,
    /// The number of classes' scores.
    components: u32,
    /// The class of the first of these scores.
    first_class: u32,
    /// A class that is read is less.
    classes: u32,
    /// 0 or 1: the number of scores before the classes'.
    first_column: u32,
    /// An Activation.
    activation: u32,
    /// A Combination.
    combination: u32,
    /// A BoxFormat.
    box_format: u32,
    /// An Axes.
    axes: u32,
    /// A BoxTransform.
    transform: u32,
    bins: u32,
    variances: [f32; 2],
    /// The angle of an oriented box for the number 1: radians, clockwise.
    angle_factor: f32,
    /// The number of all scores: of classes, and the background's before or after them.
    score_columns: u32,
}

/// The columns of a layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ColumnParams {
    fields: [[LayoutField; MAX_COLUMNS]; MAX_GROUPS],
    first_anchor: [u32; MAX_GROUPS],
    /// The number of components of the preceding columns.
    first_component: [u32; MAX_COLUMNS],
    group_count: u32,
    column_count: u32,
    /// The components of all columns.
    components: u32,
    reserved: u32,
}

const _: () = assert!(
    size_of::<LayoutField>() == 56
        && size_of::<LayoutGroup>() == 440
        && size_of::<LayoutParams>() == 3648
        && size_of::<ColumnParams>() == 1856
);

/// The size of a float4 in the table of priors, in bytes.
const PRIOR_BYTES: u64 = size_of::<[f32; 4]>() as u64;

impl From<ElementType> for Element {
    fn from(element: ElementType) -> Self {
        match element {
            // Memory of any other type is never read: no tensor source exists for it.
            ElementType::F32 | ElementType::Other(_) => Self::F32,
            ElementType::F16 => Self::F16,
            ElementType::I8 => Self::I8,
            ElementType::U8 => Self::U8,
            ElementType::I32 => Self::I32,
            ElementType::I64 => Self::I64,
        }
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
            images: tensor.table.unwrap_or(0),
            image_stride: tensor.image_stride.unwrap_or_else(|| bytes(field.image_stride)),
            anchor_stride: field.anchor_stride as u64,
            component_stride: field.component_stride as u64,
            element: Element::from(tensor.element) as u32,
            is_quantized: tensor.quantization.is_some().into(),
            scale: tensor.quantization.map_or(1.0, |quantization| quantization.scale()),
            zero_point: tensor
                .quantization
                .map_or(0.0, |quantization| quantization.zero_point() as f32),
        }
    }

    fn optional(field: &Option<Field>, source: &Source) -> Self {
        field.as_ref().map(|field| Self::new(field, source)).unwrap_or_default()
    }

    /// The priors in the table at `address`, starting at number `first`.
    fn of_table(address: u64, first: usize) -> Self {
        Self {
            address: address.wrapping_add((first as u64).wrapping_mul(PRIOR_BYTES)),
            anchor_stride: 4,
            component_stride: 1,
            element: Element::F32 as u32,
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
        let optional = |of: &Option<Field>| LayoutField::optional(of, source);
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
        let kind = match &group.reference {
            Reference::None => ReferenceKind::None,
            Reference::Priors(priors) => {
                made.priors = field(priors);
                ReferenceKind::Priors
            }
            Reference::Table(first) => {
                made.priors = LayoutField::of_table(source.priors, *first);
                ReferenceKind::Table
            }
            Reference::Grid(grid) => {
                made.columns = grid.columns as u32;
                made.per_cell = grid.per_cell as u32;
                made.by_cell = grid.by_cell.into();
                made.stride = grid.stride;
                made.offset = grid.offset;
                made.scale_xy = grid.scale_xy;
                made.size_count = grid.sizes.len() as u32;
                made.sizes[..grid.sizes.len()].copy_from_slice(&grid.sizes);
                ReferenceKind::Grid
            }
        };
        made.reference = kind as u32;
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
        let ScoreRule { components, first_class, background: _, activation, combination, .. } =
            layout.score;
        let BoxRule { format, axes, transform, bins, variances, angle_factor } = layout.boxes;
        let first = layout.groups.first();
        let mut made = Self {
            count: LayoutField::optional(&layout.count, source),
            group_count: layout.groups.len() as u32,
            has_count: layout.count.is_some().into(),
            has_objectness: first.is_some_and(|group| group.objectness.is_some()).into(),
            has_class: layout.has_class_field().into(),
            components: components as u32,
            first_class,
            classes: layout.classes as u32,
            first_column: layout.score.first_column() as u32,
            activation: activation as u32,
            combination: combination as u32,
            box_format: format as u32,
            axes: axes as u32,
            transform: transform as u32,
            bins: bins as u32,
            variances,
            angle_factor,
            score_columns: layout.score.columns() as u32,
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
