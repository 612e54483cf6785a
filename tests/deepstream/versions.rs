// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of `inside`, for each layout of DeepStream's structures; for each further version, the objects
//! on frames.

use crate::libraries::{Libraries, nvidia_headers, nvidia_libraries};

/// The filters for everything, and for the objects only.
const ALL: &str = "inside::";
const OBJECTS: &str = "inside::objects::";

macro_rules! versions {
    ($($name:ident: $version:literal $filter:ident,)+) => {
        $(
            #[test]
            fn $name() {
                Libraries::of($version).run($filter, &[]);
            }
        )+
    };
}

versions! {
    deepstream_6_0: 60 ALL,
    deepstream_6_1: 61 ALL,
    deepstream_6_2: 62 OBJECTS,
    deepstream_6_3: 63 OBJECTS,
    deepstream_6_4: 64 ALL,
    deepstream_7_0: 70 OBJECTS,
    deepstream_7_1: 71 OBJECTS,
    deepstream_8_0: 80 ALL,
    deepstream_9_0: 90 ALL,
    deepstream_9_1: 91 OBJECTS,
}

#[test]
fn deepstream_9_1_with_nvidias_headers() {
    if let Some(headers) = nvidia_headers() {
        Libraries::of_nvidia(&headers).run(ALL, &[]);
    }
}

#[test]
fn deepstream_9_1_with_nvidias_libraries() {
    let Some(libraries) = nvidia_libraries() else { return };
    let Some(headers) = nvidia_headers() else { return };
    Libraries::nvidias(&headers, &libraries).run(ALL, &[]);
}
