// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines which layout the structures of the metadata have.
//!
//! In: the version of DeepStream, and the sizes of structures in the pools of a batch. Out: the layout to use.
//! Neither the version nor the sizes are enough: versions with equal sizes can have different layouts, and an
//! installation that reports a known version can have other structures. So both are compared:
//!
//! - If the version is known, its layout is used if the pools have the expected sizes. Otherwise nothing is read.
//! - If the version is unknown, the layout of a known version with equal sizes is used. An `NvDsInferTensorMeta` or
//!   an `NvBufSurface` does not come from a pool, so these two are assumed to be equal, too.

use std::fmt;
use std::ptr::NonNull;

use super::DeepStreamError;
use super::layout::{
    FRAME_META, LAYOUTS, OBJECT_META, StructureLayout, USER_META, Version, batch, known_versions,
    pool, versions_with,
};
use super::record::Record;

/// The sizes of the structures in a batch's pools, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureSizes {
    /// The size of an `NvDsObjectMeta`.
    pub object: u32,
    /// The size of an `NvDsFrameMeta`.
    pub frame: u32,
    /// The size of an `NvDsUserMeta`.
    pub user: u32,
}

impl fmt::Display for StructureSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, frame, user } = self;
        write!(f, "NvDsObjectMeta {object}, NvDsFrameMeta {frame}, NvDsUserMeta {user}")
    }
}

impl StructureSizes {
    /// Reads the sizes from the pools of a batch.
    ///
    /// # Errors
    /// If a pool is missing, or if it has structures of another type.
    pub(super) fn from_pools(batch: Record<'_, batch::S>) -> Result<Self, DeepStreamError> {
        let size = |name, field, meta_type| {
            let found = NonNull::new(batch.read(field));
            let found = found.filter(|found| found.cast::<u64>().is_aligned());
            // SAFETY: a pointer that is not null points to a pool.
            let found: Option<Record<'_, pool::S>> =
                found.map(|found| unsafe { Record::new(found) });
            let found = found.filter(|found| found.read(pool::TYPE) == meta_type);
            found.map(|it| it.read(pool::ELEMENT_SIZE)).ok_or_else(|| {
                DeepStreamError(format!(
                    "DeepStream's batch has no {name}, so the sizes of its structures are unknown; the metadata is \
                     damaged, or comes from a version with other structures: use DeepStream {}, or correct the element \
                     upstream",
                    known_versions()
                ))
            })
        };
        Ok(Self {
            object: size("obj_meta_pool", batch::OBJECT_POOL, OBJECT_META)?,
            frame: size("frame_meta_pool", batch::FRAME_POOL, FRAME_META)?,
            user: size("user_meta_pool", batch::USER_POOL, USER_META)?,
        })
    }
}

/// Says what to do about structures with these sizes.
fn advice(sizes: StructureSizes) -> String {
    match versions_with(|layout| layout.sizes == sizes) {
        None => "no known version has these sizes: reinstall DeepStream, or use a newer plugin"
            .to_owned(),
        Some(versions) => format!(
            "DeepStream {versions} has these sizes: correct deepstream-version, or remove libraries of another version"
        ),
    }
}

/// The structures of a stream's batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Structures {
    /// The layout.
    pub layout: &'static StructureLayout,
    /// The version that the user has set or that the libraries report. If the libraries report none, the last
    /// version with this layout.
    pub version: Version,
    /// The reason why the layout is an assumption; `None` if it is the layout of the version.
    pub assumption: Option<Assumption>,
}

/// The reason why a layout is an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The version is unknown.
    UnknownVersion,
    /// The libraries do not report their version.
    NoVersion,
}

impl Structures {
    /// Returns the layout of `version`, if the version is known and `found` are its sizes. For an unknown version,
    /// returns a known layout with these sizes: the last one that is not later than `version`, or else the first
    /// one.
    ///
    /// # Errors
    /// If a known version has other sizes, if no known version has these sizes, or if there is no version and not
    /// exactly one layout has these sizes.
    pub fn recognize(
        version: Option<Version>,
        found: StructureSizes,
    ) -> Result<Self, DeepStreamError> {
        let mut same = LAYOUTS.iter().filter(|layout| layout.sizes == found);
        let Some(version) = version else {
            let (Some(layout), None) = (same.next(), same.next()) else {
                return Err(DeepStreamError(
                    "none of DeepStream's libraries has the function nvds_version, and the sizes of the structures do not \
                     identify the version; set deepstream-version to the installed version"
                        .into(),
                ));
            };
            let assumption = Some(Assumption::NoVersion);
            return Ok(Self { layout, version: layout.last, assumption });
        };
        if let Some(layout) = StructureLayout::find(version) {
            return if layout.sizes == found {
                Ok(Self { layout, version, assumption: None })
            } else {
                Err(DeepStreamError(format!(
                    "the structures of DeepStream {version} have other sizes than expected; expected {}, got {found} bytes; \
                     {}",
                    layout.sizes,
                    advice(found)
                )))
            };
        }
        let first = same.clone().next();
        let layout = same.rfind(|layout| layout.first <= version).or(first);
        let layout = layout.ok_or_else(|| {
            DeepStreamError(format!(
                "DeepStream {version} is unknown, and no known version ({}) has structures of these sizes: {found} bytes; \
                 use one of the known versions",
                known_versions()
            ))
        })?;
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
        let layout =
            |major, minor| StructureLayout::for_version(Version::new(major, minor)).unwrap();
        for (version, like, expected) in [
            ((9, 2), (9, 1), (9, 1)),
            ((10, 0), (9, 0), (9, 1)),
            ((10, 0), (8, 0), (8, 0)),
            ((8, 1), (9, 0), (9, 0)),
            ((7, 2), (6, 0), (7, 1)),
            ((5, 1), (6, 3), (6, 0)),
        ] {
            let version = Version::new(version.0, version.1);
            let found = recognized(Some(version), layout(like.0, like.1).sizes).unwrap();
            assert_eq!(found.layout, layout(expected.0, expected.1), "{version}");
            assert_eq!(
                (found.version, found.assumption),
                (version, Some(Assumption::UnknownVersion))
            );
        }
        // The real sizes of version 5.1.
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
