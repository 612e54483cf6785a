// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kept cases and some new cases as a test.

use std::path::Path;

use fastrand::Rng;
use nmsfuzz::counts::Counts;
use nmsfuzz::seeds;

/// There is only one test, because panics and logs are recorded for the whole process.
#[test]
fn kept_and_random_cases_find_no_defect() {
    nmsfuzz::init(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let mut cases = seeds::load(&folder).unwrap();
    assert!(!cases.is_empty(), "{} has no cases", folder.display());
    let mut rng = Rng::with_seed(2020);
    let kept: Vec<Vec<u8>> = cases.iter().map(|(_, case)| case.clone()).collect();
    // The emulated GPU is slow, so it gets fewer cases, as in the tests of engines.
    let fewer = std::env::var("NMSFILTER_TEST_FEWER").map_or(1, |n| n.parse().unwrap());
    cases.extend((0..2000 / fewer).map(|_| ("random".to_owned(), seeds::make(&mut rng, &kept))));

    let mut counts = Counts::default();
    for (name, case) in cases {
        if let Err(failure) = nmsfuzz::run(&case, &mut counts) {
            panic!("{name}: {}: {}", seeds::to_hex(&case), failure.0);
        }
    }
    nmsfuzz::clean();
    let [frames, decoded] = ["filter: frames", "filter: decoded"].map(|name| counts.get(name));
    assert!(decoded * 4 > frames, "of {frames} frames only {decoded} are decoded");
    for name in
        ["engines: decoded", "engines: batches decoded", "overlay: pixels drawn", "replay: frames"]
    {
        assert!(counts.get(name) > 0, "{name} is 0:\n{counts}");
    }
}

#[test]
fn a_case_shrinks_to_what_makes_it_fail() {
    let case: Vec<u8> = (1..=200).collect();
    let shrunk = seeds::shrink(case, 1000, |case| case.contains(&77) && case.contains(&130));
    assert_eq!(shrunk, [77, 130]);
}

#[test]
fn a_case_is_read_as_it_was_written() {
    let case = [0, 1, 0xAB, 0xFF];
    assert_eq!(seeds::from_hex(&seeds::to_hex(&case)).unwrap(), case);
    assert_eq!(seeds::from_hex("0g"), None);
}
