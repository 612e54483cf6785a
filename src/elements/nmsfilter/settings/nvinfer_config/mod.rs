// SPDX-License-Identifier: MIT OR Apache-2.0
//! The property `nvinfer-config`: nvinfer's own configuration.
//!
//! In: the path of the file. Out: [`NvinferConfig`] with values for properties that are not set, the rules of
//! classes, conditions for attaching survivors, and warnings about ignored keys. The semantics follow
//! DeepStream 9.1: suppression by class (`cluster-mode=2`), then `topk` by class, then the limits of sizes and of the
//! region of interest, in pixels of the frame, which remove survivors after they have suppressed others.

mod attributes;
mod keys;
mod known_keys;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::SettingsError;
use crate::file;
pub(super) use attributes::Attributes;
use attributes::CLASS_KEYS;
use keys::{KeyTable, Keys};
use nmsfilter_core::decoder::MAX_CLASSES;

/// The greatest size of a file.
const MAX_LENGTH: u64 = 1 << 20;

const PROPERTIES: &str = "property";

/// The group of all classes, and the prefix of the groups of single classes, before a number.
const ALL_CLASSES: &str = "class-attrs-all";
const CLASS_PREFIX: &str = "class-attrs-";

/// This project's function that finds nothing (`pipelines/deepstream/no_objects.c`). With it nvinfer clusters nothing,
/// and `cluster-mode` does not apply to the objects.
const NO_OBJECTS: &str = "NvDsInferParseNoObjects";

/// DeepStream-Yolo's functions, for outputs `[N,6]`.
const END_TO_END: [&str; 2] = ["NvDsInferParseYolo", "NvDsInferParseYoloCuda"];

/// The settings in a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::elements::nmsfilter) struct NvinferConfig {
    /// The values for classes without a group, and for keys that a class's group does not have.
    pub all: Attributes,
    /// The values of each class that has a group.
    pub classes: BTreeMap<usize, Attributes>,
    /// The classes whose objects are not attached.
    pub excluded: BTreeSet<usize>,
    pub label_file: Option<String>,
    pub num_classes: Option<u32>,
    /// `maintain-aspect-ratio` and `symmetric-padding`.
    aspect: [Option<bool>; 2],
    pub unique_id: Option<u32>,
    cluster_mode: Option<u32>,
    network_type: u32,
    /// `parse-bbox-func-name`.
    function: String,
    /// `crop-objects-to-roi-boundary`.
    crops: bool,
    /// Warnings for keys that are ignored with any values of the properties.
    warnings: Vec<String>,
}

/// The keys of the group `[property]` that are read.
const PROPERTY_KEYS: &KeyTable<NvinferConfig> = &[
    ("cluster-mode", |it, key| key.integer(0..=4).map(|mode| it.cluster_mode = Some(mode))),
    ("crop-objects-to-roi-boundary", |it, key| key.boolean().map(|crops| it.crops = crops)),
    ("enable-dbscan", |it, key| {
        if key.boolean()? {
            it.cluster_mode.get_or_insert(1);
        }
        Ok(())
    }),
    ("filter-out-class-ids", |it, key| {
        key.classes(MAX_CLASSES).map(|classes| it.excluded = classes)
    }),
    ("gie-unique-id", |it, key| key.integer(1..=i32::MAX).map(|id| it.unique_id = Some(id))),
    ("is-classifier", |it, key| {
        if key.boolean()? {
            it.network_type = 1;
        }
        Ok(())
    }),
    ("labelfile-path", |it, key| key.text().map(|path| it.label_file = Some(path))),
    ("maintain-aspect-ratio", |it, key| key.boolean().map(|keeps| it.aspect[0] = Some(keeps))),
    ("network-type", |it, key| key.integer(0..=100).map(|number| it.network_type = number)),
    ("num-detected-classes", |it, key| {
        key.integer(0..=MAX_CLASSES as i32).map(|classes| it.num_classes = Some(classes))
    }),
    ("parse-bbox-func-name", |it, key| key.text().map(|name| it.function = name)),
    ("symmetric-padding", |it, key| key.boolean().map(|is| it.aspect[1] = Some(is))),
];

impl NvinferConfig {
    /// Reads the configuration in the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than 1 MiB, or is not a configuration of nvinfer.
    pub fn load(path: &str) -> Result<Self, SettingsError> {
        let path = Path::new(path);
        let text = file::read_text(path, MAX_LENGTH)
            .map_err(|cause| SettingsError(format!("nvinfer-config: the file {path:?} {cause}")))?;
        let is_yaml = path.extension().is_some_and(|name| name == "yml" || name == "yaml");
        let mut config = Self::parse(&text, is_yaml).map_err(|cause| {
            SettingsError(format!("nvinfer-config: the file {path:?}, {cause}"))
        })?;
        // nvinfer's rule: relative to the file's own folder, also if the path is a link to the file.
        let folder = path.canonicalize().ok().and_then(|file| Some(file.parent()?.to_owned()));
        if let (Some(labels), Some(folder)) = (&mut config.label_file, folder) {
            *labels = folder.join(&*labels).to_string_lossy().into_owned();
        }
        Ok(config)
    }

    /// # Errors
    /// If the text is not a configuration of nvinfer.
    fn parse(text: &str, is_yaml: bool) -> Result<Self, SettingsError> {
        let keys = Keys::new(text, is_yaml)?;
        let groups = keys.groups();
        if !groups.iter().any(|group| group == PROPERTIES) {
            let text = "has no group [property]; expected a configuration of nvinfer";
            return Err(SettingsError(text.into()));
        }
        let mut config = Self::default();
        keys.read(PROPERTIES, PROPERTY_KEYS, &mut config)?;
        keys.read(ALL_CLASSES, CLASS_KEYS, &mut config.all)?;
        let classes = config.num_classes.map_or(MAX_CLASSES, |classes| classes as usize);
        for group in groups.iter().filter(|group| *group != ALL_CLASSES) {
            let Some(class) = group.strip_prefix(CLASS_PREFIX) else { continue };
            let class = class.parse().ok().filter(|&class: &usize| class < classes);
            let class = class.ok_or_else(|| {
                let (line, group) = (keys.line(group, None), keys::quoted(group));
                SettingsError(format!(
                    "line {line}: expected [class-attrs-all] or [class-attrs-N] with a class below {classes}, got [{group}]"
                ))
            })?;
            let mut own = config.all.for_group();
            keys.read(group, CLASS_KEYS, &mut own)?;
            config.classes.insert(class, own);
        }
        config.warn_of_network();
        config.set_clustering();
        config.warn_of_ranges();
        for warning in known_keys::unknown(&keys) {
            config.warn(&warning);
        }
        Ok(config)
    }

    /// False if nvinfer's parser finds nothing.
    fn finds_objects(&self) -> bool {
        self.function != NO_OBJECTS
    }

    /// True if nvinfer itself attaches objects.
    pub fn attaches_objects(&self) -> bool {
        self.finds_objects() && (self.network_type == 0 || self.network_type == 3)
    }

    /// True with `cluster-mode=4`: nothing is suppressed.
    pub fn suppresses_nothing(&self) -> bool {
        self.finds_objects() && self.cluster_mode == Some(4)
    }

    /// True if the name of the parsing function says that outputs are `[N,6]`.
    pub fn is_end_to_end(&self) -> bool {
        END_TO_END.contains(&self.function.as_str())
    }

    /// `maintain-aspect-ratio` and `symmetric-padding`, if one of them is set.
    pub fn keeps_aspect(&self) -> Option<[bool; 2]> {
        let is_set = self.aspect.iter().any(Option::is_some);
        is_set.then(|| self.aspect.map(|value| value.unwrap_or(false)))
    }

    fn warn_of_network(&mut self) {
        let network = self.network_type;
        if network == 1 || network == 2 {
            self.warn(&format!(
                "network-type={network} is no detector, so that there are no boxes to decode; \
                 expected 0, 3 or 100"
            ));
        }
    }

    /// Applies `cluster-mode`, after the groups of classes are known.
    fn set_clustering(&mut self) {
        match self.cluster_mode.filter(|_| self.finds_objects()) {
            Some(0) => self.group_as_nvinfer(),
            // nvinfer itself clusters, and has a default mode.
            None if self.finds_objects() && self.network_type == 0 => self.group_as_nvinfer(),
            Some(mode @ (1 | 3)) => self.warn(&format!(
                "cluster-mode={mode} clusters by DBSCAN, which nmsfilter does not have: boxes are suppressed as with \
                 cluster-mode=2, and there will be other objects than nvinfer's"
            )),
            _ => {}
        }
        let has_region = |of: &Attributes| of.roi.iter().any(|&pixels| pixels > 0);
        if self.crops && (has_region(&self.all) || self.classes.values().any(has_region)) {
            self.warn(
                "crop-objects-to-roi-boundary=1 is not followed: objects that are partly above roi-top-offset or \
                 below roi-bottom-offset are not attached",
            );
        }
    }

    /// Sets the method that replaces `cluster-mode=0` in nvinfer without OpenCV, as NVIDIA builds it.
    fn group_as_nvinfer(&mut self) {
        for attributes in self.classes.values_mut().chain([&mut self.all]) {
            (attributes.iou_threshold, attributes.topk) = (Some(0.5), Some(20));
        }
        self.warn(
            "cluster-mode is 0 or not set: as nvinfer without OpenCV, nmsfilter suppresses with \
             nms-iou-threshold=0.5 and topk=20 for all classes; set cluster-mode=2 for the values of the groups",
        );
    }

    /// Warns of limits that exclude every object of some classes.
    fn warn_of_ranges(&mut self) {
        let all = self.all.empty_ranges();
        let of_classes = self.classes.iter().flat_map(|(class, own)| {
            let excluded = own.empty_ranges().into_iter().filter(|range| !all.contains(range));
            excluded.map(move |range| (class.to_string(), range))
        });
        let of_all = all.iter().map(|range| ("all".to_owned(), range.clone()));
        for (class, range) in of_all.chain(of_classes).collect::<Vec<_>>() {
            self.warn(&format!("[class-attrs-{class}]: {range}, so that no object is attached"));
        }
    }

    /// Returns warnings for keys that are ignored; `is_decoder_set` is true if a property names the decoder.
    pub fn warnings(&self, is_decoder_set: bool) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        let function = &self.function;
        let is_known = self.is_end_to_end() || function.is_empty() || !self.finds_objects();
        if !is_known && !is_decoder_set {
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
    pub fn of(&self, class: usize) -> &Attributes {
        self.classes.get(&class).unwrap_or(&self.all)
    }
}

#[cfg(test)]
mod tests;
