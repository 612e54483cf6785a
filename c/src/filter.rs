// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handle that decodes and suppresses.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null;
use std::sync::LazyLock;

use nmsfilter_core::cuda::ForeignStream;
use nmsfilter_core::nms::{self, Nms};

use crate::border::{self, Failure, c_text};
use crate::device_result::DeviceResult;
use crate::enumeration::value_of;
use crate::frame::Frame;
use crate::options::Options;
use crate::params::Params;
use crate::result::{Image, Result, Results};
use crate::status::{self, Errors, Handle, Status, create, thread_error};
use crate::tensor::{Tensor, Tensors};
use crate::words::in_c;

/// The processor that decodes and suppresses.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Backend {
    /// The GPU for tensors in device memory; for tensors in host memory the processor that takes less time. If the GPU
    /// fails, the CPU.
    Auto = 0,
    /// The CPU.
    Cpu = 1,
    /// An NVIDIA GPU.
    Cuda = 2,
}

/// Decodes tensors and suppresses duplicate detections.
pub struct Filter {
    nms: Nms,
    frame: Frame,
    /// True if the frame's place is that for the last options.
    is_placed: bool,
    results: Results,
    errors: Errors,
    /// The texts of the warnings so far.
    warnings: Vec<CString>,
}

impl Filter {
    /// Adds the texts of the warnings that a run has added.
    fn add_warnings(&mut self) {
        let new = &self.nms.warnings()[self.warnings.len()..];
        let texts = new.iter().map(|warning| c_text(&in_c(warning)));
        self.warnings.extend(texts);
    }

    /// Computes where frames are in the model's input.
    fn place(&mut self) -> std::result::Result<(), Failure> {
        if !self.is_placed {
            self.frame.place(&mut self.nms)?;
            self.is_placed = true;
        }
        Ok(())
    }
}

impl Handle for Filter {
    fn errors(&mut self) -> &mut Errors {
        &mut self.errors
    }
}

/// # Errors
/// If the number is of no backend.
pub fn backend(number: u32) -> std::result::Result<nms::Backend, Failure> {
    value_of!("backend", number, Backend => nms::Backend, [Auto, Cpu, Cuda])
}

/// The number of a GPU; `None` for -1.
///
/// # Errors
/// If it is another negative number.
pub fn ordinal(cuda_device: i32) -> std::result::Result<Option<u32>, Failure> {
    match cuda_device {
        -1 => Ok(None),
        number => u32::try_from(number).map(Some).map_err(|_| {
            Failure::argument(format!(
                "cuda_device: expected -1 or the number of a GPU, got {number}"
            ))
        }),
    }
}

/// Makes a handle at `filter`, with the default options and parameters.
///
/// `backend` is an NmsfilterBackend. `cuda_device` is the number of the GPU, or -1 for the one that holds the tensors, and of
/// tensors in host memory the first. NMSFILTER_BACKEND_AUTO opens no GPU here. If it fails, NULL is stored, and
/// nmsfilter_error_text(NULL) has the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_new(
    backend: u32,
    cuda_device: i32,
    filter: *mut *mut Filter,
) -> Status {
    let new = || {
        let nms = Nms::new(self::backend(backend)?, ordinal(cuda_device)?)?;
        Ok(Filter {
            nms,
            frame: Frame::default(),
            is_placed: true,
            results: Results::default(),
            errors: Errors::default(),
            warnings: Vec::new(),
        })
    };
    // SAFETY: the caller guarantees it.
    unsafe { create(filter, new) }
}

/// Frees a handle and its results. NULL has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_free(filter: *mut Filter) {
    // SAFETY: the caller guarantees it.
    unsafe { status::free(filter) }
}

/// The text of the error of the last function of the handle that failed; with NULL, of the last function without a handle
/// that failed on this thread, such as nmsfilter_new. It is valid until the next function of the handle, or of the thread,
/// fails. Empty if none has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_error_text(filter: *const Filter) -> *const c_char {
    // SAFETY: the caller guarantees it.
    unsafe { filter.as_ref() }.map_or_else(thread_error, |filter| filter.errors.text())
}

/// The name of a decoder, for nmsfilter_set_decoder; NULL from the number of decoders on.
#[unsafe(no_mangle)]
pub extern "C" fn nmsfilter_decoder_name(index: usize) -> *const c_char {
    static NAMES: LazyLock<Vec<CString>> =
        LazyLock::new(|| Nms::decoders().filter_map(|name| CString::new(name).ok()).collect());
    NAMES.get(index).map_or(null(), |name| name.as_ptr())
}

/// Reads tensors by the decoder of this name, whatever their ids. NULL, which is the default, chooses the decoder by ids and
/// shapes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_set_decoder(filter: *mut Filter, name: *const c_char) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            let name = border::text(name, "name")?;
            filter.nms.set_decoder(name)?;
            filter.warnings.clear();
            Ok(())
        })
    }
}

/// Reads tensors by a layout, whatever their ids. `text` is the content of a layout file. A copy remains until the process
/// ends, once for each text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_set_layout(filter: *mut Filter, text: *const c_char) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            let text = border::text(text, "text")?;
            let text = text.ok_or_else(|| Failure::argument("text: expected text, got NULL"))?;
            filter.nms.set_layout(text)?;
            filter.warnings.clear();
            Ok(())
        })
    }
}

/// Sets the facts about the model that its tensors do not contain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_set_options(
    filter: *mut Filter,
    options: *const Options,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            let options = border::read(options, "options")?.to_nms()?;
            (filter.nms.options, filter.nms.model_size) = options;
            filter.is_placed = false;
            Ok(())
        })
    }
}

/// Sets the parameters of decoding and suppression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_set_params(
    filter: *mut Filter,
    params: *const Params,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            let params = border::read(params, "params")?;
            let (selects_pairs, checked) = (params.selects_pairs(), params.to_nms()?);
            let frame = Frame::read(&params)?;
            checked.check_mask_frame(frame.is_known())?;
            (filter.nms.params, filter.nms.selects_pairs) = (checked, selects_pairs);
            (filter.frame, filter.is_placed) = (frame, false);
            Ok(())
        })
    }
}

/// Decodes tensors and suppresses duplicate detections, for each image separately. Waits for the result.
///
/// `tensors` is an array of structures that all have the size of the first. The memory of the tensors is read during the
/// call only. `result` can be NULL. Earlier results are not valid any more, also if the function fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_run(
    filter: *mut Filter,
    tensors: *const Tensor,
    tensor_count: usize,
    result: *mut Result,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            filter.results.clear();
            let size =
                if result.is_null() { None } else { Some(border::size_at(result, "result")?) };
            let tensors = Tensors::read(tensors, tensor_count)?;
            filter.place()?;
            let outcome = filter.nms.run_detailed(&tensors.views())?;
            let found = filter.results.set(&outcome);
            filter.add_warnings();
            if let Some(size) = size {
                border::write(result, size, &Result { size, ..found });
            }
            Ok(())
        })
    }
}

/// The detections of an image of the last run. Its pointers are valid until the next run of the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_image(
    filter: *mut Filter,
    index: usize,
    image: *mut Image,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            let size = border::size_at(image, "image")?;
            border::write(image, size, &Image { size, ..filter.results.image(index)? });
            Ok(())
        })
    }
}

/// Decodes and suppresses on a GPU in the order of a stream, and does not wait for it: the run reads tensors that earlier
/// work in `cuda_stream` writes to device memory, and later work in it reads the results in device memory.
///
/// `cuda_stream` is a CUstream; NULL is the default stream. The memory of tensors must exist until the run has completed on
/// the GPU; tensors in host memory are copied during the call. Masks and the greatest number of detections of a class
/// need the host: they are errors. Results of nmsfilter_run are not valid any more, also if the function fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_enqueue(
    filter: *mut Filter,
    tensors: *const Tensor,
    tensor_count: usize,
    cuda_stream: *mut c_void,
    result: *mut DeviceResult,
) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            filter.results.clear();
            let size = border::size_at(result, "result")?;
            let tensors = Tensors::read(tensors, tensor_count)?;
            let stream = ForeignStream::from_raw(cuda_stream);
            filter.place()?;
            let outcome = filter.nms.enqueue(&tensors.views(), stream)?;
            border::write(result, size, &DeviceResult { size, ..DeviceResult::new(&outcome) });
            filter.add_warnings();
            Ok(())
        })
    }
}

/// Says that the last run was of the last image: what the images of the handle have shown is added to the warnings, even if
/// they are too few to be sure. Later runs are possible.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_finish(filter: *mut Filter) -> Status {
    // SAFETY: the caller guarantees it.
    unsafe {
        Filter::run(filter, |filter| {
            filter.nms.finish();
            filter.add_warnings();
            Ok(())
        })
    }
}

/// A warning of the runs of the handle: the tensors are probably not of the decoder or the options with which they are read,
/// so that boxes are wrong, or nothing is detected. NULL from the number of warnings on. Warnings are in the order in which
/// they were found, each once. Some come after ten images only, and most need nmsfilter_run.
/// nmsfilter_finish judges fewer images.
///
/// The text is valid until the handle is freed, or until nmsfilter_set_decoder or nmsfilter_set_layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_warning(filter: *const Filter, index: usize) -> *const c_char {
    // SAFETY: the caller guarantees it.
    let filter = unsafe { filter.as_ref() };
    filter.and_then(|filter| filter.warnings.get(index)).map_or(null(), |text| text.as_ptr())
}
