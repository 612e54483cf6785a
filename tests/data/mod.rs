//! Real inputs, which are not part of the project: `NMSFILTER_TEST_DATA` names their folder,
//! `../shared` where it is unset. Tests that need one which is not there say so and pass.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::path::{Path, PathBuf};

/// The path of a file among the real inputs, or `None` (said on the terminal) where it is missing.
pub fn path(relative: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = folder.join(relative);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there; set NMSFILTER_TEST_DATA", path.display());
    None
}

/// The paper's 2997 windows: left, top, side, score.
pub fn oscars() -> Option<Vec<f32>> {
    let text = std::fs::read_to_string(path("data/oscars/detections.txt")?).unwrap();
    let windows: Vec<f32> = text
        .lines()
        .flat_map(|line| line.split(','))
        .map(|number| number.trim().parse().expect("the file holds numbers"))
        .collect();
    assert_eq!(windows.len(), 2997 * 4);
    Some(windows)
}
