// SPDX-License-Identifier: MIT OR Apache-2.0
//! Details of a region beyond its rectangle: an oriented box, and keypoints.
//!
//! In: the structures `detection` and `keypoints` of a region from any element. Out: shapes
//! to draw. A structure is ignored if fields are missing, have another type, or do not fit
//! together. `nmsfilter` documents the fields in `src/output/roi.rs`.

use gst::glib;
use gstnmsfilter::bindings::strings;
use gstnmsfilter::output::KeypointLayout;

use super::shapes::Position;

/// Minimum visibility of a point that is drawn.
const MIN_VISIBILITY: f32 = 0.5;

/// Greatest magnitude of a coordinate in pixels. Points that are farther away are not drawn.
pub(super) const FARTHEST: f64 = (1 << 20) as f64;

/// Returns the corners of the oriented box in a `detection`, in order.
pub(super) fn oriented_box(detection: &gst::StructureRef) -> Option<[Position; 4]> {
    let number = |name: &str| detection.get::<f64>(name).ok();
    let center = [number("center-x")?, number("center-y")?];
    let half = [number("width")? / 2.0, number("height")? / 2.0];
    let (sin, cos) = number("rotation")?.sin_cos();
    let corner = |[x, y]: [f64; 2]| {
        let (x, y) = (x * half[0], y * half[1]);
        [center[0] + x * cos - y * sin, center[1] + x * sin + y * cos]
    };
    let corners = [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]].map(corner);
    corners.iter().all(is_near).then_some(corners)
}

/// Returns true if both coordinates are finite and small enough to draw.
fn is_near(position: &Position) -> bool {
    position.iter().all(|coordinate| coordinate.abs() <= FARTHEST)
}

/// The keypoints of a region.
pub(super) struct Keypoints {
    data: glib::Bytes,
    count: usize,
    /// Numbers per point: 2, or 3 with a visibility.
    components: usize,
    layout: KeypointLayout,
}

impl Keypoints {
    /// Reads the structure `keypoints`.
    pub fn new(structure: &gst::StructureRef) -> Option<Self> {
        let count = usize::try_from(structure.get::<i32>("count").ok()?).ok()?;
        let components = match structure.get::<i32>("components").ok()? {
            2 => 2,
            3 => 3,
            _ => return None,
        };
        let data = structure.get::<glib::Bytes>("data").ok()?;
        let size = count.checked_mul(components * size_of::<f32>())?;
        if data.len() < size {
            return None;
        }
        let name = structure.value("layout").ok().and_then(|name| strings::of_value(name).ok()?);
        let named = name.and_then(KeypointLayout::by_name);
        Some(Self { data, count, components, layout: named.unwrap_or(KeypointLayout::Points) })
    }

    /// Returns the point with this index if it is to be drawn.
    fn point(&self, index: usize) -> Option<Position> {
        if index >= self.count {
            return None;
        }
        let number = |component: usize| {
            let first = (index * self.components + component) * size_of::<f32>();
            let bytes = self.data[first..first + size_of::<f32>()].try_into();
            f32::from_ne_bytes(bytes.expect("a number has four bytes"))
        };
        // A point whose visibility is NaN is not visible.
        let is_visible = self.components < 3 || number(2) >= MIN_VISIBILITY;
        let position = [number(0), number(1)].map(f64::from);
        (is_visible && is_near(&position)).then_some(position)
    }

    /// Returns the points to draw.
    pub fn points(&self) -> impl Iterator<Item = Position> {
        (0..self.count).filter_map(|index| self.point(index))
    }

    /// Returns the ends of the lines to draw. A line is drawn if both of its ends are.
    pub fn lines(&self) -> impl Iterator<Item = [Position; 2]> {
        let pairs = self.layout.skeleton().iter();
        pairs.filter_map(|&[a, b]| Some([self.point(a)?, self.point(b)?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> glib::Bytes {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        glib::Bytes::from_owned(bytes)
    }

    fn keypoints(count: i32, components: i32, layout: &str, data: glib::Bytes) -> gst::Structure {
        gst::init().unwrap();
        gst::Structure::builder("keypoints")
            .field("count", count)
            .field("components", components)
            .field("layout", layout)
            .field("data", data)
            .build()
    }

    #[test]
    fn invisible_points_and_those_without_a_finite_position_are_not_drawn() {
        let numbers = [
            [1.0, 2.0, 0.5],
            [3.0, 4.0, 0.49],
            [5.0, 6.0, f32::NAN],
            [f32::NAN, 8.0, 1.0],
            [9.0, f32::INFINITY, 1.0],
            [2e6, 10.0, 1.0],
            [-11.0, 12.0, 1.0],
        ];
        let found = Keypoints::new(&keypoints(7, 3, "points", bytes(numbers.as_flattened())));
        let points: Vec<Position> = found.unwrap().points().collect();
        assert_eq!(points, [[1.0, 2.0], [-11.0, 12.0]]);
    }

    #[test]
    fn lines_connect_the_visible_points_of_a_face() {
        let numbers = [[0.0, 0.0], [4.0, 0.0], [2.0, 2.0], [1.0, 4.0], [f32::NAN, 4.0]];
        let data = || bytes(numbers.as_flattened());
        let lines = |structure: gst::Structure| -> Vec<[Position; 2]> {
            Keypoints::new(&structure).unwrap().lines().collect()
        };
        let nose = [2.0, 2.0];
        let expected = [[[0.0, 0.0], nose], [[4.0, 0.0], nose], [nose, [1.0, 4.0]]];
        assert_eq!(lines(keypoints(5, 2, "face-5", data())), expected);
        assert!(lines(keypoints(5, 2, "points", data())).is_empty());
        assert!(lines(keypoints(5, 2, "hand", data())).is_empty());
        // The structure has fewer points than the layout, or more.
        assert_eq!(lines(keypoints(3, 2, "face-5", data())), expected[..2]);
        assert_eq!(lines(keypoints(5, 2, "coco-17", data())).len(), 4);
    }

    #[test]
    fn keypoints_that_do_not_fit_are_ignored() {
        let six = || bytes(&[1.0; 6]);
        assert!(Keypoints::new(&keypoints(2, 3, "points", six())).is_some());
        for (count, components) in
            [(3, 3), (-1, 3), (i32::MAX, 3), (i32::MIN, 2), (2, 0), (2, 4), (2, -3), (2, i32::MAX)]
        {
            let structure = keypoints(count, components, "points", six());
            assert!(Keypoints::new(&structure).is_none(), "{count} {components}");
        }
        let complete = keypoints(2, 3, "points", six());
        for name in ["count", "components", "data"] {
            let mut other = complete.clone();
            other.set(name, "2");
            assert!(Keypoints::new(&other).is_none(), "{name} is a string");
            other.remove_field(name);
            assert!(Keypoints::new(&other).is_none(), "{name} is missing");
        }
        let mut null = complete.clone();
        null.set("data", None::<glib::Bytes>);
        assert!(Keypoints::new(&null).is_none());
    }

    #[test]
    fn the_corners_of_an_oriented_box_turn_clockwise() {
        gst::init().unwrap();
        let detection = |angle: f64| {
            gst::Structure::builder("detection")
                .field("rotation", angle)
                .field("center-x", 100.0)
                .field("center-y", 50.0)
                .field("width", 40.0)
                .field("height", 20.0)
                .build()
        };
        let corners = oriented_box(&detection(std::f64::consts::FRAC_PI_2)).unwrap();
        let rounded = corners.map(|corner| corner.map(f64::round));
        assert_eq!(rounded, [[110.0, 30.0], [110.0, 70.0], [90.0, 70.0], [90.0, 30.0]]);
        assert!(oriented_box(&detection(f64::NAN)).is_none());
        let mut without = detection(0.0);
        without.remove_field("rotation");
        assert!(oriented_box(&without).is_none());
        let mut far = detection(0.0);
        far.set("width", 1e300);
        assert!(oriented_box(&far).is_none());
    }
}
