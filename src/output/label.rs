// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of classes.
//!
//! In: a label file or the labels of the tensors' model, and the decoder. Out: for each class, a quark, and the
//! structure that all regions of the class share.

use std::path::{Path, PathBuf};

use gst::glib;

use super::KeypointLayout;
use super::detection_template::DetectionTemplate;
use super::label_file::{self, FileLabels};
use crate::file;
use nmsfilter_core::decoder::{Choice, Decoder};

/// The maximum size of a label file in bytes: 64 for each of
/// [`MAX_CLASSES`](nmsfilter_core::decoder::MAX_CLASSES) classes.
const MAX_FILE_SIZE: u64 = 4 << 20;

/// The reason why labels cannot be read: the file is missing, is not a regular file, is too large, is not UTF-8, or
/// has no label.
#[derive(Debug, thiserror::Error)]
#[error("the label file {path:?} {problem}")]
pub struct LabelError {
    path: PathBuf,
    problem: String,
}

/// The names of classes. They come from the label file or, without one, from the tensors' model. A class that has
/// no label there gets its name from the decoder, or else a name made from its number (`class-7`).
#[derive(Default)]
pub struct Labels {
    names: Vec<String>,
    /// True if `names` are from a label file.
    from_file: bool,
    /// True if the file has the numbers of the classes.
    are_numbered: bool,
    decoder: Option<&'static Decoder>,
    /// The class to which the first of `names` belongs.
    first: u32,
    /// The outputs of a classifier, and its name.
    outputs: Vec<OutputLabels>,
    pub(super) model_name: String,
    /// True if there is no class but 0, as far as is known.
    is_single: bool,
    /// The meaning of the points of every class, if it is known.
    keypoints: Option<KeypointLayout>,
    /// The labels by class. Each is created when it is first used.
    cached: Vec<Option<Label>>,
}

/// The labels of an output of a classifier. The classes of all outputs are numbered in one row.
struct OutputLabels {
    /// The name of the tensor.
    name: glib::Quark,
    /// The number of its class 0 in the row.
    first: usize,
    /// The index of the label of its class 0; `None` if the labels belong to other outputs.
    label: Option<usize>,
}

/// The label of a class, and the structure that all regions of the class share.
pub(super) struct Label {
    /// The name of the class, which is never empty. Quarks are kept because they are never freed, and because
    /// looking one up takes a lock.
    pub quark: glib::Quark,
    pub detection: DetectionTemplate,
    /// The meaning of a region's points, if they are as many.
    keypoints: KeypointLayout,
}

impl Labels {
    /// Reads one label per line, numbered lines, or a list or dictionary in JSON. The first label belongs to class 0 or, if
    /// the classes in the tensor begin with another number, to this class; a number is a class's. The text is UTF-8,
    /// with or without a byte order mark. A blank line stands for a class without a label; blank lines after the last label
    /// are ignored.
    ///
    /// # Errors
    /// If the file cannot be read, is not a regular file, has more than 4 MiB, is not UTF-8, has another form, or has no
    /// label.
    pub fn load(path: &Path) -> Result<Self, LabelError> {
        Self::read(path, label_file::parse)
    }

    /// Reads a label file of nvinfer. In such a file, blank lines do not stand for a class, and a label ends before
    /// a semicolon.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn load_nvinfer(path: &Path) -> Result<Self, LabelError> {
        Self::read(path, |text| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let label = |line: &str| line.split(';').next().unwrap_or_default().trim().to_owned();
            Ok(FileLabels { names: lines.map(label).collect(), are_numbered: false })
        })
    }

    /// Reads a file whose text `parse` reads.
    fn read(
        path: &Path,
        parse: impl FnOnce(&str) -> Result<FileLabels, String>,
    ) -> Result<Self, LabelError> {
        let error = |problem: String| LabelError { path: path.to_owned(), problem };
        let text =
            file::read_text(path, MAX_FILE_SIZE).map_err(|cause| error(cause.to_string()))?;
        let FileLabels { names, are_numbered } = parse(&text).map_err(|form| {
            error(format!(
                "{form}; expected one label per line, lines such as 4: person with the numbers of classes, or a list or \
                 dictionary of labels in JSON"
            ))
        })?;
        if names.iter().all(String::is_empty) {
            let text = "has no label; expected one label per line; unset label-file to use the model's labels";
            return Err(error(text.into()));
        }
        Ok(Self { names, are_numbered, from_file: true, ..Self::default() })
    }

    /// Uses the names of the tensors' model, starting with class 0, unless there is a label file. White space
    /// around a name is removed, as in a label file.
    pub fn set_model(&mut self, names: &[String]) {
        if !self.from_file {
            self.names = names.iter().map(|name| name.trim().to_owned()).collect();
            self.cached.clear();
        }
    }

    /// The labels of the label file, for tensors of another model.
    pub fn of_file(&self) -> Self {
        let names = if self.from_file { self.names.clone() } else { Vec::new() };
        let Self { from_file, are_numbered, .. } = *self;
        Self { names, from_file, are_numbered, ..Self::default() }
    }

    /// Returns where the labels come from, for messages; `None` if there are no labels.
    pub fn source(&self) -> Option<&'static str> {
        if self.from_file {
            Some("the label file")
        } else {
            (!self.names.is_empty()).then_some("the tensors' model")
        }
    }

    /// Returns the classes of `choice` whose regions have this label. Classes after the last label have the
    /// decoder's names. Classes beyond the decoder's last class are searched, too, if they have a label.
    pub fn classes<'a>(
        &'a self,
        label: &'a str,
        choice: &'a Choice,
    ) -> impl Iterator<Item = usize> + 'a {
        let Choice { decoder, layout, .. } = choice;
        let (names, first) = (&self.names, self.first_class(choice));
        let number = label.strip_prefix(NUMBERED).and_then(|number| number.parse().ok());
        let is_label = move |&class: &usize| match name(names, first, Some(*decoder), class) {
            Some(name) => name == label,
            None => number == Some(class) && label == numbered(class),
        };
        (0..layout.classes.max(names.len() + first as usize)).filter(is_label)
    }

    /// The class to which the first label belongs. Of numbered labels that is class 0, unless it has a label, although
    /// the classes in the tensor begin with another number.
    pub fn first_class(&self, choice: &Choice) -> u32 {
        let has_background =
            self.names.first().is_some_and(String::is_empty) || self.is_first_background();
        if self.are_numbered && has_background { 0 } else { choice.layout.first_label() }
    }

    /// Returns the first label, if it is a name for the background, but is taken for an object's. `first` is the
    /// first class of the layout.
    pub fn background(&self, first: u32) -> Option<&str> {
        let is_taken = self.is_first_background() && !(self.are_numbered && first > 0);
        self.names.first().map(String::as_str).filter(|_| is_taken)
    }

    fn is_first_background(&self) -> bool {
        let Some(first) = self.names.first() else { return false };
        let is_background = |word: &&str| first.trim_matches('_').eq_ignore_ascii_case(word);
        BACKGROUND.iter().any(is_background)
    }

    /// The names, the first for class 0.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Returns the number of labels.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Uses the names of the chosen decoder for classes after the last label, and the first class of its layout.
    /// `keypoints` is the meaning of the points of every class; without it, it follows from the label.
    pub fn set_choice(&mut self, choice: &Choice, keypoints: Option<KeypointLayout>) {
        self.decoder = Some(choice.decoder);
        // Numbers of classes in a tensor have no known limit.
        self.is_single = choice.layout.classes == 1 || choice.layout.has_class_field();
        self.keypoints = keypoints;
        self.first = self.first_class(choice);
        self.outputs.clear();
        self.cached.clear();
    }

    /// Uses no names but the labels: those of a classifier of this name, whose outputs have these names and numbers of classes. The
    /// labels belong to its only output, else to all outputs, one after the other, else to the only output with as many
    /// classes.
    pub fn set_classifier<'a>(
        &mut self,
        model_name: &str,
        outputs: impl Iterator<Item = (&'a str, usize)> + Clone,
    ) {
        (self.decoder, self.first) = (None, 0);
        self.model_name = model_name.to_owned();
        let count = self.names.len();
        let total = outputs.clone().map(|(_, classes)| classes).sum::<usize>();
        let has_one = outputs.clone().count() == 1;
        let is_unique = outputs.clone().filter(|(_, classes)| *classes == count).count() == 1;
        let mut first = 0;
        self.outputs.clear();
        self.outputs.extend(outputs.map(|(name, classes)| {
            let label = if has_one || total == count {
                Some(first)
            } else {
                (is_unique && classes == count).then_some(0)
            };
            let output = OutputLabels { name: glib::Quark::from_str(name), first, label };
            first += classes;
            output
        }));
        self.cached.clear();
    }

    /// Returns whether the labels belong to this output of the classifier.
    pub fn are_of_output(&self, output: usize) -> bool {
        self.outputs[output].label.is_some()
    }

    /// The name of the tensor of this output of the classifier.
    pub fn output_name(&self, output: usize) -> glib::Quark {
        self.outputs[output].name
    }

    /// The number in the row of the classes of all outputs of a classifier's class.
    pub(super) fn index(&self, output: usize, class: u32) -> u32 {
        self.outputs[output].first as u32 + class
    }

    /// Returns the name of a class of this output of the classifier as a quark.
    pub fn quark_of_output(&mut self, output: usize, class: u32) -> glib::Quark {
        self.quark(self.index(output, class))
    }

    /// Returns the name of `class` as a quark.
    pub fn quark(&mut self, class: u32) -> glib::Quark {
        self.label(class).quark
    }

    /// The label of a class, of an output if it is a classifier's; `None` if it has no other than its number.
    pub fn named(&mut self, output: Option<usize>, class: u32) -> Option<&'static str> {
        let name = self.quark(output.map_or(class, |output| self.index(output, class))).as_str();
        (*name != *numbered(class as usize)).then_some(name)
    }

    /// Returns the meaning of the `count` points of a region of `class`.
    pub(super) fn keypoint_layout(&mut self, class: u32, count: usize) -> KeypointLayout {
        self.keypoints.unwrap_or_else(|| self.label(class).keypoints).for_points(count)
    }

    /// The label of `class`: its number in the row if it is a classifier's ([`index`](Self::index)). It is below a small
    /// multiple of [`MAX_CLASSES`](nmsfilter_core::decoder::MAX_CLASSES).
    pub(super) fn label(&mut self, class: u32) -> &mut Label {
        let index = class as usize;
        if index >= self.cached.len() {
            self.cached.resize_with(index + 1, || None);
        }
        let Self { names, decoder, first, is_single, outputs, cached, .. } = self;
        cached[index].get_or_insert_with(|| {
            let (name, class) = match outputs.iter().rfind(|output| output.first <= index) {
                None => (name(names, *first, *decoder, index), index),
                Some(OutputLabels { first, label, .. }) => {
                    let class = index - first;
                    let label = label.and_then(|label| names.get(label + class));
                    (label.map(String::as_str).filter(|label| !label.is_empty()), class)
                }
            };
            let quark = match name {
                Some(name) => glib::Quark::from_str(name),
                None => glib::Quark::from_str(numbered(class)),
            };
            let class = class as u32;
            let decoder_label = decoder.and_then(|decoder| decoder.label(class));
            let keypoints = match name {
                _ if decoder_label == Some("face") => KeypointLayout::Face5,
                Some(name) => KeypointLayout::of_label(name),
                // The usual model with points and without names is one for people.
                None if *is_single && class == 0 => KeypointLayout::Coco17,
                None => KeypointLayout::Points,
            };
            Label { quark, detection: DetectionTemplate::new(class, quark), keypoints }
        })
    }
}

/// Prefix of the label of a class without a name. The number of the class follows.
const NUMBERED: &str = "class-";

/// Returns the label of a class without a name.
fn numbered(class: usize) -> String {
    format!("{NUMBERED}{class}")
}

/// Names of the background. Label files of TensorFlow models have one of them in the first line.
const BACKGROUND: [&str; 4] = ["background", "???", "unlabeled", "unlabelled"];

/// Returns the name of a class: its label in `names`, whose first entry belongs to the class `first`, or the
/// decoder's name for a class that has no entry.
fn name<'a>(
    names: &'a [String],
    first: u32,
    decoder: Option<&Decoder>,
    class: usize,
) -> Option<&'a str> {
    match class.checked_sub(first as usize).and_then(|index| names.get(index)) {
        Some(name) => Some(name.as_str()).filter(|name| !name.is_empty()),
        None => decoder.and_then(|decoder| decoder.label(class as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmsfilter_core::decoder::{self, Options};
    use nmsfilter_core::tensor::TensorView;

    /// Writes a label file with this content, and loads it.
    fn load(name: &str, bytes: &[u8]) -> Result<Labels, LabelError> {
        let file = format!("nmsfilter-labels-{}-{name}.txt", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, bytes).unwrap();
        let labels = Labels::load(&path);
        std::fs::remove_file(&path).unwrap();
        labels
    }

    fn names(name: &str, bytes: &[u8]) -> Vec<String> {
        load(name, bytes).unwrap().names
    }

    fn error_text(result: Result<Labels, LabelError>) -> String {
        result.err().expect("the label file is not accepted").to_string()
    }

    #[test]
    fn a_line_is_a_label_and_is_trimmed() {
        assert_eq!(
            names("plain", b"person\n traffic light\t\ncat"),
            ["person", "traffic light", "cat"]
        );
        assert_eq!(names("crlf", b"person\r\ntraffic light\r\n"), ["person", "traffic light"]);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_label() {
        assert_eq!(names("bom", b"\xef\xbb\xbfperson\r\ncat\r\n"), ["person", "cat"]);
    }

    #[test]
    fn blank_lines_at_the_end_are_ignored() {
        assert_eq!(names("blank", b"person\n\ncat\n\n \t\n\r\n"), ["person", "", "cat"]);
    }

    #[test]
    fn a_file_without_a_label_is_an_error() {
        for bytes in [&b""[..], b"\n\n", b" \r\n\t", b"\xef\xbb\xbf"] {
            let message = error_text(load("empty", bytes));
            assert!(message.contains("has no label; expected one label per line"), "{message}");
        }
    }

    #[test]
    fn classes_are_found_by_the_labels_of_their_regions() {
        let labels = load("shown", b"person\n\nclass-0\nperson").unwrap();
        let of = |labels: &Labels, label: &str, count: usize| -> Vec<usize> {
            labels.classes(label, &windows(count)).collect()
        };
        for (label, expected) in [
            ("person", vec![0, 3]),
            ("class-1", vec![1]),
            ("class-0", vec![2]),
            ("class-5", vec![5]),
        ] {
            assert_eq!(of(&labels, label, 6), expected, "{label}");
        }
        for none in ["", "class-2", "class-6", "class-01", "class-+1", "class-", "object"] {
            assert_eq!(of(&labels, none, 6), [0; 0], "{none}");
        }
        let none = Labels::default();
        assert_eq!(of(&none, "object", 1), [0]);
        assert_eq!((of(&none, "class-0", 1), of(&none, "class-0", 0)), (vec![], vec![]));
    }

    /// Chooses the decoder `windows`, with this number of classes.
    fn windows(classes: usize) -> Choice {
        let tensor = TensorView::from_slice::<f32>("windows", &[0, 4], &[]);
        let mut choice = decoder::choose(&[tensor], None, Options::default()).unwrap();
        choice.layout.classes = classes;
        choice
    }

    /// Chooses the decoder for the outputs of SSD, either in TensorFlow, where classes begin with 1, or in TFLite,
    /// where they begin with 0.
    fn ssd(is_tflite: bool) -> Choice {
        let numbers = [0.5f32; 8];
        let ids = if is_tflite {
            ["boxes", "classes", "scores", "count"]
        } else {
            ["detection_boxes", "detection_classes", "detection_scores", "num_detections"]
        };
        let shapes: [&[usize]; 4] = [&[1, 2, 4], &[1, 2], &[1, 2], &[1]];
        let tensors: Vec<TensorView<'_>> = ids
            .iter()
            .zip(shapes)
            .map(|(id, shape)| {
                TensorView::from_slice(id, shape, &numbers[..shape.iter().product()])
            })
            .collect();
        let ssd = decoder::by_name("ssd-postprocess");
        decoder::choose(&tensors, ssd, Options::default()).unwrap()
    }

    #[test]
    fn the_first_label_is_that_of_the_first_class() {
        gst::init().unwrap();
        let mut labels = load("first", b"person\nbicycle").unwrap();
        for (is_tflite, expected) in [
            (false, ["class-0", "person", "bicycle", "class-3"]),
            (true, ["person", "bicycle", "class-2", "class-3"]),
        ] {
            let choice = ssd(is_tflite);
            labels.set_choice(&choice, None);
            assert_eq!(
                [0, 1, 2, 3].map(|class| labels.label(class).quark.as_str().to_owned()),
                expected
            );
            for (class, label) in expected.iter().enumerate() {
                assert_eq!(labels.classes(label, &choice).collect::<Vec<_>>(), [class], "{label}");
            }
        }
    }

    /// The numbers of a file are the classes in the tensor, also where these begin with 1.
    #[test]
    fn numbered_labels_belong_to_the_classes_with_their_numbers() {
        gst::init().unwrap();
        for (text, is_tflite, expected) in [
            ("1: person\n3: cat", false, ["class-0", "person", "class-2", "cat"]),
            ("0: background\n1: person", false, ["background", "person", "class-2", "class-3"]),
            ("1: person\n3: cat", true, ["class-0", "person", "class-2", "cat"]),
            // Class 0 is no background: the numbers are a list's.
            ("0: person\n1: bicycle", false, ["class-0", "person", "bicycle", "class-3"]),
        ] {
            let mut labels = load("numbered", text.as_bytes()).unwrap();
            let choice = ssd(is_tflite);
            labels.set_choice(&choice, None);
            let found = [0, 1, 2, 3].map(|class| labels.label(class).quark.as_str().to_owned());
            assert_eq!(found, expected, "{text}");
            for (class, label) in expected.iter().enumerate() {
                assert!(labels.classes(label, &choice).eq([class]), "{label}");
            }
        }
    }

    #[test]
    fn a_label_of_the_background_is_recognized() {
        for (name, is_background) in [
            ("__background__", true),
            ("BACKGROUND", true),
            ("???", true),
            ("unlabeled", true),
            ("person", false),
            ("background noise", false),
        ] {
            let labels = load("background", format!("{name}\ncat").as_bytes()).unwrap();
            assert_eq!(labels.background(0), is_background.then_some(name));
        }
        assert_eq!(Labels::default().background(0), None);
    }

    #[test]
    fn labels_of_the_model_are_trimmed_and_replaced_by_the_next() {
        gst::init().unwrap();
        let mut labels = Labels::default();
        assert_eq!((labels.source(), labels.count()), (None, 0));
        labels.set_model(&[" person ".to_owned(), " ".to_owned()]);
        assert_eq!((labels.source(), labels.count()), (Some("the tensors' model"), 2));
        let name = |labels: &mut Labels, class| labels.label(class).quark.as_str().to_owned();
        assert_eq!(
            [0, 1, 2].map(|class| name(&mut labels, class)),
            ["person", "class-1", "class-2"]
        );
        labels.set_model(&["cat".to_owned()]);
        assert_eq!([0, 1].map(|class| name(&mut labels, class)), ["cat", "class-1"]);
        labels.set_model(&[]);
        assert_eq!((labels.source(), labels.count()), (None, 0));
        assert_eq!(name(&mut labels, 0), "class-0");
    }

    #[test]
    fn labels_of_the_model_are_not_used_if_there_is_a_label_file() {
        gst::init().unwrap();
        let mut labels = load("file", b"dog").unwrap();
        labels.set_model(&["person".to_owned(), "cat".to_owned()]);
        assert_eq!(labels.source(), Some("the label file"));
        assert_eq!([0, 1].map(|class| labels.label(class).quark.as_str()), ["dog", "class-1"]);
    }

    #[test]
    fn utf16_is_an_error_that_suggests_utf8() {
        let message = error_text(load("utf16", b"\xff\xfep\0\n\0"));
        assert!(message.contains("byte order mark of UTF-16; save it as UTF-8"), "{message}");
    }

    #[test]
    fn invalid_utf8_and_zero_bytes_are_errors_that_name_the_line() {
        let message = error_text(load("latin1", b"tea\ncaf\xe9\n"));
        assert!(message.contains("is not valid UTF-8 in line 2; save it as UTF-8"), "{message}");
        let message = error_text(load("zero", b"per\0son\n"));
        assert!(message.contains("has a zero byte in line 1"), "{message}");
    }

    #[test]
    fn a_directory_is_an_error() {
        let message = error_text(Labels::load(Path::new("/tmp")));
        assert!(message.contains("\"/tmp\" is a directory; expected a regular file"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_an_error_and_is_not_read() {
        let message = error_text(Labels::load(Path::new("/dev/zero")));
        assert!(message.contains("is a device; expected a regular file"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_is_an_error_and_is_not_opened() {
        let path = std::env::temp_dir().join(format!("nmsfilter-labels-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let message = error_text(Labels::load(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(message.contains("is a FIFO; expected a regular file"), "{message}");
    }

    #[test]
    fn a_file_above_the_size_limit_is_an_error() {
        let path = std::env::temp_dir().join(format!("nmsfilter-large-{}", std::process::id()));
        // The file is sparse, so it uses no disk blocks.
        std::fs::File::create(&path).unwrap().set_len((4 << 20) + 1).unwrap();
        let message = error_text(Labels::load(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(message.contains("4194305 bytes; expected at most 4194304"), "{message}");
    }
}
