// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups of tensors that `nmstensordec` decodes, as GStreamer's inference elements have them in their caps.
//!
//! In: the groups that decoders state. Out: the caps of the sink pad.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::decoder::{GroupTensor, TensorGroup, tensor_groups};

/// The groups whose decoders in GStreamer end with an error if the tensors are missing.
const REQUIRED: [&str; 2] =
    ["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out", "ssd-mobilenet-v1-variant-1-out"];

/// The groups.
pub static GROUPS: LazyLock<Vec<TensorGroup>> = LazyLock::new(tensor_groups);

/// Whether GStreamer's decoder of this group ends with an error if the tensors are missing.
pub(super) fn is_required(group: &TensorGroup) -> bool {
    REQUIRED.contains(&group.id)
}

/// The caps of the sink: a structure for each group. `None` if this GStreamer does not read such caps.
pub(super) fn sink_caps() -> Option<&'static gst::Caps> {
    static CAPS: LazyLock<Option<gst::Caps>> = LazyLock::new(|| {
        // Before 1.28 the text is no caps, and GStreamer logs an error.
        (gst::version() >= (1, 28, 0, 0)).then(|| text().parse().ok()).flatten()
    });
    CAPS.as_ref()
}

/// The caps of the sink as a text.
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

/// The caps of a tensor. Elements differ in the order of the dimensions that they claim for the same bytes.
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
            assert!(GROUPS.iter().any(|group| group.id == id && is_required(group)), "{id}");
        }
    }
}
