// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a frame takes.

use std::time::{Duration, Instant};

use super::camera::{Camera, Object, frame, square};

/// Prints the time of a frame with inference and of one with predicted objects, in milliseconds: the median of 51.
#[test]
#[ignore = "measures; run it with --release"]
fn cost_of_a_frame() {
    for algorithm in ["bytetrack", "ocsort", "sort"] {
        for count in [10, 100, 1000] {
            let mut camera = Camera::new(&format!("algorithm={algorithm}"));
            let mut times: [Vec<Duration>; 2] = Default::default();
            for step in 0..110_u32 {
                let inferred = step.is_multiple_of(2);
                // Rows of 40, which move to the right.
                let object = |index: u32| -> Object {
                    let left = f64::from(index % 40) * 14.0 + f64::from(step) * 0.5;
                    ("person", square(left, f64::from(index / 40) * 18.0, 12.0), 0.9)
                };
                let objects: Vec<Object> =
                    if inferred { (0..count).map(object).collect() } else { vec![] };
                let buffer = frame(u64::from(step) * 40, Some(inferred), &objects);
                let began = Instant::now();
                let tracked = camera.harness.push(buffer);
                times[usize::from(!inferred)].push(began.elapsed());
                tracked.unwrap();
                let tracked = super::camera::tracked(&camera.harness.pull().unwrap());
                let with_id = tracked.iter().filter(|it| it.id.is_some()).count();
                assert!(step < 8 || with_id == count as usize, "{step}: {with_id}");
            }
            let [update, predict] = times.map(|mut times| {
                times.drain(..4);
                times.sort_unstable();
                times[times.len() / 2].as_secs_f64() * 1e3
            });
            println!("{algorithm}, {count} objects: {update:.3} ms, predicted {predict:.3} ms");
        }
    }
}
