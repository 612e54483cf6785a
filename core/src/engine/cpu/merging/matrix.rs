// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matrix NMS.
//!
//! In: the candidates of a part, in descending rank. Out: all candidates with their final scores. Candidates that do not
//! intersect have a decay of at least 1, so a candidate is compared with the boxes that a [`SpatialGrid`] finds, several
//! at a time.

use std::marker::PhantomData;

use super::super::super::Params;
use super::super::super::merging::{Decay, lowered};
use super::super::conflict::{Conflict, Entry};
use super::super::dispatch::{Work, dispatch};
use super::super::spatial_grid::{BLOCK_WIDTH, GridBlock, SpatialGrid};
use super::{Merged, Part, overlap_of};
use crate::geometry::overlap::Measured;
use crate::geometry::{greater, lesser};

/// The boxes, each with its compensation; buffers are reused.
pub(super) type Grid = SpatialGrid<f32>;

/// Adds all candidates with their final scores.
pub(super) fn run<C: Conflict>(
    part: &Part<'_>,
    grid: &mut Grid,
    params: &Params,
    merged: &mut Merged,
) {
    dispatch((part, grid, params, merged, PhantomData::<C>));
}

impl<C: Conflict> Work for (&Part<'_>, &mut Grid, &Params, &mut Merged, PhantomData<C>) {
    #[inline(always)]
    fn run(self) {
        let (part, grid, params, merged, _) = self;
        let decay = Decay::of(params.method, params.sigma);
        grid.clear(part.entries.len());
        for (index, &Entry { measured, .. }) in (0..).zip(part.entries) {
            let mut extremes = Extremes::NONE;
            let mut entry = Entry { measured, shape: 0.0 };
            grid.for_each_block(&entry, params.pixel_offset, |block| {
                extremes.add::<C>(block, &measured, params.pixel_offset, decay);
            });
            let (overlap, exponent) = extremes.of_all();
            entry.shape = overlap;
            grid.push(&entry);
            let score = lowered(part.detection(index).score, decay.matrix(exponent));
            merged.push(part, index, measured.corners, score);
        }
    }
}

/// The greatest overlap and the least exponent, one of each for each place in a block.
struct Extremes {
    overlaps: [f32; BLOCK_WIDTH],
    exponents: [f32; BLOCK_WIDTH],
}

impl Extremes {
    const NONE: Self =
        Self { overlaps: [0.0; BLOCK_WIDTH], exponents: [f32::INFINITY; BLOCK_WIDTH] };

    /// Has no branches.
    #[inline(always)]
    fn add<C: Conflict>(
        &mut self,
        block: &GridBlock<f32>,
        lower: &Measured,
        offset: f32,
        decay: Decay,
    ) {
        for index in 0..BLOCK_WIDTH {
            let Entry { measured: higher, shape: compensation } = block.get(index);
            let overlap = overlap_of::<C>(&higher, lower, offset);
            let exponent = decay.exponent(overlap, compensation);
            self.overlaps[index] = greater(overlap, self.overlaps[index]);
            self.exponents[index] = lesser(exponent, self.exponents[index]);
        }
    }

    #[inline(always)]
    fn of_all(&self) -> (f32, f32) {
        let (mut overlap, mut exponent) = (0.0, f32::INFINITY);
        for index in 0..BLOCK_WIDTH {
            overlap = greater(self.overlaps[index], overlap);
            exponent = lesser(self.exponents[index], exponent);
        }
        (overlap, exponent)
    }
}
