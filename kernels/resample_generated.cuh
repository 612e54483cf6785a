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

// The position of columns and rows of the model's input that are outside of the region. The greatest index of a sample,
// 2^24 - 1, has no fraction, so no sample has this position.
#define OUTSIDE 4294967295

// A component of a frame: Y, Cb, Cr, or R, G, B. Its sample (x, y) is the byte
// samples + y * row_stride + x * pixel_stride.
struct ResampleComponent {
    // Device address, or address of mapped host memory.
    uint64_t samples;
    // In bytes.
    uint32_t row_stride;
    // In bytes.
    uint32_t pixel_stride;
};

// Pictures of regions of a frame, which follow one another in `output`. Each is a model's input:
// channel c of pixel (x, y) is written to element c * output_channel_stride + y * output_row_stride +
// x * output_pixel_stride of the picture, from entry c * VALUES + value of the table.
//
// Each picture has CHANNELS * (width + height) positions, in the order of the pictures. Component k has
// width + height of them: one per column, then one per row of the model's input. A position says
// where the column or row is among the samples: the index of the preceding sample, times
// 2^POSITION_BITS, plus the fraction to the next sample. The fraction of the last sample is 0.
// Columns and rows outside of the region have the position OUTSIDE, in all components.
struct ResampleParams {
    ResampleComponent components[CHANNELS];
    // Device address of uint32_t: the positions of the first picture.
    uint64_t positions;
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
    // The value of all channels outside of the region.
    uint32_t border;
    // In elements.
    uint32_t output_pixel_stride;
    // In elements.
    uint32_t output_row_stride;
    // In elements.
    uint32_t output_channel_stride;
};
