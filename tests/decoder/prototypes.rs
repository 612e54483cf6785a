// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding the dimension of a prototype tensor that is the number of prototypes: for models of
//! every size, with dimensions in both orders, and with whatever the user specified.

use nmsfilter_core::decoder::{self, Channels, ChoiceError, Layout, LayoutProblem, Options};
use nmsfilter_core::tensor::TensorView;

const CHANNELS: usize = 32;

/// An exported model: width and height of its input, number of classes, and the order of its
/// outputs' dimensions.
#[derive(Clone, Copy, Debug)]
struct Model {
    size: [usize; 2],
    classes: usize,
    is_transposed: bool,
    is_channels_last: bool,
}

impl Model {
    fn layout(self, options: Options) -> Result<Layout, ChoiceError> {
        let [width, height] = self.size;
        let anchors = (width * height * 21 / 1024).max(400);
        let values = 4 + self.classes + CHANNELS;
        let output = if self.is_transposed { [1, anchors, values] } else { [1, values, anchors] };
        let [rows, columns] = [height / 4, width / 4];
        let prototypes = if self.is_channels_last {
            [1, rows, columns, CHANNELS]
        } else {
            [1, CHANNELS, rows, columns]
        };
        let numbers = [output.iter().product(), prototypes.iter().product()]
            .map(|count: usize| vec![0.5f32; count]);
        let tensors = [
            TensorView::from_slice("output0", &output, &numbers[0]),
            TensorView::from_slice("output1", &prototypes, &numbers[1]),
        ];
        let seg = decoder::by_name("yolov8-seg");
        decoder::choose(&tensors, seg, options).map(|choice| choice.layout)
    }

    /// Asserts that `layout` fits the model.
    fn check(self, layout: &Layout) {
        let masks = layout.prototypes.as_ref().unwrap();
        let [width, height] = self.size;
        assert_eq!((masks.width, masks.height), (width / 4, height / 4), "{self:?}");
        assert_eq!((layout.classes, layout.columns[0].components), (self.classes, CHANNELS));
        let is_channels_last = masks.field.component_stride == 1;
        assert_eq!(is_channels_last, self.is_channels_last, "{self:?}");
    }

    /// True if all sides of the prototypes are equal.
    fn has_cube(self) -> bool {
        self.size == [4 * CHANNELS; 2]
    }

    /// The order of channels.
    fn channels(self) -> Channels {
        if self.is_channels_last { Channels::Last } else { Channels::First }
    }
}

fn models() -> impl Iterator<Item = Model> {
    const SIZES: [[usize; 2]; 12] = [
        [640, 640],
        [640, 96],
        [96, 640],
        [640, 128],
        [128, 640],
        [128, 128],
        [64, 64],
        [160, 160],
        [320, 64],
        [96, 160],
        [640, 480],
        [1280, 128],
    ];
    let orders = [[false, false], [false, true], [true, false], [true, true]];
    SIZES.into_iter().flat_map(move |size| {
        [1, 3, 80, 300].into_iter().flat_map(move |classes| {
            orders.map(|[is_transposed, is_channels_last]| Model {
                size,
                classes,
                is_transposed,
                is_channels_last,
            })
        })
    })
}

fn with_size(size: [usize; 2], options: Options) -> Options {
    Options { model_size: Some(size.map(|side| side as f32)), ..options }
}

#[test]
fn the_size_of_the_models_input_decides() {
    for model in models() {
        for num_classes in [0, model.classes] {
            let options = Options { num_classes, ..Options::default() };
            let options = with_size(model.size, options);
            if model.has_cube() {
                let error = model.layout(options).err().unwrap().to_string();
                assert!(error.ends_with("; set `options.channels` to first or last"), "{error}");
            }
            for channels in [Channels::Auto, model.channels()] {
                if channels == Channels::Auto && model.has_cube() {
                    continue;
                }
                let layout = model.layout(Options { channels, ..options });
                model.check(&layout.unwrap_or_else(|error| panic!("{model:?}: {error}")));
            }
        }
    }
}

/// If the input size is unknown, the number of classes decides, unless the first and last
/// dimensions are equal.
#[test]
fn without_the_size_the_number_of_classes_decides_or_nothing_is_read() {
    let (mut read, mut refused) = (0, 0);
    for model in models().filter(|model| !model.has_cube()) {
        let [width, height] = model.size;
        let side = if model.is_channels_last { height } else { width };
        let is_ambiguous = side == 4 * CHANNELS && width != height;
        let known = Options { num_classes: model.classes, ..Options::default() };
        match model.layout(known) {
            Ok(layout) if !is_ambiguous => model.check(&layout),
            Err(ChoiceError::Layout(error)) if is_ambiguous => {
                let text = error.to_string();
                let advice = "; set `options.channels` to first or last, or `model_size` to the";
                assert!(text.contains(advice), "{text}");
                let channels = model.channels();
                model.check(&model.layout(Options { channels, ..known }).unwrap());
            }
            other => panic!("{model:?}: {:?}", other.err()),
        }
        // A size that is not the model's, such as the frame's, does not help.
        for options in [Options::default(), with_size([1000, 700], Options::default())] {
            match model.layout(options) {
                Ok(layout) => {
                    model.check(&layout);
                    read += 1;
                }
                Err(ChoiceError::Layout(error)) if error.problem == LayoutProblem::Prototypes => {
                    let text = error.to_string();
                    let advice = "; set `options.num_classes`, `options.channels` to first or last, or `model_size`";
                    assert!(text.contains(advice), "{text}");
                    assert!(model.size.iter().any(|&side| side <= 4 * CHANNELS), "{model:?}");
                    refused += 1;
                }
                Err(error) => panic!("{model:?}: {error}"),
            }
        }
    }
    assert!(read > 150 && refused > 50, "{read}, {refused}");
}

#[test]
fn both_readings_are_in_the_error() {
    let model =
        Model { size: [96, 640], classes: 80, is_transposed: false, is_channels_last: false };
    let error = model.layout(Options::default()).err().unwrap().to_string();
    assert_eq!(
        error,
        "tensor output1 (f32 1x32x160x24): decoder yolov8-seg can read it as 32 prototypes of 24x160 or 24 prototypes of \
         160x32; set `options.num_classes`, `options.channels` to first or last, or `model_size` to the model's input"
    );
}

#[test]
fn a_wrong_number_of_classes_is_named() {
    let model =
        Model { size: [640, 640], classes: 3, is_transposed: false, is_channels_last: false };
    let options = Options { num_classes: 80, ..Options::default() };
    let error = model.layout(options).err().unwrap().to_string();
    assert!(
        error.contains("yolov8-seg it has 3 classes, but `options.num_classes` is 80"),
        "{error}"
    );
}
