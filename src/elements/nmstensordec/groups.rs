// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups of tensors that `nmstensordec` decodes, in the form in which GStreamer's inference elements put them
//! in their caps.
//!
//! In: the groups that decoders state. Out: the caps of the sink pad.

use std::fmt::Write;
use std::sync::LazyLock;

use gst_newer::Capabilities;
use nmsfilter_core::decoder::{GroupTensor, TensorGroup, classifier, tensor_groups};

/// The groups whose decoders in GStreamer end with an error if the tensors are missing.
pub(super) const REQUIRED: [&str; 2] =
    ["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out", "ssd-mobilenet-v1-variant-1-out"];

/// The groups.
pub static GROUPS: LazyLock<Vec<TensorGroup>> = LazyLock::new(tensor_groups);

/// Returns true if a classifier's scores are the group.
pub(super) fn is_classifier(group: &TensorGroup) -> bool {
    group.tensors.iter().any(|tensor| classifier::is_id(tensor.id))
}

/// Returns the caps of the sink pad, with one structure per group. `None` if the running GStreamer cannot parse
/// such caps.
pub(super) fn sink_caps() -> Option<&'static gst::Caps> {
    static CAPS: LazyLock<Option<gst::Caps>> = LazyLock::new(|| {
        // Before 1.28 the text is not valid, and parsing it would make GStreamer log an error.
        Capabilities::get().tensor_caps.ok().and_then(|()| text().parse().ok())
    });
    CAPS.as_ref()
}

/// Returns the caps of the sink pad as text.
fn text() -> String {
    let mut text = String::new();
    for TensorGroup { id, tensors } in GROUPS.iter() {
        let tensors: Vec<String> = tensors.iter().map(tensor_text).collect();
        write!(
            text,
            "video/x-raw(ANY), tensors=(structure)[tensorgroups, {id}=(/uniquelist){{{}}}];",
            tensors.join(", ")
        )
        .expect("a string can be written to");
    }
    text
}

/// Returns the caps of a tensor as text. Both orders of dimensions are accepted, because elements claim different
/// orders for identical bytes.
fn tensor_text(GroupTensor { id, dims }: &GroupTensor) -> String {
    let dims: Vec<String> = dims
        .iter()
        .map(|side| side.map_or("(int)[0, max]".to_owned(), |side| format!("(int){side}")))
        .collect();
    format!(
        "(GstCaps)[tensor/strided, tensor-id=(string){id}, dims=<{}>, \
         dims-order=(string){{row-major, col-major}}, type=(string){{float32, float16}}]",
        dims.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_required_groups_exist() {
        for id in REQUIRED {
            assert!(GROUPS.iter().any(|group| group.id == id), "{id}");
        }
    }
}
