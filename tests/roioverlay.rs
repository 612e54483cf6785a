//! Regions made visible: in their class's colour, where they are, and nothing else changed.

mod pipeline;

use gst_video::VideoRegionOfInterestMeta;
use gst_video::prelude::*;
use pipeline::{intercept, parse, run, watch};

const FORMATS: [&str; 20] = [
    "I420", "YV12", "NV12", "NV21", "YUY2", "UYVY", "Y42B", "Y444", "GRAY8", "RGB", "BGR", "RGBx",
    "BGRx", "xRGB", "xBGR", "RGBA", "BGRA", "ARGB", "ABGR", "GBR",
];

/// A region to draw: its type, class, confidence and pixels.
type Region = (&'static str, i32, f64, (u32, u32, u32, u32));

/// A picture as rows of red, green and blue.
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

/// Draws `regions` on a grey picture of this format.
fn draw(format: &str, width: usize, height: usize, overlay: &str, regions: &[Region]) -> Picture {
    let pipeline = parse(&format!(
        "videotestsrc pattern=solid-color foreground-color=0xff606060 num-buffers=1 name=grey
           ! video/x-raw,format={format},width={width},height={height}
           ! roioverlay {overlay} ! videoconvert dither=none
           ! video/x-raw,format=RGB ! fakesink name=out"
    ));
    let regions = regions.to_vec();
    intercept(&pipeline, "grey", move |buffer| {
        for &(kind, class, confidence, rect) in &regions {
            VideoRegionOfInterestMeta::add(buffer, kind, rect).add_param(
                gst::Structure::builder("detection")
                    .field("label_id", class)
                    .field("confidence", confidence)
                    .build(),
            );
        }
    });
    let info =
        gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, width as u32, height as u32)
            .build()
            .unwrap();
    let pictures = watch(&pipeline, "out", move |buffer| {
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).unwrap();
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

const GREY: [u8; 3] = [0x60; 3];
/// The colour of class 0.
const YELLOW: [u8; 3] = [255, 214, 10];

#[test]
fn a_box_has_its_colour_in_every_format_and_the_rest_stays() {
    for format in FORMATS {
        let region = [("face", 0, 0.9, (40, 30, 60, 50))];
        let picture = draw(format, 160, 120, "labels=never line-width=4", &region);
        // On the lines, well inside them.
        for (x, y) in [(70, 32), (70, 77), (42, 55), (97, 55)] {
            let colour = picture.at(x, y);
            // A grey picture shows the luma alone, by BT.601.
            let expected = if format == "GRAY8" { [203; 3] } else { YELLOW };
            assert!(near(colour, expected, 6), "{format} at {x},{y}: {colour:?}");
        }
        for (x, y) in [(5, 5), (70, 55), (150, 100), (70, 24), (110, 55)] {
            let colour = picture.at(x, y);
            assert!(near(colour, GREY, 2), "{format} at {x},{y}: {colour:?}");
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

#[test]
fn regions_beyond_the_frame_are_clipped() {
    let wild = [
        ("face", 0, 0.9, (u32::MAX, u32::MAX, u32::MAX, u32::MAX)),
        ("face", 0, 0.9, (0, 0, 0, 0)),
        ("face", 0, 0.9, (40, 30, u32::MAX, 5)),
        ("face", 0, f64::NAN, (1, 1, 1, 1)),
        ("", -7, 1e300, (60, 40, 4, 8)),
    ];
    for format in FORMATS {
        for labels in ["auto", "always", "never"] {
            let picture = draw(format, 65, 49, &format!("labels={labels}"), &wild);
            assert_eq!(picture.rgb.len(), 65 * 49 * 3, "{format}");
        }
    }
}

#[test]
fn a_class_keeps_its_colour_and_two_classes_differ() {
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
fn labels_are_drawn_where_they_have_room() {
    let region = [("face", 0, 0.87, (40, 60, 100, 50))];
    let above = |overlay: &str| {
        let picture = draw("RGB", 200, 160, overlay, &region);
        (42..140).flat_map(|x| (44..58).map(move |y| (x, y))).any(|(x, y)| {
            // Dark text on the class's colour.
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
    let coloured = picture.rgb.as_chunks::<3>().0.iter().filter(|&&rgb| near(rgb, YELLOW, 40));
    assert!(coloured.count() > 700 * 100);
}
