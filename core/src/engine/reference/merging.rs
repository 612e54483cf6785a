// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of merging and rescoring, one after the other.
//!
//! In: upright candidates in descending rank. Out: the survivors in the order of their final
//! ranks. The work is O(n^2) comparisons of n candidates.

use super::super::formula::limited;
use super::super::merging::{Decay, WeightedMean, lowered, union};
use super::super::{Detection, Method, Params};
use super::{Candidate, conflict, intersecting};
use crate::geometry::Corners;

/// A survivor, and the position of its keeper among the ranked candidates.
struct Survivor {
    keeper: usize,
    detection: Detection,
}

/// The survivors of a method that merges or rescores.
pub(super) fn survivors(ranked: &[Candidate], params: &Params) -> Vec<Detection> {
    let mut survivors = match params.method {
        Method::Merge | Method::MergeTransitive | Method::WeightedAverage => {
            merged_claims(ranked, params)
        }
        Method::WeightedFusion => fused(ranked, params),
        Method::SoftLinear | Method::SoftGaussian => soft(ranked, params),
        Method::MatrixLinear | Method::MatrixGaussian => matrix(ranked, params),
        Method::Greedy | Method::MapReduce | Method::None | Method::Adaptive | Method::Feature => {
            unreachable!("{} changes no box and no score", params.method.name())
        }
    };
    survivors.retain(|survivor| !is_below_threshold(&survivor.detection, params));
    survivors.sort_by(|a, b| {
        let by_score = b.detection.score.partial_cmp(&a.detection.score);
        by_score.expect("scores are finite").then(a.keeper.cmp(&b.keeper))
    });
    survivors.into_iter().map(|survivor| survivor.detection).collect()
}

/// A comparison with NaN is false, so that a threshold of NaN drops nothing.
fn is_below_threshold(detection: &Detection, params: &Params) -> bool {
    detection.score < params.thresholds.of(detection.class)
}

/// The candidate's detection with another box.
fn with_box(detection: &Detection, corners: Corners) -> Detection {
    let Corners { x1, y1, x2, y2 } = corners;
    Detection { x1, y1, x2, y2, ..*detection }
}

fn merged_claims(ranked: &[Candidate], params: &Params) -> Vec<Survivor> {
    let mut survivors = Vec::new();
    for (keeper, members) in claims(ranked, params) {
        if params.method == Method::WeightedAverage {
            let detection = &ranked[keeper].detection;
            let mut mean = WeightedMean::new(&detection.corners(), detection.score);
            for &member in &members {
                let member = &ranked[member].detection;
                mean.add(&member.corners(), member.score);
            }
            survivors.push(Survivor { keeper, detection: with_box(detection, mean.corners()) });
        } else {
            grow(ranked, keeper, members, params, &mut survivors);
        }
    }
    survivors
}

/// The claims: each keeper with the other members, in descending rank.
fn claims(ranked: &[Candidate], params: &Params) -> Vec<(usize, Vec<usize>)> {
    let is_transitive = params.method == Method::MergeTransitive;
    let mut claims: Vec<(usize, Vec<usize>)> = Vec::new();
    // For each candidate, the index of its claim.
    let mut claim_of: Vec<usize> = Vec::new();
    for (position, candidate) in ranked.iter().enumerate() {
        let claimer = (0..position).find(|&other| {
            let is_keeper = claims[claim_of[other]].0 == other;
            (is_transitive || is_keeper) && conflict(&ranked[other], candidate, params)
        });
        match claimer {
            Some(claimer) => {
                let claim = claim_of[claimer];
                claims[claim].1.push(position);
                claim_of.push(claim);
            }
            None => {
                claim_of.push(claims.len());
                claims.push((position, Vec::new()));
            }
        }
    }
    claims
}

/// Adds the survivors of a claim, whose members join the keeper's box or are released.
fn grow(
    ranked: &[Candidate],
    mut keeper: usize,
    mut members: Vec<usize>,
    params: &Params,
    survivors: &mut Vec<Survivor>,
) {
    let is_inclusive = params.threshold_inclusive && !params.lose_released;
    let test = Params { threshold_inclusive: is_inclusive, ..params.clone() };
    loop {
        let mut grown = ranked[keeper];
        members.retain(|&member| {
            let joins = conflict(&grown, &ranked[member], &test);
            if joins {
                let both = union(&grown.detection.corners(), &ranked[member].detection.corners());
                grown.detection = with_box(&grown.detection, both);
            }
            !joins
        });
        survivors.push(Survivor { keeper, detection: grown.detection });
        if members.is_empty() || params.lose_released {
            return;
        }
        // The released members are a claim in turn.
        keeper = members.remove(0);
    }
}

/// A cluster of weighted fusion.
struct Cluster {
    keeper: usize,
    /// The keeper with the cluster's box.
    fused: Candidate,
    mean: WeightedMean,
}

fn fused(ranked: &[Candidate], params: &Params) -> Vec<Survivor> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (position, candidate) in ranked.iter().enumerate() {
        let Detection { score, .. } = candidate.detection;
        let corners = candidate.detection.corners();
        let mut best: Option<(usize, f32)> = None;
        for (index, cluster) in clusters.iter().enumerate() {
            if conflict(&cluster.fused, candidate, params) {
                let overlap = overlap_of(&cluster.fused, candidate, params);
                if best.is_none_or(|(_, greatest)| overlap > greatest) {
                    best = Some((index, overlap));
                }
            }
        }
        match best {
            Some((index, _)) => {
                let cluster = &mut clusters[index];
                cluster.mean.add(&corners, score);
                let detection = &mut cluster.fused.detection;
                *detection = with_box(detection, cluster.mean.corners());
            }
            None => {
                let mean = WeightedMean::new(&corners, score);
                clusters.push(Cluster { keeper: position, fused: *candidate, mean });
            }
        }
    }
    let survivor = |Cluster { keeper, fused, mean }: &Cluster| {
        let detection = Detection { score: mean.score(), ..fused.detection };
        Survivor { keeper: *keeper, detection }
    };
    clusters.iter().map(survivor).collect()
}

fn soft(ranked: &[Candidate], params: &Params) -> Vec<Survivor> {
    let decay = Decay::of(params.method, params.sigma);
    let mut remaining: Vec<(usize, Candidate)> = ranked.iter().copied().enumerate().collect();
    let mut survivors = Vec::new();
    while !remaining.is_empty() {
        let mut best = 0;
        for (index, (_, candidate)) in remaining.iter().enumerate() {
            if candidate.detection.score > remaining[best].1.detection.score {
                best = index;
            }
        }
        // The order is kept: among equal scores, the first has the highest rank.
        let (keeper, survivor) = remaining.remove(best);
        if is_below_threshold(&survivor.detection, params) {
            continue;
        }
        for (_, other) in &mut remaining {
            let is_lowered = match decay {
                Decay::Linear => conflict(&survivor, other, params),
                Decay::Gaussian { .. } => true,
            };
            if is_lowered {
                let factor = decay.soft(overlap_of(&survivor, other, params));
                other.detection.score = lowered(other.detection.score, factor);
            }
        }
        survivors.push(Survivor { keeper, detection: survivor.detection });
    }
    survivors
}

fn matrix(ranked: &[Candidate], params: &Params) -> Vec<Survivor> {
    let decay = Decay::of(params.method, params.sigma);
    let mut compensations: Vec<f32> = Vec::new();
    let mut survivors = Vec::new();
    for (keeper, candidate) in ranked.iter().enumerate() {
        let (mut factor, mut compensation) = (1.0, 0.0);
        for (higher, &of_higher) in ranked[..keeper].iter().zip(&compensations) {
            let overlap = overlap_of(higher, candidate, params);
            factor = f32::min(factor, decay.matrix(decay.exponent(overlap, of_higher)));
            compensation = f32::max(compensation, overlap);
        }
        compensations.push(compensation);
        let score = lowered(candidate.detection.score, factor);
        let detection = Detection { score, ..candidate.detection };
        survivors.push(Survivor { keeper, detection });
    }
    survivors
}

/// The overlap of two candidates.
fn overlap_of(higher: &Candidate, lower: &Candidate, params: &Params) -> f32 {
    let (higher, lower) = (&higher.detection, &lower.detection);
    let pair = intersecting(higher, lower, params, params.pixel_offset);
    pair.map_or(0.0, |pair| limited(params.overlap.value(&pair)))
}
