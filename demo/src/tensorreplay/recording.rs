// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the recorded tensor of a frame.
//!
//! In: a location and frame numbers. Out: a tensor for each frame, from a single file or from a
//! file per frame.

use std::io;

use super::file::{ReadOptions, TensorFile};
use super::npy::HeaderError;
use super::pattern::Pattern;
use gstnmsfilter::file::FileError;
use gstnmsfilter::input::InputError;
use gstnmsfilter::input::cuda_memory::UploadError;
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::tensor::{ElementType, TensorError};

/// Reasons why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordingError {
    #[error("the property location is not set; expected the path of a .csv, .npy or raw file")]
    NoLocation,
    #[error("{path} {cause}")]
    File { path: String, cause: FileError },
    #[error("{path}, line {line}: expected four numbers x,y,side,score, got {found:?}")]
    Csv { path: String, line: usize, found: String },
    #[error("the .npy file {path} cannot be read: {cause}")]
    Npy { path: String, cause: HeaderError },
    #[error(
        "the .npy file {path} cannot be read: its header says {element} {shape}{}, but {held} bytes \
         follow; copy or save it again",
        in_bytes(*expected)
    )]
    NpySize {
        path: String,
        element: ElementType,
        shape: String,
        /// `None` if the number exceeds `usize`.
        expected: Option<usize>,
        held: usize,
    },
    #[error(
        "{path} has the shape {found}, but the property shape is {requested}; set shape to the \
         file's shape, or, if the first dimension counts frames, to the other dimensions"
    )]
    NpyShape { path: String, found: String, requested: String },
    #[error("{path} is raw: set the properties shape, such as 1x84x8400, and element-type")]
    NoShape { path: String },
    #[error("shape: cannot read {0:?}; expected up to 8 dimensions such as 1x84x8400")]
    Shape(String),
    #[error(
        "{path} has {held} bytes; expected a multiple of {needed}, since a tensor of {element} \
         {shape} takes {needed} bytes, but {} bytes are left over; set shape and element-type to \
         the values that were recorded",
        held % needed
    )]
    Size { path: String, held: usize, needed: usize, element: ElementType, shape: String },
    #[error(
        "{path} has {held} bytes, but the shape {shape} has no elements; set shape to dimensions \
         above 0"
    )]
    NoElements { path: String, held: usize, shape: String },
    #[error(
        "{path} is empty; expected a tensor of {element} {shape}, which takes {needed} bytes; \
         record it again"
    )]
    Empty { path: String, needed: usize, element: ElementType, shape: String },
    #[error("{path} has {count} tensors; expected one, since there is one file per frame")]
    Several { path: String, count: u64 },
    #[error("location: cannot use {0:?} as a pattern; expected one %d or %05d and no other %")]
    Pattern(String),
    #[error(transparent)]
    Tensor(#[from] TensorError),
    #[error(transparent)]
    Attach(#[from] InputError),
    #[error(transparent)]
    Upload(#[from] UploadError),
}

fn in_bytes(bytes: Option<usize>) -> String {
    bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"))
}

impl RecordingError {
    /// Returns the error for a .npy file with this problem in its header.
    pub fn npy(path: &str, cause: HeaderError) -> Self {
        Self::Npy { path: path.to_owned(), cause }
    }

    /// Returns true if a file does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::File { cause: FileError::Io(cause), .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// The tensors of a recording, one per frame.
#[derive(Debug)]
pub(super) enum Recording {
    /// One file that contains all tensors.
    File(TensorFile),
    /// A file per frame, which is read when the frame is processed.
    Files {
        pattern: Pattern,
        options: ReadOptions,
        /// Number of files, at least 1. It is `None` until the first missing file is found.
        count: Option<u64>,
    },
}

impl Recording {
    /// Opens the file, or the first file if `location` is a pattern.
    ///
    /// # Errors
    /// Returns an error if the location is invalid or the file cannot be read.
    pub fn open(location: &str, mut options: ReadOptions) -> Result<Self, RecordingError> {
        match Pattern::parse(location)? {
            None => Ok(Self::File(TensorFile::load(location, &options)?)),
            Some(pattern) => {
                let path = pattern.path(0);
                let first = TensorFile::load(&path, &options)?.into_single(&path)?;
                // All frames have recordings of one output of one model, so they share the id.
                options.tensor_id = Some(first.id);
                Ok(Self::Files { pattern, options, count: None })
            }
        }
    }

    /// Returns the tensor of a frame. After the last recorded frame, the recording starts again if
    /// `repeat` is true; otherwise the result is `None`. A recording of a single tensor in one file
    /// always repeats.
    ///
    /// # Errors
    /// Returns an error if the frame's file cannot be read.
    pub fn frame(&mut self, frame: u64, repeat: bool) -> Result<Option<NewTensor>, RecordingError> {
        match self {
            Self::File(file) => {
                let repeat = repeat || file.count() == 1;
                Ok(file.tensor(if repeat { frame % file.count() } else { frame }))
            }
            Self::Files { pattern, options, count } => {
                let load = |frame| {
                    let path = pattern.path(frame);
                    TensorFile::load(&path, options)?.into_single(&path)
                };
                let end = match *count {
                    Some(end) => end,
                    None => match load(frame) {
                        // File 0 existed when the recording was opened. If it is missing now, this
                        // is an error.
                        Err(error) if error.is_not_found() && frame > 0 => *count.insert(frame),
                        loaded => return loaded.map(Some),
                    },
                };
                if frame >= end && !repeat { Ok(None) } else { load(frame % end).map(Some) }
            }
        }
    }
}
