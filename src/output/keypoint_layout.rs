// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of a region's points, and the lines that connect them.

/// Labels of people.
const PERSON: [&str; 5] = ["person", "people", "human", "pedestrian", "persons"];

/// The names of a person's points in COCO's annotations.
const COCO_PERSON: [&str; 17] = [
    "nose",
    "left_eye",
    "right_eye",
    "left_ear",
    "right_ear",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
    "left_hip",
    "right_hip",
    "left_knee",
    "right_knee",
    "left_ankle",
    "right_ankle",
];

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

    /// Returns the layout of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Returns the layout of points with these names, of one class after the other. `None` if the names say nothing: there
    /// are none, or they are numbers, as in exports of models whose data set has no names.
    pub fn of_names(names: &[&str]) -> Option<Self> {
        let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
        if names.iter().all(is_number) {
            return None;
        }
        let spelled = |name: &&str| name.to_ascii_lowercase().replace([' ', '-'], "_");
        let of_person = |names: &[&str]| names.iter().map(spelled).eq(COCO_PERSON);
        match names.chunks(COCO_PERSON.len()).all(of_person) {
            true => Some(Self::Coco17),
            false => Some(Self::Points),
        }
    }

    /// The layout of a person's points or of any, for a class with this label.
    pub(super) fn of_label(label: &str) -> Self {
        let is_person = PERSON.iter().any(|name| label.eq_ignore_ascii_case(name));
        if is_person { Self::Coco17 } else { Self::Points }
    }

    /// The layout for `count` points of a region: this one, or any points if it has another number.
    pub(super) fn for_points(self, count: usize) -> Self {
        match self {
            Self::Coco17 if count == COCO_PERSON.len() => self,
            Self::Face5 if count == 5 => self,
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
    fn layouts_are_of_as_many_points_as_they_have() {
        use KeypointLayout::{Coco17, Face5, Points};
        assert_eq!([Coco17.for_points(17), Face5.for_points(5)], [Coco17, Face5]);
        // Seventeen points of a dog; five points of something else, for example of a hand.
        assert_eq!([Points.for_points(17), Points.for_points(5)], [Points; 2]);
        for count in [0, 1, 4, 6, 21] {
            assert_eq!([Face5.for_points(count), Coco17.for_points(count)], [Points; 2]);
        }
        assert_eq!([Coco17.for_points(5), Face5.for_points(17)], [Points; 2]);
    }

    #[test]
    fn names_of_points_are_those_of_a_person_or_of_something_else() {
        let of = |names: &[&str]| KeypointLayout::of_names(names);
        assert_eq!(of(&COCO_PERSON), Some(KeypointLayout::Coco17));
        let spoken = COCO_PERSON.map(|name| name.replace('_', " ").to_uppercase());
        let spoken: Vec<&str> = spoken.iter().map(String::as_str).collect();
        assert_eq!(of(&[&spoken[..], &COCO_PERSON].concat()), Some(KeypointLayout::Coco17));
        // AP-10K begins with the eyes.
        let mut animal = COCO_PERSON;
        animal.rotate_left(1);
        assert_eq!(of(&animal), Some(KeypointLayout::Points));
        assert_eq!(of(&COCO_PERSON[..16]), Some(KeypointLayout::Points));
        assert_eq!(of(&[&COCO_PERSON[..], &["tail"]].concat()), Some(KeypointLayout::Points));
        assert_eq!((of(&[]), of(&["0", "1", "16"])), (None, None));
    }

    #[test]
    fn labels_of_people_are_compared_without_case() {
        for (label, expected) in [
            ("person", KeypointLayout::Coco17),
            ("Person", KeypointLayout::Coco17),
            ("PEDESTRIAN", KeypointLayout::Coco17),
            ("dog", KeypointLayout::Points),
            ("person on a bicycle", KeypointLayout::Points),
        ] {
            assert_eq!(KeypointLayout::of_label(label), expected, "{label}");
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
