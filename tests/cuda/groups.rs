// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of images with places on the CUDA engine: results equal the reference engine's, on the host and in device
//! memory; uploads of the places.

use std::ops::Range;

use fastrand::Rng;
use gstnmsfilter::cuda::{ForeignStream, Stream};
use nmsfilter_core::decoder::{self, Layout, Options};
use nmsfilter_core::device::Device;
use nmsfilter_core::engine::{
    BoxPixels, ClassRule, ClassThresholds, Cuda, Detection, DeviceCounts, Engine, GroupOutcome,
    ImagePlace, Job, MaskSize, Outcome, Overlap, Params, Reference, RegionEdges, SizeLimits,
};
use nmsfilter_core::geometry::{Bounds, FrameMap};
use nmsfilter_core::tensor::{Shape, Storage, TensorView};

use crate::support::engines::{self, bits, masks};
use crate::support::random_layout::RandomLayout;
use crate::support::scene::{Scene, any_edge_rule, any_params, has_class_limits};

/// The tensors of a run.
enum Tensors {
    /// A scene whose layout has special decode kernels.
    Plain(Box<Scene>),
    Any(Box<RandomLayout>),
}

/// A run of images in groups.
struct GroupScene {
    tensors: Tensors,
    layout: Layout,
    params: Params,
    images: Vec<ImagePlace>,
}

impl GroupScene {
    fn new(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let most = *rng.choice(&[1, 4, 4, 12, 12, 64]).unwrap();
        if rng.u8(0..3) == 0 {
            let batch = Scene::batch(seed, most);
            let joined = Scene::joined(&batch);
            let layout = joined.tensors().1;
            let params = joined.params.clone();
            return Self::with(rng, Tensors::Plain(Box::new(joined)), layout, params);
        }
        let is_oriented = rng.u8(0..3) == 0;
        let images = rng.usize(1..=most);
        let random = RandomLayout::of_images(rng, images, is_oriented);
        let mut layout = random.layout.clone();
        layout.normalized = rng.u8(0..3) == 0;
        let mut params = any_params(rng, images * layout.anchors(), layout.score.components);
        if is_oriented {
            let measures =
                [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::ProbIou];
            params.overlap = *rng.choice(&measures).unwrap();
        }
        params.mask_size = *rng.choice(&[MaskSize::Prototypes, MaskSize::Frame]).unwrap();
        Self::with(rng, Tensors::Any(Box::new(random)), layout, params)
    }

    fn with(rng: &mut Rng, tensors: Tensors, layout: Layout, mut params: Params) -> Self {
        if rng.bool() {
            // Survivors of several images.
            params.thresholds = ClassThresholds::uniform(0.1);
            (params.max_candidates, params.max_detections) = (0, 0);
        }
        if rng.u8(0..3) == 0 {
            let limits = |rng: &mut Rng| SizeLimits {
                min: [rng.f32() * 9.0, 3.0],
                max: [20.0 + rng.f32() * 90.0, 99.0],
            };
            params.sizes = limits(rng);
            let classes = rng.usize(0..layout.classes.min(9) + 2);
            params.class_rules = (0..classes)
                .map(|_| ClassRule {
                    sizes: rng.bool().then(|| limits(rng)),
                    iou_threshold: rng.bool().then(|| rng.f32()),
                    max_detections: *rng.choice(&[0, 0, 0, 5]).unwrap(),
                })
                .collect();
        }
        let images = any_places(rng, &layout, &params);
        any_edge_rule(rng, &mut params);
        Self { tensors, layout, params, images }
    }

    fn views(&self) -> Vec<TensorView<'_>> {
        match &self.tensors {
            Tensors::Plain(scene) => scene.tensors().0,
            Tensors::Any(random) => random.views(),
        }
    }

    fn groups(&self) -> usize {
        self.images.last().unwrap().group as usize + 1
    }
}

/// The places of the images of a layout.
fn any_places(rng: &mut Rng, layout: &Layout, params: &Params) -> Vec<ImagePlace> {
    let are_equal = rng.u8(0..4) == 0;
    // The share of images that begin a group.
    let share = *rng.choice(&[0.0, 0.0, 0.1, 0.3, 1.0]).unwrap();
    let has_frames = rng.u8(0..4) > 0;
    let of_scene = rng.choice(&[BoxPixels::Model, BoxPixels::Frame, BoxPixels::Frame]).copied();
    let mut places: Vec<ImagePlace> = Vec::new();
    let mut group = 0;
    for image in 0..layout.images {
        group += u32::from(image > 0 && rng.f32() < share);
        let mut place = any_place(rng, layout, params, of_scene.unwrap(), has_frames);
        if let Some(first) = places.first().filter(|_| are_equal) {
            place = *first;
        }
        places.push(ImagePlace { group, ..place });
    }
    places
}

fn any_place(
    rng: &mut Rng,
    layout: &Layout,
    params: &Params,
    boxes: BoxPixels,
    has_frame: bool,
) -> ImagePlace {
    let mut any = |numbers: &[f64]| *rng.choice(numbers).unwrap();
    // A tile, far away, and numbers that overflow or vanish in single precision.
    let offsets = [0.0, -0.0, 17.0, -8.5, -40.0, -200.3, 1.0e5, -3.0e7, 1.0e300, -1.0e-60];
    let ratios = [1.0, 1.0, 2.7, 1.3, 0.4, 0.9, 0.3, 1.0e-3, 1.0e-42, 1.0e39];
    let usual = any(&[6.0, 8.0, 8.0, 10.0]) as usize;
    let mut frame = FrameMap {
        size: [0, 1].map(|_| any(&[1.0, 33.0, 64.0, 90.0, 150.0]) as u32),
        ratio: [0, 1].map(|_| any(&ratios[..usual])),
        offset: [0, 1].map(|_| any(&offsets[..usual])),
    };
    if layout.is_oriented() && boxes == BoxPixels::Frame {
        frame.ratio[1] = frame.ratio[0];
    }
    let model_size = match any(&[0.0, 1.0, 2.0, 3.0]) as u8 {
        0 => [1.0; 2],
        1 => [130.0, 130.0],
        2 => [97.0, 250.0],
        _ => [40.0, 33.3],
    };
    // Masks in pixels of frames need a frame for all images or for none.
    let needs_all = layout.prototypes.is_some() && params.mask_size == MaskSize::Frame;
    let has_frame = has_frame && (needs_all || any(&[0.0, 1.0, 1.0, 1.0]) > 0.0);
    let bound = |of: f64| of as f32;
    let visible = match any(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]) as u8 {
        0 => Bounds {
            left: bound(any(&[0.0, -50.0, 20.0])),
            top: bound(any(&[0.0, 3.5])),
            right: bound(any(&[60.0, 130.0, 640.0])),
            bottom: bound(any(&[80.0, 480.0])),
        },
        1 => Bounds { left: 30.0, ..Bounds::ANY },
        _ => Bounds::ANY,
    };
    ImagePlace {
        model_size,
        frame: has_frame.then_some(frame),
        boxes: if has_frame { boxes } else { BoxPixels::Model },
        visible,
        group: 0,
    }
}

/// Bits of rows of columns. NaN has many.
fn words(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn compare(expected: &Outcome<'_>, found: &Outcome<'_>, case: &dyn Fn() -> String) -> usize {
    assert_eq!(expected.groups().len(), found.groups().len(), "{}", case());
    let mut survivors = 0;
    for (index, (expected, found)) in expected.groups().zip(found.groups()).enumerate() {
        assert_eq!(bits(&expected), bits(&found), "group {index}, {}", case());
        assert_eq!(words(expected.columns), words(found.columns), "group {index}, {}", case());
        assert_eq!(masks(&expected), masks(&found), "masks of group {index}, {}", case());
        survivors += found.survivors.len();
    }
    survivors
}

/// Compares random groups with the reference. Returns the numbers of groups, of images, of survivors, of groups with
/// survivors of several images, of runs with masks, and of runs whose boxes at inner edges matter.
fn compare_groups(seeds: Range<u64>) -> [usize; 6] {
    let mut reference = Reference::default();
    let mut kept = Cuda::new(Some(0)).unwrap();
    let (mut groups, mut images, mut survivors, mut in_several, mut with_masks) = (0, 0, 0, 0, 0);
    let mut at_edges = 0;
    for seed in seeds {
        let scene = GroupScene::new(seed);
        let GroupScene { layout, params, images: places, .. } = &scene;
        let whole = scene.views();
        let rng = &mut Rng::with_seed(!seed);
        // Each image is in a separate allocation.
        let storages: Vec<Vec<Storage<'_>>> = match &scene.tensors {
            Tensors::Any(random) => random.tensors.iter().map(|t| t.image_storages()).collect(),
            Tensors::Plain(_) => Vec::new(),
        };
        let mut views = whole.clone();
        if let (Tensors::Any(random), true) = (&scene.tensors, rng.bool()) {
            for (index, (view, images)) in views.iter_mut().zip(&storages).enumerate() {
                if !random.is_shared(index) {
                    let shape =
                        Shape::new(&[places.len(), random.tensors[index].elements]).unwrap();
                    let images = Storage::Images(images);
                    *view = TensorView::new(view.id, view.element, shape, images)
                        .with_quantization(view.quantization);
                }
            }
        }
        let case = || format!("seed {seed}: {layout:#?} {params:?} {places:#?}");
        let expected = reference.run(Job::new(&whole, layout, params, places));
        let expected = expected.unwrap_or_else(|error| panic!("{error}, {}", case()));
        if params.region_edges != RegionEdges::Keep {
            let keep = Params { region_edges: RegionEdges::Keep, ..params.clone() };
            let mut other = Reference::default();
            let kept = other.run(Job::new(&whole, layout, &keep, places)).unwrap();
            let is_equal = expected
                .groups()
                .map(|group| bits(&group))
                .eq(kept.groups().map(|group| bits(&group)));
            at_edges += usize::from(!is_equal);
        }
        // An engine that keeps its graphs and tables, or one that sorts.
        let mut new = None;
        let cuda = match rng.u8(0..4) {
            0 => {
                let cuda = new.insert(Cuda::new(Some(0)).unwrap());
                cuda.sort_above(rng.u32(0..40), rng.u32(1..70));
                cuda
            }
            _ => &mut kept,
        };
        let found = cuda.run(Job::new(&views, layout, params, places));
        let found = found.unwrap_or_else(|error| panic!("{error}, {}", case()));
        let count = compare(&expected, &found, &case);
        let has_several = |group: GroupOutcome<'_>| {
            let mut images = group.survivors.iter().map(|survivor| found.image_of(survivor));
            let first = images.next();
            images.any(|image| Some(image) != first)
        };
        in_several += found.groups().filter(|group| has_several(*group)).count();
        with_masks += usize::from(layout.prototypes.is_some() && count > 0);
        groups += scene.groups();
        images += places.len();
        survivors += count;
    }
    [groups, images, survivors, in_several, with_masks, at_edges]
}

#[test]
#[ignore = "needs a GPU"]
fn random_groups_equal_the_reference_engine() {
    engines::require_gpu();
    let scenes = engines::scene_count(4_000);
    let [groups, images, survivors, in_several, with_masks, at_edges] =
        engines::in_parts(scenes, compare_groups);
    println!(
        "{scenes} runs of {images} images in {groups} groups: {survivors} survivors, \
         {in_several} groups with survivors of several images, {with_masks} runs with masks, {at_edges} with \
         boxes at inner edges"
    );
    assert!(images > 5 * scenes as usize && survivors > 5 * groups);
    assert!(in_several > scenes as usize / 5 && with_masks > scenes as usize / 30);
    assert!(at_edges > scenes as usize / 30);
}

/// Returns device memory as work that is enqueued on `stream` after the run reads it.
fn downloaded<T: bytemuck::Pod>(stream: &Stream, address: u64, count: usize) -> Vec<T> {
    let mut found = vec![T::zeroed(); count];
    if count > 0 {
        // SAFETY: the outcome has the memory.
        unsafe { stream.download(address, bytemuck::cast_slice_mut(&mut found)) }.unwrap();
    }
    found
}

#[test]
#[ignore = "needs a GPU"]
fn results_of_random_groups_in_device_memory_equal_the_reference_engine() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    // SAFETY: the stream is kept until the end.
    let foreign = unsafe { ForeignStream::from_raw(stream.as_raw()) };
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut survivors = 0;
    for seed in 0..engines::scene_count(1_500) {
        let scene = GroupScene::new(seed);
        let GroupScene { layout, params, images, .. } = &scene;
        if layout.prototypes.is_some() || has_class_limits(params) {
            continue;
        }
        let views = scene.views();
        let expected = reference.run(Job::new(&views, layout, params, images)).unwrap();
        let outcome = cuda.enqueue(Job::new(&views, layout, params, images), foreign).unwrap();
        let case = || format!("seed {seed}: {layout:#?} {params:?} {images:#?}");
        assert_eq!(outcome.groups, expected.groups().len(), "{}", case());
        let (capacity, width) = (outcome.capacity, outcome.column_components);
        let rows = outcome.groups * capacity;
        let counts: Vec<DeviceCounts> = downloaded(&stream, outcome.counts, outcome.groups);
        let detections: Vec<Detection> = downloaded(&stream, outcome.detections, rows);
        let columns: Vec<f32> = downloaded(&stream, outcome.columns, rows * width);
        for (index, expected) in expected.groups().enumerate() {
            let counts =
                [counts[index].candidates, counts[index].rejected, counts[index].survivors];
            let found = expected.survivors.len();
            let wanted = [expected.candidates, expected.rejected, found];
            assert_eq!(counts.map(|count| count as usize), wanted, "group {index}, {}", case());
            let (first, end) = (index * capacity, index * capacity + found);
            assert_eq!(expected.survivors, &detections[first..end], "group {index}, {}", case());
            let columns = &columns[first * width..end * width];
            assert_eq!(words(expected.columns), words(columns), "group {index}, {}", case());
            survivors += found;
        }
    }
    assert!(survivors > 1_000 / (1_500 / engines::scene_count(1_500)) as usize);
}

/// Windows x, y, side and score, of which `counts[image]` are candidates, in places of their own.
fn windows(counts: &[usize], anchors: usize) -> Vec<f32> {
    let window = |anchor: usize, count: usize| {
        let [x, y] = [anchor % 64, anchor / 64].map(|step| step as f32 * 10.0);
        [x, y, 8.0, if anchor < count { 0.9 - anchor as f32 * 1e-4 } else { 0.0 }]
    };
    let image = |&count: &usize| (0..anchors).flat_map(move |anchor| window(anchor, count));
    counts.iter().flat_map(image).collect()
}

/// The layout of a batch of windows.
pub fn layout(tensors: &[TensorView<'_>]) -> Layout {
    let options = Options { batch: true, ..Options::default() };
    decoder::choose(tensors, None, options).unwrap().layout
}

/// A tile of a frame whose left edge is at `left`, with boxes in pixels of the frame.
fn tile(left: f64, group: u32) -> ImagePlace {
    let frame = FrameMap { size: [9_999, 999], ratio: [1.0; 2], offset: [-left, 0.0] };
    let boxes = BoxPixels::Frame;
    ImagePlace { frame: Some(frame), boxes, group, ..ImagePlace::in_model([640.0; 2]) }
}

#[test]
#[ignore = "needs a GPU"]
fn a_group_of_more_candidates_than_memory_is_launched_twice_and_the_next_once() {
    engines::require_gpu();
    const ANCHORS: usize = 1_500;
    // A group begins with memory for 2048 candidates.
    let counts = [1_000, 5, 1_400, 0, 900, 3];
    let groups = [0, 0, 0, 1, 2, 2];
    let windows = windows(&counts, ANCHORS);
    let tensors = [TensorView::from_slice("windows", &[counts.len(), ANCHORS, 4], &windows)];
    let layout = layout(&tensors);
    let places: Vec<ImagePlace> =
        (0..).zip(groups).map(|(image, group)| tile(f64::from(image) * 1_000.0, group)).collect();
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for launches in [2, 1] {
        let outcome = cuda.run(Job::new(&tensors, &layout, &Params::default(), &places)).unwrap();
        let found: Vec<usize> = outcome.groups().map(|group| group.survivors.len()).collect();
        assert_eq!(found, [2_405, 0, 903]);
        assert_eq!(outcome.device.launches, launches);
        let mut of_images = [0; 6];
        for (group, first) in outcome.groups().zip([0, 3, 4]) {
            for survivor in group.survivors {
                let image = first + outcome.image_of(survivor);
                of_images[image] += 1;
                let left = image as f32 * 1_000.0;
                assert!((left..left + 640.0).contains(&survivor.x1), "image {image}: {survivor:?}");
            }
        }
        assert_eq!(of_images, counts);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_table_of_places_is_uploaded_where_places_differ_and_when_they_change() {
    engines::require_gpu();
    const ANCHORS: usize = 2;
    let windows = windows(&[2; 4], ANCHORS);
    let tensors = [TensorView::from_slice("windows", &[4, ANCHORS, 4], &windows)];
    let layout = layout(&tensors);
    let tensor = size_of_val(windows.as_slice()) as u64;
    let table = 4 * 96;
    let mut cuda = Cuda::new(Some(0)).unwrap();
    let alone: Vec<ImagePlace> = (0..4).map(|group| tile(50.0, group)).collect();
    let apart: Vec<ImagePlace> = (0..4).map(|image| tile(f64::from(image) * 640.0, 0)).collect();
    let pairs: Vec<ImagePlace> = (0..4).map(|image| tile(50.0, image / 2)).collect();
    for (places, uploaded, survivors) in [
        // Equal places of images that are groups by themselves.
        (&alone, 0, vec![2; 4]),
        (&apart, table, vec![8]),
        (&apart, 0, vec![8]),
        (&alone, 0, vec![2; 4]),
        (&apart, 0, vec![8]),
        // All images have equal boxes.
        (&pairs, table, vec![2; 2]),
        (&pairs, 0, vec![2; 2]),
        (&apart, table, vec![8]),
    ] {
        let outcome = cuda.run(Job::new(&tensors, &layout, &Params::default(), places)).unwrap();
        let found: Vec<usize> = outcome.groups().map(|group| group.survivors.len()).collect();
        assert_eq!(found, survivors, "{places:?}");
        assert_eq!(outcome.device.bytes_uploaded, tensor + uploaded, "{places:?}");
        assert_eq!(
            outcome.device.bytes_downloaded as usize,
            32 * survivors.len() + 28 * survivors.iter().sum::<usize>()
        );
    }
}

/// A region that is alone on its frame needs the table only if boxes at its edges are dropped or lowered.
#[test]
#[ignore = "needs a GPU"]
fn a_table_of_places_has_the_inner_edges_of_a_region_that_is_alone() {
    engines::require_gpu();
    let windows = windows(&[3], 3);
    let tensors = [TensorView::from_slice("windows", &[1, 3, 4], &windows)];
    let layout = layout(&tensors);
    let visible = Bounds { left: 50.0, top: 0.0, right: 690.0, bottom: 640.0 };
    let region = ImagePlace { visible, ..tile(50.0, 0) };
    let tensor = size_of_val(windows.as_slice()) as u64;
    let mut cuda = Cuda::new(Some(0)).unwrap();
    for (region_edges, place, uploaded, survivors) in [
        (RegionEdges::Keep, region, 0, 3),
        // The first window is at the left edge.
        (RegionEdges::Drop, region, 96, 2),
        (RegionEdges::Lower, region, 96, 3),
        (RegionEdges::Drop, tile(50.0, 0), 0, 3),
        (RegionEdges::Keep, region, 0, 3),
    ] {
        let params = Params { region_edges, ..Params::default() };
        let outcome = cuda.run(Job::new(&tensors, &layout, &params, &[place])).unwrap();
        assert_eq!(outcome.group(0).survivors.len(), survivors, "{region_edges:?}");
        assert_eq!(outcome.device.bytes_uploaded, tensor + uploaded, "{region_edges:?}");
    }
}
