// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed once for many runs of an engine.
//!
//! In: the ids, element types and shapes of tensors, the choice of a decoder for them, parameters, and the [`Place`]s
//! of images. Out: a [`Plan`], which has the layout, and the engine's parameters for each place.

mod place;

pub use place::Place;

use crate::decoder::{Choice, Layout};
use crate::engine::detail::Details;
use crate::engine::{ClassThresholds, Params};
use crate::tensor::{ElementType, Quantization, Shape, TensorView};

/// The greatest number of places whose parameters are kept.
const MAX_PLACES: usize = 64;

/// How tensors are decoded and suppressed, until their ids, types or shapes or the settings change.
pub struct Plan {
    tensors: Vec<Signature>,
    choice: Choice,
    details: Details,
    /// The parameters before [`Place::apply`].
    params: Params,
    places: Vec<(Place, Params)>,
}

/// What the choice of a decoder depends on, for one tensor.
#[derive(Default, PartialEq)]
struct Signature {
    id: String,
    element: ElementType,
    quantization: Option<Quantization>,
    shape: Shape,
}

impl PartialEq<TensorView<'_>> for Signature {
    fn eq(&self, tensor: &TensorView<'_>) -> bool {
        self.id == tensor.id
            && (self.element, self.quantization) == (tensor.element, tensor.quantization)
            && self.shape == tensor.shape
    }
}

impl Plan {
    /// A plan for `tensors`, for which `choice` was made. Lengths in `params` are in pixels of the frames, or of the
    /// model's input if images are in no frame; what depends on the place is set by [`at`](Self::at).
    pub fn new(tensors: &[TensorView<'_>], mut choice: Choice, params: Params) -> Self {
        let details = Details::prepare(&mut choice.layout, params.masks);
        let mut plan = Self { tensors: Vec::new(), choice, details, params, places: Vec::new() };
        plan.set_signatures(tensors);
        plan
    }

    /// The decoder and its layout of the tensors.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Where the details of survivors are in their columns.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// Whether the plan was made for parameters with the same [`Params::masks`], on which the layout depends.
    pub fn has_masks(&self, params: &Params) -> bool {
        self.params.masks == params.masks
    }

    /// Whether the plan was made for tensors with these ids, element types and shapes.
    pub fn has_tensors(&self, tensors: &[TensorView<'_>]) -> bool {
        self.tensors.len() == tensors.len()
            && self.tensors.iter().zip(tensors).all(|(signature, tensor)| signature == tensor)
    }

    /// Whether both plans were made for tensors with the same ids, element types and shapes.
    pub fn has_tensors_of(&self, other: &Self) -> bool {
        self.tensors == other.tensors
    }

    /// Adapts the plan to tensors of other shapes, such as windows, whose number differs from frame to frame. `choose`
    /// chooses the decoder for them, if they differ. Returns false if its layout needs other parameters, and
    /// so a new plan. Does not allocate if the tensors' ids are the same, unless `choose` does.
    ///
    /// # Errors
    /// Those of `choose`.
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
        self.set_signatures(tensors);
        Ok(true)
    }

    /// The engine's parameters for images at `place`, if they are known.
    pub fn params(&self, place: &Place) -> Option<&Params> {
        self.places.iter().find_map(|(known, params)| (known == place).then_some(params))
    }

    /// The layout, and the engine's parameters for images at `place`. They are computed once; does not allocate if they
    /// are known.
    pub fn at(&mut self, place: Place) -> (&Layout, &Params) {
        let position = self.places.iter().position(|(known, _)| *known == place);
        let index = position.unwrap_or_else(|| {
            if self.places.len() == MAX_PLACES {
                self.places.clear();
            }
            let mut params = self.params.clone();
            place.apply(&self.choice.layout, &mut params);
            self.places.push((place, params));
            self.places.len() - 1
        });
        (&self.choice.layout, &self.places[index].1)
    }

    /// Replaces the parameters with which the plan was made, at all places, if they differ. Returns whether they do. Does
    /// not allocate if it has had as many thresholds and rules of classes.
    pub fn set_params(&mut self, params: &Params) -> bool {
        if self.params == *params {
            return false;
        }
        copy(params, &mut self.params);
        for (place, at_place) in &mut self.places {
            copy(params, at_place);
            place.apply(&self.choice.layout, at_place);
        }
        true
    }

    /// The number of anchors of an image, or with multi-label, of pairs of anchor and class.
    pub fn anchors(&self, params: &Params) -> usize {
        let layout = &self.choice.layout;
        let anchors = layout.anchors();
        if params.multi_label && !layout.has_class_field() {
            anchors.saturating_mul(layout.score.components)
        } else {
            anchors
        }
    }

    fn set_signatures(&mut self, tensors: &[TensorView<'_>]) {
        self.tensors.resize_with(tensors.len(), Signature::default);
        for (signature, tensor) in self.tensors.iter_mut().zip(tensors) {
            if signature.id != tensor.id {
                signature.id = tensor.id.to_owned();
            }
            signature.element = tensor.element;
            signature.quantization = tensor.quantization;
            signature.shape = tensor.shape.clone();
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
    fn normalized_coordinates_are_multiplied_by_the_size_of_the_models_input() {
        let place = Place::Input([640.0, 480.0]);
        assert_eq!(*plan(&windows(3)).at(place).1, Params::default());
        let options =
            Options { coordinates: decoder::Coordinates::Normalized, ..Options::default() };
        let tensors = [windows(3)];
        let choice = decoder::choose(&tensors, None, options).unwrap();
        let mut plan = Plan::new(&tensors, choice, Params::default());
        let expected = Params { scale: [640.0, 480.0], ..Params::default() };
        assert_eq!(*plan.at(place).1, expected);
        assert_eq!(plan.params(&place), Some(&expected));
        assert_eq!(plan.params(&Place::Input([1.0; 2])), None);
    }

    #[test]
    fn places_beyond_the_maximum_replace_earlier_ones() {
        let mut plan = plan(&windows(3));
        for width in 0..3 * MAX_PLACES {
            let place = Place::Input([width as f32, 1.0]);
            plan.at(place);
            assert!(plan.params(&place).is_some());
            assert!(plan.places.len() <= MAX_PLACES);
        }
    }

    #[test]
    fn other_parameters_apply_at_every_place() {
        let mut plan = plan(&windows(3));
        let places = [[1.0; 2], [2.0; 2]].map(Place::Input);
        for place in places {
            plan.at(place);
        }
        let thresholds = ClassThresholds { default: 0.5, per_class: vec![0.25, 0.75] };
        let rule =
            ClassRule { iou_threshold: Some(0.7), max_detections: 3, ..ClassRule::default() };
        let class_rules = vec![ClassRule::default(), rule];
        let params = Params { thresholds, class_rules, max_candidates: 7, ..Params::default() };
        plan.set_params(&params);
        assert_eq!(
            places.map(|place| plan.params(&place).cloned()),
            [Some(params.clone()), Some(params)]
        );
    }
}
