// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tails of tracks.
//!
//! In: the regions of each frame. Out: for a region with a track, the lines along which the middle of its lower edge has
//! moved. Memory grows with the regions of the latest frames only.

use std::collections::{HashMap, VecDeque};

use super::region::StyledRegion;
use super::shapes::Position;

/// The latest positions of tracks.
#[derive(Default)]
pub(super) struct Tails {
    frame: u64,
    /// The frames on which a track had a region, and where.
    tracks: HashMap<i32, VecDeque<(u64, Position)>>,
}

impl Tails {
    /// Adds a frame, and forgets all that are more than `length` frames old.
    pub fn add(&mut self, regions: &[StyledRegion], length: u32) {
        if length == 0 {
            return self.tracks.clear();
        }
        self.frame += 1;
        for region in regions {
            let Some(track) = region.track else { continue };
            let rect = region.caption.region;
            let middle = f64::from(rect.x1) / 2.0 + f64::from(rect.x2) / 2.0;
            let positions = self.tracks.entry(track).or_default();
            positions.push_back((self.frame, [middle, f64::from(rect.y2)]));
        }
        let first = self.frame.saturating_sub(length.into());
        self.tracks.retain(|_, positions| {
            while positions.front().is_some_and(|(frame, _)| *frame < first) {
                positions.pop_front();
            }
            !positions.is_empty()
        });
    }

    /// Returns the lines of a track, the oldest first.
    pub fn lines(&self, track: Option<i32>) -> impl Iterator<Item = [Position; 2]> {
        let positions = track.and_then(|track| self.tracks.get(&track));
        let pairs = positions.into_iter().flat_map(|all| all.iter().zip(all.iter().skip(1)));
        pairs.map(|((_, from), (_, to))| [*from, *to])
    }
}
