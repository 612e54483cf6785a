// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Decoder`: decodes the outputs of a model and suppresses duplicates.
//!
//! In: arrays with the outputs of a model for a batch of images. Out: [`Detections`].

use std::sync::Mutex;

use gstnmsfilter::cuda::Device;
use gstnmsfilter::nms::{
    Activation, Backend, BoxFormat, Coordinates, KeypointShape, Method, Nms, Overlap,
};
use gstnmsfilter::tensor::{Quantization, TensorView};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyMapping, PySequence};

use crate::detections::{Detections, host_kind};
use crate::device::foreign;
use crate::error::{Error, Result};
use crate::input::{Input, Place, type_name};
use crate::options;
use crate::source::{Order, Source};
use crate::stream::from_argument;

/// Decodes the outputs of a model for a batch of images and suppresses duplicates: decoder(outputs). It keeps what it has
/// found out about the outputs, and its memory. Calls from several threads take turns.
#[pyclass(frozen, module = "nmsfilter")]
pub struct Decoder {
    settings: Settings,
    /// One for the CPU (`None`) and one for each GPU.
    engines: Mutex<Vec<(Option<u32>, Nms)>>,
}

/// The arguments of the constructor.
struct Settings {
    decoder: Option<String>,
    layout: Option<String>,
    thresholds: Thresholds,
    iou_threshold: f32,
    model_size: Option<[f32; 2]>,
    max_detections: usize,
    max_candidates: usize,
    method: Method,
    overlap: Overlap,
    class_agnostic: bool,
    multi_label: bool,
    masks: bool,
    box_format: Option<BoxFormat>,
    coordinates: Coordinates,
    num_classes: usize,
    score_activation: Option<Activation>,
    keypoints: Option<KeypointShape>,
    quantization: Vec<(Option<String>, Quantization)>,
}

/// The thresholds of scores: one for all classes, or one for each.
#[derive(FromPyObject)]
enum Thresholds {
    All(f32),
    Each(Vec<f32>),
}

/// The names that `decoder` can have.
#[pyfunction]
pub fn decoders() -> Vec<&'static str> {
    Nms::decoders().collect()
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (
        decoder=None, *, layout=None, score_threshold=None, iou_threshold=0.45, model_size=None,
        max_detections=1000, max_candidates=0, method=None, overlap=None, class_agnostic=false,
        multi_label=false, masks=true, box_format=None, coordinates=None, num_classes=0,
        score_activation=None, keypoint_shape=None, quantization=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "those of Python")]
    fn new(
        decoder: Option<String>,
        layout: Option<String>,
        score_threshold: Option<Thresholds>,
        iou_threshold: f64,
        model_size: Option<[f32; 2]>,
        max_detections: usize,
        max_candidates: usize,
        method: Option<&str>,
        overlap: Option<&str>,
        class_agnostic: bool,
        multi_label: bool,
        masks: bool,
        box_format: Option<&str>,
        coordinates: Option<&str>,
        num_classes: usize,
        score_activation: Option<&str>,
        keypoint_shape: Option<[usize; 2]>,
        quantization: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if decoder.is_some() && layout.is_some() {
            return Err(Error::Input(
                "layout: the text of a layout is a decoder of its own; pass decoder or layout"
                    .to_owned(),
            )
            .into());
        }
        if let Some([width, height]) = model_size
            && !(width >= 1.0 && height >= 1.0 && width.is_finite() && height.is_finite())
        {
            return Err(Error::Input(format!(
                "model_size: expected width and height of the model's input in pixels, got \
                 ({width}, {height})"
            ))
            .into());
        }
        let keypoints = match keypoint_shape {
            None => None,
            Some([count, components @ 2..=3]) if count > 0 => {
                Some(KeypointShape { count, components })
            }
            Some([count, components]) => {
                return Err(Error::Input(format!(
                    "keypoint_shape: expected the number of keypoints, and 2 (x, y) or 3 (x, y, \
                     visibility), got ({count}, {components})"
                ))
                .into());
            }
        };
        let settings = Settings {
            decoder,
            layout,
            thresholds: score_threshold.unwrap_or(Thresholds::All(0.25)),
            iou_threshold: options::threshold("iou_threshold", iou_threshold)? as f32,
            model_size,
            max_detections,
            max_candidates,
            method: options::method_or_none(method)?,
            overlap: options::overlap(overlap)?,
            class_agnostic,
            multi_label,
            masks,
            box_format: box_format.map(options::box_format).transpose()?,
            coordinates: options::coordinates(coordinates.unwrap_or("auto"))?,
            num_classes,
            score_activation: score_activation.map(options::activation).transpose()?,
            keypoints,
            quantization: quantizations(quantization)?,
        };
        // Wrong names and layouts are errors here, not at the first call.
        let cpu = settings.engine(Backend::Cpu, None)?;
        Ok(Self { settings, engines: Mutex::new(vec![(None, cpu)]) })
    }

    /// Decodes outputs: an array, a list of arrays, or a dictionary from the names of the model's outputs to arrays, whose
    /// first dimension is the number of images. They are all in host memory, or all on one GPU.
    ///
    /// On a GPU, the call does not wait: the results are in device memory, in the order of the current stream (or of
    /// `stream`). results="host" waits, and returns arrays in host memory, with keypoints, oriented boxes and masks.
    #[pyo3(signature = (outputs, *, stream=None, results=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        results: Option<&str>,
    ) -> PyResult<Detections> {
        Ok(self.decode(py, outputs, stream, results)?)
    }
}

impl Decoder {
    fn decode<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        results: Option<&str>,
    ) -> Result<Detections> {
        let is_host_wanted = match results {
            None | Some("device") => false,
            Some("host") => true,
            Some(other) => {
                return Err(Error::Input(format!(
                    "results: expected \"device\" or \"host\", got {other:?}"
                )));
            }
        };
        let given = from_argument(stream)?;
        let mut inputs: Vec<(String, Input<'py>)> = Vec::new();
        for (name, object) in named(outputs)? {
            let input = Input::contiguous_on_device(&object, &format!("outputs[{name:?}]"), given)?;
            inputs.push((name, input));
        }
        let Some((_, first)) = inputs.first() else {
            return Err(Error::Input(
                "outputs: expected the arrays of a model's outputs, got none".to_owned(),
            ));
        };
        let is_on_device = first.is_on_device();
        if let Some((name, other)) =
            inputs.iter().find(|(_, other)| other.is_on_device() != is_on_device)
        {
            let place =
                |is_on_device| if is_on_device { "in device memory" } else { "in host memory" };
            return Err(Error::Input(format!(
                "outputs[{name:?}]: expected an array {}, as the first output, got one {}; move it",
                place(is_on_device),
                place(other.is_on_device())
            )));
        }
        let stream = first.stream(given)?;
        let is_enqueued = is_on_device && !is_host_wanted;
        let order = if is_enqueued { Order::In(stream) } else { Order::After(stream) };
        let mut sources = Vec::with_capacity(inputs.len());
        for (name, input) in &inputs {
            let mut source = Source::of_tensor(input, &format!("outputs[{name:?}]"), order)?;
            source.quantization = self.settings.quantization_of(name);
            sources.push((name.as_str(), source));
        }
        let ordinal = match first.place {
            Place::Host => None,
            Place::Device { ordinal: Some(ordinal), .. } => Some(ordinal as u32),
            Place::Device { ordinal: None, .. } => {
                Some(Device::holding(first.address())?.ordinal())
            }
        };
        let mut engines =
            self.engines.lock_py_attached(py).unwrap_or_else(|error| error.into_inner());
        let engine = self.settings.engine_for(&mut engines, ordinal)?;
        let room = self.settings.max_detections;
        if is_enqueued {
            let outcome = py.detach(|| engine.enqueue(&views(&sources), foreign(stream)))?;
            return Detections::on_device(py, &first.kind, &outcome, room, stream);
        }
        let outcome = py.detach(|| engine.run_detailed(&views(&sources)))?;
        match is_on_device {
            true => Detections::on_host(py, &host_kind(py), &outcome, room),
            false => Detections::on_host(py, &first.kind, &outcome, room),
        }
    }
}

fn views<'s>(sources: &'s [(&'s str, Source<'_>)]) -> Vec<TensorView<'s>> {
    sources.iter().map(|(name, source)| source.view(name)).collect()
}

/// The arrays with their names. Those of a list are `output0` and so on, as exporters name outputs.
fn named<'py>(outputs: &Bound<'py, PyAny>) -> Result<Vec<(String, Bound<'py, PyAny>)>> {
    let name = |index: usize| format!("output{index}");
    if let Ok(mapping) = outputs.cast::<PyMapping>() {
        let items = mapping.items()?;
        return items
            .iter()
            .map(|item| {
                let (name, array): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
                let name = name.extract().map_err(|_| {
                    Error::Type(format!(
                        "outputs: expected the names of outputs as keys, got {}",
                        type_name(&name)
                    ))
                })?;
                Ok((name, array))
            })
            .collect();
    }
    let is_list = outputs.is_instance_of::<pyo3::types::PyList>()
        || outputs.is_instance_of::<pyo3::types::PyTuple>();
    if is_list {
        let sequence = outputs.cast::<PySequence>().map_err(PyErr::from)?;
        let arrays = (0..sequence.len()?).map(|index| Ok((name(index), sequence.get_item(index)?)));
        return arrays.collect();
    }
    Ok(vec![(name(0), outputs.clone())])
}

/// Scale and zero point: of the only output, or by name.
fn quantizations(
    argument: Option<&Bound<'_, PyAny>>,
) -> Result<Vec<(Option<String>, Quantization)>> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    let pair = |value: &Bound<'_, PyAny>| -> Result<Quantization> {
        let wrong = || {
            let got = value.repr().map(|text| text.to_string()).unwrap_or_default();
            Error::Input(format!(
                "quantization: expected (scale, zero point) with a scale above 0, or a dictionary of \
                 these by the names of outputs, got {got}"
            ))
        };
        let (scale, zero_point): (f32, i32) = value.extract().map_err(|_| wrong())?;
        Quantization::new(scale, zero_point).ok_or_else(wrong)
    };
    let Ok(by_name) = argument.cast::<PyDict>() else { return Ok(vec![(None, pair(argument)?)]) };
    by_name.iter().map(|(name, value)| Ok((Some(name.extract()?), pair(&value)?))).collect()
}

impl Settings {
    fn quantization_of(&self, name: &str) -> Option<Quantization> {
        let is_of_name =
            |known: &Option<String>| known.as_deref().is_none_or(|known| known == name);
        self.quantization.iter().find(|(known, _)| is_of_name(known)).map(|(_, value)| *value)
    }

    fn engine_for<'e>(
        &self,
        engines: &'e mut Vec<(Option<u32>, Nms)>,
        ordinal: Option<u32>,
    ) -> Result<&'e mut Nms> {
        let position = engines.iter().position(|(known, _)| *known == ordinal);
        let index = match position {
            Some(index) => index,
            None => {
                engines.push((ordinal, self.engine(Backend::Cuda, ordinal)?));
                engines.len() - 1
            }
        };
        Ok(&mut engines[index].1)
    }

    fn engine(&self, backend: Backend, ordinal: Option<u32>) -> Result<Nms> {
        let mut nms = Nms::new(backend, ordinal)?;
        nms.set_decoder(self.decoder.as_deref())
            .map_err(|error| Error::Input(format!("decoder: {error}")))?;
        if let Some(layout) = &self.layout {
            nms.set_layout(layout).map_err(|error| Error::Input(format!("layout: {error}")))?;
        }
        let (options, params) = (&mut nms.options, &mut nms.params);
        options.batch = true;
        options.coordinates = self.coordinates;
        options.num_classes = self.num_classes;
        options.score_activation = self.score_activation;
        options.keypoints = self.keypoints;
        if let Some(format) = self.box_format {
            options.box_format = format;
        }
        match &self.thresholds {
            Thresholds::All(threshold) => params.thresholds.default = *threshold,
            Thresholds::Each(thresholds) => {
                params.thresholds.default = f32::INFINITY;
                params.thresholds.per_class = thresholds.clone();
            }
        }
        params.iou_threshold = self.iou_threshold;
        params.max_detections = self.max_detections;
        params.max_candidates = self.max_candidates;
        params.method = self.method;
        params.overlap = self.overlap;
        params.class_agnostic = self.class_agnostic;
        params.multi_label = self.multi_label;
        params.masks = self.masks;
        if let Some(size) = self.model_size {
            nms.model_size = size;
        }
        Ok(nms)
    }
}
