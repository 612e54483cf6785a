// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates caps: mostly of video, and some whose sizes or media types elements must refuse.

use gst_video::VideoFormat;

use crate::bytes::Bytes;

const SIDES: [i32; 16] =
    [64, 1, 2, 3, 17, 48, 100, 128, 320, 480, 640, 1080, 1920, 4096, 65_535, 7];

const FORMATS: [VideoFormat; 25] = [
    VideoFormat::I420,
    VideoFormat::Gray8,
    VideoFormat::Yv12,
    VideoFormat::Nv12,
    VideoFormat::Nv21,
    VideoFormat::Yuy2,
    VideoFormat::Uyvy,
    VideoFormat::Y42b,
    VideoFormat::Y444,
    VideoFormat::Rgb,
    VideoFormat::Bgr,
    VideoFormat::Rgbx,
    VideoFormat::Bgrx,
    VideoFormat::Xrgb,
    VideoFormat::Xbgr,
    VideoFormat::Rgba,
    VideoFormat::Bgra,
    VideoFormat::Argb,
    VideoFormat::Abgr,
    VideoFormat::Gbr,
    // The overlay does not support these formats, except NV16.
    VideoFormat::P01010le,
    VideoFormat::V210,
    VideoFormat::Nv16,
    VideoFormat::Gray16Le,
    VideoFormat::Encoded,
];

/// Generates fixed caps.
pub fn any(bytes: &mut Bytes<'_>) -> gst::Caps {
    match bytes.below(16) {
        0..12 => video(bytes, &SIDES),
        12 => odd(bytes),
        13 => dma(bytes),
        14 => device(bytes),
        _ => gst::Caps::builder(bytes.pick(&["audio/x-raw", "video/x-h264", "a/b"]))
            .field("width", 64)
            .field("height", 64)
            .build(),
    }
}

/// Generates caps of video in system memory. Width and height are each one of `sides`.
pub fn video(bytes: &mut Bytes<'_>, sides: &[i32]) -> gst::Caps {
    let (width, height) = (bytes.pick(sides), bytes.pick(sides));
    let caps = gst::Caps::builder("video/x-raw")
        .field("format", bytes.pick(&FORMATS).to_str())
        .field("width", width)
        .field("height", height);
    match bytes.below(4) {
        0 => caps.field("framerate", gst::Fraction::new(30, 1)),
        1 => caps.field("framerate", gst::Fraction::new(0, 1)),
        2 => caps
            .field("framerate", gst::Fraction::new(i32::MAX, 1))
            .field("pixel-aspect-ratio", gst::Fraction::new(1, i32::MAX)),
        _ => caps.field("colorimetry", bytes.pick(&["bt601", "sRGB", "1:4:0:0", "none"])),
    }
    .build()
}

/// Generates caps whose sides have invalid values or types.
fn odd(bytes: &mut Bytes<'_>) -> gst::Caps {
    let mut caps = gst::Caps::new_empty_simple("video/x-raw");
    let structure = caps.make_mut().structure_mut(0).expect("there is one");
    structure.set("format", "I420");
    for name in ["width", "height"] {
        match bytes.below(8) {
            0 => structure.set(name, 64),
            1 => structure.set(name, 0),
            2 => structure.set(name, i32::MIN),
            3 => structure.set(name, i32::MAX),
            4 => structure.set(name, 64_u32),
            5 => structure.set(name, "64"),
            6 => structure.set(name, 64.0),
            _ => {}
        }
    }
    caps
}

fn dma(bytes: &mut Bytes<'_>) -> gst::Caps {
    gst::Caps::builder("video/x-raw")
        .features(["memory:DMABuf"])
        .field("format", "DMA_DRM")
        .field("drm-format", bytes.pick(&["NV12", "NV12:0x0100000000000002", ""]))
        .field("width", bytes.pick(&SIDES))
        .field("height", bytes.pick(&SIDES))
        .build()
}

fn device(bytes: &mut Bytes<'_>) -> gst::Caps {
    gst::Caps::builder("video/x-raw")
        .features([bytes.pick(&["memory:CUDAMemory", "memory:NVMM", "memory:GLMemory"])])
        .field("format", "NV12")
        .field("width", bytes.pick(&SIDES))
        .field("height", bytes.pick(&SIDES))
        .build()
}
