// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layouts that do not fit the tensors: every engine returns an equal error, and reads no element.

use nmsfilter_core::decoder::{self, Field, Layout, Options, PlainLayout};
use nmsfilter_core::engine::{
    Cpu, Cuda, Detection, Engine, EngineError, Job, MAX_IMAGES, Params, Reference,
};
use nmsfilter_core::tensor::TensorView;

use crate::support::engines;

const BOXES: [f32; 8] = [0.0, 0.0, 9.0, 9.0, 20.0, 0.0, 29.0, 9.0];
const SCORES: [f32; 4] = [0.9, 0.1, 0.2, 0.8];

/// Returns tensors with two anchors and two classes.
fn tensors() -> [TensorView<'static>; 2] {
    [
        TensorView::from_slice("boxes", &[2, 4], &BOXES),
        TensorView::from_slice("scores", &[2, 2], &SCORES),
    ]
}

fn layout() -> PlainLayout {
    let tensors = tensors();
    let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
    layout.plain(&tensors).unwrap()
}

pub fn every_engine() -> Vec<Box<dyn Engine>> {
    let mut all: Vec<Box<dyn Engine>> =
        vec![Box::new(Reference::default()), Box::new(Cpu::default())];
    if engines::on_gpu() {
        all.push(Box::new(Cuda::new(Some(0)).unwrap()));
    }
    all
}

/// Returns the error on which all engines agree. Asserts that each engine runs a valid layout
/// afterwards.
pub fn error(tensors: &[TensorView<'_>], layout: impl Into<Layout>) -> EngineError {
    let layout = layout.into();
    let errors: Vec<EngineError> = every_engine()
        .iter_mut()
        .map(|engine| {
            let error = engine
                .run(Job::new(tensors, &layout, &Params::default(), &engines::places(&layout)))
                .unwrap_err();
            let valid = engine.run(Job::new(
                &self::tensors(),
                &self::layout().into(),
                &Params::default(),
                &engines::places(&self::layout().into()),
            ));
            assert_eq!(
                valid.unwrap().group(0).survivors.len(),
                2,
                "{} after {error}",
                engine.name()
            );
            error
        })
        .collect();
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

fn boxes(change: impl FnOnce(&mut Field)) -> PlainLayout {
    let mut layout = layout();
    change(&mut layout.boxes);
    layout
}

fn scores(change: impl FnOnce(&mut Field)) -> PlainLayout {
    let mut layout = layout();
    change(&mut layout.scores);
    layout
}

#[test]
fn a_field_of_a_tensor_that_does_not_exist_is_an_error() {
    for (field, layout) in
        [("boxes", boxes(|field| field.tensor = 2)), ("scores", scores(|field| field.tensor = 2))]
    {
        assert_eq!(error(&tensors(), layout), no_tensor(field, 2, 2));
    }
    assert_eq!(error(&[], layout()), no_tensor("boxes", 0, 0));
    // The tensor must exist even if no element of it is read.
    let empty = PlainLayout { anchors: 0, ..scores(|field| field.tensor = usize::MAX) };
    assert_eq!(error(&tensors(), empty), no_tensor("scores", usize::MAX, 2));
}

fn no_tensor(field: &str, index: usize, tensors: usize) -> EngineError {
    EngineError::Layout(format!(
        "the layout's {field} are of tensor {index}, but there are {tensors} tensors; make the layout for the tensors \
         that are passed"
    ))
}

#[test]
fn a_field_beyond_its_tensor_is_an_error_with_the_last_element_and_the_number_of_elements() {
    let found = error(&tensors(), PlainLayout { anchors: 3, ..layout() });
    let expected = "tensor boxes (f32 2x4): the layout's boxes need element 11, but it has 8 elements; \
                    correct the layout's offset, strides or number of anchors";
    assert_eq!(found, EngineError::Layout(expected.into()));
}

#[test]
fn fewer_scores_than_boxes_are_an_error() {
    let short = [tensors()[0].clone(), TensorView::from_slice("scores", &[1, 2], &SCORES[..2])];
    let found = error(&short, layout());
    assert_eq!(parts(&found), ("scores", 3, 2));
}

#[test]
fn a_field_that_exceeds_its_tensor_by_one_element_is_an_error() {
    for (layout, expected_parts) in [
        (boxes(|field| field.offset = 1), ("boxes", 8, 8)),
        (boxes(|field| field.anchor_stride = 5), ("boxes", 8, 8)),
        (boxes(|field| field.component_stride = 2), ("boxes", 10, 8)),
        (scores(|field| field.offset = 1), ("scores", 4, 4)),
        (PlainLayout { classes: 3, ..layout() }, ("scores", 4, 4)),
        (PlainLayout { objectness: Some(field(1, 3, 1)), ..layout() }, ("objectness", 4, 4)),
    ] {
        let found = error(&tensors(), layout);
        assert_eq!(parts(&found), expected_parts);
    }
}

#[test]
fn offsets_and_strides_that_overflow_are_errors() {
    for layout in [
        boxes(|field| field.offset = usize::MAX),
        boxes(|field| field.anchor_stride = usize::MAX),
        boxes(|field| field.component_stride = usize::MAX),
        // When these numbers are multiplied by the element's size or the number of anchors, the
        // product is a multiple of 2 to the 64.
        boxes(|field| field.offset = 1 << 62),
        scores(|field| field.anchor_stride = 1 << 63),
        scores(|field| {
            (field.offset, field.anchor_stride, field.component_stride) =
                (usize::MAX, usize::MAX, usize::MAX);
        }),
        PlainLayout {
            anchors: u32::MAX as usize,
            ..boxes(|field| field.anchor_stride = usize::MAX / 2)
        },
    ] {
        parts(&error(&tensors(), layout));
    }
}

#[test]
fn zero_classes_and_more_than_65536_are_errors() {
    for classes in [0, 65_537, usize::MAX] {
        // With strides of zero, more classes need no more elements.
        let layout = PlainLayout { classes, ..scores(|field| field.component_stride = 0) };
        let expected = format!("the layout has {classes} classes; expected 1 to 65536");
        assert_eq!(error(&tensors(), layout), EngineError::Layout(expected));
    }
}

#[test]
fn zero_images_and_more_than_65535_are_errors() {
    assert_eq!(MAX_IMAGES, 65_535);
    for images in [0, MAX_IMAGES + 1, usize::MAX] {
        // With strides of zero, more images need no more elements.
        let layout =
            PlainLayout { images, boxes: field(0, 0, 4), scores: field(1, 0, 2), ..layout() };
        let found = error(&tensors(), layout);
        let expected = format!("the layout has {images} images; expected 1 to 65535");
        assert_eq!(found, EngineError::Layout(expected));
    }
}

#[test]
fn an_image_stride_beyond_the_tensor_is_an_error_with_the_name_of_the_field() {
    let fields = |boxes, scores, objectness| PlainLayout {
        images: 2,
        boxes: Field { image_stride: boxes, ..field(0, 0, 4) },
        scores: Field { image_stride: scores, ..field(1, 0, 2) },
        objectness: Some(Field { image_stride: objectness, ..field(1, 0, 1) }),
        ..layout()
    };
    for (layout, expected_parts) in [
        (fields(1, 0, 0), ("boxes", 8, 8)),
        (fields(8, 0, 0), ("boxes", 15, 8)),
        (fields(0, 1, 0), ("scores", 4, 4)),
        (fields(0, 0, 3), ("objectness", 4, 4)),
        (fields(usize::MAX, 0, 0), ("boxes", usize::MAX as u128 + 7, 8)),
        (fields(0, usize::MAX, 0), ("scores", usize::MAX as u128 + 3, 4)),
    ] {
        assert_eq!(parts(&error(&tensors(), layout)), expected_parts);
    }
    // The greatest number of images and the greatest stride do not overflow.
    let most = PlainLayout { images: MAX_IMAGES, ..fields(0, 0, usize::MAX) };
    let last = (MAX_IMAGES as u128 - 1) * usize::MAX as u128 + 1;
    assert_eq!(parts(&error(&tensors(), most)), ("objectness", last, 4));
}

#[test]
fn an_image_stride_of_zero_gives_the_same_image_again() {
    let layout =
        PlainLayout { images: 3, boxes: field(0, 0, 4), scores: field(1, 0, 2), ..layout() };
    for mut engine in every_engine() {
        let expected = engine
            .run(Job::new(
                &tensors(),
                &self::layout().into(),
                &Params::default(),
                &engines::places(&self::layout().into()),
            ))
            .unwrap();
        let expected = expected.group(0).survivors.to_vec();
        let outcome = engine
            .run(Job::new(
                &tensors(),
                &layout.clone().into(),
                &Params::default(),
                &engines::places(&layout.clone().into()),
            ))
            .unwrap();
        assert_eq!(outcome.groups().len(), 3);
        for image in outcome.groups() {
            assert_eq!(image.survivors, expected, "{}", outcome.engine);
        }
    }
}

#[test]
fn more_anchors_than_fit_32_bits_are_an_error() {
    for anchors in [1 << 32, usize::MAX] {
        let found = error(&tensors(), PlainLayout { anchors, ..layout() });
        let expected = format!("{anchors} anchors are more than the 4294967295 supported");
        assert_eq!(found, EngineError::Layout(expected));
    }
}

#[test]
fn more_pairs_than_fit_32_bits_are_an_error_with_multi_label() {
    let (anchors, classes) = (1 << 31, 2);
    let layout = PlainLayout { anchors, classes, ..layout() };
    for mut engine in every_engine() {
        let multi = Params { multi_label: true, ..Params::default() };
        let found = engine
            .run(Job::new(
                &tensors(),
                &layout.clone().into(),
                &multi,
                &engines::places(&layout.clone().into()),
            ))
            .unwrap_err();
        let expected = "2147483648 anchors of 2 classes are more pairs than the 4294967295 that `params.multi_label` \
                        supports; set `params.multi_label` to false";
        assert_eq!(found, EngineError::Method(expected.into()), "{}", engine.name());
    }
    // Without multi-label, there are at most as many candidates as anchors.
    parts(&error(&tensors(), layout));
}

#[test]
fn any_offset_is_valid_if_there_are_no_anchors() {
    let outside = Field {
        tensor: 0,
        offset: usize::MAX,
        image_stride: 0,
        anchor_stride: 1,
        component_stride: 1,
    };
    let layout = PlainLayout { anchors: 0, boxes: outside, scores: outside, ..layout() };
    for multi_label in [false, true] {
        let params = Params { multi_label, ..Params::default() };
        for mut engine in every_engine() {
            let outcome = engine
                .run(Job::new(
                    &tensors(),
                    &layout.clone().into(),
                    &params,
                    &engines::places(&layout.clone().into()),
                ))
                .unwrap();
            let found = outcome.group(0);
            assert_eq!((found.candidates, found.rejected), (0, 0), "{}", outcome.engine);
        }
    }
}

#[test]
fn interleaved_anchors_are_read_by_their_strides() {
    // Consecutive components of an anchor are two elements apart, and consecutive anchors are one
    // element apart.
    let numbers: Vec<f32> = (0..4)
        .flat_map(|i| [BOXES[i], BOXES[4 + i]])
        .chain([0.5, 1.0])
        .chain((0..2).flat_map(|c| [SCORES[c], SCORES[2 + c], -1.0]))
        .collect();
    let tensors = [TensorView::from_slice("numbers", &[numbers.len()], &numbers)];
    let expected = [(1, 1, 0.8), (0, 0, 0.45)];
    let layout = PlainLayout {
        boxes: Field {
            tensor: 0,
            offset: 0,
            image_stride: 0,
            anchor_stride: 1,
            component_stride: 2,
        },
        scores: Field {
            tensor: 0,
            offset: 10,
            image_stride: 0,
            anchor_stride: 1,
            component_stride: 3,
        },
        objectness: Some(field(0, 8, 1)),
        ..layout()
    };
    for mut engine in every_engine() {
        let outcome = engine
            .run(Job::new(
                &tensors,
                &layout.clone().into(),
                &Params::default(),
                &engines::places(&layout.clone().into()),
            ))
            .unwrap();
        let found = outcome.group(0);
        let of = |survivor: &Detection| (survivor.anchor, survivor.class, survivor.score);
        let kept: Vec<_> = found.survivors.iter().map(of).collect();
        assert_eq!(kept, expected, "{}", outcome.engine);
    }
}

fn field(tensor: usize, offset: usize, anchor_stride: usize) -> Field {
    Field { tensor, offset, image_stride: 0, anchor_stride, component_stride: 1 }
}

/// Returns the field, the last element that it addresses, and the number of elements in the tensor.
fn parts(error: &EngineError) -> (&'static str, u128, usize) {
    let text = error.to_string();
    let (name, numbers) = ["boxes", "scores", "objectness"]
        .into_iter()
        .find_map(|name| {
            Some((name, text.split_once(&format!("the layout's {name} need element "))?.1))
        })
        .unwrap_or_else(|| panic!("expected a field outside of its tensor, got {text}"));
    let (last, held) = numbers.split_once(", but it has ").unwrap();
    (name, last.parse().unwrap(), held.split(' ').next().unwrap().parse().unwrap())
}
