// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares detected regions with true regions.

/// A region's edges in pixels.
#[derive(Clone, Copy)]
pub struct Region {
    pub x1: u32,
    pub y1: u32,
    pub x2: u32,
    pub y2: u32,
}

impl Region {
    /// Computes the intersection over union.
    fn iou(&self, other: &Self) -> f64 {
        let side = |low: u32, high: u32| f64::from(high.saturating_sub(low));
        let area = |r: &Self| side(r.x1, r.x2) * side(r.y1, r.y2);
        let width = side(self.x1.max(other.x1), self.x2.min(other.x2));
        let height = side(self.y1.max(other.y1), self.y2.min(other.y2));
        let intersection = width * height;
        intersection / (area(self) + area(other) - intersection)
    }
}

/// Smallest intersection over union with which a region counts as a detection of a person.
const MIN_IOU: f64 = 0.5;

/// Totals over all frames.
#[derive(Default)]
pub struct Score {
    pub frames: u32,
    /// True regions.
    pub present: u32,
    /// True regions with a detection.
    pub found: u32,
    /// Further detections of people who already have one.
    pub duplicated: u32,
    /// Detections that belong to no person.
    pub unmatched: u32,
}

impl Score {
    /// Assigns each detected region, starting with the highest score, to the person with the
    /// highest IoU who has no detection yet.
    pub fn add(&mut self, truth: &[Region], found: &[Region]) {
        let mut taken = vec![false; truth.len()];
        for region in found {
            let fits = |i: &usize| region.iou(&truth[*i]) >= MIN_IOU;
            let mut people: Vec<usize> = (0..truth.len()).filter(fits).collect();
            people.sort_by(|&a, &b| region.iou(&truth[b]).total_cmp(&region.iou(&truth[a])));
            match people.iter().find(|&&person| !taken[person]) {
                Some(&person) => taken[person] = true,
                None if people.is_empty() => self.unmatched += 1,
                None => self.duplicated += 1,
            }
        }
        self.frames += 1;
        self.present += truth.len() as u32;
        self.found += taken.iter().filter(|&&taken| taken).count() as u32;
    }

    pub fn missed(&self) -> u32 {
        self.present - self.found
    }

    /// Returns `count` as a percentage of the people present.
    pub fn percent(&self, count: u32) -> f64 {
        100.0 * f64::from(count) / f64::from(self.present.max(1))
    }
}
