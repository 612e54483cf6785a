// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
//!
//! In: properties. Out: the options for inference.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::enums::{
    ChannelOrder, CudaGraph, InputLayout, OrtInferenceLetterbox, OrtInferenceRegions, Provider,
};
use super::error::StartError;
use crate::inference::model::{Overrides, constants, numbers};
use crate::inference::plugin_provider::PluginLibrary;
use crate::inference::provider_options::ProviderOptions;
use crate::inference::{InferenceOptions, provider};
use crate::regions::RegionSettings;
use gstnmsfilter::output::Labels;

/// The values of the properties.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub model: Option<String>,
    pub library: Option<String>,
    pub provider: Provider,
    pub provider_library: Option<String>,
    pub provider_device: Option<String>,
    pub provider_options: Option<String>,
    pub threads: u32,
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
    pub inputs: Option<String>,
    pub signature: Option<String>,
    pub label_file: Option<String>,
    pub regions: OrtInferenceRegions,
    pub tile_width: u32,
    pub tile_height: u32,
    pub tile_overlap: f64,
    pub full_frame: bool,
    pub region_list: Option<String>,
    pub roi_labels: Option<String>,
    pub roi_margin: f64,
    pub roi_limit: u32,
    pub roi_predicted: bool,
    pub inference_interval: u32,
    pub max_rate: f64,
}

impl Default for Settings {
    fn default() -> Self {
        let regions = RegionSettings::default();
        Self {
            model: None,
            library: None,
            provider: Provider::default(),
            provider_library: None,
            provider_device: None,
            provider_options: None,
            threads: 0,
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
            inputs: None,
            signature: None,
            label_file: None,
            regions: OrtInferenceRegions::default(),
            tile_width: 0,
            tile_height: 0,
            tile_overlap: regions.tile_overlap,
            full_frame: regions.full_frame,
            region_list: regions.list,
            roi_labels: regions.roi_labels,
            roi_margin: regions.roi_margin,
            roi_limit: regions.roi_limit,
            roi_predicted: regions.roi_predicted,
            inference_interval: 0,
            max_rate: 0.0,
        }
    }
}

impl Settings {
    /// Returns which regions are chosen.
    pub fn regions(&self) -> RegionSettings {
        RegionSettings {
            kind: self.regions.into(),
            tile_size: [self.tile_width, self.tile_height],
            tile_overlap: self.tile_overlap,
            full_frame: self.full_frame,
            list: self.region_list.clone(),
            roi_labels: self.roi_labels.clone().filter(|labels| !labels.is_empty()),
            roi_margin: self.roi_margin,
            roi_limit: self.roi_limit,
            roi_predicted: self.roi_predicted,
        }
    }

    /// Returns the provider library.
    ///
    /// # Errors
    /// If it is set for a provider that uses none.
    fn plugin(&self) -> Result<Option<PluginLibrary>, StartError> {
        let library = self.provider_library.as_ref().filter(|path| !path.is_empty());
        let device = self.provider_device.clone().filter(|device| !device.is_empty());
        if self.provider == Provider::Plugin {
            return Ok(library.map(|path| PluginLibrary { path: PathBuf::from(path), device }));
        }
        let unused = match (library, &device) {
            (Some(_), _) => "provider-library",
            (None, Some(_)) => "provider-device",
            (None, None) => return Ok(None),
        };
        Err(StartError::NotPlugin { unused })
    }

    /// Returns the options of the provider.
    ///
    /// # Errors
    /// If they cannot be read, if the provider has none, or if the element sets one of them.
    fn provider_options(&self) -> Result<ProviderOptions, StartError> {
        let text = self.provider_options.as_deref().unwrap_or_default();
        let options = ProviderOptions::parse(text)?;
        match self.provider.candidates() {
            _ if options.is_empty() => {}
            [provider] if *provider != provider::Provider::Cpu => options.check(*provider)?,
            _ => return Err(StartError::NoOptions),
        }
        Ok(options)
    }

    /// Converts the properties to the options for inference.
    ///
    /// # Errors
    /// If no model is set, if properties of the provider contradict each other, or if numbers, the list of regions or
    /// the label file cannot be read.
    pub fn options(&self) -> Result<InferenceOptions, StartError> {
        let model = self.model.as_ref().ok_or(StartError::NoModel)?;
        self.regions().check()?;
        let side = |side: u32| Some(side).filter(|&side| side > 0);
        let mean =
            self.mean.as_ref().map(|text| numbers::per_channel("mean", text, "number", |_| true));
        let std = self.std.as_ref().map(|text| {
            numbers::per_channel("std", text, "number greater than 0", |std| std > 0.0)
        });
        let overrides = Overrides {
            size: [side(self.input_width), side(self.input_height)],
            layout: self.input_layout.into(),
            order: self.channel_order.into(),
            range: self.range.as_ref().map(|text| numbers::range(text)).transpose()?,
            mean: mean.transpose()?,
            std: std.transpose()?,
            inputs: constants::parse(self.inputs.as_deref().unwrap_or_default())?,
            signature: self.signature.clone().filter(|name| !["auto", ""].contains(&&**name)),
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
            plugin: self.plugin()?,
            provider_options: self.provider_options()?,
            threads: Some(self.threads as usize).filter(|&threads| threads > 0),
            device: self.cuda_device_id,
            cuda_graph: self.cuda_graph.into(),
            instance_id: self.model_instance_id.clone().filter(|id| !id.is_empty()),
            batch: Some(self.batch_size as usize).filter(|&batch| batch > 0),
            batch_timeout: Duration::from_millis(self.batch_timeout.into()),
        })
    }
}
