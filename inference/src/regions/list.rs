// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the property `region-list`.
//!
//! In: text such as `0,0,640,480;640,200,640,480`: left, top, width and height of each region in pixels of the frame, or
//! `center-square`; empty for no region. Out: the regions.

use nmsfilter_core::geometry::FrameRegion;

/// The greatest number of regions in a list.
pub const MAX_LISTED: usize = 1024;

/// Parses the text, for frames of this width and height, which regions can exceed.
///
/// # Errors
/// If the text has too many regions, or a region is neither a known word nor four whole numbers of which the last two
/// are above 0. The error says what was expected and what came.
pub(super) fn parse(text: &str, frame: [u32; 2]) -> Result<Vec<FrameRegion>, String> {
    let regions: Result<Vec<FrameRegion>, String> = text
        .split(';')
        .filter(|region| !region.trim().is_empty())
        .map(|region| {
            if region.trim() == "center-square" {
                let side = frame[0].min(frame[1]);
                let [left, top] = frame.map(|length| (length - side) / 2);
                return Ok(FrameRegion { left, top, width: side, height: side });
            }
            let number = |text: &str| text.trim().parse().ok();
            let numbers: Option<Vec<u32>> = region.split(',').map(number).collect();
            match numbers.as_deref() {
                Some(&[left, top, width, height]) if width > 0 && height > 0 => {
                    Ok(FrameRegion { left, top, width, height })
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
        let parse = |text| parse(text, [640, 480]);
        let region = |left, top, width, height| FrameRegion { left, top, width, height };
        assert_eq!(parse("0,0,640,480"), Ok(vec![region(0, 0, 640, 480)]));
        let expected = Ok(vec![region(1, 2, 3, 4), region(5, 6, 7, 8)]);
        assert_eq!(parse(" 1, 2,3,4 ; 5,6,7,8;"), expected);
        let expected = Ok(vec![region(80, 0, 480, 480), region(1, 2, 3, 4)]);
        assert_eq!(parse(" center-square;1,2,3,4"), expected);
        assert_eq!(parse(" ; "), Ok(vec![]));
    }

    #[test]
    fn the_square_in_the_middle_is_as_long_as_the_short_side() {
        let square = |frame| parse("center-square", frame).unwrap()[0].to_string();
        assert_eq!(square([640, 480]), "80,0,480,480");
        assert_eq!(square([481, 640]), "0,79,481,481");
        assert_eq!(square([7, 7]), "0,0,7,7");
    }

    #[test]
    fn other_text_is_an_error_that_shows_it() {
        for wrong in
            ["1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a", "1,2,3,4;x", "Center-square"]
        {
            let error = parse(wrong, [640, 480]).unwrap_err();
            let shown = wrong.rsplit(';').next().unwrap();
            assert!(error.contains(&format!("{shown:?}")), "{error}");
        }
        let error = parse(&"0,0,1,1;".repeat(MAX_LISTED + 1), [1, 1]).unwrap_err();
        assert!(error.contains("at most 1024"), "{error}");
    }
}
