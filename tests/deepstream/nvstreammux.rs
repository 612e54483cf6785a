// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` behind NVIDIA's own new nvstreammux, with NVIDIA's metadata libraries. Starts the
//! tests of `inside::nvstreammux` and `inside::cameras` in a process with both.

use crate::kit::Kit;
use crate::libraries::{Libraries, nvidia_headers};

/// Variable with the path of the plugin file.
pub const PLUGIN: &str = "NMSFILTER_TEST_NVSTREAMMUX";

#[test]
fn boxes_behind_nvstreammux_are_right() {
    let (Some(headers), Some(kit)) = (nvidia_headers(), Kit::get()) else { return };
    let plugin = kit.nvstreammux();
    let variables = [(PLUGIN, plugin.to_str().unwrap()), ("USE_NEW_NVSTREAMMUX", "yes")];
    let libraries = Libraries::with_nvidias_libraries(&headers, &kit.libraries());
    libraries.run("inside::nvstreammux::", &variables);
    libraries.run("inside::cameras::", &variables);
}
