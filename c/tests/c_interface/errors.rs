// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid arguments, settings and tensors, and their status and text.

use super::*;

#[test]
fn a_handle_that_cannot_be_made_is_null() {
    let error = |backend, device| Handle::with(backend, device).err().unwrap();
    let expected = "backend: expected an NmsfilterBackend, got 3";
    assert_eq!(error(3, -1), (Status::InvalidArgument, expected.to_owned()));
    let expected = "cuda_device: expected -1 or the number of a GPU, got -2";
    assert_eq!(error(0, -2), (Status::InvalidArgument, expected.to_owned()));
    // No machine has as many.
    assert_eq!(error(Backend::Cuda as u32, 100).0, Status::Device);
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_new(0, -1, null_mut()) };
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        text(unsafe { nmsfilter_error_text(null()) }),
        "the handle: expected a pointer, got NULL"
    );
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    unsafe { nmsfilter_free(null_mut()) };
}

#[test]
fn arguments_that_are_none_are_errors() {
    let handle = Handle::new();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_run(null_mut(), &windows(), 1, null_mut()) };
    assert_eq!(status, Status::InvalidArgument);

    const NULLS: &[*const c_void; 3] = &[null(); 3];
    // A change of a tensor; next to it in the list is the text of the error.
    type Change = fn(&mut Tensor);
    let of_tensors: [(Change, &str); 16] = [
        (
            |tensor| tensor.size = 8,
            "tensors: expected a size of at least 136, got 8; set it to sizeof(NmsfilterTensor)",
        ),
        (
            |tensor| tensor.size = usize::MAX,
            "tensors: expected a size of at most 4096, got 18446744073709551615; set it to sizeof(NmsfilterTensor)",
        ),
        (
            |tensor| tensor.bytes = usize::MAX,
            "tensors[0]: bytes: expected a size in memory, got 18446744073709551615",
        ),
        (
            |tensor| {
                (tensor.data, tensor.images) = (null(), NULLS.as_ptr());
                tensor.shape[0] = 1 << 40;
            },
            "tensors[0]: shape: expected a first dimension of at most 65535 images, got 1099511627776",
        ),
        (
            |tensor| tensor.id = c"b\xff".as_ptr(),
            r#"tensors[0]: id: expected text in UTF-8, got "b\xff""#,
        ),
        (
            |tensor| tensor.element_type = 6,
            "tensors[0]: element_type: expected an NmsfilterElementType, got 6",
        ),
        (|tensor| tensor.dimensions = 9, "tensors[0]: dimensions: expected 0 to 8, got 9"),
        (|tensor| tensor.memory = 2, "tensors[0]: memory: expected an NmsfilterMemory, got 2"),
        (|tensor| tensor.ready = 3, "tensors[0]: ready: expected an NmsfilterReady, got 3"),
        (|tensor| tensor.ready = 1, "tensors[0]: ready_after: expected a CUevent, got NULL"),
        (|tensor| tensor.data = null(), "tensors[0]: data: expected a pointer, got NULL"),
        (
            |tensor| tensor.images = &tensor.data,
            "tensors[0]: images: expected NULL, because data is set, got a pointer",
        ),
        (
            |tensor| (tensor.data, tensor.images) = (null(), NULLS.as_ptr()),
            "tensors[0]: images[0]: expected a pointer, got NULL",
        ),
        (
            |tensor| tensor.scale = -1.0,
            "tensors[0]: scale and zero_point: expected a scale above 0 and a zero point from -65536 to 65536, got -1 and 0",
        ),
        (
            |tensor| tensor.zero_point = 1,
            "tensors[0]: scale and zero_point: expected a scale above 0 and a zero point from -65536 to 65536, got 0 and 1",
        ),
        (
            |tensor| tensor.scale = f32::NAN,
            "tensors[0]: scale and zero_point: expected a scale above 0 and a zero point from -65536 to 65536, got NaN and 0",
        ),
    ];
    for (change, expected) in of_tensors {
        let mut tensor = windows();
        change(&mut tensor);
        assert_eq!(
            handle.run(&[tensor]).err(),
            Some((Status::InvalidArgument, expected.to_owned()))
        );
    }
    let expected = "tensors: expected at most 16, got 17";
    assert_eq!(handle.run(&[windows(); 17]).unwrap_err().1, expected);
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_run(handle.0, null(), 1, null_mut()) };
    assert_eq!(
        (status, handle.error().as_str()),
        (Status::InvalidArgument, "tensors: expected a pointer, got NULL")
    );
    handle.run(&[windows()]).unwrap();
}

#[test]
fn settings_that_are_none_are_errors() {
    const THRESHOLDS: &[f32; 2] = &[0.5, f32::NAN];
    let handle = Handle::new();
    type Change = fn(&mut Params);
    let of_params: [(Change, &str); 24] = [
        (
            |params| params.size = 0,
            "params: expected a size of at least 168, got 0; set it to sizeof(NmsfilterParams)",
        ),
        (
            |params| params.class_score_threshold_count = 2,
            "params: class_score_thresholds: expected a pointer, got NULL",
        ),
        (|params| params.class_rule_count = 1, "params: class_rules: expected a pointer, got NULL"),
        (|params| params.method = 13, "params: method: expected an NmsfilterMethod, got 13"),
        (|params| params.overlap = 5, "params: overlap: expected an NmsfilterOverlap, got 5"),
        (|params| params.class_agnostic = 2, "params: class_agnostic: expected 0 or 1, got 2"),
        (|params| params.multi_label = 3, "params: multi_label: expected 0, 1 or 2, got 3"),
        (|params| params.masks = u32::MAX, "params: masks: expected 0 or 1, got 4294967295"),
        (|params| params.mask_size = 2, "params: mask_size: expected an NmsfilterMaskSize, got 2"),
        (
            |params| params.mask_size = 1,
            "params: frame_size: expected the size of the frame for masks in its pixels, got none",
        ),
        (
            |params| (params.frame_size, params.frame_ratio) = ([640, 480], [0.0, 1.0]),
            "params: frame_ratio: expected finite numbers above 0, got [0.0, 1.0]",
        ),
        (
            |params| params.score_threshold = f32::NAN,
            "params: score_threshold: expected a number, got NaN",
        ),
        (
            |params| {
                params.class_score_thresholds = THRESHOLDS.as_ptr();
                params.class_score_threshold_count = 2;
            },
            "params: class_score_thresholds[1]: expected a number, got NaN",
        ),
        (
            |params| params.class_score_threshold_count = usize::MAX,
            "params: class_score_threshold_count: expected at most 65536 classes, got 18446744073709551615",
        ),
        (
            |params| params.class_rule_count = 65_537,
            "params: class_rule_count: expected at most 65536 classes, got 65537",
        ),
        (
            |params| params.iou_threshold = 45.0,
            "params: iou_threshold: expected a number from 0 to 1, got 45",
        ),
        (
            |params| params.max_size = [-5.0; 2],
            "params: max_size: expected numbers above 0, infinity for no limit, got [-5.0, -5.0]; \
             nmsfilter_params_init sets the defaults",
        ),
        (
            |params| (params.min_size, params.max_size) = ([9.0; 2], [8.0; 2]),
            "params: min_size: expected numbers of at most the greatest size, got [9.0, 9.0]",
        ),
        (
            |params| params.sigma = f32::NAN,
            "params: sigma: expected a finite number above 0, got NaN",
        ),
        (
            |params| params.region_edges = 3,
            "params: region_edges: expected an NmsfilterRegionEdges, got 3",
        ),
        (
            |params| params.edge_margin = 0.5,
            "params: edge_margin: expected a finite number of at least 1, got 0.5",
        ),
        (
            |params| params.edge_score = f32::NAN,
            "params: edge_score: expected a finite number, got NaN",
        ),
        (|params| params.pixel_offset = f32::NAN, "params: pixel_offset: expected 0 or 1, got NaN"),
        (
            // All bytes except the size are zero.
            // SAFETY: zeros are valid in a structure of C.
            |params| *params = Params { size: params.size, ..unsafe { zeroed() } },
            "params: max_size: expected numbers above 0, infinity for no limit, got [0.0, 0.0]; \
             nmsfilter_params_init sets the defaults",
        ),
    ];
    for (change, expected) in of_params {
        assert_eq!(handle.set_params(change), Status::InvalidArgument, "{expected}");
        assert_eq!(handle.error(), expected);
    }
    type ChangeOptions = fn(&mut Options);
    let of_options: [(ChangeOptions, &str); 9] = [
        (
            |options| options.size = 1,
            "options: expected a size of at least 56, got 1; set it to sizeof(NmsfilterOptions)",
        ),
        (
            |options| options.model_width = 640.0,
            "options: model_width and model_height: expected width and height in pixels, each at least 1, got [640.0, 0.0]; \
             0 and 0 if the size is unknown",
        ),
        (|options| options.batch = 4, "options: batch: expected 0 or 1, got 4"),
        (
            |options| options.box_format = 4,
            "options: box_format: expected an NmsfilterBoxFormat, got 4",
        ),
        (|options| options.channels = 3, "options: channels: expected an NmsfilterChannels, got 3"),
        (
            |options| options.coordinates = 3,
            "options: coordinates: expected an NmsfilterCoordinates, got 3",
        ),
        (
            |options| options.score_activation = 4,
            "options: score_activation: expected an NmsfilterScoreActivation, got 4",
        ),
        (
            |options| options.background = 4,
            "options: background: expected an NmsfilterBackground, got 4",
        ),
        (
            |options| options.keypoint_count = 17,
            "options: keypoint_count and keypoint_components: expected a number with 2 or 3, or 0 and 0, got 17 and 0",
        ),
    ];
    for (change, expected) in of_options {
        assert_eq!(handle.set_options(change), Status::InvalidArgument);
        assert_eq!(handle.error(), expected);
    }
    // None of them has been applied.
    assert_eq!(handle.run(&[windows()]).unwrap().image_count, 1);
    assert_eq!(handle.detections(0).len(), 2);
}

#[test]
fn errors_of_a_run_have_their_status() {
    let handle = Handle::new();
    assert_eq!(handle.set_decoder(c"yolov99"), Status::Decoder);
    assert!(handle.error().starts_with("there is no decoder yolov99; expected one of windows, "));

    let short = Tensor { bytes: 40, ..windows() };
    let expected = "tensor windows (f32 3x4): its shape needs 48 bytes, but its memory holds 40; correct the shape or \
                    the memory";
    assert_eq!(handle.run(&[short]).err(), Some((Status::Tensor, expected.to_owned())));
    let unaligned = Tensor { data: windows().data.wrapping_byte_add(2), bytes: 48, ..windows() };
    let status = handle.run(&[Tensor { shape: [2, 4, 0, 0, 0, 0, 0, 0], bytes: 32, ..unaligned }]);
    assert_eq!(status.unwrap_err().0, Status::Tensor);
    let huge = Tensor { shape: [u64::MAX, 4, 0, 0, 0, 0, 0, 0], ..windows() };
    assert!(handle.run(&[huge]).is_err());
    let on_device = Tensor { memory: Memory::Device as u32, ..windows() };
    assert_eq!(handle.run(&[on_device]).unwrap_err().0, Status::Tensor);
    let unknown = tensor(c"unknown", &[3, 4], &WINDOWS);
    assert_eq!(handle.run(&[unknown]).unwrap_err().0, Status::Decoder);
    assert_eq!(handle.run(&[]).unwrap_err().0, Status::Decoder);
    let numbers = vec![0.0; 56 * 20];
    let ambiguous = handle.run(&[tensor(c"output0", &[1, 56, 20], &numbers)]).unwrap_err().1;
    let expected =
        "; set the decoder (nmsfilter_set_decoder) to the right one; if it is none of these";
    assert!(ambiguous.contains(expected), "{ambiguous}");

    handle.check(handle.set_params(|params| params.overlap = Overlap::ProbIou as u32));
    assert_eq!(handle.run(&[windows()]).unwrap_err().0, Status::Unsupported);

    // SAFETY: zeros are valid in a structure of C.
    let mut result: DeviceResult = unsafe { zeroed() };
    result.size = size_of::<DeviceResult>();
    handle.check(handle.set_params(|_| {}));
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_enqueue(handle.0, &windows(), 1, null_mut(), &mut result) };
    assert_eq!(status, Status::Unsupported, "{}", handle.error());
}
