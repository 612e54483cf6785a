// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mark of frames that passed an inference element: whether the model ran on the frame.
//!
//! In: a frame, and whether the model ran on it. Out: the mark, for readers of the frame such as `detectionjson`.
//!
//! The mark is a `GstCustomMeta` named [`META_NAME`] (GStreamer 1.20). Its structure has the field `inferred`, a
//! boolean, and for a frame that had no region to run the model on, also `regions`, the int 0. A frame without a mark
//! has passed no element that writes marks, so nothing is known about it.
//!
//! The mark has no tags, because it does not depend on pixels: elements that convert, scale or turn the frame copy
//! it to the new frame.

use std::sync::OnceLock;

/// The name under which the metadata is registered.
pub const META_NAME: &str = "NmsFilterInference";

const FIELD: &str = "inferred";
const REGIONS: &str = "regions";

/// The metadata's API type. It is cached, because GStreamer's comparison by name allocates memory.
static API: OnceLock<gst::glib::Type> = OnceLock::new();

/// Registers the metadata with GStreamer. Further calls have no effect.
///
/// [`attach`] and [`is_inferred`] call this function.
pub fn register() {
    api();
}

fn api() -> gst::glib::Type {
    *API.get_or_init(|| {
        // Another copy of this crate in the process may have registered the metadata.
        if !gst::meta::CustomMeta::is_registered(META_NAME) {
            gst::meta::CustomMeta::register(META_NAME, &[]);
        }
        gst::glib::Type::from_name(format!("{META_NAME}-api"))
            .expect("the API type of custom metadata has this name")
    })
}

/// Marks `frame` as a frame on which a model ran, or did not run.
pub fn attach(frame: &mut gst::BufferRef, inferred: bool) {
    add(frame).mut_structure().set(FIELD, inferred);
}

/// Marks `frame` as inferred, although it had no region to run the model on, so that it has no tensors.
pub fn attach_without_regions(frame: &mut gst::BufferRef) {
    let mut mark = add(frame);
    let structure = mark.mut_structure();
    structure.set(FIELD, true);
    structure.set(REGIONS, 0i32);
}

/// Adds an empty mark.
fn add(
    frame: &mut gst::BufferRef,
) -> gst::MetaRefMut<'_, gst::meta::CustomMeta, gst::meta::Standalone> {
    register();
    gst::meta::CustomMeta::add(frame, META_NAME)
        .expect("the metadata is registered and the buffer writable")
}

/// Returns whether an element marked `frame` as a frame without a region to run a model on.
pub fn has_no_regions(frame: &gst::BufferRef) -> bool {
    marks(frame, |mark| mark.get::<i32>(REGIONS).ok()).any(|regions| regions == 0)
}

/// Returns whether a model ran on `frame`, or `None` if the frame has no mark. If several elements marked the frame,
/// one model is enough.
pub fn is_inferred(frame: &gst::BufferRef) -> Option<bool> {
    marks(frame, |mark| mark.get::<bool>(FIELD).ok()).reduce(|one, other| one || other)
}

/// Returns what `read` finds in the marks of `frame`.
fn marks<T>(
    frame: &gst::BufferRef,
    read: impl Fn(&gst::StructureRef) -> Option<T>,
) -> impl Iterator<Item = T> {
    let api = api();
    frame
        .iter_meta::<gst::Meta>()
        .filter(move |meta| meta.api() == api)
        .filter_map(move |meta| read(meta.try_as_custom_meta()?.structure()))
}
