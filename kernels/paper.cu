// SPDX-License-Identifier: MIT OR Apache-2.0
// Algorithms 1 and 2 of Oro, Fernandez, Martorell and Hernando, "Work-Efficient Parallel
// Non-Maximum Suppression Kernels", The Computer Journal, 2020, as printed in the paper. Benchmarks
// and tests use them for comparison; the plugin does not.
//
//   kernel        grid                      block         parameters
//   paper_map     (ceil(n/16), ceil(n/16))  (16, 16)      windows, n, theta, matrix, capacity
//   paper_reduce  capacity                  capacity / k  matrix, survives, capacity, k
//
// `windows` are `capacity` quadruples x, y, side, score, and zeros beyond n. `matrix` has capacity
// x capacity bytes, set to 1 before each run. `survives` receives one byte per window. The paper's
// best k is 32; capacity is a multiple of 32 * k.
#include "portable.cuh"

// Algorithm 1. One thread per pair. Sides and intersections are one pixel longer, and the overlap
// is relative to the area of the window with the higher score, as in the authors' measurements.
KERNEL(256, 1)
paper_map(const float4 *windows, uint32_t n, float theta, uint8_t *matrix, uint32_t capacity) {
    const uint32_t i = blockIdx.y * blockDim.y + threadIdx.y;
    const uint32_t j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n) {
        return;
    }
    const float4 a = windows[i], b = windows[j];
    if (!(a.w < b.w)) {
        return;
    }
    const float width =
        add_rn(sub_rn(fminf(add_rn(a.x, a.z), add_rn(b.x, b.z)), fmaxf(a.x, b.x)), 1.0f);
    const float height =
        add_rn(sub_rn(fminf(add_rn(a.y, a.z), add_rn(b.y, b.z)), fmaxf(a.y, b.y)), 1.0f);
    const float side = add_rn(b.z, 1.0f);
    const bool is_disjoint = width <= 0.0f || height <= 0.0f;
    const float overlap = is_disjoint ? 0.0f : div_rn(mul_rn(width, height), mul_rn(side, side));
    matrix[uint64_t(i) * capacity + j] = overlap < theta && b.z != 0.0f;
}

// Algorithm 2. One block per row of the matrix, in k partitions.
KERNEL(1024, 1)
paper_reduce(const uint8_t *matrix, uint8_t *survives, uint32_t capacity, uint32_t k) {
    const uint32_t i = blockIdx.x;
    int all = 1;
    for (uint32_t partition = 0; partition < k; partition++) {
        const uint32_t j = partition * blockDim.x + threadIdx.x;
        all = __syncthreads_and(matrix[uint64_t(i) * capacity + j] != 0 && all);
    }
    if (threadIdx.x == 0) {
        survives[i] = uint8_t(all);
    }
}
