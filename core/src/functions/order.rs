// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of all f32, as integers.

/// An integer that increases with the number: x < y implies order(x) < order(y).
#[inline(always)]
pub(crate) fn order(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_sign_negative() { !bits } else { bits | 1 << 31 }
}

/// The inverse of [`order`].
pub(crate) fn from_order(order: u32) -> f32 {
    f32::from_bits(if order >> 31 == 0 { !order } else { order ^ 1 << 31 })
}

/// Two consecutive numbers in [`order`], from `within` to `beyond`: the last for which `holds`, and the first for which it
/// does not. `holds` is true up to a number, and false after it; for `within` and `beyond` it is not called.
pub(crate) fn bisect(within: u32, beyond: u32, holds: impl Fn(f32) -> bool) -> [f32; 2] {
    let (mut within, mut beyond) = (within, beyond);
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if holds(from_order(middle)) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    [within, beyond].map(from_order)
}

#[cfg(test)]
mod tests {
    use super::super::measure::ALL;
    use super::*;

    #[test]
    fn order_is_ascending_and_has_an_inverse() {
        assert_eq!(from_order(*ALL.start()), f32::NEG_INFINITY);
        assert_eq!(from_order(*ALL.end()), f32::INFINITY);
        let numbers =
            [f32::NEG_INFINITY, f32::MIN, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::INFINITY];
        for pair in numbers.windows(2) {
            assert!(order(pair[0]) < order(pair[1]), "{pair:?}");
        }
        for x in numbers {
            assert_eq!(from_order(order(x)).to_bits(), x.to_bits());
        }
    }
}
