// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders that are [described](crate::decoder::description) as text: the built-in ones, and users' layout
//! files.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{Family, family};
use crate::decoder::description::{Description, DescriptionError};
use crate::decoder::layout::{Layout, LayoutError};
use crate::decoder::{Decoder, Form, Groups, ModelTask, Options, Role, Scores};
use crate::tensor::TensorView;

/// The decoder of a user's description.
///
/// The text and the decoder stay in memory until the process ends, once for each text: the same text gives the same
/// decoder. A text with an error does not.
///
/// # Errors
/// If the text is not in the [format](crate::decoder::description).
pub fn from_text(text: &str) -> Result<&'static dyn Decoder, DescriptionError> {
    static DECODERS: LazyLock<Mutex<HashMap<&'static str, &'static FamilyDecoder>>> =
        LazyLock::new(Mutex::default);
    // A panic cannot leave the map half changed.
    let mut decoders = DECODERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&decoder) = decoders.get(text) {
        return Ok(decoder);
    }
    Description::parse(text)?;
    let text: &'static str = String::from(text).leak();
    let decoder = FamilyDecoder::new(vec![Description::parse(text)?], family(&[]));
    decoders.insert(text, decoder);
    Ok(decoder)
}

/// A decoder whose forms are descriptions.
pub(super) struct FamilyDecoder {
    family: Family,
    name: &'static str,
    expects: &'static str,
    scores: Scores,
    label: Option<&'static str>,
    forms: Vec<&'static dyn Form>,
}

impl FamilyDecoder {
    /// The decoder of a family of the list.
    pub fn embedded(family: Family) -> &'static Self {
        let parsed = |text: &&'static str| {
            Description::parse(text).expect("a test parses every text of the list")
        };
        Self::new(family.texts.iter().map(parsed).collect(), family)
    }

    /// The decoder of descriptions of one name. They stay in memory.
    fn new(descriptions: Vec<Description<'static>>, family: Family) -> &'static Self {
        let mut expects: Vec<String> = descriptions.iter().map(Description::expects).collect();
        expects.dedup();
        let expects: &'static str = expects.join(", or ").leak();
        let first = &descriptions[0];
        let (name, scores, label) = (first.name(), first.values(), first.label());
        let form = |description: Description<'static>| -> &'static dyn Form {
            let roles = description.roles();
            Box::leak(Box::new(Described { family, description, roles, expects }))
        };
        let forms = descriptions.into_iter().map(form).collect();
        Box::leak(Box::new(Self { family, name, expects, scores, label, forms }))
    }
}

impl Decoder for FamilyDecoder {
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

    fn is_alone(&self) -> bool {
        self.family.is_alone
    }

    fn groups(&self) -> Groups {
        self.family.groups
    }

    fn task(&self) -> Option<ModelTask> {
        self.family.task
    }
}

/// A form that is described as text.
struct Described {
    family: Family,
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

    /// True as exported, whose anchors are columns, with the known number of classes, or if that is unknown, with one
    /// of the family's numbers. A transposed tensor could be the output of RT-DETR, or boxes with score and class.
    fn is_unambiguous(&self, layout: &Layout, classes: Option<usize>) -> bool {
        let unambiguous = self.family.unambiguous;
        let as_exported = layout.groups[0].boxes.anchor_stride == 1;
        !unambiguous.is_empty()
            && as_exported
            && classes.map_or(unambiguous.contains(&layout.classes), |c| c == layout.classes)
    }
}
