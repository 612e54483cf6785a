// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a detector with ONNX Runtime: from a video frame to the model's raw output tensors.
//!
//! In: a model file, and frames. Out: the model's outputs as tensors to attach, in the memory of the processor that
//! ran the model.
//!
//! ```text
//! frame ─► picture ───────► batch ──► model ─► outputs ─► tensors on the frame's buffer
//!          scaled, RGB,     pictures           from a pool
//!          normalized       of elements        (host or device memory)
//!          \_______________ by the processor that runs the model ___/
//! ```
//!
//! [`library`] loads ONNX Runtime. [`provider`] creates sessions, with [`plugin_provider`] and [`provider_options`].
//! [`model`] describes a model's inputs and outputs. [`picture`] and [`pictures`] make the model's input. [`session`] runs
//! the model, after `trial` has tried it once; [`outputs`] manages the memory of the results. With [`instance`], several
//! elements share a model.

pub mod error;
pub mod instance;
pub mod library;
mod missing_library;
pub mod model;
pub mod outputs;
pub mod picture;
pub mod pictures;
pub mod plugin_provider;
pub mod provider;
pub mod provider_options;
pub mod session;
mod trial;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use error::InferenceError;
use instance::{BatchEntry, Instance, Interrupt, Member, Run};
use model::Overrides;
use pictures::{Pictures, Prepared};
use provider::Provider;
use provider_options::ProviderOptions;
use session::{InputMemory, OpenModel};

// The category of the element, and of all modules in this folder.
gstnmsfilter::debug_category!(pub(crate) CAT, "ortinference", "Inference with ONNX Runtime");

/// The model to run, and how to run it. The default names no model file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InferenceOptions {
    /// The id of the instance. Elements of one process with equal ids share the model.
    pub instance_id: Option<String>,
    /// ONNX Runtime's library, or a folder that contains it; `None` to search for it.
    pub library: Option<PathBuf>,
    /// The model file.
    pub model: PathBuf,
    /// The properties of the model's input that the user has set.
    pub overrides: Overrides,
    /// The path of the library, for [`Provider::Plugin`].
    pub provider_library: Option<PathBuf>,
    /// The library's device: `cpu`, `gpu` or `npu`, and the number of the device of this kind, as in `gpu:1`; `None` for the
    /// first device that the library offers.
    pub provider_device: Option<String>,
    /// Options of the provider.
    pub provider_options: ProviderOptions,
    /// The number of threads for nodes on the CPU; `None` for one per core.
    pub threads: Option<usize>,
    /// The index of the GPU.
    pub device: u32,
    /// The use of CUDA graphs.
    pub cuda_graph: CudaGraph,
    /// The number of pictures per run. `None` for the model's batch, or for 1 if the model's batch is dynamic.
    pub batch: Option<usize>,
    /// The time that a picture waits for other pictures of its batch.
    pub batch_timeout: Duration,
}

impl InferenceOptions {
    /// Returns the names of the properties in which `self` and `other` differ.
    fn differing(&self, other: &Self) -> String {
        let (a, b) = (&self.overrides, &other.overrides);
        let differing = [
            ("library", self.library != other.library),
            ("model", self.model != other.model),
            ("provider-library", self.provider_library != other.provider_library),
            ("provider-device", self.provider_device != other.provider_device),
            ("provider-options", self.provider_options != other.provider_options),
            ("threads", self.threads != other.threads),
            ("input-width", a.size[0] != b.size[0]),
            ("input-height", a.size[1] != b.size[1]),
            ("input-layout", a.layout != b.layout),
            ("channel-order", a.order != b.order),
            ("range", a.ranges != b.ranges),
            ("mean", a.mean != b.mean),
            ("std", a.std != b.std),
            ("inputs", a.inputs != b.inputs),
            ("signature", a.signature != b.signature),
            ("letterbox", a.letterbox != b.letterbox),
            ("label-file", a.labels != b.labels),
            ("cuda-device-id", self.device != other.device),
            ("cuda-graph", self.cuda_graph != other.cuda_graph),
            ("batch-size", self.batch != other.batch),
            ("batch-timeout", self.batch_timeout != other.batch_timeout),
        ];
        let names = differing.into_iter().filter_map(|(name, differs)| differs.then_some(name));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The use of CUDA graphs on a GPU. With a graph, the host then submits all kernels of a run with a single launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaGraph {
    /// Use a graph if the model can run as one.
    #[default]
    Auto,
    /// Use a graph, or fail.
    On,
    /// Do not use a graph.
    Off,
}

/// A model that an element runs.
pub struct Inference {
    /// The conversion of frames to pictures.
    pub pictures: Pictures,
    /// The model, which elements can share.
    pub member: Member,
    /// The last run of the last frame.
    pub last_run: Run,
    /// For each region of the last frame, the number of pictures in its run, added up.
    pub batched: usize,
}

impl Inference {
    /// Opens the model on `provider` and runs it once, or shares it with the elements that have this
    /// [`instance_id`](InferenceOptions::instance_id). `interrupt` ends the waits for them.
    ///
    /// # Errors
    /// If the library, the provider, or the model cannot be used, or if other elements share the model with other
    /// options.
    pub fn open(
        options: &InferenceOptions,
        provider: Provider,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Self, InferenceError> {
        let member = Member::new(&Instance::open(options, provider)?, interrupt);
        let OpenModel { model, input_device, .. } = member.model();
        let pictures = Pictures::new(&model.input, model.info.clone(), input_device.as_ref())?;
        Ok(Self { pictures, member, last_run: Run::default(), batched: 0 })
    }
}

/// Runs the model on `regions` regions of a frame. Each run takes as many regions as its batch has room for. Returns the
/// runs with their entries, which keep the tensors until they are attached. On a GPU, the runs may still be in progress
/// when this function returns.
///
/// # Errors
/// If the frame cannot be scaled, the model fails, or the interrupt ends a wait.
pub fn run_regions<'m>(
    pictures: &mut Pictures,
    member: &'m Member,
    prepared: &Prepared<'_>,
    regions: usize,
) -> Result<Vec<(Run, BatchEntry<'m>)>, InferenceError> {
    let mut entries = Vec::with_capacity(1);
    let mut done = 0;
    while done < regions {
        let mut entry = member.enter(regions - done, regions)?;
        let chosen = done..done + entry.pictures;
        // SAFETY: `pictures` was made for the model that this input belongs to. The places belong to this entry, and
        // its run does not begin before `BatchEntry::run` is called.
        let written = unsafe { pictures.write(prepared, chosen, entry.input, entry.first) }?;
        let run = entry.run(written)?;
        done += entry.pictures;
        entries.push((run, entry));
    }
    Ok(entries)
}
