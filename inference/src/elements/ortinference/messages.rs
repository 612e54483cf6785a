// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages of the element: warnings, the open model, and statistics.
//!
//! In: options, the open model, errors, and counts. Out: messages on the bus.

use gst::prelude::*;
use gst::subclass::prelude::*;

use super::imp::OrtInference;
use super::state::State;
use crate::inference::CAT;
use crate::inference::error::InferenceError;
use crate::inference::session::OpenModel;
use gstnmsfilter::elements::lock;

/// The batch size above which the element warns if the model runs on the CPU. A CPU is not expected to run a model
/// for more streams than this.
pub(super) const MANY_PICTURES: usize = 32;

impl OrtInference {
    /// Warns of settings or a model that are probably a mistake.
    pub(super) fn warn(&self, notice: &str) {
        gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{notice}"));
    }

    pub(super) fn warn_of_cpu(&self, why: &InferenceError) {
        gst::element_imp_warning!(
            self,
            gst::LibraryError::Failed,
            ("{why}; the model runs on the CPU"),
            ["set provider=cpu to avoid this warning"]
        );
    }

    /// Posts a message that says which model runs on which provider.
    pub(super) fn post_model(&self, state: &State) {
        let OpenModel { model, provider, provider_device, library, has_graph, .. } =
            state.inference.member.model();
        let input = &model.input;
        let signature = model.signature.map(|it| it.name);
        gst::info!(
            CAT,
            imp = self,
            "{:?} on {}{} with {library:?}: signature {}, {input:?}, {} labels, outputs {:?}",
            state.options.model,
            provider.name(),
            if *has_graph { " as a CUDA graph" } else { "" },
            signature.unwrap_or("none"),
            model.info.labels.len(),
            model.outputs,
        );
        let structure = gst::Structure::builder("ortinference-model")
            .field("model", state.options.model.display().to_string())
            .field("provider", provider.name())
            .field_if_some(
                "provider-device",
                provider_device.as_ref().map(|device| &*device.description),
            )
            .field("cuda-graph", *has_graph)
            .field("library", library.display().to_string())
            .field("width", input.size[0])
            .field("height", input.size[1])
            .field("batch", input.batch as u32)
            .field("labels", model.info.labels.len() as u32)
            .field_if_some("signature", signature)
            .field("outputs", gst::Array::new(model.outputs.iter().map(|output| &*output.id)))
            .build();
        self.post(structure);
        if !model.info.signatures.is_empty() {
            self.warn(&format!(
                "the model has the signatures of several exporters, of which none is taken: {}; set signature of \
                 ortinference to the right one",
                model.info.signatures.join(", ")
            ));
        }
        if let (Some(signature), true) = (signature, model.pixels_vary) {
            self.warn(&format!(
                "models with the signature {signature} differ in the numbers of pixels, which are taken as from 0 to 1 \
                 (bytes: 255), red first: set channel-order, range, mean and std of ortinference as in the model's \
                 configuration"
            ));
        }
        let unread = model.outputs.iter().filter(|it| it.pattern.is_some_and(|it| it.is_unread));
        let outputs: Vec<&str> = unread.map(|output| &*output.name).collect();
        if let (Some(signature), false) = (signature, outputs.is_empty()) {
            self.warn(&format!(
                "models with the signature {signature} have masks or keypoints in the outputs {}, which are not read: there \
                 are boxes only",
                outputs.join(", ")
            ));
        }
        if !model.left_out.is_empty() {
            self.warn(&format!(
                "outputs of the model cannot be attached, so that nmsfilter does not see them: {}; if they have boxes, \
                 scores or classes, export them as f32",
                model.left_out.join(", ")
            ));
        }
        if let Some(device) = provider_device.as_ref().filter(|device| !device.runs_first_node) {
            self.warn(&format!(
                "provider=plugin: the first node of the model runs on the CPU instead of {}; the provider may not support \
                 the model: see ONNX Runtime's messages with GST_DEBUG=ortinference:4, or set provider=cpu",
                device.description
            ));
        }
    }

    pub(super) fn post_stats(&self) {
        let stats = lock(&self.stats);
        if !stats.is_empty() {
            let structure = stats.structure();
            drop(stats);
            gst::info!(CAT, imp = self, "{structure}");
            self.post(structure);
        }
    }

    /// Asks the pipeline to distribute the latency, which has changed.
    pub(super) fn post_latency(&self) {
        let element = self.obj();
        let latency = lock(&self.latency).time();
        gst::debug!(CAT, imp = self, "latency {latency}");
        // Posting fails if the element is not in a pipeline and therefore has no bus.
        let _ = element.post_message(gst::message::Latency::builder().src(&*element).build());
    }

    fn post(&self, structure: gst::Structure) {
        let element = self.obj();
        let message = gst::message::Element::builder(structure).src(&*element).build();
        // Posting fails if the element is not in a pipeline and therefore has no bus.
        let _ = element.post_message(message);
    }
}
