// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders of YOLO models that give more than boxes: masks, keypoints, or the angles of boxes.
//!
//! An anchor has the numbers of a detector, then those of its task:
//!
//! | decoder | an anchor | further tensor |
//! | --- | --- | --- |
//! | `yolov8-seg` | cx, cy, w, h, C scores, M coefficients | M prototypes |
//! | `yolov8-pose` | cx, cy, w, h, C scores, K keypoints | |
//! | `yolov8-obb` | cx, cy, w, h, C scores, angle | |
//! | `yolov5-seg` | cx, cy, w, h, objectness, C scores, M coefficients | M prototypes |
//! | `end2end-seg` | x1, y1, x2, y2, score, class, M coefficients | M prototypes |
//! | `end2end-pose` | x1, y1, x2, y2, score, class, K keypoints | |
//! | `end2end-obb` | cx, cy, w, h, score, class, angle | |
//!
//! Anchors are columns as `yolov8` is exported, and rows as converters transpose it, and of all others. A keypoint is
//! x, y, visibility, or x, y. The numbers of classes and of keypoints follow from the shape if one of them is known;
//! the number of classes is 1 if neither is, as of the models for people. An angle is in radians clockwise.

use arrayvec::ArrayVec;

use super::layout::{
    BoxFormat, BoxRule, Column, ColumnKind, Group, Layout, LayoutError, PointRule, Reference,
    ScoreRule,
};
use super::matrix::{Matrix, check_classes, shape_error};
use super::prototypes::PrototypeImages;
use super::{Decoder, Form, MAX_CLASSES, Options, Role};
use crate::tensor::TensorView;

/// A decoder of this module.
pub struct YoloTask {
    name: &'static str,
    expects: &'static str,
    head: Head,
    task: Task,
    roles: &'static [Role],
    form: &'static [&'static dyn Form],
}

/// What an anchor has before the numbers of its task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Yolov8,
    Yolov5,
    EndToEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Masks,
    Keypoints,
    Angle,
}

const PROTOTYPES: &[&str] = &["output1", "protos", "proto"];
const OUTPUT: &[&str] = &["output0", "output", "detections"];

const fn output(ids: &'static [&'static str]) -> Role {
    Role { name: "output", ids, names: OUTPUT, index: Some(0) }
}

const fn prototypes(ids: &'static [&'static str]) -> Role {
    Role { name: "prototypes", ids, names: PROTOTYPES, index: Some(1) }
}

/// All decoders of this module.
pub fn decoders() -> [&'static dyn Decoder; 7] {
    [&YOLOV8_SEG, &YOLOV8_POSE, &YOLOV8_OBB, &YOLOV5_SEG, &END2END_SEG, &END2END_POSE, &END2END_OBB]
}

static YOLOV8_SEG: YoloTask = YoloTask {
    name: "yolov8-seg",
    expects: "[1,4+C+M,N] or [1,N,4+C+M] of cx, cy, w, h, C class scores, M mask coefficients, and \
              [1,M,H,W] or [1,H,W,M] of prototypes",
    head: Head::Yolov8,
    task: Task::Masks,
    roles: &[
        output(&["yolo-v8-segmentation-out-detections"]),
        prototypes(&["yolo-v8-segmentation-out-protos"]),
    ],
    form: &[&YOLOV8_SEG],
};

static YOLOV8_POSE: YoloTask = YoloTask {
    name: "yolov8-pose",
    expects: "one tensor [1,4+C+3K,N] or [1,N,4+C+3K] of cx, cy, w, h, C class scores, K keypoints x, y, \
              visibility (or 2K without visibility)",
    head: Head::Yolov8,
    task: Task::Keypoints,
    roles: &[output(&["yolo-v8-pose-out", "yolo-v8-pose-out-normalized"])],
    form: &[&YOLOV8_POSE],
};

static YOLOV8_OBB: YoloTask = YoloTask {
    name: "yolov8-obb",
    expects: "one tensor [1,4+C+1,N] or [1,N,4+C+1] of cx, cy, w, h, C class scores, angle",
    head: Head::Yolov8,
    task: Task::Angle,
    roles: &[output(&["yolo-v8-obb-out", "yolo-v8-obb-out-normalized"])],
    form: &[&YOLOV8_OBB],
};

static YOLOV5_SEG: YoloTask = YoloTask {
    name: "yolov5-seg",
    expects: "[1,N,5+C+M] of rows cx, cy, w, h, objectness, C class scores, M mask coefficients, and \
              [1,M,H,W] or [1,H,W,M] of prototypes",
    head: Head::Yolov5,
    task: Task::Masks,
    roles: &[
        output(&["yolo-v5-segmentation-out-detections"]),
        prototypes(&["yolo-v5-segmentation-out-protos"]),
    ],
    form: &[&YOLOV5_SEG],
};

static END2END_SEG: YoloTask = YoloTask {
    name: "end2end-seg",
    expects: "[1,N,6+M] of rows x1, y1, x2, y2, score, class, M mask coefficients, and [1,M,H,W] or \
              [1,H,W,M] of prototypes",
    head: Head::EndToEnd,
    task: Task::Masks,
    roles: &[
        output(&["yolo-26-segmentation-end2end-out-detections"]),
        prototypes(&["yolo-26-segmentation-end2end-out-protos"]),
    ],
    form: &[&END2END_SEG],
};

static END2END_POSE: YoloTask = YoloTask {
    name: "end2end-pose",
    expects: "one tensor [1,N,6+3K] of rows x1, y1, x2, y2, score, class, K keypoints x, y, visibility \
              (or 2K without visibility)",
    head: Head::EndToEnd,
    task: Task::Keypoints,
    roles: &[output(&["yolo-26-pose-end2end-out", "yolo-26-pose-end2end-out-normalized"])],
    form: &[&END2END_POSE],
};

static END2END_OBB: YoloTask = YoloTask {
    name: "end2end-obb",
    expects: "one tensor [1,N,7] of rows cx, cy, w, h, score, class, angle",
    head: Head::EndToEnd,
    task: Task::Angle,
    roles: &[output(&["yolo-26-obb-end2end-out", "yolo-26-obb-end2end-out-normalized"])],
    form: &[&END2END_OBB],
};

impl Decoder for YoloTask {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expects(&self) -> &str {
        self.expects
    }

    fn forms(&self) -> &[&'static dyn Form] {
        self.form
    }
}

impl Form for YoloTask {
    fn roles(&self) -> &[Role] {
        self.roles
    }

    fn check(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<(), LayoutError> {
        Matrix::of(tensors[0], self, options).map(|_| ())
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        let matrix = Matrix::of(tensors[0], self, options)?;
        let Matrix { images, rows, columns } = matrix;
        let Some((is_row, values)) = self.read([rows, columns], tensors, options)? else {
            let any = Options { num_classes: 0, labels: 0, ..options };
            return Err(match self.read([rows, columns], tensors, any)? {
                Some((_, Values { classes, .. })) => LayoutError::NumClasses {
                    tensor: tensors[0].to_string(),
                    decoder: self.name,
                    classes,
                    expected: options.num_classes,
                },
                None => shape_error(tensors[0], self),
            });
        };
        let anchors = if is_row { rows } else { columns };
        let field = |value| match is_row {
            true => matrix.anchors_in_rows(0, value),
            false => matrix.anchors_in_columns(0, value),
        };

        let Values { classes, scores, details, task } = values;
        check_classes(tensors[0], classes)?;
        let extra = field(details);
        let (mut column_rules, mut column_fields) = (Vec::new(), Vec::new());
        let mut prototypes = None;
        let normalized = options.coordinates.normalized(tensors[0]);
        match task {
            TaskValues::Angle => {}
            TaskValues::Keypoints(KeypointShape { count, components }) => {
                let rule = PointRule { components, relative: None, normalized };
                let (name, components) = ("keypoints", count * components);
                column_rules.push(Column { name, components, kind: ColumnKind::Points(rule) });
                column_fields.push(extra);
            }
            TaskValues::Masks(images_of_masks) => {
                if images_of_masks.images != images {
                    return Err(LayoutError::Images {
                        boxes: tensors[0].to_string(),
                        box_images: images,
                        scores: tensors[1].to_string(),
                        score_images: images_of_masks.images,
                    });
                }
                column_rules.push(Column {
                    name: "mask",
                    components: images_of_masks.channels,
                    kind: ColumnKind::MaskCoefficients,
                });
                column_fields.push(extra);
                prototypes = Some(images_of_masks.prototypes());
            }
        }
        let is_oriented = task == TaskValues::Angle;
        let is_end_to_end = self.head == Head::EndToEnd;
        let format = match is_end_to_end && !is_oriented {
            true => BoxFormat::Corners,
            false => BoxFormat::Center,
        };
        Ok(Layout {
            decoder: self.name,
            images,
            classes,
            groups: ArrayVec::from_iter([Group {
                anchors,
                boxes: field(0),
                angle: is_oriented.then_some(extra),
                scores: field(if self.head == Head::Yolov5 { 5 } else { 4 }),
                objectness: (self.head == Head::Yolov5).then(|| field(4)),
                class: is_end_to_end.then(|| field(5)),
                reference: Reference::None,
                columns: column_fields,
            }]),
            score: ScoreRule::of_classes(scores),
            boxes: BoxRule::decoded(format),
            count: None,
            columns: column_rules,
            prototypes,
            priors: None,
            normalized,
        })
    }
}

/// The greatest number of keypoints of a detection. A greater number is treated as a misread shape.
pub const MAX_KEYPOINTS: usize = 512;

/// The number of keypoints of a detection and of the components of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeypointShape {
    /// The number of keypoints, at least one.
    pub count: usize,
    /// 2 for x and y, 3 with a visibility.
    pub components: usize,
}

impl KeypointShape {
    /// The numbers of a detection.
    fn values(self) -> usize {
        self.count.saturating_mul(self.components)
    }

    /// That of this many numbers: of three components, or if that is impossible, of two.
    fn of(values: usize) -> Option<Self> {
        let components = [3, 2].into_iter().find(|&each| values.is_multiple_of(each))?;
        let count = values / components;
        (1..=MAX_KEYPOINTS).contains(&count).then_some(Self { count, components })
    }
}

/// What the values of an anchor are.
struct Values {
    /// The number of classes.
    classes: usize,
    /// The number of scores.
    scores: usize,
    /// The first value of the task.
    details: usize,
    task: TaskValues,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskValues {
    Masks(PrototypeImages),
    Keypoints(KeypointShape),
    Angle,
}

impl YoloTask {
    /// Whether anchors are rows, and what the numbers of an anchor are; `None` if the shapes do not fit.
    ///
    /// # Errors
    /// If the shapes fit in two ways.
    fn read(
        &self,
        [rows, columns]: [usize; 2],
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Option<(bool, Values)>, LayoutError> {
        let fit = |values: usize, anchors: usize| {
            let has_anchors = self.head == Head::EndToEnd || anchors >= values || anchors == 0;
            if has_anchors { self.values(values, tensors, options) } else { Ok(None) }
        };
        // As `yolov8`: if the number of classes is known and both readings have it, as exported.
        if self.head == Head::Yolov8
            && let Some(values) = fit(rows, columns)?
        {
            return Ok(Some((false, values)));
        }
        Ok(fit(columns, rows)?.map(|values| (true, values)))
    }

    /// What `values` numbers of an anchor are; `None` if they do not fit.
    fn values(
        &self,
        values: usize,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Option<Values>, LayoutError> {
        let fit = |known| self.values_with(known, values, tensors, options);
        // Another number of labels is no error.
        match options.known_classes() {
            Some(known) if options.num_classes > 0 => fit(Some(known)),
            Some(labels) => match fit(Some(labels))? {
                None => fit(None),
                fitting => Ok(fitting),
            },
            None => fit(None),
        }
    }

    /// The prototypes of an anchor with `after` numbers after its box, of which `known` are scores.
    fn prototypes(
        &self,
        tensors: &[&TensorView<'_>],
        known: Option<usize>,
        after: usize,
        options: Options,
    ) -> Result<Option<PrototypeImages>, LayoutError> {
        let Some(&tensor) = tensors.get(1) else { return Ok(None) };
        let is_possible = |channels: usize| match known {
            Some(scores) => scores.checked_add(channels) == Some(after),
            None => channels < after,
        };
        PrototypeImages::find(tensor, is_possible, options).map_err(|[first, last]| {
            LayoutError::Prototypes {
                tensor: tensor.to_string(),
                decoder: self.name,
                readings: format!("{first} or {last}"),
                has_num_classes: known.is_some(),
            }
        })
    }

    /// What the numbers of an anchor are with a known number of classes.
    fn values_with(
        &self,
        known: Option<usize>,
        values: usize,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Option<Values>, LayoutError> {
        let before = match self.head {
            Head::Yolov8 => 4,
            Head::Yolov5 => 5,
            Head::EndToEnd => 6,
        };
        let Some(after) = values.checked_sub(before) else { return Ok(None) };
        // How many of the numbers after the box are scores, if it is known.
        let known = match self.head {
            Head::EndToEnd => Some(0),
            Head::Yolov8 | Head::Yolov5 => known,
        };
        let task = match self.task {
            Task::Angle => Some(TaskValues::Angle),
            Task::Keypoints => {
                let of_shape = || KeypointShape::of(after.checked_sub(known.unwrap_or(1))?);
                options.keypoints.or_else(of_shape).map(TaskValues::Keypoints)
            }
            Task::Masks => self.prototypes(tensors, known, after, options)?.map(TaskValues::Masks),
        };
        let Some(task) = task else { return Ok(None) };
        let of_task = match task {
            TaskValues::Angle => 1,
            TaskValues::Keypoints(shape) => shape.values(),
            TaskValues::Masks(images) => images.channels,
        };
        let Some(scores) = after.checked_sub(of_task) else { return Ok(None) };
        let is_fit = match self.head {
            Head::EndToEnd => scores == 0,
            Head::Yolov8 | Head::Yolov5 => scores > 0 && known.is_none_or(|known| known == scores),
        };
        let (classes, scores) = match self.head {
            // Any class that a model can have: the tensor's classes are checked one by one.
            Head::EndToEnd if options.num_classes == 0 => (MAX_CLASSES, 1),
            Head::EndToEnd => (options.num_classes, 1),
            Head::Yolov8 | Head::Yolov5 => (scores, scores),
        };
        let details = match self.head {
            Head::EndToEnd => before,
            Head::Yolov8 | Head::Yolov5 => before + scores,
        };
        Ok(is_fit.then_some(Values { classes, scores, details, task }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str, shapes: &[&[usize]], options: Options) -> Option<Layout> {
        let decoder = decoders().into_iter().find(|decoder| decoder.name() == name).unwrap();
        let tensors: Vec<TensorView<'_>> = shapes
            .iter()
            .map(|shape| {
                TensorView::from_slice("", shape, vec![0.0f32; shape.iter().product()].leak())
            })
            .collect();
        let tensors: Vec<&TensorView<'_>> = tensors.iter().collect();
        decoder.forms()[0].layout(&tensors, options).ok()
    }

    fn classes(classes: usize) -> Options {
        Options { num_classes: classes, ..Options::default() }
    }

    #[test]
    fn prototypes_are_found_in_both_orders_of_their_dimensions() {
        for prototypes in [[1, 32, 160, 160], [1, 160, 160, 32]] {
            for output in [[1, 116, 8400], [1, 8400, 116]] {
                for options in [Options::default(), classes(80)] {
                    let layout = layout("yolov8-seg", &[&output, &prototypes], options).unwrap();
                    let masks = layout.prototypes.unwrap();
                    assert_eq!((layout.classes, masks.width, masks.height), (80, 160, 160));
                    assert_eq!(layout.columns[0].components, 32);
                }
            }
        }
        assert!(layout("yolov8-seg", &[&[1, 36, 8400], &[1, 32, 160, 160]], classes(0)).is_none());
        assert!(
            layout("yolov8-seg", &[&[1, 116, 8400], &[1, 32, 160, 160]], classes(79)).is_none()
        );
        let rectangular =
            layout("yolov8-seg", &[&[1, 37, 900], &[1, 32, 48, 80]], classes(0)).unwrap();
        let masks = rectangular.prototypes.unwrap();
        assert_eq!((masks.width, masks.height, rectangular.classes), (80, 48, 1));
    }

    #[test]
    fn the_number_of_keypoints_follows_from_that_of_classes_and_the_other_way_round() {
        let keypoints = |values: usize, options| {
            let layout = layout("yolov8-pose", &[&[1, values, 8400]], options)?;
            Some((
                layout.classes,
                layout.columns[0].components,
                match layout.columns[0].kind {
                    ColumnKind::Points(rule) => rule.components,
                    _ => 0,
                },
            ))
        };
        assert_eq!(keypoints(56, classes(0)), Some((1, 51, 3)));
        assert_eq!(keypoints(13, classes(0)), Some((1, 8, 2)));
        assert_eq!(keypoints(58, classes(3)), Some((3, 51, 3)));
        assert_eq!(keypoints(56, classes(51)), None);
        let shape = KeypointShape { count: 21, components: 2 };
        let options = Options { keypoints: Some(shape), ..Options::default() };
        assert_eq!(keypoints(48, options), Some((2, 42, 2)));
        assert_eq!(keypoints(46, options), None);
    }

    #[test]
    fn rows_of_end_to_end_models_can_be_fewer_than_their_numbers() {
        let layout_of = |name, shape: &[usize]| layout(name, &[shape], Options::default());
        assert_eq!(layout_of("end2end-pose", &[1, 10, 57]).unwrap().columns[0].components, 51);
        assert!(layout_of("end2end-obb", &[1, 300, 7]).unwrap().is_oriented());
        assert!(layout_of("end2end-obb", &[1, 300, 6]).is_none());
        assert!(layout_of("end2end-obb", &[1, 300, 8]).is_none());
    }
}
