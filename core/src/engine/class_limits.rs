// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the number of survivors per class.
//!
//! In: all survivors of a group by rank, with their columns and the places of their masks. Out: the
//! survivors that are kept, in place. All engines except the reference use this module, so no other
//! engine has to count by class.

use super::params::cap;
use super::{Detection, MaskPlace, Params};

/// Applies the limits and reuses its memory.
#[derive(Debug, Default)]
pub(super) struct ClassLimits {
    /// For each class with a rule, the number of its survivors so far.
    counts: Vec<usize>,
}

impl ClassLimits {
    /// Moves the kept survivors of a group, which are sorted by rank, to the front and returns their number. `columns` has
    /// a row for each survivor; `places` has the place of each mask, or is empty if there are no masks. Does not allocate
    /// if an earlier call had as many rules.
    pub fn apply(
        &mut self,
        params: &Params,
        detections: &mut [Detection],
        columns: &mut [f32],
        places: &mut [MaskPlace],
    ) -> usize {
        self.counts.clear();
        self.counts.resize(params.class_rules.len(), 0);
        let width = columns.len().checked_div(detections.len()).unwrap_or(0);
        let most = cap(params.max_detections);
        let mut kept = 0;
        for index in 0..detections.len() {
            if kept == most {
                break;
            }
            let class = detections[index].class as usize;
            if let (Some(count), Some(rule)) =
                (self.counts.get_mut(class), params.class_rules.get(class))
            {
                if *count == cap(rule.max_detections) {
                    continue;
                }
                *count += 1;
            }
            detections[kept] = detections[index];
            columns.copy_within(index * width..(index + 1) * width, kept * width);
            if !places.is_empty() {
                places[kept] = places[index];
            }
            kept += 1;
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClassRule;
    use super::super::masks::MaskArea;
    use super::*;

    fn kept(classes: &[u32], limits: &[usize], max_detections: usize) -> Vec<u32> {
        let rule = |&max_detections| ClassRule { max_detections, ..ClassRule::default() };
        let class_rules = limits.iter().map(rule).collect();
        let params = Params { class_rules, max_detections, ..Params::default() };
        let all = 0..classes.len() as u32;
        let mut detections: Vec<_> = all
            .clone()
            .map(|anchor| Detection {
                anchor,
                class: classes[anchor as usize],
                ..Detection::default()
            })
            .collect();
        let mut columns: Vec<f32> =
            all.clone().flat_map(|anchor| [anchor as f32, anchor as f32 + 0.5]).collect();
        let mut places: Vec<_> = all
            .map(|anchor| MaskPlace { area: MaskArea::default(), first: anchor as usize })
            .collect();
        let limits = &mut ClassLimits::default();
        let count = limits.apply(&params, &mut detections, &mut columns, &mut places);
        let kept: Vec<u32> = detections[..count].iter().map(|d| d.anchor).collect();
        let rows: Vec<f32> =
            kept.iter().flat_map(|&anchor| [anchor as f32, anchor as f32 + 0.5]).collect();
        assert_eq!(columns[..2 * count], rows);
        assert!(places[..count].iter().map(|place| place.first as u32).eq(kept.iter().copied()));
        kept
    }

    #[test]
    fn the_highest_ranked_of_each_class_are_kept_and_then_those_of_the_image() {
        assert_eq!(kept(&[1, 0, 1, 1, 0, 2], &[1, 2], 0), [0, 1, 2, 5]);
        assert_eq!(kept(&[1, 0, 1, 1, 0, 2], &[1, 2], 3), [0, 1, 2]);
        assert_eq!(kept(&[1, 1, 0, 0, 0], &[0, 1], 3), [0, 2, 3]);
        assert!(kept(&[], &[1], 3).is_empty());
    }
}
