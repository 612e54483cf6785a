// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tensordecodebin` of GStreamer 1.28, and caps that describe tensors.

use gst::prelude::*;
use gst_newer::{
    AnalyticsODMtd, AnalyticsRelationMeta, Tensor, TensorDataType, TensorDimOrder, TensorMeta,
};
use gst_video::VideoRegionOfInterestMeta;

use gstnmsfilter::bindings::strings;
use gstnmsfilter::elements::nmstensordec::groups::GROUPS;
use nmsfilter_core::decoder::{Decoder, Role, classifier, decoders};

use crate::picture::{picture, scaled};
use crate::stock::{self, StockModel, ULTRAFACE, YOLOV8};
use crate::support::scratch::ScratchFile;
use crate::support::{pipeline, skip};

/// Label, rectangle and score of each object, and the number of regions.
type Attached = (Vec<(String, [i32; 4], f32)>, usize);

fn attached(buffer: &gst::BufferRef) -> Attached {
    let mut objects = Vec::new();
    for meta in buffer.iter_meta::<AnalyticsRelationMeta>() {
        objects.extend(meta.iter::<AnalyticsODMtd>().map(|object| {
            let location = object.location().unwrap();
            let rect = [location.x, location.y, location.w, location.h];
            (object.obj_type().unwrap().as_str().to_string(), rect, object.confidence_level())
        }));
    }
    (objects, buffer.iter_meta::<VideoRegionOfInterestMeta>().count())
}

/// Returns the factories of the elements in a bin, in the order of the stream.
fn chain(bin: &gst::Element) -> Vec<String> {
    let mut names = Vec::new();
    let ghost = bin.static_pad("sink").unwrap().downcast::<gst::GhostPad>().unwrap();
    let mut next = ghost.target();
    while let Some(element) = next.and_then(|pad| pad.parent_element()).filter(|e| e != bin) {
        names.push(element.factory().unwrap().name().to_string());
        next = element.static_pad("src").unwrap().peer();
    }
    names
}

/// Runs the frame of these elements through `tensordecodebin` and through `nmsfilter`. Returns what
/// each attaches, and the elements in the bin.
fn both(model: &StockModel, file: &str, borders: bool) -> Option<([Attached; 2], Vec<String>)> {
    pipeline::init();
    let picture = picture(file)?;
    let Some(inference) = stock::onnxinference(model) else {
        skip::skip("onnxinference, or its model");
        return None;
    };
    let source = format!("{picture} ! {} ! {inference}", scaled(model, borders));
    let pipeline = pipeline::parse(&format!(
        "{source} ! tee name=tee
         tee. ! queue ! tensordecodebin name=auto ! fakesink
         tee. ! queue ! nmsfilter name=nms ! fakesink"
    ));
    let [auto, nms] = ["auto", "nms"].map(|element| pipeline::watch(&pipeline, element, attached));
    let names = pipeline::watch(&pipeline, "auto", |_| ());
    let bin = pipeline.by_name("auto").unwrap();
    let found = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let weak = bin.downgrade();
    bin.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, {
        let found = found.clone();
        move |_, _| {
            *found.lock().unwrap() = chain(&weak.upgrade().unwrap());
            gst::PadProbeReturn::Ok
        }
    });
    let ended = pipeline::run(&pipeline);
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{file}");
    assert_eq!(names.lock().unwrap().len(), 1, "one picture");
    let [auto, nms] = [auto, nms].map(|frames| frames.lock().unwrap().remove(0));
    let chain = std::mem::take(&mut *found.lock().unwrap());
    Some(([auto, nms], chain))
}

/// GStreamer's decoders for the tensor groups of these models.
const STOCK: [&str; 2] = ["yolov8tensordec", "ultralightfacedetectortensordec"];

fn set_ranks(ranks: [gst::Rank; 2]) {
    let registry = gst::Registry::get();
    for (name, rank) in STOCK.iter().zip(ranks) {
        if let Some(feature) = registry.lookup_feature(name) {
            feature.set_rank(rank);
        }
    }
}

/// `tensordecodebin` links `nmstensordec`, followed by GStreamer's own decoder for these tensors,
/// unless that decoder has the rank NONE. GStreamer's decoder finds no tensors there, so there is
/// exactly one object per survivor.
#[test]
fn tensordecodebin_chooses_nmstensordec_and_every_object_comes_once() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let rank = |name: &&str| gst::ElementFactory::find(name).map(|factory| factory.rank());
    let ranks = STOCK.each_ref().map(|name| rank(name).unwrap_or(gst::Rank::NONE));
    let models = [
        (&YOLOV8, "data/images/street.png", true, STOCK[0]),
        (&ULTRAFACE, "data/images/crowd_selfie.jpg", false, STOCK[1]),
    ];
    for (model, file, borders, stock) in models {
        let ours = gst::ElementFactory::find("nmstensordec").expect("it is registered");
        assert!(ours.rank() > rank(&stock).unwrap_or(gst::Rank::NONE));
        let Some(([auto, nms], chain)) = both(model, file, borders) else { return };
        assert_eq!(chain, ["nmstensordec", stock], "{file}");
        assert!(auto.0.len() > 10 && auto.1 == auto.0.len(), "{file}: {} objects", auto.0.len());
        assert_eq!(auto, nms, "{file}");
    }
    // Equivalent to
    // GST_PLUGIN_FEATURE_RANK=yolov8tensordec:NONE,ultralightfacedetectortensordec:NONE.
    set_ranks([gst::Rank::NONE; 2]);
    for (model, file, borders, _) in models {
        let ([auto, nms], chain) = both(model, file, borders).unwrap();
        assert_eq!(chain, ["nmstensordec"], "{file}");
        assert_eq!(auto, nms, "{file}");
    }
    set_ranks(ranks);
}

/// Returns caps for frames of 640x640 with a group that contains one tensor.
fn caps(group: &str, id: &str, dims: &str, kind: &str) -> gst::Caps {
    let caps = format!(
        "video/x-raw, format=RGB, width=640, height=640, framerate=25/1,
         tensors=(structure)[tensorgroups, {group}=(/uniquelist){{(GstCaps)[tensor/strided,
           tensor-id=(string){id}, dims=<{dims}>, dims-order=(string)col-major, type=(string){kind}]}}]"
    );
    caps.parse().unwrap_or_else(|error| panic!("{caps}: {error}"))
}

const YOLOV8_CAPS: [&str; 4] = ["yolo-v8-out", "yolo-v8-out", "1, 84, 8400", "float32"];

#[test]
fn nmstensordec_accepts_the_tensors_of_its_template_only() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let element = gst::ElementFactory::make("nmstensordec").build().unwrap();
    let pad = element.static_pad("sink").unwrap();
    let accepts = |caps: &gst::Caps| pad.query_accept_caps(caps);
    let caps_with = |[group, id, dims, kind]: [&str; 4]| caps(group, id, dims, kind);
    for tensors in [
        YOLOV8_CAPS,
        // Caps of a dynamic model.
        ["yolo-v8-out", "yolo-v8-out", "0, 84, 0", "float32"],
        ["yolo-26-end2end-out", "yolo-26-end2end-out", "1, 300, 6", "float16"],
    ] {
        assert!(accepts(&caps_with(tensors)), "{tensors:?}");
    }
    for tensors in [
        ["other-out", "other-out", "1, 84, 8400", "float32"],
        ["yolo-v8-out", "other-out", "1, 84, 8400", "float32"],
        ["yolo-v8-out", "yolo-v8-out", "1, 84, 8400", "int8"],
    ] {
        assert!(!accepts(&caps_with(tensors)), "{tensors:?}");
    }
    let without = "video/x-raw,format=RGB,width=640,height=640,framerate=25/1";
    assert!(!accepts(&without.parse().unwrap()));
}

/// Returns the error of `nmsfilter` with these properties for a stream that has these caps and no
/// buffers.
fn negotiation_error(properties: &[(&str, &str)], caps: &gst::Caps) -> Option<String> {
    let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps(caps.clone());
    std::iter::from_fn(|| bus.pop()).find_map(|message| match message.view() {
        gst::MessageView::Error(error) => Some(error.error().to_string()),
        _ => None,
    })
}

/// Returns the roles of each form of a decoder in which all roles have ids.
fn roles_with_ids(decoder: &'static Decoder) -> impl Iterator<Item = &'static [Role<'static>]> {
    let roles = decoder.forms.iter().map(|form| &form.roles[..]);
    roles.filter(|roles| roles.iter().all(|role| !role.ids.is_empty()))
}

#[test]
fn every_id_of_a_model_with_one_output_is_a_group_of_the_template() {
    crate::support::needs::needs!(tensor_caps);
    for decoder in decoders() {
        for roles in roles_with_ids(decoder).filter(|roles| roles.len() == 1) {
            for id in &roles[0].ids {
                let has_group = GROUPS.iter().any(|group| group.id == *id);
                assert_eq!(has_group, id.contains("-out"), "{id}");
            }
        }
    }
}

#[test]
fn the_tensors_of_each_group_of_the_template_are_those_of_a_decoder() {
    crate::support::needs::needs!(tensor_caps);
    for group in GROUPS.iter() {
        let is_read = decoders().iter().flat_map(|it| roles_with_ids(it)).any(|roles| {
            roles.len() == group.tensors.len()
                && roles.iter().all(|role| group.tensors.iter().any(|t| role.has_id(t.id)))
        });
        let is_of_classifier = group.tensors.iter().all(|tensor| classifier::is_id(tensor.id));
        assert!(is_read || is_of_classifier, "{}", group.id);
    }
}

#[test]
fn nmsfilter_refuses_caps_whose_tensors_it_cannot_decode() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let [group, id, dims, kind] = YOLOV8_CAPS;
    for (properties, caps) in [
        (&[][..], caps(group, id, dims, kind)),
        (&[("decoder", "yolov8")], caps(group, id, dims, kind)),
        // Unknown sizes, unknown tensors and tensors of other models are accepted.
        (&[], caps(group, id, "1, 84, 0", kind)),
        (&[], caps("other", "other", "1, 2, 3, 4", "float64")),
        (&[("tensors-from", "other")], caps(group, id, "1, 84", kind)),
    ] {
        assert_eq!(negotiation_error(properties, &caps), None, "{caps}");
    }
    for (properties, caps, expected) in [
        (
            &[][..],
            caps(group, id, "1, 84", kind),
            "the tensors in the caps cannot be decoded: tensor yolo-v8-out (f32 1x84): decoder yolov8 expects",
        ),
        (&[], caps(group, id, dims, "float64"), "expected elements of type f32"),
        (&[("decoder", "windows")], caps(group, id, dims, kind), "decoder windows"),
    ] {
        let error = negotiation_error(properties, &caps).expect("the caps are refused");
        assert!(error.contains(expected), "{error}");
    }
}

/// Returns a tensor that begins with these numbers, followed by zeros.
fn tensor(id: &str, dims: &[usize], numbers: &[f32]) -> Tensor {
    let mut elements = vec![0.0f32; dims.iter().product()];
    elements[..numbers.len()].copy_from_slice(numbers);
    let bytes: Vec<u8> = bytemuck::cast_slice(&elements).to_vec();
    let (kind, order) = (TensorDataType::Float32, TensorDimOrder::RowMajor);
    let data = gst::Buffer::from_mut_slice(bytes);
    Tensor::new_simple(gst::glib::Quark::from_str(id), kind, data, order, dims)
}

/// Returns the text of an id.
fn quark_text(id: gst::glib::ffi::GQuark) -> String {
    strings::of_quark(id).unwrap().to_str().unwrap().to_owned()
}

/// Returns the ids of the tensors on a buffer.
fn ids(buffer: &gst::BufferRef) -> Vec<String> {
    let metas = buffer.iter_meta::<TensorMeta>();
    let ids = metas
        .flat_map(|meta| meta.as_slice().iter().map(|t| quark_text(t.id())).collect::<Vec<_>>());
    ids.collect()
}

/// Returns caps with the tensors of an SSD model that have these ids and dimensions.
fn ssd_caps(ids: &[String], dims: [&str; 4]) -> gst::Caps {
    let group = |(id, dims): (&String, &str)| {
        format!(
            "(GstCaps)[tensor/strided, tensor-id=(string){id}, dims=(int)<{dims}>,
               dims-order=(string)row-major, type=(string)float32]"
        )
    };
    let groups: Vec<String> = ids.iter().zip(dims).map(group).collect();
    let caps = format!(
        "video/x-raw, format=RGB, width=640, height=640, framerate=25/1,
         tensors=(structure)[tensorgroups, ssd-mobilenet-v1-variant-1-out=(/uniquelist){{{}}}]",
        groups.join(", ")
    );
    caps.parse().unwrap()
}

/// Tensors of an SSD model with one detection. `ssdtensordec` requires them to be on the buffer.
#[test]
fn required_tensors_are_replaced_by_tensors_without_detections() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let ssd = |name: &str| format!("ssd-mobilenet-v1-variant-1-out-{name}");
    let count = "generic-variant-1-out-count";
    let tensors = vec![
        tensor(count, &[1], &[1.0]),
        tensor(&ssd("scores"), &[1, 10], &[0.9]),
        tensor(&ssd("boxes"), &[1, 10, 4], &[0.25, 0.25, 0.75, 0.75]),
        tensor(&ssd("classes"), &[1, 10], &[3.0]),
    ];
    // In the order of the table of decoders; the caps have no order.
    let mut all: Vec<String> = ["boxes", "classes", "scores"].map(ssd).to_vec();
    all.push(count.to_owned());
    let mut buffer = gst::Buffer::with_size(640 * 640 * 3).unwrap();
    TensorMeta::add(buffer.get_mut().unwrap()).unwrap().set(tensors);
    let mut harness = gst_check::Harness::new("nmstensordec");
    harness.set_src_caps(ssd_caps(&all, ["1, 10, 4", "1, 10", "1, 10", "1"]));
    let buffer = harness.push_and_pull(buffer).unwrap();
    assert_eq!(attached(&buffer).0.len(), 1);
    assert_eq!(ids(&buffer), all);
    for meta in buffer.iter_meta::<TensorMeta>() {
        for tensor in meta.as_slice() {
            let bytes = tensor.data().unwrap().map_readable().unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0), "{}", quark_text(tensor.id()));
        }
    }
}

/// In a label file, the first line is the name of class 1, as in `ssdtensordec` since GStreamer
/// 1.28.7.
#[test]
fn labels_of_ssd_equal_ssdtensordec_results() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    if gst::ElementFactory::find("ssdtensordec").is_none() || gst::version() < (1, 28, 7, 0) {
        skip::skip("ssdtensordec of GStreamer 1.28.7");
        return;
    }
    let file = ScratchFile::new("txt", b"person\nbicycle\ncar\n");
    let ssd = |name: &str| format!("ssd-mobilenet-v1-variant-1-out-{name}");
    let ids = [ssd("scores"), ssd("boxes"), ssd("classes"), "generic-variant-1-out-count".into()];
    let boxes = [0.1, 0.1, 0.3, 0.3, 0.4, 0.1, 0.7, 0.3, 0.1, 0.5, 0.3, 0.9];
    let labels = |factory: &str, dims: [&str; 4]| -> Vec<String> {
        let tensors = vec![
            tensor(&ids[0], &[1, 3], &[0.9, 0.8, 0.7]),
            tensor(&ids[1], &[1, 3, 4], &boxes),
            tensor(&ids[2], &[1, 3], &[3.0, 1.0, 2.0]),
            tensor(&ids[3], &[1], &[3.0]),
        ];
        let element = gst::ElementFactory::make(factory)
            .property("label-file", file.display().to_string())
            .build()
            .unwrap();
        let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps(ssd_caps(&ids, dims));
        let mut buffer = gst::Buffer::with_size(640 * 640 * 3).unwrap();
        TensorMeta::add(buffer.get_mut().unwrap()).unwrap().set(tensors);
        let buffer = harness.push_and_pull(buffer).unwrap();
        attached(&buffer).0.into_iter().map(|(label, ..)| label).collect()
    };
    let expected = ["car", "person", "bicycle"];
    assert_eq!(labels("ssdtensordec", ["1, 0", "1, 0, 4", "1, 0", "1"]), expected);
    assert_eq!(labels("nmstensordec", ["1, 3", "1, 3, 4", "1, 3", "1"]), expected);
}

#[test]
fn tensors_of_other_models_stay_on_the_buffer() {
    crate::support::needs::needs!(tensor_caps);
    pipeline::init();
    let [group, id, dims, kind] = YOLOV8_CAPS;
    let mut harness = gst_check::Harness::new("nmstensordec");
    harness.set_src_caps(caps(group, id, dims, kind));
    let other = "classification-generic-out";
    for (together, expected) in [(false, vec![other.to_owned()]), (true, vec![other.to_owned()])] {
        let mut buffer = gst::Buffer::with_size(640 * 640 * 3).unwrap();
        let writable = buffer.get_mut().unwrap();
        let (detections, class) = (tensor(id, &[1, 84, 8400], &[]), tensor(other, &[1, 10], &[]));
        if together {
            TensorMeta::add(writable).unwrap().set(vec![detections, class])
        } else {
            TensorMeta::add(writable).unwrap().set(vec![detections]);
            TensorMeta::add(writable).unwrap().set(vec![class]);
        }
        let buffer = harness.push_and_pull(buffer).unwrap();
        assert_eq!(ids(&buffer), expected, "in one metadata: {together}");
        assert!(buffer.meta::<AnalyticsRelationMeta>().is_some());
    }
}
