// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of decoders.
//!
//! A model family is a [description](super::description) as text in this folder, with an entry in [`ENTRIES`]. The
//! property `decoder`, the names in C and Python, messages, and the groups of tensors for GStreamer's autoplugging
//! follow from it.

mod described;

use std::sync::LazyLock;

pub use self::described::from_text;
use super::{Decoder, ModelTask, boxes};

/// The decoders, in the order in which tensor ids are compared, and in which messages list them. A family has one text
/// for each form of its output, forms with more tensors first.
const ENTRIES: &[Family] = &[
    Family { is_alone: true, ..family(&[include_str!("windows.layout")]) },
    // No text describes its output.
    Family { has_usual_ids: true, ..family(&[]) },
    family(&[include_str!("yolov5.layout")]),
    // No other family has five rows, and the models for COCO have 80 classes.
    Family { unambiguous: &[1, 80], ..family(&[include_str!("yolov8.layout")]) },
    family(&[include_str!("ultraface.layout")])
        .with_groups(&["ultra-lightweight-face-detection-rfb-320-v1-variant-1-out"]),
    family(&[include_str!("yolox.layout")]),
    family(&[include_str!("end2end.layout")]),
    family(&[
        include_str!("detr.layout"),
        include_str!("detr-dets.layout"),
        include_str!("detr-one-tensor.layout"),
        include_str!("detr-softmax.layout"),
    ]),
    family(&[include_str!("yolox-raw.layout")]),
    family(&[
        include_str!("yolov5-raw-levels-p6.layout"),
        include_str!("yolov5-raw-levels.layout"),
        include_str!("yolov5-raw.layout"),
        include_str!("yolov5-raw-p6.layout"),
    ]),
    family(&[include_str!("ssd-priors.layout"), include_str!("ssd.layout")]),
    family(&[include_str!("retinaface-landmarks.layout"), include_str!("retinaface.layout")]),
    family(&[include_str!("ultraface-raw.layout")])
        .with_groups(&["ultra-lightweight-face-detection-rfb-320-v1-without-postproc-out"]),
    family(&[include_str!("yunet-landmarks.layout"), include_str!("yunet.layout")]),
    family(&[include_str!("scrfd-landmarks.layout"), include_str!("scrfd.layout")]),
    family(&[include_str!("nanodet.layout"), include_str!("nanodet-plus.layout")]),
    family(&[include_str!("picodet.layout")]),
    family(&[include_str!("yolov8-heads.layout"), include_str!("yolo26-heads.layout")]),
    family(&[include_str!("yolov8-heads-seg.layout")]),
    family(&[
        include_str!("yolov8-heads-pose.layout"),
        include_str!("yolov8-heads-pose-rknn.layout"),
    ]),
    family(&[include_str!("ssd-postprocess.layout"), include_str!("ssd-postprocess-tf.layout")])
        .with_groups(&["ssd-mobilenet-v1-variant-1-out"]),
    family(&[include_str!("efficientnms.layout")]),
    family(&[include_str!("yolov8-seg.layout")])
        .with_groups(&["yolo-v8-segmentation-out", "yolo-v8-segmentation-out-normalized"])
        .for_task("segment", false),
    family(&[include_str!("yolov8-pose.layout")]).for_task("pose", false),
    family(&[include_str!("yolov8-obb.layout")]).for_task("obb", false),
    family(&[include_str!("yolov5-seg.layout")])
        .with_groups(&["yolo-v5-segmentation-out"])
        .for_task("segment", false),
    family(&[include_str!("end2end-seg.layout")])
        .with_groups(&["yolo-26-segmentation-end2end-out"])
        .for_task("segment", true),
    family(&[include_str!("end2end-pose.layout")]).for_task("pose", true),
    family(&[include_str!("end2end-obb.layout")]).for_task("obb", true),
    family(&[include_str!("detr-end2end.layout")]),
    family(&[include_str!("yolov7-end2end.layout")]),
    family(&[include_str!("yolonas-flat.layout")]),
    family(&[include_str!("detection-output.layout")]),
    family(&[include_str!("efficientdet.layout")]),
    family(&[include_str!("paddle-nms.layout"), include_str!("paddle-nms-rows.layout")]),
    family(&[include_str!("mmdetection.layout")]),
    family(&[include_str!("torchvision.layout"), include_str!("torchvision-normalized.layout")]),
    family(&[include_str!("yolov3.layout")]),
    family(&[
        include_str!("yolov4-raw.layout"),
        include_str!("yolov4-raw-tiny.layout"),
        include_str!("yolov4-raw-logits.layout"),
    ]),
    family(&[include_str!("yolov3-raw.layout")]),
    family(&[include_str!("fcos.layout"), include_str!("fcos-cells.layout")]),
    family(&[include_str!("centernet.layout"), include_str!("centernet-scores.layout")]),
    family(&[include_str!("blazeface.layout"), include_str!("blazeface-back.layout")]),
    family(&[include_str!("fomo.layout")]),
];

/// Facts about a model family that descriptions of its output do not have.
#[derive(Clone, Copy)]
pub struct Family {
    /// The descriptions; none for `boxes`.
    texts: &'static [&'static str],
    /// True if the only tensor has all numbers of a detection: beside tensors that no decoder's id names, it is the
    /// output of another family, such as boxes with scores in another tensor. The decoder is then not suggested.
    pub(super) is_alone: bool,
    /// True if outputs of many other families have the decoder's ids, too, so that they contradict no other decoder.
    pub(crate) has_usual_ids: bool,
    /// The numbers of classes for which the shape of an output as exported is enough to choose the family, if the
    /// model's number is not known. Empty if the shape is never enough.
    pub(super) unambiguous: &'static [usize],
    /// The ids of the groups that GStreamer's inference elements have in their caps for the tensors of the last form, if
    /// there are several. A tensor has its first id in the first group, its second id in the second, and its last id in the
    /// remaining ones.
    pub groups: &'static [&'static str],
    /// The task of the models; `None` for the detection of upright boxes, or if it is unknown.
    pub(super) task: Option<ModelTask>,
}

const fn family(texts: &'static [&'static str]) -> Family {
    Family {
        texts,
        is_alone: false,
        has_usual_ids: false,
        unambiguous: &[],
        groups: &[],
        task: None,
    }
}

impl Family {
    const fn with_groups(self, ids: &'static [&'static str]) -> Self {
        Self { groups: ids, ..self }
    }

    const fn for_task(self, name: &'static str, is_end2end: bool) -> Self {
        Self { task: Some(ModelTask { name, is_end2end }), ..self }
    }
}

/// All decoders, in the order of the list.
pub fn decoders() -> &'static [&'static Decoder] {
    static DECODERS: LazyLock<Vec<&Decoder>> = LazyLock::new(|| {
        let decoder = |&family: &Family| -> &'static Decoder {
            Box::leak(Box::new(match family.texts {
                [] => boxes::decoder(family),
                texts => {
                    described::decoder(texts, family).expect("a test parses every text of the list")
                }
            }))
        };
        ENTRIES.iter().map(decoder).collect()
    });
    &DECODERS
}

/// The texts of each family that is described as text.
pub fn texts() -> Vec<&'static [&'static str]> {
    ENTRIES.iter().map(|family| family.texts).filter(|texts| !texts.is_empty()).collect()
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
                    Description::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).name
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
                .forms
                .iter()
                .flat_map(|form| &form.roles)
                .flat_map(|role| &role.ids)
                .map(|id| &**id)
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
