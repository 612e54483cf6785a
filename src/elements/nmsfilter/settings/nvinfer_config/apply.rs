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
        let all = &self.all;
        if let Some(threshold) = all.score_threshold().filter(|_| !is_set("score-threshold")) {
            settings.scalars.thresholds.default = threshold;
        }
        if let Some(threshold) = all.iou_threshold.filter(|_| !is_set("iou-threshold")) {
            settings.scalars.iou_threshold = threshold;
        }
        if self.suppresses_nothing && !is_set("method") {
            settings.method = Method::None;
        }
        if self.is_end_to_end && !is_set("decoder") {
            settings.decoder = Decoder::End2end;
        }
        if let Some(classes) = self.num_classes.filter(|_| !is_set("num-classes")) {
            settings.num_classes = classes;
        }
        if let Some([keeps, is_symmetric]) = self.keeps_aspect.filter(|_| !is_set("letterbox")) {
            settings.letterbox = match (keeps, is_symmetric) {
                (false, _) => NmsFilterLetterbox::None,
                (true, false) => NmsFilterLetterbox::TopLeft,
                (true, true) => NmsFilterLetterbox::Center,
            };
        }
        if let Some(id) = self.unique_id.filter(|_| !is_set("unique-id")) {
            settings.unique_id = id;
        }
        settings
    }
}
