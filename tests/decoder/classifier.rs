// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifiers: which tensor has the scores, and which classes an image has.

use half::f16;
use nmsfilter_core::decoder::Options;
use nmsfilter_core::decoder::classifier::{self, ClassLimits, ClassOutput, ClassScore};
use nmsfilter_core::decoder::layout::Activation;
use nmsfilter_core::decoder::model_family::ModelFamily;
use nmsfilter_core::engine::{ClassThresholds, Params};
use nmsfilter_core::nms::NmsError;
use nmsfilter_core::reading::{self, Classifiers, Facts, Output, Reading, Settings};
use nmsfilter_core::tensor::{Element, Quantization, TensorView};

const LOGITS: &str = "classification-generic-out";
const PROBABILITIES: &str = "classification-generic-softmaxed-out";

fn activation(activation: Activation) -> Options {
    Options { score_activation: Some(activation), ..Options::default() }
}

fn settings(options: Options) -> Settings<'static> {
    Settings {
        decoder: None,
        classifiers: Classifiers::Always,
        options,
        has_class_thresholds: false,
        classes: None,
    }
}

/// Returns the classes of a tensor, and what contradicts the reading.
fn classify(
    tensor: &TensorView<'_>,
    options: Options,
    ClassLimits { threshold, max }: ClassLimits,
) -> (Vec<ClassScore>, String) {
    let settings = settings(options);
    let tensors = std::slice::from_ref(tensor);
    let facts = Facts { tensors, family: None, in_frame: true, engine: None };
    let thresholds = ClassThresholds::uniform(threshold);
    let params =
        Params { thresholds, multi_label: max != 1, max_detections: max, ..Params::default() };
    let mut made = reading::read(&facts, &settings, |_| Ok::<_, NmsError>(params)).unwrap();
    let Output::Classes(classes) = &mut made.output else { panic!("not of classes") };
    let mut found = Vec::new();
    let evidence = match classes.classify::<NmsError>(0, tensors, &mut found, None) {
        Ok(image) => {
            let texts: Vec<String> = image.notices.iter().map(ToString::to_string).collect();
            assert_eq!(image.is_finite, !texts.concat().contains("expected finite numbers"));
            texts.concat()
        }
        Err(refusal) => refusal.to_string(),
    };
    (found, evidence)
}

/// The scores in double precision by the platform's functions.
fn expected_scores(numbers: &[f32], activation: Activation) -> Vec<f64> {
    let exact = |x: &f32| f64::from(*x);
    match activation {
        Activation::None => numbers.iter().map(exact).collect(),
        Activation::Sigmoid => numbers.iter().map(|x| 1.0 / (1.0 + (-exact(x)).exp())).collect(),
        Activation::Softmax => {
            let powers: Vec<f64> = numbers.iter().map(|x| exact(x).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.iter().map(|power| power / sum).collect()
        }
    }
}

#[test]
fn scores_are_those_of_double_precision_in_descending_order() {
    let mut random = fastrand::Rng::with_seed(11);
    for classes in [1, 2, 3, 10, 1000] {
        for choice in [Activation::None, Activation::Sigmoid, Activation::Softmax] {
            if classes == 1 && choice == Activation::Softmax {
                continue;
            }
            let numbers: Vec<f32> = (0..classes).map(|_| random.f32() * 24.0 - 12.0).collect();
            let tensor = TensorView::from_slice("scores", &[1, classes], &numbers);
            let limits = ClassLimits { threshold: f32::MIN, max: 0 };
            let (found, _) = classify(&tensor, activation(choice), limits);
            let expected = expected_scores(&numbers, choice);
            assert_eq!(found.len(), classes);
            for ClassScore { class, score } in &found {
                let exact = expected[*class as usize];
                let error = (f64::from(*score) - exact).abs() / exact.abs();
                assert!(error < 2e-6, "{choice:?}, class {class}: {score}, expected {exact}");
            }
            let numbers_of = |found: &[ClassScore]| -> Vec<f32> {
                found.iter().map(|it| numbers[it.class as usize]).collect()
            };
            assert!(numbers_of(&found).is_sorted_by(|a, b| a >= b), "{choice:?}");
            // A threshold and a limit leave the first of them.
            let threshold = found[classes / 2].score;
            let (some, _) =
                classify(&tensor, activation(choice), ClassLimits { threshold, max: 0 });
            let reached = found.iter().filter(|it| it.score >= threshold).count();
            assert_eq!(some, found[..reached]);
            let (best, _) =
                classify(&tensor, activation(choice), ClassLimits { threshold, max: 1 });
            assert_eq!(best, found[..1]);
        }
    }
}

#[test]
fn classes_of_equal_scores_are_in_the_order_of_their_numbers() {
    // The sigmoid of both first numbers is 1. The greater number comes first.
    let numbers = [40.0f32, 60.0, -3.0, 60.0];
    let tensor = TensorView::from_slice("scores", &[4], &numbers);
    let limits = ClassLimits { threshold: 0.5, max: 0 };
    let (found, _) = classify(&tensor, activation(Activation::Sigmoid), limits);
    let expected = [1, 3, 0].map(|class| ClassScore { class, score: 1.0 });
    assert_eq!(found, expected);
}

#[test]
fn the_id_of_the_tensor_or_the_model_determines_the_activation() {
    let numbers = [0.0f32; 4];
    let chosen = |id, options, is_softmaxed| {
        let tensor = TensorView::from_slice(id, &[1, 4], &numbers);
        classifier::choose(&[tensor], &options, is_softmaxed).unwrap().0[0].activation
    };
    let none = Options::default();
    assert_eq!(chosen(LOGITS, none, true), Activation::Softmax);
    assert_eq!(chosen(PROBABILITIES, none, false), Activation::None);
    assert_eq!(chosen("output0", none, false), Activation::Softmax);
    assert_eq!(chosen("output0", none, true), Activation::None);
    assert_eq!(chosen(PROBABILITIES, activation(Activation::Sigmoid), false), Activation::Sigmoid);
}

#[test]
fn numbers_of_all_types_are_read() {
    fn best<T: Element>(elements: &[T], quantization: Option<Quantization>) -> ClassScore {
        let tensor = TensorView::from_slice(PROBABILITIES, &[1, 3, 1, 1], elements);
        let tensor = tensor.with_quantization(quantization);
        let limits = ClassLimits { threshold: 0.0, max: 1 };
        classify(&tensor, Options::default(), limits).0[0]
    }
    let expected = ClassScore { class: 2, score: 0.625 };
    assert_eq!(best(&[0.125f32, 0.25, 0.625], None), expected);
    assert_eq!(best(&[0.125f32, 0.25, 0.625].map(f16::from_f32), None), expected);
    let scale = |zero_point| Quantization::new(1.0 / 256.0, zero_point);
    assert_eq!(best(&[32u8, 64, 160], scale(0)), expected);
    assert_eq!(best(&[-96i8, -64, 32], scale(-128)), expected);
}

#[test]
fn an_image_whose_best_score_is_not_finite_has_no_class() {
    let of = |numbers: &[f32]| {
        let tensor = TensorView::from_slice(LOGITS, &[numbers.len()], numbers);
        let limits = ClassLimits { threshold: 0.0, max: 0 };
        let (found, evidence) = classify(&tensor, Options::default(), limits);
        (found.len(), evidence.contains("expected finite numbers"))
    };
    assert_eq!(of(&[1.0, f32::NAN, 2.0]), (0, true));
    assert_eq!(of(&[1.0, f32::INFINITY, 2.0]), (0, true));
    assert_eq!(of(&[f32::NEG_INFINITY; 3]), (0, true));
    // The logarithm of a probability of 0.
    assert_eq!(of(&[1.0, f32::NEG_INFINITY, 2.0]), (3, false));
}

#[test]
fn numbers_that_contradict_the_activation_are_evidence() {
    let evidence = |id, numbers: &[f32]| {
        let tensor = TensorView::from_slice(id, &[numbers.len()], numbers);
        let limits = ClassLimits { threshold: 0.0, max: 0 };
        classify(&tensor, Options::default(), limits).1
    };
    let found = evidence(LOGITS, &[0.1, 0.7, 0.2]);
    assert!(found.contains("probabilities, and softmax makes them almost equal"), "{found}");
    assert_eq!(evidence(LOGITS, &[0.1, 0.7, 0.9]), "");
    assert_eq!(evidence(PROBABILITIES, &[0.1, 0.7, 0.2]), "");
    let found = evidence(PROBABILITIES, &[0.1, -4.0, 7.0]);
    assert!(found.contains("the score of class 1 is -4, so the numbers are no"), "{found}");
}

#[test]
fn the_outputs_are_the_rows_or_the_tensors_with_an_id() {
    let numbers = [0.0f32; 84];
    let view = |id: &'static str, shape: &[usize]| {
        let count = shape.iter().product();
        TensorView::from_slice(id, shape, &numbers[..count])
    };
    let chosen = |tensors: &[TensorView<'_>]| {
        let (outputs, ignored) = classifier::choose(tensors, &Options::default(), false)
            .map_err(|error| error.to_string())?;
        let of = |output: &ClassOutput| (output.tensor, output.classes);
        Ok::<_, String>((outputs.iter().map(of).collect::<Vec<_>>(), ignored))
    };
    let rows = [view("color", &[1, 7]), view("features", &[2, 8]), view("type", &[1, 4, 1, 1])];
    assert_eq!(chosen(&rows[..2]), Ok((vec![(0, 7)], vec![])));
    assert_eq!(chosen(&rows), Ok((vec![(0, 7), (2, 4)], vec![])));
    let one_id = [view("age", &[1, 10]), view(LOGITS, &[1, 2])];
    assert_eq!(chosen(&one_id), Ok((vec![(1, 2)], vec![0])));
    let ids = [view(PROBABILITIES, &[1, 10]), view(LOGITS, &[1, 2])];
    assert_eq!(chosen(&ids), Ok((vec![(0, 10), (1, 2)], vec![])));
    // One number has no score among others.
    let age = [view("age", &[1, 1, 1, 1]), view("gender", &[1, 2, 1, 1])];
    assert_eq!(chosen(&age), Ok((vec![(1, 2)], vec![0])));
    let of_four = Options { num_classes: 4, ..Options::default() };
    let (outputs, ignored) = classifier::choose(&rows, &of_four, false).unwrap();
    assert_eq!((outputs[0].tensor, ignored), (2, vec![0]));
    for (tensors, expected) in [
        (vec![view("a", &[2, 8]), view("b", &[3, 8])], "give such a tensor the id classifi"),
        (vec![], "(none): decoder classifier expects tensors of [C], [1,C] or [1,C,1,1]"),
        (vec![view("boxes", &[1, 21, 4])], "decoder classifier expects [C], [1,C] or [1,C,1,1]"),
        (vec![view(LOGITS, &[4, 21])], "export the model with a batch size of 1"),
        (vec![view(LOGITS, &[1, 0])], "decoder classifier expects"),
        (vec![view(LOGITS, &[1])], "set `options.score_activation` to sigmoid or none"),
    ] {
        let error = chosen(&tensors).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let eight_bits = [0u8; 4];
    let error = chosen(&[TensorView::from_slice(LOGITS, &[4], &eight_bits)]).unwrap_err();
    assert!(error.contains("set `TensorView::quantization`"), "{error}");
    let options = Options { num_classes: 3, ..Options::default() };
    let error =
        classifier::choose(&[view(LOGITS, &[1, 4])], &options, false).unwrap_err().to_string();
    assert!(error.contains("it has 4 classes, but `options.num_classes` is 3"), "{error}");
}

#[test]
fn a_sequence_has_no_scores() {
    let evidence = |numbers: &[f32]| {
        let tensor = TensorView::from_slice("decode", &[1, numbers.len(), 1, 1], numbers);
        let limits = ClassLimits { threshold: 0.0, max: 0 };
        let (found, evidence) = classify(&tensor, Options::default(), limits);
        (found.is_empty(), evidence)
    };
    let plate = |length: usize| -> Vec<f32> {
        (0..88).map(|it| if it < length { ((it * 7 + 12) % 70) as f32 } else { -1.0 }).collect()
    };
    for length in [0, 1, 7, 87] {
        let (is_empty, found) = evidence(&plate(length));
        assert!(is_empty && found.contains(&format!("whole numbers ({length}), then")), "{found}");
    }
    let (is_empty, found) = evidence(&plate(88));
    assert!(!is_empty && found.contains("all of its numbers are whole"), "{found}");
    let (is_empty, found) = evidence(&[12.0, 30.0, 1.0, -1.0]);
    assert!(is_empty && found.contains("whole numbers (3), then"), "{found}");
    // Logits that happen to be whole.
    for numbers in [&[2.0f32, -1.0, 3.0, 0.0][..], &[8.0, -1.0], &[0.0, 0.0, 8.0], &[-1.0, -2.0]] {
        assert_eq!(evidence(numbers), (false, String::new()), "{numbers:?}");
    }
    let one_hot: Vec<f32> = (0..10).map(|class| if class == 4 { 9.0 } else { 0.0 }).collect();
    assert_eq!(evidence(&one_hot), (false, String::new()));
}

fn reading(
    classifiers: Classifiers,
    family: Option<ModelFamily>,
    threshold: f32,
    tensors: &[TensorView<'_>],
) -> Result<Reading, NmsError> {
    let options = Options::default();
    let settings = Settings {
        decoder: None,
        classifiers,
        options,
        has_class_thresholds: false,
        classes: None,
    };
    let facts = Facts { tensors, family, in_frame: true, engine: None };
    let thresholds = ClassThresholds::uniform(threshold);
    reading::read(&facts, &settings, |_| Ok(Params { thresholds, ..Params::default() }))
}

#[test]
fn tensors_are_read_as_classes_by_setting_id_or_model() {
    let row = [1.0f32, 2.0, 3.0];
    let tensor = |id| TensorView::from_slice(id, &[1, 3], &row);
    let has_classes = |classifiers, family, tensors: &[TensorView<'_>]| {
        let made = reading(classifiers, family, 0.5, tensors);
        made.is_ok_and(|reading| matches!(reading.output, Output::Classes(_)))
    };
    let of_model = ModelFamily::for_task("classify", false);
    assert!(has_classes(Classifiers::Always, None, &[tensor("output0")]));
    assert!(has_classes(Classifiers::Auto, None, &[tensor(LOGITS)]));
    assert!(has_classes(Classifiers::Auto, of_model, &[tensor("output0")]));
    assert!(!has_classes(Classifiers::Auto, None, &[tensor("output0")]));
    assert!(!has_classes(Classifiers::Never, of_model, &[tensor(LOGITS)]));
    let detector = TensorView::from_slice("yolo-v8-out", &[1, 5, 2], &[0.5f32; 10]);
    assert!(!has_classes(Classifiers::Auto, None, &[tensor(LOGITS), detector]));
}

/// Each of the two outputs has a separate notice, without a clock with the tenth image, or at the end.
#[test]
fn outputs_of_which_no_image_has_a_class_are_told() {
    let (color, kind) = ([0.5f32, 0.25, 0.25], [0.125f32, 0.375, 0.25, 0.25]);
    let tensors = [
        TensorView::from_slice("color", &[1, 3], &color),
        TensorView::from_slice("type", &[1, 4], &kind),
    ];
    let after = |images: usize, threshold: f32| {
        let options = Options { score_activation: Some(Activation::None), ..Options::default() };
        let settings = settings(options);
        let facts = Facts { tensors: &tensors, family: None, in_frame: true, engine: None };
        let thresholds = ClassThresholds::uniform(threshold);
        let params = |_: Option<&_>| Ok::<_, NmsError>(Params { thresholds, ..Params::default() });
        let mut made = reading::read(&facts, &settings, params).unwrap();
        let mut told = Vec::new();
        for _ in 0..images {
            let Output::Classes(classes) = &mut made.output else { panic!("not of classes") };
            for output in 0..2 {
                let image =
                    classes.classify::<NmsError>(output, &tensors, &mut Vec::new(), None).unwrap();
                assert!(image.is_finite);
                told.extend(image.notices);
            }
        }
        let at_once = told.len();
        told.extend(made.finish());
        assert!(told.len() < 2 || told[0].kind() != told[1].kind());
        (at_once, told.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (at_once, told) = after(9, 0.75);
    assert_eq!((at_once, told.len()), (0, 2), "{told:?}");
    let expected = "tensor type: none of 9 images has a class: the best score is 0.375 (class 1)";
    assert!(told[1].starts_with(expected), "{told:?}");
    let (at_once, told) = after(12, 0.75);
    assert_eq!((at_once, told.len()), (2, 2), "{told:?}");
    assert!(told[0].starts_with("tensor color: none of 10 images has a class"), "{told:?}");
    // Only the color reaches this threshold.
    let (_, told) = after(12, 0.5);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("type"), "{told:?}");
}
