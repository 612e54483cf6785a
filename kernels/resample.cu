// SPDX-License-Identifier: MIT OR Apache-2.0
// Resamples regions of a video frame into the input of a model: scales them, converts their components
// to red, green and blue, normalizes them, and puts the channels in the order and the planes that the
// model expects. For elements that produce tensors; nmsfilter does not use it.
//
//   for each region, and each pixel (x, y) of its picture, in parallel
//       if the pixel is in the border
//           value[c] = border, for each channel c
//       else
//           for each component k of the frame (Y, Cb, Cr, or R, G, B)
//               sample[k] = bilinear interpolation of its four samples around the pixel
//           for each channel c
//               value[c] = matrix[c] * sample + bias[c], clamped to 0 to 255
//       for each channel c
//           output[region][c][y][x] = table[c][value[c]]
//
// All arithmetic uses integers. The host computes positions, matrix and table, so the CPU
// (inference/src/inference/picture/cpu.rs) and the GPU turn a frame into identical input, bit for
// bit. The table includes normalization, (value * scale - mean) / std in the model's element type,
// and contains the bits of the elements. One kernel therefore serves all types of one size.
//
// One thread handles one pixel. Consecutive threads handle consecutive pixels of a row, so stores
// of planes coalesce, and most loads of samples do. The tables (at most 3 KiB, and 4 bytes per row
// and column) stay in the caches. Positions describe a region completely, so the size of the parameters
// does not depend on the number of regions.
//
//   kernel        elements  blocks                                               parameters
//   resample_32   32 bits   (ceil(width / RESAMPLE_THREADS), height, regions)    a ResampleParams, by value
//   resample_16   16 bits   the same                                             the same
//   resample_8    8 bits    the same                                             the same
//
// Blocks have RESAMPLE_THREADS threads and no dynamic shared memory. Height and number of regions are at
// most 65535, the greatest second and third dimension of a grid.
#include "portable.cuh"

#include "resample_generated.cuh"

// Bilinear interpolation of a component at a position, rounded to the nearest value.
DEVICE int32_t interpolate(const ResampleComponent &component, uint32_t column, uint32_t row) {
    const uint32_t one = 1 << POSITION_BITS;
    const uint32_t fx = column % one, fy = row % one;
    const uint8_t *const above = (const uint8_t *)component.samples +
                                 uint64_t(row / one) * component.row_stride +
                                 uint64_t(column / one) * component.pixel_stride;
    // A fraction of 0 gives the next sample a weight of 0. The next sample may not exist, so it is
    // not read.
    const uint8_t *const below = above + (fy ? component.row_stride : 0);
    const uint32_t next = fx ? component.pixel_stride : 0;
    const uint32_t left = above[0] * (one - fy) + below[0] * fy;
    const uint32_t right = above[next] * (one - fy) + below[next] * fy;
    const uint32_t bits = 2 * POSITION_BITS;
    return int32_t((left * (one - fx) + right * fx + (1u << (bits - 1))) >> bits);
}

template <typename Element> DEVICE void resample(const ResampleParams &params) {
    const uint32_t x = blockIdx.x * RESAMPLE_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= params.width) {
        return;
    }
    const uint32_t sides = params.width + params.height;
    const uint32_t *const positions =
        (const uint32_t *)params.positions + uint64_t(blockIdx.z) * CHANNELS * sides;
    const uint32_t *const columns = positions + x, *const rows = positions + params.width + y;
    // Without a branch between the two loads.
    const bool inside = (columns[0] != OUTSIDE) & (rows[0] != OUTSIDE);
    int32_t samples[CHANNELS] = {0, 0, 0};
    if (inside) {
#pragma unroll
        for (uint32_t k = 0; k < CHANNELS; k++) {
            if (k < params.component_count) {
                samples[k] =
                    interpolate(params.components[k], columns[k * sides], rows[k * sides]);
            }
        }
    }
    const Element *const table = (const Element *)params.table;
    const uint64_t picture =
        uint64_t(blockIdx.z) * params.channels * params.width * params.height;
    Element *const elements = (Element *)params.output + picture +
                              uint64_t(y) * params.output_row_stride +
                              uint64_t(x) * params.output_pixel_stride;
#pragma unroll
    for (uint32_t c = 0; c < CHANNELS; c++) {
        if (c < params.channels) {
            const int32_t sum = params.matrix[c][0] * samples[0] + params.matrix[c][1] * samples[1] +
                                params.matrix[c][2] * samples[2] + params.bias[c];
            const int32_t value = sum >> MATRIX_BITS;
            const int32_t clamped = value < 0 ? 0 : value > 255 ? 255 : value;
            const uint32_t entry = inside ? uint32_t(clamped) : params.border;
            elements[uint64_t(c) * params.output_channel_stride] =
                table[c * VALUES + entry];
        }
    }
}

KERNEL(RESAMPLE_THREADS, 1) resample_32(ResampleParams params) { resample<uint32_t>(params); }
KERNEL(RESAMPLE_THREADS, 1) resample_16(ResampleParams params) { resample<uint16_t>(params); }
KERNEL(RESAMPLE_THREADS, 1) resample_8(ResampleParams params) { resample<uint8_t>(params); }
