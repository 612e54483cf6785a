// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known signatures, one entry for each exporter.
//!
//! Not here, because inputs and outputs do not say how to read them: CenterNet (`hm` has logits or scores), YOLOv4 of the
//! ONNX model zoo (objectness and scores are logits or probabilities), models of Transformers with another number of
//! classes than those for COCO (softmax or sigmoid).

use super::InputLayout::{Nchw, Nhwc};
use super::{Facts, Normalization, Pattern, Signature};
use crate::geometry::Letterbox;
use crate::tensor::ElementType::{self, F16, F32, I32, I64, U8};

const FLOATS: &[ElementType] = &[F32, F16];
const BYTES: &[ElementType] = &[U8];
const INTEGERS: &[ElementType] = &[I64, I32];

const fn floats(name: &'static str, dims: &'static str) -> Pattern {
    Pattern { name, types: FLOATS, dims }
}

const fn bytes(name: &'static str, dims: &'static str) -> Pattern {
    Pattern { name, types: BYTES, dims }
}

const fn integers(name: &'static str, dims: &'static str) -> Pattern {
    Pattern { name, types: INTEGERS, dims }
}

/// Stretched to the model's input.
const STRETCHED: Facts =
    Facts { letterbox: Letterbox::None, size: None, layout: None, normalization: None };
const CENTERED: Facts = Facts { letterbox: Letterbox::Center, ..STRETCHED };
const TOP_LEFT: Facts = Facts { letterbox: Letterbox::TopLeft, ..STRETCHED };

/// The mean and the standard deviation of ImageNet's pictures.
const IMAGENET: Option<Normalization> = Some(Normalization {
    range: [0.0, 1.0],
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
});
/// From -1 to 1.
const SIGNED: Option<Normalization> =
    Some(Normalization { range: [-1.0, 1.0], mean: [0.0; 3], std: [1.0; 3] });

pub(super) const SIGNATURES: &[Signature] = &[
    // lyuwenyu/RT-DETR, Peterande/D-FINE, ShihuaHuang95/DEIM: tools/export_onnx.py, tools/deployment/export_onnx.py.
    // DEIMv2 on DINOv3 has other pixels, and the same signature.
    Signature {
        name: "rt-detr",
        inputs: &[floats("images", "B,3,H,W"), integers("orig_target_sizes", "B,2")],
        outputs: &[
            (integers("labels", "B,Q"), "labels"),
            (floats("boxes", "B,Q,4?"), "boxes"),
            (floats("scores", "B,Q"), "scores"),
        ],
        facts: STRETCHED,
    },
    // roboflow/rf-detr, rfdetr/deploy/export.py.
    Signature {
        name: "rf-detr",
        inputs: &[floats("input", "B,3,H,W")],
        outputs: &[
            (floats("dets", "B,Q,4"), "rf-detr-boxes"),
            (floats("labels", "B,Q,>1"), "rf-detr-logits"),
        ],
        facts: Facts { normalization: IMAGENET, ..STRETCHED },
    },
    // Transformers by optimum: DETR and YOLOS have COCO's 91 numbers and no object.
    Signature {
        name: "transformers-detr",
        inputs: &[floats("pixel_values", "B,3?,H,W")],
        outputs: &[
            (floats("logits", "B,Q,92"), "detr-softmax-logits"),
            (floats("pred_boxes", "B,Q,4"), "detr-softmax-boxes"),
        ],
        facts: Facts {
            size: Some([800, 800]),
            layout: Some(Nchw),
            normalization: IMAGENET,
            ..STRETCHED
        },
    },
    Signature {
        name: "transformers-detr-with-mask",
        inputs: &[floats("pixel_values", "B,3?,H,W"), integers("pixel_mask", "B,MH,MW")],
        outputs: &[
            (floats("logits", "B,Q,92"), "detr-softmax-logits"),
            (floats("pred_boxes", "B,Q,4"), "detr-softmax-boxes"),
        ],
        facts: Facts {
            size: Some([800, 800]),
            layout: Some(Nchw),
            normalization: IMAGENET,
            ..STRETCHED
        },
    },
    // Transformers by optimum: RT-DETR, RT-DETRv2 and D-FINE for COCO.
    Signature {
        name: "transformers-rt-detr",
        inputs: &[floats("pixel_values", "B,3?,H,W")],
        outputs: &[
            (floats("logits", "B,Q,80"), "detr-logits"),
            (floats("pred_boxes", "B,Q,4"), "detr-boxes"),
        ],
        facts: Facts { size: Some([640, 640]), layout: Some(Nchw), ..STRETCHED },
    },
    // pytorch/vision: the models normalize and scale pictures themselves.
    Signature {
        name: "torchvision",
        inputs: &[floats("images", "B,3,H,W")],
        outputs: &[
            (floats("boxes", "N,4"), "torchvision-boxes"),
            (integers("labels", "M"), "torchvision-labels"),
            (floats("scores", "L"), "torchvision-scores"),
        ],
        facts: Facts { size: Some([800, 800]), ..STRETCHED },
    },
    // open-mmlab/mmdeploy: the configuration says size and normalization.
    Signature {
        name: "mmdeploy",
        inputs: &[floats("input", "B,3,H,W")],
        outputs: &[
            (floats("dets", "B,N,5"), "mmdetection-boxes"),
            (integers("labels", "B,N"), "mmdetection-labels"),
        ],
        facts: TOP_LEFT,
    },
    // PaddleDetection by Paddle2ONNX: the configuration says the normalization.
    Signature {
        name: "paddle",
        inputs: &[floats("image", "B,3,H,W"), floats("scale_factor", "B,2")],
        outputs: &[
            (floats("multiclass_nms3_0.tmp_0", "N,6"), "paddle-nms-rows"),
            (integers("multiclass_nms3_0.tmp_2", "B"), "paddle-nms-count"),
        ],
        facts: Facts { size: Some([640, 640]), ..STRETCHED },
    },
    Signature {
        name: "paddle-image-alone",
        inputs: &[floats("image", "B,3,H,W")],
        outputs: &[
            (floats("multiclass_nms3_0.tmp_0", "N,6"), "paddle-nms-rows"),
            (integers("multiclass_nms3_0.tmp_2", "B"), "paddle-nms-count"),
        ],
        facts: STRETCHED,
    },
    Signature {
        name: "paddle-with-im-shape",
        inputs: &[
            floats("im_shape", "B,2"),
            floats("image", "B,3,H,W"),
            floats("scale_factor", "B,2"),
        ],
        outputs: &[
            (floats("multiclass_nms3_0.tmp_0", "N,6"), "paddle-nms-rows"),
            (integers("multiclass_nms3_0.tmp_2", "B"), "paddle-nms-count"),
        ],
        facts: Facts { size: Some([640, 640]), normalization: IMAGENET, ..STRETCHED },
    },
    // Deci-AI/super-gradients, documentation/source/models_export.md.
    Signature {
        name: "yolo-nas-flat",
        inputs: &[bytes("input", "B,3,H,W")],
        outputs: &[(floats("graph2_flat_predictions", "N,7"), "yolonas-flat-rows")],
        facts: STRETCHED,
    },
    Signature {
        name: "yolo-nas-batch",
        inputs: &[bytes("input", "B,3,H,W")],
        outputs: &[
            (integers("graph2_num_predictions", "B,1"), "num_dets"),
            (floats("graph2_pred_boxes", "B,N,4"), "det_boxes"),
            (floats("graph2_pred_scores", "B,N"), "det_scores"),
            (integers("graph2_pred_classes", "B,N"), "det_classes"),
        ],
        facts: STRETCHED,
    },
    Signature {
        name: "yolo-nas-raw",
        inputs: &[floats("input", "B,3,H,W")],
        outputs: &[
            (floats("graph1_pred_boxes", "B,N,4"), "boxes"),
            (floats("graph1_pred_scores", "B,N,C"), "scores"),
        ],
        facts: STRETCHED,
    },
    // meituan/YOLOv6, deploy/ONNX/export_onnx.py. Its boxes and scores are those of YOLOv5, with an objectness of 1.
    Signature {
        name: "yolov6",
        inputs: &[floats("images", "B,3,H,W")],
        outputs: &[(floats("outputs", "B,N,85"), "yolo-v5-out")],
        facts: CENTERED,
    },
    // WongKinYiu/yolov7, export.py --end2end --max-wh.
    Signature {
        name: "yolov7-end2end",
        inputs: &[floats("images", "B,3,H,W")],
        outputs: &[(floats("output", "?,7"), "yolov7-end2end-rows")],
        facts: CENTERED,
    },
    // meituan/YOLOv6, deploy/ONNX/export_onnx.py --end2end --ort.
    Signature {
        name: "yolov6-end2end",
        inputs: &[floats("images", "B,3,H,W")],
        outputs: &[(floats("outputs", "?,7"), "yolov7-end2end-rows")],
        facts: CENTERED,
    },
    // quic/ai-hub-models, qai_hub_models/models/yolov8_det and others.
    Signature {
        name: "ai-hub-yolo",
        inputs: &[floats("image", "B,3,H,W")],
        outputs: &[
            (floats("boxes", "B,N,4"), "boxes"),
            (floats("scores", "B,N"), "scores"),
            (bytes("class_idx", "B,N"), "labels"),
        ],
        facts: CENTERED,
    },
    // Tianxiaomo/pytorch-YOLOv4, tool/yolo_layer.py and demo_darknet2onnx.py.
    Signature {
        name: "pytorch-yolov4",
        inputs: &[floats("input", "B,3,H,W")],
        outputs: &[
            (floats("boxes", "B,N,1,4"), "boxes-normalized"),
            (floats("confs", "B,N,C"), "scores"),
        ],
        facts: STRETCHED,
    },
    // google/automl, efficientdet, by tf2onnx.
    Signature {
        name: "efficientdet",
        inputs: &[bytes("image_arrays:0", "B,H,W,3")],
        outputs: &[(floats("detections:0", "B,100?,7"), "efficientdet-rows")],
        facts: Facts { size: Some([512, 512]), layout: Some(Nhwc), ..TOP_LEFT },
    },
    // TensorFlow's object detection by tf2onnx. The model scales the picture, and boxes are normalized.
    Signature {
        name: "tf-object-detection",
        inputs: &[bytes("input_tensor", "B,H,W,3")],
        outputs: &[
            (floats("detection_boxes", "OB,N,4"), "ssd-mobilenet-v1-variant-1-out-boxes"),
            (floats("detection_classes", "OB,N"), "ssd-mobilenet-v1-variant-1-out-classes"),
            (floats("detection_scores", "OB,N"), "ssd-mobilenet-v1-variant-1-out-scores"),
            (floats("num_detections", "OB"), "generic-variant-1-out-count"),
        ],
        facts: Facts { size: Some([640, 640]), layout: Some(Nhwc), ..STRETCHED },
    },
    Signature {
        name: "tf-object-detection-all",
        inputs: &[bytes("input_tensor", "B,H,W,3")],
        outputs: &[
            (floats("detection_anchor_indices", "OB,N"), ""),
            (floats("detection_boxes", "OB,N,4"), "ssd-mobilenet-v1-variant-1-out-boxes"),
            (floats("detection_classes", "OB,N"), "ssd-mobilenet-v1-variant-1-out-classes"),
            (floats("detection_multiclass_scores", "OB,N,C"), ""),
            (floats("detection_scores", "OB,N"), "ssd-mobilenet-v1-variant-1-out-scores"),
            (floats("num_detections", "OB"), "generic-variant-1-out-count"),
            (floats("raw_detection_boxes", "OB,A,4"), ""),
            (floats("raw_detection_scores", "OB,A,C"), ""),
        ],
        facts: Facts { size: Some([640, 640]), layout: Some(Nhwc), ..STRETCHED },
    },
    // ONNX model zoo: ssd_mobilenet_v1.
    Signature {
        name: "zoo-ssd-mobilenet",
        inputs: &[bytes("image_tensor:0", "B,H,W,3")],
        outputs: &[
            (floats("detection_boxes:0", "OB,N,4"), "ssd-mobilenet-v1-variant-1-out-boxes"),
            (floats("detection_classes:0", "OB,N"), "ssd-mobilenet-v1-variant-1-out-classes"),
            (floats("detection_scores:0", "OB,N"), "ssd-mobilenet-v1-variant-1-out-scores"),
            (floats("num_detections:0", "OB"), "generic-variant-1-out-count"),
        ],
        facts: Facts { size: Some([300, 300]), layout: Some(Nhwc), ..STRETCHED },
    },
    // ONNX model zoo: yolov3. The model undoes a letterbox of a picture of image_shape, which is here its input.
    Signature {
        name: "zoo-yolov3",
        inputs: &[floats("input_1", "B,3,H,W"), floats("image_shape", "B,2")],
        outputs: &[
            (floats("yolonms_layer_1/ExpandDims_1:0", "1?,N,4"), "yolov3-boxes"),
            (floats("yolonms_layer_1/ExpandDims_3:0", "1?,80,N"), "yolov3-scores"),
            (integers("yolonms_layer_1/concat_2:0", "M,3"), "yolov3-indices"),
        ],
        facts: Facts { size: Some([416, 416]), ..CENTERED },
    },
    // google-ai-edge/mediapipe, the model for short distances.
    Signature {
        name: "blazeface",
        inputs: &[floats("input", "B,128,128,3")],
        outputs: &[
            (floats("regressors", "B,896,16"), "blazeface-regressors"),
            (floats("classificators", "B,896,1"), "blazeface-classificators"),
        ],
        facts: Facts { normalization: SIGNED, ..CENTERED },
    },
];
