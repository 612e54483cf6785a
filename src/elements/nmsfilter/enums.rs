// SPDX-License-Identifier: MIT OR Apache-2.0
//! The enumerations of the element's properties, as GObject types, and their conversion to the
//! types of the core, which does not depend on GStreamer.
#![allow(missing_docs, reason = "the macros generate items without documentation")]

use gst::glib;
use gst::glib::translate::IntoGlib;

use crate::bindings::type_names::format;
use crate::output::{KeypointLayout, Kinds};
use nmsfilter_core::decoder::layout::{self, Activation};
use nmsfilter_core::reading::Classifiers;
use nmsfilter_core::{decoder, engine, geometry};

/// Declares the enumeration of a property with the values of an enumeration of the core:
/// `Value = number, "nick", "description"`.
macro_rules! property_enum {
    (
        $(#[$doc:meta])*
        $name:ident as $type_name:literal for $core:path {
            $($(#[$value_doc:meta])* $value:ident = $number:literal, $nick:literal, $blurb:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
        #[repr(u32)]
        #[enum_type(name = $type_name, allow_name_conflict)]
        pub enum $name {
            $($(#[$value_doc])* #[enum_value(name = $blurb, nick = $nick)] $value = $number,)+
        }

        impl From<$name> for $core {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$value => <$core>::$value,)+
                }
            }
        }
    };
}

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

/// How the frame was fitted into the model's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterLetterbox", allow_name_conflict)]
pub enum NmsFilterLetterbox {
    /// Stretched to fill it.
    #[enum_value(name = "None: stretched to fill the model's input", nick = "none")]
    None = 0,
    /// Scaled without distortion, borders on both sides.
    #[enum_value(name = "Center: undistorted, borders on both sides", nick = "center")]
    Center = 1,
    /// Scaled without distortion, borders right or below.
    #[enum_value(name = "Top left: undistorted, border right or below", nick = "top-left")]
    TopLeft = 2,
    /// The letterbox in the tensors' model description, else stretched.
    #[default]
    #[enum_value(name = "By the tensors' model description, else none", nick = "auto")]
    Auto = 3,
}

impl NmsFilterLetterbox {
    /// The value of the core; `None` for `auto`.
    pub fn letterbox(self) -> Option<geometry::Letterbox> {
        match self {
            Self::None => Some(geometry::Letterbox::None),
            Self::Center => Some(geometry::Letterbox::Center),
            Self::TopLeft => Some(geometry::Letterbox::TopLeft),
            Self::Auto => None,
        }
    }
}

/// Which metadata to write.
#[glib::flags(name = "GstNmsFilterAttach", allow_name_conflict)]
pub enum Attach {
    /// `GstVideoRegionOfInterestMeta` with a `detection` structure.
    #[flags_value(name = "GstVideoRegionOfInterestMeta with a detection structure", nick = "roi")]
    ROI = 1,
    /// `GstAnalyticsODMtd`, if the plugin was built for GStreamer 1.24 or later.
    #[flags_value(name = "GstAnalyticsODMtd (GStreamer 1.24 and later)", nick = "analytics")]
    ANALYTICS = 2,
    /// `NvDsObjectMeta`, on buffers with a batch of DeepStream.
    #[flags_value(name = "NvDsObjectMeta, on buffers with DeepStream's metadata", nick = "nvds")]
    NVDS = 4,
}

impl From<Attach> for Kinds {
    fn from(attach: Attach) -> Self {
        Self {
            roi: attach.contains(Attach::ROI),
            analytics: attach.contains(Attach::ANALYTICS),
            nvds: attach.contains(Attach::NVDS),
        }
    }
}

/// Which decoder reads the tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterDecoder", allow_name_conflict)]
pub enum Decoder {
    /// By tensor id, else by shape.
    #[default]
    #[enum_value(name = "By tensor id, else by shape", nick = "auto")]
    Auto = 0,
    /// The paper's windows.
    #[enum_value(name = "Windows: [N,4] of x, y, side, score", nick = "windows")]
    Windows = 1,
    /// Boxes and scores in two tensors, or with labels in a third.
    #[enum_value(name = "Boxes [N,4] and scores [N] or [N,C], or labels", nick = "boxes")]
    Boxes = 2,
    /// YOLOv5.
    #[enum_value(name = "YOLOv5: [1,N,5+C]", nick = "yolov5")]
    Yolov5 = 3,
    /// YOLOv8.
    #[enum_value(name = "YOLOv8: [1,4+C,N] or [1,N,4+C]", nick = "yolov8")]
    Yolov8 = 4,
    /// UltraFace.
    #[enum_value(name = "UltraFace: scores [1,N,2], boxes [1,N,4]", nick = "ultraface")]
    UltraFace = 5,
    /// YOLOX, decoded.
    #[enum_value(name = "YOLOX: [1,N,5+C] with decoded boxes", nick = "yolox")]
    Yolox = 6,
    /// YOLOv10, YOLO26.
    #[enum_value(name = "End to end: [1,N,6] of x1, y1, x2, y2, score, class", nick = "end2end")]
    End2end = 7,
    /// RT-DETR, RF-DETR, D-FINE, DEIM.
    #[enum_value(name = "DETR: boxes [1,Q,4] and logits [1,Q,C], or [1,Q,4+C]", nick = "detr")]
    Detr = 8,
    /// YOLOX, not decoded.
    #[enum_value(name = "YOLOX: [1,N,5+C] before the boxes are decoded", nick = "yolox-raw")]
    YoloxRaw = 9,
    /// YOLOv5, not decoded.
    #[enum_value(
        name = "YOLOv5: [1,N,5+C] or [1,3,H,W,5+C] before the boxes are decoded",
        nick = "yolov5-raw"
    )]
    Yolov5Raw = 10,
    /// SSD, not decoded.
    #[enum_value(name = "SSD: offsets [1,N,4], logits [1,N,1+C], priors", nick = "ssd")]
    Ssd = 11,
    /// RetinaFace.
    #[enum_value(name = "RetinaFace: offsets [1,N,4], scores [1,N,2]", nick = "retinaface")]
    RetinaFace = 12,
    /// UltraFace, not decoded.
    #[enum_value(
        name = "UltraFace: offsets [1,N,4], scores [1,N,2], before the boxes are decoded",
        nick = "ultraface-raw"
    )]
    UltraFaceRaw = 28,
    /// YuNet.
    #[enum_value(name = "YuNet: scores, objectness and boxes for each stride", nick = "yunet")]
    YuNet = 13,
    /// SCRFD.
    #[enum_value(name = "SCRFD: scores and distances for each stride", nick = "scrfd")]
    Scrfd = 14,
    /// NanoDet.
    #[enum_value(
        name = "NanoDet: scores and 4 x 8 bins for each stride, or [1,N,C+32]",
        nick = "nanodet"
    )]
    NanoDet = 15,
    /// PicoDet.
    #[enum_value(name = "PicoDet: scores and 4 x 8 bins for each stride", nick = "picodet")]
    PicoDet = 16,
    /// Heads of YOLOv8 and YOLO26, cut for NPUs.
    #[enum_value(
        name = "YOLOv8 and YOLO26 cut for NPUs: 4 x 16 bins or 4 distances, and scores, for each stride",
        nick = "yolov8-heads"
    )]
    Yolov8Heads = 27,
    /// Heads with mask coefficients.
    #[enum_value(
        name = "YOLOv8 with masks cut for NPUs: 4 x 16 bins, scores, M coefficients for each stride, prototypes [1,M,H,W]",
        nick = "yolov8-heads-seg"
    )]
    Yolov8HeadsSeg = 30,
    /// Heads with keypoints.
    #[enum_value(
        name = "YOLOv8 with keypoints cut for NPUs: 4 x 16 bins, scores, 3K numbers for each stride, or [1,K,3,N]",
        nick = "yolov8-heads-pose"
    )]
    Yolov8HeadsPose = 31,
    /// SSD, decoded and suppressed.
    #[enum_value(
        name = "SSD with its postprocessing: boxes, classes, scores, count",
        nick = "ssd-postprocess"
    )]
    SsdPostprocess = 17,
    /// TensorRT's EfficientNMS.
    #[enum_value(
        name = "TensorRT's EfficientNMS and BatchedNMS: count, boxes, scores, classes",
        nick = "efficientnms"
    )]
    EfficientNms = 18,
    /// Masks, with scores by class.
    #[enum_value(
        name = "YOLOv8 with masks: [1,4+C+M,N], prototypes [1,M,H,W]",
        nick = "yolov8-seg"
    )]
    Yolov8Seg = 20,
    /// Keypoints, with scores by class.
    #[enum_value(name = "YOLOv8 with keypoints: [1,4+C+3K,N]", nick = "yolov8-pose")]
    Yolov8Pose = 21,
    /// Oriented boxes, with scores by class.
    #[enum_value(name = "YOLOv8 with oriented boxes: [1,4+C+1,N]", nick = "yolov8-obb")]
    Yolov8Obb = 22,
    /// Masks, with objectness.
    #[enum_value(
        name = "YOLOv5 with masks: [1,N,5+C+M], prototypes [1,M,H,W]",
        nick = "yolov5-seg"
    )]
    Yolov5Seg = 23,
    /// Masks, end to end.
    #[enum_value(
        name = "End to end with masks: [1,N,6+M], prototypes [1,M,H,W]",
        nick = "end2end-seg"
    )]
    End2endSeg = 24,
    /// Keypoints, end to end.
    #[enum_value(name = "End to end with keypoints: [1,N,6+3K]", nick = "end2end-pose")]
    End2endPose = 25,
    /// Oriented boxes, end to end.
    #[enum_value(
        name = "End to end with oriented boxes: [1,N,7] of cx, cy, w, h, score, class, angle",
        nick = "end2end-obb"
    )]
    End2endObb = 26,
    /// RT-DETR of Ultralytics since 8.4.
    #[enum_value(
        name = "RT-DETR end to end: [1,N,6] of normalized cx, cy, w, h, score, class",
        nick = "detr-end2end"
    )]
    DetrEnd2end = 32,
    /// YOLOv7 and YOLOv6 with ONNX Runtime's suppression.
    #[enum_value(
        name = "YOLOv7 end to end: [N,7] of image, x1, y1, x2, y2, class, score",
        nick = "yolov7-end2end"
    )]
    Yolov7End2end = 33,
    /// YOLO-NAS, suppressed.
    #[enum_value(
        name = "YOLO-NAS with suppression: [N,7] of image, x1, y1, x2, y2, score, class",
        nick = "yolonas-flat"
    )]
    YoloNasFlat = 34,
    /// OpenVINO and Caffe.
    #[enum_value(
        name = "OpenVINO's DetectionOutput: [1,1,N,7] of image, class, score, x1, y1, x2, y2",
        nick = "detection-output"
    )]
    DetectionOutput = 35,
    /// EfficientDet, suppressed.
    #[enum_value(
        name = "EfficientDet with its postprocessing: [1,N,7] of image, y1, x1, y2, x2, score, class",
        nick = "efficientdet"
    )]
    EfficientDet = 36,
    /// PaddleDetection, suppressed.
    #[enum_value(
        name = "PaddleDetection with suppression: [N,6] of class, score, x1, y1, x2, y2, and the number of rows",
        nick = "paddle-nms"
    )]
    PaddleNms = 37,
    /// MMDetection.
    #[enum_value(
        name = "MMDetection by MMDeploy: [1,N,5] of x1, y1, x2, y2, score, and labels [1,N]",
        nick = "mmdetection"
    )]
    MmDetection = 38,
    /// torchvision.
    #[enum_value(
        name = "torchvision: boxes [N,4], labels [N] from 1, scores [N]",
        nick = "torchvision"
    )]
    TorchVision = 39,
    /// YOLOv3, decoded.
    #[enum_value(
        name = "YOLOv3 of the ONNX model zoo: boxes [1,N,4] of y1, x1, y2, x2, scores [1,C,N]",
        nick = "yolov3"
    )]
    Yolov3 = 40,
    /// YOLOv4, not decoded.
    #[enum_value(
        name = "YOLOv4: [1,H,W,3,5+C] for 3 strides before the boxes are decoded",
        nick = "yolov4-raw"
    )]
    Yolov4Raw = 43,
    /// YOLOv3, not decoded.
    #[enum_value(name = "YOLOv3: [1,H,W,3,5+C] for 3 strides, all logits", nick = "yolov3-raw")]
    Yolov3Raw = 44,
    /// FCOS, not decoded.
    #[enum_value(
        name = "FCOS: logits, distances in pixels and centerness for 5 strides",
        nick = "fcos"
    )]
    Fcos = 41,
    /// CenterNet.
    #[enum_value(
        name = "CenterNet: heat maps [1,C,H,W], sizes and positions [1,2,H,W]; on the CPU",
        nick = "centernet"
    )]
    CenterNet = 45,
    /// BlazeFace.
    #[enum_value(
        name = "BlazeFace: [1,896,16] of box and six points, logits [1,896,1]",
        nick = "blazeface"
    )]
    BlazeFace = 42,
    /// One score for each class of the image.
    #[enum_value(
        name = "Classifier: [C], [1,C] or [1,C,1,1], a score for each class and no boxes",
        nick = "classifier"
    )]
    Classifier = 29,
    /// The decoder that `layout-file` describes.
    #[enum_value(name = "By the text file that layout-file names", nick = "layout")]
    Layout = 19,
}

/// The function that turns the tensors' scores into probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterScoreActivation", allow_name_conflict)]
pub enum ScoreActivation {
    /// The decoder's function.
    #[default]
    #[enum_value(name = "By the decoder", nick = "auto")]
    Auto = 0,
    /// None.
    #[enum_value(name = "None: the scores are final", nick = "none")]
    None = 1,
    /// The logistic function.
    #[enum_value(name = "Sigmoid: each score is a logit", nick = "sigmoid")]
    Sigmoid = 2,
    /// Softmax.
    #[enum_value(name = "Softmax: the scores of an anchor are logits", nick = "softmax")]
    Softmax = 3,
}

impl ScoreActivation {
    /// The value of the core; `None` for `auto`.
    pub fn activation(self) -> Option<Activation> {
        match self {
            Self::Auto => None,
            Self::None => Some(Activation::None),
            Self::Sigmoid => Some(Activation::Sigmoid),
            Self::Softmax => Some(Activation::Softmax),
        }
    }
}

/// Which of an anchor's scores is the background's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterBackground", allow_name_conflict)]
pub enum Background {
    /// The decoder's.
    #[default]
    #[enum_value(
        name = "By the decoder; with detr the last, and softmax, if there is one score more than classes or labels",
        nick = "auto"
    )]
    Auto = 0,
    /// None.
    #[enum_value(name = "None: each score is that of a class", nick = "none")]
    None = 1,
    /// The first.
    #[enum_value(name = "The first score", nick = "first")]
    First = 2,
    /// The last.
    #[enum_value(name = "The last score", nick = "last")]
    Last = 3,
}

impl Background {
    /// The value of the core; `None` for `auto`.
    pub fn background(self) -> Option<layout::Background> {
        match self {
            Self::Auto => None,
            Self::None => Some(layout::Background::None),
            Self::First => Some(layout::Background::First),
            Self::Last => Some(layout::Background::Last),
        }
    }
}

/// The meaning of keypoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, glib::Enum)]
#[repr(u32)]
#[enum_type(name = "GstNmsFilterKeypointLayout", allow_name_conflict)]
pub enum PointLayout {
    /// By the model's description, else by the class.
    #[default]
    #[enum_value(
        name = "By the model description, else by the label: coco-17 for 17 points of a person or of the only class, if it \
                has no label; face-5 for 5 points of face detectors",
        nick = "auto"
    )]
    Auto = 0,
    /// The 17 points of a person in COCO.
    #[enum_value(name = "17 points of a person, as in COCO", nick = "coco-17")]
    Coco17 = 1,
    /// Five points of a face.
    #[enum_value(name = "Eyes, nose, corners of the mouth", nick = "face-5")]
    Face5 = 2,
    /// Any other points.
    #[enum_value(name = "Any points, without lines", nick = "points")]
    Points = 3,
}

impl PointLayout {
    /// The layout; `None` for `auto`.
    pub fn layout(self) -> Option<KeypointLayout> {
        match self {
            Self::Auto => None,
            Self::Coco17 => Some(KeypointLayout::Coco17),
            Self::Face5 => Some(KeypointLayout::Face5),
            Self::Points => Some(KeypointLayout::Points),
        }
    }
}

impl Decoder {
    /// The decoder of that name; `None` for `auto`, for `classifier`, which reads no boxes, and for `layout`, whose
    /// decoder a file describes.
    pub fn decoder(self) -> Option<&'static dyn decoder::Decoder> {
        let class = glib::EnumClass::new::<Self>();
        decoder::by_name(class.value(self.into_glib())?.nick())
    }

    /// Whether it reads classifiers.
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
            assert_eq!(nick(value), value.letterbox().map_or("auto", geometry::Letterbox::name));
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
            assert_eq!(nick, value.activation().map_or("auto", Activation::name));
        }
    }

    #[test]
    fn the_background_property_has_the_values_of_the_core_and_auto() {
        let class = glib::EnumClass::new::<Background>();
        for value in [Background::Auto, Background::None, Background::First, Background::Last] {
            let nick = class.value(value.into_glib()).unwrap().nick();
            assert_eq!(nick, value.background().map_or("auto", layout::Background::name));
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
            assert_eq!(nick, value.layout().map_or("auto", KeypointLayout::name));
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
