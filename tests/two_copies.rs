// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two copies of the crate in one process. This happens when an application links the crate and
//! also finds the installed plugin. This program is linked with one copy, and loads the other as a
//! plugin.
//!
//! This is a separate program with one test, because types and metadata are registered once per
//! process.

#[path = "support/mod.rs"]
mod support;

use gst::glib;
use gst::prelude::*;
use gstnmsfilter::elements::nmsfilter::NmsFilter;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::cuda_memory::Uploader;
use gstnmsfilter::input::custom_meta::{self, NewTensor};
use gstnmsfilterdemo::crowdtestsrc::CrowdTestSrc;

use crate::support::{engines, pipeline, plugins_folder};

/// Registers every type of the linked copy.
fn register_linked_types() {
    gst::init().unwrap();
    gstnmsfilter::plugin_register_static().unwrap();
    gstnmsfilterdemo::plugin_register_static().unwrap();
    for factory in ["crowdtestsrc", "detectionjson", "nmsfilter", "roioverlay", "tensorreplay"] {
        // Creating a property's specification registers its type.
        let element = gst::ElementFactory::make(factory).build().unwrap();
        assert!(!element.list_properties().is_empty());
    }
    if engines::on_gpu() {
        // An upload registers the type of the allocator.
        upload([0.0; 4]);
    }
}

fn upload(window: [f32; 4]) -> NewTensor {
    let tensor = NewTensor::from_vec("windows", &[1, 4], window.to_vec()).unwrap();
    Uploader::new(0).unwrap().upload(&tensor).unwrap()
}

/// Makes an element of the linked copy, even if the registry has the loaded copy's factory.
fn linked<T: glib::object::IsClass + IsA<glib::Object> + IsA<gst::Element>>(
    properties: &[(&str, &str)],
) -> gst::Element {
    set(glib::Object::new::<T>().upcast(), properties)
}

/// Makes an element of the loaded plugin.
fn loaded(name: &str, properties: &[(&str, &str)]) -> gst::Element {
    set(gst::ElementFactory::make(name).build().unwrap(), properties)
}

fn set(element: gst::Element, properties: &[(&str, &str)]) -> gst::Element {
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
    element
}

/// Returns the nicks of the flags that are set.
fn flags(value: &glib::Value) -> String {
    let (_, flags) = glib::FlagsValue::from_value(value).expect("a value of flags");
    flags.iter().map(|flag| flag.nick()).collect::<Vec<_>>().join("+")
}

/// Runs a source, a filter and a sink. Returns frames, candidates, survivors and bytes uploaded.
fn run(source: gst::Element, filter: gst::Element) -> [u64; 4] {
    let pipeline = gst::Pipeline::new();
    let caps = gst::Caps::builder("video/x-raw").field("width", 320).field("height", 240).build();
    let caps = gst::ElementFactory::make("capsfilter").property("caps", caps).build().unwrap();
    let sink = gst::ElementFactory::make("fakesink").build().unwrap();
    let elements = [&source, &caps, &filter, &sink];
    pipeline.add_many(elements).unwrap();
    gst::Element::link_many(elements).unwrap();
    let ended = pipeline::run(&pipeline);
    assert_eq!(ended.error, None);
    ["frames", "candidates", "survivors", "bytes-uploaded"]
        .map(|name| ended.stats[0].get(name).unwrap())
}

#[test]
fn elements_of_one_copy_read_tensors_of_the_other() {
    register_linked_types();
    for file in ["libgstnmsfilter.so", "libgstnmsfilterdemo.so"] {
        let plugin = gst::Plugin::load_file(plugins_folder().join(file)).unwrap();
        assert!(plugin.is_loaded());
    }
    let filter = loaded("nmsfilter", &[]);
    assert!(!filter.is::<NmsFilter>(), "the factory is the plugin's");

    // Each copy has its own enumerations and flags. Setting values by nick works in both.
    let settings = [
        ("decoder", "yolov5"),
        ("method", "map-reduce"),
        ("overlap", "smaller"),
        ("attach", "roi"),
    ];
    for element in [linked::<NmsFilter>(&settings), loaded("nmsfilter", &settings)] {
        for (name, nick) in settings {
            let value = element.property_value(name);
            let set = glib::EnumValue::from_value(&value).map(|(_, value)| value.nick().to_owned());
            let set = set.unwrap_or_else(|| flags(&value));
            assert_eq!(set, nick, "{name}");
        }
    }
    let types = [linked::<NmsFilter>(&[]), loaded("nmsfilter", &[])]
        .map(|element| element.find_property("decoder").unwrap().value_type());
    assert_ne!(types[0], types[1]);

    // Each copy reads tensors that the other attached.
    let mut memories = vec!["system"];
    if engines::on_gpu() {
        memories.push("cuda");
    }
    for memory in memories {
        let backend = if memory == "cuda" { "cuda" } else { "cpu" };
        for decoder in ["windows", "yolov8"] {
            let source = [("num-buffers", "4"), ("decoder", decoder), ("memory", memory)];
            let filter = [("backend", backend)];
            let sources = || [linked::<CrowdTestSrc>(&source), loaded("crowdtestsrc", &source)];
            let filters = || [linked::<NmsFilter>(&filter), loaded("nmsfilter", &filter)];
            let [[linked_source, loaded_source], [linked_filter, loaded_filter]] =
                [sources(), filters()];
            let to_loaded = run(linked_source, loaded_filter);
            let to_linked = run(loaded_source, linked_filter);
            let [[linked_source, _], [linked_filter, _]] = [sources(), filters()];
            let expected = run(linked_source, linked_filter);
            assert!(expected[2] > 0);
            assert_eq!([to_loaded, to_linked], [expected; 2], "{decoder} in {memory} memory");
            assert!(memory == "system" || expected[3] == 0, "device tensors are read in place");
        }
    }

    // The linked copy still reads its own tensors after the other copy has registered the metadata.
    let mut buffer = gst::Buffer::new();
    let tensor = NewTensor::from_vec("n", &[1], vec![1.0f32]).unwrap();
    custom_meta::attach(buffer.get_mut().unwrap(), &tensor).unwrap();
    assert_eq!(Tensors::of(&buffer).unwrap().len(), 1);
}
