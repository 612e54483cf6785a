use gst::glib;
use gst::glib::translate::IntoGlib;

use crate::engine::{Backend, Method, Overlap, Sizes};
use crate::engine::{ClassThresholds, Params};
use crate::head::{self, BoxFormat, Coordinates, Head, Layout};
use crate::region::{Attach, Letterbox, Mapping};
use crate::type_names::format;

/// Which head reads the tensors.
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
    /// Boxes and scores in two tensors.
    #[enum_value(name = "Boxes [N,4] and scores [N] or [N,C]", nick = "boxes")]
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
}

impl Decoder {
    /// The head of that name; `None` for `auto`.
    pub fn head(self) -> Option<&'static dyn Head> {
        let class = glib::EnumClass::new::<Self>();
        head::by_name(class.value(self.into_glib())?.nick())
    }
}

/// The element's properties.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub decoder: Decoder,
    pub box_format: BoxFormat,
    pub coordinates: Coordinates,
    pub method: Method,
    pub overlap: Overlap,
    pub iou_threshold: f32,
    pub score_threshold: f32,
    pub threshold_inclusive: bool,
    pub pixel_offset: u32,
    pub class_agnostic: bool,
    pub max_candidates: u32,
    pub max_detections: u32,
    pub classes: Option<String>,
    pub class_thresholds: Option<String>,
    pub min_size: f32,
    pub max_size: f32,
    pub label_file: Option<String>,
    pub model_width: u32,
    pub model_height: u32,
    pub letterbox: Letterbox,
    pub backend: Backend,
    pub cuda_device_id: i32,
    pub attach: Attach,
    pub keep_tensors: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            decoder: Decoder::default(),
            box_format: BoxFormat::default(),
            coordinates: Coordinates::default(),
            method: Method::default(),
            overlap: Overlap::default(),
            iou_threshold: 0.45,
            score_threshold: 0.25,
            threshold_inclusive: false,
            pixel_offset: 0,
            class_agnostic: false,
            max_candidates: 0,
            max_detections: 0,
            classes: None,
            class_thresholds: None,
            min_size: 0.0,
            max_size: 0.0,
            label_file: None,
            model_width: 0,
            model_height: 0,
            letterbox: Letterbox::default(),
            backend: Backend::default(),
            cuda_device_id: -1,
            attach: Attach::all(),
            keep_tensors: true,
        }
    }
}

impl Settings {
    /// What tensors do not say of themselves.
    pub fn head_options(&self) -> head::Options {
        head::Options {
            box_format: self.box_format,
            coordinates: self.coordinates,
            ..head::Options::default()
        }
    }

    /// The engine's parameters for a layout and a mapping.
    pub fn params(
        &self,
        layout: &Layout,
        mapping: &Mapping,
        thresholds: ClassThresholds,
    ) -> Params {
        let min = mapping.sides_in_model(self.min_size);
        let max = match self.max_size {
            0.0 => Sizes::ANY.max,
            limit => mapping.sides_in_model(limit),
        };
        Params {
            method: self.method,
            overlap: self.overlap,
            iou_threshold: self.iou_threshold,
            threshold_inclusive: self.threshold_inclusive,
            pixel_offset: self.pixel_offset as f32,
            class_agnostic: self.class_agnostic,
            thresholds,
            sizes: Sizes { min, max },
            scale: if layout.normalised { mapping.model() } else { [1.0; 2] },
            max_candidates: self.max_candidates as usize,
            max_detections: self.max_detections as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_head_has_a_value_of_the_decoder_property() {
        let class = glib::EnumClass::new::<Decoder>();
        let nicks: Vec<_> = class.values().iter().map(|value| value.nick()).collect();
        let names: Vec<_> =
            std::iter::once("auto").chain(head::HEADS.map(|head| head.name())).collect();
        assert_eq!(nicks, names);
    }

    #[test]
    fn the_defaults_of_the_element_are_those_of_the_engine() {
        let settings = Settings::default();
        let mapping = Mapping::new([640, 480], [0, 0], Letterbox::None).unwrap();
        let tensor = crate::tensor::Tensor::from_slice("windows", &[1, 4], &[0.0f32; 4]);
        let choice = head::choose(&[tensor], None, settings.head_options()).unwrap();
        let thresholds = ClassThresholds::uniform(settings.score_threshold);
        assert_eq!(settings.params(&choice.layout, &mapping, thresholds), Params::default());
    }
}
