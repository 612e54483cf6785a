// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of the plugins and their elements in the registry.

use std::path::Path;
use std::process::Command;

use gst::prelude::*;

use crate::support::scratch::Scratch;
use crate::support::{pipeline, plugins_folder};

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

/// What is in the registry depends on GStreamer, whose update leaves the plugin's file as it was.
#[test]
fn the_plugin_is_loaded_again_if_gstreamers_libraries_change() {
    const INSIDE: &str = "NMSFILTER_TEST_REGISTRY";
    if std::env::var_os(INSIDE).is_some() {
        gst::init().unwrap();
        assert!(gst::ElementFactory::find("nmsfilter").is_some());
        return;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let core = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let core = core.map(Path::new).find(|file| is_core(file)).expect("it is linked");
    let folder = Scratch::new();
    let (copy, plugins) = (folder.join(CORE), folder.join("plugins"));
    std::fs::copy(core, &copy).unwrap();
    std::fs::create_dir(&plugins).unwrap();
    let built = plugins_folder().join("libgstnmsfilter.so");
    std::os::unix::fs::symlink(built, plugins.join("libgstnmsfilter.so")).unwrap();
    let libraries = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = format!("{}:{libraries}", folder.display());
    let is_loaded = || {
        let program = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "registry::the_plugin_is_loaded_again_if_gstreamers_libraries_change",
            ])
            .envs([(INSIDE, "1"), ("GST_DEBUG", "nmsfilter:4"), ("GST_REGISTRY_FORK", "no")])
            .env("LD_LIBRARY_PATH", &libraries)
            .envs([("GST_PLUGIN_PATH", &*plugins), ("GST_PLUGIN_SYSTEM_PATH", &*folder)])
            .env("GST_REGISTRY", folder.join("registry.bin"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&program.stderr).into_owned();
        assert!(program.status.success(), "{text}");
        text.contains("plugin_init")
    };
    assert_eq!([is_loaded(), is_loaded()], [true, false]);
    let day = std::time::Duration::from_secs(86_400);
    let opened = std::fs::File::options().write(true).open(&copy).unwrap();
    opened.set_modified(std::time::SystemTime::now() - day).unwrap();
    assert_eq!([is_loaded(), is_loaded()], [true, false]);
    std::fs::write(folder.join("libgstanalytics-1.0.so.0"), "").unwrap();
    assert_eq!([is_loaded(), is_loaded()], [true, false]);
}

const CORE: &str = "libgstreamer-1.0.so.0";

/// Returns true for GStreamer's core library, whose file has further numbers.
fn is_core(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(CORE))
}
