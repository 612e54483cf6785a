// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties as C programs can set them: text that is not UTF-8, and properties that take effect
//! only after a restart.

use std::ffi::CString;

use gst::glib;
use gst::glib::gobject_ffi;
use gst::glib::translate::{IntoGlib, ToGlibPtr};
use gst::prelude::*;

use crate::support::pipeline;

const ELEMENTS: [&str; 5] =
    ["crowdtestsrc", "detectionjson", "nmsfilter", "roioverlay", "tensorreplay"];

/// Makes an element with a separate bus.
fn element(factory: &str) -> (gst::Element, gst::Bus) {
    pipeline::init();
    let element = gst::ElementFactory::make(factory).build().unwrap();
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    (element, bus)
}

/// Sets a property to any bytes, as a C program can.
fn set_bytes(element: &gst::Element, property: &str, bytes: &[u8]) {
    let (property, bytes) = (CString::new(property).unwrap(), CString::new(bytes).unwrap());
    // SAFETY: the value is initialized before use and unset after; GObject copies what it keeps.
    unsafe {
        let mut value: gobject_ffi::GValue = std::mem::zeroed();
        gobject_ffi::g_value_init(&mut value, glib::Type::STRING.into_glib());
        gobject_ffi::g_value_set_string(&mut value, bytes.as_ptr());
        let object: *mut gst::ffi::GstElement = element.to_glib_none().0;
        gobject_ffi::g_object_set_property(object.cast(), property.as_ptr(), &value);
        gobject_ffi::g_value_unset(&mut value);
    }
}

fn warnings(bus: &gst::Bus) -> Vec<String> {
    let messages = std::iter::from_fn(|| bus.pop());
    messages
        .filter_map(|message| match message.view() {
            gst::MessageView::Warning(warning) => Some(warning.error().to_string()),
            _ => None,
        })
        .collect()
}

/// Returns the writable string properties that the element adds to its base classes.
fn string_properties(element: &gst::Element) -> Vec<String> {
    let properties = element.list_properties();
    let is_own_string = |spec: &glib::ParamSpec| {
        spec.value_type() == glib::Type::STRING && spec.owner_type() != gst::Object::static_type()
    };
    let own = properties.iter().filter(|spec| is_own_string(spec));
    own.map(|spec| spec.name().to_owned()).collect()
}

#[test]
fn text_that_is_not_utf8_gives_a_warning_and_the_property_keeps_its_value() {
    let mut checked = 0;
    for factory in ELEMENTS {
        let (element, bus) = element(factory);
        for property in string_properties(&element) {
            set_bytes(&element, &property, b"person");
            assert_eq!(warnings(&bus), [] as [&str; 0], "{factory}: {property}");
            for bytes in [&b"\xff\xfe"[..], b"caf\xe9", b"person\xc3", b"\xed\xa0\x80"] {
                set_bytes(&element, &property, bytes);
                let kept = element.property::<Option<String>>(&property);
                assert_eq!(kept.as_deref(), Some("person"), "{factory}: {property}");
                let expected = format!(
                    "{property}: expected text in UTF-8, got other bytes; \
                     the property keeps its value"
                );
                assert_eq!(warnings(&bus), [expected], "{factory}: {property}");
            }
            set_bytes(&element, &property, "grüßen".as_bytes());
            assert_eq!(element.property::<String>(&property), "grüßen");
            checked += 1;
        }
    }
    assert_eq!(checked, 18, "three of detectionjson, twelve of nmsfilter, three of tensorreplay");
}

const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/late.csv");
const LABELS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/late.txt");
const REPLAY: &str = concat!(
    "videotestsrc ! tensorreplay name=it location=",
    env!("CARGO_TARGET_TMPDIR"),
    "/late.csv ! fakesink"
);

#[test]
fn a_property_set_after_ready_that_needs_a_restart_gives_a_warning() {
    std::fs::write(FILE, "1,2,3,0.5\n").unwrap();
    std::fs::write(LABELS, "person\n").unwrap();
    for (factory, property, value) in [
        ("nmsfilter", "label-file", LABELS),
        ("nmsfilter", "backend", "cpu"),
        ("detectionjson", "source", "camera"),
        ("tensorreplay", "shape", "1x4"),
        ("crowdtestsrc", "is-live", "true"),
    ] {
        let pipeline = pipeline::parse(match factory {
            "nmsfilter" => "videotestsrc ! nmsfilter name=it ! fakesink",
            "crowdtestsrc" => "crowdtestsrc name=it ! fakesink",
            "detectionjson" => "videotestsrc ! detectionjson name=it ! fakesink",
            _ => REPLAY,
        });
        let element = pipeline.by_name("it").unwrap();
        let bus = pipeline.bus().unwrap();
        element.set_property_from_str(property, value);
        assert_eq!(warnings(&bus), [] as [&str; 0], "{property} in NULL");

        pipeline.set_state(gst::State::Paused).unwrap();
        pipeline.state(gst::ClockTime::from_seconds(60)).0.unwrap();
        element.set_property_from_str(property, value);
        let expected = format!(
            "{property} is set, but not applied before a restart; \
             take the element to READY and back"
        );
        assert_eq!(warnings(&bus), [expected], "{factory}");
        pipeline.set_state(gst::State::Null).unwrap();
    }
}
