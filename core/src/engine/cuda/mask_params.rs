// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels for masks. The structures and `pub` constants are also in
//! kernels/interface_generated.cuh.
//!
//! In: a layout with prototypes, the tensors in device memory, and the pixels of masks. Out: the
//! parameters that kernels receive by value.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::interface::Source;
use super::layout_params::LayoutField;
use super::places::{Placed, are_equal};
use super::upload::{Cached, UploadStream};
use crate::decoder::layout::{Layout, MAX_GROUPS, Prototypes};
use crate::device::DriverError;
use crate::engine::masks::{MAX_MASK_WORDS, MaskGrid};

/// Threads per block.
pub const MASK_THREADS: u32 = 512;

/// The initial capacity in words, for all groups together.
const FIRST_WORDS: u32 = 65_536;

/// The kernel for masks in pixels of the prototypes.
pub(super) const PROTOTYPE_MASKS: &CStr = c"masks";
/// The kernel for masks in pixels of the frame.
pub(super) const FRAME_MASKS: &CStr = c"frame_masks";

/// The kernel for masks with this grid.
pub(super) fn mask_kernel(grid: &MaskGrid) -> &'static CStr {
    match grid {
        MaskGrid::Prototypes { .. } => PROTOTYPE_MASKS,
        MaskGrid::Frame { .. } => FRAME_MASKS,
    }
}

/// Determines which pixels the masks of an image have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MaskPlaceParams {
    /// Maps edges of boxes, with `offset`. For masks in pixels of the prototypes, the map leads to
    /// the model's input: edge * ratio + offset. For masks in pixels of the frame, it leads to the
    /// frame: (edge - offset) / ratio.
    ratio: [f64; 2],
    offset: [f64; 2],
    /// Maps pixels of the frame to pixels of the prototypes: (pixel + 0.5) * step + origin.
    step: [f32; 2],
    origin: [f32; 2],
    /// Pixels of the prototypes per pixel of the model's input.
    factor: [f32; 2],
    /// Columns and rows.
    frame_size: [u32; 2],
}

/// The parameters of the kernels for masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MaskParams {
    /// "Anchor" row * width + column, with a component for each channel.
    prototypes: LayoutField,
    coefficients: [LayoutField; MAX_GROUPS],
    /// The place of every image, if there is no table.
    place: MaskPlaceParams,
    /// Device address of a table with a MaskPlaceParams for each image; 0: no table.
    places: u64,
    /// Columns and rows.
    prototype_size: [u32; 2],
    first_anchor: [u32; MAX_GROUPS],
    group_count: u32,
    channels: u32,
    /// The number of words of a group that there is memory for.
    pub capacity: u32,
    /// The greatest number of words of a group, less than 2^26.
    limit: u32,
}

const _: () = assert!(size_of::<MaskPlaceParams>() == 64 && size_of::<MaskParams>() == 632);

impl MaskPlaceParams {
    fn new(grid: &MaskGrid) -> Self {
        match *grid {
            MaskGrid::Prototypes { edges, factor } => {
                Self { ratio: edges.ratio, offset: edges.offset, factor, ..Self::default() }
            }
            MaskGrid::Frame { edges, samples } => Self {
                ratio: edges.ratio,
                offset: edges.offset,
                step: samples.map(|samples| samples.step),
                origin: samples.map(|samples| samples.origin),
                factor: [0.0; 2],
                frame_size: edges.size,
            },
        }
    }
}

impl Cached<MaskPlaceParams> {
    /// The pixels of the masks of images with these grids.
    pub fn provide_masks(
        &mut self,
        on: UploadStream<'_>,
        grids: &[MaskGrid],
    ) -> Result<Placed<MaskPlaceParams>, DriverError> {
        let mut places = grids.iter().map(MaskPlaceParams::new);
        let same = places.next().unwrap_or_default();
        if places.all(|place| are_equal(&place, &same)) {
            return Ok(Placed { same, table: 0 });
        }
        let table = self.provide(on, grids.iter().map(MaskPlaceParams::new))?;
        Ok(Placed { same: MaskPlaceParams::default(), table })
    }
}

impl MaskParams {
    /// The parameters without memory.
    pub fn new(
        source: &Source,
        layout: &Layout,
        prototypes: &Prototypes,
        places: &Placed<MaskPlaceParams>,
    ) -> Self {
        let mut made = Self {
            prototypes: LayoutField::new(&prototypes.field, source),
            // `validate` has checked that these fit in 32 bits.
            prototype_size: [prototypes.width as u32, prototypes.height as u32],
            group_count: layout.groups.len() as u32,
            channels: layout.columns[prototypes.column].components as u32,
            place: places.same,
            places: places.table,
            limit: MAX_MASK_WORDS,
            ..Self::default()
        };
        let mut anchors = 0;
        for (index, group) in layout.groups.iter().enumerate() {
            made.first_anchor[index] = anchors;
            anchors += group.anchors as u32;
            made.coefficients[index] = LayoutField::new(&group.columns[prototypes.column], source);
        }
        made
    }
}

/// The capacity in words per group to allocate if `needed` words are needed.
pub(super) fn mask_capacity(needed: u32, groups: u32) -> u32 {
    // Rounded up to a power of two, so that growing masks do not need new memory each time.
    needed.max(FIRST_WORDS / groups.max(1)).max(64).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_for_masks_grows_up_to_their_limit() {
        assert_eq!([1, 3, 65_535].map(|groups| mask_capacity(0, groups)), [65_536, 32_768, 64]);
        assert_eq!([1, 64].map(|groups| mask_capacity(65_537, groups)), [131_072; 2]);
        assert_eq!(mask_capacity(MAX_MASK_WORDS, 1), 1 << 23);
    }
}
