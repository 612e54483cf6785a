// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models that are recognized by their inputs and outputs, with the names, types and dimensions of real exports.

use super::*;

const FLOAT: u32 = 1;
const INT64: u32 = 7;

fn info(name: &CStr, onnx_type: u32, dims: &[i64]) -> ModelTensorInfo {
    let mut shape = [0; 8];
    shape[..dims.len()].copy_from_slice(dims);
    let (size, dimensions) = (size_of::<ModelTensorInfo>(), dims.len() as u32);
    ModelTensorInfo { size, name: name.as_ptr(), onnx_type, dimensions, shape }
}

/// The signature, with the options and parameters that it has changed.
struct Found {
    signature: Signature,
    options: Options,
    params: Params,
}

fn find(
    inputs: &[ModelTensorInfo],
    outputs: &[ModelTensorInfo],
) -> std::result::Result<Found, String> {
    find_named(inputs, outputs, null())
}

fn find_named(
    inputs: &[ModelTensorInfo],
    outputs: &[ModelTensorInfo],
    name: *const c_char,
) -> std::result::Result<Found, String> {
    // SAFETY: zeros are valid in structures of C.
    let (mut signature, mut options): (Signature, Options) = unsafe { (zeroed(), zeroed()) };
    (signature.size, options.size) = (size_of::<Signature>(), size_of::<Options>());
    let mut params = params();
    // SAFETY: the arrays are as long as stated, and the structures have their sizes.
    let status = unsafe {
        let (inputs, outputs) =
            ((inputs.as_ptr(), inputs.len()), (outputs.as_ptr(), outputs.len()));
        nmsfilter_signature(
            inputs.0,
            inputs.1,
            outputs.0,
            outputs.1,
            name,
            &mut signature,
            &mut options,
            &mut params,
        )
    };
    match status {
        Status::Ok => Ok(Found { signature, options, params }),
        // SAFETY: NULL asks for the error of this thread.
        _ => Err(text(unsafe { nmsfilter_error_text(null()) })),
    }
}

/// The tensors that are read, or the error.
fn prepare(signature: &Signature, tensors: &mut Vec<Tensor>) -> std::result::Result<(), String> {
    let mut count = tensors.len();
    // SAFETY: the array is as long as stated.
    match unsafe { nmsfilter_signature_tensors(signature, tensors.as_mut_ptr(), &mut count) } {
        Status::Ok => tensors.truncate(count),
        // SAFETY: NULL asks for the error of this thread.
        _ => return Err(text(unsafe { nmsfilter_error_text(null()) })),
    }
    Ok(())
}

fn objects(handle: &Handle) -> Vec<(u32, [f32; 4])> {
    let found = handle.detections(0);
    found.iter().map(|it| (it.class_id, [it.x1, it.y1, it.x2, it.y2])).collect()
}

impl Found {
    fn name(&self) -> String {
        text(self.signature.name)
    }

    fn handle(&self) -> Handle {
        let handle = Handle::new();
        handle.check(handle.set_options(|options| *options = self.options));
        handle.check(handle.set_params(|params| *params = self.params));
        handle
    }
}

#[test]
fn rt_detr_needs_no_setting() {
    let inputs =
        [info(c"images", FLOAT, &[-1, 3, 640, 640]), info(c"orig_target_sizes", INT64, &[-1, 2])];
    let outputs = [
        info(c"labels", INT64, &[-1, 300]),
        info(c"boxes", FLOAT, &[-1, 300, 4]),
        info(c"scores", FLOAT, &[-1, 300]),
    ];
    let found = find(&inputs, &outputs).unwrap();
    let signature = found.signature;
    assert_eq!(found.name(), "rt-detr");
    let numbers = [InputNumbers::Picture, InputNumbers::WidthHeight].map(|it| it as u32);
    assert_eq!(signature.inputs[..2], numbers);
    assert_eq!((signature.width, signature.height), (640, 640));
    assert_eq!(signature.letterbox, Letterbox::None as u32);
    assert_eq!(signature.layout, PictureLayout::Nchw as u32);
    assert_eq!((signature.range, signature.mean), ([0.0, 1.0], [0.0; 3]));
    assert_eq!((signature.is_bgr, signature.pixels_vary), (0, 0));
    assert_eq!((found.options.model_width, found.options.model_height), (640.0, 640.0));
    assert_eq!(found.params.method, Method::None as u32);

    // Two queries with equal boxes, which the model means; the third is below the threshold.
    let labels = [7i64, 3, 1];
    let boxes = [10.0, 20.0, 30.0, 40.0, 10.0, 20.0, 30.0, 41.0, 5.0, 5.0, 9.0, 9.0];
    let mut classes = tensor(c"labels", &[1, 3], &[]);
    classes.element_type = ElementType::I64 as u32;
    (classes.data, classes.bytes) = (labels.as_ptr().cast(), size_of_val(&labels));
    let scores = tensor(c"scores", &[1, 3], &[0.9, 0.8, 0.1]);
    let mut tensors = vec![classes, tensor(c"boxes", &[1, 3, 4], &boxes), scores];
    prepare(&signature, &mut tensors).unwrap();
    let handle = found.handle();
    handle.run(&tensors).unwrap();
    assert_eq!(objects(&handle), [(7, [10.0, 20.0, 30.0, 40.0]), (3, [10.0, 20.0, 30.0, 41.0])]);
}

#[test]
fn the_best_pairs_of_query_and_class_are_limited_to_the_number_of_queries() {
    let inputs = [info(c"pixel_values", FLOAT, &[1, 3, 640, 640])];
    // Their number is known with the tensors.
    let outputs = [info(c"logits", FLOAT, &[-1, -1, 80]), info(c"pred_boxes", FLOAT, &[-1, -1, 4])];
    let found = find(&inputs, &outputs).unwrap();
    assert_eq!(found.name(), "transformers-rt-detr");
    let mut logits = [-9.0; 160];
    (logits[16], logits[5], logits[96]) = (4.0, 3.0, 2.0);
    let boxes = [0.5, 0.5, 0.25, 0.5].repeat(2);
    let mut tensors =
        vec![tensor(c"logits", &[1, 2, 80], &logits), tensor(c"pred_boxes", &[1, 2, 4], &boxes)];
    prepare(&found.signature, &mut tensors).unwrap();
    let handle = found.handle();
    handle.run(&tensors).unwrap();
    let corners = [240.0, 160.0, 400.0, 480.0];
    assert_eq!(objects(&handle), [(16, corners), (5, corners)]);
}

#[test]
fn pictures_are_described_to_the_pixel() {
    // The zoo's Faster R-CNN and others have pixels of their own.
    let inputs = [info(c"pixel_values", FLOAT, &[-1, 3, -1, -1])];
    let outputs =
        [info(c"logits", FLOAT, &[-1, 100, 92]), info(c"pred_boxes", FLOAT, &[-1, 100, 4])];
    let Found { signature, .. } = find(&inputs, &outputs).unwrap();
    assert_eq!((signature.width, signature.height), (800, 800));
    assert_eq!(signature.mean, [0.485, 0.456, 0.406]);
    assert_eq!(signature.deviation, [0.229, 0.224, 0.225]);
    // Masks are not read.
    let inputs = [info(c"input", FLOAT, &[1, 3, 432, 432])];
    let masks = info(c"masks", FLOAT, &[1, 300, 108, 108]);
    let outputs =
        [info(c"dets", FLOAT, &[1, 300, 4]), info(c"labels", FLOAT, &[1, 300, 91]), masks];
    for (outputs, unread) in [(&outputs[..], 1), (&outputs[..2], 0)] {
        let Found { signature, .. } = find(&inputs, outputs).unwrap();
        assert_eq!((text(signature.name), signature.unread), ("rf-detr".to_owned(), unread));
    }
    // Bytes keep their numbers; red-green-blue is not known.
    let inputs = [info(c"images", 2, &[1, 3, 640, 640])];
    let outputs = [
        info(c"num_dets", INT64, &[1, 1]),
        info(c"boxes", FLOAT, &[1, 100, 4]),
        info(c"scores", FLOAT, &[1, 100]),
        info(c"labels", 6, &[1, 100]),
    ];
    let Found { signature, params, .. } = find(&inputs, &outputs).unwrap();
    assert_eq!(text(signature.name), "mmyolo");
    assert_eq!((signature.range, signature.pixels_vary), ([0.0, 255.0], 1));
    assert_eq!((signature.letterbox, params.letterbox), (1, Letterbox::Center as u32));
}

#[test]
fn tensors_decide_between_scores_and_logits_and_unread_ones_are_left_out() {
    let inputs = [info(c"input", FLOAT, &[1, 3, 512, 512])];
    let side = 128;
    let outputs = [
        info(c"hm", FLOAT, &[1, 80, side, side]),
        info(c"wh", FLOAT, &[1, 2, side, side]),
        info(c"reg", FLOAT, &[1, 2, side, side]),
    ];
    let found = find(&inputs, &outputs).unwrap();
    assert_eq!(found.name(), "centernet");
    for (score, id) in [(0.5, "centernet-scores"), (-2.0, "centernet-logits")] {
        let scores = [score; 80 * 4];
        let mut tensors =
            vec![tensor(c"other", &[1], &[0.0]), tensor(c"hm", &[1, 80, 2, 2], &scores)];
        prepare(&found.signature, &mut tensors).unwrap();
        assert_eq!(tensors.iter().map(|it| text(it.id)).collect::<Vec<_>>(), [id]);
    }
    let mut on_device = vec![tensor(c"hm", &[1, 80, 2, 2], &[0.0; 80 * 4])];
    on_device[0].memory = Memory::Device as u32;
    let error = prepare(&found.signature, &mut on_device).unwrap_err();
    assert!(
        error.ends_with(
            "is in device memory, but its numbers decide how it is read; pass it in host memory"
        ),
        "{error}"
    );
}

#[test]
fn a_name_takes_one_of_several_signatures() {
    let inputs = [info(c"images", FLOAT, &[1, 3, 640, 640])];
    let outputs = [info(c"output", FLOAT, &[1, 8400, 85])];
    let error = find(&inputs, &outputs).err().unwrap();
    let several =
        "the model has the signatures of several exporters: yolox, yolox-decoded; pass the name";
    assert!(error.contains(several), "{error}");
    let found = find_named(&inputs, &outputs, c"yolox-decoded".as_ptr()).unwrap();
    assert_eq!((found.name(), found.signature.is_bgr), ("yolox-decoded".to_owned(), 1));
    let error = find_named(&inputs, &outputs, c"fcos".as_ptr()).err().unwrap();
    let other = "the model does not have the signature fcos; it has yolox, yolox-decoded";
    assert!(error.contains(other), "{error}");
}

/// Of two boxes and classes, the model selects one pair, and -1 marks rows that are not used.
#[test]
fn the_pairs_that_a_model_selects_are_its_detections() {
    let inputs = [info(c"input_1", FLOAT, &[1, 3, 416, 416]), info(c"image_shape", FLOAT, &[1, 2])];
    let outputs = [
        info(c"yolonms_layer_1", FLOAT, &[1, 2, 4]),
        info(c"yolonms_layer_1:1", FLOAT, &[1, 80, 2]),
        info(c"yolonms_layer_1:2", 6, &[1, -1, 3]),
    ];
    let found = find(&inputs, &outputs).unwrap();
    assert_eq!(found.name(), "zoo-tiny-yolov3");
    let (boxes, pairs) =
        ([10.0, 20.0, 30.0, 40.0, 5.0, 6.0, 70.0, 80.0], [0i32, 16, 1, -1, -1, -1]);
    let mut indices = tensor(c"yolonms_layer_1:2", &[1, 2, 3], &[]);
    indices.element_type = ElementType::I32 as u32;
    (indices.data, indices.bytes) = (pairs.as_ptr().cast(), size_of_val(&pairs));
    let scores = [0.9; 160];
    let mut tensors = vec![
        tensor(c"yolonms_layer_1", &[1, 2, 4], &boxes),
        tensor(c"yolonms_layer_1:1", &[1, 80, 2], &scores),
        indices,
    ];
    prepare(&found.signature, &mut tensors).unwrap();
    let handle = found.handle();
    handle.run(&tensors).unwrap();
    assert_eq!(objects(&handle), [(16, [6.0, 5.0, 80.0, 70.0])]);
}

#[test]
fn rows_of_several_pictures_are_an_error() {
    let inputs = [info(c"images", FLOAT, &[-1, 3, 640, 640])];
    let found = find(&inputs, &[info(c"output", FLOAT, &[-1, 7])]).unwrap();
    assert_eq!(found.name(), "yolov7-end2end");
    let mut rows = [0.0, 10.0, 20.0, 30.0, 40.0, 5.0, 0.9, 0.0, 50.0, 5.0, 90.0, 60.0, 7.0, 0.8];
    let mut tensors = vec![tensor(c"output", &[2, 7], &rows)];
    prepare(&found.signature, &mut tensors).unwrap();
    let handle = found.handle();
    handle.run(&tensors).unwrap();
    assert_eq!(objects(&handle), [(5, [10.0, 20.0, 30.0, 40.0]), (7, [50.0, 5.0, 90.0, 60.0])]);
    rows[7] = 1.0;
    let error =
        prepare(&found.signature, &mut vec![tensor(c"output", &[2, 7], &rows)]).unwrap_err();
    assert!(error.starts_with("tensor output (f32 2x7) has rows of several pictures"), "{error}");
}

#[test]
fn other_models_are_unknown_and_wrong_arguments_are_errors() {
    let images = info(c"images", FLOAT, &[1, 3, 640, 640]);
    let output = info(c"output0", FLOAT, &[1, 84, 8400]);
    let found = find(&[images], &[output]).unwrap();
    assert!(found.signature.name.is_null());
    assert_eq!(found.params.method, Method::Greedy as u32);
    assert_eq!(found.options.model_width, 0.0);
    let error = prepare(&found.signature, &mut vec![windows()]).unwrap_err();
    assert_eq!(error, "signature: expected one that nmsfilter_signature has found, got none");

    let error = find_named(&[images], &[output], c"rt-detr".as_ptr()).err().unwrap();
    let other = "the model does not have the signature rt-detr; it has none; expected the inputs images float B,3,H,W; \
                 orig_target_sizes number B,2 and the outputs labels integer B,Q; ";
    assert!(error.starts_with(other), "{error}");
    assert_eq!(find(&[], &[output]).err().unwrap(), "inputs: expected at least one, got 0");
    let unnamed = ModelTensorInfo { name: null(), ..output };
    let error = find(&[images], &[output, unnamed]).err().unwrap();
    assert_eq!(error, "outputs[1]: name: expected text, got NULL");
    let error = find(&[ModelTensorInfo { dimensions: 9, ..images }], &[output]).err().unwrap();
    assert_eq!(error, "inputs[0]: dimensions: expected 0 to 8, got 9");
    let error = find(&[ModelTensorInfo { size: 3, ..images }], &[output]).err().unwrap();
    assert!(error.contains("set it to sizeof(NmsfilterModelTensorInfo)"), "{error}");
}

/// The array has room for the inputs of every signature.
#[test]
fn signatures_have_at_most_four_inputs() {
    let all = nmsfilter_core::signature::all();
    assert!(all.iter().all(|it| it.inputs.len() <= 4));
}
