// SPDX-License-Identifier: MIT OR Apache-2.0
// Mathematical functions. core/src/functions explains the operations. Both sides execute equal
// operations in equal order, so that results agree bit for bit.
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

// The greatest magnitude of an angle, in radians.
static constexpr float MAX_ANGLE = 1e4f;

struct SinCos {
    float sin, cos;
};

DEVICE SinCos sine_cosine(float x) {
    const float round_to_integer = 12582912.0f;
    const float shifted = add_rn(mul_rn(x, 0x1.45f306p-1f), round_to_integer);
    const float n = sub_rn(shifted, round_to_integer);
    float r = sub_rn(x, mul_rn(n, 0x1.92p+0f));
    r = sub_rn(sub_rn(r, mul_rn(n, 0x1.fb4p-12f)), mul_rn(n, 0x1.4442d2p-24f));
    const float z = mul_rn(r, r);
    float s = add_rn(mul_rn(-0x1.9956b2p-13f, z), 0x1.11077ep-7f);
    s = add_rn(mul_rn(s, z), -0x1.555546p-3f);
    float c = add_rn(mul_rn(0x1.99e0ecp-16f, z), -0x1.6c0c1ap-10f);
    c = add_rn(mul_rn(c, z), 0x1.55554ap-5f);
    const float sine = add_rn(r, mul_rn(mul_rn(r, z), s));
    const float cosine = add_rn(sub_rn(1.0f, mul_rn(0.5f, z)), mul_rn(mul_rn(z, z), c));
    const uint32_t quadrant = __float_as_uint(shifted) & 3u;
    const float first = quadrant & 1u ? cosine : sine, second = quadrant & 1u ? sine : cosine;
    SinCos result;
    result.sin = quadrant & 2u ? -first : first;
    result.cos = (quadrant + 1u) & 2u ? -second : second;
    if (!(fabsf(x) <= MAX_ANGLE)) {
        result.sin = result.cos = __uint_as_float(0x7fc00000u);
    }
    return result;
}

DEVICE float natural_logarithm(float x) {
    const bool is_subnormal = x < 0x1p-126f;
    const uint32_t bits = __float_as_uint(is_subnormal ? mul_rn(x, 8388608.0f) : x);
    const int32_t exponent = int32_t(bits - 0x3f3504f3u) >> 23;
    const float f = sub_rn(__uint_as_float(bits - (uint32_t(exponent) << 23)), 1.0f);
    const float n = float(is_subnormal ? exponent - 23 : exponent);
    const float s = div_rn(f, add_rn(2.0f, f));
    const float z = mul_rn(s, s);
    float q = add_rn(mul_rn(0x1.31e0dap-2f, z), 0x1.995ed4p-2f);
    q = add_rn(mul_rn(q, z), 0x1.55557ap-1f);
    const float low = sub_rn(mul_rn(s, sub_rn(f, mul_rn(z, q))), mul_rn(n, 0x1.7f7d1cp-20f));
    float result = add_rn(mul_rn(n, 0x1.62e4p-1f), sub_rn(f, low));
    result = x == __uint_as_float(0x7f800000u) ? x : result;
    result = x == 0.0f ? __uint_as_float(0xff800000u) : result;
    return x >= 0.0f ? result : __uint_as_float(0x7fc00000u);
}
