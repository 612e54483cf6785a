// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model description of tensors: written as caps, and read back from a buffer. Malformed caps
//! give an error that states what was expected and what came.

use std::num::NonZeroU32;

use gst::glib;
use gst::glib::translate::ToGlibPtrMut;
use gst::prelude::*;
use gst_newer::CustomMeta;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{META_NAME, NewTensor, attach};
use gstnmsfilter::input::model::{Letterbox, MAX_CLASSES, MEDIA_TYPE, ModelInfo, Rounding};
use gstnmsfilter::output::KeypointLayout;

use crate::support::pipeline::{init, intercept, parse, run, watch};

fn info() -> ModelInfo {
    let info = ModelInfo {
        size: Some([640, 384]),
        letterbox: Some(Letterbox::Center),
        ..ModelInfo::default()
    };
    ModelInfo {
        labels: ["person", "", "traffic light, red", "\"7\""].map(Into::into).into(),
        ..info
    }
}

fn tensor(id: &str) -> NewTensor {
    init();
    NewTensor::from_vec(id, &[1, 4], vec![1.0f32, 2.0, 3.0, 0.9]).unwrap()
}

fn read(caps: &str) -> Result<ModelInfo, String> {
    init();
    let caps: gst::Caps = caps.parse().unwrap_or_else(|_| panic!("{caps} is the text of caps"));
    ModelInfo::from_caps(&caps).map_err(|error| error.to_string())
}

#[test]
fn a_description_that_is_written_is_read_back() {
    init();
    for letterbox in Letterbox::ALL {
        let info = ModelInfo { letterbox: Some(letterbox), ..info() };
        assert_eq!(ModelInfo::from_caps(&info.to_caps().unwrap()), Ok(info));
    }
    for letterbox in [Letterbox::Center, Letterbox::TopLeft] {
        let info =
            ModelInfo { letterbox: Some(letterbox), rounding: Rounding::EvenSides, ..info() };
        assert_eq!(ModelInfo::from_caps(&info.to_caps().unwrap()), Ok(info));
    }
    for info in [
        ModelInfo::default(),
        ModelInfo { size: Some([1, 65_535]), ..ModelInfo::default() },
        ModelInfo { letterbox: Some(Letterbox::TopLeft), ..ModelInfo::default() },
        ModelInfo { labels: vec!["x".to_owned(); MAX_CLASSES], ..ModelInfo::default() },
        ModelInfo { task: Some("segment".to_owned()), ..ModelInfo::default() },
        ModelInfo { end2end: true, ..ModelInfo::default() },
        ModelInfo { task: Some("detect".to_owned()), end2end: true, ..info() },
        ModelInfo { pixel_aspect_ratio: Some([64, 45]), ..info() },
        ModelInfo { keypoint_layout: Some(KeypointLayout::Coco17), ..info() },
        ModelInfo { keypoint_layout: Some(KeypointLayout::Points), ..info() },
    ] {
        assert_eq!(ModelInfo::from_caps(&info.to_caps().unwrap()), Ok(info));
    }
}

#[test]
fn a_layout_of_keypoints_that_is_not_known_is_an_error() {
    for value in ["(string)ap-10k", "(int)17"] {
        let error = read(&format!("{MEDIA_TYPE}, keypoint-layout={value}")).unwrap_err();
        let expected = "expected keypoint-layout as one of coco-17, face-5, points, got";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn caps_in_text_form_are_read() {
    let text = "application/x-nmsfilter-model, width=640, height=384, letterbox=center-exact, \
                labels=(string)<person, \"\", \"traffic light\\, red\", \"\\\"7\\\"\">";
    assert_eq!(read(text), Ok(info()));
    assert_eq!(read(MEDIA_TYPE), Ok(ModelInfo::default()));
    let unknown = format!("{MEDIA_TYPE}, mean=(float)0.5, letterbox=top-left-exact");
    assert_eq!(
        read(&unknown),
        Ok(ModelInfo { letterbox: Some(Letterbox::TopLeft), ..ModelInfo::default() })
    );
}

/// Earlier versions write these values. Their inference elements round like nvinfer.
/// Caps have no greater numbers.
#[test]
fn any_number_of_queries_that_caps_have_is_read_back() {
    init();
    for queries in [1, 300, 2_147_483_647] {
        let info = with_queries(queries);
        assert_eq!(ModelInfo::from_caps(&info.to_caps().unwrap()), Ok(info));
    }
}

#[test]
fn a_letterbox_that_is_not_exact_has_even_sides() {
    for (name, letterbox) in [("center", Letterbox::Center), ("top-left", Letterbox::TopLeft)] {
        let expected = ModelInfo { letterbox: Some(letterbox), ..ModelInfo::default() };
        let expected = ModelInfo { rounding: Rounding::EvenSides, ..expected };
        assert_eq!(read(&format!("{MEDIA_TYPE}, letterbox={name}")), Ok(expected));
    }
}

fn with_queries(queries: u32) -> ModelInfo {
    let mut info = info();
    info.queries = NonZeroU32::new(queries);
    info
}

#[test]
fn numbers_that_caps_cannot_have_are_an_error() {
    init();
    for (info, expected) in [
        (
            ModelInfo { size: Some([0, 9]), ..info() },
            "expected width of type int, 1 to 65535, got 0",
        ),
        (
            ModelInfo { pixel_aspect_ratio: Some([1, 0]), ..info() },
            "expected pixel-aspect-ratio as a fraction above 0, got 1/0",
        ),
        (
            ModelInfo { pixel_aspect_ratio: Some([u32::MAX, 1]), ..info() },
            "expected pixel-aspect-ratio as a fraction above 0, got 4294967295/1",
        ),
        (
            with_queries(2_147_483_648),
            "expected queries as an int from 1 to 2147483647, got 2147483648",
        ),
    ] {
        let error = info.to_caps().expect_err(expected).to_string();
        assert_eq!(error, format!("the tensors' model: {expected}"));
    }
}

#[test]
fn a_tensor_keeps_its_model_on_the_buffer_and_the_caps_are_shared() {
    init();
    let caps = info().to_caps().unwrap();
    let mut buffer = gst::Buffer::new();
    let with_model = tensor("second").with_model(caps.clone());
    attach(buffer.get_mut().unwrap(), &tensor("first")).unwrap();
    assert!(Tensors::of(&buffer).unwrap().model().is_none());
    attach(buffer.get_mut().unwrap(), &with_model).unwrap();
    let other = ModelInfo::default().to_caps().unwrap();
    attach(buffer.get_mut().unwrap(), &tensor("third").with_model(other)).unwrap();

    for copy in [buffer.clone(), buffer.copy(), buffer.copy_deep().unwrap()] {
        let tensors = Tensors::of(&copy).unwrap();
        let read = tensors.model().expect("the second tensor has a model");
        assert_eq!(read.as_ptr(), caps.as_ptr());
        assert_eq!(ModelInfo::from_caps(read), Ok(info()));
    }
    let unattached: Tensors<'_> = [&with_model].into_iter().collect();
    assert_eq!(unattached.model().map(|caps| caps.as_ptr()), Some(caps.as_ptr()));
}

#[test]
fn both_branches_of_a_tee_have_the_model() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=2 ! tee name=t
           t. ! queue ! identity drop-allocation=true ! fakesink name=one
           t. ! queue ! videobalance hue=1 ! fakesink name=two",
    );
    let caps = info().to_caps().unwrap();
    let tensor = tensor("out").with_model(caps);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let model = |buffer: &gst::BufferRef| {
        ModelInfo::from_caps(Tensors::of(buffer).unwrap().model().unwrap()).unwrap()
    };
    let (one, two) = (watch(&pipeline, "one", model), watch(&pipeline, "two", model));
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*one.lock().unwrap(), [info(), info()]);
    assert_eq!(*two.lock().unwrap(), [info(), info()]);
}

#[test]
fn malformed_caps_are_an_error_with_what_was_expected_and_what_came() {
    for (fields, expected) in [
        (", width=640.0, height=384", "expected width of type int, 1 to 65535, got gdouble"),
        (", width=640, height=0", "expected height of type int, 1 to 65535, got 0"),
        (", width=-3, height=9", "expected width of type int, 1 to 65535, got -3"),
        (", width=65536, height=9", "expected width of type int, 1 to 65535, got 65536"),
        (", width=[1,9], height=9", "expected width of type int, 1 to 65535, got GstIntRange"),
        (", width=640", "expected both width and height, got width only"),
        (", height=640", "expected both width and height, got height only"),
        (
            ", letterbox=centre",
            "expected letterbox as one of none, center-exact, top-left-exact, center, top-left, got \"centre\"",
        ),
        (
            ", letterbox=1",
            "expected letterbox as one of none, center-exact, top-left-exact, center, top-left, got gint",
        ),
        (", pixel-aspect-ratio=2", "expected pixel-aspect-ratio as a fraction above 0, got gint"),
        (", pixel-aspect-ratio=0/1", "expected pixel-aspect-ratio as a fraction above 0, got 0/1"),
        (", labels=person", "expected labels as an array of strings, got gchararray"),
        (", labels=(string){a,b}", "expected labels as an array of strings, got GstValueList"),
        (", labels=(int)<1,2>", "expected text as label 0, got gint"),
        (", task=7", "expected text as task, got gint"),
        (", end2end=7", "expected end2end of type boolean, got gint"),
        (", queries=0", "expected queries as an int from 1 to 2147483647, got 0"),
        (", queries=-1", "expected queries as an int from 1 to 2147483647, got -1"),
        (", queries=300.0", "expected queries as an int from 1 to 2147483647, got gdouble"),
        (
            ", queries=(uint)2147483648",
            "expected queries as an int from 1 to 2147483647, got guint",
        ),
        (
            "; application/x-nmsfilter-model, width=1, height=1",
            "expected caps application/x-nmsfilter-model with one structure, got 2 structures",
        ),
    ] {
        let error = read(&format!("{MEDIA_TYPE}{fields}")).expect_err(fields);
        assert_eq!(error, format!("the tensors' model: {expected}"), "{fields}");
    }
    let error = read("video/x-raw").unwrap_err();
    let expected = "expected caps application/x-nmsfilter-model, got video/x-raw";
    assert_eq!(error, format!("the tensors' model: {expected}"));
    let error = ModelInfo::from_caps(&gst::Caps::new_any()).unwrap_err();
    assert!(error.to_string().ends_with("with one structure, got 0 structures"), "{error}");
}

#[test]
fn more_labels_than_classes_are_an_error() {
    init();
    let labels = vec!["x".to_owned(); MAX_CLASSES + 1];
    let expected = "the tensors' model: expected at most 65536 labels, got 65537";
    let caps =
        gst::Caps::builder(MEDIA_TYPE).field("labels", gst::Array::new(labels.clone())).build();
    assert_eq!(ModelInfo::from_caps(&caps).unwrap_err().to_string(), expected);
    let error = ModelInfo { labels, ..ModelInfo::default() }.to_caps().unwrap_err();
    assert_eq!(error.to_string(), expected);
}

/// Returns caps with two labels, of which `second` is the second.
fn labels_with(second: *const std::ffi::c_char) -> gst::Caps {
    let mut value = glib::Value::from("");
    // SAFETY: the value has the type string. The text is NULL, or ends with a zero byte and is
    // copied.
    unsafe { glib::gobject_ffi::g_value_set_string(value.to_glib_none_mut().0, second) };
    let labels = [glib::Value::from("a"), value];
    let labels = labels.map(|value| value.try_into_send_value::<String>().unwrap());
    gst::Caps::builder(MEDIA_TYPE).field("labels", gst::Array::from_values(labels)).build()
}

#[test]
fn labels_that_are_not_text_are_an_error() {
    init();
    let error = |text| ModelInfo::from_caps(&labels_with(text)).unwrap_err().to_string();
    let expected = "the tensors' model: expected text as label 1, got ";
    assert_eq!(error(std::ptr::null()), format!("{expected}NULL"));
    assert_eq!(error(c"\xff\xfe".as_ptr()), format!("{expected}text that is not UTF-8"));
    let zero = ModelInfo { labels: ["a", "b\0c"].map(Into::into).into(), ..ModelInfo::default() }
        .to_caps()
        .unwrap_err();
    assert_eq!(zero.to_string(), format!("{expected}a zero byte"));
    let zero =
        ModelInfo { task: Some("b\0c".to_owned()), ..ModelInfo::default() }.to_caps().unwrap_err();
    assert_eq!(zero.to_string(), "the tensors' model: expected text as task, got a zero byte");
}

#[test]
fn a_size_that_caps_cannot_express_is_not_written() {
    init();
    for (size, expected) in [
        ([0, 9], "expected width of type int, 1 to 65535, got 0"),
        ([9, 65_536], "expected height of type int, 1 to 65535, got 65536"),
        ([9, u32::MAX], "expected height of type int, 1 to 65535, got 4294967295"),
    ] {
        let error = ModelInfo { size: Some(size), ..ModelInfo::default() }.to_caps().unwrap_err();
        assert_eq!(error.to_string(), format!("the tensors' model: {expected}"));
    }
}

#[test]
fn a_model_that_is_not_caps_is_an_error() {
    init();
    let error = |value: glib::SendValue| {
        let mut buffer = gst::Buffer::new();
        let added = CustomMeta::new(META_NAME, &[]).add(buffer.get_mut().unwrap(), |structure| {
            structure.set("id", "foreign");
            structure.set("type", "f32");
            structure.set("dims", gst::Array::new([0u64]));
            structure.set("data", gst::Buffer::new());
            structure.set_value("model", value);
        });
        added.unwrap();
        Tensors::of(&buffer).unwrap_err().to_string()
    };
    let expected = "metadata NmsFilterTensor: the field model ";
    let text = error("person".to_send_value());
    assert_eq!(text, format!("{expected}has the unexpected type gchararray"));
    assert_eq!(error(None::<gst::Caps>.to_send_value()), format!("{expected}is NULL"));
}
