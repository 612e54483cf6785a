// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading regions of interest. Any element may have attached them.

use std::ffi::{CStr, CString};

use gst::glib;
use gst::glib::translate::ToGlibPtr;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::regions::{self, AttachedRegion};
use nmsfilter_core::nms::OrientedBox;

use crate::support::pipeline::init;

fn attach(buffer: &mut gst::BufferRef, label: &str, params: Vec<gst::Structure>) {
    let mut meta = VideoRegionOfInterestMeta::add(buffer, label, (1, 2, 30, 40));
    params.into_iter().for_each(|param| meta.add_param(param));
}

/// Returns the structure of an upright box, as `nmsfilter` and the elements of DL Streamer attach
/// it.
fn detection() -> gst::structure::Builder {
    gst::Structure::builder("detection")
        .field("label_id", 7)
        .field("label", "person")
        .field("confidence", 0.75)
        .field("x_min", 0.1)
        .field("y_min", 0.2)
        .field("x_max", 0.3)
        .field("y_max", 0.4)
}

fn keypoints(count: i32, components: i32, numbers: &[f32]) -> gst::Structure {
    gst::Structure::builder("keypoints")
        .field("count", count)
        .field("components", components)
        .field("layout", "points")
        .field("data", glib::Bytes::from(bytemuck::cast_slice::<_, u8>(numbers)))
        .build()
}

fn mask(sides: [i32; 2], edges: [f64; 4], bytes: &[u8]) -> gst::Structure {
    gst::Structure::builder("mask")
        .field("width", sides[0])
        .field("height", sides[1])
        .field("left", edges[0])
        .field("top", edges[1])
        .field("right", edges[2])
        .field("bottom", edges[3])
        .field("data", glib::Bytes::from(bytes))
        .build()
}

/// Reads a region that has these structures.
fn read<T>(params: Vec<gst::Structure>, check: impl FnOnce(AttachedRegion<'_>) -> T) -> T {
    let mut buffer = gst::Buffer::new();
    attach(buffer.get_mut().unwrap(), "person", params);
    check(regions::iter(&buffer).next().unwrap())
}

#[test]
fn all_fields_of_a_region_are_read() {
    init();
    let mut buffer = gst::Buffer::new();
    let oriented = detection()
        .field("rotation", 0.5)
        .field("center-x", 20.0)
        .field("center-y", 25.0)
        .field("width", 12.0)
        .field("height", 6.0);
    let points = [1.0, 2.0, 0.5, 3.0, f32::INFINITY, 0.0];
    let params = vec![
        gst::Structure::builder("another").field("confidence", 0.1).build(),
        oriented.build(),
        keypoints(2, 3, &points),
        mask([10, 2], [4.0, 5.0, 14.0, 7.0], &[0xff, 0xc0, 0x80, 0x40]),
        keypoints(1, 2, &[9.0, 9.0]),
    ];
    attach(buffer.get_mut().unwrap(), "person", params);
    attach(buffer.get_mut().unwrap(), "empty", Vec::new());

    assert_eq!(regions::count(&buffer), 2);
    let found: Vec<AttachedRegion<'_>> = regions::iter(&buffer).collect();
    let region = found[0];
    assert_eq!(region.rectangle, [1, 2, 30, 40]);
    assert_eq!((region.label, region.class, region.confidence), (c"person", Some(7), Some(0.75)));
    assert_eq!(region.edges, Some([0.1, 0.2, 0.3, 0.4]));
    let expected = OrientedBox { center: [20.0, 25.0], size: [12.0, 6.0], angle: 0.5 };
    assert_eq!(region.oriented, Some(expected));
    let read = region.keypoints.unwrap();
    assert_eq!((read.len(), read.numbers(), read.layout()), (2, &points[..], c"points"));
    assert_eq!(read.iter().collect::<Vec<_>>(), [[1.0, 2.0, 0.5], [3.0, f32::INFINITY, 0.0]]);
    let read = region.mask.unwrap();
    assert_eq!((read.width, read.height), (10, 2));
    assert_eq!((read.edges, read.bytes), ([4.0, 5.0, 14.0, 7.0], &[0xff, 0xc0, 0x80, 0x40][..]));

    let region = found[1];
    assert_eq!((region.label, region.rectangle), (c"empty", [1, 2, 30, 40]));
    assert!(region.class.is_none() && region.confidence.is_none() && region.edges.is_none());
    assert!(region.oriented.is_none() && region.keypoints.is_none() && region.mask.is_none());
}

#[test]
fn ids_and_labels_come_from_the_metadata() {
    init();
    let mut buffer = gst::Buffer::new();
    // Any element can set the type of a region, and nothing checks that it is UTF-8.
    let label = CString::new(b"b\xffx".to_vec()).unwrap();
    let quark = unsafe { glib::ffi::g_quark_from_string(label.as_ptr()) };
    let pointer = buffer.get_mut().unwrap().as_mut_ptr();
    for (quark, id) in [(quark, 5), (0, -3)] {
        let add = gst_video::ffi::gst_buffer_add_video_region_of_interest_meta_id;
        unsafe {
            let meta = add(pointer, quark, 0, 0, u32::MAX, 0);
            ((*meta).id, (*meta).parent_id) = (id, id + 1);
        }
    }
    let found: Vec<(&CStr, i32, i32, [u32; 4])> = regions::iter(&buffer)
        .map(|region| (region.label, region.id, region.parent_id, region.rectangle))
        .collect();
    let rectangle = [0, 0, u32::MAX, 0];
    assert_eq!(found, [(&*label, 5, 6, rectangle), (c"", -3, -1, rectangle)]);
}

/// Elements that set no parent leave the metadata's field 0, which is also the id of a region.
#[test]
fn a_parent_with_the_id_0_is_in_the_detection() {
    init();
    let detection = |parent: Option<i32>| {
        let upright = gst::Structure::builder("detection")
            .field("label_id", 7)
            .field("label", "face")
            .field("confidence", 0.5);
        let edges = ["x_min", "y_min", "x_max", "y_max"];
        let upright = edges.into_iter().fold(upright, |upright, edge| upright.field(edge, 0.5));
        upright.field_if_some("parent_id", parent).build()
    };
    read(vec![detection(None)], |region| assert_eq!(region.parent_id, -1));
    read(vec![detection(Some(0))], |region| assert_eq!(region.parent_id, 0));
    read(vec![detection(Some(9))], |region| assert_eq!(region.parent_id, 9));
}

#[test]
fn fields_of_other_types_are_ignored() {
    init();
    let wrong = gst::Structure::builder("detection")
        .field("label_id", "7")
        .field("confidence", "1")
        .field("x_min", 0.1)
        .field("y_min", "0.2")
        .field("x_max", 0.3)
        .field("y_max", 0.4)
        .field("rotation", 0.5)
        .build();
    read(vec![wrong], |region| {
        assert!(region.class.is_none() && region.confidence.is_none() && region.edges.is_none());
        assert!(region.oriented.is_none(), "it has no center");
    });
    // A structure can have a field of type GBytes that is NULL.
    let mut null = mask([1, 1], [0.0, 0.0, 1.0, 1.0], &[0]);
    null.set("data", None::<glib::Bytes>);
    read(vec![null], |region| assert!(region.mask.is_none()));
}

#[test]
fn keypoints_that_do_not_fit_are_ignored() {
    init();
    let six = [1.0f32; 6];
    for (count, components) in [(2, 3), (3, 2), (0, 2), (1, 3)] {
        let points = read(vec![keypoints(count, components, &six)], |region| {
            region.keypoints.map(|points| (points.len(), points.is_empty(), points.iter().len()))
        });
        let count = count as usize;
        assert_eq!(points, Some((count, count == 0, count)));
    }
    for (count, components) in [(3, 3), (-1, 2), (i32::MAX, 3), (6, 1), (1, 4), (2, 0)] {
        let params = vec![keypoints(count, components, &six)];
        read(params, |region| assert!(region.keypoints.is_none(), "{count} of {components}"));
    }
    // The bytes do not begin at a multiple of 4.
    let mut unaligned = keypoints(1, 2, &six);
    let bytes = glib::Bytes::from(bytemuck::cast_slice::<f32, u8>(&six));
    let part = unsafe {
        let part = glib::ffi::g_bytes_new_from_bytes(bytes.to_glib_none().0, 1, 20);
        glib::translate::from_glib_full::<_, glib::Bytes>(part)
    };
    unaligned.set("data", part);
    read(vec![unaligned], |region| assert!(region.keypoints.is_none()));
}

#[test]
fn masks_that_do_not_fit_are_ignored() {
    init();
    let area = [2.0, 3.0, 12.0, 5.0];
    let bytes = read(vec![mask([10, 2], area, &[1, 2, 3, 4, 5])], |region| {
        region.mask.map(|mask| mask.bytes.to_vec())
    });
    assert_eq!(bytes.as_deref(), Some(&[1, 2, 3, 4][..]), "more than the rows need are ignored");
    for sides in [[0, 2], [10, 0], [-10, 2], [10, 3], [i32::MAX, i32::MAX]] {
        let params = vec![mask(sides, area, &[0; 4])];
        read(params, |region| assert!(region.mask.is_none(), "{sides:?}"));
    }
    for area in [[2.0, 3.0, 2.0, 5.0], [f64::NAN, 3.0, 12.0, 5.0], [2.0, 3.0, f64::INFINITY, 5.0]] {
        let params = vec![mask([10, 2], area, &[0; 4])];
        read(params, |region| assert!(region.mask.is_none(), "{area:?}"));
    }
}
