// SPDX-License-Identifier: MIT OR Apache-2.0
//! Masks: random scenes, prototypes that do not fit, unreadable types, the limit on mask bytes, and
//! the interface for programs without GStreamer.

use nmsfilter_core::decoder::layout::Prototypes;
use nmsfilter_core::decoder::{self, Layout, Options};
use nmsfilter_core::engine::{
    Engine, EngineError, ImagePlace, Job, MAX_MASK_BYTES, Mask, MaskSize, Method, Params, Reference,
};
use nmsfilter_core::geometry::FrameMap;
use nmsfilter_core::nms::{Backend, Nms, NmsError};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorProblem, TensorView};

use super::layout::every_engine;
use super::layouts::{Sums, compare};
use crate::support::engines::{self, masks};
use crate::support::layout_scene::LayoutScene;

/// Two anchors in a model's input of 32x16: corners, score, class and two coefficients.
const OUTPUT: [f32; 16] = [
    4.0, 4.0, 20.0, 12.0, 0.9, 0.0, 1.0, 0.0, //
    16.0, 0.0, 32.0, 16.0, 0.8, 1.0, 0.0, -2.0,
];

/// Two prototypes of 8x4. The first is positive in columns 0 to 2, the second is negative in rows 0
/// and 1.
fn prototypes() -> Vec<f32> {
    let first = (0..32).map(|pixel| if pixel % 8 < 3 { 1.0 } else { -1.0 });
    let second = (0..32).map(|pixel| if pixel / 8 < 2 { -1.0 } else { 1.0 });
    first.chain(second).collect()
}

fn tensors(prototypes: &[f32]) -> [TensorView<'_>; 2] {
    [
        TensorView::from_slice("output0", &[1, 2, 8], &OUTPUT),
        TensorView::from_slice("output1", &[1, 2, 4, 8], prototypes),
    ]
}

fn layout(tensors: &[TensorView<'_>]) -> Layout {
    decoder::choose(tensors, decoder::by_name("end2end-seg"), Options::default()).unwrap().layout
}

fn params() -> Params {
    Params { method: Method::None, ..Params::default() }
}

/// The place of an image of 32x16 pixels.
const PLACE: ImagePlace = ImagePlace::in_model([32.0, 16.0]);

fn mask_of(outcome: &nmsfilter_core::nms::GroupOutcome<'_>, survivor: usize) -> [u32; 4] {
    let Mask { left, top, width, height, .. } = outcome.masks.get(survivor).unwrap();
    [left, top, width, height]
}

#[test]
fn masks_are_the_bits_of_the_pixels_in_the_boxes() {
    let prototypes = prototypes();
    let tensors = tensors(&prototypes);
    let layout = layout(&tensors);
    for mut engine in every_engine() {
        let outcome = engine.run(Job::new(&tensors, &layout, &params(), &[PLACE])).unwrap();
        let image = outcome.group(0);
        // Columns 1 to 4 and rows 1 and 2, of which columns 1 and 2 are set.
        assert_eq!(mask_of(&image, 0), [1, 1, 4, 2], "{}", outcome.engine);
        assert_eq!(image.masks.get(0).unwrap().bytes, [0b1100_0000; 2]);
        // The mask covers columns 4 to 7 of all rows. Rows 0 and 1 are set.
        assert_eq!(mask_of(&image, 1), [4, 0, 4, 4]);
        assert_eq!(image.masks.get(1).unwrap().bytes, [0b1111_0000, 0b1111_0000, 0, 0]);
        assert_eq!(image.masks.get(2), None);
    }
}

#[test]
fn masks_of_the_frame_are_interpolated_between_the_prototypes() {
    let prototypes = prototypes();
    let tensors = tensors(&prototypes);
    let layout = layout(&tensors);
    // One pixel of the model's input is two pixels of the frame.
    let frame = FrameMap { size: [64, 32], ratio: [0.5; 2], offset: [0.0; 2] };
    let params = Params { mask_size: MaskSize::Frame, ..params() };
    let place = ImagePlace { frame: Some(frame), ..PLACE };
    for mut engine in every_engine() {
        let outcome = engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        let image = outcome.group(0);
        assert_eq!(mask_of(&image, 0), [8, 8, 32, 16], "{}", outcome.engine);
        // Columns 8 to 23 are set: the logit is 1 up to the center of prototype column 2, at 20,
        // and 0 at 24.
        assert_eq!(image.masks.get(0).unwrap().bytes, [0xff, 0xff, 0, 0].repeat(16));
        assert_eq!(mask_of(&image, 1), [32, 0, 32, 32]);
        // Rows 0 to 15 are set.
        let expected = [[0xff; 4].repeat(16), [0; 4].repeat(16)].concat();
        assert_eq!(image.masks.get(1).unwrap().bytes, expected);
    }
    // If the frame is unknown, masks have the pixels of the prototypes.
    for mut engine in every_engine() {
        let outcome = engine.run(Job::new(&tensors, &layout, &params, &[PLACE])).unwrap();
        assert_eq!(mask_of(&outcome.group(0), 0), [1, 1, 4, 2]);
    }
}

/// Scenes have numbers of all element types, prototypes ordered by channel or by pixel, batches,
/// coefficients that are not finite, boxes that reach beyond the prototypes, and separate
/// allocations.
#[test]
fn every_engine_returns_the_masks_of_the_reference_for_random_scenes() {
    let (mut reference, mut engine) = (Reference::default(), engines::fast());
    let mut sums = Sums::default();
    let scenes = (0u64..).map(|seed| (seed, LayoutScene::new(seed ^ 0x3a5c)));
    let scenes = scenes.filter(|(_, scene)| scene.layout.prototypes.is_some());
    for (seed, scene) in scenes.take(engines::scene_count(2_000) as usize) {
        let images: Vec<Vec<Storage<'_>>> =
            scene.tensors.iter().map(|tensor| tensor.image_storages()).collect();
        let mut views = scene.views();
        for (index, view) in views.iter_mut().enumerate() {
            if seed % 2 == 0 && !scene.is_shared(index) {
                view.storage = Storage::Images(&images[index]);
            }
        }
        compare(&mut reference, &mut *engine, (&scene, &views, seed), &mut sums);
    }
    let Sums { scenes, masks, mask_bits, .. } = sums;
    assert!(scenes >= 80 && masks > 2 * scenes && mask_bits > 10 * masks, "{sums:?}");
}

#[test]
fn prototypes_that_do_not_fit_are_an_error_of_every_engine() {
    let numbers = prototypes();
    let tensors = tensors(&numbers);
    let valid = layout(&tensors);
    let error_at = |change: fn(&mut Prototypes), params: &Params, place: ImagePlace| {
        let mut layout = valid.clone();
        change(layout.prototypes.as_mut().unwrap());
        let errors: Vec<EngineError> = every_engine()
            .iter_mut()
            .map(|engine| engine.run(Job::new(&tensors, &layout, params, &[place])).unwrap_err())
            .collect();
        assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        errors[0].to_string()
    };
    let error = |change, params: &Params| error_at(change, params, PLACE);
    let sides =
        "the layout: expected prototypes of 1 to 16384 columns and rows; correct the layout";
    assert_eq!(error(|prototypes| prototypes.width = 0, &params()), sides);
    assert_eq!(error(|prototypes| prototypes.height = 0, &params()), sides);
    assert_eq!(error(|prototypes| prototypes.width = 16_385, &params()), sides);
    assert_eq!(error(|prototypes| prototypes.height = usize::MAX, &params()), sides);
    assert_eq!(
        error(|prototypes| prototypes.column = 1, &params()),
        "the layout: expected a column with the coefficients of the prototypes; correct the layout"
    );
    let outside = "tensor output1 (f32 1x2x4x8): the layout's prototypes need element";
    for change in [
        |prototypes: &mut Prototypes| prototypes.width = 9,
        |prototypes: &mut Prototypes| prototypes.height = 5,
        |prototypes: &mut Prototypes| prototypes.field.offset = 1,
        |prototypes: &mut Prototypes| prototypes.field.component_stride = usize::MAX,
    ] {
        let text = error(change, &params());
        assert!(text.starts_with(outside), "{text}");
    }
    assert!(
        error(|prototypes| prototypes.field.tensor = 2, &params())
            .contains("prototypes are of tensor 2")
    );
    for size in [[0, 5], [5, 65_537]] {
        let frame = Some(FrameMap { size, ratio: [1.0; 2], offset: [0.0; 2] });
        let params = Params { mask_size: MaskSize::Frame, ..params() };
        let text = error_at(|_| {}, &params, ImagePlace { frame, ..PLACE });
        assert!(text.contains("a frame of 1 to 65536 columns and rows"), "{text}");
    }
}

#[test]
fn any_size_of_the_models_input_and_any_mapping_give_the_masks_of_the_reference() {
    let numbers = prototypes();
    let tensors = tensors(&numbers);
    let layout = layout(&tensors);
    let sides = [0.0, -0.0, -3.0, 1e-40, 1e38, f32::INFINITY, f32::NAN, 7.3];
    let ratios = [0.0, -0.5, 1e-300, 1e300, f64::INFINITY, f64::NAN, 0.7];
    let mut engines = every_engine();
    for (turn, side) in sides.into_iter().enumerate() {
        for ratio in ratios {
            for offset in [0.0, -1e9, f64::NAN, 3.5] {
                let size = [1 + turn as u32 * 9, 17];
                let params = Params {
                    mask_size: if turn % 2 == 0 { MaskSize::Frame } else { MaskSize::Prototypes },
                    ..params()
                };
                let frame = FrameMap { size, ratio: [ratio, 0.5], offset: [offset; 2] };
                let place = ImagePlace { frame: Some(frame), ..ImagePlace::in_model([side, 16.0]) };
                let mut reference = Reference::default();
                let expected =
                    reference.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
                for engine in &mut engines {
                    let found = engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
                    let [expected, found] = [&expected, &found].map(|of| masks(&of.group(0)));
                    assert_eq!(found, expected, "{params:?}");
                }
            }
        }
    }
}

#[test]
fn masks_beyond_the_limit_of_bytes_are_left_out_by_rank() {
    const SIDE: u32 = 65_536;
    assert!(u64::from(SIDE) * u64::from(SIDE) / 8 > MAX_MASK_BYTES);
    let row = |side: f32, score: f32| [0.0, 0.0, side, side, score, 0.0, 1.0];
    // The mask of the second survivor would exceed the limit. The third, which ranks lower, then
    // has no mask either.
    let rows = [row(40.0, 0.9), row(SIDE as f32, 0.8), row(8.0, 0.7), row(48.0, 0.95)];
    let tensors = [
        TensorView::from_slice("output0", &[1, 4, 7], rows.as_flattened()),
        TensorView::from_slice("output1", &[1, 1, 2, 2], &[1.0f32; 4]),
    ];
    let layout = layout(&tensors);
    let frame = FrameMap { size: [SIDE; 2], ratio: [1.0; 2], offset: [0.0; 2] };
    let params = Params { mask_size: MaskSize::Frame, method: Method::None, ..Params::default() };
    let place = ImagePlace { frame: Some(frame), ..ImagePlace::in_model([SIDE as f32; 2]) };
    for mut engine in every_engine() {
        let outcome = engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        let image = outcome.group(0);
        let bytes = masks(&image).into_iter().map(|mask| Some(mask?.bytes));
        let expected = [Some([0xff; 6].repeat(48)), Some([0xff; 5].repeat(40)), None, None];
        assert!(bytes.eq(expected.iter().map(Option::as_deref)), "{}", outcome.engine);
    }
}

/// The masks need more words than the memory allocated at first.
#[test]
fn masks_that_grow_and_shrink_equal_the_reference() {
    const SIDE: usize = 2048;
    let rows = |scale: f32| -> Vec<f32> {
        let row = |i: usize| {
            let (x, y) = (i as f32 * 3.0, i as f32 * 5.0);
            [x, y, x + 700.0 * scale, y + 300.0 * scale, 0.9 - i as f32 * 0.01, 0.0, 1.0, 0.25]
        };
        (0..24).flat_map(row).collect()
    };
    let prototypes: Vec<f32> =
        (0..2 * SIDE * SIDE).map(|i| ((i * 7919) % 13) as f32 - 6.0).collect();
    let mut engine = engines::fast();
    for scale in [0.1, 2.0, 0.2, 1.0] {
        let rows = rows(scale);
        let tensors = [
            TensorView::from_slice("output0", &[1, 24, 8], &rows),
            TensorView::from_slice("output1", &[1, 2, SIDE, SIDE], &prototypes),
        ];
        let layout = layout(&tensors);
        let (params, place) = (params(), ImagePlace::in_model([SIDE as f32; 2]));
        let mut reference = Reference::default();
        let expected = reference.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        let found = engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        assert_eq!(masks(&found.group(0)), masks(&expected.group(0)), "{scale}");
    }
}

#[test]
fn without_masks_prototypes_are_not_read() {
    let shape = Shape::new(&[1, 2, 4, 8]).unwrap();
    let tensors = [
        TensorView::from_slice("output0", &[1, 2, 8], &OUTPUT),
        TensorView::new("output1", ElementType::F32, shape, Storage::Missing),
    ];
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    let mut nms = Nms::new(backend, Some(0)).unwrap();
    nms.set_decoder(Some("end2end-seg")).unwrap();
    nms.params.masks = false;
    let image = nms.run(&tensors).unwrap().group(0);
    assert_eq!((image.survivors.len(), image.columns.len()), (2, 0));
    assert!(image.masks.get(0).is_none());
    nms.params.masks = true;
    let Err(NmsError::Engine(EngineError::Tensor(error))) = nms.run(&tensors) else {
        panic!("expected an error")
    };
    assert_eq!(error.problem, TensorProblem::Missing);
}

#[test]
fn prototypes_of_a_type_that_cannot_be_read_are_an_error() {
    let numbers = prototypes();
    let mut tensors = tensors(&numbers);
    let layout = layout(&tensors);
    tensors[1].element = ElementType::Other("f64");
    for mut engine in every_engine() {
        let error = engine.run(Job::new(&tensors, &layout, &params(), &[PLACE])).unwrap_err();
        let EngineError::Tensor(error) = error else { panic!("{error}") };
        assert_eq!(error.problem, TensorProblem::ElementType);
    }
}

/// In YOLO models, one prototype pixel covers 4x4 pixels of the input.
#[test]
fn an_unknown_input_is_assumed_to_be_four_times_as_large_as_the_prototypes() {
    let numbers = prototypes();
    let tensors = tensors(&numbers);
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    let mut nms = Nms::new(backend, Some(0)).unwrap();
    nms.set_decoder(Some("end2end-seg")).unwrap();
    nms.params.method = Method::None;
    let unknown = mask_of(&nms.run(&tensors).unwrap().group(0), 0);
    nms.model_size = [32.0, 16.0];
    let known = mask_of(&nms.run(&tensors).unwrap().group(0), 0);
    assert_eq!((unknown, known), ([1, 1, 4, 2], [1, 1, 4, 2]));
    nms.model_size = [64.0, 16.0];
    assert_eq!(mask_of(&nms.run(&tensors).unwrap().group(0), 0), [1, 1, 2, 2]);
}
