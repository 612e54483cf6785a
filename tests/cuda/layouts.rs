// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layouts of every kind on the CUDA engine. tests/engine/layouts.rs compares random layouts with
//! the reference engine. The tests here cover tensors in both kinds of memory, elements of all
//! types and with all bits, many groups, the number of bytes copied, and [`Auto`].

use std::sync::Arc;

use fastrand::Rng;
use nmsfilter_core::decoder::layout::{
    Activation, Background, BoxFormat, BoxRule, Column, Combination, Field, Group, Layout,
    Reference as BoxReference, ScoreRule,
};
use nmsfilter_core::decoder::{self, Options};
use nmsfilter_core::device::{Device, DeviceBuffer, PinnedBuffer, Ready, Stream};
use nmsfilter_core::engine::{
    Auto, ClassThresholds, Cuda, Engine, Job, Mask, Outcome, Params, Reference,
};
use nmsfilter_core::tensor::{DeviceSlice, ElementType, Quantization, Storage, TensorView};

use crate::outcome::OnGpu;
use crate::support::engines::{self, bits, masks};
use crate::support::layout_scene::LayoutScene;
use crate::support::scene::has_class_limits;

/// Copies `bytes` to device memory.
fn on_device(device: &Arc<Device>, bytes: &[u8]) -> DeviceBuffer {
    let len = bytes.len().max(1);
    let mut pinned = PinnedBuffer::new(device, len).unwrap();
    let copy = DeviceBuffer::new(device, len).unwrap();
    pinned.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
    let stream = Stream::new(device).unwrap();
    stream.upload(&pinned, &copy, len).unwrap();
    stream.synchronize().unwrap();
    copy
}

fn storage(memory: &DeviceBuffer, len: usize) -> Storage<'_> {
    // SAFETY: the memory has this number of bytes, and outlives the result.
    Storage::Device(unsafe { DeviceSlice::new(memory.address(), len, Ready::Now) })
}

fn host_bytes<'a>(storage: &Storage<'a>) -> &'a [u8] {
    match storage {
        Storage::Host(bytes) => bytes,
        _ => panic!("expected host memory"),
    }
}

/// Returns the image in device memory if it has a copy there, else the image in host memory.
fn placed<'a>(image: &Storage<'a>, copy: &'a Option<DeviceBuffer>) -> Storage<'a> {
    match copy {
        Some(memory) => storage(memory, host_bytes(image).len()),
        None => *image,
    }
}

/// Counts the bytes of those images that are in host memory.
fn bytes_on_host(images: &[Storage<'_>]) -> u64 {
    let host_len = |image: &Storage<'_>| match image {
        Storage::Host(bytes) => bytes.len() as u64,
        _ => 0,
    };
    images.iter().map(host_len).sum()
}

/// Asserts that the outcomes are equal to the bit.
pub fn assert_equal(expected: &Outcome<'_>, found: &Outcome<'_>, case: &str) {
    assert_eq!(found.column_components, expected.column_components, "{case}");
    assert_eq!(found.groups().len(), expected.groups().len(), "{case}");
    for (index, (expected, found)) in expected.groups().zip(found.groups()).enumerate() {
        assert_eq!(bits(&found), bits(&expected), "{case}, image {index}");
        let bits = |columns: &[f32]| columns.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(found.columns), bits(expected.columns), "{case}, image {index}");
        assert_eq!(masks(&found), masks(&expected), "{case}, image {index}");
    }
}

/// Returns the number of bytes that are copied to the host if there is one launch.
fn bytes_downloaded(outcome: &Outcome<'_>) -> u64 {
    let survivors: usize = outcome.groups().map(|image| image.survivors.len()).sum();
    32 * outcome.device.launches * outcome.groups().len() as u64
        + 28 * survivors as u64
        + column_bytes(outcome)
        + mask_bytes(outcome)
}

fn column_bytes(outcome: &Outcome<'_>) -> u64 {
    outcome.groups().map(|image| 4 * image.columns.len() as u64).sum()
}

/// Returns the size of all masks in bytes, each padded to a word.
fn mask_bytes(outcome: &Outcome<'_>) -> u64 {
    let of_mask = |mask: Mask<'_>| mask.bytes.len().next_multiple_of(4) as u64;
    outcome.groups().flat_map(|image| masks(&image)).flatten().map(of_mask).sum()
}

#[test]
#[ignore = "needs a GPU"]
fn tensors_in_host_and_device_memory_are_read_once_and_rows_of_survivors_are_copied_to_the_host() {
    engines::require_gpu();
    let device = Device::open(0).unwrap();
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let (mut columns, mut on_host, mut mask_bytes_downloaded) = (0, 0, 0);
    let mut on_gpu = OnGpu::default();
    let mut last_priors = None;
    let scenes = engines::scene_count(2_000);
    for seed in 0..scenes {
        let mut rng = Rng::with_seed(seed);
        let scene = LayoutScene::new(seed);
        let (layout, params) = (&scene.layout, &scene.params);
        let views = scene.views();
        let expected = reference.run(Job::new(&views, layout, params, &scene.places())).unwrap();
        // Each image of each tensor, or the tensor, is in host memory or in device memory.
        let separate: Vec<bool> =
            (0..views.len()).map(|index| !scene.is_shared(index) && rng.bool()).collect();
        let images: Vec<Vec<Storage<'_>>> = scene
            .tensors
            .iter()
            .zip(&separate)
            .map(
                |(tensor, &separate)| {
                    if separate { tensor.image_storages() } else { vec![tensor.view().storage] }
                },
            )
            .collect();
        let memories: Vec<Vec<Option<DeviceBuffer>>> = images
            .iter()
            .map(|images| {
                let copy = |image| on_device(&device, host_bytes(image));
                images.iter().map(|image| rng.bool().then(|| copy(image))).collect()
            })
            .collect();
        let mixed: Vec<Vec<Storage<'_>>> = images
            .iter()
            .zip(&memories)
            .map(|(images, memories)| {
                images.iter().zip(memories).map(|(image, copy)| placed(image, copy)).collect()
            })
            .collect();
        let views: Vec<TensorView<'_>> = views
            .iter()
            .zip(mixed.iter().zip(&separate))
            .map(|(view, (mixed, &separate))| {
                let mut view = view.clone();
                view.storage = if separate { Storage::Images(mixed) } else { mixed[0] };
                view
            })
            .collect();
        // Each tensor or image in host memory is uploaded once, no matter how many fields read it.
        let tensors: u64 =
            layout.tensors().into_iter().map(|index| bytes_on_host(&mixed[index])).sum();
        // Class thresholds, class rules and priors are uploaded when they change.
        let mut changed = on_gpu.uploaded(params);
        let is_table = |group: &Group| matches!(group.reference, BoxReference::Table(_));
        if layout.groups.iter().any(is_table) && last_priors != layout.priors {
            last_priors.clone_from(&layout.priors);
            changed += 16 * layout.priors.as_ref().unwrap().len() as u64;
        }
        // Tables of image addresses, with 8 bytes per image, are uploaded for tensors whose images
        // are in both kinds of memory, or in device memory without a constant distance.
        let tables = 8 * (layout.images * separate.iter().filter(|&&is| is).count()) as u64;
        for (turn, greatest) in [tensors + changed + tables, tensors].into_iter().enumerate() {
            let found = cuda.run(Job::new(&views, layout, params, &scene.places())).unwrap();
            let case = format!("seed {seed}, turn {turn}: {layout:#?} {params:?}");
            assert_equal(&expected, &found, &case);
            let work = found.device;
            let least = if turn == 0 { tensors + changed } else { tensors };
            assert!((least..=greatest).contains(&work.bytes_uploaded), "{case}: {work:?}");
            if work.launches == 1 {
                // With class limits, survivors beyond the limit of their class are copied, too.
                if !has_class_limits(params) {
                    assert_eq!(work.bytes_downloaded, bytes_downloaded(&found), "{case}");
                    assert_eq!(work.column_bytes_downloaded, column_bytes(&found), "{case}");
                    assert_eq!(work.mask_bytes_downloaded, mask_bytes(&found), "{case}");
                }
                mask_bytes_downloaded += work.mask_bytes_downloaded;
            }
            columns += found.groups().map(|image| image.columns.len()).sum::<usize>();
            on_host += usize::from(tensors > 0);
        }
    }
    assert!(columns > 5 * scenes as usize && on_host > scenes as usize);
    assert!(mask_bytes_downloaded > 3 * scenes, "{mask_bytes_downloaded} bytes of masks");
}

/// Elements of a random type, some of which have random bits.
struct AnyElements {
    element: ElementType,
    quantization: Option<Quantization>,
    words: Vec<u64>,
}

impl AnyElements {
    fn new(rng: &mut Rng, elements: usize) -> Self {
        let element = *rng.choice(&ElementType::READABLE).unwrap();
        let quantization = rng
            .bool()
            .then(|| Quantization::new(rng.f32() * 0.1 + 1e-3, rng.i32(-200..200)).unwrap());
        let size = element.size().unwrap();
        let mut bytes = Vec::with_capacity(elements * size);
        for _ in 0..elements {
            let number = (rng.f32() * 48.0).floor() * 0.25 - 4.0;
            let random = rng.u64(..);
            let is_random = rng.u8(0..16) == 0;
            let bits = match element {
                _ if is_random => random,
                ElementType::F32 => number.to_bits().into(),
                ElementType::F16 => half::f16::from_f32(number).to_bits().into(),
                ElementType::I8 => (number as i8 as u8).into(),
                ElementType::U8 => (number as u8).into(),
                ElementType::I32 => (number as i32 as u32).into(),
                _ => number as i64 as u64,
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        }
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        Self { element, quantization, words }
    }

    fn view<'a>(&'a self, like: &TensorView<'a>) -> TensorView<'a> {
        let len = like.shape.elements().unwrap() * self.element.size().unwrap();
        let bytes = &bytemuck::cast_slice(&self.words)[..len];
        TensorView::new(like.id, self.element, like.shape.clone(), Storage::Host(bytes))
            .with_quantization(self.quantization)
    }
}

/// Distributes the anchors of a layout over up to eight groups.
fn split(rng: &mut Rng, layout: &Layout) -> Layout {
    let mut groups = Vec::new();
    for group in &layout.groups {
        let parts = 1 + rng.usize(0..8 / layout.groups.len());
        let mut first = 0;
        for part in 0..parts {
            let rest = group.anchors - first;
            let anchors = if part + 1 == parts { rest } else { rng.usize(0..=rest) };
            let from = |field: &Field| Field {
                offset: field.offset + first * field.anchor_stride,
                ..*field
            };
            let reference = match &group.reference {
                BoxReference::Priors(priors) => BoxReference::Priors(from(priors)),
                BoxReference::Table(index) => BoxReference::Table(index + first),
                other => other.clone(),
            };
            groups.push(Group {
                sizes: None,
                anchors,
                boxes: from(&group.boxes),
                angle: None,
                scores: from(&group.scores),
                objectness: group.objectness.as_ref().map(from),
                class: group.class.as_ref().map(from),
                reference,
                columns: group.columns.iter().map(from).collect(),
            });
            first += anchors;
        }
    }
    Layout { groups: groups.into_iter().collect(), ..layout.clone() }
}

#[test]
#[ignore = "needs a GPU"]
fn elements_of_all_types_and_bits_in_up_to_eight_groups_give_the_bits_of_the_reference() {
    engines::require_gpu();
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let (mut survivors, mut numbers, mut nans, mut groups) = (0, 0, 0, 0);
    let scenes = engines::scene_count(4_000);
    for seed in 0..scenes {
        let mut rng = Rng::with_seed(seed ^ 0x1a7);
        let scene = LayoutScene::new(seed);
        let layout = split(&mut rng, &scene.layout);
        let like = scene.views();
        let elements: Vec<AnyElements> = like
            .iter()
            .map(|view| AnyElements::new(&mut rng, view.shape.elements().unwrap()))
            .collect();
        let views: Vec<TensorView<'_>> =
            elements.iter().zip(&like).map(|(elements, like)| elements.view(like)).collect();
        let mut params = scene.params.clone();
        if rng.bool() {
            params.thresholds = ClassThresholds::uniform(f32::NEG_INFINITY);
        }
        let expected = reference.run(Job::new(&views, &layout, &params, &scene.places())).unwrap();
        let found = cuda.run(Job::new(&views, &layout, &params, &scene.places())).unwrap();
        assert_equal(&expected, &found, &format!("seed {seed}: {layout:#?} {params:?}"));
        for image in found.groups() {
            survivors += image.survivors.len();
            numbers += image.columns.len();
            nans += image.columns.iter().filter(|number| number.is_nan()).count();
        }
        groups = groups.max(layout.groups.len());
    }
    println!("{scenes} scenes: {survivors} survivors, {numbers} numbers of columns, {nans} NaN");
    assert_eq!(groups, 8);
    assert!(survivors > scenes as usize && numbers > scenes as usize && nans > 0);
}

/// Softmax depends on all scores, so any of them can decide if a candidate is dropped or rejected.
/// The kernel skips the sum when the background's score alone shows that the candidate is dropped.
#[test]
#[ignore = "needs a GPU"]
fn softmax_of_scores_with_infinities_and_nan_counts_the_rejected_anchors_of_the_reference() {
    engines::require_gpu();
    const ANCHORS: usize = 90;
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut rng = Rng::with_seed(8);
    let (mut rejected, mut survivors) = (0, 0);
    for case in 0..96 {
        let [is_column, has_objectness, multi_label, is_root] =
            [0, 1, 2, 3].map(|bit| case & 1 << bit != 0);
        let components = [1, 3, 12][case / 16 % 3];
        let background = if case < 48 { Background::First } else { Background::Last };
        // Each row: background and classes, or classes and background; objectness, corners.
        let width = components + 6;
        let mut numbers = Vec::new();
        for _ in 0..ANCHORS {
            let first = numbers.len();
            numbers.push(*rng.choice(&[-3.0, 9.0, 9.0, f32::INFINITY, f32::NAN]).unwrap());
            let special = rng.usize(0..2 * components);
            numbers.extend((0..components).map(|class| {
                if class == special {
                    *rng.choice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]).unwrap()
                } else {
                    rng.f32() * 4.0
                }
            }));
            if background == Background::Last {
                numbers[first..].rotate_left(1);
            }
            numbers.push(*rng.choice(&[-1.0, 0.3, 1.0]).unwrap());
            let [x, y] = [rng.f32() * 300.0, rng.f32() * 300.0];
            numbers.extend([x, y, x + 30.0, y + 30.0]);
        }
        if is_column {
            let rows = numbers.clone();
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = rows[at % ANCHORS * width + at / ANCHORS];
            }
        }
        let (anchor_stride, component_stride) = if is_column { (1, ANCHORS) } else { (width, 1) };
        let field = |first: usize| Field {
            tensor: 0,
            offset: first * component_stride,
            image_stride: 0,
            anchor_stride,
            component_stride,
        };
        let layout = Layout {
            decoder: "softmax",
            images: 1,
            classes: components,
            groups: [Group {
                sizes: None,
                anchors: ANCHORS,
                boxes: field(components + 2),
                angle: None,
                scores: field(0),
                objectness: has_objectness.then(|| field(components + 1)),
                class: None,
                reference: BoxReference::None,
                columns: Vec::new(),
            }]
            .into_iter()
            .collect(),
            score: ScoreRule {
                background,
                activation: Activation::Softmax,
                combination: if is_root { Combination::SquareRoot } else { Combination::Product },
                peaks: false,
                ..ScoreRule::of_classes(components)
            },
            boxes: BoxRule::decoded(BoxFormat::Corners),
            count: None,
            columns: Vec::new(),
            pairs: None,
            image: None,
            prototypes: None,
            priors: None,
            normalized: false,
        };
        let tensors = [TensorView::from_slice("rows", &[numbers.len()], &numbers)];
        for threshold in [0.3, 0.0, -0.5] {
            let thresholds = ClassThresholds::uniform(threshold);
            let params = Params { multi_label, thresholds, ..Params::default() };
            let expected = reference
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap();
            let found =
                cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
            assert_equal(&expected, &found, &format!("{layout:#?} {params:?}"));
            rejected += found.group(0).rejected;
            survivors += found.group(0).survivors.len();
        }
    }
    assert!(rejected > 1_000 && survivors > 1_000, "{rejected} {survivors}");
}

/// Each row has a box of 4 numbers, a score, and as many more numbers as `columns` says. All
/// numbers are different.
fn rows(columns: &[usize], anchors: usize, random: &mut Rng) -> (Vec<f32>, Layout) {
    let width = 5 + columns.iter().sum::<usize>();
    let mut numbers = Vec::new();
    for anchor in 0..anchors {
        let [x, y] = [anchor % 64, anchor / 64].map(|step| step as f32 * 10.0);
        numbers.extend([x, y, x + 8.0, y + 8.0, 0.3 + random.f32() * 0.6]);
        numbers.extend((5..width).map(|number| (anchor * width + number) as f32));
    }
    let field = |offset| Field {
        tensor: 0,
        offset,
        image_stride: 0,
        anchor_stride: width,
        component_stride: 1,
    };
    let mut offset = 5;
    let mut column = |&components: &usize| {
        offset += components;
        field(offset - components)
    };
    let layout = Layout {
        decoder: "rows",
        images: 1,
        classes: 1,
        groups: [Group {
            sizes: None,
            anchors,
            boxes: field(0),
            angle: None,
            scores: field(4),
            objectness: None,
            class: None,
            reference: BoxReference::None,
            columns: columns.iter().map(&mut column).collect(),
        }]
        .into_iter()
        .collect(),
        score: ScoreRule::of_classes(1),
        boxes: BoxRule::decoded(BoxFormat::Corners),
        count: None,
        columns: columns.iter().map(|&components| Column::of_numbers("c", components)).collect(),
        pairs: None,
        image: None,
        prototypes: None,
        priors: None,
        normalized: false,
    };
    (numbers, layout)
}

/// There are more survivors than the last kernel writes at once, alternately with and without
/// columns.
#[test]
#[ignore = "needs a GPU"]
fn columns_of_thousands_of_survivors_equal_reference() {
    engines::require_gpu();
    let (mut reference, mut cuda) = (Reference::default(), Cuda::new(Some(0)).unwrap());
    let mut random = Rng::with_seed(3);
    for (columns, anchors) in [
        (&[2, 1, 3, 34][..], 100),
        (&[17], 4_500),
        (&[], 4_500),
        (&[1], 5),
        (&[1_000, 24], 60),
        (&[3], 4_500),
    ] {
        let (numbers, layout) = rows(columns, anchors, &mut random);
        let shape = [anchors, numbers.len() / anchors];
        let tensors = [TensorView::from_slice("rows", &shape, &numbers)];
        for max_detections in [0, 7, 4_200] {
            let params = Params { max_detections, ..Params::default() };
            let expected = reference
                .run(Job::new(&tensors, &layout, &params, &engines::places(&layout)))
                .unwrap();
            let found =
                cuda.run(Job::new(&tensors, &layout, &params, &engines::places(&layout))).unwrap();
            let case = format!("{columns:?}, {anchors} anchors, {max_detections}");
            assert_equal(&expected, &found, &case);
            let work = found.device;
            assert_eq!(work.bytes_uploaded, 4 * numbers.len() as u64, "{case}");
            assert_eq!(work.bytes_downloaded, bytes_downloaded(&found), "{case}");
            let survivors = if max_detections == 0 { anchors } else { anchors.min(max_detections) };
            assert_eq!(found.group(0).survivors.len(), survivors, "{case}");
        }
    }
}

/// The kernels do not have CenterNet's and FOMO's sizes beside the center.
#[test]
#[ignore = "needs a GPU"]
fn auto_runs_on_the_cpu_what_the_gpu_does_not_support() {
    engines::require_gpu();
    let (heat, two) = (vec![0.9f32; 3 * 64], vec![1.0f32; 2 * 64]);
    let centernet = [
        TensorView::from_slice("hm", &[1, 3, 8, 8], &heat),
        TensorView::from_slice("wh", &[1, 2, 8, 8], &two),
        TensorView::from_slice("reg", &[1, 2, 8, 8], &two),
    ];
    let fomo = [TensorView::from_slice("out", &[1, 8, 8, 3], &heat)];
    for (decoder, tensors, side) in [("centernet", &centernet[..], 32.0), ("fomo", &fomo, 64.0)] {
        let options = Options { model_size: Some([side; 2]), ..Options::default() };
        let choice = decoder::choose(tensors, decoder::by_name(decoder), options).unwrap();
        let (layout, params) = (choice.layout, Params::default());
        let places = engines::places(&layout);
        let job = || Job::new(tensors, &layout, &params, &places);
        Cuda::new(None).unwrap().supports(&layout, &params).unwrap_err();
        let (mut reference, mut auto) = (Reference::default(), Auto::new(None));
        auto.supports(&layout, &params).unwrap();
        let expected = reference.run(job()).unwrap();
        // More runs than those that measure both engines.
        for _ in 0..20 {
            let found = auto.run(job()).unwrap();
            assert_equal(&expected, &found, decoder);
            assert_eq!(found.engine, "cpu", "{decoder}");
        }
        assert!(!expected.group(0).survivors.is_empty(), "{decoder}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn auto_runs_every_layout_on_either_processor() {
    engines::require_gpu();
    let (mut reference, mut auto) = (Reference::default(), Auto::new(None));
    let mut engines = [0, 0];
    for seed in 0..60 {
        let scene = LayoutScene::new(seed);
        let views = scene.views();
        auto.supports(&scene.layout, &scene.params).unwrap();
        let expected =
            reference.run(Job::new(&views, &scene.layout, &scene.params, &scene.places())).unwrap();
        let found =
            auto.run(Job::new(&views, &scene.layout, &scene.params, &scene.places())).unwrap();
        assert_equal(&expected, &found, &format!("seed {seed}"));
        engines[usize::from(found.engine == "cuda")] += 1;
    }
    assert!(engines.iter().all(|&frames| frames >= 8), "{engines:?}");
}
