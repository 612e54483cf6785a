// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged metadata, and tensors that cannot be decoded: each gives a message and no object.

use gstnmsfilter::deepstream::layout::{Version, known_versions};

use crate::batch::{Memory, Scene, TestModel, outputs, tensors_of};
use crate::libraries::{is_inside, version};
use crate::run::{self, Ran};
use crate::standin::{Batch, Frame, Layer, Tensors, is_nvidias, null};
use crate::support::engines;

/// Returns the layer of a default model, in host memory that is never freed.
fn layer() -> Layer {
    let model = TestModel::default();
    let bytes = outputs(&model, 1)[0].elements.bytes().to_vec().leak();
    Layer {
        name: Some(c"output0".to_owned()),
        data_type: 0,
        dims: vec![4 + model.classes as u32, model.anchors as u32],
        counts: None,
        host: bytes.as_ptr() as u64,
        device: 0,
    }
}

/// Runs two buffers with a batch of three frames. `change` changes the tensors of each frame, then
/// `damage` changes the batch.
fn damaged(
    properties: &str,
    change: impl Fn(usize, &mut Tensors) + Send + Sync + 'static,
    damage: impl Fn(Batch<'_>) + Send + Sync + 'static,
) -> Ran {
    let layer = layer();
    let properties = format!("decoder=yolov8 letterbox=none {properties}");
    run::with(&properties, 2, move |buffer| {
        let batch = Batch::attach(buffer, 3);
        for index in 0..3 {
            let frame = Frame { batch_id: index as u32, pipeline: [640, 640], ..Frame::default() };
            let mut tensors =
                Tensors { layers: vec![layer.clone()], ..tensors_of(&TestModel::default()) };
            change(index, &mut tensors);
            batch.add_frame(&frame).attach(&tensors, None);
        }
        damage(batch);
    })
}

/// Asserts that the stream ends at the first buffer, with an error that has these parts.
fn assert_error(ran: &Ran, parts: &[&str]) {
    let error = ran.ended.error();
    for part in parts {
        assert!(error.contains(part), "expected {part:?} in: {error}");
    }
    assert!(ran.seen.is_empty());
}

fn assert_tensors_error(
    properties: &str,
    change: impl Fn(usize, &mut Tensors) + Send + Sync + 'static,
    parts: &[&str],
) {
    assert_error(&damaged(properties, change, |_| ()), parts);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn metadata_without_damage_is_decoded() {
    if !is_inside() {
        return;
    }
    let ran = damaged("", |_, _| (), |_| ()).well();
    assert!(ran.seen[1].frames.iter().all(|(_, objects)| objects.len() > 10));
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_list_of_frames_that_is_truncated_or_too_long_is_an_error() {
    if !is_inside() {
        return;
    }
    for count in [4, 2, 0, u32::MAX] {
        let ran = damaged("", |_, _| (), move |batch| batch.set_frame_count(count));
        let message = format!("num_frames_in_batch={count}, but its list has 3 frames");
        let version = format!("version than {}", version());
        assert_error(&ran, &[&message, &version, "deepstream-version"]);
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn null_metadata_is_an_error() {
    if !is_inside() {
        return;
    }
    let ran = damaged("", |_, _| (), |batch| batch.add_null_frame());
    assert_error(&ran, &["null pointer where", "frame"]);
    // NVIDIA's library cannot release this list.
    if !is_nvidias() {
        let null_user = |batch: Batch<'_>| batch.frames().nth(2).unwrap().add_null_user_meta();
        assert_error(&damaged("", |_, _| (), null_user), &["null pointer where", "user metadata"]);
    }
    let expected = ["null pointer where", "NvDsInferTensorMeta"];
    assert_tensors_error("", |index, tensors| tensors.null = [0, null::DATA, 0][index], &expected);
    let expected = ["null pointer where", "layers"];
    assert_tensors_error(
        "",
        |index, tensors| tensors.null = [0, 0, null::LAYERS][index],
        &expected,
    );
}

/// A buffer that no muxer made can have metadata without a batch.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn metadata_without_a_batch_is_a_buffer_without_tensors() {
    if !is_inside() {
        return;
    }
    let ran = run::with("decoder=yolov8", 2, Batch::attach_null).without_tensors();
    assert_eq!(ran.stat("frames-without-tensors"), 2);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn layers_of_other_types_are_errors() {
    if !is_inside() {
        return;
    }
    let change =
        |data_type| move |_, tensors: &mut Tensors| tensors.layers[0].data_type = data_type;
    let unknown = "a type this plugin does not know";
    for (data_type, name) in [(3, "i32"), (4, "i64"), (6, unknown), (-1, unknown)] {
        assert_tensors_error("", change(data_type), &["output0", name, "f32"]);
    }
    for (data_type, name) in [(2, "i8"), (5, "u8")] {
        let parts = ["output0", name, "their scale and zero point are not known"];
        assert_tensors_error("", change(data_type), &parts);
        let ran = damaged("quantization=output0:0.00390625:0", change(data_type), |_| ());
        assert_eq!(ran.ended.error, None, "{name}");
        assert_eq!(ran.seen.len(), 2, "{name}");
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn layers_of_other_shapes_are_errors() {
    if !is_inside() {
        return;
    }
    let dims = |dims: &'static [u32]| {
        move |_, tensors: &mut Tensors| tensors.layers[0].dims = dims.to_vec()
    };
    // All decoders need two dimensions.
    assert_tensors_error("", dims(&[2100]), &["output0", "2100", "decoder yolov8 expects"]);
    assert_tensors_error("", dims(&[2, 7, 300]), &["output0", "2x7x300", "decoder yolov8 expects"]);
    // A box needs four numbers, but this anchor has only three.
    assert_tensors_error("", dims(&[3, 3]), &["output0", "3x3x3", "decoder yolov8"]);
    // Batch dimensions of 1 are accepted.
    let ran = damaged("", dims(&[1, 7, 300]), |_| ()).well();
    assert!(ran.seen[1].frames.iter().all(|(_, objects)| objects.len() > 10));
    // No decoder reads a model with this many dimensions: the layer is left out, with a warning.
    let ran = damaged("", dims(&[1, 1, 2, 2, 1, 1, 7, 75]), |_| ());
    assert!(ran.ended.error.is_some() || !ran.ended.warnings.is_empty(), "{:?}", ran.ended);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn layers_whose_numbers_contradict_each_other_are_errors() {
    if !is_inside() {
        return;
    }
    let counts = |counts: [u32; 2]| {
        move |index, tensors: &mut Tensors| {
            if index == 1 {
                tensors.layers[0].counts = Some(counts);
            }
        }
    };
    assert_tensors_error("", counts([2, 2101]), &["output0", "[7, 300]", "2101"]);
    assert_tensors_error("", counts([2, 0]), &["output0", "0 elements"]);
    assert_tensors_error("", counts([1, 2100]), &["output0", "[7]", "2100"]);
    // The claimed number of dimensions exceeds the structure, so they are not read.
    for rank in [9, 100, u32::MAX] {
        let ran = damaged("", counts([rank, 2100]), |_| ());
        assert!(ran.ended.error.is_some(), "{:?}", ran.ended);
        assert!(ran.seen.is_empty());
    }
    // The product of the dimensions overflows.
    let change = |_, tensors: &mut Tensors| {
        tensors.layers[0].dims = vec![u32::MAX, u32::MAX];
        tensors.layers[0].counts = Some([2, 1]);
    };
    assert_tensors_error("", change, &["output0", "4294967295"]);
    let change = |_, tensors: &mut Tensors| {
        tensors.layers[0].dims = vec![u32::MAX; 3];
        tensors.layers[0].counts = Some([3, u32::MAX]);
    };
    assert_tensors_error("", change, &["output0", "4294967295"]);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn frames_with_different_layers_are_an_error() {
    if !is_inside() {
        return;
    }
    let cases: [fn(&mut Tensors); 4] = [
        |tensors| tensors.layers[0].dims = vec![6, 350],
        |tensors| tensors.layers[0].data_type = 1,
        |tensors| tensors.layers[0].name = Some(c"output1".to_owned()),
        |tensors| tensors.layers.push(tensors.layers[0].clone()),
    ];
    for change in cases {
        let change = move |index, tensors: &mut Tensors| {
            if index == 2 {
                change(tensors);
            }
        };
        assert_tensors_error("", change, &["frame 2", "other layers"]);
    }
    let none = |index, tensors: &mut Tensors| {
        if index == 1 {
            tensors.layers.clear();
        }
    };
    assert_tensors_error("", none, &["frame 1", "other layers"]);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn layers_need_no_name_and_invalid_names_are_errors() {
    if !is_inside() {
        return;
    }
    // If the decoder is set, layers need no names.
    let ran = damaged("", |_, tensors| tensors.layers[0].name = None, |_| ()).well();
    assert!(ran.seen[1].frames.iter().all(|(_, objects)| objects.len() > 10));
    let invalid = |_, tensors: &mut Tensors| tensors.layers[0].name = Some(c"\xff\xfe".to_owned());
    assert_tensors_error("", invalid, &["name of a layer", "UTF-8"]);
    let many = |_, tensors: &mut Tensors| tensors.layers = vec![tensors.layers[0].clone(); 40];
    let ran = damaged("", many, |_| ());
    assert!(ran.ended.error().contains("output0"), "{:?}", ran.ended);
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn tensors_without_layers_give_no_objects() {
    if !is_inside() {
        return;
    }
    let ran = damaged("", |_, tensors| tensors.layers.clear(), |_| ());
    assert!(ran.seen.iter().all(|seen| seen.frames.iter().all(|(_, o)| o.is_empty())));
}

/// An endless list ends in an error.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn a_list_with_too_many_entries_is_an_error() {
    if !is_inside() || is_nvidias() {
        return;
    }
    let many = |batch: Batch<'_>| {
        let frame = batch.frames().nth(1).unwrap();
        (0..65_536).for_each(|_| frame.add_other_user_meta());
    };
    assert_error(&damaged("", |_, _| (), many), &["user metadata has more than 65536 entries"]);
}

/// The claimed number of layers is too large. Layers after the first do not exist, and must not be
/// read.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn too_many_layers_are_an_error() {
    if !is_inside() {
        return;
    }
    for claimed in [1025, 1 << 31, u32::MAX] {
        let change = move |index, tensors: &mut Tensors| {
            if index == 1 {
                tensors.claimed_layers = claimed;
            }
        };
        let count = format!("have {claimed} output layers; expected at most 1024");
        let version = format!("version than {}", version());
        assert_tensors_error("", change, &[&count, &version, "deepstream-version"]);
    }
}

/// Without `unique-id`, tensors of objects and of regions of interest are not decoded.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn tensors_only_on_objects_or_regions_give_a_warning() {
    if !is_inside() {
        return;
    }
    for on_objects in [true, false] {
        let layer = layer();
        let ran = run::with("decoder=yolov8 letterbox=none", 2, move |buffer| {
            let batch = Batch::attach(buffer, 2);
            for batch_id in 0..2 {
                let frame = Frame { batch_id, pipeline: [640, 640], ..Frame::default() };
                let frame = batch.add_frame(&frame);
                let tensors =
                    Tensors { layers: vec![layer.clone()], ..tensors_of(&TestModel::default()) };
                if on_objects {
                    frame.add_object(3, 0, [10.0, 20.0, 30.0, 40.0]).attach(&tensors, None);
                } else {
                    let scaling = [[640.0 / 300.0, 640.0 / 400.0], [0.0; 2]];
                    frame.attach_to_roi([10.0, 20.0, 300.0, 400.0], scaling, None, &tensors);
                }
            }
        });
        assert_eq!(ran.ended.error, None);
        let [warning] = &ran.ended.warnings[..] else { panic!("{:?}", ran.ended.warnings) };
        let parts = if on_objects {
            ["objects", "set unique-id=1 if the model"]
        } else if version() >= Version::new(8, 0) {
            ["regions of interest", "set unique-id=1"]
        } else {
            ["regions of interest", "are known for DeepStream 8.0 to 9.1, not for"]
        };
        assert!(parts.iter().all(|part| warning.contains(part)), "{warning}");
        assert_eq!(ran.seen.len(), 2);
        for (state, objects) in ran.seen.iter().flat_map(|seen| &seen.frames) {
            assert_eq!((objects.len(), state.infer_done), (usize::from(on_objects), 0));
        }
    }
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn unknown_values_of_deepstream_version_are_errors() {
    if !is_inside() {
        return;
    }
    let attach = Scene::new(1, 1);
    let run = |value: &str| {
        run::scenes(std::slice::from_ref(&attach), &format!("deepstream-version={value}"))
    };
    let known = known_versions();
    for (value, parts) in [
        ("seven", ["\"seven\"", "such as 7.1"]),
        ("5.1", ["not of 5.1", &known]),
        ("9.2", ["not of 9.2", &known]),
    ] {
        assert_error(&run(value), &parts);
    }
    let this = version();
    run(&this.to_string()).well();
    // All versions with this layout are accepted.
    if this >= Version::new(9, 0) {
        run("9.0").well();
        run("9.1").well();
    }
    assert_eq!(attach.memory == Memory::Host, !engines::on_gpu());
}
