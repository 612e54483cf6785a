// What the kernels need of CUDA C++ beyond the language, under every compiler that builds them:
// nvcc and NVRTC; clang without CUDA's own headers (freestanding.cuh comes first then); and g++,
// where emulate/cuda_on_host.h stands in for a device.
#pragma once

#include "interface.cuh"

#if defined(__CUDACC__) || defined(__CUDA__)

#define KERNEL(threads, blocks_per_multiprocessor) \
    extern "C" __global__ void __launch_bounds__(threads, blocks_per_multiprocessor)
#define DEVICE __device__ __forceinline__
// One object that a block's threads share.
#define BLOCK_SHARED(type, name) __shared__ type name
#define YIELD_POINT()

// A moment's rest between two looks at a word that another warp will write.
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

// To be called by each thread before it touches what other kernels touch, too: lets the blocks of
// the frame's next kernel take their places while this one runs, and waits here for the end of the
// one before. Where kernels are not launched so, the driver waits between them, and this is nothing.
DEVICE void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// What is loaded above is on its way before what is below begins: left to themselves, compilers load
// where something is used.
DEVICE void compiler_barrier() {
#if defined(__CUDA_ARCH__)
    asm volatile("" ::: "memory");
#endif
}

#define ALL_LANES 0xffffffffu
#define WARP 32u

DEVICE uint32_t lane_index() { return threadIdx.x % WARP; }
DEVICE uint32_t warp_index() { return threadIdx.x / WARP; }

// How many lanes before this one have voted so.
DEVICE uint32_t lanes_before(uint32_t votes) { return __popc(votes & ((1u << lane_index()) - 1)); }


// IEEE single precision, each operation rounded by itself: never contracted.
DEVICE float add_rn(float a, float b) { return __fadd_rn(a, b); }
DEVICE float sub_rn(float a, float b) { return __fsub_rn(a, b); }
DEVICE float mul_rn(float a, float b) { return __fmul_rn(a, b); }

DEVICE bool is_finite(float a) { return (__float_as_uint(a) & 0x7f800000u) != 0x7f800000u; }

// Half precision to single, exactly: subnormals too.
DEVICE float half_to_float(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000u) << 16;
    const uint32_t magnitude = uint32_t(half & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) {
        return __uint_as_float(sign | 0x7f800000u | magnitude);
    }
    // The exponents' biases differ by 112; a product with a power of two is exact.
    const float scaled = mul_rn(__uint_as_float(magnitude), __uint_as_float(0x77800000u));
    return __uint_as_float(sign | __float_as_uint(scaled));
}

// Single precision to half, to the nearest: two in a word, `low` in the lower half.
DEVICE uint32_t pack_half2(float low, float high) {
#if defined(__CUDA_ARCH__)
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

// A word that other warps write while this one looks.
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
