// SPDX-License-Identifier: MIT OR Apache-2.0
//! GStreamer's own inference element and tensor decoders.

pub mod decoders;

use std::path::{Path, PathBuf};

use crate::support::data;
use crate::support::scratch::Scratch;

/// A detector, and the settings that GStreamer's elements need for it.
pub struct StockModel {
    /// File of the model in the folder of inputs.
    pub file: &'static str,
    /// Decoder that reads the outputs.
    pub decoder: &'static str,
    /// Size of the model's input, in pixels.
    pub size: [u32; 2],
    /// Values of black and white in the model's input.
    pub range: [f32; 2],
    /// Names of the outputs, and their ids in GStreamer.
    pub outputs: &'static [[&'static str; 2]],
}

pub static ULTRAFACE: StockModel = StockModel {
    file: "data/models/version-RFB-640.onnx",
    decoder: "ultraface",
    size: [640, 480],
    range: [-1.0, 1.0],
    outputs: &[
        ["scores", "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores"],
        ["boxes", "ssd-mobilenet-v1-variant-1-out-boxes"],
    ],
};

pub static YOLOV8: StockModel = StockModel {
    file: "data/models/yolov8n_int8_640.onnx",
    decoder: "yolov8",
    size: [640, 640],
    range: [0.0, 1.0],
    outputs: &[["output0", "yolo-v8-out"]],
};

/// A model in half precision, which `onnxinference` does not support. Its input can have any size.
pub static YOLOV5_HALF: StockModel = StockModel {
    file: "data/models/yolov5n_fp16.onnx",
    decoder: "yolov5",
    size: [640, 640],
    range: [0.0, 1.0],
    outputs: &[["output", "yolo-v5-out"]],
};

/// Returns an `onnxinference` with this model. Returns `None` if the element or the model is
/// missing, and reports a skip if it is the model.
pub fn onnxinference(model: &StockModel) -> Option<String> {
    let file = data::path(model.file)?;
    let factory = gst::ElementFactory::find("onnxinference")?;
    let element = factory.create().build().unwrap();
    // From GStreamer 1.28 on, a .modelinfo file beside the model has these settings.
    if !gst::prelude::ObjectExt::has_property(&element, "input-image-format") {
        return Some(format!("onnxinference model-file={}", file.display()));
    }
    let [low, high] = model.range;
    let scale = 255.0 / (high - low);
    Some(format!(
        "onnxinference model-file={} input-image-format=chw input-tensor-scale={scale} \
         input-tensor-offset={}",
        with_ids(&file, model).display(),
        low * scale,
    ))
}

/// Copies the model, and adds the ids of its outputs to `metadata_props`, where GStreamer 1.26
/// reads them.
fn with_ids(file: &Path, model: &StockModel) -> PathBuf {
    let mut bytes = std::fs::read(file).unwrap();
    // Fields can be appended to a Protocol Buffers message.
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).ok().filter(|&length| length < 128);
        let length = length.expect("one byte holds the length");
        [&[number << 3 | 2, length], content].concat()
    };
    for [output, id] in model.outputs {
        let entry = [field(1, output.as_bytes()), field(2, id.as_bytes())].concat();
        bytes.extend(field(14, &entry));
    }
    let name = file.file_name().expect("it is a file");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Other tests may use the file concurrently, so it is written under another name and renamed
    // when it is complete.
    let folder = Scratch::new();
    let unfinished = folder.join(name);
    std::fs::write(&unfinished, bytes).unwrap();
    std::fs::rename(unfinished, &copy).unwrap();
    copy
}
