// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels that merge boxes, lower scores, or read a column of candidates, and their parameters.
//! kernels/merge_params.cuh documents them; their structures and constants are also in kernels/interface_generated.cuh, which
//! `c/tests/header.rs` writes.
//!
//! In: a method. Out: the kernels that follow the deciding kernels, and what these must decide.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::graph_config::Reads;
use crate::decoder::Layout;
use crate::decoder::layout::ColumnKind;
use crate::engine::{Method, Params};

/// Threads per block of most kernels that merge boxes or lower scores.
pub const MERGE_THREADS: u32 = 256;
/// Threads per block of merge_fuse, merge_soften and merge_by_column.
pub const PART_THREADS: u32 = 512;

/// A kernel of a method that changes boxes or scores, or reads a column: its function, its threads per block, and what
/// it reads.
pub(super) type MergeKernel = (&'static CStr, u32, Reads);

const CLAIMS: MergeKernel = (c"merge_claims", MERGE_THREADS, Reads::Workspace);
const ROOTS: MergeKernel = (c"merge_roots", MERGE_THREADS, Reads::Workspace);
const CLASSES: MergeKernel = (c"merge_classes", MERGE_THREADS, Reads::Workspace);
const ORDER: MergeKernel = (c"merge_order", MERGE_THREADS, Reads::Workspace);
const GROW: MergeKernel = (c"merge_grow", MERGE_THREADS, Reads::Merge);
const AVERAGE: MergeKernel = (c"merge_average", MERGE_THREADS, Reads::Workspace);
const FUSE: MergeKernel = (c"merge_fuse", PART_THREADS, Reads::Workspace);
const SOFTEN: MergeKernel = (c"merge_soften", PART_THREADS, Reads::Merge);
const COMPENSATE: MergeKernel = (c"merge_compensate", MERGE_THREADS, Reads::Workspace);
const DECAY: MergeKernel = (c"merge_decay", MERGE_THREADS, Reads::Merge);
const RANK: MergeKernel = (c"merge_rank", MERGE_THREADS, Reads::Workspace);
const BY_COLUMN: MergeKernel = (c"merge_by_column", PART_THREADS, Reads::ByColumn);

/// The method by which the first kernels decide, and the kernels that follow them.
pub(super) fn kernels(method: Method) -> (Method, &'static [MergeKernel]) {
    match method {
        Method::Greedy | Method::MapReduce | Method::None => (method, &[]),
        Method::Merge => (Method::Greedy, &[CLAIMS, ORDER, GROW]),
        Method::WeightedAverage => (Method::Greedy, &[CLAIMS, ORDER, AVERAGE]),
        Method::MergeTransitive => (Method::None, &[CLAIMS, ROOTS, ORDER, GROW]),
        Method::WeightedFusion => (Method::None, &[CLASSES, ORDER, FUSE, RANK]),
        Method::SoftLinear | Method::SoftGaussian => {
            (Method::None, &[CLASSES, ORDER, SOFTEN, RANK])
        }
        Method::MatrixLinear | Method::MatrixGaussian => (Method::None, &[COMPENSATE, DECAY, RANK]),
        Method::Adaptive | Method::Feature => (Method::None, &[CLASSES, ORDER, BY_COLUMN]),
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
            assert_eq!(kernels(method).1.is_empty(), is_deciding(method), "{method:?}");
            assert!(is_deciding(kernels(method).0), "{method:?}");
        }
    }
}
