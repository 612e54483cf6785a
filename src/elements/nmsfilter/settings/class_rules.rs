// SPDX-License-Identifier: MIT OR Apache-2.0
//! The properties `classes`, `class-thresholds`, `class-iou-thresholds`, `class-max-detections` and `class-sizes`:
//! lists of classes by number or by label.
//!
//! In: the texts of the properties, the labels, the decoder, and a configuration of nvinfer. Out: the score threshold and
//! the rules of each class. A label stands for all classes that have it. A name that consists of digits is always the number of a class, even if a label has this name.
//! A property's value for the class applies, else the configuration's group of the class, else the value for all classes.

use super::{Settings, SettingsError};
use crate::elements::list::entries;
use crate::output::Labels;
use nmsfilter_core::decoder::{Choice, MAX_CLASSES, Scores};
use nmsfilter_core::engine::{ClassRule, ClassThresholds, SizeLimits};

/// Thresholds from here on are a mistake with decoders of probabilities. A little more than 1 excludes a class, but
/// percentages are greater.
const MIN_PERCENTAGE: f32 = 2.0;

/// A property with a value for each class that it lists.
struct List<T> {
    property: &'static str,
    expected: &'static str,
    /// Parses a value; `None` if the text is invalid.
    parse: fn(&str) -> Option<T>,
}

const THRESHOLDS: List<f32> = List {
    property: "class-thresholds",
    expected: "CLASS:THRESHOLD, as in person:0.5,7:0.3",
    parse: |text| text.parse().ok().filter(|threshold: &f32| threshold.is_finite()),
};

const IOU_THRESHOLDS: List<f32> = List {
    property: "class-iou-thresholds",
    expected: "CLASS:THRESHOLD with a threshold from 0 to 1, as in person:0.5,7:0.3",
    parse: |text| text.parse().ok().filter(|threshold| (0.0..=1.0).contains(threshold)),
};

const MAX_DETECTIONS: List<u32> = List {
    property: "class-max-detections",
    expected: "CLASS:NUMBER, as in person:100,7:20",
    parse: |text| text.parse().ok(),
};

const SIZES: List<SizeLimits> = List {
    property: "class-sizes",
    expected: "CLASS:WIDTHxHEIGHT..WIDTHxHEIGHT, the first or the last of which can be left out, and none greater \
               than the other, with a last of at least 1x1 pixels, as in person:16x32..400x800,7:..64x64",
    parse: sizes,
};

/// The values that properties list by class.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::elements::nmsfilter) struct ClassRules {
    pub thresholds: ClassThresholds,
    /// The other rules, by class.
    pub rules: Vec<ClassRule>,
}

impl ClassRules {
    /// Combines the rules of all properties. If `classes` is not empty, the threshold of classes that it does not list is
    /// infinite.
    ///
    /// # Errors
    /// If an entry cannot be parsed, or names no class.
    pub fn new(
        settings: &Settings,
        labels: &Labels,
        choice: &Choice,
    ) -> Result<Self, SettingsError> {
        let classes = Classes { labels, choice };
        let mut made = Self { thresholds: Self::of_file(settings), rules: Vec::new() };
        let limits = classes.list(&MAX_DETECTIONS, settings.class_max_detections.as_deref())?;
        made.set_rules_of_file(settings, choice.layout.classes, |class| {
            limits.iter().any(|&(listed, _)| listed == class)
        });
        for (class, limit) in limits {
            made.rule(class).max_detections = limit as usize;
        }
        for (class, threshold) in
            classes.list(&IOU_THRESHOLDS, settings.class_iou_thresholds.as_deref())?
        {
            made.rule(class).iou_threshold = Some(threshold);
        }
        for (class, limits) in classes.list(&SIZES, settings.class_sizes.as_deref())? {
            made.rule(class).sizes = Some(limits);
        }
        let thresholds = &mut made.thresholds;
        let mut kept = Vec::new();
        for name in entries(settings.classes.as_deref()) {
            kept.extend(classes.numbers("classes", &name)?);
        }
        let of_file = settings.nvinfer.as_ref().map(|config| &config.excluded);
        if kept.is_empty() {
            for &class in of_file.into_iter().flatten() {
                set_threshold(thresholds, class, f32::INFINITY);
            }
        } else {
            let of_all = std::mem::replace(thresholds, ClassThresholds::uniform(f32::INFINITY));
            for &class in &kept {
                set_threshold(thresholds, class, of_all.of(class as u32));
            }
        }
        let is_excluded = |class: usize| match kept.is_empty() {
            true => of_file.is_some_and(|excluded| excluded.contains(&class)),
            false => !kept.contains(&class),
        };
        for (class, threshold) in classes.list(&THRESHOLDS, settings.class_thresholds.as_deref())? {
            if threshold >= MIN_PERCENTAGE && choice.decoder.scores == Scores::Probabilities {
                return Err(SettingsError(format!(
                    "class-thresholds: the threshold of class {class} is {threshold}, but scores of decoder {} are \
                     probabilities from 0 to 1; divide percentages by 100, and set 1.1 to exclude a class",
                    choice.decoder.name()
                )));
            }
            if !is_excluded(class) {
                set_threshold(thresholds, class, threshold);
            }
        }
        Ok(made)
    }

    /// The score thresholds of the configuration's groups, else `score-threshold`.
    fn of_file(settings: &Settings) -> ClassThresholds {
        let mut thresholds = ClassThresholds::uniform(settings.scalars.thresholds.default);
        let Some(config) = &settings.nvinfer else { return thresholds };
        for (&class, own) in &config.classes {
            if own.has_threshold {
                set_threshold(&mut thresholds, class, own.score_threshold());
            }
        }
        thresholds
    }

    /// Sets the configuration's rules for this number of classes; the greatest number of survivors only for classes for
    /// which `has_own` is false.
    fn set_rules_of_file(
        &mut self,
        settings: &Settings,
        classes: usize,
        has_own: impl Fn(usize) -> bool,
    ) {
        let Some(config) = &settings.nvinfer else { return };
        // A limit for all classes applies to each of them.
        let end = match config.all.topk {
            Some(_) => classes,
            None => config.classes.keys().next_back().map_or(0, |last| last + 1),
        };
        for class in 0..end.min(classes) {
            let own = config.classes.get(&class);
            let iou_threshold = own.and_then(|own| own.iou_threshold);
            let topk = config.of(class).topk.filter(|_| !has_own(class));
            if topk == Some(0) {
                set_threshold(&mut self.thresholds, class, f32::INFINITY);
            }
            if iou_threshold.is_some() || topk.is_some() {
                let max_detections = topk.unwrap_or(0) as usize;
                *self.rule(class) = ClassRule { iou_threshold, max_detections, sizes: None };
            }
        }
    }

    fn rule(&mut self, class: usize) -> &mut ClassRule {
        if class >= self.rules.len() {
            self.rules.resize(class + 1, ClassRule::default());
        }
        &mut self.rules[class]
    }
}

/// The names of the classes.
struct Classes<'a> {
    labels: &'a Labels,
    choice: &'a Choice,
}

impl Classes<'_> {
    /// The entries of a list, with the numbers of their classes.
    fn list<T: Copy>(
        &self,
        list: &List<T>,
        text: Option<&str>,
    ) -> Result<Vec<(usize, T)>, SettingsError> {
        let &List { property, expected, parse } = list;
        let mut found: Vec<(usize, T)> = Vec::new();
        for entry in entries(text) {
            let malformed =
                || SettingsError(format!("{property}: cannot read {entry:?}; expected {expected}"));
            let (name, value) = entry.rsplit_once(':').ok_or_else(malformed)?;
            let value = parse(value.trim()).ok_or_else(malformed)?;
            let classes = self.numbers(property, name.trim())?;
            for class in classes {
                if found.iter().any(|(other, _)| *other == class) {
                    return Err(SettingsError(format!(
                        "{property}: there are two entries for class {class}; remove one"
                    )));
                }
                found.push((class, value));
            }
        }
        Ok(found)
    }

    /// The classes with this number or label; at least one.
    fn numbers(&self, property: &'static str, name: &str) -> Result<Vec<usize>, SettingsError> {
        let Self { labels, choice } = self;
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let found: Vec<usize> = match is_number {
            true => name.parse().into_iter().collect(),
            false => labels.classes(name, choice).collect(),
        };
        if found.is_empty() || found.iter().any(|&class| class >= MAX_CLASSES) {
            return Err(SettingsError(format!(
                "{property}: there is no class {name:?}; expected a number below {MAX_CLASSES}, or a label that regions \
                 have ({} labels loaded)",
                labels.count()
            )));
        }
        Ok(found)
    }
}

/// Parses limits of the form `WIDTHxHEIGHT..WIDTHxHEIGHT`.
fn sizes(text: &str) -> Option<SizeLimits> {
    let (min, max) = text.split_once("..")?;
    let sides = |text: &str, otherwise: f32| match text.trim() {
        "" => Some([otherwise; 2]),
        text => {
            let (width, height) = text.split_once('x')?;
            let side = |text: &str| {
                text.trim().parse().ok().filter(|side: &f32| side.is_finite() && *side >= 0.0)
            };
            Some([side(width)?, side(height)?])
        }
    };
    let is_empty = min.trim().is_empty() && max.trim().is_empty();
    let limits = SizeLimits { min: sides(min, 0.0)?, max: sides(max, f32::INFINITY)? };
    let has_pixels = limits.max.iter().all(|&side| side >= 1.0);
    let is_range = has_pixels && limits.min[0] <= limits.max[0] && limits.min[1] <= limits.max[1];
    (is_range && !is_empty).then_some(limits)
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
    use nmsfilter_core::decoder;
    use nmsfilter_core::tensor::TensorView;

    fn of(classes: &str, class_thresholds: &str) -> Result<ClassThresholds, SettingsError> {
        with(Some(classes), Some(class_thresholds), &Labels::default())
    }

    /// The rules for windows.
    fn with(
        classes: Option<&str>,
        class_thresholds: Option<&str>,
        labels: &Labels,
    ) -> Result<ClassThresholds, SettingsError> {
        let tensor = TensorView::from_slice("windows", &[1, 4], &[0.0f32; 4]);
        let choice = decoder::choose(&[tensor], None, decoder::Options::default()).unwrap();
        let text = |text: Option<&str>| text.map(str::to_owned);
        let settings = Settings {
            classes: text(classes),
            class_thresholds: text(class_thresholds),
            ..Settings::default()
        };
        ClassRules::new(&settings, labels, &choice).map(|made| {
            assert_eq!(made.rules, []);
            made.thresholds
        })
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
    fn a_class_with_two_entries_is_refused() {
        let labels = labels("twice", "person\ncar\n");
        let error = with(None, Some("person:0.8,car:0.5,0:0.1"), &labels).unwrap_err();
        let expected = "class-thresholds: there are two entries for class 0; remove one";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn percentages_are_refused_where_scores_are_probabilities() {
        let rules = |id: &str, shape: &[usize], thresholds: &str| {
            let numbers = [0.0f32; 84];
            let tensor = TensorView::from_slice(id, shape, &numbers);
            let choice = decoder::choose(&[tensor], None, decoder::Options::default()).unwrap();
            let class_thresholds = Some(thresholds.to_owned());
            let settings = Settings { class_thresholds, ..Settings::default() };
            ClassRules::new(&settings, &Labels::default(), &choice).map(|made| made.thresholds)
        };
        let error = rules("yolo-v8-out", &[1, 7, 12], "0:80").unwrap_err().to_string();
        let expected =
            "class-thresholds: the threshold of class 0 is 80, but scores of decoder yolov8 are";
        assert!(error.starts_with(expected), "{error}");
        // A little more than 1 excludes a class, and windows have any scores.
        assert_eq!(rules("yolo-v8-out", &[1, 7, 12], "0:1.1").unwrap().of(0), 1.1);
        assert_eq!(rules("windows", &[21, 4], "0:80").unwrap().of(0), 80.0);
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

    /// A trainer joins car and truck.
    #[test]
    fn a_label_stands_for_all_classes_that_have_it() {
        let labels = labels("joined", "person\ncar\ncar\n");
        let kept = with(Some("car"), Some("car:0.5"), &labels).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|class| kept.of(class)),
            [f32::INFINITY, 0.5, 0.5, f32::INFINITY]
        );
        let text = |text: &str| Some(text.to_owned());
        let settings = Settings {
            class_iou_thresholds: text("car:0.5"),
            class_max_detections: text("car:7"),
            class_sizes: text("car:8x8.."),
            ..Settings::default()
        };
        let sizes = Some(SizeLimits { min: [8.0; 2], ..SizeLimits::ANY });
        let car = ClassRule { iou_threshold: Some(0.5), max_detections: 7, sizes };
        let expected = [ClassRule::default(), car, car];
        assert_eq!(with_labels(&settings, &labels).unwrap().rules, expected);
        let error = with(None, Some("car:0.5,2:0.1"), &labels).unwrap_err();
        let expected = "class-thresholds: there are two entries for class 2; remove one";
        assert_eq!(error.to_string(), expected);
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

    /// The rules of these properties, without labels.
    fn rules(settings: Settings) -> Result<ClassRules, SettingsError> {
        with_labels(&settings, &Labels::default())
    }

    fn with_labels(settings: &Settings, labels: &Labels) -> Result<ClassRules, SettingsError> {
        let tensor = TensorView::from_slice("windows", &[1, 4], &[0.0f32; 4]);
        let choice = decoder::choose(&[tensor], None, decoder::Options::default()).unwrap();
        ClassRules::new(settings, labels, &choice)
    }

    #[test]
    fn each_list_sets_its_part_of_a_rule() {
        let text = |text: &str| Some(text.to_owned());
        let settings = Settings {
            class_iou_thresholds: text("2:0.5"),
            class_max_detections: text("0:7,2:0"),
            class_sizes: text("2:16x32..400x800.5, 1:8x9..,3: .. 5x6"),
            ..Settings::default()
        };
        let (any, none) = (SizeLimits::ANY, ClassRule::default());
        let sized = |min, max| ClassRule { sizes: Some(SizeLimits { min, max }), ..none };
        let expected = [
            ClassRule { max_detections: 7, ..none },
            sized([8.0, 9.0], any.max),
            ClassRule { iou_threshold: Some(0.5), ..sized([16.0, 32.0], [400.0, 800.5]) },
            sized(any.min, [5.0, 6.0]),
        ];
        assert_eq!(rules(settings).unwrap().rules, expected);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let refused = |settings: Settings| rules(settings).unwrap_err().to_string();
        let text = |text: &str| Some(text.to_owned());
        for entry in ["0:1.5", "0:-0.1", "0:nan", "0:x", "0"] {
            let error =
                refused(Settings { class_iou_thresholds: text(entry), ..Settings::default() });
            assert!(error.starts_with("class-iou-thresholds: cannot read \""), "{error}");
            assert!(error.contains(entry) && error.contains("from 0 to 1"), "{error}");
        }
        for entry in ["0:-1", "0:1.5", "0:4294967296"] {
            let error =
                refused(Settings { class_max_detections: text(entry), ..Settings::default() });
            assert!(error.starts_with("class-max-detections: cannot read \""), "{error}");
        }
        for entry in [
            "0:..",
            "0:..0.5x9",
            "0:8x8",
            "0:8..9",
            "0:9x9..8x10",
            "0:-1x2..",
            "0:..infx3",
            "0:1x..2x2",
        ] {
            let error = refused(Settings { class_sizes: text(entry), ..Settings::default() });
            assert!(error.starts_with("class-sizes: cannot read \""), "{error}");
        }
    }

    #[test]
    fn errors_quote_the_invalid_entry() {
        let message = |result: Result<_, SettingsError>| result.unwrap_err().to_string();
        assert!(message(of("cat", "")).contains("classes: there is no class \"cat\""));
        assert!(message(of("-1", "")).contains("\"-1\""));
        assert!(message(of("99999999", "")).contains("number below 65536"));
        assert!(message(of("", "3")).contains("expected CLASS:THRESHOLD"));
        assert!(message(of("", "3:x")).contains("\"3:x\""));
        assert!(message(of("", "3:inf")).contains("\"3:inf\""));
    }
}
