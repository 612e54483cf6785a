//! Settings that are set but not in force.

use gst::prelude::*;

use super::NmsFilter;
use super::error::FrameError;
use super::imp::CAT;
use super::settings::Settings;
use super::timeout::Timeout;
use crate::elements::property;

/// Settings that were set while frames are decoded with others. Properties that belong together
/// are set one after the other, so a set that cannot be used is given a second to become whole.
pub(super) struct PendingSettings {
    pub settings: Settings,
    /// Why they cannot be used; `None` before they are tried.
    error: Option<FrameError>,
    /// Since when settings have been wanted that cannot be used.
    rejected_since: Option<Timeout>,
    /// What the user was told last.
    last_warning: Option<String>,
}

impl PendingSettings {
    /// `settings`, which replace `previous` ones that are not in force, either.
    pub fn new(settings: Settings, previous: Option<Self>) -> Self {
        let (rejected_since, last_warning) =
            previous.map_or((None, None), |p| (p.rejected_since, p.last_warning));
        Self { settings, error: None, rejected_since, last_warning }
    }

    /// Whether they have been found not to be usable.
    pub fn is_rejected(&self) -> bool {
        self.error.is_some()
    }

    /// Notes why they cannot be used with the tensors of the buffer with this timestamp.
    pub fn reject(&mut self, element: &NmsFilter, error: FrameError, pts: Option<gst::ClockTime>) {
        if self.error.is_none() {
            gst::info!(CAT, obj = element, "new settings cannot be used yet: {error}");
        }
        self.error = Some(error);
        self.rejected_since.get_or_insert_with(|| Timeout::start(pts));
    }

    /// Warns once where they have not been usable for a second.
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

    /// Why they cannot be used, if they were tried.
    pub fn into_error(self) -> Option<FrameError> {
        self.error
    }
}
