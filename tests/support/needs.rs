// SPDX-License-Identifier: MIT OR Apache-2.0
//! Skips tests that need a newer GStreamer.

/// Returns from the calling test, and says why, if the running GStreamer does not have this field of
/// [`gst_newer::Capabilities`]. Such tests run in the roots with newer versions. An element that a plugin of another
/// project has can be named, too.
#[allow(unused_macros, reason = "each test program uses some of it")]
macro_rules! needs {
    ($field:ident $(, $element:literal)?) => {
        gst::init().unwrap();
        if let Err(missing) = gst_newer::Capabilities::get().$field {
            println!("BY VERSION: {missing}");
            return;
        }
        $(
            $crate::support::pipeline::init();
            if gst::ElementFactory::find($element).is_none() {
                $crate::support::skip::skip($element);
                return;
            }
        )?
    };
}
#[allow(unused_imports, reason = "as above")]
pub(crate) use needs;
