// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels that merge boxes or lower scores. Its structure and constants are
// written in core/src/engine/cuda/merging.rs.
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
//
// The parameters are workspace and stride; merge_grow, merge_soften and merge_decay also have a
// MergeParams, by value. Blocks have MERGE_THREADS threads, or PART_THREADS for merge_fuse and
// merge_soften. There can be any number of blocks per group.
#pragma once

#include "interface.cuh"
