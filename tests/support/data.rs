// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that tests read: fixtures, which are numbers in this repository, and inputs that are not
//! part of the project (pictures, videos, models, recorded tensors). The variable
//! `NMSFILTER_TEST_DATA` names the folder of the inputs; the default is `../shared`. Tests skip
//! themselves if an input is missing.

use std::path::PathBuf;

use super::skip::skip;

/// Returns the path of a file in `tests/fixtures`, which must exist.
pub fn fixture(relative: &str) -> PathBuf {
    let path = crate::support::project::path("tests/fixtures").join(relative);
    assert!(path.is_file(), "the fixture {} is missing", path.display());
    path
}

/// Returns the text of a fixture.
pub fn fixture_text(relative: &str) -> String {
    let path = fixture(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the path of an input. If it is missing, returns `None` and reports a skip.
pub fn path(relative: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_TEST_DATA")
        .map_or_else(|| crate::support::project::path("../shared"), PathBuf::from);
    let path = folder.join(relative);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("{relative} in the folder NMSFILTER_TEST_DATA"));
    None
}

/// Returns the paper's 2997 windows: left, top, side, score.
pub fn oscars() -> Vec<f32> {
    let windows: Vec<f32> = fixture_text("oscars/detections.txt")
        .lines()
        .flat_map(|line| line.split(','))
        .map(|number| number.trim().parse().expect("the file holds numbers"))
        .collect();
    assert_eq!(windows.len(), 2997 * 4);
    windows
}
