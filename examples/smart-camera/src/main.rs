// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what a detector finds in zones of a camera's picture: one JSON line per frame.
//!
//! ```text
//! camera, file ─► source pipeline ─► frames ─► detector pipeline ─► a JSON line per frame
//!                 stopped and started          runs to the end      preview, recording
//!                 again when it fails
//! ```
//!
//! Two pipelines, because the source is replaced when it fails, and the model stays loaded. README.md in
//! this package explains each step.

mod detector;
mod frames;
mod options;
mod pipeline;
mod report;
mod source;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::{Either, select};
use gst::glib;

use detector::Detector;
use options::Options;
use source::Source;

/// How long to wait before a source is started again: doubled after each attempt without a frame.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(30);

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smart-camera: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let Some(options) = options::parse()? else {
        println!("{}", options::HELP);
        return Ok(());
    };

    // 1. The elements are a part of this program, which needs no plugin files of this project.
    gst::init()?;
    gstnmsfilter::plugin_register_static()?;
    gstonnxruntime::plugin_register_static()?;
    gstnmsfilterdemo::plugin_register_static()?;

    // 2. Loads the model. The pipeline then waits for frames.
    let detector = Detector::start(&options)?;

    // 3. On a signal no further frame is taken, and the program ends when those it has are processed. A
    // second signal has its default effect.
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let frames = detector.frames.clone();
        glib_unix::unix_signal_add_once(signal, move || frames.end());
    }

    // 4. Frames go from the source to the detector in threads of GStreamer; this one watches both.
    glib::MainContext::default().block_on(supervise(&options, &detector))
}

/// Runs sources one after another until the detector pipeline ends.
async fn supervise(options: &Options, detector: &Detector) -> Result<(), Error> {
    let mut detector_end = pin!(detector.end());
    let mut delay = FIRST_DELAY;
    loop {
        let before = detector.frames.count();
        let source_end = match Source::start(options, &detector.frames) {
            Err(error) => Err(error),
            Ok(source) => match select(pin!(source.end()), &mut detector_end).await {
                Either::Left((source_end, _)) => source_end,
                Either::Right((detector_end, _)) => return detector_end,
            },
        };
        if detector.frames.have_ended() {
            return detector_end.await;
        }
        if !options.restarts() {
            detector.frames.end();
            let detector_end = detector_end.await;
            return source_end.and(detector_end);
        }

        // 5. A camera that failed may come back.
        if detector.frames.count() > before {
            delay = FIRST_DELAY;
        }
        let why = source_end.map_or_else(|error| error.to_string(), |()| "the end".to_owned());
        eprintln!("smart-camera: {}: {why}; starts again in {delay:?}", options.source);
        let pause = glib::timeout_future(delay);
        if let Either::Right((detector_end, _)) = select(pause, &mut detector_end).await {
            return detector_end;
        }
        delay = MAX_DELAY.min(delay * 2);
    }
}
