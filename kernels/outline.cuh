// Outlines: what tells most pairs of boxes apart before anything else of them is looked at.
#pragma once

#include "overlap.cuh"

// A box in half precision.
struct Outline {
    uint32_t low, high; // left and top; right and bottom
};

// What is left of a box when its sides are shortened so far that boxes that meet still touch.
//
// The area shared is no wider and no higher than either box. Where it is at least t of the whole of
// both, it is at least t of either's width wide and t of either's height high, and so half of t may
// go at each end of each. Rounding may not lose what the exact test would find: ends keep the pixel
// offset and some of their last places, and where an area is too small to have all of its places
// nothing goes.
DEVICE float4 core_of(const float4 &box, const Rule &rule) {
    const float width = minus(box.z, box.x), height = minus(box.w, box.y);
    const bool may_go = rule.overlap == IOU && rule.threshold >= 0x1p-10f &&
                        times(width, height) >= 0x1p-80f;
    const float share = may_go ? times(rule.threshold, 0.495f) : 0.0f, last_places = 0x1p-20f;
    const float x = minus(times(share, width),
                          plus(rule.offset, times(last_places, plus(fabsf(box.x), fabsf(box.z)))));
    const float y = minus(times(share, height),
                          plus(rule.offset, times(last_places, plus(fabsf(box.y), fabsf(box.w)))));
    float4 core;
    core.x = plus(box.x, x);
    core.y = plus(box.y, y);
    core.z = minus(box.z, x);
    core.w = minus(box.w, y);
    return core;
}

// Outlines of boxes that meet touch: rounding keeps order.
DEVICE Outline outline_of(const float4 &box, const Rule &rule) {
    const float4 core = core_of(box, rule);
    return Outline{halves(core.x, core.y), halves(core.z, core.w)};
}

// Touches nothing.
DEVICE Outline nowhere() { return Outline{0x7c007c00u, 0xfc00fc00u}; }

// Small numbers, and bits of a word, are counted in the last places of this: GPUs add floats at
// twice the speed of integers.
#define NOTHING 8388608.0f // 2^23
DEVICE uint32_t counted(float count) { return __float_as_uint(count) - __float_as_uint(NOTHING); }

// Whether neither half of `high` is below that of `low`.
DEVICE bool reaches(uint32_t high, uint32_t low) {
    return widen(uint16_t(high)) >= widen(uint16_t(low)) &&
           widen(uint16_t(high >> 16)) >= widen(uint16_t(low >> 16));
}

// Adds `Unit` to `outranking` where `key` outranks `own`, and `Bit` to `near` where the outlines
// touch, too. Eight instructions, as the compilers would not have it.
template <uint32_t Unit, uint32_t Bit>
DEVICE void compare(uint64_t key, const Outline &outline, uint64_t own, const Outline &own_outline,
                    float &outranking, float &near) {
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
        : "+f"(outranking), "+f"(near)
        : "l"(key), "l"(own), "f"(float(Unit)), "f"(float(Bit)), "r"(outline.low),
          "r"(outline.high), "r"(own_outline.low), "r"(own_outline.high));
#else
    if (key > own) {
        outranking += Unit;
        near += reaches(own_outline.high, outline.low) && reaches(outline.high, own_outline.low)
                    ? Bit
                    : 0;
    }
#endif
}
