use std::path::{Path, PathBuf};

use gst::glib;

use super::roi;
use crate::head::Head;

/// Why labels cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the label file {path:?} cannot be read: {cause}")]
pub struct LabelError {
    path: PathBuf,
    cause: std::io::Error,
}

/// What classes are called: by the label file, by the head, or by number (`class-7`).
#[derive(Default)]
pub struct Labels {
    from_file: Vec<String>,
    head: Option<&'static dyn Head>,
    /// By class, those that were seen.
    seen: Vec<Option<Label>>,
}

/// What all regions of a class share.
pub(super) struct Label {
    /// The class's name, never empty. Quarks are never freed and cost a lock to look up.
    pub quark: glib::Quark,
    /// The structure of a region's metadata, but for what differs from region to region.
    pub detection: gst::Structure,
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
        Ok(Self { from_file, ..Self::default() })
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

    /// Takes the names that `head` knows where the label file has no line.
    pub fn set_head(&mut self, head: &'static dyn Head) {
        self.head = Some(head);
        self.seen.clear();
    }

    /// The label of `class`, which is below [`MAX_CLASSES`](crate::head::MAX_CLASSES).
    pub(super) fn of(&mut self, class: u32) -> &Label {
        let index = class as usize;
        if index >= self.seen.len() {
            self.seen.resize_with(index + 1, || None);
        }
        let Self { from_file, head, seen } = self;
        seen[index].get_or_insert_with(|| {
            let name = match from_file.get(index) {
                Some(name) => Some(name.as_str()).filter(|name| !name.is_empty()),
                None => head.and_then(|head| head.label(class)),
            };
            let quark = match name {
                Some(name) => glib::Quark::from_str(name),
                None => glib::Quark::from_str(format!("class-{class}")),
            };
            Label { quark, detection: roi::detection(class, quark) }
        })
    }
}
