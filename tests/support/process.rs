// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the memory of the test program.

/// Returns the resident memory in KiB.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4
}
