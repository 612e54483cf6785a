// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzes the engines without an element.
//!
//! In: tensors, layouts and parameters, for one image or a batch. Each engine must return the bits
//! that [`Reference`] returns, or an equal error. A batch must return what its images return when
//! they are run one by one.

use std::cell::RefCell;

use nmsfilter_core::decoder::layout::{Background, Group, Reference as BoxReference};
use nmsfilter_core::decoder::{
    self, BoxFormat, Channels, Coordinates, Field, Layout, Options, PlainLayout,
};
use nmsfilter_core::engine::detail::Details;
use nmsfilter_core::engine::{
    BoxPixels, ClassRule, ClassThresholds, Cpu, Cuda, Detection, Engine, EngineError, ImagePlace,
    Job, MAX_IMAGES, Mask, MaskSize, Method, Overlap, Params, Reference, RegionEdges, SizeLimits,
};
use nmsfilter_core::geometry::{Bounds, FrameMap};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::predict::kind;
use crate::random_layout::RandomLayout;
use crate::tensors::{self, Spec};
use crate::{Failure, layout_texts};

/// The content of a case's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    SingleImages,
    Batches,
}

thread_local! {
    /// The CUDA engine, which takes long to create. The inner option is `None` if there is no GPU.
    static CUDA: RefCell<Option<Option<Cuda>>> = const { RefCell::new(None) };
}

/// Calls `f` with the CUDA engine if there is a GPU.
pub fn with_cuda<T>(f: impl FnOnce(&mut Cuda) -> T) -> Option<T> {
    CUDA.with_borrow_mut(|cuda| cuda.get_or_insert_with(|| Cuda::new(Some(0)).ok()).as_mut().map(f))
}

pub fn drive(bytes: &mut Bytes<'_>, frames: Frames, counts: &mut Counts) -> Result<(), Failure> {
    let mut cpu = Cpu::default();
    for _ in 0..1 + bytes.below(6) {
        frame(bytes, frames, &mut cpu, counts)?;
    }
    Ok(())
}

fn frame(
    bytes: &mut Bytes<'_>,
    frames: Frames,
    cpu: &mut Cpu,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let specs = match (frames, bytes.one_in(8)) {
        (Frames::SingleImages, true) => tensors::any(bytes),
        (Frames::SingleImages, false) => tensors::model(bytes),
        (Frames::Batches, is_corrupt) => tensors::batch(bytes, is_corrupt),
    };
    // Bytes before the first element may misalign it.
    let shift = if bytes.one_in(32) { 1 + bytes.below(4) } else { 0 };
    let stores: Vec<Vec<u8>> =
        specs.iter().map(|spec| [&vec![0; shift], &spec.data[..]].concat()).collect();
    let tensors: Vec<TensorView<'_>> =
        specs.iter().zip(&stores).filter_map(|(spec, store)| view(spec, &store[shift..])).collect();
    let (mut params, place) = (params(bytes), place(bytes));
    let options = Options {
        box_format: bytes.pick(&[BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square]),
        coordinates: bytes.pick(&[Coordinates::Auto, Coordinates::Pixels, Coordinates::Normalized]),
        channels: bytes.pick(&[Channels::Auto, Channels::First, Channels::Last]),
        num_classes: bytes.pick(&[0, 0, 0, 0, 1, 2, 80, 65_536]),
        labels: bytes.pick(&[0, 0, 0, 0, 1, 2, 20, 80]),
        batch: frames == Frames::Batches && !bytes.one_in(8),
        background: bytes.pick(&[None, None, Some(Background::First), Some(Background::Last)]),
        ..Options::default()
    };
    counts.one("engines: frames");
    if bytes.one_in(6) {
        return layout_texts::drive(bytes, counts, |bytes, tensors, layout, counts| {
            params.multi_label &= layout.anchors().saturating_mul(layout.score.components) < 20_000;
            check(bytes, tensors, layout, &params, place, cpu, counts)
        });
    }
    if bytes.one_in(3) {
        return random_layout(bytes, params, place, cpu, counts);
    }
    let mut layout = match decoder::choose(&tensors, None, options) {
        _ if bytes.one_in(16) => any_layout(bytes),
        Ok(choice) if bytes.one_in(8) => altered(bytes, frames, choice.layout),
        Ok(mut choice) => {
            Details::prepare(&mut choice.layout, params.masks);
            choice.layout
        }
        Err(error) => {
            counts.one(format!("engines: refused: {}", kind(&error)));
            return Ok(());
        }
    };
    if frames == Frames::Batches && bytes.one_in(3) {
        any_images(bytes, &mut layout);
    }
    // The reference compares each candidate of an image with every other.
    let pairs = [layout.images, layout.anchors(), layout.classes]
        .into_iter()
        .fold(1, usize::saturating_mul);
    params.multi_label &= pairs < 20_000;
    check(bytes, &tensors, &layout, &params, place, cpu, counts)
}

/// Runs a frame with a random layout of any kind. The tensors fit the layout, unless one number was
/// changed.
fn random_layout(
    bytes: &mut Bytes<'_>,
    mut params: Params,
    mut place: ImagePlace,
    cpu: &mut Cpu,
    counts: &mut Counts,
) -> Result<(), Failure> {
    counts.one("engines: random layouts");
    let random = match params.method.column() {
        Some(_) if !bytes.one_in(8) => {
            RandomLayout::with_densities_and_embeddings(&mut bytes.rng())
        }
        _ => RandomLayout::new(&mut bytes.rng()),
    };
    let tensors = random.views();
    let mut layout = random.layout.clone();
    if bytes.one_in(3) {
        layout = altered(bytes, Frames::Batches, layout);
    }
    if bytes.one_in(6) {
        any_images(bytes, &mut layout);
    }
    if layout.prototypes.is_some() {
        any_masks(bytes, &mut params, &mut place);
    }
    // The reference compares each candidate of an image with every other.
    params.multi_label &= layout.anchors().saturating_mul(layout.score.components) < 20_000;
    check(bytes, &tensors, &layout, &params, place, cpu, counts)
}

/// Runs every engine, and also the images of a batch one by one.
fn check(
    bytes: &mut Bytes<'_>,
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
    place: ImagePlace,
    cpu: &mut Cpu,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let places = any_places(bytes, place, layout.images);
    let expected = run(&mut Reference::default(), tensors, layout, params, &places)?;
    let context = || format!("{tensors:?}, {layout:?}, {params:?}, {places:?}");
    match &expected {
        Ok(found) => {
            counts.one("engines: decoded");
            let survivors: usize = found.iter().map(|image| image.survivors.len()).sum();
            let masks = found.iter().flat_map(|image| &image.masks).flatten().count();
            counts.add("engines: masks", masks as u64);
            counts.add("engines: survivors", survivors as u64);
            if found.len() > 1 {
                counts.one("engines: batches decoded");
                counts.add("engines: images of batches", found.len() as u64);
            }
        }
        Err(error) => counts.one(format!("engines: refused by all: {}", kind(error))),
    }
    if places.len() == layout.images && places.iter().zip(0..).all(|(place, i)| place.group == i) {
        check_images(&expected, tensors, layout, params, &places, context)?;
    } else {
        counts.one("engines: groups of images");
    }
    compare("cpu", &expected, &run(cpu, tensors, layout, params, &places)?, context)?;
    // An emulated GPU is slow.
    if bytes.one_in(4) {
        let on_cuda = |cuda: &mut Cuda| {
            counts.one("engines: frames on cuda");
            let found = run(cuda, tensors, layout, params, &places)?;
            match cuda.supports(layout, params) {
                Ok(()) => compare("cuda", &expected, &found, context),
                Err(error) => {
                    counts.one("engines: not supported by cuda");
                    compare("cuda", &Err(error), &found, context)
                }
            }
        };
        with_cuda(on_cuda).unwrap_or(Ok(()))?;
    }
    Ok(())
}

fn view<'a>(spec: &'a Spec, data: &'a [u8]) -> Option<TensorView<'a>> {
    let dims: Vec<usize> = spec.dims.iter().map(|&dim| dim as usize).collect();
    let element = ElementType::from_name(spec.element).unwrap_or(ElementType::Other("other"));
    Some(TensorView::new(&spec.id, element, Shape::new(&dims)?, Storage::Host(data)))
}

/// All that an engine returns for a group.
#[derive(Clone, Debug)]
struct Found {
    survivors: Vec<Detection>,
    columns: Vec<f32>,
    /// Left, top, width, height, and the bits of each mask.
    masks: Vec<Option<([u32; 4], Vec<u8>)>>,
    candidates: usize,
    rejected: usize,
}

impl Found {
    /// Returns true if both are equal to the bit.
    fn is(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|found| {
            let survivors = bytemuck::cast_slice::<Detection, u8>(&found.survivors);
            (survivors, bytemuck::cast_slice::<f32, u8>(&found.columns), &found.masks)
        });
        (self.candidates, self.rejected, a) == (other.candidates, other.rejected, b)
    }
}

/// One [`Found`] per group.
type Outcome = Result<Vec<Found>, EngineError>;

fn run(
    engine: &mut dyn Engine,
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
    places: &[ImagePlace],
) -> Result<Outcome, Failure> {
    let name = engine.name();
    let outcome = match engine.run(Job::new(tensors, layout, params, places)) {
        Ok(outcome) => outcome,
        Err(error) => return Ok(Err(error)),
    };
    let returned = (outcome.engine, outcome.groups().len());
    let groups = places.last().map_or(0, |last| last.group as usize + 1);
    if returned != (name, groups) {
        return Err(Failure(format!(
            "{name} of {groups} groups of images returns an outcome of {returned:?}"
        )));
    }
    let found = outcome.groups().map(|image| Found {
        survivors: image.survivors.to_vec(),
        columns: image.columns.to_vec(),
        masks: (0..image.survivors.len())
            .map(|survivor| {
                let Mask { left, top, width, height, bytes, .. } = image.masks.get(survivor)?;
                Some(([left, top, width, height], bytes.to_vec()))
            })
            .collect(),
        candidates: image.candidates,
        rejected: image.rejected,
    });
    Ok(Ok(found.collect()))
}

/// Compares the outcome of a batch with the outcomes of its images, which are run as batches of
/// one.
fn check_images(
    expected: &Outcome,
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
    places: &[ImagePlace],
    context: impl Fn() -> String,
) -> Result<(), Failure> {
    // This error comes before errors about the number of images.
    if Reference::default().supports(layout, params).is_err() {
        return Ok(());
    }
    let run_image = |image: usize| {
        let layout = image_layout(layout, image)?;
        let place = ImagePlace { group: 0, ..places[image] };
        Some(run(&mut Reference::default(), tensors, &layout, params, &[place]))
    };
    let compare_image = |image, expected: &Outcome| match run_image(image).transpose()? {
        Some(found) => {
            compare(&format!("a run of image {image} alone"), expected, &found, &context)
        }
        // The offset of the image overflows. This is valid if there are no anchors.
        None => Ok(()),
    };
    let is_refused = !(1..=MAX_IMAGES).contains(&layout.images);
    if is_refused && expected.is_ok() {
        return Err(Failure(format!("images: found {expected:?}; {}", context())));
    }
    match expected {
        _ if is_refused || layout.images == 1 => Ok(()),
        Ok(images) => images
            .iter()
            .enumerate()
            .try_for_each(|(index, image)| compare_image(index, &Ok(vec![image.clone()]))),
        // A place without a frame may be invalid only because another place has one.
        &Err(EngineError::Place { image, expected }) => {
            if places[image].frame.is_some() == places[0].frame.is_some() {
                compare_image(image, &Err(EngineError::Place { image: 0, expected }))
            } else {
                Ok(())
            }
        }
        // Other errors do not depend on the number of images. If a field is outside of the memory,
        // the error is about the last image.
        error => compare_image(layout.images - 1, error),
    }
}

/// Returns the layout for one image of a batch, or `None` if an offset overflows.
fn image_layout(layout: &Layout, image: usize) -> Option<Layout> {
    let image_field = |field: Field| {
        let offset = field.image_stride.checked_mul(image)?.checked_add(field.offset)?;
        // The stride has no effect if there is only one image.
        Some(Field { offset, image_stride: 0, ..field })
    };
    let mut alone = Layout { images: 1, ..layout.clone() };
    for group in &mut alone.groups {
        let Group { boxes, scores, objectness, class, columns, reference, .. } = group;
        let fields = [boxes, scores].into_iter().chain(objectness).chain(class).chain(columns);
        let priors = match reference {
            BoxReference::Priors(priors) => Some(priors),
            BoxReference::None | BoxReference::Grid(_) | BoxReference::Table(_) => None,
        };
        for field in fields.chain(priors) {
            *field = image_field(*field)?;
        }
    }
    let prototypes = alone.prototypes.as_mut().map(|prototypes| &mut prototypes.field);
    for field in alone.count.iter_mut().chain(prototypes) {
        *field = image_field(*field)?;
    }
    Some(alone)
}

/// Fails if the outcomes are not equal to the bit. `name` describes `found`.
fn compare(
    name: &str,
    expected: &Outcome,
    found: &Outcome,
    context: impl Fn() -> String,
) -> Result<(), Failure> {
    let is_equal = match (expected, found) {
        (Ok(expected), Ok(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| a.is(b))
        }
        (Err(expected), Err(found)) => expected == found,
        _ => false,
    };
    if is_equal {
        Ok(())
    } else {
        Err(Failure(format!(
            "{name}: expected {expected:?} as of the reference, found {found:?}; {}",
            context()
        )))
    }
}

fn params(bytes: &mut Bytes<'_>) -> Params {
    let mut thresholds =
        ClassThresholds::uniform(bytes.pick(&[0.25, 0.1, 0.0, 0.5, -1.0e30, f32::NAN]));
    if bytes.one_in(4) {
        thresholds.per_class = (0..bytes.below(5))
            .map(|_| bytes.pick(&[f32::INFINITY, 0.05, 0.3, 0.7, -1.0, f32::NAN]))
            .collect();
    }
    let sizes = if bytes.one_in(8) {
        SizeLimits { min: [bytes.f32(), 5.0], max: [bytes.f32(), 70.0] }
    } else {
        SizeLimits::ANY
    };
    let class_rules = if bytes.one_in(4) {
        (0..bytes.below(5))
            .map(|_| ClassRule {
                iou_threshold: bytes
                    .bool()
                    .then(|| bytes.pick(&[0.0, 0.3, 0.6, 1.0, 1.0e-40, f32::NAN])),
                sizes: bytes
                    .one_in(4)
                    .then(|| SizeLimits { min: [bytes.f32(), 4.0], max: [90.0, bytes.f32()] }),
                max_detections: bytes.pick(&[0, 0, 1, 5, usize::MAX]),
            })
            .collect()
    } else {
        Vec::new()
    };
    let overlaps = [Overlap::Iou, Overlap::Representative, Overlap::Smaller, Overlap::Diou];
    let method = if bytes.one_in(3) { bytes.pick(&Method::ALL) } else { Method::Greedy };
    // The reference compares each candidate with every other, and some methods do so several times.
    let most_candidates =
        if method.only_suppresses() { [0, usize::MAX] } else { [MOST_CANDIDATES; 2] };
    Params {
        method,
        overlap: bytes.pick(&overlaps),
        iou_threshold: bytes.pick(&[0.45, 0.0, 0.25, 1.0 / 3.0, 0.5, 0.7, 1.0, 1.0e-40, f32::NAN]),
        threshold_inclusive: bytes.bool(),
        pixel_offset: bytes.pick(&[0.0, 1.0]),
        class_agnostic: bytes.bool(),
        sigma: bytes.pick(&[0.5, 2.0, 1.0e-40, 1.0e30, f32::NAN]),
        lose_released: bytes.bool(),
        region_edges: bytes.pick(&[RegionEdges::Keep, RegionEdges::Drop, RegionEdges::Lower]),
        edge_margin: bytes.pick(&[5.0, 1.0, 64.0, f32::NAN]),
        edge_score: bytes.pick(&[0.6, 0.3, 0.0, -0.0, f32::NAN]),
        embedding_distance: bytes.pick(&[1.0, 0.0, 0.5, 1.0e30, f32::NAN]),
        embedding_iou_threshold: bytes.pick(&[0.9, 0.5, 0.0, 1.0, f32::NAN]),
        thresholds,
        sizes,
        class_rules,
        multi_label: bytes.one_in(4),
        max_candidates: bytes.pick(&[most_candidates[0], 1, 7, 50, most_candidates[1]]),
        max_detections: bytes.pick(&[0, 0, 1, 7, 50, usize::MAX]),
        ..Params::default()
    }
}

/// A place in no frame, with any visible part.
fn place(bytes: &mut Bytes<'_>) -> ImagePlace {
    let visible = match bytes.below(8) {
        0..4 => Bounds::ANY,
        4 => Bounds { left: bytes.f32(), top: 0.0, right: 640.0, bottom: bytes.f32() },
        5 => {
            Bounds { left: bytes.f32(), top: bytes.f32(), right: bytes.f32(), bottom: bytes.f32() }
        }
        _ => {
            // The edge is on a corner of some boxes, or between corners.
            let span = bytes.pick(&[640.0, 64.0, 1.0, 1920.0]);
            let [left, top, right, bottom] = [0, 0, 16, 16].map(|from: u8| {
                let steps = f32::from(from + bytes.byte() % 17);
                steps * span / 32.0
            });
            Bounds { left, top, right, bottom }
        }
    };
    let model_size = if bytes.one_in(4) {
        [bytes.f32(), bytes.f32()]
    } else {
        bytes.pick(&[[1.0, 1.0], [640.0, 480.0], [2.0, 1.0 / 3.0]])
    };
    ImagePlace { visible, ..ImagePlace::in_model(model_size) }
}

/// The places of images: mostly `place` for each, in a group alone; else random groups, some in pixels of a
/// frame, and now and then groups that are invalid.
fn any_places(bytes: &mut Bytes<'_>, place: ImagePlace, images: usize) -> Vec<ImagePlace> {
    // The number of images can be any number.
    let mut places = place.repeated(images.min(4 * MAX_IMAGES));
    if places.len() > 256 || !bytes.one_in(3) {
        return places;
    }
    let mut group = 0;
    for (index, place) in places.iter_mut().enumerate() {
        group += u32::from(index > 0 && bytes.one_in(3));
        place.group = group;
        if bytes.bool() {
            let ratio = bytes.pick(&[[1.0, 1.0], [0.5, 0.5], [2.0, 0.75], [0.0, 1.0]]);
            let offset = [0, 1].map(|_| f64::from(bytes.pick(&[0.0f32, -160.0, 17.5, -1.0e30])));
            place.frame = Some(FrameMap { size: [640, 480], ratio, offset });
            place.boxes = bytes.pick(&[BoxPixels::Frame, BoxPixels::Frame, BoxPixels::Model]);
        }
    }
    if bytes.one_in(32) {
        let index = bytes.below(places.len().max(1));
        places.get_mut(index).into_iter().for_each(|place| place.group = 7);
    }
    if bytes.one_in(64) {
        places.pop();
    }
    places
}

/// A model's input and a frame of any size, and masks of both sizes.
fn any_masks(bytes: &mut Bytes<'_>, params: &mut Params, place: &mut ImagePlace) {
    params.mask_size = bytes.pick(&[MaskSize::Prototypes, MaskSize::Frame]);
    place.model_size = if bytes.one_in(8) {
        [bytes.f32(), bytes.f32()]
    } else {
        bytes.pick(&[[130.0, 130.0], [97.0, 250.0], [40.0, 33.3]])
    };
    let mut any =
        |usual: &[f64]| if bytes.one_in(8) { f64::from(bytes.f32()) } else { bytes.pick(usual) };
    let ratio = [0, 1].map(|_| any(&[1.0, 2.7, 0.4]));
    let offset = [0, 1].map(|_| any(&[0.0, 17.0, -8.5]));
    let size = [0, 1].map(|_| bytes.pick(&[64, 33, 150, 1, 0]));
    place.frame = (!bytes.one_in(8)).then_some(FrameMap { size, ratio, offset });
}

/// Numbers that are usual in layouts, and numbers that are not.
const NUMBERS: [usize; 12] =
    [0, 1, 2, 4, 5, 6, 85, 1000, 1 << 32, 1 << 40, usize::MAX / 2, usize::MAX];

/// Generates a layout for one image. Its numbers can be anything, since its fields are public.
fn any_layout(bytes: &mut Bytes<'_>) -> Layout {
    let field = |bytes: &mut Bytes<'_>| Field {
        tensor: bytes.pick(&[0, 0, 0, 1, 2, usize::MAX]),
        offset: bytes.pick(&NUMBERS),
        image_stride: 0,
        anchor_stride: bytes.pick(&NUMBERS),
        component_stride: bytes.pick(&NUMBERS),
    };
    PlainLayout {
        decoder: "any",
        images: 1,
        anchors: bytes.pick(&[0, 1, 2, 5, 40, 1000, 1 << 32, usize::MAX]),
        classes: bytes.pick(&NUMBERS),
        boxes: field(bytes),
        box_format: bytes.pick(&[BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square]),
        scores: field(bytes),
        objectness: bytes.bool().then(|| field(bytes)),
        normalized: bytes.bool(),
    }
    .into()
}

/// Maximum number of candidates per group for methods that merge or rescore, which bounds the time of
/// a case.
const MOST_CANDIDATES: usize = 2_000;

/// Maximum number of anchors in all images, which bounds the time of a case.
const MOST_ANCHORS: usize = 10_000;

/// Changes the number of images and the image strides. Images then overlap, are identical, or are
/// partly or completely outside of the memory.
fn any_images(bytes: &mut Bytes<'_>, layout: &mut Layout) {
    let numbers =
        [2, layout.images, 1, 3, 4, 7, 33, 1000, MAX_IMAGES, 0, MAX_IMAGES + 1, usize::MAX];
    layout.images = bytes.pick(&numbers);
    if layout.images <= MAX_IMAGES && layout.images.saturating_mul(layout.anchors()) > MOST_ANCHORS
    {
        layout.images = layout.images.min((MOST_ANCHORS / layout.anchors()).max(1));
    }
    let fields =
        layout.groups.iter_mut().flat_map(|Group { boxes, scores, objectness, .. }| {
            [boxes, scores].into_iter().chain(objectness)
        });
    for field in fields {
        field.image_stride = match bytes.below(8) {
            0..3 => field.image_stride,
            3 => field.image_stride / 2,
            4 => field.image_stride.wrapping_sub(1),
            5 => field.anchor_stride,
            6 => field.component_stride,
            _ => bytes.pick(&NUMBERS),
        };
    }
}

/// Changes one number in a decoder's layout, which may or may not still fit.
fn altered(bytes: &mut Bytes<'_>, frames: Frames, mut layout: Layout) -> Layout {
    let last = layout.groups.len() - 1;
    let group = &mut layout.groups[bytes.below(last + 1)];
    let (rule, boxes) = (&mut layout.score, &mut layout.boxes);
    let field = match bytes.below(8) {
        0..3 => &mut group.boxes,
        3..5 => &mut group.scores,
        5 => group.objectness.get_or_insert(group.scores),
        6 => group.class.get_or_insert(group.scores),
        _ => group.columns.first_mut().unwrap_or(&mut group.boxes),
    };
    if let Some(prototypes) = layout.prototypes.as_mut().filter(|_| bytes.one_in(3)) {
        let number = match bytes.below(8) {
            0 => &mut prototypes.width,
            1 => &mut prototypes.height,
            2 => &mut prototypes.column,
            3 => &mut prototypes.field.tensor,
            4 => &mut prototypes.field.offset,
            5 => &mut prototypes.field.anchor_stride,
            6 => &mut prototypes.field.component_stride,
            _ => &mut prototypes.field.image_stride,
        };
        *number = any_number(bytes, *number);
        return layout;
    }
    let numbers = match frames {
        Frames::SingleImages => 8,
        Frames::Batches => 9,
    };
    let number = match bytes.below(numbers) {
        0 => &mut field.tensor,
        1 => &mut field.offset,
        2 => &mut field.anchor_stride,
        3 => &mut field.component_stride,
        4 => &mut group.anchors,
        5 => &mut layout.classes,
        6 => &mut rule.components,
        7 => &mut boxes.bins,
        _ => &mut field.image_stride,
    };
    *number = any_number(bytes, *number);
    layout
}

/// Generates a number that is near `number`, or any number.
fn any_number(bytes: &mut Bytes<'_>, number: usize) -> usize {
    match bytes.below(4) {
        0 => number.wrapping_sub(1),
        1 => number.wrapping_add(1),
        2 => number / 2,
        _ => bytes.pick(&NUMBERS),
    }
}
