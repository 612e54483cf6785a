// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements upstream of an element, whether they decode tensors, and the files that they read.

use std::collections::{HashMap, HashSet, VecDeque};

use gst::glib;
use gst::prelude::*;

/// Returns the elements upstream of `element`, across the borders of bins, the nearest first.
pub fn elements(element: &gst::Element) -> impl Iterator<Item = gst::Element> {
    let mut seen = HashSet::from([element.clone()]);
    let mut next = VecDeque::from([element.clone()]);
    let nearest = std::iter::from_fn(move || {
        let element = next.pop_front()?;
        for upstream in element.sink_pads().iter().filter_map(linked_element) {
            if seen.insert(upstream.clone()) {
                next.push_back(upstream);
            }
        }
        Some(element)
    });
    nearest.skip(1)
}

/// Returns whether an element upstream of `element` decodes tensors.
pub fn has_decoder(element: &gst::Element) -> bool {
    elements(element).filter_map(|element| element.factory()).any(|factory| {
        let class = factory.metadata(gst::ELEMENT_METADATA_KLASS);
        factory.name() == "nmsfilter" || class.is_some_and(|class| class.contains("Tensordecoder"))
    })
}

/// Returns the element whose source pad is linked to a sink pad, directly or across the borders of bins.
fn linked_element(sink: &gst::Pad) -> Option<gst::Element> {
    let mut source = sink.peer()?;
    loop {
        if let Some(ghost) = source.downcast_ref::<gst::GhostPad>() {
            source = ghost.target()?;
            continue;
        }
        match source.parent()?.downcast::<gst::Element>() {
            Ok(element) => return Some(element),
            // The pad is the inner side of a ghost pad. Continue at its outer side.
            Err(parent) => source = parent.downcast::<gst::GhostPad>().ok()?.peer()?,
        }
    }
}

/// The files of streams. An answer to a query of the URI alone can be that of another stream (`concat` asks its first
/// input), so that files are found by the ids of streams, which begin with the SHA-256 of the source's URI.
#[derive(Debug, Default)]
pub struct Files {
    /// The path of each file that a source upstream had at the latest search, by the SHA-256 of its URI.
    paths: HashMap<String, String>,
}

impl Files {
    /// Returns the path of the file that the stream with this id, which has reached `element`, is read from; `None` if
    /// it is not read from a file.
    pub fn of_stream(&mut self, id: &str, element: &gst::Element) -> Option<String> {
        let source = id.split('/').next()?;
        if !self.paths.contains_key(source) {
            self.paths = elements(element).filter_map(|element| file_of(&element)).collect();
        }
        self.paths.get(source).cloned()
    }
}

/// Returns the SHA-256 of the URI of a file's source, and the path.
fn file_of(element: &gst::Element) -> Option<(String, String)> {
    if !element.sink_pads().is_empty() {
        return None;
    }
    let mut query = gst::query::Uri::new();
    let uri = element.query(&mut query).then(|| query.uri())??;
    let (path, _) = glib::filename_from_uri(&uri).ok()?;
    let mut checksum = glib::Checksum::new(glib::ChecksumType::Sha256)?;
    checksum.update(uri.as_bytes());
    Some((checksum.string()?, path.to_string_lossy().into_owned()))
}
