// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of the header: their results are those of the Rust interface, and what is wrong is an error.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the calls pass what the header requires, or what it refuses"
)]

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
                Err((status, text(unsafe { nmsfilter_error_text(null()) })))
            }
        }
    }

    fn error(&self) -> String {
        text(unsafe { nmsfilter_error_text(self.0) })
    }

    fn check(&self, status: Status) {
        assert_eq!(status, Status::Ok, "{}", self.error());
    }

    fn set_decoder(&self, name: &CStr) -> Status {
        unsafe { nmsfilter_set_decoder(self.0, name.as_ptr()) }
    }

    fn set_params(&self, change: impl FnOnce(&mut Params)) -> Status {
        let mut params = params();
        change(&mut params);
        unsafe { nmsfilter_set_params(self.0, &params) }
    }

    fn set_options(&self, change: impl FnOnce(&mut Options)) -> Status {
        let mut options: Options = unsafe { zeroed() };
        options.size = size_of::<Options>();
        change(&mut options);
        unsafe { nmsfilter_set_options(self.0, &options) }
    }

    fn run(&self, tensors: &[Tensor]) -> std::result::Result<Result, (Status, String)> {
        let mut result: Result = unsafe { zeroed() };
        result.size = size_of::<Result>();
        match unsafe { nmsfilter_run(self.0, tensors.as_ptr(), tensors.len(), &mut result) } {
            Status::Ok => Ok(result),
            status => Err((status, self.error())),
        }
    }

    fn image(&self, index: usize) -> Image {
        let mut image: Image = unsafe { zeroed() };
        image.size = size_of::<Image>();
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
        unsafe { nmsfilter_free(self.0) };
    }
}

fn text(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

fn array<T: Copy>(pointer: *const T, count: usize) -> Vec<T> {
    match pointer.is_null() {
        true => Vec::new(),
        false => unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec(),
    }
}

fn params() -> Params {
    let mut params: Params = unsafe { zeroed() };
    let status = unsafe { nmsfilter_params_init(&mut params, size_of::<Params>()) };
    assert_eq!(status, Status::Ok);
    params
}

fn tensor(id: &CStr, shape: &[u64], numbers: &[f32]) -> Tensor {
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

/// The same numbers for everyone, from 0 to below 1.
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
    let header = include_str!("../include/nmsfilter/nmsfilter.h");
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
    let mut image: Image = unsafe { zeroed() };
    image.size = size_of::<Image>();
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
            let expected = expected.detail(0, number).oriented_box().unwrap();
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
                .detail(0, number)
                .points()
                .iter()
                .map(|point| [point.x, point.y, point.visibility])
                .collect();
            let found: Vec<_> = found.iter().map(|it| [it.x, it.y, it.visibility]).collect();
            assert_eq!(found, points);
        }
        assert_eq!(image.columns_per_detection, expected.outcome.column_components());
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

/// Runs the decoder `boxes` on boxes of descending scores, and returns the indices of those that are kept.
fn kept(boxes: &[[f32; 4]], classes: Option<&[f32]>, change: impl FnOnce(&mut Params)) -> Vec<u32> {
    let scores: Vec<f32> = (0..boxes.len()).map(|index| 0.9 - 0.1 * index as f32).collect();
    let count = boxes.len() as u64;
    let mut tensors = vec![
        tensor(c"boxes", &[count, 4], boxes.as_flattened()),
        tensor(c"scores", &[count], &scores),
    ];
    tensors.extend(classes.map(|classes| tensor(c"labels", &[count], classes)));
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"boxes"));
    handle.check(handle.set_options(|options| {
        (options.model_width, options.model_height) = (64.0, 64.0);
    }));
    handle.check(handle.set_params(change));
    handle.run(&tensors).unwrap_or_else(|(_, text)| panic!("{text}"));
    handle.detections(0).iter().map(|detection| detection.anchor).collect()
}

#[test]
fn suppression_obeys_the_threshold_and_the_pixel_offset() {
    // The first box covers half of the second.
    let boxes = [[0.0, 0.0, 10.0, 10.0], [0.0, 5.0, 10.0, 15.0]];
    for (threshold_inclusive, expected) in [(0, &[0, 1][..]), (1, &[0][..])] {
        let found = kept(&boxes, None, |params| {
            (params.overlap, params.iou_threshold) = (Overlap::Smaller as u32, 0.5);
            params.threshold_inclusive = threshold_inclusive;
        });
        assert_eq!(found, expected);
    }
    // Overlap of 4 x 9 of 9 x 9 pixels, or with the offset of 5 x 10 of 10 x 10.
    let boxes = [[0.0, 0.0, 9.0, 9.0], [0.0, 5.0, 9.0, 14.0]];
    for (pixel_offset, expected) in [(0.0, &[0, 1][..]), (1.0, &[0][..])] {
        let found = kept(&boxes, None, |params| {
            (params.overlap, params.iou_threshold) = (Overlap::Smaller as u32, 0.47);
            params.pixel_offset = pixel_offset;
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn boxes_of_other_sizes_or_outside_the_visible_part_are_rejected() {
    let boxes = [[0.0, 0.0, 10.0, 10.0], [20.0, 0.0, 40.0, 10.0], [50.0, 10.0, 80.0, 50.0]];
    assert_eq!(kept(&boxes, None, |params| params.min_size = [15.0, 5.0]), [1, 2]);
    assert_eq!(kept(&boxes, None, |params| params.max_size = [30.0, 15.0]), [0, 1]);
    assert_eq!(kept(&boxes, None, |params| params.visible = [0.0, 0.0, 64.0, 10.0]), [0, 1]);
    // Frames of 128 x 64 were stretched to the model's input: the boxes have widths of 20, 40 and 60 pixels of the frame.
    let found = kept(&boxes, None, |params| {
        (params.frame_size, params.frame_ratio) = ([128, 64], [0.5, 1.0]);
        (params.min_size, params.max_size) = ([21.0, 0.0], [59.0, 40.0]);
    });
    assert_eq!(found, [1]);
}

#[test]
fn rules_of_classes_replace_the_rules_of_all_classes() {
    // The overlap of neighbors is 3/7.
    let boxes = [
        [0.0, 0.0, 10.0, 10.0],
        [0.0, 4.0, 10.0, 14.0],
        [50.0, 0.0, 60.0, 10.0],
        [50.0, 4.0, 60.0, 14.0],
        [30.0, 0.0, 35.0, 5.0],
    ];
    let with = |change: fn(&mut ClassRule)| {
        // SAFETY: zeros are valid in each field.
        let mut rules: [ClassRule; 2] = unsafe { zeroed() };
        rules.iter_mut().for_each(|rule| rule.size = size_of::<ClassRule>());
        change(&mut rules[1]);
        kept(&boxes, Some(&[0.0, 0.0, 1.0, 1.0, 1.0]), |params| {
            (params.class_rules, params.class_rule_count) = (rules.as_ptr(), rules.len());
        })
    };
    assert_eq!(with(|_| {}), [0, 1, 2, 3, 4]);
    let found = with(|rule| (rule.has_iou_threshold, rule.iou_threshold) = (1, 0.4));
    assert_eq!(found, [0, 1, 2, 4]);
    assert_eq!(with(|rule| rule.max_detections = 2), [0, 1, 2, 3]);
    let found = with(|rule| {
        (rule.has_sizes, rule.min_size, rule.max_size) = (1, [6.0; 2], [f32::INFINITY; 2]);
    });
    assert_eq!(found, [0, 1, 2, 3]);
}

#[test]
fn masks_are_in_pixels_of_the_prototypes_or_of_the_frame() {
    // A box that covers the model's input of 8 x 8. The prototypes have 2 x 2 pixels; only the left ones are set.
    let mut numbers = vec![0.0; 6 * 20];
    for (row, number) in [4.0, 4.0, 8.0, 8.0, 0.9, 1.0].into_iter().enumerate() {
        numbers[row * 20] = number;
    }
    let tensors = [
        tensor(c"output0", &[1, 6, 20], &numbers),
        tensor(c"output1", &[1, 1, 2, 2], &[1.0, -1.0, 1.0, -1.0]),
    ];
    let handle = Handle::new();
    handle.check(handle.set_decoder(c"yolov8-seg"));
    handle.check(handle.set_options(|options| {
        (options.model_width, options.model_height) = (8.0, 8.0);
    }));
    // Frames of 16 x 8 have 8 x 4 pixels of the model's input, below a border of 2 rows.
    for (mask_size, [width, height], bytes) in [
        (MaskSize::Prototypes, [2, 2], &[0x80; 2][..]),
        (MaskSize::Frame, [16, 8], &[0xff, 0].repeat(8)[..]),
    ] {
        handle.check(handle.set_params(|params| {
            params.mask_size = mask_size as u32;
            (params.frame_size, params.frame_ratio) = ([16, 8], [0.5; 2]);
            params.frame_offset = [0.0, 2.0];
        }));
        handle.run(&tensors).unwrap_or_else(|(_, text)| panic!("{text}"));
        let mask = array(handle.image(0).masks, 1)[0];
        assert_eq!([mask.left, mask.top, mask.width, mask.height], [0, 0, width, height]);
        assert_eq!(array(mask.bytes, bytes.len()), bytes);
    }
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
    let mut image: Image = unsafe { zeroed() };
    image.size = size_of::<Image>();
    let status = unsafe { nmsfilter_image(handle.0, 0, &mut image) };
    assert_eq!(status, Status::InvalidArgument, "there is no result of a run that failed");
}

#[test]
fn a_layout_is_set_by_its_text() {
    let handle = Handle::new();
    let layout = c"name rows\ntensor boxes [N,4]\ntensor scores [N,1]\nbox corners\n";
    let status = unsafe { nmsfilter_set_layout(handle.0, layout.as_ptr()) };
    let text = handle.error();
    assert_eq!(status, Status::Decoder);
    assert!(text.starts_with("line "), "{text}");
    assert_eq!(unsafe { nmsfilter_set_layout(handle.0, null()) }, Status::InvalidArgument);

    let families =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/decoder/families");
    let mut text = std::fs::read(families.join("nanodet.layout")).unwrap();
    text.push(0);
    let text = CStr::from_bytes_with_nul(&text).unwrap();
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
    let mut result: Newer<Result> = Newer { known: unsafe { zeroed() }, added: 7 };
    result.known.size = size_of_val(&result);
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

#[test]
fn a_handle_that_cannot_be_made_is_null() {
    let error = |backend, device| Handle::with(backend, device).err().unwrap();
    let expected = "backend: expected an NmsfilterBackend, got 3";
    assert_eq!(error(3, -1), (Status::InvalidArgument, expected.to_owned()));
    let expected = "cuda_device: expected -1 or the number of a GPU, got -2";
    assert_eq!(error(0, -2), (Status::InvalidArgument, expected.to_owned()));
    // No machine has as many.
    assert_eq!(error(Backend::Cuda as u32, 100).0, Status::Device);
    let status = unsafe { nmsfilter_new(0, -1, null_mut()) };
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(
        text(unsafe { nmsfilter_error_text(null()) }),
        "the handle: expected a pointer, got NULL"
    );
    unsafe { nmsfilter_free(null_mut()) };
}

#[test]
fn arguments_that_are_none_are_errors() {
    let handle = Handle::new();
    let status = unsafe { nmsfilter_run(null_mut(), &windows(), 1, null_mut()) };
    assert_eq!(status, Status::InvalidArgument);

    const NULLS: &[*const c_void; 3] = &[null(); 3];
    // What is changed, and the text.
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
    let of_params: [(Change, &str); 20] = [
        (
            |params| params.size = 0,
            "params: expected a size of at least 168, got 0; set it to sizeof(NmsfilterParams)",
        ),
        (
            |params| params.class_score_threshold_count = 2,
            "params: class_score_thresholds: expected a pointer, got NULL",
        ),
        (|params| params.class_rule_count = 1, "params: class_rules: expected a pointer, got NULL"),
        (|params| params.method = 11, "params: method: expected an NmsfilterMethod, got 11"),
        (|params| params.overlap = 5, "params: overlap: expected an NmsfilterOverlap, got 5"),
        (|params| params.class_agnostic = 2, "params: class_agnostic: expected 0 or 1, got 2"),
        (|params| params.masks = u32::MAX, "params: masks: expected 0 or 1, got 4294967295"),
        (|params| params.mask_size = 2, "params: mask_size: expected an NmsfilterMaskSize, got 2"),
        (
            |params| params.mask_size = 1,
            "params: frame_size: expected the size of the frame for masks in its pixels, got none",
        ),
        (
            |params| params.frame_size = [640, 480],
            "params: frame_ratio: expected finite numbers above 0, got [0.0, 0.0]",
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
        (|params| params.pixel_offset = f32::NAN, "params: pixel_offset: expected 0 or 1, got NaN"),
        (
            // All bytes are zero but those of the size.
            |params| *params = Params { size: params.size, ..unsafe { zeroed() } },
            "params: max_size: expected numbers above 0, infinity for no limit, got [0.0, 0.0]; \
             nmsfilter_params_init sets the defaults",
        ),
    ];
    for (change, expected) in of_params {
        assert_eq!(handle.set_params(change), Status::InvalidArgument);
        assert_eq!(handle.error(), expected);
    }
    type ChangeOptions = fn(&mut Options);
    let of_options: [(ChangeOptions, &str); 7] = [
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
        (
            |options| options.coordinates = 3,
            "options: coordinates: expected an NmsfilterCoordinates, got 3",
        ),
        (
            |options| options.score_activation = 4,
            "options: score_activation: expected an NmsfilterScoreActivation, got 4",
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

/// The warnings of a handle.
fn warnings(filter: *const Filter) -> Vec<String> {
    (0..)
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
            .ends_with("set the decoder end2end, or class_count to 2 if the model has that many"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("a score is 3, but scores of decoder yolov8 are probabilities"),
        "{found:?}"
    );
    assert_eq!(found.len(), 2);
    handle.check(handle.set_decoder(c"end2end"));
    handle.run(&[rows]).unwrap();
    assert!(warnings(handle.0).is_empty() && warnings(null()).is_empty());
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
    let expected = "; set the decoder (nmsfilter_set_decoder) to the right one, and for yolov8 class_count to the model's";
    assert!(ambiguous.contains(expected), "{ambiguous}");

    handle.check(handle.set_params(|params| params.overlap = Overlap::ProbIou as u32));
    assert_eq!(handle.run(&[windows()]).unwrap_err().0, Status::Unsupported);

    let mut result: DeviceResult = unsafe { zeroed() };
    result.size = size_of::<DeviceResult>();
    handle.check(handle.set_params(|_| {}));
    let status = unsafe { nmsfilter_enqueue(handle.0, &windows(), 1, null_mut(), &mut result) };
    assert_eq!(status, Status::Unsupported, "{}", handle.error());
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

/// A handle of boxes that is freed when this is dropped.
struct BoxHandle(*mut Boxes);

impl BoxHandle {
    fn new() -> Self {
        let mut boxes = null_mut();
        let status = unsafe { nmsfilter_boxes_new(Backend::Cpu as u32, -1, &mut boxes) };
        assert_eq!(status, Status::Ok);
        Self(boxes)
    }

    fn set_params(&self, change: impl FnOnce(&mut BoxesParams)) -> Status {
        let mut params: BoxesParams = unsafe { zeroed() };
        let size = size_of::<BoxesParams>();
        assert_eq!(unsafe { nmsfilter_boxes_params_init(&mut params, size) }, Status::Ok);
        change(&mut params);
        unsafe { nmsfilter_boxes_set_params(self.0, &params) }
    }

    fn error(&self) -> String {
        text(unsafe { nmsfilter_boxes_error_text(self.0) })
    }

    fn run(
        &self,
        corners: &Tensor,
        scores: &Tensor,
        groups: Option<&Tensor>,
    ) -> std::result::Result<Vec<u32>, (Status, String)> {
        let (mut kept, mut count) = (null(), 0);
        let groups = groups.map_or(null(), |groups| groups);
        let status =
            unsafe { nmsfilter_boxes_run(self.0, corners, scores, groups, &mut kept, &mut count) };
        match status {
            Status::Ok => Ok(array(kept, count)),
            status => Err((status, self.error())),
        }
    }
}

impl Drop for BoxHandle {
    fn drop(&mut self) {
        unsafe { nmsfilter_boxes_free(self.0) };
    }
}

#[test]
fn boxes_alone_are_suppressed_in_groups() {
    let numbers = [0.0, 0.0, 10.0, 10.0, 1.0, 1.0, 11.0, 11.0, 20.0, 20.0, 30.0, 30.0];
    let corners = Tensor { id: null(), ..tensor(c"", &[3, 4], &numbers) };
    let scores = tensor(c"", &[3], &[0.8, 0.9, 0.7]);
    let handle = BoxHandle::new();
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 2]);
    let integers = [5i32, -3, 5];
    let mut groups = tensor(c"", &[3], &[]);
    groups.element_type = ElementType::I32 as u32;
    (groups.data, groups.bytes) = (integers.as_ptr().cast(), size_of_val(&integers));
    assert_eq!(handle.run(&corners, &scores, Some(&groups)).unwrap(), [1, 0, 2]);

    assert_eq!(handle.set_params(|params| params.iou_threshold = 0.7), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 0, 2]);
    assert_eq!(handle.set_params(|params| params.max_detections = 1), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1]);
    assert_eq!(handle.set_params(|params| params.method = 11), Status::InvalidArgument);
    assert_eq!(
        handle.set_params(|params| params.iou_threshold = f64::NAN),
        Status::InvalidArgument
    );
    assert_eq!(handle.error(), "params: iou_threshold: expected a number from 0 to 1, got NaN");
    let prob_iou = |params: &mut BoxesParams| params.overlap = Overlap::ProbIou as u32;
    assert_eq!(handle.set_params(prob_iou), Status::Ok);
    assert_eq!(handle.run(&corners, &scores, None).unwrap_err().0, Status::Unsupported);
    assert_eq!(handle.set_params(|_| {}), Status::Ok);
    // The handle works after each of these errors.
    assert_eq!(handle.run(&corners, &scores, None).unwrap(), [1, 2]);

    let few = tensor(c"", &[2], &[0.8, 0.9]);
    let expected = "expected scores [3] of type f32 or f16, got  (f32 2)";
    assert_eq!(
        handle.run(&corners, &few, None),
        Err((Status::InvalidArgument, expected.to_owned()))
    );
    assert_eq!(handle.run(&tensor(c"", &[0, 4], &[]), &tensor(c"", &[0], &[]), None), Ok(vec![]));
    let (mut kept, mut count) = (null(), 0);
    let status =
        unsafe { nmsfilter_boxes_run(handle.0, null(), &scores, null(), &mut kept, &mut count) };
    assert_eq!(status, Status::InvalidArgument);
    assert_eq!(handle.error(), "boxes: expected a pointer, got NULL");
}

#[test]
fn boxes_alone_are_merged() {
    // Two halves of an object, another object, and a box below the threshold.
    let numbers = [
        [0.0, 0.0, 60.0, 50.0],
        [40.0, 0.0, 90.0, 50.0],
        [200.0, 0.0, 250.0, 50.0],
        [0.0, 0.0, 200.0, 50.0],
    ]
    .concat();
    let corners = tensor(c"", &[4, 4], &numbers);
    let scores = tensor(c"", &[4], &[0.8, 0.9, 0.7, 0.1]);
    let integers = [5i64, 5, -3, 5];
    let mut classes = tensor(c"", &[4], &[]);
    classes.element_type = ElementType::I64 as u32;
    (classes.data, classes.bytes) = (integers.as_ptr().cast(), size_of_val(&integers));

    let handle = BoxHandle::new();
    let merge = |params: &mut BoxesParams| {
        (params.method, params.overlap) = (Method::Merge as u32, Overlap::Smaller as u32);
        (params.iou_threshold, params.score_threshold) = (0.3, 0.5);
    };
    assert_eq!(handle.set_params(merge), Status::Ok);
    let mut merged: MergedBoxes = unsafe { zeroed() };
    let mut run = |classes: *const Tensor| {
        merged.size = size_of::<MergedBoxes>();
        let status =
            unsafe { nmsfilter_boxes_merge(handle.0, &corners, &scores, classes, &mut merged) };
        assert_eq!(status, Status::Ok);
        merged
    };
    let found = run(&classes);
    assert_eq!(found.count, 2);
    assert_eq!(array(found.boxes, 8), [0.0, 0.0, 90.0, 50.0, 200.0, 0.0, 250.0, 50.0]);
    assert_eq!(array(found.scores, 2), [0.9, 0.7]);
    assert_eq!(array(found.classes, 2), [5, -3]);
    assert_eq!(array(found.keepers, 2), [1, 2]);
    assert_eq!(array(found.merged_ends, 2), [1, 1]);
    assert_eq!(array(found.merged, 1), [0]);
    assert!(run(null()).classes.is_null());

    let wrong_sigma = |params: &mut BoxesParams| params.sigma = -1.0;
    assert_eq!(handle.set_params(wrong_sigma), Status::InvalidArgument);
    assert_eq!(handle.error(), "params: sigma: expected a finite number above 0, got -1");
    merged.size = 1;
    let status = unsafe { nmsfilter_boxes_merge(handle.0, &corners, &scores, null(), &mut merged) };
    assert_eq!(status, Status::InvalidArgument);
}
