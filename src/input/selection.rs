// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the tensors to read if several inference elements have attached tensors to a buffer.
//!
//! In: a buffer, and a [`Selection`]. Out: the tensors of one set, and the list of all sets. A set contains the
//! tensors that one inference element attached: the tensors of one `GstTensorMeta`, or all tensors with one
//! `source` in the plugin's own metadata.

use std::fmt;

use arrayvec::ArrayVec;

use super::custom_meta;
use super::source::FrameTensors;
use super::tensor_meta;
use super::{InputError, Tensors};

/// The maximum number of sets that are distinguished. Further sets cannot be selected.
const MAX_SETS: usize = 16;

/// Selects the set to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The first set.
    #[default]
    First,
    /// The set with this index, in the order of [`Sets`].
    Index(usize),
    /// The set with this source.
    Source(String),
}

impl Selection {
    /// Parses the property `tensors-from`: digits are an index, other text is a source.
    pub fn new(text: Option<&str>) -> Self {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match text {
            None | Some("") => Self::First,
            // The index does not fit in usize, and no buffer has so many sets.
            Some(text) if is_number(text) => Self::Index(text.parse().unwrap_or(usize::MAX)),
            Some(text) => Self::Source(text.to_owned()),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("0"),
            Self::Index(index) => write!(f, "{index}"),
            Self::Source(source) => f.write_str(source),
        }
    }
}

/// A set of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set<'a> {
    /// The tensors of the `GstTensorMeta` with this index.
    TensorMeta(usize),
    /// The tensors in the plugin's own metadata with this source; `None` stands for tensors without a source.
    Source(Option<&'a str>),
}

/// The tensors of a set: the frame's, or its regions'.
#[derive(Debug, Default)]
pub struct SetTensors<'a> {
    /// The tensors of a model that ran on the whole frame.
    pub frame: FrameTensors<'a>,
    /// The parts of the frame on which a model ran, each with its tensors.
    pub regions: Vec<FrameTensors<'a>>,
}

impl<'a> SetTensors<'a> {
    fn all(&self) -> impl Iterator<Item = &Tensors<'a>> {
        std::iter::once(&self.frame).chain(&self.regions).map(|image| &image.tensors)
    }

    /// Returns whether the set has no tensors.
    pub fn is_empty(&self) -> bool {
        self.all().all(Tensors::is_empty)
    }

    /// Returns the tensors of the frame, or of the first region.
    pub fn first(&self) -> &Tensors<'a> {
        &self.regions.first().unwrap_or(&self.frame).tensors
    }

    /// Returns the caps with the model description, from the first tensor that has any.
    pub fn model(&self) -> Option<&'a gst::Caps> {
        self.all().find_map(Tensors::model)
    }

    /// Returns the numbers of tensors that were read and not read, for the frame or the region that has most.
    pub fn counts(&self) -> (usize, usize) {
        let counts = self.all().map(|tensors| (tensors.len(), tensors.unread()));
        counts.max_by_key(|(read, unread)| read + unread).unwrap_or_default()
    }
}

/// The sets of a buffer: first the sets in `GstTensorMeta`, then the sets in the plugin's own metadata, each in the
/// order in which they were attached.
#[derive(Clone, Debug, Default)]
pub struct Sets<'a>(pub ArrayVec<Set<'a>, MAX_SETS>);

impl<'a> Sets<'a> {
    fn read(buffer: &'a gst::BufferRef) -> Result<Self, InputError> {
        let mut sets = Self::default();
        (0..tensor_meta::count(buffer)).for_each(|index| sets.add(Set::TensorMeta(index)));
        for source in custom_meta::sources(buffer) {
            sets.add(Set::Source(source?));
        }
        Ok(sets)
    }

    fn add(&mut self, set: Set<'a>) {
        if !self.0.contains(&set) {
            // Sets beyond the maximum are not distinguished.
            let _ = self.0.try_push(set);
        }
    }

    /// Returns the set that `selection` selects.
    pub fn find(&self, selection: &Selection) -> Option<Set<'a>> {
        let index = match selection {
            Selection::First => 0,
            Selection::Index(index) => *index,
            Selection::Source(source) => {
                return self.0.iter().copied().find(|set| *set == Set::Source(Some(source)));
            }
        };
        self.0.get(index).copied()
    }
}

/// Lists the numbers of the sets, with their sources in parentheses.
impl fmt::Display for Sets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, set) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{index}")?;
            if let Set::Source(Some(source)) = set {
                write!(f, " ({source})")?;
            }
        }
        Ok(())
    }
}

/// Reads one set of tensors from each buffer, and can remove this set.
#[derive(Debug, Default)]
pub struct SetReader {
    /// Selects the set to read.
    pub selection: Selection,
    /// The source whose tensors are removed; its memory is kept.
    removed: String,
}

impl SetReader {
    /// Creates a reader of the set that `selection` selects.
    pub fn new(selection: Selection) -> Self {
        Self { selection, removed: String::new() }
    }

    /// Reads the tensors of the selected set into an empty set of 6 KB, which results would copy from function to function,
    /// and returns all sets of the buffer. There are no tensors if the buffer does not have the selected set. Does not
    /// allocate.
    ///
    /// # Errors
    /// If the plugin's own metadata is malformed.
    pub fn read<'a>(
        &self,
        buffer: &'a gst::BufferRef,
        tensors: &mut SetTensors<'a>,
    ) -> Result<Sets<'a>, InputError> {
        let sets = Sets::read(buffer)?;
        match sets.find(&self.selection) {
            None => {}
            Some(Set::TensorMeta(index)) => {
                tensor_meta::read_one(buffer, index, &mut tensors.frame.tensors);
            }
            Some(Set::Source(source)) => custom_meta::read_from(buffer, source, tensors)?,
        }
        Ok(sets)
    }

    /// Removes the selected set, or all tensors if the user has selected no set.
    pub fn remove(&mut self, buffer: &mut gst::BufferRef) {
        if self.selection == Selection::First {
            return super::remove(buffer);
        }
        match Sets::read(buffer).ok().and_then(|sets| sets.find(&self.selection)) {
            None => {}
            Some(Set::TensorMeta(index)) => tensor_meta::remove_one(buffer, index),
            Some(Set::Source(None)) => custom_meta::remove_from(buffer, None),
            Some(Set::Source(Some(source))) => {
                source.clone_into(&mut self.removed);
                custom_meta::remove_from(buffer, Some(&self.removed));
            }
        }
    }
}
