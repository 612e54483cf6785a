// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoders that are [described](crate::decoder::description) as text: the built-in ones, and users' layout
//! files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::{Family, family};
use crate::decoder::description::{Description, DescriptionError, STRIDES, Strides};
use crate::decoder::layout::{Layout, LayoutError};
use crate::decoder::{Decoder, Form, Groups, ModelTask, Options, Role, Scores};
use crate::tensor::TensorView;

/// The decoder of a user's description.
///
/// The text and the decoder stay in memory until the process ends, once for each text: equal texts give one
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
    if Description::parse(text)?.has_any_strides() {
        Description::with_strides(text, &STRIDES)?;
    }
    let text: &'static str = String::from(text).leak();
    let decoder = FamilyDecoder::new(&[text], family(&[]))?;
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
    /// With the usual strides, where a text has any.
    forms: Vec<&'static dyn Form>,
    /// For each form: its text, if that has any strides.
    any_strides: Vec<Option<AnyStrides>>,
}

/// A text whose strides follow from the tensors.
struct AnyStrides {
    text: &'static str,
    /// The description of all strides.
    all: Description<'static>,
    /// The forms so far, which stay in memory: at most one for each set of strides.
    forms: Mutex<Vec<(Strides, &'static dyn Form)>>,
}

impl FamilyDecoder {
    /// The decoder of a family of the list.
    pub fn embedded(family: Family) -> &'static Self {
        Self::new(family.texts, family).expect("a test parses every text of the list")
    }

    /// The decoder of descriptions of one name. They stay in memory.
    ///
    /// # Errors
    /// If a text is not a description.
    fn new(texts: &[&'static str], family: Family) -> Result<&'static Self, DescriptionError> {
        let descriptions: Vec<Description<'static>> =
            texts.iter().map(|text| Description::parse(text)).collect::<Result<_, _>>()?;
        let any_strides = |(&text, of_usual): (&&'static str, &Description<'static>)| {
            let all = match of_usual.has_any_strides() {
                true => Description::with_strides(text, &STRIDES)?,
                false => return Ok(None),
            };
            Ok(Some(AnyStrides { text, all, forms: Mutex::default() }))
        };
        let any_strides =
            texts.iter().zip(&descriptions).map(any_strides).collect::<Result<_, _>>()?;
        let mut expects: Vec<String> = descriptions.iter().map(Description::expects).collect();
        expects.dedup();
        let expects: &'static str = expects.join(", or ").leak();
        let first = &descriptions[0];
        let (name, scores, label) = (first.name(), first.values(), first.label());
        let forms = descriptions
            .into_iter()
            .map(|description| Described::form(&description, family, expects))
            .collect();
        Ok(Box::leak(Box::new(Self { family, name, expects, scores, label, forms, any_strides })))
    }

    /// The form of a text with these strides.
    fn form_of(&self, of: &AnyStrides, strides: Strides) -> &'static dyn Form {
        // A panic cannot leave the list half changed.
        let mut forms = of.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == strides) {
            return *form;
        }
        let description = Description::with_strides(of.text, &strides)
            .expect("fewer strides than all, with which the text is a description");
        let form = Described::form(&description, self.family, self.expects);
        forms.push((strides, form));
        form
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

    fn forms_for(
        &self,
        tensors: &[TensorView<'_>],
        options: Options,
    ) -> Cow<'_, [&'static dyn Form]> {
        if self.any_strides.iter().all(Option::is_none) {
            return Cow::Borrowed(&self.forms);
        }
        let forms = self.forms.iter().zip(&self.any_strides).flat_map(|(form, any_strides)| {
            let Some(of) = any_strides else { return vec![*form] };
            let strides = of.all.strides(tensors, options);
            strides.into_iter().map(|strides| self.form_of(of, strides)).collect()
        });
        forms.collect()
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
    /// The form with the channels last, if the shapes leave their order open.
    channels_last: Option<&'static dyn Form>,
}

impl Described {
    /// The form of a description, with the channels first where their order is open. It stays in memory.
    fn form(
        description: &Description<'static>,
        family: Family,
        expects: &'static str,
    ) -> &'static dyn Form {
        let form = |description: Description<'static>, channels_last| -> &'static dyn Form {
            let roles = description.roles();
            Box::leak(Box::new(Self { family, description, roles, expects, channels_last }))
        };
        let [first, last] = [false, true].map(|is_last| description.with_order(is_last));
        let channels_last = (!last.has_shapes_of(&first)).then(|| form(last, None));
        form(first, channels_last)
    }
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

    fn channels_last(&self) -> Option<&'static dyn Form> {
        self.channels_last
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
