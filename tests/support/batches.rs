// SPDX-License-Identifier: MIT OR Apache-2.0
//! The elements that make batches of several streams, and streams of batches.

use std::sync::Once;

use super::pipeline;

/// Initializes like [`pipeline::init`], and registers `analyticscombiner` and `analyticssplitter`, once.
pub fn init() {
    static INIT: Once = Once::new();
    pipeline::init();
    INIT.call_once(|| gstrsanalytics::plugin_register_static().unwrap());
}
