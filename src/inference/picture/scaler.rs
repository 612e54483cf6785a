// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a frame to a picture of the model's size.
//!
//! In: a frame of any raw format in host memory. Out: [`Pixels`] of 8-bit RGB or gray, scaled and
//! letterboxed by GstVideoConverter. A frame that has the model's size and a packed format of 8-bit RGB, in any
//! order of its channels, is used as it is.

use std::sync::Arc;

use gst::glib;
use gst_video::prelude::*;
use gst_video::{VideoConverter, VideoConverterConfig, VideoFormat, VideoFrameRef, VideoInfo};

use crate::device::PinnedBuffer;
use crate::geometry::Letterbox;
use crate::inference::model::{ChannelOrder, Input};

/// The color of letterbox borders: gray of value 114, as models of the YOLO family are trained with.
const BORDER_ARGB: u32 = 0xff72_7272;

/// Scales the frames of one format and size.
pub struct Scaler {
    frame: VideoInfo,
    /// The format of the pictures: that of the frame if it is used as it is.
    picture: VideoInfo,
    /// `None` if the frame is used as it is.
    converter: Option<VideoConverter>,
    /// Where the model's channels are in a pixel of the picture.
    offsets: [usize; 3],
}

/// Memory for a picture.
pub struct Picture {
    /// Its pixels, as [`Scaler::picture_size`] says.
    pub data: gst::Buffer,
    /// The memory of `data`, if a GPU copies from it.
    pub pinned: Option<Arc<PinnedBuffer>>,
}

/// The pixels of a picture, one byte per channel.
#[derive(Clone, Copy, Debug)]
pub struct Pixels<'a> {
    /// All rows.
    pub data: &'a [u8],
    /// Bytes from row to row.
    pub stride: usize,
    /// Bytes from pixel to pixel.
    pub pixel_stride: usize,
    /// The byte of each of the model's channels in a pixel.
    pub offsets: [usize; 3],
    /// Width and height.
    pub size: [usize; 2],
}

impl<'a> Pixels<'a> {
    /// The bytes of row `y`.
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.stride..][..self.size[0] * self.pixel_stride]
    }
}

impl Scaler {
    /// A scaler of frames described by `frame` to the picture that `input` describes.
    ///
    /// # Errors
    /// If GstVideoConverter does not support the frame's format.
    pub fn new(
        frame: &VideoInfo,
        input: &Input,
        letterbox: Letterbox,
    ) -> Result<Self, glib::BoolError> {
        let [width, height] = input.size;
        let size = [frame.width(), frame.height()];
        if size == input.size && is_packed_rgb(frame) && input.channels == 3 {
            let offsets = offsets(frame, input);
            return Ok(Self {
                frame: frame.clone(),
                picture: frame.clone(),
                converter: None,
                offsets,
            });
        }
        let format = if input.channels == 1 { VideoFormat::Gray8 } else { VideoFormat::Rgb };
        let picture = VideoInfo::builder(format, width, height)
            .fps(frame.fps())
            .interlace_mode(frame.interlace_mode())
            .build()?;
        let fit = letterbox.fit(size, input.size);
        let mut config = VideoConverterConfig::new();
        let side = |side: u32| Some(side as i32);
        config.set_src_width(side(fit.source[0]));
        config.set_src_height(side(fit.source[1]));
        config.set_dest_x(fit.offset[0] as i32);
        config.set_dest_y(fit.offset[1] as i32);
        config.set_dest_width(side(fit.size[0]));
        config.set_dest_height(side(fit.size[1]));
        config.set_fill_border(true);
        config.set_border_argb(BORDER_ARGB);
        // Two taps are plain bilinear interpolation, as most detectors are trained with (cv2.resize), and take
        // half the time of more.
        config.set_resampler_method(gst_video::VideoResamplerMethod::Linear);
        config.set_resampler_taps(2);
        // A picture is a tensor's input, where dithering is noise.
        config.set_dither_method(gst_video::VideoDitherMethod::None);
        let converter = Some(VideoConverter::new(frame, &picture, Some(config))?);
        let offsets = offsets(&picture, input);
        Ok(Self { frame: frame.clone(), picture, converter, offsets })
    }

    /// The size of a picture in bytes.
    pub fn picture_size(&self) -> usize {
        self.picture.size()
    }

    /// Whether frames are scaled or converted, and not used as they are.
    pub fn converts(&self) -> bool {
        self.converter.is_some()
    }

    /// Calls `use_pixels` with the pixels of the picture of `frame`, which are in `picture` unless the frame
    /// is used as it is.
    ///
    /// # Errors
    /// If the frame cannot be mapped.
    pub fn scale<R>(
        &self,
        frame: &gst::BufferRef,
        picture: &mut Picture,
        use_pixels: impl FnOnce(&Pixels<'_>) -> R,
    ) -> Result<R, glib::BoolError> {
        let frame = VideoFrameRef::from_buffer_ref_readable(frame, &self.frame)?;
        let Some(converter) = &self.converter else {
            return Ok(use_pixels(&self.pixels(&frame)?));
        };
        let data = picture.data.get_mut().expect("a picture has one owner");
        let mut to = VideoFrameRef::from_buffer_ref_writable(data, &self.picture)?;
        converter.frame_ref(&frame, &mut to);
        drop(to);
        let made = VideoFrameRef::from_buffer_ref_readable(&picture.data, &self.picture)?;
        Ok(use_pixels(&self.pixels(&made)?))
    }

    fn pixels<'a>(
        &self,
        frame: &'a VideoFrameRef<&gst::BufferRef>,
    ) -> Result<Pixels<'a>, glib::BoolError> {
        let stride = usize::try_from(frame.plane_stride()[0])
            .map_err(|_| glib::bool_error!("its rows are in reverse order"))?;
        let info = frame.info();
        let size = [info.width() as usize, info.height() as usize];
        let pixel_stride = info.comp_pstride(0) as usize;
        let data = frame.plane_data(0)?;
        Ok(Pixels { data, stride, pixel_stride, offsets: self.offsets, size })
    }
}

/// Whether the pixels are packed, with a byte for each of red, green and blue.
fn is_packed_rgb(info: &VideoInfo) -> bool {
    use VideoFormat as F;
    matches!(
        info.format(),
        F::Rgb
            | F::Bgr
            | F::Rgbx
            | F::Bgrx
            | F::Xrgb
            | F::Xbgr
            | F::Rgba
            | F::Bgra
            | F::Argb
            | F::Abgr
    )
}

/// The byte of each of the model's channels in a pixel.
fn offsets(info: &VideoInfo, input: &Input) -> [usize; 3] {
    if input.channels == 1 {
        return [0; 3];
    }
    let channel = |channel: u8| info.comp_poffset(channel) as usize;
    match input.order {
        ChannelOrder::Rgb => [channel(0), channel(1), channel(2)],
        ChannelOrder::Bgr => [channel(2), channel(1), channel(0)],
    }
}

impl Picture {
    /// Memory in the host's memory for the pictures of `scaler`.
    pub fn on_host(scaler: &Scaler) -> Self {
        let size = if scaler.converts() { scaler.picture_size() } else { 0 };
        let data = gst::Buffer::with_size(size).expect("GLib ends the process without memory");
        Self { data, pinned: None }
    }
}
