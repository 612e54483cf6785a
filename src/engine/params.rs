//! What to make candidates of and how to suppress them.

use crate::geometry::{Bounds, Overlap};

/// Which candidates survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Method {
    /// Those that no survivor suppresses: exact greedy suppression.
    #[default]
    Greedy = 0,
    /// Those that no higher-ranked candidate suppresses, whether it survives or not: the paper's
    /// single pass.
    MapReduce = 1,
    /// All of them.
    None = 2,
}

impl Method {
    /// Its name, as a value of the property `method`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::MapReduce => "map-reduce",
            Self::None => "none",
        }
    }
}

/// The score that a candidate of each class must reach.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassThresholds {
    /// For classes beyond [`per_class`](Self::per_class).
    pub default: f32,
    /// By class; infinity keeps a class out, since scores are finite.
    pub per_class: Vec<f32>,
}

impl ClassThresholds {
    /// The same threshold for every class.
    pub fn uniform(threshold: f32) -> Self {
        Self { default: threshold, per_class: Vec::new() }
    }

    /// The threshold of `class`.
    pub fn of(&self, class: u32) -> f32 {
        self.per_class.get(class as usize).copied().unwrap_or(self.default)
    }

    /// The lowest threshold of any of `classes` classes: a row below it is no candidate,
    /// whatever its class.
    pub fn lowest(&self, classes: usize) -> f32 {
        let listed = &self.per_class[..self.per_class.len().min(classes)];
        let beyond = if classes > listed.len() { self.default } else { f32::INFINITY };
        // No score is below a threshold that is not a number.
        let bound = |threshold: f32| match threshold.is_nan() {
            true => f32::NEG_INFINITY,
            false => threshold,
        };
        listed.iter().fold(bound(beyond), |lowest, &threshold| lowest.min(bound(threshold)))
    }
}

/// The sides that a box can have, in pixels of the model's input. A limit that is not a number
/// limits nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeLimits {
    /// Least width and height.
    pub min: [f32; 2],
    /// Greatest width and height.
    pub max: [f32; 2],
}

impl SizeLimits {
    /// Any size.
    pub const ANY: Self = Self { min: [0.0; 2], max: [f32::INFINITY; 2] };
}

/// What to make candidates of and how to suppress them.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Which candidates survive.
    pub method: Method,
    /// When two boxes overlap too much.
    pub overlap: Overlap,
    /// `t`, 0 to 1.
    pub iou_threshold: f32,
    /// Whether `>` is `>=` in [`overlap`](Self::overlap). Boxes must intersect in either case.
    pub threshold_inclusive: bool,
    /// Pixels by which sides and intersections are longer than their coordinates' difference: 0,
    /// or 1 as in older programs.
    pub pixel_offset: f32,
    /// Whether boxes of different classes suppress each other.
    pub class_agnostic: bool,
    /// Scores to reach.
    pub thresholds: ClassThresholds,
    /// SizeLimits allowed.
    pub sizes: SizeLimits,
    /// Where boxes can be seen; those that do not intersect it are rejected.
    pub visible: Bounds,
    /// Whether every class of an anchor that reaches its threshold gives a candidate, rather than
    /// the best class alone.
    pub multi_label: bool,
    /// Pixels of the model's input per unit of the tensor, horizontally and vertically: 1 for
    /// pixels, the input's size for normalized coordinates.
    pub scale: [f32; 2],
    /// How many candidates enter suppression; 0 for all.
    pub max_candidates: usize,
    /// How many survivors are published; 0 for all.
    pub max_detections: usize,
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
            thresholds: ClassThresholds::uniform(0.25),
            sizes: SizeLimits::ANY,
            visible: Bounds::ANY,
            multi_label: false,
            scale: [1.0; 2],
            max_candidates: 0,
            max_detections: 0,
        }
    }
}

/// `cap`, where 0 stands for no cap.
pub(super) fn cap(cap: usize) -> usize {
    if cap == 0 { usize::MAX } else { cap }
}
