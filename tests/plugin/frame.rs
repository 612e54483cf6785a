// SPDX-License-Identifier: MIT OR Apache-2.0
//! The regions and tensors on a buffer after nmsfilter, and the expected regions.

use gst_video::VideoRegionOfInterestMeta;

use crate::greedy::Candidate;
use crate::tensors::{self, Recorded};

/// A region as nmsfilter describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Class of the object.
    pub class: usize,
    /// Score of the object.
    pub score: f64,
    /// Left, upper, right and lower edge, from 0 to 1.
    pub corners: [f64; 4],
}

/// The tensors and regions on a buffer after nmsfilter.
pub struct Frame {
    /// Tensors on the buffer.
    pub tensors: Vec<Recorded>,
    /// Regions, in the order of the metadata.
    pub regions: Vec<Region>,
}

impl Frame {
    /// Reads tensors and regions from a buffer.
    pub fn read(buffer: &gst::BufferRef) -> Self {
        let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|region| {
            let detection = region.param("detection").expect("every region has one");
            let number = |name| detection.get::<f64>(name).unwrap();
            Region {
                class: detection.get::<i32>("label_id").unwrap() as usize,
                score: number("confidence"),
                corners: ["x_min", "y_min", "x_max", "y_max"].map(number),
            }
        });
        Self { tensors: tensors::read(buffer), regions: regions.collect() }
    }
}

/// Returns the regions that nmsfilter must attach for `survivors`. They are clipped to the frame,
/// and boxes outside of it are left out.
pub fn regions(survivors: &[Candidate], size: [u32; 2]) -> Vec<Region> {
    let region = |candidate: &Candidate| {
        let [w, h] = size.map(|side| side as f32);
        let [x1, y1, x2, y2] = candidate.corners;
        let [x1, x2] = [x1, x2].map(|x| x.clamp(0.0, w));
        let [y1, y2] = [y1, y2].map(|y| y.clamp(0.0, h));
        let share = |edge: f32, side: f32| f64::from(edge) / f64::from(side);
        (x1 < x2 && y1 < y2).then_some(Region {
            class: candidate.class,
            score: candidate.score.into(),
            corners: [share(x1, w), share(y1, h), share(x2, w), share(y2, h)],
        })
    };
    survivors.iter().filter_map(region).collect()
}
