// SPDX-License-Identifier: MIT OR Apache-2.0
// The part of CUDA C++ that the kernels use, implemented with clang's builtins for NVPTX. build.sh
// includes this file first, so that clang alone builds PTX: CUDA's headers and its device library
// are not needed.
#pragma once

#define NMSFILTER_FREESTANDING

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

#define FREESTANDING static __device__ __forceinline__

struct Index3 {
    unsigned x, y, z;
};
#define threadIdx                                                                           \
    (Index3{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y(), \
            (unsigned)__nvvm_read_ptx_sreg_tid_z()})
#define blockIdx                                                                                \
    (Index3{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y(), \
            (unsigned)__nvvm_read_ptx_sreg_ctaid_z()})
#define blockDim                                                                              \
    (Index3{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y(), \
            (unsigned)__nvvm_read_ptx_sreg_ntid_z()})
#define gridDim                                                                                   \
    (Index3{(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y(), \
            (unsigned)__nvvm_read_ptx_sreg_nctaid_z()})

struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};

// Loads through the read-only path.
typedef float FloatVector __attribute__((ext_vector_type(4)));
FREESTANDING float4 __ldg(const float4 *at) {
    const FloatVector v = __nvvm_ldg_f4((const FloatVector *)at);
    return float4{v.x, v.y, v.z, v.w};
}
FREESTANDING float __ldg(const float *at) { return __nvvm_ldg_f(at); }
FREESTANDING double __ldg(const double *at) { return __nvvm_ldg_d(at); }
FREESTANDING unsigned char __ldg(const unsigned char *at) { return __nvvm_ldg_uc(at); }
FREESTANDING unsigned short __ldg(const unsigned short *at) { return __nvvm_ldg_us(at); }
FREESTANDING unsigned __ldg(const unsigned *at) { return __nvvm_ldg_ui(at); }
FREESTANDING unsigned long long __ldg(const unsigned long long *at) { return __nvvm_ldg_ull(at); }

FREESTANDING unsigned __float_as_uint(float a) { return __builtin_bit_cast(unsigned, a); }
FREESTANDING float __uint_as_float(unsigned a) { return __builtin_bit_cast(float, a); }
FREESTANDING float __fadd_rn(float a, float b) { return __nvvm_add_rn_f(a, b); }
FREESTANDING float __fsub_rn(float a, float b) { return __nvvm_add_rn_f(a, -b); }
FREESTANDING float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
FREESTANDING float __fdiv_rn(float a, float b) { return __nvvm_div_rn_f(a, b); }
FREESTANDING float __fsqrt_rn(float a) { return __nvvm_sqrt_rn_f(a); }
FREESTANDING double __dadd_rn(double a, double b) { return __nvvm_add_rn_d(a, b); }
FREESTANDING double __dmul_rn(double a, double b) { return __nvvm_mul_rn_d(a, b); }
FREESTANDING float fminf(float a, float b) { return __nvvm_fmin_f(a, b); }
FREESTANDING float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
FREESTANDING unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
FREESTANDING unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
FREESTANDING float fabsf(float a) { return __builtin_fabsf(a); }
FREESTANDING int __popc(unsigned a) { return __builtin_popcount(a); }
FREESTANDING int __ffs(unsigned a) { return a == 0 ? 0 : __builtin_ctz(a) + 1; }

FREESTANDING unsigned __ballot_sync(unsigned mask, bool value) {
    return __nvvm_vote_ballot_sync(mask, value);
}
FREESTANDING bool __any_sync(unsigned mask, bool value) {
    return __nvvm_vote_any_sync(mask, value);
}
FREESTANDING unsigned __shfl_sync(unsigned mask, unsigned value, unsigned lane) {
    return __nvvm_shfl_sync_idx_i32(mask, value, lane, 31);
}
FREESTANDING unsigned __shfl_xor_sync(unsigned mask, unsigned value, unsigned distance) {
    return __nvvm_shfl_sync_bfly_i32(mask, value, distance, 31);
}
FREESTANDING float __shfl_xor_sync(unsigned mask, float value, unsigned distance) {
    return __nvvm_shfl_sync_bfly_f32(mask, value, distance, 31);
}
FREESTANDING unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned distance) {
    return __nvvm_shfl_sync_up_i32(mask, value, distance, 0);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FREESTANDING unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    return __nvvm_redux_sync_umax(value, mask);
}
FREESTANDING unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    return __nvvm_redux_sync_add(value, mask);
}
FREESTANDING unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    return __nvvm_redux_sync_or(value, mask);
}
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
FREESTANDING void __nanosleep(unsigned nanoseconds) { __nvvm_nanosleep(nanoseconds); }
#endif

FREESTANDING unsigned atomicAdd(unsigned *at, unsigned value) {
    return __nvvm_atom_add_gen_i((int *)at, value);
}
FREESTANDING unsigned atomicOr(unsigned *at, unsigned value) {
    return __nvvm_atom_or_gen_i((int *)at, value);
}
FREESTANDING unsigned atomicMax(unsigned *at, unsigned value) {
    return __nvvm_atom_max_gen_ui(at, value);
}

FREESTANDING void __syncwarp() { __nvvm_bar_warp_sync(0xffffffffu); }
FREESTANDING int __syncthreads_and(int value) { return __nvvm_bar0_and(value); }
FREESTANDING void __threadfence_system() { __nvvm_membar_sys(); }
