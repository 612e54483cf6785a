// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command-line arguments of the program.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::crossings::Line;
use crate::report::Zone;
use crate::{Error, tracker, view};

/// The text that `--help` prints.
pub const HELP: &str = "\
Counts the objects that a detector finds in zones of a camera's picture, and the tracks that cross
lines. Prints a JSON line per frame.

usage: smart-camera SOURCE [--model FILE] [OPTIONS]

SOURCE
  /dev/video0           a camera
  rtsp://...            a network camera, or any other URI
  FILE                  a video or a picture; the program ends at its end
  test                  a drawn crowd with a detector's tensors; it needs no --model
  bin:ELEMENTS          elements in the notation of gst-launch-1.0, for example
                        'bin:v4l2src ! image/jpeg,width=1280,height=720 ! jpegdec'

Model
  --model FILE          a detector in the ONNX format
  --inference PROPS     properties of ortinference, for example 'provider=cpu range=-1,1'
  --nms PROPS           properties of nmsfilter, for example 'score-threshold=0.5 decoder=yolov5'
  --labels A,B          count only these labels. Each line has all of them, even with the count 0.
                        To select classes by number, use --nms classes=0,5

Report
  --zone NAME=X,Y,W,H   a part of the frame, in numbers from 0 to 1, in which detections are counted
                        if their center is in it. Can be repeated. Default: the whole frame
  --line NAME=X1,Y1,X2,Y2
                        two points, in numbers from 0 to 1. Tracks that cross the line between them
                        are counted: left and right, or up and down. Can be repeated
  --tracker ELEMENTS    elements behind nmsfilter that track objects, for example 'objecttracker
                        algorithm=ocsort'. Default: objecttracker if there is a --line
  --frames N            end after N lines, at least 1
  --output WHERE        append the lines to this file, or send them to tcp://HOST:PORT, instead of
                        writing them to standard output

Pictures
  --preview             show a window with the detections
  --view ADDRESS:PORT   serve a page with the live picture and the counts, for example at
                        127.0.0.1:8080. An address that other machines can reach needs --token
  --token FILE          the password of the page, at least 16 characters, for any user name
  --record FILE.mkv     write a video with the detections (JPEG in Matroska). If the frames change
                        their size, it goes on in FILE-2.mkv, or the next that does not exist

Sources that end or fail (a camera is restarted, unless its failure is permanent)
  --loop                restart a file when it ends
  --timeout SECONDS     restart a camera if it gives no frame for this time (default: 10)

Warnings, and reasons why a source is restarted, are printed on standard error. The exit status is 0
at the end of the source and after SIGINT or SIGTERM. It is 1 after an error, which is the last line
on standard error.";

/// The arguments, which [`HELP`] explains.
#[derive(Default)]
pub struct Options {
    pub source: String,
    pub model: Option<String>,
    pub inference: String,
    pub nms: String,
    pub labels: Option<String>,
    pub zones: Vec<Zone>,
    pub tracker: Option<String>,
    pub lines: Vec<Line>,
    pub frames: Option<u64>,
    pub output: Option<String>,
    pub preview: bool,
    pub view: Option<SocketAddr>,
    pub token: Option<String>,
    pub record: Option<String>,
    pub repeat: bool,
    pub timeout: Duration,
}

impl Options {
    /// Returns true if frames arrive at their own speed and cannot wait. This is true for all
    /// sources except files, which have an end.
    pub fn is_live(&self) -> bool {
        let by_name = self.source == "test"
            || self.source.starts_with("/dev/")
            || self.source.starts_with("bin:");
        let scheme = self.source.split_once("://").map(|(scheme, _)| scheme);
        by_name || scheme.is_some_and(|scheme| !["file", "http", "https"].contains(&scheme))
    }

    /// Returns true if a source is restarted after it ends or fails.
    pub fn restarts(&self) -> bool {
        self.repeat || self.is_live()
    }

    /// Returns the entries of `--labels`.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let entries = self.labels.iter().flat_map(|labels| labels.split(','));
        entries.map(str::trim).filter(|label| !label.is_empty())
    }

    /// Checks combinations of arguments.
    fn check(&self) -> Result<(), Error> {
        view::check(self.view, self.token.as_deref())?;
        check_names("zone", self.zones.iter().map(|zone| &*zone.name))?;
        check_names("line", self.lines.iter().map(|line| &*line.name))?;
        if self.labels.is_some() && self.labels().next().is_none() {
            let got = self.labels.as_deref().unwrap_or_default();
            return Err(expected("labels", "at least one label, such as person,bicycle", got));
        }
        // A number would be read as a class number, but the lines have labels.
        let is_number = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(label) = self.labels().find(is_number) {
            let labels = "labels; for classes by number set --nms classes=0,5";
            return Err(expected("labels", labels, label));
        }
        let record = self.record.as_deref().unwrap_or(".mkv");
        if !record.to_ascii_lowercase().ends_with(".mkv") {
            return Err(expected(
                "record",
                "a name that ends in .mkv, since it is Matroska",
                record,
            ));
        }
        Ok(())
    }
}

/// Returns an error if two names are equal.
fn check_names<'a>(option: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(expected(option, "names that differ", name));
        }
    }
    Ok(())
}

/// Returns the error for an option with the invalid value `got`.
fn expected(option: &str, what: &str, got: &str) -> Error {
    format!("--{option}: expected {what}, got {got:?}").into()
}

/// Parses the arguments of this process. Returns `None` if `--help` is one of them.
pub fn parse() -> Result<Option<Options>, Error> {
    let mut options = Options { timeout: Duration::from_secs(10), ..Options::default() };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("model") => options.model = Some(arguments.value()?.string()?),
            Long("inference") => options.inference = arguments.value()?.string()?,
            Long("nms") => options.nms = arguments.value()?.string()?,
            Long("labels") => options.labels = Some(arguments.value()?.string()?),
            Long("zone") => options.zones.push(arguments.value()?.string()?.parse()?),
            Long("tracker") => options.tracker = Some(arguments.value()?.string()?),
            Long("line") => options.lines.push(arguments.value()?.string()?.parse()?),
            Long("frames") => {
                let value = arguments.value()?.string()?;
                let frames = value.parse().ok().filter(|&frames| frames > 0);
                let wrong = || expected("frames", "a whole number, 1 or more", &value);
                options.frames = Some(frames.ok_or_else(wrong)?);
            }
            Long("output") => options.output = Some(arguments.value()?.string()?),
            Long("preview") => options.preview = true,
            Long("view") => {
                let value = arguments.value()?.string()?;
                let wrong =
                    || expected("view", "an address and a port, such as 127.0.0.1:8080", &value);
                options.view = Some(value.parse().map_err(|_| wrong())?);
            }
            Long("token") => options.token = Some(arguments.value()?.string()?),
            Long("record") => options.record = Some(arguments.value()?.string()?),
            Long("loop") => options.repeat = true,
            Long("timeout") => {
                let value = arguments.value()?.string()?;
                let seconds = value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                let timeout = seconds.filter(|timeout| !timeout.is_zero());
                let wrong = || expected("timeout", "a number of seconds above 0", &value);
                options.timeout = timeout.ok_or_else(wrong)?;
            }
            Value(source) if options.source.is_empty() => options.source = source.string()?,
            _ => return Err(argument.unexpected().into()),
        }
    }
    if !options.lines.is_empty() {
        options.tracker.get_or_insert_with(|| tracker::DEFAULT.to_owned());
    }
    options.check()?;
    // The elements of these sources may attach tensors themselves.
    let has_tensors = options.source == "test" || options.source.starts_with("bin:");
    match options.model {
        _ if options.source.is_empty() => Err("no SOURCE; --help lists the arguments".into()),
        Some(_) if options.source == "test" => {
            Err("the source test has tensors of its own: leave --model out".into())
        }
        None if !has_tensors => Err("no --model FILE; --help lists the arguments".into()),
        _ => Ok(Some(options)),
    }
}
