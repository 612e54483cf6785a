// SPDX-License-Identifier: MIT OR Apache-2.0
//! The property `nvinfer-config`: nvinfer's own configuration.
//!
//! In: the path of the file. Out: [`NvinferConfig`] with values for properties that are not set, the rules of
//! classes, conditions for attaching survivors, and warnings about ignored keys. The semantics follow
//! DeepStream 9.1: suppression by class (`cluster-mode=2`), then `topk` by class, then the limits of sizes and of the
//! region of interest, in pixels of the frame, which remove survivors after they have suppressed others.

mod apply;
mod attributes;
mod keys;
mod known_keys;
mod region_rules;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Settings;
use crate::file::{self, FileError};
use attributes::Attributes;
pub(in crate::elements::nmsfilter) use keys::KeyError;
use keys::Keys;
use nmsfilter_core::decoder::MAX_CLASSES;
pub(in crate::elements::nmsfilter) use region_rules::RegionRules;

/// The greatest size of a file.
const MAX_LENGTH: u64 = 1 << 20;

const PROPERTIES: &str = "property";

/// This project's function that finds nothing (`pipelines/deepstream/no_objects.c`). With it nvinfer clusters nothing,
/// and `cluster-mode` does not apply to the objects.
const NO_OBJECTS: &str = "NvDsInferParseNoObjects";

/// DeepStream-Yolo's functions, for outputs `[N,6]`.
const END_TO_END: [&str; 2] = ["NvDsInferParseYolo", "NvDsInferParseYoloCuda"];

/// The reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::elements::nmsfilter) enum NvinferConfigError {
    #[error("nvinfer-config: the file {path:?} {cause}")]
    File { path: PathBuf, cause: FileError },
    #[error("nvinfer-config: the file {path:?}, {cause}")]
    Key { path: PathBuf, cause: Box<KeyError> },
}

/// The settings in a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::elements::nmsfilter) struct NvinferConfig {
    /// The values for classes without a group, and for keys that a class's group does not have.
    pub all: Attributes,
    /// The values of each class's group.
    pub classes: BTreeMap<usize, Attributes>,
    /// The classes whose objects are not attached.
    pub excluded: BTreeSet<usize>,
    /// True with `cluster-mode=4`: nothing is suppressed.
    pub suppresses_nothing: bool,
    pub label_file: Option<String>,
    pub num_classes: Option<u32>,
    /// `maintain-aspect-ratio` and `symmetric-padding`.
    pub keeps_aspect: Option<[bool; 2]>,
    pub unique_id: Option<u32>,
    /// True if the name of the parsing function says that outputs are `[N,6]`.
    pub is_end_to_end: bool,
    /// The function that parses the outputs, if its decoder is unknown.
    pub unknown_parser: Option<String>,
    /// True if nvinfer itself attaches objects.
    pub attaches_objects: bool,
    /// Warnings for keys that are ignored with any values of the properties.
    warnings: Vec<String>,
}

impl NvinferConfig {
    /// Reads the configuration in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than 1 MiB, or is not a configuration of nvinfer.
    pub fn load(path: &str) -> Result<Self, NvinferConfigError> {
        let path = Path::new(path);
        let of_path = || path.to_owned();
        let text = file::read_text(path, MAX_LENGTH)
            .map_err(|cause| NvinferConfigError::File { path: of_path(), cause })?;
        let is_yaml = path.extension().is_some_and(|name| name == "yml" || name == "yaml");
        let mut config = Self::parse(&text, is_yaml)
            .map_err(|cause| NvinferConfigError::Key { path: of_path(), cause: cause.into() })?;
        // nvinfer's rule: relative to the file's own folder, also if the path is a link to the file.
        let folder = path.canonicalize().ok().and_then(|file| Some(file.parent()?.to_owned()));
        if let (Some(labels), Some(folder)) = (&mut config.label_file, folder) {
            *labels = folder.join(&*labels).to_string_lossy().into_owned();
        }
        Ok(config)
    }

    /// # Errors
    /// If the text is not a configuration of nvinfer.
    fn parse(text: &str, is_yaml: bool) -> Result<Self, KeyError> {
        let keys = Keys::new(text, is_yaml)?;
        let groups = keys.groups();
        if !groups.iter().any(|group| group == PROPERTIES) {
            return Err(KeyError::NoProperties);
        }
        let mut config = Self::default();
        let clustering = config.read_properties(&keys)?;
        config.all = Attributes::read(&keys, "class-attrs-all")?.or(Attributes::DEFAULT);
        let classes = config.num_classes.map_or(MAX_CLASSES, |classes| classes as usize);
        for group in &groups {
            let Some(class) = group.strip_prefix("class-attrs-").filter(|name| *name != "all")
            else {
                continue;
            };
            let class = class.parse().ok().filter(|&class: &usize| class < classes);
            let class = class.ok_or_else(|| KeyError::Class {
                line: keys.line(group, None),
                group: keys::quoted(group),
                classes,
            })?;
            config.classes.insert(class, Attributes::read(&keys, group)?);
        }
        config.set_clustering(clustering);
        config.warn_of_ranges();
        for warning in known_keys::unknown(&keys) {
            config.warn(&warning);
        }
        Ok(config)
    }

    /// Reads the group `[property]`.
    fn read_properties(&mut self, keys: &Keys) -> Result<Clustering, KeyError> {
        let (mut mode, mut network) = (None, 0);
        let (mut function, mut crops) = (String::new(), false);
        let [mut keeps, mut is_symmetric] = [None; 2];
        for key in &keys.of(PROPERTIES) {
            let integer = |range| keys.integer(PROPERTIES, key, range);
            let boolean = || keys.boolean(PROPERTIES, key);
            match key.as_str() {
                "gie-unique-id" => self.unique_id = Some(integer(1..=i32::MAX)?),
                "labelfile-path" => self.label_file = Some(keys.text(PROPERTIES, key)?),
                "num-detected-classes" => {
                    self.num_classes = Some(integer(0..=MAX_CLASSES as i32)?);
                }
                "filter-out-class-ids" => {
                    self.excluded =
                        keys.classes(PROPERTIES, key, MAX_CLASSES)?.into_iter().collect();
                }
                "maintain-aspect-ratio" => keeps = Some(boolean()?),
                "symmetric-padding" => is_symmetric = Some(boolean()?),
                "cluster-mode" => mode = Some(integer(0..=4)?),
                "network-type" => network = integer(0..=100)?,
                "is-classifier" if boolean()? => network = 1,
                "parse-bbox-func-name" => function = keys.text(PROPERTIES, key)?,
                "crop-objects-to-roi-boundary" => crops = boolean()?,
                "enable-dbscan" if boolean()? && mode.is_none() => mode = Some(1),
                _ => {}
            }
        }
        if keeps.or(is_symmetric).is_some() {
            self.keeps_aspect = Some([keeps, is_symmetric].map(|value| value.unwrap_or(false)));
        }
        self.is_end_to_end = END_TO_END.contains(&function.as_str());
        let is_known = self.is_end_to_end || function.is_empty() || function == NO_OBJECTS;
        self.unknown_parser = (!is_known).then(|| function.clone());
        if network == 1 || network == 2 {
            self.warn(&format!(
                "network-type={network} is no detector, so that there are no boxes to decode; \
                 expected 0, 3 or 100"
            ));
        }
        let finds_objects = function != NO_OBJECTS;
        self.attaches_objects = finds_objects && (network == 0 || network == 3);
        Ok(Clustering {
            mode: mode.filter(|_| finds_objects),
            is_nvinfers: finds_objects && network == 0,
            crops,
        })
    }

    /// Applies `cluster-mode`, after the groups of classes are known.
    fn set_clustering(&mut self, Clustering { mode, is_nvinfers, crops }: Clustering) {
        match mode {
            Some(4) => self.suppresses_nothing = true,
            Some(0) => self.group_as_nvinfer(),
            None if is_nvinfers => self.group_as_nvinfer(),
            Some(mode @ (1 | 3)) => self.warn(&format!(
                "cluster-mode={mode} clusters by DBSCAN, which nmsfilter does not have: boxes are suppressed as with \
                 cluster-mode=2, and there will be other objects than nvinfer's"
            )),
            _ => {}
        }
        let has_region = |of: &Attributes| of.roi.iter().flatten().any(|&pixels| pixels > 0);
        if crops && (has_region(&self.all) || self.classes.values().any(has_region)) {
            self.warn(
                "crop-objects-to-roi-boundary=1 is not followed: objects that are partly above roi-top-offset or \
                 below roi-bottom-offset are not attached",
            );
        }
    }

    /// Sets the method that replaces `cluster-mode=0` in nvinfer without OpenCV, as NVIDIA builds it.
    fn group_as_nvinfer(&mut self) {
        let replace = |attributes: &mut Attributes| {
            (attributes.iou_threshold, attributes.topk) = (Some(0.5), Some(20));
        };
        replace(&mut self.all);
        self.classes.values_mut().for_each(replace);
        self.warn(
            "cluster-mode is 0 or not set: as nvinfer without OpenCV, nmsfilter suppresses with \
             nms-iou-threshold=0.5 and topk=20 for all classes; set cluster-mode=2 for the values of the groups",
        );
    }

    /// Warns of limits that exclude every object of some classes.
    fn warn_of_ranges(&mut self) {
        let all = self.all.empty_ranges();
        let of_classes = self.classes.iter().flat_map(|(class, own)| {
            let excluded =
                own.or(self.all).empty_ranges().into_iter().filter(|range| !all.contains(range));
            excluded.map(move |range| (class.to_string(), range))
        });
        let of_all = all.iter().map(|range| ("all".to_owned(), range.clone()));
        for (class, range) in of_all.chain(of_classes).collect::<Vec<_>>() {
            self.warn(&format!("[class-attrs-{class}]: {range}, so that no object is attached"));
        }
    }

    /// Returns warnings for keys that are ignored with these values of the properties.
    pub fn warnings(&self, properties: &Settings) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        if let Some(function) = &self.unknown_parser
            && !properties.was_set.contains("decoder")
        {
            warnings.push(format!(
                "nvinfer-config: parse-bbox-func-name={function} is not called, and its decoder is not known, so \
                 that ids and shapes of the outputs decide; set decoder"
            ));
        }
        warnings
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(format!("nvinfer-config: {text}"));
    }

    /// Returns the values for a class.
    pub fn of(&self, class: usize) -> Attributes {
        self.classes.get(&class).map_or(self.all, |own| own.or(self.all))
    }
}

/// How nvinfer clusters.
struct Clustering {
    mode: Option<u32>,
    /// True if nvinfer itself clusters. Without the key `cluster-mode` it then has a default mode.
    is_nvinfers: bool,
    /// `crop-objects-to-roi-boundary`.
    crops: bool,
}

#[cfg(test)]
mod tests;
