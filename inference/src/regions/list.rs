// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the property `region-list`.
//!
//! In: text such as `0,0,640,480;640,200,640,480`: left, top, width and height of each region in pixels of the frame.
//! Out: the regions.

use nmsfilter_core::geometry::FrameRegion;

/// The greatest number of regions in a list.
pub const MAX_LISTED: usize = 1024;

/// Parses the text.
///
/// # Errors
/// If the text has no region or too many, or a region is not four whole numbers of which the last two are above 0. The
/// error says what was expected and what came.
pub fn parse(text: &str) -> Result<Vec<FrameRegion>, String> {
    let regions: Result<Vec<FrameRegion>, String> = text
        .split(';')
        .filter(|region| !region.trim().is_empty())
        .map(|region| {
            let number = |text: &str| text.trim().parse().ok();
            let numbers: Option<Vec<u32>> = region.split(',').map(number).collect();
            match numbers.as_deref() {
                Some(&[left, top, width, height]) if width > 0 && height > 0 => {
                    Ok(FrameRegion { left, top, width, height })
                }
                _ => Err(format!(
                    "expected left,top,width,height of each region in pixels, separated by semicolons; got \
                     {region:?}"
                )),
            }
        })
        .collect();
    match regions?.as_slice() {
        [] => Err("expected at least one region, as in 0,0,640,480; got none".to_owned()),
        regions if regions.len() > MAX_LISTED => {
            Err(format!("expected at most {MAX_LISTED} regions, got {}", regions.len()))
        }
        regions => Ok(regions.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_separated_by_semicolons() {
        let region = |left, top, width, height| FrameRegion { left, top, width, height };
        assert_eq!(parse("0,0,640,480"), Ok(vec![region(0, 0, 640, 480)]));
        let expected = Ok(vec![region(1, 2, 3, 4), region(5, 6, 7, 8)]);
        assert_eq!(parse(" 1, 2,3,4 ; 5,6,7,8;"), expected);
    }

    #[test]
    fn other_text_is_an_error_that_shows_it() {
        for wrong in ["1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a", "1,2,3,4;x"] {
            let error = parse(wrong).unwrap_err();
            let shown = wrong.rsplit(';').next().unwrap();
            assert!(error.contains(&format!("{shown:?}")), "{error}");
        }
        assert!(parse(" ; ").unwrap_err().contains("got none"));
        assert!(parse(&"0,0,1,1;".repeat(MAX_LISTED + 1)).unwrap_err().contains("at most 1024"));
    }
}
