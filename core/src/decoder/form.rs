// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms of a model family's output.
//!
//! In: the tensors of a form. Out: their [`Layout`]: by a [description](super::description), or by the rules of `boxes`.

use std::sync::{Mutex, PoisonError};

use super::description::{Description, DescriptionError, STRIDES, Strides};
use super::layout::{Layout, LayoutError};
use super::{Options, Role, boxes};
use crate::tensor::TensorView;

/// The greatest number of a decoder's forms: a family has up to four texts, with up to eight sets of strides each.
pub(super) const MAX_FORMS: usize = 32;

/// A form of a model family's output.
pub struct Form {
    /// The tensors that are read, in the order in which [`layout`](Self::layout) takes them.
    pub roles: Vec<Role<'static>>,
    /// How they are read; `None` for the rules of `boxes`.
    pub(super) description: Option<Box<Description<'static>>>,
    /// The form with the channels last, if this one has them first and the shapes can have either order.
    pub(super) channels_last: Option<Box<Form>>,
    /// If the strides of a description follow from the tensors; the form itself has the usual strides then.
    pub(super) any_strides: Option<AnyStrides>,
}

/// A text whose strides follow from the tensors.
pub(super) struct AnyStrides {
    text: &'static str,
    /// The description of all strides.
    all: Description<'static>,
    /// The forms so far, which stay in memory: at most one for each set of strides.
    forms: Mutex<Vec<(Strides, &'static Form)>>,
}

impl Form {
    pub(super) fn new(
        roles: Vec<Role<'static>>,
        description: Option<Description<'static>>,
    ) -> Self {
        let description = description.map(Box::new);
        Self { roles, description, channels_last: None, any_strides: None }
    }

    /// The form of a description, with the channels first where their order is open.
    fn described(description: &Description<'static>) -> Self {
        let form = |it: Description<'static>| Self::new(it.roles(), Some(it));
        let [first, last] = [false, true].map(|is_last| description.with_order(is_last));
        let channels_last = (!last.has_shapes_of(&first)).then(|| Box::new(form(last)));
        Self { channels_last, ..form(first) }
    }

    /// The form of a text, whose description this is. `expects` are the shapes of all forms, for errors.
    ///
    /// # Errors
    /// If the text has any strides, and is no description with all of them.
    pub(super) fn of_text(
        text: &'static str,
        mut description: Description<'static>,
        expects: &'static str,
    ) -> Result<Self, DescriptionError> {
        description.expected = expects;
        let mut form = Self::described(&description);
        if description.has_any_strides {
            let mut all = Description::with_strides(text, &STRIDES)?;
            all.expected = expects;
            form.any_strides = Some(AnyStrides { text, all, forms: Mutex::default() });
        }
        Ok(form)
    }

    /// Makes the layout of `tensors`, one per role.
    ///
    /// # Errors
    /// If a shape or an element type does not fit.
    pub fn layout(
        &self,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<Layout, LayoutError> {
        match &self.description {
            Some(description) => description.layout(tensors, options),
            None if tensors.len() > 2 => boxes::labeled_layout(tensors, options),
            None => boxes::layout(tensors, options),
        }
    }

    /// Checks `tensors`, one for each of the first roles, as far as this is possible without the
    /// others.
    ///
    /// # Errors
    /// The errors of [`layout`](Self::layout).
    pub(super) fn check(
        &self,
        tensors: &[&TensorView<'_>],
        options: Options,
    ) -> Result<(), LayoutError> {
        let description = self.description.as_ref();
        description.map_or(Ok(()), |description| description.fit(tensors, options).map(drop))
    }

    /// Finds the tensor of the next role if no tensor has one of its ids or names. `assigned` are the indices of the
    /// tensors of the roles before it.
    pub(super) fn remaining(
        &self,
        tensors: &[TensorView<'_>],
        assigned: &[usize],
        options: Options,
    ) -> Option<usize> {
        let &[boxes, scores] = assigned else { return None };
        let is_of_boxes = self.description.is_none();
        is_of_boxes.then(|| boxes::remaining_labels(tensors, [boxes, scores], options)).flatten()
    }
}

impl AnyStrides {
    /// The forms for these tensors.
    pub fn forms(
        &self,
        tensors: &[TensorView<'_>],
        options: Options,
    ) -> impl Iterator<Item = &'static Form> {
        self.all.strides(tensors, options).into_iter().map(|strides| self.form(strides))
    }

    /// The form of the text with these strides.
    fn form(&self, strides: Strides) -> &'static Form {
        // A panic cannot leave the list half changed.
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == strides) {
            return form;
        }
        let mut description = Description::with_strides(self.text, &strides)
            .expect("fewer strides than all, with which the text is a description");
        description.expected = self.all.expected;
        let form: &Form = Box::leak(Box::new(Form::described(&description)));
        forms.push((strides, form));
        form
    }
}
