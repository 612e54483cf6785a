// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that is computed once for frames of one format and size: planes, components and colors.
//!
//! In: the description of the frames and of the model's input. Out: a [`Resampler`], with which the CPU
//! ([`super::cpu`]) or the GPU ([`super::gpu`]) makes the model's input from a frame, or with a
//! [`Scaling`](super::Scaling) from a region of it.

use arrayvec::ArrayVec;
use gst::glib;
use gst_video::{VideoConverter, VideoConverterConfig, VideoFormat, VideoFrameRef, VideoInfo};

use super::frame_format::{CHANNELS, FrameFormat};
use crate::inference::error::InferenceError;
use crate::inference::model::InputSpec;
use gstnmsfilter::frame::{FrameLayout, MappedFrame, Plane};

/// The value of letterbox borders in all channels. Models of the YOLO family are trained with this value.
pub const BORDER: u8 = 114;

/// Describes how frames of one format and size are converted to the model's input.
pub struct Resampler {
    /// The samples of the frames; of the converted frames, if frames are converted first.
    pub format: FrameFormat,
    /// The planes of the frames.
    pub layout: FrameLayout,
    /// For formats whose samples are not bytes: converts frames to RGB of equal size.
    converter: Option<Converter>,
}

struct Converter {
    converter: VideoConverter,
    /// The planes of the converted frames.
    layout: FrameLayout,
}

/// Memory for the samples that [`Resampler::samples`] converts. It is used again for every frame.
#[derive(Default)]
pub struct Scratch {
    converted: Option<gst::Buffer>,
    /// Copies of frames that have less memory than GstVideoConverter reads.
    copy: Vec<u8>,
}

impl Resampler {
    /// Creates a resampler for frames described by `frame`.
    ///
    /// # Errors
    /// If GstVideoConverter does not support the frame's format.
    pub fn new(frame: &VideoInfo, input: &InputSpec) -> Result<Self, glib::BoolError> {
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
                (format, Some(Converter { converter, layout: FrameLayout::new(&info) }))
            }
        };
        Ok(Self { format, layout: FrameLayout::new(frame), converter })
    }

    /// Calls `use_planes` with the plane of each component of `frame`.
    ///
    /// # Errors
    /// If the frame cannot be mapped, or if its layout does not fit its memory.
    pub fn samples<R>(
        &self,
        frame: &gst::BufferRef,
        scratch: &mut Scratch,
        use_planes: impl FnOnce(&[Plane<'_>]) -> R,
    ) -> Result<R, InferenceError> {
        let frame = MappedFrame::readable(frame, &self.layout)?;
        let Some(Converter { converter, layout }) = &self.converter else {
            return Ok(use_planes(&self.planes(&frame)));
        };
        let size = layout.info().size();
        let converted = match &mut scratch.converted {
            Some(converted) if converted.size() == size => converted,
            none => none.insert(gst::Buffer::with_size(size)?),
        };
        let data = converted.get_mut().expect("it has one owner");
        let mut to = VideoFrameRef::from_buffer_ref_writable(data, layout.info())?;
        frame.convert(&mut scratch.copy, |frame| converter.frame_ref(frame, &mut to));
        drop(to);
        let made = MappedFrame::readable(converted, layout)?;
        Ok(use_planes(&self.planes(&made)))
    }

    /// Returns the width and height of the frames in pixels.
    pub fn frame_size(&self) -> [u32; 2] {
        let info = self.layout.info();
        [info.width(), info.height()]
    }

    /// Returns whether frames are first converted on the host.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    fn planes<'a>(&self, frame: &'a MappedFrame<&gst::BufferRef>) -> ArrayVec<Plane<'a>, CHANNELS> {
        self.format.components.iter().map(|component| frame.plane(component.plane)).collect()
    }
}
