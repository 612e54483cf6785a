// SPDX-License-Identifier: MIT OR Apache-2.0
//! The property `quantization`: the scale and the zero point of tensors by id.
//!
//! In: the text of the property, and tensors. Out: the tensors with this quantization, which replaces the quantization of
//! the metadata.

use arrayvec::ArrayVec;

use super::SettingsError;
use crate::elements::list::entries;
use crate::input::MAX_TENSORS;
use nmsfilter_core::tensor::{Quantization, TensorView};

/// The quantization of tensors by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::elements::nmsfilter) struct QuantizationRules(Vec<(String, Quantization)>);

impl QuantizationRules {
    /// The rules of the property's text.
    ///
    /// # Errors
    /// If an entry cannot be read.
    pub fn new(text: Option<&str>) -> Result<Self, SettingsError> {
        let mut rules: Vec<(String, Quantization)> = Vec::new();
        for entry in entries(text) {
            let malformed = || {
                SettingsError(format!(
                    "quantization: cannot read {entry:?}; expected ID:SCALE:ZERO-POINT, as in output0:0.00390625:-128"
                ))
            };
            // An id can have colons, as in TensorFlow's names.
            let mut parts = entry.rsplitn(3, ':').map(str::trim);
            let [Some(zero_point), Some(scale), Some(id)] =
                [parts.next(), parts.next(), parts.next()]
            else {
                return Err(malformed());
            };
            let scale: f32 = scale.parse().map_err(|_| malformed())?;
            let zero_point: i32 = zero_point.parse().map_err(|_| malformed())?;
            let quantization = Quantization::new(scale, zero_point).ok_or_else(|| {
                SettingsError(format!(
                    "quantization: {entry:?} is out of range; expected a scale above 0 and a zero point from -{max} to \
                     {max}",
                    max = Quantization::MAX_ZERO_POINT
                ))
            })?;
            if rules.iter().any(|(known, _)| known == id) {
                return Err(SettingsError(format!(
                    "quantization: there are two entries for tensor {id}; remove one"
                )));
            }
            rules.push((id.to_owned(), quantization));
        }
        Ok(Self(rules))
    }

    /// Checks that each rule has a tensor, whose type contains the zero point.
    ///
    /// # Errors
    /// If a rule has no tensor, or the tensor has another type.
    pub fn check(&self, tensors: &[TensorView<'_>]) -> Result<(), SettingsError> {
        for (id, quantization) in &self.0 {
            let zero_point = quantization.zero_point();
            let of_id = tensors.iter().filter(|tensor| tensor.id == id);
            let found = of_id.map(|tensor| tensor.element).find_map(|element| {
                element.zero_points().map(|zero_points| (element, zero_points))
            });
            let Some((element, zero_points)) = found else {
                let all: Vec<String> = tensors.iter().map(ToString::to_string).collect();
                return Err(SettingsError(format!(
                    "quantization: there is no tensor {id} of type i8 or u8; the buffer carries {}: correct the id, or \
                     remove the entry",
                    all.join(", ")
                )));
            };
            if !zero_points.contains(&zero_point) {
                let (least, greatest) = zero_points.into_inner();
                return Err(SettingsError(format!(
                    "quantization: the zero point {zero_point} of tensor {id} is not a number of type {element}; expected \
                     {least} to {greatest}"
                )));
            }
        }
        Ok(())
    }

    /// Sets the quantization of the tensors that have a rule. Does not allocate.
    pub fn apply(&self, tensors: &mut [TensorView<'_>]) {
        for tensor in tensors {
            if let Some((_, quantization)) = self.0.iter().find(|(id, _)| id == tensor.id) {
                *tensor = tensor.clone().with_quantization(Some(*quantization));
            }
        }
    }

    /// The tensors of a buffer with their quantization. Does not allocate.
    pub fn applied<'t>(&self, tensors: &[TensorView<'t>]) -> ArrayVec<TensorView<'t>, MAX_TENSORS> {
        let mut applied: ArrayVec<_, MAX_TENSORS> =
            tensors.iter().take(MAX_TENSORS).cloned().collect();
        self.apply(&mut applied);
        applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Result<QuantizationRules, String> {
        QuantizationRules::new(Some(text)).map_err(|error| error.to_string())
    }

    fn quantization(scale: f32, zero_point: i32) -> Quantization {
        Quantization::new(scale, zero_point).unwrap()
    }

    #[test]
    fn entries_have_an_id_a_scale_and_a_zero_point() {
        assert_eq!(rules("").unwrap(), QuantizationRules::default());
        let expected = [("output0", 0.003_906_32, -128), ("boxes", 0.0183, 30), ("call:0", 1.0, 0)];
        let expected = expected.map(|(id, scale, zero)| (id.to_owned(), quantization(scale, zero)));
        let found = rules("output0:0.00390632:-128, boxes : 0.0183 : 30,call:0:1:0").unwrap();
        assert_eq!(found.0, expected);
        assert_eq!(rules(r"a\,b:1:0").unwrap().0[0].0, "a,b");
    }

    #[test]
    fn errors_quote_the_invalid_entry() {
        for entry in ["output0", "output0:0.1", "output0:x:0", "output0:0.1:0.5", "0.1:0"] {
            let message = rules(&format!("good:1:0,{entry}")).unwrap_err();
            let expected =
                format!("quantization: cannot read {entry:?}; expected ID:SCALE:ZERO-POINT");
            assert!(message.starts_with(&expected), "{message}");
        }
        for entry in ["a:0:0", "a:-0.1:0", "a:nan:0", "a:inf:0", "a:1e-40:0", "a:0.1:65537"] {
            let message = rules(entry).unwrap_err();
            assert!(message.contains(&format!("{entry:?} is out of range")), "{message}");
        }
        let message = rules("a:1:0,a:2:0").unwrap_err();
        assert_eq!(message, "quantization: there are two entries for tensor a; remove one");
    }

    #[test]
    fn a_rule_replaces_the_quantization_of_the_metadata_of_its_tensor_alone() {
        let elements = [0u8; 4];
        let tensor = |id| TensorView::from_slice(id, &[4], &elements);
        let metadata = Some(quantization(0.5, 3));
        let tensors = [tensor("a").with_quantization(metadata), tensor("b")];
        let rules = rules("a:0.25:7").unwrap();
        let of = |rules: &QuantizationRules| {
            rules.applied(&tensors).iter().map(|tensor| tensor.quantization).collect::<Vec<_>>()
        };
        assert_eq!(of(&rules), [Some(quantization(0.25, 7)), None]);
        assert_eq!(of(&QuantizationRules::default()), [metadata, None]);
    }

    #[test]
    fn a_zero_point_outside_the_type_is_an_error() {
        let tensors = [
            TensorView::from_slice("a", &[4], &[0i8; 4]),
            TensorView::from_slice("b", &[4], &[0u8; 4]),
        ];
        let check = |text: &str| rules(text).unwrap().check(&tensors);
        for valid in ["a:1:-128,b:1:0", "a:1:127,b:1:255"] {
            assert_eq!(check(valid), Ok(()));
        }
        for (entry, range) in
            [("a:1:128", "-128 to 127"), ("a:1:300", "-128 to 127"), ("b:1:-1", "0 to 255")]
        {
            let message = check(entry).unwrap_err().to_string();
            assert!(message.starts_with("quantization: the zero point "), "{message}");
            assert!(message.ends_with(&format!("; expected {range}")), "{message}");
        }
    }

    #[test]
    fn a_rule_without_a_quantized_tensor_is_an_error() {
        let tensors = [
            TensorView::from_slice("a", &[4], &[0u8; 4]),
            TensorView::from_slice("b", &[4], &[0.0f32; 4]),
        ];
        let check =
            |text: &str| rules(text).unwrap().check(&tensors).map_err(|error| error.to_string());
        assert_eq!(check("a:1:0"), Ok(()));
        for id in ["b", "c"] {
            let entries = format!("a:1:0,{id}:1:0");
            assert_eq!(
                check(&entries).unwrap_err(),
                format!(
                    "quantization: there is no tensor {id} of type i8 or u8; the buffer carries a (u8 4), b (f32 \
                     4): correct the id, or remove the entry"
                )
            );
        }
    }
}
