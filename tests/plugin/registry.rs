// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions of the plugin and of its elements in the registry.

use gst::prelude::*;

use crate::support::pipeline;

const ELEMENTS: [&str; 4] = ["crowdtestsrc", "nmsfilter", "roioverlay", "tensorreplay"];

#[test]
fn the_plugin_has_its_package_name_and_version_and_no_invalid_origin() {
    pipeline::init();
    let plugin = gst::Registry::get().find_plugin("nmsfilter").expect("it is registered");
    assert!(plugin.version().starts_with(env!("CARGO_PKG_VERSION")), "{}", plugin.version());
    assert_eq!(plugin.source(), "gst-plugin-nmsfilter");
    assert_eq!(plugin.package(), "gst-plugin-nmsfilter");
    assert_eq!(plugin.origin(), "Unknown package origin");
    // Of "MIT OR Apache-2.0", the one in GStreamer's list of licenses.
    assert_eq!(plugin.license(), "MIT/X11");
}

#[test]
fn every_element_is_registered_and_describes_itself() {
    pipeline::init();
    let features = gst::Registry::get().features_by_plugin("nmsfilter");
    let mut names: Vec<String> = features.iter().map(|feature| feature.name().into()).collect();
    names.sort();
    assert_eq!(names, ELEMENTS);
    for name in ELEMENTS {
        let factory = gst::ElementFactory::find(name).unwrap();
        assert_eq!(factory.metadata("author"), Some(env!("CARGO_PKG_AUTHORS")), "{name}");
        for key in ["long-name", "klass", "description"] {
            let text = factory.metadata(key).unwrap_or_default();
            assert!(!text.is_empty(), "{name} has no {key}");
        }
    }
}
