// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of decoders.
//!
//! A model family is a [description](super::description) as text in this folder, with an entry in [`ENTRIES`]. The
//! property `decoder`, the names in C and Python, messages, and the groups of tensors for GStreamer's autoplugging
//! follow from it.

mod described;

use std::sync::LazyLock;

use self::Entry::{Described, InRust};
use self::described::FamilyDecoder;
pub use self::described::from_text;
use super::boxes::Boxes;
use super::{Decoder, Groups, ModelTask};

/// The decoders, in the order in which tensor ids are compared, and in which messages list them. A family has one text
/// for each form of its output, forms with more tensors first.
const ENTRIES: &[Entry] = &[
    Described(family(&[include_str!("windows.layout")]).alone()),
    InRust(&Boxes),
    Described(family(&[include_str!("yolov5.layout")]).with_group_for_each_id()),
    // No other family has five rows, and the models for COCO have 80 classes.
    Described(
        family(&[include_str!("yolov8.layout")]).with_group_for_each_id().chosen_by_shape(&[1, 80]),
    ),
    Described(
        family(&[include_str!("ultraface.layout")])
            .with_groups(&["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out"]),
    ),
    Described(family(&[include_str!("yolox.layout")]).with_group_for_each_id()),
    Described(family(&[include_str!("end2end.layout")]).with_group_for_each_id()),
    Described(family(&[
        include_str!("detr.layout"),
        include_str!("detr-dets.layout"),
        include_str!("detr-one-tensor.layout"),
        include_str!("detr-softmax.layout"),
    ])),
    Described(family(&[include_str!("yolox-raw.layout")]).with_group_for_each_id()),
    Described(
        family(&[
            include_str!("yolov5-raw-levels-p6.layout"),
            include_str!("yolov5-raw-levels.layout"),
            include_str!("yolov5-raw.layout"),
            include_str!("yolov5-raw-p6.layout"),
        ])
        .with_group_for_each_id(),
    ),
    Described(family(&[include_str!("ssd-priors.layout"), include_str!("ssd.layout")])),
    Described(family(&[
        include_str!("retinaface-landmarks.layout"),
        include_str!("retinaface.layout"),
    ])),
    Described(
        family(&[include_str!("ultraface-raw.layout")])
            .with_groups(&["ultra-lightweight-face-detection-rfb-320-v1-without-postproc-out"]),
    ),
    Described(family(&[include_str!("yunet-landmarks.layout"), include_str!("yunet.layout")])),
    Described(family(&[include_str!("scrfd-landmarks.layout"), include_str!("scrfd.layout")])),
    Described(family(&[include_str!("nanodet.layout"), include_str!("nanodet-plus.layout")])),
    Described(family(&[include_str!("picodet.layout")])),
    Described(family(&[include_str!("yolov8-heads.layout"), include_str!("yolo26-heads.layout")])),
    Described(family(&[include_str!("yolov8-heads-seg.layout")])),
    Described(family(&[
        include_str!("yolov8-heads-pose.layout"),
        include_str!("yolov8-heads-pose-rknn.layout"),
    ])),
    Described(
        family(&[
            include_str!("ssd-postprocess.layout"),
            include_str!("ssd-postprocess-tf.layout"),
        ])
        .with_groups(&["ssd-mobilenet-v1-variant-1-out"]),
    ),
    Described(family(&[include_str!("efficientnms.layout")])),
    Described(
        family(&[include_str!("yolov8-seg.layout")])
            .with_groups(&["yolo-v8-segmentation-out", "yolo-v8-segmentation-out-normalized"])
            .for_task("segment"),
    ),
    Described(
        family(&[include_str!("yolov8-pose.layout")]).with_group_for_each_id().for_task("pose"),
    ),
    Described(
        family(&[include_str!("yolov8-obb.layout")]).with_group_for_each_id().for_task("obb"),
    ),
    Described(
        family(&[include_str!("yolov5-seg.layout")])
            .with_groups(&["yolo-v5-segmentation-out"])
            .for_task("segment"),
    ),
    Described(
        family(&[include_str!("end2end-seg.layout")])
            .with_groups(&["yolo-26-segmentation-end2end-out"])
            .for_end2end_task("segment"),
    ),
    Described(
        family(&[include_str!("end2end-pose.layout")])
            .with_group_for_each_id()
            .for_end2end_task("pose"),
    ),
    Described(
        family(&[include_str!("end2end-obb.layout")])
            .with_group_for_each_id()
            .for_end2end_task("obb"),
    ),
    Described(family(&[include_str!("detr-end2end.layout")]).with_group_for_each_id()),
    Described(family(&[include_str!("yolov7-end2end.layout")])),
    Described(family(&[include_str!("yolonas-flat.layout")])),
    Described(family(&[include_str!("detection-output.layout")])),
    Described(family(&[include_str!("efficientdet.layout")])),
    Described(family(&[include_str!("paddle-nms.layout"), include_str!("paddle-nms-rows.layout")])),
    Described(family(&[include_str!("mmdetection.layout")])),
    Described(family(&[
        include_str!("torchvision.layout"),
        include_str!("torchvision-normalized.layout"),
    ])),
    Described(family(&[include_str!("yolov3.layout")])),
    Described(family(&[
        include_str!("yolov4-raw.layout"),
        include_str!("yolov4-raw-tiny.layout"),
        include_str!("yolov4-raw-logits.layout"),
    ])),
    Described(family(&[include_str!("yolov3-raw.layout")])),
    Described(family(&[include_str!("fcos.layout"), include_str!("fcos-cells.layout")])),
    Described(family(&[include_str!("centernet.layout"), include_str!("centernet-scores.layout")])),
    Described(family(&[include_str!("blazeface.layout"), include_str!("blazeface-back.layout")])),
    Described(family(&[include_str!("fomo.layout")])),
];

/// A decoder of the list.
enum Entry {
    Described(Family),
    /// A family whose output no text describes.
    InRust(&'static dyn Decoder),
}

/// A model family that is described as text, with further facts about it.
#[derive(Clone, Copy)]
struct Family {
    texts: &'static [&'static str],
    /// See [`Decoder::is_alone`].
    is_alone: bool,
    /// The numbers of classes for which the shape of an output as exported is enough to choose the family, if the
    /// model's number is not known. Empty if the shape is never enough.
    unambiguous: &'static [usize],
    groups: Groups,
    task: Option<ModelTask>,
}

const fn family(texts: &'static [&'static str]) -> Family {
    Family { texts, is_alone: false, unambiguous: &[], groups: Groups::None, task: None }
}

impl Family {
    const fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    const fn chosen_by_shape(self, unambiguous: &'static [usize]) -> Self {
        Self { unambiguous, ..self }
    }

    const fn with_group_for_each_id(self) -> Self {
        Self { groups: Groups::EachId, ..self }
    }

    const fn with_groups(self, ids: &'static [&'static str]) -> Self {
        Self { groups: Groups::Named(ids), ..self }
    }

    const fn for_task(self, name: &'static str) -> Self {
        Self { task: Some(ModelTask { name, is_end2end: false }), ..self }
    }

    const fn for_end2end_task(self, name: &'static str) -> Self {
        Self { task: Some(ModelTask { name, is_end2end: true }), ..self }
    }
}

/// All decoders, in the order of the list.
pub fn decoders() -> &'static [&'static dyn Decoder] {
    static DECODERS: LazyLock<Vec<&dyn Decoder>> = LazyLock::new(|| {
        let decoder = |entry: &Entry| match entry {
            Described(family) => FamilyDecoder::embedded(*family),
            InRust(decoder) => *decoder,
        };
        ENTRIES.iter().map(decoder).collect()
    });
    &DECODERS
}

/// The texts of each family that is described as text.
pub fn texts() -> Vec<&'static [&'static str]> {
    let texts = |entry: &Entry| match entry {
        Described(family) => Some(family.texts),
        InRust(_) => None,
    };
    ENTRIES.iter().filter_map(texts).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::decoder::decoders;
    use crate::decoder::description::Description;

    #[test]
    fn every_embedded_text_is_a_description_named_after_its_family() {
        for texts in texts() {
            let names: Vec<&str> = texts
                .iter()
                .map(|text| {
                    Description::parse(text)
                        .unwrap_or_else(|error| panic!("{error}\n{text}"))
                        .name()
                })
                .collect();
            assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
        }
    }

    /// An id that two families have cannot choose between them. GStreamer gives the boxes of UltraFace the id of SSD's
    /// boxes; the ids of their scores differ. The registry gives both outputs of UltraFace one id for the scores; the ids
    /// of their boxes differ.
    #[test]
    fn ids_are_those_of_one_family() {
        let shared = [
            "ssd-mobilenet-v1-variant-1-out-boxes",
            "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores",
        ];
        let mut found: HashMap<&str, &str> = HashMap::new();
        for decoder in decoders() {
            let mut ids: Vec<&str> = decoder
                .forms()
                .iter()
                .flat_map(|form| form.roles())
                .flat_map(|role| role.ids)
                .copied()
                .filter(|id| !shared.contains(id))
                .collect();
            ids.sort_unstable();
            ids.dedup();
            for id in ids {
                let other = found.insert(id, decoder.name());
                assert_eq!(other, None, "{id} is an id of {} and of another", decoder.name());
            }
        }
        assert!(found.contains_key("yolo-26-end2end-out"));
    }

    #[test]
    fn the_names_of_decoders_differ() {
        let mut names: Vec<&str> = decoders().iter().map(|decoder| decoder.name()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_same_text_gives_the_same_decoder() {
        let [first, second] = [texts()[0][0], texts()[1][0]];
        let address = |text: &str| std::ptr::from_ref(from_text(text).unwrap()).addr();
        assert_eq!(address(first), address(first));
        assert_ne!(address(first), address(second));
        assert!(from_text("name = x").is_err());
    }
}
