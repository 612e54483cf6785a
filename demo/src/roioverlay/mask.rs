// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mask of a region.
//!
//! In: the structure `mask` of a region from any element, which is ignored if it does not fit. Out: for a row of the
//! frame, the opacity of each pixel. `nmsfilter` documents the fields in `src/output/roi.rs`.

use std::ops::Range;

use gst::glib;

use super::details::FARTHEST;

/// The mask of a region.
pub(super) struct Mask {
    data: glib::Bytes,
    /// Number of pixels per row, and number of rows.
    sides: [usize; 2],
    /// Left, upper, right and lower edge of the covered area, in pixels of the frame.
    pub area: [f64; 4],
}

/// The position of a pixel of the frame between two neighboring pixels of the mask, along an axis.
pub(super) struct Between {
    /// The indices of the two pixels. At the edge of the mask they are equal.
    pixels: [usize; 2],
    /// The weight of the second one.
    share: f64,
}

impl Mask {
    /// Reads the structure `mask`.
    pub fn new(structure: &gst::StructureRef) -> Option<Self> {
        let side = |name: &str| usize::try_from(structure.get::<i32>(name).ok()?).ok();
        let sides = [side("width")?, side("height")?];
        let edge = |name: &str| structure.get::<f64>(name).ok();
        let area = [edge("left")?, edge("top")?, edge("right")?, edge("bottom")?];
        let data = structure.get::<glib::Bytes>("data").ok()?;
        let size = sides[0].div_ceil(8).checked_mul(sides[1])?;
        let is_rectangle = area[0] < area[2] && area[1] < area[3];
        let fits = !sides.contains(&0) && data.len() >= size;
        (is_rectangle && fits && area.iter().all(|edge| edge.abs() <= FARTHEST)).then_some(Self {
            data,
            sides,
            area,
        })
    }

    /// Returns the position of the frame's column or row with this index. `axis` is 0 for columns and 1 for rows.
    fn between(&self, axis: usize, index: i32) -> Between {
        let [low, high] = [self.area[axis], self.area[axis + 2]];
        let scale = self.sides[axis] as f64 / (high - low);
        // The position is relative to the center of the mask's first pixel.
        let at = (f64::from(index) + 0.5 - low) * scale - 0.5;
        let floor = at.floor();
        let nearest =
            |step: i32| (floor as i32 + step).clamp(0, self.sides[axis] as i32 - 1) as usize;
        Between { pixels: [nearest(0), nearest(1)], share: at - floor }
    }

    /// Computes the positions of the frame's `columns`, for [`row`](Self::row).
    pub fn set_columns(&self, columns: Range<i32>, positions: &mut Vec<Between>) {
        positions.clear();
        positions.extend(columns.map(|column| self.between(0, column)));
    }

    /// Sets the opacity of each pixel of the frame's row `y` in these columns: `alpha` if the mask covers the center of
    /// the pixel, else 0. The mask is interpolated between its four nearest pixels, so that masks of few pixels have
    /// smooth edges.
    pub fn row(&self, y: i32, alpha: u8, columns: &[Between], opacities: &mut [u8]) {
        let down = self.between(1, y);
        let rows = down.pixels.map(|row| {
            let len = self.sides[0].div_ceil(8);
            &self.data[row * len..][..len]
        });
        let mut column = 0;
        while let Some(across) = columns.get(column) {
            // Most pixels are between mask pixels that are equal.
            let (value, end) = self.equal_pixels(rows, across.pixels[0]);
            if across.pixels[1] < end {
                let equal = columns[column..].partition_point(|other| other.pixels[1] < end);
                opacities[column..column + equal].fill(if value { alpha } else { 0 });
                column += equal;
                continue;
            }
            let bit = |row: &[u8], index: usize| f64::from(u8::from(bit(row, index)));
            let [upper, lower] = rows.map(|row| {
                let [left, right] = across.pixels.map(|pixel| bit(row, pixel));
                left * (1.0 - across.share) + right * across.share
            });
            let is_covered = upper * (1.0 - down.share) + lower * down.share > 0.5;
            opacities[column] = if is_covered { alpha } else { 0 };
            column += 1;
        }
    }

    /// Returns the value of the pixel with index `first` of the first row, and the index behind the last pixel up to
    /// which all pixels of both rows have this value.
    fn equal_pixels(&self, rows: [&[u8]; 2], first: usize) -> (bool, usize) {
        let value = bit(rows[0], first);
        let expected = if value { 0xff } else { 0 };
        let mut mask = 0xff >> (first % 8);
        let bytes = rows[0].iter().zip(rows[1]).enumerate().skip(first / 8);
        for (index, (upper, lower)) in bytes {
            let other = ((upper ^ expected) | (lower ^ expected)) & mask;
            if other != 0 {
                return (value, (index * 8 + other.leading_zeros() as usize).min(self.sides[0]));
            }
            mask = 0xff;
        }
        (value, self.sides[0])
    }
}

/// Returns the bit with this index, whose most significant bit is the first of a byte.
fn bit(row: &[u8], index: usize) -> bool {
    row[index / 8] >> (7 - index % 8) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(sides: [i32; 2], area: [f64; 4], data: Vec<u8>) -> gst::Structure {
        gst::init().unwrap();
        gst::Structure::builder("mask")
            .field("width", sides[0])
            .field("height", sides[1])
            .field("left", area[0])
            .field("top", area[1])
            .field("right", area[2])
            .field("bottom", area[3])
            .field("data", glib::Bytes::from_owned(data))
            .build()
    }

    /// Returns whether the mask covers each of the pixels.
    fn covered(mask: &Mask, columns: Range<i32>, y: i32) -> Vec<bool> {
        let mut positions = Vec::new();
        mask.set_columns(columns, &mut positions);
        let mut opacities = vec![1; positions.len()];
        mask.row(y, 7, &positions, &mut opacities);
        opacities
            .into_iter()
            .map(|opacity| [0, 7].iter().position(|o| *o == opacity) == Some(1))
            .collect()
    }

    /// Returns whether the mask covers a pixel, from the four mask pixels around its center.
    fn covers(mask: &Mask, x: i32, y: i32) -> bool {
        let [left, top, right, bottom] = mask.area;
        let scale = [mask.sides[0] as f64 / (right - left), mask.sides[1] as f64 / (bottom - top)];
        let at = [
            (f64::from(x) + 0.5 - left) * scale[0] - 0.5,
            (f64::from(y) + 0.5 - top) * scale[1] - 0.5,
        ];
        let low = at.map(f64::floor);
        let share = [at[0] - low[0], at[1] - low[1]];
        let bit = |across: i32, down: i32| {
            let nearest = |axis: usize, step: i32| {
                (low[axis] as i32 + step).clamp(0, mask.sides[axis] as i32 - 1) as usize
            };
            let (column, row) = (nearest(0, across), nearest(1, down));
            let byte = mask.data[row * mask.sides[0].div_ceil(8) + column / 8];
            f64::from(byte >> (7 - column % 8) & 1)
        };
        let row = |down: i32| bit(0, down) * (1.0 - share[0]) + bit(1, down) * share[0];
        row(0) * (1.0 - share[1]) + row(1) * share[1] > 0.5
    }

    #[test]
    fn a_mask_covers_the_pixels_of_its_bits() {
        // The mask has two rows of ten pixels. In the first row, the first two pixels and the last
        // are set; in the second row, the second pixel.
        let bits = [0xc0, 0x40, 0x40, 0x00];
        let found = Mask::new(&mask([10, 2], [20.0, 30.0, 30.0, 32.0], bits.into())).unwrap();
        let row = |y: i32| covered(&found, 20..30, y).into_iter().map(u8::from).collect::<Vec<_>>();
        assert_eq!(row(30), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(row(31), [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        // The mask is enlarged by four. It covers the first two pixels of both rows, except the
        // corner that is not set.
        let large = Mask::new(&mask([10, 2], [0.0, 0.0, 40.0, 8.0], bits.into())).unwrap();
        let covers = |x: usize, y: i32| covered(&large, 0..40, y)[x];
        assert!(covers(1, 1) && covers(6, 1) && covers(6, 6));
        assert!(!covers(1, 6) && !covers(9, 1));
    }

    #[test]
    fn rows_of_a_mask_are_those_of_its_pixels_one_by_one() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..400 {
            let sides = [random.i32(1..70), random.i32(1..20)];
            let len = sides[0].unsigned_abs().div_ceil(8) * sides[1].unsigned_abs();
            // Runs of equal pixels and lone ones.
            let common = random.u8(..);
            let byte = |random: &mut fastrand::Rng| match random.u8(0..4) {
                0 => random.u8(..),
                1 => common,
                2 => 0,
                _ => 0xff,
            };
            let data: Vec<u8> = (0..len).map(|_| byte(&mut random)).collect();
            let near = |random: &mut fastrand::Rng, low: f64| low + random.f64() * 90.0 + 0.1;
            let [left, top] = [0; 2]
                .map(|_| random.i32(-40..40))
                .map(|edge| f64::from(edge) + if random.bool() { 0.0 } else { random.f64() });
            let area = if random.bool() {
                [left, top, left + f64::from(sides[0]), top + f64::from(sides[1])]
            } else {
                [left, top, near(&mut random, left), near(&mut random, top)]
            };
            let found = Mask::new(&mask(sides, area, data)).unwrap();
            let [x1, y1, x2, y2] = area.map(|edge| edge.round() as i32);
            let first = x1 + random.i32(0..=(x2 - x1) / 2);
            for y in y1..y2 {
                let expected: Vec<bool> = (first..x2).map(|x| covers(&found, x, y)).collect();
                assert_eq!(covered(&found, first..x2, y), expected, "{sides:?} {area:?} row {y}");
            }
        }
    }

    #[test]
    fn masks_that_do_not_fit_are_ignored() {
        let area = [0.0, 0.0, 10.0, 2.0];
        assert!(Mask::new(&mask([10, 2], area, vec![0; 4])).is_some());
        for sides in [[10, 3], [17, 2], [0, 2], [10, 0], [-10, 2], [i32::MAX, i32::MAX]] {
            assert!(Mask::new(&mask(sides, area, vec![0; 4])).is_none(), "{sides:?}");
        }
        for area in [
            [10.0, 0.0, 0.0, 2.0],
            [0.0; 4],
            [f64::NAN, 0.0, 10.0, 2.0],
            [0.0, 0.0, f64::INFINITY, 2.0],
            [-1e300, 0.0, 10.0, 2.0],
        ] {
            assert!(Mask::new(&mask([10, 2], area, vec![0; 4])).is_none(), "{area:?}");
        }
        for name in ["width", "height", "left", "bottom", "data"] {
            let mut other = mask([10, 2], area, vec![0; 4]);
            other.set(name, "2");
            assert!(Mask::new(&other).is_none(), "{name} is a string");
        }
    }
}
