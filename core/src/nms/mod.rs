// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding and suppression without GStreamer.
//!
//! In: the raw output tensors of a detector, in host or device memory. Out: the surviving detections of each
//! image, best first. [`Nms`] chooses the decoder by tensor id, by name or by shape, and runs the engine.
//!
//! ```
//! use nmsfilter_core::nms::{Backend, Nms};
//! use nmsfilter_core::tensor::TensorView;
//!
//! // Three windows of x, y, side and score: the second covers the first, the third is apart.
//! let output = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6, 300.0, 60.0, 90.0, 0.7f32];
//! let tensors = [TensorView::from_slice("windows", &[3, 4], &output)];
//!
//! let mut nms = Nms::new(Backend::Auto, None)?;
//! let outcome = nms.run(&tensors)?;
//! let survivors = outcome.group(0).survivors;
//! assert_eq!(survivors.iter().map(|d| d.anchor).collect::<Vec<_>>(), [0, 2]);
//! # Ok::<(), nmsfilter_core::nms::NmsError>(())
//! ```
//!
//! A tensor can hold several images. They are decoded and suppressed in one call, each separately:
//!
//! ```
//! # use nmsfilter_core::nms::{Backend, Nms};
//! # use nmsfilter_core::tensor::TensorView;
//! let image = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6f32];
//! let output = [image, image].concat();
//! let tensors = [TensorView::from_slice("windows", &[2, 2, 4], &output)];
//!
//! let mut nms = Nms::new(Backend::Cpu, None)?;
//! nms.options.batch = true;
//! let outcome = nms.run(&tensors)?;
//! assert!(outcome.groups().all(|image| image.survivors.len() == 1));
//! # Ok::<(), nmsfilter_core::nms::NmsError>(())
//! ```
//!
//! The images can also be in separate allocations: [`Images`](crate::tensor::Images).

mod box_input;
mod boxes;
mod frame_fit;
mod host_boxes;
mod merged_boxes;

use std::fmt;

use crate::device::ForeignStream;
use crate::geometry::Mapping;
use crate::reading::{self, BoxReading, Classifiers, Facts, Output, Reading, Settings};
use crate::tensor::{Quantization, TensorView};
use crate::{decoder, engine};
use decoder::Choice;

pub use boxes::{BoxNms, KeptBoxes};
pub use frame_fit::{FitError, FrameFit};
pub use merged_boxes::MergedBoxes;

pub use crate::decoder::layout::{Activation, Background};
pub use crate::decoder::{
    BoxFormat, Channels, ChoiceError, Coordinates, DescriptionError, KeypointShape, LayoutError,
    LayoutProblem, MAX_CLASSES, Options,
};
pub use crate::engine::detail::{Detail, Point, Points};
pub use crate::engine::{
    Backend, ClassRule, ClassThresholds, Detection, DeviceCounts, DeviceOutcome, DeviceWork,
    EngineError, GroupOutcome, ImagePlace, Job, MAX_IMAGES, MAX_MASK_BYTES, Mask, MaskSize, Masks,
    Method, Outcome, ParamError, Params, RegionEdges, ResultMemory, Scalar, ScalarField,
    ScalarKind, SizeLimits, check_embedding, check_iou_threshold, check_model_size, check_sigma,
};
pub use crate::geometry::{Bounds, FrameMap, OrientedBox, Overlap};
pub use crate::reading::Notice;
pub use crate::wording::{Setting, phrase};

/// Decodes tensors and suppresses duplicate detections.
pub struct Nms {
    engine: Box<dyn engine::Engine>,
    decoder: Option<&'static decoder::Decoder>,
    /// How the tensors of the last run are read.
    reading: Option<Reading>,
    /// The place of each image of the last run.
    places: Vec<ImagePlace>,
    warnings: Vec<Notice>,
    /// Facts about the model that its tensors do not contain.
    pub options: Options,
    /// The parameters of decoding and suppression.
    pub params: Params,
    /// With [`Params::multi_label`]: the model's detections are the best pairs of anchor and class, as many as anchors, which
    /// limits their number beside [`Params::max_detections`].
    pub selects_pairs: bool,
    /// The visible part of the model's input, in pixels, such as the part between the borders of a letterbox. Boxes that
    /// do not intersect it are rejected.
    pub visible: Bounds,
    /// The position of the frame in the model's input, for masks in its pixels ([`MaskSize::Frame`]) and for
    /// [`Params::region_edges`]; with a frame, [`Params::sizes`] are in pixels of the frame.
    pub frame: Option<FrameMap>,
    /// Regions of a frame, such as tiles. If there are any, the images of a run are these regions of a frame, then the regions
    /// of the next frame, and so on; boxes are in pixels of the frame, and are compared with the boxes of all regions of their frame.
    /// [`visible`](Self::visible), [`frame`](Self::frame) and [`model_size`](Self::model_size) should be a whole
    /// frame's.
    pub regions: Vec<Mapping>,
    /// Width and height of the model's input in pixels, by which normalized coordinates are multiplied; 1 by
    /// 1 gives normalized boxes. Masks also need it: if it is 1 by 1 and coordinates are pixels, it is taken to be 4
    /// times the size of the prototypes, as in YOLO models.
    pub model_size: [f32; 2],
}

/// The reason why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NmsError {
    /// There is no decoder of that name.
    #[error("there is no decoder {name}; expected one of {known}")]
    UnknownDecoder {
        /// The name.
        name: String,
        /// The names of all decoders.
        known: String,
    },
    /// A parameter has a value that cannot work.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A tensor, or its number, is not as expected.
    #[error("{0}")]
    Input(String),
    /// No decoder reads the tensors.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The engine cannot run.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl NmsError {
    /// The error of input that is not as `expected`.
    fn input(expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self::Input(format!("expected {expected}, got {got}"))
    }
}

/// An outcome with the keypoints and oriented boxes of survivors.
#[derive(Clone, Copy)]
pub struct DetailedOutcome<'a> {
    /// The outcome.
    pub outcome: Outcome<'a>,
    reading: &'a BoxReading,
    /// Pixels of the model's input per unit of the tensors.
    unit: [f32; 2],
    regions: &'a [Mapping],
}

impl DetailedOutcome<'_> {
    /// The number of points of each survivor ([`Detail::points`]); `None` if the model gives none.
    pub fn points(&self) -> Option<usize> {
        self.reading.details().points()
    }

    /// Returns true if survivors have oriented boxes ([`Detail::oriented_box`]).
    pub fn is_oriented(&self) -> bool {
        self.reading.details().is_oriented()
    }

    /// Returns true if the model gives masks, and [`Params::masks`] is set.
    pub fn has_masks(&self) -> bool {
        self.reading.layout(false).prototypes.is_some()
    }

    /// The oriented box of a survivor, in the pixels of boxes; `None` if boxes are upright.
    ///
    /// # Panics
    /// If there is no such image, or no such survivor.
    pub fn oriented_box(&self, image: usize, survivor: usize) -> Option<OrientedBox> {
        let oriented = self.detail(image, survivor).oriented_box?;
        let region = self.region(image, survivor);
        Some(region.map_or(oriented, |region| region.frame_oriented_box(&oriented)))
    }

    /// The points of a survivor, in the pixels of boxes.
    ///
    /// # Panics
    /// If there is no such image, or no such survivor.
    pub fn points_of(&self, image: usize, survivor: usize) -> impl Iterator<Item = Point> {
        let region = self.region(image, survivor);
        let points = self.detail(image, survivor).points;
        let moved = move |point: Point| match region {
            None => point,
            Some(region) => {
                let [x, y] = region.frame_point([point.x, point.y]);
                Point { x, y, ..point }
            }
        };
        points.iter().map(moved)
    }

    fn detail(&self, image: usize, survivor: usize) -> Detail<'_> {
        let image = self.outcome.group(image);
        let width = self.outcome.column_components;
        let row = &image.columns[survivor * width..][..width];
        let (details, layout) = (self.reading.details(), self.reading.layout(false));
        details.of(layout, self.unit, &image.survivors[survivor], row)
    }

    /// The region that a survivor is from.
    fn region(&self, image: usize, survivor: usize) -> Option<&Mapping> {
        let count = self.regions.len().max(1);
        let found = &self.outcome.group(image).survivors[survivor];
        self.regions.get(self.outcome.image_of(found) % count)
    }
}

impl Nms {
    /// One that runs on `backend`, on GPU number `ordinal` if on any; without a number on the first GPU, or
    /// on the one that holds the tensors. The defaults of [`Options`] and [`Params`] apply.
    ///
    /// # Errors
    /// If `backend` is [`Backend::Cuda`] and the GPU cannot be used.
    pub fn new(backend: Backend, ordinal: Option<u32>) -> Result<Self, NmsError> {
        let engine = engine::select(backend, ordinal)?;
        Ok(Self {
            engine,
            decoder: None,
            reading: None,
            places: Vec::new(),
            warnings: Vec::new(),
            options: Options::default(),
            params: Params::default(),
            selects_pairs: false,
            visible: Bounds::ANY,
            frame: None,
            regions: Vec::new(),
            model_size: [1.0; 2],
        })
    }

    /// The names that [`set_decoder`](Self::set_decoder) takes.
    pub fn decoders() -> impl Iterator<Item = &'static str> {
        decoder::decoders().iter().map(|decoder| decoder.name())
    }

    /// Reads tensors by the decoder of this name, whatever their ids; `None` chooses by id or shape, which
    /// is the default.
    ///
    /// # Errors
    /// If there is no decoder of that name.
    pub fn set_decoder(&mut self, name: Option<&str>) -> Result<(), NmsError> {
        let find = |name: &str| {
            decoder::by_name(name).ok_or_else(|| NmsError::UnknownDecoder {
                name: name.to_owned(),
                known: Self::decoders().collect::<Vec<_>>().join(", "),
            })
        };
        self.decoder = name.map(find).transpose()?;
        self.discard_reading();
        Ok(())
    }

    /// Reads tensors by a layout file's text, whatever their ids. The text stays in memory until the process ends,
    /// once for each text.
    ///
    /// # Errors
    /// If the text is no description of a layout. The message has the line.
    pub fn set_layout(&mut self, text: &str) -> Result<(), DescriptionError> {
        self.decoder = Some(decoder::from_text(text)?);
        self.discard_reading();
        Ok(())
    }

    fn discard_reading(&mut self) {
        self.reading = None;
        self.warnings.clear();
    }

    fn warn(warnings: &mut Vec<Notice>, new: Vec<Notice>) {
        for notice in new {
            if !warnings.iter().any(|other| other.kind() == notice.kind()) {
                warnings.push(notice);
            }
        }
    }

    /// Warnings about probable mistakes, in the order in which they were found, once for each kind: a decoder or an option
    /// that contradicts the tensors, from the first run with them; scores that contradict the decoder, from the first run
    /// with one; boxes that do, from the image with which there are enough of them, at the latest from the tenth with
    /// candidates or rejected anchors; and ten images in which nothing is found, with the best score.
    /// [`enqueue`](Self::enqueue), whose results the host does not see, adds only the first. Setting a decoder or a layout
    /// empties the list. After the last image, [`finish`](Self::finish) judges fewer.
    ///
    /// ```
    /// # use nmsfilter_core::nms::{Backend, Nms};
    /// # use nmsfilter_core::tensor::TensorView;
    /// // Rows of x1, y1, x2, y2, score and class, as end-to-end models have them.
    /// let row = [40.0, 50.0, 340.0, 250.0, 0.9, 5.0f32];
    /// let output = row.repeat(8);
    /// let tensors = [TensorView::from_slice("output0", &[1, 8, 6], &output)];
    ///
    /// let mut nms = Nms::new(Backend::Cpu, None)?;
    /// nms.set_decoder(Some("yolov8"))?;
    /// nms.run(&tensors)?;
    /// let warnings: Vec<String> = nms.warnings().iter().map(ToString::to_string).collect();
    /// assert!(warnings[0].contains("set `decoder = end2end`"));
    /// assert!(warnings[1].starts_with("a score is 5, but scores of decoder yolov8 are probabilities"));
    /// # Ok::<(), nmsfilter_core::nms::NmsError>(())
    /// ```
    pub fn warnings(&self) -> &[Notice] {
        &self.warnings
    }

    /// Says that the last run was of the last image: what the images since the first run have shown is added to
    /// [`warnings`](Self::warnings), even if they are too few to be sure. Later runs are possible, but not judged again
    /// until other tensors or options come.
    pub fn finish(&mut self) {
        if let Some(reading) = &mut self.reading {
            Self::warn(&mut self.warnings, reading.finish());
        }
    }

    /// Decodes `tensors` and suppresses duplicates. The decoder is chosen once for tensors of equal ids, element
    /// types and shapes.
    ///
    /// # Errors
    /// If no decoder reads the tensors, a tensor's memory cannot be read, a parameter cannot work ([`Params::check`]), or
    /// the GPU fails.
    pub fn run(&mut self, tensors: &[TensorView<'_>]) -> Result<Outcome<'_>, NmsError> {
        Ok(self.run_detailed(tensors)?.outcome)
    }

    /// Runs like [`run`](Self::run), and also returns the keypoints and the oriented boxes of survivors.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run).
    pub fn run_detailed(
        &mut self,
        tensors: &[TensorView<'_>],
    ) -> Result<DetailedOutcome<'_>, NmsError> {
        self.prepare(tensors)?;
        let reading = prepared(&mut self.reading);
        let places = &self.places[..];
        let outcome =
            self.engine.run(Job::new(tensors, reading.layout(false), reading.params(), places))?;
        let new = reading.observe(&outcome, tensors, places, false, None);
        Self::warn(&mut self.warnings, new);
        let unit = places[0].unit(reading.layout(false));
        Ok(DetailedOutcome { outcome, reading, unit, regions: &self.regions })
    }

    /// Runs on a GPU, in the order of `stream`, without waiting for it. The run reads what work that was submitted to
    /// `stream` before wrote to tensors in device memory, and leaves the result in device memory, for work that is
    /// submitted to `stream` later. The tensors' memory must exist until then.
    ///
    /// A tensor in host memory is copied when this is called, once the run before has completed.
    ///
    /// Into a stream that is being captured, no other run may be enqueued between the capture and the last launch of
    /// the graph; a run with tensors of these shapes and these parameters must have been made before.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and if the engine does not use a GPU, if the model gives masks and
    /// [`Params::masks`] is set, or if a class has a greatest number of survivors ([`ClassRule::max_detections`]): both need the
    /// host.
    pub fn enqueue(
        &mut self,
        tensors: &[TensorView<'_>],
        stream: ForeignStream,
    ) -> Result<DeviceOutcome<'_>, NmsError> {
        // SAFETY: no memory is provided.
        unsafe { self.enqueue_to(tensors, stream, |_, _| None) }
    }

    /// Like [`enqueue`](Self::enqueue), with the result in memory of the caller. `memory` is called with the number of
    /// images, and of components in a survivor's columns. It can return memory for one image; with `None`, the result is
    /// in the engine's memory.
    ///
    /// # Errors
    /// The errors of [`enqueue`](Self::enqueue).
    ///
    /// # Safety
    /// In the order of `stream`, the memory must be valid for writes as [`ResultMemory`] describes.
    ///
    /// # Panics
    /// If memory is returned for several images.
    pub unsafe fn enqueue_to(
        &mut self,
        tensors: &[TensorView<'_>],
        stream: ForeignStream,
        memory: impl FnOnce(usize, usize) -> Option<ResultMemory>,
    ) -> Result<DeviceOutcome<'_>, NmsError> {
        self.prepare(tensors)?;
        let reading = prepared(&mut self.reading);
        let (layout, places) = (reading.layout(false), &self.places[..]);
        let memory = memory(places.len(), layout.column_components());
        let job = Job::new(tensors, layout, reading.params(), places);
        // SAFETY: the caller's guarantee.
        Ok(unsafe { self.engine.cuda()?.enqueue_to(job, stream, memory) }?)
    }

    /// Makes the reading of `tensors`, and the places of their images.
    fn prepare(&mut self, tensors: &[TensorView<'_>]) -> Result<(), NmsError> {
        self.params.check()?;
        let place = ImagePlace {
            visible: self.visible,
            frame: self.frame,
            ..ImagePlace::in_model(self.model_size)
        };
        place.check()?;
        for tensor in tensors {
            let zero_point = tensor.quantization.map(Quantization::zero_point);
            if let (Some(zero_point), Some(zero_points)) =
                (zero_point, tensor.element.zero_points())
                && !zero_points.contains(&zero_point)
            {
                let (least, greatest) = zero_points.into_inner();
                return Err(NmsError::Input(format!(
                    "tensor {tensor}: the zero point is {zero_point}; expected {least} to {greatest}"
                )));
            }
        }
        let is_set = self.model_size != [1.0; 2];
        let options = Options { model_size: is_set.then_some(self.model_size), ..self.options };
        let settings = Settings {
            decoder: self.decoder,
            classifiers: Classifiers::Never,
            options,
            has_class_thresholds: !self.params.thresholds.per_class.is_empty(),
            classes: None,
        };
        let in_frame = self.visible != Bounds::ANY || !self.regions.is_empty();
        let facts = Facts { tensors, family: None, in_frame, engine: None };
        let has = |reading: &Reading, are: &dyn Fn(&Params) -> bool| {
            reading.boxes().is_some_and(|boxes| are(boxes.params()))
        };
        let reading = match &mut self.reading {
            Some(reading) if has(reading, &|params| params.masks == self.params.masks) => {
                reading.adapt(&facts, &settings)?.then_some(reading)
            }
            _ => None,
        };
        // A frame has the detections of its regions.
        let asked = self.params.max_detections;
        let limit = |choice: &Choice| match choice.layout.anchors() * self.regions.len().max(1) {
            pairs if self.selects_pairs && !(1..=pairs).contains(&asked) => pairs,
            _ => asked,
        };
        match reading {
            Some(reading) => {
                // Compared in place: parameters are not copied for each run.
                self.params.max_detections = reading.boxes().map_or(asked, |it| limit(it.choice()));
                if !has(reading, &|known| *known == self.params) {
                    reading.set_params(&self.params, &facts, &settings);
                    Self::warn(&mut self.warnings, reading.take_notices());
                }
                self.params.max_detections = asked;
            }
            None => {
                let params = |choice: Option<&_>| {
                    let max_detections = choice.map_or(asked, limit);
                    Ok::<_, NmsError>(Params { max_detections, ..self.params.clone() })
                };
                let mut reading = reading::read(&facts, &settings, params)?;
                Self::warn(&mut self.warnings, reading.take_notices());
                if let Some(earlier) = self.reading.take() {
                    reading.follow(earlier);
                }
                self.reading = Some(reading);
            }
        }
        // More images than the limit are an error of the engine.
        let layout = prepared(&mut self.reading).layout(false);
        let images = 0..layout.images.min(MAX_IMAGES + 1) as u32;
        self.places.clear();
        let count = self.regions.len() as u32;
        if count > 0 && layout.prototypes.is_some() && self.params.mask_size == MaskSize::Prototypes
        {
            let expected = "mask_size frame for masks of regions, or no masks";
            return Err(NmsError::input(expected, MaskSize::Prototypes.name()));
        }
        if count == 0 {
            self.places.extend(images.map(|group| ImagePlace { group, ..place }));
        } else if layout.images.is_multiple_of(self.regions.len()) {
            let in_region = |image| {
                ImagePlace::in_region(&self.regions[(image % count) as usize], image / count)
            };
            self.places.extend(images.map(in_region));
        } else {
            let expected = format_args!("an image for each of {count} regions");
            return Err(NmsError::input(expected, format_args!("{} images", layout.images)));
        }
        Ok(())
    }
}

/// The reading that `prepare` has made, by [`Classifiers::Never`].
fn prepared(reading: &mut Option<Reading>) -> &mut BoxReading {
    match reading.as_mut().map(|reading| &mut reading.output) {
        Some(Output::Boxes(boxes)) => boxes,
        _ => unreachable!("`prepare` has made it"),
    }
}
