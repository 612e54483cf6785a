// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tensors that caps of GStreamer 1.28 describe.
//!
//! In: caps. Out: ids, element types and shapes.

use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

/// A tensor in caps.
#[derive(Clone, Debug, PartialEq)]
pub struct CapsTensor {
    /// The id.
    pub id: String,
    element: ElementType,
    shape: Shape,
}

impl CapsTensor {
    /// The tensor without elements.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::new(&self.id, self.element, self.shape.clone(), Storage::Missing)
    }
}

/// The tensors of each group, if all of a group are known.
pub fn groups(caps: &gst::CapsRef) -> Vec<Vec<CapsTensor>> {
    let groups = caps.structure(0).and_then(|caps| caps.get::<gst::Structure>("tensors").ok());
    let group =
        |value: &gst::glib::SendValue| gst_newer::unique_list(value)?.map(tensor_of).collect();
    groups.iter().flat_map(|groups| groups.iter()).filter_map(|(_, value)| group(value)).collect()
}

/// The tensor of a value with caps, if its dimensions are known.
fn tensor_of(value: &gst::glib::SendValue) -> Option<CapsTensor> {
    let caps = value.get::<gst::Caps>().ok()?;
    let structure = caps.structure(0)?;
    let id = structure.get::<String>("tensor-id").ok()?;
    let element = element_type(structure.get::<&str>("type").ok()?);
    let dims = structure.get::<gst::Array>("dims").ok()?;
    let side = |value: &gst::glib::SendValue| {
        value.get::<i32>().ok().and_then(|side| usize::try_from(side).ok()).filter(|&side| side > 0)
    };
    let dims: Vec<usize> = dims.iter().map(side).collect::<Option<_>>()?;
    Some(CapsTensor { id, element, shape: Shape::new(&dims)? })
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
