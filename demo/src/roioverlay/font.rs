// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws text in Noto Sans Mono. The glyphs come from a crate of prerendered glyphs.
//!
//! In: text, position and color. Out: pixels that are blended into a surface.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::color::Rgb;
use super::surface::{Rect, Surface};

const WEIGHT: FontWeight = FontWeight::Regular;

/// Returns true if the font has `character`. All sizes have equal sets of characters.
pub(super) fn has(character: char) -> bool {
    get_raster(character, WEIGHT, RasterHeight::Size16).is_some()
}

/// A font size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font(RasterHeight);

impl Font {
    #[cfg(test)]
    pub const SMALLEST: Self = Self(RasterHeight::Size16);

    /// Returns a size that is legible on a frame of this height.
    pub fn for_frame(height: i32) -> Self {
        Self(match height {
            ..1300 => RasterHeight::Size16,
            1300..1700 => RasterHeight::Size20,
            1700..2000 => RasterHeight::Size24,
            _ => RasterHeight::Size32,
        })
    }

    /// Returns the line height in pixels.
    pub fn height(self) -> i32 {
        self.0.val() as i32
    }

    /// Returns the width of `text` in pixels.
    pub fn width(self, text: &str) -> i32 {
        let width = get_raster_width(WEIGHT, self.0).saturating_mul(text.chars().count());
        width.try_into().unwrap_or(i32::MAX)
    }

    /// Draws `text` with its upper left corner at `x`, `y`. Text is clipped at the right edge of
    /// the frame. Characters without a glyph are drawn as question marks.
    pub fn draw(self, surface: &mut Surface<'_>, x: i32, y: i32, text: &str, color: Rgb) {
        let step = get_raster_width(WEIGHT, self.0) as i32;
        for (i, character) in (0..).zip(text.chars()) {
            let glyph = get_raster(character, WEIGHT, self.0)
                .or_else(|| get_raster('?', WEIGHT, self.0))
                .expect("every size has a question mark");
            let (width, height) = (glyph.width() as i32, glyph.height() as i32);
            let left = x + i * step;
            if left >= surface.bounds().x2 {
                break;
            }
            let rect = Rect { x1: left, y1: y, x2: left + width, y2: y + height };
            surface.blend(rect, color, |px, py| {
                glyph.pixel((px - left) as usize, (py - y) as usize).unwrap_or(0)
            });
        }
    }
}
