// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that `videoconvert` makes, in every format and in odd sizes. In some formats, GStreamer's
//! own layout is smaller than the part that GstVideoConverter reads.

use gst::prelude::*;
use gst_video::{VideoFormat, VideoInfo, VideoInterlaceMode};
use gstnmsfilter::frame::raw_formats;
use gstonnxruntime::inference::picture::Resampler;

use crate::exact_memory::{Border, memory};
use crate::support::pipeline::{parse, run, watch};
use crate::{Reader, init};

/// Sizes at which formats with words of several pixels, with tiles, or with chroma by fields have
/// their smallest layout.
const SIZES: [[u32; 2]; 7] = [[1, 1], [3, 2], [19, 5], [63, 61], [64, 64], [67, 134], [102, 130]];

/// Returns the bytes of the frame that `videoconvert` makes.
fn frame(info: &VideoInfo, pattern: &str) -> Vec<u8> {
    let caps = info.to_caps().unwrap();
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=1 pattern={pattern} ! videoconvert name=convert ! {caps} ! fakesink"
    ));
    // For some sizes, videoconvert writes past the end of its frame. The extra memory is not part
    // of the buffer.
    let pad = pipeline.by_name("convert").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
        match info.query_mut().map(gst::QueryRef::view_mut) {
            Some(gst::QueryViewMut::Allocation(query)) => {
                let params = gst::AllocationParams::new(gst::MemoryFlags::empty(), 15, 0, 1 << 16);
                query.add_allocation_param(None::<&gst::Allocator>, params);
                gst::PadProbeReturn::Handled
            }
            _ => gst::PadProbeReturn::Ok,
        }
    });
    let frames = watch(&pipeline, "convert", |buffer| {
        let map = buffer.map_readable().unwrap();
        map.to_vec()
    });
    assert_eq!(run(&pipeline).error, None, "{caps}");
    let bytes = frames.lock().unwrap().pop().expect("there is a frame");
    assert_eq!(bytes.len(), info.size(), "{caps}");
    bytes
}

/// Returns the mean difference of two tensors, from 0 to 1.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>() / a.len() as f32
}

#[test]
fn a_model_receives_the_picture_of_every_frame_that_videoconvert_makes() {
    let _one_test = init();
    let mut reader = Reader::new();
    let modes = [VideoInterlaceMode::Progressive, VideoInterlaceMode::Interleaved];
    let (mut read, mut others) = (0, Vec::new());
    for ([width, height], mode) in SIZES.iter().flat_map(|&size| modes.map(|mode| (size, mode))) {
        let info = |format| {
            let info = VideoInfo::builder(format, width, height).interlace_mode(mode).build();
            // Caps say how many rows fields have, which the bindings for 1.14 do not set.
            VideoInfo::from_caps(&info.unwrap().to_caps().unwrap()).unwrap()
        };
        for format in raw_formats() {
            let info_of_format = info(format);
            let pattern = if info_of_format.is_gray() { "gradient" } else { "smpte" };
            let mut picture = |info: &VideoInfo, border| {
                let resampler = Resampler::new(info, &reader.input).unwrap();
                let mut buffer = gst::Buffer::new();
                let bytes = memory(&frame(info, pattern), border);
                buffer.get_mut().unwrap().append_memory(bytes);
                reader.read(&resampler, &buffer)
            };
            let expected = picture(&info(VideoFormat::Rgb), Border::Block).unwrap();
            for border in [Border::Block, Border::PageBehind] {
                let name = format!("{format} {width}x{height} {mode:?}");
                match picture(&info_of_format, border) {
                    Ok(found) => {
                        read += 1;
                        // In small frames, subsampled chroma changes the picture noticeably.
                        let most = if width < 60 { 0.5 } else { 0.08 };
                        let difference = difference(&found, &expected);
                        // In GStreamer 1.28, videoconvert loses columns of partial tiles.
                        let is_whole = !format.to_str().starts_with("MT2110") || width % 16 == 0;
                        if is_whole && difference > most {
                            others.push(format!("{name}: difference {difference}"));
                        }
                    }
                    Err(error) => others.push(format!("{name}: {error}")),
                }
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    println!("{read} frames were read");
}
