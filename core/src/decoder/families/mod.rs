// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders that are [described](super::description) as text: those embedded in the crate, and those of users'
//! layout files.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::description::{Description, DescriptionError};
use super::layout::{Layout, LayoutError};
use super::{Decoder, Form, Options, Role, Scores};
use crate::tensor::TensorView;

/// The texts of each family: one for each form of its output, those with more tensors first.
pub const TEXTS: &[&[&str]] = &[
    &[include_str!("end2end.layout")],
    &[include_str!("detr.layout"), include_str!("detr-one-tensor.layout")],
    &[include_str!("yolox-raw.layout")],
    &[include_str!("yolov5-raw-levels.layout"), include_str!("yolov5-raw.layout")],
    &[include_str!("ssd-priors.layout"), include_str!("ssd.layout")],
    &[include_str!("retinaface-landmarks.layout"), include_str!("retinaface.layout")],
    &[include_str!("yunet-landmarks.layout"), include_str!("yunet.layout")],
    &[include_str!("scrfd-landmarks.layout"), include_str!("scrfd.layout")],
    &[include_str!("nanodet.layout"), include_str!("nanodet-plus.layout")],
    &[include_str!("picodet.layout")],
    &[include_str!("ssd-postprocess.layout"), include_str!("ssd-postprocess-tf.layout")],
    &[include_str!("efficientnms.layout")],
];

/// The embedded decoders, in the order in which tensor ids are compared.
pub fn embedded() -> impl Iterator<Item = &'static dyn Decoder> {
    static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
        let parsed = |text: &&'static str| {
            Description::parse(text).expect("a test parses every embedded description")
        };
        TEXTS.iter().map(|texts| Family::new(texts.iter().map(parsed).collect())).collect()
    });
    FAMILIES.iter().map(|family| family as &dyn Decoder)
}

/// The decoder of a user's description.
///
/// The text and the decoder stay in memory until the process ends, once for each text: the same text gives the same
/// decoder. A text with an error does not.
///
/// # Errors
/// If the text is not in the [format](super::description).
pub fn from_text(text: &str) -> Result<&'static dyn Decoder, DescriptionError> {
    static DECODERS: LazyLock<Mutex<HashMap<&'static str, &'static Family>>> =
        LazyLock::new(Mutex::default);
    // A panic cannot leave the map half changed.
    let mut decoders = DECODERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&family) = decoders.get(text) {
        return Ok(family);
    }
    Description::parse(text)?;
    let text: &'static str = String::from(text).leak();
    let family: &'static Family = Box::leak(Box::new(Family::new(vec![Description::parse(text)?])));
    decoders.insert(text, family);
    Ok(family)
}

/// A decoder whose forms are descriptions.
struct Family {
    name: &'static str,
    expects: &'static str,
    scores: Scores,
    label: Option<&'static str>,
    forms: Vec<&'static dyn Form>,
}

impl Family {
    /// The decoder of descriptions of the same name. They stay in memory.
    fn new(descriptions: Vec<Description<'static>>) -> Self {
        let expects: Vec<String> = descriptions.iter().map(Description::expects).collect();
        let expects: &'static str = expects.join(", or ").leak();
        let first = &descriptions[0];
        let (name, scores, label) = (first.name(), first.values(), first.label());
        let form = |description: Description<'static>| -> &'static dyn Form {
            let roles = description.roles();
            Box::leak(Box::new(Described { description, roles, expects }))
        };
        Self { name, expects, scores, label, forms: descriptions.into_iter().map(form).collect() }
    }
}

impl Decoder for Family {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expects(&self) -> &str {
        self.expects
    }

    fn forms(&self) -> &[&'static dyn Form] {
        &self.forms
    }

    fn scores(&self) -> Scores {
        self.scores
    }

    fn label(&self, class: u32) -> Option<&'static str> {
        self.label.filter(|_| class == 0)
    }
}

/// A form that is described as text.
struct Described {
    description: Description<'static>,
    roles: Vec<Role>,
    /// The expected shapes of all forms.
    expects: &'static str,
}

impl Form for Described {
    fn roles(&self) -> &[Role] {
        &self.roles
    }

    fn layout(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<Layout, LayoutError> {
        self.description.layout(tensors, self.expects, options)
    }

    fn check(&self, tensors: &[&TensorView<'_>], options: Options) -> Result<(), LayoutError> {
        self.description.check(tensors, self.expects, options)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decoders;
    use super::*;

    #[test]
    fn every_embedded_text_is_a_description_named_after_its_family() {
        for texts in TEXTS {
            let names: Vec<&str> = texts
                .iter()
                .map(|text| {
                    Description::parse(text)
                        .unwrap_or_else(|error| panic!("{error}\n{text}"))
                        .name()
                })
                .collect();
            assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        }
        assert_eq!(embedded().count(), TEXTS.len());
    }

    /// An id that two families have cannot choose between them. GStreamer gives the boxes of UltraFace the id of
    /// those of SSD; the ids of their scores differ.
    #[test]
    fn ids_are_those_of_one_family() {
        let mut found: HashMap<&str, &str> = HashMap::new();
        for decoder in decoders() {
            let mut ids: Vec<&str> = decoder
                .forms()
                .iter()
                .flat_map(|form| form.roles())
                .flat_map(|role| role.ids)
                .copied()
                .filter(|id| *id != "ssd-mobilenet-v1-variant-1-out-boxes")
                .collect();
            ids.sort_unstable();
            ids.dedup();
            for id in ids {
                let other = found.insert(id, decoder.name());
                assert_eq!(other, None, "{id} is an id of {} and of another", decoder.name());
            }
        }
        assert!(found.contains_key("yolo-26-end2end-out"));
    }

    #[test]
    fn the_names_of_decoders_differ() {
        let mut names: Vec<&str> = decoders().iter().map(|decoder| decoder.name()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_same_text_gives_the_same_decoder() {
        let text = TEXTS[0][0];
        let address = |text: &str| std::ptr::from_ref(from_text(text).unwrap()).addr();
        assert_eq!(address(text), address(text));
        assert_ne!(address(text), address(TEXTS[2][0]));
        assert!(from_text("name = x").is_err());
    }
}
