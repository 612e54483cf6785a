// SPDX-License-Identifier: MIT OR Apache-2.0
//! The enumerations of the element's properties, as GObject types, and their conversion to the types of
//! `inference`.
#![allow(missing_docs, reason = "the macros generate items without documentation")]

use gst::glib;

use crate::inference::provider;
use crate::inference::{self, model};
use crate::regions::RegionKind;
use gstnmsfilter::format_type_name as format;
use nmsfilter_core::geometry;

/// The processor that runs the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceProvider", allow_name_conflict)]
pub enum Provider {
    /// CUDA if it can be used, else the CPU.
    #[default]
    #[enum_value(name = "Auto: CUDA if it can be used, else the CPU", nick = "auto")]
    Auto = 0,
    /// The CPU.
    #[enum_value(name = "CPU", nick = "cpu")]
    Cpu = 1,
    /// An NVIDIA GPU.
    #[enum_value(name = "CUDA: an NVIDIA GPU, or an error", nick = "cuda")]
    Cuda = 2,
    /// An NVIDIA GPU with TensorRT.
    #[enum_value(
        name = "TensorRT: an NVIDIA GPU, or an error; preparing a model takes minutes at each start",
        nick = "tensorrt"
    )]
    TensorRt = 3,
    /// A provider library.
    #[enum_value(
        name = "Plugin: the execution provider in provider-library, or an error",
        nick = "plugin"
    )]
    Plugin = 4,
}

impl Provider {
    /// Returns the providers to try, in order. All except the last may fail.
    pub fn candidates(self) -> &'static [provider::Provider] {
        match self {
            Self::Auto => &[provider::Provider::Cuda, provider::Provider::Cpu],
            Self::Cpu => &[provider::Provider::Cpu],
            Self::Cuda => &[provider::Provider::Cuda],
            Self::TensorRt => &[provider::Provider::TensorRt],
            Self::Plugin => &[provider::Provider::Plugin],
        }
    }
}

/// The use of CUDA graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceCudaGraph", allow_name_conflict)]
pub enum CudaGraph {
    /// Use a CUDA graph if the model can run as one.
    #[default]
    #[enum_value(
        name = "Auto: if all nodes of the model run on the GPU and none has outputs of varying size",
        nick = "auto"
    )]
    Auto = 0,
    /// Use a CUDA graph, or fail.
    #[enum_value(name = "On, or an error", nick = "on")]
    On = 1,
    /// Do not use a CUDA graph.
    #[enum_value(name = "Off: kernels are launched one by one", nick = "off")]
    Off = 2,
}

impl From<CudaGraph> for inference::CudaGraph {
    fn from(graph: CudaGraph) -> Self {
        match graph {
            CudaGraph::Auto => Self::Auto,
            CudaGraph::On => Self::On,
            CudaGraph::Off => Self::Off,
        }
    }
}

/// The parts of a frame on which the model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceRegions", allow_name_conflict)]
pub enum OrtInferenceRegions {
    /// The whole frame.
    #[default]
    #[enum_value(name = "Frame: the whole frame", nick = "frame")]
    Frame = 0,
    /// Overlapping tiles.
    #[enum_value(
        name = "Tiles: overlapping tiles of tile-width x tile-height, and the whole frame",
        nick = "tiles"
    )]
    Tiles = 1,
    /// Regions of interest.
    #[enum_value(
        name = "Rois: the regions of interest, or else the objects of the analytics library, on the buffer",
        nick = "rois"
    )]
    Rois = 2,
    /// A list.
    #[enum_value(name = "List: the regions in region-list", nick = "list")]
    List = 3,
}

impl From<OrtInferenceRegions> for RegionKind {
    fn from(regions: OrtInferenceRegions) -> Self {
        match regions {
            OrtInferenceRegions::Frame => Self::Frame,
            OrtInferenceRegions::Tiles => Self::Tiles,
            OrtInferenceRegions::Rois => Self::Rois,
            OrtInferenceRegions::List => Self::List,
        }
    }
}

/// How frames are fitted into the model's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceLetterbox", allow_name_conflict)]
pub enum OrtInferenceLetterbox {
    /// Stretched to fill the model's input.
    #[enum_value(name = "None: stretched to fill the model's input", nick = "none")]
    None = 0,
    /// Scaled without distortion, with borders on both sides.
    #[enum_value(name = "Center: undistorted, borders on both sides", nick = "center")]
    Center = 1,
    /// Scaled without distortion, with a border to the right or below.
    #[enum_value(name = "Top left: undistorted, border right or below", nick = "top-left")]
    TopLeft = 2,
    /// By the model's signature, or else in the center.
    #[default]
    #[enum_value(name = "Auto: as the model's signature says, else center", nick = "auto")]
    Auto = 3,
}

impl From<OrtInferenceLetterbox> for Option<geometry::Letterbox> {
    fn from(letterbox: OrtInferenceLetterbox) -> Self {
        match letterbox {
            OrtInferenceLetterbox::Auto => None,
            OrtInferenceLetterbox::None => Some(geometry::Letterbox::None),
            OrtInferenceLetterbox::Center => Some(geometry::Letterbox::Center),
            OrtInferenceLetterbox::TopLeft => Some(geometry::Letterbox::TopLeft),
        }
    }
}

/// The order of the dimensions of the model's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceLayout", allow_name_conflict)]
pub enum InputLayout {
    /// Determined from the number of channels.
    #[default]
    #[enum_value(name = "Auto: determined by the dimension that is 3 or 1", nick = "auto")]
    Auto = 0,
    /// Batch, channels, height, width.
    #[enum_value(name = "Batch, channels, height, width", nick = "nchw")]
    Nchw = 1,
    /// Batch, height, width, channels.
    #[enum_value(name = "Batch, height, width, channels", nick = "nhwc")]
    Nhwc = 2,
}

impl From<InputLayout> for Option<model::InputLayout> {
    fn from(layout: InputLayout) -> Self {
        match layout {
            InputLayout::Auto => None,
            InputLayout::Nchw => Some(model::InputLayout::Nchw),
            InputLayout::Nhwc => Some(model::InputLayout::Nhwc),
        }
    }
}

/// The order of the channels of the model's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstOrtInferenceChannelOrder", allow_name_conflict)]
pub enum ChannelOrder {
    /// That of the model's signature, else red, green, blue.
    #[default]
    #[enum_value(name = "By the model's signature, else rgb", nick = "auto")]
    Auto = 2,
    /// Red, green, blue.
    #[enum_value(name = "Red, green, blue", nick = "rgb")]
    Rgb = 0,
    /// Blue, green, red.
    #[enum_value(name = "Blue, green, red", nick = "bgr")]
    Bgr = 1,
}

impl From<ChannelOrder> for Option<model::ChannelOrder> {
    fn from(order: ChannelOrder) -> Self {
        match order {
            ChannelOrder::Auto => None,
            ChannelOrder::Rgb => Some(model::ChannelOrder::Rgb),
            ChannelOrder::Bgr => Some(model::ChannelOrder::Bgr),
        }
    }
}
