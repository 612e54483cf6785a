// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that merge boxes, lower scores, or read a column of candidates, and their parameters.
//! kernels/merge_params.cuh documents them; their structures and constants are also in kernels/interface_generated.cuh, which
//! `c/tests/header.rs` writes.
//!
//! In: a method. Out: the kernels that follow the deciding kernels, and what these must decide.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::interface::blocks_per_group;
use crate::decoder::Layout;
use crate::decoder::layout::ColumnKind;
use crate::engine::{Method, Params};

/// Threads per block of most kernels that merge boxes or lower scores.
pub const MERGE_THREADS: u32 = 256;
/// Threads per block of merge_fuse, merge_soften and merge_by_column.
pub const PART_THREADS: u32 = 512;

/// A kernel of a method that changes boxes or scores, or reads a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergeKernel {
    Claims,
    Roots,
    Classes,
    Order,
    Grow,
    Average,
    Fuse,
    Soften,
    Compensate,
    Decay,
    Rank,
    ByColumn,
}

use MergeKernel::*;

impl MergeKernel {
    /// The method by which the first kernels decide, and the kernels that follow them.
    pub fn of(method: Method) -> (Method, &'static [Self]) {
        match method {
            Method::Greedy | Method::MapReduce | Method::None => (method, &[]),
            Method::Merge => (Method::Greedy, &[Claims, Order, Grow]),
            Method::WeightedAverage => (Method::Greedy, &[Claims, Order, Average]),
            Method::MergeTransitive => (Method::None, &[Claims, Roots, Order, Grow]),
            Method::WeightedFusion => (Method::None, &[Classes, Order, Fuse, Rank]),
            Method::SoftLinear | Method::SoftGaussian => {
                (Method::None, &[Classes, Order, Soften, Rank])
            }
            Method::MatrixLinear | Method::MatrixGaussian => {
                (Method::None, &[Compensate, Decay, Rank])
            }
            Method::Adaptive | Method::Feature => (Method::None, &[Classes, Order, ByColumn]),
        }
    }

    /// The kernel's function.
    pub fn function(self) -> &'static CStr {
        match self {
            Claims => c"merge_claims",
            Roots => c"merge_roots",
            Classes => c"merge_classes",
            Order => c"merge_order",
            Grow => c"merge_grow",
            Average => c"merge_average",
            Fuse => c"merge_fuse",
            Soften => c"merge_soften",
            Compensate => c"merge_compensate",
            Decay => c"merge_decay",
            Rank => c"merge_rank",
            ByColumn => c"merge_by_column",
        }
    }

    /// The number of threads per block.
    pub fn threads(self) -> u32 {
        if matches!(self, Fuse | Soften | ByColumn) { PART_THREADS } else { MERGE_THREADS }
    }

    /// Returns true if the kernel reads [`MergeParams`], or [`ByColumnParams`] and the columns.
    pub fn has_params(self) -> bool {
        matches!(self, Grow | Soften | Decay | ByColumn)
    }

    /// The number of blocks per group: no more than are resident at a time.
    pub fn blocks(self, multiprocessors: u32, capacity: u32, groups: u32) -> u32 {
        if self.threads() == PART_THREADS {
            return blocks_per_group(multiprocessors, capacity, groups);
        }
        // A warp has a candidate, or up to 32.
        let wanted = capacity.div_ceil(MERGE_THREADS / 32);
        blocks_per_group(4 * multiprocessors, wanted, groups)
    }
}

/// The parameters of a launch of a kernel that merges boxes or lowers scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MergeParams {
    /// Of Gaussian decay.
    sigma: f32,
    /// 0 or 1: linear decay.
    is_gaussian: u32,
    /// 0 or 1: members that do not join are lost.
    lose_released: u32,
}

impl MergeParams {
    pub fn new(params: &Params) -> Self {
        let is_gaussian = matches!(params.method, Method::SoftGaussian | Method::MatrixGaussian);
        Self {
            sigma: params.sigma,
            is_gaussian: is_gaussian.into(),
            lose_released: params.lose_released.into(),
        }
    }
}

/// The parameters of a launch of merge_by_column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ByColumnParams {
    /// The index of the column in ColumnParams.
    column: u32,
    components: u32,
    /// 0 or 1: the column has embeddings, not densities.
    is_embedding: u32,
    embedding_distance: f32,
    embedding_iou_threshold: f32,
}

impl ByColumnParams {
    /// The parameters, or zeros if the method reads no column. `validate` has checked that the
    /// layout has the column.
    pub fn new(layout: &Layout, params: &Params) -> Self {
        let Some(kind) = params.method.column() else { return Self::default() };
        let column = layout.column_of(kind).unwrap_or_default();
        Self {
            column: column as u32,
            components: layout.columns.get(column).map_or(0, |column| column.components as u32),
            is_embedding: (kind == ColumnKind::Embedding).into(),
            embedding_distance: params.embedding_distance,
            embedding_iou_threshold: params.embedding_iou_threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_methods_than_those_of_map_and_reduce_have_further_kernels() {
        for method in Method::ALL {
            let is_deciding = |of| matches!(of, Method::Greedy | Method::MapReduce | Method::None);
            assert_eq!(MergeKernel::of(method).1.is_empty(), is_deciding(method), "{method:?}");
            assert!(is_deciding(MergeKernel::of(method).0), "{method:?}");
        }
    }
}
