// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which structures the metadata has.
//!
//! In: the version of DeepStream, and the sizes of structures that the pools of a batch have. Out: the layout that is
//! used. Versions with the same sizes can have different layouts, and a version with other structures can have the
//! number of a known one, so neither decides alone:
//!
//! - The layout of a known version is used if the pools have its sizes, and nothing is read otherwise.
//! - The layout of another version is that of a known one with the same sizes. No pool has an `NvDsInferTensorMeta` or
//!   an `NvBufSurface`, so those are assumed to be the same, too.

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use super::DeepStreamError;
use super::layout::{
    FRAME_META, LAYOUTS, OBJECT_META, StructureLayout, USER_META, Version, batch, pool,
};
use super::library::DeepStreamLibraryError;
use super::record::Record;

/// The sizes, in bytes, of the structures in a batch's pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureSizes {
    /// `NvDsObjectMeta`.
    pub object: u32,
    /// `NvDsFrameMeta`.
    pub frame: u32,
    /// `NvDsUserMeta`.
    pub user: u32,
}

impl fmt::Display for StructureSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, frame, user } = self;
        write!(f, "NvDsObjectMeta {object}, NvDsFrameMeta {frame}, NvDsUserMeta {user}")
    }
}

impl StructureSizes {
    /// The sizes that the pools of a batch have.
    ///
    /// # Errors
    /// If one of the pools is missing, or has structures of another type.
    ///
    /// # Safety
    /// It must be an `NvDsBatchMeta`.
    pub(super) unsafe fn of_pools(batch: Record) -> Result<Self, DeepStreamError> {
        let size = |name, offset, meta_type| {
            // SAFETY: the batch has this field in every layout.
            let found: *mut c_void = unsafe { batch.read(offset) };
            NonNull::new(found)
                .filter(|found| found.cast::<u64>().is_aligned())
                .map(Record)
                // SAFETY: what is not null is a pool.
                .filter(|found| unsafe { found.read::<i32>(pool::TYPE) } == meta_type)
                // SAFETY: as above.
                .map(|found| unsafe { found.read(pool::ELEMENT_SIZE) })
                .ok_or(DeepStreamError::Pool { name })
        };
        Ok(Self {
            object: size("obj_meta_pool", batch::OBJECT_POOL, OBJECT_META)?,
            frame: size("frame_meta_pool", batch::FRAME_POOL, FRAME_META)?,
            user: size("user_meta_pool", batch::USER_POOL, USER_META)?,
        })
    }
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StructureLayoutError {
    /// No layout of that version is known.
    #[error(
        "deepstream-version: this plugin knows the structures of versions {} to {}, not of {version}; set it to one \
         of them that has the same structures, or unset it, so that they are recognized by their sizes",
        LAYOUTS[0].first, LAYOUTS[LAYOUTS.len() - 1].last
    )]
    Unknown {
        /// The version.
        version: Version,
    },
    /// The structures of a known version have other sizes.
    #[error(
        "the structures of DeepStream {version} have other sizes than expected; expected {expected}, got {found} \
         bytes; {}", advice(*.found)
    )]
    Sizes {
        /// The version.
        version: Version,
        /// The sizes that the batch's pools have.
        found: StructureSizes,
        /// The sizes of the version's layout.
        expected: StructureSizes,
    },
    /// No layout has these sizes.
    #[error(
        "DeepStream {version} is not known, and no known version, {} to {}, has its structures: {found} bytes; use \
         one of these versions",
        LAYOUTS[0].first, LAYOUTS[LAYOUTS.len() - 1].last
    )]
    UnknownSizes {
        /// The version.
        version: Version,
        /// The sizes that the batch's pools have.
        found: StructureSizes,
    },
    /// A text is not a version.
    #[error("deepstream-version: expected a version such as 7.1, got {text:?}")]
    NotAVersion {
        /// The text.
        text: String,
    },
}

/// What to do about structures with these sizes.
fn advice(sizes: StructureSizes) -> String {
    let mut same = LAYOUTS.iter().filter(|layout| layout.sizes == sizes);
    match (same.next(), same.next_back()) {
        (None, _) => {
            "no known version has them: reinstall DeepStream, or use a newer plugin".to_owned()
        }
        (Some(first), last) => format!(
            "they are those of {}: correct deepstream-version, or remove libraries of another version",
            Version::range(first.first, last.unwrap_or(first).last)
        ),
    }
}

/// The structures of a stream's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structures {
    /// The layout.
    pub layout: &'static StructureLayout,
    /// The version that is set or that the libraries report; that of the layout if they report none.
    pub version: Version,
    /// Why the layout is an assumption; `None` if it is that of the version.
    pub assumption: Option<Assumption>,
}

/// Why a layout is an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The version is not known.
    UnknownVersion,
    /// The libraries do not report their version.
    NoVersion,
}

impl Structures {
    /// The structures of a known version, if `found` are its sizes; else those of a known version that has these
    /// sizes. Of several, they are those of the last one that is not after `version`.
    ///
    /// # Errors
    /// If a known version has other sizes, if no known version has these sizes, or if there is no version and more than
    /// one layout has them.
    pub fn recognize(
        version: Option<Version>,
        found: StructureSizes,
    ) -> Result<Self, DeepStreamError> {
        let mut same = LAYOUTS.iter().filter(|layout| layout.sizes == found);
        let Some(version) = version else {
            let (Some(layout), None) = (same.next(), same.next()) else {
                return Err(DeepStreamLibraryError::NoVersion.into());
            };
            let assumption = Some(Assumption::NoVersion);
            return Ok(Self { layout, version: layout.last, assumption });
        };
        if let Ok(layout) = StructureLayout::of(version) {
            return match layout.sizes == found {
                true => Ok(Self { layout, version, assumption: None }),
                false => {
                    let expected = layout.sizes;
                    Err(StructureLayoutError::Sizes { version, found, expected }.into())
                }
            };
        }
        let first = same.clone().next();
        let layout = same.rfind(|layout| layout.first <= version).or(first);
        let layout = layout.ok_or(StructureLayoutError::UnknownSizes { version, found })?;
        Ok(Self { layout, version, assumption: Some(Assumption::UnknownVersion) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognized(version: Option<Version>, found: StructureSizes) -> Result<Structures, String> {
        Structures::recognize(version, found).map_err(|error| error.to_string())
    }

    #[test]
    fn a_known_version_has_its_own_sizes() {
        for layout in &LAYOUTS {
            for version in [layout.first, layout.last] {
                let expected = Structures { layout, version, assumption: None };
                assert_eq!(recognized(Some(version), layout.sizes), Ok(expected));
                for other in LAYOUTS.iter().filter(|other| other.sizes != layout.sizes) {
                    let error = recognized(Some(version), other.sizes).unwrap_err();
                    let sizes = [layout.sizes, other.sizes].map(|sizes| sizes.to_string());
                    assert!(sizes.iter().all(|sizes| error.contains(sizes)), "{error}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_version_has_the_layout_of_the_last_one_before_it_with_its_sizes() {
        let of = |major, minor| StructureLayout::of(Version::new(major, minor)).unwrap();
        for (version, like, expected) in [
            ((9, 2), (9, 1), (9, 1)),
            ((10, 0), (9, 0), (9, 1)),
            ((10, 0), (8, 0), (8, 0)),
            ((8, 1), (9, 0), (9, 0)),
            ((7, 2), (6, 0), (7, 1)),
            ((5, 1), (6, 3), (6, 0)),
        ] {
            let version = Version::new(version.0, version.1);
            let found = recognized(Some(version), of(like.0, like.1).sizes).unwrap();
            assert_eq!(found.layout, of(expected.0, expected.1), "{version}");
            assert_eq!(
                (found.version, found.assumption),
                (version, Some(Assumption::UnknownVersion))
            );
        }
        // 5.1's own.
        let sizes = StructureSizes { object: 544, frame: 192, user: 48 };
        let error = recognized(Some(Version::new(5, 1)), sizes).unwrap_err();
        assert!(error.contains("DeepStream 5.1") && error.contains(&sizes.to_string()), "{error}");
    }

    #[test]
    fn without_a_version_the_sizes_must_be_of_one_layout() {
        for layout in &LAYOUTS {
            let found = recognized(None, layout.sizes);
            match LAYOUTS.iter().filter(|other| other.sizes == layout.sizes).count() {
                1 => {
                    let assumption = Some(Assumption::NoVersion);
                    assert_eq!(found, Ok(Structures { layout, version: layout.last, assumption }));
                }
                _ => assert!(found.unwrap_err().contains("nvds_version")),
            }
        }
    }
}
