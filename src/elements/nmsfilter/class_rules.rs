// SPDX-License-Identifier: MIT OR Apache-2.0
//! The properties `classes` and `class-thresholds`: lists of classes by number or by label.
//!
//! In: the texts of the properties, the labels and the decoder. Out: the score threshold of each class. A name
//! that consists of digits is always the number of a class, even if a label is the same.

use super::list::entries;
use crate::decoder::{Choice, MAX_CLASSES};
use crate::engine::ClassThresholds;
use crate::output::Labels;

/// An invalid list of classes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClassRuleError {
    #[error(
        "{property}: there is no class {name:?}; expected a number below {MAX_CLASSES}, or a label that \
         regions have ({labels} labels loaded)"
    )]
    UnknownClass { property: &'static str, name: String, labels: usize },
    #[error(
        "class-thresholds: cannot read {entry:?}; expected CLASS:THRESHOLD, as in person:0.5,7:0.3"
    )]
    Entry { entry: String },
}

/// The threshold of each class: that of `class_thresholds` if it lists the class, otherwise
/// `score`. If `classes` is not empty, the threshold of classes that it does not list is infinite.
///
/// # Errors
/// If an entry cannot be parsed, or names no class.
pub(super) fn thresholds(
    score: f32,
    classes: Option<&str>,
    class_thresholds: Option<&str>,
    labels: &Labels,
    choice: &Choice,
) -> Result<ClassThresholds, ClassRuleError> {
    let class = |property, name: &str| class(property, name, labels, choice);
    let mut rules = ClassThresholds::uniform(score);
    let mut kept = Vec::new();
    for name in entries(classes) {
        kept.push(class("classes", &name)?);
    }
    if !kept.is_empty() {
        rules.default = f32::INFINITY;
        for &class in &kept {
            set_threshold(&mut rules, class, score);
        }
    }
    for entry in entries(class_thresholds) {
        let malformed = || ClassRuleError::Entry { entry: entry.clone() };
        let (name, threshold) = entry.rsplit_once(':').ok_or_else(malformed)?;
        let threshold: f32 = threshold.trim().parse().map_err(|_| malformed())?;
        if !threshold.is_finite() {
            return Err(malformed());
        }
        let class = class("class-thresholds", name.trim())?;
        if kept.is_empty() || kept.contains(&class) {
            set_threshold(&mut rules, class, threshold);
        }
    }
    Ok(rules)
}

fn class(
    property: &'static str,
    name: &str,
    labels: &Labels,
    choice: &Choice,
) -> Result<usize, ClassRuleError> {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let class = match is_number {
        true => name.parse().ok(),
        false => labels.class(name, choice.decoder, choice.layout.classes),
    };
    class.filter(|&class| class < MAX_CLASSES).ok_or_else(|| ClassRuleError::UnknownClass {
        property,
        name: name.to_owned(),
        labels: labels.count(),
    })
}

fn set_threshold(rules: &mut ClassThresholds, class: usize, threshold: f32) {
    if class >= rules.per_class.len() {
        rules.per_class.resize(class + 1, rules.default);
    }
    rules.per_class[class] = threshold;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder;
    use crate::tensor::TensorView;

    fn of(classes: &str, class_thresholds: &str) -> Result<ClassThresholds, ClassRuleError> {
        with(Some(classes), Some(class_thresholds), &Labels::default())
    }

    /// The rules for windows.
    fn with(
        classes: Option<&str>,
        class_thresholds: Option<&str>,
        labels: &Labels,
    ) -> Result<ClassThresholds, ClassRuleError> {
        let tensor = TensorView::from_slice("windows", &[1, 4], &[0.0f32; 4]);
        let choice = decoder::choose(&[tensor], None, decoder::Options::default()).unwrap();
        thresholds(0.25, classes, class_thresholds, labels, &choice)
    }

    #[test]
    fn labels_of_the_decoder_are_classes() {
        assert_eq!(of("object", "").unwrap(), of("0", "").unwrap());
        assert_eq!(of("", "object:0.5").unwrap(), of("", "0:0.5").unwrap());
    }

    #[test]
    fn empty_lists_give_every_class_the_score_threshold() {
        assert_eq!(of("", "").unwrap(), ClassThresholds::uniform(0.25));
    }

    #[test]
    fn classes_that_are_not_listed_are_excluded() {
        let rules = of(" 2, 0 ", "").unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|class| rules.of(class)),
            [0.25, f32::INFINITY, 0.25, f32::INFINITY]
        );
    }

    #[test]
    fn classes_without_a_threshold_of_their_own_use_the_score_threshold() {
        let rules = of("", "1:0.5,3:-2").unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|class| rules.of(class)), [0.25, 0.5, 0.25, -2.0, 0.25]);
    }

    #[test]
    fn a_class_threshold_does_not_include_an_excluded_class() {
        let rules = of("1", "2:0.1").unwrap();
        assert_eq!(rules.of(2), f32::INFINITY);
    }

    #[test]
    fn the_lowest_threshold_considers_only_classes_of_the_model() {
        let rules = of("", "1:0.5,3:-2").unwrap();
        assert_eq!(
            [1, 2, 3, 4, 5].map(|classes| rules.lowest(classes)),
            [0.25, 0.25, 0.25, -2.0, -2.0]
        );
        assert_eq!(of("7", "").unwrap().lowest(2), f32::INFINITY);
    }

    /// The labels of a file with these lines.
    fn labels(name: &str, lines: &str) -> Labels {
        let file = std::env::temp_dir().join(format!("nmsfilter-{name}-{}", std::process::id()));
        std::fs::write(&file, lines).unwrap();
        let labels = Labels::load(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        labels
    }

    #[test]
    fn classes_can_be_given_by_label() {
        let labels = labels("labels", "person\ntraffic light\n");
        let rules = with(Some("traffic light"), Some("person:0.1"), &labels).unwrap();
        assert_eq!([0, 1].map(|class| rules.of(class)), [f32::INFINITY, 0.25]);
    }

    #[test]
    fn a_number_is_a_class_number_even_if_a_label_equals_it() {
        let labels = labels("numbers", "zero\n7\n70000\n");
        let rules = with(Some("7"), Some("7:0.5"), &labels).unwrap();
        assert_eq!([1, 7].map(|class| rules.of(class)), [f32::INFINITY, 0.5]);
        let error = with(Some("70000"), None, &labels).unwrap_err();
        assert!(error.to_string().contains("there is no class \"70000\""), "{error}");
    }

    #[test]
    fn an_empty_name_is_refused_even_if_a_class_has_no_label() {
        let labels = labels("none", "person\n\ncat\n");
        let error = with(None, Some(":0.5"), &labels).unwrap_err();
        assert!(error.to_string().contains("there is no class \"\""), "{error}");
    }

    #[test]
    fn errors_quote_the_invalid_entry() {
        let message = |result: Result<_, ClassRuleError>| result.unwrap_err().to_string();
        assert!(message(of("cat", "")).contains("classes: there is no class \"cat\""));
        assert!(message(of("-1", "")).contains("\"-1\""));
        assert!(message(of("99999999", "")).contains("number below 65536"));
        assert!(message(of("", "3")).contains("expected CLASS:THRESHOLD"));
        assert!(message(of("", "3:x")).contains("\"3:x\""));
        assert!(message(of("", "3:inf")).contains("\"3:inf\""));
    }
}
