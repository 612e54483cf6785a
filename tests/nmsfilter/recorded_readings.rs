// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of detectors, read by each decoder that accepts their shape. The correct
//! reading gives no warning. Each wrong reading gives the warnings in this table.
//!
//! The recordings are not part of the project, and the tests skip themselves without them. The
//! frame has the size of the model's input.

use crate::support::data;
use crate::support::pipeline::{parse, run};
use crate::support::scratch::ScratchFile;

/// A characteristic part of each warning.
const SIX_COLUMNS: &str = "reads rows of six numbers in tensor";
const COCO: &str = "usually a box, objectness and the 80 classes of COCO";
const OUTSIDE: &str = "reach beyond the model's input by more than a tenth";
const SCORE: &str = "are probabilities from 0 to 1, so the tensors belong to another model family";
const UNBOUNDED: &str = "scores above 1 are not probabilities";
const NORMALIZED: &str = "within the first pixel";
const CORNER: &str = "in the upper left corner";
const REJECTED: &str = "anchors rejected: ";
const CORNERS: &str = "are corners, but decoder ";
const HUGE: &str = "many times larger than the model's input";
const NO_BACKGROUND: &str = "but in a detector's output most are background";
/// The warning that nothing was found.
const SILENCE: &str = "no detection in 3 images with decoder ";

/// A reading: properties, and the expected warnings.
type Reading = (&'static str, &'static [&'static str]);

struct Recording {
    /// Folder of the tensors.
    case: &'static str,
    /// Files of the tensors, without extension.
    tensors: &'static [&'static str],
    /// Width and height of the model's input.
    input: [u32; 2],
    /// Correct readings. Some families have none.
    right: &'static [&'static str],
    wrong: &'static [Reading],
}

const RECORDINGS: &[Recording] = &[
    // End-to-end models: x1, y1, x2, y2, score, class.
    Recording {
        case: "01_six_yolo26/bus",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=yolov8", &[SIX_COLUMNS, CORNERS, SCORE]),
            ("decoder=yolov5", &[SIX_COLUMNS, CORNERS, SCORE]),
        ],
    },
    Recording {
        case: "01_six_yolo26/street",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=yolov8", &[SIX_COLUMNS, CORNERS, SCORE]),
            ("decoder=yolov5", &[SIX_COLUMNS, CORNERS, SCORE]),
            ("decoder=yolov5 coordinates=normalized", &[SIX_COLUMNS, CORNERS, REJECTED]),
        ],
    },
    Recording {
        case: "01_six_yolo26_tflite/bus",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=yolov8", &[SIX_COLUMNS, CORNERS, SCORE, NORMALIZED]),
            ("decoder=yolov5", &[SIX_COLUMNS, CORNERS, SCORE, NORMALIZED]),
            ("decoder=yolov5 coordinates=normalized", &[SIX_COLUMNS, CORNERS, SCORE, OUTSIDE]),
        ],
    },
    Recording {
        case: "01_six_yolov10/nnstreamer",
        tensors: &["output0"],
        input: [320, 320],
        right: &[],
        wrong: &[
            ("decoder=yolov8", &[SIX_COLUMNS, CORNERS, SCORE, NORMALIZED]),
            ("decoder=yolov5", &[SIX_COLUMNS, CORNERS, SCORE, NORMALIZED]),
        ],
    },
    // Rows beyond 4+C: coefficients, keypoints or an angle.
    Recording {
        case: "02_seg_yolov8/bus",
        tensors: &["output0"],
        input: [320, 320],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE])],
    },
    Recording {
        case: "02_seg_yolov8/street",
        tensors: &["output0"],
        input: [320, 320],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE])],
    },
    Recording {
        case: "03_pose_pixels/bus",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE])],
    },
    Recording {
        case: "03_pose_yolo11_tflite/bus",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=yolov8", &[SCORE, NORMALIZED]),
            ("decoder=yolov8 coordinates=normalized", &[SCORE]),
        ],
    },
    Recording {
        case: "03_pose_yolov8_tflite_224/bus",
        tensors: &["output0"],
        input: [224, 224],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE, NORMALIZED])],
    },
    Recording {
        case: "04_obb/nnstreamer",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        // For yolov5, the objectness is 0.
        wrong: &[("decoder=yolov8", &[SCORE, NORMALIZED]), ("decoder=yolov5", &[SILENCE])],
    },
    Recording {
        case: "11_six_with_angle_layout/nnstreamer",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE]), ("decoder=yolov5", &[SCORE])],
    },
    Recording {
        case: "11_six_with_keypoints_layout/bus",
        tensors: &["output0"],
        input: [640, 640],
        right: &[],
        wrong: &[("decoder=yolov8", &[CORNERS, SCORE]), ("decoder=yolov5", &[CORNERS, SCORE])],
    },
    Recording {
        case: "11_six_with_masks_layout/bus",
        tensors: &["output0"],
        input: [320, 320],
        right: &[],
        wrong: &[("decoder=yolov8", &[CORNERS, SCORE]), ("decoder=yolov5", &[CORNERS, SCORE])],
    },
    // DETR: logits, and boxes as center and size from 0 to 1.
    Recording {
        case: "05_detr_deimv2/bus",
        tensors: &["logits", "pred_boxes"],
        input: [416, 416],
        right: &[],
        wrong: &[
            ("decoder=boxes", &[UNBOUNDED, REJECTED]),
            ("decoder=boxes box-format=center", &[UNBOUNDED, NORMALIZED]),
            ("decoder=boxes box-format=center coordinates=normalized", &[UNBOUNDED]),
        ],
    },
    Recording {
        case: "05_detr_deimv2/street",
        tensors: &["logits", "pred_boxes"],
        input: [320, 320],
        right: &[],
        wrong: &[
            ("decoder=boxes", &[REJECTED]),
            ("decoder=boxes box-format=center", &[UNBOUNDED, NORMALIZED]),
        ],
    },
    Recording {
        case: "05_detr_deimv2/bus_postprocessed",
        tensors: &["boxes", "scores"],
        input: [416, 416],
        right: &["decoder=boxes"],
        wrong: &[
            ("decoder=boxes coordinates=normalized", &[REJECTED]),
            ("decoder=boxes box-format=center coordinates=normalized", &[CORNERS, HUGE]),
            ("decoder=boxes box-format=center", &[CORNERS]),
        ],
    },
    Recording {
        case: "05_detr_deimv2/street_postprocessed",
        tensors: &["boxes", "scores"],
        input: [320, 320],
        right: &["decoder=boxes"],
        wrong: &[("decoder=boxes coordinates=normalized", &[REJECTED])],
    },
    Recording {
        case: "05_rtdetr_cat_layout/street",
        tensors: &["output0"],
        input: [320, 320],
        right: &["decoder=yolov8 num-classes=80 coordinates=normalized"],
        // For yolov5, the objectness is 0.
        wrong: &[("decoder=yolov8 num-classes=80", &[NORMALIZED]), ("decoder=yolov5", &[SILENCE])],
    },
    // YOLOX before its decode step.
    Recording {
        case: "06_yolox/bus",
        tensors: &["output"],
        input: [416, 416],
        right: &[],
        wrong: &[
            ("decoder=yolox", &[CORNER]),
            ("decoder=yolox coordinates=normalized", &[OUTSIDE]),
            ("decoder=yolov5", &[CORNER]),
            ("decoder=yolov8", &[COCO, CORNER]),
        ],
    },
    Recording {
        case: "06_yolox/street",
        tensors: &["output"],
        input: [416, 416],
        right: &[],
        wrong: &[("decoder=yolox", &[CORNER]), ("decoder=yolov8", &[COCO, CORNER])],
    },
    // Offsets from anchors or from grid cells.
    Recording {
        case: "07_ssd_raw/nnstreamer0",
        tensors: &["scores"],
        input: [300, 300],
        right: &[],
        // For yolov5, the objectness is negative.
        wrong: &[("decoder=yolov5", &[SILENCE])],
    },
    Recording {
        case: "08_retinaface/crowd_selfie",
        tensors: &["loc", "conf"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=boxes", &[REJECTED]),
            ("decoder=boxes box-format=center", &[REJECTED]),
            ("decoder=ultraface", &[REJECTED]),
        ],
    },
    Recording {
        case: "08_scrfd/crowd_selfie",
        tensors: &["bbox_8", "score_8"],
        input: [640, 640],
        right: &[],
        wrong: &[
            ("decoder=boxes", &[CORNER]),
            ("decoder=boxes coordinates=normalized", &[REJECTED]),
            ("decoder=boxes box-format=center", &[CORNER]),
        ],
    },
    Recording {
        case: "08_yunet/crowd_selfie",
        tensors: &["bbox_16", "obj_16"],
        input: [640, 640],
        right: &[],
        wrong: &[("decoder=boxes", &[REJECTED])],
    },
    Recording {
        case: "10_nanodet/bus",
        tensors: &["dis_8"],
        input: [416, 416],
        right: &[],
        wrong: &[("decoder=yolov8", &[SCORE, CORNER])],
    },
    // Boxes and scores. In TensorFlow's boxes, y comes first.
    Recording {
        case: "07_ssd_tf_postprocess/nnstreamer0",
        tensors: &["boxes", "scores"],
        input: [640, 480],
        right: &[],
        wrong: &[
            ("decoder=boxes", &[NORMALIZED]),
            // This wrong reading is not detected: x and y are exchanged.
            ("decoder=boxes coordinates=normalized", &[]),
        ],
    },
    Recording {
        case: "10_efficientnms_layout/street",
        tensors: &["det_boxes", "det_scores"],
        input: [640, 640],
        right: &["decoder=boxes"],
        wrong: &[("decoder=boxes coordinates=normalized", &[REJECTED])],
    },
    Recording {
        case: "10_yolonas_layout/street",
        tensors: &["boxes", "scores"],
        input: [320, 320],
        right: &["decoder=boxes"],
        wrong: &[("decoder=boxes coordinates=normalized", &[REJECTED])],
    },
];

/// Returns the warnings of three frames of this size with these recordings (properties of
/// `tensorreplay`). The CPU engine decodes them: other engines have equal results, and an emulated
/// GPU would take minutes to suppress thousands of boxes.
fn warnings(recordings: &[String], [width, height]: [u32; 2], properties: &str) -> Vec<String> {
    let replays: String =
        recordings.iter().map(|recording| format!("! tensorreplay {recording} ")).collect();
    let pipeline = parse(&format!(
        "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width={width},height={height},framerate=10/1
           {replays} ! nmsfilter backend=cpu max-detections=0 {properties} ! fakesink"
    ));
    let ended = run(&pipeline);
    assert_eq!(ended.error, None, "{recordings:?} {properties}");
    ended.warnings
}

/// Describes how the warnings differ from the expected ones. Returns `None` if they are equal.
fn difference(
    recordings: &[String],
    input: [u32; 2],
    (properties, expected): Reading,
) -> Option<String> {
    let found = warnings(recordings, input, properties);
    let is_expected = found.len() == expected.len()
        && found.iter().zip(expected).all(|(warning, part)| warning.contains(part));
    let text = || format!("{recordings:?} {properties}: expected {expected:?}, got {found:#?}");
    (!is_expected).then(text)
}

#[test]
fn outputs_of_twenty_families_give_warnings_if_they_are_misread() {
    let mut differences = Vec::new();
    for recording in RECORDINGS {
        let path =
            |name: &&str| data::path(&format!("data/models2026/{}/{name}.npy", recording.case));
        let Some(paths) = recording.tensors.iter().map(path).collect::<Option<Vec<_>>>() else {
            return;
        };
        let replay = |path: &std::path::PathBuf| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            format!("location={} tensor-id=onnx/{name}", path.display())
        };
        let replays: Vec<String> = paths.iter().map(replay).collect();
        let right = recording.right.iter().map(|&properties| (properties, &[][..]));
        let readings = right.chain(recording.wrong.iter().copied());
        differences
            .extend(readings.filter_map(|reading| difference(&replays, recording.input, reading)));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn outputs_of_yolov5_and_yolov8_give_warnings_if_they_are_misread() {
    let lines: String = (0..80).map(|class| format!("{class}\n")).collect();
    let labels = ScratchFile::new("txt", lines.as_bytes());
    let labels = format!("decoder=yolov8 coordinates=normalized label-file={}", labels.display());
    for (file, shape, readings) in [
        (
            "yolov5_decoder_input.raw",
            "1x6300x85",
            &[
                ("decoder=yolov5 coordinates=normalized", &[][..]),
                ("decoder=yolox coordinates=normalized", &[]),
                ("decoder=yolov5", &[NORMALIZED]),
                ("decoder=yolov8", &[COCO, NORMALIZED]),
                // The objectness is read as the score of class 0.
                ("decoder=yolov8 coordinates=normalized", &[COCO, NO_BACKGROUND]),
            ][..],
        ),
        (
            "yolov8_decoder_input.raw",
            "1x2100x84",
            &[
                ("decoder=yolov8 coordinates=normalized", &[]),
                ("decoder=yolov8", &[NORMALIZED]),
                // For yolov5, the class scores of persons are 0.
                ("decoder=yolov5 coordinates=normalized", &[SILENCE]),
            ],
        ),
    ] {
        let Some(path) = data::path(&format!("data/recorded/{file}")) else { return };
        let replay = format!("location={} shape={shape} tensor-id=output", path.display());
        for reading in readings {
            let difference = difference(std::slice::from_ref(&replay), [320, 320], *reading);
            assert_eq!(difference, None);
        }
        let found = warnings(&[replay], [320, 320], &labels);
        let expected = if file.starts_with("yolov5") { &[COCO, NO_BACKGROUND][..] } else { &[] };
        assert_eq!(found.len(), expected.len(), "{file}: {found:?}");
        for (warning, part) in found.iter().zip(expected) {
            assert!(warning.contains(part), "{file}: {warning}");
        }
    }
}
