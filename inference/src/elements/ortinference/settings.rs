// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
//!
//! In: properties. Out: the options for inference.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::enums::{ChannelOrder, CudaGraph, InputLayout, OrtInferenceLetterbox, Provider};
use super::error::StartError;
use crate::inference::InferenceOptions;
use crate::inference::model::{Overrides, numbers};
use gstnmsfilter::output::Labels;

/// The values of the properties.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub model: Option<String>,
    pub library: Option<String>,
    pub provider: Provider,
    pub cuda_device_id: u32,
    pub cuda_graph: CudaGraph,
    pub model_instance_id: Option<String>,
    pub batch_size: u32,
    pub batch_timeout: u32,
    pub letterbox: OrtInferenceLetterbox,
    pub input_width: u32,
    pub input_height: u32,
    pub input_layout: InputLayout,
    pub channel_order: ChannelOrder,
    pub range: Option<String>,
    pub mean: Option<String>,
    pub std: Option<String>,
    pub label_file: Option<String>,
    pub inference_interval: u32,
    pub max_rate: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model: None,
            library: None,
            provider: Provider::default(),
            cuda_device_id: 0,
            cuda_graph: CudaGraph::default(),
            model_instance_id: None,
            batch_size: 0,
            batch_timeout: 5,
            letterbox: OrtInferenceLetterbox::default(),
            input_width: 0,
            input_height: 0,
            input_layout: InputLayout::default(),
            channel_order: ChannelOrder::default(),
            range: None,
            mean: None,
            std: None,
            label_file: None,
            inference_interval: 0,
            max_rate: 0.0,
        }
    }
}

impl Settings {
    /// Converts the properties to the options for inference.
    ///
    /// # Errors
    /// If no model is set, or if numbers or the label file cannot be read.
    pub fn options(&self) -> Result<InferenceOptions, StartError> {
        let model = self.model.as_ref().ok_or(StartError::NoModel)?;
        let side = |side: u32| Some(side).filter(|&side| side > 0);
        let mean =
            self.mean.as_ref().map(|text| numbers::per_channel("mean", text, "number", |_| true));
        let std = self.std.as_ref().map(|text| {
            numbers::per_channel("std", text, "number greater than 0", |std| std > 0.0)
        });
        let overrides = Overrides {
            size: [side(self.input_width), side(self.input_height)],
            layout: self.input_layout.into(),
            order: Some(self.channel_order.into()),
            range: self.range.as_ref().map(|text| numbers::range(text)).transpose()?,
            mean: mean.transpose()?,
            std: std.transpose()?,
        };
        let label_file = self.label_file.as_ref().filter(|file| !file.is_empty());
        let labels = match label_file {
            Some(file) => Some(Labels::load(Path::new(file))?.into_names()),
            None => None,
        };
        Ok(InferenceOptions {
            library: self.library.as_ref().map(PathBuf::from),
            model: PathBuf::from(model),
            overrides,
            letterbox: self.letterbox.into(),
            labels,
            device: self.cuda_device_id,
            cuda_graph: self.cuda_graph.into(),
            instance_id: self.model_instance_id.clone().filter(|id| !id.is_empty()),
            batch: Some(self.batch_size as usize).filter(|&batch| batch > 0),
            batch_timeout: Duration::from_millis(self.batch_timeout.into()),
        })
    }
}
