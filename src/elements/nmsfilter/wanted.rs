//! Settings that are set but not in force.

use gst::prelude::*;

use super::NmsFilter;
use super::error::FrameError;
use super::imp::CAT;
use super::settings::Settings;
use super::wait::Wait;
use crate::elements::property;

/// Settings that were set while frames are decoded with others. Properties that belong together
/// are set one after the other, so a set that cannot be used is given a second to become whole.
pub(super) struct Wanted {
    pub settings: Settings,
    /// Why they cannot be used; `None` before they are tried.
    error: Option<FrameError>,
    /// Since when settings have been wanted that cannot be used.
    since: Option<Wait>,
    /// What the user was told last.
    told: Option<String>,
}

impl Wanted {
    /// `settings`, which replace `previous` ones that are not in force, either.
    pub fn new(settings: Settings, previous: Option<Self>) -> Self {
        let (since, told) = previous.map_or((None, None), |p| (p.since, p.told));
        Self { settings, error: None, since, told }
    }

    /// Whether they have been found not to be usable.
    pub fn is_tried(&self) -> bool {
        self.error.is_some()
    }

    /// Notes why they cannot be used with the tensors of the buffer with this timestamp.
    pub fn refuse(&mut self, element: &NmsFilter, error: FrameError, pts: Option<gst::ClockTime>) {
        if self.error.is_none() {
            gst::info!(CAT, obj = element, "new settings cannot be used yet: {error}");
        }
        self.error = Some(error);
        self.since.get_or_insert_with(|| Wait::from(pts));
    }

    /// Warns once where they have not been usable for a second.
    pub fn remind(&mut self, element: &NmsFilter, pts: Option<gst::ClockTime>) {
        let (Some(error), Some(since)) = (&self.error, self.since) else {
            return;
        };
        if !since.is_over(pts) {
            return;
        }
        self.since = Some(Wait::from(pts));
        let text = error.to_string();
        if self.told.as_ref() != Some(&text) {
            gst::element_warning!(
                element,
                gst::LibraryError::Settings,
                ("{text}; the settings from before the change stay in force"),
                ["{}", property::changed(element.upcast_ref())]
            );
            self.told = Some(text);
        }
    }

    /// Why they cannot be used, if they were tried.
    pub fn into_error(self) -> Option<FrameError> {
        self.error
    }
}
