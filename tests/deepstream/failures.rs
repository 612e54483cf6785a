// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versions and libraries that cannot be used, and memory use over many batches. Each test runs a
//! test of `inside::alone` in a separate process.

use crate::libraries::{Libraries, nvidia_headers, nvidia_libraries};
use crate::support::engines;

/// The version that `nvds_version` reports.
const REPORTED: &str = "STANDIN_VERSION";

#[test]
fn an_unknown_version_is_decoded_only_if_its_sizes_are_known() {
    for (version, reported) in [(60, "5.1"), (80, "8.1"), (91, "9.2"), (91, "10.0")] {
        let filter = "inside::alone::an_unknown_version";
        let count = Libraries::for_version(version).run(filter, &[(REPORTED, reported)]);
        assert_eq!(count, 2);
    }
}

#[test]
fn the_version_of_the_property_replaces_the_reported_one() {
    for (version, reported) in [(60, "5.1"), (71, "9.1"), (91, "9.2")] {
        let filter = "inside::alone::a_stream_is_decoded_with_the_version_of_the_property";
        Libraries::for_version(version).run(filter, &[(REPORTED, reported)]);
    }
}

#[test]
fn missing_libraries_are_an_error() {
    Libraries::with_other_names(71).run("inside::alone::a_missing_library_is_an_error", &[]);
}

#[test]
fn missing_functions_are_an_error() {
    for function in [
        "nvds_add_obj_meta_to_frame",
        "gst_buffer_get_nvds_batch_meta",
        "nvds_remove_user_meta_from_object",
    ] {
        let libraries = Libraries::without(80, function);
        libraries
            .run("inside::alone::a_missing_function_is_an_error", &[("STANDIN_WITHOUT", function)]);
    }
    for version in [71, 91] {
        Libraries::without(version, "nvds_version")
            .run("inside::alone::a_library_without_a_version_asks_for_the_property", &[]);
    }
}

#[test]
fn many_batches_need_no_more_memory() {
    for version in [60, 91] {
        Libraries::for_version(version)
            .run("inside::alone::memory_does_not_grow_with_the_number_of_batches", &[]);
    }
}

#[test]
fn many_batches_of_nvidias_libraries_need_no_more_memory() {
    let Some(libraries) = nvidia_libraries() else { return };
    let Some(headers) = nvidia_headers() else { return };
    // NVIDIA's libraries need fewer batches: the element frees its memory alike with both.
    let fewer = [("NMSFILTER_TEST_BATCHES", if engines::on_gpu() { "100" } else { "10000" })];
    Libraries::with_nvidias_libraries(&headers, &libraries)
        .run("inside::alone::memory_does_not_grow_with_the_number_of_batches", &fewer);
}
