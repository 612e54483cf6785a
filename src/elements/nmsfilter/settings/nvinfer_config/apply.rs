// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a configuration of nvinfer to the element's settings.
//!
//! In: the values of the element's properties, the names of those that were set, and a configuration. Out: the settings.
//! A value comes from the property if it was set, else from the configuration, else from the property's default.

use std::sync::Arc;

use super::NvinferConfig;
use super::attributes::Attributes;
use crate::deepstream::ObjectColors;
use crate::elements::nmsfilter::enums::{Decoder, Method, NmsFilterLetterbox};
use crate::elements::nmsfilter::settings::Settings;

impl NvinferConfig {
    /// The colors of objects of a class.
    pub fn colors(&self, class: u32) -> ObjectColors {
        let Attributes { border, background, .. } = self.of(class as usize);
        ObjectColors { border: border.unwrap_or(ObjectColors::default().border), background }
    }

    /// Returns the properties' values combined with the configuration's values.
    pub fn apply(self: &Arc<Self>, properties: &Settings) -> Settings {
        let mut settings = Settings { nvinfer: Some(self.clone()), ..properties.clone() };
        let is_set = |name| properties.was_set.contains(name);
        let scalars = &mut settings.scalars;
        let (score, iou) = (self.all.score_threshold(), self.all.iou_threshold);
        fill(&mut scalars.thresholds.default, score, is_set("score-threshold"));
        fill(&mut scalars.iou_threshold, iou, is_set("iou-threshold"));
        let method = self.suppresses_nothing.then_some(Method::None);
        fill(&mut settings.method, method, is_set("method"));
        let decoder = self.is_end_to_end.then_some(Decoder::End2end);
        fill(&mut settings.decoder, decoder, is_set("decoder"));
        fill(&mut settings.num_classes, self.num_classes, is_set("num-classes"));
        let letterbox =
            self.keeps_aspect.map(|[keeps, is_symmetric]| match (keeps, is_symmetric) {
                (false, _) => NmsFilterLetterbox::None,
                (true, false) => NmsFilterLetterbox::TopLeft,
                (true, true) => NmsFilterLetterbox::Center,
            });
        fill(&mut settings.letterbox, letterbox, is_set("letterbox"));
        fill(&mut settings.unique_id, self.unique_id, is_set("unique-id"));
        settings
    }
}

/// Replaces the value of a property that was not set by the configuration's, if it has one.
fn fill<T>(property: &mut T, configured: Option<T>, is_set: bool) {
    if let Some(value) = configured.filter(|_| !is_set) {
        *property = value;
    }
}
