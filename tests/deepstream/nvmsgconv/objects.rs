// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects that are filled in by hand with NVIDIA's headers: which of their fields appear in the
//! messages.

use serde_json::{Value, json};

use super::library::{Nvmsgconv, SampleFrame, SampleObject};

/// DeepStream's `UNTRACKED_OBJECT_ID`.
const UNTRACKED: u64 = u64::MAX;

/// Frame of the source in config.txt. The muxer scales its frames.
const FRAME: SampleFrame =
    SampleFrame { frame_num: 41, source_id: 7, source: [1280, 720], pipeline: [1920, 1080] };

const PERSON: SampleObject<'_> = SampleObject {
    object_id: UNTRACKED,
    class_id: 2,
    confidence: 0.875,
    rectangle: [100.75, 50.25, 200.5, 300.5],
    label: "person",
};

#[test]
fn a_message_has_the_box_the_label_and_the_confidence_of_its_object() {
    let Some(nvmsgconv) = Nvmsgconv::get() else { return };
    let other = SampleObject { object_id: 5, label: "bus", confidence: 0.5, ..PERSON };
    let messages = nvmsgconv.sample(FRAME, &[PERSON, other]).messages();
    let objects: Vec<&Value> = messages.iter().map(|message| &message["object"]).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["id"], "18446744073709551615");
    assert_eq!(objects[0]["person"], json!({ "confidence": 0.875 }));
    assert_eq!(objects[1]["id"], "5");
    assert_eq!(objects[1]["bus"], json!({ "confidence": 0.5 }));
    assert_eq!(messages[0]["sensor"]["id"], "camera-7");
}

/// The source of 9.1 intends to scale boxes to the source's frame. But its quotient ends up as the
/// condition of a `?:`, so the scale is 1 for all sizes.
#[test]
fn boxes_are_in_whole_pixels_of_the_muxers_frame() {
    let Some(nvmsgconv) = Nvmsgconv::get() else { return };
    let expected = json!({
        "topleftx": 100, "toplefty": 50, "bottomrightx": 301, "bottomrighty": 350
    });
    for source in [[1280, 720], FRAME.pipeline] {
        let messages = nvmsgconv.sample(SampleFrame { source, ..FRAME }, &[PERSON]).messages();
        assert_eq!(messages[0]["object"]["bbox"], expected, "{source:?}");
    }
}

#[test]
fn the_minimal_message_has_the_boxes_and_labels_of_all_objects_and_no_confidence() {
    let Some(nvmsgconv) = Nvmsgconv::get() else { return };
    let bus =
        SampleObject { object_id: 5, rectangle: [1.0, 2.0, 3.0, 4.5], label: "bus", ..PERSON };
    let message = nvmsgconv.sample(FRAME, &[PERSON, bus]).minimal_message();
    assert_eq!(message["id"], "41");
    assert_eq!(message["sensorId"], "camera-7");
    let person = "18446744073709551615|100.75|50.25|301.25|350.75|person";
    assert_eq!(message["objects"], json!([person, "5|1|2|4|6.5|bus"]));
}

/// The confidence's member is named by the label.
#[test]
fn an_object_without_a_label_has_its_confidence_under_an_empty_name() {
    let Some(nvmsgconv) = Nvmsgconv::get() else { return };
    let messages = nvmsgconv.sample(FRAME, &[SampleObject { label: "", ..PERSON }]).messages();
    assert_eq!(messages[0]["object"][""], json!({ "confidence": 0.875 }));
}

#[test]
fn a_source_that_is_not_configured_has_a_message_without_place_and_sensor() {
    let Some(nvmsgconv) = Nvmsgconv::get() else { return };
    let messages = nvmsgconv.sample(SampleFrame { source_id: 3, ..FRAME }, &[PERSON]).messages();
    for member in ["place", "sensor", "analyticsModule"] {
        assert_eq!(messages[0][member], Value::Null);
    }
    assert_eq!(messages[0]["object"]["person"], json!({ "confidence": 0.875 }));
}
