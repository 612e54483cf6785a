//! Pieces of pipelines around pictures: read, scale, record, draw.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::Path;

use gst::prelude::*;

use super::python::{self, Picture};
use super::stock::Model;
use super::{data, pipeline};

/// Elements that read a picture.
pub fn picture(file: &str) -> Option<String> {
    let file = data::path(file)?;
    let decoder = match file.extension()?.to_str()? {
        "png" => "pngdec",
        _ => "jpegdec",
    };
    Some(format!(
        "filesrc location={} ! {decoder} ! videoconvert",
        file.display()
    ))
}

/// Elements that scale to the model's input.
pub fn scaled(model: &Model, borders: bool) -> String {
    let [w, h] = model.size;
    format!(
        "videoscale add-borders={borders}
           ! video/x-raw,format=RGB,width={w},height={h},pixel-aspect-ratio=1/1"
    )
}

/// Elements that draw what was found, for people to look at.
pub fn drawn(name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.png"));
    format!(
        "roioverlay ! videoconvert ! pngenc ! multifilesink max-files=1 location={}",
        file.display()
    )
}

/// The picture that these elements give.
pub fn pixels(source: &str) -> Picture {
    let pipeline = pipeline::parse(&format!(
        "{source} ! videoconvert ! video/x-raw,format=RGBA ! fakesink name=out"
    ));
    let sink = pipeline.by_name("out").unwrap();
    let pad = sink.static_pad("sink").unwrap();
    let pictures = pipeline::watch(&pipeline, "out", move |buffer| {
        let caps = pad.current_caps().expect("caps come before buffers");
        let info = gst_video::VideoInfo::from_caps(&caps).unwrap();
        Picture {
            // Rows of four bytes per pixel have no padding.
            rgba: buffer.map_readable().unwrap().to_vec(),
            size: [info.width(), info.height()],
        }
    });
    assert_eq!(pipeline::run(&pipeline).error, None);
    let mut pictures = pictures.lock().unwrap();
    pictures.pop().expect("there is a picture")
}

/// Elements that attach what `record.py` made of the picture.
pub fn replay(model: &Model, picture: &Picture) -> Option<String> {
    let folder = python::record(&data::path(model.file)?, picture, model.range)?;
    let elements = model.outputs.iter().map(|[output, id]| {
        let file = folder.join(format!("{output}.npy"));
        format!("tensorreplay location={} tensor-id={id}", file.display())
    });
    Some(elements.collect::<Vec<_>>().join(" ! "))
}

/// Elements that read an H.264 video, or `None` (said on the terminal) where none decodes it.
pub fn video(file: &str) -> Option<String> {
    let file = data::path(file)?;
    let decoders = ["avdec_h264", "openh264dec"];
    let found = |decoder: &&str| gst::ElementFactory::find(decoder).is_some();
    let Some(decoder) = decoders.into_iter().find(found) else {
        eprintln!("SKIPPED: no element decodes H.264; install one of {decoders:?}");
        return None;
    };
    Some(format!(
        "filesrc location={} ! qtdemux ! h264parse ! {decoder} ! videoconvert",
        file.display()
    ))
}
