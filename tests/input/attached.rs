// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's own tensor metadata: attaching, reading, copying with buffers, and removing.
//! Malformed metadata is an error.

use gst::glib;
use gst_newer::CustomMeta;
use gstnmsfilter::input::Tensors;
use gstnmsfilter::input::custom_meta::{META_NAME, NewTensor, attach, remove};
use half::f16;
use nmsfilter_core::tensor::{
    ElementType, Elements, Quantization, Shape, TensorError, TensorProblem,
};

use crate::support::pipeline::{init, intercept, parse, run, watch};

fn tensor(id: &str) -> NewTensor {
    NewTensor::from_vec::<f32>(id, &[1, 2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
}

fn ids(buffer: &gst::BufferRef) -> Vec<String> {
    Tensors::of(buffer).unwrap().views().iter().map(|tensor| tensor.id.to_owned()).collect()
}

#[test]
fn attached_tensors_are_read_back_in_order() {
    init();
    let mut buffer = gst::Buffer::new();
    let buffer = buffer.get_mut().unwrap();
    attach(buffer, &tensor("first")).unwrap();
    let half = vec![f16::from_f32(0.5), f16::NAN];
    attach(buffer, &NewTensor::from_vec("second", &[2], half).unwrap()).unwrap();

    let attached = Tensors::of(buffer).unwrap();
    let tensors = attached.views();
    assert_eq!(tensors[0].to_string(), "first (f32 1x2x3)");
    assert_eq!(tensors[1].to_string(), "second (f16 2)");
    let Elements::F32(elements) = tensors[0].elements().unwrap() else {
        panic!("f32 was attached")
    };
    assert_eq!(elements, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let Elements::F16(elements) = tensors[1].elements().unwrap() else {
        panic!("f16 was attached")
    };
    assert!(elements[0] == f16::from_f32(0.5) && elements[1].is_nan());
}

#[test]
fn copies_share_the_tensors_memory() {
    init();
    let mut buffer = gst::Buffer::with_size(16).unwrap();
    attach(buffer.get_mut().unwrap(), &tensor("out")).unwrap();
    let copy = buffer.copy();
    let deep = buffer.copy_deep().unwrap();
    let address = |buffer: &gst::BufferRef| {
        let attached = Tensors::of(buffer).unwrap();
        let tensors = attached.views();
        let Elements::F32(elements) = tensors[0].elements().unwrap() else {
            panic!("f32 was attached")
        };
        elements.as_ptr() as usize
    };
    assert_eq!(address(&copy), address(&buffer));
    assert_eq!(address(&deep), address(&buffer));
}

#[test]
fn remove_removes_all_tensors() {
    init();
    let mut buffer = gst::Buffer::new();
    let buffer = buffer.get_mut().unwrap();
    attach(buffer, &tensor("first")).unwrap();
    attach(buffer, &tensor("second")).unwrap();
    remove(buffer);
    assert!(ids(buffer).is_empty());
}

/// Returns the ids of the tensors on each buffer after these elements.
fn ids_after(elements: &str) -> Vec<Vec<String>> {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=2 ! video/x-raw,format=I420,width=64,height=48
           ! {elements} ! fakesink name=out"
    ));
    intercept(&pipeline, "in", |buffer| attach(buffer, &tensor("out")).unwrap());
    let seen = watch(&pipeline, "out", ids);
    assert_eq!(run(&pipeline).error, None, "{elements}");
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn tensors_are_kept_by_elements_that_keep_the_picture() {
    for elements in
        ["identity", "queue ! queue", "tee ! queue", "videoconvert", "videobalance hue=1"]
    {
        assert_eq!(ids_after(elements), [["out"], ["out"]], "{elements}");
    }
}

#[test]
fn tensors_are_dropped_by_elements_that_make_a_new_picture() {
    for elements in [
        "videoscale ! video/x-raw,width=32,height=24",
        "videocrop left=8",
        "videoflip video-direction=90r",
        "videoconvert ! video/x-raw,format=RGB",
    ] {
        let none: [Vec<String>; 2] = Default::default();
        assert_eq!(ids_after(elements), none, "{elements}");
    }
}

#[test]
fn both_branches_of_a_tee_have_the_tensors() {
    let pipeline = parse(
        "videotestsrc name=in num-buffers=2 ! tee name=t
           t. ! queue ! fakesink name=one t. ! queue ! fakesink name=two",
    );
    intercept(&pipeline, "in", |buffer| attach(buffer, &tensor("out")).unwrap());
    let (one, two) = (watch(&pipeline, "one", ids), watch(&pipeline, "two", ids));
    assert_eq!(run(&pipeline).error, None);
    assert_eq!(*one.lock().unwrap(), [["out"], ["out"]]);
    assert_eq!(*two.lock().unwrap(), [["out"], ["out"]]);
}

#[test]
fn a_tensor_larger_than_its_memory_is_not_attached() {
    init();
    let mut buffer = gst::Buffer::new();
    let mut wrong = tensor("out");
    wrong.shape = Shape::new(&[1, 84, 8400]).unwrap();
    let error = attach(buffer.get_mut().unwrap(), &wrong).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tensor out (f32 1x84x8400): its shape needs 2822400 bytes, but its memory holds 24; \
         correct the shape or the memory"
    );
    wrong.shape = Shape::new(&[usize::MAX, 2]).unwrap();
    let error = attach(buffer.get_mut().unwrap(), &wrong).unwrap_err();
    assert!(error.to_string().contains("multiply to more elements than memory can hold"));
    wrong.element = ElementType::Other("i16");
    let error = attach(buffer.get_mut().unwrap(), &wrong).unwrap_err();
    assert!(error.to_string().contains("expected elements of type f32, f16, i8, u8, i32 or i64"));
    assert!(ids(&buffer).is_empty());
}

/// Returns a buffer whose metadata is written field by field, as other programs do.
fn foreign(write: impl FnOnce(&mut gst::StructureRef)) -> gst::Buffer {
    init();
    let mut buffer = gst::Buffer::new();
    let added = CustomMeta::new(META_NAME, &[]).add(buffer.get_mut().unwrap(), |structure| {
        structure.set("id", "foreign");
        structure.set("type", "f32");
        structure.set("dims", gst::Array::new([2u64]));
        structure.set("data", gst::Buffer::with_size(8).unwrap());
        write(structure);
    });
    added.unwrap();
    buffer
}

/// Returns the error for this metadata.
fn error(write: impl FnOnce(&mut gst::StructureRef)) -> String {
    Tensors::of(&foreign(write)).unwrap_err().to_string()
}

#[test]
fn metadata_written_by_other_programs_is_read() {
    let buffer = foreign(|_| {});
    assert_eq!(Tensors::of(&buffer).unwrap().views()[0].to_string(), "foreign (f32 2)");
    let scalar = foreign(|s| s.set("dims", gst::Array::new(Vec::<u64>::new())));
    assert_eq!(Tensors::of(&scalar).unwrap().views()[0].to_string(), "foreign (f32 scalar)");
}

#[test]
fn malformed_metadata_is_an_error_with_the_reason() {
    for field in ["id", "type", "dims", "data"] {
        let message = error(|s| s.remove_field(field));
        assert_eq!(message, format!("metadata NmsFilterTensor: the field {field} is missing"));
        let message = error(|s| s.set(field, 0.5f64));
        let expected = format!("the field {field} has the unexpected type gdouble");
        assert!(message.ends_with(&expected), "{message}");
    }
    let message = error(|s| s.set("type", "float"));
    let expected =
        "tensor foreign: expected type to be one of f32, f16, i8, u8, i32, i64, got float;";
    assert!(message.contains(expected), "{message}");
    let message = error(|s| s.set("dims", gst::Array::new([2i32])));
    assert!(message.contains("expected dims of type uint64, got gint"), "{message}");
    for field in ["id", "type"] {
        let message = error(|s| s.set(field, None::<String>));
        assert_eq!(message, format!("metadata NmsFilterTensor: the field {field} is NULL"));
    }
    for (dims, found) in
        [(gst::Array::new(["2"]), "gchararray"), (gst::Array::new([-2i64]), "gint64")]
    {
        let message = error(|s| s.set("dims", dims));
        let expected = format!("expected dims of type uint64, got {found}");
        assert!(message.ends_with(&expected), "{message}");
    }
    let message = error(|s| s.set("data", None::<gst::Buffer>));
    assert_eq!(message, "metadata NmsFilterTensor: the field data is NULL");
    let message = error(|s| s.set("dims", gst::Array::new([1u64; 9])));
    assert_eq!(message, "tensor foreign: expected at most 8 dimensions, got 9");
    let most = foreign(|s| s.set("dims", gst::Array::new([1u64; 8])));
    assert_eq!(Tensors::of(&most).unwrap().views()[0].shape[..], [1; 8]);
}

#[test]
fn integers_are_read_back() {
    init();
    let mut buffer = gst::Buffer::new();
    let buffer = buffer.get_mut().unwrap();
    attach(buffer, &NewTensor::from_vec("a", &[2], vec![-128i8, 127]).unwrap()).unwrap();
    attach(buffer, &NewTensor::from_vec("b", &[2], vec![0u8, 255]).unwrap()).unwrap();
    attach(buffer, &NewTensor::from_vec("c", &[2], vec![i32::MIN, 7]).unwrap()).unwrap();
    attach(buffer, &NewTensor::from_vec("d", &[2], vec![i64::MIN, 7]).unwrap()).unwrap();
    let attached = Tensors::of(buffer).unwrap();
    let tensors = attached.views();
    let texts: Vec<_> = tensors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["a (i8 2)", "b (u8 2)", "c (i32 2)", "d (i64 2)"]);
    assert!(matches!(tensors[0].elements().unwrap(), Elements::I8([-128, 127])));
    assert!(matches!(tensors[1].elements().unwrap(), Elements::U8([0, 255])));
    assert!(matches!(tensors[2].elements().unwrap(), Elements::I32([i32::MIN, 7])));
    assert!(matches!(tensors[3].elements().unwrap(), Elements::I64([i64::MIN, 7])));
}

#[test]
fn a_tensor_of_a_type_that_cannot_be_read_is_left_to_the_decoder() {
    for name in ["f64", "bf16", "i16", "u16", "u32", "u64", "bool"] {
        let buffer = foreign(|s| s.set("type", name));
        let attached = Tensors::of(&buffer).unwrap();
        assert_eq!(attached.views()[0].to_string(), format!("foreign ({name} 2)"));
        let error = attached.views()[0].elements().unwrap_err();
        assert_eq!(error.problem, TensorProblem::ElementType);
    }
}

#[test]
fn quantized_tensors_have_scale_and_zero_point() {
    init();
    let mut buffer = gst::Buffer::new();
    let buffer = buffer.get_mut().unwrap();
    let quantization = Quantization::new(0.003_906_32, -128).unwrap();
    let tensor = NewTensor::from_vec("out", &[2], vec![-128i8, 127]).unwrap();
    attach(buffer, &tensor.clone().with_quantization(quantization)).unwrap();
    attach(buffer, &tensor).unwrap();
    let attached = Tensors::of(buffer).unwrap();
    assert_eq!(attached.views()[0].quantization, Some(quantization));
    assert_eq!(attached.views()[1].quantization, None);
}

/// Returns the quantization that is read from another program's tensor.
fn foreign_quantization(write: impl FnOnce(&mut gst::StructureRef)) -> Option<Quantization> {
    let buffer = foreign(|s| {
        s.set("type", "u8");
        write(s);
    });
    Tensors::of(&buffer).unwrap().views()[0].quantization
}

#[test]
fn the_scale_of_other_programs_is_a_double_or_a_float() {
    let expected = Quantization::new(0.1, 0);
    assert_eq!(foreign_quantization(|s| s.set("scale", 0.1f64)), expected);
    assert_eq!(foreign_quantization(|s| s.set("scale", 0.1f32)), expected);
    let both = foreign_quantization(|s| {
        s.set("scale", 0.1f64);
        s.set("zero-point", 114i32);
    });
    assert_eq!(both, Quantization::new(0.1, 114));
    // Elements that are floating-point numbers have no quantization.
    let float_quantization = foreign_quantization(|s| {
        s.set("scale", 0.1f64);
        s.set("type", "f32");
    });
    assert_eq!(float_quantization, None);
}

#[test]
fn an_invalid_scale_or_zero_point_is_an_error() {
    for scale in [0.0, -0.1, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
        let message = error(|s| s.set("scale", scale));
        let expected =
            "tensor foreign: expected a scale above 0 and a zero point from -65536 to 65536, got ";
        assert!(message.contains(expected), "{message}");
    }
    let message = error(|s| {
        s.set("scale", 0.5f64);
        s.set("zero-point", 65537);
    });
    assert!(message.ends_with("got 0.5 and 65537"), "{message}");
    let message = error(|s| s.set("scale", 1i32));
    assert!(message.ends_with("the field scale has the unexpected type gint"), "{message}");
    let message = error(|s| {
        s.set("scale", 0.5f64);
        s.set("zero-point", 3.0f64);
    });
    assert!(message.ends_with("the field zero-point has the unexpected type gdouble"), "{message}");
    let message = error(|s| s.set("zero-point", 3i32));
    assert!(message.ends_with("tensor foreign: the field zero-point needs scale"), "{message}");
}

/// Sets a string field to bytes that are not UTF-8. `gst_structure_set` rejects them, but other
/// functions of GStreamer accept them.
fn set_bytes(structure: &mut gst::StructureRef, field: &str) {
    let field = std::ffi::CString::new(field).unwrap();
    // SAFETY: the field exists and has the type string, and the structure is mutable. The bytes end
    // with a zero and are copied.
    unsafe {
        let value = gst::ffi::gst_structure_get_value(structure.as_ptr(), field.as_ptr());
        glib::gobject_ffi::g_value_set_string(value.cast_mut(), c"\xff\xfe".as_ptr());
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error() {
    for field in ["id", "type"] {
        let message = error(|s| set_bytes(s, field));
        assert_eq!(message, format!("metadata NmsFilterTensor: the field {field} is not UTF-8"));
    }
}

fn read_error(buffer: &gst::BufferRef) -> TensorError {
    Tensors::of(buffer).unwrap().views()[0].elements().unwrap_err()
}

#[test]
fn memory_that_does_not_fit_the_shape_cannot_be_read() {
    let short = foreign(|s| s.set("dims", gst::Array::new([3u64])));
    assert_eq!(read_error(&short).problem, TensorProblem::TooShort { needed: 12, held: 8 });
    let huge = foreign(|s| s.set("dims", gst::Array::new([u64::MAX / 2, 4])));
    assert_eq!(read_error(&huge).problem, TensorProblem::TooLarge);
    let odd = foreign(|s| {
        let whole = gst::Buffer::with_size(64).unwrap();
        let part = whole.copy_region(gst::BufferCopyFlags::MEMORY, 1..9).unwrap();
        s.set("data", part);
    });
    let error = read_error(&odd);
    assert_eq!(error.problem, TensorProblem::Misaligned { align: 4 });
    let expected = "no multiple of 4 bytes; copy the elements to memory that is aligned";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_tensor_without_elements_is_read_as_an_empty_slice() {
    let empty = foreign(|s| {
        s.set("dims", gst::Array::new([0u64, 4]));
        s.set("data", gst::Buffer::new());
    });
    let attached = Tensors::of(&empty).unwrap();
    let tensors = attached.views();
    assert!(matches!(tensors[0].elements().unwrap(), Elements::F32([])));
}

#[test]
fn sixteen_tensors_are_read_and_the_rest_counted() {
    init();
    let mut buffer = gst::Buffer::new();
    for i in 0..20usize {
        let found = {
            let tensors = Tensors::of(&buffer).unwrap();
            (tensors.len(), tensors.unread())
        };
        assert_eq!(found, (i.min(16), i.saturating_sub(16)));
        attach(buffer.get_mut().unwrap(), &tensor(&i.to_string())).unwrap();
    }
    let ids = ids(&buffer);
    assert_eq!(ids.first().unwrap(), "0");
    assert_eq!(ids.last().unwrap(), "15");
}
