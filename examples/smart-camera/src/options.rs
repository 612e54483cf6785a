// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of the program.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use gst::glib;
use lexopt::prelude::*;

use crate::Error;
use crate::report::Zone;

/// What `--help` prints.
pub const HELP: &str = "\
Counts what a detector finds in zones of a camera's picture: one JSON line per frame.

usage: smart-camera SOURCE [--model FILE] [OPTIONS]

SOURCE
  /dev/video0           a camera
  rtsp://...            a network camera, or any other URI
  FILE                  a video or a picture; the program ends with it
  test                  a drawn crowd with the tensors of a detector, without --model
  bin:ELEMENTS          elements as for gst-launch-1.0, for example
                        'bin:v4l2src ! image/jpeg,width=1280,height=720 ! jpegdec'

Model
  --model FILE          a detector in the ONNX format
  --inference PROPS     properties of ortinference, for example 'provider=cpu range=-1,1'
  --nms PROPS           properties of nmsfilter, for example 'score-threshold=0.5 decoder=yolov5'
  --labels A,B          only these labels, which are then in each line, with 0 too

Report
  --zone NAME=X,Y,W,H   a part of the frame, in numbers from 0 to 1; may be repeated. Counted are
                        the detections with their center in it. Without zones: the whole frame
  --frames N            end after N lines

Pictures
  --preview             a window with the detections
  --record FILE.mkv     a video with the detections (JPEG in Matroska)

Source that ends or fails (a camera is always started again)
  --loop                start a file again, too
  --live                play a file at its own speed, and leave out frames as with a camera
  --timeout SECONDS     start a camera again if it gives no frame for so long (10)

Standard error has warnings, and why a source is started again. Exit status: 0 at the end of the
source and after SIGINT or SIGTERM, 1 for an error, which is the last but one line there.";

/// The arguments.
pub struct Options {
    pub source: SourceName,
    pub model: Option<String>,
    pub inference: String,
    pub nms: String,
    pub labels: Option<String>,
    pub zones: Vec<Zone>,
    pub frames: Option<u64>,
    pub preview: bool,
    pub record: Option<String>,
    pub repeat: bool,
    pub live: bool,
    pub timeout: Duration,
}

/// A source as the user names it.
pub struct SourceName {
    name: String,
    pub kind: Kind,
}

/// Which elements give the frames.
pub enum Kind {
    Test,
    /// The path of a video device.
    Camera(String),
    Uri(String),
    /// Elements in the notation of `gst-launch-1.0`.
    Elements(String),
}

impl Options {
    /// Whether frames come at their own speed, so that they cannot wait.
    pub fn is_live(&self) -> bool {
        self.live || !self.source.ends()
    }

    /// Whether a source that ends or fails is started again.
    pub fn restarts(&self) -> bool {
        self.repeat || !self.source.ends()
    }
}

impl SourceName {
    fn new(name: String) -> Result<Self, Error> {
        let kind = match name.split_once(':') {
            _ if name == "test" => Kind::Test,
            _ if name.starts_with("/dev/") => Kind::Camera(name.clone()),
            Some(("bin", elements)) => Kind::Elements(elements.to_owned()),
            Some((_, rest)) if rest.starts_with("//") => Kind::Uri(name.clone()),
            _ => Kind::Uri(
                glib::filename_to_uri(std::path::absolute(Path::new(&name))?, None)?.into(),
            ),
        };
        Ok(Self { name, kind })
    }

    /// Whether the source is a file, which has an end.
    fn ends(&self) -> bool {
        let Kind::Uri(uri) = &self.kind else {
            return false;
        };
        ["file:", "http:", "https:"].iter().any(|scheme| uri.starts_with(scheme))
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(formatter)
    }
}

/// The arguments of this process; `None` if `--help` is one of them.
pub fn parse() -> Result<Option<Options>, Error> {
    let mut source = None;
    let mut options = Options {
        source: SourceName { name: String::new(), kind: Kind::Test },
        model: None,
        inference: String::new(),
        nms: String::new(),
        labels: None,
        zones: Vec::new(),
        frames: None,
        preview: false,
        record: None,
        repeat: false,
        live: false,
        timeout: Duration::from_secs(10),
    };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("model") => options.model = Some(arguments.value()?.string()?),
            Long("inference") => options.inference = arguments.value()?.string()?,
            Long("nms") => options.nms = arguments.value()?.string()?,
            Long("labels") => options.labels = Some(arguments.value()?.string()?),
            Long("zone") => options.zones.push(arguments.value()?.string()?.parse()?),
            Long("frames") => options.frames = Some(arguments.value()?.parse()?),
            Long("preview") => options.preview = true,
            Long("record") => options.record = Some(arguments.value()?.string()?),
            Long("loop") => options.repeat = true,
            Long("live") => options.live = true,
            Long("timeout") => {
                options.timeout = Duration::try_from_secs_f64(arguments.value()?.parse()?)?;
            }
            Value(name) if source.is_none() => source = Some(name.string()?),
            _ => return Err(argument.unexpected().into()),
        }
    }
    options.source = SourceName::new(source.ok_or("no SOURCE; --help lists the arguments")?)?;
    match (&options.source.kind, &options.model) {
        (Kind::Test, Some(_)) => {
            Err("the source test has tensors of its own: leave --model out".into())
        }
        (Kind::Camera(_) | Kind::Uri(_), None) => Err("no --model FILE".into()),
        _ => Ok(Some(options)),
    }
}
