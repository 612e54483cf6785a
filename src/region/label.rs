use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gst::glib;

use crate::head::Head;

/// Why labels cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the label file {path:?} cannot be read: {cause}")]
pub struct LabelError {
    path: PathBuf,
    cause: std::io::Error,
}

/// What classes are called: by the label file, by the head, or by number (`class-7`).
#[derive(Debug, Default)]
pub struct Labels {
    from_file: Vec<String>,
    /// Quarks are never freed and cost a lock to look up: one per class that was seen.
    quarks: HashMap<u32, glib::Quark>,
}

impl Labels {
    /// Reads one label per line, the first for class 0.
    ///
    /// # Errors
    /// Where the file cannot be read or is not UTF-8.
    pub fn load(path: &Path) -> Result<Self, LabelError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| LabelError { path: path.to_owned(), cause })?;
        let from_file = text.lines().map(|line| line.trim().to_owned()).collect();
        Ok(Self { from_file, quarks: HashMap::new() })
    }

    /// The class of this label in the label file.
    pub fn class(&self, label: &str) -> Option<u32> {
        let class = self.from_file.iter().position(|name| name == label)?;
        u32::try_from(class).ok()
    }

    /// How many classes the label file names.
    pub fn len(&self) -> usize {
        self.from_file.len()
    }

    /// Whether there is no label file, or nothing in it.
    pub fn is_empty(&self) -> bool {
        self.from_file.is_empty()
    }

    /// Takes the names that `head` knows where the label file names none.
    pub fn set_head(&mut self, head: &'static dyn Head, classes: usize) {
        self.quarks.clear();
        for class in self.from_file.len()..classes.min(crate::head::MAX_CLASSES) {
            let class = class as u32;
            let Some(label) = head.label(class) else {
                break;
            };
            self.quarks.insert(class, glib::Quark::from_str(label));
        }
    }

    /// The label of `class`; never empty, the same quark every time.
    pub fn quark(&mut self, class: u32) -> glib::Quark {
        *self.quarks.entry(class).or_insert_with(|| {
            match self.from_file.get(class as usize).filter(|label| !label.is_empty()) {
                Some(label) => glib::Quark::from_str(label),
                None => glib::Quark::from_str(format!("class-{class}")),
            }
        })
    }
}
