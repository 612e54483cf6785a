// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nms`, `batched_nms`, and both for oriented boxes.
//!
//! In: boxes, scores and, optionally, groups. Out: the indices of the boxes that are kept, best first, as int64, in an
//! array of the boxes' library, in the boxes' memory.

use std::cell::RefCell;
use std::sync::Arc;

use nmsfilter_core::cuda::{Device, Stream};
use nmsfilter_core::nms::{Backend, BoxNms, KeptBoxes};
use nmsfilter_core::tensor::TensorView;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Elements, Memory};
use crate::device::{allocate, foreign};
use crate::dtype::Dtype;
use crate::error::{Error, Result, warn_misread};
use crate::input::{Input, Kind, Place};
use crate::options;
use crate::source::{Order, Source};
use crate::stream::from_argument;
use crate::words::in_python;

/// With fewer boxes on the CPU, other threads of Python wait, since detaching takes longer than the work.
const DETACH_FROM: usize = 500;

/// Up to as many boxes, memory for the indices of all is allocated while the GPU works: 8 KB, of which a part is unused. The
/// GPU then writes the indices. With more boxes, memory for the kept ones is allocated when their number is known.
const ALLOCATE_EARLY: usize = 1024;

/// The engines of a thread.
#[derive(Default)]
struct Engines {
    cpu: Option<BoxNms>,
    /// One per GPU, with its number.
    cuda: Vec<(u32, BoxNms)>,
}

thread_local! {
    /// Taken out during a call: if a finalizer of Python then calls this module, it gets another engine.
    static ENGINES: RefCell<Engines> = RefCell::default();
}

/// The arguments of a call.
struct Call<'a, 'py> {
    boxes: &'a Bound<'py, PyAny>,
    scores: &'a Bound<'py, PyAny>,
    groups: Option<&'a Bound<'py, PyAny>>,
    iou_threshold: f64,
    method: Option<&'a str>,
    overlap: Option<&'a str>,
    max_detections: usize,
    stream: Option<&'a Bound<'py, PyAny>>,
    /// 4, or 5 of oriented boxes.
    numbers: usize,
}

/// The names of arguments, for messages.
const BOXES: &str = "boxes";
const SCORES: &str = "scores";
const GROUPS: &str = "idxs";

impl<'py> Call<'_, 'py> {
    fn run(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let method = options::method(self.method)?;
        let overlap = options::overlap(self.overlap)?;
        let given = from_argument(self.stream)?;
        let boxes = Input::contiguous_on_device(self.boxes, BOXES, given)?;
        let scores = Input::contiguous_on_device(self.scores, SCORES, given)?;
        let groups = match self.groups {
            Some(groups) => Some(Input::contiguous_on_device(groups, GROUPS, given)?),
            None => None,
        };
        let count = self.check_shapes(&boxes, &scores, groups.as_ref())?;
        if count > u32::MAX as usize {
            return Err(Error::Input(format!("{BOXES}: expected less than 2^32, got {count}")));
        }
        let device = match boxes.place {
            Place::Host => None,
            Place::Device { .. } if count == 0 => None,
            Place::Device { ordinal: Some(ordinal), .. } => Some(Device::open(ordinal as u32)?),
            Place::Device { ordinal: None, .. } => Some(Device::holding(boxes.address())?),
        };
        let stream = boxes.stream(given)?;
        let order = Order::After(stream);
        let groups = groups.as_ref();
        let sources = Sources {
            boxes: Source::of_floats(&boxes, BOXES, order)?,
            scores: Source::of_floats(&scores, SCORES, order)?,
            groups: groups.map(|groups| Source::of_integers(groups, GROUPS, order)).transpose()?,
        };
        if count == 0 {
            return empty(py, &boxes, stream);
        }

        let mut engine = take(device.as_deref())?;
        (engine.method, engine.overlap) = (method, overlap);
        engine.iou_threshold = self.iou_threshold;
        engine.max_detections = self.max_detections;
        let kept = match &device {
            Some(device) => {
                on_device(py, device, stream, &boxes.kind, &mut engine, &sources, count)
            }
            None => on_host(py, &boxes.kind, &mut engine, &sources, count),
        };
        let notice = engine.notice();
        put_back(device.as_deref(), engine);
        if let Some(notice) = notice {
            warn_misread(py, &in_python(&notice))?;
        }
        kept
    }

    /// The number of boxes.
    fn check_shapes(
        &self,
        boxes: &Input<'_>,
        scores: &Input<'_>,
        groups: Option<&Input<'_>>,
    ) -> Result<usize> {
        let count = match boxes.shape[..] {
            [count, numbers] if numbers == self.numbers => count,
            _ => {
                let [what, other, function] = match self.numbers {
                    5 => ["center x, center y, width, height, angle in radians", "4", "nms"],
                    _ => ["x1, y1, x2, y2", "5", "nms_rotated"],
                };
                let advice = match boxes.shape[..] {
                    [_, numbers] if numbers.to_string() == other => {
                        format!("; {function} takes boxes of {other} numbers")
                    }
                    [1, _, numbers] if numbers == self.numbers => {
                        "; pass the boxes of one image, boxes[0]".to_owned()
                    }
                    _ => String::new(),
                };
                return Err(Error::Input(format!(
                    "boxes: expected shape [N, {}] ({what}), got {:?}{advice}",
                    self.numbers,
                    &boxes.shape[..]
                )));
            }
        };
        for (name, input) in [(SCORES, Some(scores)), (GROUPS, groups)] {
            let Some(input) = input else { continue };
            if input.shape[..] != [count] {
                let advice = match input.shape[..] {
                    [n, 1] if n == count => format!("; {name}[:, 0] has that shape"),
                    [n, _] if n == count && name == SCORES => {
                        "; of the scores of classes, pass the greatest (scores.max), and the classes \
                         as idxs of batched_nms"
                            .to_owned()
                    }
                    _ => String::new(),
                };
                return Err(Error::Input(format!(
                    "{name}: expected shape [{count}], one for each of the {count} boxes, got {:?}{advice}",
                    &input.shape[..]
                )));
            }
            let is_same = match (boxes.place, input.place) {
                (Place::Host, Place::Host) => true,
                (Place::Device { ordinal: a, .. }, Place::Device { ordinal: b, .. }) => a == b,
                _ => false,
            };
            if !is_same {
                return Err(Error::Input(format!(
                    "{name}: expected an array {}, where boxes are, got one {}; move it there",
                    place(boxes.place),
                    place(input.place)
                )));
            }
        }
        Ok(count)
    }
}

struct Sources<'a> {
    boxes: Source<'a>,
    scores: Source<'a>,
    groups: Option<Source<'a>>,
}

impl Sources<'_> {
    /// Passes the tensors to `run`.
    fn with_views<R>(
        &self,
        run: impl FnOnce(&TensorView<'_>, &TensorView<'_>, Option<&TensorView<'_>>) -> R,
    ) -> R {
        let groups = self.groups.as_ref().map(|groups| groups.view(GROUPS));
        run(&self.boxes.view(BOXES), &self.scores.view(SCORES), groups.as_ref())
    }
}

/// The indices of the kept ones of `count` boxes in host memory.
fn on_host<'py>(
    py: Python<'py>,
    kind: &Kind<'py>,
    engine: &mut BoxNms,
    sources: &Sources<'_>,
    count: usize,
) -> Result<Bound<'py, PyAny>> {
    let run = || sources.with_views(move |boxes, scores, groups| engine.run(boxes, scores, groups));
    let kept = if count >= DETACH_FROM { py.detach(run)? } else { run()? };
    kind.host(py, Dtype::I64, &[kept.len()], |indices: &mut [i64]| {
        for (to, &index) in indices.iter_mut().zip(kept) {
            *to = i64::from(index);
        }
    })
}

/// The indices of the kept ones of `count` boxes in device memory, in the order of `stream`.
fn on_device<'py>(
    py: Python<'py>,
    device: &Arc<Device>,
    stream: usize,
    kind: &Kind<'py>,
    engine: &mut BoxNms,
    sources: &Sources<'_>,
    count: usize,
) -> Result<Bound<'py, PyAny>> {
    let (library, mut memory) = (kind.table(), None);
    let kept = py.detach(|| {
        let indices = || {
            if count > ALLOCATE_EARLY {
                return None;
            }
            let allocated =
                Python::attach(|py| allocate(py, library, device, stream, Dtype::I64, count));
            let address = allocated.as_ref().ok().map(|memory| memory.address() as u64);
            memory = Some(allocated);
            address
        };
        sources.with_views(move |boxes, scores, groups| {
            // SAFETY: the memory was allocated for as many indices, and its owner frees it in the order of the stream.
            unsafe { engine.run_in_stream(boxes, scores, groups, foreign(stream), indices) }
        })
    })?;
    let memory = match (memory, kept) {
        (Some(memory), _) => memory?,
        (None, KeptBoxes::OnHost(kept)) => {
            allocate(py, library, device, stream, Dtype::I64, kept.len())?
        }
        (None, KeptBoxes::OnDevice(_)) => unreachable!("the indices are in memory"),
    };
    indices_in(py, memory, device, stream, kind, kept)
}

fn place(place: Place) -> String {
    match place {
        Place::Host => "in host memory".to_owned(),
        Place::Device { ordinal: Some(ordinal), .. } => format!("on GPU {ordinal}"),
        Place::Device { ordinal: None, .. } => "on a GPU".to_owned(),
    }
}

/// An empty array of indices, in the memory of `boxes`.
fn empty<'py>(py: Python<'py>, boxes: &Input<'py>, stream: usize) -> Result<Bound<'py, PyAny>> {
    if let Place::Device { ordinal, .. } = boxes.place {
        let device = Device::open(ordinal.unwrap_or(0) as u32)?;
        let memory = allocate(py, boxes.kind.table(), &device, stream, Dtype::I64, 0)?;
        return indices_in(py, memory, &device, stream, &boxes.kind, KeptBoxes::OnHost(&[]));
    }
    boxes.kind.host(py, Dtype::I64, &[0], |_: &mut [i64]| {})
}

/// The indices in this memory of a GPU, written in the order of `stream` unless they are there already.
fn indices_in<'py>(
    py: Python<'py>,
    memory: Memory,
    device: &Arc<Device>,
    stream: usize,
    kind: &Kind<'py>,
    kept: KeptBoxes<'_>,
) -> Result<Bound<'py, PyAny>> {
    let count = match kept {
        KeptBoxes::OnDevice(count) => count,
        KeptBoxes::OnHost(kept) => kept.len(),
    };
    let elements = Elements {
        memory: Arc::new(memory),
        offset: 0,
        dtype: Dtype::I64,
        shape: vec![count as i64],
        strides: vec![1],
        stream,
    };
    if let KeptBoxes::OnHost(kept @ [_, ..]) = kept {
        let indices: Vec<i64> = kept.iter().map(|&index| i64::from(index)).collect();
        let stream = Stream::of_other_code(device, foreign(stream));
        // SAFETY: the memory was allocated for as many indices, and the vector's memory is pageable.
        unsafe { stream.write(bytemuck::cast_slice(&indices), elements.address() as u64) }?;
    }
    kind.array(py, elements)
}

/// The thread's engine for the CPU, or for this GPU.
fn take(device: Option<&Device>) -> Result<BoxNms> {
    let known = ENGINES.with_borrow_mut(|engines| match device {
        None => engines.cpu.take(),
        Some(device) => {
            let of_device = |(ordinal, _): &(u32, BoxNms)| *ordinal == device.ordinal();
            let position = engines.cuda.iter().position(of_device);
            position.map(|index| engines.cuda.swap_remove(index).1)
        }
    });
    Ok(match (known, device) {
        (Some(engine), _) => engine,
        (None, None) => BoxNms::new(Backend::Cpu, None)?,
        (None, Some(device)) => BoxNms::new(Backend::Cuda, Some(device.ordinal()))?,
    })
}

fn put_back(device: Option<&Device>, engine: BoxNms) {
    ENGINES.with_borrow_mut(|engines| match device {
        None => engines.cpu = Some(engine),
        Some(device) => {
            engines.cuda.retain(|(ordinal, _)| *ordinal != device.ordinal());
            engines.cuda.push((device.ordinal(), engine));
        }
    });
}

/// Defines a function of Python, with the arguments boxes, scores, perhaps idxs, the threshold, and the common ones.
macro_rules! function {
    ($(#[$doc:meta])* $name:ident($($groups:ident)?), $numbers:literal) => {
        $(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (
            boxes, scores, $($groups,)? iou_threshold, *, method=None, overlap=None, max_detections=0, stream=None, **others
        ))]
        #[allow(clippy::too_many_arguments, reason = "those of Python")]
        pub fn $name<'py>(
            py: Python<'py>,
            boxes: &Bound<'py, PyAny>,
            scores: &Bound<'py, PyAny>,
            $($groups: &Bound<'py, PyAny>,)?
            #[pyo3(from_py_with = options::iou_threshold)] iou_threshold: f64,
            method: Option<&str>,
            overlap: Option<&str>,
            #[pyo3(from_py_with = options::max_detections)] max_detections: usize,
            stream: Option<&Bound<'py, PyAny>>,
            others: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            options::refuse(stringify!($name), others)?;
            let groups = None$(.or(Some($groups)))?;
            let numbers = $numbers;
            let call =
                Call { boxes, scores, groups, iou_threshold, method, overlap, max_detections, stream, numbers };
            Ok(call.run(py)?)
        }
    };
}

function! {
    /// The indices of the boxes that non-maximum suppression keeps, best first: `torchvision.ops.nms`.
    ///
    /// boxes: [N, 4] of x1, y1, x2, y2; scores: [N]; both float32 or float16, in host memory also float64 and bfloat16, which
    /// are converted to float32. iou_threshold: 0 to 1. Returns int64 indices in an array of the library of boxes. Boxes
    /// without area are kept (Decoder drops them). Of equal scores, the first comes first. Unlike torchvision's, it raises
    /// InputError if a score is NaN, or a side is infinite or longer than 10^9.
    ///
    /// method: "greedy" (the default), or "map-reduce", by which boxes that are suppressed suppress others, too. overlap:
    /// "iou" (the default), "smaller", "representative" or "diou" (in host memory). max_detections: the greatest number of
    /// indices; 0 for all. stream: the CUDA stream in whose order the GPU works; without it, the current one of the library
    /// of boxes. The call waits for the number of indices.
    nms(), 4
}

function! {
    /// `nms` of boxes in groups, such as classes: `torchvision.ops.batched_nms`. Boxes of different groups do not suppress each
    /// other. idxs: [N], whole numbers, the group of each box; at most 65,536 groups. In device memory, the numbers from 0 to
    /// 65,535 take the least time.
    batched_nms(idxs), 4
}

function! {
    /// `nms` of oriented boxes: [N, 5] of center x, center y, width, height and angle, in radians from the x axis toward the
    /// y axis (clockwise on the screen, where y is down), as in Ultralytics and MMCV. overlap: "iou" (the
    /// default), "smaller", "representative" or "prob-iou". Angles of boxes in host memory that are probably degrees give a MisreadWarning.
    nms_rotated(), 5
}

function! {
    /// `batched_nms` of oriented boxes in the form of `nms_rotated`.
    batched_nms_rotated(idxs), 5
}
