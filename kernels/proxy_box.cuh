// SPDX-License-Identifier: MIT OR Apache-2.0
// Conservative fp16 proxy boxes. In: two boxes. Out: false only if the boxes do not conflict. Most
// pairs need no further test.
#pragma once

#include "overlap.cuh"

// A box in half precision: two coordinates in a word.
struct ProxyBox {
    uint32_t low, high; // left and top; right and bottom
};

// Shortens the sides of a box by as much as possible, so that shrunk boxes still intersect if the
// boxes conflict.
//
// The intersection is no wider and no higher than either box. If the intersection is at least a
// share t of the union, it is also at least t of either box. Its width is then at least t of either
// width, and its height at least t of either height. Each side can therefore move inwards by half
// of t times the width or height. The result must also hold for the rounded operations of the exact
// test. For this reason sides keep the pixel offset and some units in the last place, and sides of
// boxes with an area close to underflow do not move.
DEVICE float4 shrunk_box(const float4 &box, const OverlapRule &rule) {
    const float width = sub_rn(box.z, box.x), height = sub_rn(box.w, box.y);
    const bool can_shrink =
        rule.overlap == OVERLAP_IOU && rule.threshold >= 0x1p-10f && mul_rn(width, height) >= 0x1p-80f;
    const float share = can_shrink ? mul_rn(rule.threshold, 0.495f) : 0.0f, margin = 0x1p-20f;
    const float x = sub_rn(mul_rn(share, width),
                           add_rn(rule.offset, mul_rn(margin, add_rn(fabsf(box.x), fabsf(box.z)))));
    const float y = sub_rn(mul_rn(share, height),
                           add_rn(rule.offset, mul_rn(margin, add_rn(fabsf(box.y), fabsf(box.w)))));
    float4 shrunk;
    shrunk.x = add_rn(box.x, x);
    shrunk.y = add_rn(box.y, y);
    shrunk.z = sub_rn(box.z, x);
    shrunk.w = sub_rn(box.w, y);
    return shrunk;
}

// Rounding to half precision is monotonic: boxes that intersect have proxy boxes that intersect.
DEVICE ProxyBox proxy_box(const float4 &box, const OverlapRule &rule) {
    const float4 shrunk = shrunk_box(box, rule);
    return ProxyBox{pack_half2(shrunk.x, shrunk.y), pack_half2(shrunk.z, shrunk.w)};
}

// A box from plus infinity to minus infinity, which intersects no finite proxy box.
DEVICE ProxyBox empty_box() { return ProxyBox{0x7c007c00u, 0xfc00fc00u}; }

// An integer of up to 23 bits in the mantissa of a float. GPUs add floats at twice the rate of
// integers. The counter also collects the bits of a word: each bit is added at most once.
struct MantissaCounter {
    float value = ZERO;

    DEVICE uint32_t count() const { return __float_as_uint(value) - __float_as_uint(ZERO); }

    static constexpr float ZERO = 8388608.0f; // 2^23: its last place counts 1
    static constexpr uint32_t BITS = 23;
};

// True if each half of `high` is at least as great as its counterpart in `low`.
DEVICE bool not_below(uint32_t high, uint32_t low) {
    return half_to_float(uint16_t(high)) >= half_to_float(uint16_t(low)) &&
           half_to_float(uint16_t(high >> 16)) >= half_to_float(uint16_t(low >> 16));
}

// Adds `Unit` to `counter` where `key` outranks `query_key`.
template <uint32_t Unit>
DEVICE void count_outranking(RankKey key, RankKey query_key, MantissaCounter &counter) {
#if defined(__CUDA_ARCH__)
    asm("{\n"
        "    .reg .pred p;\n"
        "    setp.gt.u64 p, %1, %2;\n"
        "    @p add.f32 %0, %0, %3;\n"
        "}"
        : "+f"(counter.value)
        : "l"(key.bits), "l"(query_key.bits), "f"(float(Unit)));
#else
    counter.value += key.bits > query_key.bits ? float(Unit) : 0.0f;
#endif
}

// Adds `Bit` to `pairs` if `key` outranks `query_key` and the proxy boxes intersect. The assembler
// shares the comparison of the keys with count_outranking: both functions together are eight
// instructions, and seven where PTX can combine a logical operation with a predicate. One
// subtraction compares two coordinates, and its signs show which is greater. Differences of
// infinities have no sign, so that such boxes intersect.
template <uint32_t Bit>
DEVICE void mark_intersecting(RankKey key, const ProxyBox &proxy, RankKey query_key,
                              const ProxyBox &query_proxy, MantissaCounter &pairs) {
#if defined(__CUDA_ARCH__)
    asm("{\n"
        "    .reg .pred p;\n"
        "    .reg .b32 a, b;\n"
        "    setp.gt.u64 p, %1, %2;\n"
        "    sub.f16x2 a, %7, %4;\n"
        "    sub.f16x2 b, %5, %6;\n"
#if __CUDA_ARCH__ >= 900
        "    not.pred p, p;\n"
        "    lop3.or.b32 a|p, a, b, 0x80008000, 0xa8, p;\n"
        "    @!p add.f32 %0, %0, %3;\n"
#else
        "    lop3.b32 a, a, b, 0x80008000, 0xa8;\n"
        "    setp.eq.and.u32 p, a, 0, p;\n"
        "    @p add.f32 %0, %0, %3;\n"
#endif
        "}"
        : "+f"(pairs.value)
        : "l"(key.bits), "l"(query_key.bits), "f"(float(Bit)), "r"(proxy.low), "r"(proxy.high),
          "r"(query_proxy.low), "r"(query_proxy.high));
#else
    if (key.bits > query_key.bits && not_below(query_proxy.high, proxy.low) &&
        not_below(proxy.high, query_proxy.low)) {
        pairs.value += float(Bit);
    }
#endif
}
