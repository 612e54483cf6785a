// SPDX-License-Identifier: MIT OR Apache-2.0
// Oriented boxes. core/src/geometry/oriented explains the operations. Both sides execute equal
// operations in equal order, so that results agree bit for bit.
#pragma once

#include "functions.cuh"

// The center, the lengths of the sides along (cos, sin) and (-sin, cos), and the angle.
struct OrientedBox {
    float x, y, width, height, angle;
};

struct Rectangle {
    float x, y, half_width, half_height, cos, sin, area;
};

DEVICE Rectangle rectangle(const OrientedBox &box) {
    const SinCos angle = sine_cosine(box.angle);
    return Rectangle{box.x,     box.y,     mul_rn(0.5f, box.width),      mul_rn(0.5f, box.height),
                     angle.cos, angle.sin, mul_rn(box.width, box.height)};
}

// The axis-aligned bounds: x1, y1, x2, y2.
DEVICE float4 bounds(const Rectangle &of) {
    const float right =
        add_rn(fabsf(mul_rn(of.half_width, of.cos)), fabsf(mul_rn(of.half_height, of.sin)));
    const float down =
        add_rn(fabsf(mul_rn(of.half_width, of.sin)), fabsf(mul_rn(of.half_height, of.cos)));
    float4 result;
    result.x = sub_rn(of.x, right);
    result.y = sub_rn(of.y, down);
    result.z = add_rn(of.x, right);
    result.w = add_rn(of.y, down);
    return result;
}

// Returns `b` if either operand is NaN, unlike fminf and fmaxf.
DEVICE float lesser(float a, float b) { return a < b ? a : b; }
DEVICE float greater(float a, float b) { return a > b ? a : b; }

DEVICE float magnitude(const float4 &of) {
    return add_rn(add_rn(fabsf(of.x), fabsf(of.z)), add_rn(fabsf(of.y), fabsf(of.w)));
}

// An upper bound of intersection_area for two boxes whose bounds, `a` and `b`, intersect.
// `smaller_area` is the area of the smaller box.
DEVICE float greatest_intersection(const float4 &a, const float4 &b, float smaller_area) {
    const float share = 0x1p-19f, margin = mul_rn(share, add_rn(magnitude(a), magnitude(b)));
    const float width = add_rn(sub_rn(lesser(a.z, b.z), greater(a.x, b.x)), margin);
    const float height = add_rn(sub_rn(lesser(a.w, b.w), greater(a.y, b.y)), margin);
    return lesser(add_rn(mul_rn(width, height), mul_rn(share, smaller_area)), smaller_area);
}

DEVICE float dot(float a, float x, float b, float y) { return add_rn(mul_rn(a, x), mul_rn(b, y)); }
DEVICE float cross(float a, float y, float b, float x) { return sub_rn(mul_rn(a, y), mul_rn(b, x)); }

// A rectangle's center in the coordinate system of another rectangle, and the angle between both.
struct Relative {
    float x, y, cos, sin;
};

DEVICE Relative relative(const Rectangle &frame, const Rectangle &other) {
    const float dx = sub_rn(other.x, frame.x), dy = sub_rn(other.y, frame.y);
    return Relative{dot(dx, frame.cos, dy, frame.sin), cross(dy, frame.cos, dx, frame.sin),
                    dot(frame.cos, other.cos, frame.sin, other.sin),
                    cross(frame.cos, other.sin, frame.sin, other.cos)};
}

struct Point {
    float x, y;
};

DEVICE float y_at(float x, const Point &start, float slope, float least, float greatest) {
    return lesser(greater(add_rn(start.y, mul_rn(sub_rn(x, start.x), slope)), least), greatest);
}

// Twice the integral of y, limited to -b to b, along an edge, for x from -a to a.
DEVICE float twice_integral(const Point &start, const Point &end, float a, float b) {
    const float left = greater(start.x, -a), right = lesser(end.x, a);
    const float slope = div_rn(sub_rn(end.y, start.y), sub_rn(end.x, start.x));
    const float least = lesser(start.y, end.y), greatest = greater(start.y, end.y);
    const float y_left = y_at(left, start, slope, least, greatest);
    const float y_right = y_at(right, start, slope, least, greatest);
    const float low = lesser(y_left, y_right), high = greater(y_left, y_right);
    const float limited_low = lesser(greater(low, -b), b);
    const float limited_high = lesser(greater(high, -b), b);
    const float inside = sub_rn(limited_high, limited_low);
    const float beyond = sub_rn(sub_rn(high, limited_high), sub_rn(limited_low, low));
    const float share = div_rn(inside, greater(sub_rn(high, low), 0x1p-126f));
    const float twice_mean = add_rn(add_rn(limited_low, limited_high), mul_rn(beyond, share));
    return mul_rn(greater(sub_rn(right, left), 0.0f), twice_mean);
}

DEVICE float intersection_area(const Rectangle &higher, const Rectangle &lower) {
    const bool is_lower = lower.area < higher.area;
    const Rectangle &frame = is_lower ? lower : higher, &other = is_lower ? higher : lower;
    const Relative to = relative(frame, other);
    const float magnitude_cos = fabsf(to.cos), magnitude_sin = fabsf(to.sin);
    const bool is_quarter = magnitude_sin > magnitude_cos;
    const bool is_reflected = ((to.cos < 0.0f) != (to.sin < 0.0f)) != is_quarter;
    const float x = to.x, y = is_reflected ? -to.y : to.y;
    const float p = is_quarter ? other.half_height : other.half_width;
    const float q = is_quarter ? other.half_width : other.half_height;
    const float sin = is_quarter ? magnitude_cos : magnitude_sin;
    const float greatest_cos = is_quarter ? magnitude_sin : magnitude_cos;
    const float cos = sin == 0.0f ? 1.0f : greatest_cos;

    const float a = frame.half_width, b = frame.half_height;
    const bool is_apart =
        (fabsf(dot(x, cos, y, sin)) >= add_rn(p, dot(a, cos, b, sin))) ||
        (fabsf(cross(y, cos, x, sin)) >= add_rn(q, dot(a, sin, b, cos))) ||
        (fabsf(y) >= add_rn(b, dot(p, sin, q, cos)));
    if (is_apart) {
        return 0.0f;
    }

    const float p_cos = mul_rn(p, cos), p_sin = mul_rn(p, sin);
    const float q_cos = mul_rn(q, cos), q_sin = mul_rn(q, sin);
    const Point v0 = {add_rn(sub_rn(x, p_cos), q_sin), sub_rn(sub_rn(y, p_sin), q_cos)};
    const Point v1 = {add_rn(add_rn(x, p_cos), q_sin), sub_rn(add_rn(y, p_sin), q_cos)};
    const Point v2 = {sub_rn(add_rn(x, p_cos), q_sin), add_rn(add_rn(y, p_sin), q_cos)};
    const Point v3 = {sub_rn(sub_rn(x, p_cos), q_sin), add_rn(sub_rn(y, p_sin), q_cos)};
    const float along = sub_rn(twice_integral(v3, v2, a, b), twice_integral(v0, v1, a, b));
    const float across = sub_rn(twice_integral(v2, v1, a, b), twice_integral(v3, v0, a, b));
    return lesser(greater(mul_rn(0.5f, add_rn(along, across)), 0.0f), frame.area);
}

// Converts half a box's side to the variance along it.
DEVICE float variance(float half) { return mul_rn(mul_rn(half, half), 0x1.555556p-2f); }

DEVICE float quadratic(const Rectangle &of, float l, float m, float dx, float dy) {
    const float along_width = dot(dx, of.cos, dy, of.sin);
    const float along_height = cross(dy, of.cos, dx, of.sin);
    return dot(l, mul_rn(along_height, along_height), m, mul_rn(along_width, along_width));
}

DEVICE float bhattacharyya_distance(const Rectangle &higher, const Rectangle &lower) {
    const float epsilon = 1e-7f;
    const Relative to = relative(higher, lower);
    const float dx = sub_rn(higher.x, lower.x), dy = sub_rn(higher.y, lower.y);
    const float l1 = variance(higher.half_width), m1 = variance(higher.half_height);
    const float l2 = variance(lower.half_width), m2 = variance(lower.half_height);
    const float crossed = dot(dot(l1, l2, m1, m2), mul_rn(to.sin, to.sin), dot(l1, m2, m1, l2),
                              mul_rn(to.cos, to.cos));
    const float determinant = add_rn(dot(l1, m1, l2, m2), crossed);
    const float sum = add_rn(quadratic(higher, l1, m1, dx, dy), quadratic(lower, l2, m2, dx, dy));
    const float of_centers = div_rn(sum, mul_rn(4.0f, add_rn(determinant, epsilon)));
    const float divisor = add_rn(div_rn(mul_rn(higher.area, lower.area), 36.0f), epsilon);
    const float quotient = div_rn(determinant, divisor);
    const float of_shapes = mul_rn(0.5f, natural_logarithm(add_rn(quotient, epsilon)));
    return greater(lesser(add_rn(of_centers, of_shapes), 100.0f), epsilon);
}

DEVICE float prob_iou(const Rectangle &higher, const Rectangle &lower) {
    const float power = exponential(-bhattacharyya_distance(higher, lower));
    return sub_rn(1.0f, sqrt_rn(add_rn(sub_rn(1.0f, power), 1e-7f)));
}
