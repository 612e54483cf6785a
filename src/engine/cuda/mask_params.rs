// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels for masks in Rust. kernels/mask_params.cuh documents them; a test compares both.
//!
//! In: a layout with prototypes, the tensors in device memory, the pixels of masks. Out: what the kernels read by
//! value.

use bytemuck::{Pod, Zeroable};

use super::interface::{Source, blocks_per_group};
use super::layout_params::LayoutField;
use crate::decoder::layout::{Layout, MAX_GROUPS, Prototypes};
use crate::engine::Params;
use crate::engine::masks::{MaskGrid, MaskMemory};

pub(super) const MASK_THREADS: u32 = 512;

/// The words of all images that there is memory for at first.
const FIRST_WORDS: u32 = 65_536;

/// The kernel for masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaskKernel {
    /// For the pixels of the prototypes.
    Prototypes,
    /// For those of the frame.
    Frame,
}

impl MaskKernel {
    pub fn of(grid: &MaskGrid) -> Self {
        match grid {
            MaskGrid::Prototypes { .. } => Self::Prototypes,
            MaskGrid::Frame { .. } => Self::Frame,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MaskParams {
    prototypes: LayoutField,
    coefficients: [LayoutField; MAX_GROUPS],
    ratio: [f64; 2],
    offset: [f64; 2],
    step: [f32; 2],
    origin: [f32; 2],
    factor: [f32; 2],
    prototype_size: [u32; 2],
    frame_size: [u32; 2],
    first_anchor: [u32; MAX_GROUPS],
    group_count: u32,
    channels: u32,
    capacity: u32,
    limit: u32,
}

const _: () = assert!(size_of::<MaskParams>() == 624);

impl MaskParams {
    /// The parameters for memory for `capacity` words per image.
    pub fn new(
        source: &Source,
        layout: &Layout,
        prototypes: &Prototypes,
        params: &Params,
        capacity: u32,
    ) -> Self {
        let mut made = Self {
            prototypes: LayoutField::new(&prototypes.field, source),
            // `validate` has bounded these by 32 bits.
            prototype_size: [prototypes.width as u32, prototypes.height as u32],
            group_count: layout.groups.len() as u32,
            channels: layout.columns[prototypes.column].components as u32,
            capacity,
            limit: MaskMemory::LIMIT,
            ..Self::default()
        };
        match MaskGrid::new(prototypes, params) {
            MaskGrid::Prototypes { factor, .. } => made.factor = factor,
            MaskGrid::Frame { frame, samples } => {
                (made.frame_size, made.ratio, made.offset) =
                    (frame.size, frame.ratio, frame.offset);
                made.step = samples.map(|samples| samples.step);
                made.origin = samples.map(|samples| samples.origin);
            }
        }
        let mut anchors = 0;
        for (index, group) in layout.groups.iter().enumerate() {
            made.first_anchor[index] = anchors;
            anchors += group.anchors as u32;
            made.coefficients[index] = LayoutField::new(&group.columns[prototypes.column], source);
        }
        made
    }
}

/// `mask_blocks`
pub(super) fn mask_blocks(multiprocessors: u32, images: u32) -> u32 {
    blocks_per_group(multiprocessors, multiprocessors, images)
}

/// The words per image that there is to be memory for, where `needed` are needed.
pub(super) fn mask_capacity(needed: u32, images: u32) -> u32 {
    // Doubled, so that masks that grow do not need memory each time.
    needed.max(FIRST_WORDS / images.max(1)).max(64).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::super::interface::compare::{equal, fields};
    use super::*;
    use crate::device::kernel_headers;

    #[test]
    fn structures_and_constants_are_those_of_mask_params_cuh() {
        let mut program = String::from("#include \"mask_params.cuh\"\n#include <stddef.h>\n");
        fields!(
            program, MaskParams: prototypes, coefficients, ratio, offset, step, origin, factor,
            prototype_size, frame_size, first_anchor, group_count, channels, capacity, limit,
        );
        equal(&mut program, "MASK_THREADS", MASK_THREADS as usize);
        for (multiprocessors, images) in [(132, 1), (132, 64), (8, 100), (2, 3)] {
            let theirs = format!("mask_blocks({multiprocessors}, {images})");
            equal(&mut program, &theirs, mask_blocks(multiprocessors, images) as usize);
        }
        kernel_headers::compile(&program);
    }

    #[test]
    fn the_memory_for_masks_grows_up_to_their_limit() {
        assert_eq!([1, 3, 65_535].map(|images| mask_capacity(0, images)), [65_536, 32_768, 64]);
        assert_eq!([1, 64].map(|images| mask_capacity(65_537, images)), [131_072; 2]);
        assert_eq!(mask_capacity(MaskMemory::LIMIT, 1), 1 << 23);
    }
}
