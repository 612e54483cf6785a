// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element reads structures only if the pools of the first batch have the element sizes of the
//! version's layout.

use gstnmsfilter::deepstream::layout::{
    FRAME_META, LAYOUTS, OBJECT_META, StructureLayout, USER_META, known_versions,
};
use gstnmsfilter::deepstream::structures::StructureSizes;

use crate::batch::{Producer, Scene};
use crate::libraries::{is_inside, version};
use crate::run::{self, Ran};
use crate::standin::{Batch, is_nvidias};

const TYPES: [i32; 3] = [OBJECT_META, FRAME_META, USER_META];

/// Sets the element sizes of a batch's pools.
pub fn set_sizes(batch: Batch<'_>, sizes: StructureSizes) {
    for (which, size) in (0..).zip([sizes.object, sizes.frame, sizes.user]) {
        batch.set_pool(which, TYPES[which as usize], size);
    }
}

/// Runs two buffers with a batch that `damage` changes.
pub fn damaged(properties: &str, damage: impl Fn(Batch<'_>) + Send + Sync + 'static) -> Ran {
    let producer = Producer::new(&Scene::new(2, 1), 6);
    run::with(&format!("decoder=yolov8 letterbox=none {properties}"), 2, move |buffer| {
        producer.attach(buffer);
        damage(Batch::find(buffer).unwrap());
    })
}

/// Asserts that the stream ends at the first buffer, with an error that has these parts.
pub fn assert_error(ran: &Ran, parts: &[&str]) {
    let error = ran.ended.error();
    assert!(parts.iter().all(|part| error.contains(part)), "{parts:?}: {error}");
    assert!(ran.seen.is_empty());
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn structures_of_other_sizes_are_not_read() {
    if !is_inside() || is_nvidias() {
        return;
    }
    let layout = StructureLayout::for_version(version()).unwrap();
    let own = layout.sizes;
    let StructureSizes { object, frame, user } = own;
    let others = LAYOUTS.iter().map(|other| other.sizes).filter(|sizes| *sizes != own);
    let changed = [
        StructureSizes { object: object + 8, ..own },
        StructureSizes { object: 1, ..own },
        StructureSizes { frame: frame - 8, ..own },
        StructureSizes { frame: u32::MAX, ..own },
        StructureSizes { user: user + 8, ..own },
    ];
    for sizes in others.chain(changed) {
        let ran = damaged("", move |batch| set_sizes(batch, sizes));
        let known = match LAYOUTS.iter().find(|other| other.sizes == sizes) {
            Some(other) => format!("bytes; DeepStream {}", other.first),
            None => "no known version has these sizes".to_owned(),
        };
        let parts =
            [format!("DeepStream {}", version()), own.to_string(), sizes.to_string(), known];
        assert_error(&ran, &parts.each_ref().map(String::as_str));
    }
    // A version that the property sets is compared, too.
    let other = LAYOUTS.iter().rfind(|other| other.sizes != own).unwrap();
    let ran = damaged(&format!("deepstream-version={}", other.last), |_| ());
    let parts = [own, other.sizes].map(|sizes| sizes.to_string());
    assert_error(&ran, &[&parts[0], &parts[1], "correct deepstream-version"]);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn structures_without_their_pools_are_not_read() {
    if !is_inside() || is_nvidias() {
        return;
    }
    let sizes = StructureLayout::for_version(version()).unwrap().sizes;
    let sizes = [sizes.object, sizes.frame, sizes.user];
    for (which, name) in (0..).zip(["obj_meta_pool", "frame_meta_pool", "user_meta_pool"]) {
        let index = which as usize;
        // The pool is null, or has structures of another type.
        for (meta_type, size) in [(TYPES[index], 0), (TYPES[index] + 1, sizes[index]), (-1, 1)] {
            let ran = damaged("", move |batch| batch.set_pool(which, meta_type, size));
            assert_error(&ran, &[&format!("DeepStream's batch has no {name}"), &known_versions()]);
        }
    }
}
