// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tensorreplay`: file formats, the order of frames, and errors.

use std::path::{Path, PathBuf};

use gstnmsfilter::input::Tensors;
use nmsfilter_core::tensor::Elements;

use crate::support::data;
use crate::support::pipeline::{Ended, parse, run, watch};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the tensor of each of `frames` frames, formatted as `id (type shape): first element`,
/// and the messages.
fn replay(properties: &str, frames: u32) -> (Vec<String>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc num-buffers={frames} ! video/x-raw,width=64,height=48
           ! tensorreplay {properties} ! fakesink name=out"
    ));
    let seen = watch(&pipeline, "out", |buffer| {
        let attached = Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        let is_empty = tensors[0].shape.elements() == Some(0);
        let first = (!is_empty).then(|| tensors[0].elements().unwrap().to_f32(0));
        format!("{}: {}", tensors[0], first.map_or("none".into(), |first| first.to_string()))
    });
    let ended = run(&pipeline);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, ended)
}

/// Returns the tensors of a run without errors.
fn tensors(properties: &str, frames: u32) -> Vec<String> {
    let (seen, ended) = replay(properties, frames);
    assert_eq!(ended.error, None, "{properties}");
    seen
}

/// Returns the error that occurs at the first frame.
fn error(properties: &str) -> String {
    let (seen, ended) = replay(properties, 3);
    assert!(seen.is_empty(), "{properties}: {seen:?}");
    ended.error().to_owned()
}

/// Returns a .npy file of version 1.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    // A structured type is written as a list, without quotes.
    let quote = if descr.starts_with('[') { "" } else { "'" };
    let mut header = format!(
        "{{'descr': {quote}{descr}{quote}, 'fortran_order': {order}, 'shape': ({shape}), }}"
    );
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(data);
    file
}

fn bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}

#[test]
fn a_csv_file_is_attached_to_every_frame_as_one_tensor_of_windows() {
    let folder = Folder::new("csv");
    let file = folder.file("crowd.csv", b"778,59,24,41.84\r\n\r\n 1 , 2,3, -4e0\n");
    assert_eq!(tensors(&format!("location={file}"), 2), ["windows (f32 2x4): 778"; 2]);
    let file = folder.file("crowd.txt", b"");
    assert_eq!(tensors(&format!("location={file}"), 1), ["windows (f32 0x4): none"]);
}

#[test]
fn shape_and_type_of_an_npy_file_are_read_from_its_header() {
    let folder = Folder::new("npy");
    let single =
        folder.file("out.npy", &npy("<f4", false, "1, 2, 3", &bytes((5..11).map(|i| i as f32))));
    assert_eq!(tensors(&format!("location={single}"), 1), ["out (f32 1x2x3): 5"]);
    let half = [half::f16::from_f32(0.5); 4];
    let half = folder.file("half.npy", &npy("<f2", false, "4,", bytemuck::cast_slice(&half)));
    assert_eq!(tensors(&format!("location={half} tensor-id=scores"), 1), ["scores (f16 4): 0.5"]);
}

#[test]
fn npy_files_of_integers_are_attached_as_they_are() {
    let folder = Folder::new("integers");
    for (descr, data, expected) in [
        ("|i1", &[0x80, 1][..], "out (i8 2): -128"),
        ("|u1", &[0x80, 1], "out (u8 2): 128"),
        ("<i4", &[0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0], "out (i32 2): -2"),
        ("<i8", &[[0x07, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat(), "out (i64 2): 7"),
    ] {
        let file = folder.file("out.npy", &npy(descr, false, "2,", data));
        assert_eq!(tensors(&format!("location={file}"), 1), [expected]);
    }
}

#[test]
fn raw_files_of_integers_have_the_type_of_the_property() {
    let folder = Folder::new("raw-integers");
    let file = folder.file("out.raw", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    for (element, shape, expected) in [
        ("i8", 8, "out (i8 8): -1"),
        ("u8", 8, "out (u8 8): 255"),
        ("i32", 2, "out (i32 2): -1"),
        ("i64", 1, "out (i64 1): -1"),
    ] {
        let properties = format!("location={file} shape={shape} element-type={element}");
        assert_eq!(tensors(&properties, 1), [expected]);
    }
}

#[test]
fn the_properties_set_the_shape_and_type_of_a_raw_file() {
    let folder = Folder::new("raw");
    let file = folder.file("out.raw", &bytes([7.0, 8.0]));
    assert_eq!(tensors(&format!("location={file} shape=1x2"), 1), ["out (f32 1x2): 7"]);
    let halves = tensors(&format!("location={file} shape=4 element-type=f16"), 1);
    assert!(halves[0].starts_with("out (f16 4): "), "{halves:?}");
}

#[test]
fn a_file_of_several_tensors_gives_each_frame_the_next_and_repeats() {
    let folder = Folder::new("several");
    let raw = folder.file("out.raw", &bytes([1.0, 2.0, 3.0]));
    let npy = folder.file("out.npy", &npy("<f4", false, "3, 1", &bytes([1.0, 2.0, 3.0])));
    for file in [raw, npy] {
        let seen = tensors(&format!("location={file} shape=1"), 5);
        assert_eq!(seen, [1, 2, 3, 1, 2].map(|first| format!("out (f32 1): {first}")));
    }
}

#[test]
fn the_stream_ends_after_the_last_tensor_if_repeat_is_false() {
    let folder = Folder::new("end");
    let file = folder.file("out.raw", &bytes([1.0, 2.0, 3.0]));
    assert_eq!(tensors(&format!("location={file} shape=1 repeat=false"), 9).len(), 3);
    // A file with a single tensor attaches it to every frame.
    assert_eq!(tensors(&format!("location={file} shape=3 repeat=false"), 9).len(), 9);
}

#[test]
fn a_location_with_a_pattern_gives_each_frame_the_next_file() {
    let folder = Folder::new("pattern");
    for i in 0..3 {
        folder.file(&format!("{i:03}.raw"), &bytes([i as f32]));
    }
    let location = folder.0.join("%03d.raw");
    let common = format!("location={} shape=1 tensor-id=out", location.display());
    let seen = tensors(&common, 5);
    assert_eq!(seen, [0, 1, 2, 0, 1].map(|first| format!("out (f32 1): {first}")));
    assert_eq!(tensors(&format!("{common} repeat=false"), 5).len(), 3);
}

#[test]
fn invalid_locations_shapes_and_files_are_errors_that_say_what_was_expected() {
    let folder = Folder::new("mistakes");
    let file = |name: &str, bytes: &[u8]| format!("location={}", folder.file(name, bytes));
    let cases = [
        ("".into(), "location is not set"),
        ("location=/nowhere/out.npy".into(), "/nowhere/out.npy cannot be read: No such file"),
        ("location=/tmp".into(), "/tmp is a directory; expected a regular file"),
        (file("a.raw", b"1234"), "set the properties shape, such as 1x84x8400, and element-type"),
        (file("b.raw", b"1234") + " shape=1,2", "shape: cannot read \"1,2\""),
        (file("c.raw", b"1234") + " shape=1x1x1x1x1x1x1x1x1", "up to 8 dimensions"),
        (
            file("d.raw", b"123456") + " shape=1",
            "d.raw has 6 bytes; expected a multiple of 4, since a tensor of f32 1 takes 4 bytes, \
             but 2 bytes are left over; set shape and element-type to the values that were recorded",
        ),
        (
            file("short.raw", b"1234") + " shape=1x2",
            "has 4 bytes; expected a multiple of 8, since a tensor of f32 1x2 takes 8 bytes, but \
             4 bytes are left over",
        ),
        (
            file("e.raw", b"") + " shape=1",
            "e.raw is empty; expected a tensor of f32 1, which takes 4 bytes",
        ),
        (
            file("f.raw", b"1234") + " shape=0x4",
            "f.raw has 4 bytes, but the shape 0x4 has no elements; set shape to dimensions \
             above 0",
        ),
        (
            file("g.raw", b"1234") + " shape=99999999999x99999999999",
            "multiply to more elements than memory can hold",
        ),
        (file("a.csv", b"1,2,3,4\n1,2,3\n"), "a.csv, line 2: expected four numbers x,y,side,score"),
        (
            file("b.csv", b"1,2,3,x\n"),
            "line 1: expected four numbers x,y,side,score, got \"1,2,3,x\"",
        ),
        (file("c.csv", b"1,2,3,4,5\n"), "line 1"),
        (file("d.csv", b"1,2,3,4\n1,2,\xb5,4\n"), "d.csv is not valid UTF-8 in line 2"),
        (
            file("e.csv", b"\xff\xfe1\0"),
            "e.csv is not valid UTF-8: it begins with the byte order mark of UTF-16; save it as UTF-8",
        ),
        ("location=/tmp/%s.npy shape=1".into(), "expected one %d or %05d and no other %"),
        ("location=/tmp/%d-%d.npy shape=1".into(), "expected one %d or %05d and no other %"),
        ("location=/tmp/%5d.npy shape=1".into(), "expected one %d or %05d and no other %"),
        ("location=/tmp/%0+5d.npy shape=1".into(), "expected one %d or %05d and no other %"),
        ("location=/nowhere/%d.raw shape=1".into(), "/nowhere/0.raw cannot be read"),
    ];
    for (properties, expected) in cases {
        let message = error(&properties);
        assert!(message.contains(expected), "{properties}: {message}");
    }
}

#[test]
fn unsupported_npy_files_are_errors_that_say_how_to_convert_them() {
    let folder = Folder::new("arrays");
    let array = |descr: &str| npy(descr, false, "1,", &[0; 8]);
    let cut = npy("<f4", false, "2,", &[]);
    let cases: [(&[u8], &[&str]); 22] = [
        (b"no array", &["got \"no array\"", "\\x93NUMPY", "numpy.save", ".raw"]),
        (b"", &["got \"\"", "numpy.save"]),
        (b"PK\x03\x04archive", &["an .npz archive", "unzip", "one .npy file per array"]),
        (b"\x93NUMPY\x04\x00more", &["version 4.0", "expected 1.0, 2.0 or 3.0", "numpy.save"]),
        (&cut[..9], &["its header is truncated", "9 bytes"]),
        (&cut[..40], &["its header is truncated", "40 bytes", "copy or save it again"]),
        (&array("<f8"), &["got float64 ('<f8')", "array.astype(numpy.float32)"]),
        (&array("=f8"), &["got float64 ('=f8')", "array.astype(numpy.float32)"]),
        (&array(">f4"), &["got big-endian float32 ('>f4')", "array.astype('<f4')"]),
        (&array(">f2"), &["got big-endian float16 ('>f2')", "array.astype('<f2')"]),
        (&array(">i4"), &["got big-endian int32 ('>i4')", "array.astype('<i4')"]),
        (&array(">i8"), &["got big-endian int64 ('>i8')", "array.astype('<i8')"]),
        (&array("<i2"), &["got int16 ('<i2')", "array.astype(numpy.int32)"]),
        (&array("|b1"), &["got bool ('|b1')", "array.astype(numpy.float32)"]),
        (&array("|O"), &["got Python objects ('|O')", "one numeric array", "numpy.float32"]),
        (&array("<U8"), &["got '<U8'", "array.astype(numpy.float32)"]),
        // A message is a C string, so it must not contain a zero byte.
        (&array("<f\0"), &["its header is not text"]),
        (&npy("<f4", false, "1\0,", &[0; 4]), &["its header is not text"]),
        (&array("[('x', '<f4')]"), &["got a structured type ([('x', '<f4')]", "each field"]),
        (
            &npy("<f4", true, "2, 2", &[0; 16]),
            &["got Fortran order", "numpy.ascontiguousarray(array)"],
        ),
        (
            &npy("<f4", false, "3,", &[0; 8]),
            &["its header says f32 3, 12 bytes", "8 bytes follow", "copy or save it again"],
        ),
        (
            &npy("<f4", false, "99999999999, 99999999999", &[0; 8]),
            &["its header says f32 99999999999x99999999999", "8 bytes follow"],
        ),
    ];
    for (i, (bytes, expected)) in cases.into_iter().enumerate() {
        let name = format!("{i}.npy");
        let message = error(&format!("location={}", folder.file(&name, bytes)));
        assert!(message.contains(&name), "{message}");
        for expected in expected {
            assert!(message.contains(expected), "expected {expected}: {message}");
        }
    }
    let other = folder.file("other.npy", &npy("<f4", false, "3,", &[0; 12]));
    let message = error(&format!("location={other} shape=2"));
    assert!(message.contains("has the shape 3, but the property shape is 2"), "{message}");
}

#[test]
fn an_npz_archive_is_an_error_that_says_how_to_extract_it() {
    let folder = Folder::new("archive");
    let file = folder.file("out.npz", b"PK\x03\x04");
    for properties in [format!("location={file}"), format!("location={file} shape=1")] {
        let message = error(&properties);
        for expected in ["out.npz", ".npz archive", "unzip", "one .npy file per array"] {
            assert!(message.contains(expected), "expected {expected}: {message}");
        }
    }
}

#[test]
fn a_byte_order_mark_at_the_start_of_a_csv_file_is_skipped() {
    let folder = Folder::new("bom");
    let file = folder.file("crowd.csv", b"\xef\xbb\xbf778,59,24,41.84\r\n");
    assert_eq!(tensors(&format!("location={file}"), 1), ["windows (f32 1x4): 778"]);
}

#[test]
fn a_truncated_file_of_a_pattern_is_an_error_at_its_frame() {
    let folder = Folder::new("broken");
    folder.file("0.raw", &bytes([0.0]));
    folder.file("1.raw", b"12");
    let location = folder.0.join("%d.raw");
    let (seen, ended) = replay(&format!("location={} shape=1", location.display()), 3);
    assert_eq!(seen.len(), 1);
    assert!(ended.error().contains("1.raw has 2 bytes"), "{}", ended.error());
}

#[test]
fn a_file_that_is_deleted_before_it_is_read_is_an_error() {
    use gst::prelude::*;
    let folder = Folder::new("gone");
    let file = folder.file("0.raw", &bytes([0.0]));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48
           ! tensorreplay name=replay location={} shape=1 ! fakesink",
        folder.0.join("%d.raw").display()
    ));
    // The pattern is expanded at the change of state, and the file is read at the first buffer.
    let replay = pipeline.by_name("replay").unwrap();
    replay.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        let _ = std::fs::remove_file(&file);
        gst::PadProbeReturn::Ok
    });
    let ended = run(&pipeline);
    assert!(ended.error().contains("0.raw cannot be read: No such file"), "{}", ended.error());
}

#[test]
fn a_file_of_a_pattern_with_two_tensors_is_an_error() {
    let folder = Folder::new("two-in-one");
    folder.file("0.raw", &bytes([1.0, 2.0]));
    let location = folder.0.join("%d.raw");
    let message = error(&format!("location={} shape=1", location.display()));
    assert!(message.contains("0.raw has 2 tensors; expected one"), "{message}");
}

#[test]
fn all_files_of_a_pattern_have_the_id_of_the_first() {
    let folder = Folder::new("pattern-id");
    folder.file("out-0.raw", &bytes([5.0]));
    folder.file("out-1.raw", &bytes([6.0]));
    let location = folder.0.join("out-%d.raw");
    let seen = tensors(&format!("location={} shape=1", location.display()), 2);
    assert_eq!(seen, ["out-0 (f32 1): 5", "out-0 (f32 1): 6"]);
}

#[test]
fn several_elements_append_their_tensors_in_order() {
    let folder = Folder::new("several-elements");
    let scores = folder.file("scores.raw", &bytes([0.5, 0.25]));
    let boxes = folder.file("boxes.raw", &bytes([0.0; 8]));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48
           ! tensorreplay location={scores} shape=1x2x1 ! tensorreplay location={boxes} shape=1x2x4
           ! fakesink name=out"
    ));
    let seen = watch(&pipeline, "out", |buffer| {
        Tensors::of(buffer)
            .unwrap()
            .views()
            .iter()
            .map(|tensor| tensor.to_string())
            .collect::<Vec<_>>()
    });
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*seen.lock().unwrap(), [["scores (f32 1x2x1)", "boxes (f32 1x2x4)"]; 2]);
}

/// Returns the address of each frame's tensor elements.
fn addresses(properties: &str, frames: u32) -> Vec<usize> {
    let pipeline = parse(&format!(
        "videotestsrc num-buffers={frames} ! video/x-raw,width=64,height=48
           ! tensorreplay {properties} ! fakesink name=out"
    ));
    let seen = watch(&pipeline, "out", |buffer| {
        let attached = Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        let Elements::F32(elements) = tensors[0].elements().unwrap() else {
            panic!("f32 is replayed")
        };
        elements.as_ptr() as usize
    });
    assert_eq!(run(&pipeline).error, None, "{properties}");
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn frames_share_the_memory_of_a_tensor_that_was_read_once() {
    let folder = Folder::new("shared");
    let file = folder.file("out.raw", &bytes([1.0, 2.0, 3.0]));
    let one_tensor = addresses(&format!("location={file} shape=3"), 3);
    assert_eq!(one_tensor, [one_tensor[0]; 3]);
    let per_frame = addresses(&format!("location={file} shape=1"), 4);
    assert_eq!(per_frame, [0, 4, 8, 0].map(|offset| per_frame[0] + offset));
}

#[test]
fn a_location_that_is_not_a_regular_file_is_an_error() {
    // Reading this device would never end.
    let message = error("location=/dev/zero shape=1");
    assert!(message.contains("/dev/zero is a device; expected a regular file"), "{message}");
    // Opening this pipe would never return.
    let folder = Folder::new("fifo");
    let fifo = folder.0.join("out.raw");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let message = error(&format!("location={} shape=1", fifo.display()));
    assert!(message.contains("out.raw is a FIFO; expected a regular file"), "{message}");
}

#[test]
fn a_file_larger_than_the_limit_is_an_error() {
    let folder = Folder::new("large");
    let path = folder.file("out.raw", b"");
    // The file is sparse, so it takes no space on the disk.
    std::fs::File::options().write(true).open(&path).unwrap().set_len((1 << 30) + 4).unwrap();
    let message = error(&format!("location={path} shape=1"));
    assert!(message.contains("has 1073741828 bytes; expected at most 1073741824"), "{message}");
}

/// Returns the first error on the pipeline's bus.
fn first_error(pipeline: &gst::Pipeline) -> gst::glib::Error {
    use gst::prelude::*;
    let message = pipeline.bus().unwrap().pop_filtered(&[gst::MessageType::Error]).unwrap();
    let gst::MessageView::Error(error) = message.view() else { unreachable!() };
    error.error()
}

#[test]
fn errors_are_posted_at_the_change_to_paused_with_the_fitting_domain_and_code() {
    use gst::prelude::*;
    let folder = Folder::new("kinds");
    let start_error = |properties: &str| {
        let pipeline =
            parse(&format!("videotestsrc ! tensorreplay {properties} ! fakesink name=out"));
        assert!(pipeline.set_state(gst::State::Paused).is_err(), "{properties}");
        let error = first_error(&pipeline);
        pipeline.set_state(gst::State::Null).unwrap();
        error
    };
    let raw = folder.file("out.raw", b"12");
    let csv = folder.file("out.csv", b"1,2");
    assert!(start_error("").matches(gst::ResourceError::NotFound));
    assert!(start_error("location=/nowhere/out.npy").matches(gst::ResourceError::NotFound));
    assert!(start_error("location=/tmp").matches(gst::ResourceError::OpenRead));
    assert!(start_error(&format!("location={raw}")).matches(gst::LibraryError::Settings));
    assert!(start_error(&format!("location={raw} shape=1")).matches(gst::StreamError::Format));
    assert!(start_error(&format!("location={csv}")).matches(gst::StreamError::Format));
}

#[test]
fn after_an_error_is_corrected_the_same_element_runs_from_the_first_frame() {
    use gst::prelude::*;
    let folder = Folder::new("again");
    let valid = folder.file("out.raw", &bytes([1.0, 2.0, 3.0]));
    let pipeline = parse(
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48
           ! tensorreplay name=replay location=/nowhere/out.raw shape=1 ! fakesink name=out",
    );
    let seen = watch(&pipeline, "out", |buffer| {
        let attached = Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        let Elements::F32(elements) = tensors[0].elements().unwrap() else {
            panic!("f32 is replayed")
        };
        elements[0]
    });
    let replay = pipeline.by_name("replay").unwrap();
    assert!(pipeline.set_state(gst::State::Paused).is_err());
    pipeline.set_state(gst::State::Ready).unwrap();
    first_error(&pipeline);
    replay.set_property("location", &valid);
    for _ in 0..3 {
        assert_eq!(run(&pipeline).error, None);
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [1.0, 2.0]);
    }
}

#[test]
fn a_flushing_seek_restarts_the_recording() {
    use gst::prelude::*;
    let folder = Folder::new("flush");
    let file = folder.file("out.raw", &bytes([1.0, 2.0, 3.0]));
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=2 ! video/x-raw,width=64,height=48
           ! tensorreplay location={file} shape=1 ! fakesink name=out"
    ));
    let seen = watch(&pipeline, "out", |buffer| {
        let attached = Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        let Elements::F32(elements) = tensors[0].elements().unwrap() else {
            panic!("f32 is replayed")
        };
        elements[0]
    });
    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(gst::ClockTime::from_seconds(10)).0.unwrap();
    seen.lock().unwrap().clear();
    pipeline.seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO).unwrap();
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(seen.lock().unwrap()[0], 1.0);
}

#[test]
fn the_papers_windows_are_2997_by_4() {
    let file = data::fixture("oscars/detections.txt");
    let seen = tensors(&format!("location={}", file.display()), 1);
    assert!(seen[0].starts_with("windows (f32 2997x4): 778"), "{seen:?}");
}

#[test]
fn the_recorded_tensors_have_the_shapes_of_yolov5_and_yolov8() {
    for (file, properties, expected) in [
        (
            "data/recorded/yolov5_decoder_input.raw",
            "shape=1x6300x85",
            "yolov5_decoder_input (f32 1x6300x85): ",
        ),
        (
            "data/recorded/yolov8_decoder_input.raw",
            "shape=1x2100x84",
            "yolov8_decoder_input (f32 1x2100x84): ",
        ),
    ] {
        let Some(path) = data::path(file) else { return };
        let seen = tensors(&format!("location={} {properties}", path.display()), 1);
        assert!(seen[0].starts_with(expected), "{seen:?}");
    }
}
