// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the classes of images.
//!
//! In: for each image of a frame, its classes, best first. Out: metadata of the object that the image is a picture of.
//!
//! A region of interest gets a structure `classification` for each class, the best first. It has the fields that the
//! elements of DL Streamer read. The classes of a further output, or of a further classifier, follow.
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `label_id`, `label` | int, string | the class |
//! | `confidence` | double | the score |
//! | `model_name` | string | the name of the element `nmsfilter`; DL Streamer's `gvametaconvert` needs one |
//! | `attribute_name` | string | the name of the tensor; missing if it has none |
//!
//! From GStreamer 1.24 on, all classes of an output are also a `GstAnalyticsClsMtd`, which is related
//! (`RELATE_TO`, in both directions) to the object. It has no field for the name of the tensor.
//!
//! An image without an object on the buffer (the whole frame, a tile, a region of a list) becomes a region of interest of
//! its own, with the best class as its label. It becomes an object of the analytics library, too, unless it is the
//! whole frame: as in GStreamer's `classifiertensordecoder`, its `GstAnalyticsClsMtd` has no object.

use std::ffi::CStr;
use std::ops::Range;

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;

use super::{DetailedRegions, Kinds, Labels, MaskBuffers, Region};
use crate::input::region::TensorRegion;
use crate::regions::{self, AttachedRegion};
use nmsfilter_core::decoder::classifier::ClassScore;
use nmsfilter_core::geometry::FrameRegion;

/// An image of which an output of a classifier has found the classes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifiedImage {
    /// The part of the frame that is the image; `None` for the whole frame.
    pub region: Option<TensorRegion>,
    /// The index of the classifier's output. The outputs of an image follow one another, from 0.
    pub output: usize,
    /// The range of its classes in [`DetailedRegions::classes`], best first.
    pub classes: Range<usize>,
}

/// Attaches the classes of all images of a frame. Images without a class change nothing.
///
/// # Errors
/// If GStreamer cannot add to the relation metadata.
pub(super) fn attach(
    buffer: &mut gst::BufferRef,
    frame: [u32; 2],
    images: DetailedRegions<'_>,
    labels: &mut Labels,
    kinds: Kinds,
) -> Result<(), glib::BoolError> {
    let mut object_of_image = None;
    for image in images.classified {
        if image.output == 0 {
            object_of_image = None;
        }
        let classes = &images.classes[image.classes.clone()];
        let Some(best) = classes.first() else { continue };
        let known =
            object_of_image.or_else(|| image.region.and_then(|it| Object::of(buffer, it, kinds)));
        let object = match known {
            Some(object) => object,
            None => {
                let best = ClassScore { class: labels.index(image.output, best.class), ..*best };
                Object::add(buffer, frame, image.region, best, labels, kinds)?
            }
        };
        object_of_image = Some(object);
        if let Some(index) = object.roi {
            let mut regions = buffer.iter_meta_mut::<VideoRegionOfInterestMeta>();
            let mut roi = regions.nth(index).expect("the buffer has this region");
            for &ClassScore { class, score } in classes {
                let name = labels.output_name(image.output).as_str();
                let classification = gst::Structure::builder("classification")
                    .field("label_id", class as i32)
                    .field("label", labels.quark_of_output(image.output, class).as_str())
                    .field("confidence", f64::from(score))
                    .field("model_name", &labels.model_name)
                    .field_if("attribute_name", name, !name.is_empty());
                roi.add_param(classification.build());
            }
        }
        if kinds.contains(Kinds::ANALYTICS) {
            super::analytics::add_classes(buffer, object.mtd, (image.output, classes), labels)?;
        }
    }
    Ok(())
}

/// Returns whether the object of the first of these images that has a class already has its best class, with the score and
/// the name of the tensor.
pub(super) fn is_attached(
    buffer: &gst::BufferRef,
    frame: [u32; 2],
    images: DetailedRegions<'_>,
    labels: &mut Labels,
) -> bool {
    let has_class = |image: &&ClassifiedImage| !image.classes.is_empty();
    let Some(image) = images.classified.iter().find(has_class) else { return false };
    let best = images.classes[image.classes.start];
    let name = labels.output_name(image.output).as_str();
    let is_best = |class: regions::AttachedClass<'_>| {
        class.class == i32::try_from(best.class).ok()
            && class.confidence == Some(best.score.into())
            && class.attribute.map_or(&b""[..], CStr::to_bytes) == name.as_bytes()
    };
    let pixels = image.region.map_or(FrameRegion::whole(frame), |region| region.pixels);
    let FrameRegion { left, top, width, height } = pixels;
    let parent = image.region.and_then(|region| region.parent);
    let is_object = |region: &AttachedRegion<'_>| match parent {
        Some(parent) => region.id == parent,
        None => region.rectangle == [left, top, width, height],
    };
    regions::iter(buffer).filter(is_object).any(|region| region.classes().any(is_best))
}

/// The object of an image on the buffer.
#[derive(Clone, Copy, Default)]
struct Object {
    /// The index of its region of interest.
    roi: Option<usize>,
    /// The id of its object in the relation metadata.
    mtd: Option<u32>,
}

impl Object {
    /// Finds the object with the id and, if several regions have this id, with the pixels that come nearest. `None` if
    /// the buffer has no such object of these kinds.
    fn of(buffer: &gst::BufferRef, region: TensorRegion, kinds: Kinds) -> Option<Self> {
        let parent = region.parent?;
        let nearest = regions::iter(buffer)
            .enumerate()
            .filter(|(_, attached)| attached.id == parent)
            .min_by_key(|(_, attached)| distance(attached, region.pixels));
        let object = Self {
            roi: nearest.map(|(index, _)| index).filter(|_| kinds.contains(Kinds::ROI)),
            mtd: super::analytics::object_of(buffer, parent, nearest.as_ref().map(|(_, roi)| roi))
                .filter(|_| kinds.contains(Kinds::ANALYTICS)),
        };
        (object.roi.is_some() || object.mtd.is_some()).then_some(object)
    }

    /// Adds a region of interest, and an object unless it is the whole frame. The class is its number in the row of the
    /// classes of all outputs.
    fn add(
        buffer: &mut gst::BufferRef,
        frame: [u32; 2],
        region: Option<TensorRegion>,
        best: ClassScore,
        labels: &mut Labels,
        kinds: Kinds,
    ) -> Result<Self, glib::BoolError> {
        let pixels = region.map_or(FrameRegion::whole(frame), |region| region.pixels);
        let [x1, y1] = pixels.origin().map(|edge| edge as f32);
        let [width, height] = pixels.size().map(|side| side as f32);
        let added = Region {
            x1,
            y1,
            x2: x1 + width,
            y2: y1 + height,
            confidence: best.score,
            class: best.class,
            parent: region.and_then(|region| region.parent),
        };
        let kinds = if region.is_some() { kinds } else { kinds - Kinds::ANALYTICS };
        let added = DetailedRegions::from(std::slice::from_ref(&added));
        let first = super::analytics::next_id(buffer);
        super::attach(buffer, frame, added, labels, &mut MaskBuffers::default(), kinds)?;
        Ok(Self {
            roi: kinds.contains(Kinds::ROI).then(|| regions::count(buffer) - 1),
            mtd: kinds.contains(Kinds::ANALYTICS).then_some(first),
        })
    }
}

/// The sum of the distances between the edges of both, in pixels.
fn distance(attached: &AttachedRegion<'_>, pixels: FrameRegion) -> u64 {
    let edges = |[x, y, w, h]: [u32; 4]| {
        let [x, y, w, h] = [x, y, w, h].map(u64::from);
        [x, y, x + w, y + h]
    };
    let FrameRegion { left, top, width, height } = pixels;
    let (a, b) = (edges(attached.rectangle), edges([left, top, width, height]));
    a.iter().zip(b).map(|(a, b)| a.abs_diff(b)).sum()
}
