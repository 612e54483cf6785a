// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements, and the code that they share.
//!
//! `nmsfilter` connects input, decoder, engine and output; `nmstensordec` does this for GStreamer's autoplugging.
//! `detectionjson` makes JSON of the result. The element `ortinference`, which runs a detector, is in inference/; elements
//! to test and demonstrate them are in demo/.

use std::fmt::{Debug, Display};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gst::prelude::*;
use gst_base::prelude::*;

use crate::deepstream::NVMM;

pub mod detectionjson;
mod list;
pub mod nmsfilter;
pub mod nmstensordec;
pub mod property;
mod property_enum;
pub mod times;

/// Raw video of any format in any memory, for filters that do not access pixels.
pub fn any_video() -> gst::Caps {
    gst::Caps::builder("video/x-raw").any_features().build()
}

/// The width and height that caps of raw video have. `gst_video::VideoInfo` is not used: it supports neither DMA_DRM
/// formats nor every memory feature.
///
/// # Errors
/// If the caps have no size.
pub fn frame_size(caps: &gst::CapsRef) -> Result<[u32; 2], String> {
    let side = |name: &str| {
        let side = caps.structure(0).and_then(|s| s.get::<i32>(name).ok());
        side.and_then(|side| u32::try_from(side).ok())
            .ok_or_else(|| format!("expected {name} in caps, got {caps}"))
    };
    Ok([side("width")?, side("height")?])
}

/// Returns true if frames with these caps are in NVMM memory.
pub fn is_nvmm(caps: &gst::CapsRef) -> bool {
    caps.features(0).is_some_and(|features| features.contains(NVMM))
}

/// Templates of an always sink pad and an always source pad.
pub fn pad_templates(sink: &gst::Caps, src: &gst::Caps) -> Vec<gst::PadTemplate> {
    [("sink", gst::PadDirection::Sink, sink), ("src", gst::PadDirection::Src, src)]
        .map(|(name, direction, caps)| {
            gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
                .expect("the template is valid")
        })
        .into()
}

/// Declares the debug category of an element: the static variable, the name, and the description.
#[macro_export]
macro_rules! debug_category {
    ($visibility:vis $category:ident, $name:literal, $text:literal) => {
        $visibility static $category: std::sync::LazyLock<gst::DebugCategory> =
            std::sync::LazyLock::new(|| {
                gst::DebugCategory::new($name, gst::DebugColorFlags::empty(), Some($text))
            });
    };
}

/// Declares `metadata` of an element: its long name, class, and description.
#[macro_export]
macro_rules! element_metadata {
    ($name:literal, $class:literal, $text:literal) => {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: std::sync::LazyLock<gst::subclass::ElementMetadata> =
                std::sync::LazyLock::new(|| {
                    let authors = "The nmsfilter authors";
                    gst::subclass::ElementMetadata::new($name, $class, $text, authors)
                });
            Some(&METADATA)
        }
    };
}

/// The error that an element cannot start with its settings.
pub fn wrong_settings(error: impl Display + Debug) -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Settings, ("{error}"), ["{error:?}"])
}

/// Posts the error that a buffer came while the element has no state. The base class calls `start` before, so that this is
/// a bug of the element.
pub fn not_started(element: &gst::Element) -> gst::FlowError {
    gst::element_error!(
        element,
        gst::CoreError::StateChange,
        ("the element was not started; this is a bug of the plugin: please report it")
    );
    gst::FlowError::Error
}

/// Forwards an allocation query, for filters that do not access pixels: any allocation is allowed which downstream
/// supports.
///
/// # Errors
/// If downstream does not answer it.
pub fn forward_allocation(
    element: &gst_base::BaseTransform,
    category: gst::DebugCategory,
    query: &mut gst::query::Allocation,
) -> Result<(), gst::LoggableError> {
    if element.src_pad().peer_query(query) {
        Ok(())
    } else {
        Err(gst::loggable_error!(category, "downstream proposes no allocation"))
    }
}

/// Locks a mutex of an element, also if it was poisoned: a panic in one thread does not make every
/// later call of the element panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
