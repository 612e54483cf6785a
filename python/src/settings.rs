// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `Decoder`.
//!
//! In: the values that [`options`](crate::options) has read. Out: a [`Nms`] with these settings, and the arguments that
//! make an equal `Decoder`. The core checks the values.

use nmsfilter_core::geometry::{FrameRegion, Letterbox, Mapping};
use nmsfilter_core::nms::{
    Activation, Backend, Background, Bounds, BoxFormat, Channels, ClassRule, Coordinates, FrameFit,
    ImagePlace, KeypointShape, Nms, Params, ScalarKind, SizeLimits,
};
use nmsfilter_core::tensor::Quantization;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::detections::Images;
use crate::error::{Error, Result};
use crate::options::{Quantizations, channels_name, coordinates_name};

/// The arguments of the constructor.
pub struct Settings {
    pub decoder: Option<String>,
    pub layout: Option<String>,
    pub params: Params,
    pub selects_pairs: bool,
    pub place: PlaceSettings,
    pub box_format: Option<BoxFormat>,
    pub coordinates: Coordinates,
    pub channels: Channels,
    pub num_classes: usize,
    pub score_activation: Option<Activation>,
    pub background: Option<Background>,
    pub keypoints: Option<KeypointShape>,
    pub quantization: Quantizations,
    pub labels: Option<Vec<String>>,
}

/// The size of the model's input, and the position of frames in it.
pub struct PlaceSettings {
    /// Width and height in pixels.
    pub model_size: Option<[f32; 2]>,
    /// Left, upper, right and lower edge in pixels of the model's input.
    pub visible: Option<[f32; 4]>,
    /// Width and height in pixels.
    pub frame_size: Option<[u32; 2]>,
    pub letterbox: Letterbox,
}

impl PlaceSettings {
    /// The place of every image.
    ///
    /// # Errors
    /// Fails if the sizes of the frame and of the model's input do not fit the letterbox, or if a number is out of
    /// range.
    fn image_place(&self) -> Result<ImagePlace> {
        let mut place = match self.frame_size {
            Some(frame) => ImagePlace::in_frame(&self.fit(frame).mapping()?, 0),
            None if self.letterbox == Letterbox::None => {
                ImagePlace::in_model(self.model_size.unwrap_or([1.0; 2]))
            }
            None => {
                return Err(Error::Input(format!(
                    "letterbox: expected \"none\" for frames of unknown size, got {:?}; set frame_size",
                    self.letterbox.name()
                )));
            }
        };
        if let Some([left, top, right, bottom]) = self.visible {
            place.visible = Bounds { left, top, right, bottom };
        }
        place.check()?;
        Ok(place)
    }

    fn fit(&self, frame: [u32; 2]) -> FrameFit {
        FrameFit { frame, model: self.model_size, letterbox: self.letterbox }
    }
}

impl Settings {
    /// The quantization of the output with this name.
    pub fn quantization_of(&self, name: &str) -> Option<Quantization> {
        let applies = |known: &Option<String>| known.as_deref().is_none_or(|known| known == name);
        self.quantization.iter().find(|(known, _)| applies(known)).map(|(_, value)| *value)
    }

    /// Makes a decoder on the CPU, or on the GPU with this number.
    ///
    /// # Errors
    /// Fails if a setting is invalid, or if the GPU cannot be used.
    pub fn nms(&self, ordinal: Option<u32>) -> Result<Nms> {
        let backend = if ordinal.is_some() { Backend::Cuda } else { Backend::Cpu };
        let mut nms = Nms::new(backend, ordinal)?;
        nms.set_decoder(self.decoder.as_deref())
            .map_err(|error| Error::Input(format!("decoder: {error}")))?;
        if let Some(layout) = &self.layout {
            nms.set_layout(layout).map_err(|error| Error::Input(format!("layout: {error}")))?;
        }
        let options = &mut nms.options;
        options.batch = true;
        options.coordinates = self.coordinates;
        options.channels = self.channels;
        options.num_classes = self.num_classes;
        options.score_activation = self.score_activation;
        options.background = self.background;
        options.keypoints = self.keypoints;
        if let Some(format) = self.box_format {
            options.box_format = format;
        }
        self.params.check()?;
        let place = self.place.image_place()?;
        self.params.check_mask_frame(place.frame.is_some())?;
        (nms.params, nms.selects_pairs) = (self.params.clone(), self.selects_pairs);
        (nms.model_size, nms.visible, nms.frame) = (place.model_size, place.visible, place.frame);
        Ok(nms)
    }

    /// What single images of results have.
    ///
    /// # Errors
    /// The errors of [`nms`](Self::nms).
    pub fn images(&self) -> Result<Images> {
        let PlaceSettings { frame_size, letterbox, .. } = self.place;
        let mapping = frame_size.map(|frame| self.place.fit(frame).mapping()).transpose()?;
        Ok(Images { mapping, letterbox, labels: self.labels.clone().map(Into::into) })
    }

    /// The mappings of regions of the frame (left, upper, right, lower edge).
    ///
    /// # Errors
    /// If a region is not inside the frame, or the frame's size is unknown.
    pub fn regions(&self, regions: &[[u32; 4]]) -> Result<Vec<Mapping>> {
        let Some(frame) = self.place.frame_size else {
            let text = "regions: expected the size of the frame; set frame_size of the Decoder";
            return Err(Error::Input(text.to_owned()));
        };
        let region = |&[left, top, right, bottom]: &[u32; 4]| {
            let (width, height) = (right.saturating_sub(left), bottom.saturating_sub(top));
            let region = FrameRegion { left, top, width, height };
            region.is_inside(frame).then_some(region).ok_or_else(|| {
                let [frame_width, frame_height] = frame;
                Error::Input(format!(
                    "regions: expected (left, upper, right, lower) edges inside of the frame of {frame_width} x {frame_height}, \
                     got ({left}, {top}, {right}, {bottom})"
                ))
            })
        };
        let regions = regions.iter().map(region).collect::<Result<Vec<_>>>()?;
        Ok(self.place.fit(frame).regions(&regions)?)
    }

    /// The arguments of the constructor that make an equal decoder.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Self { decoder, layout, params, place, .. } = self;
        let SizeLimits { min, max } = params.sizes;
        let arguments = PyDict::new(py);
        let set = |name: &str, value: Bound<'py, PyAny>| arguments.set_item(name, value);
        set("decoder", decoder.as_deref().into_bound_py_any(py)?)?;
        set("layout", layout.as_deref().into_bound_py_any(py)?)?;
        for scalar in Params::SCALARS {
            let value = match scalar.kind {
                ScalarKind::Flag(flag) => (flag.get)(params).into_bound_py_any(py)?,
                ScalarKind::Count(count) => (count.get)(params).into_bound_py_any(py)?,
                ScalarKind::Number(field, _) => (field.get)(params).into_bound_py_any(py)?,
            };
            set(scalar.name, value)?;
        }
        if self.selects_pairs {
            set("multi_label", "queries".into_bound_py_any(py)?)?;
        }
        let thresholds = &params.thresholds.per_class;
        if !thresholds.is_empty() {
            set("score_threshold", thresholds.into_bound_py_any(py)?)?;
        }
        set("pixel_offset", params.pixel_offset.into_bound_py_any(py)?)?;
        set("min_size", min.into_bound_py_any(py)?)?;
        set("max_size", max.into_bound_py_any(py)?)?;
        add_class_rules(&arguments, &params.class_rules)?;
        set("method", params.method.name().into_bound_py_any(py)?)?;
        set("region_edges", params.region_edges.name().into_bound_py_any(py)?)?;
        set("overlap", params.overlap.name().into_bound_py_any(py)?)?;
        set("mask_size", params.mask_size.name().into_bound_py_any(py)?)?;
        let PlaceSettings { model_size, visible, frame_size, letterbox } = place;
        set("model_size", model_size.into_bound_py_any(py)?)?;
        set("visible", visible.into_bound_py_any(py)?)?;
        set("frame_size", frame_size.into_bound_py_any(py)?)?;
        set("letterbox", letterbox.name().into_bound_py_any(py)?)?;
        set("box_format", self.box_format.map(BoxFormat::name).into_bound_py_any(py)?)?;
        set("coordinates", coordinates_name(self.coordinates).into_bound_py_any(py)?)?;
        set("channels", channels_name(self.channels).into_bound_py_any(py)?)?;
        set("num_classes", self.num_classes.into_bound_py_any(py)?)?;
        let activation = self.score_activation.map(Activation::name);
        set("score_activation", activation.into_bound_py_any(py)?)?;
        let background = self.background.map(Background::name);
        set("background", background.into_bound_py_any(py)?)?;
        let keypoints = self.keypoints.map(|shape| (shape.count, shape.components));
        set("keypoint_shape", keypoints.into_bound_py_any(py)?)?;
        set("quantization", self.quantization_argument(py)?)?;
        set("labels", self.labels.clone().into_bound_py_any(py)?)?;
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

/// Adds the arguments `class_iou_thresholds`, `class_max_detections` and `class_sizes`.
fn add_class_rules(arguments: &Bound<'_, PyDict>, rules: &[ClassRule]) -> PyResult<()> {
    let py = arguments.py();
    let [thresholds, limits, all_sizes] = [(); 3].map(|()| PyDict::new(py));
    for (class, rule) in rules.iter().enumerate() {
        // All fields: the code does not compile if the core has a rule that Python lacks.
        let &ClassRule { iou_threshold, sizes, max_detections } = rule;
        if let Some(threshold) = iou_threshold {
            thresholds.set_item(class, threshold)?;
        }
        if let Some(SizeLimits { min, max }) = sizes {
            all_sizes.set_item(class, (min, max))?;
        }
        if max_detections != 0 {
            limits.set_item(class, max_detections)?;
        }
    }
    arguments.set_item("class_iou_thresholds", thresholds)?;
    arguments.set_item("class_max_detections", limits)?;
    arguments.set_item("class_sizes", all_sizes)
}
