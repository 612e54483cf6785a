// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Decoder`: decodes the outputs of a model and suppresses duplicates.
//!
//! In: arrays with the outputs of a model for a batch of images. Out: [`Detections`].

use std::sync::{Mutex, MutexGuard};

use nmsfilter_core::cuda::Device;
use nmsfilter_core::nms::{
    Activation, Backend, BoxFormat, ClassThresholds, Coordinates, Interface, KeypointShape, Method,
    Nms, Overlap, Warning, check_model_size,
};
use nmsfilter_core::tensor::{Quantization, TensorView};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyMapping, PySequence, PyTuple};

use crate::detections::{Detections, host_kind};
use crate::device::foreign;
use crate::error::{Error, Result};
use crate::input::{Input, Place, type_name};
use crate::options::{self, Quantizations};
use crate::source::{Order, Source};
use crate::stream::from_argument;

/// Decodes the outputs of a model for a batch of images and suppresses duplicates: decoder(outputs). It keeps what it has
/// found out about the outputs, and its memory. Calls from several threads take turns.
#[pyclass(frozen, module = "nmsfilter")]
pub struct Decoder {
    settings: Settings,
    /// One for the CPU and one for each GPU.
    engines: Mutex<Vec<Engine>>,
}

/// The arguments of the constructor.
struct Settings {
    decoder: Option<String>,
    layout: Option<String>,
    thresholds: ClassThresholds,
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
    quantization: Quantizations,
}

/// What decodes on the CPU, or on one GPU.
struct Engine {
    /// The number of the GPU.
    ordinal: Option<u32>,
    nms: Nms,
    /// The number of warnings that have been issued.
    warned: usize,
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
        #[pyo3(from_py_with = options::score_threshold)] score_threshold: Option<ClassThresholds>,
        #[pyo3(from_py_with = options::iou_threshold)] iou_threshold: f64,
        #[pyo3(from_py_with = options::model_size)] model_size: Option<[f32; 2]>,
        #[pyo3(from_py_with = options::max_detections)] max_detections: usize,
        #[pyo3(from_py_with = options::max_candidates)] max_candidates: usize,
        method: Option<&str>,
        overlap: Option<&str>,
        class_agnostic: bool,
        multi_label: bool,
        masks: bool,
        box_format: Option<&str>,
        coordinates: Option<&str>,
        #[pyo3(from_py_with = options::num_classes)] num_classes: usize,
        score_activation: Option<&str>,
        #[pyo3(from_py_with = options::keypoint_shape)] keypoint_shape: Option<KeypointShape>,
        #[pyo3(from_py_with = options::quantization)] quantization: Option<Quantizations>,
    ) -> PyResult<Self> {
        if decoder.is_some() && layout.is_some() {
            return Err(Error::Input(
                "layout: the text of a layout is a decoder of its own; pass decoder or layout"
                    .to_owned(),
            )
            .into());
        }
        let settings = Settings {
            decoder,
            layout,
            thresholds: score_threshold.unwrap_or_else(|| ClassThresholds::uniform(0.25)),
            iou_threshold: iou_threshold as f32,
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
            keypoints: keypoint_shape,
            quantization: quantization.unwrap_or_default(),
        };
        // Wrong names, layouts and numbers are errors here, not at the first call.
        let cpu = settings.engine(None)?;
        cpu.nms.params.check().map_err(Error::from)?;
        check_model_size(cpu.nms.model_size).map_err(Error::from)?;
        Ok(Self { settings, engines: Mutex::new(vec![cpu]) })
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

    /// What pickle and copy make another one with.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.settings.arguments(py)?))
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
        let mut engines = self.lock(py);
        let engine = self.settings.engine_for(&mut engines, ordinal)?;
        let (nms, room) = (&mut engine.nms, self.settings.max_detections);
        let found = if is_enqueued {
            let outcome = py.detach(|| nms.enqueue(&views(&sources), foreign(stream)))?;
            Detections::on_device(py, &first.kind, &outcome, room, stream)?
        } else {
            let outcome = py.detach(|| nms.run_detailed(&views(&sources)))?;
            let kind = if is_on_device { &host_kind(py) } else { &first.kind };
            Detections::on_host(py, kind, &outcome, room)?
        };
        let warnings = engine.nms.warnings();
        let text = |warning: &Warning| warning.text(Interface::Python).to_string();
        let texts: Vec<_> = warnings[engine.warned..].iter().map(text).collect();
        engine.warned = warnings.len();
        // What shows a warning can call this decoder.
        drop(engines);
        self.warn(py, ordinal, &texts)?;
        Ok(found)
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Vec<Engine>> {
        self.engines.lock_py_attached(py).unwrap_or_else(|error| error.into_inner())
    }

    /// Issues the last warnings of the engine with this number. Where filters make exceptions of them, each call raises
    /// them.
    fn warn(&self, py: Python<'_>, ordinal: Option<u32>, texts: &[String]) -> Result<()> {
        for (issued, text) in texts.iter().enumerate() {
            let warn = |text| py.import("nmsfilter._errors")?.call_method1("warn_misread", (text,));
            if let Err(error) = warn(text) {
                if let Some(engine) = self.lock(py).iter_mut().find(|it| it.ordinal == ordinal) {
                    engine.warned -= texts.len() - issued;
                }
                return Err(error.into());
            }
        }
        Ok(())
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

impl Settings {
    fn quantization_of(&self, name: &str) -> Option<Quantization> {
        let is_of_name =
            |known: &Option<String>| known.as_deref().is_none_or(|known| known == name);
        self.quantization.iter().find(|(known, _)| is_of_name(known)).map(|(_, value)| *value)
    }

    fn engine_for<'e>(
        &self,
        engines: &'e mut Vec<Engine>,
        ordinal: Option<u32>,
    ) -> Result<&'e mut Engine> {
        let position = engines.iter().position(|engine| engine.ordinal == ordinal);
        let index = match position {
            Some(index) => index,
            None => {
                engines.push(self.engine(ordinal)?);
                engines.len() - 1
            }
        };
        Ok(&mut engines[index])
    }

    /// One on the CPU, or on this GPU.
    fn engine(&self, ordinal: Option<u32>) -> Result<Engine> {
        let backend = if ordinal.is_some() { Backend::Cuda } else { Backend::Cpu };
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
        params.thresholds = self.thresholds.clone();
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
        Ok(Engine { ordinal, nms, warned: 0 })
    }

    /// The arguments of the constructor that make such a decoder.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = PyDict::new(py);
        let set = |name: &str, value: Bound<'py, PyAny>| arguments.set_item(name, value);
        set("decoder", self.decoder.as_deref().into_bound_py_any(py)?)?;
        set("layout", self.layout.as_deref().into_bound_py_any(py)?)?;
        let ClassThresholds { default, per_class, .. } = &self.thresholds;
        let threshold = if per_class.is_empty() {
            default.into_bound_py_any(py)?
        } else {
            per_class.into_bound_py_any(py)?
        };
        set("score_threshold", threshold)?;
        set("iou_threshold", self.iou_threshold.into_bound_py_any(py)?)?;
        set("model_size", self.model_size.into_bound_py_any(py)?)?;
        set("max_detections", self.max_detections.into_bound_py_any(py)?)?;
        set("max_candidates", self.max_candidates.into_bound_py_any(py)?)?;
        set("method", self.method.name().into_bound_py_any(py)?)?;
        set("overlap", self.overlap.name().into_bound_py_any(py)?)?;
        set("class_agnostic", self.class_agnostic.into_bound_py_any(py)?)?;
        set("multi_label", self.multi_label.into_bound_py_any(py)?)?;
        set("masks", self.masks.into_bound_py_any(py)?)?;
        set("box_format", self.box_format.map(BoxFormat::name).into_bound_py_any(py)?)?;
        set("coordinates", options::coordinates_name(self.coordinates).into_bound_py_any(py)?)?;
        set("num_classes", self.num_classes.into_bound_py_any(py)?)?;
        let activation = self.score_activation.map(Activation::name);
        set("score_activation", activation.into_bound_py_any(py)?)?;
        let keypoints = self.keypoints.map(|shape| (shape.count, shape.components));
        set("keypoint_shape", keypoints.into_bound_py_any(py)?)?;
        set("quantization", self.quantization_argument(py)?)?;
        Ok(arguments)
    }

    fn quantization_argument<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pair = |quantization: &Quantization| (quantization.scale(), quantization.zero_point());
        match &self.quantization[..] {
            [] => Ok(py.None().into_bound(py)),
            [(None, quantization)] => pair(quantization).into_bound_py_any(py),
            all => {
                let by_name = PyDict::new(py);
                for (name, quantization) in all {
                    by_name.set_item(name, pair(quantization))?;
                }
                Ok(by_name.into_any())
            }
        }
    }
}
