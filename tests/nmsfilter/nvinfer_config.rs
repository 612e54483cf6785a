// SPDX-License-Identifier: MIT OR Apache-2.0
//! The property `nvinfer-config`, and lists of class rules: regions, warnings and errors.

use std::path::Path;

use gstnmsfilter::input::custom_meta::{NewTensor, attach};

use crate::support::data;
use crate::support::pipeline::{Ended, init, intercept, parse, regions, run, watch};
use crate::support::scratch::Scratch;

/// x1, y1, x2, y2, score, class.
type Row = [f32; 6];

/// Runs one frame of 640x480 with these rows as an output `[1,N,6]`. Returns the regions, and the
/// end of the pipeline.
fn ended(properties: &str, rows: &[Row]) -> (Vec<String>, Ended) {
    init();
    let pipeline = parse(&format!(
        "videotestsrc name=in num-buffers=1 ! video/x-raw,width=640,height=480
           ! nmsfilter name=nms {properties} ! fakesink"
    ));
    let tensor = NewTensor::from_vec("output", &[1, rows.len(), 6], rows.concat()).unwrap();
    intercept(&pipeline, "in", move |buffer| attach(buffer, &tensor).unwrap());
    let seen = watch(&pipeline, "nms", |buffer| {
        let name = |(label, [x, y, w, h]): (String, [u32; 4])| format!("{label} {x},{y} {w}x{h}");
        regions(buffer).into_iter().map(name).collect::<Vec<_>>()
    });
    let ended = run(&pipeline);
    let found = seen.lock().unwrap().pop().unwrap_or_default();
    (found, ended)
}

/// Returns the regions, after asserting that there were no errors and no warnings.
fn found(properties: &str, rows: &[Row]) -> Vec<String> {
    let (found, ended) = ended(properties, rows);
    assert_eq!((ended.error, ended.warnings), (None, vec![]), "{properties}");
    found
}

/// Writes this text to a file in the folder, and returns the property that names it.
fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("config_infer_primary.txt");
    std::fs::write(&path, text).unwrap();
    format!("nvinfer-config={}", path.display())
}

/// The keys in DeepStream-Yolo's configuration for YOLOv8, and `output-tensor-meta`.
const YOLOV8: &str = "[property]
gpu-id=0
net-scale-factor=0.0039215697906911373
model-color-format=0
onnx-file=yolov8s.pt.onnx
labelfile-path=labels.txt
batch-size=1
num-detected-classes=3
gie-unique-id=1
process-mode=1
network-type=0
cluster-mode=2
maintain-aspect-ratio=1
symmetric-padding=1
parse-bbox-func-name=NvDsInferParseYolo
output-tensor-meta=1

[class-attrs-all]
nms-iou-threshold=0.45
pre-cluster-threshold=0.25
topk=300
";

/// Rows in a model's input of 640x640, in which the frame covers rows 80 to 560.
const ROWS: [Row; 6] = [
    [100.0, 180.0, 200.0, 280.0, 0.9, 0.0],
    // The IoU with the first row is 0.67, so this row is suppressed unless the threshold is higher.
    [120.0, 180.0, 220.0, 280.0, 0.8, 0.0],
    // The class differs.
    [120.0, 180.0, 220.0, 280.0, 0.7, 1.0],
    // The first score equals the score threshold, the second is below it.
    [400.0, 180.0, 440.0, 220.0, 0.25, 2.0],
    [500.0, 180.0, 540.0, 220.0, 0.24, 2.0],
    [400.0, 400.0, 430.0, 420.0, 0.5, 2.0],
];

const MODEL: &str = "model-width=640 model-height=640";

#[test]
fn a_configuration_of_deepstream_yolo_is_the_only_property_to_set() {
    let folder = Scratch::new();
    std::fs::write(folder.join("labels.txt"), "person;human\n\ncar\nbus\n").unwrap();
    let config = config(&folder, YOLOV8);
    // Labels are read like in nvinfer: they end at semicolons, and blank lines are skipped.
    let expected =
        ["person 100,100 100x100", "car 120,100 100x100", "bus 400,320 30x20", "bus 400,100 40x40"];
    assert_eq!(found(&format!("{config} {MODEL}"), &ROWS), expected);
    let yaml = folder.join("config.yml");
    let text =
        YOLOV8.replace("[property]", "property:").replace("[class-attrs-all]", "class-attrs-all:");
    let indented = text.lines().map(|line| match line.split_once('=') {
        Some((key, value)) => format!("  {key}: {value}\n"),
        None => format!("{line}\n"),
    });
    std::fs::write(&yaml, indented.collect::<String>()).unwrap();
    assert_eq!(found(&format!("nvinfer-config={} {MODEL}", yaml.display()), &ROWS), expected);
}

#[test]
fn properties_that_are_set_replace_the_configuration() {
    let folder = Scratch::new();
    std::fs::write(folder.join("labels.txt"), "person\ncar\nbus\n").unwrap();
    let text = format!("{YOLOV8}[class-attrs-2]\npre-cluster-threshold=0.6\ntopk=1\n");
    let config = config(&folder, &text);
    let with = |properties: &str| found(&format!("{config} {MODEL} {properties}"), &ROWS);
    let [person, shifted, car] =
        ["person 100,100 100x100", "person 120,100 100x100", "car 120,100 100x100"];
    assert_eq!(with(""), [person, car]);
    // The property is set to its default value.
    assert_eq!(
        with("letterbox=none model-height=480"),
        ["person 100,180 100x100", "car 120,180 100x100"]
    );
    assert_eq!(with("iou-threshold=0.7"), [person, shifted, car]);
    assert_eq!(with("class-iou-thresholds=person:0.7"), [person, shifted, car]);
    // The threshold for all classes does not replace the threshold of a group. A list replaces it
    // for its classes.
    assert_eq!(with("score-threshold=0.1"), [person, car]);
    assert_eq!(with("score-threshold=0.75"), [person]);
    assert_eq!(with("class-thresholds=bus:0.1"), [person, car, "bus 400,320 30x20"]);
    assert_eq!(
        with("class-thresholds=bus:0.1 class-max-detections=bus:0"),
        [person, car, "bus 400,320 30x20", "bus 400,100 40x40", "bus 500,100 40x40"]
    );
    assert_eq!(with("method=none"), [person, shifted, car]);
    assert_eq!(with("max-detections=1"), [person]);
    let others = folder.join("others.txt");
    std::fs::write(&others, "a;b\nc\nd\n").unwrap();
    let named = with(&format!("label-file={}", others.display()));
    assert_eq!(named, ["a;b 100,100 100x100", "c 120,100 100x100"]);
}

/// Objects outside of the limits suppress others before they are removed.
#[test]
fn sizes_and_the_region_of_interest_apply_to_survivors() {
    let folder = Scratch::new();
    let text = |keys: &str| {
        format!(
            "[property]\ncluster-mode=2\noutput-tensor-meta=1\nparse-bbox-func-name=NvDsInferParseYolo\n\
             [class-attrs-all]\nnms-iou-threshold=0.5\n{keys}\n"
        )
    };
    let rows = [
        [10.0, 100.0, 110.0, 200.0, 0.9, 0.0],
        // This row is suppressed by the first.
        [15.0, 105.0, 110.0, 200.0, 0.8, 0.0],
        [200.0, 400.0, 230.0, 460.0, 0.7, 1.0],
        // This box reaches beyond the lower edge of the frame, so it is clipped.
        [300.0, 440.0, 340.0, 500.0, 0.6, 0.0],
    ];
    let with = |keys: &str, properties: &str| {
        found(&format!("{} {properties}", config(&folder, &text(keys))), &rows)
    };
    let [first, second, last] =
        ["class-0 10,100 100x100", "class-1 200,400 30x60", "class-0 300,440 40x40"];
    assert_eq!(with("", ""), [first, second, last]);
    assert_eq!(with("detected-max-w=99", ""), [second, last]);
    assert_eq!(with("detected-max-w=100", ""), [first, second, last]);
    assert_eq!(with("detected-min-w=31\ndetected-min-h=41", ""), [first]);
    assert_eq!(with("detected-min-w=30\ndetected-min-h=40", ""), [first, second, last]);
    assert_eq!(with("[class-attrs-1]\ndetected-min-w=31", ""), [first, last]);
    assert_eq!(with("roi-top-offset=100", ""), [first, second, last]);
    assert_eq!(with("roi-top-offset=101", ""), [second, last]);
    assert_eq!(with("roi-bottom-offset=20", ""), [first, second]);
    assert_eq!(with("roi-bottom-offset=21", ""), [first]);
    assert_eq!(with("roi-bottom-offset=2000000000", ""), [""; 0]);
    // Size limits of properties exclude candidates before suppression.
    assert_eq!(with("", "max-size=99"), ["class-0 15,105 95x95", second, last]);
    assert_eq!(with("detected-max-w=20", "max-size=200"), [first, second, last]);
    assert_eq!(with("detected-max-w=20", "class-sizes=0:..99x99"), ["class-0 15,105 95x95", last]);
}

#[test]
fn keys_of_single_classes_apply_only_to_them() {
    let folder = Scratch::new();
    let text = |keys: &str| {
        format!(
            "[property]\ncluster-mode=2\noutput-tensor-meta=1\nnum-detected-classes=3\n\
             parse-bbox-func-name=NvDsInferParseYolo\n{keys}\n"
        )
    };
    let box_of = |x: f32, score, class| [x, 0.0, x + 10.0, 10.0, score, class];
    let mut rows: Vec<Row> = Vec::new();
    for class in [0.0, 1.0, 2.0] {
        // The IoU of the first two boxes is 0.54.
        rows.extend(
            [(0.0, 0.9), (3.0, 0.8), (50.0, 0.7)]
                .map(|(x, score)| box_of(100.0 * class + x, score, class)),
        );
    }
    let with = |keys: &str| -> Vec<String> {
        let mut lefts: Vec<String> = found(&config(&folder, &text(keys)), &rows)
            .iter()
            .map(|region| region.split([' ', ',']).nth(1).unwrap().to_owned())
            .collect();
        lefts.sort_by_key(|left| left.parse::<u32>().unwrap());
        lefts
    };
    // These are nvinfer's defaults, 0.2 and 0.3.
    assert_eq!(with(""), ["0", "50", "100", "150", "200", "250"]);
    assert_eq!(
        with("[class-attrs-1]\nnms-iou-threshold=0.6"),
        ["0", "50", "100", "103", "150", "200", "250"]
    );
    assert_eq!(
        with("[class-attrs-all]\ntopk=1\n[class-attrs-2]\ntopk=2"),
        ["0", "100", "200", "250"]
    );
    assert_eq!(with("[class-attrs-0]\ntopk=0"), ["100", "150", "200", "250"]);
    assert_eq!(
        with("[class-attrs-2]\npre-cluster-threshold=0.8"),
        ["0", "50", "100", "150", "200"]
    );
    assert_eq!(
        with("[class-attrs-2]\npost-cluster-threshold=0.7"),
        ["0", "50", "100", "150", "200"]
    );
    assert_eq!(with("filter-out-class-ids=0;2"), ["100", "150"]);
}

#[test]
fn lists_of_classes_need_no_configuration() {
    let rows = &ROWS[..3];
    let with = |properties: &str| {
        found(&format!("decoder=end2end letterbox=none {properties}"), rows).len()
    };
    assert_eq!(with(""), 2);
    assert_eq!(with("class-iou-thresholds=0:0.7"), 3);
    assert_eq!(with("iou-threshold=0.7 class-iou-thresholds=0:0.45"), 2);
    // The box of class 1 has the lower rank, and an IoU of 0.67 with the first box.
    assert_eq!(with("class-agnostic=true"), 1);
    assert_eq!(with("class-agnostic=true class-iou-thresholds=1:0.7"), 2);
    assert_eq!(with("class-agnostic=true class-iou-thresholds=0:0.7"), 2);
    assert_eq!(with("iou-threshold=1 class-max-detections=0:1"), 2);
    assert_eq!(with("class-sizes=class-0:101x1.."), 1);
    assert_eq!(with("class-sizes=class-0:..99x100"), 1);
}

#[test]
fn keys_that_are_not_obeyed_give_a_warning_at_the_start() {
    let folder = Scratch::new();
    let text = YOLOV8.replace("labelfile-path", "#").replace("cluster-mode=2", "cluster-mode=1");
    let (found, ended) = ended(&format!("{} {MODEL}", config(&folder, &text)), &ROWS);
    assert_eq!((ended.error, found.len()), (None, 4));
    let [warning] = &ended.warnings[..] else { panic!("one warning: {:?}", ended.warnings) };
    let expected = "nvinfer-config: cluster-mode=1 clusters by DBSCAN";
    assert!(warning.starts_with(expected), "{warning}");
}

#[test]
fn keys_that_nvinfer_ignores_are_warnings_and_those_that_it_knows_are_not() {
    let folder = Scratch::new();
    let warnings = |text: &str| {
        let config = config(&folder, text);
        let (_, ended) = ended(&format!("{config} {MODEL} decoder=end2end"), &ROWS);
        assert_eq!(ended.error, None, "{text}");
        ended.warnings
    };
    let yolov8 = YOLOV8.replace("labelfile-path", "#");
    assert_eq!(warnings(&yolov8), [""; 0]);
    assert_eq!(
        warnings(&yolov8.replace("pre-cluster-threshold", "pre-cluster-treshold")),
        [
            "nvinfer-config: line 20: [class-attrs-all]: nvinfer has no key pre-cluster-treshold there, so that it has \
             no effect; expected pre-cluster-threshold"
        ]
    );
    let Some(parser) = data::path("deepstream-9.1/src/gst-plugins/gst-nvinfer") else { return };
    let header = std::fs::read_to_string(parser.join("gstnvinfer_property_parser.h")).unwrap();
    let names = header.lines().filter_map(|line| line.strip_prefix("#define CONFIG_GROUP_INFER_"));
    let mut text = [String::from("[property]\n"), String::from("[class-attrs-all]\n")];
    let mut count = 0;
    for (name, key) in names.filter_map(|line| line.split_once(' ')) {
        let key = key.trim().trim_matches('"');
        let value = if key.ends_with("color") { "0;0;0;1" } else { "1" };
        if name != "CLASS_ATTRS_PREFIX" {
            text[usize::from(name.starts_with("CLASS_ATTRS"))] += &format!("{key}={value}\n");
            count += 1;
        }
    }
    assert!(count > 90, "{count} keys");
    std::fs::write(folder.join("1"), "the only label\n").unwrap();
    let warnings = warnings(&text.concat());
    assert!(!warnings.iter().any(|warning| warning.contains("nvinfer has no")), "{warnings:?}");
}

/// Every class is excluded, so no class has the best score.
#[test]
fn a_configuration_that_excludes_all_classes_is_a_warning() {
    let folder = Scratch::new();
    let yolov8 = YOLOV8.replace("labelfile-path", "#");
    let excluding = [
        yolov8.replace("topk=300", "topk=0"),
        yolov8.replace("network-type=0", "filter-out-class-ids=0;1;2"),
    ];
    for text in excluding {
        let (found, ended) = ended(&format!("{} {MODEL}", config(&folder, &text)), &ROWS);
        assert_eq!((ended.error, found.len()), (None, 0));
        let [warning] = &ended.warnings[..] else { panic!("one warning: {:?}", ended.warnings) };
        let expected = "each of the 3 classes that decoder end2end reads is excluded";
        assert!(warning.starts_with(expected), "{warning}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_an_error_at_the_start() {
    let folder = Scratch::new();
    let error = |properties: &str| {
        let (found, ended) = ended(properties, &ROWS);
        assert_eq!(found, [""; 0]);
        ended.error.expect("the element does not start")
    };
    for (text, expected) in [
        (
            "[property]\n[class-attrs-all]\nnms-iou-threshold=2\n",
            "line 3: [class-attrs-all] nms-iou-threshold: expected a number from 0 to 1, got \"2\"",
        ),
        ("property:\n  gpu-id: 0\n", "line 1: expected [GROUP], KEY=VALUE or a comment with #"),
        ("[a]\n", "has no group [property]; expected a configuration of nvinfer"),
        ("[property]\nlabelfile-path=none.txt\n", "none.txt\" cannot be read"),
    ] {
        let error = error(&config(&folder, text));
        assert!(error.contains(expected), "{error}");
    }
    let path = folder.join("large.txt");
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    let large = error(&format!("nvinfer-config={}", path.display()));
    assert!(large.contains("expected at most 1048576"), "{large}");
    std::fs::write(&path, b"[property]\nx=\xff\n").unwrap();
    let other = error(&format!("nvinfer-config={}", path.display()));
    assert!(other.contains("is not valid UTF-8"), "{other}");
    let missing = error("nvinfer-config=/nowhere/config.txt");
    assert!(
        missing.contains("nvinfer-config: the file \"/nowhere/config.txt\" cannot be read"),
        "{missing}"
    );
}
