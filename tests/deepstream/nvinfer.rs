// SPDX-License-Identifier: MIT OR Apache-2.0
//! `nmsfilter` behind NVIDIA's own nvstreammux and nvinfer. An engine that returns recorded outputs
//! replaces TensorRT's. Starts the tests of `inside::nvinfer` and
//! `inside::nvinfer_objects` in a process with all of these.
//!
//! Without a GPU, nvinfer runs in host memory (`tests/nvidia/host`).

use crate::kit::{self, Kit};
use crate::libraries::{Libraries, nvidia_headers};
use crate::support::engines;
use crate::support::skip::skip;

#[test]
fn outputs_of_nvinfer_become_objects() {
    let (Some(headers), Some(kit)) = (nvidia_headers(), Kit::get()) else { return };
    if engines::on_gpu() && kit.is_on_host() {
        return skip(
            "nvinfer on the host's memory, with a GPU or the emulated one; tests/gpu/run.sh has a step for it",
        );
    }
    let folder = kit.folder().to_str().unwrap();
    let variables = [
        (kit::FOLDER, folder),
        ("LD_LIBRARY_PATH", &format!("{folder}/host:{folder}/lib")),
        ("USE_NEW_NVSTREAMMUX", "yes"),
    ];
    Libraries::with_nvidias_libraries(&headers, &kit.libraries())
        .run("inside::nvinfer", &variables);
}
