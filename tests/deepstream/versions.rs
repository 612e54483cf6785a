// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the tests of `inside`: all of them for the last version and with NVIDIA's own libraries;
//! for each layout of DeepStream's structures, the tests that depend on the layout; for each
//! further version, the tests of objects on frames.

use crate::libraries::{Libraries, nvidia_headers, nvidia_libraries};

/// All tests.
const ALL: &str = "inside::";
/// Tests that compare the version, or access fields whose offsets differ between versions.
const LAYOUT: &str = "inside::objects:: inside::secondary:: inside::regions:: inside::details:: inside::json:: inside::letterbox:: inside::structures:: \
                      inside::surfaces:: inside::errors::tensors_only_on_objects_or_regions_give_a_warning \
                      inside::memory::host_pointers inside::device::the_cpu_never_reads_stale_host_memory";
/// Tests of objects, and of the memory that is read, which differs even between versions that share
/// a layout.
const OBJECTS: &str =
    "inside::objects:: inside::secondary:: inside::regions:: inside::memory::host_pointers";

macro_rules! versions {
    ($($name:ident: $version:literal $filter:ident,)+) => {
        $(
            #[test]
            fn $name() {
                Libraries::for_version($version).run($filter, &[]);
            }
        )+
    };
}

versions! {
    deepstream_6_0: 60 LAYOUT,
    deepstream_6_1: 61 LAYOUT,
    deepstream_6_2: 62 OBJECTS,
    deepstream_6_3: 63 OBJECTS,
    deepstream_6_4: 64 OBJECTS,
    deepstream_7_0: 70 OBJECTS,
    deepstream_7_1: 71 LAYOUT,
    deepstream_8_0: 80 LAYOUT,
    deepstream_9_0: 90 OBJECTS,
    deepstream_9_1: 91 ALL,
}

#[test]
fn deepstream_9_1_with_nvidias_headers() {
    if let Some(headers) = nvidia_headers() {
        Libraries::with_nvidias_headers(&headers).run(LAYOUT, &[]);
    }
}

#[test]
fn deepstream_9_1_with_nvidias_libraries() {
    let Some(libraries) = nvidia_libraries() else { return };
    let Some(headers) = nvidia_headers() else { return };
    Libraries::with_nvidias_libraries(&headers, &libraries).run(ALL, &[]);
}
