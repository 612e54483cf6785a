// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host pointers, device pointers and null pointers on the CPU.

use gstnmsfilter::deepstream::layout::Version;
use nmsfilter_core::geometry::Letterbox;

use super::objects::assert_objects;
use crate::batch::{Memory, Scene, TestModel, outputs, tensors_of};
use crate::libraries::{is_inside, version};
use crate::run;
use crate::standin::{Batch, Frame, Layer, Tensors, null};
use crate::support::engines;

/// Every engine reads tensors of nvinferserver, which have only host pointers.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn host_pointers_without_device_pointers_are_read() {
    if !is_inside() {
        return;
    }
    let mut scene = Scene::new(4, 1);
    scene.memory = Memory::Host;
    let ran = run::scenes(std::slice::from_ref(&scene), "").well();
    assert!(assert_objects(&ran.seen[0], &scene, Letterbox::None) > 40);
}

/// nvinfer up to 6.3 always copies outputs to the host. Later versions may skip the copy, and no
/// metadata tells if they did.
#[test]
#[ignore = "run by `versions` in a process of its own"]
fn host_pointers_beside_device_pointers_are_read_by_the_cpu_until_6_3() {
    if !is_inside() || engines::on_gpu() {
        return;
    }
    let mut scene = Scene::new(4, 2);
    scene.memory = Memory::InvalidDevice;
    let ran = run::scenes(std::slice::from_ref(&scene), "backend=cpu");
    if version() <= Version::new(6, 3) {
        let ran = ran.well();
        assert!(assert_objects(&ran.seen[0], &scene, Letterbox::None) > 40);
    } else {
        // The tensors cannot be copied from a GPU, because the machine has none.
        let error = ran.ended.error();
        assert!(error.contains("output0") && error.contains("NVIDIA driver"), "{error}");
        assert!(ran.seen.is_empty());
    }
}

/// Runs two frames. `change` changes the tensors of the second.
fn changed(change: impl Fn(&mut Tensors) + Send + Sync + 'static) -> run::Ran {
    // The elements are leaked, so they outlive the pipeline.
    let bytes = outputs(&TestModel::default(), 1)[0].elements.bytes().to_vec().leak();
    let address = bytes.as_ptr() as u64;
    run::with("decoder=yolov8 letterbox=none", 2, move |buffer| {
        let batch = Batch::attach(buffer, 2);
        for batch_id in 0..2 {
            let frame = Frame { batch_id, pipeline: [640, 640], ..Frame::default() };
            let model = TestModel::default();
            let layer = Layer {
                name: Some(c"output0".to_owned()),
                data_type: 0,
                dims: vec![4 + model.classes as u32, model.anchors as u32],
                counts: None,
                host: address,
                device: 0,
            };
            let mut tensors = Tensors { layers: vec![layer], ..tensors_of(&model) };
            if batch_id == 1 {
                change(&mut tensors);
            }
            batch.add_frame(&frame).attach(&tensors, None);
        }
    })
}

#[test]
#[ignore = "run by `versions` in a process of its own"]
fn null_pointers_are_errors_unless_there_is_other_memory() {
    if !is_inside() {
        return;
    }
    // Without a change, the stream runs. The errors below are therefore caused by the changes.
    assert_eq!(changed(|_| ()).well().seen.len(), 2);
    // If there is a host pointer, the array of device pointers is optional.
    assert_eq!(changed(|tensors| tensors.null = null::DEVICE).well().seen.len(), 2);
    let cases: [fn(&mut Tensors); 3] = [
        |tensors| tensors.layers[0].host = 0,
        |tensors| tensors.null = null::HOST,
        |tensors| tensors.null = null::HOST | null::DEVICE,
    ];
    for (number, change) in cases.into_iter().enumerate() {
        let ran = changed(change);
        let error = ran.ended.error();
        assert!(error.contains("output0") && error.contains("memory"), "{number}: {error}");
        assert!(ran.seen.is_empty());
    }
}
