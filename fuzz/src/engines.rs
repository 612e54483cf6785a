//! The engines by themselves: each must give what the reference gives, or fail as it does.

use std::cell::RefCell;

use gstnmsfilter::decoder::{self, BoxFormat, Coordinates, Field, Layout, Options};
use gstnmsfilter::engine::{
    Bounds, ClassThresholds, Cpu, Cuda, Detection, Engine, EngineError, Method, Overlap, Params,
    Reference, SizeLimits,
};
use gstnmsfilter::tensor::{ElementType, Shape, Storage, TensorView};

use crate::Failure;
use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::predict::kind;
use crate::tensors::{self, Spec};

thread_local! {
    /// To make one takes long; `None` where there is no GPU.
    static CUDA: RefCell<Option<Option<Cuda>>> = const { RefCell::new(None) };
}

pub fn drive(bytes: &mut Bytes<'_>, counts: &mut Counts) -> Result<(), Failure> {
    let mut cpu = Cpu::default();
    for _ in 0..1 + bytes.below(6) {
        frame(bytes, &mut cpu, counts)?;
    }
    Ok(())
}

fn frame(bytes: &mut Bytes<'_>, cpu: &mut Cpu, counts: &mut Counts) -> Result<(), Failure> {
    let specs = match bytes.one_in(8) {
        true => tensors::any(bytes),
        false => tensors::model(bytes),
    };
    // Bytes before the first element may misalign it.
    let shift = if bytes.one_in(32) { 1 + bytes.below(4) } else { 0 };
    let stores: Vec<Vec<u8>> =
        specs.iter().map(|spec| [&vec![0; shift], &spec.data[..]].concat()).collect();
    let tensors: Vec<TensorView<'_>> =
        specs.iter().zip(&stores).filter_map(|(spec, store)| view(spec, &store[shift..])).collect();
    let mut params = params(bytes);
    let options = Options {
        box_format: bytes.pick(&[BoxFormat::Corners, BoxFormat::Center, BoxFormat::Square]),
        coordinates: bytes.pick(&[Coordinates::Auto, Coordinates::Pixels, Coordinates::Normalized]),
        num_classes: bytes.pick(&[0, 0, 0, 0, 1, 2, 80, 65_536]),
        labels: bytes.pick(&[0, 0, 0, 0, 1, 2, 20, 80]),
        batch: false,
    };
    counts.one("engines: frames");
    let layout = match decoder::choose(&tensors, None, options) {
        _ if bytes.one_in(16) => any_layout(bytes),
        Ok(choice) if bytes.one_in(8) => altered(bytes, choice.layout),
        Ok(choice) => choice.layout,
        Err(error) => {
            counts.one(format!("engines: refused: {}", kind(&error)));
            return Ok(());
        }
    };
    // The reference compares all candidates with all.
    params.multi_label &= layout.anchors.saturating_mul(layout.classes) < 20_000;
    let expected = run(&mut Reference::default(), &tensors, &layout, &params);
    match &expected {
        Ok(found) => {
            counts.one("engines: decoded");
            counts.add("engines: survivors", found.survivors.len() as u64);
        }
        Err(error) => counts.one(format!("engines: refused by all: {}", kind(error))),
    }
    let context = || format!("{tensors:?}, {layout:?}, {params:?}");
    compare("cpu", &expected, &run(cpu, &tensors, &layout, &params), context)?;
    // An emulated GPU is slow.
    if bytes.one_in(4) {
        CUDA.with_borrow_mut(|cuda| {
            let cuda = cuda.get_or_insert_with(|| Cuda::new(Some(0)).ok());
            let Some(cuda) = cuda else { return Ok(()) };
            counts.one("engines: frames on cuda");
            compare("cuda", &expected, &run(cuda, &tensors, &layout, &params), context)
        })?;
    }
    Ok(())
}

fn view<'a>(spec: &'a Spec, data: &'a [u8]) -> Option<TensorView<'a>> {
    let dims: Vec<usize> = spec.dims.iter().map(|&dim| dim as usize).collect();
    let element = ElementType::from_name(spec.element).unwrap_or(ElementType::Other("other"));
    Some(TensorView::new(&spec.id, element, Shape::new(&dims)?, Storage::Host(data)))
}

/// All that an engine says of a frame.
#[derive(Debug)]
struct Found {
    survivors: Vec<Detection>,
    candidates: usize,
    rejected: usize,
}

type Outcome = Result<Found, EngineError>;

fn run(
    engine: &mut dyn Engine,
    tensors: &[TensorView<'_>],
    layout: &Layout,
    params: &Params,
) -> Outcome {
    let outcome = engine.run(tensors, layout, params)?;
    let image = outcome.image(0);
    Ok(Found {
        survivors: image.survivors.to_vec(),
        candidates: image.candidates,
        rejected: image.rejected,
    })
}

fn compare(
    engine: &str,
    expected: &Outcome,
    found: &Outcome,
    context: impl Fn() -> String,
) -> Result<(), Failure> {
    let same = match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let [a, b] = [expected, found]
                .map(|outcome| bytemuck::cast_slice::<Detection, u8>(&outcome.survivors));
            (expected.candidates, expected.rejected, a) == (found.candidates, found.rejected, b)
        }
        (Err(expected), Err(found)) => expected == found,
        _ => false,
    };
    match same {
        true => Ok(()),
        false => Err(Failure(format!(
            "{engine} differs from reference: expected {expected:?}, found {found:?}; {}",
            context()
        ))),
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
    let sizes = match bytes.one_in(8) {
        true => SizeLimits { min: [bytes.f32(), 5.0], max: [bytes.f32(), 70.0] },
        false => SizeLimits::ANY,
    };
    let visible = match bytes.below(8) {
        0..4 => Bounds::ANY,
        4 => Bounds { left: bytes.f32(), top: 0.0, right: 640.0, bottom: bytes.f32() },
        5 => {
            Bounds { left: bytes.f32(), top: bytes.f32(), right: bytes.f32(), bottom: bytes.f32() }
        }
        _ => {
            // On a corner of some boxes, or between them.
            let span = bytes.pick(&[640.0, 64.0, 1.0, 1920.0]);
            let [left, top, right, bottom] = [0, 0, 16, 16].map(|from: u8| {
                let steps = f32::from(from + bytes.byte() % 17);
                steps * span / 32.0
            });
            Bounds { left, top, right, bottom }
        }
    };
    let scale = match bytes.one_in(4) {
        true => [bytes.f32(), bytes.f32()],
        false => bytes.pick(&[[1.0, 1.0], [640.0, 480.0], [2.0, 1.0 / 3.0]]),
    };
    Params {
        method: bytes.pick(&[Method::Greedy, Method::MapReduce, Method::None, Method::Greedy]),
        overlap: bytes.pick(&[
            Overlap::Iou,
            Overlap::Representative,
            Overlap::Smaller,
            Overlap::Diou,
        ]),
        iou_threshold: bytes.pick(&[0.45, 0.0, 0.25, 1.0 / 3.0, 0.5, 0.7, 1.0, 1.0e-40, f32::NAN]),
        threshold_inclusive: bytes.bool(),
        pixel_offset: bytes.pick(&[0.0, 1.0]),
        class_agnostic: bytes.bool(),
        thresholds,
        sizes,
        visible,
        multi_label: bytes.one_in(4),
        scale,
        max_candidates: bytes.pick(&[0, 0, 1, 7, 50, usize::MAX]),
        max_detections: bytes.pick(&[0, 0, 1, 7, 50, usize::MAX]),
    }
}

/// Numbers that a layout can have, and that few can.
const NUMBERS: [usize; 12] =
    [0, 1, 2, 4, 5, 6, 85, 1000, 1 << 32, 1 << 40, usize::MAX / 2, usize::MAX];

/// A layout of any numbers, as the fields' being public allows.
fn any_layout(bytes: &mut Bytes<'_>) -> Layout {
    let field = |bytes: &mut Bytes<'_>| Field {
        tensor: bytes.pick(&[0, 0, 0, 1, 2, usize::MAX]),
        offset: bytes.pick(&NUMBERS),
        image_stride: 0,
        anchor_stride: bytes.pick(&NUMBERS),
        component_stride: bytes.pick(&NUMBERS),
    };
    Layout {
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
}

/// A decoder's layout with one number changed, so that it may still fit.
fn altered(bytes: &mut Bytes<'_>, mut layout: Layout) -> Layout {
    let field = match bytes.below(3) {
        0 => &mut layout.boxes,
        1 => &mut layout.scores,
        _ => layout.objectness.get_or_insert(layout.scores),
    };
    let number = match bytes.below(6) {
        0 => &mut field.tensor,
        1 => &mut field.offset,
        2 => &mut field.anchor_stride,
        3 => &mut field.component_stride,
        4 => &mut layout.anchors,
        _ => &mut layout.classes,
    };
    *number = match bytes.below(4) {
        0 => number.wrapping_sub(1),
        1 => number.wrapping_add(1),
        2 => *number / 2,
        _ => bytes.pick(&NUMBERS),
    };
    layout
}
