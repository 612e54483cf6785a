// SPDX-License-Identifier: MIT OR Apache-2.0
//! Video frames: the position of a format's samples, and checked access to planes.
//!
//! In: a buffer, and the `GstVideoInfo` of its caps. Out: the planes, as slices of mapped memory.
//!
//! A frame's `GstVideoMeta` determines the layout of the frame (offsets, strides, number of planes), and any
//! element can write this metadata. `gst_video_frame_map`, GstVideoConverter and the slices of the Rust bindings
//! trust it without a check. Elements that read or write samples therefore map frames with [`MappedFrame`], or check the
//! layout of a frame in device memory with [`FrameLayout::plane_at`].

mod component;
mod formats;
mod layout;
mod mapped;

pub use component::{COLORS, Component, components};
pub use formats::raw_formats;
pub use layout::{FrameError, FrameLayout};
pub use mapped::MappedFrame;
pub use mapped::Plane;
pub use mapped::PlaneMut;
