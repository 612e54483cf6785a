// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's own tensor metadata, for GStreamer 1.20 and later.
//!
//! In: a [`NewTensor`] to [`attach`] to a buffer. Out: the tensors of a buffer, for
//! [`Tensors::of`](super::Tensors::of).
//!
//! Each tensor is one `GstCustomMeta` named [`META_NAME`], so that programs in any language can
//! write it without headers of this crate. Its structure has four fields, and four optional
//! ones:
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | `id` | string | the name of the model's output |
//! | `type` | string | `f32`, `f16`, `i8`, `u8`, `i32` or `i64` |
//! | `dims` | array of uint64 | dimensions, slowest first |
//! | `data` | buffer | the elements, contiguous, row-major |
//! | `model` | caps | what is known of the model ([`model`](super::model)); optional |
//! | `source` | string | the name of the element that attached it; optional |
//! | `scale` | double or float | the step of a quantized tensor; optional |
//! | `zero-point` | int | the element that stands for 0, if there is a scale; optional, 0 by default |
//!
//! An element `q` of type `i8` or `u8` stands for the number `(q - zero-point) * scale`. Elements of other types are
//! the numbers themselves. Tensors of the types `i16`, `u16`, `u32`, `u64`, `f64`, `bf16` and `bool` cannot be read;
//! they are left out if the decoder does not need them.
//!
//! Where several elements attach tensors, `source` distinguishes them: the tensors with the same source are those
//! of one model.
//!
//! The metadata stays on the buffer through queues and tees, and is copied with it. Other elements
//! do not support one of its tags, so elements that transform the video frame (scale, crop, flip,
//! convert) do not copy it to the new frame, for which the coordinates would be wrong.

use std::sync::OnceLock;

use gst::glib::prelude::StaticType;

use super::{AttachedTensor, InputError, Tensors};
use crate::bindings::strings;
use nmsfilter_core::tensor::{
    Element, ElementType, MAX_DIMENSIONS, Quantization, Shape, TensorError,
};

/// The metadata's registered name.
pub const META_NAME: &str = "NmsFilterTensor";

const TAGS: &[&str] = &["video", "nmsfilter-tensor"];

/// The metadata's API type. It is cached, since GStreamer's comparison by name allocates.
static API: OnceLock<gst::glib::Type> = OnceLock::new();

/// Registers the metadata with GStreamer; further calls have no effect.
///
/// [`attach`] and [`Tensors::of`](super::Tensors::of) call it.
pub fn register() {
    api();
}

/// The metadata's API type, registered if necessary. Another copy of this crate in the process (for
/// example in an application that also loads the plugin) has its own [`API`], but uses the same
/// registered type.
fn api() -> gst::glib::Type {
    *API.get_or_init(|| {
        // Another copy of this crate may have registered it.
        if !gst::meta::CustomMeta::is_registered(META_NAME) {
            gst::meta::CustomMeta::register(META_NAME, TAGS);
        }
        gst::glib::Type::from_name(format!("{META_NAME}-api"))
            .expect("the API type of custom metadata has this name")
    })
}

/// A tensor to attach. It owns a reference to its memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewTensor {
    /// The name of the model's output, by which a decoder is chosen.
    pub id: String,
    /// The type of each element.
    pub element: ElementType,
    /// Dimensions, slowest first.
    pub shape: Shape,
    /// The elements, row-major and contiguous. The memory is shared, not copied.
    pub data: gst::Buffer,
    /// What is known of the model, as [`ModelInfo::to_caps`](super::model::ModelInfo::to_caps) makes it. The
    /// caps are shared, not copied. Of the tensors of a buffer, one with a model is enough.
    pub model: Option<gst::Caps>,
    /// The numbers that elements of type i8 and u8 stand for.
    pub quantization: Option<Quantization>,
}

impl NewTensor {
    /// A tensor over the memory of `data`, which is shared, not copied.
    ///
    /// # Errors
    /// If `shape` has too many dimensions.
    pub fn new(
        id: &str,
        element: ElementType,
        shape: &[usize],
        data: gst::Buffer,
    ) -> Result<Self, TensorError> {
        let shape = Shape::new(shape)
            .ok_or_else(|| TensorError::Dimensions { id: id.to_owned(), count: shape.len() })?;
        Ok(Self { id: id.to_owned(), element, shape, data, model: None, quantization: None })
    }

    /// The tensor of the model that `model` describes.
    #[must_use]
    pub fn with_model(self, model: gst::Caps) -> Self {
        Self { model: Some(model), ..self }
    }

    /// The tensor with quantized elements. It has no effect on elements other than i8 and u8.
    #[must_use]
    pub fn with_quantization(self, quantization: Quantization) -> Self {
        Self { quantization: Some(quantization), ..self }
    }

    /// A tensor that owns `elements`. The number of elements is checked by [`attach`].
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

    /// The tensor as if it was read from a buffer.
    pub(super) fn as_attached(&self) -> AttachedTensor<'_> {
        AttachedTensor::new(&self.id, self.element, self.shape.clone(), Some(&self.data))
            .with_model(self.model.as_ref())
            .with_quantization(self.quantization)
    }
}

/// A vector of elements as bytes.
struct Pod<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Pod<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Attaches `tensor` to `buffer`, after the tensors that are attached already.
///
/// # Errors
/// If the element type cannot be read, or if the memory is smaller than the shape requires.
pub fn attach(buffer: &mut gst::BufferRef, tensor: &NewTensor) -> Result<(), TensorError> {
    add(buffer, tensor, None)
}

/// Attaches `tensor` as [`attach`] does, with the name of the element that attaches it. By this name,
/// `nmsfilter` selects the tensors of one of several elements (`tensors-from`).
///
/// # Errors
/// As [`attach`].
pub fn attach_from(
    buffer: &mut gst::BufferRef,
    tensor: &NewTensor,
    source: &str,
) -> Result<(), TensorError> {
    add(buffer, tensor, Some(source))
}

fn add(
    buffer: &mut gst::BufferRef,
    tensor: &NewTensor,
    source: Option<&str>,
) -> Result<(), TensorError> {
    tensor.as_attached().view().checked_len()?;

    register();
    let mut meta = gst::meta::CustomMeta::add(buffer, META_NAME)
        .expect("the metadata is registered and the buffer writable");
    let structure = meta.mut_structure();
    structure.set("id", &tensor.id);
    structure.set("type", tensor.element.name());
    structure.set("dims", gst::Array::new(tensor.shape.iter().map(|&dim| dim as u64)));
    structure.set("data", &tensor.data);
    if let Some(model) = &tensor.model {
        structure.set("model", model);
    }
    if let Some(source) = source {
        structure.set("source", source);
    }
    if let Some(quantization) = tensor.quantization {
        structure.set("scale", f64::from(quantization.scale()));
        structure.set("zero-point", quantization.zero_point());
    }
    Ok(())
}

/// Reads the attached tensors of `buffer` into `tensors`, in the order in which they were attached.
/// Tensors beyond its capacity are only counted.
///
/// # Errors
/// If a field of a structure that is not optional is missing, or a field has another type, or is text that is not
/// UTF-8, or a number that is no scale or zero point.
pub(super) fn read<'a>(
    buffer: &'a gst::BufferRef,
    tensors: &mut Tensors<'a>,
) -> Result<(), InputError> {
    structures(buffer).try_for_each(|structure| push(structure, tensors))
}

/// Reads the attached tensors with this source, or without one, as [`read`] does.
///
/// # Errors
/// As [`read`]; of other tensors, only the source is read.
pub(super) fn read_from<'a>(
    buffer: &'a gst::BufferRef,
    source: Option<&str>,
    tensors: &mut Tensors<'a>,
) -> Result<(), InputError> {
    for structure in structures(buffer) {
        if self::source(structure)? == source {
            push(structure, tensors)?;
        }
    }
    Ok(())
}

/// The source of each attached tensor.
pub(super) fn sources(
    buffer: &gst::BufferRef,
) -> impl Iterator<Item = Result<Option<&str>, InputError>> {
    structures(buffer).map(source)
}

/// Adds the tensor of a structure, or counts it if there is no room.
fn push<'a>(structure: &'a gst::StructureRef, tensors: &mut Tensors<'a>) -> Result<(), InputError> {
    match tensors.is_full() {
        true => tensors.skip(),
        false => tensors.push(parse(structure)?),
    }
    Ok(())
}

/// The structures of the metadata items, in the order in which they were attached.
fn structures(buffer: &gst::BufferRef) -> impl Iterator<Item = &gst::StructureRef> {
    let api = api();
    buffer
        .iter_meta::<gst::Meta>()
        .filter(move |meta| meta.api() == api)
        .filter_map(|meta| meta.try_as_custom_meta().map(structure))
}

/// The field `source`; `None` if there is none.
fn source(structure: &gst::StructureRef) -> Result<Option<&str>, InputError> {
    match structure.has_field("source") {
        true => text_field(structure, "source").map(Some),
        false => Ok(None),
    }
}

/// The structure of a metadata item, for as long as its buffer is borrowed.
fn structure<'a>(meta: &gst::MetaRef<'a, gst::meta::CustomMeta>) -> &'a gst::StructureRef {
    let structure: *const gst::StructureRef = meta.structure();
    // SAFETY: the structure is owned by the metadata, and the metadata by the buffer, which is
    // borrowed immutably for `'a`. `structure()` returns it with the shorter lifetime of the borrow
    // of `meta`.
    unsafe { &*structure }
}

fn parse(structure: &gst::StructureRef) -> Result<AttachedTensor<'_>, InputError> {
    let malformed = |problem: String| InputError::Malformed { problem };
    let id = text_field(structure, "id")?;
    let type_name = text_field(structure, "type")?;
    let element = ElementType::from_name(type_name).ok_or_else(|| {
        malformed(format!(
            "tensor {id}: expected type to be one of {}, got {type_name}; convert it upstream",
            ElementType::READABLE.map(ElementType::name).join(", ")
        ))
    })?;

    let dims = field::<gst::ArrayRef>(structure, "dims")?;
    let dims = dims.as_slice();
    if dims.len() > MAX_DIMENSIONS {
        return Err(TensorError::Dimensions { id: id.to_owned(), count: dims.len() }.into());
    }
    let mut shape = [0; MAX_DIMENSIONS];
    for (to, from) in shape.iter_mut().zip(dims) {
        *to = from.get::<u64>().ok().and_then(|dim| dim.try_into().ok()).ok_or_else(|| {
            malformed(format!("tensor {id}: expected dims of type uint64, got {}", from.type_()))
        })?;
    }

    let data = field::<&gst::BufferRef>(structure, "data")?;
    let shape = Shape::new(&shape[..dims.len()]).expect("the number of dimensions was checked");
    let model = match structure.has_field("model") {
        true => Some(field::<&gst::Caps>(structure, "model")?),
        false => None,
    };
    let quantization = quantization(structure, id)?;
    let tensor = AttachedTensor::new(id, element, shape, Some(data));
    Ok(tensor.with_model(model).with_quantization(quantization))
}

/// The fields `scale` and `zero-point`.
fn quantization(
    structure: &gst::StructureRef,
    id: &str,
) -> Result<Option<Quantization>, InputError> {
    let malformed = |problem: String| InputError::Malformed { problem };
    let zero_point = match structure.has_field("zero-point") {
        true => Some(field::<i32>(structure, "zero-point")?),
        false => None,
    };
    if !structure.has_field("scale") {
        return match zero_point {
            None => Ok(None),
            Some(_) => Err(malformed(format!("tensor {id}: the field zero-point needs scale"))),
        };
    }
    // A float is as common as a double: both are read.
    let scale = match structure.get::<f32>("scale") {
        Ok(scale) => scale,
        Err(_) => field::<f64>(structure, "scale")? as f32,
    };
    let zero_point = zero_point.unwrap_or(0);
    Quantization::new(scale, zero_point).map(Some).ok_or_else(|| {
        malformed(format!(
            "tensor {id}: expected a scale above 0 and a zero point from -{max} to {max}, got {scale} and \
             {zero_point}",
            max = Quantization::MAX_ZERO_POINT
        ))
    })
}

/// The value of a field of type `T`.
fn value<'a, T: StaticType>(
    structure: &'a gst::StructureRef,
    name: &str,
) -> Result<&'a gst::glib::Value, InputError> {
    let malformed = |problem| InputError::Malformed { problem };
    let value =
        structure.value(name).map_err(|_| malformed(format!("the field {name} is missing")))?;
    match value.type_() == T::static_type() {
        true => Ok(value),
        false => {
            let found = value.type_();
            Err(malformed(format!("the field {name} has the unexpected type {found}")))
        }
    }
}

fn field<'a, T: gst::glib::value::FromValue<'a> + StaticType>(
    structure: &'a gst::StructureRef,
    name: &str,
) -> Result<T, InputError> {
    value::<T>(structure, name)?.get::<T>().map_err(|_| is_null(name))
}

/// The text of a field of type string. The bindings would panic if it is not UTF-8.
fn text_field<'a>(structure: &'a gst::StructureRef, name: &str) -> Result<&'a str, InputError> {
    let text = strings::of_value(value::<String>(structure, name)?)
        .map_err(|_| InputError::Malformed { problem: format!("the field {name} is not UTF-8") })?;
    text.ok_or_else(|| is_null(name))
}

fn is_null(name: &str) -> InputError {
    InputError::Malformed { problem: format!("the field {name} is NULL") }
}

/// Removes the attached tensors from `buffer`.
pub fn remove(buffer: &mut gst::BufferRef) {
    remove_if(buffer, |_| true);
}

/// Removes the attached tensors with this source, or without one, from `buffer`.
pub(super) fn remove_from(buffer: &mut gst::BufferRef, source: Option<&str>) {
    remove_if(buffer, |structure| self::source(structure).is_ok_and(|is| is == source));
}

fn remove_if(buffer: &mut gst::BufferRef, remove: impl Fn(&gst::StructureRef) -> bool) {
    let api = api();
    buffer.foreach_meta_mut(|meta| {
        let is_ours = meta.api() == api;
        let is_removed =
            is_ours && meta.try_as_custom_meta().is_none_or(|custom| remove(custom.structure()));
        std::ops::ControlFlow::Continue(if is_removed {
            gst::buffer::BufferMetaForeachAction::Remove
        } else {
            gst::buffer::BufferMetaForeachAction::Keep
        })
    });
}
