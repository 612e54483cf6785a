// SPDX-License-Identifier: MIT OR Apache-2.0
//! `roioverlay` draws regions in the colors of their classes, and leaves all other pixels
//! unchanged.

use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoFrameRef, VideoInfo, VideoRegionOfInterestMeta};
use gstnmsfilter::frame::raw_formats;

use crate::support::pipeline::{self, intercept, parse, run, watch};

/// Returns the formats that the element accepts.
fn formats() -> Vec<String> {
    pipeline::init();
    let factory = gst::ElementFactory::find("roioverlay").unwrap();
    let template = factory.static_pad_templates().iter().next().unwrap().caps();
    let list = template.structure(0).unwrap().get::<gst::List>("format").unwrap();
    list.iter().map(|format| format.get().unwrap()).collect()
}

/// All formats with 8 bits per sample are accepted, except tiled formats, palettes and IYU1, whose
/// samples are not equidistant.
#[test]
fn every_format_of_8_bits_is_accepted() {
    let formats = formats();
    for format in raw_formats() {
        let info = gst_video::VideoFormatInfo::from_format(format);
        let is_packed = info.is_complex() || info.is_tiled() || info.has_palette();
        let expected = info.depth().iter().all(|&depth| depth == 8)
            && !is_packed
            && format != VideoFormat::Iyu1;
        let name = format.to_str().to_string();
        assert_eq!(formats.contains(&name), expected, "{name}");
    }
    assert!(formats.len() >= 36, "{formats:?}");
}

/// A region to draw: its type, class, confidence and rectangle.
type Region = (&'static str, i32, f64, (u32, u32, u32, u32));

/// A picture, as rows of red, green and blue.
struct Picture {
    width: usize,
    rgb: Vec<u8>,
}

impl Picture {
    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let i = (y * self.width + x) * 3;
        [self.rgb[i], self.rgb[i + 1], self.rgb[i + 2]]
    }
}

/// Draws `regions` on a gray picture in this format.
fn draw(format: &str, width: usize, height: usize, overlay: &str, regions: &[Region]) -> Picture {
    let regions = regions.to_vec();
    draw_what(format, width, height, overlay, move |buffer| {
        for &(kind, class, confidence, rect) in &regions {
            VideoRegionOfInterestMeta::add(buffer, kind, rect).add_param(
                gst::Structure::builder("detection")
                    .field("label_id", class)
                    .field("confidence", confidence)
                    .build(),
            );
        }
    })
}

/// Draws the regions that `attach` adds on a gray picture in this format.
///
/// Videoconvert needs `chroma-mode=none` here: otherwise it interpolates colors at the edges of
/// lines.
fn draw_what(
    format: &str,
    width: usize,
    height: usize,
    overlay: &str,
    attach: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Picture {
    let pipeline = parse(&format!(
        "videotestsrc pattern=solid-color foreground-color=0xff606060 num-buffers=1 name=gray
           ! video/x-raw,format={format},width={width},height={height}
           ! roioverlay {overlay} ! videoconvert dither=none chroma-mode=none
           ! video/x-raw,format=RGB ! fakesink name=out"
    ));
    intercept(&pipeline, "gray", attach);
    let info = VideoInfo::builder(VideoFormat::Rgb, width as u32, height as u32).build().unwrap();
    let pictures = watch(&pipeline, "out", move |buffer| {
        let frame = VideoFrameRef::from_buffer_ref_readable(buffer, &info).unwrap();
        let stride = frame.plane_stride()[0] as usize;
        let rows = frame.plane_data(0).unwrap().chunks(stride).take(height);
        rows.flat_map(|row| &row[..width * 3]).copied().collect::<Vec<u8>>()
    });
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{format}");
    let rgb = pictures.lock().unwrap().remove(0);
    Picture { width, rgb }
}

fn near(a: [u8; 3], b: [u8; 3], by: u8) -> bool {
    a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= by)
}

/// Returns the greatest rounding error of a color that is converted to this format and back.
fn rounding(format: &str) -> u8 {
    let format: VideoFormat = format.parse().unwrap();
    if gst_video::VideoFormatInfo::from_format(format).is_rgb() { 0 } else { 6 }
}

const GRAY: [u8; 3] = [0x60; 3];
/// The color of class 0.
const YELLOW: [u8; 3] = [255, 214, 10];

#[test]
fn a_box_is_drawn_in_its_color_in_every_format_and_other_pixels_are_unchanged() {
    for format in &formats() {
        // The corners are at multiples of 4 pixels, because a chroma sample can cover 4x4 pixels.
        let region = [("face", 0, 0.9, (40, 32, 60, 48))];
        let picture = draw(format, 160, 120, "labels=never line-width=4", &region);
        // These pixels are on the lines, away from their edges.
        for (x, y) in [(70, 32), (70, 77), (42, 55), (97, 55)] {
            let color = picture.at(x, y);
            // A gray picture has only the luma of BT.601.
            let expected = if format == "GRAY8" { [203; 3] } else { YELLOW };
            assert!(near(color, expected, rounding(format)), "{format} at {x},{y}: {color:?}");
        }
        for (x, y) in [(5, 5), (70, 55), (150, 100), (70, 24), (110, 55)] {
            let color = picture.at(x, y);
            assert!(near(color, GRAY, 2), "{format} at {x},{y}: {color:?}");
        }
    }
}

#[test]
fn without_regions_nothing_is_drawn() {
    for format in ["I420", "RGB"] {
        let picture = draw(format, 64, 48, "", &[]);
        assert!(picture.rgb.iter().all(|&byte| byte.abs_diff(0x60) <= 2), "{format}");
    }
}

/// Returns an odd width, except for packed 4:2:2, where videoconvert leaves the last pixel of an
/// odd row undefined.
fn odd_width(format: &str) -> usize {
    if matches!(format, "YUY2" | "UYVY" | "YVYU" | "VYUY") { 66 } else { 65 }
}

#[test]
fn regions_outside_the_frame_draw_nothing() {
    const FAR: u32 = u32::MAX;
    let outside = [
        (FAR, FAR, FAR, FAR),
        (0, 0, 0, 0),
        (10, 10, 0, 20),
        (10, 10, 20, 0),
        (66, 0, 30, 30),
        (0, 49, 30, 30),
        (FAR, 20, 30, 30),
    ]
    .map(|rect| ("face", 0, 0.9, rect));
    for format in &formats() {
        let width = odd_width(format);
        let nothing = draw(format, width, 49, "", &[]);
        for labels in ["auto", "always", "never"] {
            let picture = draw(format, width, 49, &format!("labels={labels}"), &outside);
            assert!(picture.rgb == nothing.rgb, "{format}, labels={labels}");
        }
    }
}

#[test]
fn a_region_that_extends_beyond_the_frame_is_clipped() {
    let large = [("face", 0, 0.9, (40, 32, u32::MAX, u32::MAX))];
    for format in &formats() {
        let width = odd_width(format);
        let picture = draw(format, width, 49, "labels=never line-width=4", &large);
        let expected = if format == "GRAY8" { [203; 3] } else { YELLOW };
        // Pixels on the left and upper line, up to the last row and column of the frame.
        for (x, y) in [(42, 40), (42, 48), (55, 32), (64, 32)] {
            let color = picture.at(x, y);
            assert!(near(color, expected, rounding(format)), "{format} at {x},{y}: {color:?}");
        }
        // No line is drawn along the frame's edges or elsewhere.
        for (x, y) in [(64, 42), (55, 48), (64, 48), (55, 42), (10, 10), (64, 24)] {
            let color = picture.at(x, y);
            assert!(near(color, GRAY, 2), "{format} at {x},{y}: {color:?}");
        }
    }
}

#[test]
fn a_line_as_wide_as_a_large_region_fills_it() {
    let picture =
        draw("RGB", 64, 48, "labels=never line-width=100", &[("face", 0, 0.9, (10, 10, 30, 20))]);
    for (x, y, expected) in [(10, 10, YELLOW), (25, 20, YELLOW), (39, 29, YELLOW), (45, 20, GRAY)] {
        assert_eq!(picture.at(x, y), expected, "{x},{y}");
    }
}

/// Adds a region of this class. Its structures are `detection` and `others`.
fn add_detailed(
    buffer: &mut gst::BufferRef,
    rect: (u32, u32, u32, u32),
    class: i32,
    detection: gst::Structure,
    others: &[gst::Structure],
) {
    let mut meta = VideoRegionOfInterestMeta::add(buffer, "x", rect);
    let mut detection = detection;
    detection.set("label_id", class);
    meta.add_param(detection);
    others.iter().for_each(|structure| meta.add_param(structure.clone()));
}

fn detection() -> gst::Structure {
    pipeline::init();
    gst::Structure::new_empty("detection")
}

/// Returns the structure `detection` for a box of 80x40 about (80, 60) that is rotated by this
/// angle.
fn oriented(angle: f64) -> gst::Structure {
    pipeline::init();
    gst::Structure::builder("detection")
        .field("rotation", angle)
        .field("center-x", 80.0)
        .field("center-y", 60.0)
        .field("width", 80.0)
        .field("height", 40.0)
        .build()
}

fn bytes_of(numbers: &[f32]) -> gst::glib::Bytes {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    gst::glib::Bytes::from_owned(bytes)
}

fn keypoints(layout: &str, components: usize, numbers: &[f32]) -> gst::Structure {
    gst::Structure::builder("keypoints")
        .field("count", (numbers.len() / components) as i32)
        .field("components", components as i32)
        .field("layout", layout)
        .field("data", bytes_of(numbers))
        .build()
}

/// Returns the structure `mask` for the rectangle from (40, 32) to (104, 80). The mask has 8x6
/// pixels, and its left half is set.
fn half_mask() -> gst::Structure {
    gst::Structure::builder("mask")
        .field("width", 8)
        .field("height", 6)
        .field("left", 40.0)
        .field("top", 32.0)
        .field("right", 104.0)
        .field("bottom", 80.0)
        .field("data", gst::glib::Bytes::from_static(&[0xf0; 6]))
        .build()
}

#[test]
fn an_oriented_box_is_drawn_instead_of_its_bounds_in_every_format() {
    let half = std::f64::consts::FRAC_PI_4;
    for format in &formats() {
        let picture = draw_what(format, 160, 120, "labels=never line-width=5", move |buffer| {
            add_detailed(buffer, (37, 17, 86, 86), 0, oriented(half), &[]);
        });
        let expected = if format == "GRAY8" { [203; 3] } else { YELLOW };
        // A sample that covers 2 or 16 pixels may lie only partly on the line.
        let info = gst_video::VideoFormatInfo::from_format(format.parse().unwrap());
        let by = match info.w_sub().iter().chain(info.h_sub()).max() {
            Some(0) => 2 + rounding(format),
            Some(1) => 64,
            _ => 100,
        };
        // Midpoints of the sides: (80, 60), plus or minus 40 or 20 pixels along the axes. The first
        // axis points along (1, 1).
        for (x, y) in [(108, 88), (51, 31), (65, 74), (94, 45)] {
            let color = picture.at(x, y);
            assert!(near(color, expected, by), "{format} at {x},{y}: {color:?}");
        }
        // Pixels inside of the box, and on the sides of its bounds, are unchanged.
        for (x, y) in [(80, 60), (37, 90), (122, 30), (100, 17), (60, 102)] {
            let color = picture.at(x, y);
            assert!(near(color, GRAY, 2), "{format} at {x},{y}: {color:?}");
        }
    }
}

#[test]
fn a_mask_is_blended_into_the_pixels_that_it_covers_in_every_format() {
    for format in &formats() {
        let overlay = "labels=never line-width=1";
        let picture = draw_what(format, 160, 120, overlay, |buffer| {
            add_detailed(buffer, (40, 32, 64, 48), 0, detection(), &[half_mask()]);
        });
        // The mask is blended with a weight of 110 / 255 for yellow. A gray picture has the luma of
        // BT.601.
        let part = |gray: u8, color: u8| {
            ((u32::from(gray) * 145 + u32::from(color) * 110 + 127) / 255) as u8
        };
        let expected = if format == "GRAY8" {
            [part(0x60, 203); 3]
        } else {
            [0, 1, 2].map(|c| part(GRAY[c], YELLOW[c]))
        };
        for (x, y) in [(46, 40), (66, 70), (50, 56)] {
            let color = picture.at(x, y);
            assert!(near(color, expected, 2 + rounding(format)), "{format} at {x},{y}: {color:?}");
        }
        for (x, y) in [(78, 40), (98, 70), (30, 56), (130, 56)] {
            assert!(near(picture.at(x, y), GRAY, 2), "{format} at {x},{y}");
        }
    }
}

/// Five points of a face. The last one is invisible.
const FACE: [[f32; 3]; 5] = [
    [60.0, 40.0, 0.9],
    [100.0, 40.0, 0.9],
    [80.0, 60.0, 0.9],
    [64.0, 80.0, 0.9],
    [96.0, 80.0, 0.4],
];

#[test]
fn visible_points_and_the_lines_between_them_are_drawn_in_every_format() {
    for format in &formats() {
        let draw = |layout: &'static str| {
            draw_what(format, 160, 120, "labels=never line-width=5", move |buffer| {
                let points = keypoints(layout, 3, FACE.as_flattened());
                add_detailed(buffer, (20, 8, 120, 104), 0, detection(), &[points]);
            })
        };
        let expected = if format == "GRAY8" { [203; 3] } else { YELLOW };
        let is_drawn = |picture: &Picture, [x, y]: [usize; 2]| {
            near(picture.at(x, y), expected, 2 + rounding(format))
        };
        let (face, points) = (draw("face-5"), draw("points"));
        for picture in [&face, &points] {
            for at in [[60, 40], [100, 40], [80, 60], [64, 80]] {
                assert!(is_drawn(picture, at), "{format} at {at:?}");
            }
            assert!(near(picture.at(96, 80), GRAY, 2), "{format}: the invisible point");
        }
        // Lines from the eyes to the nose are drawn.
        for at in [[70, 50], [90, 50]] {
            assert!(is_drawn(&face, at) && !is_drawn(&points, at), "{format} at {at:?}");
        }
        // No line is drawn from the nose to the invisible point.
        assert!(near(face.at(88, 70), GRAY, 2), "{format}");
    }
}

#[test]
fn color_by_none_draws_all_classes_in_one_color() {
    let regions = [("face", 3, 0.9, (40, 32, 60, 48))];
    let by_class = draw("RGB", 160, 120, "labels=never line-width=4", &regions);
    let by_none = draw("RGB", 160, 120, "labels=never line-width=4 color-by=none", &regions);
    assert_ne!(by_class.at(70, 33), YELLOW);
    assert_eq!(by_none.at(70, 33), YELLOW);
}

/// Any element can attach structures: with fields of other types, missing fields, fields that do
/// not fit, and invalid numbers.
#[test]
fn structures_that_do_not_fit_are_not_drawn() {
    let picture = |detection: gst::Structure, others: Vec<gst::Structure>| {
        draw_what("I420", 160, 120, "labels=never", move |buffer| {
            add_detailed(buffer, (20, 8, 120, 104), 0, detection.clone(), &others);
        })
        .rgb
    };
    let plain = picture(detection(), vec![]);
    assert!(picture(oriented(0.5), vec![]) != plain);
    let changed = |structure: &gst::Structure, name: &str, value: gst::glib::SendValue| {
        let mut changed = structure.clone();
        changed.set_value(name, value);
        changed
    };
    use gst::glib::value::ToSendValue;
    for name in ["rotation", "center-x", "center-y", "width", "height"] {
        for value in [f64::NAN, f64::INFINITY, -1e300] {
            // All finite angles are valid.
            if name == "rotation" && value.is_finite() {
                continue;
            }
            let detection = changed(&oriented(0.5), name, value.to_send_value());
            assert!(picture(detection, vec![]) == plain, "{name} {value}");
        }
        let detection = changed(&oriented(0.5), name, 7i32.to_send_value());
        assert!(picture(detection, vec![]) == plain, "{name} is an int");
    }
    let points = keypoints("face-5", 3, FACE.as_flattened());
    assert!(picture(detection(), vec![points.clone()]) != plain);
    for (name, value) in [
        ("count", i32::MAX.to_send_value()),
        ("count", (-5i32).to_send_value()),
        ("count", 6i32.to_send_value()),
        ("count", 5i64.to_send_value()),
        ("components", 1i32.to_send_value()),
        ("components", i32::MIN.to_send_value()),
        ("data", "x".to_send_value()),
        ("data", None::<gst::glib::Bytes>.to_send_value()),
        ("data", gst::glib::Bytes::from_static(b"").to_send_value()),
        ("data", bytes_of(&[f32::NAN; 15]).to_send_value()),
        ("data", bytes_of(&[f32::INFINITY; 15]).to_send_value()),
        ("data", bytes_of(&[3e38; 15]).to_send_value()),
        ("data", bytes_of(&[-9e5; 15]).to_send_value()),
    ] {
        let text = format!("{name}: {value:?}");
        let other = changed(&points, name, value);
        assert!(picture(detection(), vec![other]) == plain, "{text}");
    }
    let mask = half_mask();
    assert!(picture(detection(), vec![mask.clone()]) != plain);
    for (name, value) in [
        ("width", i32::MAX.to_send_value()),
        ("width", 9i32.to_send_value()),
        ("height", (-1i32).to_send_value()),
        ("height", 7i32.to_send_value()),
        ("left", f64::NAN.to_send_value()),
        ("left", 104.0f64.to_send_value()),
        ("right", f64::INFINITY.to_send_value()),
        ("bottom", "80".to_send_value()),
        ("data", gst::glib::Bytes::from_static(&[0xff; 5]).to_send_value()),
    ] {
        let text = format!("{name}: {value:?}");
        let other = changed(&mask, name, value);
        assert!(picture(detection(), vec![other]) == plain, "{text}");
    }
}

/// Adds a region whose type can be any bytes, since elements written in C can do so.
fn add_region(buffer: &mut gst::BufferRef, kind: &std::ffi::CStr) {
    // SAFETY: the buffer is writable; the type is copied.
    unsafe {
        gst_video::ffi::gst_buffer_add_video_region_of_interest_meta(
            buffer.as_mut_ptr(),
            kind.as_ptr(),
            20,
            40,
            100,
            50,
        );
    }
}

#[test]
fn a_type_that_is_not_utf8_is_drawn_with_the_replacement_character() {
    let overlay = "labels=always line-width=3";
    let foreign = draw_what("RGB", 160, 120, overlay, |buffer| add_region(buffer, c"caf\xe9"));
    let replaced = draw_what("RGB", 160, 120, overlay, |buffer| add_region(buffer, c"caf\u{fffd}"));
    assert!(foreign.rgb == replaced.rgb);
    // Pixels of the box, and of a label above it.
    for (x, y) in [(70, 41), (21, 60), (22, 30)] {
        assert!(!near(foreign.at(x, y), GRAY, 8), "{x},{y}: {:?}", foreign.at(x, y));
    }
}

/// Returns what is drawn for a region with this label and class, and the warnings.
fn labeled(label: &'static str, class: Option<i32>, labels: &str) -> (Vec<u8>, Vec<String>) {
    let pipeline = parse(&format!(
        "videotestsrc pattern=solid-color foreground-color=0xff606060 num-buffers=3 name=gray
           ! video/x-raw,format=RGB,width=320,height=240 ! roioverlay labels={labels}
           ! fakesink name=out"
    ));
    intercept(&pipeline, "gray", move |buffer| {
        let mut detection = gst::Structure::builder("detection").field("confidence", 0.9);
        if let Some(class) = class {
            detection = detection.field("label_id", class);
        }
        VideoRegionOfInterestMeta::add(buffer, label, (40, 60, 200, 120))
            .add_param(detection.build());
    });
    let pictures = watch(&pipeline, "out", |buffer| buffer.map_readable().unwrap().to_vec());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    (pictures.lock().unwrap().remove(0), ended.warnings)
}

#[test]
fn a_label_without_a_letter_of_the_font_is_drawn_as_its_class_and_a_warning_says_so_once() {
    pipeline::init();
    let (chinese, warnings) = labeled("行人", Some(3), "always");
    assert_eq!(
        warnings,
        [
            "the label \"行人\" is drawn as \"class-3\", because the font has Latin letters only; this \
             applies to other labels, too"
        ]
    );
    assert!(chinese == labeled("class-3", Some(3), "always").0);
    assert!(chinese != labeled("自行车", Some(4), "always").0);
    // The region has no class number, and its label has letters that the font lacks.
    let (unknown, warnings) = labeled("行人", None, "always");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("is drawn as \"??\""), "{warnings:?}");
    assert!(unknown != chinese);
    let (mixed, warnings) = labeled("café 行", Some(3), "always");
    assert!(warnings[0].contains("is drawn as \"café ?\""), "{warnings:?}");
    assert!(mixed == labeled("café ?", Some(3), "always").0);
}

#[test]
fn labels_of_the_font_and_labels_that_are_not_drawn_give_no_warning() {
    pipeline::init();
    assert_eq!(labeled("Fußgänger, łódź & co.", Some(3), "always").1, [""; 0]);
    assert_eq!(labeled("", Some(3), "always").1, [""; 0]);
    assert_eq!(labeled("行人", Some(3), "never").1, [""; 0]);
}

#[test]
fn a_region_without_a_type_is_drawn_as_one_whose_type_is_empty() {
    let without = draw_what("RGB", 160, 120, "labels=always", |buffer| {
        // SAFETY: the buffer is writable, and the quark 0 means no string.
        unsafe {
            gst_video::ffi::gst_buffer_add_video_region_of_interest_meta_id(
                buffer.as_mut_ptr(),
                0,
                20,
                40,
                100,
                50,
            );
        }
    });
    let empty = draw_what("RGB", 160, 120, "labels=always", |buffer| add_region(buffer, c""));
    assert!(without.rgb == empty.rgb);
    assert!(!near(without.at(70, 40), GRAY, 8));
}

#[test]
fn fields_of_other_types_and_values_that_are_not_finite_are_ignored() {
    let picture = |detection: gst::Structure| {
        draw_what("RGB", 160, 120, "labels=always", move |buffer| {
            VideoRegionOfInterestMeta::add(buffer, "face", (20, 40, 100, 50))
                .add_param(detection.clone());
        })
        .rgb
    };
    pipeline::init();
    let detection = || gst::Structure::builder("detection");
    let none = picture(detection().build());
    for other in [
        detection().field("confidence", "0.9").field("label_id", "3").build(),
        detection().field("confidence", 1i32).field("label_id", 3.0).build(),
        detection().field("confidence", f64::NAN).build(),
        detection().field("confidence", f64::NEG_INFINITY).build(),
        // Fields with these names do not count in a different structure.
        gst::Structure::builder("tracking").field("confidence", 0.9).field("label_id", 3).build(),
    ] {
        assert!(picture(other.clone()) == none, "{other}");
    }
    assert!(picture(detection().field("confidence", 0.9).build()) != none);
}

#[test]
fn a_label_longer_than_the_frame_is_clipped() {
    let label: &'static str = "x".repeat(1 << 20).leak();
    let region = |kind| [(kind, 0, 0.9, (20, 40, 100, 50))];
    // Twenty characters fit into 160 pixels.
    let long = draw("RGB", 160, 120, "labels=always", &region(label));
    let cut = draw("RGB", 160, 120, "labels=always", &region(&label[..40]));
    assert!(long.rgb == cut.rgb);
    let automatic = draw("RGB", 160, 120, "labels=auto", &region(label));
    let confidence = draw("RGB", 160, 120, "labels=auto", &region(&label[..60]));
    assert!(automatic.rgb == confidence.rgb);
}

/// Value of the bytes that are not part of the picture. The element must not change them.
const PADDING: u8 = 0xa5;

/// A gray frame with a custom memory layout.
struct CustomFrame {
    info: VideoInfo,
    offsets: [usize; 4],
    strides: [i32; 4],
    size: usize,
}

impl CustomFrame {
    /// Makes a frame with `padding` bytes before each plane, and after each row except the last.
    fn padded(format: VideoFormat, [width, height]: [u32; 2], padding: usize) -> Self {
        let info = VideoInfo::builder(format, width, height).build().unwrap();
        let (mut offsets, mut strides, mut size) = ([0; 4], [0; 4], 0);
        for (plane, [bytes, rows]) in planes(&info).into_iter().enumerate() {
            offsets[plane] = size + padding;
            strides[plane] = (bytes + padding) as i32;
            size = offsets[plane] + (rows - 1) * (bytes + padding) + bytes;
        }
        Self { info, offsets, strides, size }
    }

    /// Returns a buffer with two regions, whose metadata has the layout.
    fn buffer(&self) -> gst::Buffer {
        let mut bytes = vec![PADDING; self.size];
        for (plane, [len, rows]) in planes(&self.info).into_iter().enumerate() {
            for row in 0..rows {
                let start =
                    self.offsets[plane] as isize + row as isize * self.strides[plane] as isize;
                let row =
                    usize::try_from(start).ok().and_then(|start| bytes.get_mut(start..start + len));
                row.into_iter().for_each(|row| row.fill(0x60));
            }
        }
        let mut buffer = gst::Buffer::from_mut_slice(bytes);
        let writable = buffer.get_mut().unwrap();
        // SAFETY: the buffer is writable, and the arrays have an entry for each of at most 4
        // planes. Some values of the metadata are invalid on purpose: the element must detect them.
        unsafe {
            use gst::glib::translate::IntoGlib;
            gst_video::ffi::gst_buffer_add_video_meta_full(
                writable.as_mut_ptr(),
                gst_video::ffi::GST_VIDEO_FRAME_FLAG_NONE,
                self.info.format().into_glib(),
                self.info.width(),
                self.info.height(),
                self.info.n_planes(),
                &self.offsets,
                &self.strides,
            );
        }
        VideoRegionOfInterestMeta::add(writable, "face", (0, 0, 1 << 20, 1 << 20));
        VideoRegionOfInterestMeta::add(writable, "x", (1, 1, 40, 30));
        buffer
    }

    /// Returns the bytes of the frame after the overlay, and true if there was a warning.
    fn drawn(&self) -> (Vec<u8>, bool) {
        pipeline::init();
        let mut harness = gst_check::Harness::new("roioverlay");
        harness.element().unwrap().set_property_from_str("labels", "always");
        let bus = gst::Bus::new();
        harness.element().unwrap().set_bus(Some(&bus));
        harness.set_src_caps(self.info.to_caps().unwrap());
        let out = harness.push_and_pull(self.buffer()).expect("the frame passes");
        let warned = bus.pop_filtered(&[gst::MessageType::Warning]).is_some();
        (out.map_readable().unwrap().to_vec(), warned)
    }

    /// Splits the frame into the picture's samples, row by row, and all other bytes.
    fn split(&self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut samples, mut others, mut end) = (Vec::new(), Vec::new(), 0);
        for (plane, [len, rows]) in planes(&self.info).into_iter().enumerate() {
            for row in 0..rows {
                let start = self.offsets[plane] + row * self.strides[plane] as usize;
                others.extend(&bytes[end..start]);
                end = start + len;
                samples.extend(&bytes[start..end]);
            }
        }
        others.extend(&bytes[end..]);
        (samples, others)
    }
}

/// Returns for each plane the bytes per row and the number of rows.
fn planes(info: &VideoInfo) -> Vec<[usize; 2]> {
    let format = info.format_info();
    let size = |plane: u32| {
        let components = (0..info.n_components()).filter(|&c| format.plane()[c as usize] == plane);
        let bytes = components.clone().map(|component| {
            let i = component as usize;
            let wide = format.scale_width(component as u8, info.width()) as usize;
            (wide - 1) * format.pixel_stride()[i] as usize + format.poffset()[i] as usize + 1
        });
        // The last byte of a pixel may be unused in formats with four bytes per pixel, and in
        // packed 4:2:2, with four bytes per pair of pixels.
        let last = bytes.max().unwrap();
        let unit = match info.format() {
            VideoFormat::Yuy2 | VideoFormat::Uyvy | VideoFormat::Yvyu | VideoFormat::Vyuy => 4,
            _ => format.pixel_stride()[components.clone().next().unwrap() as usize] as usize,
        };
        let rows = components.map(|c| format.scale_height(c as u8, info.height())).max().unwrap();
        [last.next_multiple_of(unit), rows as usize]
    };
    (0..info.n_planes()).map(size).collect()
}

#[test]
fn pixels_are_the_same_for_any_padding_and_padding_bytes_are_unchanged() {
    pipeline::init();
    for format in formats() {
        let format: VideoFormat = format.parse().unwrap();
        for size in [[1, 1], [1, 9], [9, 1], [2, 3], [7, 5], [65, 49]] {
            let tight = CustomFrame::padded(format, size, 0);
            let (expected, _) = tight.split(&tight.drawn().0);
            assert!(expected.iter().any(|&byte| byte != 0x60), "{format} {size:?}: nothing drawn");
            for padding in [1, 13, 4096] {
                let padded = CustomFrame::padded(format, size, padding);
                let (bytes, warned) = padded.drawn();
                let (samples, others) = padded.split(&bytes);
                assert!(samples == expected, "{format} {size:?}, {padding} bytes of padding");
                assert!(others.iter().all(|&byte| byte == PADDING), "{format} {size:?} {padding}");
                assert!(!warned, "{format} {size:?} {padding}");
            }
        }
    }
}

#[test]
fn a_frame_whose_layout_exceeds_its_memory_gives_a_warning_and_is_unchanged() {
    pipeline::init();
    let layout = |offset: usize, stride: i32, size: usize| {
        let info = VideoInfo::builder(VideoFormat::Rgb, 64, 48).build().unwrap();
        CustomFrame { info, offsets: [offset, 0, 0, 0], strides: [stride, 0, 0, 0], size }
    };
    for (case, frame) in [
        ("one byte is missing", layout(0, 192, 192 * 48 - 1)),
        ("the plane begins too late", layout(193, 192, 192 * 48)),
        ("the stride is too long", layout(0, 1 << 26, 192 * 48)),
        ("the stride is shorter than a row", layout(0, 100, 192 * 48)),
        ("there is no stride", layout(0, 0, 192 * 48)),
        ("rows run upwards", layout(192 * 47, -192, 192 * 48)),
    ] {
        let before = frame.buffer().map_readable().unwrap().to_vec();
        let (after, warned) = frame.drawn();
        assert!(after == before, "{case}: bytes were changed");
        assert!(warned, "{case}: no warning");
    }
}

#[test]
fn regions_of_one_class_have_one_color_and_two_classes_differ() {
    let regions = [
        ("person", 3, 0.9, (10, 20, 30, 30)),
        ("bicycle", 4, 0.9, (60, 20, 30, 30)),
        ("person", 3, 0.5, (110, 20, 30, 30)),
    ];
    let picture = draw("RGB", 160, 120, "labels=never line-width=3", &regions);
    let [first, other, again] = [25, 75, 125].map(|x| picture.at(x, 21));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn labels_are_drawn_above_the_box_unless_labels_is_never() {
    let region = [("face", 0, 0.87, (40, 60, 100, 50))];
    let above = |overlay: &str| {
        let picture = draw("RGB", 200, 160, overlay, &region);
        (42..140).flat_map(|x| (44..58).map(move |y| (x, y))).any(|(x, y)| {
            // Text is dark, on the color of the class.
            let [r, g, b] = picture.at(x, y);
            r < 70 && g < 70 && b < 70
        })
    };
    assert!(above("labels=auto"));
    assert!(above("labels=always"));
    assert!(!above("labels=never"));
}

#[test]
fn seven_hundred_regions_on_a_frame_of_1080p_are_drawn() {
    let crowd: Vec<Region> = (0..700)
        .map(|i| ("face", 0, 0.5, (i % 35 * 54, i / 35 * 53, 30 + i % 40, 30 + i % 40)))
        .collect();
    let picture = draw("NV12", 1920, 1080, "", &crowd);
    let colored = picture.rgb.as_chunks::<3>().0.iter().filter(|&&rgb| near(rgb, YELLOW, 40));
    assert!(colored.count() > 700 * 100);
}
