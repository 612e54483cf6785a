// SPDX-License-Identifier: MIT OR Apache-2.0
// The parameters of the kernels for masks. core/src/engine/cuda/mask_params.rs has the same in Rust; its
// test compares every offset and constant.
//
//   kernel              blocks per group  parameters
//   masks, frame_masks  any number        workspace, stride, masks, words
//
// `masks` is a MaskParams, by value, and `words` a uint32_t *; the others are those of
// interface.cuh. Blocks have MASK_THREADS threads. The kernel is launched between reduce and
// publish, whose sequence number is stored after all masks are visible to the host: publish begins
// after it has ended. `masks` is for the pixels of the prototypes, `frame_masks` for those of the
// frame; both are for any number of groups.
//
// The words of group i begin at words[i * capacity]. The masks of its survivors, by rank, follow one
// another there: rows of bits, each padded to bytes, the most significant bit first; a mask is
// padded to a word. Words from `capacity` on are not written, and neither are masks of which a word
// is beyond `limit`. The host computes from the survivors how many there are, and runs the images
// again with a greater capacity if needed.
#pragma once

#include "layout_params.cuh"

#define MASK_THREADS 512

// Which pixels the masks of an image have.
struct MaskPlaceParams {
    // Of edges of boxes. For the pixels of the prototypes: to the model's input, edge * ratio + offset.
    // For those of the frame: to the frame, (edge - offset) / ratio.
    double ratio[2], offset[2];
    // Where pixels of the frame are among those of the prototypes: (pixel + 0.5) * step + origin.
    float step[2], origin[2];
    float factor[2];        // pixels of the prototypes per pixel of the model's input
    uint32_t frame_size[2]; // columns and rows
};

struct MaskParams {
    LayoutField prototypes; // "anchor" row * width + column, a component for each channel
    LayoutField coefficients[MAX_GROUPS];
    MaskPlaceParams place;      // of every image, if there is no table
    uint64_t places;            // device address of a table, of each image; 0: no table
    uint32_t prototype_size[2]; // columns and rows
    uint32_t first_anchor[MAX_GROUPS];
    uint32_t group_count;
    uint32_t channels;
    uint32_t capacity; // words of a group that there is memory for
    uint32_t limit;    // the most words of a group, less than 2^26
};

static_assert(sizeof(MaskPlaceParams) == 64 && sizeof(MaskParams) == 632,
              "core/src/engine/cuda/mask_params.rs");
