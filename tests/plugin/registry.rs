// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of the plugins and their elements in the registry.

use gst::prelude::*;

use crate::support::pipeline;

/// The plugins, which are named like their packages, and their elements. The plugin `onnxruntime`
/// is tested in the program `inference`.
const PLUGINS: [(&str, &[&str]); 2] = [
    ("nmsfilter", &["detectionjson", "nmsfilter", "nmstensordec"]),
    ("nmsfilterdemo", &["crowdtestsrc", "roioverlay", "tensorreplay"]),
];

#[test]
fn plugins_have_their_package_name_and_version_and_no_invalid_origin() {
    pipeline::init();
    for (name, _) in PLUGINS {
        let plugin = gst::Registry::get().find_plugin(name).expect("it is registered");
        assert!(plugin.version().starts_with(env!("CARGO_PKG_VERSION")), "{}", plugin.version());
        assert_eq!(plugin.source(), format!("gst-plugin-{name}"));
        assert_eq!(plugin.package(), format!("gst-plugin-{name}"));
        assert_eq!(plugin.origin(), "Unknown package origin");
        // GStreamer's list of licenses has only one of "MIT OR Apache-2.0".
        assert_eq!(plugin.license(), "MIT/X11");
    }
}

#[test]
fn every_element_is_registered_and_describes_itself() {
    pipeline::init();
    for (plugin, elements) in PLUGINS {
        let features = gst::Registry::get().features_by_plugin(plugin);
        let mut names: Vec<String> = features.iter().map(|feature| feature.name().into()).collect();
        names.sort();
        let mut expected = elements.to_vec();
        if gst_newer::Capabilities::get().tensor_caps.is_err() {
            expected.retain(|name| *name != "nmstensordec");
        }
        assert_eq!(names, expected, "{plugin}");
    }
    for name in PLUGINS.into_iter().flat_map(|(_, elements)| elements.iter().copied()) {
        let Some(factory) = gst::ElementFactory::find(name) else { continue };
        assert_eq!(factory.metadata("author"), Some(env!("CARGO_PKG_AUTHORS")), "{name}");
        for key in ["long-name", "klass", "description"] {
            let text = factory.metadata(key).unwrap_or_default();
            assert!(!text.is_empty(), "{name} has no {key}");
        }
    }
}
