// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames whose `GstVideoMeta` contradicts their memory or the caps give an error, without any
//! access outside of the memory.

use gst::glib::translate::IntoGlib;
use gst_video::{VideoFormat, VideoInfo};

use crate::element::{file, has_onnx_runtime};
use crate::support::onnx::{Element, identity};

/// The fields of a `GstVideoMeta`.
#[derive(Clone, Debug)]
struct VideoMetaFields {
    format: VideoFormat,
    size: [u32; 2],
    planes: u32,
    offsets: [usize; 4],
    strides: [i32; 4],
}

impl VideoMetaFields {
    /// Returns GStreamer's own layout.
    fn default_for(info: &VideoInfo) -> Self {
        let (mut offsets, mut strides) = ([0; 4], [0; 4]);
        let planes = info.n_planes() as usize;
        offsets[..planes].copy_from_slice(&info.offset()[..planes]);
        strides[..planes].copy_from_slice(&info.stride()[..planes]);
        let size = [info.width(), info.height()];
        Self { format: info.format(), size, planes: info.n_planes(), offsets, strides }
    }

    /// Writes the fields without checks, as an element written in C can.
    fn write(&self, buffer: &mut gst::BufferRef) {
        let (offsets, strides) = ([0; 4], [0; 4]);
        // SAFETY: the buffer is writable, and the arrays have an entry for each plane. The call
        // returns metadata of the buffer. Some values exceed the memory on purpose: the element
        // must detect them.
        unsafe {
            let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
                buffer.as_mut_ptr(),
                gst_video::ffi::GST_VIDEO_FRAME_FLAG_NONE,
                VideoFormat::Rgb.into_glib(),
                64,
                48,
                1,
                &offsets,
                &strides,
            );
            (*meta).format = self.format.into_glib();
            ((*meta).width, (*meta).height) = (self.size[0], self.size[1]);
            (*meta).n_planes = self.planes;
            (*meta).offset = self.offsets;
            (*meta).stride = self.strides;
        }
    }
}

/// Returns the element's error for a frame of `bytes` bytes with these caps and this layout.
fn error_of(info: &VideoInfo, bytes: usize, layout: &VideoMetaFields) -> Option<String> {
    let model = file(&identity([1, 3, 32, 32], Element::F32));
    let inference = gst::ElementFactory::make("ortinference")
        .property("model", model.to_str().unwrap())
        .build()
        .unwrap();
    let mut harness = gst_check::Harness::with_element(&inference, Some("sink"), Some("src"));
    let bus = gst::Bus::new();
    gst::prelude::ElementExt::set_bus(&inference, Some(&bus));
    harness.set_src_caps(info.to_caps().unwrap());
    let mut frame = gst::Buffer::from_mut_slice(vec![0x40_u8; bytes]);
    layout.write(frame.get_mut().unwrap());
    let result = harness.push(frame);
    let message = bus.pop_filtered(&[gst::MessageType::Error]);
    let error = message.map(|message| match message.view() {
        gst::MessageView::Error(error) => error.error().to_string(),
        _ => unreachable!("only errors are popped"),
    });
    assert_eq!(result.is_err(), error.is_some(), "{layout:?}: {result:?}, {error:?}");
    error
}

/// The formats have bytes as samples in one, two or three planes, samples of more than 8 bits, and
/// tiles.
#[test]
fn a_frame_whose_layout_exceeds_its_memory_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    for format in [
        VideoFormat::Rgb,
        VideoFormat::Nv12,
        VideoFormat::I420,
        VideoFormat::I42010le,
        VideoFormat::P01010le,
        VideoFormat::V210,
        VideoFormat::Rgb16,
        VideoFormat::Rgb8p,
        VideoFormat::Nv1264z32,
    ] {
        let info = VideoInfo::builder(format, 64, 48).build().unwrap();
        let whole = VideoMetaFields::default_for(&info);
        assert_eq!(error_of(&info, info.size(), &whole), None, "{format}");
        let last = info.n_planes() as usize - 1;
        let stride = |stride| {
            let mut layout = whole.clone();
            layout.strides[last] = stride;
            layout
        };
        let offset = |offset| {
            let mut layout = whole.clone();
            layout.offsets[last] = offset;
            layout
        };
        for (layout, message) in [
            (stride(whole.strides[last] + 200), "bytes from its first row on and a stride of"),
            (stride(4096), "bytes from its first row on and a stride of"),
            (stride(i32::MAX), "bytes from its first row on and a stride of"),
            (stride(0), "bytes from its first row on and a stride of"),
            (stride(-whole.strides[last]), "in reverse order"),
            (stride(i32::MIN), "in reverse order"),
            (offset(info.offset()[last] + 256), "bytes from its first row on and a stride of"),
            (offset(usize::MAX), "cannot be mapped"),
        ] {
            let error = error_of(&info, info.size(), &layout).unwrap_or_default();
            assert!(error.contains(message), "{layout:?}: {error:?}, expected {message:?}");
        }
    }
}

#[test]
fn a_frame_that_is_not_of_the_caps_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    let info = VideoInfo::builder(VideoFormat::I420, 64, 48).build().unwrap();
    let whole = VideoMetaFields::default_for(&info);
    for (layout, message) in [
        (VideoMetaFields { planes: 0, ..whole.clone() }, "has 0 planes; I420 has 3"),
        (VideoMetaFields { planes: 1, ..whole.clone() }, "has 1 planes; I420 has 3"),
        (VideoMetaFields { planes: 5, ..whole.clone() }, "has 5 planes; I420 has 3"),
        (
            VideoMetaFields { planes: u32::MAX, ..whole.clone() },
            "has 4294967295 planes; I420 has 3",
        ),
        (VideoMetaFields { format: VideoFormat::Nv12, ..whole.clone() }, "is for NV12"),
        (VideoMetaFields { format: VideoFormat::Gray8, ..whole.clone() }, "is for GRAY8"),
        (VideoMetaFields { size: [63, 48], ..whole.clone() }, "is for I420 of 63x48"),
        (VideoMetaFields { size: [64, 0], ..whole.clone() }, "is for I420 of 64x0"),
    ] {
        let error = error_of(&info, info.size(), &layout).unwrap_or_default();
        assert!(error.contains(message), "{layout:?}: {error:?}, expected {message:?}");
    }
    // The layout is larger than the caps. The picture is at the upper left.
    assert_eq!(error_of(&info, info.size(), &VideoMetaFields { size: [96, 90], ..whole }), None);
}
