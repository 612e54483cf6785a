// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of the model.

use std::ffi::c_char;
use std::num::NonZeroU32;

use gst::glib::translate::IntoGlibPtr;
use gstnmsfilter::input::model::{self, ModelInfo};
use gstnmsfilter::output::KeypointLayout;

use crate::Status;
use crate::border::{self, Failure, check_pointer, sized_struct};
use crate::gstreamer::init;
use crate::status::run;

/// How the frame was fitted into the model's input. All its rows and columns are scaled; with the aspect ratio, the shorter
/// side is rounded to the nearest pixel (Center; of two the even one) or down (TopLeft), and the border above or at the left is
/// rounded down.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Letterbox {
    /// Unknown: the element's property `letterbox` applies.
    Unknown = 0,
    /// Scaled to the size of the input, also if that changes its aspect ratio.
    None = 1,
    /// Scaled with its aspect ratio, in the center, with borders at both sides.
    Center = 2,
    /// Scaled with its aspect ratio, in the upper left corner, with a border at the right or the lower side.
    TopLeft = 3,
}

/// A description of a model. Set all bytes to 0, then `size` and the known fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Model {
    /// sizeof(NmsfilterGstModel).
    pub size: usize,
    /// The width of the model's input in pixels; 0 if it is unknown.
    pub width: u32,
    /// The height of the model's input.
    pub height: u32,
    /// An NmsfilterGstLetterbox.
    pub letterbox: u32,
    /// 1 if the model selects the detections itself, so that its output has a row for each of them; else 0.
    pub end2end: u32,
    /// The names of the classes, class 0 first; UTF-8. NULL is a class without a name.
    pub labels: *const *const c_char,
    /// The number of labels.
    pub label_count: usize,
    /// The task of the model, such as "detect" or "segment"; NULL if it is unknown.
    pub task: *const c_char,
    /// The number of keypoints of a detection; 0 if it is unknown, or if there are none.
    pub keypoint_count: u32,
    /// The number of components of a keypoint: 2 for x and y, 3 with a visibility.
    pub keypoint_components: u32,
    /// The meaning of the keypoints of every class: "coco-17", "face-5" or "points"; NULL if it is unknown.
    pub keypoint_layout: *const c_char,
    /// 1 if the detections need no suppression; else 0.
    pub suppressed: u32,
    /// The number of best pairs of box and class that are the detections of a frame, as of RT-DETR with sigmoid; 0 if a box
    /// has one class.
    pub queries: u32,
}

sized_struct!(Model, "NmsfilterGstModel", keypoint_components: u32);

/// Makes the caps that describe a model, for the field `model` of NmsfilterGstTensor. Make them once, and attach them with
/// the tensors of every frame. The caller owns the reference (gst_caps_unref).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_gst_model_caps(
    model: *const Model,
    caps: *mut *mut gst::ffi::GstCaps,
) -> Status {
    run(|| {
        init()?;
        check_pointer(caps, "caps")?;
        // SAFETY: the caller guarantees it.
        let info = unsafe { info(&border::read(model, "model")?) }?;
        let made = info.to_caps().map_err(Failure::argument)?;
        // SAFETY: `caps` is valid for writes.
        unsafe { *caps = made.into_glib_ptr() };
        Ok(())
    })
}

/// # Safety
/// The pointers in `model` are as the header requires.
unsafe fn info(model: &Model) -> Result<ModelInfo, Failure> {
    let mut info = ModelInfo::default();
    if (model.width, model.height) != (0, 0) {
        info.size = Some([model.width, model.height]);
    }
    info.letterbox = letterbox(model.letterbox)?;
    // SAFETY: the caller guarantees that there are as many pointers, to texts that end with a zero byte.
    let labels = unsafe { border::slice(model.labels, model.label_count, "model: labels") }?;
    let label = |&label: &*const c_char| {
        // SAFETY: as above.
        unsafe { border::text(label, "model: labels") }.map(|it| it.unwrap_or_default().to_owned())
    };
    info.labels = labels.iter().map(label).collect::<Result<_, _>>()?;
    // SAFETY: as above.
    info.task = unsafe { border::text(model.task, "model: task") }?.map(str::to_owned);
    let flag = |name: &str, number: u32| match number {
        0 | 1 => Ok(number == 1),
        other => Err(Failure::argument(format!("model: {name}: expected 0 or 1, got {other}"))),
    };
    info.end2end = flag("end2end", model.end2end)?;
    info.is_suppressed = flag("suppressed", model.suppressed)?;
    info.queries = NonZeroU32::new(model.queries);
    // SAFETY: as above.
    if let Some(name) = unsafe { border::text(model.keypoint_layout, "model: keypoint_layout") }? {
        info.keypoint_layout = Some(KeypointLayout::by_name(name).ok_or_else(|| {
            let names = KeypointLayout::ALL.map(KeypointLayout::name).join(", ");
            Failure::argument(format!(
                "model: keypoint_layout: expected one of {names}, got {name:?}"
            ))
        })?);
    }
    let keypoints = [model.keypoint_count, model.keypoint_components];
    info.keypoints = Some(keypoints).filter(|numbers| *numbers != [0, 0]);
    Ok(info)
}

fn letterbox(number: u32) -> Result<Option<model::Letterbox>, Failure> {
    const ALL: [(Letterbox, Option<model::Letterbox>); 4] = [
        (Letterbox::Unknown, None),
        (Letterbox::None, Some(model::Letterbox::None)),
        (Letterbox::Center, Some(model::Letterbox::Center)),
        (Letterbox::TopLeft, Some(model::Letterbox::TopLeft)),
    ];
    let found = ALL.into_iter().find(|(ours, _)| *ours as u32 == number);
    found.map(|(_, letterbox)| letterbox).ok_or_else(|| {
        Failure::argument(format!(
            "model: letterbox: expected an NmsfilterGstLetterbox, got {number}"
        ))
    })
}
