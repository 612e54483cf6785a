// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the picture that a model takes.
//!
//! In: the model's input, properties, and what its metadata or its signature says. Out: an [`InputSpec`]: size,
//! layout, element type, and how pixel values are converted to numbers.

use ort::value::{Outlet, ValueType};

use super::numbers::PerChannel;
use super::output::element_type;
use super::{ChannelOrder, InputLayout, Overrides, dims_text, type_text};
use crate::inference::error::InferenceError;
use nmsfilter_core::signature::{Facts, Normalization};
use nmsfilter_core::tensor::ElementType;

/// The pictures that a model takes.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// The name of the model's input.
    pub name: String,
    /// The type of the input's elements: f32, f16, u8 or i8.
    pub element: ElementType,
    /// The order of the input's dimensions.
    pub layout: InputLayout,
    /// True if the first dimension is the number of pictures per run.
    pub has_batch: bool,
    /// The number of pictures per run.
    pub batch: usize,
    /// The picture's width and height.
    pub size: [u32; 2],
    /// The number of channels: 3, or 1 for gray.
    pub channels: usize,
    /// The order of the channels.
    pub order: ChannelOrder,
    /// The numbers that the pixel values 0 and 255 become, before `mean` and `std` are applied: red, green, blue.
    pub ranges: [[f64; 2]; 3],
    /// The numbers to subtract from the result of `ranges`.
    pub mean: PerChannel,
    /// The numbers by which the difference is divided.
    pub std: PerChannel,
}

/// The least difference between black and white that any model is expected to use. In published models it is at
/// least 1.
const MIN_CONTRAST: f64 = 0.1;

/// The least difference between black and white in elements of a byte, whose fractions are lost.
const MIN_STEPS: f64 = 32.0;

/// The numbers that black and white are in training, of models whose input is quantized.
const TRAINED: [[f64; 2]; 3] = [[0.0, 1.0], [0.0, 255.0], [-1.0, 1.0]];

/// The greatest distance of a quantized input's least and greatest number from those of black and white, as a part of
/// their difference: calibration pictures rarely have exactly these.
const CALIBRATION: f64 = 0.1;

/// The greatest distance of gray from 0, as a multiple of the difference between black and white. With ImageNet's
/// mean and standard deviation it is less than 1.
const MAX_OFFSET: f64 = 20.0;

impl InputSpec {
    /// Describes the input. `facts` come from the metadata and the signature. `scale` returns the scale and zero point
    /// of a quantized input, whose elements have signs or not.
    ///
    /// # Errors
    /// If the input is not a picture, its size is unknown, or the sources contradict each other.
    pub fn new(
        input: &Outlet,
        batch: Option<usize>,
        overrides: &Overrides,
        facts: &Facts,
        scale: impl Fn(bool) -> Option<(f64, f64)>,
    ) -> Result<Self, InferenceError> {
        let (name, dtype) = (input.name(), input.dtype());
        let wrong_type = || {
            let found = type_text(dtype);
            InferenceError::Settings(format!(
                "the model's input {name} is {found}; expected a tensor of f32, f16, u8 or i8"
            ))
        };
        let ValueType::Tensor { ty, shape, dimension_symbols } = dtype else {
            return Err(wrong_type());
        };
        let element = element_type(*ty);
        let whole = match element {
            ElementType::U8 => [0.0, 255.0],
            ElementType::I8 => [-128.0, 127.0],
            ElementType::F32 | ElementType::F16 => [0.0, 1.0],
            _ => return Err(wrong_type()),
        };
        let has_batch = shape.len() != 3;
        let batch = batch_size(name, if has_batch { shape } else { &[1] }, batch)?;
        let wanted = overrides.layout.or(facts.layout);
        let (layout, channels) = layout(name, (shape, dimension_symbols), wanted)?;
        let size = size(name, shape, layout, overrides.size, facts.size)?;
        let is_set = overrides.pixels_are_set();
        let known = facts.normalization.filter(|_| !is_set);
        let range = match element {
            ElementType::U8 | ElementType::I8 if !is_set && known.is_none() => {
                scale(element == ElementType::I8)
                    .map_or(Ok(whole), |scale| quantized(name, whole, scale))?
            }
            _ => whole,
        };
        let pixels = known.unwrap_or(Normalization { range, mean: [0.0; 3], std: [1.0; 3] });
        let usual_order = if facts.is_bgr { ChannelOrder::Bgr } else { ChannelOrder::Rgb };
        let spec = Self {
            name: name.to_owned(),
            element,
            layout,
            has_batch,
            batch,
            size,
            channels,
            order: overrides.order.unwrap_or(usual_order),
            ranges: overrides.ranges.unwrap_or([pixels.range; 3]),
            mean: overrides.mean.unwrap_or(pixels.mean),
            std: overrides.std.unwrap_or(pixels.std),
        };
        spec.check_normalization()?;
        Ok(spec)
    }

    /// Checks that pictures keep their contrast. Users mix up two conventions: with `mean` and `std` for values up
    /// to 255, but a range from 0 to 1, all pixels become nearly equal.
    ///
    /// # Errors
    /// If black and white become nearly equal.
    fn check_normalization(&self) -> Result<(), InferenceError> {
        let least = if self.element_size() == 1 { MIN_STEPS } else { MIN_CONTRAST };
        for ((range, mean), std) in self.ranges.iter().zip(self.mean).zip(self.std) {
            let [black, white] = range.map(|end| (end - mean) / std);
            let (contrast, offset) = ((white - black).abs(), (black + white).abs() / 2.0);
            if contrast < least || offset > MAX_OFFSET * contrast {
                return Err(InferenceError::Settings(format!(
                    "range, mean and std: black becomes {black:.3} and white becomes {white:.3}, \
                     which are nearly equal; set range=0,255 if mean and std are for values from 0 \
                     to 255, or unset mean and std"
                )));
            }
        }
        Ok(())
    }

    /// An input of RGB in planes, from 0 to 1.
    pub fn with_size(size: [u32; 2], element: ElementType) -> Self {
        Self {
            name: "images".to_owned(),
            element,
            layout: InputLayout::Nchw,
            has_batch: true,
            batch: 1,
            size,
            channels: 3,
            order: ChannelOrder::Rgb,
            ranges: [[0.0, 1.0]; 3],
            mean: [0.0; 3],
            std: [1.0; 3],
        }
    }

    /// Returns the dimensions of the input tensor.
    pub fn shape(&self) -> Vec<i64> {
        let ([width, height], channels) = (self.size.map(i64::from), self.channels as i64);
        let picture = match self.layout {
            InputLayout::Nchw => [channels, height, width],
            InputLayout::Nhwc => [height, width, channels],
        };
        let batch = self.has_batch.then_some(self.batch as i64);
        batch.into_iter().chain(picture).collect()
    }

    /// Returns the size of one picture in bytes.
    pub fn bytes(&self) -> usize {
        self.size.iter().map(|&side| side as usize).product::<usize>()
            * self.channels
            * self.element_size()
    }

    /// Returns the size of an element in bytes.
    pub fn element_size(&self) -> usize {
        self.element.size().expect("a picture has elements of these types")
    }
}

/// Returns the elements of black and white. `whole` has the least and the greatest element.
fn quantized(
    name: &str,
    whole: [f64; 2],
    (scale, zero_point): (f64, f64),
) -> Result<[f64; 2], InferenceError> {
    let ends = whole.map(|end| (end - zero_point) * scale);
    let is_near = |&&[black, white]: &&[f64; 2]| {
        let tolerance = CALIBRATION * (white - black);
        (ends[0] - black).abs() <= tolerance && (ends[1] - white).abs() <= tolerance
    };
    let range = TRAINED.iter().find(is_near).ok_or_else(|| {
        InferenceError::Settings(format!(
            "the model's input {name} has the scale {scale} and the zero point {zero_point}, so \
             that its elements stand for {:.3} to {:.3}; expected about 0 to 1, 0 to 255, or -1 \
             to 1: set range, mean and std so that pixels become the elements, number / scale + \
             zero point",
            ends[0], ends[1]
        ))
    })?;
    Ok(range.map(|end| end / scale + zero_point))
}

/// Determines the number of pictures per run.
fn batch_size(name: &str, dims: &[i64], wanted: Option<usize>) -> Result<usize, InferenceError> {
    let fixed = dims.first().and_then(|&dim| usize::try_from(dim).ok()).filter(|&dim| dim > 0);
    match (fixed, wanted) {
        (Some(fixed), Some(wanted)) if fixed != wanted => Err(InferenceError::Settings(format!(
            "batch-size={wanted}, but the model's input {name} has the dimensions {}; leave \
             batch-size at 0, or use a model with that batch or a dynamic one",
            dims_text(dims)
        ))),
        (Some(fixed), _) => Ok(fixed),
        (None, wanted) => Ok(wanted.unwrap_or(1)),
    }
}

/// Determines the layout and the number of channels of an input with these dimensions. `symbols` are the names of dynamic
/// ones, such as `height`.
fn layout(
    name: &str,
    (dims, symbols): (&[i64], &[String]),
    wanted: Option<InputLayout>,
) -> Result<(InputLayout, usize), InferenceError> {
    let wrong = |advice| {
        InferenceError::Settings(format!(
            "the model's input {name} has the dimensions {}; expected a picture: [1,3,height,width], \
             [1,height,width,3], or 1 channel instead of 3, also without the first \
             dimension{advice}",
            dims_text(dims)
        ))
    };
    let (first, last) = match dims.len() {
        length @ (3 | 4) => (length - 3, length - 1),
        _ => return Err(wrong("")),
    };
    // A dynamic number of channels counts as 3.
    let channels = |axis: usize| match dims[axis] {
        dim @ (1 | 3) => Some(dim as usize),
        dim if dim < 0 => Some(3),
        _ => None,
    };
    // Named as in `num_channels`.
    let is_of_channels = |axis: usize| {
        symbols.get(axis).is_some_and(|symbol| symbol.to_ascii_lowercase().contains("channel"))
    };
    let evidence = |axis: usize| match dims[axis] {
        1 | 3 => 2,
        _ => u8::from(is_of_channels(axis)),
    };
    let layout = match (wanted, evidence(first), evidence(last)) {
        (Some(wanted), ..) => wanted,
        (None, 2, _) => InputLayout::Nchw,
        (None, first, last) if first > last => InputLayout::Nchw,
        (None, first, last) if first < last => InputLayout::Nhwc,
        _ if dims[first] < 0 || dims[last] < 0 => return Err(wrong(": set input-layout")),
        _ => return Err(wrong("")),
    };
    let axis = if layout == InputLayout::Nchw { first } else { last };
    channels(axis).map(|count| (layout, count)).ok_or_else(|| wrong(""))
}

fn size(
    name: &str,
    dims: &[i64],
    layout: InputLayout,
    wanted: [Option<u32>; 2],
    usual: Option<[u32; 2]>,
) -> Result<[u32; 2], InferenceError> {
    let last = dims.len() - 1;
    let axes = match layout {
        InputLayout::Nchw => [last, last - 1],
        InputLayout::Nhwc => [last - 1, last - 2],
    };
    let mut size = [0; 2];
    for (side, property) in ["input-width", "input-height"].into_iter().enumerate() {
        let fixed = u32::try_from(dims[axes[side]]).ok().filter(|&fixed| fixed > 0);
        size[side] = match (fixed, wanted[side]) {
            (Some(fixed), Some(wanted)) if fixed != wanted => {
                return Err(InferenceError::Settings(format!(
                    "{property}={wanted}, but the model's input {name} has the dimensions {}; \
                     leave {property} at 0, or use a model of that size",
                    dims_text(dims)
                )));
            }
            (Some(fixed), _) => fixed,
            (None, Some(wanted)) => wanted,
            (None, None) => usual.map(|size| size[side]).ok_or_else(|| {
                InferenceError::Settings(format!(
                    "the model's input {name} has the dynamic dimensions {}: set input-width and \
                     input-height",
                    dims_text(dims)
                ))
            })?,
        };
    }
    if size.iter().any(|&side| side > MAX_INPUT_SIDE) {
        let [width, height] = size;
        return Err(InferenceError::Settings(format!(
            "the model's input {name} is {width}x{height}; expected at most {MAX_INPUT_SIDE} \
             pixels a side"
        )));
    }
    Ok(size)
}

/// The greatest width and height of an input for which memory is allocated.
const MAX_INPUT_SIDE: u32 = 16384;

#[cfg(test)]
mod tests {
    use ort::value::TensorElementType;

    use super::*;

    fn tensor(ty: TensorElementType, dims: &[i64]) -> Outlet {
        let dimension_symbols = ort::value::SymbolicDimensions::empty(dims.len());
        Outlet::new("images", ValueType::Tensor { ty, shape: dims.into(), dimension_symbols })
    }

    fn spec(
        input: &Outlet,
        batch: Option<usize>,
        overrides: &Overrides,
    ) -> Result<InputSpec, String> {
        InputSpec::new(input, batch, overrides, &Facts::default(), |_| None)
            .map_err(|error| error.to_string())
    }

    fn describe(dims: &[i64], overrides: Overrides) -> Result<InputSpec, String> {
        spec(&tensor(TensorElementType::Float32, dims), None, &overrides)
    }

    #[test]
    fn the_layout_follows_from_the_channels() {
        let input = describe(&[1, 3, 480, 640], Overrides::default()).unwrap();
        assert_eq!((input.layout, input.size, input.channels), (InputLayout::Nchw, [640, 480], 3));
        assert_eq!(input.shape(), [1, 3, 480, 640]);
        let input = describe(&[-1, 480, 640, 1], Overrides::default()).unwrap();
        assert_eq!((input.layout, input.size, input.channels), (InputLayout::Nhwc, [640, 480], 1));
        assert_eq!(input.shape(), [1, 480, 640, 1]);
    }

    #[test]
    fn a_picture_need_not_have_a_batch() {
        let input = describe(&[3, 480, 640], Overrides::default()).unwrap();
        assert_eq!((input.layout, input.size, input.channels), (InputLayout::Nchw, [640, 480], 3));
        assert_eq!((input.batch, input.shape()), (1, vec![3, 480, 640]));
        let input = describe(&[480, 640, 1], Overrides::default()).unwrap();
        assert_eq!((input.layout, input.size, input.channels), (InputLayout::Nhwc, [640, 480], 1));
        assert_eq!(input.shape(), [480, 640, 1]);
        let input = tensor(TensorElementType::Float32, &[3, 480, 640]);
        let message = spec(&input, Some(2), &Overrides::default()).unwrap_err();
        assert!(message.starts_with("batch-size=2, but the model's input images has"), "{message}");
    }

    #[test]
    fn names_of_dynamic_dimensions_say_where_the_channels_are() {
        let describe = |names: [&str; 4], layout| {
            let dtype = ValueType::Tensor {
                ty: TensorElementType::Float32,
                shape: [-1_i64; 4].as_slice().into(),
                dimension_symbols: ort::value::SymbolicDimensions::new(names.map(str::to_owned)),
            };
            let size = [Some(640), Some(480)];
            let overrides = Overrides { size, layout, ..Overrides::default() };
            spec(&Outlet::new("in", dtype), None, &overrides)
                .map(|input| (input.layout, input.size, input.channels))
        };
        let nchw = (InputLayout::Nchw, [640, 480], 3);
        let transformers = ["batch_size", "num_channels", "height", "width"];
        assert_eq!(describe(transformers, None).unwrap(), nchw);
        let nhwc = (InputLayout::Nhwc, [640, 480], 3);
        assert_eq!(describe(["N", "H", "W", "Channels"], None).unwrap(), nhwc);
        assert_eq!(describe(transformers, Some(InputLayout::Nhwc)).unwrap(), nhwc);
        for unknown in [["a", "b", "c", "d"], ["", "", "", ""], ["N", "channel", "W", "channel"]] {
            let message = describe(unknown, None).unwrap_err();
            assert!(message.ends_with(": set input-layout"), "{message}");
        }
    }

    #[test]
    fn dynamic_sides_need_the_properties() {
        let message = describe(&[-1, 3, -1, -1], Overrides::default()).unwrap_err();
        assert_eq!(
            message,
            "the model's input images has the dynamic dimensions [?,3,?,?]: set input-width and \
             input-height"
        );
        let overrides = Overrides { size: [Some(640), Some(384)], ..Overrides::default() };
        assert_eq!(describe(&[-1, 3, -1, -1], overrides).unwrap().size, [640, 384]);
    }

    #[test]
    fn what_is_known_of_pixels_comes_before_the_scale_of_a_quantized_input() {
        let input = tensor(TensorElementType::Uint8, &[1, 3, 8, 8]);
        let of = |overrides: &Overrides, facts: &Facts| {
            // Its elements would stand for 0 to 2.55.
            let spec = InputSpec::new(&input, None, overrides, facts, |_| Some((0.01, 0.0)));
            spec.map(|spec| spec.ranges[0]).map_err(|error| error.to_string())
        };
        let error = of(&Overrides::default(), &Facts::default()).unwrap_err();
        assert!(error.contains("has the scale 0.01 and the zero point 0"), "{error}");
        let normalization = Normalization { range: [0.0, 100.0], mean: [0.0; 3], std: [1.0; 3] };
        let facts = Facts { normalization: Some(normalization), ..Facts::default() };
        assert_eq!(of(&Overrides::default(), &facts), Ok([0.0, 100.0]));
        let overrides = Overrides { ranges: Some([[0.0, 255.0]; 3]), ..Overrides::default() };
        assert_eq!(of(&overrides, &facts), Ok([0.0, 255.0]));
        let overrides = Overrides { mean: Some([1.0; 3]), ..Overrides::default() };
        assert_eq!(
            of(&overrides, &facts),
            Ok([0.0, 255.0]),
            "the signature's range is for its mean"
        );
    }

    #[test]
    fn a_property_cannot_change_a_fixed_side() {
        let overrides = Overrides { size: [Some(320), None], ..Overrides::default() };
        let message = describe(&[1, 3, 640, 640], overrides).unwrap_err();
        assert!(message.starts_with("input-width=320, but the model's input images"), "{message}");
    }

    #[test]
    fn other_shapes_and_types_are_no_pictures() {
        for dims in [&[1, 10][..], &[1, 4, 640, 640], &[1, -1, -1, -1], &[4, 640, 640]] {
            let message = describe(dims, Overrides::default()).unwrap_err();
            assert!(message.contains("expected a picture: [1,3,height,width]"), "{message}");
        }
        let input = tensor(TensorElementType::Int64, &[1, 3, 8, 8]);
        let message = spec(&input, None, &Overrides::default()).unwrap_err();
        assert!(message.contains("expected a tensor of f32, f16, u8 or i8"), "{message}");
    }
}
