// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed once for frames of one format and size: positions, colors, and the region.
//!
//! In: the description of frames, of the model's input, and the letterbox. Out: a [`Resampler`], by which
//! the CPU ([`super::cpu`]) and the GPU ([`super::gpu`]) make the model's input.

use gst::glib;
use gst_video::prelude::*;
use gst_video::{VideoConverter, VideoConverterConfig, VideoFormat, VideoFrameRef, VideoInfo};

use super::frame_format::{CHANNELS, FrameFormat};
use super::positions::{POSITION_BITS, positions};
use crate::geometry::{Fit, Letterbox};
use crate::inference::model::Input;

/// The value of letterbox borders in all channels, with which models of the YOLO family are trained.
pub const BORDER: u8 = 114;

/// The positions of the region's pixels among the samples of a component.
#[derive(Clone, Debug, Default)]
pub struct ComponentPositions {
    /// Of the region's columns.
    pub columns: Vec<u32>,
    /// Of the region's rows.
    pub rows: Vec<u32>,
}

/// How frames of one format and size become the model's input.
pub struct Resampler {
    /// The samples of frames, converted if need be.
    pub format: FrameFormat,
    /// The size of the scaled frame, and its position in the model's input.
    pub fit: Fit,
    /// For each component.
    pub positions: [ComponentPositions; CHANNELS],
    frame: VideoInfo,
    /// For formats whose samples are not bytes: converts to RGB of the same size.
    converter: Option<Converter>,
}

struct Converter {
    converter: VideoConverter,
    info: VideoInfo,
}

/// The plane of a component of a frame, in host memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plane<'a> {
    /// All bytes of the plane.
    pub data: &'a [u8],
    /// The byte of the component's first sample.
    pub offset: usize,
    /// Bytes from row to row.
    pub stride: usize,
}

/// Memory for the samples that [`Resampler::samples`] converts; used again for every frame.
#[derive(Default)]
pub struct Scratch {
    converted: Option<gst::Buffer>,
}

impl Resampler {
    /// A resampler of frames described by `frame`.
    ///
    /// # Errors
    /// If GstVideoConverter does not support the frame's format.
    pub fn new(
        frame: &VideoInfo,
        input: &Input,
        letterbox: Letterbox,
    ) -> Result<Self, glib::BoolError> {
        let (format, converter) = match FrameFormat::new(frame, input) {
            Some(format) => (format, None),
            None => {
                let info = VideoInfo::builder(VideoFormat::Rgb, frame.width(), frame.height())
                    .fps(frame.fps())
                    .interlace_mode(frame.interlace_mode())
                    .build()?;
                let mut config = VideoConverterConfig::new();
                config.set_dither_method(gst_video::VideoDitherMethod::None);
                let converter = VideoConverter::new(frame, &info, Some(config))?;
                let format = FrameFormat::new(&info, input).expect("RGB has 8 bits");
                (format, Some(Converter { converter, info }))
            }
        };
        let fit = letterbox.fit([frame.width(), frame.height()], input.size);
        let mut all = <[ComponentPositions; CHANNELS]>::default();
        for (to, component) in all.iter_mut().zip(&format.components) {
            let axis =
                |axis: usize| positions(fit.source[axis], component.shift[axis], fit.size[axis]);
            *to = ComponentPositions { columns: axis(0), rows: axis(1) };
        }
        Ok(Self { format, fit, positions: all, frame: frame.clone(), converter })
    }

    /// Calls `use_planes` with the samples of each component of `frame`.
    ///
    /// # Errors
    /// If the frame cannot be mapped, or has its rows in reverse order.
    pub fn samples<R>(
        &self,
        frame: &gst::BufferRef,
        scratch: &mut Scratch,
        use_planes: impl FnOnce(&[Plane<'_>]) -> R,
    ) -> Result<R, glib::BoolError> {
        let frame = VideoFrameRef::from_buffer_ref_readable(frame, &self.frame)?;
        let Some(Converter { converter, info }) = &self.converter else {
            return Ok(use_planes(&self.planes(&frame)?));
        };
        let converted = match &mut scratch.converted {
            Some(converted) if converted.size() == info.size() => converted,
            none => none.insert(gst::Buffer::with_size(info.size())?),
        };
        let data = converted.get_mut().expect("it has one owner");
        let mut to = VideoFrameRef::from_buffer_ref_writable(data, info)?;
        converter.frame_ref(&frame, &mut to);
        drop(to);
        let made = VideoFrameRef::from_buffer_ref_readable(&*converted, info)?;
        Ok(use_planes(&self.planes(&made)?))
    }

    /// Whether frames are converted on the host first.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    /// Where the planes of a frame begin, and the bytes from row to row, if its buffer does not say them.
    pub fn frame_layout(&self) -> (&[usize], &[i32]) {
        (self.frame.offset(), self.frame.stride())
    }

    /// The byte of the last sample of component `k` that is read, from its first sample on.
    pub fn last_sample(&self, k: usize, stride: usize) -> usize {
        let (component, positions) = (&self.format.components[k], &self.positions[k]);
        // Positions ascend.
        let last = |positions: &[u32]| {
            positions.last().map_or(0, |at| at.div_ceil(1 << POSITION_BITS) as usize)
        };
        last(&positions.rows) * stride + last(&positions.columns) * component.pixel_stride
    }

    fn planes<'a>(
        &self,
        frame: &'a VideoFrameRef<&gst::BufferRef>,
    ) -> Result<[Plane<'a>; CHANNELS], glib::BoolError> {
        let mut planes = [Plane::default(); CHANNELS];
        for (k, (to, component)) in planes.iter_mut().zip(&self.format.components).enumerate() {
            let stride = usize::try_from(frame.plane_stride()[component.plane])
                .map_err(|_| glib::bool_error!("its rows are in reverse order"))?;
            let data = frame.plane_data(component.plane as u32)?;
            let needed = component.offset + self.last_sample(k, stride) + 1;
            if data.len() < needed {
                return Err(glib::bool_error!(
                    "plane {} has {} bytes; expected {needed}",
                    component.plane,
                    data.len()
                ));
            }
            *to = Plane { data, offset: component.offset, stride };
        }
        Ok(planes)
    }
}
