// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a detector with ONNX Runtime: from a video frame to its raw output tensors.
//!
//! In: a model file, and frames. Out: the model's outputs as tensors to attach, in the memory of the
//! processor that ran the model.
//!
//! ```text
//! frame ─► picture ───────► batch ──► model ─► outputs ─► tensors on the frame's buffer
//!          scaled, RGB,     pictures           from a pool
//!          normalized       of elements        (host or device memory)
//!          \_______________ by the processor that runs the model ___/
//! ```
//!
//! [`library`] finds ONNX Runtime, [`provider`] makes sessions, [`model`] has a model's inputs and
//! outputs, [`picture`] and [`pictures`] make its input, [`session`] runs it (`trial` first), [`outputs`] has the memory of its results,
//! and with [`instance`] several elements share it. `frames_run` is a run for several frames on one buffer.

pub(crate) mod debug_category;
pub mod error;
#[cfg(feature = "v1_28")]
pub mod frames_run;
pub mod instance;
pub mod library;
pub mod model;
pub mod outputs;
pub mod picture;
pub mod pictures;
pub mod provider;
pub mod session;
mod trial;

use std::path::PathBuf;
use std::time::Duration;

use error::InferenceError;
#[cfg(feature = "v1_28")]
use frames_run::FramesRun;
use gstnmsfilter::input::custom_meta::NewTensor;
use instance::{Instance, Member, Run};
use model::Overrides;
use nmsfilter_core::geometry::Letterbox;
use pictures::Pictures;
use provider::Provider;
use session::{InputMemory, OpenModel};

/// What to run.
#[derive(Clone, Debug, PartialEq)]
pub struct InferenceOptions {
    /// The elements of one process with the same id share the model.
    pub instance_id: Option<String>,
    /// ONNX Runtime's library, or a folder that has it; `None` to search.
    pub library: Option<PathBuf>,
    /// The model file.
    pub model: PathBuf,
    /// What the user sets of the model's input.
    pub overrides: Overrides,
    /// How frames are fitted into the model's input.
    pub letterbox: Letterbox,
    /// The names of classes; `None` to take those of the model.
    pub labels: Option<Vec<String>>,
    /// The number of the GPU.
    pub device: u32,
    /// Whether runs are CUDA graphs.
    pub cuda_graph: CudaGraph,
    /// The number of pictures of a run; `None` for that of the model, or 1 if it has none.
    pub batch: Option<usize>,
    /// How long a picture waits for others of its batch.
    pub batch_timeout: Duration,
}

impl InferenceOptions {
    /// The properties in which `self` and `other` differ.
    fn differing(&self, other: &Self) -> String {
        let (a, b) = (&self.overrides, &other.overrides);
        let differing = [
            ("library", self.library != other.library),
            ("model", self.model != other.model),
            ("input-width", a.size[0] != b.size[0]),
            ("input-height", a.size[1] != b.size[1]),
            ("input-layout", a.layout != b.layout),
            ("channel-order", a.order != b.order),
            ("range", a.range != b.range),
            ("mean", a.mean != b.mean),
            ("std", a.std != b.std),
            ("letterbox", self.letterbox != other.letterbox),
            ("label-file", self.labels != other.labels),
            ("cuda-device-id", self.device != other.device),
            ("cuda-graph", self.cuda_graph != other.cuda_graph),
            ("batch-size", self.batch != other.batch),
            ("batch-timeout", self.batch_timeout != other.batch_timeout),
        ];
        let names = differing.into_iter().filter_map(|(name, differs)| differs.then_some(name));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Whether a model on a GPU runs as the launch of a CUDA graph, by which the host submits all its kernels at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaGraph {
    /// If the model can.
    #[default]
    Auto,
    /// Or an error.
    On,
    /// No.
    Off,
}

/// A model that runs for an element.
pub struct Inference {
    pictures: Pictures,
    member: Member,
    /// Of the last frame.
    pub last_run: Run,
}

impl Inference {
    /// Opens the model on `provider`, and runs it once; or shares it with the elements that have the same
    /// [`instance_id`](InferenceOptions::instance_id).
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used, or other elements share it with other options.
    pub fn open(options: &InferenceOptions, provider: Provider) -> Result<Self, InferenceError> {
        let member = Member::new(&Instance::open(options, provider)?);
        let OpenModel { model, info, input_device, .. } = member.model();
        let pictures = Pictures::new(&model.input, info.clone(), input_device.as_ref())?;
        Ok(Self { pictures, member, last_run: Run::default() })
    }

    /// What is known of the model.
    pub fn model(&self) -> &OpenModel {
        self.member.model()
    }

    /// The bytes that the last run uploaded.
    pub fn uploaded(&self) -> u64 {
        self.pictures.uploaded
    }

    /// Sets the format and size of the following frames.
    ///
    /// # Errors
    /// If frames of this format cannot be converted, or the GPU fails.
    pub fn set_frame(&mut self, frame: &gst_video::VideoInfo) -> Result<(), InferenceError> {
        self.pictures.set_frame(frame)
    }

    /// The stream has ended: the batches of other elements do not wait for a frame, until one comes.
    pub fn pause(&self) {
        self.member.pause();
    }

    /// Runs the model on `frame`, with those of other elements, and attaches the outputs: calls `attach` with the frame
    /// and the tensor of each. On a GPU the run may still be in progress.
    ///
    /// # Errors
    /// If the frame cannot be scaled, or the model fails, or that of `attach`.
    ///
    /// # Panics
    /// If [`set_frame`](Self::set_frame) was not called before.
    pub fn run(
        &mut self,
        frame: &mut gst::BufferRef,
        mut attach: impl FnMut(&mut gst::BufferRef, &NewTensor) -> Result<(), InferenceError>,
    ) -> Result<(), InferenceError> {
        let prepared = self.pictures.prepare(frame)?;
        let mut entry = self.member.enter(1)?;
        // SAFETY: the input is that of the model, which `pictures` was made for. The entry is of this element, and its run
        // begins after `Entry::run` is called.
        let written = unsafe { self.pictures.write(prepared, entry.input, entry.first) }?;
        self.last_run = entry.run(written)?;
        let description = self.pictures.description();
        entry.tensors(0, description.as_ref(), |tensor| attach(frame, tensor))
    }

    /// A run for as many of `wanted` frames as the batch has room for, at least one.
    ///
    /// # Errors
    /// If the model has failed before.
    #[cfg(feature = "v1_28")]
    pub fn frames_run(&mut self, wanted: usize) -> Result<FramesRun<'_>, InferenceError> {
        let Self { pictures, member, last_run } = self;
        let entry = member.enter(wanted)?;
        Ok(FramesRun { pictures, entry, last_run, written: None, descriptions: Vec::new() })
    }
}
