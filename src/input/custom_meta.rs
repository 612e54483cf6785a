// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's own tensor metadata, for GStreamer 1.20 and later.
//!
//! In: a [`NewTensor`] to [`attach`] to a buffer. Out: the tensors of a buffer, for
//! [`Tensors::of`](super::Tensors::of).
//!
//! Each tensor is one `GstCustomMeta` named [`META_NAME`], so that programs in any language can write it without
//! this crate's headers. Its structure has four required and six optional fields:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `id` | string | the tensor's id, such as `yolo-v8-out`, or the name of the model's output |
//! | `type` | string | `f32`, `f16`, `i8`, `u8`, `i32` or `i64` |
//! | `dims` | array of uint64 | the dimensions, slowest first |
//! | `data` | buffer | the elements, contiguous, in row-major order |
//! | `model` | caps | optional: the model description ([`model`](super::model)) |
//! | `source` | string | optional: the name of the element that attached the tensor |
//! | `scale` | double or float | optional: the step of a quantized tensor |
//! | `zero-point` | int | optional, if there is a scale: the element that stands for 0; 0 by default |
//! | `region` | array of int | optional: left, top, width and height of the part of the frame on which the model ran |
//! | `parent` | int | optional, if there is a region: the id of the region of interest or object with these pixels |
//!
//! If there is a scale, an element `q` of type `i8` or `u8` stands for the number `(q - zero-point) * scale`.
//! Elements of other types are the numbers themselves. Tensors of the types `i16`, `u16`, `u32`, `u64`, `f64`,
//! `bf16` and `bool` cannot be read; they are ignored if the decoder does not need them.
//!
//! If several elements attach tensors, `source` tells them apart: tensors with equal sources belong to one model.
//!
//! If a model ran on several parts of a frame, such as tiles, the tensors of each part follow one another and have the
//! same `region` and `parent`. A tensor with another region, or with an id that the part already has, begins the next
//! part. Either all tensors of a source have a region, or none. `nmsfilter` compares the boxes of all parts of a frame.
//!
//! The metadata stays on the buffer through queues and tees, and is copied with the buffer. Elements that transform
//! the video frame (scale, crop, flip, convert) do not copy it to the new frame, because they do not support one of
//! its tags; on the new frame, the coordinates would be wrong.

use gst::glib;
use gst::glib::prelude::StaticType;
use gst_newer::CustomMeta;

use super::region::TensorRegion;
use super::selection::SetTensors;
use super::source::{FrameTensors, ImageFrame};
use super::{AttachedTensor, InputError, Tensors};
use crate::bindings::field_name::FieldName;
use crate::bindings::strings;
use nmsfilter_core::tensor::{
    Element, ElementType, MAX_DIMENSIONS, Quantization, Shape, TensorError, TensorProblem,
};

/// The name under which the metadata is registered.
pub const META_NAME: &str = "NmsFilterTensor";

static ID: FieldName = FieldName::new("id");
static TYPE: FieldName = FieldName::new("type");
static DIMS: FieldName = FieldName::new("dims");
static DATA: FieldName = FieldName::new("data");
static MODEL: FieldName = FieldName::new("model");
static SOURCE: FieldName = FieldName::new("source");
static SCALE: FieldName = FieldName::new("scale");
static ZERO_POINT: FieldName = FieldName::new("zero-point");

static META: CustomMeta = CustomMeta::new(META_NAME, &["video", "nmsfilter-tensor"]);

/// Registers the metadata with GStreamer. Further calls have no effect.
///
/// [`attach`] and [`Tensors::of`](super::Tensors::of) call this function.
pub fn register() {
    META.api();
}

/// A tensor to attach. It owns a reference to its memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTensor {
    /// The name of the model's output, from which a decoder is chosen.
    pub id: String,
    /// The type of each element.
    pub element: ElementType,
    /// The dimensions, slowest first.
    pub shape: Shape,
    /// The elements, contiguous, in row-major order. The memory is shared, not copied.
    pub data: gst::Buffer,
    /// The model description, created by [`ModelInfo::to_caps`](super::model::ModelInfo::to_caps). The caps are
    /// shared, not copied. It is enough if one of the tensors on a buffer has it.
    pub model: Option<gst::Caps>,
    /// The quantization, which says which numbers elements of type i8 and u8 stand for.
    pub quantization: Option<Quantization>,
}

impl NewTensor {
    /// Creates a tensor from the memory of `data`, which is shared, not copied.
    ///
    /// # Errors
    /// If `shape` has too many dimensions.
    pub fn new(
        id: &str,
        element: ElementType,
        shape: &[usize],
        data: gst::Buffer,
    ) -> Result<Self, TensorError> {
        let shape = Shape::new(shape).ok_or_else(|| {
            TensorError::new(id, TensorProblem::Dimensions { count: shape.len() })
        })?;
        Ok(Self { id: id.to_owned(), element, shape, data, model: None, quantization: None })
    }

    /// Adds a model description, made by [`ModelInfo::to_caps`](super::model::ModelInfo::to_caps).
    #[must_use]
    pub fn with_model(self, model: gst::Caps) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Adds a quantization. It only affects elements of type i8 and u8.
    #[must_use]
    pub fn with_quantization(self, quantization: Quantization) -> Self {
        Self { quantization: Some(quantization), ..self }
    }

    /// Creates a tensor that owns `elements`. The number of elements is not checked here, but in [`attach`].
    ///
    /// # Errors
    /// If `shape` has more than [`MAX_DIMENSIONS`] dimensions.
    pub fn from_vec<T: Element>(
        id: &str,
        shape: &[usize],
        elements: Vec<T>,
    ) -> Result<Self, TensorError> {
        Self::new(id, T::TYPE, shape, gst::Buffer::from_slice(Pod(elements)))
    }

    /// Returns the tensor in the form in which tensors are read from a buffer.
    pub(super) fn as_attached(&self) -> AttachedTensor<'_> {
        let (model, quantization) = (self.model.as_ref(), self.quantization);
        let shape = self.shape.clone();
        let tensor = AttachedTensor::new(&self.id, self.element, shape, Some(&self.data));
        AttachedTensor { model, quantization, ..tensor }
    }
}

/// A vector of elements that can be accessed as bytes.
struct Pod<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Pod<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Attaches `tensor` to `buffer`, after the tensors that are already attached.
///
/// # Errors
/// If tensors of the element type cannot be read, if the memory is smaller than the shape requires, or if the running
/// GStreamer has no custom metadata.
pub fn attach(buffer: &mut gst::BufferRef, tensor: &NewTensor) -> Result<(), InputError> {
    attach_of(buffer, tensor, None, None)
}

/// Attaches `tensor` together with the name of the element that attaches it, by which `nmsfilter` can select its tensors
/// (`tensors-from`), and with the part of the frame on which the model ran, each if there is one. The tensors of a part
/// must be attached one after the other.
///
/// # Errors
/// If [`attach`] would return an error.
pub fn attach_of(
    buffer: &mut gst::BufferRef,
    tensor: &NewTensor,
    source: Option<&str>,
    region: Option<&TensorRegion>,
) -> Result<(), InputError> {
    tensor.as_attached().view().checked_len()?;

    META.add(buffer, |structure| {
        structure.set(ID.name(), &tensor.id);
        structure.set(TYPE.name(), tensor.element.name());
        structure.set(DIMS.name(), gst::Array::new(tensor.shape.iter().map(|&dim| dim as u64)));
        structure.set(DATA.name(), &tensor.data);
        if let Some(model) = &tensor.model {
            structure.set(MODEL.name(), model);
        }
        if let Some(source) = source {
            structure.set(SOURCE.name(), source);
        }
        if let Some(quantization) = tensor.quantization {
            structure.set(SCALE.name(), f64::from(quantization.scale()));
            structure.set(ZERO_POINT.name(), quantization.zero_point());
        }
        if let Some(region) = region {
            region.write(structure);
        }
    })?;
    Ok(())
}

/// Reads the attached tensors of `buffer` into `tensors`, in the order in which they were attached. If there are
/// more tensors than `tensors` can take, the others are only counted.
///
/// # Errors
/// If a required field is missing, if a field has the wrong type, if text is not UTF-8, or if a number is not a
/// valid scale or zero point.
pub(super) fn read<'a>(
    buffer: &'a gst::BufferRef,
    tensors: &mut Tensors<'a>,
) -> Result<(), InputError> {
    META.structures(buffer).try_for_each(|structure| push(structure, tensors))
}

/// Reads the attached tensors with this source, and the regions that they belong to, into an empty set; `None` stands
/// for tensors without a source. The order and the limit of the tensors of a region, or of a frame without regions, are as in [`read`].
///
/// # Errors
/// If [`read`] would return an error, if a region is malformed, or if only some tensors of the source have a region. Only
/// the source of other tensors is read.
pub(super) fn read_from<'a>(
    buffer: &'a gst::BufferRef,
    source: Option<&str>,
    SetTensors { frame: FrameTensors { tensors: of_frame, .. }, regions }: &mut SetTensors<'a>,
) -> Result<(), InputError> {
    for structure in META.structures(buffer) {
        if self::source(structure)? != source {
            continue;
        }
        match TensorRegion::read(structure)? {
            None if regions.is_empty() => push(structure, of_frame)?,
            region @ Some(_) if of_frame.is_empty() => {
                let id = text(&ID, value(structure, &ID)?)?;
                let is_next = |last: &FrameTensors<'_>| {
                    let mut ids = last.tensors.read.iter().map(|tensor| tensor.id);
                    last.frame.region != region || ids.any(|other| other == id)
                };
                if regions.last().is_none_or(is_next) {
                    let frame = ImageFrame { region, ..ImageFrame::default() };
                    regions.push(FrameTensors { frame, tensors: Tensors::default() });
                }
                push(structure, &mut regions.last_mut().expect("there is a region").tensors)?;
            }
            _ => {
                let id = text(&ID, value(structure, &ID)?)?;
                return Err(InputError::Malformed(format!(
                    "tensor {id}: expected the field region in all tensors of a source, or in none"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the source of each attached tensor.
pub(super) fn sources(
    buffer: &gst::BufferRef,
) -> impl Iterator<Item = Result<Option<&str>, InputError>> {
    META.structures(buffer).map(source)
}

/// Adds the tensor in a structure, or counts it if there is no room.
fn push<'a>(structure: &'a gst::StructureRef, tensors: &mut Tensors<'a>) -> Result<(), InputError> {
    if tensors.read.is_full() {
        tensors.unread += 1;
    } else {
        tensors.push(parse(structure)?);
    }
    Ok(())
}

/// Returns the field `source`, or `None` if it is missing.
fn source(structure: &gst::StructureRef) -> Result<Option<&str>, InputError> {
    SOURCE.value(structure).map(|value| text(&SOURCE, value)).transpose()
}

fn parse(structure: &gst::StructureRef) -> Result<AttachedTensor<'_>, InputError> {
    let id = text(&ID, value(structure, &ID)?)?;
    let type_name = text(&TYPE, value(structure, &TYPE)?)?;
    let element = ElementType::from_name(type_name).ok_or_else(|| {
        InputError::Malformed(format!(
            "tensor {id}: expected type to be one of {}, got {type_name}; convert it upstream",
            ElementType::READABLE.map(ElementType::name).join(", ")
        ))
    })?;

    let dims = typed::<gst::ArrayRef>(&DIMS, value(structure, &DIMS)?)?;
    let dims = dims.as_slice();
    if dims.len() > MAX_DIMENSIONS {
        let problem = TensorProblem::Dimensions { count: dims.len() };
        return Err(TensorError::new(id, problem).into());
    }
    let mut shape = [0; MAX_DIMENSIONS];
    for (to, from) in shape.iter_mut().zip(dims) {
        *to = from.get::<u64>().ok().and_then(|dim| dim.try_into().ok()).ok_or_else(|| {
            let found = from.type_();
            InputError::Malformed(format!("tensor {id}: expected dims of type uint64, got {found}"))
        })?;
    }

    let data = typed::<&gst::BufferRef>(&DATA, value(structure, &DATA)?)?;
    let shape = Shape::new(&shape[..dims.len()]).expect("the number of dimensions was checked");
    let model = optional::<&gst::Caps>(structure, &MODEL)?;
    let quantization = quantization(structure, id)?;
    let tensor = AttachedTensor::new(id, element, shape, Some(data));
    Ok(AttachedTensor { model, quantization, ..tensor })
}

/// Reads the fields `scale` and `zero-point`.
fn quantization(
    structure: &gst::StructureRef,
    id: &str,
) -> Result<Option<Quantization>, InputError> {
    let zero_point = optional::<i32>(structure, &ZERO_POINT)?;
    let Some(scale) = SCALE.value(structure) else {
        return match zero_point {
            None => Ok(None),
            Some(_) => {
                Err(InputError::Malformed(format!("tensor {id}: the field zero-point needs scale")))
            }
        };
    };
    // Both float and double are common, so both are accepted.
    let scale = match scale.get::<f32>() {
        Ok(scale) => scale,
        Err(_) => typed::<f64>(&SCALE, scale)? as f32,
    };
    let zero_point = zero_point.unwrap_or(0);
    Quantization::new(scale, zero_point).map(Some).ok_or_else(|| {
        InputError::Malformed(format!(
            "tensor {id}: expected a scale above 0 and a zero point from -{max} to {max}, got {scale} and \
             {zero_point}",
            max = Quantization::MAX_ZERO_POINT
        ))
    })
}

/// Returns the value of a field that must exist.
fn value<'a>(
    structure: &'a gst::StructureRef,
    name: &FieldName,
) -> Result<&'a glib::Value, InputError> {
    let missing = || InputError::Malformed(format!("the field {} is missing", name.name()));
    name.value(structure).ok_or_else(missing)
}

/// The error that the value of a field does not have the type `T`, or is NULL.
fn unexpected<T: StaticType>(name: &FieldName, value: &glib::Value) -> InputError {
    let (name, found) = (name.name(), value.type_());
    InputError::Malformed(match found == T::static_type() {
        true => format!("the field {name} is NULL"),
        false => format!("the field {name} has the unexpected type {found}"),
    })
}

/// Returns the content of a field's value, which must have the type `T`.
fn typed<'a, T: glib::value::FromValue<'a> + StaticType>(
    name: &FieldName,
    value: &'a glib::Value,
) -> Result<T, InputError> {
    value.get::<T>().map_err(|_| unexpected::<T>(name, value))
}

/// Returns the content of a field that must have the type `T`, or `None` if there is no such field.
fn optional<'a, T: glib::value::FromValue<'a> + StaticType>(
    structure: &'a gst::StructureRef,
    name: &FieldName,
) -> Result<Option<T>, InputError> {
    name.value(structure).map(|value| typed(name, value)).transpose()
}

/// Returns the text of a field's value, which must have the type string. The Rust bindings would panic if it is not UTF-8.
fn text<'a>(name: &FieldName, value: &'a glib::Value) -> Result<&'a str, InputError> {
    let text = strings::of_value(value)
        .map_err(|_| InputError::Malformed(format!("the field {} is not UTF-8", name.name())))?;
    text.ok_or_else(|| unexpected::<String>(name, value))
}

/// Removes the attached tensors from `buffer`.
pub fn remove(buffer: &mut gst::BufferRef) {
    META.remove_if(buffer, |_| true);
}

/// Removes the attached tensors with this source from `buffer`; `None` stands for tensors without a source.
pub(super) fn remove_from(buffer: &mut gst::BufferRef, source: Option<&str>) {
    META.remove_if(buffer, |structure| self::source(structure).is_ok_and(|is| is == source));
}
