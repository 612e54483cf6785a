// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a video frame is fitted into the model's input.
//!
//! In: the sizes of the frame and of the model's input, and the [`FitRule`]. Out: a [`Fit`] in whole pixels:
//! which part of the frame is scaled, to which size, and its position in the model's input. Elements that
//! scale frames and elements that map boxes back to the frame use equal numbers.
//!
//! Programs round differently where sides do not divide. A scaled side or a border that is one pixel off moves
//! every box, so the rule has the [`Rounding`] of the program that scaled the frame.

use crate::named::named;

named! {
    /// How a video frame is scaled to the model's input.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Letterbox {
        /// Each axis by its own ratio, without borders.
        #[default]
        None = 0 "none",
        /// Both axes by one ratio, with borders on both sides.
        Center = 1 "center",
        /// Both axes by one ratio, with a border on the right or at the bottom.
        TopLeft = 2 "top-left",
    }
}

/// How the sides of a letterboxed frame become whole pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// All pixels of the frame are scaled. The shorter side of the scaled frame is rounded as the programs do with which
    /// models are trained and evaluated: to the nearest pixel (the even one of two) for [`Letterbox::Center`], as
    /// Ultralytics' `LetterBox`, and down for [`Letterbox::TopLeft`], as YOLOX's `preproc`.
    #[default]
    Exact,
    /// nvinfer's rule (DeepStream): the sides of the frame are rounded down to even numbers, so that the last row or
    /// column of a frame with an odd side is not scaled, and the shorter side of the scaled frame is rounded down.
    EvenSides,
}

/// How frames are fitted into the model's input, to the pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FitRule {
    /// Where the borders are.
    pub letterbox: Letterbox,
    /// How sides become whole pixels.
    pub rounding: Rounding,
    /// The width of the frame's pixels divided by their height, as numerator and denominator. The aspect ratio that
    /// a letterbox keeps is the displayed one. nvinfer ignores it, and so does [`Rounding::EvenSides`].
    pub pixel_aspect_ratio: [u32; 2],
}

/// The frame in the model's input, in whole pixels: width and height, or left and top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fit {
    /// The size of the part of the frame that is scaled. It begins at the upper left corner of the frame.
    pub source: [u32; 2],
    /// The size to which that part is scaled.
    pub size: [u32; 2],
    /// The position of the scaled part in the model's input.
    pub offset: [u32; 2],
}

impl From<Letterbox> for FitRule {
    /// Square pixels, and [`Rounding::Exact`].
    fn from(letterbox: Letterbox) -> Self {
        Self { letterbox, rounding: Rounding::default(), pixel_aspect_ratio: [1; 2] }
    }
}

impl FitRule {
    /// With this rounding.
    #[must_use]
    pub fn with_rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// With this ratio of the width of the frame's pixels to their height. A number of 0 counts as 1.
    #[must_use]
    pub fn with_pixel_aspect_ratio(self, ratio: [u32; 2]) -> Self {
        Self { pixel_aspect_ratio: ratio.map(|number| number.max(1)), ..self }
    }

    /// The fit of a frame of `frame` pixels into a model's input of `model` pixels (width, height). A side of
    /// 0 counts as 1.
    ///
    /// Without a letterbox the whole frame fills the model's input. The border at the left or at the top is half of
    /// the remaining pixels, rounded down. No side becomes less than 1 pixel.
    pub fn fit(self, frame: [u32; 2], model: [u32; 2]) -> Fit {
        let [frame, model] = [frame, model].map(|size| size.map(|side| side.max(1)));
        if self.letterbox == Letterbox::None {
            return Fit { source: frame, size: model, offset: [0; 2] };
        }
        let (source, size) = match self.rounding {
            Rounding::Exact => (frame, self.exact_size(frame, model)),
            Rounding::EvenSides => {
                let even = frame.map(|side| (side & !1).max(1));
                (even, rounded_down(even, model))
            }
        };
        let offset = match self.letterbox {
            Letterbox::Center => [0, 1].map(|axis| (model[axis] - size[axis]) / 2),
            _ => [0; 2],
        };
        Fit { source, size, offset }
    }

    /// The size of the frame in the model's input by [`Rounding::Exact`], in double precision and in the order of operations of
    /// those programs: where a product should be a whole number and is less by its rounding, YOLOX's is one pixel less.
    fn exact_size(self, frame: [u32; 2], model: [u32; 2]) -> [u32; 2] {
        let [width, height] = self.pixel_aspect_ratio.map(f64::from);
        let shown = [f64::from(frame[0]) * width / height, f64::from(frame[1])];
        let ratio = f64::min(f64::from(model[0]) / shown[0], f64::from(model[1]) / shown[1]);
        [0, 1].map(|axis| {
            let side = shown[axis] * ratio;
            let whole = match self.letterbox {
                Letterbox::Center => side.round_ties_even(),
                _ => side.floor(),
            };
            whole.clamp(1.0, f64::from(model[axis])) as u32
        })
    }
}

/// The size of a frame of even sides in the model's input.
fn rounded_down(frame: [u32; 2], model: [u32; 2]) -> [u32; 2] {
    // The products of two 32-bit numbers fit 64 bits, and the quotients are at most a side of the model.
    let [[frame_width, frame_height], [width, height]] =
        [frame, model].map(|size| size.map(u64::from));
    let size = if width * frame_height <= height * frame_width {
        [width, (width * frame_height / frame_width).max(1)]
    } else {
        [(height * frame_width / frame_height).max(1), height]
    };
    size.map(|side| side as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(rule: impl Into<FitRule>, frame: [u32; 2], model: [u32; 2]) -> [[u32; 2]; 3] {
        let Fit { source, size, offset } = rule.into().fit(frame, model);
        [source, size, offset]
    }

    fn even_sides(letterbox: Letterbox) -> FitRule {
        FitRule::from(letterbox).with_rounding(Rounding::EvenSides)
    }

    #[test]
    fn without_letterbox_the_whole_frame_fills_the_models_input() {
        let expected = [[1921, 1081], [640, 416], [0, 0]];
        assert_eq!(fit(Letterbox::None, [1921, 1081], [640, 416]), expected);
        assert_eq!(fit(even_sides(Letterbox::None), [1921, 1081], [640, 416]), expected);
    }

    #[test]
    fn a_wide_frame_fills_the_width_and_a_tall_frame_the_height() {
        let square = [640, 640];
        for rule in [Letterbox::Center.into(), even_sides(Letterbox::Center)] {
            let wide = fit(rule, [1920, 1080], square);
            assert_eq!(wide, [[1920, 1080], [640, 360], [0, 140]]);
            let tall = fit(rule, [1080, 1920], square);
            assert_eq!(tall, [[1080, 1920], [360, 640], [140, 0]]);
            let same = fit(rule, [1280, 1280], square);
            assert_eq!(same, [[1280, 1280], [640, 640], [0, 0]]);
        }
    }

    #[test]
    fn top_left_has_no_offset() {
        let found = fit(Letterbox::TopLeft, [1920, 1080], [640, 640]);
        assert_eq!(found, [[1920, 1080], [640, 360], [0, 0]]);
    }

    #[test]
    fn all_pixels_of_a_frame_with_odd_sides_are_scaled() {
        // 640 x 427: the last row counts, and the border is 106, not 107.
        let found = fit(Letterbox::Center, [640, 427], [640, 640]);
        assert_eq!(found, [[640, 427], [640, 427], [0, 106]]);
        // 640 * 479 / 639 = 479.7.
        let found = fit(Letterbox::Center, [639, 479], [640, 640]);
        assert_eq!(found, [[639, 479], [640, 480], [0, 80]]);
        let found = fit(Letterbox::TopLeft, [639, 479], [640, 640]);
        assert_eq!(found, [[639, 479], [640, 479], [0, 0]]);
        // 640 * 721 / 1280 = 360.5, and 640 * 723 / 1280 = 361.5.
        assert_eq!(fit(Letterbox::Center, [1280, 721], [640, 640])[1], [640, 360]);
        assert_eq!(fit(Letterbox::Center, [1280, 723], [640, 640])[1], [640, 362]);
    }

    #[test]
    fn nvinfers_frame_is_rounded_to_even_sides_and_scaled_side_and_border_are_truncated() {
        // 416 * 332 / 1000 = 138.112; (416 - 138) / 2 = 139.
        let found = fit(even_sides(Letterbox::Center), [1000, 333], [416, 416]);
        assert_eq!(found, [[1000, 332], [416, 138], [0, 139]]);
        // 640 * 478 / 638 = 479.498; (640 - 479) / 2 = 80.5.
        let found = fit(even_sides(Letterbox::Center), [639, 479], [640, 640]);
        assert_eq!(found, [[638, 478], [640, 479], [0, 80]]);
    }

    #[test]
    fn the_displayed_aspect_ratio_is_kept() {
        // PAL in 16:9: 720x576 pixels of 64/45 are shown as 1024x576.
        let wide = FitRule::from(Letterbox::Center).with_pixel_aspect_ratio([64, 45]);
        assert_eq!(fit(wide, [720, 576], [640, 640]), [[720, 576], [640, 360], [0, 140]]);
        let tall = FitRule::from(Letterbox::TopLeft).with_pixel_aspect_ratio([1, 2]);
        assert_eq!(fit(tall, [640, 640], [640, 640]), [[640, 640], [320, 640], [0, 0]]);
        // nvinfer does not know it, and without a letterbox there is no ratio to keep.
        let ignored = even_sides(Letterbox::Center).with_pixel_aspect_ratio([2, 1]);
        assert_eq!(fit(ignored, [640, 640], [640, 640])[1], [640, 640]);
        let ignored = FitRule::from(Letterbox::None).with_pixel_aspect_ratio([2, 1]);
        assert_eq!(fit(ignored, [640, 640], [640, 320])[1], [640, 320]);
    }

    #[test]
    fn no_side_is_less_than_a_pixel() {
        let found = fit(even_sides(Letterbox::Center), [1, 1], [3, 2]);
        assert_eq!(found, [[1, 1], [2, 2], [0, 0]]);
        for rule in [Letterbox::Center.into(), even_sides(Letterbox::Center)] {
            let found = fit(rule, [65_536, 2], [320, 320]);
            assert_eq!(found, [[65_536, 2], [320, 1], [0, 159]]);
        }
        for letterbox in Letterbox::ALL {
            let extreme = FitRule::from(letterbox).with_pixel_aspect_ratio([0, u32::MAX]);
            for rule in [letterbox.into(), even_sides(letterbox)] {
                assert_eq!(fit(rule, [0, 0], [0, 0]), [[1, 1], [1, 1], [0, 0]]);
                let [source, size, offset] = fit(rule, [u32::MAX; 2], [u32::MAX; 2]);
                assert!(source[0] >= u32::MAX - 1 && size == [u32::MAX; 2] && offset == [0; 2]);
            }
            assert!(fit(extreme, [u32::MAX; 2], [u32::MAX; 2])[1][0] >= 1);
        }
    }

    /// nvinfer's rules in floating point, as nvinfer computes them.
    fn nvinfer(letterbox: Letterbox, frame: [u32; 2], model: [u32; 2]) -> [[f64; 2]; 3] {
        let even = frame.map(|side| f64::from((side & !1).max(1)));
        let net = model.map(f64::from);
        let height_at_full_width = net[0] * even[1] / even[0];
        let size = if height_at_full_width <= net[1] {
            [net[0], height_at_full_width.trunc().max(1.0)]
        } else {
            [(net[1] * even[0] / even[1]).trunc().max(1.0), net[1]]
        };
        let border = [0, 1].map(|axis| ((net[axis] - size[axis]) / 2.0).trunc());
        [even, size, if letterbox == Letterbox::Center { border } else { [0.0; 2] }]
    }

    /// Ultralytics' rules: the smaller of both ratios, sides rounded to the nearest pixel, and borders of
    /// `round(half - 0.1)`.
    fn ultralytics(frame: [u32; 2], model: [u32; 2]) -> [[f64; 2]; 3] {
        let [frame, model] = [frame, model].map(|size| size.map(f64::from));
        let ratio = f64::min(model[0] / frame[0], model[1] / frame[1]);
        let size = frame.map(|side| (side * ratio).round_ties_even());
        let border = [0, 1].map(|axis| ((model[axis] - size[axis]) / 2.0 - 0.1).round_ties_even());
        [frame, size, border]
    }

    #[test]
    fn integers_give_the_numbers_of_nvinfers_floating_point() {
        let mut rng = fastrand::Rng::with_seed(14);
        for _ in 0..200_000 {
            let letterbox = *rng.choice(&[Letterbox::Center, Letterbox::TopLeft]).unwrap();
            let mut side = |most| if rng.bool() { rng.u32(1..=most) } else { rng.u32(1..=64) };
            let (frame, model) = ([side(70_000), side(70_000)], [side(65_535), side(65_535)]);
            let found = fit(even_sides(letterbox), frame, model).map(|pair| pair.map(f64::from));
            assert_eq!(found, nvinfer(letterbox, frame, model), "{frame:?} {model:?}");
        }
    }

    #[test]
    fn borders_are_those_of_ultralytics() {
        for model in [[640, 640], [320, 320], [416, 416], [640, 384]] {
            for (width, height) in
                (32..1300).step_by(7).flat_map(|w| (32..1300).map(move |h| (w, h)))
            {
                let found = fit(Letterbox::Center, [width, height], model);
                let expected = ultralytics([width, height], model);
                let found = found.map(|pair| pair.map(f64::from));
                assert_eq!(found, expected, "{width}x{height} {model:?}");
            }
        }
    }

    /// Sizes of OpenCV's pictures as Ultralytics' and YOLOX's programs made them. 416 / 770 * 770 is less than 416 in double
    /// precision.
    #[test]
    fn sizes_are_those_of_the_programs() {
        for (letterbox, frame, model, size) in [
            (Letterbox::Center, [712, 770], 416, [385, 416]),
            (Letterbox::Center, [57, 192], 416, [123, 416]),
            (Letterbox::Center, [40_961, 333], 640, [640, 5]),
            (Letterbox::TopLeft, [712, 770], 416, [384, 415]),
            (Letterbox::TopLeft, [1133, 1425], 416, [330, 415]),
            (Letterbox::TopLeft, [500, 333], 416, [416, 277]),
        ] {
            assert_eq!(fit(letterbox, frame, [model; 2])[1], size, "{letterbox:?} {frame:?}");
        }
    }
}
