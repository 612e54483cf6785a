// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outputs whose shapes leave open which number is which: the order of dimensions, the strides, the tensors of scores, and
//! the keypoints. The expected boxes follow from the cells of the objects.

use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::pipeline::{Ended, Region, init, intercept, parse, regions, run, watch};

const SIDE: usize = 640;

/// An object: its stride, the row and column of its cell, its class, and the distances of its sides from the center of the
/// cell, in cells.
#[derive(Clone, Copy)]
struct Object {
    stride: usize,
    cell: [usize; 2],
    class: usize,
    distances: [usize; 4],
}

impl Object {
    const fn new(stride: usize, cell: [usize; 2], class: usize) -> Self {
        Self { stride, cell, class, distances: [3, 2, 4, 1] }
    }

    fn region(self) -> Region {
        let [left, up, right, down] = self.distances.map(|distance| distance * self.stride);
        let [y, x] = self.cell.map(|at| at * self.stride + self.stride / 2);
        let bounds = [x - left, y - up, left + right, up + down];
        (format!("class-{}", self.class), bounds.map(|number| number as _))
    }
}

/// How the heads are exported.
#[derive(Clone, Copy, PartialEq)]
enum Export {
    ChannelsFirst,
    ChannelsLast,
    /// With the sum of all scores of each cell.
    Rknn,
}

/// The heads of a model of 640x640 pixels for each stride: 16 bins for each side, and scores.
fn heads(strides: &[usize], classes: usize, objects: &[Object], export: Export) -> Vec<NewTensor> {
    init();
    let mut tensors = Vec::new();
    for &stride in strides {
        let side = SIDE / stride;
        let cells = side * side;
        let mut add = |channels: usize, number: &dyn Fn(usize, usize) -> f32| {
            let of = |cell, channel| number(cell, channel);
            let last = export == Export::ChannelsLast;
            let numbers: Vec<f32> = (0..cells * channels)
                .map(|index| match last {
                    true => of(index / channels, index % channels),
                    false => of(index % cells, index / cells),
                })
                .collect();
            let shape = if last { [1, side, side, channels] } else { [1, channels, side, side] };
            let id = format!("{}", 300 + 7 * tensors.len());
            tensors.push(NewTensor::from_vec(&id, &shape, numbers).unwrap());
        };
        let at = |cell: usize| {
            let is_here =
                |it: &&Object| it.stride == stride && it.cell == [cell / side, cell % side];
            objects.iter().find(is_here)
        };
        add(64, &|cell, channel| match at(cell) {
            Some(it) if it.distances[channel / 16] == channel % 16 => 0.0,
            Some(_) => -60.0,
            None => 0.0,
        });
        let score = |cell: usize, class: usize| match at(cell) {
            Some(it) if it.class == class => 0.875,
            _ => 0.0,
        };
        add(classes, &score);
        if export == Export::Rknn {
            add(1, &|cell, _| (0..classes).map(|class| score(cell, class)).sum());
        }
    }
    tensors
}

/// The regions of a frame of 640x640, sorted, and the messages.
fn filter(properties: &str, tensors: Vec<NewTensor>) -> (Vec<Region>, Ended) {
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,format=GRAY8,width={SIDE},height={SIDE}
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    intercept(&pipeline, "in", move |buffer| {
        tensors.iter().for_each(|tensor| attach(buffer, tensor).unwrap());
    });
    let seen = watch(&pipeline, "nms", regions);
    let ended = run(&pipeline);
    let mut seen = std::mem::take(&mut *seen.lock().unwrap()).concat();
    seen.sort();
    (seen, ended)
}

/// Asserts that these regions are found without a word.
fn assert_found(properties: &str, tensors: Vec<NewTensor>, objects: &[Object]) {
    let (seen, ended) = filter(properties, tensors);
    assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]), "{properties}");
    let mut expected: Vec<Region> = objects.iter().map(|object| object.region()).collect();
    expected.sort();
    assert_eq!(seen, expected, "{properties}");
}

/// With 80 classes, the scores of stride 8 are `[1,80,80,80]` in either order.
#[test]
fn heads_with_as_many_classes_as_cells_have_one_order_of_dimensions() {
    for classes in [80, 40, 20] {
        let objects = [8, 16, 32].map(|stride| Object::new(stride, [10, 5 + stride / 4], 7));
        for export in [Export::ChannelsFirst, Export::ChannelsLast] {
            let tensors = heads(&[8, 16, 32], classes, &objects, export);
            assert_found("decoder=yolov8-heads", tensors, &objects);
        }
    }
}

#[test]
fn heads_of_a_fourth_stride_are_read() {
    for strides in [&[4, 8, 16, 32][..], &[8, 16, 32, 64], &[16, 32], &[4, 8, 16, 32, 64, 128]] {
        let object = |&stride: &usize| Object::new(stride, [2, 3], stride % 5);
        let objects: Vec<Object> =
            strides.iter().map(object).map(|it| Object { distances: [1, 1, 1, 1], ..it }).collect();
        for export in [Export::ChannelsFirst, Export::ChannelsLast] {
            let tensors = heads(strides, 5, &objects, export);
            assert_found("decoder=yolov8-heads", tensors, &objects);
        }
    }
}

#[test]
fn sums_of_scores_are_told_by_the_number_of_classes() {
    for classes in [1, 5] {
        let objects = [Object::new(16, [10, 20], classes - 1)];
        let tensors = || heads(&[8, 16, 32], classes, &objects, Export::Rknn);
        assert_found(&format!("decoder=yolov8-heads num-classes={classes}"), tensors(), &objects);
        let (_, ended) = filter("decoder=yolov8-heads", tensors());
        let error = ended.error();
        assert!(error.contains("set num-classes to the model's number of classes"), "{error}");
    }
}

/// The box of a stride whose scores are missing.
#[test]
fn a_stride_that_is_not_read_is_told_once() {
    let objects = [Object::new(16, [10, 20], 3)];
    let mut tensors = heads(&[8, 16, 32, 64], 5, &objects, Export::ChannelsFirst);
    tensors.pop();
    let (seen, ended) = filter("decoder=yolov8-heads", tensors);
    assert_eq!(seen, [objects[0].region()]);
    let [warning] = &ended.warnings[..] else { panic!("{:?}", ended.warnings) };
    assert!(warning.contains("does not read the tensor 342 (f32 1x64x10x10)"), "{warning}");
}

/// YOLOv8 for 64x64 pixels and 80 classes has 84 anchors of 84 numbers.
#[test]
fn the_property_channels_decides_where_the_shape_does_not() {
    let tensor = |is_last: bool| {
        init();
        let mut rows = vec![[0.0f32; 84]; 84];
        rows[30][..4].copy_from_slice(&[32.0, 20.0, 16.0, 8.0]);
        rows[30][4 + 7] = 0.875;
        let numbers = match is_last {
            true => rows.concat(),
            false => (0..84).flat_map(|channel| rows.iter().map(move |row| row[channel])).collect(),
        };
        NewTensor::from_vec("output0", &[1, 84, 84], numbers).unwrap()
    };
    let size = "decoder=yolov8 model-width=64 model-height=64";
    let (_, ended) = filter(size, vec![tensor(true)]);
    let error = ended.error();
    assert!(error.contains("first or last; set channels to first or last"), "{error}");
    for (is_last, channels) in [(false, "first"), (true, "last")] {
        let (seen, ended) = filter(&format!("{size} channels={channels}"), vec![tensor(is_last)]);
        assert_eq!((ended.error, &ended.warnings[..]), (None, &[][..]));
        assert_eq!(seen, [("class-7".to_owned(), [240, 160, 160, 80])]);
    }
}

/// 57 numbers are a box, two classes and 17 points of three numbers, or one class and 26 points of two.
#[test]
fn the_property_keypoint_shape_divides_the_numbers_of_an_anchor() {
    let tensor = || {
        init();
        let mut rows = vec![[0.0f32; 57]; 100];
        rows[30][..4].copy_from_slice(&[320.0, 200.0, 160.0, 80.0]);
        rows[30][4 + 1] = 0.875;
        let numbers = rows.concat();
        NewTensor::from_vec("output0", &[1, 100, 57], numbers).unwrap()
    };
    let decoder = "decoder=yolov8-pose model-width=640 model-height=640";
    let (_, ended) = filter(decoder, vec![tensor()]);
    let error = ended.error();
    assert!(error.contains("; set num-classes or keypoint-shape"), "{error}");
    for setting in ["num-classes=2", "keypoint-shape=17x3"] {
        let (seen, ended) = filter(&format!("{decoder} {setting}"), vec![tensor()]);
        assert_eq!(ended.error, None, "{setting}");
        assert_eq!(seen, [("class-1".to_owned(), [240, 160, 160, 80])], "{setting}");
    }
    for value in ["17", "17x4", "0x3", "513x2", "ax3", "17x3x1"] {
        let (_, ended) = filter(&format!("{decoder} keypoint-shape={value}"), vec![tensor()]);
        let expected = format!("such as 17x3, got \"{value}\"");
        assert!(ended.error().contains(&expected), "{}", ended.error());
    }
}
