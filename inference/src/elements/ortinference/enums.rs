// SPDX-License-Identifier: MIT OR Apache-2.0
//! The enumerations of the element's properties, as GObject types, and their conversion to the types of
//! `inference`.
#![allow(missing_docs, reason = "the macros generate items without documentation")]

use gst::glib;

use crate::inference::provider;
use crate::inference::{self, model};
use crate::regions::RegionKind;
use gstnmsfilter::{format_type_name as format, property_enum};
use nmsfilter_core::geometry;

property_enum! {
    /// The processor that runs the model.
    Provider as "GstOrtInferenceProvider" for Option of provider::Provider {
        auto = 0, "Auto: CUDA if it can be used, else the CPU";
        Cpu = 1, "cpu", "CPU";
        Cuda = 2, "cuda", "CUDA: an NVIDIA GPU, or an error";
        TensorRt = 3, "tensorrt",
            "TensorRT: an NVIDIA GPU, or an error; preparing a model takes minutes at each start";
        Plugin = 4, "plugin", "Plugin: the execution provider in provider-library, or an error";
    }
}

property_enum! {
    /// The use of CUDA graphs.
    CudaGraph as "GstOrtInferenceCudaGraph" for inference::CudaGraph {
        #[default]
        Auto = 0, "auto",
            "Auto: if all nodes of the model run on the GPU and none has outputs of varying size";
        On = 1, "on", "On, or an error";
        Off = 2, "off", "Off: kernels are launched one by one";
    }
}

property_enum! {
    /// The parts of a frame on which the model runs.
    OrtInferenceRegions as "GstOrtInferenceRegions" for RegionKind {
        #[default]
        Frame = 0, "frame", "Frame: the whole frame";
        Tiles = 1, "tiles",
            "Tiles: overlapping tiles of tile-width x tile-height, and the whole frame";
        Rois = 2, "rois",
            "Rois: the regions of interest, or else the objects of the analytics library, on the buffer";
        List = 3, "list", "List: the regions in region-list";
    }
}

property_enum! {
    /// How frames are fitted into the model's input.
    OrtInferenceLetterbox as "GstOrtInferenceLetterbox" {
        None = 0, "none", "None: stretched to fill the model's input";
        Center = 1, "center", "Center: undistorted, borders on both sides";
        TopLeft = 2, "top-left", "Top left: undistorted, border right or below";
        #[default]
        Auto = 3, "auto", "Auto: as the model's signature says, else center";
    }
}

property_enum!(@chosen OrtInferenceLetterbox, geometry::Letterbox, None Center TopLeft);

property_enum! {
    /// The order of the dimensions of the model's input.
    InputLayout as "GstOrtInferenceLayout" for Option of model::InputLayout {
        auto = 0, "Auto: determined by the dimension that is 3 or 1";
        Nchw = 1, "nchw", "Batch, channels, height, width";
        Nhwc = 2, "nhwc", "Batch, height, width, channels";
    }
}

property_enum! {
    /// The order of the channels of the model's input.
    ChannelOrder as "GstOrtInferenceChannelOrder" for Option of model::ChannelOrder {
        auto = 2, "By the model's signature, else rgb";
        Rgb = 0, "rgb", "Red, green, blue";
        Bgr = 1, "bgr", "Blue, green, red";
    }
}
