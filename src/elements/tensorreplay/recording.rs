//! Files of recorded tensors, and which of them a frame gets.

use std::path::Path;

use super::npy::{Header, HeaderError};
use super::{RawType, csv};
use crate::tensor::attached::NewTensor;
use crate::tensor::{ElementType, Shape, TensorError};

/// The largest file that is read; more is taken for a mistake.
const LARGEST_FILE: u64 = 1 << 30;

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordingError {
    #[error("the property location is not set; expected the path of a .csv, .npy or raw file")]
    NoLocation,
    #[error("{path} cannot be read: {cause}")]
    Read { path: String, cause: std::io::Error },
    #[error("{path} has {size} bytes, more than the {LARGEST_FILE} that are read at most")]
    TooLarge { path: String, size: u64 },
    #[error("{path}, line {line}: expected four numbers x,y,side,score, got {found:?}")]
    Csv {
        path: String,
        line: usize,
        found: String,
    },
    #[error("{path} is not a .npy file that can be read: {cause}")]
    Npy { path: String, cause: HeaderError },
    #[error(
        "{path} is not a .npy file that can be read: its shape is {found}, but {held} bytes follow"
    )]
    NpySize {
        path: String,
        found: String,
        held: usize,
    },
    #[error(
        "{path} has the shape {found}, but the property shape says {wanted}; they must be equal, \
         or the file's have one dimension more in front, a tensor for each frame"
    )]
    NpyShape {
        path: String,
        found: String,
        wanted: String,
    },
    #[error("{path} is raw: set the properties shape, as in 1x84x8400, and element-type")]
    NoShape { path: String },
    #[error("shape: cannot read {0:?}; expected up to 8 dimensions such as 1x84x8400")]
    Shape(String),
    #[error(
        "{path} holds {held} bytes; expected a multiple of the {needed} that a tensor of {element} \
         {shape} takes"
    )]
    Size {
        path: String,
        held: usize,
        needed: usize,
        element: ElementType,
        shape: String,
    },
    #[error("{path} holds no tensor")]
    Empty { path: String },
    #[error("location: cannot use {0:?} as a pattern; expected one %d or %05d and no other %")]
    Pattern(String),
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// How to read files.
#[derive(Clone, Debug, Default)]
pub(super) struct Format {
    /// `None`: by the file.
    pub tensor_id: Option<String>,
    pub raw_type: RawType,
    /// `None`: by the file.
    pub shape: Option<Shape>,
}

impl Format {
    pub fn new(
        tensor_id: Option<String>,
        raw_type: RawType,
        shape: Option<&str>,
    ) -> Result<Self, RecordingError> {
        let shape = shape.map(parse_shape).transpose()?;
        Ok(Self {
            tensor_id,
            raw_type,
            shape,
        })
    }
}

fn parse_shape(text: &str) -> Result<Shape, RecordingError> {
    let dims: Result<Vec<usize>, _> = text.split('x').map(|dim| dim.trim().parse()).collect();
    dims.ok()
        .and_then(|dims| Shape::new(&dims))
        .ok_or_else(|| RecordingError::Shape(text.to_owned()))
}

/// The tensors of a recording, one per frame.
#[derive(Debug)]
pub(super) enum Recording {
    /// All of them, read from one file.
    File(Vec<NewTensor>),
    /// A file per frame, read when it is its turn. `last` is the number of frames, once known.
    Files {
        pattern: Pattern,
        format: Format,
        last: Option<u64>,
    },
}

impl Recording {
    /// Opens the file, or the first of the files where `location` is a pattern.
    pub fn open(location: &str, format: Format) -> Result<Self, RecordingError> {
        match Pattern::parse(location)? {
            None => Ok(Self::File(load(location, &format)?)),
            Some(pattern) => {
                single(&pattern.path(0), &format)?;
                Ok(Self::Files {
                    pattern,
                    format,
                    last: None,
                })
            }
        }
    }

    /// The tensor for frame `frame`, counted from the recording's start over and over, or `None`
    /// where it is past the end and `repeat` is false.
    ///
    /// One tensor in one file is for every frame, and has no end.
    pub fn frame(&mut self, frame: u64, repeat: bool) -> Result<Option<NewTensor>, RecordingError> {
        match self {
            Self::File(tensors) if tensors.len() == 1 => Ok(Some(tensors[0].clone())),
            Self::File(tensors) => {
                let len = tensors.len() as u64;
                let frame = if repeat { frame % len } else { frame };
                Ok(usize::try_from(frame)
                    .ok()
                    .and_then(|i| tensors.get(i).cloned()))
            }
            Self::Files {
                pattern,
                format,
                last,
            } => {
                if last.is_none() && !Path::new(&pattern.path(frame)).exists() {
                    *last = Some(frame);
                }
                let frame = match *last {
                    Some(last) if frame >= last && !repeat => return Ok(None),
                    Some(last) => frame % last,
                    None => frame,
                };
                single(&pattern.path(frame), format).map(Some)
            }
        }
    }
}

/// A location with a frame number in it.
#[derive(Debug)]
pub(super) struct Pattern {
    before: String,
    /// Digits, filled up with zeros.
    width: usize,
    after: String,
}

impl Pattern {
    /// `None` for a location without `%`.
    fn parse(location: &str) -> Result<Option<Self>, RecordingError> {
        let Some((before, rest)) = location.split_once('%') else {
            return Ok(None);
        };
        let bad = || RecordingError::Pattern(location.to_owned());
        let (width, after) = rest.split_once('d').ok_or_else(bad)?;
        let width = match width {
            "" => 0,
            digits => digits
                .parse()
                .ok()
                .filter(|&width| width <= 20)
                .ok_or_else(bad)?,
        };
        if after.contains('%') {
            return Err(bad());
        }
        Ok(Some(Self {
            before: before.to_owned(),
            width,
            after: after.to_owned(),
        }))
    }

    fn path(&self, frame: u64) -> String {
        format!(
            "{}{frame:0width$}{}",
            self.before,
            self.after,
            width = self.width
        )
    }
}

/// The only tensor of a file.
fn single(path: &str, format: &Format) -> Result<NewTensor, RecordingError> {
    load(path, format)?
        .pop()
        .ok_or_else(|| RecordingError::Empty {
            path: path.to_owned(),
        })
}

/// The tensors of a file, at least one; its ending says how to read it.
fn load(path: &str, format: &Format) -> Result<Vec<NewTensor>, RecordingError> {
    let read_error = |cause| RecordingError::Read {
        path: path.to_owned(),
        cause,
    };
    let size = std::fs::metadata(path).map_err(read_error)?.len();
    if size > LARGEST_FILE {
        return Err(RecordingError::TooLarge {
            path: path.to_owned(),
            size,
        });
    }
    let bytes = std::fs::read(path).map_err(read_error)?;
    let ending = Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or("");
    match ending.to_ascii_lowercase().as_str() {
        "csv" | "txt" => load_csv(path, &bytes, format),
        "npy" => load_npy(path, &bytes, format),
        _ => {
            let no_shape = || RecordingError::NoShape {
                path: path.to_owned(),
            };
            let shape = format.shape.clone().ok_or_else(no_shape)?;
            let element = match format.raw_type {
                RawType::F32 => ElementType::F32,
                RawType::F16 => ElementType::F16,
            };
            cut(path, &bytes, element, shape, format)
        }
    }
}

fn load_csv(path: &str, bytes: &[u8], format: &Format) -> Result<Vec<NewTensor>, RecordingError> {
    let numbers = csv::parse(path, &String::from_utf8_lossy(bytes))?;
    let shape = [numbers.len() / csv::COLUMNS, csv::COLUMNS];
    let id = format.tensor_id.as_deref().unwrap_or("windows");
    Ok(vec![NewTensor::from_vec(id, &shape, numbers)?])
}

fn load_npy(path: &str, bytes: &[u8], format: &Format) -> Result<Vec<NewTensor>, RecordingError> {
    let Header {
        element,
        shape: found,
        len,
    } = Header::read(bytes).map_err(|cause| RecordingError::Npy {
        path: path.to_owned(),
        cause,
    })?;
    let data = &bytes[len..];
    let expected = found
        .elements()
        .and_then(|n| n.checked_mul(element.size()?));
    if expected != Some(data.len()) {
        let (path, found, held) = (path.to_owned(), found.to_string(), data.len());
        return Err(RecordingError::NpySize { path, found, held });
    }
    let shape = match &format.shape {
        Some(wanted) if found == *wanted || found.get(1..) == Some(&wanted[..]) => wanted.clone(),
        Some(wanted) => {
            let (found, wanted) = (found.to_string(), wanted.to_string());
            return Err(RecordingError::NpyShape {
                path: path.to_owned(),
                found,
                wanted,
            });
        }
        None => found,
    };
    cut(path, data, element, shape, format)
}

/// Cuts a file's bytes into tensors that share them.
fn cut(
    path: &str,
    bytes: &[u8],
    element: ElementType,
    shape: Shape,
    format: &Format,
) -> Result<Vec<NewTensor>, RecordingError> {
    let id = format.tensor_id.clone().unwrap_or_else(|| stem(path));
    let needed = shape
        .elements()
        .and_then(|n| n.checked_mul(element.size()?));
    let needed = needed.ok_or_else(|| TensorError::TooLarge {
        tensor: format!("{id} ({element} {shape})"),
    })?;
    let held = bytes.len();
    if needed == 0 && held == 0 {
        return Ok(vec![NewTensor {
            id,
            element,
            shape,
            data: gst::Buffer::new(),
        }]);
    }
    if needed == 0 || !held.is_multiple_of(needed) {
        let (path, shape) = (path.to_owned(), shape.to_string());
        return Err(RecordingError::Size {
            path,
            held,
            needed,
            element,
            shape,
        });
    }
    if held == 0 {
        return Err(RecordingError::Empty {
            path: path.to_owned(),
        });
    }
    bytes
        .chunks_exact(needed)
        .map(|chunk| {
            // GStreamer's own memory, which is aligned for any element.
            let mut data = gst::Buffer::with_size(needed).map_err(|_| TensorError::TooLarge {
                tensor: format!("{id} ({element} {shape})"),
            })?;
            data.make_mut()
                .copy_from_slice(0, chunk)
                .expect("the buffer is as large");
            Ok(NewTensor {
                id: id.clone(),
                element,
                shape: shape.clone(),
                data,
            })
        })
        .collect()
}

/// The file's name without folder and ending.
fn stem(path: &str) -> String {
    Path::new(path)
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
