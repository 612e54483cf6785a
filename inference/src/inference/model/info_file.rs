// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the file with the description of a model beside it, which GStreamer 1.28's inference elements also read:
//! `model.onnx.modelinfo`, or else `model.modelinfo`.
//!
//! In: the path of a model. Out: for each input, the range of its numbers; for each output, the id of its tensor.
//! The file is a GLib key file with one group per input and output:
//!
//! ```text
//! [images]
//! dir=input
//! ranges=0.0,1.0;0.0,1.0;0.0,1.0
//!
//! [output0]
//! dir=output
//! id=yolo-v8-out
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gst::glib;

use crate::inference::error::InferenceError;
use gstnmsfilter::file::{self, FileError};

/// The maximum size of the file in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The group that describes the file itself.
const OF_THE_FILE: &str = "modelinfo";

/// A `.modelinfo` file.
#[derive(Debug)]
pub struct InfoFile {
    path: PathBuf,
    keys: glib::KeyFile,
}

impl InfoFile {
    /// Reads the file beside the model at path `model`. Returns `None` if neither of its names exists.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a key file.
    pub fn beside(model: &Path) -> Result<Option<Self>, InferenceError> {
        let mut name = model.as_os_str().to_owned();
        name.push(".modelinfo");
        for path in [PathBuf::from(name), model.with_extension("modelinfo")] {
            let text = match file::read_text(&path, MAX_SIZE) {
                Ok(text) => text,
                Err(FileError::Io(cause)) if cause.kind() == ErrorKind::NotFound => continue,
                Err(cause) => {
                    return Err(InferenceError::Settings(format!("{path:?}: the file {cause}")));
                }
            };
            let keys = glib::KeyFile::new();
            keys.load_from_data(&text, glib::KeyFileFlags::NONE).map_err(|cause| {
                InferenceError::Settings(format!(
                    "{path:?}: expected groups like [output0] with lines like id=...: {cause}"
                ))
            })?;
            return Ok(Some(Self { path, keys }));
        }
        Ok(None)
    }

    /// Checks that each group is named after an input or output of the model. `names` are the names of all inputs
    /// and outputs.
    ///
    /// # Errors
    /// If a group has another name.
    pub fn check_groups<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), InferenceError> {
        let list = |groups: Vec<&str>| {
            groups.iter().map(|group| format!("[{group}]")).collect::<Vec<_>>().join(", ")
        };
        let groups = self.keys.groups();
        let is_known =
            |group: &str| group == OF_THE_FILE || names.clone().any(|name| name == group);
        let unknown: Vec<&str> =
            groups.iter().map(|group| group.as_str()).filter(|group| !is_known(group)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(InferenceError::Settings(format!(
            "{:?}: expected groups with the names of the model's inputs and outputs, {}; got {} \
             too",
            self.path,
            list(names.collect()),
            list(unknown),
        )))
    }

    /// Returns the numbers that the pixel values 0 and 255 become, for each channel of the input `name`. If the
    /// file has a single pair, it applies to all channels.
    ///
    /// # Errors
    /// If there are neither one nor three pairs, or the two numbers of a pair are equal.
    pub fn ranges(&self, name: &str) -> Result<Option<[[f64; 2]; 3]>, InferenceError> {
        let Some(text) = self.value(name, "ranges") else {
            return Ok(None);
        };
        let pair = |text: &str| super::numbers::range(text).ok();
        let pairs: Option<Vec<_>> =
            text.split(';').filter(|pair| !pair.trim().is_empty()).map(pair).collect();
        match pairs.as_deref() {
            Some(&[all]) => Ok(Some([all; 3])),
            Some(&[red, green, blue]) => Ok(Some([red, green, blue])),
            _ => Err(InferenceError::Settings(format!(
                "{:?}: ranges of [{name}]: expected one pair of different numbers, or three as in \
                 0.0,1.0;0.0,1.0;0.0,1.0; got {text}",
                self.path
            ))),
        }
    }

    /// Returns the value of a key of the input or output with the name `group`, such as the `id` of its tensor.
    pub fn value(&self, group: &str, key: &str) -> Option<String> {
        let value = self.keys.string(group, key).ok()?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the file of a model after writing this text to it.
    fn info(name: &str, text: &str) -> Result<InfoFile, InferenceError> {
        let file = format!("nmsfilter-{}-{name}.onnx", std::process::id());
        let model = std::env::temp_dir().join(file);
        let path = PathBuf::from(format!("{}.modelinfo", model.display()));
        std::fs::write(&path, text).unwrap();
        let info = InfoFile::beside(&model);
        std::fs::remove_file(&path).unwrap();
        info.map(|info| info.expect("the file is there"))
    }

    #[test]
    fn ids_and_ranges_are_read() {
        let text = "[modelinfo]\nversion=1.0\n[in]\ndir=input\nranges=-1.0,1.0;0.0,1.0;0,255\n\
                    [out]\ndir=output\nid=yolo-v8-out\n";
        let info = info("ids", text).unwrap();
        assert_eq!(info.value("out", "id").as_deref(), Some("yolo-v8-out"));
        assert_eq!(info.value("in", "id"), None);
        assert_eq!(info.ranges("in").unwrap(), Some([[-1.0, 1.0], [0.0, 1.0], [0.0, 255.0]]));
        assert_eq!(info.ranges("out").unwrap(), None);
    }

    #[test]
    fn the_name_without_the_models_ending_is_the_second_choice() {
        let folder = std::env::temp_dir().join(format!("nmsfilter-{}-second", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let write = |name: &str, id: &str| {
            let text = format!("[out]\ndir=output\nid={id}\n");
            std::fs::write(folder.join(name), text).unwrap();
        };
        let id = || InfoFile::beside(&folder.join("m.int8.onnx")).unwrap()?.value("out", "id");
        write("m.modelinfo", "other");
        assert_eq!(id(), None);
        write("m.int8.modelinfo", "second");
        assert_eq!(id().as_deref(), Some("second"));
        write("m.int8.onnx.modelinfo", "first");
        assert_eq!(id().as_deref(), Some("first"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_model_without_the_file_has_none() {
        assert!(InfoFile::beside(Path::new("/nowhere/model.onnx")).unwrap().is_none());
    }

    #[test]
    fn other_text_is_an_error_that_names_the_file() {
        let message = info("text", "id=yolo\n").unwrap_err().to_string();
        assert!(message.contains("text.onnx.modelinfo\": expected groups like"), "{message}");
        let info = info("ranges", "[in]\nranges=0,1;0,1\n").unwrap();
        let message = info.ranges("in").unwrap_err().to_string();
        assert!(message.contains("ranges of [in]: expected one pair"), "{message}");
    }
}
