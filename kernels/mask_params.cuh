// SPDX-License-Identifier: MIT OR Apache-2.0
// The parameters of the kernels for masks. core/src/engine/cuda/mask_params.rs repeats these
// definitions in Rust; a test there compares every offset and constant.
//
//   kernel              blocks per group  parameters
//   masks, frame_masks  any number        workspace, stride, masks, words
//
// `masks` is a MaskParams, by value, and `words` a uint32_t *; interface.cuh describes the other
// parameters. Blocks have MASK_THREADS threads. The kernel is launched between reduce and publish.
// Publish begins after the kernel has ended, so it stores its sequence number after all masks are
// visible to the host. `masks` computes masks in pixels of the prototypes, and `frame_masks` in
// pixels of the frame; both handle any number of groups.
//
// The words of group i begin at words[i * capacity], and contain the masks of its survivors in the
// order of ranks. A mask consists of rows of bits, most significant bit first. Each row is padded
// to whole bytes, and each mask to whole words. Words beyond `capacity` are not written, nor are
// masks with a word beyond `limit`. The host computes the number of words from the survivors, and
// runs the images again with a greater capacity if needed.
#pragma once

#include "layout_params.cuh"

#define MASK_THREADS 512

// Determines which pixels the masks of an image have.
struct MaskPlaceParams {
    // Maps edges of boxes. For masks in pixels of the prototypes, the map leads to the model's
    // input: edge * ratio + offset. For masks in pixels of the frame, it leads to the frame: (edge
    // - offset) / ratio.
    double ratio[2], offset[2];
    // Maps pixels of the frame to pixels of the prototypes: (pixel + 0.5) * step + origin.
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
