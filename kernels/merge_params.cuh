// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels that merge boxes, lower scores, or read a column of candidates. Its
// structures and constants are written in core/src/engine/cuda/merging.rs.
//
// They follow the kernels that decide (interface.cuh), and precede masks and publish. The kernels
// before them run with KernelParams::method GREEDY if keepers are the survivors of greedy
// suppression, and with NONE otherwise. Each method has a sequence of kernels:
//
//   merge                 merge_claims, merge_order, merge_grow
//   merge-transitive      merge_claims, merge_roots, merge_order, merge_grow
//   weighted-average      merge_claims, merge_order, merge_average
//   weighted-fusion       merge_classes, merge_order, merge_fuse, merge_rank
//   soft-linear, -gaussian      merge_classes, merge_order, merge_soften, merge_rank
//   matrix-linear, -gaussian    merge_compensate, merge_decay, merge_rank
//   adaptive, feature     merge_classes, merge_order, merge_by_column
//
// The parameters are workspace and stride; merge_grow, merge_soften and merge_decay also have a
// MergeParams, and merge_by_column a ByColumnParams and a ColumnParams, by value. Blocks have
// MERGE_THREADS threads, or PART_THREADS for merge_fuse, merge_soften and merge_by_column. There can be any number of blocks per group.
#pragma once

#include "interface.cuh"
