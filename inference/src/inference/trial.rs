// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a model on trial when it is opened.
//!
//! In: a session. Out: the dimensions of the outputs, which many models do not state completely, and which outputs have
//! no rows for this picture, so that their number varies. Also checks that the outputs of each picture of a batch do not
//! depend on the other pictures.

use std::fmt::Display;

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::RunOptions;
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::error::InferenceError;
use super::model::{self, Model, OutputSpec, onnx_type};
use super::picture::Table;
use super::provider::Provider;
use super::session::ModelSession;
use nmsfilter_core::signature::Pattern;
use nmsfilter_core::tensor::{ElementType, Shape, Storage, TensorView};

impl ModelSession {
    /// Runs the model on `input`. The outputs get the dimensions of this run, and the ids that depend on their numbers.
    ///
    /// # Errors
    /// If the model fails, if more than one dimension of an output depends on the picture, or if an output does not
    /// have a part per picture.
    pub fn try_outputs(&mut self, input: &DynTensor) -> Result<(), InferenceError> {
        let values = self.run_on_trial(input)?;
        let Model { input, outputs, .. } = &mut self.model.model;
        for (output, value) in outputs.iter_mut().zip(&values) {
            output.set_shape(input.batch, value.shape())?;
            // Rows of several pictures are read as such.
            let depends = |it: &&Pattern| it.depends_on_numbers() && !it.has_images;
            if let Some(pattern) = output.pattern.filter(depends)
                && let Some(shape) = Shape::new(&lengths(value.shape()))
            {
                let memory = Storage::Host(bytes(output, value));
                let tensor = TensorView::new(&output.name, output.element, shape, memory);
                let id = pattern.id(&tensor);
                output.id =
                    id.map_err(|error| InferenceError::Settings(error.to_string()))?.to_owned();
            }
        }
        Ok(())
    }

    /// Checks that a picture's outputs depend neither on its place in the batch nor on the other pictures. One picture
    /// of low contrast is in every place of some runs; in the other places are pictures within its range, or of
    /// greater contrast and brightness, so that each statistic over the batch changes. For any two places there is a
    /// run in which only the first has the picture.
    ///
    /// # Errors
    /// If the model fails, or if the outputs depend on one of these.
    pub fn check_batch(&mut self) -> Result<(), InferenceError> {
        let batch = self.model.model.input.batch;
        // A place's number of `runs` bits, half of them ones, has a one for each run in which it has the picture. No
        // number has all ones of another.
        let numbers = |runs: u32| (0..1u32 << runs).filter(move |n| n.count_ones() == runs / 2);
        let runs = (2..32).find(|&runs| numbers(runs).count() >= batch).expect("memory ends first");
        let places: Vec<u32> = numbers(runs).take(batch).collect();
        let has_picture = |run: u32, place: usize| places[place] >> run & 1 == 1;
        let mut samples = Vec::new();
        for run in 0..runs {
            samples.push(self.sample(|place| match (has_picture(run, place), run % 2) {
                (true, _) => (0, QUIET),
                (false, 0) => (1 + place, QUIET),
                (false, _) => (1 + place, LOUD),
            })?);
        }
        for (index, output) in self.model.model.outputs.iter().enumerate() {
            let part = |run: u32, place: usize| {
                let numbers = &samples[run as usize].outputs[index];
                let len = numbers.len() / batch;
                &numbers[place * len..][..len]
            };
            let all = || (0..runs).flat_map(|run| (0..batch).map(move |place| (run, place)));
            let first = |picture: bool| {
                let mut parts = all().filter(|&(run, place)| has_picture(run, place) == picture);
                // The last picture is in an odd run, so that it is of greater contrast.
                let found = if picture { parts.next() } else { parts.next_back() };
                found.map(|(run, place)| part(run, place)).expect("there are both")
            };
            let (expected, other) = (first(true), first(false));
            let is_equal = |(run, place)| output.are_close(expected, part(run, place), other);
            if !all().filter(|&(run, place)| has_picture(run, place)).all(is_equal) {
                return Err(InferenceError::Settings(format!(
                    "the model's output {} of a picture depends on the other pictures of a batch \
                     of {batch}, as in dynamically quantized models: leave batch-size at 0, or \
                     use a model with a batch of 1",
                    output.name
                )));
            }
        }
        Ok(())
    }

    /// Runs the model on noise. `noise` returns the number and the range of the picture for each place of the batch.
    ///
    /// # Errors
    /// If the model fails.
    pub fn sample(
        &mut self,
        noise: impl Fn(usize) -> (usize, Levels),
    ) -> Result<Sample, InferenceError> {
        let spec = &self.model.model.input;
        let mut input =
            DynTensor::new(&Allocator::default(), onnx_type(spec.element), spec.shape())?;
        let len = spec.bytes() * spec.batch;
        // SAFETY: the input is a tensor in host memory, with all pictures of the model's batch.
        let pictures =
            unsafe { std::slice::from_raw_parts_mut(input.data_ptr_mut().cast::<u8>(), len) };
        let table = Table::new(spec);
        let size = spec.element_size();
        for (place, picture) in pictures.chunks_exact_mut(spec.bytes()).enumerate() {
            let (number, levels) = noise(place);
            // A linear congruential generator: Knuth, The Art of Computer Programming, volume 2, 3.3.4.
            let mut state = number as u64;
            for element in picture.chunks_exact_mut(size) {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let level = usize::from(levels((state >> 56) as u8));
                element.copy_from_slice(&table.bytes()[level * size..][..size]);
            }
        }
        let values = self.run_on_trial(&input)?;
        let output_numbers = |(output, value): (&OutputSpec, &DynValue)| {
            let bytes = bytes(output, value);
            if !output.mixes_images {
                return numbers(output, bytes);
            }
            let mut of_pictures = vec![0; output.bytes()];
            output.write(bytes, &mut of_pictures, 0);
            numbers(output, &of_pictures)
        };
        let outputs = self.model.model.outputs.iter().zip(&values).map(output_numbers).collect();
        Ok(Sample { input, outputs })
    }

    /// Runs the model on `input`, without a CUDA graph. Returns the outputs, in host memory.
    fn run_on_trial(&mut self, input: &DynTensor) -> Result<Vec<DynValue>, InferenceError> {
        let mut binding = self.binding(input)?;
        let host = MemoryInfo::new(
            AllocationDevice::CPU,
            0,
            AllocatorType::Device,
            MemoryType::CPUOutput,
        )?;
        let outputs = &self.model.model.outputs;
        for output in outputs {
            binding.bind_output_to_device(&*output.name, &host)?;
        }
        let mut run_options = RunOptions::new()?;
        run_options.set(GRAPH_ID, "-1")?;
        let values = self.session.run_binding_with_options(&binding, &run_options);
        let mut values = values.map_err(|error| run_error(self.model.provider, error))?;
        let value = |output: &OutputSpec| values.remove(&output.name).expect("it is bound");
        Ok(outputs.iter().map(value).collect())
    }
}

/// Returns the level of a pixel, from black to white, for a random number.
pub type Levels = fn(u8) -> u8;

/// All levels.
pub const NOISE: Levels = |random| random;
/// The levels around gray.
const QUIET: Levels = |random| 102 + random / 5;
/// Black, and three times as often white.
const LOUD: Levels = |random| if random < 64 { 0 } else { 255 };

/// Returns the dimensions of a value as lengths.
pub fn lengths(dims: &[i64]) -> Vec<usize> {
    dims.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect()
}

/// A batch of noise pictures, and the model's outputs for it.
pub struct Sample {
    /// The pictures, in host memory.
    pub input: DynTensor,
    /// The numbers of each output.
    outputs: Vec<Vec<f32>>,
}

impl Sample {
    /// Returns whether an output has these bytes in another run on the pictures, apart from rounding errors.
    /// `index` is the number of the output.
    pub fn is_output(&self, index: usize, output: &OutputSpec, bytes: &[u8]) -> bool {
        output.are_close(&self.outputs[index], &numbers(output, bytes), &[])
    }
}

/// Returns the bytes that an output has in a run, in host memory. The value must have the output's element type.
pub(super) fn bytes<'v>(output: &OutputSpec, value: &'v DynValue) -> &'v [u8] {
    let Ok(tensor) = value.view().downcast::<DynTensorValueType>() else {
        return &[];
    };
    let elements: usize = lengths(value.shape()).iter().product();
    if elements == 0 {
        return &[];
    }
    let len = elements * output.element_size();
    // SAFETY: the value has this many bytes, in host memory, as long as `value` exists.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), len) }
}

/// Returns the numbers of an output.
pub fn numbers(output: &OutputSpec, bytes: &[u8]) -> Vec<f32> {
    let element = output.element;
    let number = |bytes: &[u8]| match (element, bytes) {
        (ElementType::F16, &[a, b]) => half::f16::from_ne_bytes([a, b]).to_f32(),
        (ElementType::U8, &[byte]) => f32::from(byte),
        (ElementType::I8, &[byte]) => f32::from(byte.cast_signed()),
        (ElementType::I32, &[a, b, c, d]) => i32::from_ne_bytes([a, b, c, d]) as f32,
        (_, &[a, b, c, d]) => f32::from_ne_bytes([a, b, c, d]),
        (_, bytes) => bytes.try_into().map_or(0.0, |bytes| i64::from_ne_bytes(bytes) as f32),
    };
    bytes.chunks_exact(output.element_size()).map(number).collect()
}

impl OutputSpec {
    /// Takes and checks the dimensions that the output had in a run. `batch` is the number of pictures. Without rows, the
    /// output has detections only, whose number varies.
    fn set_shape(&mut self, batch: usize, dims: &[i64]) -> Result<(), InferenceError> {
        let (name, shape) = (&self.name, lengths(dims));
        if let (true, true, &[.., rows, columns]) = (batch > 1, self.has_images, &shape[..]) {
            self.shape = vec![batch, rows, columns];
            (self.rows, self.mixes_images) = (Some(1), true);
            return Ok(());
        }
        if batch > 1 && self.pattern.is_some_and(Pattern::has_rows_first) {
            return Err(InferenceError::Settings(format!(
                "the model's output {name} has the rows of all pictures of a batch one after the \
                 other, and no number of their picture in them: leave batch-size at 0, for runs of one \
                 picture"
            )));
        }
        if batch > 1 && shape.first() != Some(&batch) {
            return Err(InferenceError::Settings(format!(
                "the model's output {name} has the dimensions {} for a batch of {batch}; expected \
                 {batch} as the first dimension: leave batch-size at 0, or export the model with a \
                 dynamic batch",
                model::dims_text(dims)
            )));
        }
        let mut empty = (0..shape.len()).filter(|&axis| shape[axis] == 0);
        let rows = empty.next();
        if empty.next().is_some() {
            return Err(self.varies());
        }
        (self.shape, self.rows) = (shape, rows);
        Ok(())
    }

    /// Returns whether the numbers `a` and `b` of one picture or batch are equal apart from rounding errors: a kernel
    /// may add numbers in a different order for a different place in the batch. `other` has the numbers of another
    /// picture, from which this one's differ as far as the output depends on the picture; zeros, if it is
    /// shorter. The mean difference is compared, since two equal scores may change places; also for each channel,
    /// first or last dimension of a picture's output, since scores are much smaller than coordinates.
    fn are_close(&self, a: &[f32], b: &[f32], other: &[f32]) -> bool {
        if self.rows.is_none() && a.len() != b.len() {
            return false;
        }
        // The picture with the most rows determines how many rows each picture has.
        let len = a.len().min(b.len());
        let last = self.shape.last().copied().filter(|_| self.rows.is_none()).unwrap_or(1);
        let first = self.shape.get(1).copied().filter(|_| self.rows.is_none()).unwrap_or(1);
        let scale = a[..len].iter().filter(|a| a.is_finite()).fold(0.0, |max, a| a.abs().max(max));
        let channel = |indices: &mut dyn Iterator<Item = usize>| {
            let [mut difference, mut range, mut count] = [0.0f64; 3];
            for index in indices {
                let (a, b) = (a[index], b[index]);
                // Infinite numbers have no difference.
                if !(a == b || a.is_nan() && b.is_nan()) {
                    difference += f64::from((a - b).abs());
                }
                let by = (a - other.get(index).copied().unwrap_or(0.0)).abs();
                range += f64::from(if by.is_finite() { by } else { 0.0 });
                count += 1.0;
            }
            difference <= 0.02 * range + 1e-5 * f64::from(scale) * count
        };
        // Few numbers can be equal by chance.
        const FEW: usize = 32;
        let mut is_close = channel(&mut (0..len));
        if len / last >= FEW {
            is_close &= (0..last).all(|at| channel(&mut (at..len).step_by(last)));
        }
        let size = len / first;
        if size >= FEW {
            is_close &= (0..first).all(|at| channel(&mut (at * size..(at + 1) * size)));
        }
        is_close
    }
}

/// The key of a run's configuration that selects the CUDA graph to capture and to launch. The value "-1" selects no
/// graph.
pub const GRAPH_ID: &str = "gpu_graph_id";

/// Creates the error for a failed run.
pub fn run_error(provider: Provider, problem: impl Display) -> InferenceError {
    InferenceError::Run(format!("{}: the model failed: {problem}", provider.name()))
}

/// Returns whether a run probably failed because an output does not have the dimensions of the memory that is bound to it.
pub fn is_of_shape(error: &ort::Error) -> bool {
    error.to_string().to_lowercase().contains("shape")
}
