// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the tensors in the caps of GStreamer 1.28 at negotiation.
//!
//! In: caps. Out: an error if a decoder reads tensors of these ids, but not these shapes or element types. The first
//! frame would have this error, too. Caps do not have all that decoders need (labels, the size of the model's
//! input), and dimensions can be unknown. Missing fields are accepted.

use super::error::FrameError;
use super::settings::Settings;
use nmsfilter_core::decoder::{self, ChoiceError, LayoutError};
use nmsfilter_core::engine::Params;
use nmsfilter_core::reading::{self, Facts, Refusal};
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

/// A tensor in caps.
#[derive(Clone, Debug, PartialEq)]
struct CapsTensor {
    id: String,
    element: ElementType,
    shape: Shape,
}

/// Checks that a decoder reads the tensors of each group in the caps of frames of this size.
///
/// # Errors
/// If it does not read their shapes or element types.
pub(super) fn check(
    caps: &gst::CapsRef,
    settings: &Settings,
    frame: [u32; 2],
) -> Result<(), FrameError> {
    // With tensors of several elements, only the first frame shows which ones are decoded.
    if settings.tensors_from.is_some() {
        return Ok(());
    }
    let settings = reading::Settings {
        decoder: settings.wanted_decoder()?,
        options: settings.decoder_options(0, false, Default::default(), Some(frame)),
        classifiers: settings.decoder.classifiers(),
        has_class_thresholds: false,
        classes: None,
    };
    for tensors in groups(caps) {
        let is_known = tensors.iter().any(|tensor| decoder::is_known(&tensor.id));
        let view = |tensor| {
            let CapsTensor { id, element, shape }: &CapsTensor = tensor;
            TensorView::new(id, *element, shape.clone(), Storage::Missing)
        };
        let views: Vec<TensorView<'_>> = tensors.iter().map(view).collect();
        let facts = Facts { tensors: &views, family: None, in_frame: true, engine: None };
        let params = |_: Option<&_>| Ok::<_, Refusal>(Params::default());
        match reading::read(&facts, &settings, params) {
            Err(Refusal::Choice(error)) if is_known && contradicts(&error) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if the error is about facts that caps contain.
fn contradicts(error: &ChoiceError) -> bool {
    match error {
        ChoiceError::NoFit { .. } | ChoiceError::Incomplete { .. } => true,
        ChoiceError::Layout(error) => matches!(
            error,
            LayoutError::Shape { .. }
                | LayoutError::ElementType { .. }
                | LayoutError::Anchors { .. }
                | LayoutError::Lengths { .. }
        ),
        _ => false,
    }
}

/// The tensors of each group, if all of a group are known.
fn groups(caps: &gst::CapsRef) -> Vec<Vec<CapsTensor>> {
    let groups = caps.structure(0).and_then(|caps| caps.get::<gst::Structure>("tensors").ok());
    let group = |value: &gst::glib::SendValue| {
        let tensors = value.get::<gst::UniqueList>().ok()?;
        tensors.iter().map(tensor_of).collect()
    };
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
