// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects on frames: as the stand-in reads them, and as the tests expect them.

use std::ffi::{CStr, c_char};

/// The structure `StandinObject` of standin.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawObject {
    component: i32,
    class: i32,
    id: u64,
    confidence: f32,
    tracker_confidence: f32,
    rect: [f32; 4],
    detector: [f32; 4],
    tracker: [f32; 4],
    rotation_angle: f32,
    border_width: u32,
    has_background: u32,
    border_color: [f64; 4],
    background: [f64; 4],
    has_color_info: i32,
    color_id: i32,
    text: *const c_char,
    text_at: [u32; 2],
    font: *const c_char,
    font_size: u32,
    text_has_background: i32,
    font_color: [f64; 4],
    text_background: [f64; 4],
    label: [c_char; 128],
    meta_type: i32,
    is_plain: i32,
    parent: i32,
    tensors: u32,
    mask: *const f32,
    mask_size: u32,
    mask_width: u32,
    mask_height: u32,
    mask_threshold: f32,
}

/// The mask of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mask {
    pub width: u32,
    pub height: u32,
    pub threshold: f32,
    /// Numbers of the mask, row by row.
    pub numbers: Vec<f32>,
}

/// An object on a frame. Boxes are left, top, width and height.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    pub component: i32,
    pub class: i32,
    pub id: u64,
    pub confidence: f32,
    pub tracker_confidence: f32,
    pub rect: [f32; 4],
    pub detector: [f32; 4],
    pub tracker: [f32; 4],
    pub rotation_angle: f32,
    pub border_width: u32,
    pub has_background: u32,
    pub border_color: [f64; 4],
    pub background: [f64; 4],
    pub has_color_info: i32,
    pub color_id: i32,
    pub text: Option<String>,
    pub text_at: [u32; 2],
    pub font: Option<String>,
    pub font_size: u32,
    pub text_has_background: i32,
    pub font_color: [f64; 4],
    pub text_background: [f64; 4],
    pub label: String,
    pub meta_type: i32,
    /// True if the object names its batch, and has no classifiers and no user metadata but tensors.
    pub is_plain: bool,
    /// The index of the object in which the object was found.
    pub parent: Option<usize>,
    /// The number of inference elements that attached tensors to the object.
    pub tensors: u32,
    pub mask: Option<Mask>,
}

impl Object {
    /// Converts the objects of a frame, of which the newest comes first, to the order in which they were added.
    pub fn all(raw: &[RawObject]) -> Vec<Self> {
        let last = raw.len().saturating_sub(1);
        let object = |raw: &RawObject| {
            let position = usize::try_from(raw.parent).ok();
            Self { parent: position.map(|position| last - position), ..Self::from(raw) }
        };
        raw.iter().rev().map(object).collect()
    }
}

impl From<&RawObject> for Object {
    fn from(raw: &RawObject) -> Self {
        let string = |text: *const c_char| {
            // SAFETY: a text is null, or a C string that lives as long as the object.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
        };
        let end = raw.label.iter().position(|&byte| byte == 0).expect("the label ends");
        let label = raw.label[..end].iter().map(|&byte| byte as u8).collect();
        Self {
            component: raw.component,
            class: raw.class,
            id: raw.id,
            confidence: raw.confidence,
            tracker_confidence: raw.tracker_confidence,
            rect: raw.rect,
            detector: raw.detector,
            tracker: raw.tracker,
            rotation_angle: raw.rotation_angle,
            border_width: raw.border_width,
            has_background: raw.has_background,
            border_color: raw.border_color,
            background: raw.background,
            has_color_info: raw.has_color_info,
            color_id: raw.color_id,
            text: string(raw.text),
            text_at: raw.text_at,
            font: string(raw.font),
            font_size: raw.font_size,
            text_has_background: raw.text_has_background,
            font_color: raw.font_color,
            text_background: raw.text_background,
            label: String::from_utf8(label).expect("the label is UTF-8"),
            meta_type: raw.meta_type,
            is_plain: raw.is_plain != 0,
            parent: None,
            tensors: raw.tensors,
            mask: (!raw.mask.is_null()).then(|| {
                assert_eq!(raw.mask_size, raw.mask_width * raw.mask_height * 4);
                let count = raw.mask_size as usize / 4;
                // SAFETY: the array has this many bytes, and lives as long as the object.
                let numbers = unsafe { std::slice::from_raw_parts(raw.mask, count) }.to_vec();
                let (width, height) = (raw.mask_width, raw.mask_height);
                Mask { width, height, threshold: raw.mask_threshold, numbers }
            }),
        }
    }
}

/// Returns an object with the fields that nvinfer sets.
pub fn object(unique_id: u32, class: i32, confidence: f32, rect: [f32; 4], label: &str) -> Object {
    const OBJ_META: i32 = 3;
    Object {
        component: unique_id as i32,
        class,
        id: u64::MAX,
        confidence,
        rect,
        detector: rect,
        border_width: 3,
        border_color: [1.0, 0.0, 0.0, 1.0],
        text: Some(label.to_owned()),
        text_at: [rect[0] as u32, (rect[1] - 10.0).max(0.0) as u32],
        font: Some("Serif".to_owned()),
        font_size: 11,
        font_color: [1.0; 4],
        text_has_background: 1,
        text_background: [0.0, 0.0, 0.0, 1.0],
        label: label.to_owned(),
        meta_type: OBJ_META,
        is_plain: true,
        ..Object::default()
    }
}
