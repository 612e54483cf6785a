// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of engines.
//!
//! In: the element's properties or a program's settings. Out: [`Params`], which every engine takes.
//! Lengths are in pixels of the frame, or in pixels of the model's input if images are not in a
//! frame.

use super::scalar::{Scalar, ScalarField, ScalarKind, scalars};
use crate::decoder::layout::ColumnKind;
use crate::geometry::Overlap;
use crate::named::named;

named! {
    /// The method of suppression, merging or rescoring, which decides which candidates survive.
    ///
    /// The section "Merging and rescoring" of the [rules](super) defines the methods that change boxes
    /// or scores.
    #[non_exhaustive]
    pub enum Method {
        /// A candidate survives if it conflicts with no survivor of higher rank: exact greedy
        /// suppression.
        #[default]
        Greedy = 0 "greedy",
        /// A candidate survives if it conflicts with no candidate of higher rank, even one that is
        /// suppressed: the single pass of Oro et al. 2020.
        MapReduce = 1 "map-reduce",
        /// All candidates survive.
        None = 2 "none",
        /// A survivor of [`Greedy`](Self::Greedy) gets the union of its box and of the boxes that it
        /// suppresses: SAHI's greedy merging (`GREEDYNMM`).
        Merge = 3 "merge",
        /// Like [`Merge`](Self::Merge), but a box also merges with the boxes that its suppressed boxes suppress:
        /// SAHI's transitive merging (`NMM`), except that boxes join in descending rank, and there by index.
        MergeTransitive = 4 "merge-transitive",
        /// Boxes that overlap the weighted mean of a cluster join the cluster: Weighted Boxes Fusion
        /// (Solovyev, Wang, Gabruseva 2021).
        WeightedFusion = 5 "weighted-fusion",
        /// A survivor of [`Greedy`](Self::Greedy) gets the mean of its box and of the boxes that it
        /// suppresses, weighted by score: the weighted suppression of MediaPipe. Non-maximum weighted (`ensemble_boxes`)
        /// weights by score times IoU, and a box joins the box of the greatest IoU.
        WeightedAverage = 6 "weighted-average",
        /// Conflicting candidates get lower scores, by the factor 1 - overlap: Soft-NMS (Bodla et al.
        /// 2017).
        SoftLinear = 7 "soft-linear",
        /// Intersecting candidates get lower scores, by a Gaussian function of the overlap: Soft-NMS
        /// (Bodla et al. 2017).
        SoftGaussian = 8 "soft-gaussian",
        /// Scores are lowered in one pass, by linear decay: Matrix NMS (Wang et al. 2020, SOLOv2).
        MatrixLinear = 9 "matrix-linear",
        /// Scores are lowered in one pass, by Gaussian decay: Matrix NMS (Wang et al. 2020, SOLOv2).
        MatrixGaussian = 10 "matrix-gaussian",
        /// Like [`Greedy`](Self::Greedy), but the threshold is at least the density of the candidate of
        /// higher rank, a column of the layout: Adaptive-NMS (Liu, Huang, Wang 2019).
        Adaptive = 11 "adaptive",
        /// Like [`Greedy`](Self::Greedy), but candidates with different embeddings, a column of the
        /// layout, do not conflict: FeatureNMS (Salscheider 2020).
        Feature = 12 "feature",
    }
}

impl Method {
    /// Returns true if survivors keep their boxes and their scores.
    pub fn only_suppresses(self) -> bool {
        matches!(self, Self::Greedy | Self::MapReduce | Self::None | Self::Adaptive | Self::Feature)
    }

    /// The kind of the column by which the method decides, if it reads one.
    pub fn column(self) -> Option<ColumnKind> {
        match self {
            Self::Adaptive => Some(ColumnKind::Density),
            Self::Feature => Some(ColumnKind::Embedding),
            _ => None,
        }
    }

    /// Returns true if the method processes one box after the other, which takes a CPU less time than a GPU.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::WeightedFusion | Self::SoftLinear | Self::SoftGaussian)
    }

    /// Returns true if the method is defined for oriented boxes.
    pub(crate) fn allows_oriented(self) -> bool {
        matches!(self, Self::Greedy | Self::MapReduce | Self::None)
    }
}

/// The score that a candidate of each class must reach.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassThresholds {
    /// The threshold of classes beyond the end of [`per_class`](Self::per_class).
    pub default: f32,
    /// The thresholds by class. Infinity excludes a class, since scores are finite.
    pub per_class: Vec<f32>,
}

impl ClassThresholds {
    /// One threshold for every class.
    pub fn uniform(threshold: f32) -> Self {
        Self { default: threshold, per_class: Vec::new() }
    }

    /// The threshold of `class`.
    pub fn of(&self, class: u32) -> f32 {
        self.per_class.get(class as usize).copied().unwrap_or(self.default)
    }

    /// The lowest threshold of the first `classes` classes. An anchor with a score below it does
    /// not become a candidate for any class. A threshold of NaN counts as minus infinity, since no
    /// score is below it.
    pub fn lowest(&self, classes: usize) -> f32 {
        let listed = &self.per_class[..self.per_class.len().min(classes)];
        let beyond = if classes > listed.len() { self.default } else { f32::INFINITY };
        // No score is below NaN.
        let bound = |threshold: f32| if threshold.is_nan() { f32::NEG_INFINITY } else { threshold };
        listed.iter().fold(bound(beyond), |lowest, &threshold| lowest.min(bound(threshold)))
    }
}

/// The least [`Params::edge_margin`]. Edges of frames in pixels of the model's input are rounded by less.
pub(super) const MIN_EDGE_MARGIN: f32 = 1.0;

/// The limits of a box's sides, inclusive. They are in pixels of the frame, or in pixels of the
/// model's input if the image is not in a frame. A limit of NaN has no effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeLimits {
    /// Minimum width and height.
    pub min: [f32; 2],
    /// Maximum width and height.
    pub max: [f32; 2],
}

impl SizeLimits {
    /// No limits.
    pub const ANY: Self = Self { min: [0.0; 2], max: [f32::INFINITY; 2] };
}

/// Rules for the candidates of one class. They replace the rules for all classes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassRule {
    /// Replaces [`Params::iou_threshold`]; 0 to 1.
    pub iou_threshold: Option<f32>,
    /// Replaces [`Params::sizes`].
    pub sizes: Option<SizeLimits>,
    /// The greatest number of survivors of the class per group, or 0 for no limit.
    pub max_detections: usize,
}

named! {
    /// The pixels of masks.
    #[non_exhaustive]
    pub enum MaskSize {
        /// Pixels of the prototypes.
        #[default]
        Prototypes = 0 "prototypes",
        /// Pixels of the frame, or of the prototypes if images are not in a frame.
        Frame = 1 "frame",
    }
}

named! {
    /// The rule for boxes that touch an inner edge of their image's region, such as a tile. Such a box often
    /// shows only a part of an object.
    #[non_exhaustive]
    pub enum RegionEdges {
        /// They are like other boxes.
        #[default]
        Keep = 0 "keep",
        /// They are dropped.
        Drop = 1 "drop",
        /// Their scores become [`Params::edge_score`], so that they suppress no better box.
        Lower = 2 "lower",
    }
}

/// Parameters of decoding and suppression. The rules of the engines say where each parameter
/// applies.
///
/// Every interface has every parameter. Parameters with a single value are in the table
/// [`SCALARS`](Self::SCALARS). `tests/parameters.rs` compares all parameters with the interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The method of suppression, merging or rescoring.
    pub method: Method,
    /// The measure by which two boxes conflict.
    pub overlap: Overlap,
    /// The threshold `t` of [`overlap`](Self::overlap), 0 to 1. Between two classes, the threshold
    /// of the lower-ranked candidate's class applies.
    pub iou_threshold: f32,
    /// If set, an overlap equal to the threshold is a conflict. Boxes must intersect in either
    /// case.
    pub threshold_inclusive: bool,
    /// Pixels that are added to the lengths of sides and intersections: 0, or 1 for coordinates that are
    /// indices of the first and the last pixel.
    pub pixel_offset: f32,
    /// If set, candidates of different classes can conflict.
    pub class_agnostic: bool,
    /// The width of the Gaussian function of [`Method::SoftGaussian`] and
    /// [`Method::MatrixGaussian`]; finite and above 0.
    pub sigma: f32,
    /// If set, [`Method::Merge`] and [`Method::MergeTransitive`] lose the boxes that do not join
    /// the grown box, as SAHI does. Otherwise these boxes remain.
    pub lose_released: bool,
    /// The distance of embeddings above which [`Method::Feature`] takes two candidates for different
    /// objects; at least 0.
    pub embedding_distance: f32,
    /// The overlap above which candidates conflict with [`Method::Feature`] even if their embeddings
    /// differ, 0 to 1.
    pub embedding_iou_threshold: f32,
    /// The score that a candidate of each class must reach.
    pub thresholds: ClassThresholds,
    /// The limits of a box's sides.
    pub sizes: SizeLimits,
    /// The rules of single classes, indexed by class. Classes beyond the end have no rules.
    pub class_rules: Vec<ClassRule>,
    /// The rule for boxes that touch an inner edge of their image's region: an edge of
    /// [`ImagePlace::visible`](super::ImagePlace::visible) that is inside the frame.
    pub region_edges: RegionEdges,
    /// The distance from an inner edge at which boxes touch it, in pixels of the frame; finite, at
    /// least 1. Edges this near to the frame's edge are not inner.
    pub edge_margin: f32,
    /// The score that [`RegionEdges::Lower`] lowers to, but not below the threshold of the class.
    pub edge_score: f32,
    /// If set, every class whose score reaches its threshold makes a candidate of the anchor.
    /// Otherwise only the best class does.
    pub multi_label: bool,
    /// The greatest number of candidates per group that are compared, or 0 for no limit.
    pub max_candidates: usize,
    /// The greatest number of survivors per group, or 0 for no limit.
    pub max_detections: usize,
    /// If set, the masks of survivors are computed, provided that the model has masks. Otherwise
    /// prototypes are not read.
    pub masks: bool,
    /// The pixels of masks.
    pub mask_size: MaskSize,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            method: Method::Greedy,
            overlap: Overlap::Iou,
            iou_threshold: 0.45,
            threshold_inclusive: false,
            pixel_offset: 0.0,
            class_agnostic: false,
            sigma: 0.5,
            lose_released: false,
            embedding_distance: 1.0,
            embedding_iou_threshold: 0.9,
            thresholds: ClassThresholds::uniform(0.25),
            sizes: SizeLimits::ANY,
            class_rules: Vec::new(),
            region_edges: RegionEdges::Keep,
            edge_margin: 5.0,
            edge_score: 0.6,
            multi_label: false,
            max_candidates: 0,
            max_detections: 0,
            masks: true,
            mask_size: MaskSize::Prototypes,
        }
    }
}

impl Params {
    /// The parameters with a single value. [`score_threshold`](ClassThresholds::default) is the
    /// threshold of classes that have no other one.
    pub const SCALARS: &[Scalar] = scalars! {
        iou_threshold: Number(0.0, 1.0) of iou_threshold; "IoU threshold",
            "Overlap above which two boxes conflict, so that the higher-ranked can suppress the other";
        score_threshold: Number(f32::MIN, f32::MAX) of thresholds.default; "Score threshold",
            "Minimum score of a candidate, or of a classifier's class; any number, since scores of some detectors \
             exceed 1";
        threshold_inclusive: Flag of threshold_inclusive; "Threshold inclusive",
            "Whether two boxes also conflict at an overlap equal to the threshold (>= instead of >)";
        class_agnostic: Flag of class_agnostic; "Class agnostic",
            "Whether boxes of different classes suppress each other";
        sigma: Number(f32::MIN_POSITIVE, f32::MAX) of sigma; "Sigma",
            "Width of the Gaussian function of the methods soft-gaussian and matrix-gaussian";
        lose_released: Flag of lose_released; "Lose released",
            "Whether the methods merge and merge-transitive lose boxes that do not overlap the grown box, as SAHI \
             does, instead of keeping them";
        edge_margin: Number(MIN_EDGE_MARGIN, f32::MAX) of edge_margin; "Edge margin",
            "Distance in pixels of the frame at which a box touches an inner edge of its region";
        edge_score: Number(f32::MIN, f32::MAX) of edge_score; "Edge score",
            "Greatest score of a box that touches an inner edge, if edges lower scores; the score is not lowered \
             below the score threshold of the class";
        embedding_distance: Number(0.0, f32::MAX) of embedding_distance; "Embedding distance",
            "Distance of embeddings above which two boxes do not conflict with the method feature";
        embedding_iou_threshold: Number(0.0, 1.0) of embedding_iou_threshold; "Embedding IoU threshold",
            "Overlap above which two boxes conflict with the method feature, whatever their embeddings are";
        multi_label: Flag of multi_label; "Multi-label",
            "Whether every class of an anchor that reaches its score threshold gives a candidate, instead of the \
             best class only";
        max_candidates: Count of max_candidates; "Max candidates",
            "Maximum number of candidates that enter suppression, the highest-ranked (0: no limit)";
        max_detections: Count of max_detections; "Max detections",
            "Maximum number of survivors, or of a classifier's classes, the highest-ranked (0: no limit)";
        masks: Flag of masks; "Masks",
            "Whether survivors of a segmentation model have masks. If not, its prototypes are not read";
    };

    /// The overlap threshold above which a candidate of `class` is suppressed.
    #[inline]
    pub fn iou_threshold_of(&self, class: u32) -> f32 {
        self.rule_of(class).and_then(|rule| rule.iou_threshold).unwrap_or(self.iou_threshold)
    }

    /// The limits of the sides of boxes of `class`, if the class has a rule for them.
    #[inline]
    pub(crate) fn class_sizes(&self, class: u32) -> Option<&SizeLimits> {
        self.rule_of(class).and_then(|rule| rule.sizes.as_ref())
    }

    #[inline]
    fn rule_of(&self, class: u32) -> Option<&ClassRule> {
        self.class_rules.get(class as usize)
    }

    /// The lowest overlap threshold of any class. A threshold of NaN is ignored, since no overlap
    /// exceeds it.
    pub(crate) fn lowest_iou_threshold(&self) -> f32 {
        let of_classes = self.class_rules.iter().filter_map(|rule| rule.iou_threshold);
        of_classes.fold(self.iou_threshold, f32::min)
    }

    /// Returns true if any class has a limit on its survivors.
    pub(crate) fn has_class_limits(&self) -> bool {
        self.class_rules.iter().any(|rule| rule.max_detections != 0)
    }

    /// The greatest number of survivors that suppression must find, or 0 for all. Class limits
    /// apply to all survivors, and [`max_detections`](Self::max_detections) applies to the
    /// survivors that remain.
    pub(super) fn survivors_to_find(&self) -> usize {
        if self.has_class_limits() { 0 } else { self.max_detections }
    }
}

/// Converts `cap` to a number of items, where 0 means no limit.
pub(super) fn cap(cap: usize) -> usize {
    if cap == 0 { usize::MAX } else { cap }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields with more than one value, or with an enumeration's value. Interfaces offer them
    /// in their own ways.
    const OTHERS: [&str; 8] = [
        "method",
        "overlap",
        "pixel_offset",
        "thresholds",
        "sizes",
        "class_rules",
        "region_edges",
        "mask_size",
    ];

    #[test]
    fn each_field_is_a_scalar_or_has_a_form_of_its_own() {
        let text = format!("{:#?}", Params::default());
        let fields = text.lines().filter_map(|line| {
            let field =
                line.strip_prefix("    ").filter(|line| line.starts_with(char::is_alphabetic));
            Some(field?.split_once(':')?.0)
        });
        let mut fields: Vec<&str> = fields.collect();
        let scalars = Params::SCALARS.iter().map(|scalar| scalar.name);
        let mut known: Vec<&str> =
            scalars.filter(|name| *name != "score_threshold").chain(OTHERS).collect();
        fields.sort_unstable();
        known.sort_unstable();
        assert_eq!(fields, known);
    }

    /// A field that two entries share would be found here.
    #[test]
    fn each_scalar_reads_what_it_writes_and_changes_nothing_else() {
        for (index, scalar) in Params::SCALARS.iter().enumerate() {
            let defaults = Params::default();
            let mut params = defaults.clone();
            match scalar.kind {
                ScalarKind::Flag(flag) => (flag.set)(&mut params, !(flag.get)(&defaults)),
                ScalarKind::Count(count) => (count.set)(&mut params, (count.get)(&defaults) + 1),
                ScalarKind::Number(field, [minimum, maximum]) => {
                    let default = (field.get)(&defaults);
                    assert!((minimum..=maximum).contains(&default), "{}", scalar.name);
                    (field.set)(&mut params, default / 2.0);
                }
            }
            for (other, scalar) in Params::SCALARS.iter().enumerate() {
                let is_equal = match scalar.kind {
                    ScalarKind::Flag(flag) => (flag.get)(&params) == (flag.get)(&defaults),
                    ScalarKind::Count(count) => (count.get)(&params) == (count.get)(&defaults),
                    ScalarKind::Number(field, _) => (field.get)(&params) == (field.get)(&defaults),
                };
                assert_eq!(is_equal, other != index, "{}", scalar.name);
            }
        }
    }
}
