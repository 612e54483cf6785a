// Outlines: what tells most pairs of boxes apart before anything else of them is looked at.
#pragma once

#include "overlap.cuh"

// A box in half precision.
struct ProxyBox {
    uint32_t low, high; // left and top; right and bottom
};

// What is left of a box when its sides are shortened so far that boxes that meet still touch.
//
// The area shared is no wider and no higher than either box. Where it is at least t of the whole of
// both, it is at least t of either's width wide and t of either's height high, and so half of t may
// go at each end of each. Rounding may not lose what the exact test would find: ends keep the pixel
// offset and some of their last places, and where an area is too small to have all of its places
// nothing goes.
DEVICE float4 shrunk_box(const float4 &box, const OverlapRule &rule) {
    const float width = sub_rn(box.z, box.x), height = sub_rn(box.w, box.y);
    const bool may_go = rule.overlap == IOU && rule.threshold >= 0x1p-10f &&
                        mul_rn(width, height) >= 0x1p-80f;
    const float share = may_go ? mul_rn(rule.threshold, 0.495f) : 0.0f, last_places = 0x1p-20f;
    const float x = sub_rn(mul_rn(share, width),
                          add_rn(rule.offset, mul_rn(last_places, add_rn(fabsf(box.x), fabsf(box.z)))));
    const float y = sub_rn(mul_rn(share, height),
                          add_rn(rule.offset, mul_rn(last_places, add_rn(fabsf(box.y), fabsf(box.w)))));
    float4 core;
    core.x = add_rn(box.x, x);
    core.y = add_rn(box.y, y);
    core.z = sub_rn(box.z, x);
    core.w = sub_rn(box.w, y);
    return core;
}

// Outlines of boxes that meet touch: rounding keeps order.
DEVICE ProxyBox proxy_box(const float4 &box, const OverlapRule &rule) {
    const float4 core = shrunk_box(box, rule);
    return ProxyBox{pack_half2(core.x, core.y), pack_half2(core.z, core.w)};
}

// Touches nothing.
DEVICE ProxyBox empty_box() { return ProxyBox{0x7c007c00u, 0xfc00fc00u}; }

// Small numbers, and bits of a word, are counted in the last places of this: GPUs add floats at
// twice the speed of integers.
#define COUNTER_ZERO 8388608.0f // 2^23
DEVICE uint32_t counter_value(float count) { return __float_as_uint(count) - __float_as_uint(COUNTER_ZERO); }

// Whether neither half of `high` is below that of `low`.
DEVICE bool not_below(uint32_t high, uint32_t low) {
    return half_to_float(uint16_t(high)) >= half_to_float(uint16_t(low)) &&
           half_to_float(uint16_t(high >> 16)) >= half_to_float(uint16_t(low >> 16));
}

// Adds `Unit` to `outranking` where `key` outranks `own`, and `Bit` to `near` where the outlines
// touch, too. Eight instructions, as the compilers would not have it.
template <uint32_t Unit, uint32_t Bit>
DEVICE void compare(uint64_t key, const ProxyBox &proxy, uint64_t own, const ProxyBox &query_proxy,
                    float &outranking, float &pairs) {
#if defined(__CUDA_ARCH__)
    asm("{\n"
        "    .reg .pred p;\n"
        "    .reg .b32 a, b;\n"
        "    setp.gt.u64 p, %2, %3;\n"
        "    @p add.f32 %0, %0, %4;\n"
        "    sub.f16x2 a, %9, %6;\n"
        "    sub.f16x2 b, %7, %8;\n"
        "    lop3.b32 a, a, b, 0x80008000, 0xa8;\n" // signs; of infinities' differences none
        "    setp.eq.and.u32 p, a, 0, p;\n"
        "    @p add.f32 %1, %1, %5;\n"
        "}"
        : "+f"(outranking), "+f"(pairs)
        : "l"(key), "l"(own), "f"(float(Unit)), "f"(float(Bit)), "r"(proxy.low),
          "r"(proxy.high), "r"(query_proxy.low), "r"(query_proxy.high));
#else
    if (key > own) {
        outranking += Unit;
        pairs += not_below(query_proxy.high, proxy.low) && not_below(proxy.high, query_proxy.low)
                    ? Bit
                    : 0;
    }
#endif
}
