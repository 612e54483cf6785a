// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the objects that a detector finds in zones of a camera's picture, and the tracks that
//! cross lines. Prints a JSON line per frame.
//!
//! ```text
//! camera, file ─► source pipeline ─► frames ─► detector pipeline ─► a JSON line per frame
//!                 stopped and started          runs to the end      preview, recording, a page
//!                 again when it fails
//! ```
//!
//! There are two pipelines so that the source can be replaced when it fails, while the model stays
//! loaded. README.md in this package explains each step.

mod crossings;
mod detector;
mod files;
mod frames;
mod messages;
mod named_numbers;
mod options;
mod orientation;
mod output;
mod overlay;
mod pipeline;
mod record;
mod report;
mod source;
mod tracker;
mod view;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::{Either, select};
use gst::glib;

use detector::Detector;
use options::Options;
use source::Source;
use view::View;

/// Delay before a source is restarted. The delay doubles after each attempt that gives no frame.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(30);

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            messages::print(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let Some(options) = options::parse()? else {
        return output::print(options::HELP);
    };

    // 1. The elements are part of this program, so no plugin files of this project need to be
    //    installed.
    gst::init()?;
    gstnmsfilter::plugin_register_static()?;
    gstobjecttracker::plugin_register_static()?;
    gstonnxruntime::plugin_register_static()?;
    gstnmsfilterdemo::plugin_register_static()?;

    // Invalid elements of a source, or a recording that would overwrite the source, are reported
    // before the model is loaded.
    let source = source::pipeline(&options)?;
    let detector = Detector::new(&options)?;
    if let Some(record) = &options.record {
        files::check_written("record", record, &[&source, detector.pipeline()])?;
        detector.record_to(record)?;
    }
    if let Some(file) = output::file(options.output.as_deref()) {
        files::check_written("output", file, &[&source, detector.pipeline()])?;
    }

    let view = View::new(&options)?;

    glib::MainContext::default().block_on(async {
        // 2. This loads the model. Afterwards the pipeline waits for frames.
        detector.start().await?;

        // 3. After a signal, no more frames are accepted, and the program ends when it has
        //    processed the frames that it has. A second signal has its default effect.
        for signal in [libc::SIGINT, libc::SIGTERM] {
            let frames = detector.frames.clone();
            glib_unix::unix_signal_add_once(signal, move || frames.end());
        }

        if let (Some(view), Some(values)) = (view, &detector.view) {
            view.serve(values);
        }

        // 4. GStreamer's threads move frames from the source to the detector, while this thread
        //    watches both.
        supervise(&options, &detector).await
    })
}

/// Runs one source after another until the detector pipeline ends.
async fn supervise(options: &Options, detector: &Detector) -> Result<(), Error> {
    let mut detector_end = pin!(detector.end());
    let mut delay = FIRST_DELAY;
    loop {
        let before = detector.frames.count();
        let source = Source::new(options, &detector.frames)?;
        let end = match select(pin!(source.run()), &mut detector_end).await {
            Either::Left((source_end, _)) => Ok(source_end),
            Either::Right((detector_end, _)) => Err(detector_end),
        };
        source.stop().await;
        let source_end = match end {
            Ok(source_end) => source_end,
            Err(detector_end) => return Ok(detector_end?),
        };
        if detector.frames.have_ended() {
            return Ok(detector_end.await?);
        }
        let has_given_frames = detector.frames.count() > before;
        let may_succeed = match &source_end {
            Err(failure) if failure.is_permanent => false,
            // A camera may become available again, but a file does not change.
            _ => options.is_live() || options.repeat && has_given_frames,
        };
        if !may_succeed {
            detector.frames.end();
            let detector_end = detector_end.await;
            return Ok(source_end.and(detector_end)?);
        }

        // 5. A camera that failed may become available again.
        if has_given_frames {
            delay = FIRST_DELAY;
        }
        let why = source_end.map_or_else(|error| error.to_string(), |()| "the end".to_owned());
        let why = format!("{}: {why}; starts again in {delay:?}", options.source);
        messages::print(&why);
        if let Some(view) = &detector.view {
            view.set_failure(&why);
        }
        let pause = glib::timeout_future(delay);
        if let Either::Right((detector_end, _)) = select(pause, &mut detector_end).await {
            return Ok(detector_end?);
        }
        delay = MAX_DELAY.min(delay * 2);
    }
}
