// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that cannot run in this environment, in a form that `tests/run.sh` reads.

/// Reports that the calling test, or a part of it, was not run because `what` is missing.
///
/// `tests/run.sh` counts such a test as skipped; under CI it must be listed in `tests/skips`.
pub fn skip(what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main");
    // Not to standard error: the test harness shows what a passed test prints to standard output.
    println!("SKIPPED: {}::{test}: {what}", env!("CARGO_CRATE_NAME"));
}
