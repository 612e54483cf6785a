// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames with known pixels, and the inputs that models receive for them.

use std::path::Path;

use crate::element::{self, Tensor};
use crate::support::pipeline;

/// A picture in 8-bit RGB.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Width and height.
    pub size: [usize; 2],
    /// Red, green and blue, row by row.
    pub pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Makes a picture whose pixel at x, y is `pixel(x, y)`.
    pub fn new(size: [usize; 2], pixel: impl Fn(usize, usize) -> [u8; 3]) -> Self {
        let [width, height] = size;
        let pixels = (0..width * height).map(|i| pixel(i % width, i / width)).collect();
        Self { size, pixels }
    }

    /// Makes a picture of random pixels.
    pub fn random(size: [usize; 2], seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let pixels = (0..size[0] * size[1]).map(|_| [0; 3].map(|_: u8| rng.u8(..))).collect();
        Self { size, pixels }
    }

    /// Makes a picture of one color.
    pub fn solid(size: [usize; 2], color: [u8; 3]) -> Self {
        Self::new(size, |_, _| color)
    }

    /// Returns the pixel at a position.
    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.pixels[y * self.size[0] + x]
    }

    /// Returns the values of a channel, row by row.
    pub fn channel(&self, channel: usize) -> impl Iterator<Item = u8> + '_ {
        self.pixels.iter().map(move |pixel| pixel[channel])
    }

    /// Converts an input `[1,3,height,width]` with values from 0 to 255 to a picture.
    pub fn from_planes(tensor: &Tensor) -> Self {
        let &[1, 3, height, width] = &*tensor.shape else {
            panic!("expected [1,3,height,width], got {:?}", tensor.shape)
        };
        let (values, plane) = (tensor.f32(), width * height);
        let byte = |value: f32| {
            assert_eq!(value, value.round().clamp(0.0, 255.0), "a whole number");
            value as u8
        };
        Self::new([width, height], |x, y| {
            [0, 1, 2].map(|channel| byte(values[channel * plane + y * width + x]))
        })
    }
}

/// Makes a pipeline in which `count` RGB frames with this picture pass through `elements`.
pub fn pipeline_of(picture: &Picture, count: usize, elements: &str) -> gst::Pipeline {
    let picture = picture.clone();
    let [width, height] = picture.size;
    let pipeline = pipeline::parse(&format!(
        "videotestsrc name=frames num-buffers={count} pattern=black
           ! video/x-raw,format=RGB,width={width},height={height},framerate=30/1
           ! {elements} ! fakesink"
    ));
    pipeline::intercept(&pipeline, "frames", move |buffer| write(buffer, &picture));
    pipeline
}

/// Writes the pixels of an RGB frame. Its rows are padded to a multiple of 4 bytes.
pub fn write(frame: &mut gst::BufferRef, picture: &Picture) {
    let [width, height] = picture.size;
    let stride = (width * 3).next_multiple_of(4);
    let mut map = frame.map_writable().unwrap();
    assert_eq!(map.len(), stride * height);
    for (row, pixels) in map.chunks_exact_mut(stride).zip(picture.pixels.chunks_exact(width)) {
        row[..width * 3].copy_from_slice(pixels.as_flattened());
    }
}

/// Returns the tensors of an RGB frame with this picture that passes through the elements `before`
/// and a model with these properties.
pub fn converted(picture: &Picture, before: &str, model: &Path, properties: &str) -> Vec<Tensor> {
    let inference = element::inference(model, properties);
    let pipeline = pipeline_of(picture, 1, &format!("{before} ! {inference}"));
    let [tensors] = element::run_pipeline(&pipeline).try_into().expect("one frame");
    tensors
}

/// Returns the tensors of an RGB frame that passes only through the model.
pub fn tensors_of(picture: &Picture, model: &Path, properties: &str) -> Vec<Tensor> {
    converted(picture, "identity", model, properties)
}
