// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engines are compared with each other, and with the rules, on random scenes.
//!
//! A scene is generated from a seed. Each failure message contains the seed.

use nmsfilter_core::decoder::{self, Field, Layout, Options, PlainLayout};
use nmsfilter_core::engine::{
    ClassRule, ClassThresholds, Cpu, Detection, Engine, Job, Method, Params, Reference,
};
use nmsfilter_core::geometry::Bounds;
use nmsfilter_core::tensor::TensorView;

use crate::support::engines::{self, bits};
use crate::support::scene::Scene;

fn survivors(
    engine: &mut dyn Engine,
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
) -> Vec<Detection> {
    engine
        .run(Job::new(tensors, layout, params, &engines::places(layout)))
        .unwrap()
        .group(0)
        .survivors
        .to_vec()
}

/// Returns the survivors of a scene, and all of its candidates.
fn survivors_and_candidates(
    engine: &mut dyn Engine,
    scene: &Scene,
) -> (Vec<Detection>, Vec<Detection>) {
    let (tensors, layout) = scene.tensors();
    let all = Params { method: Method::None, ..scene.params.clone() };
    let kept = survivors(engine, &tensors, &layout, &scene.params);
    (kept, survivors(engine, &tensors, &layout, &all))
}

/// Returns true if two detections conflict. The reference engine decides, in a run with only these
/// two.
fn conflict(higher: &Detection, lower: &Detection, params: &Params) -> bool {
    if higher.class != lower.class && !params.class_agnostic {
        return false;
    }
    let corners = |d: &Detection| [d.x1, d.y1, d.x2, d.y2];
    let boxes = [corners(higher), corners(lower)].concat();
    let tensors = [
        TensorView::from_slice("boxes", &[2, 4], &boxes),
        TensorView::from_slice("scores", &[2], &[1.0f32, 0.5]),
    ];
    let pair = Params {
        method: Method::MapReduce,
        overlap: params.overlap,
        iou_threshold: params.iou_threshold_of(lower.class),
        threshold_inclusive: params.threshold_inclusive,
        pixel_offset: params.pixel_offset,
        ..Params::default()
    };
    let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
    survivors(&mut Reference::default(), &tensors, &layout, &pair).len() == 1
}

fn ranked(detections: &[Detection]) -> bool {
    let outranks = |a: &Detection, b: &Detection| {
        a.score > b.score || (a.score == b.score && (a.anchor, a.class) < (b.anchor, b.class))
    };
    detections.windows(2).all(|pair| outranks(&pair[0], &pair[1]))
}

/// Totals over scenes.
#[derive(Default)]
struct Counts {
    candidates: usize,
    survivors: usize,
    rejected: usize,
    /// Greatest number of candidates in a scene.
    most: usize,
    /// Number of candidates beyond the number of anchors, which `multi_label` can give.
    further: usize,
    /// Pairs of candidates with consecutive ranks, one anchor and equal scores.
    ties: usize,
}

/// Runs scenes on both engines. Their results must be equal to the bit, in equal order.
fn fast_equals_reference(scenes: impl Iterator<Item = (u64, Scene)>) -> Counts {
    let (mut reference, mut fast) = (Reference::default(), engines::fast());
    let mut counts = Counts::default();
    for (seed, scene) in scenes {
        let (tensors, layout) = scene.tensors();
        let expected = reference
            .run(Job::new(&tensors, &layout, &scene.params, &scene.places()))
            .unwrap()
            .group(0);
        let found =
            fast.run(Job::new(&tensors, &layout, &scene.params, &scene.places())).unwrap().group(0);
        assert_eq!(bits(&expected), bits(&found), "seed {seed}: {scene:?}");
        counts.candidates += found.candidates;
        counts.survivors += found.survivors.len();
        counts.rejected += found.rejected;
        counts.most = counts.most.max(found.candidates);
        counts.further += found.candidates.saturating_sub(layout.anchors());
        let is_tie = |pair: &&[Detection]| {
            pair[0].anchor == pair[1].anchor && pair[0].score == pair[1].score
        };
        counts.ties += found.survivors.windows(2).filter(is_tie).count();
    }
    counts
}

#[test]
fn fast_equals_reference_bit_for_bit_and_in_order() {
    let scenes = engines::scene_count(12_000);
    let [candidates, left, rejected, further, ties] = engines::in_parts(scenes, |seeds| {
        let Counts { candidates, survivors, rejected, further, ties, .. } =
            fast_equals_reference(seeds.map(|seed| (seed, Scene::any(seed))));
        [candidates, survivors, rejected, further, ties]
    });
    println!("{candidates} candidates, {left} survivors, {rejected} rejected, {ties} ties");
    // The scenes have many candidates to suppress, to keep and to reject.
    let at_least = |count: u64| (count * scenes / 12_000) as usize;
    assert!(
        candidates > at_least(1_000_000) && left > at_least(100_000) && rejected > at_least(10_000)
    );
    assert!(left * 2 < candidates);
    assert!(
        further > at_least(100_000) && ties > at_least(1_000),
        "{further} further, {ties} ties"
    );
}

#[test]
fn each_image_of_a_batch_equals_a_run_of_that_image_alone() {
    let batches = engines::scene_count(20_000);
    let [images, left] = engines::in_parts(batches, |seeds| {
        let (mut reference, mut fast) = (Reference::default(), engines::fast());
        let (mut images, mut left) = (0, 0);
        for seed in seeds {
            let batch = Scene::batch(seed, 5);
            let joined = Scene::joined(&batch);
            let (tensors, layout) = joined.tensors();
            assert_eq!(layout.images, batch.len(), "seed {seed}: {joined:?}");
            let found =
                fast.run(Job::new(&tensors, &layout, &joined.params, &joined.places())).unwrap();
            let all = reference
                .run(Job::new(&tensors, &layout, &joined.params, &joined.places()))
                .unwrap();
            let mut alone = Reference::default();
            for (index, image) in batch.iter().enumerate() {
                let (tensors, layout) = image.tensors();
                let expected = alone
                    .run(Job::new(&tensors, &layout, &image.params, &image.places()))
                    .unwrap()
                    .group(0);
                assert_eq!(bits(&expected), bits(&all.group(index)), "seed {seed}, image {index}");
                let found = found.group(index);
                assert_eq!(bits(&expected), bits(&found), "seed {seed}, image {index}: {image:?}");
                left += found.survivors.len();
            }
            images += batch.len();
        }
        [images, left]
    });
    println!("{batches} batches of {images} images: {left} survivors");
    assert!(images as u64 > 2 * batches && left > 5 * images);
}

#[test]
fn fast_equals_reference_for_boxes_whose_overlap_equals_the_threshold_at_any_scale() {
    let seeds = 0..engines::scene_count(4_000);
    let Counts { candidates, survivors: left, .. } =
        fast_equals_reference(seeds.map(|seed| (seed, Scene::on_a_grid(seed))));
    assert!(0 < left && left < candidates, "{left} of {candidates}");
}

#[test]
fn fast_equals_reference_for_ten_thousand_candidates() {
    let seeds = engines::scene_count(12).max(4);
    let Counts { most, .. } =
        fast_equals_reference((0..seeds).map(|seed| (seed, Scene::large(seed, 10_000))));
    assert!(most > 9_000, "at most {most} candidates");
}

#[test]
fn greedy_survivors_do_not_conflict_and_all_others_conflict_with_a_survivor_that_outranks_them() {
    let mut fast = engines::fast();
    let (scenes, mut left, mut suppressed) = (engines::scene_count(1_000), 0, 0);
    for seed in 0..scenes {
        let scene = Scene::plain(seed, Method::Greedy);
        let (kept, all) = survivors_and_candidates(&mut *fast, &scene);
        left += kept.len() as u64;
        suppressed += (all.len() - kept.len()) as u64;
        assert!(ranked(&kept) && ranked(&all), "seed {seed}");
        for (rank, candidate) in all.iter().enumerate() {
            let outranking = all[..rank].iter().filter(|other| kept.contains(other));
            let is_suppressed =
                outranking.into_iter().any(|other| conflict(other, candidate, &scene.params));
            assert_eq!(kept.contains(candidate), !is_suppressed, "seed {seed}: {candidate:?}");
        }
    }
    assert!(left > scenes && suppressed > scenes, "{left} left, {suppressed} suppressed");
}

#[test]
fn map_reduce_survivors_are_the_undominated_candidates() {
    let mut fast = engines::fast();
    let (scenes, mut left, mut suppressed) = (engines::scene_count(1_000), 0, 0);
    for seed in 0..scenes {
        let scene = Scene::plain(seed, Method::MapReduce);
        let (tensors, layout) = scene.tensors();
        let (kept, all) = survivors_and_candidates(&mut *fast, &scene);
        left += kept.len() as u64;
        suppressed += (all.len() - kept.len()) as u64;
        for (rank, candidate) in all.iter().enumerate() {
            let is_dominated =
                all[..rank].iter().any(|other| conflict(other, candidate, &scene.params));
            assert_eq!(kept.contains(candidate), !is_dominated, "seed {seed}: {candidate:?}");
        }
        // The single pass of the paper is the first round of greedy suppression, so greedy
        // suppression keeps all of its survivors.
        let greedy = Params { method: Method::Greedy, ..scene.params.clone() };
        let greedy = survivors(&mut *fast, &tensors, &layout, &greedy);
        assert!(kept.iter().all(|survivor| greedy.contains(survivor)), "seed {seed}");
    }
    assert!(left > scenes && suppressed > scenes, "{left} left, {suppressed} suppressed");
}

/// GLib's range checks accept NaN, so properties can have this value.
#[test]
fn fast_equals_reference_for_parameters_that_are_nan() {
    let setters: [fn(&mut Params); 6] = [
        |params| params.sizes.min[0] = f32::NAN,
        |params| params.sizes.min[1] = f32::NAN,
        |params| params.sizes.max[0] = f32::NAN,
        |params| params.sizes.max[1] = f32::NAN,
        |params| params.thresholds.default = f32::NAN,
        |params| params.iou_threshold = f32::NAN,
    ];
    for set_nan in setters {
        let scenes = (0..engines::scene_count(100)).map(|seed| {
            let mut scene = Scene::any(seed);
            set_nan(&mut scene.params);
            (seed, scene)
        });
        let counts = fast_equals_reference(scenes);
        assert!(counts.candidates > 0, "nothing was compared");
    }
}

#[test]
fn the_limits_of_classes_keep_the_highest_ranked_of_each() {
    let mut fast = engines::fast();
    let (scenes, mut cut) = (engines::scene_count(500), 0);
    for seed in 0..scenes {
        let scene = Scene::plain(seed, Method::Greedy);
        let (tensors, layout) = scene.tensors();
        let kept = survivors(&mut *fast, &tensors, &layout, &scene.params);
        let mut params = scene.params.clone();
        params.class_rules.resize(3, ClassRule::default());
        let limits = [2, 0, 5];
        for (rule, limit) in params.class_rules.iter_mut().zip(limits) {
            rule.max_detections = limit;
        }
        for max_detections in [0, 4] {
            let mut counts = [0; 3];
            let mut expected = kept.clone();
            expected.retain(|survivor| {
                let class = survivor.class as usize;
                counts[class] += 1;
                limits[class] == 0 || counts[class] <= limits[class]
            });
            expected.truncate(if max_detections == 0 { usize::MAX } else { max_detections });
            params.max_detections = max_detections;
            let found = survivors(&mut *fast, &tensors, &layout, &params);
            assert_eq!(found, expected, "seed {seed}, max-detections {max_detections}");
            cut += (kept.len() - found.len()) as u64;
        }
    }
    assert!(cut > scenes, "{cut} cut off");
}

/// So many survivors of a class that the CPU engine searches in a grid of the class, also if a limit
/// of survivors ends the search.
#[test]
fn classes_with_hundreds_of_survivors_are_suppressed_separately() {
    const COUNT: usize = 4000;
    const CLASSES: usize = 3;
    let mut rng = fastrand::Rng::with_seed(39);
    let boxes: Vec<f32> = (0..COUNT)
        .flat_map(|_| {
            let [x, y] = [0, 1].map(|_| rng.f32() * 1500.0);
            let [width, height] = [0, 1].map(|_| 20.0 + rng.f32() * 60.0);
            [x, y, x + width, y + height]
        })
        .collect();
    let scores: Vec<f32> = (0..COUNT * CLASSES).map(|_| 0.3 + 0.7 * rng.f32()).collect();
    let tensors = [
        TensorView::from_slice("boxes", &[COUNT, 4], &boxes),
        TensorView::from_slice("scores", &[COUNT, CLASSES], &scores),
    ];
    let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
    for max_detections in [0, 2000, COUNT] {
        let params = Params { max_detections, ..Params::default() };
        let expected = survivors(&mut Reference::default(), &tensors, &layout, &params);
        let found = survivors(&mut Cpu::default(), &tensors, &layout, &params);
        assert_eq!(found, expected, "max-detections {max_detections}");
        for class in 0..CLASSES as u32 {
            let of_class = expected.iter().filter(|survivor| survivor.class == class).count();
            assert!((500..COUNT / CLASSES).contains(&of_class), "{of_class} of class {class}");
        }
    }
}

#[test]
fn max_candidates_and_max_detections_keep_the_highest_ranked() {
    let mut fast = engines::fast();
    let (scenes, mut cut) = (engines::scene_count(500), 0);
    for seed in 0..scenes {
        let scene = Scene::plain(seed, Method::Greedy);
        let (tensors, layout) = scene.tensors();
        let all = Params { method: Method::None, ..scene.params.clone() };
        let all = survivors(&mut *fast, &tensors, &layout, &all);
        let cap = all.len() / 2 + 1;

        let first = Params { method: Method::None, max_candidates: cap, ..scene.params.clone() };
        let first = survivors(&mut *fast, &tensors, &layout, &first);
        assert_eq!(first, all[..cap.min(all.len())], "seed {seed}: max-candidates {cap}");

        let kept = survivors(&mut *fast, &tensors, &layout, &scene.params);
        let cap = kept.len() / 2 + 1;
        let fewer = Params { max_detections: cap, ..scene.params.clone() };
        let fewer = survivors(&mut *fast, &tensors, &layout, &fewer);
        assert_eq!(fewer, kept[..cap.min(kept.len())], "seed {seed}: max-detections {cap}");
        cut += (all.len() - first.len() + kept.len() - fewer.len()) as u64;
    }
    assert!(cut > scenes, "{cut} cut off");
}

#[test]
fn multi_label_equals_one_run_per_class() {
    let mut fast = engines::fast();
    for seed in 0..engines::scene_count(1_000) {
        let scene = Scene::plain(seed, Method::None);
        let (tensors, layout) = scene.tensors();
        let multi = Params { multi_label: true, ..scene.params.clone() };
        let found = fast
            .run(Job::new(&tensors, &layout, &multi, &engines::places(&layout)))
            .unwrap()
            .group(0);
        let (counts, all) = ([found.candidates, found.rejected], found.survivors.to_vec());
        assert!(ranked(&all), "seed {seed}");
        let mut sums = [0, 0];
        let layout = layout.plain(&tensors).unwrap();
        for class in 0..layout.classes {
            let scores = Field { offset: layout.scores.index(0, class), ..layout.scores };
            let alone = PlainLayout { classes: 1, scores, ..layout.clone() }.into();
            let single = Params {
                multi_label: false,
                thresholds: ClassThresholds::uniform(multi.thresholds.of(class as u32)),
                class_rules: multi.class_rules.get(class).copied().into_iter().collect(),
                ..multi.clone()
            };
            let found = fast
                .run(Job::new(&tensors, &alone, &single, &engines::places(&alone)))
                .unwrap()
                .group(0);
            sums = [sums[0] + found.candidates, sums[1] + found.rejected];
            let alike = all.iter().filter(|d| d.class as usize == class);
            let alike: Vec<_> = alike.map(|&d| Detection { class: 0, ..d }).collect();
            assert_eq!(alike, found.survivors, "seed {seed}, class {class}");
        }
        assert_eq!(counts, sums, "seed {seed}");
    }
}

#[test]
fn boxes_outside_the_visible_part_are_rejected_and_suppress_nothing() {
    let mut fast = engines::fast();
    let mut outside = 0;
    for seed in 0..engines::scene_count(1_000) {
        let mut scene = Scene::plain(seed, Method::Greedy);
        let visible = Bounds { left: 100.0, top: 50.0, right: 400.0, bottom: 300.0 };
        scene.place.visible = visible;
        let all = Params { method: Method::None, ..scene.params.clone() };
        let (tensors, layout) = scene.tensors();
        let all = survivors(&mut *fast, &tensors, &layout, &all);
        let is_seen = |d: &&Detection| {
            d.x2 > visible.left
                && d.x1 < visible.right
                && d.y2 > visible.top
                && d.y1 < visible.bottom
        };
        let seen: Vec<Detection> = all.iter().filter(is_seen).copied().collect();
        let mut kept: Vec<Detection> = Vec::new();
        for candidate in &seen {
            if !kept.iter().any(|other| conflict(other, candidate, &scene.params)) {
                kept.push(*candidate);
            }
        }
        let found =
            fast.run(Job::new(&tensors, &layout, &scene.params, &scene.places())).unwrap().group(0);
        assert_eq!(found.survivors, kept, "seed {seed}");
        let counts = [found.candidates, found.rejected];
        assert_eq!(counts, [seen.len(), all.len() - seen.len()], "seed {seed}");
        outside += found.rejected;
    }
    assert!(outside > 0);
}

#[test]
fn survivors_do_not_depend_on_the_order_of_anchors_without_equal_scores() {
    let mut fast = engines::fast();
    let (scenes, mut left) = (engines::scene_count(500), 0);
    for seed in 0..scenes {
        let scene = Scene::without_ties(seed);
        let (permuted, order) = scene.permuted(seed);
        let run = |engine: &mut dyn Engine, scene: &Scene| {
            let (tensors, layout) = scene.tensors();
            survivors(engine, &tensors, &layout, &scene.params)
        };
        let expected = run(&mut *fast, &scene);
        let mut found = run(&mut *fast, &permuted);
        for detection in &mut found {
            detection.anchor = order[detection.anchor as usize] as u32;
        }
        assert_eq!(expected, found, "seed {seed}");
        left += found.len() as u64;
    }
    assert!(left > scenes, "{left} left");
}

#[test]
fn half_precision_equals_the_same_numbers_in_single_precision() {
    let mut fast = engines::fast();
    let (scenes, mut left) = (engines::scene_count(500), 0);
    for seed in 0..scenes {
        let half = Scene::plain(seed, Method::Greedy).rounded_to_half();
        let (tensors, layout) = half.tensors();
        let single = half.widened();
        let (wide_tensors, wide_layout) = single.tensors();
        let expected = survivors(&mut *fast, &wide_tensors, &wide_layout, &half.params);
        let found = survivors(&mut *fast, &tensors, &layout, &half.params);
        assert_eq!(expected, found, "seed {seed}");
        left += found.len() as u64;
    }
    assert!(left > scenes, "{left} left");
}
