// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tensors of the stream say of their model.
//!
//! In: the caps that are attached to the tensors of each frame, or what DeepStream's metadata says. Out: the
//! [`ModelInfo`]; caps are read when they change.

use crate::input::InputError;
use crate::input::model::{Letterbox, ModelInfo};

/// The model of the latest tensors.
#[derive(Default)]
pub(super) struct TensorModel {
    /// The caps that were read. The reference keeps them from being changed or freed, so equal addresses mean
    /// equal caps.
    caps: Option<gst::Caps>,
    info: ModelInfo,
    /// Whether the letterbox of `info` is an assumption.
    letterbox_is_assumed: bool,
}

impl TensorModel {
    /// Takes the caps of a frame's tensors. Returns whether they say something else than before. Does not
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
            self.letterbox_is_assumed = false;
        }
        // A reference, not a copy.
        self.caps = caps.cloned();
        Ok(is_new)
    }

    /// Takes what DeepStream's tensors say of their model, and whether its letterbox is an assumption. Returns
    /// whether they say something else than before.
    pub fn set(&mut self, info: ModelInfo, letterbox_is_assumed: bool) -> bool {
        self.caps = None;
        self.letterbox_is_assumed = letterbox_is_assumed;
        let is_new = self.info != info;
        self.info = info;
        is_new
    }

    /// The letterbox of the tensors, unless it is an assumption.
    pub fn known_letterbox(&self) -> Option<Letterbox> {
        self.info.letterbox.filter(|_| !self.letterbox_is_assumed)
    }

    /// What the tensors say.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }
}
