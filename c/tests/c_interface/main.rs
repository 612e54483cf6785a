// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the header give the results of the Rust interface, and invalid arguments are errors.

mod boxes;
mod errors;
mod frames;
mod params;
mod signature;

use std::ffi::{CStr, c_char, c_void};
use std::mem::zeroed;
use std::ptr::{null, null_mut};

use nmsfilter::*;
use nmsfilter_core::nms::{self, Nms};
use nmsfilter_core::tensor::TensorView;

/// A handle that is freed when this is dropped.
struct Handle(*mut Filter);

impl Handle {
    fn new() -> Self {
        Self::with(Backend::Cpu as u32, -1).unwrap()
    }

    /// The handle, or the status and the text of the error.
    fn with(backend: u32, device: i32) -> std::result::Result<Self, (Status, String)> {
        let mut filter = std::ptr::dangling_mut::<Filter>();
        // SAFETY: the pointer is valid for writes.
        match unsafe { nmsfilter_new(backend, device, &mut filter) } {
            Status::Ok => Ok(Self(filter)),
            status => {
                assert!(filter.is_null());
                // SAFETY: NULL asks for the error of this thread.
                Err((status, text(unsafe { nmsfilter_error_text(null()) })))
            }
        }
    }

    fn error(&self) -> String {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        text(unsafe { nmsfilter_error_text(self.0) })
    }

    fn check(&self, status: Status) {
        assert_eq!(status, Status::Ok, "{}", self.error());
    }

    fn set_decoder(&self, name: &CStr) -> Status {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_set_decoder(self.0, name.as_ptr()) }
    }

    fn set_params(&self, change: impl FnOnce(&mut Params)) -> Status {
        let mut params = params();
        change(&mut params);
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_set_params(self.0, &params) }
    }

    fn set_options(&self, change: impl FnOnce(&mut Options)) -> Status {
        // SAFETY: zeros are valid in a structure of C.
        let mut options: Options = unsafe { zeroed() };
        options.size = size_of::<Options>();
        change(&mut options);
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_set_options(self.0, &options) }
    }

    fn run(&self, tensors: &[Tensor]) -> std::result::Result<Result, (Status, String)> {
        // SAFETY: zeros are valid in a structure of C.
        let mut result: Result = unsafe { zeroed() };
        result.size = size_of::<Result>();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        match unsafe { nmsfilter_run(self.0, tensors.as_ptr(), tensors.len(), &mut result) } {
            Status::Ok => Ok(result),
            status => Err((status, self.error())),
        }
    }

    fn image(&self, index: usize) -> Image {
        // SAFETY: zeros are valid in a structure of C.
        let mut image: Image = unsafe { zeroed() };
        image.size = size_of::<Image>();
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        self.check(unsafe { nmsfilter_image(self.0, index, &mut image) });
        image
    }

    fn detections(&self, image: usize) -> Vec<Detection> {
        let image = self.image(image);
        array(image.detections, image.count)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        unsafe { nmsfilter_free(self.0) };
    }
}

fn text(text: *const c_char) -> String {
    // SAFETY: the text ends with NUL and belongs to a value that still exists.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

fn array<T: Copy>(pointer: *const T, count: usize) -> Vec<T> {
    match pointer.is_null() {
        true => Vec::new(),
        // SAFETY: the library says that so many values are at the pointer, until its next run.
        false => unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec(),
    }
}

fn params() -> Params {
    // SAFETY: zeros are valid in a structure of C.
    let mut params: Params = unsafe { zeroed() };
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_params_init(&mut params, size_of::<Params>()) };
    assert_eq!(status, Status::Ok);
    params
}

fn tensor(id: &CStr, shape: &[u64], numbers: &[f32]) -> Tensor {
    // SAFETY: zeros are valid in a structure of C.
    let mut tensor: Tensor = unsafe { zeroed() };
    tensor.size = size_of::<Tensor>();
    tensor.id = id.as_ptr();
    tensor.dimensions = shape.len() as u32;
    tensor.shape[..shape.len()].copy_from_slice(shape);
    tensor.data = numbers.as_ptr().cast();
    tensor.bytes = size_of_val(numbers);
    tensor
}

/// Two windows of one object, and one of another.
const WINDOWS: [f32; 12] = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6, 300.0, 60.0, 90.0, 0.7];

fn windows() -> Tensor {
    tensor(c"windows", &[3, 4], &WINDOWS)
}

/// Returns random numbers from 0 to below 1, equal on every machine.
fn random_numbers(count: usize) -> impl Iterator<Item = f32> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32
    })
    .take(count)
}

/// The output of a YOLO model of 2 classes, with `extra` numbers of each anchor after the scores.
fn output(anchors: usize, extra: usize) -> Vec<f32> {
    let mut random = random_numbers(usize::MAX);
    let mut output = vec![0.0; (6 + extra) * anchors];
    for anchor in 0..anchors {
        for row in 0..6 + extra {
            let random = random.next().unwrap();
            output[row * anchors + anchor] = match row {
                0 | 1 => 20.0 + 120.0 * random,
                2 | 3 => 10.0 + 30.0 * random,
                4 | 5 => random,
                _ => random - 0.5,
            };
        }
    }
    output
}

#[test]
fn the_version_is_that_of_the_header() {
    let header = include_str!("../../include/nmsfilter/nmsfilter.h");
    let number = |name: &str| {
        let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
        line.unwrap().parse::<u32>().unwrap()
    };
    let [major, minor, patch] =
        ["MAJOR", "MINOR", "PATCH"].map(|part| number(&format!("NMSFILTER_VERSION_{part}")));
    assert_eq!(nmsfilter_version(), major * 10_000 + minor * 100 + patch);
}

#[test]
fn all_decoders_are_named() {
    let names: Vec<String> = (0..)
        .map(|index| nmsfilter_decoder_name(index))
        .take_while(|name| !name.is_null())
        .map(text)
        .collect();
    assert_eq!(names, Nms::decoders().collect::<Vec<_>>());
    assert!(nmsfilter_decoder_name(usize::MAX).is_null());
}

#[test]
fn a_run_gives_what_the_rust_interface_gives() {
    let numbers = output(300, 0);
    let shape = [1, 6, 300];
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"yolov8"));
    handle.check(handle.set_params(|params| {
        params.score_threshold = 0.5;
        params.iou_threshold = 0.6;
        params.max_detections = 40;
    }));
    let result = handle.run(&[tensor(c"output0", &shape, &numbers)]).unwrap();
    assert_eq!((result.image_count, text(result.engine).as_str()), (1, "cpu"));
    assert_eq!((result.bytes_uploaded, result.device_nanoseconds), (0, 0));

    let mut nms = Nms::new(nms::Backend::Cpu, None).unwrap();
    nms.set_decoder(Some("yolov8")).unwrap();
    nms.params.thresholds.default = 0.5;
    nms.params.iou_threshold = 0.6;
    nms.params.max_detections = 40;
    let tensors = [TensorView::from_slice("output0", &[1, 6, 300], &numbers)];
    let expected = nms.run(&tensors).unwrap().group(0);
    let image = handle.image(0);
    assert_eq!((image.candidates, image.rejected), (expected.candidates, expected.rejected));
    let found = handle.detections(0);
    assert_eq!(found.len(), 40);
    for (found, expected) in found.iter().zip(expected.survivors) {
        let bits = |numbers: [f32; 5]| numbers.map(f32::to_bits);
        assert_eq!(
            bits([found.x1, found.y1, found.x2, found.y2, found.score]),
            bits([expected.x1, expected.y1, expected.x2, expected.y2, expected.score])
        );
        assert_eq!((found.class_id, found.anchor), (expected.class, expected.anchor));
    }
    assert!(image.oriented_boxes.is_null() && image.points.is_null() && image.masks.is_null());
    assert_eq!(image.columns_per_detection, 0);
}

#[test]
fn images_of_a_batch_are_in_one_allocation_or_in_several() {
    let second = [10.0, 20.0, 60.0, 0.8, 300.0, 60.0, 90.0, 0.7, 0.0, 0.0, 0.0, 0.0];
    let both = [WINDOWS, second].concat();
    let one = tensor(c"windows", &[2, 3, 4], &both);
    let images = [WINDOWS.as_ptr().cast::<c_void>(), second.as_ptr().cast()];
    let mut several = Tensor { data: null(), images: images.as_ptr(), ..one };
    several.bytes = size_of_val(&second);

    let handle = Handle::new();
    handle.check(handle.set_options(|options| options.batch = 1));
    let anchors = |image: usize| -> Vec<u32> {
        handle.detections(image).iter().map(|detection| detection.anchor).collect()
    };
    for tensor in [one, several] {
        assert_eq!(handle.run(&[tensor]).unwrap().image_count, 2);
        assert_eq!([anchors(0), anchors(1)], [[0, 2], [0, 1]]);
    }
    // SAFETY: zeros are valid in a structure of C.
    let mut image: Image = unsafe { zeroed() };
    image.size = size_of::<Image>();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_image(handle.0, 2, &mut image) };
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(handle.error(), "index: expected that of one of 2 images of the last run, got 2");
}

/// Runs a decoder of YOLO with the numbers of each anchor after its scores, in both interfaces.
fn run_yolo(
    decoder: &CStr,
    extra: usize,
    prototypes: Option<&[f32]>,
    check: impl FnOnce(&Handle, nms::DetailedOutcome<'_>),
) {
    let numbers = output(100, extra);
    let rows = 6 + extra;
    let handle = Handle::new();
    handle.check(handle.set_decoder(decoder));
    handle.check(handle.set_options(|options| {
        options.class_count = 2;
        // 12 numbers of keypoints could be six of two, too.
        (options.keypoint_count, options.keypoint_components) = (4, 3);
        (options.model_width, options.model_height) = (160.0, 160.0);
    }));
    let mut tensors = vec![tensor(c"output0", &[1, rows as u64, 100], &numbers)];
    tensors.extend(prototypes.map(|it| tensor(c"output1", &[1, extra as u64, 40, 40], it)));
    if let Err((_, text)) = handle.run(&tensors) {
        panic!("{text}");
    }

    let mut nms = Nms::new(nms::Backend::Cpu, None).unwrap();
    nms.set_decoder(Some(decoder.to_str().unwrap())).unwrap();
    nms.options.num_classes = 2;
    nms.options.keypoints = Some(nms::KeypointShape { count: 4, components: 3 });
    nms.model_size = [160.0; 2];
    let mut views = vec![TensorView::from_slice("output0", &[1, rows, 100], &numbers)];
    let of_prototypes = |it| TensorView::from_slice("output1", &[1, extra, 40, 40], it);
    views.extend(prototypes.map(of_prototypes));
    let expected = nms.run_detailed(&views).unwrap();
    assert!(expected.outcome.group(0).survivors.len() > 10);
    assert_eq!(handle.image(0).count, expected.outcome.group(0).survivors.len());
    check(&handle, expected);
}

#[test]
fn oriented_boxes_are_those_of_the_rust_interface() {
    run_yolo(c"yolov8-obb", 1, None, |handle, expected| {
        let image = handle.image(0);
        let found = array(image.oriented_boxes, image.count);
        for (number, found) in found.iter().enumerate() {
            let expected = expected.oriented_box(0, number).unwrap();
            assert_eq!([found.center_x, found.center_y], expected.center);
            assert_eq!([found.width, found.height, found.angle], {
                let [width, height] = expected.size;
                [width, height, expected.angle]
            });
        }
        assert_eq!(found.len(), image.count);
    });
}

#[test]
fn keypoints_are_those_of_the_rust_interface() {
    run_yolo(c"yolov8-pose", 12, None, |handle, expected| {
        let image = handle.image(0);
        assert_eq!(image.points_per_detection, 4);
        let found = array(image.points, image.count * 4);
        for (number, found) in found.chunks(4).enumerate() {
            let points: Vec<[f32; 3]> = expected
                .points_of(0, number)
                .map(|point| [point.x, point.y, point.visibility])
                .collect();
            let found: Vec<_> = found.iter().map(|it| [it.x, it.y, it.visibility]).collect();
            assert_eq!(found, points);
        }
        assert_eq!(image.columns_per_detection, expected.outcome.column_components);
        let columns = array(image.columns, image.count * image.columns_per_detection);
        assert_eq!(columns, expected.outcome.group(0).columns);
    });
}

#[test]
fn masks_are_those_of_the_rust_interface() {
    let prototypes: Vec<f32> = random_numbers(4 * 40 * 40).map(|it| it - 0.5).collect();
    run_yolo(c"yolov8-seg", 4, Some(&prototypes), |handle, expected| {
        let image = handle.image(0);
        let found = array(image.masks, image.count);
        let masks = expected.outcome.group(0).masks;
        for (number, found) in found.iter().enumerate() {
            let expected = masks.get(number).unwrap();
            assert_eq!((found.left, found.top), (expected.left, expected.top));
            assert_eq!((found.width, found.height), (expected.width, expected.height));
            assert_eq!(array(found.bytes, expected.bytes.len()), expected.bytes);
        }
        assert_eq!(found.len(), image.count);
    });
}

#[test]
fn results_remain_until_the_next_run() {
    let handle = Handle::new();
    handle.run(&[windows()]).unwrap();
    let image = handle.image(0);
    handle.check(handle.set_decoder(c"yolov8"));
    handle.check(handle.set_params(|params| params.score_threshold = 2.0));
    assert_eq!(array(image.detections, image.count)[1].anchor, 2);
    assert_eq!(handle.detections(0).len(), 2);

    let (status, _) = handle.run(&[windows()]).unwrap_err();
    assert_eq!(status, Status::Decoder);
    // SAFETY: zeros are valid in a structure of C.
    let mut image: Image = unsafe { zeroed() };
    image.size = size_of::<Image>();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_image(handle.0, 0, &mut image) };
    assert_eq!(status, Status::InvalidArgument, "there is no result of a run that failed");
}

#[test]
fn a_layout_is_set_by_its_text() {
    let handle = Handle::new();
    let layout = c"name rows\ntensor boxes [N,4]\ntensor scores [N,1]\nbox corners\n";
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let status = unsafe { nmsfilter_set_layout(handle.0, layout.as_ptr()) };
    let text = handle.error();
    assert_eq!(status, Status::Decoder);
    assert!(text.starts_with("line "), "{text}");
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    assert_eq!(unsafe { nmsfilter_set_layout(handle.0, null()) }, Status::InvalidArgument);

    let families =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/decoder/families");
    let mut text = std::fs::read(families.join("nanodet.layout")).unwrap();
    text.push(0);
    let text = CStr::from_bytes_with_nul(&text).unwrap();
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    handle.check(unsafe { nmsfilter_set_layout(handle.0, text.as_ptr()) });
    let (status, text) = handle.run(&[windows()]).unwrap_err();
    assert_eq!(status, Status::Decoder);
    assert!(text.contains("windows"), "{text}");
}

#[test]
fn structures_of_other_versions_of_the_header_are_read_and_written() {
    /// A structure of a newer header.
    #[repr(C)]
    struct Newer<T> {
        known: T,
        added: u64,
    }

    let handle = Handle::new();
    let mut tensor = Newer { known: windows(), added: 0 };
    tensor.known.size = size_of_val(&tensor);
    // SAFETY: zeros are valid in a structure of C.
    let mut result: Newer<Result> = Newer { known: unsafe { zeroed() }, added: 7 };
    result.known.size = size_of_val(&result);
    // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
    let run = |tensor: &Newer<Tensor>, result: &mut Newer<Result>| unsafe {
        nmsfilter_run(handle.0, &tensor.known, 1, &mut result.known)
    };
    handle.check(run(&tensor, &mut result));
    assert_eq!((result.known.size, result.known.image_count, result.added), (56, 1, 0));

    tensor.added = 1;
    assert_eq!(run(&tensor, &mut result), Status::InvalidArgument);
    let expected = "tensors: the structure NmsfilterTensor has 144 bytes, of which this library knows 136; leave \
                    newer fields 0, or install a newer library";
    assert_eq!(handle.error(), expected);
}

/// The warnings of a handle.
fn warnings(filter: *const Filter) -> Vec<String> {
    (0..)
        // SAFETY: pointers are valid for the call, or NULL, which it must refuse.
        .map(|index| unsafe { nmsfilter_warning(filter, index) })
        .take_while(|text| !text.is_null())
        .map(text)
        .collect()
}

#[test]
fn tensors_that_are_misread_are_warned_of_once() {
    // Rows of corners, score and class, as end-to-end models have them.
    let rows = [10.0, 20.0, 60.0, 90.0, 0.9, 3.0].repeat(300);
    let rows = tensor(c"output0", &[1, 300, 6], &rows);
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"yolov8"));
    assert!(warnings(handle.0).is_empty());
    for _ in 0..3 {
        handle.run(&[rows]).unwrap();
    }
    let found = warnings(handle.0);
    assert!(
        found[0]
            .ends_with("set the decoder end2end, or class_count = 2 if the model has that many"),
        "{found:?}"
    );
    assert!(found[1].contains(" are corners, but decoder yolov8 reads centers"), "{found:?}");
    assert!(
        found[2].starts_with("a score is 3, but scores of decoder yolov8 are probabilities"),
        "{found:?}"
    );
    assert_eq!(found.len(), 3);
    handle.check(handle.set_decoder(c"end2end"));
    handle.run(&[rows]).unwrap();
    assert!(warnings(handle.0).is_empty() && warnings(null()).is_empty());
}

#[test]
fn the_end_of_a_few_images_is_judged() {
    // A normalized box, and a model of 640x640.
    let rows = tensor(c"output0", &[1, 1, 6], &[0.2, 0.2, 0.6, 0.9, 0.9, 3.0]);
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"end2end"));
    let set_size = |options: &mut Options| {
        (options.model_width, options.model_height) = (640.0, 640.0);
    };
    handle.check(handle.set_options(set_size));
    handle.run(&[rows]).unwrap();
    assert!(warnings(handle.0).is_empty());
    for _ in 0..2 {
        // SAFETY: the handle is valid.
        handle.check(unsafe { nmsfilter_finish(handle.0) });
        let [warning] = &warnings(handle.0)[..] else { panic!("one warning") };
        assert!(warning.contains("coordinates = NMSFILTER_COORDINATES_NORMALIZED"), "{warning}");
    }
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { nmsfilter_finish(std::ptr::null_mut()) }, Status::InvalidArgument);
}

#[test]
fn handles_work_in_several_threads() {
    let run = |threshold: f32| {
        let handle = Handle::new();
        handle.check(handle.set_params(|params| params.score_threshold = threshold));
        (0..50).all(|_| {
            handle.run(&[windows()]).unwrap();
            let expected = if threshold > 0.8 { 1 } else { 2 };
            handle.detections(0).len() == expected
        })
    };
    std::thread::scope(|scope| {
        let threads = [0.1, 0.85, 0.3, 0.86].map(|threshold| scope.spawn(move || run(threshold)));
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
}
