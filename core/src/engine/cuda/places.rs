// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of a run's images, in the form that decode reads.
//!
//! In: the places of images. Out: the numbers with which boxes are decoded. They are passed by
//! value if they are equal for all images, every image is a separate group, and boxes at edges are
//! like others; or else in a table in device memory. The structures are also in kernels/interface_generated.cuh.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::upload::{Cached, UploadStream};
use crate::decoder::Layout;
use crate::device::DriverError;
#[cfg(test)]
use crate::engine::SizeLimits;
use crate::engine::edges::InnerEdges;
use crate::engine::place::image_groups;
use crate::engine::{DecodePlace, ImagePlace, Params};
use crate::geometry::Bounds;

/// The numbers with which the boxes of an image are decoded (core/src/engine/place.rs). Aligned to
/// 16 bytes in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PlaceParams {
    /// Pixels of boxes per unit of the tensor.
    scale: [f32; 2],
    /// Added to corners, or to the center of an oriented box, unless it is zero.
    offset: [f32; 2],
    /// Left, top, right, bottom: boxes that do not intersect it are rejected.
    visible: [f32; 4],
    /// The limit of classes without rules.
    min_size: [f32; 2],
    /// The limit of classes without rules.
    max_size: [f32; 2],
    /// The factor of the sizes of a ClassRule.
    limit_ratio: [f64; 2],
}

/// One image of a group, an entry of the table KernelParams::placed_images. Images of one group are
/// consecutive, and groups follow one another in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PlacedImage {
    place: PlaceParams,
    group: u32,
    /// The index of the group's first image.
    first_image: u32,
    /// 1 if boxes that touch an inner edge are dropped; 0 if their scores are lowered.
    drops_at_edges: u32,
    /// The score to which scores are lowered, but not below the threshold of the class.
    edge_score: f32,
    /// Left, top, right, bottom, in pixels of boxes: a box inside these limits touches no inner edge.
    edge_limits: [f32; 4],
}

const _: () = assert!(size_of::<PlacedImage>() == 96);

/// The data that a kernel reads for each image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed<T> {
    /// The value of every image, if there is no table.
    pub same: T,
    /// The device address of a table with an entry per image, or 0 if there is no table.
    pub table: u64,
}

impl PlaceParams {
    fn new(place: &DecodePlace) -> Self {
        let &DecodePlace { scale, offset, visible, sizes, limit_ratio, edges: _ } = place;
        Self {
            scale,
            offset,
            visible: numbers(visible),
            min_size: sizes.min,
            max_size: sizes.max,
            limit_ratio,
        }
    }

    /// The numbers of an image without a frame, for boxes in pixels.
    #[cfg(test)]
    pub fn of_pixels() -> Self {
        let (scale, sizes, limit_ratio) = ([1.0; 2], SizeLimits::ANY, [1.0; 2]);
        let (offset, visible) = ([0.0; 2], Bounds::ANY);
        Self::new(&DecodePlace { scale, offset, visible, sizes, limit_ratio, edges: None })
    }
}

impl PlacedImage {
    fn new(place: &DecodePlace, group: u32, first_image: u32) -> Self {
        let InnerEdges { limits, score } =
            place.edges.unwrap_or(InnerEdges { limits: Bounds::ANY, score: None });
        Self {
            place: PlaceParams::new(place),
            group,
            first_image,
            drops_at_edges: score.is_none().into(),
            edge_score: score.unwrap_or_default(),
            edge_limits: numbers(limits),
        }
    }
}

fn numbers(Bounds { left, top, right, bottom }: Bounds) -> [f32; 4] {
    [left, top, right, bottom]
}

impl Cached<PlacedImage> {
    /// The numbers with which the boxes of `images` are decoded.
    pub fn provide_places(
        &mut self,
        on: UploadStream<'_>,
        layout: &Layout,
        params: &Params,
        images: &[ImagePlace],
    ) -> Result<Placed<PlaceParams>, DriverError> {
        let in_group = |group: Range<usize>| {
            let first_image = group.start as u32;
            let placed = move |image: &ImagePlace| {
                PlacedImage::new(&image.decode_place(layout, params), image.group, first_image)
            };
            images[group].iter().map(placed)
        };
        let entries = || image_groups(images).flat_map(in_group);
        let first = entries().next().unwrap_or_default();
        let edge_limits = numbers(Bounds::ANY);
        let is_same = |(image, entry): (u32, PlacedImage)| {
            are_equal(
                &entry,
                &PlacedImage { group: image, first_image: image, edge_limits, ..first },
            )
        };
        if (0..).zip(entries()).all(is_same) {
            return Ok(Placed { same: first.place, table: 0 });
        }
        let table = self.provide(on, entries())?;
        Ok(Placed { same: PlaceParams::default(), table })
    }
}

/// Returns true if all bits are equal.
pub(super) fn are_equal<T: Pod>(a: &T, b: &T) -> bool {
    bytemuck::bytes_of(a) == bytemuck::bytes_of(b)
}
