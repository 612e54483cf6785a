// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the property `region-list`.
//!
//! In: text such as `0,0,640,480;640,200,640,480`: left, top, width and height of each region in pixels of the frame, or
//! `center-square`; empty for no region. Out: the regions.

use nmsfilter_core::geometry::FrameRegion;

/// The greatest number of regions in a list.
pub const MAX_LISTED: usize = 1024;

/// A region of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// A region in pixels of the frame.
    Pixels(FrameRegion),
    /// The largest square in the middle of the frame.
    CenterSquare,
}

impl Listed {
    /// Returns the region's pixels in a frame of this size (width, height), which can be outside of it.
    pub fn pixels(self, frame: [u32; 2]) -> FrameRegion {
        match self {
            Self::Pixels(region) => region,
            Self::CenterSquare => {
                let side = frame[0].min(frame[1]);
                let [left, top] = frame.map(|length| (length - side) / 2);
                FrameRegion { left, top, width: side, height: side }
            }
        }
    }
}

/// Parses the text.
///
/// # Errors
/// If the text has too many regions, or a region is neither a known word nor four whole numbers of which the last two
/// are above 0. The error says what was expected and what came.
pub(super) fn parse(text: &str) -> Result<Vec<Listed>, String> {
    let regions: Result<Vec<Listed>, String> = text
        .split(';')
        .filter(|region| !region.trim().is_empty())
        .map(|region| {
            if region.trim() == "center-square" {
                return Ok(Listed::CenterSquare);
            }
            let number = |text: &str| text.trim().parse().ok();
            let numbers: Option<Vec<u32>> = region.split(',').map(number).collect();
            match numbers.as_deref() {
                Some(&[left, top, width, height]) if width > 0 && height > 0 => {
                    Ok(Listed::Pixels(FrameRegion { left, top, width, height }))
                }
                _ => Err(format!(
                    "expected left,top,width,height of each region in pixels, or center-square, \
                     separated by semicolons; got {region:?}"
                )),
            }
        })
        .collect();
    let regions = regions?;
    if regions.len() > MAX_LISTED {
        return Err(format!("expected at most {MAX_LISTED} regions, got {}", regions.len()));
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_separated_by_semicolons() {
        let region =
            |left, top, width, height| Listed::Pixels(FrameRegion { left, top, width, height });
        assert_eq!(parse("0,0,640,480"), Ok(vec![region(0, 0, 640, 480)]));
        let expected = Ok(vec![region(1, 2, 3, 4), region(5, 6, 7, 8)]);
        assert_eq!(parse(" 1, 2,3,4 ; 5,6,7,8;"), expected);
        let expected = Ok(vec![Listed::CenterSquare, region(1, 2, 3, 4)]);
        assert_eq!(parse(" center-square;1,2,3,4"), expected);
        assert_eq!(parse(" ; "), Ok(vec![]));
    }

    #[test]
    fn the_square_in_the_middle_is_as_long_as_the_short_side() {
        let square = |frame| Listed::CenterSquare.pixels(frame).to_string();
        assert_eq!(square([640, 480]), "80,0,480,480");
        assert_eq!(square([481, 640]), "0,79,481,481");
        assert_eq!(square([7, 7]), "0,0,7,7");
    }

    #[test]
    fn other_text_is_an_error_that_shows_it() {
        for wrong in
            ["1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a", "1,2,3,4;x", "Center-square"]
        {
            let error = parse(wrong).unwrap_err();
            let shown = wrong.rsplit(';').next().unwrap();
            assert!(error.contains(&format!("{shown:?}")), "{error}");
        }
        assert!(parse(&"0,0,1,1;".repeat(MAX_LISTED + 1)).unwrap_err().contains("at most 1024"));
    }
}
