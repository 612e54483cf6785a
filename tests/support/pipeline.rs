// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipelines: makes them from a description, runs them to their end, and observes the buffers that
//! pass an element.

use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;

/// Initializes GStreamer and registers the plugins, once.
pub fn init() {
    use std::sync::Once;
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().unwrap();
        for register in super::PLUGINS {
            register().unwrap();
        }
    });
}

/// The end of a run: the error, if there was one, and other messages of interest.
#[derive(Debug, Default)]
pub struct Ended {
    /// Text of the first error, with its debug details.
    pub error: Option<String>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Messages with the name `nmsfilter-stats`.
    pub stats: Vec<gst::Structure>,
}

impl Ended {
    /// Returns the error. Panics if there was none.
    pub fn error(&self) -> &str {
        self.error.as_deref().expect("the pipeline ends with an error")
    }
}

/// Runs `pipeline` until it ends, then stops it.
pub fn run(pipeline: &gst::Pipeline) -> Ended {
    let mut ended = Ended::default();
    let bus = pipeline.bus().unwrap();
    // If the state change fails, an error message with the reason is posted.
    let _ = pipeline.set_state(gst::State::Playing);
    loop {
        let message = bus.timed_pop(gst::ClockTime::from_seconds(120));
        let message = message.expect("a message within 120 s; the pipeline has probably stalled");
        if add_message(&mut ended, &message) {
            break;
        }
    }
    pipeline.set_state(gst::State::Null).unwrap();
    while let Some(message) = bus.pop() {
        add_message(&mut ended, &message);
    }
    ended
}

/// Adds a message to `ended`. Returns true if it ends the run.
fn add_message(ended: &mut Ended, message: &gst::Message) -> bool {
    match message.view() {
        gst::MessageView::Eos(_) => return true,
        gst::MessageView::Error(error) => {
            let text = format!("{} {}", error.error(), error.debug().unwrap_or_default());
            ended.error.get_or_insert(text);
            return true;
        }
        gst::MessageView::Warning(warning) => ended.warnings.push(warning.error().to_string()),
        gst::MessageView::Element(element) => {
            let structure = element.structure().filter(|s| s.name() == "nmsfilter-stats");
            ended.stats.extend(structure.map(|s| s.to_owned()));
        }
        _ => {}
    }
    false
}

/// Makes a pipeline from a description. Its `nmsfilter` elements get the backend that
/// `NMSFILTER_TEST_BACKEND` names, unless the description sets one.
pub fn parse(description: &str) -> gst::Pipeline {
    init();
    let pipeline: gst::Pipeline = gst::parse::launch(description)
        .unwrap_or_else(|error| panic!("{description}: {error}"))
        .downcast()
        .expect("several elements make a pipeline");
    if let Ok(backend) = std::env::var("NMSFILTER_TEST_BACKEND")
        && !description.contains("backend=")
    {
        for element in pipeline.iterate_recurse().into_iter().flatten() {
            if element.factory().is_some_and(|factory| factory.name() == "nmsfilter") {
                element.set_property_from_str("backend", &backend);
            }
        }
    }
    pipeline
}

/// Collects the result of `extract` for each buffer that leaves the named element.
pub fn watch<T: Send + 'static>(
    pipeline: &gst::Pipeline,
    element: &str,
    extract: impl Fn(&gst::BufferRef) -> T + Send + Sync + 'static,
) -> Arc<Mutex<Vec<T>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let element = pipeline.by_name(element).expect("the pipeline has this element");
    let pad = element.static_pad("src").or_else(|| element.static_pad("sink")).unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, {
        let seen = seen.clone();
        move |_, info| {
            let buffer = info.buffer().expect("it is a probe for buffers");
            seen.lock().unwrap().push(extract(buffer));
            gst::PadProbeReturn::Ok
        }
    });
    seen
}

/// Applies `modify` to each buffer that leaves the named element.
pub fn intercept(
    pipeline: &gst::Pipeline,
    element: &str,
    modify: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) {
    let element = pipeline.by_name(element).expect("the pipeline has this element");
    let pad = element.static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        modify(info.buffer_mut().expect("it is a probe for buffers").make_mut());
        gst::PadProbeReturn::Ok
    });
}

/// The type of a region, and its left, top, width and height in pixels.
pub type Region = (String, [u32; 4]);

/// Returns the regions on `buffer`, in order.
pub fn regions(buffer: &gst::BufferRef) -> Vec<Region> {
    buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .map(|region| {
            let (x, y, w, h) = region.rect();
            (region.roi_type().to_owned(), [x, y, w, h])
        })
        .collect()
}
