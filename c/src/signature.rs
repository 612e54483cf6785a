// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models that are recognized by their inputs and outputs.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::LazyLock;

use nmsfilter_core::signature::{
    self, ConstantNumbers, Description, InputLayout, Metadata, ModelTensor, Normalization,
};
use nmsfilter_core::tensor::{ElementType, MAX_DIMENSIONS};

use crate::border::{self, Failure, sized_struct};
use crate::frame::Letterbox;
use crate::options::Options;
use crate::params::{Method, Params};
use crate::status::{Status, run};
use crate::tensor::{Tensor, Tensors};
use crate::words::in_c;

/// The order of a picture's dimensions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum PictureLayout {
    /// Batch, if the model has one, channels, height, width.
    Nchw = 0,
    /// Batch, if the model has one, height, width, channels.
    Nhwc = 1,
}

/// The numbers that an input of a model takes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum InputNumbers {
    /// The picture.
    Picture = 0,
    /// The width and the height of the picture, for each picture of a batch.
    WidthHeight = 1,
    /// The height and the width of the picture, for each picture of a batch.
    HeightWidth = 2,
    /// Ones.
    Ones = 3,
}

/// An input or an output of a model. Set all bytes to 0, then all fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ModelTensorInfo {
    /// sizeof(NmsfilterModelTensorInfo).
    pub size: usize,
    /// The name; UTF-8.
    pub name: *const c_char,
    /// The type of the elements, as ONNX and ONNX Runtime number it: 1 for float, 10 for half precision, and so on
    /// (ONNXTensorElementDataType), which is not an NmsfilterElementType.
    pub onnx_type: u32,
    /// The number of dimensions, 0 to 8.
    pub dimensions: u32,
    /// The dimensions; -1 for those that are dynamic.
    pub shape: [i64; 8],
}

sized_struct!(ModelTensorInfo, "NmsfilterModelTensorInfo", shape: [i64; 8]);

/// What a model's inputs and outputs say about it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Signature {
    /// sizeof(NmsfilterSignature), which the caller sets.
    pub size: usize,
    /// The name of the signature, which is valid until the process ends; NULL if the program that exported the model is not
    /// known, and all other fields are 0.
    pub name: *const c_char,
    /// The numbers that each input takes, in the model's order: an NmsfilterInputNumbers.
    pub inputs: [u32; 4],
    /// An NmsfilterLetterbox: how frames are fitted into the picture.
    pub letterbox: u32,
    /// The picture's width; 0 if it is dynamic, and such models have no usual size.
    pub width: u32,
    /// The picture's height.
    pub height: u32,
    /// An NmsfilterPictureLayout.
    pub layout: u32,
    /// 1 if the first channel is blue; 0 if it is red.
    pub is_bgr: u32,
    /// 1 if models of the exporter have other pixels, too: `is_bgr`, `range`, `mean` and `deviation` are then those of the
    /// model's configuration.
    pub pixels_vary: u32,
    /// The numbers of black and white. A channel's value v, 0 to 255, becomes
    /// (range[0] + v * (range[1] - range[0]) / 255 - mean) / deviation.
    pub range: [f64; 2],
    /// For red, green and blue.
    pub mean: [f64; 3],
    /// For red, green and blue.
    pub deviation: [f64; 3],
    /// The number of outputs with masks or keypoints, which are not read.
    pub unread: u32,
}

sized_struct!(Signature, "NmsfilterSignature", deviation: [f64; 3]);

impl Signature {
    fn new(found: Option<&Description>) -> Self {
        let Some(found) = found else {
            return Self {
                size: size_of::<Self>(),
                name: null(),
                inputs: [0; 4],
                letterbox: 0,
                width: 0,
                height: 0,
                layout: 0,
                is_bgr: 0,
                pixels_vary: 0,
                range: [0.0; 2],
                mean: [0.0; 3],
                deviation: [0.0; 3],
                unread: 0,
            };
        };
        let facts = found.facts;
        let Normalization { range, mean, std } =
            facts.normalization.expect("the description is complete");
        let mut inputs = [InputNumbers::Picture as u32; 4];
        for (to, numbers) in inputs.iter_mut().zip(&found.inputs) {
            *to = match numbers {
                None => InputNumbers::Picture,
                Some(ConstantNumbers::WidthHeight) => InputNumbers::WidthHeight,
                Some(ConstantNumbers::HeightWidth) => InputNumbers::HeightWidth,
                Some(ConstantNumbers::Ones) => InputNumbers::Ones,
            } as u32;
        }
        let [width, height] = facts.size.unwrap_or_default();
        Self {
            size: size_of::<Self>(),
            name: NAMES[found.name].as_ptr(),
            inputs,
            letterbox: Letterbox::of(facts.letterbox) as u32,
            width,
            height,
            layout: match facts.layout {
                Some(InputLayout::Nhwc) => PictureLayout::Nhwc,
                _ => PictureLayout::Nchw,
            } as u32,
            is_bgr: facts.is_bgr.into(),
            pixels_vary: facts.pixels_vary.into(),
            range,
            mean,
            deviation: std,
            unread: found.unread().len() as u32,
        }
    }
}

/// The names of signatures, and the ids of their tensors.
static NAMES: LazyLock<BTreeMap<&'static str, CString>> = LazyLock::new(|| {
    let names = signature::all().iter().flat_map(|it| {
        let ids = it.outputs.iter().flat_map(|it| [Some(it.meaning), it.logits.map(|(id, _)| id)]);
        ids.flatten().chain([it.name])
    });
    names.map(|name| (name, border::c_text(name))).collect()
});

/// A name, an element type and dimensions.
type Named<'a> = (&'a str, ElementType, Vec<i64>);

/// The element type with this number in ONNX.
fn of_onnx(number: u32) -> ElementType {
    match number {
        1 => ElementType::F32,
        2 => ElementType::U8,
        3 => ElementType::I8,
        6 => ElementType::I32,
        7 => ElementType::I64,
        10 => ElementType::F16,
        _ => ElementType::Other("another type"),
    }
}

/// # Safety
/// The pointer is NULL or valid for that many structures, whose names exist during `'a`.
unsafe fn infos<'a>(
    from: *const ModelTensorInfo,
    count: usize,
    argument: &str,
) -> Result<Vec<Named<'a>>, Failure> {
    if count == 0 {
        return Err(Failure::argument(format!("{argument}: expected at least one, got 0")));
    }
    // SAFETY: the caller guarantees it.
    let stride = unsafe { border::size_at(from, argument) }?;
    let info = |index: usize| {
        let name = format!("{argument}[{index}]");
        // SAFETY: there are as many structures of this size.
        let info: ModelTensorInfo =
            unsafe { border::read_bytes(from.byte_add(index * stride).cast(), stride, &name) }?;
        // SAFETY: the caller guarantees it.
        let text = unsafe { border::text(info.name, &format!("{name}: name")) }?;
        let text = text
            .ok_or_else(|| Failure::argument(format!("{name}: name: expected text, got NULL")))?;
        let dims = info.shape.get(..info.dimensions as usize).ok_or_else(|| {
            Failure::argument(format!(
                "{name}: dimensions: expected 0 to {MAX_DIMENSIONS}, got {}",
                info.dimensions
            ))
        })?;
        Ok((text, of_onnx(info.onnx_type), dims.to_vec()))
    };
    (0..count).map(info).collect()
}

/// Recognizes a model by the names, element types and dimensions of all its inputs and outputs, as the element ortinference
/// does, and stores what is known of it at `signature`. An unknown model is no error.
///
/// `options` and `params` can be NULL. Otherwise the fields that the signature decides are set: `model_width` and
/// `model_height`; `method`, `multi_label` and `letterbox`. Then pass them to nmsfilter_set_options and
/// nmsfilter_set_params.
///
/// `name` is the signature that is taken; NULL for the only one. A model with the signatures of several exporters, or others
/// than `name`, is an error, whose text nmsfilter_error_text(NULL) has. The metadata of the file are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_signature(
    inputs: *const ModelTensorInfo,
    input_count: usize,
    outputs: *const ModelTensorInfo,
    output_count: usize,
    name: *const c_char,
    signature: *mut Signature,
    options: *mut Options,
    params: *mut Params,
) -> Status {
    // SAFETY: the caller guarantees it.
    run(|| unsafe {
        let size = border::size_at(signature, "signature")?;
        let (inputs, outputs) =
            (infos(inputs, input_count, "inputs")?, infos(outputs, output_count, "outputs")?);
        let [inputs, outputs] = [&inputs, &outputs].map(|all| {
            all.iter()
                .map(|(name, element, dims)| -> ModelTensor<'_> { (name, *element, dims) })
                .collect::<Vec<_>>()
        });
        let name = border::text(name, "name")?;
        let found = signature::describe(&inputs, &outputs, &Metadata::default(), name)
            .map_err(|error| Failure::new(Status::Decoder, in_c(error)))?;
        if let Some(found) = &found {
            if !options.is_null() {
                change(options, "options", |options| {
                    if let Some(size) = found.facts.size {
                        [options.model_width, options.model_height] = size.map(|side| side as f32);
                    }
                })?;
            }
            if !params.is_null() {
                change(params, "params", |params| {
                    let letterbox = found.facts.letterbox;
                    params.letterbox = Letterbox::of(letterbox) as u32;
                    if found.facts.is_suppressed {
                        params.method = Method::None as u32;
                    }
                    if found.facts.selects_pairs {
                        params.multi_label = 2;
                    }
                })?;
            }
        }
        border::write(signature, size, &Signature { size, ..Signature::new(found.as_ref()) });
        Ok(())
    })
}

/// Prepares the outputs of a run for nmsfilter_run: replaces the ids of tensors, which are the names of the model's outputs,
/// by those by which the decoder of the signature is chosen, moves the tensors that are read to the front of the array, and
/// stores their number at `count`, which is that of all tensors before.
///
/// Some signatures look at the tensors' numbers, in host memory: whether scores are logits, and whether all rows are of the
/// first picture.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_signature_tensors(
    signature: *const Signature,
    tensors: *mut Tensor,
    count: *mut usize,
) -> Status {
    // SAFETY: the caller guarantees it.
    run(|| unsafe {
        let name = border::text(border::read(signature, "signature")?.name, "signature: name")?;
        border::check_pointer(count, "count")?;
        let known = name.and_then(|name| signature::all().iter().find(|it| it.name == name));
        let known = known.ok_or_else(|| {
            Failure::argument(
                "signature: expected one that nmsfilter_signature has found, got none",
            )
        })?;
        let read = Tensors::read(tensors, *count)?;
        let failure = |error| Failure::new(Status::Tensor, in_c(error));
        let ids: Result<Vec<_>, _> =
            read.views().iter().map(|tensor| known.tensor_id(tensor).map_err(failure)).collect();
        let ids = ids?;
        drop(read);
        let (stride, mut kept) =
            if *count == 0 { (0, 0) } else { (border::size_at(tensors, "tensors")?, 0) };
        for (index, id) in ids.into_iter().enumerate() {
            let Some(id) = id else { continue };
            let (from, to) = (tensors.byte_add(index * stride), tensors.byte_add(kept * stride));
            from.cast::<u8>().copy_to(to.cast(), stride);
            (&raw mut (*to).id).write_unaligned(NAMES[id].as_ptr());
            kept += 1;
        }
        *count = kept;
        Ok(())
    })
}

/// Changes fields of the structure at `at`.
///
/// # Errors
/// The errors of [`border::read`].
///
/// # Safety
/// `at` is NULL or valid for reads and writes of as many bytes as its first field has.
unsafe fn change<T: border::SizedStruct>(
    at: *mut T,
    argument: &str,
    change: impl FnOnce(&mut T),
) -> Result<(), Failure> {
    // SAFETY: the caller guarantees it.
    unsafe {
        let (size, mut value) = (border::size_at(at, argument)?, border::read(at, argument)?);
        change(&mut value);
        border::write(at, size, &value);
    }
    Ok(())
}
