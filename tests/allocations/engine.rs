// SPDX-License-Identifier: MIT OR Apache-2.0
//! After the first run, an engine allocates nothing for runs of equal size.

use nmsfilter_core::decoder;
use nmsfilter_core::engine::{Job, Method, Params};
use nmsfilter_core::nms::{Backend, FrameMap, MaskSize, Nms};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

use crate::counting::allocations;
use crate::support::engines;
use crate::support::methods::add_column;
use crate::windows::windows;

#[test]
fn the_engine_allocates_nothing_once_warm() {
    let (windows, columns) = (windows(700), vec![0.5f32; 84 * 2100]);
    let yolov8 = |numbers: usize, anchors: usize| {
        let all = &columns[..numbers * anchors];
        [TensorView::from_slice("yolo-v8-out", &[1, numbers, anchors], all)]
    };
    let tensors = [
        ([TensorView::from_slice("windows", &[700, 4], &windows)], false),
        (yolov8(84, 2100), false),
        // Several classes per anchor: there are more candidates than anchors.
        (yolov8(8, 200), true),
    ];
    let mut engine = engines::fast();
    for (tensors, multi_label) in &tensors {
        let layout = decoder::choose(tensors, None, decoder::Options::default()).unwrap().layout;
        for method in Method::ALL.into_iter().filter(|method| method.column().is_none()) {
            let params = Params { method, multi_label: *multi_label, ..Params::default() };
            let places = engines::places(&layout);
            let mut run = || {
                assert!(
                    engine
                        .run(Job::new(tensors, &layout, &params, &places))
                        .unwrap()
                        .group(0)
                        .candidates
                        > 0
                )
            };
            run();
            assert_eq!(allocations(run), 0, "{method:?}");
        }
    }
}

#[test]
fn the_engine_allocates_nothing_for_a_column_once_warm() {
    let windows = windows(700);
    let column: Vec<f32> = (0..700).map(|index| (index % 5) as f32 * 0.2).collect();
    let tensors = [
        TensorView::from_slice("windows", &[700, 4], &windows),
        TensorView::from_slice("column", &[1, 700, 1], &column),
    ];
    let options = decoder::Options::default();
    let mut engine = engines::fast();
    for method in [Method::Adaptive, Method::Feature] {
        let mut layout = decoder::choose(&tensors[..1], None, options).unwrap().layout;
        add_column(&mut layout, 1, method.column().unwrap(), 1);
        let params = Params { method, ..Params::default() };
        let places = engines::places(&layout);
        let mut run = || {
            assert!(
                engine
                    .run(Job::new(&tensors, &layout, &params, &places))
                    .unwrap()
                    .group(0)
                    .candidates
                    > 0
            )
        };
        run();
        assert_eq!(allocations(run), 0, "{method:?}");
    }
}

#[test]
fn the_engine_allocates_nothing_for_masks_once_warm() {
    let rows = (0..60).flat_map(|row| {
        let [x, y] = [row % 10, row / 10].map(|step| step as f32 * 20.0);
        [x, y, x + 30.0, y + 40.0, 0.9 - row as f32 * 1e-3, (row % 2) as f32, 1.0, -1.0]
    });
    let rows: Vec<f32> = rows.collect();
    let prototypes: Vec<f32> = (0..2 * 40 * 64).map(|i| (i % 7) as f32 - 3.0).collect();
    let tensors = [
        TensorView::from_slice("output0", &[1, 60, 8], &rows),
        TensorView::from_slice("output1", &[1, 2, 40, 64], &prototypes),
    ];
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    let frame = FrameMap { size: [512, 320], ratio: [0.5; 2], offset: [0.0; 2] };
    for mask_size in [MaskSize::Prototypes, MaskSize::Frame] {
        let mut nms = Nms::new(backend, Some(0)).unwrap();
        nms.set_decoder(Some("end2end-seg")).unwrap();
        (nms.params.mask_size, nms.frame) = (mask_size, Some(frame));
        let mut run = |max_detections| {
            nms.params.max_detections = max_detections;
            let image = nms.run(&tensors).unwrap().group(0);
            assert!(image.masks.get(0).unwrap().bytes.iter().any(|byte| *byte != 0));
        };
        run(0);
        for max_detections in [3, 0] {
            assert_eq!(allocations(|| run(max_detections)), 0, "{mask_size:?}");
        }
    }
}

#[test]
fn the_engine_allocates_nothing_for_images_in_memories_of_their_own_once_warm() {
    let windows = windows(300);
    let storages: Vec<Storage<'_>> = [3, 0, 2, 1]
        .map(|image| Storage::Host(bytemuck::cast_slice(&windows[image * 40..][..200 * 4])))
        .to_vec();
    let shape = Shape::new(&[4, 200, 4]).unwrap();
    let images = Storage::Images(&storages);
    let tensors = [TensorView::new("windows", ElementType::F32, shape, images)];
    let options = decoder::Options { batch: true, ..decoder::Options::default() };
    let layout = decoder::choose(&tensors, None, options).unwrap().layout;
    let (mut engine, places) = (engines::fast(), engines::places(&layout));
    let mut run = || {
        let outcome = engine.run(Job::new(&tensors, &layout, &Params::default(), &places)).unwrap();
        assert!(outcome.groups().all(|image| image.candidates > 0));
    };
    run();
    assert_eq!(allocations(run), 0);
}

/// The tensor ids are unknown: without a stored plan, the decoder would be chosen by shape in each
/// run.
#[test]
fn nms_makes_its_plan_once() {
    let columns = vec![0.5f32; 84 * 100];
    let tensors = [
        TensorView::from_slice("out", &[1, 84, 100], &columns),
        TensorView::from_slice("other", &[9], &columns[..9]),
    ];
    let backend = if engines::on_gpu() { Backend::Cuda } else { Backend::Cpu };
    let mut nms = Nms::new(backend, Some(0)).unwrap();
    nms.params.thresholds.per_class = vec![0.5, 0.75];
    let mut run = |per_class: f32| {
        nms.params.thresholds.per_class[0] = per_class;
        assert!(nms.run(&tensors).unwrap().group(0).candidates > 0);
    };
    run(0.5);
    // A change of the parameters needs no new plan either.
    for threshold in [0.5, 0.25, 0.25] {
        assert_eq!(allocations(|| run(threshold)), 0);
    }
}

#[test]
fn parameters_are_not_copied_for_each_run() {
    let rows: Vec<f32> =
        (0..200).flat_map(|row| [8.0, 8.0, 4.0, 4.0, 0.9, row as f32 / 400.0]).collect();
    let tensors = [TensorView::from_slice("scores", &[1, 200, 6], &rows)];
    for selects_pairs in [false, true] {
        let mut nms = Nms::new(Backend::Cpu, None).unwrap();
        nms.set_decoder(Some("yolov8")).unwrap();
        nms.selects_pairs = selects_pairs;
        nms.params.multi_label = true;
        nms.params.max_detections = 0;
        nms.params.thresholds.per_class = vec![0.1, 0.2];
        let mut run = || assert!(nms.run(&tensors).unwrap().group(0).candidates > 0);
        run();
        assert_eq!(allocations(run), 0, "selects_pairs: {selects_pairs}");
        assert_eq!(nms.params.max_detections, 0);
    }
}
