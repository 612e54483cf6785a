// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of the element's properties.
//!
//! In: properties. Out: the options for inference.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::enums::{
    ChannelOrder, CudaGraph, InputLayout, OrtInferenceLetterbox, OrtInferenceRegions, Provider,
};
use crate::inference::error::InferenceError;
use crate::inference::model::{Overrides, constants, numbers};
use crate::inference::provider_options::{self, ProviderOptions};
use crate::inference::{InferenceOptions, provider};
use crate::regions::{MAX_OVERLAP, RegionSettings};
use gstnmsfilter::output::Labels;
use gstnmsfilter::settings;

settings! {
/// The values of the properties.
pub(super) struct Settings {
    model: Option<String>; "Model", ready,
        "File of the model in the ONNX format";
    library: Option<String>; "Library", ready,
        "ONNX Runtime's library, or a folder that contains it (unset: searched in ORT_DYLIB_PATH, the dynamic \
         loader's path and Python packages)";
    provider: Provider; "Provider", ready,
        "The processor that runs the model";
    provider_library: Option<String>; "Provider library", ready,
        "Library with an execution provider for ONNX Runtime 1.24 or later, with provider=plugin; for example \
         libonnxruntime_providers_openvino_plugin.so of the Python package onnxruntime-ep-openvino";
    provider_device: Option<String>; "Provider device", ready,
        "Device of the provider library: cpu, gpu or npu, with its number if there are several, as in gpu:1 (unset: \
         the first that the library offers)";
    provider_options: Option<String>; "Provider options", ready,
        "Options of the provider cuda, tensorrt or plugin, as ONNX Runtime and the provider name them: \
         key=value,key=value, with a value that contains commas in double quotes";
    threads: u32, 0..=1024; "Threads", ready,
        "Number of threads that ONNX Runtime's CPU provider uses for a run (0: one per core)";
    cuda_device_id: u32; "CUDA device id", ready,
        "Number of the GPU to use";
    cuda_graph: CudaGraph; "CUDA graph", ready,
        "Whether the model runs as a CUDA graph, with provider cuda";
    model_instance_id: Option<String>; "Model instance id", ready,
        "Elements of one process with equal ids share the model, which runs batches of their frames; their other \
         properties must be equal, too (unset: the model is not shared)";
    batch_size: u32, 0..=1024; "Batch size", ready,
        "Number of frames per run, for models whose batch is dynamic or 1 (0: the model's batch, or 1 if it is \
         dynamic); a batch with fewer frames is filled up";
    batch_timeout: u32 = 5; "Batch timeout", ready,
        "How long a frame waits for frames of other elements with the same model-instance-id, in milliseconds \
         (nvstreammux has microseconds)";
    letterbox: OrtInferenceLetterbox; "Letterbox", ready,
        "How frames are fitted into the model's input; borders are gray";
    input_width: u32; "Input width", ready,
        "Width of the model's input in pixels, for models in which it is dynamic (0: the model's width)";
    input_height: u32; "Input height", ready,
        "Height of the model's input in pixels, for models in which it is dynamic (0: the model's height)";
    input_layout: InputLayout; "Input layout", ready,
        "The order of the dimensions of the model's input";
    channel_order: ChannelOrder; "Channel order", ready,
        "The order of the channels of the model's input";
    range: Option<String>; "Range", ready,
        "Normalization range: the values of black and white in the model's input, as in -1,1 (unset: the range in \
         the file MODEL.modelinfo, else 0,1, or 0,255 for an input of type u8, or -128,127 for i8)";
    mean: Option<String>; "Mean", ready,
        "Number to subtract after range is applied, or one number each for red, green and blue (unset: 0)";
    std: Option<String>; "Standard deviation", ready,
        "Number to divide by after mean is subtracted, or one number each for red, green and blue (unset: 1)";
    inputs: Option<String>; "Inputs", ready,
        "Numbers of the model's inputs beside the picture, the same for every frame, as in scale=1,1;size=640,640 \
         (unset: inputs of known exporters get the numbers with which boxes are in pixels of the model's input)";
    signature: Option<String>; "Signature", ready,
        "Exporter as whose model the model is read: auto recognizes it by the names, types and dimensions of all \
         inputs and outputs together; none; or the name of a signature, which decides if the model has several. \
         Other properties come first (unset: auto)";
    label_file: Option<String>; "Label file", ready,
        "Text file in UTF-8 with one label per line, the first for class 0, in the forms that nmsfilter's label-file \
         can have (unset or empty: the names in the model's metadata); the labels go with the tensors";
    inference_interval: u32; "Inference interval", playing,
        "Number of frames that pass without inference between two inferred frames, as nvinfer's interval";
    max_rate: f64, 0.0..=f64::MAX; "Maximum rate", playing,
        "The most frames per second to infer, by their timestamps, also in reverse playback; others pass without \
         inference (0: no limit)";
    regions: OrtInferenceRegions; "Regions", playing,
        "The parts of each frame on which the model runs; nmsfilter compares the boxes of all parts";
    tile_width: u32; "Tile width", playing,
        "Width of a tile in pixels of the frame, with regions=tiles (0: the width of the model's input)";
    tile_height: u32; "Tile height", playing,
        "Height of a tile in pixels of the frame, with regions=tiles (0: the height of the model's input)";
    tile_overlap: f64 = 0.2, 0.0..=MAX_OVERLAP; "Tile overlap", playing,
        "Overlap of two tiles, as a fraction of their side; objects smaller than the overlap are whole in a tile";
    full_frame: bool = true; "Full frame", playing,
        "Whether the model also runs on the whole frame, with regions=tiles; for objects larger than a tile";
    region_list: Option<String>; "Region list", playing,
        "Left, top, width and height of each region in pixels of the frame, with regions=list, as in \
         0,0,640,480;640,200,640,480, or center-square for the largest square in the middle of the frame (empty: no \
         region)";
    roi_labels: Option<String>; "Labels of regions of interest", playing,
        "Labels of the regions of interest to run on, separated by commas, with regions=rois (unset or empty: all)";
    roi_margin: f64, 0.0..=10.0; "Margin of regions of interest", playing,
        "Margin on each side of a region of interest, as a fraction of its width or height, with regions=rois";
    roi_limit: u32; "Limit of regions of interest", playing,
        "The most regions of interest of a frame to run on, the first ones, with regions=rois (0: no limit)";
    roi_predicted: bool; "Predicted regions of interest", playing,
        "Whether to run also on regions of interest that objecttracker has predicted, with regions=rois";
}
}

impl Settings {
    /// Returns which regions are chosen.
    pub fn regions(&self) -> RegionSettings {
        if self.regions == OrtInferenceRegions::Frame {
            return RegionSettings::default();
        }
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

    /// Returns the provider library and its device.
    ///
    /// # Errors
    /// If one is set for a provider that uses none.
    fn plugin(&self) -> Result<[Option<String>; 2], InferenceError> {
        let set = [&self.provider_library, &self.provider_device]
            .map(|text| text.clone().filter(|text| !text.is_empty()));
        let unused = match &set {
            _ if self.provider == Provider::Plugin => return Ok(set),
            [None, None] => return Ok(set),
            [Some(_), _] => "provider-library",
            [None, Some(_)] => "provider-device",
        };
        Err(InferenceError::Settings(format!(
            "{unused} is set, but only provider=plugin uses it; set provider=plugin, or leave \
             {unused} unset"
        )))
    }

    /// Returns the options of the provider.
    ///
    /// # Errors
    /// If they cannot be read, if the provider has none, or if the element sets one of them.
    fn provider_options(&self) -> Result<ProviderOptions, InferenceError> {
        let text = self.provider_options.as_deref().unwrap_or_default();
        let options = provider_options::parse(text)?;
        match self.provider.chosen() {
            _ if options.is_empty() => {}
            Some(provider::Provider::Cuda | provider::Provider::TensorRt) => {
                provider_options::check(&options)?;
            }
            Some(provider::Provider::Plugin) => {}
            _ => {
                return Err(InferenceError::Settings(
                    "provider-options is set, but only the providers cuda, tensorrt and plugin \
                     have options; set provider to one of them, or leave provider-options unset"
                        .to_owned(),
                ));
            }
        }
        Ok(options)
    }

    /// Converts the properties to the options for inference.
    ///
    /// # Errors
    /// If no model is set, if properties of the provider contradict each other, or if numbers, the list of regions or
    /// the label file cannot be read.
    pub fn options(&self) -> Result<InferenceOptions, InferenceError> {
        let model = self.model.as_ref().ok_or_else(|| {
            InferenceError::Settings(
                "no model is set: set model to a file in the ONNX format".to_owned(),
            )
        })?;
        self.regions().check()?;
        let side = |side: u32| Some(side).filter(|&side| side > 0);
        let range = self.range.as_ref().map(|text| numbers::range(text));
        let mean =
            self.mean.as_ref().map(|text| numbers::per_channel("mean", text, "number", |_| true));
        let std = self.std.as_ref().map(|text| {
            numbers::per_channel("std", text, "number greater than 0", |std| std > 0.0)
        });
        let label_file = self.label_file.as_ref().filter(|file| !file.is_empty());
        let labels = label_file.map(|file| Labels::load(Path::new(file))).transpose();
        let labels = labels.map_err(|error| InferenceError::File(error.to_string()))?;
        let overrides = Overrides {
            size: [side(self.input_width), side(self.input_height)],
            layout: self.input_layout.chosen(),
            order: self.channel_order.chosen(),
            ranges: range.transpose()?.map(|range| [range; 3]),
            mean: mean.transpose()?,
            std: std.transpose()?,
            letterbox: self.letterbox.chosen(),
            labels: labels.map(Labels::into_names),
            inputs: constants::parse(self.inputs.as_deref().unwrap_or_default())?,
            signature: self.signature.clone().filter(|name| !["auto", ""].contains(&&**name)),
        };
        let [provider_library, provider_device] = self.plugin()?;
        Ok(InferenceOptions {
            library: self.library.as_ref().map(PathBuf::from),
            model: PathBuf::from(model),
            overrides,
            provider_library: provider_library.map(PathBuf::from),
            provider_device,
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
