// SPDX-License-Identifier: MIT OR Apache-2.0
//! Padded arrays, which `decode` returns.
//!
//! In: the outcome of a run, on the host or in device memory. Out: [`Detections`].

use std::sync::Arc;

use nmsfilter_core::nms::{DetailedOutcome, Detection, DeviceCounts, Outcome};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::array::{Elements, Memory};
use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::input::Kind;
use crate::options;
use crate::rows::Rows;

/// The detections of a batch of B images: arrays with room for M detections of each image, the best first, filled up with
/// zeros. The detections of image i are the first counts[i].
#[pyclass(frozen, module = "nmsfilter")]
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
}

/// The bits of a mask in rows of whole bytes.
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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.scores.bind(py).getattr("shape")?.str()?.to_string();
        Ok(format!(
            "<nmsfilter.Detections of images and detections {shape}, engine {}>",
            self.engine
        ))
    }
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
                Error::Memory(text) => Error::Memory(format!("max_detections: {text}")),
                other => other,
            })
    }
}

impl Detections {
    /// Returns the detections of an outcome on the host, with room for `room` of each image (0: as many as there are).
    pub fn on_host<'py>(
        py: Python<'py>,
        kind: &Kind<'py>,
        detailed: &DetailedOutcome<'_>,
        room: usize,
    ) -> Result<Self> {
        let outcome = &detailed.outcome;
        let images = outcome.groups().len();
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
        let counts = kind.host(py, Dtype::I32, &[images], |to: &mut [i32]| {
            for (to, image) in to.iter_mut().zip(outcome.groups()) {
                *to = image.survivors.len() as i32;
            }
        })?;
        let keypoints = detailed.points().map(|count| {
            padded.floats(&[count, 3], |to, survivor| {
                let points = detailed.detail(survivor.image, survivor.index).points();
                for (to, point) in to.chunks_exact_mut(3).zip(points.iter()) {
                    to.copy_from_slice(&[point.x, point.y, point.visibility]);
                }
            })
        });
        let oriented_boxes = detailed.is_oriented().then(|| {
            padded.floats(&[5], |to, survivor| {
                let oriented = detailed.detail(survivor.image, survivor.index).oriented_box();
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
        let width = outcome.column_components();
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
            bytes_uploaded: Some(outcome.device().bytes_uploaded),
            engine: outcome.engine(),
            masks,
        })
    }

    /// Returns an outcome in device memory, in the memory of `rows`, as views of the rows.
    pub fn on_device<'py>(
        py: Python<'py>,
        kind: &Kind<'py>,
        rows: &Rows,
        memory: Memory,
        stream: usize,
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
        let (images, room, row) = (rows.images as i64, rows.room as i64, rows.row() as i64);
        let numbers = Rows::DETECTION as i64;
        let number = |index: usize, dtype: Dtype| {
            let offset = Rows::DETECTIONS + index;
            kind.array(py, view(offset, dtype, vec![images, room], vec![row, numbers]))
        };
        let (shape, strides) = (vec![images, room, 4], vec![row, numbers, 1]);
        let boxes = view(Rows::DETECTIONS, Dtype::F32, shape, strides);
        let survivors = std::mem::offset_of!(DeviceCounts, survivors) / WORD;
        let counts = view(survivors, Dtype::I32, vec![images], vec![row]);
        let components = rows.components as i64;
        let columns = (components > 0).then(|| {
            let (shape, strides) = (vec![images, room, components], vec![row, components, 1]);
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
        })
    }
}
