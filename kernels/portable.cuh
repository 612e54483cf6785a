// SPDX-License-Identifier: MIT OR Apache-2.0
// Everything that the kernels use beyond standard C++, for each compiler that builds them: nvcc and
// NVRTC; clang without the CUDA toolkit (freestanding.cuh is included first); and g++ for the host,
// with emulate/cuda_on_host.h.
#pragma once

#include "interface.cuh"

#if defined(__CUDACC__) || defined(__CUDA__)

#define KERNEL(threads, blocks_per_multiprocessor) \
    extern "C" __global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
#define DEVICE __device__ __forceinline__
// One object in the block's shared memory.
#define BLOCK_SHARED(type, name) __shared__ type name
// A place where the emulator may switch to another thread.
#define YIELD_POINT()

// A pause between two loads of a word that a warp waits for.
DEVICE void backoff() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    __nanosleep(20);
#endif
}

// Nanoseconds.
DEVICE uint64_t device_clock() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

#else
#include "emulate/cuda_on_host.h"
#endif

// Programmatic dependent launch: lets the blocks of the next kernel start when multiprocessors
// become free, and waits until the preceding kernel has completed and its writes are visible. Every
// thread calls it before it accesses memory that another kernel accesses. Does nothing below
// compute capability 9.0, where each kernel starts after the preceding kernel has ended.
DEVICE void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// Keeps the loads above this line before the code below it. Without the barrier, compilers move
// loads to their first use, behind branches.
DEVICE void compiler_barrier() {
#if defined(__CUDA_ARCH__)
    asm volatile("" ::: "memory");
#endif
}

#define ALL_LANES 0xffffffffu
#define WARP 32u

DEVICE uint32_t lane_index() { return threadIdx.x % WARP; }
DEVICE uint32_t warp_index() { return threadIdx.x / WARP; }

// The number of bits set in `ballot` for lanes below this one.
DEVICE uint32_t lanes_before(uint32_t ballot) {
    return __popc(ballot & ((1u << lane_index()) - 1));
}

// IEEE single or double precision. Each operation is rounded to nearest separately: no multiply-add
// contraction.
DEVICE float add_rn(float a, float b) { return __fadd_rn(a, b); }
DEVICE float sub_rn(float a, float b) { return __fsub_rn(a, b); }
DEVICE float mul_rn(float a, float b) { return __fmul_rn(a, b); }
DEVICE float div_rn(float a, float b) { return __fdiv_rn(a, b); }
DEVICE float sqrt_rn(float a) { return __fsqrt_rn(a); }
DEVICE double add_rn(double a, double b) { return __dadd_rn(a, b); }
DEVICE double mul_rn(double a, double b) { return __dmul_rn(a, b); }

DEVICE bool is_finite(float a) { return (__float_as_uint(a) & 0x7f800000u) != 0x7f800000u; }

// Half precision to single precision. The conversion is exact, including subnormal numbers.
DEVICE float half_to_float(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000u) << 16;
    const uint32_t magnitude = uint32_t(half & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) {
        return __uint_as_float(sign | 0x7f800000u | magnitude);
    }
    // The exponents' biases differ by 112. Multiplication by a power of two is exact.
    const float scaled = mul_rn(__uint_as_float(magnitude), __uint_as_float(0x77800000u));
    return __uint_as_float(sign | __float_as_uint(scaled));
}

// Rounds two numbers to the nearest half precision and packs them in one word, `low` in the lower
// 16 bits.
DEVICE uint32_t pack_half2(float low, float high) {
#if defined(__CUDACC__) || defined(__CUDA__)
    uint32_t both;
    asm("{\n"
        "    .reg .b16 l, h;\n"
        "    cvt.rn.f16.f32 l, %1;\n"
        "    cvt.rn.f16.f32 h, %2;\n"
        "    mov.b32 %0, {l, h};\n"
        "}"
        : "=r"(both)
        : "f"(low), "f"(high));
    return both;
#else
    return uint32_t(float_to_half(high)) << 16 | float_to_half(low);
#endif
}

// Accesses to a word that other warps may access concurrently. Volatile accesses of an aligned word
// are relaxed accesses of system scope (PTX ISA, memory consistency model).
DEVICE uint32_t load_relaxed(const uint32_t *word) {
    YIELD_POINT();
    return *(const volatile uint32_t *)word;
}
DEVICE void store_relaxed(uint32_t *word, uint32_t value) { *(volatile uint32_t *)word = value; }

DEVICE uint32_t warp_max(uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL_LANES, value);
#else
#pragma unroll
    for (uint32_t distance = WARP / 2; distance != 0; distance /= 2) {
        value = max(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
#endif
}

DEVICE uint32_t warp_sum(uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL_LANES, value);
#else
#pragma unroll
    for (uint32_t distance = WARP / 2; distance != 0; distance /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, distance);
    }
    return value;
#endif
}

DEVICE uint32_t warp_or(uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_or_sync(ALL_LANES, value);
#else
#pragma unroll
    for (uint32_t distance = WARP / 2; distance != 0; distance /= 2) {
        value |= __shfl_xor_sync(ALL_LANES, value, distance);
    }
    return value;
#endif
}
