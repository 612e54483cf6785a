// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boxes at inner edges of regions: the rule as a specification, random scenes, and Frigate's test cases.

use nmsfilter_core::decoder::{self, BoxFormat, Options};
use nmsfilter_core::engine::{
    BoxPixels, Engine, ImagePlace, Job, Method, Params, Reference, RegionEdges,
};
use nmsfilter_core::geometry::{Bounds, FrameMap, FrameRegion, Letterbox, Mapping};
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::TensorView;

use crate::merging_vectors::vectors;
use crate::support::engines::{self, bits};
use crate::support::layout_scene::LayoutScene;

const FRAME: [u32; 2] = [1000, 400];

fn every_engine() -> [Box<dyn Engine>; 2] {
    [Box::new(Reference::default()), engines::fast()]
}

fn rule(region_edges: RegionEdges) -> Params {
    Params { region_edges, ..Params::default() }
}

/// A region of the frame at its original size. Its boxes are in pixels of the frame already.
fn region([left, top, right, bottom]: [f32; 4]) -> ImagePlace {
    ImagePlace {
        frame: Some(FrameMap { size: FRAME, ratio: [1.0; 2], offset: [0.0; 2] }),
        boxes: BoxPixels::Frame,
        visible: Bounds { left, top, right, bottom },
        ..ImagePlace::in_model([1.0; 2])
    }
}

const LEFT_TILE: [f32; 4] = [0.0, 0.0, 600.0, 400.0];
const RIGHT_TILE: [f32; 4] = [400.0, 0.0, 1000.0, 400.0];
const WHOLE: [f32; 4] = [0.0, 0.0, 1000.0, 400.0];

/// The edges and scores of the survivors of a group of images, each with one box and a score, and the number of
/// candidates.
fn run(params: &Params, images: &[(ImagePlace, [f32; 4], f32)]) -> (Vec<[f32; 5]>, usize) {
    let boxes: Vec<f32> = images.iter().flat_map(|(_, corners, _)| *corners).collect();
    let scores: Vec<f32> = images.iter().map(|(_, _, score)| *score).collect();
    let places: Vec<ImagePlace> = images.iter().map(|(place, ..)| *place).collect();
    let tensors = [
        TensorView::from_slice("boxes", &[images.len(), 1, 4], &boxes),
        TensorView::from_slice("scores", &[images.len(), 1], &scores),
    ];
    let options = Options { box_format: BoxFormat::Corners, batch: true, ..Options::default() };
    let layout = decoder::choose(&tensors, decoder::by_name("boxes"), options).unwrap().layout;
    let [expected, found] = every_engine().map(|mut engine| {
        let outcome = engine.run(Job::new(&tensors, &layout, params, &places)).unwrap();
        let group = outcome.group(0);
        assert_eq!(group.rejected, 0);
        let survivors = group.survivors.iter().map(|d| [d.x1, d.y1, d.x2, d.y2, d.score]);
        (survivors.collect::<Vec<_>>(), group.candidates)
    });
    assert_eq!(expected, found);
    expected
}

/// Two tiles cut an object, which the whole frame shows with a lower score.
#[test]
fn the_whole_object_survives_where_parts_are_dropped_or_lowered() {
    let parts = [
        (region(LEFT_TILE), [350.0, 100.0, 600.0, 300.0], 0.9),
        (region(RIGHT_TILE), [400.0, 100.0, 700.0, 300.0], 0.8),
    ];
    let whole = (region(WHOLE), [350.0, 100.0, 700.0, 300.0], 0.7);
    let all = [parts[0], parts[1], whole];
    let whole = [350.0, 100.0, 700.0, 300.0, 0.7];
    let part = |score| vec![[350.0, 100.0, 600.0, 300.0, score]];
    assert_eq!(run(&rule(RegionEdges::Keep), &all), (part(0.9), 3));
    assert_eq!(run(&rule(RegionEdges::Drop), &all), (vec![whole], 1));
    assert_eq!(run(&rule(RegionEdges::Lower), &all), (vec![whole], 3));
    // If nothing shows the whole object, its parts are lost or have the lower score.
    assert_eq!(run(&rule(RegionEdges::Drop), &parts), (vec![], 0));
    assert_eq!(run(&rule(RegionEdges::Lower), &parts), (part(0.6), 2));
    // Not below the threshold of the class.
    let mut params = rule(RegionEdges::Lower);
    params.thresholds.default = 0.75;
    assert_eq!(run(&params, &parts), (part(0.75), 2));
}

#[test]
fn objects_at_the_frames_edges_and_far_from_edges_are_kept() {
    for edges in [RegionEdges::Drop, RegionEdges::Lower] {
        for (place, corners) in [
            (LEFT_TILE, [0.0, 0.0, 200.0, 400.0]),
            (LEFT_TILE, [300.0, 100.0, 594.0, 200.0]),
            (RIGHT_TILE, [406.0, 100.0, 1000.0, 400.0]),
            (WHOLE, WHOLE),
            // Not farther from the frame's edges than the margin.
            ([5.0, 5.0, 995.0, 395.0], [5.0, 5.0, 995.0, 395.0]),
            // A region that is partly outside of the frame.
            ([-50.0, -50.0, 1200.0, 500.0], [-60.0, -60.0, 1210.0, 510.0]),
        ] {
            let [x1, y1, x2, y2] = corners;
            let found = run(&rule(edges), &[(region(place), corners, 0.9)]);
            assert_eq!(found, (vec![[x1, y1, x2, y2, 0.9]], 1), "{edges:?}, {corners:?}");
        }
        let at_limit = [(region(LEFT_TILE), [300.0, 100.0, 595.0, 200.0], 0.9)];
        let (found, _) = run(&rule(edges), &at_limit);
        assert!(found.iter().all(|survivor| survivor[4] == 0.6), "{edges:?}: {found:?}");
    }
}

/// The lowered score is the weight of the box, too.
#[test]
fn boxes_are_averaged_with_the_lowered_scores() {
    let images = [
        (region(LEFT_TILE), [400.0, 100.0, 600.0, 200.0], 0.9),
        (region(WHOLE), [400.0, 100.0, 640.0, 200.0], 0.6),
    ];
    let params = Params { method: Method::WeightedAverage, ..rule(RegionEdges::Lower) };
    let (found, _) = run(&params, &images);
    assert_eq!(found, [[400.0, 100.0, 620.0, 200.0, 0.6]]);
}

/// The margin is in pixels of the frame, whatever the ratio of the model's input and its letterbox are.
#[test]
fn a_letterboxed_tile_has_the_margin_of_the_frame() {
    let tile = FrameRegion { left: 600, top: 0, width: 400, height: 400 };
    let mapping = Mapping::of_region(FRAME, tile, [100, 200], Letterbox::Center).unwrap();
    let place = ImagePlace::in_region(&mapping, 0);
    // The tile is 100x100 pixels of the model's input, below a border of 50 rows: 4 pixels of the frame for each.
    for (left, is_kept) in [(1.0, false), (1.25, false), (1.5, true)] {
        let (found, _) = run(&rule(RegionEdges::Drop), &[(place, [left, 50.0, 100.0, 150.0], 0.9)]);
        let expected = [600.0 + left * 4.0, 0.0, 1000.0, 400.0, 0.9];
        assert_eq!(found, if is_kept { vec![expected] } else { vec![] }, "{left}");
    }
}

/// Programs in C and Python decode regions one at a time, with boxes in pixels of the model's input.
#[test]
fn a_visible_part_inside_the_frame_is_a_region() {
    let row = |left: f32, right: f32| [left, 50.0, right, 150.0, 0.9, 0.0];
    let output = [row(50.0, 100.0), row(100.0, 198.0)].concat();
    let tensors = [TensorView::from_slice("output0", &[1, 2, 6], &output)];
    let mut nms = Nms::new(Backend::Cpu, None).unwrap();
    nms.params = rule(RegionEdges::Drop);
    nms.set_decoder(Some("end2end")).unwrap();
    let kept = |nms: &mut Nms| nms.run(&tensors).unwrap().group(0).survivors.len();
    assert_eq!(kept(&mut nms), 2, "no frame is known");
    nms.frame = Some(FrameMap { size: FRAME, ratio: [0.5; 2], offset: [-100.0, 0.0] });
    assert_eq!(kept(&mut nms), 2, "no region is known");
    // Columns 200 to 600 of the frame.
    nms.visible = Bounds { left: 0.0, top: 0.0, right: 200.0, bottom: 200.0 };
    assert_eq!(kept(&mut nms), 1);
    nms.params.edge_margin = 2.0;
    assert_eq!(kept(&mut nms), 2);
}

/// The bounds of the rectangle touch the inner edge at column 600 only if the rectangle is turned.
#[test]
fn oriented_boxes_touch_an_edge_with_their_bounds() {
    for (angle, is_kept) in [(0.0, true), (std::f32::consts::FRAC_PI_4, false)] {
        let row = [580.0, 200.0, 2.0, 44.0, 0.9, 0.0, angle];
        let tensors = [TensorView::from_slice("output0", &[1, 1, 7], &row)];
        let options = Options { batch: true, ..Options::default() };
        let decoder = decoder::by_name("end2end-obb");
        let layout = decoder::choose(&tensors, decoder, options).unwrap().layout;
        let places = [region(LEFT_TILE)];
        for mut engine in every_engine() {
            let outcome =
                engine.run(Job::new(&tensors, &layout, &rule(RegionEdges::Drop), &places)).unwrap();
            assert_eq!(outcome.group(0).survivors.len() == 1, is_kept, "{}", engine.name());
        }
    }
}

#[test]
fn random_regions_have_equal_bits_on_every_engine() {
    let (mut dropped, mut lowered) = (0, 0);
    let scenes = engines::scene_count(400);
    for seed in 0..scenes {
        let is_oriented = seed % 4 == 0;
        let scene = if is_oriented {
            LayoutScene::oriented_groups(seed)
        } else {
            LayoutScene::groups(seed)
        };
        let (views, places) = (scene.views(), scene.places());
        let mut run = |region_edges| {
            let params = Params { region_edges, max_candidates: 0, ..scene.params.clone() };
            let [expected, found] = every_engine().map(|mut engine| {
                let outcome =
                    engine.run(Job::new(&views, &scene.layout, &params, &places)).unwrap();
                outcome.groups().map(|group| bits(&group)).collect::<Vec<_>>()
            });
            assert_eq!(expected, found, "seed {seed}, {params:?}, {places:?}");
            expected
        };
        let [keep, drop, lower] =
            [RegionEdges::Keep, RegionEdges::Drop, RegionEdges::Lower].map(&mut run);
        for ((keep, drop), lower) in keep.iter().zip(&drop).zip(&lower) {
            let (_, candidates, rejected) = keep;
            assert!(drop.1 <= *candidates && drop.2 == *rejected, "seed {seed}");
            assert_eq!((lower.1, lower.2), (*candidates, *rejected), "seed {seed}");
        }
        dropped += usize::from(keep != drop);
        lowered += usize::from(keep != lower);
    }
    let least = scenes as usize / 20;
    assert!(dropped > least && lowered > least, "{dropped} and {lowered} of {scenes}");
}

/// Frigate's tests of detections in two regions. It lowers scores at inner edges to 0.6, suppresses by class, and then
/// drops boxes inside larger ones (consolidation). There is no such step here: it changes nothing in these cases, because
/// the inner box of the second has less than 5 % of the area. Frigate reports the score before it was lowered.
#[test]
fn cases_of_frigate_have_the_expected_detections() {
    let Some(cases) = vectors("frigate_regions.json") else { return };
    for case in &cases {
        let [height, width] = [0, 1].map(|i| case["frame_height_width"][i].as_u64().unwrap());
        let frame =
            FrameMap { size: [width as u32, height as u32], ratio: [1.0; 2], offset: [0.0; 2] };
        let detections = case["detections"].as_array().unwrap();
        let images: Vec<(ImagePlace, [f32; 4], f32)> = detections
            .iter()
            .map(|detection| {
                let edges = |name: &str| -> [f32; 4] {
                    serde_json::from_value(detection[name].clone()).unwrap()
                };
                // A region can be partly below the frame.
                let place = ImagePlace { frame: Some(frame), ..region(edges("region")) };
                (place, edges("box"), detection["score"].as_f64().unwrap() as f32)
            })
            .collect();
        let mut params = rule(RegionEdges::Lower);
        (params.thresholds.default, params.iou_threshold) = (0.5, 0.6);
        let (found, _) = run(&params, &images);
        let expected = &case["expected"];
        let name = case["name"].as_str().unwrap();
        assert_eq!(found.len() as u64, expected["count"].as_u64().unwrap(), "{name}");
        if let Some(kept) = expected.get("kept") {
            let kept = images[kept[0].as_u64().unwrap() as usize].1;
            assert_eq!(found[0][..4], kept, "{name}");
            // Without the rule, the box of the part suppresses it.
            assert_ne!(run(&rule(RegionEdges::Keep), &images).0[0][..4], kept, "{name}");
        }
    }
    assert_eq!(cases.len(), 2);
}
