// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes random scenes with the results of `engine::Reference`. Two C++ programs use them to check
//! the kernels: `kernels/emulate/check.cpp` and `tests/gpu/bench.cu`.
//!
//! ```sh
//! cargo run --no-default-features --example scenes -- FILE SEED COUNT [ANCHORS]
//! ```
//!
//! In: the first seed, the number of seeds, and for large scenes the maximum number of anchors.
//! Out: a file with two scenes per seed. The first scene is a single image, the second a batch.
//!
//! `kernels/emulate/scenes.h` reads the file. It has no padding. Numbers are little-endian, and u32
//! unless another type is given:
//!
//! | what | type |
//! | --- | --- |
//! | the characters `nmsscene`, and how many scenes follow | 8 bytes, u32 |
//! | **each scene:** the seed | u64 |
//! | how many tensors follow | u32 |
//! | each tensor: 1 if f16 or 0 if f32, the number of bytes, the elements | u32, u64, bytes |
//! | boxes, scores, objectness: index of the tensor (`u32::MAX`: no such field); offset, image stride, anchor stride, component stride in elements | u32, 4 u64 |
//! | how many classes have a threshold of their own, these thresholds, that of the other classes, the lowest of all classes | u32, f32... |
//! | images, anchors per image, classes, box format, method, overlap (as `interface.cuh` numbers them) | u32 |
//! | threshold inclusive, class-agnostic, multi-label (0 or 1), maximum of candidates, of detections (0: no limit) | u32 |
//! | scale, minimum size, maximum size (width and height of each), visible region (left, top, right, bottom), IoU threshold, pixel offset | 12 f32 |
//! | each image: candidates, rejected anchors, survivors, and for each survivor x1, y1, x2, y2, score, class, anchor | 3 u32, then 5 f32 and 2 u32 |

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use fastrand::Rng;
use gstnmsfilter::internals::decoder::{Field, PlainLayout};
use gstnmsfilter::internals::engine::{
    Detection, Engine, ImageOutcome, Params, Reference, SizeLimits,
};
use gstnmsfilter::tensor::{Elements, TensorView};
use half::f16;

use scene::Scene;

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/support/scene.rs"]
mod scene;

/// The function of the test programs that scene.rs needs.
mod engines {
    /// Returns true, because the scenes are for the kernels, which do not support DIoU.
    pub fn on_gpu() -> bool {
        true
    }
}

const MAX_IMAGES: usize = 5;

/// Maximum number of pairs of anchor and class with multi_label. Reference would take seconds for
/// more.
const MAX_PAIRS: usize = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, seed, count, max_anchors) = match arguments.as_slice() {
        [file, seed, count] => (file, seed, count, None),
        [file, seed, count, anchors] => (file, seed, count, Some(anchors.parse()?)),
        _ => return Err("usage: scenes FILE SEED COUNT [ANCHORS]".into()),
    };
    let (seed, count): (u64, u32) = (seed.parse()?, count.parse()?);
    let mut out = Writer(BufWriter::new(File::create(file)?));
    out.0.write_all(b"nmsscene")?;
    out.u32(2 * count)?;
    for seed in seed..seed + u64::from(count) {
        write_scenes(&mut out, seed, max_anchors)?;
    }
    out.0.flush()?;
    Ok(())
}

/// Writes the scenes of one seed.
fn write_scenes(
    out: &mut Writer,
    seed: u64,
    max_anchors: Option<usize>,
) -> Result<(), Box<dyn Error>> {
    let mut rng = Rng::with_seed(seed ^ 0xd0_3b);
    let images = match max_anchors {
        Some(anchors) => vec![Scene::large(seed, rng.usize(anchors / 2..=anchors))],
        None if seed.is_multiple_of(5) => vec![Scene::on_a_grid(seed)],
        None => Scene::batch(seed, MAX_IMAGES),
    };
    write_scene(out, seed, &images[0], 1, &mut rng)?;
    // A batch is either several images that are joined, or one image whose anchors are distributed
    // over several.
    match images.len() {
        1 => write_scene(out, seed, &images[0], rng.usize(2..=MAX_IMAGES), &mut rng),
        _ => write_scene(out, seed, &Scene::joined(&images), 1, &mut rng),
    }
}

/// Writes a scene, after distributing the anchors of each image over `divisor` images.
fn write_scene(
    out: &mut Writer,
    seed: u64,
    scene: &Scene,
    divisor: usize,
    rng: &mut Rng,
) -> Result<(), Box<dyn Error>> {
    let (mut tensors, layout) = scene.tensors();
    let mut layout = layout.plain(&tensors).expect("scenes have plain layouts");
    // The file format has no class rules.
    let mut params = Params { class_rules: Vec::new(), ..scene.params.clone() };
    if divisor > 1 {
        divide(&mut layout, divisor);
    }
    // If boxes have integer sides, some are equal to these limits.
    if rng.u32(0..6) == 0 {
        params.sizes = SizeLimits { min: [10.0, 12.0], max: [40.0, 38.0] };
    }
    let scores = match rng.u32(0..3) {
        0 => Some(OtherScores::new(rng, &mut layout, tensors.len())),
        _ => None,
    };
    tensors.extend(scores.as_ref().map(OtherScores::view));
    params.multi_label &= layout.anchors * layout.classes <= MAX_PAIRS;

    let mut reference = Reference::default();
    let outcome = reference.run(&tensors, &layout.clone().into(), &params)?;
    out.u64(seed)?;
    out.tensors(&tensors)?;
    out.field(Some(&layout.boxes))?;
    out.field(Some(&layout.scores))?;
    out.field(layout.objectness.as_ref())?;
    out.params(&layout, &params)?;
    for image in outcome.images() {
        out.image(&image)?;
    }
    Ok(())
}

/// Turns an image into a batch by distributing its anchors.
fn divide(layout: &mut PlainLayout, images: usize) {
    assert_eq!(layout.images, 1);
    layout.images = images;
    layout.anchors /= images;
    for field in [&mut layout.boxes, &mut layout.scores].into_iter().chain(&mut layout.objectness) {
        field.image_stride = layout.anchors * field.anchor_stride;
    }
}

/// Scores for the boxes of a scene, with any element type and with more classes than `Scene` has.
struct OtherScores {
    f32: Vec<f32>,
    f16: Option<Vec<f16>>,
}

impl OtherScores {
    /// Makes the tensor, which will have the index `tensor`, and changes the fields of `layout`
    /// accordingly.
    fn new(rng: &mut Rng, layout: &mut PlainLayout, tensor: usize) -> Self {
        const NONSENSE: [f32; 6] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, -0.3, 1.0e-6];
        let anchors = layout.anchors;
        layout.classes = *rng.choice(&[1, 3, 7, 8, 9, 40, 80, 91, 200]).unwrap();
        if anchors * layout.classes > 100_000 {
            layout.classes = 9;
        }
        let with_objectness = usize::from(layout.objectness.is_some());
        let numbers = layout.classes + with_objectness;
        let [anchor_stride, component_stride] =
            if rng.bool() { [numbers, 1] } else { [1, anchors] };
        let first = Field {
            tensor,
            offset: 0,
            image_stride: numbers * anchors,
            anchor_stride,
            component_stride,
        };
        layout.scores = Field { offset: with_objectness * component_stride, ..first };
        layout.objectness = layout.objectness.map(|_| first);

        let (is_coarse, share) = (rng.bool(), rng.f32() / numbers as f32);
        let score = |_| {
            if rng.u32(0..500) == 0 {
                return *rng.choice(&NONSENSE).unwrap();
            }
            let score = if rng.f32() < share { rng.f32() } else { 0.2 * rng.f32() };
            if is_coarse { (score * 16.0).floor() / 16.0 } else { score }
        };
        let f32: Vec<f32> = (0..layout.images * anchors * numbers).map(score).collect();
        let f16 = rng.bool().then(|| f32.iter().map(|&score| f16::from_f32(score)).collect());
        Self { f32, f16 }
    }

    fn view(&self) -> TensorView<'_> {
        match &self.f16 {
            Some(f16) => TensorView::from_slice("scores", &[f16.len()], f16),
            None => TensorView::from_slice("scores", &[self.f32.len()], &self.f32),
        }
    }
}

/// Writes the parts of a scene to a file.
struct Writer(BufWriter<File>);

impl Writer {
    fn u32(&mut self, number: u32) -> io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    fn u64(&mut self, number: u64) -> io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    fn f32(&mut self, number: f32) -> io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        self.u32(u32::try_from(count).map_err(io::Error::other)?)
    }

    fn tensors(&mut self, tensors: &[TensorView<'_>]) -> Result<(), Box<dyn Error>> {
        self.count(tensors.len())?;
        for tensor in tensors {
            let (is_f16, bytes): (_, Vec<u8>) = match tensor.elements()? {
                Elements::F32(numbers) => {
                    (false, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
                }
                Elements::F16(numbers) => {
                    (true, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
                }
                _ => return Err(format!("{tensor} is neither f32 nor f16").into()),
            };
            self.u32(is_f16.into())?;
            self.u64(bytes.len() as u64)?;
            self.0.write_all(&bytes)?;
        }
        Ok(())
    }

    fn field(&mut self, field: Option<&Field>) -> io::Result<()> {
        let Some(field) = field else {
            self.u32(u32::MAX)?;
            return [0; 4].into_iter().try_for_each(|number| self.u64(number));
        };
        self.count(field.tensor)?;
        [field.offset, field.image_stride, field.anchor_stride, field.component_stride]
            .into_iter()
            .try_for_each(|number| self.u64(number as u64))
    }

    fn params(&mut self, layout: &PlainLayout, params: &Params) -> io::Result<()> {
        let thresholds = &params.thresholds;
        self.count(thresholds.per_class.len())?;
        for &threshold in &thresholds.per_class {
            self.f32(threshold)?;
        }
        self.f32(thresholds.default)?;
        self.f32(thresholds.lowest(layout.classes))?;
        for count in [layout.images, layout.anchors, layout.classes] {
            self.count(count)?;
        }
        let choices = [layout.box_format as u32, params.method as u32, params.overlap as u32];
        choices.into_iter().try_for_each(|number| self.u32(number))?;
        for flag in [params.threshold_inclusive, params.class_agnostic, params.multi_label] {
            self.u32(flag.into())?;
        }
        self.count(params.max_candidates)?;
        self.count(params.max_detections)?;
        for pair in [params.scale, params.sizes.min, params.sizes.max] {
            pair.into_iter().try_for_each(|number| self.f32(number))?;
        }
        let visible = params.visible;
        [visible.left, visible.top, visible.right, visible.bottom]
            .into_iter()
            .chain([params.iou_threshold, params.pixel_offset])
            .try_for_each(|number| self.f32(number))
    }

    fn image(&mut self, image: &ImageOutcome<'_>) -> io::Result<()> {
        for count in [image.candidates, image.rejected, image.survivors.len()] {
            self.count(count)?;
        }
        for survivor in image.survivors {
            let &Detection { x1, y1, x2, y2, score, class, anchor } = survivor;
            [x1, y1, x2, y2, score].into_iter().try_for_each(|number| self.f32(number))?;
            self.u32(class)?;
            self.u32(anchor)?;
        }
        Ok(())
    }
}
