// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes valid and invalid metadata of tensors and regions to buffers.

use std::sync::atomic::{AtomicI64, Ordering};

use gst::glib;
use gst::prelude::*;
use gst_newer::{Capabilities, CustomMeta};
use gstnmsfilter::input::custom_meta::{self, META_NAME};
use nmsfilter_core::tensor::ElementType;

use crate::bytes::Bytes;
use crate::raw;
use crate::tensors::Spec;

/// Number of memories that are not freed yet.
pub static LIVE: AtomicI64 = AtomicI64::new(0);

/// Bytes that are counted in [`LIVE`] until they are freed.
struct Counted(Vec<u8>);

impl Counted {
    fn memory(bytes: &[u8]) -> gst::Memory {
        LIVE.fetch_add(1, Ordering::SeqCst);
        gst::Memory::from_slice(Self(bytes.to_vec()))
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a tensor's bytes are distributed over memories.
#[derive(Clone, Copy, Debug)]
enum Memory {
    Whole,
    /// Two memories that are split at this byte.
    Split(usize),
    /// Memories of 16 bytes. There are more than a buffer can hold without merging them.
    Pieces,
    /// A part of a larger memory, at this offset, which may misalign it.
    Part(usize),
    /// Memory that is writable.
    Writable,
}

/// An error in the structure `NmsFilterTensor`.
#[derive(Clone, Copy, Debug)]
enum Defect {
    None,
    Missing(&'static str),
    OtherType(&'static str),
    Null(&'static str),
    NotUtf8(&'static str),
    Dims(&'static str),
    Further,
    Bare,
}

/// A tensor, and the way in which it is written, which is reproducible.
#[derive(Clone, Debug)]
pub struct Attached {
    pub spec: Spec,
    memory: Memory,
    defect: Defect,
    /// If true, the tensor is written as `GstTensorMeta`.
    analytics: bool,
}

const NOT_UTF8: &[u8] = b"windows\xff\xc3";

const FIELDS: [&str; 4] = ["id", "type", "dims", "data"];

impl Attached {
    pub fn new(bytes: &mut Bytes<'_>, spec: Spec) -> Self {
        let memory = match bytes.below(16) {
            0..10 => Memory::Whole,
            10 => Memory::Split(bytes.below(spec.data.len() + 1)),
            11 => Memory::Pieces,
            12 => Memory::Part(bytes.pick(&[1, 2, 3, 4, 8, 64])),
            13 => Memory::Part(bytes.pick(&[4, 8, 64])),
            _ => Memory::Writable,
        };
        let defect = if bytes.one_in(16) {
            match bytes.below(8) {
                0 | 1 => Defect::Missing(bytes.pick(&FIELDS)),
                2 => Defect::OtherType(bytes.pick(&FIELDS)),
                3 => Defect::Null(bytes.pick(&FIELDS)),
                4 => Defect::NotUtf8(bytes.pick(&FIELDS)),
                5 => Defect::Dims(
                    bytes.pick(&["int", "string", "negative", "nested", "list", "buffer"]),
                ),
                6 => Defect::Bare,
                _ => Defect::Further,
            }
        } else {
            Defect::None
        };
        Self { spec, memory, defect, analytics: bytes.one_in(3) }
    }

    /// Whether it is written as `GstTensorMeta`, which the running GStreamer may not have.
    fn is_analytics(&self) -> bool {
        self.analytics && Capabilities::get().tensors.is_ok()
    }

    /// Returns true if a reader must return exactly this tensor.
    pub fn is_valid(&self) -> bool {
        // In GStreamer 1.26.2, a buffer has only one GstTensorMeta, so another one replaces its
        // tensors.
        if self.is_analytics() {
            return false;
        }
        let fits = self.spec.dims.len() <= nmsfilter_core::tensor::MAX_DIMENSIONS;
        let is_known = ElementType::from_name(self.spec.element).is_some();
        matches!(self.defect, Defect::None | Defect::Further) && fits && is_known
    }

    /// Writes the tensor to `buffer`.
    pub fn write(&self, buffer: &mut gst::BufferRef) {
        if self.is_analytics() {
            let id = match self.defect {
                Defect::Bare | Defect::Null(_) | Defect::Missing(_) => None,
                Defect::NotUtf8(_) => Some(NOT_UTF8),
                _ => Some(self.spec.id.as_bytes()),
            };
            return crate::analytics::write(buffer, &self.spec, self.data(), id);
        }
        custom_meta::register();
        // Without custom metadata, there is nothing to fuzz.
        let _ = CustomMeta::new(META_NAME, &[]).add(buffer, |structure| self.set_fields(structure));
    }

    fn set_fields(&self, structure: &mut gst::StructureRef) {
        if matches!(self.defect, Defect::Bare) {
            return;
        }
        raw::set_field(structure, "id", &raw::string(Some(self.spec.id.as_bytes())));
        structure.set("type", self.spec.element);
        structure.set("dims", gst::Array::new(self.spec.dims.iter().copied()));
        structure.set("data", self.data());
        self.corrupt(structure);
    }

    fn corrupt(&self, structure: &mut gst::StructureRef) {
        match self.defect {
            Defect::None | Defect::Bare => {}
            Defect::Missing(field) => structure.remove_field(field),
            Defect::OtherType(field) => structure.set(field, 0.5_f64),
            Defect::Null("data") => structure.set("data", None::<gst::Buffer>),
            Defect::Null("dims") => {
                raw::set_field(
                    structure,
                    "dims",
                    &glib::Value::from_type(gst::Array::static_type()),
                );
            }
            Defect::Null(field) => structure.set(field, None::<String>),
            Defect::NotUtf8(field) => {
                raw::set_text_field(structure, field, NOT_UTF8);
            }
            Defect::Dims("int") => structure.set("dims", gst::Array::new([1, 4])),
            Defect::Dims("string") => structure.set("dims", gst::Array::new(["1", "4"])),
            Defect::Dims("negative") => structure.set("dims", gst::Array::new([-1_i64, 4])),
            Defect::Dims("nested") => {
                structure.set("dims", gst::Array::new([gst::Array::new([4_u64])]));
            }
            Defect::Dims("list") => structure.set("dims", gst::List::new([1_u64, 4])),
            Defect::Dims(_) => structure.set("dims", gst::Array::new([gst::Buffer::new()])),
            Defect::Further => structure.set("further", gst::Array::new([gst::Buffer::new()])),
        }
    }

    fn data(&self) -> gst::Buffer {
        let data = &self.spec.data[..];
        let mut buffer = gst::Buffer::new();
        let all = buffer.make_mut();
        match self.memory {
            _ if data.is_empty() => {}
            Memory::Whole => all.append_memory(Counted::memory(data)),
            Memory::Split(at) => {
                let (first, second) = data.split_at(at.min(data.len()));
                for part in [first, second] {
                    all.append_memory(Counted::memory(part));
                }
            }
            Memory::Pieces => {
                for piece in data.chunks(16) {
                    all.append_memory(Counted::memory(piece));
                }
            }
            Memory::Part(at) => {
                let larger = [&vec![0xAA; at], data].concat();
                let larger = gst::Buffer::from_mut_slice(larger);
                return larger
                    .copy_region(gst::BufferCopyFlags::MEMORY, at..at + data.len())
                    .expect("it is a part of it");
            }
            Memory::Writable => return gst::Buffer::from_mut_slice(data.to_vec()),
        }
        buffer
    }
}

/// A region of interest that another element attached.
#[derive(Clone, Debug)]
pub struct ForeignRegion {
    kind: &'static [u8],
    rect: [u32; 4],
    params: usize,
    details: Vec<gst::Structure>,
}

const KINDS: [&[u8]; 6] = [
    b"face",
    b"",
    "größe\u{1F600}\u{200d}\u{0}".as_bytes(),
    b"a label that is a good deal longer than any box is wide, and then some more of it",
    b"\n\t\x01%s",
    b"class-7",
];

const EDGES: [u32; 12] = [0, 1, 2, 5, 17, 30, 64, 100, 65_535, 1 << 24, i32::MAX as u32, u32::MAX];

impl ForeignRegion {
    pub fn new(bytes: &mut Bytes<'_>) -> Self {
        let kind = if bytes.one_in(16) { b"face\xff\xc3" } else { bytes.pick(&KINDS) };
        let rect = [0; 4].map(|_: u32| bytes.pick(&EDGES));
        let params = bytes.below(16);
        let details = if bytes.one_in(2) { details(bytes) } else { Vec::new() };
        Self { kind, rect, params, details }
    }

    pub fn write(&self, buffer: &mut gst::BufferRef) {
        raw::add_region(buffer, self.kind, self.rect);
        let param = gst::Structure::builder("detection");
        let number = |value: f64| {
            gst::Structure::builder("detection").field("confidence", value).field("label_id", 3)
        };
        let param = match self.params {
            0..4 => number(0.5),
            4 => number(f64::NAN),
            5 => number(f64::INFINITY),
            6 => number(-1.0e300),
            7 => number(1.0e300).field("label_id", i32::MIN),
            8 => param.field("confidence", "high").field("label_id", "seven"),
            9 => param.field("confidence", 0.5_f32).field("label_id", u64::MAX),
            10 => param.field("confidence", gst::Array::new([0.5_f64])),
            11 => number(1.0).field("label_id", i32::MAX),
            12 => param.field("label", None::<String>),
            13 => gst::Structure::builder("other"),
            _ => return,
        };
        let last = buffer.iter_meta_mut::<gst_video::VideoRegionOfInterestMeta>().last();
        let mut last = last.expect("it was just added");
        // The overlay reads the first structure with a given name.
        self.details.iter().for_each(|detail| last.add_param(detail.clone()));
        last.add_param(param.build());
    }
}

/// Generates the structures of an oriented box, of keypoints and of a mask. Fields may be missing
/// or not fit together.
fn details(bytes: &mut Bytes<'_>) -> Vec<gst::Structure> {
    const NUMBERS: [f64; 14] = [
        0.0,
        0.5,
        1.0,
        7.25,
        20.0,
        40.0,
        64.0,
        200.0,
        -3.5,
        -90.0,
        1.0e6,
        1.0e300,
        f64::NAN,
        f64::INFINITY,
    ];
    const COUNTS: [i32; 12] = [0, 1, 2, 3, 5, 8, 17, 40, -1, 300, i32::MAX, i32::MIN];
    let mut made = Vec::new();
    if bytes.one_in(2) {
        let mut oriented = gst::Structure::new_empty("detection");
        for name in ["rotation", "center-x", "center-y", "width", "height"] {
            if !bytes.one_in(32) {
                oriented.set(name, bytes.pick(&NUMBERS));
            }
        }
        made.push(oriented);
    }
    if bytes.one_in(2) {
        let mut points = gst::Structure::new_empty("keypoints");
        let layouts = ["coco-17", "face-5", "points", "", "\u{1F600}"];
        points.set("layout", bytes.pick(&layouts));
        points.set("count", bytes.pick(&COUNTS));
        points.set("components", bytes.pick(&[2, 3, 3, 3, 0, 1, -3, i32::MAX]));
        let numbers = (0..bytes.below(60)).map(|_| bytes.pick(&NUMBERS) as f32);
        let mut data: Vec<u8> = numbers.flat_map(f32::to_ne_bytes).collect();
        data.truncate(data.len() - bytes.below(4).min(data.len()));
        points.set("data", gst::glib::Bytes::from_owned(data));
        made.push(points);
    }
    if bytes.one_in(2) {
        let mut mask = gst::Structure::new_empty("mask");
        for name in ["left", "top", "right", "bottom"] {
            mask.set(name, bytes.pick(&NUMBERS));
        }
        for name in ["width", "height"] {
            mask.set(name, bytes.pick(&COUNTS));
        }
        let data = vec![bytes.pick(&[0xff, 0xa5, 0]); bytes.below(200)];
        mask.set("data", gst::glib::Bytes::from_owned(data));
        made.push(mask);
    }
    // A field is replaced by a field of another type, or is removed.
    if let Some(last) = made.last_mut().filter(|_| bytes.one_in(8)) {
        let name = bytes.pick(&["data", "count", "width", "left", "rotation", "layout"]);
        if bytes.one_in(2) {
            last.set(name, bytes.pick(&["x", ""]))
        } else {
            last.remove_field(name)
        }
    }
    made
}

/// Formats the tensor like the plugin.
impl std::fmt::Display for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: Vec<String> = self.spec.dims.iter().map(u64::to_string).collect();
        let shape = if dims.is_empty() { "scalar".to_owned() } else { dims.join("x") };
        write!(f, "{} ({} {shape})", self.spec.id, self.spec.element)
    }
}
