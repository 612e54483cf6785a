// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides a frame into overlapping tiles.
//!
//! In: the sizes of the frame and of a tile, and the overlap. Out: tiles row by row, as SAHI (`get_slice_bboxes`) makes
//! them: tiles are `size - floor(size x overlap)` pixels apart, and the last tile of a row or column is shifted back to
//! the frame's edge.

use super::FrameRegion;

/// The greatest overlap of two tiles, as a fraction of a tile's side.
pub const MAX_OVERLAP: f64 = 0.9;

/// The greatest number of tiles of a frame.
pub const MAX_TILES: usize = 4096;

/// Returns the tiles of a frame, or `None` if there are more than [`MAX_TILES`]. A tile that is larger than the frame is
/// limited to it. `overlap` is from 0 to [`MAX_OVERLAP`].
pub fn tiles(frame: [u32; 2], tile: [u32; 2], overlap: f64) -> Option<Vec<FrameRegion>> {
    let [columns, rows] = [0, 1].map(|axis| starts(frame[axis], tile[axis], overlap));
    if columns.len().saturating_mul(rows.len()) > MAX_TILES {
        return None;
    }
    let [width, height] = [0, 1].map(|axis| tile[axis].min(frame[axis]));
    let row =
        |&top: &u32| columns.iter().map(move |&left| FrameRegion { left, top, width, height });
    Some(rows.iter().flat_map(row).collect())
}

/// Returns the first pixel of each tile along a side of the frame. The length is limited to [`MAX_TILES`] + 1.
fn starts(side: u32, tile: u32, overlap: f64) -> Vec<u32> {
    let step = (tile - (f64::from(tile) * overlap) as u32).max(1);
    let last = side.saturating_sub(tile);
    let before_last = (0..last).step_by(step as usize).take(MAX_TILES);
    before_last.chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(frame: [u32; 2], tile: [u32; 2], overlap: f64) -> Vec<[u32; 4]> {
        let edges = |region: FrameRegion| {
            let FrameRegion { left, top, width, height } = region;
            [left, top, left + width, top + height]
        };
        tiles(frame, tile, overlap).unwrap().into_iter().map(edges).collect()
    }

    #[test]
    fn the_last_tile_of_a_row_is_shifted_back_to_the_edge() {
        let expected = [[0, 0, 640, 640], [512, 0, 1152, 640], [640, 0, 1280, 640]];
        assert_eq!(edges([1280, 640], [640, 640], 0.2), expected);
        assert_eq!(edges([1280, 640], [640, 640], 0.0), [[0, 0, 640, 640], [640, 0, 1280, 640]]);
    }

    #[test]
    fn a_tile_larger_than_the_frame_is_the_frame() {
        assert_eq!(edges([320, 240], [640, 640], 0.2), [[0, 0, 320, 240]]);
        assert_eq!(edges([640, 640], [640, 640], 0.9), [[0, 0, 640, 640]]);
    }

    #[test]
    fn too_many_tiles_are_refused() {
        assert_eq!(tiles([65_535, 65_535], [1, 1], 0.0), None);
        assert!(tiles([64, 64], [1, 1], 0.0).is_some());
    }
}
