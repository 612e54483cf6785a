// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations of nvinfer's users, and the errors of invalid ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::super::enums::{Decoder, Method, NmsFilterLetterbox};
use super::super::Settings;
use super::*;

fn parse(text: &str) -> NvinferConfig {
    NvinferConfig::parse(text, false).unwrap()
}

/// The values of properties, with the names of the ones that were set.
fn settings(config: NvinferConfig, set: &[&'static str]) -> Settings {
    let properties = Settings { was_set: set.iter().copied().collect(), ..Settings::default() };
    properties.with_nvinfer(Some(&Arc::new(config)))
}

/// A configuration with the keys of DeepStream-Yolo's file for YOLOv8.
const YOLOV8: &str = "[property]
gpu-id=0
net-scale-factor=0.0039215697906911373
model-color-format=0
onnx-file=yolov8s.pt.onnx
model-engine-file=model_b1_gpu0_fp32.engine
#int8-calib-file=calib.table
labelfile-path=labels.txt
batch-size=1
network-mode=0
num-detected-classes=80
interval=0
gie-unique-id=3
process-mode=1
network-type=0
cluster-mode=2
maintain-aspect-ratio=1
symmetric-padding=1
#workspace-size=2000
parse-bbox-func-name=NvDsInferParseYolo
custom-lib-path=nvdsinfer_custom_impl_Yolo/libnvdsinfer_custom_impl_Yolo.so
engine-create-func-name=NvDsInferYoloCudaEngineGet
output-tensor-meta=1

[class-attrs-all]
nms-iou-threshold=0.45
pre-cluster-threshold=0.25
topk=300
";

#[test]
fn every_key_of_deepstream_yolo_that_concerns_objects_applies() {
    let config = parse(YOLOV8);
    assert_eq!(config.warnings(false), [""; 0]);
    assert_eq!(config.label_file.as_deref(), Some("labels.txt"));
    assert_eq!(config.all.topk, Some(300));
    let settings = settings(config, &[]);
    assert_eq!((settings.scalars.thresholds.default, settings.scalars.iou_threshold), (0.25, 0.45));
    assert_eq!((settings.num_classes, settings.unique_id), (80, 3));
    assert_eq!(settings.letterbox, NmsFilterLetterbox::Center);
    assert_eq!((settings.decoder, settings.method), (Decoder::End2end, Method::Greedy));
}

#[test]
fn properties_that_are_set_count_even_with_their_defaults() {
    let set =
        ["score-threshold", "iou-threshold", "num-classes", "unique-id", "letterbox", "decoder"];
    let made = settings(parse(&YOLOV8.replace("cluster-mode=2", "cluster-mode=4")), &set);
    let nvinfer = made.nvinfer.clone();
    let was_set: BTreeSet<_> = set.into_iter().collect();
    let method = Method::None;
    assert_eq!(made, Settings { nvinfer, was_set, method, ..Settings::default() });
}

#[test]
fn the_defaults_are_those_of_nvinfer() {
    let config = parse("[property]\nnetwork-type=100\noutput-tensor-meta=1\n");
    assert_eq!(config.warnings, [""; 0]);
    assert_eq!(config.all, Attributes::default());
    let settings = settings(config, &[]);
    assert_eq!((settings.scalars.thresholds.default, settings.scalars.iou_threshold), (0.2, 0.3));
    assert_eq!(settings.letterbox, NmsFilterLetterbox::Auto);
}

#[test]
fn a_group_of_a_class_replaces_what_it_names_and_later_keys_count() {
    let config = parse(
        "[property]\ncluster-mode=2\nfilter-out-class-ids=4;9;\n[class-attrs-all]\nthreshold=0.5\n\
         roi-top-offset=7\n[class-attrs-2]\ntopk=0\npre-cluster-threshold=0.1\nthreshold=0.6\n\
         post-cluster-threshold=0.7\ndetected-max-h=40\nborder-color=0;1;0.5;1\n",
    );
    let of = config.of(2);
    assert_eq!((of.topk, of.has_threshold), (Some(0), true));
    assert_eq!((of.min, of.max, of.roi), ([0; 2], [0, 40], [7, 0]));
    assert_eq!(of.colors.border, [0.0, 1.0, 0.5, 1.0]);
    // Scores must be greater than 0.7.
    assert_eq!(of.score_threshold(), 0.7f32.next_up());
    assert_eq!(config.of(1).score_threshold(), 0.5);
    assert_eq!(config.excluded, [4, 9].into());
}

#[test]
fn what_is_not_followed_is_a_warning() {
    let warnings = |keys: &str| parse(&format!("[property]\n{keys}\n")).warnings.join("|");
    assert_eq!(warnings("cluster-mode=2"), "");
    assert_eq!(warnings("network-type=100"), "");
    assert_eq!(warnings("cluster-mode=4"), "");
    for mode in [1, 3] {
        let warning = warnings(&format!("cluster-mode={mode}"));
        assert!(warning.starts_with(&format!("nvinfer-config: cluster-mode={mode} clusters")));
    }
    assert!(warnings("enable-dbscan=1").contains("cluster-mode=1 clusters"));
    assert!(warnings("").contains("cluster-mode is 0 or not set"));
    assert_eq!(warnings("cluster-mode=2\nprocess-mode=2"), "");
    assert!(warnings("network-type=1").contains("network-type=1 is no detector"));
    let crops = "cluster-mode=2\ncrop-objects-to-roi-boundary=1";
    assert_eq!(warnings(crops), "");
    let warning = warnings(&format!("{crops}\n[class-attrs-3]\nroi-bottom-offset=8"));
    assert!(warning.contains("crop-objects-to-roi-boundary=1 is not followed"), "{warning}");
}

#[test]
fn limits_that_exclude_all_sizes_are_a_warning_for_their_classes() {
    let warnings = |keys: &str| parse(&format!("[property]\ncluster-mode=2\n{keys}\n")).warnings;
    assert_eq!(warnings("[class-attrs-all]\ndetected-min-w=20\ndetected-max-w=20"), [""; 0]);
    assert_eq!(warnings("[class-attrs-all]\ndetected-min-w=20\ndetected-max-w=0"), [""; 0]);
    assert_eq!(
        warnings(
            "[class-attrs-all]\ndetected-min-w=21\ndetected-max-w=20\n[class-attrs-1]\ntopk=3"
        ),
        [
            "nvinfer-config: [class-attrs-all]: detected-min-w=21 is above detected-max-w=20, so that no object is \
          attached"
        ]
    );
    // The maximum of all classes, and the minimum of one.
    assert_eq!(
        warnings("[class-attrs-all]\ndetected-max-h=20\n[class-attrs-1]\ndetected-min-h=30"),
        [
            "nvinfer-config: [class-attrs-1]: detected-min-h=30 is above detected-max-h=20, so that no object is \
          attached"
        ]
    );
}

#[test]
fn a_parser_whose_decoder_is_not_known_is_named_unless_the_decoder_is_set() {
    let config = parse("[property]\ncluster-mode=2\nparse-bbox-func-name=NvDsInferParseMine\n");
    let [warning] = &config.warnings(false)[..] else { panic!("one warning") };
    let expected = "nvinfer-config: parse-bbox-func-name=NvDsInferParseMine is not called";
    assert!(warning.starts_with(expected) && warning.ends_with("set decoder"), "{warning}");
    assert_eq!(config.warnings(true), [""; 0]);
    for known in [NO_OBJECTS, END_TO_END[0], END_TO_END[1]] {
        let config = parse(&format!("[property]\ncluster-mode=2\nparse-bbox-func-name={known}"));
        assert_eq!(config.warnings(false), [""; 0], "{known}");
    }
}

#[test]
fn nvinfer_attaches_objects_of_its_own_if_it_parses_the_outputs() {
    let attaches =
        |keys: &str| parse(&format!("[property]\ncluster-mode=2\n{keys}")).attaches_objects();
    assert!(attaches("") && attaches("network-type=0") && attaches("network-type=3"));
    assert!(!attaches("network-type=100"));
    assert!(!attaches(&format!("parse-bbox-func-name={NO_OBJECTS}")));
}

#[test]
fn without_opencv_nvinfer_replaces_its_first_clustering_by_suppression() {
    let text = "[property]\ncluster-mode=0\n[class-attrs-1]\ntopk=7\nnms-iou-threshold=0.9\n";
    let config = parse(text);
    for class in [0, 1] {
        let of = config.of(class);
        assert_eq!((of.iou_threshold, of.topk), (Some(0.5), Some(20)));
    }
    // The groups apply if nvinfer parses nothing.
    let other = text.replace("cluster-mode=0", "network-type=100");
    assert_eq!(parse(&other).of(1).topk, Some(7));
    // nmsfilter also replaces the work of nvinfer's parser.
    let none = text.replace("cluster-mode=0", "network-type=100\ncluster-mode=4");
    assert!(parse(&none).suppresses_nothing());
    let nothing = format!("cluster-mode=4\nparse-bbox-func-name={NO_OBJECTS}");
    let config = parse(&text.replace("cluster-mode=0", &nothing));
    assert_eq!((config.of(1).topk, config.suppresses_nothing()), (Some(7), false));
}

#[test]
fn errors_have_the_line_what_was_expected_and_what_came() {
    for (text, expected) in [
        ("", "has no group [property]; expected a configuration of nvinfer"),
        (
            "[class-attrs-all]\ntopk=1",
            "has no group [property]; expected a configuration of nvinfer",
        ),
        ("gpu-id=0", "line 1: expected [GROUP], KEY=VALUE or a comment with #, got \"gpu-id=0\""),
        (
            "[property]\n\n topk 3 ",
            "line 3: expected [GROUP], KEY=VALUE or a comment with #, got \"topk 3\"",
        ),
        (
            "[property]\ncluster-mode=7",
            "line 2: [property] cluster-mode: expected a whole number from 0 to 4, got \"7\"",
        ),
        (
            "[property]\nmaintain-aspect-ratio=yes",
            "line 2: [property] maintain-aspect-ratio: expected 0 or 1, got \"yes\"",
        ),
        (
            "[property]\n[class-attrs-all]\n# x\nnms-iou-threshold=1.5",
            "line 4: [class-attrs-all] nms-iou-threshold: expected a number from 0 to 1, got \"1.5\"",
        ),
        (
            "[property]\n[class-attrs-1]\npre-cluster-threshold=nan",
            "line 3: [class-attrs-1] pre-cluster-threshold: expected a number of at least 0, got \"nan\"",
        ),
        (
            "[property]\n[class-attrs-1]\ntopk=-1",
            "line 3: [class-attrs-1] topk: expected a whole number of at least 0, got \"-1\"",
        ),
        (
            "[property]\nnum-detected-classes=2\n[class-attrs-2]\n",
            "line 3: expected [class-attrs-all] or [class-attrs-N] with a class below 2, got [class-attrs-2]",
        ),
        (
            "[property]\n[class-attrs-x]\n",
            "line 2: expected [class-attrs-all] or [class-attrs-N] with a class below 65536, got [class-attrs-x]",
        ),
        (
            "[property]\nfilter-out-class-ids=1;-2",
            "line 2: [property] filter-out-class-ids: expected classes below 65536 with semicolons between, as in \
             0;3, got \"1;-2\"",
        ),
        (
            "[property]\n[class-attrs-0]\nbg-color=1;2;3",
            "line 3: [class-attrs-0] bg-color: expected red, green, blue and alpha from 0 to 1, as in 0;1;1;0.7, \
             got \"1;2;3\"",
        ),
    ] {
        let error = NvinferConfig::parse(text, false).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn the_same_in_yaml() {
    let yaml = YOLOV8
        .lines()
        .map(|line| match line {
            line if line.starts_with('#') => line.to_owned(),
            line if line.starts_with('[') => format!("{}:", line.trim_matches(['[', ']'])),
            line => line.split_once('=').map_or(String::new(), |(k, v)| format!("  {k}: {v}")),
        })
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(NvinferConfig::parse(&yaml, true).unwrap(), parse(YOLOV8));
    let error = NvinferConfig::parse("property:\n  a: [1]", true).unwrap_err().to_string();
    assert_eq!(error, "line 2: expected GROUP: or, indented, KEY: VALUE, got \"a: [1]\"");
}

#[test]
fn any_text_is_read_or_refused() {
    let mut rng = fastrand::Rng::with_seed(24);
    let lines: Vec<&str> = YOLOV8.lines().collect();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut bytes = Vec::new();
        for _ in 0..rng.usize(0..30) {
            let mut line = rng.choice(&lines).unwrap().to_string().into_bytes();
            if rng.u8(0..8) == 0 && !line.is_empty() {
                let at = rng.usize(0..line.len());
                line[at] = *rng.choice(b"0;=[]-.:\\9 ").unwrap();
            }
            bytes.extend(line);
            bytes.push(b'\n');
        }
        let text = String::from_utf8(bytes).unwrap();
        for is_yaml in [false, true] {
            match NvinferConfig::parse(&text, is_yaml) {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
}
