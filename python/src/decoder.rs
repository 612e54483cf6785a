// SPDX-License-Identifier: MIT OR Apache-2.0
//! `Decoder`: decodes the outputs of a model and suppresses duplicates.
//!
//! In: arrays with the outputs of a model for a batch of images. Out: [`Detections`].

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use nmsfilter_core::cuda::Device;
use nmsfilter_core::geometry::{Letterbox, Mapping};
use nmsfilter_core::nms::{ClassThresholds, KeypointShape, Nms, Notice, Params, SizeLimits};
use nmsfilter_core::tensor::TensorView;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyMapping, PySequence, PyTuple};

use crate::detections::{Detections, Images, host_kind};
use crate::device::foreign;
use crate::error::{Error, Result, warn_misread};
use crate::input::{Input, Kind, Place, type_name};
use crate::options::{self, ByClass, Quantizations};
use crate::rows::Rows;
use crate::settings::{PlaceSettings, Settings};
use crate::source::{Order, Source};
use crate::stream::from_argument;
use crate::words::in_python;

/// Decodes the outputs of a model for a batch of images and suppresses duplicates: decoder(outputs). A decoder keeps its
/// plan for outputs of equal shapes, and its memory. Calls from several threads take turns. Arguments that are out of
/// range raise InputError, and arguments of another type TypeError.
///
/// Decoder:
/// - decoder: a name in decoders(). Without it, the names and shapes of the outputs decide.
/// - layout: the text of a layout file, in place of decoder.
///
/// Candidates:
/// - score_threshold: the score that a detection must reach, 0.25 by default; or a list with a threshold for each class. Infinity
///   excludes a class, and so does the end of the list for the classes beyond it.
/// - multi_label: True if every class that reaches its threshold is a detection, not only the best class of an anchor; "queries" if
///   there also are at most as many detections as anchors, as models with queries select them.
/// - min_size, max_size: the limits of a box's width and height, inclusive: a number of pixels for both, or (width, height). None
///   is no limit.
/// - max_candidates: the greatest number of candidates of an image that are compared; 0 is no limit.
///
/// Boxes without area, and those whose sides are not finite or longer than 10^9, are dropped.
///
/// Suppression:
/// - iou_threshold: the overlap above which a box is suppressed, 0 to 1.
/// - threshold_inclusive: an overlap equal to the threshold suppresses, too.
/// - method: "greedy" (the default); "map-reduce", by which suppressed boxes suppress others, too; "none"; or a method
///   of suppress, which merges boxes or lowers scores.
///   "adaptive" and "feature" read a column of the layout with kind = density or embedding.
/// - sigma, lose_released, embedding_distance, embedding_iou_threshold: see suppress.
/// - overlap: "iou" (the default), "smaller", "representative", "diou", or, for oriented boxes only, "prob-iou".
/// - pixel_offset: pixels that are added to the lengths of sides and intersections: 0, or 1 for coordinates that are indices of
///   the first and the last pixel.
/// - class_agnostic: boxes of different classes suppress each other.
/// - max_detections: the greatest number of detections of an image; 0 is no limit.
///
/// Rules of single classes, which replace the rules of all classes: dictionaries by class number, 0 to 65535.
/// - class_iou_thresholds: 0 to 1, as in {0: 0.5}.
/// - class_max_detections: the greatest number of detections of the class in an image, as in {0: 20}; 0 is no limit. It applies
///   before max_detections, and arrays on a GPU need results="host" with it.
/// - class_sizes: (minimum, maximum), as in {0: ((16, 32), (400, 800)), 7: (None, 64)}.
///
/// Images:
/// - model_size: (width, height) of the model's input in pixels, each at least 1. Normalized coordinates are multiplied by it.
///   Some decoders and masks need it.
/// - frame_size: (width, height) in pixels, each from 1 to 65536, of the frames that were scaled to the model's input. With it,
///   limits of sizes are in pixels of the frame, otherwise in pixels of the model's input. Boxes are in pixels of the model's
///   input in either case. Without model_size, the model's input has the size of the frame.
/// - letterbox: the way in which frames were scaled: "none" (the default) stretches them; "center" (as Ultralytics) and
///   "top-left" (as YOLOX) keep their aspect ratio, and need frame_size and model_size.
/// - visible: the (left, upper, right, lower) edge of the part of the model's input that shows the image. Boxes that do not
///   intersect it are rejected. By default the part with the frame, or without frame_size the whole plane.
/// - region_edges: what happens to boxes that touch an inner edge, that is, an edge of visible that is inside the frame and
///   more than edge_margin pixels of the frame away from the frame's edge: "keep" (the default); "drop"; or "lower", which
///   lowers their scores to edge_score, but not below their threshold. Needs frame_size and visible.
/// - edge_margin: the distance in pixels of the frame at which boxes touch an inner edge, at least 1.
/// - masks: masks are computed if the model has them.
/// - mask_size: the pixels of masks: "prototypes" (the default), or "frame", which needs frame_size.
///
/// Outputs:
/// - box_format: "corners", "center", "square" or "distances", for the decoder boxes.
/// - coordinates: "auto" (the default), "pixels" or "normalized".
/// - channels: whether the numbers of an anchor or pixel are before or after the anchors in the outputs' dimensions, where
///   shapes fit both: "auto" (the default; an error in this case), "first" or "last".
/// - num_classes: the number of classes; 0 if it is unknown.
/// - score_activation: "none", "sigmoid" or "softmax". None is the decoder's.
/// - background: which of an anchor's scores is that of the background, also called "no object": "none", "first" or "last".
///   None is the decoder's; with the decoder detr it is the last if there is one score more than num_classes, and the scores
///   are then softmax. After "first", the next score is that of class 0, or of class 1 if num_classes counts the background.
/// - keypoint_shape: the number of keypoints, and 2 or 3 numbers of each.
/// - quantization: (scale, zero point) of quantized outputs, or a dictionary of these by the names of outputs.
/// - labels: the names of classes, in their order, for the results of single images.
///
/// Arguments that other libraries have (conf, iou) are errors that name these.
#[pyclass(frozen, module = "nmsfilter")]
pub struct Decoder {
    settings: Settings,
    images: Images,
    engines: Engines,
}

/// The engines of a process and of those that it forks. If another thread is in a call when a process forks, the child has
/// a lock that nobody releases, and engines in the middle of their work: it makes others.
struct Engines {
    process: u32,
    /// One for the CPU and one for each GPU.
    of_process: Mutex<Vec<Engine>>,
    of_child: OnceLock<Box<Self>>,
}

impl Engines {
    fn new(engines: Vec<Engine>) -> Self {
        let process = std::process::id();
        Self { process, of_process: Mutex::new(engines), of_child: OnceLock::new() }
    }

    fn of_this_process(&self) -> &Mutex<Vec<Engine>> {
        let (process, mut engines) = (std::process::id(), self);
        while engines.process != process {
            engines = engines.of_child.get_or_init(|| Box::new(Self::new(Vec::new())));
        }
        &engines.of_process
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            let engines = self.of_process.get_mut().unwrap_or_else(|error| error.into_inner());
            std::mem::forget(std::mem::take(engines));
        }
    }
}

/// The engine on the CPU, or on one GPU.
struct Engine {
    /// The number of the GPU.
    ordinal: Option<u32>,
    nms: Nms,
    /// The number of warnings that have been issued.
    warned: usize,
}

impl Engine {
    fn new(settings: &Settings, ordinal: Option<u32>) -> Result<Self> {
        Ok(Self { ordinal, nms: settings.nms(ordinal)?, warned: 0 })
    }

    /// The texts of the warnings that have not been issued.
    fn new_warnings(&mut self) -> Vec<String> {
        let warnings = self.nms.warnings();
        let text = |warning: &Notice| in_python(warning);
        let texts = warnings[self.warned..].iter().map(text).collect();
        self.warned = warnings.len();
        texts
    }
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
        decoder=None, *, layout=None, score_threshold=None, iou_threshold=0.45,
        threshold_inclusive=false, pixel_offset=0.0, model_size=None, visible=None, frame_size=None,
        letterbox=None, max_detections=1000, max_candidates=0, min_size=None, max_size=None,
        class_iou_thresholds=None, class_max_detections=None, class_sizes=None, method=None,
        overlap=None, class_agnostic=false, multi_label=[false; 2], masks=true, mask_size=None,
        box_format=None, coordinates=None, num_classes=0, score_activation=None,
        keypoint_shape=None, quantization=None, sigma=0.5, lose_released=false,
        region_edges=None, edge_margin=5.0, edge_score=0.6,
        embedding_distance=1.0, embedding_iou_threshold=0.9, background=None, channels=None,
        labels=None, **others
    ))]
    #[expect(clippy::too_many_arguments, reason = "the arguments in Python")]
    fn new(
        decoder: Option<String>,
        layout: Option<String>,
        #[pyo3(from_py_with = options::score_threshold)] score_threshold: Option<ClassThresholds>,
        #[pyo3(from_py_with = options::iou_threshold)] iou_threshold: f64,
        threshold_inclusive: bool,
        #[pyo3(from_py_with = options::pixel_offset)] pixel_offset: f32,
        #[pyo3(from_py_with = options::model_size)] model_size: Option<[f32; 2]>,
        #[pyo3(from_py_with = options::visible)] visible: Option<[f32; 4]>,
        #[pyo3(from_py_with = options::frame_size)] frame_size: Option<[u32; 2]>,
        letterbox: Option<&str>,
        #[pyo3(from_py_with = options::max_detections)] max_detections: usize,
        #[pyo3(from_py_with = options::max_candidates)] max_candidates: usize,
        #[pyo3(from_py_with = options::min_size)] min_size: Option<[f32; 2]>,
        #[pyo3(from_py_with = options::max_size)] max_size: Option<[f32; 2]>,
        #[pyo3(from_py_with = options::class_iou_thresholds)] class_iou_thresholds: Option<
            ByClass<f32>,
        >,
        #[pyo3(from_py_with = options::class_max_detections)] class_max_detections: Option<
            ByClass<usize>,
        >,
        #[pyo3(from_py_with = options::class_sizes)] class_sizes: Option<ByClass<SizeLimits>>,
        method: Option<&str>,
        overlap: Option<&str>,
        class_agnostic: bool,
        #[pyo3(from_py_with = options::multi_label)] multi_label: [bool; 2],
        masks: bool,
        mask_size: Option<&str>,
        box_format: Option<&str>,
        coordinates: Option<&str>,
        #[pyo3(from_py_with = options::num_classes)] num_classes: usize,
        score_activation: Option<&str>,
        #[pyo3(from_py_with = options::keypoint_shape)] keypoint_shape: Option<KeypointShape>,
        #[pyo3(from_py_with = options::quantization)] quantization: Option<Quantizations>,
        #[pyo3(from_py_with = options::sigma)] sigma: f32,
        lose_released: bool,
        region_edges: Option<&str>,
        #[pyo3(from_py_with = options::edge_margin)] edge_margin: f32,
        #[pyo3(from_py_with = options::edge_score)] edge_score: f32,
        #[pyo3(from_py_with = options::embedding_distance)] embedding_distance: f32,
        #[pyo3(from_py_with = options::embedding_iou_threshold)] embedding_iou_threshold: f32,
        background: Option<&str>,
        channels: Option<&str>,
        #[pyo3(from_py_with = options::labels)] labels: Option<Vec<String>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        options::refuse("Decoder", others)?;
        if decoder.is_some() && layout.is_some() {
            return Err(Error::Input(
                "layout: the text of a layout is a decoder of its own; pass decoder or layout"
                    .to_owned(),
            )
            .into());
        }
        // All fields, without the defaults: a new parameter of the core needs an argument.
        let params = Params {
            method: options::any_method(method)?,
            overlap: options::overlap(overlap)?,
            iou_threshold: iou_threshold as f32,
            threshold_inclusive,
            pixel_offset,
            class_agnostic,
            sigma,
            lose_released,
            embedding_distance,
            embedding_iou_threshold,
            thresholds: score_threshold.unwrap_or_else(|| ClassThresholds::uniform(0.25)),
            sizes: options::size_limits(min_size, max_size),
            class_rules: options::class_rules(
                class_iou_thresholds.unwrap_or_default(),
                class_max_detections.unwrap_or_default(),
                class_sizes.unwrap_or_default(),
            ),
            region_edges: options::region_edges(region_edges)?,
            edge_margin,
            edge_score,
            multi_label: multi_label[0],
            max_candidates,
            max_detections,
            masks,
            mask_size: options::mask_size(mask_size)?,
        };
        let letterbox = options::letterbox(letterbox)?;
        let settings = Settings {
            decoder,
            layout,
            params,
            selects_pairs: multi_label[1],
            place: PlaceSettings { model_size, visible, frame_size, letterbox },
            box_format: box_format.map(options::box_format).transpose()?,
            coordinates: options::coordinates(coordinates.unwrap_or("auto"))?,
            channels: options::channels(channels.unwrap_or("auto"))?,
            num_classes,
            score_activation: score_activation.map(options::activation).transpose()?,
            background: background.map(options::background).transpose()?,
            keypoints: keypoint_shape,
            quantization: quantization.unwrap_or_default(),
            labels,
        };
        // Invalid names, layouts and numbers are errors here, not at the first call.
        let cpu = Engine::new(&settings, None)?;
        let images = settings.images()?;
        Ok(Self { settings, images, engines: Engines::new(vec![cpu]) })
    }

    /// Decodes outputs: an array, a list of arrays, or a dictionary from the names of the model's outputs to arrays, whose
    /// first dimension is the number of images. They are all in host memory, or all on one GPU.
    ///
    /// On a GPU, the call does not wait: the results are in device memory, in the order of the current stream (or of
    /// `stream`). results="host" waits, and returns arrays in host memory, with keypoints, oriented boxes and masks.
    ///
    /// regions: the (left, upper, right, lower) edge of parts of a frame of frame_size, such as slices(). The images are these
    /// parts of a frame, then those of the next frame, and so on. Their detections are compared with each other, and the results
    /// have one image for each frame: all coordinates are in pixels of the frame. Row r of part i is anchor i * rows + r. Masks need
    /// mask_size="frame".
    #[pyo3(signature = (outputs, *, regions=None, stream=None, results=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = options::regions)] regions: Option<Vec<[u32; 4]>>,
        stream: Option<&Bound<'py, PyAny>>,
        results: Option<&str>,
    ) -> PyResult<Detections> {
        Ok(self.decode(py, outputs, regions, stream, results)?)
    }

    /// Says that the last call had the last image: issues the warnings for which there were too few images until then.
    /// Later calls are possible.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let mut all = Vec::new();
        for engine in self.lock(py).iter_mut() {
            engine.nms.finish();
            all.push((engine.ordinal, engine.new_warnings()));
        }
        for (ordinal, texts) in all {
            self.warn(py, ordinal, &texts)?;
        }
        Ok(())
    }

    /// Returns the arguments with which pickle and copy make another one.
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
        regions: Option<Vec<[u32; 4]>>,
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
        let (regions, images) = match regions {
            None => (Vec::new(), self.images.clone()),
            Some(regions) => {
                let mapping = self.images.mapping.as_ref();
                let frame = mapping.and_then(|mapping| Mapping::identity(mapping.frame()).ok());
                let (mapping, letterbox) = (frame, Letterbox::None);
                (
                    self.settings.regions(&regions)?,
                    Images { mapping, letterbox, ..self.images.clone() },
                )
            }
        };
        let mut engines = self.lock(py);
        let engine = self.engine(&mut engines, ordinal)?;
        let (nms, room) = (&mut engine.nms, self.settings.params.max_detections);
        nms.regions = regions;
        let found = if let Some(ordinal) = ordinal.filter(|_| is_enqueued) {
            let device = Device::open(ordinal)?;
            enqueue(py, nms, &sources, &first.kind, &device, room, stream, images)?
        } else {
            let outcome = py.detach(|| nms.run_detailed(&views(&sources)))?;
            let kind = if is_on_device { &host_kind(py) } else { &first.kind };
            Detections::on_host(py, kind, &outcome, room, images)?
        };
        let texts = engine.new_warnings();
        // The function that shows a warning can call this decoder.
        drop(engines);
        self.warn(py, ordinal, &texts)?;
        Ok(found)
    }

    /// The engine for the CPU, or for the GPU with this number.
    fn engine<'e>(
        &self,
        engines: &'e mut Vec<Engine>,
        ordinal: Option<u32>,
    ) -> Result<&'e mut Engine> {
        let position = engines.iter().position(|engine| engine.ordinal == ordinal);
        let index = match position {
            Some(index) => index,
            None => {
                engines.push(Engine::new(&self.settings, ordinal)?);
                engines.len() - 1
            }
        };
        Ok(&mut engines[index])
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Vec<Engine>> {
        self.engines
            .of_this_process()
            .lock_py_attached(py)
            .unwrap_or_else(|error| error.into_inner())
    }

    /// Issues the last warnings of the engine with this number. If filters turn them into exceptions, each call raises
    /// them.
    fn warn(&self, py: Python<'_>, ordinal: Option<u32>, texts: &[String]) -> Result<()> {
        for (issued, text) in texts.iter().enumerate() {
            if let Err(error) = warn_misread(py, text) {
                if let Some(engine) = self.lock(py).iter_mut().find(|it| it.ordinal == ordinal) {
                    engine.warned -= texts.len() - issued;
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Decodes in the order of `stream`, with room for `room` detections of each image; 0 for as many as the engine has memory
/// for. The results are in memory of the library of the arrays that were passed in: the engine writes
/// the results of one image there, and the results of several images are copied.
#[expect(clippy::too_many_arguments, reason = "of one caller")]
fn enqueue<'py>(
    py: Python<'py>,
    nms: &mut Nms,
    sources: &[(&str, Source<'_>)],
    kind: &Kind<'py>,
    device: &Arc<Device>,
    room: usize,
    stream: usize,
    images: Images,
) -> Result<Detections> {
    let (library, mut provided) = (kind.table(), None);
    let outcome = py.detach(|| {
        let memory = |images, components| {
            let rows = Rows { images, room, components };
            if images != 1 || room == 0 {
                return None;
            }
            let allocated = Python::attach(|py| rows.allocate(py, library, device, stream));
            let zeroed = allocated.and_then(|memory| {
                let result = rows.zeroed(&memory, device, stream)?;
                Ok((memory, result))
            });
            let result = zeroed.as_ref().ok().map(|(_, result)| *result);
            provided = Some(zeroed);
            result
        };
        // SAFETY: the memory was allocated for such a result, and its owner frees it in the order of the stream.
        unsafe { nms.enqueue_to(&views(sources), foreign(stream), memory) }
    })?;
    let room = if room == 0 { outcome.capacity } else { room };
    let rows = Rows { images: outcome.groups, room, components: outcome.column_components };
    let memory = match provided {
        Some(provided) => provided?.0,
        None => {
            let memory = rows.allocate(py, library, device, stream)?;
            rows.copy(&outcome, &memory, stream)?;
            memory
        }
    };
    Detections::on_device(py, kind, &rows, memory, stream, images)
}

fn views<'s>(sources: &'s [(&'s str, Source<'_>)]) -> Vec<TensorView<'s>> {
    sources.iter().map(|(name, source)| source.view(name)).collect()
}

/// The arrays with their names. Arrays of a list are named `output0` and so on, as exporters do.
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
