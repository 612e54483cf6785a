// SPDX-License-Identifier: MIT OR Apache-2.0
//! The groups of tensors that GStreamer's inference elements have in their caps, as far as decoders read them.
//!
//! In: the list of decoders. Out: the id of each group, and the ids and dimensions of its tensors.
//!
//! The id of a group is in the model's `.modelinfo` file (`group-id`). A model with one output has the id of its tensor;
//! others have the ids of GStreamer's decoders ([`Family::groups`](super::Family::groups)). The ids of its tensors end in
//! `-out` or `-out-normalized`; others are not known to it.

use super::{Decoder, Role, classifier, decoders};

/// A group of tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorGroup {
    /// The id.
    pub id: &'static str,
    /// Its tensors.
    pub tensors: Vec<GroupTensor>,
}

/// A tensor of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTensor {
    /// The id.
    pub id: &'static str,
    /// The dimensions; `None` for any number, and for numbers that are unknown before the first frame.
    pub dims: Vec<Option<usize>>,
}

/// The groups of all decoders, and of classifiers, whose tensors have a dimension of the images or not.
pub fn tensor_groups() -> Vec<TensorGroup> {
    let of_classifier = |(id, _)| {
        let group = |dims| TensorGroup { id, tensors: vec![GroupTensor { id, dims }] };
        [group(vec![None; 2]), group(vec![None])]
    };
    let of_decoders = decoders().iter().flat_map(|decoder| groups(decoder));
    of_decoders.chain(classifier::IDS.into_iter().flat_map(of_classifier)).collect()
}

fn groups(decoder: &'static Decoder) -> Vec<TensorGroup> {
    let last = decoder.forms.last().expect("a decoder has a form");
    let tensor = |role: &'static Role<'_>, index: usize| {
        let id = role.ids.get(index).or(role.ids.last());
        let id = id.expect("a tensor of a group has an id");
        // The first dimension counts the images.
        let dims = std::iter::once(None).chain(role.dims.iter().copied()).collect();
        GroupTensor { id, dims }
    };
    let tensors = |index| last.roles.iter().map(|role| tensor(role, index)).collect();
    let ids = decoder.family.groups.iter().enumerate();
    let mut groups: Vec<TensorGroup> =
        ids.map(|(index, id)| TensorGroup { id, tensors: tensors(index) }).collect();
    for form in &decoder.forms {
        let [role] = &form.roles[..] else { continue };
        for id in role.ids.iter().filter(|id| id.contains("-out")) {
            // Dimensions are not fixed, so that another shape is an error of the decoder, which says what it expects.
            let dims = vec![None; 1 + role.dims.len()];
            let group = TensorGroup { id, tensors: vec![GroupTensor { id, dims }] };
            // Forms can share an id.
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups with the dimensions of their tensors; `N` is any number.
    const EXPECTED: [&str; 29] = [
        "classification-generic-out: classification-generic-out N",
        "classification-generic-out: classification-generic-out N,N",
        "classification-generic-softmaxed-out: classification-generic-softmaxed-out N",
        "classification-generic-softmaxed-out: classification-generic-softmaxed-out N,N",
        "rt-detr-end2end-out-normalized: rt-detr-end2end-out-normalized N,N,N",
        "ssd-mobilenet-v1-variant-1-out: ssd-mobilenet-v1-variant-1-out-boxes N,N,4 \
         ssd-mobilenet-v1-variant-1-out-classes N,N ssd-mobilenet-v1-variant-1-out-scores N,N \
         generic-variant-1-out-count N",
        "ultra-lightweight-face-detection-rfb-320-v1-variant-1-out: \
         ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores N,N,2 \
         ssd-mobilenet-v1-variant-1-out-boxes N,N,4",
        "ultra-lightweight-face-detection-rfb-320-v1-without-postproc-out: \
         ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-boxes-without-postproc N,N,4 \
         ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores N,N,2",
        "yolo-26-end2end-out-normalized: yolo-26-end2end-out-normalized N,N,N",
        "yolo-26-end2end-out: yolo-26-end2end-out N,N,N",
        "yolo-26-obb-end2end-out-normalized: yolo-26-obb-end2end-out-normalized N,N,N",
        "yolo-26-obb-end2end-out: yolo-26-obb-end2end-out N,N,N",
        "yolo-26-pose-end2end-out-normalized: yolo-26-pose-end2end-out-normalized N,N,N",
        "yolo-26-pose-end2end-out: yolo-26-pose-end2end-out N,N,N",
        "yolo-26-segmentation-end2end-out: yolo-26-segmentation-end2end-out-detections N,N,N \
         yolo-26-segmentation-end2end-out-protos N,N,N,N",
        "yolo-v5-out-normalized: yolo-v5-out-normalized N,N,N",
        "yolo-v5-out: yolo-v5-out N,N,N",
        "yolo-v5-raw-out: yolo-v5-raw-out N,N,N",
        "yolo-v5-segmentation-out: yolo-v5-segmentation-out-detections N,N,N \
         yolo-v5-segmentation-out-protos N,N,N,N",
        "yolo-v8-obb-out-normalized: yolo-v8-obb-out-normalized N,N,N",
        "yolo-v8-obb-out: yolo-v8-obb-out N,N,N",
        "yolo-v8-out-normalized: yolo-v8-out-normalized N,N,N",
        "yolo-v8-out: yolo-v8-out N,N,N",
        "yolo-v8-pose-out-normalized: yolo-v8-pose-out-normalized N,N,N",
        "yolo-v8-pose-out: yolo-v8-pose-out N,N,N",
        "yolo-v8-segmentation-out-normalized: yolo-v8-segmentation-out-detections-normalized N,N,N \
         yolo-v8-segmentation-out-protos N,N,N,N",
        "yolo-v8-segmentation-out: yolo-v8-segmentation-out-detections N,N,N \
         yolo-v8-segmentation-out-protos N,N,N,N",
        "yolox-out: yolox-out N,N,N",
        "yolox-raw-out: yolox-raw-out N,N,N",
    ];

    #[test]
    fn inference_elements_have_these_groups() {
        let dim = |dim: &Option<usize>| dim.map_or("N".to_owned(), |dim| dim.to_string());
        let tensor = |GroupTensor { id, dims }: &GroupTensor| {
            format!("{id} {}", dims.iter().map(dim).collect::<Vec<_>>().join(","))
        };
        let group = |TensorGroup { id, tensors }: &TensorGroup| {
            format!("{id}: {}", tensors.iter().map(tensor).collect::<Vec<_>>().join(" "))
        };
        let mut found: Vec<String> = tensor_groups().iter().map(group).collect();
        found.sort_unstable();
        assert_eq!(found, EXPECTED);
    }
}
