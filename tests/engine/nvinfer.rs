// SPDX-License-Identifier: MIT OR Apache-2.0
//! The suppression of DeepStream's nvinfer, compiled from its published source
//! (`benches/peers/nvinfer`). On every candidate list, its survivors equal the engines' survivors.
//! Each rule of nvinfer that differs has a test with a case that shows the difference.

use std::sync::OnceLock;

use nmsfilter_core::decoder::{self, Coordinates, Options};
use nmsfilter_core::engine::{
    ClassRule, ClassThresholds, Detection, Engine, ImagePlace, Job, Method, Params, Reference,
};
use nmsfilter_core::tensor::TensorView;

use crate::support::library::{self, LoadedLibrary};
use crate::support::{data, engines};

/// An object as nvinfer's parsers write it: `NvinferObject` of nvinfer.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Object {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
    score: f32,
    class: u32,
}

/// The structure `NvinferThresholds` of nvinfer.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    iou: f32,
    postcluster: f32,
    topk: i32,
}

impl Thresholds {
    /// Sets only the overlap threshold. Everything else passes.
    fn iou(iou: f32) -> Self {
        Self { iou, postcluster: f32::NEG_INFINITY, topk: -1 }
    }
}

type Suppress = unsafe extern "C" fn(
    *const Object,
    usize,
    *const Thresholds,
    *mut u32,
    usize,
    *mut f64,
) -> isize;
type SuppressClasses =
    unsafe extern "C" fn(*const Object, usize, *const Thresholds, usize, *mut u32) -> isize;
type Overlap = unsafe extern "C" fn(*const Object, *const Object) -> f32;

/// Functions of nvinfer.
#[derive(Clone, Copy)]
struct Nvinfer {
    suppress: Suppress,
    suppress_classes: SuppressClasses,
    overlap: Overlap,
}

impl Nvinfer {
    /// Returns `None` and reports a skip if the source or a C++ compiler is missing.
    fn get() -> Option<Self> {
        static LOADED: OnceLock<Nvinfer> = OnceLock::new();
        let deepstream = data::path("deepstream-9.1").filter(|_| library::has_compiler())?;
        Some(*LOADED.get_or_init(|| {
            let folder = library::build("benches/peers/nvinfer/build.sh", &deepstream, "nvinfer");
            // SAFETY: the only initializers belong to the C++ library's streams. The types of the
            // fields of `Self` match the declarations in nvinfer.h.
            unsafe {
                let library = LoadedLibrary::open(&folder.join("libnvinfer_nms.so"));
                let suppress = library.function(c"nvinfer_suppress");
                let suppress_classes = library.function(c"nvinfer_suppress_classes");
                Self { suppress, suppress_classes, overlap: library.function(c"nvinfer_overlap") }
            }
        }))
    }

    /// Returns the indices of the survivors, class by class, by descending score.
    fn suppress(self, objects: &[Object], thresholds: Thresholds) -> Vec<u32> {
        let mut survivors = vec![0; objects.len()];
        let mut time = 0.0;
        // SAFETY: both arrays are as long as the number of objects, and there is one time.
        let count = unsafe {
            let (input, output) = (objects.as_ptr(), survivors.as_mut_ptr());
            (self.suppress)(input, objects.len(), &thresholds, output, 1, &mut time)
        };
        survivors.truncate(count.try_into().expect("there are not too many objects"));
        survivors
    }

    /// Returns the survivors like [`suppress`](Self::suppress), with the thresholds of each class.
    fn suppress_classes(self, objects: &[Object], thresholds: &[Thresholds]) -> Vec<u32> {
        let mut survivors = vec![0; objects.len()];
        // SAFETY: both arrays are as long as the number of objects.
        let count = unsafe {
            let (input, output) = (objects.as_ptr(), survivors.as_mut_ptr());
            let (of_classes, classes) = (thresholds.as_ptr(), thresholds.len());
            (self.suppress_classes)(input, objects.len(), of_classes, classes, output)
        };
        survivors.truncate(count.try_into().expect("every object has a class with thresholds"));
        survivors
    }

    /// Returns the overlap of two objects, as nvinfer rounds it.
    fn overlap(self, first: &Object, second: &Object) -> f32 {
        // SAFETY: both pointers come from references.
        unsafe { (self.overlap)(first, second) }
    }
}

/// Candidates, in the order of their anchors.
#[derive(Clone, Debug)]
struct List {
    name: String,
    corners: Vec<[f32; 4]>,
    scores: Vec<f32>,
    classes: Vec<u32>,
}

impl List {
    fn from_detections(name: &str, detections: &[Detection]) -> Self {
        let mut detections = detections.to_vec();
        detections.sort_by_key(|d| d.anchor);
        Self {
            name: name.to_owned(),
            corners: detections.iter().map(|d| [d.x1, d.y1, d.x2, d.y2]).collect(),
            scores: detections.iter().map(|d| d.score).collect(),
            classes: detections.iter().map(|d| d.class).collect(),
        }
    }

    /// Keeps the boxes for which `keep` is true.
    fn retain(&mut self, keep: &[bool]) {
        let kept = || keep.iter().enumerate().filter(|&(_, &keep)| keep).map(|(i, _)| i);
        self.corners = kept().map(|i| self.corners[i]).collect();
        self.scores = kept().map(|i| self.scores[i]).collect();
        self.classes = kept().map(|i| self.classes[i]).collect();
    }

    /// Returns the list in the form of nvinfer's parsers: left, upper edge, width and height.
    fn objects(&self) -> Vec<Object> {
        let object = |(&[x1, y1, x2, y2], (&score, &class)): (&[f32; 4], (&f32, &u32))| Object {
            left: x1,
            top: y1,
            width: x2 - x1,
            height: y2 - y1,
            score,
            class,
        };
        self.corners.iter().zip(self.scores.iter().zip(&self.classes)).map(object).collect()
    }

    /// Returns the indices of the survivors of `engine` in nvinfer's order: class by class, by
    /// descending score.
    fn suppress(&self, engine: &mut dyn Engine, params: &Params) -> Vec<u32> {
        let n = self.corners.len();
        let classes = self.classes.iter().max().map_or(1, |&class| class as usize + 1);
        // An anchor has a score for one class. Its other scores are minus infinity.
        let mut scores = vec![f32::NEG_INFINITY; n * classes];
        for (i, (&class, &score)) in self.classes.iter().zip(&self.scores).enumerate() {
            scores[i * classes + class as usize] = score;
        }
        let tensors = [
            TensorView::from_slice("boxes", &[n, 4], self.corners.as_flattened()),
            TensorView::from_slice("scores", &[n, classes], &scores),
        ];
        let layout = decoder::choose(&tensors, None, Options::default()).unwrap().layout;
        let outcome = engine
            .run(Job::new(&tensors, &layout, params, &engines::places(&layout)))
            .unwrap()
            .group(0);
        let mut survivors = outcome.survivors.to_vec();
        survivors.sort_by_key(|survivor| survivor.class);
        survivors.iter().map(|survivor| survivor.anchor).collect()
    }
}

/// Returns nvinfer's rules as parameters of an engine, where the engine has an equivalent.
fn params(iou_threshold: f32) -> Params {
    let thresholds = ClassThresholds::uniform(f32::MIN);
    Params { iou_threshold, thresholds, max_candidates: 0, max_detections: 0, ..Params::default() }
}

/// The recorded candidate lists.
fn recorded_lists() -> Vec<List> {
    let names = [
        "ultraface640_selfie",
        "ultraface640_selfie_low",
        "yolov5nfp16_street",
        "yolov8n640_street",
        "yolov8n640_towncentre_f40",
        "yoloxnano_street",
        "yunet_selfie",
    ];
    names
        .map(|name| {
            let text = data::fixture_text(&format!("candidates/{name}.csv"));
            let rows: Vec<Vec<f32>> = text
                .lines()
                .skip(1)
                .map(|line| line.split(',').map(|field| field.trim().parse().unwrap()).collect())
                .collect();
            List {
                name: name.to_owned(),
                corners: rows.iter().map(|row| *row.first_chunk().unwrap()).collect(),
                scores: rows.iter().map(|row| row[4]).collect(),
                classes: rows.iter().map(|row| row[5] as u32).collect(),
            }
        })
        .into()
}

/// Returns the paper's windows: for each table of the paper, the first windows of the list.
fn windows() -> Vec<List> {
    let windows = data::oscars();
    let windows = windows.as_chunks::<4>().0;
    [200, 360, 698, 1027, 2048, 2895, 2997]
        .map(|n| List {
            name: format!("the first {n} windows"),
            corners: windows[..n]
                .iter()
                .map(|&[x, y, side, _]| [x, y, x + side, y + side])
                .collect(),
            scores: windows[..n].iter().map(|window| window[3]).collect(),
            classes: vec![0; n],
        })
        .into()
}

/// Decodes recorded tensors and returns their candidates.
fn decoded_lists() -> Vec<List> {
    let recorded: [(&str, &[usize]); 2] = [("yolov5", &[1, 6300, 85]), ("yolov8", &[1, 2100, 84])];
    let lists = recorded.map(|(decoder, shape)| {
        let file = format!("data/recorded/{decoder}_decoder_input.raw");
        let bytes =
            std::fs::read(data::path(&file).expect("DeepStream's source is beside it")).unwrap();
        let elements: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        let tensors = [TensorView::from_slice("recorded", shape, &elements)];
        let options = Options { coordinates: Coordinates::Normalized, ..Options::default() };
        let layout = decoder::choose(&tensors, decoder::by_name(decoder), options).unwrap().layout;
        let thresholds = ClassThresholds::uniform(0.01);
        let all = Params { method: Method::None, thresholds, ..params(0.45) };
        let mut reference = Reference::default();
        let outcome = reference
            .run(Job::new(&tensors, &layout, &all, &[ImagePlace::in_model([320.0; 2])]))
            .unwrap()
            .group(0);
        List::from_detections(decoder, outcome.survivors)
    });
    lists.into()
}

/// Returns the survivors of boxes of class 0, by nvinfer and by the engines. All engines must
/// agree.
fn survivors(
    nvinfer: Nvinfer,
    boxes: &[([f32; 4], f32)],
    thresholds: Thresholds,
    params: &Params,
) -> [Vec<u32>; 2] {
    let list = List {
        name: "case".to_owned(),
        corners: boxes.iter().map(|&(corners, _)| corners).collect(),
        scores: boxes.iter().map(|&(_, score)| score).collect(),
        classes: vec![0; boxes.len()],
    };
    let found = list.suppress(&mut Reference::default(), params);
    assert_eq!(list.suppress(&mut *engines::fast(), params), found);
    [nvinfer.suppress(&list.objects(), thresholds), found]
}

#[test]
fn survivors_of_every_list_equal_nvinfers_survivors() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let thresholds: &[f32] =
        if engines::on_gpu() { &[0.45] } else { &[0.2, 0.3, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9] };
    let lists = [recorded_lists(), windows(), decoded_lists()].concat();
    assert_eq!(lists.len(), 7 + 7 + 2);
    for list in lists {
        assert!(list.corners.len() > 100, "{} is complete", list.name);
        let one_class = List { classes: vec![0; list.classes.len()], ..list.clone() };
        for (list, &iou) in
            [list, one_class].iter().flat_map(|list| thresholds.iter().map(move |t| (list, t)))
        {
            let expected = nvinfer.suppress(&list.objects(), Thresholds::iou(iou));
            for engine in [&mut Reference::default() as &mut dyn Engine, &mut *engines::fast()] {
                let found = list.suppress(engine, &params(iou));
                assert_eq!(found, expected, "{} at {iou}: {}", list.name, engine.name());
            }
        }
    }
}

/// nvinfer divides the intersection by the union. The engines multiply the union by the threshold.
/// Each rounds once, by at most half a unit in the last place of its result, so together they
/// differ by at most one unit in the last place of the overlap.
#[test]
fn boxes_conflict_alike_except_at_thresholds_within_two_floats_of_their_overlap() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let mut reference = Reference::default();
    let [mut pairs, mut differ, mut rounded] = [0; 3];
    for mut list in recorded_lists() {
        // Keep only boxes whose right and lower edges are exact in nvinfer.
        let is_exact = |&[x1, y1, x2, y2]: &[f32; 4]| x1 + (x2 - x1) == x2 && y1 + (y2 - y1) == y2;
        let exact: Vec<bool> = list.corners.iter().map(is_exact).collect();
        rounded += exact.iter().filter(|&&exact| !exact).count();
        list.retain(&exact);
        let objects: Vec<_> =
            list.objects().into_iter().map(|object| Object { class: 0, ..object }).collect();
        let pairs_before = pairs;
        for (i, j) in (1..objects.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let [high, low] = if objects[i].score > objects[j].score { [i, j] } else { [j, i] };
            let overlap = nvinfer.overlap(&objects[high], &objects[low]);
            if !(0.2..1.0).contains(&overlap) {
                continue;
            }
            let pair = List {
                name: String::new(),
                corners: vec![list.corners[high], list.corners[low]],
                scores: vec![0.75, 0.5],
                classes: vec![0; 2],
            };
            let mut conflict =
                |threshold: f32| pair.suppress(&mut reference, &params(threshold)).len() == 1;
            let below = overlap.next_down();
            let is_alike =
                conflict(below.next_down().next_down()) && !conflict(overlap.next_up().next_up());
            assert!(is_alike, "{}: {overlap}: {pair:?}", list.name);
            // In nvinfer, boxes conflict at a threshold below their overlap, and do not conflict at
            // a threshold equal to it.
            differ += usize::from(!conflict(below) || conflict(overlap));
            pairs += 1;
            if pairs - pairs_before == 1000 {
                break;
            }
        }
    }
    println!("{differ} of {pairs} pairs differ at their overlap or at the float below");
    assert!(pairs > 5000 && differ > 0, "{differ} of {pairs}");
    assert_eq!(rounded, 4, "two boxes of ultraface640_selfie_low, two of yoloxnano_street");
}

/// A pair of boxes of the list `ultraface640_selfie`.
#[test]
fn a_threshold_next_to_the_overlap_decides_otherwise() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes = [
        ([565.8624, 149.32669, 573.4213, 159.04057], 0.75),
        ([565.5204, 146.04439, 572.9518, 155.5043], 0.5),
    ];
    // The overlap is 0.43825382 after nvinfer's division.
    let threshold = 0.438_253_8;
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(threshold), &params(threshold));
    assert_eq!((theirs, ours), (vec![0], vec![0, 1]));
}

/// nvinfer stores left edge and width. It computes the right edge as left + width, which is
/// rounded.
#[test]
fn a_right_edge_that_width_rounds_can_intersect_a_box_that_touches_it() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let (left, middle) = (-3.8f32, 61.0f32);
    assert!(left + (middle - left) > middle);
    let boxes = [([left, 0.0, middle, 10.0], 0.75), ([middle, 0.0, 200.0, 10.0], 0.5)];
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.0), &params(0.0));
    assert_eq!((theirs, ours), (vec![0], vec![0, 1]));
}

#[test]
fn an_overlap_equal_to_the_threshold_is_no_conflict_in_nvinfer() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes = [([0.0, 0.0, 2.0, 1.0], 0.75), ([0.0, 0.0, 1.0, 1.0], 0.5)];
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.5), &params(0.5));
    assert_eq!((theirs, ours), (vec![0, 1], vec![0, 1]));
    let inclusive = Params { threshold_inclusive: true, ..params(0.5) };
    let [_, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.5), &inclusive);
    assert_eq!(ours, [0]);
}

#[test]
fn the_first_of_two_equal_scores_survives() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes = [1.0, 0.0, 0.0, 0.5].map(|x| ([x, 0.0, x + 10.0, 10.0], 0.5));
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.45), &params(0.45));
    assert_eq!((theirs, ours), (vec![0], vec![0]));
}

/// nvinfer has no equivalent of `class-agnostic`.
#[test]
fn boxes_of_different_classes_conflict_only_if_class_agnostic_is_set() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let list = List {
        name: "case".to_owned(),
        corners: vec![[0.0, 0.0, 10.0, 10.0]; 2],
        scores: vec![0.75, 0.5],
        classes: vec![1, 0],
    };
    // nvinfer orders survivors by class before it orders them by score.
    assert_eq!(nvinfer.suppress(&list.objects(), Thresholds::iou(0.45)), [1, 0]);
    let mut engine = engines::fast();
    assert_eq!(list.suppress(&mut *engine, &params(0.45)), [1, 0]);
    let agnostic = Params { class_agnostic: true, ..params(0.45) };
    assert_eq!(list.suppress(&mut *engine, &agnostic), [0]);
}

/// nvinfer applies post-cluster-threshold after suppression. A score that is equal to it is too
/// low.
#[test]
fn a_score_equal_to_the_postcluster_threshold_is_removed() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes =
        [0.75, 0.5, 0.25].map(|score| ([score * 1000.0, 0.0, score * 1000.0 + 10.0, 10.0], score));
    let thresholds = Thresholds { postcluster: 0.5, ..Thresholds::iou(0.45) };
    let ours = Params { thresholds: ClassThresholds::uniform(0.5), ..params(0.45) };
    let [theirs, ours] = survivors(nvinfer, &boxes, thresholds, &ours);
    assert_eq!((theirs, ours), (vec![0], vec![0, 1]));
}

/// nvinfer applies `pre-cluster-threshold` before suppression. A score that is equal to it passes.
#[test]
fn thresholds_and_topk_of_each_class_leave_the_objects_of_nvinfer() {
    const CLASSES: usize = 4;
    let Some(nvinfer) = Nvinfer::get() else { return };
    let mut engine = engines::fast();
    let [mut compared, mut left] = [0; 2];
    for seed in 0..engines::scene_count(400) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut list =
            List { name: format!("seed {seed}"), corners: vec![], scores: vec![], classes: vec![] };
        for _ in 0..rng.usize(0..400) {
            let [x, y] = [(); 2].map(|()| rng.f32() * 200.0);
            let [width, height] = [(); 2].map(|()| 5.0 + rng.f32() * 60.0);
            list.corners.push([x, y, x + width, y + height]);
            // Some scores are equal to each other, and some are equal to a threshold.
            list.scores.push(rng.u32(1..64) as f32 / 64.0);
            list.classes.push(rng.u32(0..CLASSES as u32));
        }
        let before: Vec<f32> = (0..CLASSES).map(|_| rng.u32(0..40) as f32 / 64.0).collect();
        let thresholds: Vec<Thresholds> = (0..CLASSES)
            .map(|_| Thresholds {
                iou: rng.f32(),
                postcluster: rng.u32(0..40) as f32 / 64.0,
                topk: *rng.choice(&[-1, -1, 1, 5, 20]).unwrap(),
            })
            .collect();
        let passes: Vec<bool> = list
            .scores
            .iter()
            .zip(&list.classes)
            .map(|(&score, &class)| score >= before[class as usize])
            .collect();
        let mut given = list.clone();
        given.retain(&passes);
        let anchors: Vec<u32> =
            (0..).zip(&passes).filter(|(_, passes)| **passes).map(|(anchor, _)| anchor).collect();
        let expected: Vec<u32> = nvinfer
            .suppress_classes(&given.objects(), &thresholds)
            .into_iter()
            .map(|index| anchors[index as usize])
            .collect();
        let rule = |thresholds: &Thresholds| ClassRule {
            iou_threshold: Some(thresholds.iou),
            max_detections: thresholds.topk.max(0) as usize,
            ..ClassRule::default()
        };
        let least = |(&before, thresholds): (&f32, &Thresholds)| {
            before.max(thresholds.postcluster.next_up())
        };
        let params = Params {
            thresholds: ClassThresholds {
                default: f32::INFINITY,
                per_class: before.iter().zip(&thresholds).map(least).collect(),
            },
            class_rules: thresholds.iter().map(rule).collect(),
            ..params(0.45)
        };
        for engine in [&mut Reference::default() as &mut dyn Engine, &mut *engine] {
            let found = list.suppress(engine, &params);
            assert_eq!(found, expected, "{}: {}, {thresholds:?}", list.name, engine.name());
        }
        compared += list.corners.len();
        left += expected.len();
    }
    assert!(
        left > engines::scene_count(1_000) as usize && compared > 2 * left,
        "{left} of {compared}"
    );
}

#[test]
fn topk_limits_each_class_and_max_detections_the_image() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let list = List {
        name: "case".to_owned(),
        corners: [0.0, 100.0, 200.0, 300.0].map(|x| [x, 0.0, x + 10.0, 10.0]).into(),
        scores: vec![0.5, 0.75, 0.25, 0.875],
        classes: vec![0, 0, 1, 0],
    };
    let thresholds = Thresholds { topk: 1, ..Thresholds::iou(0.45) };
    assert_eq!(nvinfer.suppress(&list.objects(), thresholds), [3, 2]);
    let rule = ClassRule { max_detections: 1, ..ClassRule::default() };
    let one_per_class = Params { class_rules: vec![rule; 2], ..params(0.45) };
    assert_eq!(list.suppress(&mut *engines::fast(), &one_per_class), [3, 2]);
    let one = Params { max_detections: 1, ..params(0.45) };
    assert_eq!(list.suppress(&mut *engines::fast(), &one), [3]);
}

#[test]
fn a_box_without_area_is_an_object_of_nvinfer() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes = [([5.0, 5.0, 5.0, 9.0], 0.75), ([0.0, 0.0, 10.0, 10.0], 0.5)];
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.45), &params(0.45));
    assert_eq!((theirs, ours), (vec![0, 1], vec![1]));
}

/// A comparison with NaN is false, and nvinfer takes this for an overlap above the threshold.
#[test]
fn a_box_of_nan_suppresses_all_others_in_nvinfer() {
    let Some(nvinfer) = Nvinfer::get() else { return };
    let boxes = [
        ([f32::NAN, 0.0, 10.0, 10.0], 0.75),
        ([0.0, 0.0, 10.0, 10.0], 0.5),
        ([500.0, 500.0, 510.0, 510.0], 0.25),
    ];
    let [theirs, ours] = survivors(nvinfer, &boxes, Thresholds::iou(0.45), &params(0.45));
    assert_eq!((theirs, ours), (vec![0], vec![1, 2]));
}
