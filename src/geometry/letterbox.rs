// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a video frame is fitted into the model's input.
//!
//! In: the sizes of the frame and of the model's input, and the [`Letterbox`]. Out: a [`Fit`] in whole pixels:
//! which part of the frame is scaled, to which size, and its position in the model's input. Elements that
//! scale frames and elements that map boxes back to the frame use the same numbers.

/// How a video frame is scaled to the model's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Letterbox {
    /// Each axis by its own ratio, without borders.
    #[default]
    None,
    /// Both axes by the same ratio, with borders on both sides.
    Center,
    /// Both axes by the same ratio, with a border on the right or at the bottom.
    TopLeft,
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

impl Letterbox {
    /// All values.
    pub const ALL: [Self; 3] = [Self::None, Self::Center, Self::TopLeft];

    /// The name: the value of the property `letterbox`, and of the field `letterbox` of a tensor's model.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Center => "center",
            Self::TopLeft => "top-left",
        }
    }

    /// The value with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|letterbox| letterbox.name() == name)
    }

    /// The fit of a frame of `frame` pixels into a model's input of `model` pixels (width, height). A side of
    /// 0 counts as 1.
    ///
    /// Letterboxing is as in nvinfer (DeepStream), to the pixel: the sides of the frame are rounded down to
    /// even numbers, the shorter side of the scaled frame is truncated to whole pixels, and the border at the
    /// left or at the top is half of the remaining pixels, rounded down. No side becomes less than 1 pixel.
    pub fn fit(self, frame: [u32; 2], model: [u32; 2]) -> Fit {
        let [frame, model] = [frame, model].map(|size| size.map(|side| side.max(1)));
        if self == Self::None {
            return Fit { source: frame, size: model, offset: [0; 2] };
        }
        let source = frame.map(|side| (side & !1).max(1));
        // The products of two 32-bit numbers fit 64 bits, and the quotients are at most a side of the model.
        let [[frame_width, frame_height], [width, height]] =
            [source, model].map(|size| size.map(u64::from));
        let size = if width * frame_height <= height * frame_width {
            [width, (width * frame_height / frame_width).max(1)]
        } else {
            [(height * frame_width / frame_height).max(1), height]
        };
        let size = size.map(|side| side as u32);
        let offset = match self {
            Self::Center => [0, 1].map(|axis| (model[axis] - size[axis]) / 2),
            _ => [0; 2],
        };
        Fit { source, size, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(letterbox: Letterbox, frame: [u32; 2], model: [u32; 2]) -> [[u32; 2]; 3] {
        let Fit { source, size, offset } = letterbox.fit(frame, model);
        [source, size, offset]
    }

    #[test]
    fn without_letterbox_the_whole_frame_fills_the_models_input() {
        let expected = [[1921, 1081], [640, 416], [0, 0]];
        assert_eq!(fit(Letterbox::None, [1921, 1081], [640, 416]), expected);
    }

    #[test]
    fn a_wide_frame_fills_the_width_and_a_tall_frame_the_height() {
        let square = [640, 640];
        let wide = fit(Letterbox::Center, [1920, 1080], square);
        assert_eq!(wide, [[1920, 1080], [640, 360], [0, 140]]);
        let tall = fit(Letterbox::Center, [1080, 1920], square);
        assert_eq!(tall, [[1080, 1920], [360, 640], [140, 0]]);
        let same = fit(Letterbox::Center, [1280, 1280], square);
        assert_eq!(same, [[1280, 1280], [640, 640], [0, 0]]);
    }

    #[test]
    fn top_left_has_the_size_of_center_and_no_offset() {
        let found = fit(Letterbox::TopLeft, [1920, 1080], [640, 640]);
        assert_eq!(found, [[1920, 1080], [640, 360], [0, 0]]);
    }

    #[test]
    fn the_frame_is_rounded_to_even_sides_and_scaled_side_and_border_are_truncated() {
        // 416 * 332 / 1000 = 138.112; (416 - 138) / 2 = 139.
        let found = fit(Letterbox::Center, [1000, 333], [416, 416]);
        assert_eq!(found, [[1000, 332], [416, 138], [0, 139]]);
        // 640 * 478 / 638 = 479.498; (640 - 479) / 2 = 80.5.
        let found = fit(Letterbox::Center, [639, 479], [640, 640]);
        assert_eq!(found, [[638, 478], [640, 479], [0, 80]]);
    }

    #[test]
    fn no_side_is_less_than_a_pixel() {
        let found = fit(Letterbox::Center, [1, 1], [3, 2]);
        assert_eq!(found, [[1, 1], [2, 2], [0, 0]]);
        let found = fit(Letterbox::Center, [65_536, 2], [320, 320]);
        assert_eq!(found, [[65_536, 2], [320, 1], [0, 159]]);
        for letterbox in Letterbox::ALL {
            assert_eq!(fit(letterbox, [0, 0], [0, 0]), [[1, 1], [1, 1], [0, 0]]);
            let [source, size, offset] = fit(letterbox, [u32::MAX; 2], [u32::MAX; 2]);
            assert!(source[0] >= u32::MAX - 1 && size == [u32::MAX; 2] && offset == [0; 2]);
        }
    }

    /// The same rules in floating point, as nvinfer computes them.
    fn in_floating_point(letterbox: Letterbox, frame: [u32; 2], model: [u32; 2]) -> [[f64; 2]; 3] {
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

    #[test]
    fn integers_give_the_numbers_of_floating_point() {
        let mut rng = fastrand::Rng::with_seed(14);
        for _ in 0..200_000 {
            let letterbox = *rng.choice(&[Letterbox::Center, Letterbox::TopLeft]).unwrap();
            let mut side = |most| if rng.bool() { rng.u32(1..=most) } else { rng.u32(1..=64) };
            let (frame, model) = ([side(70_000), side(70_000)], [side(65_535), side(65_535)]);
            let found = fit(letterbox, frame, model).map(|pair| pair.map(f64::from));
            assert_eq!(found, in_floating_point(letterbox, frame, model), "{frame:?} {model:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        for letterbox in Letterbox::ALL {
            assert_eq!(Letterbox::from_name(letterbox.name()), Some(letterbox));
        }
        assert_eq!(Letterbox::from_name("centre"), None);
    }
}
