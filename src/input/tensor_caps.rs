// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors that caps of GStreamer 1.28 describe.
//!
//! In: caps. Out: ids, element types and shapes.

use gst::glib;

use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

/// The tensors of each group, if all of a group are known. They have no elements.
pub fn groups(caps: &gst::CapsRef) -> Vec<Vec<TensorView<'static>>> {
    let groups = caps.structure(0).and_then(|caps| caps.get::<gst::Structure>("tensors").ok());
    let group = |value: &glib::SendValue| gst_newer::unique_list(value)?.map(tensor_of).collect();
    groups.iter().flat_map(|groups| groups.iter()).filter_map(|(_, value)| group(value)).collect()
}

/// The tensor of a value with caps, if its dimensions are known.
fn tensor_of(value: &glib::SendValue) -> Option<TensorView<'static>> {
    let caps = value.get::<gst::Caps>().ok()?;
    let structure = caps.structure(0)?;
    // Ids of tensors are quarks in GStreamer, too.
    let id = glib::Quark::from_str(structure.get::<&str>("tensor-id").ok()?).as_str();
    let element = element_type(structure.get::<&str>("type").ok()?);
    let dims = structure.get::<gst::Array>("dims").ok()?;
    let side = |value: &glib::SendValue| {
        value.get::<i32>().ok().and_then(|side| usize::try_from(side).ok()).filter(|&side| side > 0)
    };
    let dims: Vec<usize> = dims.iter().map(side).collect::<Option<_>>()?;
    Some(TensorView::new(id, element, Shape::new(&dims)?, Storage::Missing))
}

/// The element type of this name in caps.
fn element_type(name: &str) -> ElementType {
    match name {
        "float32" => ElementType::F32,
        "float16" => ElementType::F16,
        "int8" => ElementType::I8,
        "uint8" => ElementType::U8,
        "int32" => ElementType::I32,
        "int64" => ElementType::I64,
        _ => ElementType::Other("a type this plugin does not know"),
    }
}
