// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface of the kernels that resample frames (resample.cu): the arguments that the host
// passes.
//
//   kernel        elements  blocks                                      parameters
//   resample_32   32 bits   (ceil(width / RESAMPLE_THREADS), height)    a ResampleParams, by value
//   resample_16   16 bits   the same                                    the same
//   resample_8    8 bits    the same                                    the same
//
// Blocks have RESAMPLE_THREADS threads and no dynamic shared memory. The height is at most 65535, the
// greatest second dimension of a grid.
#pragma once

#include "integers.cuh"

// Threads per block.
#define RESAMPLE_THREADS 128
// Values of a byte: entries of the table per channel.
#define RESAMPLE_VALUES 256
// The greatest number of components of a frame, and of channels of the model's input.
#define RESAMPLE_CHANNELS 3
// Bits after the point: of a position, and of an entry of the matrix.
#define RESAMPLE_POSITION_BITS 8
#define RESAMPLE_MATRIX_BITS 13

// A component of a frame: Y, Cb, Cr, or R, G, B. Its sample (x, y) is the byte
// samples + y * row_stride + x * pixel_stride.
//
// columns[x] and rows[y] say where pixel (x, y) of the region is among the samples: the index of
// the preceding sample, times 2^RESAMPLE_POSITION_BITS, plus the fraction to the next sample. The
// fraction of the last sample is 0.
struct ResampleComponent {
    uint64_t samples;      // device address, or address of mapped host memory
    uint64_t columns;      // device address of uint32_t, one per column of the region
    uint64_t rows;         // device address of uint32_t, one per row of the region
    uint32_t row_stride;   // bytes
    uint32_t pixel_stride; // bytes
};

// Pixel (x, y) of the model's input is either in the region or in the border. Channel c of the
// pixel is written to element c * output_channel_stride + y * output_row_stride + x *
// output_pixel_stride of `output`, from entry c * RESAMPLE_VALUES + value of the table.
struct ResampleParams {
    ResampleComponent components[RESAMPLE_CHANNELS];
    uint64_t table;                  // device address, aligned to the elements' size
    uint64_t output;                 // device address, aligned to the elements' size
    int32_t matrix[RESAMPLE_CHANNELS][RESAMPLE_CHANNELS]; // from components to channels
    int32_t bias[RESAMPLE_CHANNELS]; // of each channel, rounding included
    uint32_t component_count;        // 1 to RESAMPLE_CHANNELS
    uint32_t channels;               // 1 to RESAMPLE_CHANNELS
    uint32_t width;                  // of the model's input, pixels
    uint32_t height;                 // of the model's input, pixels
    uint32_t left;                   // the region in the model's input, pixels
    uint32_t top;
    uint32_t right;  // exclusive
    uint32_t bottom; // exclusive
    uint32_t border; // the value of all channels outside of the region
    uint32_t output_pixel_stride;   // elements
    uint32_t output_row_stride;     // elements
    uint32_t output_channel_stride; // elements
};
