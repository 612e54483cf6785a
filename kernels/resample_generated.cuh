// SPDX-License-Identifier: MIT OR Apache-2.0
// Written by NMSFILTER_WRITE_HEADERS=1 cargo test -p nmsfilter-c --test header. Sources:
//   src/frame/component.rs
//   inference/src/inference/picture/frame_format.rs
//   inference/src/inference/picture/positions.rs
//   inference/src/inference/picture/resample_params.rs


#pragma once

#include "integers.cuh"

// The maximum number of components, not counting alpha.
#define COLORS 3

// The maximum number of components and of channels.
#define CHANNELS COLORS

// The number of fractional bits of an entry in [`ColorMatrix`]: the most with which all entries fit in 16 bits.
#define MATRIX_BITS 13

// The number of fractional bits of a position.
#define POSITION_BITS 8

// The number of values of a byte: entries of the table per channel.
#define VALUES 256

// The number of threads per block.
#define RESAMPLE_THREADS 128

// A component of a frame: Y, Cb, Cr, or R, G, B. Its sample (x, y) is the byte
// samples + y * row_stride + x * pixel_stride.
//
// columns[x] and rows[y] say where pixel (x, y) of the region is among the samples: the index of
// the preceding sample, times 2^POSITION_BITS, plus the fraction to the next sample. The fraction
// of the last sample is 0.
struct ResampleComponent {
    // Device address, or address of mapped host memory.
    uint64_t samples;
    // Device address of uint32_t, one per column of the region.
    uint64_t columns;
    // Device address of uint32_t, one per row of the region.
    uint64_t rows;
    // In bytes.
    uint32_t row_stride;
    // In bytes.
    uint32_t pixel_stride;
};

// Pixel (x, y) of the model's input is either in the region or in the border. Channel c of the
// pixel is written to element c * output_channel_stride + y * output_row_stride + x *
// output_pixel_stride of `output`, from entry c * VALUES + value of the table.
struct ResampleParams {
    ResampleComponent components[CHANNELS];
    // Device address, aligned to the elements' size.
    uint64_t table;
    // Device address, aligned to the elements' size.
    uint64_t output;
    // From components to channels.
    int32_t matrix[CHANNELS][CHANNELS];
    // The number to add for each channel, rounding included.
    int32_t bias[CHANNELS];
    // 1 to CHANNELS.
    uint32_t component_count;
    // 1 to CHANNELS.
    uint32_t channels;
    // Of the model's input, in pixels.
    uint32_t width;
    // Of the model's input, in pixels.
    uint32_t height;
    // The region in the model's input, in pixels.
    uint32_t left;
    uint32_t top;
    // Exclusive.
    uint32_t right;
    // Exclusive.
    uint32_t bottom;
    // The value of all channels outside of the region.
    uint32_t border;
    // In elements.
    uint32_t output_pixel_stride;
    // In elements.
    uint32_t output_row_stride;
    // In elements.
    uint32_t output_channel_stride;
};
