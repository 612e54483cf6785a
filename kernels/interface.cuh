// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels: arguments that the host passes, results that it receives, and how
// much memory it provides. core/src/engine/cuda/interface.rs repeats these definitions in Rust; a
// test there compares every offset and constant.
//
// Four kernels, launched once each in one stream, process a batch of images. The images are divided
// into groups (core/src/engine/mod.rs), and a candidate only suppresses candidates of its own
// group. Decode has blocks per image; all other kernels have blocks per group:
//
//   kernel                   blocks per image, or per group              parameters
//   decode_<B>_<S>           with a thread per anchor and lane           params, workspace, stride
//   or decode_multi_<B>_<S>  with a thread per pair of anchor and class  the same
//   map, map_batch           any number                                  workspace, stride
//   reduce, reduce_batch     any number                                  workspace, stride
//   (groups with many candidates: below)
//   publish, publish_batch   1                                           workspace, stride, results,
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
// `chunk` is a uint32_t. For oriented boxes, sort_limit is the greatest uint32_t.
//
// layout_params.cuh has the interface of the kernels for general layouts and for oriented boxes, and
// merge_params.cuh the interface of the kernels that merge boxes or lower scores.
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
// launch; the grids contain the numbers of images and groups. The results of `map` and `reduce` are
// independent of the number of blocks per group, which must be at least 1. Compiled for compute
// capability 9.0 and up, map, reduce and publish execute a grid dependency wait (portable.cuh), and
// may be launched with a programmatic dependency on the preceding kernel.
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

#include "integers.cuh"

#if defined(__CUDACC__) || defined(__CUDA__)
#define NMSFILTER_HOST_DEVICE __host__ __device__
#else
#define NMSFILTER_HOST_DEVICE
#endif

// Threads per block.
#define DECODE_THREADS 256
#define MAP_THREADS 512
#define REDUCE_THREADS 512
#define PUBLISH_THREADS 1024
#define SORT_THREADS 1024
#define CHUNK_THREADS 256

// The first chunk has about KernelParams::first_chunk candidates. Each further chunk multiplies the
// total number of candidates so far by about CHUNK_GROWTH.
#define CHUNK_GROWTH 8
#define MAX_CHUNKS 8

// The greatest length of a box's side, in pixels (core/src/engine/mod.rs).
#define MAX_BOX_SIDE 1.0e9f

// KernelParams::box_format: the numbers of a box.
enum : uint32_t { CORNERS = 0, CENTER = 1, SQUARE = 2 };
// KernelParams::method: which candidates survive (core/src/engine/params.rs).
enum : uint32_t { GREEDY = 0, MAP_REDUCE = 1, NONE = 2 };
// KernelParams::overlap: the intersection of two boxes is divided by the area of the union, by the
// area of the candidate that outranks the other, or by the area of the smaller box. The last value
// selects the probabilistic IoU of two oriented boxes.
enum : uint32_t { IOU = 0, REPRESENTATIVE = 1, SMALLER = 2, PROB_IOU = 4 };

// Number c of anchor a of image i is the element at i * image_stride + a * anchor_stride + c *
// component_stride from the address. If the tensor has a table of images (KernelParams), it is the
// element at a * anchor_stride + c * component_stride from the sum of the address and entry i of
// the table, and image_stride is 0.
struct FieldParams {
    uint64_t address;       // device address of number 0 of anchor 0 of image 0; with a table, bytes
    uint64_t image_stride;  // in elements
    uint64_t anchor_stride; // in elements
    uint64_t component_stride; // in elements
};

// How the boxes of an image are decoded (core/src/engine/place.rs). Aligned to 16 bytes in a table.
struct PlaceParams {
    float scale[2];    // pixels of boxes per unit of the tensor
    float offset[2];   // added to corners, or to the center of an oriented box, unless it is zero
    float visible[4];  // left, top, right, bottom: boxes that do not intersect it are rejected
    float min_size[2]; // of classes without rules
    float max_size[2];
    double limit_ratio[2]; // what the sizes of a ClassRule are multiplied by
};

// One image of a group, an entry of the table KernelParams::placed_images. Images of one group are
// consecutive, and groups follow one another in order.
struct PlacedImage {
    PlaceParams place;
    uint32_t group;
    uint32_t first_image; // of the group
    uint32_t reserved[2];
};

// The parameters of a launch. Plain data, aligned to 8 bytes, without padding.
struct KernelParams {
    FieldParams boxes;
    FieldParams scores;
    FieldParams objectness;    // of the scores' element type; read with has_objectness
    uint64_t class_thresholds; // device address of class_threshold_count floats, by class; or 0
    uint32_t class_threshold_count; // classes with a threshold of their own
    float threshold;                // of all other classes
    float lowest_threshold;         // the minimum over all classes of the layout
    uint32_t images;
    uint32_t anchors; // of each image
    uint32_t classes;
    uint32_t lanes_per_anchor; // threads that share an anchor's classes: 1 or 8
    uint32_t box_format;
    uint32_t method;
    uint32_t overlap;
    float iou_threshold;
    float pixel_offset;
    uint32_t threshold_inclusive; // 0 or 1
    uint32_t class_agnostic;      // 0 or 1
    uint32_t max_candidates;      // of a group; 0: no limit
    uint32_t max_detections;      // of a group; 0: no limit
    uint32_t sequence;            // not 0; the value of ResultHeader::sequence
    uint32_t multi_label;         // 0 or 1
    uint32_t capacity;            // candidates of a group that there is memory for
    uint32_t has_objectness;      // 0 or 1
    // For tensors whose images have no constant stride: the device address of a table with each
    // image's device address, `images` entries of type uint64_t. 0: no table.
    uint64_t box_images;
    uint64_t score_images; // also of the objectness
    // Rules for single classes: the device address of class_rule_count entries of type ClassRule,
    // by class; or 0. iou_threshold and the sizes in PlaceParams apply to all other classes.
    uint64_t class_rules;
    uint32_t class_rule_count;
    float lowest_iou_threshold; // of all classes
    uint32_t sort_limit;        // candidates of a group, above which they are sorted
    uint32_t first_chunk;       // not 0; candidates of the first chunk, about
    PlaceParams place;          // of every image, if there is no table
    // The device address of a table with a PlacedImage for each image. 0: no table; image i is then
    // the only image of group i.
    uint64_t placed_images;
};

// The rules of a class.
struct ClassRule {
    float iou_threshold; // of the candidate of lower rank
    float min_size[2];   // in the pixels in which sizes are set: PlaceParams::limit_ratio
    float max_size[2];
};

// core/src/engine/mod.rs: Detection
struct Detection {
    float x1, y1, x2, y2;
    float score;
    uint32_t class_index;
    uint32_t anchor;
};

// The counts of a group of images.
struct ResultHeader {
    uint32_t sequence;    // KernelParams::sequence, stored last
    uint32_t candidates;  // before max_candidates
    uint32_t rejected;    // anchors with invalid numbers
    uint32_t survivors;   // detections of the group
    uint32_t rounds;      // the greatest dependency depth observed; may differ from run to run
    uint32_t nanoseconds; // from the start of decode, by the GPU's clock, whose resolution is a
                          // microsecond on some GPUs
    uint32_t reserved[2];
};

static_assert(sizeof(FieldParams) == 32 && sizeof(KernelParams) == 296 &&
                  sizeof(PlacedImage) == 80 && sizeof(ClassRule) == 20,
              "core/src/engine/cuda/interface.rs");
static_assert(sizeof(Detection) == 28 && sizeof(ResultHeader) == 32,
              "core/src/engine/cuda/interface.rs");

// A group's workspace: a header, and arrays with this many bytes per candidate (workspace.cuh) for
// the capacity rounded up to a multiple of 64, so that every array is aligned to 256 bytes.
#define HEADER_BYTES 512
#define BYTES_PER_CANDIDATE 324
// Kernels for oriented boxes use one more array, with this many bytes per candidate.
#define RECTANGLE_BYTES 32
// Kernels that sort use a SortState, arrays with this many bytes per candidate, and arrays with
// this many bytes per leaf of up to LEAF_CANDIDATES candidates.
#define SORT_STATE_BYTES 16896
#define SORT_BYTES_PER_CANDIDATE 8
#define LEAF_CANDIDATES 32
#define LEAF_BYTES (28 + LEAF_CANDIDATES * 24)

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
