// SPDX-License-Identifier: MIT OR Apache-2.0
//! The new nvstreammux, which muxes sources of different sizes without scaling them. The tests do
//! nothing unless `nvstreammux` started the process.
//!
//! The sources are surfaces without pixels. Like nvinfer, a probe attaches the tensors.

use gst::prelude::*;

use crate::nvstreammux::PLUGIN;
use crate::run::Seen;
use crate::standin::{Batch, Counts, Layer, Surfaces, Tensors};
use crate::support::pipeline::{self, intercept, parse, run, watch};

/// Sizes of the sources. The muxer's caps contain the size of only one of them.
const SOURCES: [[u32; 2]; 3] = [[1920, 1080], [640, 480], [720, 1280]];
const BUFFERS: usize = 10;

/// A box in the model's input of 640x640, and the resulting box on a frame of each source: left,
/// top, width and height.
struct Case {
    symmetric_padding: bool,
    in_model: [f32; 4],
    on_frames: [[f32; 4]; 3],
}

const STRETCHED: Case = Case {
    symmetric_padding: false,
    in_model: [565.6, 239.84, 40.0, 20.0],
    on_frames: [
        [1696.8, 404.73, 120.0, 33.75],
        [565.6, 179.88, 40.0, 15.0],
        [636.3, 479.68, 45.0, 40.0],
    ],
};

const CENTERED: Case = Case {
    symmetric_padding: true,
    in_model: [320.0, 240.0, 40.0, 20.0],
    on_frames: [
        [960.0, 300.0, 120.0, 60.0],
        [320.0, 160.0, 40.0, 20.0],
        [360.0, 480.0, 80.0, 40.0],
    ],
};

/// Returns an output of YOLOv8 with one class and one box. The model's input is 640x640; frames are
/// centered in it, or stretched. The memory is never freed.
pub fn one_box([left, top, width, height]: [f32; 4], is_centered: bool) -> Tensors {
    const ANCHORS: usize = 16;
    let mut elements = vec![0.0f32; 5 * ANCHORS];
    let anchor = [left + width / 2.0, top + height / 2.0, width, height, 0.9];
    for (row, value) in elements.chunks_mut(ANCHORS).zip(anchor) {
        row[0] = value;
    }
    let layer = Layer {
        name: Some(c"output0".to_owned()),
        data_type: 0,
        dims: vec![5, ANCHORS as u32],
        counts: None,
        host: elements.leak().as_ptr() as u64,
        device: 0,
    };
    Tensors {
        unique_id: 1,
        size: [640, 640],
        maintain_aspect_ratio: is_centered,
        symmetric_padding: is_centered,
        layers: vec![layer],
        ..Tensors::default()
    }
}

/// Returns a pipeline of the sources, the muxer, and the elements `behind`. Returns `None` unless
/// `nvstreammux` started the process.
fn pipeline(behind: &str, case: &Case) -> Option<gst::Pipeline> {
    let plugin = std::env::var_os(PLUGIN)?;
    pipeline::init();
    gst::Plugin::load_file(plugin).unwrap();
    let mut description = format!("nvstreammux name=mux batch-size={} ! {behind}", SOURCES.len());
    for (index, [width, height]) in SOURCES.into_iter().enumerate() {
        description += &format!(
            " fakesrc name=in{index} num-buffers={BUFFERS} sizetype=empty format=time
                ! video/x-raw(memory:NVMM),format=NV12,width={width},height={height},framerate=30/1
                ! mux.sink_{index}"
        );
    }
    let pipeline = parse(&description);
    for (index, size) in SOURCES.into_iter().enumerate() {
        let surfaces = Surfaces { sizes: vec![size], ..Surfaces::default() };
        intercept(&pipeline, &format!("in{index}"), move |buffer| surfaces.replace_memory(buffer));
    }
    let tensors = one_box(case.in_model, case.symmetric_padding);
    intercept(&pipeline, "mux", move |buffer| {
        for frame in Batch::find(buffer).expect("nvstreammux attaches a batch").frames() {
            frame.attach(&tensors, None);
        }
    });
    Some(pipeline)
}

/// Asserts that the frames of each source have the source's box.
fn assert_boxes(seen: &[Seen], case: &Case) {
    let mut frames = [0; SOURCES.len()];
    for (state, objects) in seen.iter().flat_map(|seen| &seen.frames) {
        let source = state.source_id as usize;
        frames[source] += 1;
        let [object] = &objects[..] else { panic!("source {source}: {objects:?}") };
        for (found, expected) in object.rect.iter().zip(case.on_frames[source]) {
            assert!((found - expected).abs() < 0.01, "source {source}: {:?}", object.rect);
        }
    }
    assert_eq!(frames, [BUFFERS; SOURCES.len()]);
}

#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_on_every_source() {
    for case in [STRETCHED, CENTERED] {
        let behind = "nmsfilter name=nms decoder=yolov8 ! fakesink";
        let Some(pipeline) = pipeline(behind, &case) else { return };
        let seen = watch(&pipeline, "nms", Seen::read);
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings), (None, vec![]));
        drop(pipeline);
        assert_boxes(&seen.lock().unwrap(), &case);
        Counts::now().assert_nothing_left();
    }
}

/// NVIDIA's function makes the metadata of a copy, and leaves out the sizes.
#[test]
#[ignore = "run by `nvstreammux` in a process of its own"]
fn boxes_are_right_on_copies() {
    let behind = "identity name=copied ! tee name=t
          t. ! queue ! nmsfilter name=first decoder=yolov8 ! fakesink
          t. ! queue ! nmsfilter name=second decoder=yolov8 ! fakesink";
    let Some(pipeline) = pipeline(behind, &STRETCHED) else { return };
    let pad = pipeline.by_name("copied").unwrap().static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        let buffer = info.buffer_mut().unwrap();
        *buffer = buffer.copy();
        gst::PadProbeReturn::Ok
    });
    let branches = ["first", "second"].map(|name| watch(&pipeline, name, Seen::read));
    let ended = run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]));
    drop(pipeline);
    for branch in branches {
        assert_boxes(&branch.lock().unwrap(), &STRETCHED);
    }
    Counts::now().assert_nothing_left();
}
