// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames with random layouts. Their `GstVideoMeta` fits the memory, nearly fits it, or is random.
//!
//! Readers must refuse a layout that exceeds the memory, and must read all other frames as if they
//! had GStreamer's own layout. The memory ends with the frame: it is either a block of exactly the
//! frame's size, for AddressSanitizer (asan.sh), or it is next to unmapped pages, for code that was
//! built without it.
//!
//! The variable `NMSFILTER_TEST_FRAMES` sets the number of frames.

#[path = "../support/mod.rs"]
mod support;

mod converted_frames;
mod exact_memory;
mod random_frame;

use std::sync::{Mutex, MutexGuard, PoisonError};

use gst::glib;
use gst::prelude::*;
use gst_video::{VideoFormat, VideoRegionOfInterestMeta};
use gstonnxruntime::inference::model::InputSpec;
use gstonnxruntime::inference::picture::{
    Resampler, Resampling, Rows, Scaling, Scratch, Table, resample,
};
use nmsfilter_core::geometry::{FrameRegion, Letterbox};
use nmsfilter_core::tensor::ElementType;

use random_frame::RandomFrame;

/// Returns the number of frames. The default covers all formats with most changes, in a few
/// seconds.
fn count() -> u64 {
    let count = std::env::var("NMSFILTER_TEST_FRAMES");
    count.map_or(4000, |count| count.parse().expect("it is a number"))
}

/// Criticals and warnings that GLib logged in any thread.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Initializes everything. The returned guard makes tests run one at a time, since log messages
/// belong to the whole process.
fn init() -> MutexGuard<'static, ()> {
    static ONE_TEST: Mutex<()> = Mutex::new(());
    let guard = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
    support::pipeline::init();
    glib::log_set_default_handler(|domain, level, text| {
        let is_defect = matches!(
            level,
            glib::LogLevel::Critical | glib::LogLevel::Warning | glib::LogLevel::Error
        );
        if is_defect {
            LOGGED.lock().unwrap().push(format!("{level:?} of {domain:?}: {text}"));
        }
    });
    guard
}

fn assert_nothing_logged(seed: u64, frame: &RandomFrame) {
    let logged = std::mem::take(&mut *LOGGED.lock().unwrap());
    assert_eq!(logged, [""; 0], "seed {seed}: {frame:?}");
}

/// A model with an input of 24x24 pixels that reads frames.
struct Reader {
    input: InputSpec,
    table: Table,
    rows: Rows,
    tensor: Vec<f32>,
}

impl Reader {
    fn new() -> Self {
        let input = InputSpec::with_size([24, 24], ElementType::F32);
        let table = Table::new(&input);
        let tensor = vec![0.0; input.bytes() / 4];
        Self { input, table, rows: Rows::default(), tensor }
    }

    /// Returns `None` if GstVideoConverter does not know the format.
    fn resampler(&self, frame: &RandomFrame) -> Option<Resampler> {
        Resampler::new(&frame.info, &self.input).ok()
    }

    fn read(&mut self, resampler: &Resampler, buffer: &gst::BufferRef) -> Result<Vec<f32>, String> {
        let (input, table) = (&self.input, &self.table);
        let scaling = Scaling::new(
            resampler,
            FrameRegion::whole(resampler.frame_size()),
            &self.input,
            Letterbox::None,
        );
        let tensor = bytemuck::cast_slice_mut(&mut self.tensor);
        let result = resampler.samples(buffer, &mut Scratch::default(), |planes| {
            let of = Resampling { resampler, scaling: &scaling, planes, input, table };
            resample(of, &mut self.rows, tensor);
        });
        result.map(|()| self.tensor.clone()).map_err(|error| error.to_string())
    }
}

/// Frames that GstVideoConverter reads are compared, too, since it uses the frame's layout.
#[test]
fn a_model_receives_the_picture_of_every_frame_that_fits_its_memory_and_no_other() {
    let _one_test = init();
    let mut reader = Reader::new();
    let (mut read, mut refused, mut compared) = (0, 0, 0);
    for seed in 0..count() {
        let frame = RandomFrame::new(seed);
        let Some(resampler) = reader.resampler(&frame) else { continue };
        let buffer = frame.buffer();
        let found = reader.read(&resampler, &buffer);
        assert_nothing_logged(seed, &frame);
        match frame.fits() {
            Some(true) => assert_eq!(found.as_ref().err(), None, "seed {seed}: {frame:?}"),
            Some(false) => assert!(found.is_err(), "seed {seed}: was read: {frame:?}"),
            None => (),
        }
        match found {
            Err(error) => {
                let is_named = ["stride", "planes", "GstVideoMeta", "cannot be mapped"]
                    .iter()
                    .any(|part| error.contains(part));
                assert!(is_named, "seed {seed}: {error}");
                refused += 1;
            }
            Ok(found) => {
                read += 1;
                let Some(packed) = frame.packed() else {
                    panic!("seed {seed}: was read, and exceeds its memory: {frame:?}");
                };
                if let Some(packed) = packed {
                    let expected = reader.read(&resampler, &packed).unwrap();
                    assert!(found == expected, "seed {seed}: another picture: {frame:?}");
                    compared += 1;
                }
            }
        }
    }
    println!("{read} frames were read, {compared} of them compared, {refused} refused");
    let least = count() as usize / 4;
    assert!(read > least && refused > least && compared > least, "{read} {refused} {compared}");
}

#[test]
fn regions_are_drawn_on_every_frame_that_fits_its_memory_and_no_other() {
    let _one_test = init();
    let (mut drawn, mut refused) = (0, 0);
    let factory = gst::ElementFactory::find("roioverlay").unwrap();
    let caps = factory.static_pad_templates().iter().next().unwrap().caps();
    for seed in 0..count() {
        let frame = RandomFrame::new(seed);
        let own = frame.info.to_caps().unwrap();
        if !caps.can_intersect(&own) {
            continue;
        }
        let mut harness = gst_check::Harness::new("roioverlay");
        let bus = gst::Bus::new();
        harness.element().unwrap().set_bus(Some(&bus));
        harness.set_src_caps(own);
        let mut buffer = frame.buffer();
        let regions = buffer.get_mut().unwrap();
        VideoRegionOfInterestMeta::add(regions, "a", (0, 0, 1 << 20, 1 << 20));
        VideoRegionOfInterestMeta::add(regions, "b", (3, 2, 7, 5));
        let before = frame.bytes_of(&buffer);
        let after = harness.push_and_pull(buffer).expect("the frame passes");
        let warned = bus.pop_filtered(&[gst::MessageType::Warning]).is_some();
        // Clearing the bus closes its file descriptors.
        harness.element().unwrap().set_bus(None);
        assert_nothing_logged(seed, &frame);
        let is_changed = frame.bytes_of(&after) != before;
        assert!(is_changed != warned, "seed {seed}: {is_changed} {warned}: {frame:?}");
        if let Some(fits) = frame.fits() {
            assert_eq!(fits, is_changed, "seed {seed}: {frame:?}");
        }
        if is_changed {
            drawn += 1
        } else {
            refused += 1
        };
    }
    println!("{drawn} frames were drawn on, {refused} refused");
    let least = count() / 10;
    assert!(drawn > least && refused > least, "{drawn} {refused}");
}

/// Elements can set a `map` function for special memory. The function here returns an address
/// outside of the buffer.
#[test]
fn a_frame_that_its_element_maps_itself_is_read_where_that_function_says() {
    unsafe extern "C" fn map(
        meta: *mut gst_video::ffi::GstVideoMeta,
        plane: u32,
        info: *mut gst::ffi::GstMapInfo,
        data: *mut *mut std::ffi::c_void,
        stride: *mut i32,
        flags: gst::ffi::GstMapFlags,
    ) -> glib::ffi::gboolean {
        static PIXELS: [u8; 16 * 12 * 3] = [77; 16 * 12 * 3];
        // SAFETY: `gst_video_meta_map` calls this function with valid pointers, and readers do not
        // write.
        unsafe {
            assert_eq!((plane, (*meta).n_planes), (0, 1));
            *data = PIXELS.as_ptr().cast_mut().cast();
            *stride = 16 * 3;
            // `gst_video_frame_unmap` reads these flags.
            (*info).flags = flags;
        }
        glib::ffi::GTRUE
    }
    unsafe extern "C" fn unmap(
        _: *mut gst_video::ffi::GstVideoMeta,
        _: u32,
        _: *mut gst::ffi::GstMapInfo,
    ) -> glib::ffi::gboolean {
        glib::ffi::GTRUE
    }
    let _one_test = init();
    let mut buffer = gst::Buffer::from_slice([0_u8; 16 * 12 * 3]);
    let flags = gst_video::VideoFrameFlags::empty();
    let writable = buffer.get_mut().unwrap();
    let meta = gst_video::VideoMeta::add(writable, flags, VideoFormat::Rgb, 16, 12).unwrap();
    // SAFETY: the metadata belongs to the buffer, which is not shared.
    unsafe {
        let meta = meta.as_ptr().cast_mut();
        (*meta).map = Some(map);
        (*meta).unmap = Some(unmap);
    }
    let mut reader = Reader::new();
    let info = gst_video::VideoInfo::builder(VideoFormat::Rgb, 16, 12).build().unwrap();
    let resampler = Resampler::new(&info, &reader.input).unwrap();
    let found = reader.read(&resampler, &buffer).unwrap();
    assert!(found.iter().all(|&value| value == 77.0 / 255.0));
}
