// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of decoding and suppression.

use nmsfilter_core::nms::{self, Bounds, ClassThresholds, MAX_CLASSES, ParamError, SizeLimits};

use crate::Status;
use crate::border::{self, Failure, sized_struct};
use crate::enumeration::value_of;
use crate::frame::{Letterbox, Region};
use crate::options::flag;
use crate::status::run;

/// The rule by which candidates survive.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Method {
    /// Candidates survive that conflict with no survivor of higher score: exact greedy suppression.
    Greedy = 0,
    /// Candidates survive that conflict with no candidate of higher score, suppressed or not.
    MapReduce = 1,
    /// All candidates survive.
    None = 2,
    /// Survivors of NMSFILTER_METHOD_GREEDY, each with the union of its box and of the boxes that it suppresses.
    Merge = 3,
    /// Like NMSFILTER_METHOD_MERGE, but a box also merges with the boxes that its suppressed boxes suppress.
    MergeTransitive = 4,
    /// Clusters of boxes, each with the mean of its boxes, weighted by score: Weighted Boxes Fusion.
    WeightedFusion = 5,
    /// Survivors of NMSFILTER_METHOD_GREEDY, each with the mean of its box and of the boxes that it suppresses, weighted by
    /// score.
    WeightedAverage = 6,
    /// Candidates survive whose score reaches the threshold after conflicts have lowered it: Soft-NMS, linear.
    SoftLinear = 7,
    /// Soft-NMS, Gaussian.
    SoftGaussian = 8,
    /// Candidates survive whose score reaches the threshold after one pass has lowered it: Matrix NMS, linear.
    MatrixLinear = 9,
    /// Matrix NMS, Gaussian.
    MatrixGaussian = 10,
    /// NMSFILTER_METHOD_GREEDY, but the threshold is at least the density of the candidate of higher score: Adaptive-NMS.
    /// Densities are a column of a layout with `kind = density`, or an argument of nmsfilter_boxes_merge.
    Adaptive = 11,
    /// NMSFILTER_METHOD_GREEDY, but candidates whose embeddings differ do not conflict: FeatureNMS. Embeddings are a column
    /// of a layout with `kind = embedding`, or an argument of nmsfilter_boxes_merge.
    Feature = 12,
}

/// The measure by which two boxes conflict. Boxes that do not intersect never conflict.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Overlap {
    /// Intersection over union.
    Iou = 0,
    /// Intersection over the area of the box of higher score.
    Representative = 1,
    /// Intersection over the smaller area.
    Smaller = 2,
    /// Distance-IoU.
    Diou = 3,
    /// For oriented boxes only: 1 - the Hellinger distance of the Gaussian distributions of the boxes.
    ProbIou = 4,
}

/// The pixels of masks.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum MaskSize {
    /// Pixels of the model's prototypes.
    Prototypes = 0,
    /// Pixels of the frame. NmsfilterParams has the frame's size and its position in the model's input.
    Frame = 1,
}

/// The rule for boxes that touch an inner edge of a region, such as a tile.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum RegionEdges {
    /// They are like other boxes.
    Keep = 0,
    /// They are dropped.
    Drop = 1,
    /// Their scores become `edge_score` of NmsfilterParams, so that they suppress no better box.
    Lower = 2,
}

/// Rules for the detections of one class, which replace the rules for all classes. If all bytes except `size` are 0, the
/// structure has no effect.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ClassRule {
    /// sizeof(NmsfilterClassRule), equal in all elements of an array.
    pub size: usize,
    /// 1 if `iou_threshold` applies; else 0.
    pub has_iou_threshold: u32,
    /// Replaces `iou_threshold` of NmsfilterParams; 0 to 1.
    pub iou_threshold: f32,
    /// 1 if `min_size` and `max_size` apply; else 0.
    pub has_sizes: u32,
    /// Replaces `min_size` of NmsfilterParams.
    pub min_size: [f32; 2],
    /// Replaces `max_size` of NmsfilterParams.
    pub max_size: [f32; 2],
    /// The greatest number of detections of the class in an image; 0 for no limit. It applies before `max_detections` of
    /// NmsfilterParams, and is an error with nmsfilter_enqueue.
    pub max_detections: u32,
}

sized_struct!(ClassRule, "NmsfilterClassRule", max_detections: u32);

/// Parameters of decoding and suppression. nmsfilter_params_init sets the defaults. Lengths are in pixels of the model's
/// input, except where a field says otherwise.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Params {
    /// sizeof(NmsfilterParams).
    pub size: usize,
    /// The score that a detection must reach; 0.25 by default.
    pub score_threshold: f32,
    /// The overlap above which a detection is suppressed, 0 to 1; 0.45 by default.
    pub iou_threshold: f32,
    /// The scores that detections of the first classes must reach, in place of `score_threshold`; infinity excludes a class.
    /// They are copied.
    pub class_score_thresholds: *const f32,
    /// The length of `class_score_thresholds`.
    pub class_score_threshold_count: usize,
    /// The rules of the first classes. They are copied.
    pub class_rules: *const ClassRule,
    /// The length of `class_rules`.
    pub class_rule_count: usize,
    /// An NmsfilterMethod.
    pub method: u32,
    /// An NmsfilterOverlap.
    pub overlap: u32,
    /// 1 if an overlap that is equal to the threshold is a conflict, too; else 0.
    pub threshold_inclusive: u32,
    /// 1 if detections of different classes can suppress each other; else 0.
    pub class_agnostic: u32,
    /// 1 if each class of an anchor that reaches its threshold is a detection; 2 if there also are at most as many detections
    /// as anchors, as models with queries select them; 0 for the best class alone.
    pub multi_label: u32,
    /// Pixels that are added to the lengths of sides and intersections: 0, or 1 for coordinates that are indices of the first
    /// and the last pixel.
    pub pixel_offset: f32,
    /// The least width and height of a box, at least 0; 0 by default. In pixels of the frame if `frame_size` is set.
    pub min_size: [f32; 2],
    /// The greatest width and height of a box, above 0 and at least `min_size`; infinite by default. In pixels of the frame
    /// if `frame_size` is set.
    pub max_size: [f32; 2],
    /// The left, upper, right and lower edge of the visible part of the model's input, without the borders of a letterbox.
    /// Boxes that do not intersect it are rejected. The whole plane by default.
    pub visible: [f32; 4],
    /// The greatest number of candidates of an image that are compared; 0, the default, for all.
    pub max_candidates: usize,
    /// The greatest number of detections of an image; 0, the default, for all.
    pub max_detections: usize,
    /// 1, the default, if masks are computed where the model gives them; else 0.
    pub masks: u32,
    /// An NmsfilterMaskSize.
    pub mask_size: u32,
    /// The width and height of the frame in pixels, 1 to 65536, or 0 and 0, the default, if there is no frame.
    /// NMSFILTER_MASK_SIZE_FRAME needs a frame.
    pub frame_size: [u32; 2],
    /// Pixels of the model's input per pixel of the frame, horizontally and vertically, above 0. Ignored without a frame. With
    /// 0 and 0, the default, they and `frame_offset` follow from `letterbox` and the model's size in NmsfilterOptions, and
    /// `visible` by default, too.
    pub frame_ratio: [f64; 2],
    /// The left and upper edge of the frame in pixels of the model's input.
    pub frame_offset: [f64; 2],
    /// The width of the function of NMSFILTER_METHOD_SOFT_GAUSSIAN and NMSFILTER_METHOD_MATRIX_GAUSSIAN, above 0; 0 for
    /// the default, 0.5.
    pub sigma: f32,
    /// 1 if NMSFILTER_METHOD_MERGE and NMSFILTER_METHOD_MERGE_TRANSITIVE lose boxes that do not overlap the grown box, as
    /// SAHI does; 0, the default, if these boxes remain.
    pub lose_released: u32,
    /// An NmsfilterRegionEdges, for images that are `regions` of a frame; or for one such image, whose `visible` is the region,
    /// and `frame_size`, `frame_ratio` and `frame_offset` say where the frame is. An edge of the region is inner if it is
    /// inside the frame, and more than `edge_margin` away from the frame's edge.
    pub region_edges: u32,
    /// The distance from an inner edge at which boxes touch it, in pixels of the frame, at least 1; 0 for the default, 5.
    pub edge_margin: f32,
    /// The score that NMSFILTER_REGION_EDGES_LOWER lowers to, but not below the threshold of the class; 0.6 by default.
    pub edge_score: f32,
    /// The distance of embeddings above which candidates do not conflict with NMSFILTER_METHOD_FEATURE, at least 0; 1 by
    /// default.
    pub embedding_distance: f32,
    /// The overlap, 0 to 1 and 0.9 by default, above which candidates conflict with NMSFILTER_METHOD_FEATURE even if their
    /// embeddings differ.
    pub embedding_iou_threshold: f32,
    /// An NmsfilterLetterbox. Ignored without a frame, and if `frame_ratio` is set and there are no regions.
    pub letterbox: u32,
    /// Parts of a frame of `frame_size`, such as tiles, each of which was scaled to the model's input by `letterbox` as if it
    /// were a frame. The images of a run are these parts of a frame, then those of the next frame, and so on. Results have
    /// an image for each frame: its boxes, keypoints and oriented boxes are in pixels of the frame, and were compared with
    /// those of all parts; row r of part i is anchor i * rows + r. Masks need NMSFILTER_MASK_SIZE_FRAME. They are copied.
    pub regions: *const Region,
    /// The length of `regions`; 0 if images are not parts of a frame.
    pub region_count: usize,
}

sized_struct!(Params, "NmsfilterParams", frame_offset: [f64; 2]);

impl Params {
    fn new() -> Self {
        let defaults = nms::Params::default();
        Self {
            size: size_of::<Self>(),
            score_threshold: defaults.thresholds.default,
            iou_threshold: defaults.iou_threshold,
            class_score_thresholds: std::ptr::null(),
            class_score_threshold_count: 0,
            class_rules: std::ptr::null(),
            class_rule_count: 0,
            method: Method::Greedy as u32,
            overlap: Overlap::Iou as u32,
            threshold_inclusive: defaults.threshold_inclusive.into(),
            class_agnostic: defaults.class_agnostic.into(),
            multi_label: defaults.multi_label.into(),
            pixel_offset: defaults.pixel_offset,
            min_size: defaults.sizes.min,
            max_size: defaults.sizes.max,
            visible: {
                let Bounds { left, top, right, bottom } = Bounds::ANY;
                [left, top, right, bottom]
            },
            max_candidates: defaults.max_candidates,
            max_detections: defaults.max_detections,
            masks: defaults.masks.into(),
            mask_size: MaskSize::Prototypes as u32,
            frame_size: [0; 2],
            frame_ratio: [0.0; 2],
            frame_offset: [0.0; 2],
            sigma: defaults.sigma,
            lose_released: defaults.lose_released.into(),
            region_edges: RegionEdges::Keep as u32,
            edge_margin: defaults.edge_margin,
            edge_score: defaults.edge_score,
            embedding_distance: defaults.embedding_distance,
            embedding_iou_threshold: defaults.embedding_iou_threshold,
            letterbox: Letterbox::None as u32,
            regions: std::ptr::null(),
            region_count: 0,
        }
    }

    /// Whether there are at most as many detections as anchors.
    pub fn selects_pairs(&self) -> bool {
        self.multi_label == 2
    }

    /// The parameters.
    ///
    /// # Errors
    /// If a field has no valid value.
    ///
    /// # Safety
    /// The pointers are as the header requires.
    pub unsafe fn to_nms(self) -> Result<nms::Params, Failure> {
        let count = self.class_score_threshold_count;
        check_class_count("params: class_score_threshold_count", count)?;
        // SAFETY: the caller guarantees it.
        let per_class = unsafe {
            border::slice(self.class_score_thresholds, count, "params: class_score_thresholds")
        }?;
        // SAFETY: as above.
        let class_rules = unsafe { class_rules(self.class_rules, self.class_rule_count) }?;
        // All fields, without the defaults: a new parameter of the core needs a field in C.
        let params = nms::Params {
            method: method("params", self.method)?,
            overlap: overlap("params", self.overlap)?,
            iou_threshold: self.iou_threshold,
            threshold_inclusive: flag("params: threshold_inclusive", self.threshold_inclusive)?,
            pixel_offset: self.pixel_offset,
            class_agnostic: flag("params: class_agnostic", self.class_agnostic)?,
            sigma: sigma(self.sigma),
            lose_released: flag("params: lose_released", self.lose_released)?,
            embedding_distance: self.embedding_distance,
            embedding_iou_threshold: self.embedding_iou_threshold,
            thresholds: ClassThresholds {
                default: self.score_threshold,
                per_class: per_class.to_vec(),
            },
            sizes: SizeLimits { min: self.min_size, max: self.max_size },
            class_rules,
            region_edges: value_of!(
                "params: region_edges", self.region_edges, RegionEdges => nms::RegionEdges, [Keep, Drop, Lower]
            )?,
            edge_margin: edge_margin(self.edge_margin),
            edge_score: self.edge_score,
            multi_label: match self.multi_label {
                number @ 0..=2 => number > 0,
                other => {
                    let text = format!("params: multi_label: expected 0, 1 or 2, got {other}");
                    return Err(Failure::argument(text));
                }
            },
            max_candidates: self.max_candidates,
            max_detections: self.max_detections,
            masks: flag("params: masks", self.masks)?,
            mask_size: value_of!(
                "params: mask_size", self.mask_size, MaskSize => nms::MaskSize, [Prototypes, Frame]
            )?,
        };
        params.check()?;
        Ok(params)
    }
}

impl From<ParamError> for Failure {
    fn from(error: ParamError) -> Self {
        let ParamError { parameter, class, expected, got, .. } = error;
        let (structure, field, advice) = match parameter {
            "thresholds" => ("params", "score_threshold", ""),
            "sizes.min" => ("params", "min_size", ""),
            // In a structure of zeros these two are invalid.
            "sizes.max" => ("params", "max_size", INIT),
            "visible" => ("params", "visible", INIT),
            "frame.size" => ("params", "frame_size", ""),
            "frame.ratio" => ("params", "frame_ratio", ""),
            "frame.offset" => ("params", "frame_offset", ""),
            "model_size" => {
                ("options", "model_width and model_height", "; 0 and 0 if the size is unknown")
            }
            field => ("params", field, ""),
        };
        let field = match class {
            None => field.to_owned(),
            Some(class) if parameter == "thresholds" => format!("class_score_thresholds[{class}]"),
            Some(class) => format!("class_rules[{class}]: {field}"),
        };
        Self::argument(format!("{structure}: {field}: expected {expected}, got {got}{advice}"))
    }
}

const INIT: &str = "; nmsfilter_params_init sets the defaults";

/// # Errors
/// If there cannot be as many classes, so that the number was not initialized.
fn check_class_count(field: &str, count: usize) -> Result<(), Failure> {
    match count {
        0..=MAX_CLASSES => Ok(()),
        _ => Err(Failure::argument(format!(
            "{field}: expected at most {MAX_CLASSES} classes, got {count}"
        ))),
    }
}

/// # Safety
/// The pointer is NULL or valid for that many rules.
unsafe fn class_rules(
    from: *const ClassRule,
    count: usize,
) -> Result<Vec<nms::ClassRule>, Failure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    check_class_count("params: class_rule_count", count)?;
    // SAFETY: the caller guarantees it.
    let stride = unsafe { border::size_at(from, "params: class_rules") }?;
    let rule = |index: usize| {
        // SAFETY: there are as many rules of this size.
        let from: ClassRule = unsafe {
            border::read_bytes(from.byte_add(index * stride).cast(), stride, "params: class_rules")
        }?;
        let name = |field: &str| format!("params: class_rules[{index}]: {field}");
        let has_iou_threshold = flag(&name("has_iou_threshold"), from.has_iou_threshold)?;
        let has_sizes = flag(&name("has_sizes"), from.has_sizes)?;
        let sizes = SizeLimits { min: from.min_size, max: from.max_size };
        // All fields, without the defaults: a new rule of the core needs a field in C.
        Ok(nms::ClassRule {
            iou_threshold: has_iou_threshold.then_some(from.iou_threshold),
            sizes: has_sizes.then_some(sizes),
            max_detections: from.max_detections as usize,
        })
    };
    (0..count).map(rule).collect()
}

/// The margin of inner edges. The structure of an older header has 0.
fn edge_margin(number: f32) -> f32 {
    if number == 0.0 { nms::Params::default().edge_margin } else { number }
}

/// The width of Gaussian functions. The structure of an older header has 0.
pub fn sigma(number: f32) -> f32 {
    if number == 0.0 { nms::Params::default().sigma } else { number }
}

/// # Errors
/// If the number is of no method.
pub fn method(of: &str, number: u32) -> Result<nms::Method, Failure> {
    value_of!(format!("{of}: method"), number, Method => nms::Method, [
        Greedy, MapReduce, None, Merge, MergeTransitive, WeightedFusion, WeightedAverage, SoftLinear, SoftGaussian,
        MatrixLinear, MatrixGaussian, Adaptive, Feature
    ])
}

/// # Errors
/// If the number is of no measure.
pub fn overlap(of: &str, number: u32) -> Result<nms::Overlap, Failure> {
    let field = format!("{of}: overlap");
    value_of!(field, number, Overlap => nms::Overlap, [Iou, Representative, Smaller, Diou, ProbIou])
}

/// Sets all fields of `params` to their defaults. `size` is sizeof(NmsfilterParams).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nmsfilter_params_init(params: *mut Params, size: usize) -> Status {
    run(|| {
        border::check_pointer(params, "params")?;
        border::check_size::<Params>(size, "params")?;
        // SAFETY: the caller guarantees that there are `size` bytes.
        unsafe { border::write(params, size, &Params { size, ..Params::new() }) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use nmsfilter_core::nms::FrameMap;

    use super::*;
    use crate::frame::Frame;

    #[test]
    fn defaults_are_those_of_the_rust_interface() {
        // SAFETY: there are no pointers.
        assert_eq!(unsafe { Params::new().to_nms() }.unwrap(), nms::Params::default());
    }

    #[test]
    fn every_field_has_its_effect() {
        let thresholds = [0.1, f32::INFINITY];
        let rule = |has_iou_threshold, has_sizes, max_detections| ClassRule {
            size: size_of::<ClassRule>(),
            has_iou_threshold,
            iou_threshold: 0.9,
            has_sizes,
            min_size: [5.0, 6.0],
            max_size: [7.0, 8.0],
            max_detections,
        };
        let rules = [rule(1, 0, 0), rule(0, 1, 0), rule(0, 0, 3)];
        let params = Params {
            size: size_of::<Params>(),
            score_threshold: 0.3,
            iou_threshold: 0.6,
            class_score_thresholds: thresholds.as_ptr(),
            class_score_threshold_count: thresholds.len(),
            class_rules: rules.as_ptr(),
            class_rule_count: rules.len(),
            method: Method::MapReduce as u32,
            overlap: Overlap::Smaller as u32,
            threshold_inclusive: 1,
            class_agnostic: 1,
            multi_label: 1,
            pixel_offset: 1.0,
            min_size: [1.0, 2.0],
            max_size: [3.0, 4.0],
            visible: [10.0, 20.0, 30.0, 40.0],
            max_candidates: 11,
            max_detections: 12,
            masks: 0,
            mask_size: MaskSize::Frame as u32,
            frame_size: [640, 480],
            frame_ratio: [0.5, 0.25],
            frame_offset: [13.0, 14.0],
            sigma: 0.25,
            lose_released: 1,
            region_edges: RegionEdges::Lower as u32,
            edge_margin: 15.0,
            edge_score: 0.16,
            embedding_distance: 0.75,
            embedding_iou_threshold: 0.8,
            letterbox: 0,
            regions: std::ptr::null(),
            region_count: 0,
        };
        let mut class_rules = vec![nms::ClassRule::default(); 3];
        class_rules[0].iou_threshold = Some(0.9);
        class_rules[1].sizes = Some(SizeLimits { min: [5.0, 6.0], max: [7.0, 8.0] });
        class_rules[2].max_detections = 3;
        let expected = nms::Params {
            method: nms::Method::MapReduce,
            overlap: nms::Overlap::Smaller,
            iou_threshold: 0.6,
            threshold_inclusive: true,
            pixel_offset: 1.0,
            class_agnostic: true,
            sigma: 0.25,
            lose_released: true,
            embedding_distance: 0.75,
            embedding_iou_threshold: 0.8,
            thresholds: ClassThresholds { default: 0.3, per_class: vec![0.1, f32::INFINITY] },
            sizes: SizeLimits { min: [1.0, 2.0], max: [3.0, 4.0] },
            class_rules,
            region_edges: nms::RegionEdges::Lower,
            edge_margin: 15.0,
            edge_score: 0.16,
            multi_label: true,
            max_candidates: 11,
            max_detections: 12,
            masks: false,
            mask_size: nms::MaskSize::Frame,
        };
        // SAFETY: the pointers are to the arrays above.
        assert_eq!(unsafe { params.to_nms() }.unwrap(), expected);
        let mut nms = nms::Nms::new(nms::Backend::Cpu, None).unwrap();
        // SAFETY: there are no regions.
        unsafe { Frame::read(&params) }.unwrap().place(&mut nms).unwrap();
        assert_eq!(nms.visible, Bounds { left: 10.0, top: 20.0, right: 30.0, bottom: 40.0 });
        let frame = FrameMap { size: [640, 480], ratio: [0.5, 0.25], offset: [13.0, 14.0] };
        assert_eq!(nms.frame, Some(frame));
    }

    #[test]
    fn every_method_and_measure_has_its_name() {
        let methods = [
            Method::Greedy,
            Method::MapReduce,
            Method::None,
            Method::Merge,
            Method::MergeTransitive,
            Method::WeightedFusion,
            Method::WeightedAverage,
            Method::SoftLinear,
            Method::SoftGaussian,
            Method::MatrixLinear,
            Method::MatrixGaussian,
            Method::Adaptive,
            Method::Feature,
        ];
        let read = methods.map(|it| method("params", it as u32).unwrap());
        assert_eq!(read, nms::Method::ALL);
        let measures = [
            Overlap::Iou,
            Overlap::Representative,
            Overlap::Smaller,
            Overlap::Diou,
            Overlap::ProbIou,
        ];
        let names = measures.map(|it| overlap("params", it as u32).unwrap().name());
        assert_eq!(names, ["iou", "representative", "smaller", "diou", "prob-iou"]);
    }
}
