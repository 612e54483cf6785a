// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the header: the Rust interface reads the tensors that they attach, they read the regions that it
//! attaches, and wrong arguments are errors.

use std::ffi::{CStr, c_void};
use std::mem::zeroed;
use std::num::NonZeroU32;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use gst::glib;
use gst::glib::translate::{ToGlibPtr, from_glib_full};
use gst_newer::CustomMeta;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::cuda::{Device, DeviceBuffer, OwnedEvent, PinnedBuffer, Stream};
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::model::{self, ModelInfo};
use gstnmsfilter::output::KeypointLayout;
use gstnmsfilter::tensor::{Elements, Quantization};
use nmsfilter_gst::*;

fn error() -> String {
    // SAFETY: the text ends with NUL and belongs to a value that still exists.
    unsafe { CStr::from_ptr(nmsfilter_gst_error_text()) }.to_str().unwrap().to_owned()
}

fn check(status: Status) {
    assert_eq!(status, Status::Ok, "{}", error());
}

const NUMBERS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn tensor() -> Tensor {
    // SAFETY: zeros are valid in a structure of C.
    let mut tensor: Tensor = unsafe { zeroed() };
    tensor.size = size_of::<Tensor>();
    tensor.id = c"output".as_ptr();
    tensor.dimensions = 2;
    tensor.shape[..2].copy_from_slice(&[2, 3]);
    tensor.data = NUMBERS.as_ptr().cast();
    tensor.bytes = size_of_val(&NUMBERS);
    tensor
}

/// A buffer, which a test frees when it drops it.
fn buffer() -> gst::Buffer {
    check(nmsfilter_gst_init());
    gst::Buffer::new()
}

fn attach(buffer: &mut gst::Buffer, tensor: &Tensor) -> Status {
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    unsafe { nmsfilter_gst_attach_tensor(buffer.get_mut().unwrap().as_mut_ptr(), tensor) }
}

/// Counts how often memory is released.
unsafe extern "C" fn count(user_data: *mut c_void) {
    // SAFETY: the test passes a pointer to such a counter, which lives longer.
    let counter = unsafe { &*user_data.cast::<AtomicUsize>() };
    counter.fetch_add(1, Ordering::Relaxed);
}

fn counted(counter: &AtomicUsize, tensor: Tensor) -> Tensor {
    Tensor { release: Some(count), user_data: (&raw const *counter).cast_mut().cast(), ..tensor }
}

#[test]
fn the_version_is_that_of_the_header() {
    let header = include_str!("../include/nmsfilter/gst.h");
    let number = |name: &str| {
        let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
        line.unwrap().parse::<u32>().unwrap()
    };
    let [major, minor, patch] =
        ["MAJOR", "MINOR", "PATCH"].map(|part| number(&format!("NMSFILTER_GST_VERSION_{part}")));
    assert_eq!(nmsfilter_gst_version(), major * 10_000 + minor * 100 + patch);
}

#[test]
fn a_tensor_is_copied() {
    let mut buffer = buffer();
    let mut numbers = NUMBERS;
    let of_copy = Tensor { data: numbers.as_mut_ptr().cast(), ..tensor() };
    check(attach(&mut buffer, &of_copy));
    numbers.fill(0.0);
    let tensors = Tensors::of(&buffer).unwrap();
    let views = tensors.views();
    assert_eq!(views[0].to_string(), "output (f32 2x3)");
    let Elements::F32(elements) = views[0].elements().unwrap() else { panic!("it is f32") };
    assert_eq!(elements, NUMBERS);
}

#[test]
fn memory_of_the_caller_is_released_once_with_the_last_reference() {
    let counter = AtomicUsize::new(0);
    let mut buffer = buffer();
    let of_host = counted(&counter, Tensor { memory: Memory::Host as u32, ..tensor() });
    check(attach(&mut buffer, &of_host));
    let other = buffer.copy();
    {
        let tensors = Tensors::of(&other).unwrap();
        let views = tensors.views();
        let Elements::F32(elements) = views[0].elements().unwrap() else { panic!("it is f32") };
        assert_eq!(elements.as_ptr(), NUMBERS.as_ptr(), "it is not copied");
    }
    drop(buffer);
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    drop(other);
    assert_eq!(counter.load(Ordering::Relaxed), 1);

    // Without elements, there is nothing to wait for.
    let empty = Tensor { shape: [0; 8], bytes: 0, data: null(), ..of_host };
    let mut buffer = self::buffer();
    check(attach(&mut buffer, &empty));
    assert_eq!(counter.load(Ordering::Relaxed), 2);
    assert_eq!(Tensors::of(&buffer).unwrap().views()[0].to_string(), "output (f32 0x0)");
}

#[test]
fn a_tensor_of_a_part_of_the_frame_has_a_region() {
    let fields = |tensor: &Tensor| {
        let mut buffer = buffer();
        check(attach(&mut buffer, tensor));
        let meta = buffer.iter_meta::<gst::Meta>().last().unwrap();
        let structure = CustomMeta::structure_of(&meta).unwrap();
        let region: gst::Array = structure.get("region").unwrap();
        let sides: Vec<i32> = region.iter().map(|side| side.get().unwrap()).collect();
        (sides, structure.get::<i32>("parent").ok())
    };
    let of_part = Tensor { region: [5, 0, 64, 48], ..tensor() };
    assert_eq!(fields(&of_part), (vec![5, 0, 64, 48], None));
    let of_object = Tensor { has_parent: 1, parent: 0, ..of_part };
    assert_eq!(fields(&of_object), (vec![5, 0, 64, 48], Some(0)));

    let mut buffer = buffer();
    for (wrong, expected) in [
        (Tensor { region: [0, 0, 64, 0], ..tensor() }, "got 0, 0, 64 and 0"),
        (Tensor { region: [1, 0, 0, 0], ..tensor() }, "got 1, 0, 0 and 0"),
        (Tensor { region: [0, u32::MAX, 1, 1], ..tensor() }, "tensor: region: expected left"),
        (Tensor { has_parent: 1, ..tensor() }, "tensor: parent: expected a region with it"),
    ] {
        assert_eq!(attach(&mut buffer, &wrong), Status::InvalidArgument);
        assert!(error().contains(expected), "{}", error());
    }
}

#[test]
fn tensors_have_what_the_structure_has() {
    let bytes = [1i8, -2, 3];
    let mut quantized = Tensor {
        id: c"quantized".as_ptr(),
        element_type: ElementType::I8 as u32,
        dimensions: 1,
        data: bytes.as_ptr().cast(),
        bytes: 3,
        scale: 0.5,
        zero_point: -7,
        source: c"camera".as_ptr(),
        ..tensor()
    };
    quantized.shape[0] = 3;
    let mut buffer = buffer();
    let caps = model_caps(|_| {}).unwrap();
    check(attach(&mut buffer, &Tensor { model: caps.to_glib_none().0, ..tensor() }));
    check(attach(&mut buffer, &quantized));
    let tensors = Tensors::of(&buffer).unwrap();
    let views = tensors.views();
    assert_eq!(views[1].to_string(), "quantized (i8 3)");
    assert_eq!(views[1].quantization, Quantization::new(0.5, -7));
    assert_eq!(tensors.model().unwrap(), &caps);
    let meta = buffer.iter_meta::<gst::Meta>().last().unwrap();
    let structure = CustomMeta::structure_of(&meta).unwrap();
    assert_eq!(structure.get::<String>("source").unwrap(), "camera");
    assert!(!structure.has_field("region"));
}

fn model_caps(change: impl FnOnce(&mut Model)) -> Result<gst::Caps, String> {
    // SAFETY: zeros are valid in a structure of C.
    let mut model: Model = unsafe { zeroed() };
    model.size = size_of::<Model>();
    change(&mut model);
    let mut caps = null_mut();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    match unsafe { nmsfilter_gst_model_caps(&model, &mut caps) } {
        // SAFETY: the function has given a reference away.
        Status::Ok => Ok(unsafe { from_glib_full(caps) }),
        status => {
            assert_eq!(status, Status::InvalidArgument);
            assert!(caps.is_null());
            Err(error())
        }
    }
}

#[test]
fn caps_describe_the_model() {
    let labels = [c"person".as_ptr(), null(), c"bicycle".as_ptr()];
    let caps = model_caps(|model| {
        (model.width, model.height) = (640, 480);
        model.letterbox = Letterbox::Center as u32;
        (model.labels, model.label_count) = (labels.as_ptr(), 3);
        model.task = c"pose".as_ptr();
        model.end2end = 1;
        (model.keypoint_count, model.keypoint_components) = (17, 3);
        model.keypoint_layout = c"points".as_ptr();
        (model.suppressed, model.queries) = (1, 300);
    });
    let mut expected = ModelInfo {
        size: Some([640, 480]),
        letterbox: Some(model::Letterbox::Center),
        labels: ["person", "", "bicycle"].map(Into::into).into(),
        task: Some("pose".to_owned()),
        end2end: true,
        keypoints: Some([17, 3]),
        keypoint_layout: Some(KeypointLayout::Points),
        is_suppressed: true,
        ..ModelInfo::default()
    };
    expected.queries = NonZeroU32::new(300);
    assert_eq!(ModelInfo::from_caps(&caps.unwrap()), Ok(expected));
    let nothing = model_caps(|_| {}).unwrap();
    assert_eq!(ModelInfo::from_caps(&nothing), Ok(ModelInfo::default()));

    type Change = fn(&mut Model);
    let wrong: [(Change, &str); 9] = [
        (|model| model.suppressed = 2, "model: suppressed: expected 0 or 1, got 2"),
        (
            |model| model.queries = u32::MAX,
            "the tensors' model: expected queries as an int from 1 to 2147483647, got 4294967295",
        ),
        (
            |model| model.keypoint_layout = c"coco".as_ptr(),
            r#"model: keypoint_layout: expected one of coco-17, face-5, points, got "coco""#,
        ),
        (
            |model| model.size = 4,
            "model: expected a size of at least 56, got 4; set it to sizeof(NmsfilterGstModel)",
        ),
        (
            |model| model.width = 640,
            "the tensors' model: expected height of type int, 1 to 65535, got 0",
        ),
        (|model| model.letterbox = 4, "model: letterbox: expected an NmsfilterGstLetterbox, got 4"),
        (|model| model.end2end = 2, "model: end2end: expected 0 or 1, got 2"),
        (|model| model.label_count = 1, "model: labels: expected a pointer, got NULL"),
        (
            |model| model.task = c"\xff".as_ptr(),
            r#"model: task: expected text in UTF-8, got "\xff""#,
        ),
    ];
    for (change, expected) in wrong {
        assert_eq!(model_caps(change).unwrap_err(), expected);
    }
}

#[test]
fn tensors_that_are_none_are_errors_and_not_released() {
    type Change = fn(&mut Tensor);
    let wrong: [(Change, Status, &str); 12] = [
        (
            |it| it.size = 0,
            Status::InvalidArgument,
            "tensor: expected a size of at least 168, got 0; set it to sizeof(NmsfilterGstTensor)",
        ),
        (|it| it.id = null(), Status::InvalidArgument, "tensor: id: expected text, got NULL"),
        (
            |it| it.id = c"\xff".as_ptr(),
            Status::InvalidArgument,
            r#"tensor: id: expected text in UTF-8, got "\xff""#,
        ),
        (
            |it| it.element_type = 6,
            Status::InvalidArgument,
            "tensor: element_type: expected an NmsfilterGstElementType, got 6",
        ),
        (
            |it| it.memory = 3,
            Status::InvalidArgument,
            "tensor: memory: expected an NmsfilterGstMemory, got 3",
        ),
        (
            |it| it.dimensions = 9,
            Status::InvalidArgument,
            "tensor: dimensions: expected at most 8, got 9",
        ),
        (
            |it| it.data = null(),
            Status::InvalidArgument,
            "tensor: data: expected a pointer, got NULL",
        ),
        (
            |it| it.zero_point = 1,
            Status::InvalidArgument,
            "tensor: zero_point: expected a scale with it, got 0",
        ),
        (
            |it| it.scale = -1.0,
            Status::InvalidArgument,
            "tensor: expected a scale above 0 and a zero point from -65536 to 65536, got -1 and 0",
        ),
        (
            |it| it.bytes = 20,
            Status::Tensor,
            "tensor output (f32 2x3): its shape needs 24 bytes, but its memory holds 20; correct the shape or the memory",
        ),
        (
            |it| (it.shape[0], it.shape[1]) = (u64::MAX, 2),
            Status::Tensor,
            "tensor output (f32 18446744073709551615x2): its dimensions multiply to more elements than memory can hold",
        ),
        (
            |it| (it.shape[0], it.bytes, it.data) = (1, 12, it.data.wrapping_byte_add(2)),
            Status::Tensor,
            "tensor output (f32 1x3): its memory starts at an address that is no multiple of 4 bytes; copy the elements to \
             memory that is aligned for their type",
        ),
    ];
    let counter = AtomicUsize::new(0);
    let mut buffer = buffer();
    for (change, status, expected) in wrong {
        let mut tensor = counted(&counter, Tensor { memory: Memory::Host as u32, ..tensor() });
        change(&mut tensor);
        assert_eq!((attach(&mut buffer, &tensor), error().as_str()), (status, expected));
    }
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    assert!(Tensors::of(&buffer).unwrap().is_empty());
}

#[test]
fn buffers_that_are_none_are_errors() {
    let buffer = buffer();
    let attach = |pointer| {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        let status = unsafe { nmsfilter_gst_attach_tensor(pointer, &tensor()) };
        assert_eq!(status, Status::InvalidArgument);
        error()
    };
    assert_eq!(attach(null_mut()), "buffer: expected a pointer, got NULL");
    let caps = gst::Caps::new_any();
    let other: *mut gst::ffi::GstCaps = caps.to_glib_none().0;
    assert_eq!(attach(other.cast()), "buffer: expected a GstBuffer, got another object");
    let second = buffer.clone();
    assert_eq!(
        attach(second.as_mut_ptr()),
        "buffer: expected a writable GstBuffer, got one with several references; call gst_buffer_make_writable"
    );
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_gst_attach_tensor(gst::Buffer::new().as_mut_ptr(), null()) };
    assert_eq!(
        (status, error().as_str()),
        (Status::InvalidArgument, "tensor: expected a pointer, got NULL")
    );
}

/// A buffer with three regions: a detection with all that one can have, an upright one, and one of another element.
fn buffer_with_regions() -> gst::Buffer {
    let mut buffer = buffer();
    let detection = gst::Structure::builder("detection")
        .field("label_id", 7)
        .field("confidence", 0.75)
        .field("x_min", 0.1)
        .field("y_min", 0.2)
        .field("x_max", 0.3)
        .field("y_max", 0.4);
    let upright = detection.build();
    let mut oriented = upright.clone();
    for (name, value) in [
        ("rotation", 0.5),
        ("center-x", 20.0),
        ("center-y", 25.0),
        ("width", 12.0),
        ("height", 6.0),
    ] {
        oriented.set(name, value);
    }
    let points: Vec<u8> = NUMBERS.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let keypoints = gst::Structure::builder("keypoints")
        .field("count", 2)
        .field("components", 3)
        .field("layout", "points")
        .field("data", glib::Bytes::from_owned(points))
        .build();
    let mask = gst::Structure::builder("mask")
        .field("width", 10)
        .field("height", 1)
        .field("left", 4.0)
        .field("top", 5.0)
        .field("right", 14.0)
        .field("bottom", 6.0)
        .field("data", glib::Bytes::from_static(&[0xff, 0xc0]))
        .build();
    let all = vec![oriented, keypoints, mask];
    for (label, params) in [("person", all), ("bicycle", vec![upright]), ("other", vec![])] {
        let buffer = buffer.get_mut().unwrap();
        let mut meta = VideoRegionOfInterestMeta::add(buffer, label, (1, 2, 30, 40));
        meta.set_id(5);
        params.into_iter().for_each(|param| meta.add_param(param));
    }
    buffer
}

/// Reads with records of `size` bytes, and returns them with the number of regions.
fn read(buffer: &gst::Buffer, capacity: usize, size: usize) -> Result<(Vec<u8>, usize), String> {
    let mut bytes = vec![u8::MAX; capacity * size + 8];
    let mut count = usize::MAX;
    let regions = bytes.as_mut_ptr().cast();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe {
        nmsfilter_gst_read_regions(buffer.as_mut_ptr(), regions, capacity, size, &mut count)
    };
    assert!(bytes[capacity * size..].iter().all(|&byte| byte == u8::MAX), "no more is written");
    bytes.truncate(capacity * size);
    match status {
        Status::Ok => Ok((bytes, count)),
        status => {
            assert_eq!(status, Status::InvalidArgument);
            Err(error())
        }
    }
}

fn record(bytes: &[u8], index: usize, size: usize) -> Region {
    // SAFETY: the function wrote a structure there.
    unsafe { bytes[index * size..].as_ptr().cast::<Region>().read_unaligned() }
}

#[test]
fn regions_are_read_with_all_that_they_have() {
    let buffer = buffer_with_regions();
    let size = size_of::<Region>();
    let (bytes, count) = read(&buffer, 4, size).unwrap();
    assert_eq!(count, 3);
    let [person, bicycle, other] = [0, 1, 2].map(|index| record(&bytes, index, size));
    assert_eq!(bytes[3 * size..], vec![u8::MAX; size], "records without a region are not written");

    assert_eq!([person.x_min, person.y_min, person.x_max, person.y_max], [0.1, 0.2, 0.3, 0.4]);
    assert_eq!((person.score, person.class_id, person.id), (0.75, 7, 5));
    assert_eq!([person.left, person.top, person.width, person.height], [1, 2, 30, 40]);
    assert_eq!([person.rotation, person.center_x, person.center_y], [0.5, 20.0, 25.0]);
    assert_eq!([person.oriented_width, person.oriented_height], [12.0, 6.0]);
    // SAFETY: the text ends with NUL and belongs to a value that still exists.
    unsafe {
        assert_eq!(CStr::from_ptr(person.label), c"person");
        let numbers = std::slice::from_raw_parts(person.keypoints, 6);
        assert_eq!(numbers, NUMBERS);
        assert_eq!((person.keypoint_count, person.keypoint_components), (2, 3));
        assert_eq!(CStr::from_ptr(person.keypoint_layout), c"points");
        assert_eq!((person.mask_width, person.mask_height), (10, 1));
        assert_eq!(std::slice::from_raw_parts(person.mask, 2), [0xff, 0xc0]);
    }
    let edges = [person.mask_left, person.mask_top, person.mask_right, person.mask_bottom];
    assert_eq!(edges, [4.0, 5.0, 14.0, 6.0]);

    assert_eq!((bicycle.score, bicycle.class_id, bicycle.x_max), (0.75, 7, 0.3));
    assert!(
        bicycle.rotation.is_nan() && bicycle.center_x.is_nan() && bicycle.oriented_height.is_nan()
    );
    assert!(
        bicycle.keypoints.is_null() && bicycle.keypoint_layout.is_null() && bicycle.mask.is_null()
    );
    assert_eq!((bicycle.keypoint_count, bicycle.mask_width), (0, 0));

    assert_eq!((other.class_id, other.left, other.height), (-1, 1, 40));
    assert!(other.score.is_nan() && other.x_min.is_nan());
    // SAFETY: the text ends with NUL and belongs to a value that still exists.
    assert_eq!(unsafe { CStr::from_ptr(other.label) }, c"other");
}

#[test]
fn the_classes_of_a_region_are_read() {
    let mut buffer = buffer();
    for labels in [&[][..], &[c"red", c"large"]] {
        let mut meta =
            VideoRegionOfInterestMeta::add(buffer.get_mut().unwrap(), "car", (1, 2, 30, 40));
        for (class, label) in (4..).zip(labels) {
            let classification = gst::Structure::builder("classification")
                .field("label_id", class)
                .field("label", label.to_str().unwrap())
                .field("confidence", 0.75)
                .field_if("attribute_name", "size", class == 5);
            meta.add_param(classification.build());
        }
        meta.add_param(gst::Structure::new_empty("detection"));
    }
    let (bytes, _) = read(&buffer, 2, size_of::<Region>()).unwrap();
    let counts = [0, 1].map(|index| record(&bytes, index, size_of::<Region>()).class_count);
    assert_eq!(counts, [0, 2]);

    // SAFETY: zeros are valid in a structure of C.
    let mut classes: [Class; 2] = unsafe { zeroed() };
    let mut read = |region, capacity, size| {
        let (classes, mut count) = (classes.as_mut_ptr(), 0);
        let buffer = buffer.as_mut_ptr();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        let status = unsafe {
            nmsfilter_gst_read_classes(buffer, region, classes, capacity, size, &mut count)
        };
        if status == Status::Ok { Ok(count) } else { Err(error()) }
    };
    let size = size_of::<Class>();
    assert_eq!(read(0, 2, size), Ok(0));
    assert_eq!(read(1, 0, size), Ok(2));
    assert_eq!(read(1, 2, size), Ok(2));
    assert_eq!(
        read(2, 2, size).unwrap_err(),
        "region: expected an index below 2, the number of regions on the buffer, got 2"
    );
    assert!(read(1, 2, 8).unwrap_err().starts_with("class_size: expected at least 24, got 8"));
    for (class, (label, id)) in classes.iter().zip([(c"red", 4), (c"large", 5)]) {
        // SAFETY: the text ends with NUL and belongs to a value that still exists.
        assert_eq!((unsafe { CStr::from_ptr(class.label) }, class.class_id), (label, id));
        assert_eq!(class.score, 0.75);
    }
    assert!(classes[0].attribute.is_null());
    // SAFETY: the text ends with NUL and belongs to a value that still exists.
    assert_eq!(unsafe { CStr::from_ptr(classes[1].attribute) }, c"size");
}

#[test]
fn records_have_the_size_and_the_number_of_the_caller() {
    let buffer = buffer_with_regions();
    let size = size_of::<Region>();
    let (complete, _) = read(&buffer, 3, size).unwrap();
    let (first, count) = read(&buffer, 2, size).unwrap();
    assert_eq!((&first[..], count), (&complete[..2 * size], 3));
    assert_eq!(read(&buffer, 0, size).unwrap(), (vec![], 3));
    let mut count = 0;
    let status =
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_gst_read_regions(buffer.as_mut_ptr(), null_mut(), 0, size, &mut count) };
    assert_eq!((status, count), (Status::Ok, 3));

    // Structures of a newer header.
    let (larger, _) = read(&buffer, 3, size + 24).unwrap();
    for index in 0..3 {
        let (record, added) = larger[index * (size + 24)..][..size + 24].split_at(size);
        assert_eq!((record, added), (&complete[index * size..][..size], &[0; 24][..]));
    }
    let expected = "region_size: expected at least 168, got 8; pass sizeof(NmsfilterGstRegion)";
    assert_eq!(read(&buffer, 1, 8).unwrap_err(), expected);
    let status =
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_gst_read_regions(buffer.as_mut_ptr(), null_mut(), 1, size, &mut count) };
    assert_eq!(
        (status, error().as_str()),
        (Status::InvalidArgument, "regions: expected a pointer, got NULL")
    );
    let status =
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_gst_read_regions(buffer.as_mut_ptr(), null_mut(), 0, size, null_mut()) };
    assert_eq!(
        (status, error().as_str()),
        (Status::InvalidArgument, "count: expected a pointer, got NULL")
    );
}

#[test]
fn device_memory_without_a_device_is_an_error() {
    let counter = AtomicUsize::new(0);
    let on_device = Tensor { memory: Memory::Device as u32, cuda_device: 100, ..tensor() };
    assert_eq!(attach(&mut buffer(), &counted(&counter, on_device)), Status::Device);
    assert_eq!(counter.load(Ordering::Relaxed), 0);
}

#[test]
#[ignore = "needs a GPU"]
fn device_memory_is_read_after_its_event_or_stream() {
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let memory = DeviceBuffer::new(&device, size_of_val(&NUMBERS)).unwrap();
    let event = OwnedEvent::new(&device).unwrap();
    let bytes: Vec<u8> = NUMBERS.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let mut pinned = PinnedBuffer::new(&device, bytes.len()).unwrap();
    pinned.as_mut_slice().copy_from_slice(&bytes);
    stream.upload(&pinned, &memory, bytes.len()).unwrap();
    stream.record(&event).unwrap();
    let on_device = Tensor {
        memory: Memory::Device as u32,
        data: memory.address() as *const c_void,
        ..tensor()
    };
    // SAFETY: the event lives longer than the copy.
    let after_event = Tensor { cuda_event: unsafe { event.event() }.as_raw(), ..on_device };
    let after_stream = Tensor { cuda_stream: stream.as_raw(), ..on_device };
    let counter = AtomicUsize::new(0);
    for tensor in [on_device, after_event, after_stream] {
        let mut buffer = buffer();
        check(attach(&mut buffer, &counted(&counter, tensor)));
        stream.synchronize().unwrap();
        {
            let tensors = Tensors::of(&buffer).unwrap();
            let views = tensors.views();
            let slice = views[0].device().unwrap().unwrap();
            assert_eq!(slice.address(), memory.address());
            let Elements::F32(elements) = views[0].elements().unwrap() else { panic!("it is f32") };
            assert_eq!(elements, NUMBERS);
        }
        let before = counter.load(Ordering::Relaxed);
        drop(buffer);
        assert_eq!(counter.load(Ordering::Relaxed), before + 1);
    }
    let both = Tensor { cuda_event: after_event.cuda_event, ..after_stream };
    assert_eq!(attach(&mut buffer(), &counted(&counter, both)), Status::InvalidArgument);
    assert_eq!(error(), "tensor: expected cuda_event or cuda_stream, got both; set one of them");
    let short = Tensor { bytes: 8, ..after_event };
    assert_eq!(attach(&mut buffer(), &counted(&counter, short)), Status::Tensor);
    assert_eq!(counter.load(Ordering::Relaxed), 3);
}
