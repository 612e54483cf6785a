// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels: arguments that the host passes, results that it receives, and how
// much memory it provides. Structures and constants are in interface_generated.cuh, which is made of
// core/src/engine/cuda. The functions at the end are also in interface.rs there; a test compares them.
//
// Four kernels, launched once each in one stream, process a batch of images. The images are divided
// into groups (core/src/engine/mod.rs), and a candidate only suppresses candidates of its
// group. Decode has blocks per image; all other kernels have blocks per group:
//
//   kernel                   blocks per image, or per group              parameters
//   decode_<B>_<S>           with a thread per anchor and lane           params, workspace, stride
//   or decode_multi_<B>_<S>  with a thread per pair of anchor and class  the same
//   map, map_batch           any number                                  workspace, stride
//   reduce, reduce_batch     any number                                  workspace, stride
//   (groups with many candidates: below)
//   publish, publish_batch   any number                                  workspace, stride, results,
//                                                                        detections
//
// core/src/engine/cuda/interface.rs chooses the numbers of blocks, and computes the sizes of memory.
//
// map, reduce and publish handle a single group, and ignore `stride`. map_batch, reduce_batch and
// publish_batch handle any number of groups. With one group they are somewhat slower, because they
// compute the addresses of their group, and because map_batch also divides the queries among groups
// of warps. Each pair is compiled from one source with the template parameter `IsBatch`. Decode has
// one kernel for both cases.
//
// Groups with more than KernelParams::sort_limit candidates are handled by other kernels, which sort
// the candidates and do not compare all pairs (sort.cuh, chunk.cuh). map and reduce do nothing for such
// a group, and these do nothing for others. With a capacity above the limit they are launched between
// reduce and publish, for single groups and batches alike; chunk_filter, chunk_map and chunk_reduce in
// turn for each chunk from 0 to chunk_of(capacity - 1, first_chunk), with any number of blocks:
//
//   sort_count, sort_scatter, sort_rank     workspace, stride
//   chunk_filter, chunk_map, chunk_reduce   workspace, stride, chunk
//
// `chunk` is a uint32_t. After publish of a single group, another kernel can write the anchors of
// the first `count` detections, a uint32_t, to an array of int64_t:
//
//   indices     1 block of PUBLISH_THREADS threads     detections, count, anchors
//
// For oriented boxes, sort_limit is the greatest uint32_t.
//
// layout.cuh has the interface of the kernels for general layouts and for oriented boxes, and
// merge_params.cuh the interface of the kernels that merge boxes, lower scores, or read a column of
// candidates.
//
// Parameters are passed in this order: `params` is a KernelParams, by value; `workspace` is a void
// *; `stride` is a uint64_t; `results` is a ResultHeader *; and `detections` is a Detection *. The
// grid's first dimension is the number of blocks per image or per group, and its second dimension
// is the number of images or groups. Blocks have DECODE_THREADS, MAP_THREADS, REDUCE_THREADS and
// PUBLISH_THREADS threads. sort_count and sort_scatter have SORT_THREADS, chunk_reduce has
// REDUCE_THREADS, and sort_rank and the other kernels of chunks have CHUNK_THREADS. No kernel uses
// dynamic shared memory.
//
// <B> and <S> are element types, f32 or f16: <B> for the tensor with the boxes, <S> for the tensor
// with the scores and objectness. KernelParams::multi_label selects the decode kernel. decode makes
// one candidate from an anchor's best class; decode_multi makes a candidate from each pair of
// anchor and class whose score reaches the class's threshold. The number of anchors in all images
// of a group must fit in 32 bits. With multi_label, so must the number of pairs of anchor and
// class.
//
// Map, reduce and publish read the parameters from the workspace, where decode stores them. In a
// CUDA graph of the four kernels, only decode's parameters and the grids change from launch to
// launch; the grids contain the numbers of images and groups. The results of map, reduce and publish
// are independent of the number of blocks per group, which must be at least 1. Compiled for compute
// capability 9.0 and up, these kernels execute a grid dependency wait (portable.cuh), and may be
// launched with a programmatic dependency on the preceding kernel.
//
// The workspace is device memory, aligned to 256 bytes: group i has the memory of workspace.cuh at
// i * stride. The stride is a multiple of 256.
// KernelParams::capacity is the number of candidates that each group has memory for. A group may
// have more candidates: map, reduce and publish then report their number, ResultHeader::candidates,
// and no survivors, and the host runs the images again with a greater capacity. The first
// HEADER_BYTES bytes of each group, and with a capacity above the limit SORT_STATE_BYTES at
// sort_state_offset(capacity), must be zero before the first launch; the kernels reset them.
// After a launch that failed they must be zeroed again. (Some lanes load words of the rest that no
// kernel has written, and do not use them. Zero the whole workspace once to avoid reports by
// initcheck.)
//
// Results are device memory or mapped host memory: results[i] is the header of group i, and its
// survivors are at detections[i * capacity]. Both have an alignment of 16 bytes. A header's
// `sequence` is stored last, after all other results of its group are visible to the host: a host
// that reads KernelParams::sequence there can read the group's results.
//
// Survivors, their order and their bits depend only on the tensors and the parameters.
#pragma once

#if defined(__CUDACC__) || defined(__CUDA__)
#define NMSFILTER_HOST_DEVICE __host__ __device__
#else
#define NMSFILTER_HOST_DEVICE
#endif

#include "interface_generated.cuh"

// The capacity of a group's arrays.
NMSFILTER_HOST_DEVICE constexpr uint64_t padded(uint32_t capacity) {
    return (uint64_t(capacity) + 63) / 64 * 64;
}
// The number of leaves in all chunks. The last leaf of each chunk may have fewer candidates. The
// result is even.
NMSFILTER_HOST_DEVICE constexpr uint64_t leaf_capacity(uint32_t capacity) {
    return padded(capacity) / LEAF_CANDIDATES + MAX_CHUNKS;
}
NMSFILTER_HOST_DEVICE constexpr uint64_t sort_state_offset(uint32_t capacity) {
    return HEADER_BYTES + padded(capacity) * BYTES_PER_CANDIDATE;
}

// The approximate chunk of the candidate with this rank.
NMSFILTER_HOST_DEVICE constexpr uint32_t chunk_of(uint32_t rank, uint32_t first_chunk) {
    uint32_t chunk = 0;
    for (uint64_t end = first_chunk; rank >= end && chunk < MAX_CHUNKS - 1; end *= CHUNK_GROWTH) {
        chunk++;
    }
    return chunk;
}
