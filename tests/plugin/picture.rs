// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of pipelines that read, scale, record and draw pictures.

use std::path::{Path, PathBuf};

use gst::prelude::*;

use crate::python::{self, Picture};
use crate::stock::StockModel;
use crate::support::scratch::Scratch;
use crate::support::skip::skip;
use crate::support::{data, pipeline};

/// Returns elements that read a picture.
pub fn picture(file: &str) -> Option<String> {
    let file = data::path(file)?;
    let decoder = match file.extension()?.to_str()? {
        "png" => "pngdec",
        _ => "jpegdec",
    };
    Some(format!("filesrc location={} ! {decoder} ! videoconvert", file.display()))
}

/// Returns elements that scale to the size of the model's input.
pub fn scaled(model: &StockModel, borders: bool) -> String {
    let [w, h] = model.size;
    format!(
        "videoscale add-borders={borders}
           ! video/x-raw,format=RGB,width={w},height={h},pixel-aspect-ratio=1/1"
    )
}

/// Returns elements that draw the regions and write the picture to a file, for inspection.
pub fn drawn(name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.png"));
    format!(
        "roioverlay ! videoconvert ! pngenc ! multifilesink max-files=1 location={}",
        file.display()
    )
}

/// Returns the last picture that these elements output.
pub fn pixels(source: &str) -> Picture {
    let pipeline = pipeline::parse(&format!(
        "{source} ! videoconvert ! video/x-raw,format=RGBA ! fakesink name=out"
    ));
    let sink = pipeline.by_name("out").unwrap();
    let pad = sink.static_pad("sink").unwrap();
    let pictures = pipeline::watch(&pipeline, "out", move |buffer| {
        let caps = pad.current_caps().expect("caps precede buffers");
        let info = gst_video::VideoInfo::from_caps(&caps).unwrap();
        Picture {
            // With four bytes per pixel, rows have no padding.
            rgba: buffer.map_readable().unwrap().to_vec(),
            size: [info.width(), info.height()],
        }
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    let mut pictures = pictures.lock().unwrap();
    pictures.pop().expect("there is a picture")
}

/// A model's outputs for a picture. The files are removed when this is dropped.
pub struct Recording {
    model: &'static StockModel,
    folder: Scratch,
}

impl Recording {
    /// Records the outputs. If something is missing, returns `None` and reports a skip.
    pub fn record(model: &'static StockModel, picture: &Picture) -> Option<Self> {
        let folder = python::record(&data::path(model.file)?, picture, model.range)?;
        Some(Self { model, folder })
    }

    /// Returns the files, one per output.
    pub fn files(&self) -> Vec<PathBuf> {
        let file = |[output, _]: &[&str; 2]| self.folder.join(format!("{output}.npy"));
        self.model.outputs.iter().map(file).collect()
    }

    /// Returns elements that attach the outputs.
    pub fn replay(&self) -> String {
        let ids = self.model.outputs.iter().map(|[_, id]| id);
        let element = |(id, file): (&&str, PathBuf)| {
            format!("tensorreplay location={} tensor-id={id}", file.display())
        };
        let elements: Vec<String> = ids.zip(self.files()).map(element).collect();
        elements.join(" ! ")
    }
}

/// Returns elements that read an H.264 video. If there is no decoder, returns `None` and reports a
/// skip.
pub fn video(file: &str) -> Option<String> {
    let file = data::path(file)?;
    let decoders = ["avdec_h264", "openh264dec"];
    let has = |element: &&str| gst::ElementFactory::find(element).is_some();
    let decoder = decoders.into_iter().find(has);
    let Some(decoder) = decoder.filter(|_| has(&"h264parse")) else {
        skip(&format!("h264parse and one of {decoders:?}"));
        return None;
    };
    Some(format!(
        "filesrc location={} ! qtdemux ! h264parse ! {decoder} ! videoconvert",
        file.display()
    ))
}
