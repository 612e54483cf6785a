// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels that pack pixels (pack.cu): what the host passes.
//
//   kernel    elements  blocks                                parameters
//   pack_32   32 bits   (ceil(width / PACK_THREADS), height)  a PackParams, by value
//   pack_16   16 bits   the same                              the same
//   pack_8    8 bits    the same                              the same
//
// Blocks have PACK_THREADS threads and no dynamic shared memory. The height is at most 65535, the
// greatest second dimension of a grid.
#pragma once

#include "integers.cuh"

// Threads per block.
#define PACK_THREADS 128
// Values of a pixel's byte: entries of the table per channel.
#define PACK_VALUES 256
// The greatest number of channels.
#define PACK_CHANNELS 3

// Channel c of pixel (x, y) is the byte pixels + channel_offsets[c] + y * row_stride +
// x * pixel_stride. It becomes the element c * output_channel_stride + y * output_row_stride +
// x * output_pixel_stride from `output`: entry c * PACK_VALUES + byte of the table.
//
// Packed pixels have the offset of a byte in the pixel for each channel, for example 2, 1, 0 where
// the bytes are B, G, R and the model's channels R, G, B. Planes have a pixel_stride of 1, and the
// offset of a plane for each channel.
struct PackParams {
    uint64_t pixels;                         // device address, or that of mapped host memory
    uint64_t table;                          // device address, aligned to the elements' size
    uint64_t output;                         // device address, aligned to the elements' size
    uint64_t channel_offsets[PACK_CHANNELS]; // bytes; those from `channels` on are not used
    uint32_t width;                          // pixels
    uint32_t height;                         // pixels
    uint32_t row_stride;                     // bytes
    uint32_t pixel_stride;                   // bytes
    uint32_t channels;                       // 1 to PACK_CHANNELS
    uint32_t output_pixel_stride;            // elements
    uint32_t output_row_stride;              // elements
    uint32_t output_channel_stride;          // elements
};
