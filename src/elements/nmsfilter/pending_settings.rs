// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings that are set while the element runs but not in force yet.
//!
//! In: new settings, and the error if no plan can be made with them. Out: a warning if they stay
//! invalid for one second.

use gst::prelude::*;

use super::NmsFilter;
use super::debug_category::CAT;
use super::error::FrameError;
use super::settings::Settings;
use super::timeout::Timeout;
use crate::elements::property;

/// Settings that were set while frames are decoded with others. An application sets properties one
/// after the other, so settings that are invalid in between are tolerated for a second.
pub(super) struct PendingSettings {
    pub settings: Settings,
    /// The reason why no plan can be made with them; `None` before the first attempt.
    error: Option<FrameError>,
    /// Starts when the pending settings are first invalid, and after each warning.
    rejected_since: Option<Timeout>,
    /// The text of the last warning.
    last_warning: Option<String>,
}

impl PendingSettings {
    /// Creates pending settings, which replace `previous`.
    pub fn new(settings: Settings, previous: Option<Self>) -> Self {
        let (rejected_since, last_warning) =
            previous.map_or((None, None), |p| (p.rejected_since, p.last_warning));
        Self { settings, error: None, rejected_since, last_warning }
    }

    /// Returns true if making a plan with them has failed.
    pub fn is_rejected(&self) -> bool {
        self.error.is_some()
    }

    /// Stores the reason why no plan can be made with them for the buffer with this timestamp.
    pub fn reject(&mut self, element: &NmsFilter, error: FrameError, pts: Option<gst::ClockTime>) {
        if self.error.is_none() {
            gst::info!(CAT, obj = element, "new settings cannot be used yet: {error}");
        }
        self.error = Some(error);
        self.rejected_since.get_or_insert_with(|| Timeout::start(pts));
    }

    /// Posts a warning after they have been invalid for a second, once per text.
    pub fn warn_if_unusable(&mut self, element: &NmsFilter, pts: Option<gst::ClockTime>) {
        let (Some(error), Some(rejected_since)) = (&self.error, self.rejected_since) else {
            return;
        };
        if !rejected_since.has_expired(pts) {
            return;
        }
        self.rejected_since = Some(Timeout::start(pts));
        let text = error.to_string();
        if self.last_warning.as_ref() != Some(&text) {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("{text}; the settings from before the change stay in force"),
                ["{}", property::non_default(element.upcast_ref())]
            );
            self.last_warning = Some(text);
        }
    }

    /// Returns the reason why no plan can be made with them, if an attempt was made.
    pub fn into_error(self) -> Option<FrameError> {
        self.error
    }
}
