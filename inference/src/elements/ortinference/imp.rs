// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseTransform` subclass: properties, start and stop, negotiation, and `transform_ip`.
//!
//! In: frames, and properties. Out: the same buffers with tensors; messages and `stats`.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};
use std::time::Instant;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::VideoInfo;

use super::enums::{ChannelOrder, CudaGraph, InputLayout, OrtInferenceLetterbox, Provider};
use super::error::StartError;
use super::settings::Settings;
use super::state::State;
use super::stats::Stats;
use crate::inference::debug_category::CAT;
use crate::inference::error::InferenceError;
use crate::inference::provider;
use crate::inference::session::OpenModel;
use crate::inference::{Inference, InferenceOptions};
use gstnmsfilter::elements::{filter_templates, lock, property};
#[cfg(feature = "v1_28")]
use gstnmsfilter::input::analytics_batch;

/// The batch size above which the element warns if the model runs on the CPU. A CPU is not expected to run a model
/// for more streams than this.
const MANY_PICTURES: usize = 32;

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
        blurb = "How long a frame waits for frames of other elements with the same model-instance-id, in milliseconds",
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
                 range in the file MODEL.modelinfo, else 0,1, or 0,255 for an input of type u8)",
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
        name = "label-file", get, set, type = Option<String>, member = label_file,
        nick = "Label file",
        blurb = "Text file in UTF-8 with one label per line, the first for class 0 (unset or empty: the \
                 names in the model's metadata); the labels go with the tensors",
        mutable_ready
    )]
    settings: Mutex<Settings>,
    /// `None` before start, after stop, and while `transform_ip` processes a frame.
    state: Mutex<Option<State>>,
    stats: Mutex<Stats>,
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
                    "Since the element started: frames, provider (of the last frame), bytes-uploaded (to the GPU), \
                     output-sets (runs whose outputs are in memory at one time), batch-mean (frames per run of the \
                     model), time-mean, time-p50 and time-p99 (ns per frame; on a GPU the run continues afterwards), \
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

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = gst_video::VideoCapsBuilder::new().build();
            // The memory of GStreamer's CUDA elements. The GPU providers read it directly; for the CPU, it is
            // copied to the host.
            let on_device = gst_video::VideoCapsBuilder::new().features(["memory:CUDAMemory"]);
            caps.get_mut().expect("the caps are new").append(on_device.build());
            #[cfg(feature = "v1_28")]
            caps.merge(analytics_batch::any_batch());
            filter_templates(&caps)
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for OrtInference {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    // Metadata is attached to every buffer, so the element is never in passthrough mode.
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        *lock(&self.stats) = Stats::default();
        let state = self
            .open(&settings)
            .map_err(|error| error.message(&property::non_default(self.obj().upcast_ref())))?;
        self.post_model(&state);
        *lock(&self.state) = Some(state);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.post_stats();
        *lock(&self.state) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        #[cfg(feature = "v1_28")]
        if let Some(state) = lock(&self.state).as_mut() {
            state.has_streams = analytics_batch::is_batch(incaps);
            if state.has_streams {
                return Ok(());
            }
        }
        let frame = VideoInfo::from_caps(incaps)?;
        if let Some(state) = lock(&self.state).as_mut() {
            if state.frame.is_none() {
                self.warn_of_batch(&state.options);
            }
            let result = self.set_frame(state, &frame);
            result.map_err(|error| gst::loggable_error!(CAT, "{incaps}: {error}"))?;
            let model = state.inference.model().model.input.size;
            gst::info!(
                CAT,
                imp = self,
                "frames of {}x{} are scaled to the model's {}x{}",
                frame.width(),
                frame.height(),
                model[0],
                model[1],
            );
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::Eos {
            if let Some(state) = &*lock(&self.state) {
                state.inference.pause();
            }
            self.post_stats();
        }
        self.parent_sink_event(event)
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        // The state is moved out of the mutex, so that no lock is held while the model runs.
        let Some(mut state) = lock(&self.state).take() else {
            return Err(gst::FlowError::Flushing);
        };
        let result = self.process_buffer(&mut state, buffer);
        *lock(&self.state) = Some(state);
        if let Err(error) = result {
            let properties = property::non_default(self.obj().upcast_ref());
            self.post_error_message(error.message(&properties));
            return Err(gst::FlowError::Error);
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

impl OrtInference {
    /// Opens the model with the first provider that can run it.
    fn open(&self, settings: &Settings) -> Result<State, StartError> {
        let options = settings.options()?;
        let candidates = settings.provider.candidates();
        let (last, others) = candidates.split_last().expect("there is a provider");
        for provider in others {
            match Inference::open(&options, *provider) {
                Ok(inference) => return Ok(self.state(inference, options, true)),
                Err(error) if error.is_installation_problem() => self.warn_of_cpu(&error),
                Err(error) => gst::info!(CAT, imp = self, "not on {}: {error}", provider.name()),
            }
        }
        if *last == provider::Provider::Cpu {
            self.warn_of_large_batch(&options);
        }
        let inference = Inference::open(&options, *last)?;
        Ok(self.state(inference, options, false))
    }

    fn state(&self, inference: Inference, options: InferenceOptions, is_auto: bool) -> State {
        State {
            inference,
            options,
            name: self.obj().name(),
            is_auto,
            frame: None,
            #[cfg(feature = "v1_28")]
            has_streams: false,
        }
    }

    /// Sets the format of the frames that follow.
    fn set_frame(&self, state: &mut State, frame: &VideoInfo) -> Result<(), InferenceError> {
        let result = self.or_on_cpu(state, |state| state.inference.set_frame(frame));
        state.frame = result.is_ok().then(|| frame.clone());
        result
    }

    /// Runs the model on the frame, or on each frame of a batch.
    fn process_buffer(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        #[cfg(feature = "v1_28")]
        if state.has_streams {
            return self.process_streams(state, buffer);
        }
        self.process(state, buffer)
    }

    /// Runs the model on the frames of a batch, and counts the frames. Each run takes as many frames as the model's
    /// batch has room for.
    #[cfg(feature = "v1_28")]
    fn process_streams(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        let frames = analytics_batch::frame_count(buffer);
        let mut done = 0;
        while done < frames {
            let start = Instant::now();
            let (taken, uploaded) =
                self.or_on_cpu(state, |state| state.run_streams(buffer, done..frames))?;
            let inference = &state.inference;
            let (provider, run) = (inference.model().provider.name(), inference.last_run);
            let time = start.elapsed() / taken as u32;
            for index in 0..taken {
                let uploaded = if index == 0 { uploaded } else { 0 };
                lock(&self.stats).count(provider, uploaded, run, time);
            }
            done += taken;
        }
        Ok(())
    }

    /// Runs the model on the frame, attaches the outputs, and counts the frame.
    fn process(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        let start = Instant::now();
        self.or_on_cpu(state, |state| state.run(buffer))?;
        let inference = &state.inference;
        let (provider, uploaded) = (inference.model().provider.name(), inference.uploaded());
        lock(&self.stats).count(provider, uploaded, inference.last_run, start.elapsed());
        Ok(())
    }

    /// Calls `act`. If the GPU fails and the CPU may replace it, opens the model on the CPU and calls `act` again.
    fn or_on_cpu<T>(
        &self,
        state: &mut State,
        mut act: impl FnMut(&mut State) -> Result<T, InferenceError>,
    ) -> Result<T, InferenceError> {
        match act(state) {
            Err(error) if state.is_auto && error.is_gpu_failure() => {
                self.warn_of_cpu(&error);
                state.replace_gpu()?;
                act(state)
            }
            result => result,
        }
    }

    /// Warns of a batch in which only one place will be used: every run takes as long as a full batch.
    fn warn_of_batch(&self, options: &InferenceOptions) {
        if let (Some(batch @ 2..), None) = (options.batch, &options.instance_id) {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("batch-size={batch} without model-instance-id: each run takes as long as a run of {batch} frames, \
                  but has a single frame; set the same model-instance-id in the elements of all streams, or leave \
                  batch-size at 0")
            );
        }
    }

    /// Warns of a batch that is too large for a CPU. This happens before the model is opened, because opening it
    /// runs a full batch.
    fn warn_of_large_batch(&self, options: &InferenceOptions) {
        if let Some(batch) = options.batch.filter(|&batch| batch > MANY_PICTURES) {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("batch-size={batch}: on the CPU a run with {batch} pictures takes as long as {batch} runs, and \
                  needs memory for all of them, even when the model is opened; set batch-size to the number of \
                  streams")
            );
        }
    }

    fn warn_of_cpu(&self, why: &InferenceError) {
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Failed,
            ("{why}; the model runs on the CPU"),
            ["set provider=cpu to avoid this warning"]
        );
    }

    /// Posts a message that says which model runs on which provider.
    fn post_model(&self, state: &State) {
        let OpenModel { model, provider, library, has_graph, .. } = state.inference.model();
        let input = &model.input;
        gst::info!(
            CAT,
            imp = self,
            "{:?} on {}{} with {library:?}: {input:?}, {} labels, outputs {:?}",
            state.options.model,
            provider.name(),
            if *has_graph { " as a CUDA graph" } else { "" },
            model.labels.len(),
            model.outputs,
        );
        let structure = gst::Structure::builder("ortinference-model")
            .field("model", state.options.model.display().to_string())
            .field("provider", provider.name())
            .field("cuda-graph", *has_graph)
            .field("library", library.display().to_string())
            .field("width", input.size[0])
            .field("height", input.size[1])
            .field("batch", input.batch as u32)
            .field("labels", model.labels.len() as u32)
            .field("outputs", gst::Array::new(model.outputs.iter().map(|output| &*output.id)))
            .build();
        self.post(structure);
    }

    fn post_stats(&self) {
        let stats = lock(&self.stats);
        if !stats.is_empty() {
            let structure = stats.structure();
            drop(stats);
            gst::info!(CAT, imp = self, "{structure}");
            self.post(structure);
        }
    }

    fn post(&self, structure: gst::Structure) {
        let element = self.obj();
        let message = gst::message::Element::builder(structure).src(&*element).build();
        // Posting fails if the element is not in a pipeline and therefore has no bus.
        let _ = element.post_message(message);
    }
}
