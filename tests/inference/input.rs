// SPDX-License-Identifier: MIT OR Apache-2.0
//! The input that a model receives: the numbers, their order, and the position of the frame.
//!
//! The models return their input, so that the attached tensor shows what the model received.

use std::str::FromStr;

use gst::prelude::*;
use gst_video::{VideoFormat, VideoInfo};
use nmsfilter_core::geometry::{FitRule, Letterbox};

use crate::element::{self, Values, file, has_onnx_runtime};
use crate::frames::{self, Picture, converted, tensors_of};
use crate::support::onnx::{Element, Node, OnnxModel, Tensor, identity};
use crate::support::pipeline;

/// Asserts that two pictures are equal, and reports the first pixel that differs.
fn assert_same(found: &Picture, expected: &Picture, what: &str) {
    assert_near(found, expected, 0, what);
}

/// Asserts that no value differs from the expected picture by more than `tolerance`.
fn assert_near(found: &Picture, expected: &Picture, tolerance: u8, what: &str) {
    assert_eq!(found.size, expected.size, "{what}");
    let [width, height] = found.size;
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let (found, expected) = (found.at(x, y), expected.at(x, y));
        let is_near = (0..3).all(|c| found[c].abs_diff(expected[c]) <= tolerance);
        assert!(is_near, "{what}: pixel {x},{y} is {found:?}, expected {expected:?}");
    }
}

/// The value of letterbox borders in all channels.
const BORDER: u8 = 114;

/// Returns a picture that has every value in each channel.
fn picture() -> Picture {
    Picture::new([32, 24], |x, y| {
        let value = (y * 32 + x) as u32;
        [value as u8, (value * 7 + 3) as u8, (255 - value % 256) as u8]
    })
}

/// Returns a model whose input is a picture of this size in f32, and which returns its input.
pub fn returns_its_input(size: [usize; 2]) -> OnnxModel {
    let [width, height] = size.map(|side| side as i64);
    identity([1, 3, height, width], Element::F32)
}

/// Returns the pixels that a model receives for a frame after the elements `before`.
fn received(frame: &Picture, before: &str, model: [usize; 2], properties: &str) -> Picture {
    let model = file(&returns_its_input(model));
    // With this range, the numbers equal the pixels.
    let properties = format!("range=0,255 {properties}");
    Picture::from_planes(&converted(frame, before, &model, &properties)[0])
}

/// Asserts that for each pixel of `picture`, a model receives the number `expected(channel,
/// value)`.
fn assert_numbers(properties: &str, expected: impl Fn(usize, u8) -> f32) {
    let picture = picture();
    let model = file(&returns_its_input(picture.size));
    let tensor = tensors_of(&picture, &model, properties).remove(0);
    assert_eq!(tensor.shape, [1, 3, 24, 32]);
    let numbers = (0..3).flat_map(|c| picture.channel(c).map(move |value| (c, value)));
    let numbers: Vec<f32> = numbers.map(|(c, value)| expected(c, value)).collect();
    assert_eq!(tensor.f32(), numbers, "{properties}");
}

#[test]
fn an_rgb_frame_of_the_models_size_becomes_planes_of_numbers_from_0_to_1() {
    if !has_onnx_runtime() {
        return;
    }
    assert_numbers("", |_, value| (f64::from(value) / 255.0) as f32);
}

#[test]
fn range_says_what_black_and_white_become() {
    if !has_onnx_runtime() {
        return;
    }
    assert_numbers("range=0,255", |_, value| value.into());
    assert_numbers("range=-1,1", |_, value| (f64::from(value) * 2.0 / 255.0 - 1.0) as f32);
    assert_numbers("range=255,0", |_, value| (255 - value).into());
}

#[test]
fn mean_and_std_are_numbers_for_red_green_and_blue() {
    if !has_onnx_runtime() {
        return;
    }
    // Normalization with which UltraFace was trained. It is exact in single precision.
    let properties = "range=0,255 mean=127 std=128";
    assert_numbers(properties, |_, value| (f32::from(value) - 127.0) / 128.0);
    // Normalization for ImageNet: computed in double precision, and rounded once.
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    assert_numbers("mean=0.485,0.456,0.406 std=0.229,0.224,0.225", |c, value| {
        ((f64::from(value) / 255.0 - mean[c]) / std[c]) as f32
    });
}

#[test]
fn bgr_models_receive_blue_first_with_the_numbers_of_blue() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let model = file(&returns_its_input(picture.size));
    let properties = "channel-order=bgr range=0,255 mean=1,2,3";
    let tensor = tensors_of(&picture, &model, properties).remove(0);
    let planes = [2, 1, 0].map(|c| picture.channel(c).map(move |v| f32::from(v) - (c + 1) as f32));
    let expected: Vec<f32> = planes.into_iter().flatten().collect();
    assert_eq!(tensor.f32(), expected);
}

#[test]
fn nhwc_models_receive_the_channels_of_a_pixel_together() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let model = file(&identity([1, 24, 32, 3], Element::F32));
    let numbers = |order: [usize; 3]| {
        let pixels = picture.pixels.iter();
        pixels.flat_map(|pixel| order.map(|c| f32::from(pixel[c]))).collect::<Vec<_>>()
    };
    let tensor = tensors_of(&picture, &model, "range=0,255").remove(0);
    assert_eq!(tensor.shape, [1, 24, 32, 3]);
    assert_eq!(tensor.f32(), numbers([0, 1, 2]));
    let tensor = tensors_of(&picture, &model, "range=0,255 channel-order=bgr").remove(0);
    assert_eq!(tensor.f32(), numbers([2, 1, 0]));
}

#[test]
fn input_layout_decides_where_both_layouts_fit() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = Picture::random([3, 3], 1);
    let model = file(&identity([1, 3, 3, 3], Element::F32));
    let first = |properties: &str| {
        // Letterboxing would leave out the last row and column of an odd size.
        let properties = format!("letterbox=none {properties}");
        let tensor = tensors_of(&picture, &model, &properties).remove(0);
        tensor.f32()[..3].to_vec()
    };
    let numbers = |bytes: [u8; 3]| bytes.map(f32::from);
    let row = [0, 1, 2].map(|x| picture.at(x, 0)[0]);
    assert_eq!(first("range=0,255"), numbers(row), "auto is nchw");
    assert_eq!(first("range=0,255 input-layout=nchw"), numbers(row));
    assert_eq!(first("range=0,255 input-layout=nhwc"), numbers(picture.at(0, 0)));
}

#[test]
fn gray_models_receive_the_luma_of_the_frame() {
    if !has_onnx_runtime() {
        return;
    }
    for dims in [[1, 1, 24, 32], [1, 24, 32, 1]] {
        let model = file(&identity(dims, Element::F32));
        // A gray frame keeps its values.
        let gray = Picture::new([32, 24], |x, y| [(y * 32 + x) as u8; 3]);
        let before = "videoconvert ! video/x-raw,format=GRAY8";
        let tensor = converted(&gray, before, &model, "range=0,255").remove(0);
        let expected: Vec<f32> = gray.channel(0).map(f32::from).collect();
        assert_eq!(tensor.f32(), expected, "{dims:?}");
        // Red, green and blue are converted to luma by BT.601.
        let picture = picture();
        let tensor = tensors_of(&picture, &model, "range=0,255").remove(0);
        for (&found, pixel) in tensor.f32().iter().zip(&picture.pixels) {
            let [red, green, blue] = pixel.map(f32::from);
            let luma = 0.299 * red + 0.587 * green + 0.114 * blue;
            assert!((found - luma).abs() < 0.6, "{dims:?}: {pixel:?} is {found}");
        }
    }
}

/// Returns the elements that a model receives, and the bytes of the picture that `videoconvert`
/// makes of this frame, without dithering and padding.
fn both(
    frame: &Picture,
    before: &str,
    model: &std::path::Path,
    format: &str,
) -> (Vec<f32>, Vec<u8>) {
    let inference = element::inference(model, "range=0,255");
    let pipeline = frames::pipeline_of(
        frame,
        1,
        &format!(
            "{before} ! tee name=t ! queue ! {inference} ! fakesink
               t. ! queue ! videoconvert dither=none ! video/x-raw,format={format} ! identity name=made"
        ),
    );
    let made = pipeline::watch(&pipeline, "made", |buffer| buffer.map_readable().unwrap().to_vec());
    let tensor = element::run_pipeline(&pipeline).remove(0).remove(0);
    let bytes = made.lock().unwrap().remove(0);
    (tensor.f32().to_vec(), bytes)
}

#[test]
fn f16_models_receive_numbers_rounded_once() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let model = file(&identity([1, 3, 24, 32], Element::F16));
    let tensor = tensors_of(&picture, &model, "").remove(0);
    let values = (0..3).flat_map(|c| picture.channel(c));
    let expected = values.map(|value| half::f16::from_f64(f64::from(value) / 255.0)).collect();
    assert_eq!(tensor.values, Values::F16(expected));
}

#[test]
fn u8_models_receive_the_bytes() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let model = OnnxModel::new()
        .input("input", Element::U8, [1, 24, 32, 3])
        .node(Node::new("Cast", &["input"], &["output"]).int("to", Element::F32 as i64))
        .output("output", Element::F32, [1, 24, 32, 3]);
    let tensor = tensors_of(&picture, &file(&model), "").remove(0);
    let bytes: Vec<f32> = picture.pixels.as_flattened().iter().map(|&byte| byte.into()).collect();
    assert_eq!(tensor.f32(), bytes);
}

/// Black is -128 and white is 127, unless a range is set.
#[test]
fn i8_models_receive_the_bytes_less_128() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let model = OnnxModel::new()
        .input("input", Element::I8, [1, 24, 32, 3])
        .node(Node::new("Cast", &["input"], &["output"]).int("to", Element::F32 as i64))
        .output("output", Element::F32, [1, 24, 32, 3]);
    let model = file(&model);
    let bytes = || picture.pixels.as_flattened().iter().copied();
    let tensor = tensors_of(&picture, &model, "").remove(0);
    let expected: Vec<f32> = bytes().map(|byte| f32::from(byte) - 128.0).collect();
    assert_eq!(tensor.f32(), expected);
    let tensor = tensors_of(&picture, &model, "range=0,127").remove(0);
    let expected: Vec<f32> =
        bytes().map(|byte| (f32::from(byte) * 127.0 / 255.0).round()).collect();
    assert_eq!(tensor.f32(), expected);
}

#[test]
fn models_without_a_batch_receive_the_picture() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let properties = "range=0,255 input-width=32 input-height=24";
    for dims in ["3,24,32", "3,height,width"] {
        let tensor =
            tensors_of(&picture, &file(&identity(dims, Element::F32)), properties).remove(0);
        let expected: Vec<f32> =
            (0..3).flat_map(|channel| picture.channel(channel).map(f32::from)).collect();
        assert_eq!((&*tensor.shape, tensor.f32()), (&[3, 24, 32][..], &*expected), "{dims}");
    }
    for dims in ["24,32,3", "?,?,3"] {
        let tensor =
            tensors_of(&picture, &file(&identity(dims, Element::F32)), properties).remove(0);
        let expected: Vec<f32> =
            picture.pixels.as_flattened().iter().map(|&byte| byte.into()).collect();
        assert_eq!((&*tensor.shape, tensor.f32()), (&[24, 32, 3][..], &*expected), "{dims}");
    }
}

#[test]
fn frames_of_every_packed_rgb_format_are_accepted_without_conversion() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    for format in ["RGB", "BGR", "RGBx", "BGRx", "xRGB", "xBGR", "RGBA", "BGRA", "ARGB", "ABGR"] {
        let before = format!("videoconvert ! video/x-raw,format={format}");
        assert_eq!(received(&picture, &before, picture.size, ""), picture, "{format}");
    }
}

/// Returns a picture whose colors change slowly.
fn gradient([width, height]: [usize; 2]) -> Picture {
    Picture::new([width, height], |x, y| {
        [x * 255 / width, y * 255 / height, 255 - (x + y) * 255 / (width + height)]
            .map(|value| value as u8)
    })
}

/// Formats of 8 bits are converted with rounding. GstVideoConverter truncates instead, and its
/// matrices have only 8 bits, so its saturated colors deviate by up to 9.
#[test]
fn frames_of_8_bit_formats_become_the_pictures_of_videoconvert_except_for_rounding() {
    if !has_onnx_runtime() {
        return;
    }
    let size = [48, 32];
    let frame = gradient(size);
    let model = file(&returns_its_input(size));
    for format in [
        "I420", "YV12", "NV12", "NV21", "YUY2", "UYVY", "YVYU", "VYUY", "Y42B", "Y444", "AYUV",
        "VUYA", "GRAY8", "GBR",
    ] {
        let before = format!("videoconvert ! video/x-raw,format={format}");
        let (found, expected) = both_pictures(&frame, &before, &model);
        assert_near(&found, &expected, 12, format);
    }
}

/// The bytes follow the names of the formats. In BT.601, red is Y 81, U (Cb) 90 and V (Cr) 240.
#[test]
fn red_is_red_in_every_order_of_packed_luma_and_chroma() {
    if !has_onnx_runtime() {
        return;
    }
    for format in ["YUY2", "UYVY", "YVYU", "VYUY"] {
        let order = if format == "YUY2" { "YUYV" } else { format };
        let byte = |name| match name {
            'Y' => 81,
            'U' => 90,
            _ => 240,
        };
        let mut frame = RandomFrame::new(format, [16, 8], "bt601");
        frame.bytes = order.chars().cycle().map(byte).take(16 * 8 * 2).collect();
        let model = file(&returns_its_input([16, 8]));
        let found = frame.received(&model, Letterbox::None);
        for (channel, expected) in [255.0, 0.0, 0.0].into_iter().enumerate() {
            let plane = &found[channel * 128..][..128];
            let is_red = plane.iter().all(|value: &f32| (value - expected).abs() <= 2.0);
            assert!(is_red, "{format}, channel {channel}: {plane:?}");
        }
    }
}

/// GstVideoConverter converts frames of these formats before they are resampled.
#[test]
fn frames_of_other_depths_become_the_pictures_of_videoconvert() {
    if !has_onnx_runtime() {
        return;
    }
    let size = [48, 32];
    let frame = Picture::random(size, 2);
    let model = file(&returns_its_input(size));
    for format in [
        "I420_10LE",
        "P010_10LE",
        "Y444_12LE",
        "v210",
        "GRAY16_LE",
        "RGB16",
        "BGR15",
        "ARGB64",
        "RGB10A2_LE",
        "r210",
    ] {
        let before = format!("videoconvert ! video/x-raw,format={format}");
        let (found, expected) = both_pictures(&frame, &before, &model);
        assert_same(&found, &expected, format);
    }
}

/// Returns the picture that a model receives after the elements `before`, and the picture that
/// `videoconvert` makes of the frame.
fn both_pictures(frame: &Picture, before: &str, model: &std::path::Path) -> (Picture, Picture) {
    let size = frame.size;
    let (planes, expected) = both(frame, before, model, "RGB");
    let expected = Picture::new(size, |x, y| {
        [0, 1, 2].map(|channel| expected[(y * size[0] + x) * 3 + channel])
    });
    let planes: Vec<u8> = planes.into_iter().map(|value| value as u8).collect();
    let found = Picture::new(size, |x, y| {
        [0, 1, 2].map(|channel| planes[(channel * size[1] + y) * size[0] + x])
    });
    (found, expected)
}

/// A frame of random bytes.
struct RandomFrame {
    caps: gst::Caps,
    info: VideoInfo,
    bytes: Vec<u8>,
}

impl RandomFrame {
    fn new(format: &str, [width, height]: [usize; 2], colorimetry: &str) -> Self {
        element::init();
        let caps = format!(
            "video/x-raw,format={format},width={width},height={height},framerate=30/1,\
             colorimetry={colorimetry}"
        );
        let caps = gst::Caps::from_str(&caps).unwrap();
        let info = VideoInfo::from_caps(&caps).unwrap();
        let mut rng = fastrand::Rng::with_seed(8);
        let bytes = (0..info.size()).map(|_| rng.u8(..)).collect();
        Self { caps, info, bytes }
    }

    /// Returns the elements that a model receives.
    fn received(&self, model: &std::path::Path, letterbox: Letterbox) -> Vec<f32> {
        let inference = gst::ElementFactory::make("ortinference")
            .property("model", model.to_str().unwrap())
            .property("range", "0,255")
            .property_from_str("letterbox", letterbox.name())
            .build()
            .unwrap();
        let mut harness = gst_check::Harness::with_element(&inference, Some("sink"), Some("src"));
        harness.set_src_caps(self.caps.clone());
        let frame = harness.push_and_pull(gst::Buffer::from_slice(self.bytes.clone())).unwrap();
        element::tensors(&frame)[0].f32().to_vec()
    }

    /// Interpolates a component at the center of pixel `x`, `y` after scaling the frame to `size`.
    /// A sample is at the center of the pixels that share it. Beyond the borders, samples are
    /// repeated.
    fn at(&self, component: usize, [x, y]: [usize; 2], size: [usize; 2]) -> f64 {
        let (info, format) = (&self.info, self.info.format_info());
        let plane = format.plane()[component] as usize;
        let start = info.offset()[plane] + format.poffset()[component] as usize;
        let (stride, step) =
            (info.stride()[plane] as usize, format.pixel_stride()[component] as usize);
        let axis = |at: usize, side: u32, scaled: usize, shift: u32| {
            let samples = side.div_ceil(1 << shift) as usize;
            let position = (at as f64 + 0.5) * f64::from(side) / scaled as f64;
            let position = position / f64::from(1 << shift) - 0.5;
            let position = position.clamp(0.0, (samples - 1) as f64);
            let below = position.floor() as usize;
            (below, (below + 1).min(samples - 1), position.fract())
        };
        let (left, right, fx) = axis(x, info.width(), size[0], format.w_sub()[component]);
        let (above, below, fy) = axis(y, info.height(), size[1], format.h_sub()[component]);
        let sample = |x: usize, y: usize| f64::from(self.bytes[start + y * stride + x * step]);
        let row = |y: usize| sample(left, y) * (1.0 - fx) + sample(right, y) * fx;
        row(above) * (1.0 - fy) + row(below) * fy
    }

    /// Returns red, green and blue of a pixel after scaling the frame to `size`.
    fn color(&self, pixel: [usize; 2], size: [usize; 2]) -> [f64; 3] {
        let [a, b, c] = [0, 1, 2].map(|component| {
            let components = self.info.n_components() as usize;
            self.at(component.min(components - 1), pixel, size)
        });
        if self.info.is_rgb() || self.info.is_gray() {
            return if self.info.is_gray() { [a; 3] } else { [a, b, c] };
        }
        let colorimetry = self.info.colorimetry();
        // Shares of red and blue in luma, by ITU-R BT.601 and BT.709.
        let (kr, kb) = match colorimetry.matrix() {
            gst_video::VideoColorMatrix::Bt709 => (0.2126, 0.0722),
            _ => (0.299, 0.114),
        };
        let (y, cb, cr) = match colorimetry.range() {
            gst_video::VideoColorRange::Range0_255 => (a, b - 128.0, c - 128.0),
            _ => (
                (a - 16.0) * 255.0 / 219.0,
                (b - 128.0) * 255.0 / 224.0,
                (c - 128.0) * 255.0 / 224.0,
            ),
        };
        let (red, blue) = (y + 2.0 * (1.0 - kr) * cr, y + 2.0 * (1.0 - kb) * cb);
        let green = (y - kr * red - kb * blue) / (1.0 - kr - kb);
        [red, green, blue].map(|value| value.clamp(0.0, 255.0))
    }
}

/// Asserts that a model of this size receives the scaled frame in red, green and blue. No value may
/// differ from the exact one by more than `tolerance`.
fn assert_resampled(frame: &RandomFrame, size: [usize; 2], tolerance: f64) {
    let [width, height] = size;
    let found = frame.received(&file(&returns_its_input(size)), Letterbox::None);
    for (i, &found) in found.iter().enumerate() {
        let (channel, x, y) = (i / (width * height), i % width, i / width % height);
        let exact = frame.color([x, y], size)[channel];
        let difference = (f64::from(found) - exact).abs();
        let caps = &frame.caps;
        assert!(
            difference <= tolerance,
            "{caps} {x},{y} channel {channel}: {found}, exact {exact}"
        );
    }
}

/// Chroma is rounded to bytes before it is converted, so blue can differ by 0.5 x 2.02, plus 0.5
/// for its own rounding.
#[test]
fn colors_of_8_bit_formats_follow_their_colorimetry() {
    if !has_onnx_runtime() {
        return;
    }
    for format in [
        "I420", "YV12", "NV12", "NV21", "YUY2", "UYVY", "YVYU", "Y42B", "Y41B", "YUV9", "Y444",
        "AYUV", "VUYA", "NV16", "NV24",
    ] {
        for colorimetry in ["bt601", "bt709", "1:4:0:0"] {
            for size in [[48, 32], [33, 31]] {
                assert_resampled(&RandomFrame::new(format, size, colorimetry), size, 1.7);
            }
        }
    }
    for format in ["RGB", "BGRx", "ARGB", "GBR", "GBRA", "RGBP"] {
        let is_known = gst_video::VideoFormat::from_string(format) != VideoFormat::Unknown;
        if is_known {
            assert_resampled(&RandomFrame::new(format, [33, 31], "sRGB"), [33, 31], 0.0);
        }
    }
}

/// Positions are rounded to 256ths of a sample, so values that change from 0 to 255 between samples
/// can differ by 1 along each axis.
#[test]
fn a_scaled_frame_is_interpolated_between_the_nearest_pixels() {
    if !has_onnx_runtime() {
        return;
    }
    for [frame, model] in SIZES {
        assert_resampled(&RandomFrame::new("RGB", frame, "sRGB"), model, 2.5);
        assert_resampled(&RandomFrame::new("GRAY8", frame, "1:4:0:0"), model, 2.5);
        // The tolerance of 1 applies to each component, and blue is luma x 1.16 + Cb x 2.02.
        assert_resampled(&RandomFrame::new("NV12", frame, "bt709"), model, 9.0);
    }
}

/// Sizes of frames and models: equal, larger, smaller, wide, tall, odd, one pixel, a row, a column,
/// and 64 times as large as the model's input.
const SIZES: [[[usize; 2]; 2]; 13] = [
    [[1, 7], [16, 8]],
    [[9, 1], [16, 8]],
    [[1, 1], [1, 1]],
    [[1025, 2049], [16, 32]],
    [[64, 48], [32, 32]],
    [[48, 64], [32, 32]],
    [[20, 10], [64, 48]],
    [[63, 47], [32, 32]],
    [[65, 33], [37, 51]],
    [[200, 6], [32, 24]],
    [[5, 90], [32, 24]],
    [[1, 1], [16, 8]],
    [[32, 32], [32, 32]],
];

/// Returns the rectangle (left, top, right, bottom) that a frame covers in the model's input.
fn rectangle(letterbox: Letterbox, frame: [usize; 2], model: [usize; 2]) -> [usize; 4] {
    let [frame, model] = [frame, model].map(|size| size.map(|side| side as u32));
    let fit = FitRule::from(letterbox).fit(frame, model);
    let [[left, top], [width, height]] =
        [fit.offset, fit.size].map(|pair| pair.map(|side| side as usize));
    [left, top, left + width, top + height]
}

#[test]
fn a_frame_of_one_color_fills_its_rectangle_and_borders_are_gray() {
    if !has_onnx_runtime() {
        return;
    }
    let color = [250, 128, 3];
    for (letterbox, [frame, model]) in
        Letterbox::ALL.into_iter().flat_map(|letterbox| SIZES.map(|sizes| (letterbox, sizes)))
    {
        let properties = format!("letterbox={}", letterbox.name());
        let found = received(&Picture::solid(frame, color), "identity", model, &properties);
        let [left, top, right, bottom] = rectangle(letterbox, frame, model);
        let expected = Picture::new(model, |x, y| {
            let is_inside = (left..right).contains(&x) && (top..bottom).contains(&y);
            if is_inside { color } else { [BORDER; 3] }
        });
        assert_same(&found, &expected, &format!("{frame:?} in {model:?}, {properties}"));
    }
}

/// The last row and column of a frame with an odd side are in the model's input, where Ultralytics'
/// LetterBox and OpenCV place them: a frame of 640x427 in an input of 640x640 has 106 rows of
/// border above and 107 below.
#[test]
fn the_last_row_of_a_frame_with_an_odd_side_is_seen() {
    if !has_onnx_runtime() {
        return;
    }
    let colors = [[10, 20, 30], [200, 210, 220]];
    for (frame, rows) in [([640, 427], [106, 533]), ([639, 479], [80, 560])] {
        let picture = Picture::new(frame, |_, y| colors[usize::from(y == frame[1] - 1)]);
        let found = received(&picture, "identity", [640, 640], "letterbox=center");
        let color = |y: usize| found.at(320, y);
        assert_eq!([color(rows[0] - 1), color(rows[0])], [[BORDER; 3], colors[0]], "{frame:?}");
        assert_eq!([color(rows[1] - 1), color(rows[1])], [colors[1], [BORDER; 3]], "{frame:?}");
    }
}

/// A frame of 320x320 pixels that are twice as wide as high is displayed as 640x320.
#[test]
fn a_letterbox_keeps_the_displayed_aspect_ratio() {
    if !has_onnx_runtime() {
        return;
    }
    let mut frame = RandomFrame::new("RGB", [320, 320], "sRGB");
    frame.caps.make_mut().set("pixel-aspect-ratio", gst::Fraction::new(2, 1));
    let model = file(&returns_its_input([64, 64]));
    for (letterbox, rows) in
        [(Letterbox::Center, 16..48), (Letterbox::TopLeft, 0..32), (Letterbox::None, 0..64)]
    {
        let found = frame.received(&model, letterbox);
        for (index, row) in found.chunks(64).enumerate() {
            let is_border = row.iter().all(|&value| value == f32::from(BORDER));
            assert_eq!(is_border, !rows.contains(&(index % 64)), "{letterbox:?}, row {index}");
        }
    }
}

#[test]
fn borders_are_gray_also_after_a_conversion_of_the_colors() {
    if !has_onnx_runtime() {
        return;
    }
    for format in ["I420", "NV12", "GRAY8", "P010_10LE", "ARGB64"] {
        let before = format!("videoconvert ! video/x-raw,format={format}");
        let white = Picture::solid([64, 32], [255; 3]);
        let found = received(&white, &before, [32, 32], "");
        let inside = Picture::new([32, 16], |x, y| found.at(x, y + 8));
        // The white that `videoconvert` makes.
        assert_near(&inside, &Picture::solid([32, 16], [255; 3]), 1, format);
        for (x, y) in (0..8).chain(24..32).flat_map(|y| (0..32).map(move |x| (x, y))) {
            assert_eq!(found.at(x, y), [BORDER; 3], "{format}: {x},{y}");
        }
    }
}

#[test]
fn gray_borders_have_the_same_value_in_gray_models() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity([1, 1, 32, 32], Element::F32));
    let white = Picture::solid([64, 32], [255; 3]);
    let tensor = tensors_of(&white, &model, "range=0,255").remove(0);
    let rows: Vec<&[f32]> = tensor.f32().chunks(32).collect();
    for (y, row) in rows.into_iter().enumerate() {
        let expected = if (8..24).contains(&y) { 255.0 } else { f32::from(BORDER) };
        assert!(row.iter().all(|&value| value == expected), "row {y}: {row:?}");
    }
}

#[test]
fn the_parts_of_a_letterboxed_frame_keep_their_positions() {
    if !has_onnx_runtime() {
        return;
    }
    let colors = [[[200, 0, 0], [0, 200, 0]], [[0, 0, 200], [200, 200, 0]]];
    for letterbox in Letterbox::ALL {
        for [frame, model] in [[[128, 64], [64, 64]], [[40, 80], [96, 64]], [[33, 65], [64, 64]]] {
            let quarters = Picture::new(frame, |x, y| colors[y * 2 / frame[1]][x * 2 / frame[0]]);
            let properties = format!("letterbox={}", letterbox.name());
            let found = received(&quarters, "identity", model, &properties);
            let [left, top, right, bottom] = rectangle(letterbox, frame, model);
            for (row, y) in [top, bottom - 1].into_iter().enumerate() {
                for (column, x) in [left, right - 1].into_iter().enumerate() {
                    assert_eq!(found.at(x, y), colors[row][column], "{frame:?} in {model:?}");
                }
            }
            // Pixels on both sides of the color boundaries, at a distance of more than two pixels:
            // nearer pixels are interpolated.
            let [x, y] = [(left + right) / 2, (top + bottom) / 2];
            let beside = [[x - 3, y - 3], [x + 3, y - 3], [x - 3, y + 3], [x + 3, y + 3]];
            for ([x, y], color) in beside.into_iter().zip(colors.into_iter().flatten()) {
                assert_eq!(found.at(x, y), color, "{frame:?} in {model:?} at {x},{y}");
            }
        }
    }
}

#[test]
fn padding_between_the_rows_and_planes_of_a_frame_is_not_read() {
    if !has_onnx_runtime() {
        return;
    }
    let picture = picture();
    let expected = received(&picture, "identity", picture.size, "");
    for (format, model) in [
        (VideoFormat::Rgb, picture.size),
        (VideoFormat::Bgra, picture.size),
        (VideoFormat::I420, picture.size),
        (VideoFormat::Rgb, [16, 16]),
        (VideoFormat::Nv12, [16, 16]),
    ] {
        let before = format!("videoconvert ! video/x-raw,format={}", format.to_str());
        let without = received(&picture, &before, model, "");
        let file = file(&returns_its_input(model));
        let inference = element::inference(&file, "range=0,255");
        let elements = format!("{before} ! identity name=padding ! {inference}");
        let pipeline = frames::pipeline_of(&picture, 1, &elements);
        let pad = pipeline.by_name("padding").unwrap().static_pad("src").unwrap();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let buffer = info.buffer_mut().expect("it is a probe for buffers");
            *buffer = padded(buffer, format, [32, 24]);
            gst::PadProbeReturn::Ok
        });
        let with = Picture::from_planes(&element::run_pipeline(&pipeline).remove(0)[0]);
        assert_same(&with, &without, format.to_str());
        assert!(format == VideoFormat::I420 || model != picture.size || with == expected);
    }
}

/// Returns the frame with padding bytes before its rows, between them, and between its planes.
pub fn padded(
    frame: &gst::BufferRef,
    format: VideoFormat,
    [width, height]: [u32; 2],
) -> gst::Buffer {
    let packed = gst_video::VideoInfo::builder(format, width, height).build().unwrap();
    let old = frame.map_readable().unwrap().to_vec();
    let (mut new, mut offsets, mut strides) = (vec![0xa5; 40], Vec::new(), Vec::new());
    let planes = packed.n_planes() as usize;
    for plane in 0..planes {
        let (offset, stride) = (packed.offset()[plane], packed.stride()[plane] as usize);
        let end = packed.offset().get(plane + 1).copied().filter(|_| plane + 1 < planes);
        offsets.push(new.len());
        strides.push((stride + 52) as i32);
        for row in old[offset..end.unwrap_or(old.len())].chunks_exact(stride) {
            new.extend(row);
            new.extend([0xa5; 52]);
        }
        new.extend([0xa5; 100]);
    }
    let mut padded = gst::Buffer::from_mut_slice(new);
    let flags = gst_video::VideoFrameFlags::empty();
    let frame = padded.get_mut().expect("it is new");
    gst_video::VideoMeta::add_full(frame, flags, format, width, height, &offsets, &strides)
        .unwrap();
    padded
}

#[test]
fn the_properties_set_dynamic_sides() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&identity("1,3,height,width", Element::F32));
    let frame = Picture::random([32, 24], 4);
    let tensor = tensors_of(&frame, &model, "input-width=32 input-height=24 range=0,255").remove(0);
    assert_eq!(Picture::from_planes(&tensor), frame);
}

#[test]
fn imgsz_in_the_models_metadata_is_the_size_of_dynamic_sides() {
    if !has_onnx_runtime() {
        return;
    }
    let model = identity("1,3,height,width", Element::F32).metadata("imgsz", "[24, 32]");
    let frame = Picture::random([32, 24], 5);
    let tensor = tensors_of(&frame, &file(&model), "range=0,255").remove(0);
    assert_eq!(Picture::from_planes(&tensor), frame);
}

#[test]
fn ranges_in_the_modelinfo_file_apply_unless_the_property_is_set() {
    if !has_onnx_runtime() {
        return;
    }
    let info = "[input]\ndir=input\nranges=-1.0,1.0;0.0,1.0;0,255\n";
    let model = element::WithInfo::new(&returns_its_input([1, 1]), info);
    let white = Picture::solid([1, 1], [255; 3]);
    assert_eq!(tensors_of(&white, &model.path, "")[0].f32(), [1.0, 1.0, 255.0]);
    let black = Picture::solid([1, 1], [0; 3]);
    assert_eq!(tensors_of(&black, &model.path, "")[0].f32(), [-1.0, 0.0, 0.0]);
    assert_eq!(tensors_of(&black, &model.path, "range=2,3")[0].f32(), [2.0; 3]);
}

#[test]
fn the_frame_itself_is_not_changed() {
    if !has_onnx_runtime() {
        return;
    }
    let frame = Picture::random([32, 24], 6);
    for size in [[32, 24], [20, 20]] {
        let model = file(&returns_its_input(size));
        let pipeline = frames::pipeline_of(&frame, 1, &element::inference(&model, ""));
        let after = pipeline::watch(&pipeline, "inference", |buffer| {
            buffer.map_readable().unwrap().to_vec()
        });
        element::run_pipeline(&pipeline);
        assert_eq!(after.lock().unwrap()[0], frame.pixels.as_flattened());
        assert_eq!(pipeline.current_state(), gst::State::Null);
    }
}

/// A model that returns the numbers that the bytes of its input stand for.
fn dequantizes(scale: f32) -> OnnxModel {
    OnnxModel::new()
        .input("input", Element::U8, [1, 3, 4, 4])
        .initializer("scale", &Tensor::f32(&[], &[scale]))
        .node(Node::new("DequantizeLinear", &["input", "scale"], &["output"]))
        .output("output", Element::F32, [1, 3, 4, 4])
}

/// White is 1 in training, also where the greatest byte stands for more.
#[test]
fn the_scale_of_a_quantized_input_says_the_bytes_of_white() {
    if !has_onnx_runtime() {
        return;
    }
    let frame = Picture::new([4, 4], |_, _| [255; 3]);
    for (scale, properties, expected) in [
        (1.0 / 255.0, "", 1.0),
        (1.0 / 250.0, "", 1.0),
        (1.0, "", 255.0),
        (1.0 / 250.0, "range=0,255", 1.02),
    ] {
        let model = file(&dequantizes(scale));
        let tensors = tensors_of(&frame, &model, properties);
        let Values::F32(numbers) = &tensors[0].values else { panic!("the output is f32") };
        let is_near = |number: &f32| (number - expected).abs() < 1e-5;
        assert!(numbers.iter().all(is_near), "{scale} {properties}: {numbers:?}");
    }
}

/// ImageNet's mean and deviation are in the scale, but each channel has another one.
#[test]
fn a_quantized_input_of_an_unknown_range_is_an_error() {
    if !has_onnx_runtime() {
        return;
    }
    for (properties, part) in [
        ("", "elements stand for 0.000 to 2.550"),
        ("mean=0.485,0.456,0.406 std=0.229,0.224,0.225", "nearly equal"),
    ] {
        let model = file(&dequantizes(0.01));
        let range = if properties.is_empty() { "" } else { "range=0,1" };
        let pipeline = pipeline::parse(&format!(
            "videotestsrc num-buffers=1 ! {} ! fakesink",
            element::inference(&model, &format!("provider=cpu {range} {properties}"))
        ));
        let error = pipeline::run(&pipeline).error.expect("bytes are not the numbers of training");
        assert!(error.contains(part), "{error}");
    }
}
