// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a single file of recorded tensors.
//!
//! In: a path and the properties. Out: the tensors of the file, which share its memory.

use std::path::Path;

use super::npy::{Header, HeaderError};
use super::recording::RecordingError;
use super::{RawType, csv};
use gstnmsfilter::file::{read, text};
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::tensor::{ElementType, Shape, TensorError, TensorProblem};

/// Maximum size of a file in bytes.
const MAX_FILE_SIZE: u64 = 1 << 30;

/// How to read files, as the properties specify.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOptions {
    /// Id of the tensors; `None` for the id that the file has.
    pub tensor_id: Option<String>,
    pub raw_type: RawType,
    /// Shape of each tensor; `None` for the shape that the file has.
    pub shape: Option<Shape>,
}

impl ReadOptions {
    pub fn new(
        tensor_id: Option<String>,
        raw_type: RawType,
        shape: Option<&str>,
    ) -> Result<Self, RecordingError> {
        let shape = shape.map(parse_shape).transpose()?;
        Ok(Self { tensor_id, raw_type, shape })
    }
}

fn parse_shape(text: &str) -> Result<Shape, RecordingError> {
    let dims: Result<Vec<usize>, _> = text.split('x').map(|dim| dim.trim().parse()).collect();
    dims.ok()
        .and_then(|dims| Shape::new(&dims))
        .ok_or_else(|| RecordingError::Shape(text.to_owned()))
}

/// The kind of a file, which its extension determines.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileKind {
    Csv,
    Npy,
    /// An archive of .npy files, which is not supported.
    Npz,
    Raw,
}

impl FileKind {
    pub fn from_extension(path: &str) -> Self {
        let extension =
            Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("");
        match extension.to_ascii_lowercase().as_str() {
            "csv" | "txt" => Self::Csv,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            _ => Self::Raw,
        }
    }
}

/// The tensors in one file.
#[derive(Debug)]
pub(super) struct TensorFile {
    /// Id, element type and shape of each tensor, and the concatenated data of all tensors.
    tensors: NewTensor,
    /// Number of tensors, at least 1.
    count: u64,
}

impl TensorFile {
    /// Reads the file according to its extension.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or does not contain tensors of the given shape.
    pub fn load(path: &str, options: &ReadOptions) -> Result<Self, RecordingError> {
        let file_error = |cause| RecordingError::File { path: path.to_owned(), cause };
        let bytes = read(Path::new(path), MAX_FILE_SIZE).map_err(file_error)?;
        let (tensors, count) = match FileKind::from_extension(path) {
            FileKind::Csv => (read_windows(path, &bytes, options)?, 1),
            FileKind::Npy => read_npy(path, &bytes, options)?,
            FileKind::Npz => return Err(RecordingError::npy(path, HeaderError::Archive)),
            FileKind::Raw => {
                let no_shape = || RecordingError::NoShape { path: path.to_owned() };
                let shape = options.shape.clone().ok_or_else(no_shape)?;
                split_tensors(path, &bytes, options.raw_type.into(), shape, options)?
            }
        };
        Ok(Self { tensors, count })
    }

    /// Returns the only tensor of the file.
    ///
    /// # Errors
    /// Returns an error if the file has several tensors.
    pub fn into_single(self, path: &str) -> Result<NewTensor, RecordingError> {
        match self.count {
            1 => Ok(self.tensors),
            count => Err(RecordingError::Several { path: path.to_owned(), count }),
        }
    }

    /// Returns the number of tensors.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the tensor at `position`, which shares the file's memory. Returns `None` after the
    /// last tensor.
    pub fn tensor(&self, position: u64) -> Option<NewTensor> {
        let all = &self.tensors;
        if position >= self.count {
            return None;
        }
        if self.count == 1 {
            return Some(all.clone());
        }
        let len = all.data.size() / usize::try_from(self.count).ok()?;
        let begin = usize::try_from(position).ok()? * len;
        let data = all
            .data
            .copy_region(gst::BufferCopyFlags::MEMORY, begin..begin + len)
            .expect("the region is inside the buffer");
        let mut tensor = all.clone();
        tensor.data = data;
        Some(tensor)
    }
}

fn read_windows(
    path: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<NewTensor, RecordingError> {
    let text =
        text(bytes).map_err(|cause| RecordingError::File { path: path.to_owned(), cause })?;
    let numbers = csv::parse(path, text)?;
    let shape = [numbers.len() / csv::COLUMNS, csv::COLUMNS];
    let id = options.tensor_id.as_deref().unwrap_or("windows");
    Ok(NewTensor::from_vec(id, &shape, numbers)?)
}

fn read_npy(
    path: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(NewTensor, u64), RecordingError> {
    let Header { element, shape: found, header_len } =
        Header::read(bytes).map_err(|cause| RecordingError::npy(path, cause))?;
    let data = &bytes[header_len..];
    let expected = bytes_of(element, &found);
    if expected != Some(data.len()) {
        let (path, shape, held) = (path.to_owned(), found.to_string(), data.len());
        return Err(RecordingError::NpySize { path, element, shape, expected, held });
    }
    let shape = match &options.shape {
        Some(requested) if found == *requested || found.get(1..) == Some(&requested[..]) => {
            requested.clone()
        }
        Some(requested) => {
            let (found, requested) = (found.to_string(), requested.to_string());
            return Err(RecordingError::NpyShape { path: path.to_owned(), found, requested });
        }
        None => found,
    };
    split_tensors(path, data, element, shape, options)
}

/// Returns the size of a tensor in bytes, or `None` if it exceeds `usize`.
fn bytes_of(element: ElementType, shape: &Shape) -> Option<usize> {
    shape.elements()?.checked_mul(element.size()?)
}

/// Splits the bytes of a file into tensors of this shape. Returns the tensors and their number.
fn split_tensors(
    path: &str,
    bytes: &[u8],
    element: ElementType,
    shape: Shape,
    options: &ReadOptions,
) -> Result<(NewTensor, u64), RecordingError> {
    let id = options.tensor_id.clone().unwrap_or_else(|| name_without_extension(path));
    let too_large =
        || TensorError::new(format!("{id} ({element} {shape})"), TensorProblem::TooLarge);
    let needed = bytes_of(element, &shape).ok_or_else(too_large)?;
    let held = bytes.len();
    let (file, dims) = (path.to_owned(), shape.to_string());
    match (needed, held) {
        (0, 0) => return Ok((NewTensor::new(&id, element, &shape, gst::Buffer::new())?, 1)),
        (0, _) => return Err(RecordingError::NoElements { path: file, held, shape: dims }),
        (_, 0) => {
            return Err(RecordingError::Empty { path: file, needed, element, shape: dims });
        }
        _ if !held.is_multiple_of(needed) => {
            return Err(RecordingError::Size { path: file, held, needed, element, shape: dims });
        }
        _ => {}
    }
    // GStreamer's memory is aligned for every element type, and each tensor begins at a multiple of
    // its element size.
    let mut data = gst::Buffer::with_size(held).map_err(|_| too_large())?;
    data.make_mut().copy_from_slice(0, bytes).expect("the buffer is as large");
    Ok((NewTensor::new(&id, element, &shape, data)?, (held / needed) as u64))
}

/// Returns the name of the file without folder and extension.
fn name_without_extension(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
