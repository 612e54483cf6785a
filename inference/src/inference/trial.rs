// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a model on trial when it is opened.
//!
//! In: a session. Out: the dimensions of the outputs, which many models do not state completely, and which outputs have
//! no rows for this picture, so that their number varies. For a model whose batch size was changed, also checks that
//! each picture's outputs do not depend on the other pictures.

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{RunOptions, Session, SessionOutputs};
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::error::InferenceError;
use super::model::{self, Model, ModelError, OutputSpec, PixelElement};
use super::outputs::AttachedOutput;
use super::provider::Provider;
use super::session::{Constant, Inputs};
use nmsfilter_core::tensor::ElementType;

/// A session to try.
pub struct Trial<'s> {
    /// The session.
    pub session: &'s mut Session,
    /// The model's inputs and outputs.
    pub model: &'s Model,
    /// The inputs beside the picture.
    pub constants: &'s [Constant],
    /// The provider that runs the model.
    pub provider: Provider,
}

impl Trial<'_> {
    /// Runs the model on `input`, and returns the outputs with the dimensions of this run.
    ///
    /// # Errors
    /// If the model fails, if more than one dimension of an output depends on the picture, or if an output does not
    /// have a part per picture.
    pub fn outputs(&mut self, input: &DynTensor) -> Result<Vec<AttachedOutput>, InferenceError> {
        let model = self.model;
        self.run(input, |values| {
            let attached = |output: &OutputSpec| {
                let value = &values[&*output.name];
                let mut attached = attach(model.input.batch, output, value.shape())?;
                if let Some((id, column)) = output.logits {
                    let numbers = numbers(&attached, bytes(&attached, value));
                    let columns = attached.shape.last().map_or(1, |&columns| columns.max(1));
                    let is_probability = |row: &[f32]| {
                        row[column..].iter().all(|number| (0.0..=1.0).contains(number))
                    };
                    if !numbers.chunks_exact(columns).all(is_probability) {
                        id.clone_into(&mut attached.output.id);
                    }
                }
                Ok(attached)
            };
            model.outputs.iter().map(attached).collect()
        })?
    }

    /// Checks that a picture's outputs depend neither on its place in the batch nor on the other pictures. The
    /// model is run twice, with the picture in different places and beside different pictures.
    ///
    /// # Errors
    /// If the model fails, or if the outputs depend on one of these.
    pub fn check_batch(&mut self, outputs: &[AttachedOutput]) -> Result<(), InferenceError> {
        let batch = self.model.input.batch;
        let mut sample_of_run = |run: usize| {
            // Picture 0 is in place 0 of the first run, and in place 1 of the second run. No other picture occurs
            // twice.
            let number = |place| if place == run { 0 } else { 1 + place + run * batch };
            self.sample(outputs, number)
        };
        let (first, second) = (sample_of_run(0)?, sample_of_run(1)?);
        for (index, attached) in outputs.iter().enumerate() {
            let picture_numbers = |sample: &Sample, place: usize| {
                let numbers = &sample.outputs[index];
                let len = numbers.len() / batch;
                numbers[place * len..][..len].to_vec()
            };
            let (mut alone, mut beside) = (picture_numbers(&first, 0), picture_numbers(&second, 1));
            if attached.rows.is_some() {
                // The picture with the most rows determines how many rows each picture has.
                let common = alone.len().min(beside.len());
                [&mut alone, &mut beside].into_iter().for_each(|numbers| numbers.truncate(common));
            }
            if !are_close(&alone, &beside) {
                let problem = format!(
                    "the output {} of a picture depends on the other pictures of the batch",
                    attached.output.name
                );
                return Err(InferenceError::Session(problem));
            }
        }
        Ok(())
    }

    /// Runs the model on noise. Each `place` of the batch gets the picture with the number `number(place)`.
    ///
    /// # Errors
    /// If the model fails.
    pub fn sample(
        &mut self,
        outputs: &[AttachedOutput],
        number: impl Fn(usize) -> usize,
    ) -> Result<Sample, InferenceError> {
        let spec = &self.model.input;
        let mut input = DynTensor::new(&Allocator::default(), spec.element.onnx(), spec.shape())
            .map_err(InferenceError::session)?;
        for place in 0..spec.batch {
            self.write_noise(&mut input, place, number(place) as u64);
        }
        let outputs = self.run(&input, |values| {
            let output_numbers = |attached: &AttachedOutput| {
                numbers(attached, bytes(attached, &values[&*attached.output.name]))
            };
            outputs.iter().map(output_numbers).collect()
        })?;
        Ok(Sample { input, outputs })
    }

    /// Runs the model on `input`, without a CUDA graph. Returns the result of `read`, which gets the outputs in
    /// host memory.
    fn run<R>(
        &mut self,
        input: &DynTensor,
        read: impl FnOnce(&SessionOutputs<'_>) -> R,
    ) -> Result<R, InferenceError> {
        let provider = self.provider;
        let (name, constants) = (&*self.model.input.name, self.constants);
        let mut binding = Inputs { name, picture: input, constants }.binding(self.session)?;
        let host =
            MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)
                .map_err(InferenceError::session)?;
        for output in &self.model.outputs {
            binding.bind_output_to_device(&*output.name, &host).map_err(InferenceError::session)?;
        }
        let mut run_options = RunOptions::new().map_err(InferenceError::session)?;
        run_options.set(GRAPH_ID, "-1").map_err(InferenceError::session)?;
        let values = self.session.run_binding_with_options(&binding, &run_options);
        values.map(|values| read(&values)).map_err(|error| run_error(provider, &error))
    }

    /// Fills a place of the batch with noise: the picture with this number.
    fn write_noise(&self, input: &mut DynTensor, place: usize, number: u64) {
        let spec = &self.model.input;
        let bytes = spec.bytes();
        // SAFETY: the input is a tensor in host memory, with all pictures of the model's batch.
        let picture = unsafe {
            let first = input.data_ptr_mut().cast::<u8>().add(place * bytes);
            std::slice::from_raw_parts_mut(first, bytes)
        };
        // A linear congruential generator: Knuth, The Art of Computer Programming, volume 2, 3.3.4.
        let mut state = number;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let [black, white] = spec.ranges[0].map(|end| end as f32);
        let mut value = || black + (white - black) * f32::from(next()) / 255.0;
        match spec.element {
            PixelElement::F32 => {
                picture
                    .chunks_exact_mut(4)
                    .for_each(|to| to.copy_from_slice(&value().to_ne_bytes()));
            }
            PixelElement::F16 => picture.chunks_exact_mut(2).for_each(|to| {
                to.copy_from_slice(&half::f16::from_f32(value()).to_ne_bytes());
            }),
            PixelElement::U8 | PixelElement::I8 => picture.fill_with(next),
        }
    }
}

/// Checks the dimensions that an output had in a run, and returns the output with these dimensions. `batch` is the
/// number of pictures. Without rows, the output has detections only, whose number varies.
fn attach(
    batch: usize,
    output: &OutputSpec,
    dims: &[i64],
) -> Result<AttachedOutput, InferenceError> {
    let shape = lengths(dims);
    if batch > 1 && shape.first() != Some(&batch) {
        let (name, dims) = (output.name.clone(), model::dims_text(dims));
        return Err(ModelError::OutputBatch { name, batch, dims }.into());
    }
    let mut empty = (0..shape.len()).filter(|&axis| shape[axis] == 0);
    let rows = empty.next();
    if empty.next().is_some() {
        return Err(output.varies().into());
    }
    Ok(AttachedOutput { output: output.clone(), shape, rows })
}

/// Returns the dimensions of a value as lengths.
pub fn lengths(dims: &[i64]) -> Vec<usize> {
    dims.iter().map(|&length| usize::try_from(length).unwrap_or(0)).collect()
}

/// A batch of noise pictures, and the model's outputs for it.
pub struct Sample {
    /// The pictures, in host memory.
    pub input: DynTensor,
    /// The numbers of each output with a floating-point type; empty for other outputs.
    outputs: Vec<Vec<f32>>,
}

impl Sample {
    /// Returns whether an output has these bytes in another run on the pictures, apart from rounding errors.
    /// `index` is the number of the output.
    pub fn is_output(&self, index: usize, attached: &AttachedOutput, bytes: &[u8]) -> bool {
        are_close(&self.outputs[index], &numbers(attached, bytes))
    }
}

/// Returns the bytes that an output has in a run, in host memory. The value must have the output's element type.
pub(super) fn bytes<'v>(attached: &AttachedOutput, value: &'v DynValue) -> &'v [u8] {
    let Ok(tensor) = value.view().downcast::<DynTensorValueType>() else {
        return &[];
    };
    let elements: usize = lengths(value.shape()).iter().product();
    if elements == 0 {
        return &[];
    }
    let len = elements * attached.element_size();
    // SAFETY: the value has this many bytes, in host memory, as long as `value` exists.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<u8>(), len) }
}

/// Returns the numbers of an output with a floating-point type; nothing for other types.
fn numbers(attached: &AttachedOutput, bytes: &[u8]) -> Vec<f32> {
    let (singles, halves) = (bytes.as_chunks::<4>().0, bytes.as_chunks::<2>().0);
    match attached.output.element {
        ElementType::F32 => singles.iter().map(|&single| f32::from_ne_bytes(single)).collect(),
        ElementType::F16 => {
            halves.iter().map(|&half| half::f16::from_ne_bytes(half).to_f32()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns whether the numbers of two runs are equal apart from rounding errors: a kernel may add numbers in a
/// different order for a different place in the batch.
fn are_close(a: &[f32], b: &[f32]) -> bool {
    let finite = a.iter().chain(b).filter(|number| number.is_finite());
    let scale = finite.fold(0.0f32, |max, number| max.max(number.abs()));
    let is_close =
        |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 0.02 * scale;
    a.len() == b.len() && a.iter().zip(b).all(is_close)
}

/// The key of a run's configuration that selects the CUDA graph to capture and to launch. The value "-1" selects no
/// graph.
pub const GRAPH_ID: &str = "gpu_graph_id";

/// Creates the error for a failed run.
pub fn run_error(provider: Provider, error: &ort::Error) -> InferenceError {
    InferenceError::Run { provider: provider.name(), problem: error.to_string() }
}

/// Returns whether a run probably failed because an output does not have the dimensions of the memory that is bound to it.
pub fn is_of_shape(error: &ort::Error) -> bool {
    error.to_string().to_lowercase().contains("shape")
}
