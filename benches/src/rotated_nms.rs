// SPDX-License-Identifier: MIT OR Apache-2.0
//! Suppression of oriented boxes with the algorithm of mmcv and detectron2 on the CPU, for
//! comparing times.
//!
//! In: center x and y, width, height, angle (radians) and score of each box. Out: the surviving
//! boxes by descending score. Each box is compared with all remaining boxes of lower scores. The
//! intersection of two boxes is the convex hull of the points where edges cross, and of each box's
//! vertices that are inside of the other box. The code was written for this project from this
//! description.

type Point = [f32; 2];

/// Returns the indices of the surviving boxes.
pub fn suppress(boxes: &[[f32; 5]], scores: &[f32], threshold: f32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut is_suppressed = vec![false; boxes.len()];
    let mut survivors = Vec::new();
    for (rank, &higher) in order.iter().enumerate() {
        if is_suppressed[higher] {
            continue;
        }
        survivors.push(higher);
        for &lower in &order[rank + 1..] {
            if !is_suppressed[lower] && iou(&boxes[higher], &boxes[lower]) > threshold {
                is_suppressed[lower] = true;
            }
        }
    }
    survivors
}

fn iou(a: &[f32; 5], b: &[f32; 5]) -> f32 {
    let (area_a, area_b) = (a[2] * a[3], b[2] * b[3]);
    // Coordinates are relative to the midpoint between both centers.
    let (x, y) = ((a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0);
    let intersection = intersection(&vertices(a, x, y), &vertices(b, x, y));
    intersection / (area_a + area_b - intersection)
}

fn vertices(rotated: &[f32; 5], x: f32, y: f32) -> [Point; 4] {
    let (sin, cos) = rotated[4].sin_cos();
    let (half_cos, half_sin) = (cos * 0.5, sin * 0.5);
    let (x, y) = (rotated[0] - x, rotated[1] - y);
    let first = [
        x - half_sin * rotated[3] - half_cos * rotated[2],
        y + half_cos * rotated[3] - half_sin * rotated[2],
    ];
    let second = [
        x + half_sin * rotated[3] - half_cos * rotated[2],
        y - half_cos * rotated[3] - half_sin * rotated[2],
    ];
    let opposite = |point: Point| [2.0 * x - point[0], 2.0 * y - point[1]];
    [first, second, opposite(first), opposite(second)]
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

fn dot(a: Point, b: Point) -> f32 {
    a[0] * b[0] + a[1] * b[1]
}

fn cross(a: Point, b: Point) -> f32 {
    a[0] * b[1] - a[1] * b[0]
}

fn intersection(a: &[Point; 4], b: &[Point; 4]) -> f32 {
    let mut points = [[0.0; 2]; 24];
    let mut count = 0;
    let mut add = |point: Point| {
        points[count] = point;
        count += 1;
    };
    let edge = |corners: &[Point; 4], index: usize| minus(corners[(index + 1) % 4], corners[index]);
    for i in 0..4 {
        for j in 0..4 {
            let (along_a, along_b) = (edge(a, i), edge(b, j));
            let determinant = cross(along_b, along_a);
            // The edges are parallel.
            if determinant.abs() <= 1e-14 {
                continue;
            }
            let between = minus(b[j], a[i]);
            let at_a = cross(along_b, between) / determinant;
            let at_b = cross(along_a, between) / determinant;
            if (0.0..=1.0).contains(&at_a) && (0.0..=1.0).contains(&at_b) {
                add([a[i][0] + along_a[0] * at_a, a[i][1] + along_a[1] * at_a]);
            }
        }
    }
    for (inner, outer) in [(a, b), (b, a)] {
        let (first, last) = (edge(outer, 0), minus(outer[3], outer[0]));
        let (first_square, last_square) = (dot(first, first), dot(last, last));
        for &point in inner {
            let from = minus(point, outer[0]);
            let (along_first, along_last) = (dot(first, from), dot(last, from));
            let is_inside = along_first >= 0.0
                && along_last >= 0.0
                && along_first <= first_square
                && along_last <= last_square;
            if is_inside {
                add(point);
            }
        }
    }
    if count <= 2 { 0.0 } else { hull_area(&mut points[..count]) }
}

/// Computes the area of the convex hull with Graham's algorithm.
fn hull_area(points: &mut [Point]) -> f32 {
    let lowest = (0..points.len())
        .min_by(|&i, &j| {
            points[i][1].total_cmp(&points[j][1]).then(points[i][0].total_cmp(&points[j][0]))
        })
        .expect("there are points");
    points.swap(0, lowest);
    let start = points[0];
    points.iter_mut().for_each(|point| *point = minus(*point, start));
    points[1..].sort_by(|&p, &q| {
        let side = cross(p, q);
        if side.abs() < 1e-6 { dot(p, p).total_cmp(&dot(q, q)) } else { 0.0_f32.total_cmp(&side) }
    });
    let Some(second) = points.iter().position(|&point| dot(point, point) > 1e-8) else {
        return 0.0;
    };
    points[1] = points[second];
    let mut top = 2;
    for next in second + 1..points.len() {
        let is_right = |top: usize| {
            cross(minus(points[next], points[top - 2]), minus(points[top - 1], points[top - 2]))
                >= 0.0
        };
        while top > 1 && is_right(top) {
            top -= 1;
        }
        points[top] = points[next];
        top += 1;
    }
    let hull = &points[..top];
    let doubled: f32 = hull.windows(2).map(|pair| cross(pair[0], pair[1])).sum();
    doubled.abs() / 2.0
}

#[cfg(test)]
mod tests {
    use super::suppress;

    #[test]
    fn boxes_suppress_by_their_iou() {
        // Two equal boxes, a square inside of a larger square that is turned by 45 degrees and has
        // twice its area, and a separate box.
        let side = 2.0_f32.sqrt() * 10.0;
        let boxes = [
            [50.0, 50.0, 10.0, 10.0, 0.0],
            [50.0, 50.0, 10.0, 10.0, 0.0],
            [50.0, 50.0, side, side, std::f32::consts::FRAC_PI_4],
            [90.0, 50.0, 10.0, 10.0, 0.3],
        ];
        let scores = [0.9, 0.8, 0.7, 0.6];
        assert_eq!(suppress(&boxes, &scores, 0.49), [0, 3]);
        assert_eq!(suppress(&boxes, &scores, 0.51), [0, 2, 3]);
        assert_eq!(suppress(&boxes, &scores, 1.0), [0, 1, 2, 3]);
    }
}
