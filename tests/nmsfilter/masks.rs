// SPDX-License-Identifier: MIT OR Apache-2.0
//! Masks of regions in both sizes, and the mask bytes in `stats`.

use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::engines;
use crate::support::pipeline::{Ended, init, intercept, parse, run, watch};

/// Rectangle of a region, and its mask: width and height, area in the frame, and rows.
type Masked = ((u32, u32, u32, u32), Option<([i32; 2], [f64; 4], Vec<u8>)>);

/// Returns two anchors in a model's input of 32x32, and two prototypes of 8x8. The first prototype
/// is positive in columns 0 to 2, the second is negative in rows 0 to 3.
fn tensors() -> Vec<NewTensor> {
    init();
    // Corners, score, class and coefficients.
    let output =
        [[4.0, 10.0, 20.0, 18.0, 0.9, 0.0, 1.0, 0.0], [16.0, 8.0, 32.0, 24.0, 0.8, 1.0, 0.0, -2.0]];
    let first = (0..64).map(|pixel| if pixel % 8 < 3 { 1.0 } else { -1.0 });
    let second = (0..64).map(|pixel| if pixel / 8 < 4 { -1.0 } else { 1.0 });
    vec![
        NewTensor::from_vec("output0", &[1, 2, 8], output.concat()).unwrap(),
        NewTensor::from_vec("output1", &[1, 2, 8, 8], first.chain(second).collect()).unwrap(),
    ]
}

/// Returns the regions of a letterboxed frame of 64x32, which covers rows 8 to 23 of the model's
/// input.
fn regions(properties: &str) -> (Vec<Masked>, Ended) {
    let backend = if engines::on_gpu() { "cuda" } else { "cpu" };
    let tensors = tensors();
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,format=GRAY8,width=64,height=32
           ! nmsfilter name=nms decoder=end2end-seg method=none model-width=32 model-height=32
             letterbox=center attach=roi backend={backend} {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", |buffer| {
        let region = |meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>| {
            let mask = meta.param("mask").map(|mask| {
                let side = |name| mask.get::<i32>(name).unwrap();
                let edge = |name| mask.get::<f64>(name).unwrap();
                let rows = mask.get::<gst::glib::Bytes>("data").unwrap().to_vec();
                let area = ["left", "top", "right", "bottom"].map(edge);
                (["width", "height"].map(side), area, rows)
            });
            (meta.rect(), mask)
        };
        buffer.iter_meta::<VideoRegionOfInterestMeta>().map(region).collect::<Vec<_>>()
    });
    let ended = run(&pipeline);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!((seen.len(), &ended.error), (2, &None), "{properties}");
    (seen.into_iter().next_back().unwrap(), ended)
}

fn stats(ended: &Ended, name: &str) -> u64 {
    ended.stats[0].get(name).unwrap()
}

#[test]
fn a_mask_of_the_prototypes_covers_the_pixels_of_its_box_in_the_frame() {
    let (found, ended) = regions("");
    // The mask covers prototype rows 3 and 4. They begin at row 12 of the model's input, 4 rows
    // below the upper edge of the frame.
    let first = ([4, 2], [8.0, 8.0, 40.0, 24.0], vec![0b1100_0000; 2]);
    let second = ([4, 4], [32.0, 0.0, 64.0, 32.0], vec![0xf0, 0xf0, 0, 0]);
    assert_eq!(found, [((8, 4, 32, 16), Some(first)), ((32, 0, 32, 32), Some(second))]);
    // Each of two frames downloads one word per mask.
    let expected = if engines::on_gpu() { [2 * 2 * 4, 2 * 2 * 8] } else { [0, 0] };
    let names = ["mask-bytes-downloaded", "column-bytes-downloaded"];
    assert_eq!(names.map(|name| stats(&ended, name)), expected);
    let all = if engines::on_gpu() { 2 * (32 + 2 * 28) + expected[0] + expected[1] } else { 0 };
    assert_eq!(stats(&ended, "bytes-downloaded"), all);
}

#[test]
fn a_mask_of_the_frame_has_the_pixels_of_the_region() {
    let (found, _) = regions("mask-size=frame");
    let [(first_rect, Some(first)), (second_rect, Some(second))] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((first_rect, second_rect), (&(8, 4, 32, 16), &(32, 0, 32, 32)));
    // One prototype pixel is 8 frame pixels. The logit is 0 between the columns 23 and 24.
    assert_eq!(*first, ([32, 16], [8.0, 4.0, 40.0, 20.0], [0xff, 0xff, 0, 0].repeat(16)));
    // Row 4 of the prototypes begins at row 16 of the frame.
    let rows = [[0xff; 4].repeat(16), [0; 4].repeat(16)].concat();
    assert_eq!(*second, ([32, 32], [32.0, 0.0, 64.0, 32.0], rows));
}

#[test]
fn without_masks_regions_have_none() {
    for properties in ["masks=false", "masks=false mask-size=frame"] {
        let (found, ended) = regions(properties);
        assert_eq!(found, [((8, 4, 32, 16), None), ((32, 0, 32, 32), None)]);
        assert_eq!(stats(&ended, "mask-bytes-downloaded"), 0);
        assert_eq!(stats(&ended, "column-bytes-downloaded"), 0);
    }
}
