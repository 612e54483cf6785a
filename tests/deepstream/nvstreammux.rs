// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` behind NVIDIA's own new nvstreammux, with NVIDIA's libraries of metadata: the tests of
//! `inside::nvstreammux`, in a process with both.

use crate::kit::Kit;
use crate::libraries::{Libraries, nvidia_headers};

/// The variable with the path of the plugin file.
pub const PLUGIN: &str = "NMSFILTER_TEST_NVSTREAMMUX";

#[test]
fn sources_of_different_sizes() {
    let (Some(headers), Some(kit)) = (nvidia_headers(), Kit::get()) else { return };
    let plugin = kit.nvstreammux();
    let variables = [(PLUGIN, plugin.to_str().unwrap()), ("USE_NEW_NVSTREAMMUX", "yes")];
    Libraries::nvidias(&headers, &kit.libraries()).run("inside::nvstreammux::", &variables);
}
