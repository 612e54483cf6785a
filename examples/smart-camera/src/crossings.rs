// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts tracks that cross lines in the picture.
//!
//! In: the objects of each frame, with the ids of their tracks. Out: for each line, label and
//! direction, how many tracks have crossed the line since the program started.
//!
//! Boxes tremble, so the center of a person who waits at a line passes it again and again. An
//! object is therefore on a side of a line only while the middle of its box (a quarter of its width
//! and height) is. A track is counted when it has been on one side and is then on the other, and
//! the path between the two positions passes between the ends of the line.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use crate::named_numbers;
use crate::report::{Edges, Object};

/// The part of a box's width and height that must be on one side of a line.
const MIDDLE: f64 = 0.25;

/// Number of frames without a track after which it is forgotten. Trackers do not use its id again.
const FORGET_AFTER: u64 = 1000;

/// A line between two points of the picture.
///
/// The ends are in such an order that [`side`](Self::side) is positive to the right of a steep
/// line, and below a flat line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the report.
    pub name: String,
    /// The ends, as fractions of the frame.
    pub ends: [[f64; 2]; 2],
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("--line: expected NAME=x1,y1,x2,y2, two points in 0,0,1,1, got {text:?}");
        let (name, numbers) = named_numbers::parse(text).ok_or_else(wrong)?;
        let [x1, y1, x2, y2] = numbers;
        let is_inside = numbers.iter().all(|number| (0.0..=1.0).contains(number));
        if !is_inside || [x1, y1] == [x2, y2] {
            return Err(wrong());
        }
        let mut line = Self { name: name.to_owned(), ends: [[x1, y1], [x2, y2]] };
        let is_in_order = if line.is_steep() { y1 > y2 } else { x1 < x2 };
        if !is_in_order {
            line.ends.reverse();
        }
        Ok(line)
    }
}

impl Line {
    fn is_steep(&self) -> bool {
        let [[x1, y1], [x2, y2]] = self.ends;
        (x2 - x1).abs() <= (y2 - y1).abs()
    }

    /// Returns the names of the directions to the negative and to the positive side.
    fn directions(&self) -> [&'static str; 2] {
        if self.is_steep() { ["left", "right"] } else { ["up", "down"] }
    }

    /// Returns a number whose sign is the side of the infinite line on which the point is.
    fn side(&self, point: [f64; 2]) -> f64 {
        let [from, to] = self.ends;
        turn(from, to, point)
    }

    /// Returns true if the middle of the box is on the positive side, false if it is on the
    /// negative side, and `None` if the line passes through it.
    fn is_positive(&self, edges: &Edges) -> Option<bool> {
        let ([x, y], [w, h]) = (edges.center(), edges.size());
        let corners = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)].map(|(right, down)| {
            self.side([x + right * MIDDLE * w / 2.0, y + down * MIDDLE * h / 2.0])
        });
        let is_positive = corners.iter().all(|&side| side > 0.0);
        (is_positive || corners.iter().all(|&side| side < 0.0)).then_some(is_positive)
    }

    /// Returns true if the infinite line through two positions passes between the ends.
    fn is_passed(&self, from: [f64; 2], to: [f64; 2]) -> bool {
        let [first, second] = self.ends.map(|end| turn(from, to, end));
        first * second <= 0.0
    }
}

/// Returns the cross product of the vectors `from` to `to` and `from` to `point`.
fn turn(from: [f64; 2], to: [f64; 2], point: [f64; 2]) -> f64 {
    (to[0] - from[0]) * (point[1] - from[1]) - (to[1] - from[1]) * (point[0] - from[0])
}

/// The position at which a track was last on a side of a line.
struct Position {
    is_positive: bool,
    center: [f64; 2],
    /// The last frame with the track.
    frame: u64,
}

/// A line and what has crossed it.
struct Counter {
    line: Line,
    tracks: HashMap<u64, Position>,
    /// Numbers for each label: to the negative and to the positive side.
    counts: BTreeMap<String, [u64; 2]>,
}

impl Counter {
    fn update(&mut self, frame: u64, objects: &[Object]) {
        for object in objects {
            // A predicted box is no evidence that somebody is there.
            let Some(track) = object.id.filter(|_| !object.predicted) else { continue };
            let edges = &object.detection.bounding_box;
            let center = edges.center();
            let is_positive = self.line.is_positive(edges);
            let Some(last) = self.tracks.get_mut(&track) else {
                if let Some(is_positive) = is_positive {
                    self.tracks.insert(track, Position { is_positive, center, frame });
                }
                continue;
            };
            last.frame = frame;
            let Some(is_positive) = is_positive else { continue };
            if is_positive != last.is_positive && self.line.is_passed(last.center, center) {
                let counts = self.counts.entry(object.label.clone()).or_default();
                counts[usize::from(is_positive)] += 1;
            }
            *last = Position { is_positive, center, frame };
        }
        self.tracks.retain(|_, position| frame - position.frame < FORGET_AFTER);
    }

    fn report(&self) -> BTreeMap<&str, BTreeMap<&'static str, u64>> {
        let directions = self.line.directions();
        let entries = self.counts.iter();
        entries
            .map(|(label, &counts)| (label.as_str(), directions.into_iter().zip(counts).collect()))
            .collect()
    }
}

/// The numbers of crossings: by line, label and direction.
pub type Counts<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeMap<&'static str, u64>>>;

/// Counts the crossings of all lines.
pub struct Crossings {
    counters: Vec<Counter>,
    frame: u64,
}

impl Crossings {
    /// Starts to count. The report has these labels even while nothing with the label crosses.
    pub fn new(lines: &[Line], labels: &[String]) -> Self {
        let counts: BTreeMap<_, _> = labels.iter().map(|label| (label.clone(), [0, 0])).collect();
        let counter = |line: &Line| Counter {
            line: line.clone(),
            tracks: HashMap::new(),
            counts: counts.clone(),
        };
        Self { counters: lines.iter().map(counter).collect(), frame: 0 }
    }

    /// Adds the objects of a frame.
    pub fn update(&mut self, objects: &[Object]) {
        self.frame += 1;
        for counter in &mut self.counters {
            counter.update(self.frame, objects);
        }
    }

    /// Returns the numbers so far, or `None` if there are no lines.
    pub fn report(&self) -> Option<Counts<'_>> {
        let counters = self.counters.iter();
        let counts = counters.map(|counter| (counter.line.name.as_str(), counter.report()));
        (!self.counters.is_empty()).then(|| counts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Detection;

    /// Returns a person of 0.08 by 0.16 with this track and center.
    fn person(track: Option<u64>, [x, y]: [f64; 2]) -> Object {
        let (x_min, x_max) = (x - 0.04, x + 0.04);
        let (y_min, y_max) = (y - 0.08, y + 0.08);
        let bounding_box = Edges { x_min, y_min, x_max, y_max };
        let label = "person".to_owned();
        Object { id: track, label, predicted: false, detection: Detection { bounding_box } }
    }

    /// Returns the crossings of `line` by one track with these centers, a frame each: to the
    /// negative and to the positive side.
    fn crossings(line: &str, centers: &[[f64; 2]]) -> [u64; 2] {
        let line: Line = line.parse().unwrap();
        let directions = line.directions();
        let mut crossings = Crossings::new(&[line], &["person".to_owned()]);
        for &center in centers {
            crossings.update(&[person(Some(7), center)]);
        }
        let counts = crossings.report().unwrap().pop_first().unwrap().1;
        directions.map(|direction| counts["person"][direction])
    }

    #[test]
    fn directions_are_those_of_the_picture_for_either_order_of_the_ends() {
        for (line, expected) in [
            ("a=0.5,0,0.5,1", ["left", "right"]),
            ("a=0.5,1,0.5,0", ["left", "right"]),
            ("a=0.4,1,0.6,0", ["left", "right"]),
            ("a=0,0.5,1,0.5", ["up", "down"]),
            ("a=1,0.5,0,0.5", ["up", "down"]),
            ("a=1,0.4,0,0.6", ["up", "down"]),
        ] {
            let parsed: Line = line.parse().unwrap();
            assert_eq!(parsed.directions(), expected, "{line}");
            let (first, last) = if expected[0] == "left" {
                ([0.2, 0.5], [0.8, 0.5])
            } else {
                ([0.5, 0.2], [0.5, 0.8])
            };
            assert_eq!(crossings(line, &[first, last]), [0, 1], "{line}: {}", expected[1]);
            assert_eq!(crossings(line, &[last, first]), [1, 0], "{line}: {}", expected[0]);
            assert_eq!(crossings(line, &[last, first, last]), [1, 1], "{line}: there and back");
        }
    }

    #[test]
    fn a_center_that_trembles_at_the_line_is_not_a_crossing_and_one_that_leaves_is() {
        // The middle of the box is 0.02 wide.
        let trembling = [[0.4, 0.5], [0.491, 0.5], [0.509, 0.5], [0.491, 0.5], [0.509, 0.5]];
        assert_eq!(crossings("door=0.5,0,0.5,1", &trembling), [0, 0]);
        let passed = [&trembling[..], &[[0.511, 0.5], [0.6, 0.5]]].concat();
        assert_eq!(crossings("door=0.5,0,0.5,1", &passed), [0, 1]);
        let returned = [&trembling[..], &[[0.489, 0.5], [0.4, 0.5]]].concat();
        assert_eq!(crossings("door=0.5,0,0.5,1", &returned), [0, 0]);
    }

    #[test]
    fn a_path_beside_the_ends_is_not_a_crossing() {
        let door = "door=0.5,0.4,0.5,0.6";
        for (y, expected) in [(0.5, [0, 1]), (0.41, [0, 1]), (0.39, [0, 0]), (0.61, [0, 0])] {
            assert_eq!(crossings(door, &[[0.3, y], [0.7, y]]), expected, "at {y}");
        }
        // The path from the first to the last position, not either of them, passes the door.
        assert_eq!(crossings(door, &[[0.3, 0.2], [0.7, 0.8]]), [0, 1]);
    }

    #[test]
    fn objects_without_a_track_and_tracks_that_change_their_id_at_the_line_are_not_counted() {
        let line: Line = "door=0.5,0,0.5,1".parse().unwrap();
        let mut crossings = Crossings::new(&[line], &[]);
        for x in [0.3, 0.7] {
            crossings.update(&[person(None, [x, 0.5])]);
        }
        crossings.update(&[person(Some(1), [0.3, 0.5])]);
        crossings.update(&[person(Some(2), [0.7, 0.5])]);
        assert!(crossings.report().unwrap()["door"].is_empty());
        // Each track has its own position.
        crossings.update(&[person(Some(1), [0.7, 0.5]), person(Some(2), [0.3, 0.5])]);
        let expected = BTreeMap::from([("left", 1), ("right", 1)]);
        assert_eq!(crossings.report().unwrap()["door"]["person"], expected);
    }

    #[test]
    fn predicted_boxes_do_not_cross() {
        let line: Line = "door=0.5,0,0.5,1".parse().unwrap();
        let mut crossings = Crossings::new(&[line], &["person".to_owned()]);
        let mut right = |x: f64, predicted: bool| {
            crossings.update(&[Object { predicted, ..person(Some(1), [x, 0.5]) }]);
            crossings.report().unwrap()["door"]["person"]["right"]
        };
        assert_eq!(right(0.3, false), 0);
        assert_eq!(right(0.7, true), 0, "a prediction");
        assert_eq!(right(0.4, false), 0, "the person has stopped");
        assert_eq!(right(0.7, false), 1);
    }

    #[test]
    fn a_track_is_forgotten_after_a_thousand_frames_without_it() {
        let line: Line = "door=0.5,0,0.5,1".parse().unwrap();
        for (absent, expected) in [(FORGET_AFTER - 1, 1), (FORGET_AFTER, 0)] {
            let mut crossings = Crossings::new(std::slice::from_ref(&line), &["person".to_owned()]);
            crossings.update(&[person(Some(1), [0.3, 0.5])]);
            for _ in 0..absent {
                crossings.update(&[]);
            }
            crossings.update(&[person(Some(1), [0.7, 0.5])]);
            assert_eq!(crossings.report().unwrap()["door"]["person"]["right"], expected);
        }
    }

    #[test]
    fn lines_outside_the_picture_without_length_or_without_name_are_refused() {
        for text in [
            "door=0,0,1",
            "door=0,0,1,1.1",
            "door=0.5,0.5,0.5,0.5",
            "=0,0,1,1",
            "0,0,1,1",
            "a=0,0,x,1",
        ] {
            let error = text.parse::<Line>().unwrap_err();
            assert!(error.starts_with("--line: expected NAME=x1,y1,x2,y2"), "{error}");
        }
    }
}
