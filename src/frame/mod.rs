// SPDX-License-Identifier: MIT OR Apache-2.0
//! Video frames: where a format has its samples, and access to planes that is checked.
//!
//! In: a buffer, and the `GstVideoInfo` of its caps. Out: the planes, as slices of mapped memory.
//!
//! The layout of a frame (offsets, strides, number of planes) comes from its `GstVideoMeta`, which any element can
//! have written. `gst_video_frame_map` takes it as it is, and so do GstVideoConverter and the slices of the
//! bindings. Elements that read or write samples therefore map frames with [`Frame`], or check the layout of a
//! frame in device memory with [`FrameLayout::plane_at`].

mod component;
mod layout;
mod mapped;

pub use component::{COLORS, Component, components};
pub use layout::{FrameError, FrameLayout};
pub use mapped::Frame;
pub use mapped::Plane;
pub use mapped::PlaneMut;
