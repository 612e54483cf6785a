// SPDX-License-Identifier: MIT OR Apache-2.0
// Packs pixels of 8 bits per channel into the input of a model: normalizes them, and puts the
// channels in the order and the planes that the model expects. For elements that produce tensors;
// nmsfilter does not use it.
//
// A byte has 256 values, so normalization, (byte * scale - mean) / std in the element type of the
// model, is a table of 256 elements per channel, which the host computes once. The table has the
// bits of the elements: the kernel copies them, and is the same for all types of one size. There is
// no arithmetic that could round differently than on the host.
//
//   for each pixel (x, y), in parallel
//       for each channel c
//           output[c][y][x] = table[c][pixels[y][x][c]]
//
// One thread handles one pixel. Consecutive threads handle consecutive pixels of a row, so that
// loads of pixels and stores of planes coalesce. The table (at most 3 KiB) is in the L1 cache.
// pack.cuh has the parameters.
#include "portable.cuh"

#include "pack.cuh"

template <typename Element> DEVICE void pack(const PackParams &params) {
    const uint32_t x = blockIdx.x * PACK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= params.width) {
        return;
    }
    const uint8_t *const pixel = (const uint8_t *)params.pixels + uint64_t(y) * params.row_stride +
                                 uint64_t(x) * params.pixel_stride;
    const Element *const table = (const Element *)params.table;
    Element *const elements = (Element *)params.output + uint64_t(y) * params.output_row_stride +
                              uint64_t(x) * params.output_pixel_stride;
#pragma unroll
    for (uint32_t c = 0; c < PACK_CHANNELS; c++) {
        if (c < params.channels) {
            const uint8_t value = __ldg(pixel + params.channel_offsets[c]);
            elements[uint64_t(c) * params.output_channel_stride] =
                __ldg(table + c * PACK_VALUES + value);
        }
    }
}

KERNEL(PACK_THREADS, 1) pack_32(PackParams params) { pack<uint32_t>(params); }
KERNEL(PACK_THREADS, 1) pack_16(PackParams params) { pack<uint16_t>(params); }
KERNEL(PACK_THREADS, 1) pack_8(PackParams params) { pack<uint8_t>(params); }
