// SPDX-License-Identifier: MIT OR Apache-2.0
//! The enumerations of the element's properties, as GObject types, and their conversion to the
//! types of the core, which does not depend on GStreamer.
#![allow(missing_docs, reason = "the macros generate items without documentation")]

use gst::glib;
use gst::glib::translate::IntoGlib;

use crate::bindings::type_names::format;
use crate::output::{KeypointLayout, Kinds};
use crate::{property_enum, property_kind};
use nmsfilter_core::decoder::layout::{self, Activation};
use nmsfilter_core::reading::Classifiers;
use nmsfilter_core::{decoder, engine, geometry};

property_enum! {
    /// The rule by which candidates survive.
    Method as "GstNmsFilterMethod" for engine::Method {
        /// Exact greedy suppression.
        #[default]
        Greedy = 0, "greedy", "Greedy: suppressed by survivors only (exact)";
        /// The paper's single pass.
        MapReduce = 1, "map-reduce",
            "Map/reduce: suppressed by any candidate of higher rank (Oro et al. 2020)";
        /// No suppression.
        None = 2, "none", "None: decode only";
        /// Greedy merging.
        Merge = 3, "merge", "Merge: union with what greedy would suppress (SAHI's GREEDYNMM)";
        /// Transitive merging.
        MergeTransitive = 4, "merge-transitive",
            "Merge, transitive: union of boxes that overlap in a chain, joined by score (SAHI's NMM: by index)";
        /// Weighted boxes fusion.
        WeightedFusion = 5, "weighted-fusion",
            "Weighted boxes fusion: mean of each cluster by score (Solovyev et al. 2021)";
        /// The weighted suppression of MediaPipe.
        WeightedAverage = 6, "weighted-average",
            "Weighted average: mean with what greedy would suppress, by score (MediaPipe; NMW: by score x IoU)";
        /// Soft-NMS.
        SoftLinear = 7, "soft-linear",
            "Soft-NMS, linear: scores times 1 - overlap (Bodla et al. 2017)";
        /// Soft-NMS.
        SoftGaussian = 8, "soft-gaussian",
            "Soft-NMS, Gaussian: scores times exp(-overlap^2 / sigma) (Bodla et al. 2017)";
        /// Matrix NMS.
        MatrixLinear = 9, "matrix-linear", "Matrix NMS, linear decay (Wang et al. 2020)";
        /// Matrix NMS.
        MatrixGaussian = 10, "matrix-gaussian", "Matrix NMS, Gaussian decay (Wang et al. 2020)";
        /// Adaptive-NMS.
        Adaptive = 11, "adaptive",
            "Adaptive-NMS: a column of densities raises the threshold (Liu et al. 2019)";
        /// FeatureNMS.
        Feature = 12, "feature",
            "FeatureNMS: boxes whose embeddings differ do not conflict (Salscheider 2020)";
    }
}

property_enum! {
    /// When two boxes overlap too much; `t` is the property `iou-threshold`.
    Overlap as "GstNmsFilterOverlap" for engine::Overlap {
        /// Intersection over union.
        #[default]
        Iou = 0, "iou", "IoU: intersection > t x union";
        /// Relative to the box of higher rank.
        Representative = 1, "representative",
            "Representative: intersection > t x area of the box of higher rank";
        /// Relative to the smaller box.
        Smaller = 2, "smaller", "Smaller: intersection > t x smaller area";
        /// Distance-IoU.
        Diou = 3, "diou",
            "DIoU: IoU - (distance of centers / diagonal of the enclosing box)^2 > t; on the CPU";
        /// The overlap of Gaussian distributions.
        ProbIou = 4, "prob-iou",
            "Probabilistic IoU of oriented boxes (Llerena et al. 2021) > t";
    }
}

property_enum! {
    /// The numbers of a box, for decoder=boxes.
    BoxFormat as "GstNmsFilterBoxFormat" for decoder::BoxFormat {
        /// left, top, right, bottom
        #[default]
        Corners = 0, "corners", "Corners: left, top, right, bottom";
        /// center x, center y, width, height
        Center = 1, "center", "Center: center x, center y, width, height";
        /// left, top, side
        Square = 2, "square", "Square: left, top, side";
    }
}

property_enum! {
    /// The unit of the tensors' coordinates.
    Coordinates as "GstNmsFilterCoordinates" for decoder::Coordinates {
        /// The unit of the decoder or of the tensor's id, else pixels.
        #[default]
        Auto = 0, "auto", "By the decoder or by the tensor's id, else pixels";
        /// Pixels of the model's input.
        Pixels = 1, "pixels", "Pixels of the model's input";
        /// 0 to 1 across the model's input.
        Normalized = 2, "normalized", "0 to 1 across the model's input";
    }
}

property_enum! {
    /// The order of a tensor's dimensions.
    Channels as "GstNmsFilterChannels" for decoder::Channels {
        /// The order that shapes have; an error if both fit.
        #[default]
        Auto = 0, "auto", "By the shapes; an error if both orders fit";
        /// Channels before anchors or pixels.
        First = 1, "first", "First: [1,C,H,W], [1,4+C,N]";
        /// Channels after anchors or pixels.
        Last = 2, "last", "Last: [1,H,W,C], [1,N,4+C]";
    }
}

property_enum! {
    /// The pixels of masks.
    MaskSize as "GstNmsFilterMaskSize" for engine::MaskSize {
        /// The pixels of the model's prototypes.
        #[default]
        Prototypes = 0, "prototypes", "Prototypes: those of the model's output";
        /// The pixels of the frame.
        Frame = 1, "frame", "Frame: those of the frame, interpolated";
    }
}

property_enum! {
    /// The rule for boxes at inner edges of regions.
    RegionEdges as "GstNmsFilterRegionEdges" for engine::RegionEdges {
        /// Like other boxes.
        #[default]
        Keep = 0, "keep", "Keep: like other boxes";
        /// Dropped.
        Drop = 1, "drop", "Drop: they are no detections and suppress nothing";
        /// With a lower score.
        Lower = 2, "lower", "Lower: their score becomes edge-score, if it is greater";
    }
}

property_enum! {
    /// Where to decode and suppress.
    Backend as "GstNmsFilterBackend" for engine::Backend {
        /// On the device that holds the tensors, or on the one that takes less time.
        #[default]
        Auto = 0, "auto",
            "Auto: on the device that holds the tensors, or where it takes less time; else the CPU";
        /// On the CPU.
        Cpu = 1, "cpu", "CPU";
        /// On an NVIDIA GPU.
        Cuda = 2, "cuda", "CUDA: an NVIDIA GPU, or an error";
    }
}

property_enum! {
    /// How the frame was fitted into the model's input.
    NmsFilterLetterbox as "GstNmsFilterLetterbox" for Option of geometry::Letterbox {
        auto = 3,
            "By the tensors' model description, else none";
        /// Stretched to fill it.
        None = 0, "none", "None: stretched to fill the model's input";
        /// Scaled without distortion, borders on both sides.
        Center = 1, "center", "Center: undistorted, borders on both sides";
        /// Scaled without distortion, borders right or below.
        TopLeft = 2, "top-left", "Top left: undistorted, border right or below";
    }
}

property_kind!(Kinds, |default, name, _| {
    glib::ParamSpecFlags::builder::<Kinds>(name).default_value(default)
});

property_enum! {
    /// Which decoder reads the tensors.
    Decoder as "GstNmsFilterDecoder" {
        #[default]
        Auto = 0, "auto", "By tensor id, else by shape";
        Windows = 1, "windows", "Windows, square: [N,4] of x, y, side, score";
        Boxes = 2, "boxes",
            "YOLO-NAS, RetinaNet and others: boxes [1,N,4] or [1,N,1,4], scores [1,N,C], [1,C,N], or [1,N] with classes [1,N]";
        Yolov5 = 3, "yolov5", "YOLOv5 to v7: [1,N,5+C] of cx, cy, w, h, objectness, scores";
        Yolov8 = 4, "yolov8",
            "YOLOv8, v9, 11, 12, YOLO26: [1,4+C,N] or [1,N,4+C] of cx, cy, w, h, scores";
        UltraFace = 5, "ultraface", "UltraFace: scores [1,N,2], boxes [1,N,4]";
        Yolox = 6, "yolox", "YOLOX that decodes its boxes: [1,N,5+C] as for yolov5";
        End2end = 7, "end2end",
            "YOLOv10, YOLO26, DeepStream-Yolo: [1,N,6] of x1, y1, x2, y2, score, class";
        Detr = 8, "detr",
            "DETR, RT-DETR, RF-DETR, D-FINE, DEIM, YOLOS: normalized cx, cy, w, h [1,Q,4], logits [1,Q,C]; or [1,Q,4+C] of probabilities";
        YoloxRaw = 9, "yolox-raw", "YOLOX before its decode step: [1,N,5+C]";
        Yolov5Raw = 10, "yolov5-raw",
            "YOLOv5 before its decode step, with anchors for COCO: [1,N,5+C], or [1,3,H,W,5+C] for each stride";
        Ssd = 11, "ssd",
            "SSD before its postprocessing: offsets [1,N,4], logits [1,N,1+C], priors [4,N] or [N,4] (else of SSD MobileNet 300x300)";
        RetinaFace = 12, "retinaface", "RetinaFace: offsets [1,N,4], scores [1,N,2], landmarks";
        UltraFaceRaw = 28, "ultraface-raw",
            "UltraFace before its postprocessing: offsets [1,N,4] (cx, cy, w, h), scores [1,N,2]";
        YuNet = 13, "yunet",
            "YuNet: scores, objectness, boxes, perhaps landmarks, for each stride";
        Scrfd = 14, "scrfd", "SCRFD: scores, distances, perhaps landmarks, for each stride";
        NanoDet = 15, "nanodet",
            "NanoDet: scores and 4 x 8 bins for each stride; NanoDet-Plus: [1,N,C+32]";
        PicoDet = 16, "picodet", "PicoDet: scores and 4 x 8 bins for each stride";
        Yolov8Heads = 27, "yolov8-heads",
            "YOLOv8 to 12, YOLO26, cut for NPUs: for each stride boxes [1,64,H,W] (YOLO26: [1,4,H,W]) and scores [1,C,H,W], or \
             channels last";
        Yolov8HeadsSeg = 30, "yolov8-heads-seg",
            "Segmentation of YOLOv8 to 12, cut for NPUs: also coefficients [1,M,H,W], prototypes [1,M,H,W]";
        Yolov8HeadsPose = 31, "yolov8-heads-pose",
            "Pose of YOLOv8 to 12, cut for NPUs: also keypoints [1,3K,H,W] (Hailo), or [1,64+C,H,W] and [1,K,3,N] (RKNN)";
        SsdPostprocess = 17, "ssd-postprocess",
            "SSD by TensorFlow and TFLite, with suppression: boxes (y, x, y, x), classes, scores, count";
        EfficientNms = 18, "efficientnms",
            "TensorRT's EfficientNMS and BatchedNMS: count, boxes, scores, classes";
        Yolov8Seg = 20, "yolov8-seg",
            "Segmentation of YOLOv8 to 12: [1,4+C+M,N], prototypes [1,M,H,W] or [1,H,W,M]";
        Yolov8Pose = 21, "yolov8-pose",
            "Pose of YOLOv8 to 12: [1,4+C+3K,N] with K keypoints x, y, visibility, or [1,4+C+2K,N]";
        Yolov8Obb = 22, "yolov8-obb",
            "Oriented boxes of YOLOv8 to 12: [1,4+C+1,N], the last in radians";
        Yolov5Seg = 23, "yolov5-seg", "Segmentation of YOLOv5: [1,N,5+C+M], prototypes [1,M,H,W]";
        End2endSeg = 24, "end2end-seg", "Segmentation of YOLO26: [1,N,6+M], prototypes [1,M,H,W]";
        End2endPose = 25, "end2end-pose", "Pose of YOLO26: [1,N,6+3K] or [1,N,6+2K]";
        End2endObb = 26, "end2end-obb",
            "Oriented boxes of YOLO26: [1,N,7] of cx, cy, w, h, score, class, angle";
        DetrEnd2end = 32, "detr-end2end",
            "RT-DETR by Ultralytics since 8.4: [1,N,6] of normalized cx, cy, w, h, score, class";
        Yolov7End2end = 33, "yolov7-end2end",
            "YOLOv7, YOLOv6 with suppression: [N,7] of image, x1, y1, x2, y2, class, score";
        YoloNasFlat = 34, "yolonas-flat",
            "YOLO-NAS, FLAT_FORMAT: [N,7] of image, x1, y1, x2, y2, score, class";
        DetectionOutput = 35, "detection-output",
            "DetectionOutput of OpenVINO and Caffe: [1,1,N,7] of image, class, score, normalized x1, y1, x2, y2";
        EfficientDet = 36, "efficientdet",
            "EfficientDet (google/automl) with suppression: [1,N,7] of image, y1, x1, y2, x2, score, class";
        PaddleNms = 37, "paddle-nms",
            "PaddleDetection with suppression: [N,6] of class, score, x1, y1, x2, y2, and their number";
        MmDetection = 38, "mmdetection",
            "MMDetection by MMDeploy: dets [1,N,5] of x1, y1, x2, y2, score, and labels [1,N]";
        TorchVision = 39, "torchvision",
            "torchvision, Faster R-CNN of the ONNX model zoo: boxes [N,4], labels [N] from 1, scores [N]";
        Yolov3 = 40, "yolov3",
            "YOLOv3 of the ONNX model zoo: boxes [1,N,4] of y1, x1, y2, x2, scores [1,C,N], selected pairs [M,3]";
        Yolov4Raw = 43, "yolov4-raw",
            "YOLOv4 of the ONNX model zoo, also tiny: [1,H,W,3,5+C] for each stride";
        Yolov3Raw = 44, "yolov3-raw",
            "YOLOv3 before its decode step: logits [1,H,W,3,5+C] for each stride";
        Fcos = 41, "fcos",
            "FCOS (tianzhi0549): for 5 strides logits [1,C,H,W], distances [1,4,H,W], centerness [1,1,H,W]";
        CenterNet = 45, "centernet",
            "CenterNet: logits [1,C,H,W], of which peaks count, sizes and positions [1,2,H,W]; on the CPU";
        BlazeFace = 42, "blazeface",
            "MediaPipe's BlazeFace: [1,896,16] of a box and six points, logits [1,896,1]";
        Fomo = 46, "fomo",
            "FOMO (Edge Impulse): probabilities [1,H,W,1+C], the first of the background, an object a cell; on the CPU";
        Classifier = 29, "classifier",
            "Classifiers: [C], [1,C] or [1,C,1,1], no boxes";
        Layout = 19, "layout", "Others, by the text file that layout-file names";
    }
}

property_enum! {
    /// The function that turns the tensors' scores into probabilities.
    ScoreActivation as "GstNmsFilterScoreActivation" for Option of Activation {
        auto = 0,
            "By the decoder";
        /// None.
        None = 1, "none", "None: the scores are final";
        /// The logistic function.
        Sigmoid = 2, "sigmoid", "Sigmoid: each score is a logit";
        /// Softmax.
        Softmax = 3, "softmax", "Softmax: the scores of an anchor are logits";
    }
}

property_enum! {
    /// Which of an anchor's scores is the background's.
    Background as "GstNmsFilterBackground" for Option of layout::Background {
        auto = 0,
            "By the decoder; with detr the last, and softmax, if there is one score more than classes or labels";
        /// None.
        None = 1, "none", "None: each score is that of a class";
        /// The first.
        First = 2, "first", "The first score";
        /// The last.
        Last = 3, "last", "The last score";
    }
}

property_enum! {
    /// The meaning of keypoints.
    PointLayout as "GstNmsFilterKeypointLayout" for Option of KeypointLayout {
        auto = 0,
            "By the model description, else by the label: coco-17 for 17 points of a person or of the only class, if it \
                has no label; face-5 for 5 points of face detectors";
        /// The 17 points of a person in COCO.
        Coco17 = 1, "coco-17", "17 points of a person, as in COCO";
        /// Five points of a face.
        Face5 = 2, "face-5", "Eyes, nose, corners of the mouth";
        /// Any other points.
        Points = 3, "points", "Any points, without lines";
    }
}

impl Decoder {
    /// The decoder of that name; `None` for `auto`, for `classifier`, which reads no boxes, and for `layout`, whose
    /// decoder a file describes.
    pub fn decoder(self) -> Option<&'static decoder::Decoder> {
        let class = glib::EnumClass::new::<Self>();
        decoder::by_name(class.value(self.into_glib())?.nick())
    }

    /// The choice of classifiers.
    pub fn classifiers(self) -> Classifiers {
        match self {
            Self::Auto => Classifiers::Auto,
            Self::Classifier => Classifiers::Always,
            _ => Classifiers::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letterbox_property_has_the_values_of_the_core_and_auto() {
        let class = glib::EnumClass::new::<NmsFilterLetterbox>();
        let nick = |value: NmsFilterLetterbox| class.value(value.into_glib()).unwrap().nick();
        for value in [
            NmsFilterLetterbox::None,
            NmsFilterLetterbox::Center,
            NmsFilterLetterbox::TopLeft,
            NmsFilterLetterbox::Auto,
        ] {
            assert_eq!(nick(value), value.chosen().map_or("auto", geometry::Letterbox::name));
        }
        assert_eq!(class.values().len(), geometry::Letterbox::ALL.len() + 1);
    }

    #[test]
    fn the_activation_property_has_the_values_of_the_core_and_auto() {
        let class = glib::EnumClass::new::<ScoreActivation>();
        for value in [
            ScoreActivation::Auto,
            ScoreActivation::None,
            ScoreActivation::Sigmoid,
            ScoreActivation::Softmax,
        ] {
            let nick = class.value(value.into_glib()).unwrap().nick();
            assert_eq!(nick, value.chosen().map_or("auto", Activation::name));
        }
    }

    #[test]
    fn the_background_property_has_the_values_of_the_core_and_auto() {
        let class = glib::EnumClass::new::<Background>();
        for value in [Background::Auto, Background::None, Background::First, Background::Last] {
            let nick = class.value(value.into_glib()).unwrap().nick();
            assert_eq!(nick, value.chosen().map_or("auto", layout::Background::name));
        }
    }

    #[test]
    fn the_keypoint_layout_property_has_all_layouts_and_auto() {
        let class = glib::EnumClass::new::<PointLayout>();
        let names: Vec<_> = class.values().iter().map(|value| value.nick()).collect();
        let layouts = KeypointLayout::ALL.map(|layout| layout.name());
        assert_eq!(names, [&["auto"], &layouts[..]].concat());
        for value in
            [PointLayout::Auto, PointLayout::Coco17, PointLayout::Face5, PointLayout::Points]
        {
            let nick = class.value(value.into_glib()).unwrap().nick();
            assert_eq!(nick, value.chosen().map_or("auto", KeypointLayout::name));
        }
    }

    #[test]
    fn the_decoder_property_has_a_value_for_every_decoder() {
        let class = glib::EnumClass::new::<Decoder>();
        let all = class.values().iter().map(|value| value.nick());
        // A file describes `layout`, and `classifier` reads no boxes.
        let others = ["layout", decoder::classifier::NAME];
        let nicks: Vec<_> = all.filter(|nick| !others.contains(nick)).collect();
        let names: Vec<_> = std::iter::once("auto")
            .chain(decoder::decoders().iter().map(|decoder| decoder.name()))
            .collect();
        assert_eq!(nicks, names);
    }
}
