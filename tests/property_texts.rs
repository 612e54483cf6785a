// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the texts and flags of all elements' properties. `gst-inspect-1.0` prints them, and they
//! are the documentation.

use std::sync::Once;

use gst::glib;
use gst::prelude::*;
use nmsfilter_core::engine::{Method, Overlap, Params, cuda};

const ELEMENTS: [&str; 7] = [
    "nmsfilter",
    "detectionjson",
    "ortinference",
    "objecttracker",
    "crowdtestsrc",
    "tensorreplay",
    "roioverlay",
];

/// Each property of an element's own class, with its name as in `nmsfilter.decoder`.
fn properties() -> Vec<(String, glib::ParamSpec)> {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().unwrap();
        gstnmsfilter::plugin_register_static().unwrap();
        gstnmsfilterdemo::plugin_register_static().unwrap();
        gstobjecttracker::plugin_register_static().unwrap();
        gstonnxruntime::plugin_register_static().unwrap();
    });
    let mut all = Vec::new();
    for name in ELEMENTS {
        let element = gst::ElementFactory::make(name).build().unwrap();
        let before = all.len();
        for spec in element.list_properties().iter().filter(|s| s.owner_type() == element.type_()) {
            all.push((format!("{name}.{}", spec.name()), spec.clone()));
        }
        assert!(all.len() > before, "{name} has no properties");
    }
    all
}

#[test]
fn every_property_has_a_nick_and_a_blurb_in_one_line() {
    for (name, spec) in properties() {
        assert!(!spec.nick().is_empty(), "{name} has no nick");
        let blurb = spec.blurb().unwrap_or_default();
        assert!(!blurb.is_empty() && !blurb.contains('\n'), "{name}: {blurb:?}");
        assert!(!blurb.contains("  ") && !blurb.ends_with('.'), "{name}: {blurb:?}");
    }
}

/// Only the values' texts say what runs on the CPU only.
#[test]
fn texts_say_which_methods_and_measures_run_on_the_cpu_only() {
    let texts = |wanted: &str| {
        let (_, spec) = properties().into_iter().find(|(name, _)| name == wanted).unwrap();
        assert!(!spec.blurb().unwrap().contains("CPU"), "{wanted}: {:?}", spec.blurb());
        let class = glib::EnumClass::with_type(spec.value_type()).unwrap();
        let values = class.values().iter();
        values.map(|value| (value.nick().to_owned(), value.name().to_owned())).collect::<Vec<_>>()
    };
    let is_on_gpu = |params: &Params| cuda::supports(params).is_ok();
    let methods = texts("nmsfilter.method");
    assert_eq!(methods.len(), Method::ALL.len());
    for (nick, text) in methods {
        let method = Method::ALL.into_iter().find(|method| method.name() == nick).unwrap();
        let on_gpu = is_on_gpu(&Params { method, ..Params::default() });
        assert_eq!(text.contains("on the CPU"), !on_gpu, "{nick}: {text}");
    }
    use Overlap::{Diou, Iou, ProbIou, Representative, Smaller};
    for (nick, text) in texts("nmsfilter.overlap") {
        let all = [Iou, Representative, Smaller, Diou, ProbIou];
        let overlap = all.into_iter().find(|overlap| overlap.name() == nick).unwrap();
        let on_gpu = is_on_gpu(&Params { overlap, ..Params::default() });
        assert_eq!(text.contains("on the CPU"), !on_gpu, "{nick}: {text}");
    }
    // The text of Python's Decoder.
    let python = include_str!("../python/src/decoder.rs");
    let (_, text) = python.split_once("/// - method: ").unwrap();
    let text = text.split("/// - ").next().unwrap();
    assert!(!text.contains("host memory") && !text.contains("CPU"), "{text}");
}

/// gst-inspect-1.0 prints the nick and name of each value. The default name is the variant's, a
/// single word in camel case, which does not describe the value.
#[test]
fn every_value_of_an_enumeration_has_a_description() {
    let mut checked = 0;
    for (property, spec) in properties() {
        let values: Vec<(String, String)> =
            if let Some(class) = glib::EnumClass::with_type(spec.value_type()) {
                class.values().iter().map(|v| (v.nick().to_owned(), v.name().to_owned())).collect()
            } else if let Some(class) = glib::FlagsClass::with_type(spec.value_type()) {
                class.values().iter().map(|v| (v.nick().to_owned(), v.name().to_owned())).collect()
            } else {
                continue;
            };
        assert!(!values.is_empty(), "{property} has no values");
        for (nick, name) in values {
            assert!(!nick.is_empty() && !nick.contains(char::is_uppercase), "{property}: {nick:?}");
            let is_variant = !name.contains(' ') && name.contains(char::is_lowercase);
            assert!(!is_variant && !name.contains('\n'), "{property}={nick}: {name:?}");
            assert!(!name.ends_with('.'), "{property}={nick}: {name:?}");
            checked += 1;
        }
    }
    assert!(checked > 0);
}

/// The flag makes gst-inspect-1.0 print the states, and makes an element warn when a value is set
/// too late to have an effect (`src/elements/property.rs`).
#[test]
fn every_writable_property_has_the_states_in_which_it_can_change() {
    let states = gst::PARAM_FLAG_MUTABLE_READY
        | gst::PARAM_FLAG_MUTABLE_PAUSED
        | gst::PARAM_FLAG_MUTABLE_PLAYING;
    for (property, spec) in properties() {
        let writable = spec.flags().contains(glib::ParamFlags::WRITABLE);
        assert_eq!(spec.flags().intersects(states), writable, "{property}: {:?}", spec.flags());
    }
}

/// The list in docs/usage.md. `NMSFILTER_WRITE_DOCS=1 cargo test -p nmsfilter-tests --test property_texts`
/// writes them.
#[test]
fn the_documents_have_the_list_of_decoders() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/usage.md");
    let document = std::fs::read_to_string(path).unwrap();
    let head = "H and W are the cells of a stride.\n\n";
    let begin = document.find(head).expect("the sentence before the list") + head.len();
    let end = begin + document[begin..].find("\n\n").map_or(0, |at| at + 1);
    let (_, spec) = properties().into_iter().find(|(name, _)| name == "nmsfilter.decoder").unwrap();
    let class = glib::EnumClass::with_type(spec.value_type()).unwrap();
    let mut values: Vec<_> = class.values().iter().filter(|value| value.nick() != "auto").collect();
    values.sort_by_key(|value| value.nick());
    let item = |value: &&glib::EnumValue| format!("- `{}`: {}\n", value.nick(), value.name());
    let list: String = values.iter().map(item).collect();
    if std::env::var_os("NMSFILTER_WRITE_DOCS").is_some() {
        std::fs::write(path, document[..begin].to_owned() + &list + &document[end..]).unwrap();
        return;
    }
    assert_eq!(document[begin..end], list, "write the list again with NMSFILTER_WRITE_DOCS=1");
}
