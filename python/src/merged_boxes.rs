// SPDX-License-Identifier: MIT OR Apache-2.0
//! `suppress`, which merges boxes and lowers scores.
//!
//! In: boxes, scores and, optionally, classes, in host memory. Out: the boxes that remain, as
//! arrays of the library of boxes.

use nmsfilter_core::nms::{Backend, BoxNms, MergedBoxes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::input::{Input, Place};
use crate::options;
use crate::source::{Order, Source};

/// The names of arguments, for messages.
const BOXES: &str = "boxes";
const SCORES: &str = "scores";
const CLASSES: &str = "classes";
const DENSITIES: &str = "densities";
const EMBEDDINGS: &str = "embeddings";

/// An array in host memory with this shape. In the shape, `None` is any number.
fn input<'py>(
    array: &Bound<'py, PyAny>,
    name: &str,
    shape: &[Option<usize>],
) -> Result<Input<'py>> {
    let input = Input::contiguous_on_device(array, name, None)?;
    if input.place != Place::Host {
        return Err(Error::Input(format!(
            "{name}: expected an array in host memory, got one on a GPU; copy it to the host"
        )));
    }
    let is_equal = |(expected, is): (&Option<usize>, &usize)| expected.is_none_or(|it| it == *is);
    if input.shape.len() != shape.len() || !shape.iter().zip(&input.shape).all(is_equal) {
        let side = |side: &Option<usize>| side.map_or("N".to_owned(), |side| side.to_string());
        let expected = shape.iter().map(side).collect::<Vec<_>>().join(", ");
        return Err(Error::Input(format!(
            "{name}: expected shape [{expected}], got {:?}",
            &input.shape[..]
        )));
    }
    Ok(input)
}

/// Suppresses, merges or rescores boxes in host memory, on the CPU.
///
/// boxes: [N, 4] of x1, y1, x2, y2; scores: [N]; classes: None, or [N] whole numbers: boxes of different classes are
/// independent, unless class_agnostic is set. Boxes without area remain unchanged.
///
/// method: "greedy", "map-reduce" or "none", which keep boxes and scores; "merge" (SAHI's GREEDYNMM), "merge-transitive"
/// (SAHI's NMM, but boxes join by score instead of index), "weighted-fusion" (Weighted Boxes Fusion) or "weighted-average"
/// (MediaPipe; ensemble_boxes' non-maximum weighted weights by score times IoU instead of score), which merge boxes; "soft-linear" or "soft-gaussian" (Soft-NMS), "matrix-linear" or "matrix-gaussian" (Matrix NMS), which lower scores;
/// "adaptive" (Adaptive-NMS) with densities [N], or "feature" (FeatureNMS) with embeddings [N, E], which keep more boxes than
/// "greedy".
/// overlap: "iou", "smaller" (SAHI's IOS), "representative" or "diou". iou_threshold: the overlap above which boxes
/// conflict, 0 to 1; threshold_inclusive: an overlap equal to it is a conflict, too. score_threshold: boxes below it are left
/// out, before and after scores are lowered. sigma: the width of Gaussian functions, above 0. lose_released: "merge" and
/// "merge-transitive" lose boxes that do not overlap the grown box, as SAHI does. max_detections: the greatest number of
/// boxes; 0 for all. densities: the threshold of a box is at least the density of the better box. Boxes whose embeddings are
/// more than embedding_distance apart do not conflict, unless their overlap exceeds embedding_iou_threshold.
#[pyfunction]
#[pyo3(signature = (
    boxes, scores, classes=None, *, method=None, overlap=None, iou_threshold=0.5, score_threshold=None,
    threshold_inclusive=false, sigma=0.5, class_agnostic=false, lose_released=false, max_detections=0,
    densities=None, embeddings=None, embedding_distance=1.0, embedding_iou_threshold=0.9, **others
))]
#[expect(clippy::too_many_arguments, reason = "the arguments in Python")]
pub fn suppress<'py>(
    py: Python<'py>,
    boxes: &Bound<'py, PyAny>,
    scores: &Bound<'py, PyAny>,
    classes: Option<&Bound<'py, PyAny>>,
    method: Option<&str>,
    overlap: Option<&str>,
    #[pyo3(from_py_with = options::iou_threshold)] iou_threshold: f64,
    #[pyo3(from_py_with = options::least_score)] score_threshold: Option<f32>,
    threshold_inclusive: bool,
    #[pyo3(from_py_with = options::sigma)] sigma: f32,
    class_agnostic: bool,
    lose_released: bool,
    #[pyo3(from_py_with = options::max_detections)] max_detections: usize,
    densities: Option<&Bound<'py, PyAny>>,
    embeddings: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = options::embedding_distance)] embedding_distance: f32,
    #[pyo3(from_py_with = options::embedding_iou_threshold)] embedding_iou_threshold: f32,
    others: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    options::refuse("suppress", others)?;
    let method = options::any_method(method)?;
    let overlap = options::overlap(overlap)?;
    let boxes = input(boxes, BOXES, &[None, Some(4)])?;
    let count = boxes.shape[0];
    let scores = input(scores, SCORES, &[Some(count)])?;
    let classes = classes.map(|classes| input(classes, CLASSES, &[Some(count)])).transpose()?;
    let densities = densities.map(|it| input(it, DENSITIES, &[Some(count)])).transpose()?;
    let embeddings =
        embeddings.map(|it| input(it, EMBEDDINGS, &[Some(count), None])).transpose()?;
    let column = match (&densities, &embeddings) {
        (Some(_), Some(_)) => {
            let text =
                "embeddings: expected none beside densities, since a method reads one of them";
            return Err(Error::Input(text.to_owned()).into());
        }
        (Some(densities), None) => Some((densities, DENSITIES)),
        (None, embeddings) => embeddings.as_ref().map(|embeddings| (embeddings, EMBEDDINGS)),
    };
    if count > u32::MAX as usize {
        return Err(Error::Input(format!("{BOXES}: expected less than 2^32, got {count}")).into());
    }
    let order = Order::After(boxes.stream(None)?);
    let of_boxes = Source::of_floats(&boxes, BOXES, order)?;
    let of_scores = Source::of_floats(&scores, SCORES, order)?;
    let of_classes =
        classes.as_ref().map(|classes| Source::of_integers(classes, CLASSES, order)).transpose()?;
    let column_name = column.map_or("", |(_, name)| name);
    let of_column =
        column.map(|(column, name)| Source::of_floats(column, name, order)).transpose()?;

    let mut nms = BoxNms::new(Backend::Cpu, None).map_err(Error::from)?;
    (nms.method, nms.overlap, nms.iou_threshold) = (method, overlap, iou_threshold);
    nms.score_threshold = score_threshold.unwrap_or(f32::NEG_INFINITY);
    nms.threshold_inclusive = threshold_inclusive;
    (nms.sigma, nms.class_agnostic, nms.lose_released) = (sigma, class_agnostic, lose_released);
    nms.max_detections = max_detections;
    nms.embedding_distance = embedding_distance;
    nms.embedding_iou_threshold = embedding_iou_threshold;
    let found = py.detach(|| {
        let classes = of_classes.as_ref().map(|classes| classes.view(CLASSES));
        let column = of_column.as_ref().map(|column| column.view(column_name));
        nms.merge(&of_boxes.view(BOXES), &of_scores.view(SCORES), classes.as_ref(), column.as_ref())
    });
    let found = found.map_err(Error::from)?;
    let fields = PyTuple::new(py, arrays(py, &boxes, classes.is_some(), found)?)?;
    py.import("nmsfilter._suppress")?.getattr("MergedBoxes")?.call1(fields)
}

/// The result as arrays of the library of `boxes`; the classes are `None` if none were passed.
fn arrays<'py>(
    py: Python<'py>,
    boxes: &Input<'py>,
    has_classes: bool,
    found: &MergedBoxes,
) -> Result<[Option<Bound<'py, PyAny>>; 6]> {
    let count = found.keepers.len();
    let corners = found.boxes.as_flattened();
    let kind = &boxes.kind;
    let floats = |numbers: &[f32], shape: &[usize]| {
        kind.host(py, Dtype::F32, shape, |to: &mut [f32]| to.copy_from_slice(numbers))
    };
    let indices = |numbers: &[u32]| {
        kind.host(py, Dtype::I64, &[numbers.len()], |to: &mut [i64]| {
            to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = number.into());
        })
    };
    let classes =
        || kind.host(py, Dtype::I64, &[count], |to: &mut [i64]| to.copy_from_slice(&found.classes));
    let ends = kind.host(py, Dtype::I64, &[count], |to: &mut [i64]| {
        to.iter_mut().zip(&found.merged_ends).for_each(|(to, &end)| *to = end as i64);
    });
    Ok([
        Some(floats(corners, &[count, 4])?),
        Some(floats(&found.scores, &[count])?),
        has_classes.then(classes).transpose()?,
        Some(indices(&found.keepers)?),
        Some(indices(&found.merged)?),
        Some(ends?),
    ])
}
