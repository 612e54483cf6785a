// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints checksums of the functions in kernels/functions.cuh, computed on a GPU or on the host.
//
//   nvcc -std=c++17 -O2 functions.cu -o functions
//   g++ -x c++ -std=c++17 -O2 -ffp-contract=off functions.cu -o functions
//   ./functions [all]
//
// Prints a line `SET EXP SIGMOID SQRT SIN COS LN` for each set of inputs: every f16 and a sample of
// f32, then, with `all`, the 32 blocks of 2^27 consecutive f32, by their bits. The tests of
// core/src/functions print the same lines. tests/fixtures/functions has the expected ones.
//
// A checksum is the sum, modulo 2^64, of a hash of each input's index and result. Different results
// have different hashes, so a single wrong result changes the checksum.
#include "../../kernels/functions.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Sums {
    uint64_t exp, sigmoid, sqrt, sin, cos, ln;
};

// Consecutive inputs: f16 or f32 with the bits first + index x stride.
struct Set {
    bool is_half;
    uint32_t first, stride, count;
};

DEVICE uint64_t hash(uint64_t index, float result) {
    const uint64_t product = (index << 32 | __float_as_uint(result)) * 0x9e3779b97f4a7c15u;
    return product ^ product >> 32;
}

// Sums over the inputs with the indices start, start + step, ...
DEVICE Sums checksums(const Set &set, uint64_t start, uint64_t step) {
    Sums sums = {};
    for (uint64_t index = start; index < set.count; index += step) {
        const uint32_t bits = set.first + uint32_t(index) * set.stride;
        const float x = set.is_half ? half_to_float(uint16_t(bits)) : __uint_as_float(bits);
        // The square root is tested without NaN, because the bits of its NaN results differ between
        // platforms.
        const float radicand = __uint_as_float(min(bits & 0x7fffffffu, 0x7f800000u));
        sums.exp += hash(index, exponential(x));
        sums.sigmoid += hash(index, sigmoid(x));
        sums.sqrt += hash(index, sqrt_rn(radicand));
        const SinCos angle = sine_cosine(x);
        sums.sin += hash(index, angle.sin);
        sums.cos += hash(index, angle.cos);
        sums.ln += hash(index, natural_logarithm(x));
    }
    return sums;
}

#if defined(__CUDACC__)

#define CHECK(call)                                                                        \
    do {                                                                                   \
        const cudaError_t error = (call);                                                  \
        if (error != cudaSuccess) {                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(2);                                                                       \
        }                                                                                  \
    } while (0)

__device__ void add(uint64_t *sum, uint64_t value) {
    atomicAdd((unsigned long long *)sum, (unsigned long long)value);
}

__global__ void add_checksums(Set set, Sums *total) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    const Sums sums = checksums(set, thread, gridDim.x * blockDim.x);
    add(&total->exp, sums.exp);
    add(&total->sigmoid, sums.sigmoid);
    add(&total->sqrt, sums.sqrt);
    add(&total->sin, sums.sin);
    add(&total->cos, sums.cos);
    add(&total->ln, sums.ln);
}

static Sums run(const Set &set) {
    Sums *total, sums;
    CHECK(cudaMalloc(&total, sizeof *total));
    CHECK(cudaMemset(total, 0, sizeof *total));
    add_checksums<<<1024, 256>>>(set, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&sums, total, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(total));
    return sums;
}

#else

static Sums run(const Set &set) { return checksums(set, 0, 1); }

#endif

static void print(const char *name, const Set &set) {
    const Sums sums = run(set);
    printf("%s", name);
    for (const uint64_t sum : {sums.exp, sums.sigmoid, sums.sqrt, sums.sin, sums.cos, sums.ln}) {
        printf(" %016llx", (unsigned long long)sum);
    }
    printf("\n");
}

int main(int count, char **arguments) {
    print("f16", {true, 0, 1, 1u << 16});
    print("sample", {false, 0, 409, 0xffffffffu / 409 + 1});
    if (count > 1 && strcmp(arguments[1], "all") == 0) {
        for (uint32_t block = 0; block < 32; block++) {
            char name[3];
            snprintf(name, sizeof name, "%02x", block);
            print(name, {false, block << 27, 1, 1u << 27});
        }
    }
    return 0;
}
