// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's properties, metadata and pad templates.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::enums::{
    ChannelOrder, CudaGraph, InputLayout, OrtInferenceLetterbox, OrtInferenceRegions, Provider,
};
use super::latency::Latency;
use super::settings::Settings;
use super::state::State;
use super::stats::Stats;
use crate::inference::debug_category::CAT;
use crate::inference::instance::Interrupt;
use crate::regions::MAX_OVERLAP;
use gstnmsfilter::elements::{filter_templates, lock, property};
use gstnmsfilter::frame::raw_formats;
use gstnmsfilter::input::analytics_batch;

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::OrtInference)]
pub struct OrtInference {
    #[property(
        name = "model", get, set, type = Option<String>, member = model,
        nick = "Model",
        blurb = "File of the model in the ONNX format",
        mutable_ready
    )]
    #[property(
        name = "library", get, set, type = Option<String>, member = library,
        nick = "Library",
        blurb = "ONNX Runtime's library, or a folder that contains it (unset: searched in ORT_DYLIB_PATH, the \
                 dynamic loader's path and Python packages)",
        mutable_ready
    )]
    #[property(
        name = "provider", get, set, type = Provider, member = provider,
        builder(Provider::default())
            .nick("Provider")
            .blurb("The processor that runs the model")
            .mutable_ready()
    )]
    #[property(
        name = "provider-library", get, set, type = Option<String>, member = provider_library,
        nick = "Provider library",
        blurb = "Library with an execution provider for ONNX Runtime 1.24 or later, with provider=plugin; for example \
                 libonnxruntime_providers_openvino_plugin.so of the Python package onnxruntime-ep-openvino",
        mutable_ready
    )]
    #[property(
        name = "provider-device", get, set, type = Option<String>, member = provider_device,
        nick = "Provider device",
        blurb = "Device of the provider library: cpu, gpu or npu, with its number if there are several, as in gpu:1 \
                 (unset: the first that the library offers)",
        mutable_ready
    )]
    #[property(
        name = "provider-options", get, set, type = Option<String>, member = provider_options,
        nick = "Provider options",
        blurb = "Options of the provider cuda, tensorrt or plugin, as ONNX Runtime and the provider name them: \
                 key=value,key=value, with a value that contains commas in double quotes",
        mutable_ready
    )]
    #[property(
        name = "threads", get, set, type = u32, member = threads,
        maximum = 1024, default = Settings::default().threads,
        nick = "Threads",
        blurb = "Number of threads that ONNX Runtime's CPU provider uses for a run (0: one per core)",
        mutable_ready
    )]
    #[property(
        name = "cuda-device-id", get, set, type = u32, member = cuda_device_id,
        nick = "CUDA device id",
        blurb = "Number of the GPU to use",
        mutable_ready
    )]
    #[property(
        name = "cuda-graph", get, set, type = CudaGraph, member = cuda_graph,
        builder(CudaGraph::default())
            .nick("CUDA graph")
            .blurb("Whether the model runs as a CUDA graph, with provider cuda")
            .mutable_ready()
    )]
    #[property(
        name = "model-instance-id", get, set, type = Option<String>, member = model_instance_id,
        nick = "Model instance id",
        blurb = "Elements of one process with equal ids share the model, which runs batches of their frames; their \
                 other properties must be equal, too (unset: the model is not shared)",
        mutable_ready
    )]
    #[property(
        name = "batch-size", get, set, type = u32, member = batch_size,
        maximum = 1024, default = Settings::default().batch_size,
        nick = "Batch size",
        blurb = "Number of frames per run, for models whose batch is dynamic or 1 (0: the model's batch, or 1 if it \
                 is dynamic); a batch with fewer frames is filled up",
        mutable_ready
    )]
    #[property(
        name = "batch-timeout", get, set, type = u32, member = batch_timeout,
        default = Settings::default().batch_timeout,
        nick = "Batch timeout",
        blurb = "How long a frame waits for frames of other elements with the same model-instance-id, in milliseconds \
                 (nvstreammux has microseconds)",
        mutable_ready
    )]
    #[property(
        name = "letterbox", get, set, type = OrtInferenceLetterbox, member = letterbox,
        builder(OrtInferenceLetterbox::default())
            .nick("Letterbox")
            .blurb("How frames are fitted into the model's input; borders are gray")
            .mutable_ready()
    )]
    #[property(
        name = "input-width", get, set, type = u32, member = input_width,
        nick = "Input width",
        blurb = "Width of the model's input in pixels, for models in which it is dynamic (0: the model's width)",
        mutable_ready
    )]
    #[property(
        name = "input-height", get, set, type = u32, member = input_height,
        nick = "Input height",
        blurb = "Height of the model's input in pixels, for models in which it is dynamic (0: the model's height)",
        mutable_ready
    )]
    #[property(
        name = "input-layout", get, set, type = InputLayout, member = input_layout,
        builder(InputLayout::default())
            .nick("Input layout")
            .blurb("The order of the dimensions of the model's input")
            .mutable_ready()
    )]
    #[property(
        name = "channel-order", get, set, type = ChannelOrder, member = channel_order,
        builder(ChannelOrder::default())
            .nick("Channel order")
            .blurb("The order of the channels of the model's input")
            .mutable_ready()
    )]
    #[property(
        name = "range", get, set, type = Option<String>, member = range,
        nick = "Range",
        blurb = "Normalization range: the values of black and white in the model's input, as in -1,1 (unset: the \
                 range in the file MODEL.modelinfo, else 0,1, or 0,255 for an input of type u8, or -128,127 for i8)",
        mutable_ready
    )]
    #[property(
        name = "mean", get, set, type = Option<String>, member = mean,
        nick = "Mean",
        blurb = "Number to subtract after range is applied, or one number each for red, green and blue (unset: 0)",
        mutable_ready
    )]
    #[property(
        name = "std", get, set, type = Option<String>, member = std,
        nick = "Standard deviation",
        blurb = "Number to divide by after mean is subtracted, or one number each for red, green and blue (unset: 1)",
        mutable_ready
    )]
    #[property(
        name = "inputs", get, set, type = Option<String>, member = inputs,
        nick = "Inputs",
        blurb = "Numbers of the model's inputs beside the picture, the same for every frame, as in \
                 scale=1,1;size=640,640 (unset: inputs of known exporters get the numbers with which boxes are in pixels \
                 of the model's input)",
        mutable_ready
    )]
    #[property(
        name = "signature", get, set, type = Option<String>, member = signature,
        nick = "Signature",
        blurb = "Exporter as whose model the model is read: auto recognizes it by the names, types and dimensions of all inputs \
                 and outputs together; none; or the name of a signature, which decides if the model has several. Other \
                 properties come first (unset: auto)",
        mutable_ready
    )]
    #[property(
        name = "label-file", get, set, type = Option<String>, member = label_file,
        nick = "Label file",
        blurb = "Text file in UTF-8 with one label per line, the first for class 0, in the forms that \
                 nmsfilter's label-file can have (unset or empty: the names in the model's metadata); the \
                 labels go with the tensors",
        mutable_ready
    )]
    #[property(
        name = "inference-interval", get, set, type = u32, member = inference_interval,
        default = Settings::default().inference_interval,
        nick = "Inference interval",
        blurb = "Number of frames that pass without inference between two inferred frames, as nvinfer's interval",
        mutable_playing
    )]
    #[property(
        name = "max-rate", get, set, type = f64, member = max_rate,
        minimum = 0.0, default = Settings::default().max_rate,
        nick = "Maximum rate",
        blurb = "The most frames per second to infer, by their timestamps, also in reverse playback; others pass \
                 without inference (0: no limit)",
        mutable_playing
    )]
    #[property(
        name = "regions", get, set, type = OrtInferenceRegions, member = regions,
        builder(OrtInferenceRegions::default())
            .nick("Regions")
            .blurb("The parts of each frame on which the model runs; nmsfilter compares the boxes of all parts")
            .mutable_playing()
    )]
    #[property(
        name = "tile-width", get, set, type = u32, member = tile_width,
        nick = "Tile width",
        blurb = "Width of a tile in pixels of the frame, with regions=tiles (0: the width of the model's input)",
        mutable_playing
    )]
    #[property(
        name = "tile-height", get, set, type = u32, member = tile_height,
        nick = "Tile height",
        blurb = "Height of a tile in pixels of the frame, with regions=tiles (0: the height of the model's input)",
        mutable_playing
    )]
    #[property(
        name = "tile-overlap", get, set, type = f64, member = tile_overlap,
        minimum = 0.0, maximum = MAX_OVERLAP, default = Settings::default().tile_overlap,
        nick = "Tile overlap",
        blurb = "Overlap of two tiles, as a fraction of their side; objects smaller than the overlap are whole in a tile",
        mutable_playing
    )]
    #[property(
        name = "full-frame", get, set, type = bool, member = full_frame,
        default = Settings::default().full_frame,
        nick = "Full frame",
        blurb = "Whether the model also runs on the whole frame, with regions=tiles; for objects larger than a tile",
        mutable_playing
    )]
    #[property(
        name = "region-list", get, set, type = Option<String>, member = region_list,
        nick = "Region list",
        blurb = "Left, top, width and height of each region in pixels of the frame, with regions=list, as in \
                 0,0,640,480;640,200,640,480, or center-square for the largest square in the middle of the frame \
                 (empty: no region)",
        mutable_playing
    )]
    #[property(
        name = "roi-labels", get, set, type = Option<String>, member = roi_labels,
        nick = "Labels of regions of interest",
        blurb = "Labels of the regions of interest to run on, separated by commas, with regions=rois (unset or empty: \
                 all)",
        mutable_playing
    )]
    #[property(
        name = "roi-margin", get, set, type = f64, member = roi_margin,
        minimum = 0.0, maximum = 10.0, default = Settings::default().roi_margin,
        nick = "Margin of regions of interest",
        blurb = "Margin on each side of a region of interest, as a fraction of its width or height, with regions=rois",
        mutable_playing
    )]
    #[property(
        name = "roi-limit", get, set, type = u32, member = roi_limit,
        default = Settings::default().roi_limit,
        nick = "Limit of regions of interest",
        blurb = "The most regions of interest of a frame to run on, the first ones, with regions=rois (0: no limit)",
        mutable_playing
    )]
    #[property(
        name = "roi-predicted", get, set, type = bool, member = roi_predicted,
        default = Settings::default().roi_predicted,
        nick = "Predicted regions of interest",
        blurb = "Whether to run also on regions of interest that objecttracker has predicted, with regions=rois",
        mutable_playing
    )]
    pub(super) settings: Mutex<Settings>,
    /// `None` before start, after stop, and while `transform_ip` processes a frame.
    pub(super) state: Mutex<Option<State>>,
    pub(super) stats: Mutex<Stats>,
    pub(super) latency: Mutex<Latency>,
    /// Ends the wait for other elements' frames when this one stops or is flushed.
    pub(super) interrupt: Arc<Interrupt>,
}

#[glib::object_subclass]
impl ObjectSubclass for OrtInference {
    const NAME: &'static str = "GstOrtInference";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::OrtInference;
    type ParentType = gst_base::BaseTransform;
}

/// All properties except `stats` are generated by the derive macro, which does not support `GstStructure`.
impl ObjectImpl for OrtInference {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let stats = glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                .nick("Stats")
                .blurb(
                    "Since the element started: frames (inferred), frames-skipped (passed without inference, by \
                     inference-interval or max-rate), frames-dropped (too late, with qos=true), \
                     frames-without-regions (inferred, without a region to run on), regions (on which the model ran), \
                     provider (of the last frame), bytes-uploaded (to the GPU), \
                     output-sets (runs whose outputs are in memory at one time), batch-mean (frames or regions per \
                     run of the model), time-mean, time-p50 and time-p99 (ns per frame; on a GPU the run continues afterwards), \
                     gpu-time-mean, gpu-time-p50 and gpu-time-p99 (ns per run, on a GPU)",
                )
                .read_only()
                .build();
            let derived = OrtInference::derived_properties().iter().cloned();
            derived.chain([stats]).collect()
        });
        &PROPERTIES
    }

    fn property(&self, id: usize, spec: &glib::ParamSpec) -> glib::Value {
        match spec.name() {
            "stats" => lock(&self.stats).structure().to_value(),
            _ => self.derived_property(id, spec),
        }
    }

    fn set_property(&self, id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            self.derived_set_property(id, value, spec);
        }
    }
}

impl GstObjectImpl for OrtInference {}

impl ElementImpl for OrtInference {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "ONNX Runtime inference",
                "Filter/Analyzer/Video",
                "Runs an ONNX model on video frames with ONNX Runtime, on the CPU or an NVIDIA GPU, and \
                 attaches its raw output tensors, which stay in the GPU's memory",
                "The nmsfilter authors",
            )
        });
        Some(&METADATA)
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::PausedToReady {
            // The base class waits for the streaming thread, and that may be waiting for other elements' frames.
            self.interrupt.set();
        }
        self.parent_change_state(transition)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = any_format().build();
            // The memory of GStreamer's CUDA elements. The GPU providers read it directly; for the CPU, it is
            // copied to the host.
            let on_device = any_format().features(["memory:CUDAMemory"]);
            caps.get_mut().expect("the caps are new").append(on_device.build());
            caps.merge(analytics_batch::any_batch());
            filter_templates(&caps)
        });
        &TEMPLATES
    }
}

/// Caps with all formats of the running GStreamer.
fn any_format() -> gst_video::VideoCapsBuilder<gst::caps::NoFeature> {
    gst_video::VideoCapsBuilder::new().format_list(raw_formats())
}
