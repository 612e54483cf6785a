// SPDX-License-Identifier: MIT OR Apache-2.0
//! From pixels of the model's input to pixels of the video frame.
//!
//! In: the sizes of the video frame and of the model's input, and how the frame was scaled. Out: boxes in pixels of
//! the frame; and for engines, the visible part of the model's input.

use super::{Bounds, Corners, FitRule, FrameMap, FrameRegion, Letterbox, OrientedBox};

/// The reason why there is no mapping from the model's input to the frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Only one of the width and the height of the model's input is known.
    #[error(
        "the model's input is {0}x{1}; expected both sides, or 0x0 if it has the size of the frame"
    )]
    HalfModel(u32, u32),
    /// The frame is letterboxed, and the size of the model's input is unknown.
    #[error("a letterboxed frame needs the size of the model's input")]
    LetterboxWithoutModel,
    /// The frame has no pixels.
    #[error("the frame is {0}x{1}; expected at least one pixel")]
    NoFrame(u32, u32),
    /// The region has no pixels, or is not inside the frame.
    #[error("the region {region} is not inside the frame of {}x{}; expected left,top,width,height inside it", frame[0], frame[1])]
    RegionOutside {
        /// The region.
        region: FrameRegion,
        /// Width and height of the frame.
        frame: [u32; 2],
    },
}

/// The mapping from pixels of the model's input to pixels of the frame: `frame = (model - offset) / ratio`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    frame: [u32; 2],
    /// The part of the frame that was scaled to the model's input.
    region: FrameRegion,
    model: [u32; 2],
    ratio: [f64; 2],
    offset: [f64; 2],
    visible: Bounds,
}

impl Mapping {
    /// The mapping for a frame of `frame` pixels (width, height) that was scaled to `model` pixels;
    /// a model size of 0, 0 is the size of the frame.
    ///
    /// [`FitRule::fit`] computes the numbers.
    ///
    /// # Errors
    /// If a side of the frame is 0, if only one side of the model's input is 0, or if the frame is
    /// letterboxed and the size of the model's input is 0, 0.
    pub fn new(
        frame: [u32; 2],
        model: [u32; 2],
        rule: impl Into<FitRule>,
    ) -> Result<Self, MappingError> {
        Self::of_region(frame, FrameRegion::whole(frame), model, rule)
    }

    /// The mapping for a region of a frame of `frame` pixels (width, height). The region was cut out of the frame, and
    /// scaled to `model` pixels as if it were a frame; a model size of 0, 0 is the size of the region.
    ///
    /// # Errors
    /// If the region has no pixels or is not inside the frame, and as [`new`](Self::new).
    pub fn of_region(
        frame: [u32; 2],
        region: FrameRegion,
        model: [u32; 2],
        rule: impl Into<FitRule>,
    ) -> Result<Self, MappingError> {
        let rule = rule.into();
        if frame.contains(&0) {
            return Err(MappingError::NoFrame(frame[0], frame[1]));
        }
        if !region.is_inside(frame) {
            return Err(MappingError::RegionOutside { region, frame });
        }
        let model = match (model, rule.letterbox) {
            ([0, 0], Letterbox::None) => region.size(),
            ([0, 0], _) => return Err(MappingError::LetterboxWithoutModel),
            ([w, h], _) if w == 0 || h == 0 => return Err(MappingError::HalfModel(w, h)),
            _ => model,
        };
        let fit = rule.fit(region.size(), model);
        let ratio = [0, 1].map(|axis| f64::from(fit.size[axis]) / f64::from(fit.source[axis]));
        let offset = [0, 1].map(|axis| {
            f64::from(fit.offset[axis]) - ratio[axis] * f64::from(region.origin()[axis])
        });
        let edge = |axis: usize, edge: u32| (offset[axis] + ratio[axis] * f64::from(edge)) as f32;
        let FrameRegion { left, top, width, height } = region;
        let visible = Bounds {
            left: edge(0, left),
            top: edge(1, top),
            right: edge(0, left + width),
            bottom: edge(1, top + height),
        };
        Ok(Self { frame, region, model, ratio, offset, visible })
    }

    /// The mapping for boxes that are in pixels of the frame already: it only clips them to the frame.
    ///
    /// # Errors
    /// If a side of the frame is 0.
    pub fn identity(frame: [u32; 2]) -> Result<Self, MappingError> {
        Self::new(frame, [0; 2], Letterbox::None)
    }

    /// The part of the frame that was scaled to the model's input.
    pub fn region(&self) -> FrameRegion {
        self.region
    }

    /// Width and height of the model's input in pixels.
    pub fn model(&self) -> [f32; 2] {
        self.model.map(|side| side as f32)
    }

    /// Width and height of the model's input in pixels, as [`new`](Self::new) takes them.
    pub fn model_size(&self) -> [u32; 2] {
        self.model
    }

    /// Width and height of the frame in pixels.
    pub fn frame(&self) -> [u32; 2] {
        self.frame
    }

    /// The mapping as engines have it.
    pub fn frame_map(&self) -> FrameMap {
        FrameMap { size: self.frame, ratio: self.ratio, offset: self.offset }
    }

    /// The rectangle of the frame, or of its region, in pixels of the model's input: the part between the borders if
    /// the frame is letterboxed, else the whole input.
    pub fn visible(&self) -> Bounds {
        self.visible
    }

    /// The box in pixels of the frame, clipped to it; `None` if it does not intersect
    /// [`visible`](Self::visible).
    pub fn frame_box(&self, Corners { x1, y1, x2, y2 }: Corners) -> Option<Corners> {
        if !self.visible().intersects([x1, y1, x2, y2]) {
            return None;
        }
        let (x1, x2) = self.side(x1, x2, 0);
        let (y1, y2) = self.side(y1, y2, 1);
        Some(Corners { x1, y1, x2, y2 })
    }

    /// A point, in pixels of the frame. It can be outside the frame.
    pub fn frame_point(&self, point: [f32; 2]) -> [f32; 2] {
        [0, 1].map(|axis| ((f64::from(point[axis]) - self.offset[axis]) / self.ratio[axis]) as f32)
    }

    /// An oriented box, in pixels of the frame. It can be partly outside the frame. If the frame was stretched, the image of
    /// the rectangle is a parallelogram; the result has its center, the lengths of its sides, and the direction of its
    /// width.
    pub fn frame_oriented_box(&self, of: &OrientedBox) -> OrientedBox {
        let center = self.frame_point(of.center);
        let [rx, ry] = self.ratio;
        if rx == ry {
            let size = of.size.map(|side| (f64::from(side) / rx) as f32);
            return OrientedBox { center, size, angle: of.angle };
        }
        let (sin, cos) = f64::from(of.angle).sin_cos();
        let (along, across) = ([cos / rx, sin / ry], [-sin / rx, cos / ry]);
        let [width, height] = of.size.map(f64::from);
        OrientedBox {
            center,
            size: [
                (width * along[0].hypot(along[1])) as f32,
                (height * across[0].hypot(across[1])) as f32,
            ],
            angle: along[1].atan2(along[0]) as f32,
        }
    }

    /// The edges of a box along an axis, in pixels of the frame, clipped to it. The second edge is
    /// greater than the first, even if rounding would make them equal.
    fn side(&self, low: f32, high: f32, axis: usize) -> (f32, f32) {
        let limit = self.frame[axis] as f32;
        let to_frame = |value: f32| {
            let value = (f64::from(value) - self.offset[axis]) / self.ratio[axis];
            value.clamp(0.0, f64::from(self.frame[axis])) as f32
        };
        let low = to_frame(low).min(limit.next_down());
        (low, to_frame(high).max(low.next_up()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rounding;

    /// The edges of the box in the frame; `None` if it is outside.
    fn to_frame(mapping: &Mapping, [x1, y1, x2, y2]: [f32; 4]) -> Option<[f32; 4]> {
        let found = mapping.frame_box(Corners { x1, y1, x2, y2 });
        found.map(|Corners { x1, y1, x2, y2 }| [x1, y1, x2, y2])
    }

    #[test]
    fn without_a_model_size_coordinates_are_unchanged() {
        let mapping = Mapping::new([1920, 1080], [0, 0], Letterbox::None).unwrap();
        assert_eq!(to_frame(&mapping, [10.0, 20.0, 30.0, 40.0]), Some([10.0, 20.0, 30.0, 40.0]));
    }

    #[test]
    fn a_stretched_frame_has_a_ratio_for_each_axis() {
        let mapping = Mapping::new([1280, 480], [640, 480], Letterbox::None).unwrap();
        assert_eq!(to_frame(&mapping, [10.0, 20.0, 30.0, 40.0]), Some([20.0, 20.0, 60.0, 40.0]));
    }

    #[test]
    fn a_region_is_mapped_as_a_frame_and_then_moved_to_its_origin() {
        let region = FrameRegion { left: 600, top: 300, width: 320, height: 180 };
        let mapping =
            Mapping::of_region([1920, 1080], region, [640, 640], Letterbox::Center).unwrap();
        // The scaled region is 640x360, with a border of 140 rows above it.
        let found = to_frame(&mapping, [0.0, 140.0, 640.0, 500.0]);
        assert_eq!(found, Some([600.0, 300.0, 920.0, 480.0]));
        // A box can reach beyond the region, but is clipped to the frame.
        assert_eq!(
            to_frame(&mapping, [-200.0, 140.0, 64.0, 158.0]),
            Some([500.0, 300.0, 632.0, 309.0])
        );
        // A box in the border is not in the region, although it is in the frame.
        assert_eq!(to_frame(&mapping, [0.0, 100.0, 64.0, 140.0]), None);
        let whole = FrameRegion::whole([1920, 1080]);
        assert_eq!(
            Mapping::of_region([1920, 1080], whole, [640, 640], Letterbox::Center),
            Mapping::new([1920, 1080], [640, 640], Letterbox::Center),
        );
    }

    #[test]
    fn a_region_outside_the_frame_is_an_error() {
        let outside = |left, top, width, height| {
            let region = FrameRegion { left, top, width, height };
            Mapping::of_region([100, 50], region, [640, 640], Letterbox::None).unwrap_err()
        };
        for error in [
            outside(0, 0, 0, 50),
            outside(1, 0, 100, 50),
            outside(0, 1, 100, 50),
            outside(u32::MAX, 0, 1, 1),
        ] {
            assert!(matches!(error, MappingError::RegionOutside { .. }), "{error:?}");
        }
    }

    #[test]
    fn centered_borders_are_subtracted_before_scaling() {
        // 1920x1080 in 640x640: the scaled frame is 640x360, with a border of 140 rows above it.
        let mapping = Mapping::new([1920, 1080], [640, 640], Letterbox::Center).unwrap();
        assert_eq!(
            to_frame(&mapping, [0.0, 140.0, 640.0, 500.0]),
            Some([0.0, 0.0, 1920.0, 1080.0])
        );
    }

    #[test]
    fn top_left_letterboxing_has_no_offset() {
        let mapping = Mapping::new([1920, 1080], [640, 640], Letterbox::TopLeft).unwrap();
        assert_eq!(to_frame(&mapping, [0.0, 0.0, 320.0, 180.0]), Some([0.0, 0.0, 960.0, 540.0]));
    }

    /// Returns nvinfer's rule.
    fn even_sides(letterbox: Letterbox) -> FitRule {
        FitRule::from(letterbox).with_rounding(Rounding::EvenSides)
    }

    #[test]
    fn a_frame_with_an_odd_side_is_mapped_by_the_rounding_of_the_program_that_scaled_it() {
        // In 416x416 the scaled frame is 416 x round(138.528), with a border of 138 above it.
        let mapping = Mapping::new([1000, 333], [416, 416], Letterbox::Center).unwrap();
        let found = to_frame(&mapping, [208.0, 138.0, 416.0, 277.0]);
        assert_eq!(found, Some([500.0, 0.0, 1000.0, 333.0]));
        // nvinfer rounds the frame to 1000x332; in 416x416 it is 416 x trunc(138.112), with a border of
        // 139 above it.
        let rule = even_sides(Letterbox::Center);
        let mapping = Mapping::new([1000, 333], [416, 416], rule).unwrap();
        let found = to_frame(&mapping, [208.0, 139.0, 416.0, 208.0]);
        let expected = [500.0, 0.0, 1000.0, (69.0 * 332.0 / 138.0) as f32];
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_frame_whose_pixels_are_not_square_has_a_ratio_for_each_axis() {
        // 640x320 pixels of 1/2 are shown as 320x320.
        let rule = FitRule::from(Letterbox::Center).with_pixel_aspect_ratio([1, 2]);
        let mapping = Mapping::new([640, 320], [640, 640], rule).unwrap();
        let found = to_frame(&mapping, [0.0, 0.0, 320.0, 640.0]);
        assert_eq!(found, Some([0.0, 0.0, 320.0, 320.0]));
    }

    /// The corners of an oriented box, in the order of the angle.
    fn corners(oriented: &OrientedBox) -> [[f64; 2]; 4] {
        let (sin, cos) = f64::from(oriented.angle).sin_cos();
        let [x, y] = oriented.center.map(f64::from);
        let [width, height] = oriented.size.map(|side| f64::from(side) / 2.0);
        [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]].map(|[right, down]| {
            let (along, across) = (right * width, down * height);
            [x + along * cos - across * sin, y + along * sin + across * cos]
        })
    }

    /// Stretching maps the middles of a rectangle's sides to the middles of the parallelogram's sides.
    #[test]
    fn an_oriented_box_in_a_stretched_frame_keeps_the_images_of_its_axes() {
        let mapping = Mapping::new([1280, 240], [640, 480], Letterbox::None).unwrap();
        for angle in [0.0, 0.3, 1.2, 2.5, -0.7] {
            let oriented = OrientedBox { center: [300.0, 200.0], size: [80.0, 20.0], angle };
            let found = mapping.frame_oriented_box(&oriented);
            let image = corners(&oriented).map(|[x, y]| [x * 2.0, y / 2.0]);
            let length = |a: [f64; 2], b: [f64; 2]| f64::hypot(b[0] - a[0], b[1] - a[1]);
            let direction = f64::atan2(image[1][1] - image[0][1], image[1][0] - image[0][0]);
            assert_eq!(found.center, [600.0, 100.0]);
            let near = |a: f64, b: f64| (a - b).abs() < 1e-4 * b.abs().max(1.0);
            assert!(
                near(f64::from(found.size[0]), length(image[0], image[1])),
                "{angle} {found:?}"
            );
            assert!(
                near(f64::from(found.size[1]), length(image[1], image[2])),
                "{angle} {found:?}"
            );
            assert!(near(f64::from(found.angle), direction), "{angle} {found:?} {direction}");
        }
    }

    #[test]
    fn an_oriented_box_in_a_frame_of_one_ratio_keeps_its_angle() {
        let mapping = Mapping::new([1280, 960], [640, 480], Letterbox::None).unwrap();
        let oriented = OrientedBox { center: [300.0, 200.0], size: [80.0, 20.0], angle: 0.3 };
        let found = mapping.frame_oriented_box(&oriented);
        let expected = OrientedBox { center: [600.0, 400.0], size: [160.0, 40.0], angle: 0.3 };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tall_frame_fills_the_height() {
        // 1080x1920 in 640x640: 360x640, with a border of 140 columns on the left.
        let mapping = Mapping::new([1080, 1920], [640, 640], Letterbox::Center).unwrap();
        assert_eq!(
            to_frame(&mapping, [140.0, 0.0, 500.0, 640.0]),
            Some([0.0, 0.0, 1080.0, 1920.0])
        );
    }

    #[test]
    fn boxes_are_clipped_and_boxes_outside_the_frame_give_none() {
        let mapping = Mapping::new([100, 50], [0, 0], Letterbox::None).unwrap();
        assert_eq!(to_frame(&mapping, [-10.0, -1e9, 1e9, 20.0]), Some([0.0, 0.0, 100.0, 20.0]));
        assert_eq!(to_frame(&mapping, [100.0, 0.0, 110.0, 10.0]), None);
        assert_eq!(to_frame(&mapping, [0.0, -10.0, 110.0, 0.0]), None);
    }

    #[test]
    fn visible_is_the_scaled_frame_in_the_models_input() {
        let visible = |frame, model, letterbox| {
            let Bounds { left, top, right, bottom } =
                Mapping::new(frame, model, letterbox).unwrap().visible();
            [left, top, right, bottom]
        };
        assert_eq!(visible([1920, 1080], [0, 0], Letterbox::None), [0.0, 0.0, 1920.0, 1080.0]);
        assert_eq!(visible([1921, 1081], [640, 416], Letterbox::None), [0.0, 0.0, 640.0, 416.0]);
        let square = [640, 640];
        assert_eq!(visible([1920, 1080], square, Letterbox::Center), [0.0, 140.0, 640.0, 500.0]);
        assert_eq!(visible([1920, 1080], square, Letterbox::TopLeft), [0.0, 0.0, 640.0, 360.0]);
        assert_eq!(visible([1080, 1920], square, Letterbox::Center), [140.0, 0.0, 500.0, 640.0]);
        assert_eq!(visible([1000, 333], [416, 416], Letterbox::Center), [0.0, 138.0, 416.0, 277.0]);
        // The last row of a frame with an odd height is visible although nvinfer does not scale it: 138 rows for
        // 332 rows of the frame, and more for row 333.
        let rule = even_sides(Letterbox::Center);
        let bounds = Mapping::new([1000, 333], [416, 416], rule).unwrap().visible();
        assert_eq!((bounds.top, bounds.bottom), (139.0, (139.0 + 333.0 * 138.0 / 332.0) as f32));
    }

    /// Also if rounding makes both edges equal in the frame.
    #[test]
    fn a_box_gives_a_region_if_and_only_if_it_intersects_the_visible_rectangle() {
        let mut rng = fastrand::Rng::with_seed(4);
        let mut regions = 0;
        for _ in 0..20_000 {
            let mut side = |most| rng.u32(1..most);
            let (frame, model) = ([side(8000), side(8000)], [side(2000), side(2000)]);
            let letterbox =
                *rng.choice(&[Letterbox::None, Letterbox::Center, Letterbox::TopLeft]).unwrap();
            let rounding = *rng.choice(&[Rounding::Exact, Rounding::EvenSides]).unwrap();
            let rule = FitRule::from(letterbox).with_rounding(rounding);
            let mapping = Mapping::new(frame, model, rule).unwrap();
            let visible = mapping.visible();
            // Near an edge or anywhere, a single ulp or up to 100 pixels long.
            let mut edges = |low: f32, high: f32| {
                let between = low + rng.f32() * (high - low);
                let at = *rng.choice(&[low, high, between]).unwrap();
                let from = match rng.u32(0..4) {
                    0 => at,
                    1 => at.next_down(),
                    2 => at.next_up(),
                    _ => at - rng.f32() * 100.0,
                };
                (from, if rng.bool() { from.next_up() } else { from + 0.01 + rng.f32() * 100.0 })
            };
            let (x1, x2) = edges(visible.left, visible.right);
            let (y1, y2) = edges(visible.top, visible.bottom);
            let found = to_frame(&mapping, [x1, y1, x2, y2]);
            let intersects = visible.intersects([x1, y1, x2, y2]);
            assert_eq!(found.is_some(), intersects, "{mapping:?} {:?}", (x1, y1, x2, y2));
            if let Some([x1, y1, x2, y2]) = found {
                let [w, h] = frame.map(|side| side as f32);
                assert!(0.0 <= x1 && x1 < x2 && x2 <= w, "{mapping:?} {x1} {x2}");
                assert!(0.0 <= y1 && y1 < y2 && y2 <= h, "{mapping:?} {y1} {y2}");
                regions += 1;
            }
        }
        assert!((5_000..15_000).contains(&regions), "{regions}");
    }

    #[test]
    fn only_one_side_of_the_model_size_is_an_error() {
        let error = Mapping::new([100, 50], [640, 0], Letterbox::None).unwrap_err();
        assert_eq!(error, MappingError::HalfModel(640, 0));
    }

    #[test]
    fn letterbox_needs_the_models_size() {
        let error = Mapping::new([100, 50], [0, 0], Letterbox::Center).unwrap_err();
        assert_eq!(error, MappingError::LetterboxWithoutModel);
    }
}
