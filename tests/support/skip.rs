// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports tests that cannot run in this environment, in a form that `tests/run.sh` reads.

/// Reports that the calling test, or a part of it, did not run because `what` is missing.
///
/// `tests/run.sh` counts such a test as skipped. In CI, it must be listed in `tests/skips`.
pub fn skip(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main");
    // Standard error would be wrong: the test harness shows only the standard output of tests that
    // pass.
    println!("SKIPPED: {}::{test}: {what}", env!("CARGO_CRATE_NAME"));
}
