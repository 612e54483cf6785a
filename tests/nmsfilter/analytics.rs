// SPDX-License-Identifier: MIT OR Apache-2.0
//! GStreamer's analytics metadata: the objects that `nmsfilter` attaches, and tensors in
//! `GstTensorMeta`.

use gst_newer::{AnalyticsODMtd, AnalyticsRelationMeta};
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::regions;
use crate::support::pipeline::{init, intercept, parse, run, watch};

/// Id and label of an object or region, and its left, top, width and height.
type Object = (u32, String, [i32; 4]);

#[derive(Debug, PartialEq)]
struct Attached {
    relation: bool,
    objects: Vec<Object>,
    regions: Vec<Object>,
}

fn read_attached(buffer: &gst::BufferRef) -> Attached {
    let relation = buffer.meta::<AnalyticsRelationMeta>();
    let objects = relation.iter().flat_map(|relation| {
        relation.iter::<AnalyticsODMtd>().map(|object| {
            let location = object.location().unwrap();
            let label = object.obj_type().unwrap().as_str().to_string();
            (object.id(), label, [location.x, location.y, location.w, location.h])
        })
    });
    let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>().map(|region| {
        let (x, y, w, h) = region.rect();
        let rect = [x, y, w, h].map(|side| side as i32);
        (region.id() as u32, region.roi_type().to_owned(), rect)
    });
    Attached {
        relation: relation.is_some(),
        objects: objects.collect(),
        regions: regions.collect(),
    }
}

pub fn windows(count: usize) -> NewTensor {
    init();
    let elements = (0..count).flat_map(|i| {
        let (x, y) = (i % 100 * 6, i / 100 * 6);
        [x as f32, y as f32, 5.0, 0.9 - i as f32 * 1e-4]
    });
    NewTensor::from_vec::<f32>("windows", &[count, 4], elements.collect()).unwrap()
}

fn frame(
    properties: &str,
    prepare: impl Fn(&mut gst::BufferRef) + Send + Sync + 'static,
) -> Attached {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", prepare);
    let seen = watch(&pipeline, "nms", read_attached);
    assert_eq!(run(&pipeline).error, None, "{properties}");
    seen.lock().unwrap().remove(0)
}

#[test]
fn each_region_has_an_object_with_its_id() {
    crate::support::needs::needs!(relations);
    let tensor = windows(7);
    let found = frame("", move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!(found.objects.len(), 7);
    assert_eq!(found.objects, found.regions);
}

#[test]
fn the_relation_meta_is_attached_also_without_objects() {
    crate::support::needs::needs!(relations);
    let tensor = windows(7);
    let found = frame("score-threshold=1", move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!(found, Attached { relation: true, objects: vec![], regions: vec![] });
    let without = frame("", |_| {});
    assert!(!without.relation, "a frame without tensors has no result");
}

#[test]
fn attach_selects_regions_or_objects_alone() {
    crate::support::needs::needs!(relations);
    let tensor = windows(3);
    let roi = frame("attach=roi", move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!((roi.relation, roi.regions.len()), (false, 3));
    let tensor = windows(3);
    let objects = frame("attach=analytics", move |buffer| attach(buffer, &tensor).unwrap());
    assert_eq!((objects.objects.len(), objects.regions.len()), (3, 0));
}

#[test]
fn earlier_objects_are_kept_and_region_ids_equal_object_ids() {
    crate::support::needs::needs!(relations);
    let tensor = windows(4);
    let found = frame("", move |buffer| {
        let mut relation = AnalyticsRelationMeta::add(buffer).unwrap();
        let kind = gst::glib::Quark::from_str("other");
        relation.add_od_mtd(kind, 1, 2, 3, 4, 0.5).unwrap();
        relation.add_od_mtd(kind, 5, 6, 7, 8, 0.5).unwrap();
        attach(buffer, &tensor).unwrap();
    });
    assert_eq!(found.objects.len(), 6);
    assert_eq!(found.objects[2..], found.regions);
}

#[test]
fn no_region_has_the_id_of_another_one_or_of_another_object() {
    crate::support::needs::needs!(relations);
    let tensor = windows(3);
    let found = frame("", move |buffer| {
        // The id of this region is 0, which would also be the first object's id.
        VideoRegionOfInterestMeta::add(buffer, "other", (0, 0, 9, 9));
        attach(buffer, &tensor).unwrap();
    });
    let ids = |objects: &[Object]| objects.iter().map(|object| object.0).collect::<Vec<_>>();
    assert_eq!((ids(&found.objects), ids(&found.regions)), (vec![0, 1, 2], vec![0, 3, 4, 5]));
}

#[test]
fn thousands_of_objects_are_attached() {
    crate::support::needs::needs!(relations);
    let tensor = windows(5_000);
    let found = frame("score-threshold=0 max-detections=0", move |buffer| {
        attach(buffer, &tensor).unwrap();
    });
    assert_eq!(found.objects.len(), 5_000);
    assert_eq!(found.objects, found.regions);
}

#[test]
fn a_second_nmsfilter_that_attaches_the_same_objects_gives_a_warning_that_says_what_to_set() {
    crate::support::needs::needs!(relations);
    let pipeline = parse(
        "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
           ! nmsfilter attach=analytics ! nmsfilter attach=analytics name=nms ! fakesink",
    );
    let tensor = windows(3);
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let seen = watch(&pipeline, "nms", |buffer| read_attached(buffer).objects.len());
    let ended = run(&pipeline);
    assert_eq!(ended.error, None);
    assert_eq!(*seen.lock().unwrap(), [6, 6, 6]);
    assert_eq!(ended.warnings.len(), 1, "{:?}", ended.warnings);
    assert!(ended.warnings[0].contains("keep-tensors=false"), "{:?}", ended.warnings);
}

mod tensor_meta {
    use gst::prelude::*;
    use gst_newer::{Tensor, TensorDataType, TensorDimOrder, TensorMeta};
    use gstnmsfilter::input::Tensors;
    use nmsfilter_core::tensor::{Elements, MAX_DIMENSIONS};

    use super::*;

    fn tensor(id: &str, data_type: TensorDataType, dims: &[usize], bytes: usize) -> Tensor {
        let data = gst::Buffer::from_mut_slice(vec![0u8; bytes]);
        let id = gst::glib::Quark::from_str(id);
        Tensor::new_simple(id, data_type, data, TensorDimOrder::RowMajor, dims)
    }

    fn window(x: f32) -> Tensor {
        let data =
            gst::Buffer::from_slice(bytemuck::cast::<[f32; 4], [u8; 16]>([x, 9.0, 30.0, 0.9]));
        let id = gst::glib::Quark::from_str("windows");
        Tensor::new_simple(id, TensorDataType::Float32, data, TensorDimOrder::RowMajor, &[1, 4])
    }

    /// Formats the tensors on a buffer.
    fn listed(buffer: &gst::BufferRef) -> Vec<String> {
        Tensors::of(buffer).unwrap().views().iter().map(ToString::to_string).collect()
    }

    /// Returns the buffer that leaves `nmsfilter` with these properties. If `buffer` is shared, the
    /// result is a copy.
    fn filtered(properties: &[(&str, &str)], buffer: gst::Buffer) -> gst::Buffer {
        // Some properties are read when the element starts, and the harness starts it immediately.
        let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
        for (name, value) in properties {
            element.set_property_from_str(name, value);
        }
        let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=640,height=480,framerate=50/1");
        harness.push_and_pull(buffer).unwrap()
    }

    fn add(buffer: &mut gst::BufferRef, tensors: Vec<Tensor>) {
        TensorMeta::add(buffer).unwrap().set(tensors);
    }

    #[test]
    fn every_tensor_of_every_meta_is_listed() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        add(
            writable,
            vec![
                tensor("a", TensorDataType::Float32, &[1, 2], 8),
                tensor("b", TensorDataType::Float16, &[2], 4),
            ],
        );
        attach(writable, &windows(1)).unwrap();
        assert_eq!(listed(&buffer), ["a (f32 1x2)", "b (f16 2)", "windows (f32 1x4)"]);
    }

    #[test]
    fn unsupported_element_types_are_listed_by_name_and_cannot_be_read() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        add(buffer.get_mut().unwrap(), vec![tensor("a", TensorDataType::Int16, &[2], 4)]);
        let attached = Tensors::of(&buffer).unwrap();
        let tensors = attached.views();
        assert_eq!(tensors[0].to_string(), "a (i16 2)");
        let error = tensors[0].elements().unwrap_err().to_string();
        assert!(
            error.contains("expected elements of type f32, f16, i8, u8, i32 or i64"),
            "{error}"
        );
    }

    #[test]
    fn integers_are_read() {
        crate::support::needs::needs!(tensors);
        init();
        for (data_type, size, text) in [
            (TensorDataType::Int8, 1, "a (i8 2)"),
            (TensorDataType::Uint8, 1, "a (u8 2)"),
            (TensorDataType::Int32, 4, "a (i32 2)"),
            (TensorDataType::Int64, 8, "a (i64 2)"),
        ] {
            let mut buffer = gst::Buffer::new();
            add(buffer.get_mut().unwrap(), vec![tensor("a", data_type, &[2], 2 * size)]);
            let attached = Tensors::of(&buffer).unwrap();
            let tensors = attached.views();
            assert_eq!(tensors[0].to_string(), text);
            assert!(tensors[0].elements().is_ok());
        }
    }

    #[test]
    fn memory_shorter_than_the_shape_cannot_be_read() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        let short = tensor("a", TensorDataType::Float32, &[1, 84, 8400], 64);
        add(buffer.get_mut().unwrap(), vec![short]);
        let error = Tensors::of(&buffer).unwrap().views()[0].elements().unwrap_err().to_string();
        assert!(error.contains("needs 2822400 bytes, but its memory holds 64"), "{error}");
    }

    #[test]
    fn tensors_of_too_many_dimensions_or_beyond_the_sixteenth_are_counted() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        let deep = tensor("a", TensorDataType::Float32, &[1; MAX_DIMENSIONS + 1], 4);
        let flat = || tensor("b", TensorDataType::Float32, &[1], 4);
        let mut all = vec![deep];
        all.extend(std::iter::repeat_with(flat).take(18));
        add(buffer.get_mut().unwrap(), all);
        attach(buffer.get_mut().unwrap(), &windows(1)).unwrap();
        let attached = Tensors::of(&buffer).unwrap();
        assert_eq!((attached.len(), attached.unread()), (16, 1 + 2 + 1));
    }

    #[test]
    fn tensors_of_too_many_dimensions_give_a_warning() {
        crate::support::needs::needs!(tensors);
        let pipeline = parse(
            "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480
               ! nmsfilter name=nms ! fakesink",
        );
        intercept(&pipeline, "in", |buffer| {
            let deep = tensor("a", TensorDataType::Float32, &[1; MAX_DIMENSIONS + 1], 4);
            add(buffer, vec![deep, window(1.0)]);
        });
        let ended = run(&pipeline);
        assert_eq!((ended.error, ended.warnings.len()), (None, 1));
        let expected = "carries 2 tensors, of which 1 are read: at most 16, each of at most 8";
        assert!(ended.warnings[0].contains(expected), "{:?}", ended.warnings);
    }

    #[test]
    fn an_id_that_is_not_utf8_is_replaced_by_a_note() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        // SAFETY: the text ends with a zero byte, and GLib copies it.
        let id: gst::glib::Quark = unsafe {
            let quark = gst::glib::ffi::g_quark_from_string(c"windows\xff".as_ptr());
            gst::glib::translate::from_glib(quark)
        };
        let data = gst::Buffer::with_size(16).unwrap();
        let order = TensorDimOrder::RowMajor;
        let tensor = Tensor::new_simple(id, TensorDataType::Float32, data, order, &[1, 4]);
        add(buffer.get_mut().unwrap(), vec![tensor]);
        let attached = Tensors::of(&buffer).unwrap();
        let tensors = attached.views();
        assert_eq!(tensors[0].to_string(), "(an id that is not UTF-8) (f32 1x4)");
    }

    #[test]
    fn a_copied_buffer_has_the_tensors_once_and_keep_tensors_false_removes_them() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        add(buffer.get_mut().unwrap(), vec![window(1.0)]);
        let copy = filtered(&[], buffer.clone());
        assert_ne!(copy.as_ptr(), buffer.as_ptr(), "the buffer is shared, so it is copied");
        let attached = Tensors::of(&copy).unwrap();
        let tensors = attached.views();
        assert_eq!(tensors.len(), 1);
        assert!(matches!(tensors[0].elements().unwrap(), Elements::F32([1.0, 9.0, 30.0, _])));
        let without = filtered(&[("keep-tensors", "false")], buffer.clone());
        assert_eq!(regions(&without), regions(&copy));
        assert!(Tensors::of(&without).unwrap().is_empty());
        assert_eq!(listed(&buffer), ["windows (f32 1x4)"], "the original keeps them");
    }

    /// The first versions of GStreamer 1.26 allow only one `GstTensorMeta` per buffer.
    #[test]
    fn several_metas_on_a_buffer_are_read_in_order_and_copied_with_shared_memory() {
        crate::support::needs::needs!(tensor_caps);
        init();
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        add(writable, vec![window(1.0), tensor("a", TensorDataType::Float16, &[3], 6)]);
        // This metadata has no tensors.
        TensorMeta::add(writable).unwrap();
        add(writable, vec![tensor("b", TensorDataType::Float64, &[1], 8)]);
        let expected = ["windows (f32 1x4)", "a (f16 3)", "b (f64 1)"];
        assert_eq!(listed(&buffer), expected);

        let copy = filtered(&[], buffer.clone());
        assert_eq!(listed(&copy), expected);
        let address = |buffer: &gst::BufferRef| {
            let attached = Tensors::of(buffer).unwrap();
            let tensors = attached.views();
            let Elements::F32(elements) = tensors[0].elements().unwrap() else {
                panic!("expected f32")
            };
            elements.as_ptr() as usize
        };
        assert_eq!(address(&copy), address(&buffer), "the memory is shared");
        drop(buffer);
        assert_eq!(listed(&copy), expected, "the copy owns the tensors");
    }

    /// Before GStreamer 1.28, a buffer has at most one `GstTensorMeta`.
    #[test]
    fn one_of_several_metas_is_decoded_and_removed() {
        crate::support::needs::needs!(tensor_caps);
        init();
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        add(writable, vec![window(100.0)]);
        // Metadata without tensors belongs to no inference element.
        TensorMeta::add(writable).unwrap();
        add(writable, vec![window(200.0)]);
        attach(writable, &windows(1)).unwrap();
        for (selected, left) in [("", 100), ("0", 100), ("1", 200), ("2", 0)] {
            let filtered = filtered(&[("tensors-from", selected)], buffer.clone());
            let lefts: Vec<u32> = regions(&filtered).iter().map(|(_, [left, ..])| *left).collect();
            assert_eq!((lefts, listed(&filtered).len()), (vec![left], 3), "{selected}");
            if !selected.is_empty() {
                let removes = [("tensors-from", selected), ("keep-tensors", "false")];
                let removed = self::filtered(&removes, buffer.clone());
                assert_eq!(listed(&removed).len(), 2, "{selected}");
            }
        }
    }

    #[test]
    fn a_tensor_without_memory_and_id_is_listed_and_cannot_be_read() {
        crate::support::needs::needs!(tensors);
        init();
        let mut buffer = gst::Buffer::new();
        let (kind, order) = (TensorDataType::Int4, TensorDimOrder::RowMajor);
        let bare = Tensor::new(0, kind, None, order, &[0]).unwrap();
        add(buffer.get_mut().unwrap(), vec![bare, window(1.0)]);
        let attached = Tensors::of(&buffer).unwrap();
        let tensors = attached.views();
        assert_eq!(tensors.len(), 2);
        assert_eq!((tensors[0].id, &tensors[0].shape[..]), ("", &[0][..]));
        assert_eq!(tensors[1].id, "windows");
        assert!(tensors[0].elements().is_err());
    }

    /// Behind a tee, the buffer is shared, and GStreamer 1.26 copies it without its tensors.
    #[test]
    fn both_branches_of_a_tee_are_decoded_and_keep_their_tensors() {
        crate::support::needs::needs!(tensors);
        let pipeline = parse(
            "videotestsrc name=in num-buffers=3 ! video/x-raw,width=640,height=480 ! tee name=t
               t. ! queue ! nmsfilter name=one ! fakesink
               t. ! queue ! nmsfilter name=two ! fakesink",
        );
        intercept(&pipeline, "in", |buffer| add(buffer, vec![window(10.0)]));
        let count = |buffer: &gst::BufferRef| {
            (read_attached(buffer).objects.len(), Tensors::of(buffer).unwrap().len())
        };
        let (one, two) = (watch(&pipeline, "one", count), watch(&pipeline, "two", count));
        assert_eq!(run(&pipeline).error, None);
        assert_eq!(*one.lock().unwrap(), [(1, 1); 3]);
        assert_eq!(*two.lock().unwrap(), [(1, 1); 3]);
    }
}

/// Reads oriented objects and masks with GStreamer's own functions.
mod details {
    use gst_newer::{AnalyticsSegmentationMtd, RelTypes};
    use gst_video::prelude::*;

    use super::*;
    use crate::details::{Recorded, recorded, structure};

    /// A mask: the rectangle that it covers, its size, and its pixels.
    #[derive(Debug, PartialEq)]
    struct Mask {
        place: [i32; 4],
        size: [usize; 2],
        pixels: Vec<u8>,
        address: usize,
    }

    /// An object with its region's structures.
    struct Detected {
        structures: Vec<gst::Structure>,
        /// Left, top, width, height and angle.
        location: ([i32; 4], f32),
        masks: Vec<Mask>,
    }

    /// Returns the segmentations that are related to the object. The relation must exist in both
    /// directions.
    fn masks_of(meta: &gst::MetaRef<'_, AnalyticsRelationMeta>, object: u32) -> Vec<Mask> {
        let mut masks = Vec::new();
        for found in
            meta.iter_direct_related::<AnalyticsSegmentationMtd>(object, RelTypes::RELATE_TO)
        {
            assert_eq!(meta.relation(found.id(), object), RelTypes::RELATE_TO);
            let gst_newer::Mask { buffer: mask, origin: [x, y], size: [w, h] } =
                found.mask().unwrap();
            let video = mask.meta::<gst_video::VideoMeta>().expect("it is required");
            assert_eq!(video.format(), gst_video::VideoFormat::Gray8);
            let size = [video.width() as usize, video.height() as usize];
            let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(
                &mask,
                &gst_video::VideoInfo::builder(video.format(), video.width(), video.height())
                    .build()
                    .unwrap(),
            );
            let frame = frame.unwrap();
            let stride = frame.plane_stride()[0] as usize;
            let rows = frame.plane_data(0).unwrap().chunks(stride).take(size[1]);
            let pixels: Vec<u8> = rows.flat_map(|row| row[..size[0]].to_vec()).collect();
            // There is one region for the background and one for the object.
            let [0, id @ 1..=10] = found.region_ids().collect::<Vec<_>>()[..] else {
                panic!("{:?}", found.region_ids().collect::<Vec<_>>())
            };
            assert!(pixels.iter().all(|&p| p == 0 || u32::from(p) == id));
            masks.push(Mask {
                place: [x, y, w as i32, h as i32],
                size,
                pixels: pixels.iter().map(|&pixel| u8::from(pixel != 0)).collect(),
                address: mask.as_ptr() as usize,
            });
        }
        masks
    }

    /// Returns the objects of three frames of this size, in the order of their regions.
    fn detected(size: [usize; 2], recorded: Recorded) -> Vec<Vec<Detected>> {
        let [width, height] = size;
        let pipeline = parse(&format!(
            "videotestsrc name=in num-buffers=3 ! video/x-raw,format=GRAY8,width={width},height={height}
               ! nmsfilter name=nms {} ! fakesink enable-last-sample=false",
            recorded.properties
        ));
        let tensors = recorded.tensors;
        intercept(&pipeline, "in", move |buffer| {
            tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
        });
        let seen = watch(&pipeline, "nms", |buffer| {
            let relation = buffer.meta::<AnalyticsRelationMeta>().unwrap();
            let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
            let detected = regions.map(|region| {
                let object = relation.mtd::<AnalyticsODMtd>(region.id() as u32).unwrap();
                let at = object.oriented_location().unwrap();
                Detected {
                    structures: region.params().map(|structure| structure.to_owned()).collect(),
                    location: ([at.x, at.y, at.w, at.h], at.r),
                    masks: masks_of(&relation, region.id() as u32),
                }
            });
            detected.collect::<Vec<_>>()
        });
        assert_eq!(run(&pipeline).error, None);
        std::mem::take(&mut *seen.lock().unwrap())
    }

    #[test]
    fn objects_of_oriented_boxes_have_their_center_sides_and_angle() {
        crate::support::needs::needs!(segmentation);
        let properties = "decoder=yolov8-obb coordinates=normalized";
        let Some(recorded) = recorded("04_obb/nnstreamer", properties) else { return };
        let expected = recorded.expected.clone();
        let frames = detected([1280, 1280], recorded);
        assert_eq!(frames[0].len(), expected.len());
        for (found, expected) in frames[0].iter().zip(&expected) {
            let ([x, y, w, h], angle) = found.location;
            let near = |found: f64, expected: f64, by: f64| {
                assert!((found - expected).abs() <= by, "{found}, expected {expected}");
            };
            near(f64::from(w), expected["w"] * 2.0, 0.51);
            near(f64::from(h), expected["h"] * 2.0, 0.51);
            near(f64::from(x) + f64::from(w) / 2.0, expected["cx"] * 2.0, 0.51);
            near(f64::from(y) + f64::from(h) / 2.0, expected["cy"] * 2.0, 0.51);
            near(f64::from(angle), expected["angle"].rem_euclid(std::f64::consts::TAU), 1e-5);
            assert!((0.0..=std::f32::consts::TAU).contains(&angle) && found.masks.is_empty());
        }
    }

    #[test]
    fn a_mask_is_a_segmentation_related_to_its_object_with_the_pixels_of_the_region() {
        crate::support::needs::needs!(segmentation);
        for mask_size in ["prototypes", "frame"] {
            let properties = format!("decoder=yolov8-seg mask-size={mask_size}");
            let Some(recorded) = recorded("02_seg_yolov8/street", &properties) else { return };
            let frames = detected([320, 320], recorded);
            let count = frames[0].len();
            assert!(count > 10);
            let mut addresses = Vec::new();
            for frame in &frames {
                for found in frame {
                    let expected = structure(&found.structures, "mask");
                    let side = |name: &str| expected.get::<i32>(name).unwrap() as usize;
                    let [mask] = &found.masks[..] else { panic!("one mask per object") };
                    assert_eq!(mask.size, [side("width"), side("height")]);
                    let data: gst::glib::Bytes = expected.get("data").unwrap();
                    let stride = mask.size[0].div_ceil(8);
                    for (i, &pixel) in mask.pixels.iter().enumerate() {
                        let (column, row) = (i % mask.size[0], i / mask.size[0]);
                        let bit = data[row * stride + column / 8] >> (7 - column % 8) & 1;
                        assert_eq!(pixel, bit, "{mask_size} at {column},{row}");
                    }
                    let edge = |name: &str| expected.get::<f64>(name).unwrap();
                    let edges = ["left", "top", "right", "bottom"].map(edge);
                    let [x, y, w, h] = mask.place;
                    for (found, expected) in [x, y, x + w, y + h].into_iter().zip(edges) {
                        assert!((f64::from(found) - expected).abs() <= 0.5, "{:?}", mask.place);
                    }
                    addresses.push(mask.address);
                }
            }
            // Buffers of earlier frames are reused.
            addresses.sort_unstable();
            addresses.dedup();
            assert!(addresses.len() <= 2 * count, "{} buffers", addresses.len());
        }
    }
}
