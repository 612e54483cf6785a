// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of a region's points, and the lines that connect them.

/// The meaning and the order of a region's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeypointLayout {
    /// The 17 points of a person in COCO: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles. In each
    /// pair, the person's left one comes first.
    Coco17,
    /// Two eyes, nose, two corners of the mouth.
    Face5,
    /// Any other points.
    Points,
}

impl KeypointLayout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Coco17, Self::Face5, Self::Points];

    /// Determines the layout of `count` points of a region. `is_face` says whether the decoder calls the region's
    /// class `face`.
    pub fn for_points(count: usize, is_face: bool) -> Self {
        match count {
            17 => Self::Coco17,
            5 if is_face => Self::Face5,
            _ => Self::Points,
        }
    }

    /// Returns the name of the layout in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coco17 => "coco-17",
            Self::Face5 => "face-5",
            Self::Points => "points",
        }
    }

    /// The pairs of points that lines connect, by their indices from 0.
    pub fn skeleton(self) -> &'static [[usize; 2]] {
        match self {
            // These are the pairs of the category `person` in COCO's annotations.
            Self::Coco17 => &[
                [15, 13],
                [13, 11],
                [16, 14],
                [14, 12],
                [11, 12],
                [5, 11],
                [6, 12],
                [5, 6],
                [5, 7],
                [6, 8],
                [7, 9],
                [8, 10],
                [1, 2],
                [0, 1],
                [0, 2],
                [1, 3],
                [2, 4],
                [3, 5],
                [4, 6],
            ],
            Self::Face5 => &[[0, 2], [1, 2], [2, 3], [2, 4], [3, 4]],
            Self::Points => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_follow_from_the_number_of_points_and_the_class() {
        assert_eq!(KeypointLayout::for_points(17, false), KeypointLayout::Coco17);
        assert_eq!(KeypointLayout::for_points(5, true), KeypointLayout::Face5);
        // Five points of something else, for example of a hand.
        assert_eq!(KeypointLayout::for_points(5, false), KeypointLayout::Points);
        for count in [0, 1, 4, 6, 21] {
            assert_eq!(KeypointLayout::for_points(count, true), KeypointLayout::Points, "{count}");
        }
    }

    #[test]
    fn skeletons_connect_all_points_of_their_layout_and_no_others() {
        for (layout, count) in [(KeypointLayout::Coco17, 17), (KeypointLayout::Face5, 5)] {
            let mut is_connected = vec![false; count];
            is_connected[0] = true;
            // Each pass reaches at least one more point.
            for _ in 0..count {
                for &[a, b] in layout.skeleton() {
                    let either = is_connected[a] || is_connected[b];
                    (is_connected[a], is_connected[b]) = (either, either);
                }
            }
            assert_eq!(is_connected, vec![true; count], "{layout:?}");
        }
    }
}
