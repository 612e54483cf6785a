// SPDX-License-Identifier: MIT OR Apache-2.0
//! When tracks end: what begins a stream anew, and how long a track is kept.

use gst::prelude::*;

use super::camera::{Camera, Object, square};

fn person(left: f64) -> Object {
    ("person", square(left, 100.0, 80.0), 0.9)
}

/// Pushes a frame, what `between` does, and the frame again 40 ms later. Returns if the object kept its id.
fn keeps_id(between: impl FnOnce(&mut Camera)) -> bool {
    let mut camera = Camera::new("");
    let first = camera.ids(0, &[person(100.0)]);
    assert_eq!(camera.ids(40, &[person(100.0)]), first);
    between(&mut camera);
    let next = camera.ids(80, &[person(100.0)]);
    assert_eq!(next.len(), 1);
    assert!(next[0] >= first[0], "ids only grow");
    next == first
}

#[test]
fn events_that_end_a_stream_begin_anew() {
    let segment = |start| {
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_base(gst::ClockTime::from_seconds(start));
        gst::event::Segment::new(&segment)
    };
    assert!(keeps_id(|_| {}));
    assert!(keeps_id(|camera| assert!(camera.harness.push_event(segment(0)))), "it is repeated");
    assert!(!keeps_id(|camera| assert!(camera.harness.push_event(segment(5)))));
    assert!(!keeps_id(|camera| {
        assert!(camera.harness.push_event(gst::event::FlushStart::new()));
        assert!(camera.harness.push_event(gst::event::FlushStop::new(true)));
        assert!(camera.harness.push_event(segment(0)));
    }));
    assert!(!keeps_id(|camera| {
        assert!(camera.harness.push_event(gst::event::StreamStart::new("other")));
    }));
    assert!(!keeps_id(|camera| {
        let caps = "video/x-raw,format=GRAY8,framerate=25/1,width=320,height=480";
        camera.harness.set_src_caps_str(caps);
    }));
    assert!(!keeps_id(|camera| {
        let element = camera.harness.element().unwrap();
        element.set_state(gst::State::Ready).unwrap();
        element.set_state(gst::State::Playing).unwrap();
        camera
            .harness
            .set_src_caps_str("video/x-raw,format=GRAY8,framerate=25/1,width=640,height=480");
        assert!(camera.harness.push_event(segment(0)));
    }));
}

#[test]
fn gaps_and_jumps_back_in_time_begin_anew() {
    for (times, keeps) in [
        ([0, 40, 80], true),
        ([0, 40, 1000], true),
        ([0, 40, 1200], false),
        ([5000, 5040, 4000], false),
        // Frames every two seconds.
        ([0, 2000, 4000], true),
        ([0, 2000, 9000], false),
    ] {
        let mut camera = Camera::new("");
        let ids = times.map(|time| camera.ids(time, &[person(100.0)]));
        assert_eq!(ids[0], ids[1], "{times:?}");
        assert_eq!(ids[1] == ids[2], keeps, "{times:?}");
    }
}

#[test]
fn the_age_is_a_time() {
    // (properties, frames per second of inference, missing frames, whether the id is kept)
    for (properties, step, missing, keeps) in [
        // The default of one second, and one frame that the library adds.
        ("", 40, 25, true),
        ("", 40, 27, false),
        ("", 200, 5, true),
        ("", 200, 7, false),
        ("max-age=0.2", 40, 5, true),
        ("max-age=0.2", 40, 7, false),
        ("max-age=3", 200, 15, true),
        ("max-age=3", 200, 17, false),
        ("algorithm=ocsort min-hits=1 max-age=0.2", 40, 5, true),
        ("algorithm=ocsort min-hits=1 max-age=0.2", 40, 7, false),
        ("algorithm=sort min-hits=1", 40, 1, true),
        ("algorithm=sort min-hits=1", 40, 2, false),
        ("algorithm=sort min-hits=1", 200, 1, true),
        ("algorithm=sort min-hits=1", 200, 2, false),
    ] {
        let mut camera = Camera::new(properties);
        // Frames come 25 times a second, and the model runs at each step.
        let mut now = 0;
        let mut push = |objects: &[Object]| {
            let ids = camera.ids(now, objects);
            for time in (now + 40..now + step).step_by(40) {
                camera.push(time, Some(false), &[]);
            }
            now += step;
            ids
        };
        let first = push(&[person(100.0)]);
        assert_eq!(push(&[person(100.0)]), first);
        for _ in 0..missing {
            assert!(push(&[]).is_empty());
        }
        let again = push(&[person(100.0)]);
        assert_eq!(again == first, keeps, "{properties} {step} {missing}");
    }
}

#[test]
fn frames_without_times_have_the_duration_of_the_caps() {
    let mut camera = Camera::new("max-age=0.2");
    let mut ids = |objects: &[Object]| {
        let mut frame = super::camera::frame(0, Some(true), objects);
        frame.get_mut().unwrap().set_pts(None);
        camera.push_buffer(frame).unwrap().iter().map(|it| it.id.unwrap()).collect::<Vec<_>>()
    };
    let first = ids(&[person(100.0)]);
    for _ in 0..5 {
        ids(&[]);
    }
    assert_eq!(ids(&[person(100.0)]), first);
    for _ in 0..7 {
        ids(&[]);
    }
    assert_ne!(ids(&[person(100.0)]), first);
}

#[test]
fn ids_are_unique_in_the_process() {
    let streams: Vec<_> = (0..16)
        .map(|_| {
            std::thread::spawn(|| {
                let mut camera = Camera::new("");
                let mut all = Vec::new();
                for round in 0..50 {
                    // Each frame has other places, which no track reaches.
                    let objects = [0.0, 100.0, 200.0].map(|left| {
                        ("person", square(left + f64::from(round % 2) * 300.0, 10.0, 50.0), 0.9)
                    });
                    all.extend(camera.ids(round as u64 * 5000, &objects));
                }
                assert_eq!(all.len(), 150);
                all
            })
        })
        .collect();
    let mut ids: Vec<i32> = streams.into_iter().flat_map(|it| it.join().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(ids[0] > 0);
}
