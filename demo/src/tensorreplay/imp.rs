// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `BaseTransform` subclass. In: buffers and properties. Out: these buffers, each with a
//! recorded tensor.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::RawType;
use super::file::{FileKind, ReadOptions};
use super::recording::{Recording, RecordingError};
use crate::TensorMemory;
use crate::tensor_memory::TensorTransfer;
use gstnmsfilter::elements::{any_video, lock, not_started, pad_templates, property};
use gstnmsfilter::input::custom_meta;

gstnmsfilter::debug_category!(CAT, "tensorreplay", "Replay of recorded tensors");

#[derive(Clone, Debug)]
struct Settings {
    location: Option<String>,
    tensor_id: Option<String>,
    raw_type: RawType,
    shape: Option<String>,
    repeat: bool,
    memory: TensorMemory,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            location: None,
            tensor_id: None,
            raw_type: RawType::default(),
            shape: None,
            repeat: true,
            memory: TensorMemory::default(),
        }
    }
}

struct State {
    recording: Recording,
    repeat: bool,
    memory: TensorMemory,
    transfer: TensorTransfer,
    /// Number of buffers since the start or the last flush.
    frame: u64,
}

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::TensorReplay)]
pub struct TensorReplay {
    #[property(
        name = "location", get, set, type = Option<String>, member = location,
        nick = "Location",
        blurb = "File of the recording: .csv or .txt with lines x,y,side,score, or .npy (unpack an .npz \
                 archive, which has an .npy file per array); any other file is raw. If the name \
                 contains %d or %05d, there is one file per frame, and the first frame is 0. Each file \
                 must be regular and have at most 1 GiB",
        mutable_ready
    )]
    #[property(
        name = "tensor-id", get, set, type = Option<String>, member = tensor_id,
        nick = "Tensor id",
        blurb = "Id of the tensor (unset: windows for .csv and .txt, otherwise the name of the first file \
                 without its extension)",
        mutable_ready
    )]
    #[property(
        name = "element-type", get, set, type = RawType, member = raw_type,
        builder(Settings::default().raw_type)
            .nick("Element type")
            .blurb("Element type of a raw recording")
            .mutable_ready()
    )]
    #[property(
        name = "shape", get, set, type = Option<String>, member = shape,
        nick = "Shape",
        blurb = "Shape of one tensor, such as 1x84x8400 (unset: the shape in the file; required for raw \
                 files). A file that contains several tensors of this shape has one per frame",
        mutable_ready
    )]
    #[property(
        name = "repeat", get, set, type = bool, member = repeat,
        default = Settings::default().repeat,
        nick = "Repeat",
        blurb = "Repeat the recording after its last frame instead of ending the stream",
        mutable_ready
    )]
    #[property(
        name = "memory", get, set, type = TensorMemory, member = memory,
        builder(Settings::default().memory)
            .nick("Memory")
            .blurb("Memory that contains the tensors")
            .mutable_ready()
    )]
    settings: Mutex<Settings>,
    /// The state, or `None` before the start and after the stop.
    state: Mutex<Option<State>>,
}

#[glib::object_subclass]
impl ObjectSubclass for TensorReplay {
    const NAME: &'static str = "GstTensorReplay";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::TensorReplay;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for TensorReplay {
    fn properties() -> &'static [glib::ParamSpec] {
        Self::derived_properties()
    }

    fn property(&self, id: usize, spec: &glib::ParamSpec) -> glib::Value {
        self.derived_property(id, spec)
    }

    fn set_property(&self, id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            self.derived_set_property(id, value, spec);
        }
    }
}

impl GstObjectImpl for TensorReplay {}

impl ElementImpl for TensorReplay {
    gstnmsfilter::element_metadata!(
        "Tensor replay",
        "Filter/Metadata/Video",
        "Attaches recorded tensors to video buffers, like an inference element"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| pad_templates(&any_video(), &any_video()));
        &TEMPLATES
    }
}

impl BaseTransformImpl for TensorReplay {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    // Metadata is attached to every buffer, so the element is never in passthrough mode.
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let open = || {
            let location = settings.location.as_deref().ok_or(RecordingError::NoLocation)?;
            let Settings { tensor_id, raw_type, shape, .. } = &settings;
            gst::debug!(
                CAT,
                imp = self,
                "{location} is read as {:?}",
                FileKind::from_extension(location)
            );
            let options = ReadOptions::new(tensor_id.clone(), *raw_type, shape.as_deref())?;
            Recording::open(location, options)
        };
        let recording = open().map_err(|error| message(&error))?;
        gst::debug!(CAT, imp = self, "opened {recording:?}");
        *lock(&self.state) = Some(State {
            recording,
            repeat: settings.repeat,
            memory: settings.memory,
            transfer: TensorTransfer::default(),
            frame: 0,
        });
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::FlushStop
            && let Some(state) = lock(&self.state).as_mut()
        {
            state.frame = 0;
        }
        self.parent_sink_event(event)
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let next = lock(&self.state).as_mut().map(|state| {
            let frame = state.frame;
            state.frame += 1;
            state.recording.frame(frame, state.repeat).and_then(|tensor| {
                let transfer = |tensor| state.transfer.transfer(tensor, state.memory);
                Ok(tensor.map(transfer).transpose()?)
            })
        });
        let next = next.ok_or_else(|| not_started(self.obj().upcast_ref()))?;
        let attached = next.and_then(|tensor| match tensor {
            Some(tensor) => Ok(Some(custom_meta::attach(buffer, &tensor)?)),
            None => Ok(None),
        });
        match attached {
            Ok(Some(())) => Ok(gst::FlowSuccess::Ok),
            Ok(None) => Err(gst::FlowError::Eos),
            Err(error) => {
                self.post_error_message(message(&error));
                Err(gst::FlowError::Error)
            }
        }
    }
}

fn message(error: &RecordingError) -> gst::ErrorMessage {
    match error {
        RecordingError::NoLocation => {
            gst::error_msg!(gst::ResourceError::NotFound, ("{error}"), ["{error:?}"])
        }
        error if error.is_not_found() => {
            gst::error_msg!(gst::ResourceError::NotFound, ("{error}"), ["{error:?}"])
        }
        RecordingError::File { .. } => {
            gst::error_msg!(gst::ResourceError::OpenRead, ("{error}"), ["{error:?}"])
        }
        RecordingError::Upload(_) => {
            gst::error_msg!(gst::LibraryError::Failed, ("{error}"), ["{error:?}"])
        }
        RecordingError::Shape(_) | RecordingError::NoShape { .. } | RecordingError::Pattern(_) => {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"), ["{error:?}"])
        }
        _ => gst::error_msg!(gst::StreamError::Format, ("{error}"), ["{error:?}"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_before_the_start_is_an_error_on_the_bus() {
        gst::init().unwrap();
        let element: super::super::TensorReplay = glib::Object::new();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut buffer = gst::Buffer::new();
        let result = element.imp().transform_ip(buffer.get_mut().unwrap());
        assert_eq!(result, Err(gst::FlowError::Error));
        assert!(bus.pop_filtered(&[gst::MessageType::Error]).is_some());
    }
}
