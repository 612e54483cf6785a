// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a frame that nvinfer cuts out for an object.
//!
//! In: the rectangle of an object. Out: whole pixels of the frame.

use nmsfilter_core::geometry::FrameRegion;

/// Returns the pixels that nvinfer (`get_converted_buffer` in gstnvinfer.cpp) cuts out of a frame of `frame` pixels for
/// the rectangle `rect` (left, top, width, height), with `process-mode=2`: whole pixels, the left and the upper edge
/// rounded up to even numbers, width and height rounded down to even numbers. nvinfer clips nothing.
///
/// Returns `None` if these pixels are not inside the frame, or if there are none: what nvinfer scales then is not known.
pub(super) fn cropped(rect: [f32; 4], frame: [u32; 2]) -> Option<FrameRegion> {
    let [left, top, width, height] = rect.map(whole);
    let up = |edge: u32| edge.checked_next_multiple_of(2);
    let down = |side: u32| side & !1;
    let region = FrameRegion {
        left: up(left?)?,
        top: up(top?)?,
        width: down(width?),
        height: down(height?),
    };
    region.is_inside(frame).then_some(region)
}

/// Converts a number as C does. `None` for numbers whose conversion C does not define, NaN included.
fn whole(number: f32) -> Option<u32> {
    (number > -1.0 && number < u32::MAX as f32).then_some(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_rounded_up_and_sides_down_to_even_numbers() {
        for (rect, expected) in [
            ([10.0, 20.0, 30.0, 40.0], [10, 20, 30, 40]),
            ([10.9, 20.1, 31.9, 41.2], [10, 20, 30, 40]),
            ([11.0, 21.9, 30.0, 40.0], [12, 22, 30, 40]),
            ([-0.9, 0.0, 640.5, 3.99], [0, 0, 640, 2]),
            ([1.0, 1.0, 639.0, 479.0], [2, 2, 638, 478]),
        ] {
            let [left, top, width, height] = expected;
            let expected = FrameRegion { left, top, width, height };
            assert_eq!(cropped(rect, [640, 480]), Some(expected), "{rect:?}");
        }
    }

    #[test]
    fn parts_outside_the_frame_and_parts_without_pixels_are_not_known() {
        for rect in [
            [-1.0, 0.0, 10.0, 10.0],
            [0.0, -5.0, 10.0, 10.0],
            [632.0, 0.0, 10.0, 10.0],
            [0.0, 471.0, 10.0, 10.0],
            [0.0, 0.0, 1.9, 10.0],
            [0.0, 0.0, 10.0, 0.0],
            [f32::NAN, 0.0, 10.0, 10.0],
            [0.0, 0.0, f32::INFINITY, 10.0],
            [4_294_967_040.0, 0.0, 10.0, 10.0],
        ] {
            assert_eq!(cropped(rect, [640, 480]), None, "{rect:?}");
        }
        // An object that fills a frame of odd sides from an odd column on.
        assert_eq!(cropped([1.0, 0.0, 640.0, 480.0], [641, 481]), None);
    }
}
