// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images in which nothing is found.
//!
//! In: the outcome of each run, and the tensors of two runs. Out: a notice with the best score, and the rule
//! because of which no anchor is a candidate.
//!
//! A scene may really be empty, so the text only states the numbers. Engines count the candidates anyway. The best
//! score is found by decoding a run again, on the CPU and without thresholds. This happens at most twice: with the
//! first image, if its tensors are in host memory, so that a stream of a single picture also gets the score; and
//! when the warning is due.

use std::time::Duration;

use super::notice::{Finding, Notice};
use super::watch::{QUIET, is_over};
use crate::engine::{
    ClassThresholds, Cpu, Detection, Engine, ImagePlace, Job, Method, Outcome, Params, RegionEdges,
    SizeLimits,
};
use crate::geometry::Bounds;
use crate::tensor::TensorView;
use crate::wording::Setting::{self, RegionEdges as Edges, ScoreThreshold, Sizes};

/// The reason why no anchor is a candidate.
#[derive(Debug)]
struct Cause {
    text: String,
    /// The score of the best box that is no candidate; the least number without a box.
    score: f32,
    /// Its class, if the text names it.
    class: Option<u32>,
}

/// The images since the start of a reading, until one has a candidate or a rejected anchor. The images of a group count
/// as one, since they are parts of one frame.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    images: usize,
    decoder: &'static str,
    /// The cause with the best score, among the runs that were examined.
    cause: Option<Cause>,
    /// Starts with the first image.
    pub since: Option<Duration>,
    /// True if an image had a candidate or a rejected anchor, or a warning explains why nothing is found.
    pub is_over: bool,
}

impl Quiet {
    pub fn new(is_over: bool) -> Self {
        Self { is_over, ..Self::default() }
    }

    /// Returns true if it is time to tell that nothing is found. `now` is the time since any moment.
    pub fn is_due(&mut self, now: Option<Duration>) -> bool {
        self.images > 0 && !self.is_over && is_over(&mut self.since, now, QUIET, self.images)
    }

    /// Adds the images of a run. Tensors without anchors are ignored: they are lists of boxes that are empty on
    /// purpose. Allocates only for the first image.
    pub fn add(&mut self, outcome: &Outcome<'_>, run: Job<'_>) {
        if self.is_over || run.layout.anchors() == 0 {
            return;
        }
        self.is_over = outcome.groups().any(|image| image.candidates + image.rejected > 0);
        if self.images == 0 && !self.is_over && !run.tensors.iter().any(TensorView::is_on_device) {
            self.examine(run);
        }
        self.images += outcome.groups().len();
        self.decoder = run.layout.decoder;
    }

    /// Makes the warning, using the tensors of one more run if there is one. Later images do not count.
    pub fn end(&mut self, run: Option<Job<'_>>) -> Option<Notice> {
        if std::mem::replace(&mut self.is_over, true) || self.images == 0 {
            return None;
        }
        if let Some(run) = run {
            self.examine(run);
        }
        let Self { images, decoder, cause, .. } = self;
        let noun = if *images == 1 { "image" } else { "images" };
        let why = match cause {
            Some(cause) => format!(": {}", cause.text),
            None => format!(
                "; if there are objects in them, check {} and its thresholds",
                Setting::Decoder
            ),
        };
        let text = format!("{images} {noun} with decoder {decoder}{why}");
        let class = cause.as_ref().and_then(|cause| cause.class);
        Some(Notice(Finding::Silence { text, class }))
    }

    fn examine(&mut self, run: Job<'_>) {
        // There is no cause if the host cannot read the tensors.
        let known = &mut self.cause;
        let is_better = |new: &Cause| known.as_ref().is_none_or(|old| new.score > old.score);
        if let Some(cause) = cause(run).filter(is_better) {
            *known = Some(cause);
        }
    }
}

/// Returns the reason why no anchor of a run is a candidate; `None` if the CPU cannot read the tensors.
fn cause(Job { tensors, layout, params, images }: Job<'_>) -> Option<Cause> {
    let mut engine = Cpu::default();
    // Without a visible part, there are no inner edges either.
    let images: Vec<ImagePlace> =
        images.iter().map(|place| ImagePlace { visible: Bounds::ANY, ..*place }).collect();
    let mut decode = |thresholds: ClassThresholds, has_sizes: bool| {
        let params = Params {
            thresholds,
            method: Method::None,
            max_candidates: 1,
            max_detections: 1,
            // The best class of each anchor is enough.
            multi_label: false,
            sizes: if has_sizes { params.sizes } else { SizeLimits::ANY },
            class_rules: if has_sizes { params.class_rules.clone() } else { Vec::new() },
            ..params.clone()
        };
        let outcome = engine.run(Job::new(tensors, layout, &params, &images)).ok()?;
        let candidates: usize = outcome.groups().map(|image| image.candidates).sum();
        let all = outcome.groups().filter_map(|image| image.survivors.first().copied());
        Some((candidates, all.max_by(|one, other| one.score.total_cmp(&other.score))))
    };
    let of = |best: Detection, class, text| Some(Cause { text, score: best.score, class });
    let thresholds = &params.thresholds;
    if params.region_edges == RegionEdges::Drop
        && let (boxes, Some(best)) = decode(thresholds.clone(), true)?
    {
        let text = format!(
            "{boxes} boxes with scores up to {} are at inner edges of regions and dropped; if they are objects, correct \
             {Edges}, or enlarge the regions or their overlap",
            best.score
        );
        return of(best, None, text);
    }
    if let (boxes, Some(best)) = decode(thresholds.clone(), false)? {
        let Detection { score, x1, y1, x2, y2, .. } = best;
        let text = format!(
            "the size limits exclude {boxes} boxes with scores up to {score}; the best one has {}x{} pixels of the model's \
             input; correct {Sizes}",
            x2 - x1,
            y2 - y1
        );
        return of(best, None, text);
    }
    let unlimited = |&threshold: &f32| {
        if threshold == f32::INFINITY { f32::INFINITY } else { f32::NEG_INFINITY }
    };
    let lowest = ClassThresholds {
        default: unlimited(&thresholds.default),
        per_class: thresholds.per_class.iter().map(unlimited).collect(),
    };
    if let (_, Some(best)) = decode(lowest, false)? {
        let Detection { score, class, .. } = best;
        let text = format!(
            "the best score is {score} (class {class}), below the threshold {}; if there are objects in them, check {}, \
             {ScoreThreshold}, the scale and zero point of quantized tensors, and the range of the model's input",
            thresholds.of(class),
            Setting::Decoder
        );
        return of(best, Some(class), text);
    }
    if let (_, Some(best)) = decode(ClassThresholds::uniform(f32::NEG_INFINITY), false)? {
        let Detection { score, class, .. } = best;
        let text = format!(
            "the best score is {score}, of class {class}, which is excluded, and no anchor has a class that is not excluded"
        );
        return of(best, Some(class), text);
    }
    // The number of detections that the model outputs can also be 0.
    let text = format!(
        "none of the {} anchors has a box; if there are objects in them, check {}, the zero point of quantized tensors, \
         and the model's input",
        layout.anchors(),
        Setting::Decoder
    );
    Some(Cause { text, score: f32::NEG_INFINITY, class: None })
}
