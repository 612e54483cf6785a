// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder `boxes`: boxes and scores in two tensors, as SSD, RetinaNet and most other detectors
//! export them after decoding anchors, and with the class of each box in a third tensor, as postprocessed outputs have
//! them. The format of the boxes is [`Options::box_format`].

use std::borrow::Cow;

use super::check::{
    self, check_batch, check_classes, check_element_type, check_images, check_lengths,
    no_background,
};
use super::choose::{ONNX_PREFIX, chosen};
use super::layout::{Background, Field, Layout, LayoutError, LayoutProblem, PlainLayout};
use super::{Decoder, Family, Form, MAX_CLASSES, Options, Role, Scores};
use crate::tensor::TensorView;
use crate::wording::Setting;

const NAME: &str = "boxes";

const EXPECTS: &str = "boxes [N,4] ([N,3] if they are squares) and scores [N], [N,C] or [C,N]; with scores [N] also classes [N]";

/// The decoder of this family.
pub(super) fn decoder(family: Family) -> Decoder {
    let role = |name, ids: &[&'static str], names: &[&'static str]| {
        let [ids, names] = [ids, names].map(|all| all.iter().copied().map(Cow::from).collect());
        Role { name, ids, names, ..Role::default() }
    };
    let boxes = role("boxes", &["boxes", "boxes-normalized"], &[]);
    let scores = role("scores", &["scores"], &[]);
    let labels = role("labels", &["labels"], &["class_idx", "classes", "det_classes"]);
    let forms = vec![
        Form::new(vec![boxes.clone(), scores.clone(), labels], None),
        Form::new(vec![boxes, scores], None),
    ];
    Decoder { name: NAME, expects: EXPECTS, scores: Scores::OfTheModel, label: None, forms, family }
}

/// Reads boxes `[N,4]` or `[N,3]` and scores `[N]`, `[N,C]` or `[C,N]`.
pub(super) fn layout(tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
    let (boxes, scores) = (tensors[0], tensors[1]);
    let [images, anchors, numbers] = matrix(boxes, options)?;
    match (numbers, options.box_format) {
        (numbers, format) if numbers == format.components() => {}
        (numbers @ 3..=4, format) => {
            let other = if numbers == 3 { "square" } else { "corners or center" };
            let text = format!(
                "tensor {boxes}: {} needs [N,{}], got {numbers} numbers per box; set {} to {other}",
                Setting::BoxFormat.to(format.name()),
                format.components(),
                Setting::BoxFormat
            );
            return Err(LayoutError::new(LayoutProblem::BoxFormat, text));
        }
        _ => return Err(shape_error(boxes)),
    }
    check_element_type(scores)?;
    // A row of scores for each class, rather than one for each box.
    let by_class = match *scores.shape {
        [.., classes, n] => n == anchors && classes != anchors && classes > 1,
        _ => false,
    } && scores.shape.len() == boxes.shape.len().min(3);
    let (score_images, rows, classes) = match *scores.shape {
        [classes, n] if by_class => (1, n, classes),
        [batch, classes, n] if by_class => (batch, n, classes),
        [n, m] if n == images && m == anchors && boxes.shape.len() == 3 => (n, m, 1),
        // This shape is one row of scores for one box, or a score for each box.
        [1, n] if n == anchors || anchors != 1 => (1, n, 1),
        [n] => (1, n, 1),
        [n, classes] => (1, n, classes),
        [batch, n, classes] => (batch, n, classes),
        _ => return Err(shape_error(scores)),
    };
    check_batch(scores, score_images, options)?;
    if classes == 0 {
        return Err(shape_error(scores));
    }
    check_images((boxes, images), (scores, score_images))?;
    check_lengths((boxes, anchors), (scores, rows))?;
    check_classes(scores, classes)?;
    let mut layout = Layout::from(PlainLayout {
        decoder: NAME,
        images,
        anchors,
        classes,
        boxes: Field::of_matrix(0, anchors, numbers, false),
        box_format: options.box_format,
        scores: Field::of_matrix(1, rows, classes, by_class),
        objectness: None,
        normalized: options.coordinates.normalized(false, boxes),
    });
    layout.score.activation = options.score_activation.unwrap_or_default();
    let background = options.background.unwrap_or_default();
    if !layout.set_background(background, options.known_classes()) {
        return Err(no_background(scores, NAME, background));
    }
    Ok(layout)
}

/// Parts of the names that exporters give to the classes of boxes: `labels`, `class_idx`, `det_classes`, ...
const CLASS_NAMES: [&str; 4] = ["label", "class", "cls", "categor"];

/// Parts of the names of other integers for each box: the indices that suppression has selected, or the image's number
/// in a batch.
const OTHER_NAMES: [&str; 8] =
    ["indic", "index", "inds", "idx", "keep", "batch", "image", "anchor"];

/// True if an output has the classes of boxes by its name; `None` if its name says nothing.
fn has_classes(tensor: &TensorView<'_>) -> Option<bool> {
    let name = tensor.id.strip_prefix(ONNX_PREFIX).unwrap_or(tensor.id).to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match (has(&CLASS_NAMES), has(&OTHER_NAMES)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// Reads boxes `[N,4]` or `[N,3]`, scores `[N]` and the class of each box as integers or floating-point numbers `[N]`.
pub(super) fn labeled_layout(
    tensors: &[&TensorView<'_>],
    options: Options,
) -> Result<Layout, LayoutError> {
    let (scores, labels) = (tensors[1], tensors[2]);
    // The background has no score beside a class in a tensor.
    let without = Options { background: None, ..options };
    let mut layout = layout(&tensors[..2], without)?;
    if layout.classes != 1 {
        return Err(shape_error(scores));
    }
    if let Some(background) = options.background.filter(|it| *it != Background::None) {
        return Err(no_background(scores, NAME, background));
    }
    if has_classes(labels) == Some(false) {
        return Err(shape_error(labels));
    }
    if !labels.element.is_integer() {
        check_element_type(labels)?;
    }
    let (images, rows) = match *labels.shape {
        [n] => (1, n),
        [images, n] | [images, n, 1] if images == layout.images => (images, n),
        [n, 1] => (1, n),
        _ => return Err(shape_error(labels)),
    };
    check_images((tensors[0], layout.images), (labels, images))?;
    check_lengths((tensors[0], layout.anchors()), (labels, rows))?;
    // The limit is the most classes of any model, since labels are checked one by one.
    layout.classes = if options.num_classes > 0 { options.num_classes } else { MAX_CLASSES };
    for group in &mut layout.groups {
        group.class = Some(Field::of_matrix(2, rows, 1, false));
    }
    Ok(layout)
}

/// The only tensor whose name says that it has classes, or else the only tensor of integers. Floating-point numbers
/// with another name could be a second factor of the score, and a single integer beside a single box the number of
/// boxes.
pub(super) fn remaining_labels(
    tensors: &[TensorView<'_>],
    [boxes, scores]: [usize; 2],
    options: Options,
) -> Option<usize> {
    let fits = |index: &usize| {
        let all = [boxes, scores, *index];
        // Without this comparison, each frame would allocate the texts of errors.
        let has_numbers = tensors[*index].shape.elements() == tensors[scores].shape.elements();
        ![boxes, scores].contains(index)
            && has_numbers
            && labeled_layout(&chosen(tensors, &all), options).is_ok()
    };
    let fitting: Vec<usize> = (0..tensors.len()).filter(fits).collect();
    let (named, others): (Vec<usize>, Vec<usize>) =
        fitting.into_iter().partition(|&index| has_classes(&tensors[index]) == Some(true));
    match (&named[..], &others[..]) {
        (&[index], _) => Some(index),
        (&[], &[index]) if tensors[scores].shape.elements() > Some(1) => {
            Some(index).filter(|_| tensors[index].element.is_integer())
        }
        _ => None,
    }
}

/// The images, rows and columns of a tensor `[rows, columns]`, `[1, rows, columns]`, or with [`Options::batch`]
/// `[images, rows, columns]`, also with a dimension of 1 before the columns.
///
/// # Errors
/// If the tensor has another number of dimensions, another batch dimension or another element type.
fn matrix(tensor: &TensorView<'_>, options: Options) -> Result<[usize; 3], LayoutError> {
    check_element_type(tensor)?;
    match *tensor.shape {
        [rows, columns] => Ok([1, rows, columns]),
        [images, rows, columns] | [images, rows, 1, columns] => {
            check_batch(tensor, images, options)?;
            Ok([images, rows, columns])
        }
        _ => Err(shape_error(tensor)),
    }
}

fn shape_error(tensor: &TensorView<'_>) -> LayoutError {
    check::shape_error(tensor, NAME, EXPECTS)
}
