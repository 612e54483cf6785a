// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element as GStreamer sees it: its properties, metadata and pads. In: values of properties. Out: settings, `stats`.

use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

use super::CAT;
use super::session::Session;
use super::settings::Settings;
use super::stats::Stats;
use crate::elements::property::{self, Kind, Properties, Text};
use crate::elements::{any_video, lock, pad_templates};
use crate::input::analytics_batch;
use nmsfilter_core::engine::{Params, Scalar, ScalarKind};

/// The instance data of the element.
#[derive(Default)]
pub struct NmsFilter {
    pub(super) settings: Mutex<Arc<Settings>>,
    /// `None` before start, after stop, and while `transform_ip` processes a frame.
    pub(super) session: Mutex<Option<Session>>,
    pub(super) stats: Mutex<Stats>,
}

#[glib::object_subclass]
impl ObjectSubclass for NmsFilter {
    const NAME: &'static str = "GstNmsFilter";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::NmsFilter;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for NmsFilter {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let stats = property::stats(
                "Since the element started: frames, frames-without-tensors, frames-lost (their \
                 tensors were in the memory of a GPU that failed), candidates, survivors (of a \
                 classifier: images and their classes), \
                 labels (of survivors, the most frequent first, at most 100) and label-counts, \
                 rejected (anchors whose numbers are no box, or whose box is outside the \
                 frame; with multi-label, pairs of anchor and class; of a classifier, images whose \
                 scores are not finite), engine (of the last \
                 frame), bytes-uploaded and bytes-downloaded (to and from the GPU), \
                 column-bytes-downloaded and mask-bytes-downloaded (the parts of \
                 bytes-downloaded that are keypoints and coefficients, and masks), launches \
                 (on the GPU), rounds (sum of the dependency depths there), device-time-mean \
                 (ns per launch, by the GPU's clock), time-mean, time-p50 and time-p99 (ns per \
                 buffer, which can be a batch of frames)",
            );
            Settings::specs().chain(scalar_specs()).chain([stats]).collect()
        });
        &PROPERTIES
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        if spec.name() == "stats" {
            return lock(&self.stats).structure().to_value();
        }
        let settings = lock(&self.settings);
        let value = settings.value(spec.name());
        value.unwrap_or_else(|| scalar_value(&settings.scalars, find(spec.name())))
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        if property::accepts(*CAT, self.obj().upcast_ref(), value, spec) {
            let mut settings = lock(&self.settings);
            let settings = Arc::make_mut(&mut settings);
            if !settings.set_value(spec.name(), value) {
                set_scalar(&mut settings.scalars, find(spec.name()), value);
            }
            settings.was_set.insert(spec.name());
        }
    }
}

impl GstObjectImpl for NmsFilter {}

impl ElementImpl for NmsFilter {
    crate::element_metadata!(
        "Non-maximum suppression filter",
        "Filter/Analyzer/Video",
        "Decodes detector tensors on video buffers, suppresses duplicate detections and \
                 attaches the survivors as regions of interest; attaches the classes of classifiers to them"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let mut caps = any_video();
            caps.merge(analytics_batch::any_batch());
            pad_templates(&caps, &caps)
        });
        &TEMPLATES
    }
}

/// The properties of the core's table, with the element's defaults.
fn scalar_specs() -> impl Iterator<Item = glib::ParamSpec> {
    let defaults = Settings::default().scalars;
    Params::SCALARS.iter().map(move |scalar| {
        let (name, text) = (&property::name(scalar.name), Text::playing(scalar.title, scalar.text));
        match scalar.kind {
            ScalarKind::Flag(flag) => (flag.get)(&defaults).spec(name, text, None),
            ScalarKind::Count(count) => ((count.get)(&defaults) as u32).spec(name, text, None),
            ScalarKind::Number(field, [minimum, maximum]) => {
                (field.get)(&defaults).spec(name, text, Some(minimum..=maximum))
            }
        }
    })
}

fn find(property: &str) -> &'static Scalar {
    let mut scalars = Params::SCALARS.iter();
    scalars.find(|scalar| property::name(scalar.name) == property).expect("GObject knows it")
}

fn scalar_value(params: &Params, scalar: &Scalar) -> glib::Value {
    match scalar.kind {
        ScalarKind::Flag(flag) => (flag.get)(params).to_value(),
        ScalarKind::Count(count) => ((count.get)(params) as u32).to_value(),
        ScalarKind::Number(field, _) => (field.get)(params).to_value(),
    }
}

/// Sets a parameter to a value of its property's type.
fn set_scalar(params: &mut Params, scalar: &Scalar, value: &glib::Value) {
    const TYPE: &str = "GObject passes values of the property's type";
    match scalar.kind {
        ScalarKind::Flag(flag) => (flag.set)(params, value.get().expect(TYPE)),
        ScalarKind::Count(count) => {
            (count.set)(params, value.get::<u32>().expect(TYPE) as usize);
        }
        ScalarKind::Number(field, _) => (field.set)(params, value.get().expect(TYPE)),
    }
}
