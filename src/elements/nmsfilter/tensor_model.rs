// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model description of the stream's tensors.
//!
//! In: the caps that are attached to the tensors of each frame. Out: the [`ModelInfo`]; caps are read when they
//! change.

use crate::input::InputError;
use crate::input::model::ModelInfo;

/// The model of the latest tensors.
#[derive(Default)]
pub(super) struct TensorModel {
    /// The caps that were read. The reference keeps them from being changed or freed, so equal addresses mean
    /// equal caps.
    caps: Option<gst::Caps>,
    info: ModelInfo,
}

impl TensorModel {
    /// Takes the caps of a frame's tensors. Returns whether they differ from those before. Does not
    /// allocate if they do not.
    ///
    /// # Errors
    /// If they describe no model. The previous model stays.
    pub fn update(&mut self, caps: Option<&gst::Caps>) -> Result<bool, InputError> {
        let address = |caps: Option<&gst::Caps>| caps.map(|caps| caps.as_ptr());
        let known = self.caps.as_ref();
        if address(known) == address(caps) {
            return Ok(false);
        }
        let is_new = known != caps;
        if is_new {
            self.info =
                caps.map(|caps| ModelInfo::from_caps(caps)).transpose()?.unwrap_or_default();
        }
        // A reference, not a copy.
        self.caps = caps.cloned();
        Ok(is_new)
    }

    /// Returns true if these caps of a frame's tensors describe the model.
    #[cfg(feature = "v1_28")]
    pub fn is_described_by(&self, caps: Option<&gst::Caps>) -> bool {
        let address = |caps: Option<&gst::Caps>| caps.map(|caps| caps.as_ptr());
        address(self.caps.as_ref()) == address(caps) || self.caps.as_ref() == caps
    }

    /// The model description of the latest tensors.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }
}
