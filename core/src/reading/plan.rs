// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: the results that are computed once for many runs of an engine.
//!
//! In: the ids, element types and shapes of tensors, the choice of a decoder for them, and parameters. Out: a [`Plan`],
//! which has the layout and the parameters of a run. The places of images are not part of it.

use crate::decoder::Choice;
use crate::engine::detail::Details;
use crate::engine::{ClassThresholds, Params};
use crate::tensor::{ElementType, Quantization, Shape, TensorView};

/// How tensors are decoded and suppressed, until their ids, types or shapes or the settings change.
pub struct Plan {
    tensors: Signatures,
    choice: Choice,
    details: Details,
    params: Params,
}

/// What the choice of a decoder depends on, for each tensor.
#[derive(Default)]
pub struct Signatures(Vec<Signature>);

/// The facts of one tensor on which the choice of a decoder depends.
#[derive(Default, PartialEq)]
struct Signature {
    id: String,
    element: ElementType,
    quantization: Option<Quantization>,
    shape: Shape,
}

impl PartialEq<TensorView<'_>> for Signature {
    fn eq(&self, tensor: &TensorView<'_>) -> bool {
        let Self { id, element, quantization, shape } = self;
        (id.as_str(), *element, *quantization, shape) == tensor.signature()
    }
}

impl Signatures {
    /// Whether these tensors have these ids, element types and shapes.
    pub fn has_tensors(&self, tensors: &[TensorView<'_>]) -> bool {
        self.0.len() == tensors.len()
            && self.0.iter().zip(tensors).all(|(signature, tensor)| signature == tensor)
    }

    /// Whether these tensors have these ids, in any shapes.
    pub fn has_ids(&self, tensors: &[TensorView<'_>]) -> bool {
        self.0.len() == tensors.len()
            && self.0.iter().zip(tensors).all(|(known, tensor)| known.id == tensor.id)
    }

    /// Takes the signatures of these tensors. Does not allocate if their ids are known.
    pub fn set(&mut self, tensors: &[TensorView<'_>]) {
        self.0.resize_with(tensors.len(), Signature::default);
        for (signature, tensor) in self.0.iter_mut().zip(tensors) {
            if signature.id != tensor.id {
                signature.id = tensor.id.to_owned();
            }
            signature.element = tensor.element;
            signature.quantization = tensor.quantization;
            signature.shape = tensor.shape.clone();
        }
    }
}

impl Plan {
    /// A plan for `tensors`, for which `choice` was made.
    pub fn new(tensors: &[TensorView<'_>], mut choice: Choice, params: Params) -> Self {
        let details = Details::prepare(&mut choice.layout, params.masks);
        let mut signatures = Signatures::default();
        signatures.set(tensors);
        Self { tensors: signatures, choice, details, params }
    }

    /// The decoder and its layout of the tensors.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Where the details of survivors are in their columns.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// Returns true if the plan was made for parameters with an equal [`Params::masks`], on which the layout depends.
    pub fn has_masks(&self, params: &Params) -> bool {
        self.params.masks == params.masks
    }

    /// Returns true if the plan was made for tensors with these ids, element types and shapes.
    pub fn has_tensors(&self, tensors: &[TensorView<'_>]) -> bool {
        self.tensors.has_tensors(tensors)
    }

    /// Returns true if the plan was made for tensors with these ids, in any shapes.
    pub fn has_ids(&self, tensors: &[TensorView<'_>]) -> bool {
        self.tensors.has_ids(tensors)
    }

    /// Adapts the plan to tensors of other shapes, such as windows, whose number differs from frame to frame. `choose`
    /// chooses the decoder for them, if they differ. Returns false if its layout needs other parameters, and
    /// so a new plan. Does not allocate if the tensors' ids are equal, unless `choose` does.
    ///
    /// # Errors
    /// The errors of `choose`.
    pub fn adapt<E>(
        &mut self,
        tensors: &[TensorView<'_>],
        choose: impl FnOnce() -> Result<Choice, E>,
    ) -> Result<bool, E> {
        if self.has_tensors(tensors) {
            return Ok(true);
        }
        let mut choice = choose()?;
        if !self.choice.layout.has_same_params(&choice.layout) {
            return Ok(false);
        }
        self.details = Details::prepare(&mut choice.layout, self.params.masks);
        self.choice = choice;
        self.tensors.set(tensors);
        Ok(true)
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters if they differ. Returns whether they do. Does not allocate if the plan has had as many
    /// thresholds and rules of classes.
    pub fn set_params(&mut self, params: &Params) -> bool {
        let differs = self.params != *params;
        if differs {
            copy(params, &mut self.params);
        }
        differs
    }

    /// The number of anchors of an image, or with multi-label, of pairs of anchor and class.
    pub fn anchors(&self) -> usize {
        let layout = &self.choice.layout;
        let anchors = layout.anchors();
        if self.params.multi_label && !layout.has_class_field() {
            anchors.saturating_mul(layout.score.components)
        } else {
            anchors
        }
    }
}

/// Copies parameters into the memory of others.
fn copy(from: &Params, to: &mut Params) {
    let mut class_rules = std::mem::take(&mut to.class_rules);
    class_rules.clone_from(&from.class_rules);
    let ClassThresholds { default, per_class: thresholds } = &from.thresholds;
    let mut per_class = std::mem::take(&mut to.thresholds.per_class);
    per_class.clone_from(thresholds);
    let thresholds = ClassThresholds { default: *default, per_class };
    *to = Params { thresholds, class_rules, ..*from };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder::{self, ChoiceError, Options};
    use crate::engine::ClassRule;

    const NUMBERS: [f32; 70] = [0.5; 70];

    fn choose(tensor: &TensorView<'_>) -> Result<Choice, ChoiceError> {
        decoder::choose(std::slice::from_ref(tensor), None, Options::default())
    }

    fn plan(tensor: &TensorView<'_>) -> Plan {
        Plan::new(std::slice::from_ref(tensor), choose(tensor).unwrap(), Params::default())
    }

    fn windows(count: usize) -> TensorView<'static> {
        TensorView::from_slice("windows", &[count, 4], &NUMBERS[..4 * count])
    }

    #[test]
    fn the_decoder_is_chosen_again_only_for_other_tensors() {
        let mut plan = plan(&windows(3));
        let not_needed = || -> Result<Choice, ()> { panic!("the tensors are the same") };
        assert_eq!(plan.adapt(&[windows(3)], not_needed), Ok(true));
        assert_eq!(plan.adapt(&[windows(5)], || choose(&windows(5))), Ok(true));
        assert_eq!(plan.choice().layout, choose(&windows(5)).unwrap().layout);
        assert!(plan.has_tensors(&[windows(5)]) && !plan.has_tensors(&[windows(3)]));
        assert_eq!(plan.adapt(&[windows(2)], || Err("no decoder")), Err("no decoder"));
        assert!(plan.has_tensors(&[windows(5)]));
    }

    #[test]
    fn a_layout_of_other_classes_needs_a_new_plan() {
        let yolov8 = |rows: usize| {
            TensorView::from_slice("yolo-v8-out", &[1, rows, 10], &NUMBERS[..10 * rows])
        };
        let mut plan = plan(&yolov8(6));
        assert_eq!(plan.adapt(&[yolov8(7)], || choose(&yolov8(7))), Ok(false));
        // The plan is unchanged.
        assert!(plan.has_tensors(&[yolov8(6)]));
        assert_eq!(plan.choice().layout, choose(&yolov8(6)).unwrap().layout);
    }

    #[test]
    fn parameters_are_replaced_if_they_differ() {
        let mut plan = plan(&windows(3));
        let thresholds = ClassThresholds { default: 0.5, per_class: vec![0.25, 0.75] };
        let rule =
            ClassRule { iou_threshold: Some(0.7), max_detections: 3, ..ClassRule::default() };
        let class_rules = vec![ClassRule::default(), rule];
        let params = Params { thresholds, class_rules, max_candidates: 7, ..Params::default() };
        assert!(plan.set_params(&params));
        assert_eq!(plan.params(), &params);
        assert!(!plan.set_params(&params));
    }
}
