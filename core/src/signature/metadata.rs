// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the metadata in a model file (`metadata_props` in ONNX).
//!
//! In: keys and values. Out: labels, picture size, and ids of outputs, if the metadata contains them:
//!
//! - Exports by Ultralytics have the keys `names` (the class names, see [`parse_names`]), `imgsz` (height and width) and,
//!   since YOLOv8, `task`. The id of an output follows from these keys and the output's dimensions. For C classes,
//!   `[1,4+C,N]` with the task `detect` is an output of YOLOv8, and `[1,N,5+C]` without a task is an output of
//!   YOLOv5, whose authors' successors have such metadata for other outputs, too. With `end2end`, or `nms` among the
//!   export's arguments `args`, `[1,N,6]` with the task `detect` is the output of an end-to-end model, and with the `head`
//!   `RTDETRDecoder` (since 8.4) the output of RT-DETR. Before, the name in the `description` says that a model is RT-DETR,
//!   whose output then is `[1,N,4+C]`, or YOLOv10. The outputs of the tasks `segment`, `pose` and `obb` have more numbers,
//!   and `segment` has a second output `output1` with the prototypes of the masks. `kpt_shape` has the number of keypoints and of their components.
//! - A key that is an output's name has the id of this output's tensor as its value, as in `onnxinference` of
//!   GStreamer 1.26.

use std::collections::HashMap;

use super::parse_names;

/// The content of the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The class names; empty if unknown.
    pub labels: Vec<String>,
    /// The picture's width and height.
    pub size: Option<[u32; 2]>,
    custom: HashMap<String, String>,
}

/// The last layer of Ultralytics' RT-DETR.
const RT_DETR: &str = "RTDETRDecoder";

impl Metadata {
    /// Reads the keys and their values.
    pub fn new(custom: HashMap<String, String>) -> Self {
        let labels = custom.get("names").and_then(|names| parse_names(names)).unwrap_or_default();
        let size = custom.get("imgsz").and_then(|size| match *numbers(size)? {
            [side] => Some([side, side]),
            [height, width] => Some([width, height]),
            _ => None,
        });
        let size = size.filter(|size| !size.contains(&0));
        Self { labels, size, custom }
    }

    /// Returns the task that the model was trained for; `None` if unknown.
    pub fn task(&self) -> Option<&str> {
        self.value("task").map(str::trim).filter(|task| !task.is_empty())
    }

    /// Returns the number of keypoints and the number of components per keypoint; `None` if unknown.
    pub fn keypoints(&self) -> Option<[u32; 2]> {
        match *numbers(self.value("kpt_shape")?)? {
            [count, components @ 2..=3] if count > 0 => Some([count, components]),
            _ => None,
        }
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.custom.get(key).map(String::as_str)
    }

    /// Returns whether the model selects the detections itself: it was trained to, or exported with `nms=True`.
    pub fn end2end(&self) -> bool {
        self.value("end2end").map_or_else(|| self.is_named("yolov10"), is_true) || self.has_nms()
    }

    /// Returns whether its detections need no suppression. A model that was trained without can have duplicates.
    pub fn is_suppressed(&self) -> bool {
        self.has_nms() || self.is_rt_detr()
    }

    /// Returns whether it is Ultralytics' RT-DETR, into which frames are stretched.
    pub fn is_rt_detr(&self) -> bool {
        self.value("head").map_or_else(|| self.is_named("rtdetr"), |head| head == RT_DETR)
    }

    /// Returns whether the name in a description such as `Ultralytics YOLOv10n model` begins so.
    fn is_named(&self, name: &str) -> bool {
        let of = self.value("description").and_then(|it| it.strip_prefix("Ultralytics "));
        let begin = of.and_then(|it| it.get(..name.len()));
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    }

    fn has_nms(&self) -> bool {
        // Arguments are as in `{'batch': 1, 'nms': True}`.
        let args = self.value("args").map(str::trim);
        let args = args.and_then(|args| args.strip_prefix('{')?.strip_suffix('}'));
        let mut args =
            args.unwrap_or("").split(',').filter_map(|argument| argument.split_once(':'));
        let nms = args.find(|(key, _)| key.trim().trim_matches(['\'', '"']) == "nms");
        nms.is_some_and(|(_, value)| is_true(value))
    }

    /// Returns the id for the output `name` with these dimensions.
    pub fn id(&self, name: &str, dims: &[i64]) -> Option<String> {
        if let Some(id) = self.custom.get(name) {
            return Some(id.clone());
        }
        let classes = self.labels.len() as i64;
        let task = self.value("task");
        if self.is_rt_detr() {
            let [_, _, numbers] = *dims else { return None };
            let (rows, id) = match self.custom.contains_key("head") {
                true => (6, "rt-detr-end2end-out-normalized"),
                false => (4 + classes, "rt-detr-rows"),
            };
            return (numbers == rows && task == Some("detect")).then(|| id.to_owned());
        }
        // The beginning and the end of ids, and the count of a detection's numbers for its box, class and score.
        let (family, out, of_box) = match task {
            _ if self.end2end() => ("yolo-26", "-end2end-out", 6),
            _ if classes == 0 => return None,
            Some(_) => ("yolo-v8", "-out", 4 + classes),
            // YOLOv5's own exports have no task; the exports of YOLOv8 and later versions have one.
            None => ("yolo-v5", "-out", 5 + classes),
        };
        let further = match *dims {
            [_, numbers, _] if family == "yolo-v8" => Some(numbers - of_box),
            // YOLOv9 of its authors, which has the metadata of YOLOv5, and the numbers of YOLOv8.
            [_, numbers, _] if family == "yolo-v5" && numbers == 4 + classes => return None,
            [_, _, numbers] => Some(numbers - of_box),
            // The prototypes of masks.
            [_, _, _, _] if name == "output1" => None,
            _ => return None,
        };
        let (kind, part) = match (task, further) {
            (None, _) if family == "yolo-26" => return None,
            (Some("detect") | None, Some(0)) => ("", ""),
            (Some("obb"), Some(1)) => ("-obb", ""),
            (Some("pose"), Some(1..)) => ("-pose", ""),
            (Some("segment") | None, Some(1..)) => ("-segmentation", "-detections"),
            (Some("segment") | None, None) => ("-segmentation", "-protos"),
            _ => return None,
        };
        Some(format!("{family}{kind}{out}{part}"))
    }
}

fn is_true(value: &str) -> bool {
    value.trim().eq_ignore_ascii_case("true")
}

/// Returns the numbers of `[1, 2]`, or of a single number.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    inner.split(',').map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(entries: &[(&str, &str)]) -> Metadata {
        let entry = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Metadata::new(entries.iter().map(entry).collect())
    }

    #[test]
    fn names_are_the_labels_by_class() {
        assert_eq!(metadata(&[("names", "{1: 'person'}")]).labels, ["", "person"]);
        assert_eq!(metadata(&[("names", "person")]).labels, [""; 0]);
        assert_eq!(metadata(&[]).labels, [""; 0]);
    }

    #[test]
    fn the_size_is_height_and_width() {
        assert_eq!(metadata(&[("imgsz", "[480, 640]")]).size, Some([640, 480]));
        assert_eq!(metadata(&[("imgsz", "640")]).size, Some([640, 640]));
        assert_eq!(metadata(&[("imgsz", "[0, 640]")]).size, None);
    }

    #[test]
    fn task_and_number_of_classes_distinguish_the_outputs_of_yolo() {
        let names = ("names", "{0: 'a'}");
        let id = |entries: &[(&str, &str)], dims: &[i64]| {
            metadata(&[&[names], entries].concat()).id("output0", dims)
        };
        let detect = ("task", "detect");
        assert_eq!(id(&[detect], &[1, 5, 8400]).as_deref(), Some("yolo-v8-out"));
        assert_eq!(id(&[("task", "pose")], &[1, 5, 8400]), None);
        for (task, numbers, expected) in [
            ("pose", 56, "yolo-v8-pose-out"),
            ("segment", 37, "yolo-v8-segmentation-out-detections"),
            ("obb", 6, "yolo-v8-obb-out"),
        ] {
            assert_eq!(id(&[("task", task)], &[1, numbers, 8400]).as_deref(), Some(expected));
            assert_eq!(id(&[detect], &[1, numbers, 8400]), None);
        }
        assert_eq!(
            id(&[], &[1, 25200, 38]).as_deref(),
            Some("yolo-v5-segmentation-out-detections")
        );
        assert_eq!(id(&[], &[1, 25200, 6]).as_deref(), Some("yolo-v5-out"));
        // YOLOv9 of its authors.
        assert_eq!(id(&[], &[1, 5, 8400]), None);
        // The end-to-end output of a model with one class has this shape, too.
        for end2end in ["True", "true"] {
            assert_eq!(id(&[detect, ("end2end", end2end)], &[1, 5, 8400]), None);
        }
        let id_of_any_batch = id(&[detect, ("end2end", "False")], &[1, 5, 8400]);
        assert_eq!(id_of_any_batch.as_deref(), Some("yolo-v8-out"));
        assert_eq!(id(&[detect], &[1, 300, 6]), None);
    }

    #[test]
    fn an_end_to_end_detector_has_rows_of_six() {
        let id = |entries: &[(&str, &str)], dims: &[i64]| metadata(entries).id("output0", dims);
        let detect = ("task", "detect");
        for end2end in ["True", "true"] {
            let end2end = ("end2end", end2end);
            let found = id(&[detect, end2end], &[1, 300, 6]);
            assert_eq!(found.as_deref(), Some("yolo-26-end2end-out"));
            assert_eq!(id(&[detect, end2end], &[-1, 300, 6]), found);
            assert_eq!(id(&[end2end], &[1, 300, 6]), None);
            // The tasks for keypoints, masks and oriented boxes.
            for (task, numbers, expected) in [
                ("pose", 57, "yolo-26-pose-end2end-out"),
                ("segment", 38, "yolo-26-segmentation-end2end-out-detections"),
                ("obb", 7, "yolo-26-obb-end2end-out"),
            ] {
                let dims = [1, 300, numbers];
                assert_eq!(id(&[("task", task), end2end], &dims).as_deref(), Some(expected));
                assert_eq!(id(&[("task", task), end2end], &[1, 300, 6]), None);
                assert_eq!(id(&[detect, end2end], &dims), None);
            }
        }
    }

    #[test]
    fn a_model_with_suppression_inside_and_rtdetr_select_the_detections() {
        let args = |nms| format!("{{'batch': 1, 'half': False, 'dynamic': False, 'nms': {nms}}}");
        let [with, without] = ["True", "False"].map(args);
        let names = ("names", "{0: 'a', 1: 'b'}");
        let id = |entries: &[(&str, &str)], dims: &[i64]| {
            let metadata = metadata(&[&[names, ("end2end", "False")], entries].concat());
            let flags = [metadata.end2end(), metadata.is_suppressed()];
            (flags, metadata.id("output0", dims))
        };
        for (task, numbers, expected) in [
            ("detect", 6, "yolo-26-end2end-out"),
            ("pose", 57, "yolo-26-pose-end2end-out"),
            ("segment", 38, "yolo-26-segmentation-end2end-out-detections"),
            ("obb", 7, "yolo-26-obb-end2end-out"),
        ] {
            let (task, dims) = (("task", task), [1, 300, numbers]);
            let found = Some(expected.to_owned());
            assert_eq!(id(&[task, ("args", &with)], &dims), ([true; 2], found.clone()));
            assert_eq!(id(&[task, ("args", &without)], &dims).0, [false; 2]);
            let trained = [task, ("args", &without), ("end2end", "True")];
            assert_eq!(id(&trained, &dims), ([true, false], found));
        }
        let detect = ("task", "detect");
        let without = [detect, ("args", without.as_str())];
        assert_eq!(id(&without, &[1, 6, 8400]), ([false; 2], Some("yolo-v8-out".to_owned())));
        let rtdetr = [&without[..], &[("head", "RTDETRDecoder")]].concat();
        let expected = Some("rt-detr-end2end-out-normalized".to_owned());
        assert_eq!(id(&rtdetr, &[1, 300, 6]), ([false, true], expected));
        assert_eq!(id(&rtdetr, &[1, 300, 84]), ([false, true], None));
    }

    #[test]
    fn the_description_of_older_exports_names_rt_detr_and_yolov10() {
        let names = ("names", "{0: 'a', 1: 'b'}");
        let id = |description: &str, further: &[(&str, &str)], dims: &[i64]| {
            let entries = [("task", "detect"), names, ("description", description)];
            let metadata = metadata(&[&entries, further].concat());
            let flags = [metadata.end2end(), metadata.is_suppressed()];
            (flags, metadata.id("output0", dims))
        };
        // With two classes, both have rows of six.
        let (rows, rt_detr) = ([1, 300, 6], Some("rt-detr-rows".to_owned()));
        assert_eq!(id("Ultralytics rtdetr-l model", &[], &rows), ([false, true], rt_detr));
        assert_eq!(id("Ultralytics rtdetr-l model", &[], &[1, 300, 84]), ([false, true], None));
        let end2end = Some("yolo-26-end2end-out".to_owned());
        let yolov10 = "Ultralytics YOLOv10n model trained on coco.yaml";
        assert_eq!(id(yolov10, &[], &rows), ([true, false], end2end));
        let columns = Some("yolo-v8-out".to_owned());
        let raw = id(yolov10, &[("end2end", "False")], &[1, 6, 8400]);
        assert_eq!(raw, ([false, false], columns.clone()));
        assert_eq!(id("Ultralytics YOLO11n model", &[], &[1, 6, 8400]), ([false; 2], columns));
        for other in
            ["Ultralytics best model", "YOLOv10n", "Ultralytics ", "Ultralytics YOLOv1\u{e9}"]
        {
            assert_eq!(id(other, &[], &rows), ([false; 2], None), "{other}");
        }
    }

    #[test]
    fn the_output_with_prototypes_is_the_second_one_of_a_segmentation_model() {
        let names = ("names", "{0: 'a'}");
        let id = |entries: &[(&str, &str)], name| metadata(entries).id(name, &[1, 32, 160, 160]);
        let segment = ("task", "segment");
        let expected = Some("yolo-v8-segmentation-out-protos");
        assert_eq!(id(&[names, segment], "output1").as_deref(), expected);
        assert_eq!(id(&[names, segment], "output0"), None);
        assert_eq!(id(&[names, ("task", "detect")], "output1"), None);
        let expected = Some("yolo-v5-segmentation-out-protos");
        assert_eq!(id(&[names], "output1").as_deref(), expected);
    }

    #[test]
    fn keypoints_are_a_number_and_its_components() {
        let keypoints = |text| metadata(&[("kpt_shape", text)]).keypoints();
        assert_eq!(keypoints("[17, 3]"), Some([17, 3]));
        assert_eq!(keypoints("[21,2]"), Some([21, 2]));
        for text in ["17", "[17]", "[0, 3]", "[17, 4]", "[a, 3]"] {
            assert_eq!(keypoints(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_with_the_name_of_an_output_is_its_id() {
        let metadata = metadata(&[("scores", "my-scores")]);
        assert_eq!(metadata.id("scores", &[1, 10]).as_deref(), Some("my-scores"));
        assert_eq!(metadata.id("boxes", &[1, 10]), None);
    }
}
