// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipelines with `ortinference`: registration, model files, and the tensors that it attaches.

use std::path::{Path, PathBuf};
use std::sync::Once;

use gst::prelude::*;
use gstnmsfilter::input::Tensors;
use nmsfilter_core::tensor::Elements;

use crate::support::onnx::OnnxModel;
use crate::support::pipeline;
use crate::support::scratch::{Scratch, ScratchFile};
use crate::support::skip::skip;

/// Initializes GStreamer and registers the elements, once.
pub fn init() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        pipeline::init();
        gstonnxruntime::plugin_register_static().unwrap();
    });
}

/// Returns the path of ONNX Runtime's library.
pub fn library() -> Option<PathBuf> {
    std::env::var_os("ORT_DYLIB_PATH")
        .map(PathBuf::from)
        .filter(|path| !path.as_os_str().is_empty())
}

/// Initializes like [`init`]. If there is no ONNX Runtime library, returns false and reports a
/// skip.
pub fn has_onnx_runtime() -> bool {
    init();
    let found = library().is_some();
    if !found {
        skip("ONNX Runtime: ORT_DYLIB_PATH is not set");
    }
    found
}

/// Writes `model` to a file, which is removed when the result is dropped.
pub fn file(model: &OnnxModel) -> ScratchFile {
    ScratchFile::new("onnx", &model.to_bytes())
}

/// Writes the bytes of a model to a file, which is removed when the result is dropped.
pub fn file_of_bytes(model: &[u8]) -> ScratchFile {
    ScratchFile::new("onnx", model)
}

/// A folder with a model file and its `.modelinfo` file.
pub struct WithInfo {
    _folder: Scratch,
    pub path: PathBuf,
}

impl WithInfo {
    pub fn new(model: &OnnxModel, info: &str) -> Self {
        let folder = Scratch::new();
        let path = folder.join("model.onnx");
        model.write(&path);
        std::fs::write(folder.join("model.onnx.modelinfo"), info).unwrap();
        Self { _folder: folder, path }
    }
}

/// Elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    F32(Vec<f32>),
    F16(Vec<half::f16>),
    /// Elements of any integer type.
    Integers(Vec<i64>),
}

/// A tensor that was attached to a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub id: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

impl Tensor {
    /// Returns the elements, which must be in single precision.
    pub fn f32(&self) -> &[f32] {
        match &self.values {
            Values::F32(values) => values,
            other => panic!("{} is {other:?}", self.id),
        }
    }
}

/// Returns the tensors on `buffer`, after copying them from device memory if necessary.
pub fn tensors(buffer: &gst::BufferRef) -> Vec<Tensor> {
    let attached = Tensors::of(buffer).unwrap();
    let views = attached.views();
    let tensor = |view: &nmsfilter_core::tensor::TensorView<'_>| Tensor {
        id: view.id.to_owned(),
        shape: view.shape.to_vec(),
        values: match view.elements().unwrap() {
            Elements::F32(values) => Values::F32(values.to_vec()),
            Elements::F16(values) => Values::F16(values.to_vec()),
            Elements::I8(values) => Values::Integers(values.iter().map(|&v| v.into()).collect()),
            Elements::U8(values) => Values::Integers(values.iter().map(|&v| v.into()).collect()),
            Elements::I32(values) => Values::Integers(values.iter().map(|&v| v.into()).collect()),
            Elements::I64(values) => Values::Integers(values.to_vec()),
            other => panic!("expected elements that can be read, got {other:?}"),
        },
    };
    views.iter().map(tensor).collect()
}

/// Returns the ids of the tensors on `buffer`.
pub fn ids(buffer: &gst::BufferRef) -> Vec<String> {
    tensors(buffer).into_iter().map(|tensor| tensor.id).collect()
}

/// Returns the field `name` of the `stats` of the element `inference`.
pub fn stat(pipeline: &gst::Pipeline, name: &str) -> u64 {
    stats(pipeline).get(name).unwrap()
}

/// Returns the `stats` of the element `inference`.
pub fn stats(pipeline: &gst::Pipeline) -> gst::Structure {
    pipeline.by_name("inference").expect("it has this name").property("stats")
}

/// Returns the description of an `ortinference` that is named `inference`, with this model and
/// further properties.
pub fn inference(model: &Path, properties: &str) -> String {
    format!("ortinference name=inference model={} {properties}", model.display())
}

/// Runs the pipeline. Returns the tensors on each buffer that leaves the element `inference`.
pub fn run_pipeline(pipeline: &gst::Pipeline) -> Vec<Vec<Tensor>> {
    let seen = pipeline::watch(pipeline, "inference", tensors);
    let ended = pipeline::run(pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(ended.warnings, [""; 0]);
    std::mem::take(&mut *seen.lock().unwrap())
}
