// SPDX-License-Identifier: MIT OR Apache-2.0
//! The strides of a model whose description has `strides = any`.
//!
//! In: the tensors, and the size of the model's input. Out: the strides of its levels, by the names of the tensors and by
//! their shapes.

use arrayvec::ArrayVec;

use super::Description;
use super::apply::Level;
use super::shape::Known;
use crate::decoder::{MAX_INPUTS, ONNX_PREFIX, Options};
use crate::tensor::TensorView;

/// All strides that a level can have.
pub(in crate::decoder) const STRIDES: [u32; 6] = [4, 8, 16, 32, 64, 128];

/// The positions of the strides of most models: 8, 16 and 32.
pub(super) const USUAL: std::ops::Range<usize> = 1..4;

/// The strides of the levels of a model, in ascending order.
pub(in crate::decoder) type Strides = ArrayVec<u32, { STRIDES.len() }>;

/// Sets of strides, of which the first that fits is used.
pub(in crate::decoder) type PossibleStrides = ArrayVec<Strides, 8>;

impl Description<'_> {
    /// The possible strides of the levels in `tensors`, by a description of all [`STRIDES`]: those that the names have,
    /// then those that the shapes have. If there are none, the usual ones, for the errors.
    pub(in crate::decoder) fn strides(
        &self,
        tensors: &[TensorView<'_>],
        options: Options,
    ) -> PossibleStrides {
        let mut possible = PossibleStrides::new();
        let mut add = |strides: Strides| {
            if !strides.is_empty() && !possible.contains(&strides) && !possible.is_full() {
                possible.push(strides);
            }
        };
        let has_levels = self.tensors.iter().any(|tensor| tensor.per_level);
        let grids = self.grids(options);
        if has_levels {
            let has_name = |section: usize, level: usize, tensor: &TensorView<'_>| {
                let role = &self.tensors[section].roles[level];
                let id = tensor.id.strip_prefix(ONNX_PREFIX).unwrap_or(tensor.id);
                role.ids.iter().chain(&role.names).any(|name| name == id)
            };
            add(self.levels_with(tensors, has_name));
        }
        match grids {
            Some(grids) if has_levels => {
                // Where the model's input has few cells, two strides can have one grid.
                let has_own_grid = |level: usize| {
                    let sides = |grid: &Level| [grid.columns, grid.rows];
                    let own = sides(&grids[level]);
                    !own.contains(&0) && grids[..level].iter().all(|other| sides(other) != own)
                };
                add(self.levels_with(tensors, |section, level, tensor| {
                    has_own_grid(level) && self.has_grids(section, tensor, &grids[level..=level])
                }));
            }
            Some(grids) => {
                // The number of rows of other families' outputs can be one grid's.
                let all = (0..grids.len())
                    .flat_map(|first| (first + 2..=grids.len()).map(move |end| first..end));
                for levels in [USUAL].into_iter().chain(all) {
                    let fits = |section| {
                        let has_all =
                            |tensor| self.has_grids(section, tensor, &grids[levels.clone()]);
                        tensors.iter().any(has_all)
                    };
                    if (0..self.tensors.len()).all(fits) {
                        add(STRIDES[levels].iter().copied().collect());
                    }
                }
            }
            // The greatest number of levels, for the error that the size of the model's input is missing.
            None if has_levels => {
                let of_level = self.tensors.iter().filter(|tensor| tensor.per_level).count();
                for levels in (2..=STRIDES.len().min(tensors.len() / of_level)).rev() {
                    let first = usize::from(levels < STRIDES.len());
                    add(STRIDES[first..].iter().take(levels).copied().collect());
                }
            }
            None => {}
        }
        add(STRIDES[USUAL].iter().copied().collect());
        possible
    }

    /// The strides of the levels for which each section with a tensor for each level has a separate tensor. `is_of`
    /// tells whether a tensor can belong to a section and a level.
    fn levels_with(
        &self,
        tensors: &[TensorView<'_>],
        is_of: impl Fn(usize, usize, &TensorView<'_>) -> bool,
    ) -> Strides {
        let sections: ArrayVec<usize, MAX_INPUTS> =
            (0..self.tensors.len()).filter(|&section| self.tensors[section].per_level).collect();
        let has_all = |level: usize| {
            let is_of = |section, tensor: &TensorView<'_>| is_of(section, level, tensor);
            has_tensors(&sections, tensors, &is_of, &mut ArrayVec::new())
        };
        (0..STRIDES.len()).filter(|&level| has_all(level)).map(|level| STRIDES[level]).collect()
    }

    /// True if the shape of `tensor` is one of a section with the anchors of these grids.
    fn has_grids(&self, section: usize, tensor: &TensorView<'_>, grids: &[Level]) -> bool {
        let anchors = grids.iter().fold(0, |sum: usize, grid| sum.saturating_add(grid.anchors));
        let cells = match grids {
            [grid] => Some([grid.rows, grid.columns]),
            _ => None,
        };
        let per_cell = self.anchors.per_cell.first().copied();
        let known = Known { anchors: Some(anchors), per_cell, cells, classes: None };
        let batches = [tensor.shape.get(1..), Some(&tensor.shape[..])];
        self.tensors[section].shapes.iter().any(|shape| {
            batches.into_iter().flatten().any(|dimensions| {
                shape.fit(dimensions, known).is_some_and(|placed| placed.anchors == anchors)
            })
        })
    }
}

/// True if each of the sections has a tensor that no other has. `used` are the tensors of sections before.
fn has_tensors(
    sections: &[usize],
    tensors: &[TensorView<'_>],
    is_of: &dyn Fn(usize, &TensorView<'_>) -> bool,
    used: &mut ArrayVec<usize, MAX_INPUTS>,
) -> bool {
    let Some((&section, rest)) = sections.split_first() else { return true };
    (0..tensors.len()).any(|index| {
        if used.contains(&index) || !is_of(section, &tensors[index]) {
            return false;
        }
        used.push(index);
        let has_rest = has_tensors(rest, tensors, is_of, used);
        used.pop();
        has_rest
    })
}
