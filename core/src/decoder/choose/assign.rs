// SPDX-License-Identifier: MIT OR Apache-2.0
//! The assignment of tensors to the roles of a form: by ids, by names, by positions, or by shapes.
//!
//! In: the tensors of a buffer, a form of a decoder's output. Out: the index of the tensor for each role, or layouts
//! of all assignments that fit.

use std::borrow::Cow;

use arrayvec::ArrayVec;

use super::{Choice, ChoiceError, Reason};
use crate::decoder::check::{self, check_num_classes, single_softmax};
use crate::decoder::layout::{Activation, LayoutProblem};
use crate::decoder::{Channels, Decoder, Form, Layout, LayoutError, MAX_INPUTS, Options, Role};
use crate::tensor::TensorView;

/// The index of the tensor for each role of a decoder.
pub(super) type Assignment = ArrayVec<usize, MAX_INPUTS>;

/// Prefix of ONNX output names, which are not tensor ids.
pub const ONNX_PREFIX: &str = "onnx/";

/// The greatest number of tensors that are tried for a form's roles. Sixteen roles for sixteen tensors of different
/// shapes take 136; beyond this number most shapes are equal.
const MAX_STEPS: usize = 1000;

/// The greatest number of assignments that are counted.
pub(super) const MAX_FITS: usize = 16;

/// The assignments of tensors to roles that fit, and the errors of those that do not.
#[derive(Default)]
pub(super) struct Readings {
    pub fits: Vec<Choice>,
    pub errors: Vec<LayoutError>,
    /// For each decoder whose tensors fit with the channels first and last: the error.
    open_orders: Vec<(&'static str, LayoutError)>,
    /// True if some assignments were not tried, because there are too many.
    pub is_incomplete: bool,
}

impl Readings {
    /// Tries the assignments of the tensors with indices `among` to the roles of a form.
    pub fn add(
        &mut self,
        tensors: &[TensorView<'_>],
        of: (&'static Decoder, &'static Form),
        among: &[usize],
        options: Options,
    ) {
        let (decoder, form) = of;
        let mut first = Self::of(tensors, of, among, options);
        if let Some(form) = &form.channels_last {
            let mut last = Self::of(tensors, (decoder, form), among, options);
            last.fits.retain(|it| !first.fits.iter().any(|other| it.layout == other.layout));
            last.errors.retain(|error| !first.errors.contains(error));
            if let (Some(one), Some(other)) = (first.fits.first(), last.fits.first()) {
                match options.channels {
                    Channels::Auto => {
                        let error = open_order(tensors, &one.layout, &other.layout);
                        self.open_orders.push((decoder.name(), error));
                    }
                    Channels::First => last.fits.clear(),
                    Channels::Last => first.fits.clear(),
                }
            }
            first.append(last);
        }
        self.append(first);
    }

    /// Checks that no tensors fit a decoder with the channels first and last.
    ///
    /// # Errors
    /// If some do.
    pub fn check_order(&self, decoder: &Decoder) -> Result<(), LayoutError> {
        let open = self.open_orders.iter().find(|(name, _)| *name == decoder.name());
        open.map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    fn append(&mut self, mut other: Self) {
        self.fits.append(&mut other.fits);
        self.errors.append(&mut other.errors);
        self.is_incomplete |= other.is_incomplete;
    }

    /// The readings with one order of channels.
    fn of(
        tensors: &[TensorView<'_>],
        of: (&'static Decoder, &'static Form),
        among: &[usize],
        options: Options,
    ) -> Self {
        let (assignment, readings) = (Assignment::new(), Self::default());
        let mut search = Search { tensors, of, among, options, assignment, steps: 0, readings };
        if among.len() >= of.1.roles.len() {
            search.assign();
        }
        search.readings
    }
}

/// The error of tensors that can be read with the channels first and last.
fn open_order(tensors: &[TensorView<'_>], first: &Layout, last: &Layout) -> LayoutError {
    let mut fields = first.fields().zip(last.fields());
    let other = fields.find(|(a, b)| a.field != b.field).map(|(a, _)| a.field.tensor);
    let tensor = &tensors[other.unwrap_or(first.groups[0].boxes.tensor)];
    check::open_order(tensor, first.decoder)
}

/// Searches the assignments that fit a form: a tensor for the first role, then one for the second, and so on,
/// each only if the tensors so far fit each other.
struct Search<'s, 't> {
    tensors: &'s [TensorView<'t>],
    of: (&'static Decoder, &'static Form),
    among: &'s [usize],
    options: Options,
    assignment: Assignment,
    steps: usize,
    readings: Readings,
}

impl Search<'_, '_> {
    fn assign(&mut self) {
        let (decoder, form) = self.of;
        let roles = form.roles.len();
        if self.assignment.len() == roles {
            match layout_of(self.tensors, decoder, form, &self.assignment, self.options) {
                Ok(layout) => {
                    self.readings.fits.push(Choice { decoder, layout, reason: Reason::Shape });
                }
                Err(error) => self.add_error(error),
            }
            return;
        }
        for &index in self.among {
            if self.assignment.contains(&index) {
                continue;
            }
            if self.steps >= MAX_STEPS || self.readings.fits.len() >= MAX_FITS {
                self.readings.is_incomplete = true;
                return;
            }
            self.steps += 1;
            self.assignment.push(index);
            let is_last = self.assignment.len() == roles;
            let checked = match is_last {
                true => Ok(()),
                false => form.check(&chosen(self.tensors, &self.assignment), self.options),
            };
            match checked {
                Ok(()) => self.assign(),
                Err(error) => self.add_error(error),
            }
            self.assignment.pop();
        }
    }

    /// Remembers the error, except when a single tensor of many does not match the first role.
    fn add_error(&mut self, error: LayoutError) {
        let is_of_all = matches!(error.problem, LayoutProblem::Batch | LayoutProblem::ModelSize(_));
        if self.of.1.roles.len() <= 2 || is_of_all {
            self.readings.errors.push(error);
        }
    }
}

/// Assigns tensors to roles by id; `None` if a role has no tensor.
pub(super) fn assignment_by_id(
    tensors: &[TensorView<'_>],
    form: &Form,
    options: Options,
) -> Result<Option<Assignment>, ChoiceError> {
    let mut assignment = Assignment::new();
    for role in &form.roles {
        let mut named = (0..tensors.len()).filter(|&i| role.has_id(tensors[i].id));
        let Some(index) = named.next().or_else(|| form.remaining(tensors, &assignment, options))
        else {
            return Ok(None);
        };
        if let Some(other) = named.next() {
            return Err(ChoiceError::Duplicate { id: tensors[other].id.to_owned() });
        }
        assignment.push(index);
    }
    Ok(Some(assignment))
}

/// Assigns tensors to roles by name: for each role, the first of its names that a tensor has. `None` if
/// a role has no tensor, or two.
pub(super) fn assignment_by_name(
    tensors: &[TensorView<'_>],
    form: &Form,
    options: Options,
) -> Option<Assignment> {
    let mut assignment = Assignment::new();
    for role in &form.roles {
        let has = |index: &usize, name: &str| {
            let id = tensors[*index].id;
            id == name || id.strip_prefix(ONNX_PREFIX).is_some_and(|rest| rest == name)
        };
        // Numbers as names mean different outputs in different models.
        let of_name = |name: &Cow<'_, str>| -> Option<[Option<usize>; 2]> {
            let mut named =
                (0..tensors.len()).filter(|index| has(index, name) && !assignment.contains(index));
            Some([Some(named.next()?), named.next()])
        };
        let index = match role.ids.iter().chain(&role.names).find_map(of_name) {
            Some([first, second]) => first.filter(|_| second.is_none()),
            None => form.remaining(tensors, &assignment, options),
        };
        assignment.push(index?);
    }
    Some(assignment)
}

/// Assigns tensors to roles by the positions that the form has.
pub(super) fn assignment_by_index(tensors: &[TensorView<'_>], form: &Form) -> Option<Assignment> {
    let index = |role: &Role<'_>| role.index.filter(|&index| index < tensors.len());
    let assignment: Assignment = form.roles.iter().map(index).collect::<Option<_>>()?;
    let is_different =
        assignment.iter().enumerate().all(|(role, index)| !assignment[..role].contains(index));
    is_different.then_some(assignment)
}

/// The tensors of an assignment.
pub(in crate::decoder) fn chosen<'s, 't>(
    tensors: &'s [TensorView<'t>],
    assignment: &[usize],
) -> ArrayVec<&'s TensorView<'t>, MAX_INPUTS> {
    assignment.iter().map(|&index| &tensors[index]).collect()
}

/// Makes the layout of an assignment, in the order of channels that fits.
///
/// # Errors
/// If neither fits, or if both fit, differ, and [`Options::channels`] does not decide.
pub(super) fn layout(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    form: &Form,
    assignment: &[usize],
    options: Options,
) -> Result<Layout, LayoutError> {
    let first = layout_of(tensors, decoder, form, assignment, options);
    let Some(form) = &form.channels_last else { return first };
    match (first, layout_of(tensors, decoder, form, assignment, options)) {
        (Ok(first), Ok(last)) => match options.channels {
            _ if first == last => Ok(first),
            Channels::First => Ok(first),
            Channels::Last => Ok(last),
            Channels::Auto => Err(open_order(tensors, &first, &last)),
        },
        (Ok(layout), Err(_)) | (Err(_), Ok(layout)) => Ok(layout),
        (Err(first), Err(last)) => match (first.specificity(), last.specificity()) {
            (None, Some(_)) => Err(last),
            _ => Err(first),
        },
    }
}

/// Makes the layout of an assignment, and checks what holds for every decoder.
fn layout_of(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    form: &Form,
    assignment: &[usize],
    options: Options,
) -> Result<Layout, LayoutError> {
    let mut layout = form.layout(&chosen(tensors, assignment), options)?;
    // Until here, the tensor of a field is the number of a role.
    layout.for_each_field(|field| field.tensor = assignment[field.tensor]);
    let tensor = &tensors[layout.groups[0].scores.tensor];
    if layout.score.activation == Activation::Softmax && layout.score.columns() == 1 {
        return Err(single_softmax(tensor, decoder.name()));
    }
    let classes = layout.classes - layout.first_label() as usize;
    check_num_classes(tensor, decoder.name(), classes, options)?;
    Ok(layout)
}
