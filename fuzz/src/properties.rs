// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets any property of an element, by the names and types that the element declares.

use gst::glib;
use gst::prelude::*;

use crate::bytes::Bytes;
use crate::raw;

/// Values for string properties. For each string property, some of them are valid.
const STRINGS: [&str; 25] = [
    "",
    "0",
    "1",
    "0,1",
    "0, 2,1,",
    "0:0.5",
    "0:0.1,1:0.7",
    "1:-2,0:0",
    "person",
    "person:0.3",
    "traffic light,person",
    "65535",
    "65536",
    "-1",
    "0:inf",
    "0:nan",
    "+1:1e-3",
    ":",
    ":0.5",
    ",,,:,",
    "1x84x8400",
    "4x4",
    "99999999999999999999",
    "größe\u{1F600},\u{feff}",
    "%s%n%05d",
];

const NOT_UTF8: [&[u8]; 4] = [b"\xff", b"person\xc3", b"0,\xed\xa0\x80:0.5", b"\xf0\x9f\x98"];

/// Returns the properties that can be set.
fn settable(element: &gst::Element) -> Vec<glib::ParamSpec> {
    let all = element.list_properties();
    // The parent is set only by adding the element to a bin.
    let settable = all.iter().filter(|spec| is_writable(spec) && spec.name() != "parent");
    settable.cloned().collect()
}

fn is_writable(spec: &glib::ParamSpec) -> bool {
    let flags = spec.flags();
    flags.contains(glib::ParamFlags::WRITABLE) && !flags.contains(glib::ParamFlags::CONSTRUCT_ONLY)
}

/// Picks a property by rendezvous hashing. If a property is added later, it takes some bytes from
/// each of the others, and all remaining bytes still pick their old property.
fn pick(element: &gst::Element, byte: u8) -> glib::ParamSpec {
    let rank = |spec: &glib::ParamSpec| {
        // FNV-1a with an additional mixing step, because otherwise the last byte would affect only
        // few bits.
        let bytes = spec.name().bytes().chain([byte]);
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    settable(element).into_iter().max_by_key(rank).expect("every element has properties")
}

/// Sets one property to a value of its type, or of another type.
pub fn set_one(bytes: &mut Bytes<'_>, element: &gst::Element) -> String {
    let spec = pick(element, bytes.byte());
    let wanted = if bytes.one_in(32) {
        bytes.pick(&[
            glib::Type::STRING,
            glib::Type::F64,
            glib::Type::I32,
            glib::Type::U64,
            glib::Type::BOOL,
        ])
    } else {
        spec.value_type()
    };
    let value = value(bytes, &spec, wanted);
    let text = format!("{} = {value:?}", spec.name());
    raw::set_property(element, spec.name(), &value);
    text
}

fn value(bytes: &mut Bytes<'_>, spec: &glib::ParamSpec, wanted: glib::Type) -> glib::Value {
    let is_usual = !bytes.one_in(8);
    match wanted {
        glib::Type::BOOL => bytes.bool().to_value(),
        // GStreamer does not support element names that are not UTF-8.
        glib::Type::STRING => string(bytes, spec.name() != "name"),
        glib::Type::F32 if is_usual => {
            bytes.pick(&[0.0_f32, 0.1, 0.2, 0.25, 0.3, 0.45, 0.5, 0.7, 1.0]).to_value()
        }
        glib::Type::F32 => match spec.downcast_ref::<glib::ParamSpecFloat>() {
            Some(spec) if bytes.bool() => {
                bytes.pick(&[spec.minimum(), spec.maximum(), spec.default_value()]).to_value()
            }
            _ => bytes.f32().to_value(),
        },
        glib::Type::F64 => f64::from(bytes.f32()).to_value(),
        glib::Type::U32 if is_usual => bytes.pick(&[0_u32, 1, 2, 7, 50, 64, 640]).to_value(),
        glib::Type::U32 => bytes.pick(&[u32::MAX, 65_535, 65_536, 1 << 31, 3, 1000]).to_value(),
        glib::Type::I32 => bytes.pick(&[-1, 0, 1, 77, -2, i32::MAX, i32::MIN]).to_value(),
        glib::Type::U64 => bytes.u64().to_value(),
        glib::Type::I64 => (bytes.u64() as i64).to_value(),
        other if raw::is_a(other, glib::Type::ENUM) => {
            let class = glib::EnumClass::with_type(other).expect("it is an enumeration");
            let known: Vec<i32> = class.values().iter().map(|value| value.value()).collect();
            let number = if is_usual { bytes.pick(&known) } else { bytes.u32() as i32 };
            raw::enumeration(other, number)
        }
        other if raw::is_a(other, glib::Type::FLAGS) => {
            let bits = if is_usual { u32::from(bytes.byte() % 4) } else { bytes.u32() };
            raw::flags(other, bits)
        }
        other => glib::Value::from_type(other),
    }
}

fn string(bytes: &mut Bytes<'_>, any_bytes: bool) -> glib::Value {
    match bytes.below(16) {
        0..12 => raw::string(Some(bytes.pick(&STRINGS).as_bytes())),
        12 => raw::string(None),
        13 => {
            // Several strings are concatenated.
            let pieces: String = (0..bytes.below(12)).map(|_| bytes.pick(&STRINGS)).collect();
            raw::string(Some(pieces.as_bytes()))
        }
        14 if any_bytes && bytes.bool() => raw::string(Some(bytes.pick(&NOT_UTF8))),
        14 => raw::string(Some("x".repeat(bytes.below(70_000)).as_bytes())),
        _ => {
            let text: Vec<u8> = (0..bytes.below(24)).map(|_| bytes.byte() & 0x7f).collect();
            raw::string(Some(&text))
        }
    }
}
