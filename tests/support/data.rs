// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that tests read: fixtures, which are numbers in this repository, and inputs that are not
//! part of the project (pictures, videos, models, recorded tensors). `NMSFILTER_TEST_DATA` names
//! the folder of the latter, `../shared` where it is unset; tests skip themselves where one is
//! missing.

use std::path::PathBuf;

use super::skip::skip;

/// The path of a file in `tests/fixtures`, which must exist.
pub fn fixture(relative: &str) -> PathBuf {
    let path = crate::support::project::path("tests/fixtures").join(relative);
    assert!(path.is_file(), "the fixture {} is missing", path.display());
    path
}

/// The text of a fixture.
pub fn fixture_text(relative: &str) -> String {
    let path = fixture(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The path of a file that is not part of the project, or `None`, which is reported as a skip.
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

/// The paper's 2997 windows: left, top, side, score.
pub fn oscars() -> Vec<f32> {
    let windows: Vec<f32> = fixture_text("oscars/detections.txt")
        .lines()
        .flat_map(|line| line.split(','))
        .map(|number| number.trim().parse().expect("the file holds numbers"))
        .collect();
    assert_eq!(windows.len(), 2997 * 4);
    windows
}
