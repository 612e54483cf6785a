// SPDX-License-Identifier: MIT OR Apache-2.0
// The exponential function and the sigmoid: the operations of src/functions.rs, which explains
// them, in the same order, so that the results have the same bits.
#pragma once

#include "portable.cuh"

// 2^n, for n from -126 to 127.
DEVICE float power_of_two(int32_t n) { return __uint_as_float(uint32_t(n + 127) << 23); }

DEVICE float exponential(float x) {
    const float round_to_integer = 12582912.0f;
    const float limited = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
    const float shifted = add_rn(mul_rn(limited, 0x1.715476p+0f), round_to_integer);
    const float n = sub_rn(shifted, round_to_integer);
    const float r = sub_rn(sub_rn(limited, mul_rn(n, 0x1.62e4p-1f)), mul_rn(n, 0x1.7f7d1cp-20f));
    float p = add_rn(mul_rn(0x1.6a3cfap-10f, r), 0x1.123858p-7f);
    p = add_rn(mul_rn(p, r), 0x1.5558bep-5f);
    p = add_rn(mul_rn(p, r), 0x1.555494p-3f);
    p = add_rn(mul_rn(p, r), 0x1.fffffcp-2f);
    const float power = add_rn(1.0f, add_rn(r, mul_rn(mul_rn(r, r), p)));
    const int32_t exponent = int32_t(__float_as_uint(shifted) - __float_as_uint(round_to_integer));
    const int32_t half = exponent >> 1;
    const float result = mul_rn(mul_rn(power, power_of_two(half)), power_of_two(exponent - half));
    return x != x ? __uint_as_float(0x7fc00000u) : result;
}

DEVICE float sigmoid(float x) {
    const float result = div_rn(1.0f, add_rn(1.0f, exponential(-x)));
    return x != x ? __uint_as_float(0x7fc00000u) : result;
}
