// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subclass of `nmsfilter`.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::{consume, groups};
use crate::elements::nmsfilter::{NmsFilter, NmsFilterImpl};
use crate::elements::{any_video, pad_templates};

/// The instance data of the element, which is empty.
#[derive(Default)]
pub struct NmsTensorDec;

#[glib::object_subclass]
impl ObjectSubclass for NmsTensorDec {
    const NAME: &'static str = "GstNmsTensorDec";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::NmsTensorDec;
    type ParentType = NmsFilter;
}

impl ObjectImpl for NmsTensorDec {
    fn constructed(&self) {
        self.parent_constructed();
        // The base class also accepts caps that merely intersect with the template. Caps without tensors do, and
        // must be refused.
        let sink = self.obj().static_pad("sink").expect("the base class has it");
        sink.unset_pad_flags(gst::PadFlags::ACCEPT_INTERSECT);
    }
}

impl GstObjectImpl for NmsTensorDec {}

impl ElementImpl for NmsTensorDec {
    crate::element_metadata!(
        "Non-maximum suppression tensor decoder",
        "Tensordecoder/Video",
        "nmsfilter for tensordecodebin, which selects the element by the tensors in the caps: decodes \
                 detector tensors, suppresses duplicate detections, attaches the survivors, and removes the tensors"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let sink = groups::sink_caps().expect("without them the element is not registered");
            pad_templates(sink, &any_video())
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for NmsTensorDec {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let result = self.parent_transform_ip(buffer)?;
        consume::consume(buffer);
        Ok(result)
    }
}

impl NmsFilterImpl for NmsTensorDec {}
