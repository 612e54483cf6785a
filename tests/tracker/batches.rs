// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batches of several streams, and the metadata of GStreamer's analytics library.

use gst_newer::{
    AnalyticsBatchMeta, AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsTrackingMtd, RelTypes,
};
use gstnmsfilter::input::analytics_batch;

use super::camera::{Camera, Tracked, frame, square, tracked};
use crate::support::batches;

const CAPS: &str = "video/x-raw,format=GRAY8,width=640,height=480,framerate=25/1";

#[test]
fn each_stream_of_a_batch_has_its_tracks() {
    crate::support::needs::needs!(batches);
    let caps = "multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)";
    let mut camera = Camera::with_caps("", caps);
    let mut push = |time: u64, streams: &[u32]| -> Vec<Vec<Tracked>> {
        let stream = |&index: &u32| {
            // All objects have one place.
            let objects = [("person", square(100.0, 100.0, 80.0), 0.9)];
            let inferred = time.is_multiple_of(80);
            let objects = if inferred { &objects[..] } else { &[] };
            let buffer = frame(time, Some(inferred), objects);
            (index, vec![batches::caps_event(CAPS)], vec![buffer.upcast()])
        };
        let batch = batches::batch(streams.iter().map(stream).collect());
        camera.harness.push(batch).unwrap();
        let batch = camera.harness.pull().unwrap();
        let meta = batch.meta::<AnalyticsBatchMeta>().unwrap();
        analytics_batch::frames(&meta).map(|frame| tracked(frame.buffer)).collect()
    };
    let all: Vec<u32> = (0..16).collect();
    let ids = |frames: Vec<Vec<Tracked>>| -> Vec<i32> {
        frames.iter().map(|objects| objects[0].id.unwrap()).collect()
    };
    let first = ids(push(0, &all));
    let mut different = first.clone();
    different.dedup();
    assert_eq!(different.len(), 16);
    assert_eq!(ids(push(40, &all)), first);
    // The order and the number of streams change.
    assert_eq!(ids(push(80, &[9, 3])), [first[9], first[3]]);
    assert_eq!(ids(push(120, &all[..2])), first[..2]);
    assert_eq!(ids(push(160, &all)), first);
}

/// The tracks of a buffer: the id of the object, the number of its track, the times in milliseconds, and whether it is
/// lost.
fn tracks(buffer: &gst::BufferRef) -> Vec<(u32, u64, u64, u64, bool)> {
    let meta = buffer.meta::<AnalyticsRelationMeta>().expect("it has analytics metadata");
    let objects = meta.iter::<AnalyticsODMtd>();
    let track = |object: u32| {
        let mut tracks =
            meta.iter_direct_related::<AnalyticsTrackingMtd>(object, RelTypes::RELATE_TO);
        let track = tracks.next()?;
        let gst_newer::Track { id, first_seen, last_seen, is_lost } = track.info()?;
        let related = meta.relation(track.id(), object);
        assert_eq!(related, RelTypes::RELATE_TO, "in both directions");
        Some((object, id, first_seen?.mseconds(), last_seen?.mseconds(), is_lost))
    };
    objects.filter_map(|object| track(object.id())).collect()
}

#[test]
fn analytics_objects_have_tracks() {
    crate::support::needs::needs!(relations);
    for with_region in [false, true] {
        let mut camera = Camera::new("");
        let mut push = |time: u64, inferred: bool| {
            let objects = [("person", square(100.0, 100.0, 80.0), 0.9)];
            let objects = if with_region && inferred { &objects[..] } else { &[] };
            let mut buffer = frame(time, Some(inferred), objects);
            if inferred {
                let mut meta = AnalyticsRelationMeta::add(buffer.get_mut().unwrap()).unwrap();
                let label = |label| gst::glib::Quark::from_str(label);
                meta.add_od_mtd(label("dog"), 300, 10, 50, 60, 0.9).unwrap();
                meta.add_od_mtd(label("person"), 100, 100, 80, 80, 0.9).unwrap();
            }
            camera.harness.push(buffer).unwrap();
            let buffer = camera.harness.pull().unwrap();
            (tracks(&buffer), tracked(&buffer))
        };
        let (first, regions) = push(0, true);
        let [dog, person] = first[..] else { panic!("{first:?}") };
        assert_eq!([dog.0, person.0], [0, 1]);
        assert_ne!(dog.1, person.1);
        assert_eq!((dog.2, dog.3, dog.4), (0, 0, false));
        assert_eq!(regions.len(), usize::from(with_region));
        // The region and the object have one id.
        assert!(regions.iter().all(|region| region.id == Some(person.1 as i32)));
        let (second, _) = push(40, true);
        assert_eq!(
            second.iter().map(|it| (it.1, it.2, it.3)).collect::<Vec<_>>(),
            [(dog.1, 0, 40), (person.1, 0, 40)]
        );
        let (predicted, regions) = push(80, false);
        let ids: Vec<u64> = predicted.iter().map(|it| it.1).collect();
        assert!(ids.len() == 2 && ids.contains(&dog.1) && ids.contains(&person.1));
        assert!(predicted.iter().all(|it| (it.2, it.3, it.4) == (0, 40, true)), "{predicted:?}");
        assert_eq!(regions.len(), usize::from(with_region));
        assert!(regions.iter().all(|it| it.is_predicted && it.id == Some(person.1 as i32)));
    }
}
