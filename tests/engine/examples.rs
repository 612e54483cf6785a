// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the examples of the crate, which check their own results.

use crate::support::engines;

#[path = "../../core/examples/device_tensors.rs"]
mod device_tensors;
#[path = "../../core/examples/host_tensors.rs"]
mod host_tensors;

#[test]
fn host_tensors_finds_one_box_per_object() {
    host_tensors::main().unwrap();
}

#[test]
#[ignore = "needs a GPU"]
fn device_tensors_finds_one_box_per_object() {
    engines::require_gpu();
    device_tensors::main().unwrap();
}
