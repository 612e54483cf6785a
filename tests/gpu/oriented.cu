// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints checksums of the results of kernels/oriented.cuh, computed on a GPU or on the host.
//
//   nvcc -std=c++17 -O2 oriented.cu -o oriented
//   g++ -x c++ -std=c++17 -O2 -ffp-contract=off oriented.cu -o oriented
//   ./oriented
//
// Prints a line `KIND INTERSECTION PROB_IOU BOUNDS` for each kind of pair of boxes. The test of
// core/src/geometry/oriented/pairs.rs, which explains the pairs, prints the same lines. A checksum is the
// sum, modulo 2^64, of a hash of each pair's index and result.
#include "../../kernels/oriented.cuh"

#include <stdio.h>
#include <stdlib.h>

#define KINDS 10u
#define PAIRS (1u << 17)

struct Sums {
    uint64_t intersection, prob_iou, bounds;
};

DEVICE uint64_t hash(uint64_t index, float result) {
    const uint64_t product = (index << 32 | __float_as_uint(result)) * 0x9e3779b97f4a7c15u;
    return product ^ product >> 32;
}

// A sequence of numbers from 0 to 1 - 2^-24, in steps of 2^-24.
struct Sequence {
    uint32_t state;

    DEVICE float next() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return mul_rn(float(state >> 8), 0x1p-24f);
    }

    DEVICE float between(float low, float high) {
        return add_rn(low, mul_rn(next(), sub_rn(high, low)));
    }

    DEVICE OrientedBox box(float range, float greatest_side) {
        OrientedBox result;
        result.x = between(-range, range);
        result.y = between(-range, range);
        result.width = between(0.0f, greatest_side);
        result.height = between(0.0f, greatest_side);
        result.angle = between(-7.0f, 7.0f);
        return result;
    }
};

struct Pair {
    OrientedBox higher, lower;
};

DEVICE void multiply(OrientedBox &box, float factor) {
    box.x = mul_rn(box.x, factor);
    box.y = mul_rn(box.y, factor);
    box.width = mul_rn(box.width, factor);
    box.height = mul_rn(box.height, factor);
}

DEVICE Pair pair(uint32_t kind, uint32_t index) {
    Sequence sequence = {(index * KINDS + kind + 1) * 2654435761u};
    Pair result;
    result.higher = sequence.box(50.0f, 100.0f);
    result.lower = sequence.box(50.0f, 100.0f);
    const float number = sequence.next();
    OrientedBox &higher = result.higher, &lower = result.lower;
    switch (kind) {
    case 1: // equal
        lower = higher;
        break;
    case 2: // touching, with whole numbers
        higher = {0.0f, 0.0f, 2.0f, 2.0f, 0.0f};
        lower = {2.0f, add_rn(float(int32_t(mul_rn(number, 5.0f))), -2.0f), 2.0f, 2.0f, 0.0f};
        break;
    case 3: // contained
        lower.x = higher.x;
        lower.y = higher.y;
        higher.width = add_rn(higher.width, 200.0f);
        higher.height = add_rn(higher.height, 200.0f);
        break;
    case 4: // without an area
        lower.height = 0.0f;
        break;
    case 5: // huge
        multiply(higher, 1e7f);
        multiply(lower, 1e7f);
        break;
    case 6: // tiny
        multiply(higher, 0x1p-40f);
        multiply(lower, 0x1p-40f);
        break;
    case 7: // nearly parallel
        lower.angle = add_rn(higher.angle, mul_rn(number, 0x1p-18f));
        break;
    case 8: // long
        higher.width = mul_rn(higher.width, 30.0f);
        lower.height = mul_rn(lower.height, 30.0f);
        break;
    case 9: // far from the origin
        higher.x = add_rn(higher.x, 1e5f);
        lower.x = add_rn(lower.x, 1e5f);
        break;
    }
    return result;
}

// Sums over the pairs with the indices start, start + step, ...
DEVICE Sums checksums(uint32_t kind, uint32_t start, uint32_t step) {
    Sums sums = {};
    for (uint32_t index = start; index < PAIRS; index += step) {
        const Pair of = pair(kind, index);
        const Rectangle higher = rectangle(of.higher), lower = rectangle(of.lower);
        sums.intersection += hash(index, intersection_area(higher, lower));
        sums.prob_iou += hash(index, prob_iou(higher, lower));
        const float4 edges = bounds(higher);
        sums.bounds += hash(index, edges.x) + hash(index, edges.y);
        sums.bounds += hash(index, edges.z) + hash(index, edges.w);
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

__global__ void add_checksums(uint32_t kind, Sums *total) {
    const Sums sums = checksums(kind, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
    add(&total->intersection, sums.intersection);
    add(&total->prob_iou, sums.prob_iou);
    add(&total->bounds, sums.bounds);
}

static Sums run(uint32_t kind) {
    Sums *total, sums;
    CHECK(cudaMalloc(&total, sizeof *total));
    CHECK(cudaMemset(total, 0, sizeof *total));
    add_checksums<<<256, 256>>>(kind, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&sums, total, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(total));
    return sums;
}

#else

static Sums run(uint32_t kind) { return checksums(kind, 0, 1); }

#endif

int main() {
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const Sums sums = run(kind);
        printf("%u", kind);
        for (const uint64_t sum : {sums.intersection, sums.prob_iou, sums.bounds}) {
            printf(" %016llx", (unsigned long long)sum);
        }
        printf("\n");
    }
    return 0;
}
