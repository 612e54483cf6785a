// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sequences of the input `data/tracks`: the element gives the tracks that the library gives, called directly.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use gstnmsfilter::regions;
use trackforge::trackers::byte_track::ByteTrack;
use trackforge::trackers::ocsort::OcSort;
use trackforge::trackers::sort::Sort;
use trackforge::traits::{Detection, Tracker};

use super::camera::{Camera, add_object};
use crate::support::data;
use crate::support::pipeline::{parse, run, watch};

/// The frames of a sequence, with the edges and the confidence of each detection.
struct Sequence {
    name: &'static str,
    size: [u32; 2],
    frames: Vec<Vec<([f64; 4], f64)>>,
}

impl Sequence {
    /// Reads the detections, which end at the frame.
    fn read(name: &'static str, size: [u32; 2], frames: usize) -> Option<Self> {
        let path = data::path(&format!("data/tracks/{name}-det.txt"))?;
        let mut sequence = Self { name, size, frames: vec![Vec::new(); frames] };
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let numbers: Vec<f64> = line.split(',').map(|it| it.trim().parse().unwrap()).collect();
            let &[frame, _, left, top, width, height, score, ..] = &numbers[..] else { panic!() };
            let clip = |edge: f64, side: u32| edge.clamp(0.0, side.into());
            let edges = [
                clip(left, size[0]),
                clip(top, size[1]),
                clip(left + width, size[0]),
                clip(top + height, size[1]),
            ];
            sequence.frames[frame as usize - 1].push((edges, score));
        }
        Some(sequence)
    }

    /// 200 frames of the test source with 100 people, and their true boxes in the format of the MOT challenge.
    fn crowd() -> (Self, String) {
        super::camera::init();
        let size @ [width, height] = [1280, 720];
        let pipeline = parse(&format!(
            "crowdtestsrc truth=true num-buffers=200 people=100 ! video/x-raw,width={width},height={height}
             ! nmsfilter name=nms score-threshold=0.1 ! fakesink"
        ));
        let frames = watch(&pipeline, "nms", move |frame| {
            let (mut objects, mut people) = (Vec::new(), Vec::new());
            for region in regions::iter(frame) {
                if region.label == c"truth" {
                    people.push((region.id, region.rectangle));
                } else if let (Some(edges), Some(score)) = (region.edges, region.confidence) {
                    let sides = [width, height, width, height].map(f64::from);
                    objects.push((std::array::from_fn(|edge| edges[edge] * sides[edge]), score));
                }
            }
            (objects, people)
        });
        assert_eq!(run(&pipeline).error, None);
        let mut truth = String::new();
        let mut sequence = Self { name: "crowd", size, frames: Vec::new() };
        for (index, (objects, people)) in frames.lock().unwrap().drain(..).enumerate() {
            for (id, [x, y, w, h]) in people {
                writeln!(truth, "{},{id},{x},{y},{w},{h},1,-1,-1,-1", index + 1).unwrap();
            }
            sequence.frames.push(objects);
        }
        (sequence, truth)
    }

    fn all() -> Option<[Self; 2]> {
        Some([
            Self::read("TUD-Campus", [640, 480], 71)?,
            Self::read("PETS-S3-MF1", [768, 576], 107)?,
        ])
    }

    /// The id of each detection on the frames with inference, and 0 without one, by the element. `each` gets all
    /// rectangles with ids of a frame.
    fn by_element(
        &self,
        properties: &str,
        interval: usize,
        mut each: impl FnMut(usize, i32, [u32; 4]),
    ) -> Vec<Vec<u64>> {
        let [width, height] = self.size;
        let caps = "video/x-raw,format=GRAY8,framerate=25/1";
        let mut camera =
            Camera::with_caps(properties, &format!("{caps},width={width},height={height}"));
        let mut all = Vec::new();
        for (index, objects) in self.frames.iter().enumerate() {
            let inferred = index % (interval + 1) == 0;
            let mut buffer = super::camera::frame(index as u64 * 40, Some(inferred), &[]);
            if inferred {
                for &(edges, score) in objects {
                    add_object(buffer.get_mut().unwrap(), self.size, "person", edges, score);
                }
            }
            let tracked = camera.push_buffer(buffer).unwrap();
            for object in tracked.iter().filter(|object| object.id.is_some()) {
                each(index + 1, object.id.unwrap(), object.rectangle);
            }
            if inferred {
                all.push(tracked.iter().map(|it| it.id.map_or(0, |id| id as u64)).collect());
            }
        }
        all
    }

    /// The library's result.
    fn by_library<T: Tracker>(
        &self,
        mut tracker: T,
        interval: usize,
        ids: impl Fn(&T::Track) -> (usize, u64),
    ) -> Vec<Vec<u64>> {
        let frames = self.frames.iter().step_by(interval + 1);
        let update = |objects: &Vec<([f64; 4], f64)>| {
            let detection = |&([x1, y1, x2, y2], score): &([f64; 4], f64)| -> Detection {
                ([x1, y1, x2 - x1, y2 - y1].map(|side| side as f32), score as f32, 0)
            };
            let mut found = vec![0; objects.len()];
            for track in tracker.update(objects.iter().map(detection).collect()) {
                let (detection, id) = ids(&track);
                found[detection] = id;
            }
            found
        };
        frames.map(update).collect()
    }
}

/// Renumbers ids in the order in which they come.
fn renumbered(ids: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let mut numbers = BTreeMap::from([(0, 0)]);
    let mut number = |id: u64| {
        let next = numbers.len() as u64;
        *numbers.entry(id).or_insert(next)
    };
    ids.into_iter().map(|frame| frame.into_iter().map(&mut number).collect()).collect()
}

#[test]
fn the_element_gives_the_tracks_of_the_library() {
    let Some(sequences) = Sequence::all() else { return };
    for sequence in &sequences {
        for interval in [0, 1, 4] {
            let element = |algorithm: &str, age: f64| {
                let properties = format!("algorithm={algorithm} max-age={age}");
                renumbered(sequence.by_element(&properties, interval, |_, _, _| {}))
            };
            let index = |it: Option<usize>| it.expect("the library returns tracks with detections");
            // The library counts frames with inference, and the element has seconds. With longer intervals, tracks are
            // therefore kept to the end.
            let (frames, age) = if interval == 0 { (25, 1.0) } else { (90_000, 3600.0) };
            let (sort_frames, sort_age) = if interval == 0 { (1, -1.0) } else { (frames, age) };
            let byte = ByteTrack::new(0.5, frames, 0.8, 0.6);
            let byte = sequence.by_library(byte, interval, |it| (index(it.det_ind), it.track_id));
            assert_eq!(element("bytetrack", age), renumbered(byte), "{} {interval}", sequence.name);
            let oc = OcSort::new(frames, 3, 0.3, 3, 0.2);
            let oc = sequence.by_library(oc, interval, |it| (index(it.det_ind), it.track_id));
            assert_eq!(element("ocsort", age), renumbered(oc), "{} {interval}", sequence.name);
            let sort = Sort::new(sort_frames, 3, 0.3);
            let sort = sequence.by_library(sort, interval, |it| (index(it.det_ind), it.track_id));
            assert_eq!(element("sort", sort_age), renumbered(sort), "{} {interval}", sequence.name);
        }
    }
}

/// Writes the tracks of both sequences and of a crowd, with its truth and detections, in the format of the MOT challenge to
/// the folder NMSFILTER_TRACKS.
#[test]
#[ignore = "writes files for a program that computes MOTA"]
fn write_tracks() {
    let folder = PathBuf::from(std::env::var_os("NMSFILTER_TRACKS").expect("a folder"));
    let (crowd, truth) = Sequence::crowd();
    std::fs::write(folder.join("crowd-gt.txt"), truth).unwrap();
    let mut found = String::new();
    for (index, objects) in crowd.frames.iter().enumerate() {
        for ([x1, y1, x2, y2], score) in objects {
            let (frame, w, h) = (index + 1, x2 - x1, y2 - y1);
            writeln!(found, "{frame},-1,{x1},{y1},{w},{h},{score},-1,-1,-1").unwrap();
        }
    }
    std::fs::write(folder.join("crowd-det.txt"), found).unwrap();
    for sequence in Sequence::all().expect("the sequences").into_iter().chain([crowd]) {
        for algorithm in ["bytetrack", "ocsort", "sort", "sort min-hits=1"] {
            for (interval, predict) in [(0, true), (1, true), (1, false), (4, true), (4, false)] {
                let mut text = String::new();
                let properties = format!("algorithm={algorithm} predict={predict}");
                sequence.by_element(&properties, interval, |frame, id, [x, y, w, h]| {
                    writeln!(text, "{frame},{id},{x},{y},{w},{h},1,-1,-1,-1").unwrap();
                });
                let algorithm = algorithm.replace(' ', "-");
                let name = format!("{}-{algorithm}-{interval}-{predict}.txt", sequence.name);
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
    }
}
