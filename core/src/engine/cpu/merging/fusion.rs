// SPDX-License-Identifier: MIT OR Apache-2.0
//! Weighted fusion: clusters of boxes, each with the weighted mean of its boxes.
//!
//! In: the candidates of a part, in descending rank. Out: a survivor for each cluster. The grid has
//! the boxes of the clusters, and is changed whenever one of them changes.

use super::super::super::Params;
use super::super::super::merging::WeightedMean;
use super::super::buckets::Buckets;
use super::super::conflict::{Conflict, Entry};
use super::box_grid::BoxGrid;
use super::{Merged, Part, overlap_of};
use crate::geometry::overlap::Measured;

/// A cluster.
#[derive(Debug)]
struct Cluster {
    keeper: u32,
    /// The weighted mean.
    entry: Entry,
    mean: WeightedMean,
}

/// The clusters of a part; buffers are reused.
#[derive(Debug, Default)]
pub(super) struct Fusion {
    clusters: Vec<Cluster>,
    /// For each candidate, the index of its cluster.
    cluster_of: Vec<u32>,
    /// For each cluster, the anchors of its candidates except the keeper.
    members: Buckets,
}

impl Fusion {
    /// Adds the survivors.
    #[inline(always)]
    pub fn run<C: Conflict<Shape = ()>>(
        &mut self,
        part: &Part<'_>,
        grid: &mut BoxGrid,
        params: &Params,
        merged: &mut Merged,
    ) {
        let Self { clusters, cluster_of, members } = self;
        clusters.clear();
        cluster_of.clear();
        grid.clear(part.entries, params.pixel_offset);
        for (candidate, entry) in (0..).zip(part.entries) {
            let test = C::new(params, part.threshold(candidate, params));
            // The overlap with the best cluster, and the cluster's index.
            let mut best = (-1.0, 0);
            grid.for_each(entry, |index, fused| {
                if test.conflict(fused, entry) {
                    let overlap =
                        overlap_of::<C>(&fused.measured, &entry.measured, params.pixel_offset);
                    if overlap > best.0 || (overlap == best.0 && index < best.1) {
                        best = (overlap, index);
                    }
                }
            });
            let score = part.detection(candidate).score;
            if best.0 < 0.0 {
                let index = clusters.len() as u32;
                grid.push(index, entry);
                let mean = WeightedMean::new(entry.corners(), score);
                clusters.push(Cluster { keeper: candidate, entry: *entry, mean });
                cluster_of.push(index);
                continue;
            }
            let cluster = &mut clusters[best.1 as usize];
            cluster_of.push(best.1);
            cluster.mean.add(entry.corners(), score);
            let measured = Measured::new(cluster.mean.corners(), params.pixel_offset);
            let fused = Entry { measured, ..cluster.entry };
            grid.remove(best.1, &cluster.entry);
            grid.push(best.1, &fused);
            cluster.entry = fused;
        }
        let is_member =
            |&(cluster, candidate): &(usize, u32)| clusters[cluster].keeper != candidate;
        let all = cluster_of.iter().map(|&cluster| cluster as usize).zip(0..).filter(is_member);
        let anchor = |(cluster, candidate)| (cluster, part.detection(candidate).anchor);
        members.fill(clusters.len(), all.map(anchor));
        for (Cluster { keeper, entry, mean }, members) in clusters.iter().zip(members.iter()) {
            merged.members.extend_from_slice(members);
            merged.push(part, *keeper, *entry.corners(), mean.score());
        }
    }
}
