// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a recording. In: the encoder, and the name of the first file. Out: this file, and a
//! further one each time the caps of the frames change, which Matroska does not support.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use gst::prelude::*;

use crate::{Error, messages};

/// Time in which a file must be complete.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Writes what `encoder` gives into `file`, and into further files beside it.
pub fn start(encoder: &gst::Element, file: &str) -> Result<(), Error> {
    open(encoder, Path::new(file))?;
    let first = PathBuf::from(file);
    // In front of the encoder, nothing of the new frames has reached the current file.
    let pad = encoder.static_pad("sink").expect("an encoder has a sink pad");
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
        let event = info.event().map(|event| event.view());
        let (Some(gst::EventView::Caps(caps)), Some(encoder)) = (event, pad.parent_element())
        else {
            return gst::PadProbeReturn::Ok;
        };
        if pad.current_caps().is_some_and(|former| former != caps.caps_owned()) {
            let next = free_name(&first);
            messages::print(&format!("the frames change, the recording goes on in {next:?}"));
            if let Err(error) = close(&encoder).and_then(|()| open(&encoder, &next)) {
                gst::element_error!(encoder, gst::ResourceError::Write, ("{error}"));
            }
        }
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

/// Returns the first name of `out-2.mkv`, `out-3.mkv` and so on that no file has.
fn free_name(first: &Path) -> PathBuf {
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let extension = first.extension().unwrap_or_default().to_string_lossy();
    let mut names =
        (2..).map(|number| first.with_file_name(format!("{stem}-{number}.{extension}")));
    names.find(|name| !name.exists()).expect("there are more numbers than files")
}

fn pipeline(encoder: &gst::Element) -> gst::Bin {
    encoder.parent().and_downcast().expect("the encoder is in a pipeline")
}

/// Begins a file, whose time begins at 0.
fn open(encoder: &gst::Element, path: &Path) -> Result<(), Error> {
    // The bin's pad is the one of identity, since the multiplexer's exists on request only. With
    // async=false, the running pipeline does not wait for the first frame of the file.
    let description = "identity ! matroskamux offset-to-zero=true ! filesink name=file async=false";
    let file = gst::parse::bin_from_description(description, true)?;
    file.by_name("file").expect("it is in the description").set_property("location", path);
    pipeline(encoder).add(&file)?;
    encoder.link(&file)?;
    // If it fails, the element that writes the file posts why.
    let _ = file.sync_state_with_parent();
    Ok(())
}

/// Ends the file that is open.
fn close(encoder: &gst::Element) -> Result<(), Error> {
    let pad = encoder.static_pad("src").and_then(|pad| pad.peer()).ok_or("there is no file")?;
    let file: gst::Bin = pad.parent().and_downcast().expect("its pad is a ghost pad");
    let sink = file.by_name("file").and_then(|sink| sink.static_pad("sink"));
    let (sender, end) = channel();
    let watch = move |_: &gst::Pad, info: &mut gst::PadProbeInfo| {
        if info.event().is_some_and(|event| event.type_() == gst::EventType::Eos) {
            // Nobody waits for a second end.
            let _ = sender.send(());
        }
        gst::PadProbeReturn::Ok
    };
    sink.expect("a sink has a pad").add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, watch);
    pad.send_event(gst::event::Eos::new());
    end.recv_timeout(TIMEOUT).map_err(|_| format!("a file is not complete after {TIMEOUT:?}"))?;
    encoder.unlink(&file);
    file.set_state(gst::State::Null)?;
    Ok(pipeline(encoder).remove(&file)?)
}
