// SPDX-License-Identifier: MIT OR Apache-2.0
//! Padded arrays, which `decode` returns.
//!
//! In: the outcome of a run, on the host or in device memory. Out: [`Detections`].

use std::sync::Arc;

use nmsfilter_core::geometry::{Corners, Letterbox, Mapping, OrientedBox};
use nmsfilter_core::nms::{DetailedOutcome, Detection, DeviceCounts, Outcome};
use pyo3::exceptions::{PyIndexError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice};

use crate::array::{Array, Elements, Memory, exceeds_memory};
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::input::{Input, Kind};
use crate::options;
use crate::rows::Rows;
use crate::source::convert;

/// The detections of a batch of B images: arrays with room for M detections of each image, the best first, filled up with
/// zeros. The detections of image i are the first counts[i]. len(found) is B, and found[i] has those of image i alone, in
/// pixels of the frame if the decoder has a frame_size: ImageDetections. Results can be pickled.
#[pyclass(frozen, generic, module = "nmsfilter")]
pub struct Detections {
    /// [B, M, 4] float32: x1, y1, x2, y2.
    #[pyo3(get)]
    boxes: Py<PyAny>,
    /// [B, M] float32.
    #[pyo3(get)]
    scores: Py<PyAny>,
    /// [B, M] int32.
    #[pyo3(get)]
    classes: Py<PyAny>,
    /// [B, M] int32: the row of the model's output.
    #[pyo3(get)]
    anchors: Py<PyAny>,
    /// [B] int32.
    #[pyo3(get)]
    counts: Py<PyAny>,
    /// [B, M, K, 3] float32: x, y and visibility; None for models without keypoints, and in device memory.
    #[pyo3(get)]
    keypoints: Option<Py<PyAny>>,
    /// [B, M, 5] float32: center x, center y, width, height, angle; None for upright boxes, and in device memory.
    #[pyo3(get)]
    oriented_boxes: Option<Py<PyAny>>,
    /// [B, M, 4] int32: left, top, width and height of the pixels that mask() returns, in pixels of the prototypes or, with
    /// mask_size="frame", of the frame; None for models without masks.
    #[pyo3(get)]
    mask_areas: Option<Py<PyAny>>,
    /// [B, M, C] float32: the numbers of keypoints, masks and angles as the model gives them; None for models without.
    #[pyo3(get)]
    columns: Option<Py<PyAny>>,
    /// Bytes of tensors that were copied to the GPU; None if the call did not wait for the run, in which only tables of
    /// thresholds are copied, when they change.
    #[pyo3(get)]
    bytes_uploaded: Option<u64>,
    /// "cpu" or "cuda".
    #[pyo3(get)]
    engine: &'static str,
    masks: Vec<Vec<Option<Bits>>>,
    images: Images,
}

/// Data of single images beside the padded arrays.
#[derive(Clone, Default)]
pub struct Images {
    /// From the pixels of boxes to the frame's.
    pub mapping: Option<Mapping>,
    /// The mapping's letterbox.
    pub letterbox: Letterbox,
    /// The names of classes.
    pub labels: Option<Arc<[String]>>,
}

/// The bits of a mask in rows of whole bytes.
#[derive(FromPyObject, IntoPyObjectRef)]
#[pyo3(from_item_all)]
struct Bits {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

#[pymethods]
impl Detections {
    /// The mask of a detection: [height, width] uint8, 1 where the object is, for the pixels in mask_areas. None for models
    /// without masks, and for boxes that contain no pixel.
    fn mask<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = options::image)] image: usize,
        #[pyo3(from_py_with = options::detection)] detection: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.mask_areas.is_none() {
            return Ok(None);
        }
        let bits = self.masks.get(image).and_then(|masks| masks.get(detection)).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "there is no detection {detection} of image {image}; counts has the number of each image"
            ))
        })?;
        let Some(Bits { width, height, bytes }) = bits else { return Ok(None) };
        let kind = host_kind(py);
        let pixels = kind.host(py, Dtype::U8, &[*height, *width], |pixels: &mut [u8]| {
            let rows = bytes.chunks_exact(width.div_ceil(8));
            for (to, row) in pixels.chunks_exact_mut(*width).zip(rows) {
                for (column, pixel) in to.iter_mut().enumerate() {
                    *pixel = row[column / 8] >> (7 - column % 8) & 1;
                }
            }
        })?;
        Ok(Some(pixels))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.counts.bind(py).len()
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("nmsfilter._detections")?.call_method1("images", (slf,))
    }

    /// The detections of an image. Waits for the GPU.
    fn __getitem__<'py>(&self, py: Python<'py>, image: isize) -> PyResult<Bound<'py, PyAny>> {
        let counts = integers(self.counts.bind(py))?;
        let index = if image < 0 { image + counts.len() as isize } else { image };
        let (index, count) = usize::try_from(index)
            .ok()
            .and_then(|index| Some((index, *counts.get(index)? as usize)))
            .ok_or_else(|| {
                PyIndexError::new_err(format!("there is no image {image} of {}", counts.len()))
            })?;
        let fields = PyDict::new(py);
        for (name, array) in self.arrays() {
            let rows = array.map(|array| rows(array.bind(py), index, count)).transpose()?;
            let rows = match (rows, &self.images.mapping) {
                (Some(rows), Some(mapping)) => Some(in_frame(name, rows, mapping)?),
                (rows, _) => rows,
            };
            fields.set_item(name, rows)?;
        }
        if let Some(labels) = &self.images.labels {
            let classes = integers(&rows(self.classes.bind(py), index, count)?)?;
            let label = |&class: &i32| {
                let known = labels.get(class as usize).cloned();
                known.unwrap_or_else(|| format!("class-{class}"))
            };
            fields.set_item("labels", classes.iter().map(label).collect::<Vec<_>>())?;
        }
        if self.mask_areas.is_some() {
            let masks = (0..count).map(|detection| self.mask(py, index, detection));
            fields.set_item("masks", masks.collect::<PyResult<Vec<_>>>()?)?;
        }
        let class = py.import("nmsfilter._detections")?.getattr("ImageDetections")?;
        class.call((), Some(&fields))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let (py, found) = (slf.py(), slf.get());
        let state = PyDict::new(py);
        for (name, array) in found.arrays() {
            state.set_item(name, array)?;
        }
        state.set_item("counts", &found.counts)?;
        state.set_item("bytes_uploaded", found.bytes_uploaded)?;
        state.set_item("engine", found.engine)?;
        state.set_item("masks", &found.masks)?;
        state.set_item("labels", found.images.labels.as_deref())?;
        let mapping = found.images.mapping.as_ref();
        state.set_item("mapping", mapping.map(|it| (it.frame(), it.model_size())))?;
        state.set_item("letterbox", found.images.letterbox.name())?;
        Ok((slf.get_type().getattr("_restored")?, (state,)))
    }

    #[staticmethod]
    fn _restored(state: &Bound<'_, PyDict>) -> PyResult<Self> {
        let item = |name: &str| PyAnyMethods::get_item(state.as_any(), name);
        let array = |name: &str| item(name).map(Bound::unbind);
        let optional = |name: &str| -> PyResult<Option<Py<PyAny>>> { Ok(item(name)?.extract()?) };
        let letterbox = options::letterbox(Some(&item("letterbox")?.extract::<String>()?))?;
        let mapping: Option<([u32; 2], [u32; 2])> = item("mapping")?.extract()?;
        let mapping = mapping.and_then(|(frame, model)| Mapping::new(frame, model, letterbox).ok());
        let labels: Option<Vec<String>> = item("labels")?.extract()?;
        Ok(Self {
            boxes: array("boxes")?,
            scores: array("scores")?,
            classes: array("classes")?,
            anchors: array("anchors")?,
            counts: array("counts")?,
            keypoints: optional("keypoints")?,
            oriented_boxes: optional("oriented_boxes")?,
            mask_areas: optional("mask_areas")?,
            columns: optional("columns")?,
            bytes_uploaded: item("bytes_uploaded")?.extract()?,
            engine: if item("engine")?.extract::<String>()? == "cuda" { "cuda" } else { "cpu" },
            masks: item("masks")?.extract()?,
            images: Images { mapping, letterbox, labels: labels.map(Into::into) },
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.scores.bind(py).getattr("shape")?.str()?.to_string();
        Ok(format!(
            "<nmsfilter.Detections of images and detections {shape}, engine {}>",
            self.engine
        ))
    }
}

/// The first `count` rows of an image in a padded array.
fn rows<'py>(array: &Bound<'py, PyAny>, image: usize, count: usize) -> PyResult<Bound<'py, PyAny>> {
    match array.cast::<Array>() {
        Ok(own) => Ok(Bound::new(array.py(), own.get().rows(image, count))?.into_any()),
        Err(_) => array.get_item((image, PySlice::new(array.py(), 0, count as isize, 1))),
    }
}

/// The elements of an array of int32, in host memory or not.
fn integers(array: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    let input = Input::new(array, "found", None)?;
    if input.is_on_device() {
        return array.call_method0("tolist")?.extract();
    }
    Ok(elements(&input)?)
}

/// The elements of an array in host memory.
fn elements<T: bytemuck::Pod>(input: &Input<'_>) -> Result<Vec<T>> {
    let copy = convert(input, |element: T| element)?;
    Ok(bytemuck::cast_slice(copy.as_slice()).to_vec())
}

/// The rows of the array with this name, in pixels of the frame.
fn in_frame<'py>(
    name: &str,
    rows: Bound<'py, PyAny>,
    mapping: &Mapping,
) -> Result<Bound<'py, PyAny>> {
    let (width, map): (usize, fn(&mut [f32], &Mapping)) = match name {
        "boxes" => (4, |numbers, mapping| {
            let &mut [x1, y1, x2, y2] = numbers else { unreachable!("of 4 numbers") };
            let corners = mapping.frame_box(Corners { x1, y1, x2, y2 });
            let ([x1, y1], [x2, y2]) = match corners {
                Some(Corners { x1, y1, x2, y2 }) => ([x1, y1], [x2, y2]),
                // Another part of the model's input is visible.
                None => (mapping.frame_point([x1, y1]), mapping.frame_point([x2, y2])),
            };
            numbers.copy_from_slice(&[x1, y1, x2, y2]);
        }),
        "keypoints" => (3, |numbers, mapping| {
            let point = mapping.frame_point([numbers[0], numbers[1]]);
            numbers[..2].copy_from_slice(&point);
        }),
        "oriented_boxes" => (5, |numbers, mapping| {
            let &mut [x, y, width, height, angle] = numbers else { unreachable!("of 5 numbers") };
            let of = OrientedBox { center: [x, y], size: [width, height], angle };
            let OrientedBox { center: [x, y], size: [width, height], angle } =
                mapping.frame_oriented_box(&of);
            numbers.copy_from_slice(&[x, y, width, height, angle]);
        }),
        _ => return Ok(rows),
    };
    let input = Input::new(&rows, name, None)?;
    if input.is_on_device() {
        return Err(Error::Input(format!(
            "results in device memory: {name} in pixels of the frame need the host; pass results=\"host\""
        )));
    }
    let mut numbers: Vec<f32> = elements(&input)?;
    numbers.chunks_exact_mut(width).for_each(|row| map(row, mapping));
    let (kind, shape) = (&input.kind, &input.shape[..]);
    kind.host(rows.py(), Dtype::F32, shape, |to: &mut [f32]| to.copy_from_slice(&numbers))
}

/// Arrays in host memory: NumPy's if it has been imported.
pub fn host_kind<'py>(py: Python<'py>) -> Kind<'py> {
    if crate::numpy::is_imported(py) { Kind::Numpy } else { Kind::Own }
}

/// Makes arrays with room for `room` survivors of each image.
struct Padded<'a, 'py> {
    py: Python<'py>,
    kind: &'a Kind<'py>,
    outcome: &'a Outcome<'a>,
    room: usize,
}

/// A survivor, with its image and its index there.
struct Survivor {
    image: usize,
    index: usize,
    found: Detection,
}

impl<'py> Padded<'_, 'py> {
    /// [B, M, shape...], in which `write` writes the numbers of each survivor.
    fn floats(
        &self,
        shape: &[usize],
        write: impl Fn(&mut [f32], Survivor),
    ) -> Result<Bound<'py, PyAny>> {
        self.array(Dtype::F32, shape, write)
    }

    fn integers(
        &self,
        shape: &[usize],
        write: impl Fn(&mut [i32], Survivor),
    ) -> Result<Bound<'py, PyAny>> {
        self.array(Dtype::I32, shape, write)
    }

    fn array<T: bytemuck::Pod>(
        &self,
        dtype: Dtype,
        shape: &[usize],
        write: impl Fn(&mut [T], Survivor),
    ) -> Result<Bound<'py, PyAny>> {
        let width: usize = shape.iter().product();
        let shape = [&[self.outcome.groups().len(), self.room], shape].concat();
        self.kind
            .host(self.py, dtype, &shape, |to| {
                for (image, of_image) in self.outcome.groups().enumerate() {
                    for (index, &found) in of_image.survivors.iter().enumerate() {
                        let place = (image * self.room + index) * width;
                        write(&mut to[place..][..width], Survivor { image, index, found });
                    }
                }
            })
            .map_err(|error| match error {
                Error::Python(error) if error.is_instance_of::<PyMemoryError>(self.py) => {
                    exceeds_memory(&shape, dtype)
                }
                other => other,
            })
            .map_err(|error| match error {
                Error::Memory(text) => Error::Memory(format!("max_detections: {text}")),
                other => other,
            })
    }
}

impl Detections {
    /// The arrays with a row for each detection, by name.
    fn arrays(&self) -> [(&'static str, Option<&Py<PyAny>>); 8] {
        [
            ("boxes", Some(&self.boxes)),
            ("scores", Some(&self.scores)),
            ("classes", Some(&self.classes)),
            ("anchors", Some(&self.anchors)),
            ("keypoints", self.keypoints.as_ref()),
            ("oriented_boxes", self.oriented_boxes.as_ref()),
            ("mask_areas", self.mask_areas.as_ref()),
            ("columns", self.columns.as_ref()),
        ]
    }

    /// Returns the detections of an outcome on the host, with room for `room` of each image (0: as many as there are).
    pub fn on_host<'py>(
        py: Python<'py>,
        kind: &Kind<'py>,
        detailed: &DetailedOutcome<'_>,
        room: usize,
        images: Images,
    ) -> Result<Self> {
        let outcome = &detailed.outcome;
        let count = outcome.groups().len();
        let room = match room {
            0 => outcome.groups().map(|image| image.survivors.len()).max().unwrap_or(0),
            room => room,
        };
        let padded = Padded { py, kind, outcome, room };
        let boxes = padded.floats(&[4], |to, survivor| {
            let Detection { x1, y1, x2, y2, .. } = survivor.found;
            to.copy_from_slice(&[x1, y1, x2, y2]);
        })?;
        let scores = padded.floats(&[], |to, survivor| to[0] = survivor.found.score)?;
        let classes = padded.integers(&[], |to, survivor| to[0] = survivor.found.class as i32)?;
        let anchors = padded.integers(&[], |to, survivor| to[0] = survivor.found.anchor as i32)?;
        let counts = kind.host(py, Dtype::I32, &[count], |to: &mut [i32]| {
            for (to, image) in to.iter_mut().zip(outcome.groups()) {
                *to = image.survivors.len() as i32;
            }
        })?;
        let keypoints = detailed.points().map(|count| {
            padded.floats(&[count, 3], |to, survivor| {
                let points = detailed.points_of(survivor.image, survivor.index);
                for (to, point) in to.chunks_exact_mut(3).zip(points) {
                    to.copy_from_slice(&[point.x, point.y, point.visibility]);
                }
            })
        });
        let oriented_boxes = detailed.is_oriented().then(|| {
            padded.floats(&[5], |to, survivor| {
                let oriented = detailed.oriented_box(survivor.image, survivor.index);
                let oriented = oriented.expect("the boxes of the layout are oriented");
                let ([x, y], [width, height]) = (oriented.center, oriented.size);
                to.copy_from_slice(&[x, y, width, height, oriented.angle]);
            })
        });
        let mask_areas = detailed.has_masks().then(|| {
            padded.integers(&[4], |to, survivor| {
                if let Some(mask) = outcome.group(survivor.image).masks.get(survivor.index) {
                    let area = [mask.left, mask.top, mask.width, mask.height];
                    to.copy_from_slice(&area.map(|number| number as i32));
                }
            })
        });
        let masks = if detailed.has_masks() {
            outcome
                .groups()
                .map(|image| {
                    let of_survivor = |survivor| {
                        let mask = image.masks.get(survivor)?;
                        let (width, height) = (mask.width as usize, mask.height as usize);
                        Some(Bits { width, height, bytes: mask.bytes.to_vec() })
                    };
                    (0..image.survivors.len()).map(of_survivor).collect()
                })
                .collect()
        } else {
            Vec::new()
        };
        let width = outcome.column_components;
        let columns = (width > 0).then(|| {
            padded.floats(&[width], |to, survivor| {
                let columns = outcome.group(survivor.image).columns;
                to.copy_from_slice(&columns[survivor.index * width..][..width]);
            })
        });
        let optional = |array: Option<Result<Bound<'py, PyAny>>>| -> Result<Option<Py<PyAny>>> {
            Ok(array.transpose()?.map(Bound::unbind))
        };
        Ok(Self {
            boxes: boxes.unbind(),
            scores: scores.unbind(),
            classes: classes.unbind(),
            anchors: anchors.unbind(),
            counts: counts.unbind(),
            keypoints: optional(keypoints)?,
            oriented_boxes: optional(oriented_boxes)?,
            mask_areas: optional(mask_areas)?,
            columns: optional(columns)?,
            bytes_uploaded: Some(outcome.device.bytes_uploaded),
            engine: outcome.engine,
            masks,
            images,
        })
    }

    /// Returns an outcome in device memory, in the memory of `rows`, as views of the rows.
    pub fn on_device<'py>(
        py: Python<'py>,
        kind: &Kind<'py>,
        rows: &Rows,
        memory: Memory,
        stream: usize,
        images: Images,
    ) -> Result<Self> {
        const WORD: usize = 4;
        let memory = Arc::new(memory);
        let view = |offset: usize, dtype: Dtype, shape: Vec<i64>, strides: Vec<i64>| Elements {
            memory: Arc::clone(&memory),
            offset: offset * WORD,
            dtype,
            shape,
            strides,
            stream,
        };
        let (count, room, row) = (rows.images as i64, rows.room as i64, rows.row() as i64);
        let numbers = Rows::DETECTION as i64;
        let number = |index: usize, dtype: Dtype| {
            let offset = Rows::DETECTIONS + index;
            kind.array(py, view(offset, dtype, vec![count, room], vec![row, numbers]))
        };
        let (shape, strides) = (vec![count, room, 4], vec![row, numbers, 1]);
        let boxes = view(Rows::DETECTIONS, Dtype::F32, shape, strides);
        let survivors = std::mem::offset_of!(DeviceCounts, survivors) / WORD;
        let counts = view(survivors, Dtype::I32, vec![count], vec![row]);
        let components = rows.components as i64;
        let columns = (components > 0).then(|| {
            let (shape, strides) = (vec![count, room, components], vec![row, components, 1]);
            kind.array(py, view(rows.columns(), Dtype::F32, shape, strides))
        });
        Ok(Self {
            boxes: kind.array(py, boxes)?.unbind(),
            scores: number(4, Dtype::F32)?.unbind(),
            classes: number(5, Dtype::I32)?.unbind(),
            anchors: number(6, Dtype::I32)?.unbind(),
            counts: kind.array(py, counts)?.unbind(),
            keypoints: None,
            oriented_boxes: None,
            mask_areas: None,
            columns: columns.transpose()?.map(Bound::unbind),
            bytes_uploaded: None,
            engine: "cuda",
            masks: Vec::new(),
            images,
        })
    }
}
