// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random pairs of boxes of ten kinds, for tests. tests/gpu/oriented.cu makes equal pairs.

use std::fmt::Write;

use super::DistanceLimit;
use super::intersection::RelativePair;
use super::{OrientedBox, Rectangle, conflict, greatest_intersection, intersection_area, prob_iou};
use crate::device::kernel_headers;
use crate::geometry::Overlap;

const KINDS: u32 = 10;
const PAIRS: u32 = 1 << 17;

/// A sequence of numbers from 0 to 1, without 1, in steps of 2^-24.
struct Sequence(u32);

impl Sequence {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 8) as f32 / 16_777_216.0
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + self.next() * (high - low)
    }

    fn oriented(&mut self, range: f32, greatest_side: f32) -> OrientedBox {
        let center = [self.between(-range, range), self.between(-range, range)];
        let size = [self.between(0.0, greatest_side), self.between(0.0, greatest_side)];
        OrientedBox { center, size, angle: self.between(-7.0, 7.0) }
    }
}

fn multiplied(by: f32, of: OrientedBox) -> OrientedBox {
    let [center, size] = [of.center, of.size].map(|numbers| numbers.map(|number| number * by));
    OrientedBox { center, size, ..of }
}

/// The pair of a kind with this index.
pub(super) fn pair(kind: u32, index: u32) -> [OrientedBox; 2] {
    let seed = (index * KINDS + kind + 1).wrapping_mul(2_654_435_761);
    let mut sequence = Sequence(seed);
    let (mut higher, mut lower) = (sequence.oriented(50.0, 100.0), sequence.oriented(50.0, 100.0));
    let number = sequence.next();
    match kind {
        0 => {}
        // Equal.
        1 => lower = higher,
        // Touching, with whole numbers.
        2 => {
            higher = OrientedBox { center: [0.0; 2], size: [2.0; 2], angle: 0.0 };
            lower = OrientedBox { center: [2.0, (number * 5.0) as i32 as f32 - 2.0], ..higher };
        }
        // Contained.
        3 => {
            lower.center = higher.center;
            higher.size = higher.size.map(|side| side + 200.0);
        }
        // Without an area.
        4 => lower.size[1] = 0.0,
        // Huge.
        5 => [higher, lower] = [higher, lower].map(|of| multiplied(1e7, of)),
        // Tiny: 2^-40.
        6 => [higher, lower] = [higher, lower].map(|of| multiplied(9.094_947e-13, of)),
        // Nearly parallel.
        7 => lower.angle = higher.angle + number / 262_144.0,
        // Long.
        8 => {
            higher.size[0] *= 30.0;
            lower.size[1] *= 30.0;
        }
        // Far from the origin.
        _ => {
            higher.center[0] += 1e5;
            lower.center[0] += 1e5;
        }
    }
    [higher, lower]
}

fn hash(index: u32, result: f32) -> u64 {
    let word = u64::from(index) << 32 | u64::from(result.to_bits());
    let product = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// The line that `tests/gpu/oriented.cu` prints.
fn checksums(kind: u32) -> String {
    let mut sums = [0_u64; 3];
    for index in 0..PAIRS {
        let [higher, lower] = pair(kind, index).map(|of| Rectangle::new(&of));
        let bounds = higher.bounds();
        let edges = [bounds.x1, bounds.y1, bounds.x2, bounds.y2];
        let results = [
            hash(index, intersection_area(&higher, &lower)),
            hash(index, prob_iou(&higher, &lower)),
            edges.into_iter().fold(0, |sum: u64, edge| sum.wrapping_add(hash(index, edge))),
        ];
        for (sum, result) in sums.iter_mut().zip(results) {
            *sum = sum.wrapping_add(result);
        }
    }
    let mut line = kind.to_string();
    for sum in sums {
        write!(line, " {sum:016x}").unwrap();
    }
    line + "\n"
}

/// `tests/fixtures/oriented/checksums.txt` has the lines of the header.
#[test]
fn kernels_compute_the_same_bits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/oriented/checksums.txt");
    let expected = std::fs::read_to_string(path).unwrap();
    let ours: String = (0..KINDS).map(checksums).collect();
    assert_eq!(ours, expected);
    if let Some(theirs) = kernel_headers::run("tests/gpu/oriented.cu", &[]) {
        assert_eq!(theirs, expected);
    }
}

/// All kinds of pairs, and each kind's boxes beside boxes of another kind.
fn all_pairs() -> impl Iterator<Item = [OrientedBox; 2]> {
    let of_kinds = (0..KINDS).flat_map(|kind| (0..20_000).map(move |index| pair(kind, index)));
    let mixed = (0..KINDS * KINDS).flat_map(|kinds| {
        (0..500).map(move |index| [pair(kinds / KINDS, index)[0], pair(kinds % KINDS, index)[1]])
    });
    of_kinds.chain(mixed)
}

/// The bound by which `conflict` skips the intersection changes no result, close to the intersection's own measure, too.
#[test]
fn conflicts_are_those_of_the_intersection() {
    let near = (0..20_000).map(|index| {
        let mut sequence = Sequence(index + 1);
        let higher = sequence.oriented(1000.0, 100.0);
        let size = higher.size.map(|side| side * sequence.between(0.9, 1.1));
        let center = higher.center.map(|at| at + sequence.between(-4.0, 4.0));
        let angle = higher.angle + sequence.between(-0.2, 0.2);
        [higher, OrientedBox { center, size, angle }]
    });
    let mut decided = [0; 2];
    for boxes in all_pairs().step_by(5).chain(near) {
        let [higher, lower] = boxes.map(|of| Rectangle::new(&of));
        let intersection = intersection_area(&higher, &lower);
        for overlap in [Overlap::Iou, Overlap::Representative, Overlap::Smaller] {
            let whole = overlap.whole(higher.area, lower.area, intersection);
            let measure = intersection / whole;
            let thresholds = [-1.0, 0.0, 0.45, 0.95, measure, measure.next_up(), f32::NAN];
            for (threshold, is_inclusive) in
                thresholds.into_iter().flat_map(|it| [(it, false), (it, true)])
            {
                let limit = threshold * whole;
                let exceeds =
                    if is_inclusive { intersection >= limit } else { intersection > limit };
                let expected = intersection > 0.0 && exceeds;
                let found = conflict(&higher, &lower, overlap, threshold, is_inclusive);
                assert_eq!(found, expected, "{boxes:?}, {overlap:?}, {threshold}");
            }
        }
        let least = RelativePair::new(&higher, &lower).least_intersection();
        assert!(least <= intersection, "{boxes:?}: {least:e}, but {intersection:e}");
        decided[usize::from(least > 0.0)] += 1;
    }
    assert!(decided.iter().all(|&count| count > 10_000), "{decided:?}");
}

#[test]
fn intersections_are_within_their_limits() {
    for boxes in all_pairs() {
        let [higher, lower] = boxes.map(|of| Rectangle::new(&of));
        let smaller = higher.area.min(lower.area);
        let bounds = [higher, lower].map(|of| of.bounds());
        let has_intersection =
            |low: [f32; 2], high: [f32; 2]| low[0].max(low[1]) < high[0].min(high[1]);
        let [p, q] = bounds;
        let bounds_intersect = has_intersection([p.x1, q.x1], [p.x2, q.x2])
            && has_intersection([p.y1, q.y1], [p.y2, q.y2]);
        for [a, b] in [[0, 1], [1, 0]] {
            let both = [higher, lower];
            let area = intersection_area(&both[a], &both[b]);
            assert!(area >= 0.0 && area <= smaller, "{boxes:?}: {area:e} of {smaller:e}");
            if bounds_intersect {
                let bound = greatest_intersection(&bounds[a], &bounds[b], smaller);
                assert!(area <= bound, "{boxes:?}: {area:e}, but the bound is {bound:e}");
            }
            let prob_iou = prob_iou(&both[a], &both[b]);
            assert!((0.0..=1.0).contains(&prob_iou), "{boxes:?}: {prob_iou:e}");
        }
        assert_eq!(prob_iou(&higher, &lower).to_bits(), prob_iou(&lower, &higher).to_bits());
    }
}

#[test]
fn equal_boxes_intersect_in_their_area() {
    for index in 0..20_000 {
        let [rectangle, other] = pair(1, index).map(|of| Rectangle::new(&of));
        assert_eq!(intersection_area(&rectangle, &other), rectangle.area, "{rectangle:?}");
        assert!(prob_iou(&rectangle, &other) > 0.999, "{rectangle:?}");
    }
}

#[test]
fn boxes_that_touch_have_no_intersection() {
    for index in 0..1_000 {
        let [higher, lower] = pair(2, index).map(|of| Rectangle::new(&of));
        assert_eq!(intersection_area(&higher, &lower), 0.0, "{higher:?} {lower:?}");
    }
}

/// Numbers that no decoder gives: the result is still a number.
#[test]
fn numbers_that_are_not_finite_do_not_give_nan() {
    let mut random = fastrand::Rng::with_seed(2);
    let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e30, 0.0, 1.0];
    let mut number = || numbers[random.usize(..numbers.len())];
    for _ in 0..100_000 {
        let mut any = || {
            let mut pair = || [number(), number()];
            let (center, half, direction) = (pair(), pair(), pair());
            Rectangle { center, half, direction, area: number() }
        };
        let (higher, mut lower) = (any(), any());
        lower.area = lower.area.max(0.0);
        let area = intersection_area(&higher, &lower);
        assert!(!area.is_nan() || higher.area.is_nan(), "{higher:?} {lower:?}");
        assert!(!prob_iou(&higher, &lower).is_nan(), "{higher:?} {lower:?}");
    }
}

/// The pairs of tests/fixtures/oriented/pairs.csv: boxes, area of the intersection, probabilistic IoU.
fn recorded() -> Vec<(String, [OrientedBox; 2], f64, f64)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/oriented/pairs.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let pairs = text.lines().map(|line| {
        let (_, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<f64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        let oriented = |at: usize| {
            let number = |index: usize| numbers[at + index] as f32;
            let (center, size) = ([number(0), number(1)], [number(2), number(3)]);
            OrientedBox { center, size, angle: number(4) }
        };
        (line.to_owned(), [oriented(0), oriented(5)], numbers[10], numbers[11])
    });
    pairs.collect()
}

/// The error is proportional to the longest side divided by the shortest side: so much less exact is the position of the
/// end of the longest side, in terms of the shortest side.
#[test]
fn intersections_are_those_of_another_implementation() {
    let pairs = recorded();
    assert_eq!(pairs.len(), 390);
    for (line, boxes, expected, _) in pairs {
        let [higher, lower] = boxes.map(|of| Rectangle::new(&of));
        let sides = || boxes.into_iter().flat_map(|of| of.size).map(f64::from);
        let ratio = sides().fold(0.0, f64::max) / sides().fold(f64::INFINITY, f64::min);
        let smaller = f64::from(higher.area.min(lower.area));
        for [a, b] in [[higher, lower], [lower, higher]] {
            let error = (f64::from(intersection_area(&a, &b)) - expected).abs();
            let limit = if smaller == 0.0 { 0.0 } else { smaller * ratio / f64::from(1 << 21) };
            assert!(error <= limit, "{line}: the error is {error:e}, more than {limit:e}");
        }
    }
}

#[test]
fn probabilistic_ious_are_those_of_the_matrices() {
    // Without an area, the root of the determinants' rounding errors is greater than what is added to it.
    let pairs = recorded().into_iter().filter(|(line, ..)| !line.starts_with("without an area"));
    for (line, boxes, _, expected) in pairs {
        let [higher, lower] = boxes.map(|of| Rectangle::new(&of));
        let error = (f64::from(prob_iou(&higher, &lower)) - expected).abs();
        // Close to 1 the function of the distance is steep.
        let limit = if expected > 0.99 { 5e-4 } else { 1e-5 };
        assert!(error <= limit, "{line}: the error is {error:e}");
    }
}

#[test]
fn the_limit_of_the_distance_is_that_of_the_probabilistic_iou() {
    let mut random = fastrand::Rng::with_seed(3);
    let pairs: Vec<[Rectangle; 2]> =
        all_pairs().step_by(41).map(|boxes| boxes.map(|of| Rectangle::new(&of))).collect();
    let ious: Vec<f32> = pairs.iter().map(|[higher, lower]| prob_iou(higher, lower)).collect();
    let mut thresholds = vec![0.0, 1.0, 0.5, -1.0, 2.0, f32::NAN, f32::INFINITY];
    thresholds.extend((0..40).map(|_| random.f32()));
    // Thresholds that are equal to the measure of a pair.
    thresholds.extend((0..40).map(|_| ious[random.usize(..ious.len())]));
    for threshold in thresholds {
        for is_inclusive in [false, true] {
            let limit = DistanceLimit::new(threshold, is_inclusive);
            for ([higher, lower], &iou) in pairs.iter().zip(&ious) {
                let expected = if is_inclusive { iou >= threshold } else { iou > threshold };
                let found = limit.is_exceeded(higher, lower);
                assert_eq!(found, expected, "{higher:?} {lower:?}: {iou:e}, {threshold:e}");
            }
        }
    }
}
