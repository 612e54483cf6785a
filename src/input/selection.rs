// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which tensors of a buffer are read, where several inference elements attached theirs.
//!
//! In: a buffer, and a [`Selection`]. Out: the tensors of one set, and which sets there are. A set is what one
//! inference element attached: the tensors of one `GstTensorMeta`, or all tensors of the plugin's own metadata
//! with the same `source`.

use std::fmt;

use arrayvec::ArrayVec;

#[cfg(feature = "v1_20")]
use super::custom_meta;
#[cfg(feature = "v1_26")]
use super::tensor_meta;
use super::{InputError, Tensors};

/// The greatest number of sets that are distinguished; further sets cannot be selected.
const MAX_SETS: usize = 16;

/// The set to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The first.
    #[default]
    First,
    /// The one with this index, in the order of [`Sets`].
    Index(usize),
    /// The one with this source.
    Source(String),
}

impl Selection {
    /// The selection by the property `tensors-from`: digits are an index, other text is a source.
    pub fn new(text: Option<&str>) -> Self {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        match text {
            None | Some("") => Self::First,
            // No buffer has a set with an index beyond usize.
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

/// A set of tensors; `S` is the type of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set<S> {
    /// The tensors of the `GstTensorMeta` with this index.
    #[cfg(feature = "v1_26")]
    TensorMeta(usize),
    /// The tensors of the plugin's own metadata that have this source, or none.
    Source(Option<S>),
}

impl<S: AsRef<str>> Set<S> {
    /// The set, with a borrowed source.
    pub fn as_ref(&self) -> Set<&str> {
        match self {
            #[cfg(feature = "v1_26")]
            Self::TensorMeta(index) => Set::TensorMeta(*index),
            Self::Source(source) => Set::Source(source.as_ref().map(AsRef::as_ref)),
        }
    }
}

impl Set<&str> {
    fn to_owned(self) -> Set<String> {
        match self {
            #[cfg(feature = "v1_26")]
            Self::TensorMeta(index) => Set::TensorMeta(index),
            Self::Source(source) => Set::Source(source.map(ToOwned::to_owned)),
        }
    }
}

/// The sets of a buffer: first those of `GstTensorMeta`, then those of the plugin's own metadata, each in the
/// order in which they were attached.
#[derive(Clone, Debug, Default)]
pub struct Sets<'a>(ArrayVec<Set<&'a str>, MAX_SETS>);

impl<'a> Sets<'a> {
    #[cfg_attr(
        not(feature = "v1_20"),
        expect(unused_mut, unused_variables, reason = "there are no sets")
    )]
    fn of(buffer: &'a gst::BufferRef) -> Result<Self, InputError> {
        let mut sets = Self::default();
        #[cfg(feature = "v1_26")]
        (0..tensor_meta::count(buffer)).for_each(|index| sets.add(Set::TensorMeta(index)));
        #[cfg(feature = "v1_20")]
        for source in custom_meta::sources(buffer) {
            sets.add(Set::Source(source?));
        }
        Ok(sets)
    }

    #[cfg(feature = "v1_20")]
    fn add(&mut self, set: Set<&'a str>) {
        if !self.0.contains(&set) {
            // Sets beyond the maximum are not distinguished.
            let _ = self.0.try_push(set);
        }
    }

    fn find(&self, selection: &Selection) -> Option<Set<&'a str>> {
        let index = match selection {
            Selection::First => 0,
            Selection::Index(index) => *index,
            Selection::Source(source) => {
                self.0.iter().position(|set| *set == Set::Source(Some(source)))?
            }
        };
        self.0.get(index).copied()
    }

    /// Whether there is the set that `selection` selects.
    pub fn has(&self, selection: &Selection) -> bool {
        self.find(selection).is_some()
    }

    /// Whether there is no set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of sets.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// The sets as a list of their numbers, with their sources in parentheses.
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

/// Reads one set of tensors from each buffer, and removes it.
#[derive(Debug, Default)]
pub struct SetReader {
    selection: Selection,
    /// The set that was read last.
    last: Option<Set<String>>,
}

impl SetReader {
    /// Reads the set that `selection` selects.
    pub fn new(selection: Selection) -> Self {
        Self { selection, last: None }
    }

    /// Which set is read.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The tensors of the selected set, and all sets of the buffer. There are no tensors if the buffer has no
    /// such set. Does not allocate if the set is the one of the buffer before.
    ///
    /// # Errors
    /// If the plugin's own metadata is malformed.
    #[cfg_attr(not(feature = "v1_20"), expect(unused_mut, reason = "there are no sets"))]
    pub fn read<'a>(
        &mut self,
        buffer: &'a gst::BufferRef,
    ) -> Result<(Tensors<'a>, Sets<'a>), InputError> {
        let sets = Sets::of(buffer)?;
        let set = sets.find(&self.selection);
        if self.last.as_ref().map(Set::as_ref) != set {
            self.last = set.map(Set::to_owned);
        }
        let mut tensors = Tensors::default();
        match set {
            None => {}
            #[cfg(feature = "v1_26")]
            Some(Set::TensorMeta(index)) => tensor_meta::read_one(buffer, index, &mut tensors),
            #[cfg(feature = "v1_20")]
            Some(Set::Source(source)) => custom_meta::read_from(buffer, source, &mut tensors)?,
            #[cfg(not(feature = "v1_20"))]
            Some(Set::Source(_)) => {}
        }
        Ok((tensors, sets))
    }

    /// Removes the set that was read last, or every tensor if no set was selected.
    #[cfg(feature = "v1_20")]
    pub fn remove(&self, buffer: &mut gst::BufferRef) {
        match (&self.selection, &self.last) {
            (Selection::First, _) => super::remove(buffer),
            (_, None) => {}
            #[cfg(feature = "v1_26")]
            (_, Some(Set::TensorMeta(index))) => tensor_meta::remove_one(buffer, *index),
            (_, Some(Set::Source(source))) => custom_meta::remove_from(buffer, source.as_deref()),
        }
    }
}
