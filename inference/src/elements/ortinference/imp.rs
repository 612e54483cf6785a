// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element's properties, metadata and pad templates.

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::latency::Latency;
use super::settings::Settings;
use super::state::State;
use super::stats::Stats;
use crate::inference::CAT;
use crate::inference::instance::Interrupt;
use gstnmsfilter::elements::property::{self, Properties};
use gstnmsfilter::elements::{lock, pad_templates};
use gstnmsfilter::frame::raw_formats;
use gstnmsfilter::input::analytics_batch;

/// The instance data of the element.
#[derive(Default)]
pub struct OrtInference {
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

impl ObjectImpl for OrtInference {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let stats = property::stats(
                "Since the element started: frames (inferred), frames-skipped (passed without inference, by \
                 inference-interval or max-rate), frames-dropped (too late, with qos=true), \
                 frames-without-regions (inferred, without a region to run on), regions (on which the model ran), \
                 provider (of the last frame), bytes-uploaded (to the GPU), \
                 output-sets (runs whose outputs are in memory at one time), batch-mean (frames or regions per \
                 run of the model), time-mean, time-p50 and time-p99 (ns per frame; on a GPU the run continues afterwards), \
                 gpu-time-mean, gpu-time-p50 and gpu-time-p99 (ns per run, on a GPU)",
            );
            Settings::specs().chain([stats]).collect()
        });
        &PROPERTIES
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let value = lock(&self.settings).value(spec.name());
        value.unwrap_or_else(|| lock(&self.stats).structure().to_value())
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            lock(&self.settings).set_value(spec.name(), value);
        }
    }
}

impl GstObjectImpl for OrtInference {}

impl ElementImpl for OrtInference {
    gstnmsfilter::element_metadata!(
        "ONNX Runtime inference",
        "Filter/Analyzer/Video",
        "Runs an ONNX model on video frames with ONNX Runtime, on the CPU or an NVIDIA GPU, and \
                 attaches its raw output tensors, which stay in the GPU's memory"
    );

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
            pad_templates(&caps, &caps)
        });
        &TEMPLATES
    }
}

/// Caps with all formats of the running GStreamer.
fn any_format() -> gst_video::VideoCapsBuilder<gst::caps::NoFeature> {
    gst_video::VideoCapsBuilder::new().format_list(raw_formats())
}
