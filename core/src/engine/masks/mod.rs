// SPDX-License-Identifier: MIT OR Apache-2.0
//! The masks of survivors: their pixels, and the memory that holds them.
//!
//! In: the areas of survivors in the order of their ranks. Out: [`Masks`]. Each engine computes the
//! bits. All engines share the rules for a mask's pixels ([`MaskGrid`]) and for the number of masks
//! ([`MaskPlaces`]).

mod grid;

use std::ops::Range;

use super::{Detection, Job};
pub(super) use grid::{FrameSamples, MaskGrid, Sample};

/// The greatest number of columns, or rows, of prototypes.
pub(crate) const MAX_PROTOTYPE_SIDE: usize = 16_384;

/// The greatest width or height of a frame whose pixels masks can have.
pub(crate) const MAX_FRAME_SIDE: u32 = 65_536;

/// The size of a word in bytes. Masks are padded to whole words.
pub(super) const WORD_BYTES: u64 = 4;

/// The greatest number of mask bytes per group of images.
pub const MAX_MASK_BYTES: u64 = 32 << 20;

pub(super) const MAX_MASK_WORDS: u32 = (MAX_MASK_BYTES / WORD_BYTES) as u32;

/// The mask of a survivor. Bits are in rows, each padded to whole bytes, with the most significant
/// bit first. The mask only covers the survivor's box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mask<'a> {
    /// The column of each row's first pixel, counted from 0 in the prototypes or in the frame.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The number of pixels of a row; at least 1.
    pub width: u32,
    /// The number of rows; at least 1.
    pub height: u32,
    /// The rows, each of `width / 8` bytes, rounded up. Bits beyond the width are 0.
    pub bytes: &'a [u8],
}

/// The masks of the survivors of a group.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks<'a> {
    /// One place per survivor, or no places if the model has no masks.
    places: &'a [MaskPlace],
    bytes: &'a [u8],
}

/// The location of a survivor's mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskPlace {
    /// If the area has no pixels, there is no mask.
    pub area: MaskArea,
    /// The index of the mask's first byte.
    pub first: usize,
}

/// The pixels that a mask covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskArea {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl<'a> Masks<'a> {
    pub(super) fn new(places: &'a [MaskPlace], bytes: &'a [u8]) -> Self {
        Self { places, bytes }
    }

    /// The mask of the survivor with this index, or `None` if the model has no masks or the
    /// survivor's box contains no pixel.
    pub fn get(&self, survivor: usize) -> Option<Mask<'a>> {
        let MaskPlace { area, first } = *self.places.get(survivor)?;
        let MaskArea { left, top, width, height } = area;
        let bytes = &self.bytes[first..][..area.bytes()];
        (!bytes.is_empty()).then_some(Mask { left, top, width, height, bytes })
    }
}

impl MaskArea {
    /// The number of bytes in a row.
    pub fn stride(&self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// The number of bytes in all rows.
    pub fn bytes(&self) -> usize {
        self.stride() * self.height as usize
    }

    /// The number of words in all rows.
    pub fn words(&self) -> u64 {
        (self.bytes() as u64).div_ceil(WORD_BYTES)
    }
}

/// The pixels and the places of the masks of a run.
#[derive(Debug, Default)]
pub(super) struct MaskPlaces {
    /// The pixels of the masks of each image; empty if the model has no masks.
    pub grids: Vec<MaskGrid>,
    /// The masks of the survivors of all groups.
    pub places: Vec<MaskPlace>,
}

impl MaskPlaces {
    /// Begins a run.
    pub fn begin(&mut self, Job { layout, params, images, .. }: Job<'_>) {
        self.grids.clear();
        self.places.clear();
        if let Some(prototypes) = &layout.prototypes {
            let grid = |place| MaskGrid::new(layout, prototypes, params, place);
            self.grids.extend(images.iter().map(grid));
        }
    }

    /// Adds the places of the masks of all survivors of a group of `images` with `anchors` anchors each. Returns the number
    /// of words of all masks, the first of which begins at byte `first`.
    pub fn add_group(
        &mut self,
        images: Range<usize>,
        anchors: usize,
        survivors: &[Detection],
        first: usize,
    ) -> u32 {
        let (mut used, mut words) = (0, 0);
        let grids = &self.grids[images];
        self.places.extend(survivors.iter().map(|survivor| {
            let grid = &grids[survivor.anchor as usize / anchors];
            let place = next_place(&mut used, grid.area(survivor), first);
            words += place.area.words();
            place
        }));
        // At most `MAX_MASK_WORDS`.
        words as u32
    }
}

/// The place of the mask of a group's next survivor. Each mask begins at a word. The first survivor whose mask would
/// exceed [`MAX_MASK_BYTES`], and all survivors after it, have no mask. `used` is the number of words in all masks so
/// far, including masks that exceed the limit, and `first` the index of the group's first byte.
fn next_place(used: &mut u64, area: MaskArea, first: usize) -> MaskPlace {
    let before = *used;
    *used = before.saturating_add(area.words());
    if *used <= u64::from(MAX_MASK_WORDS) {
        MaskPlace { area, first: first + (before * WORD_BYTES) as usize }
    } else {
        MaskPlace { area: MaskArea::default(), first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_begin_at_words_and_end_at_the_limit() {
        let mut used = 0;
        let area = |width, height| MaskArea { left: 3, top: 4, width, height };
        // 9 pixels in 2 bytes, 3 rows: 6 bytes in 2 words.
        let first = next_place(&mut used, area(9, 3), 100);
        assert_eq!(first, MaskPlace { area: area(9, 3), first: 100 });
        let empty = next_place(&mut used, area(0, 7), 100);
        assert_eq!((empty.area.bytes(), empty.first), (0, 108));
        // Rows that fill all words except two.
        let rows = u32::try_from(MAX_MASK_BYTES).unwrap() / 1024 - 1;
        let most = next_place(&mut used, area(8 * 1024, rows), 100);
        assert_eq!(most, MaskPlace { area: area(8 * 1024, rows), first: 108 });
        let last = next_place(&mut used, area(1, 1024 - 8), 100);
        assert_eq!(last.first, 108 + rows as usize * 1024);
        for later in [area(1, 1), area(0, 0)] {
            assert_eq!(next_place(&mut used, later, 100).area, MaskArea::default());
        }
    }

    #[test]
    fn the_mask_of_a_survivor_is_found_by_its_index() {
        let area = MaskArea { left: 1, top: 2, width: 3, height: 2 };
        let places = [
            MaskPlace { area, first: 4 },
            MaskPlace { area: MaskArea { width: 0, ..area }, first: 8 },
        ];
        let bytes = [0, 0, 0, 0, 0xa0, 0x40, 0, 0];
        let masks = Masks::new(&places, &bytes);
        let expected = Mask { left: 1, top: 2, width: 3, height: 2, bytes: &[0xa0, 0x40] };
        assert_eq!(masks.get(0), Some(expected));
        assert_eq!(masks.get(1), None, "no pixels");
        assert_eq!(masks.get(2), None, "no survivor");
        assert_eq!(Masks::default().get(0), None);
    }
}
