// SPDX-License-Identifier: MIT OR Apache-2.0
//! The readings that an error offers for tensors with unknown ids.
//!
//! In: the tensors, and the decoders whose forms they fit. Out: the few most likely readings as text, each of which reads the
//! tensors with the settings that it names.

use std::fmt;

use super::misread::{Contradiction, FEW_ROWS, contradiction, is_unlikely};
use super::{Choice, ChoiceError, choose};
use crate::decoder::layout::LayoutProblem;
use crate::decoder::{Decoder, KeypointShape, Options, by_name};
use crate::tensor::TensorView;
use crate::wording::Setting;

/// The greatest number of readings. A user cannot compare more, and one of the first is nearly always right.
const MOST: usize = 3;

/// The number of COCO's classes, which most published models have.
const COCO: usize = 80;

/// Sides of models' inputs, in units of 32 pixels, with which decoders of grids are tried, and their quotients: squares,
/// 4:3 and 16:9.
const SIDES: std::ops::RangeInclusive<usize> = 2..=48;
const QUOTIENTS: [[usize; 2]; 3] = [[1, 1], [3, 4], [9, 16]];

/// A reading, and the setting that it needs beside the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offer {
    decoder: &'static str,
    /// The number of classes, if the shape determines it.
    classes: Option<usize>,
    with: Option<With>,
}

/// A setting that a decoder needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    ModelSize,
    KeypointShape,
    /// Another number of classes than the one that is set.
    NumClasses(usize),
}

/// The readings of `tensors` by `decoders`, as text. `None` if no decoder fits.
pub(super) fn offers(
    tensors: &[TensorView<'_>],
    decoders: impl Iterator<Item = &'static Decoder>,
    options: Options,
) -> Option<String> {
    let (mut found, mut of_grids) = (Vec::new(), Vec::new());
    for decoder in decoders {
        match offer(tensors, decoder, options) {
            Ok(offer) => found.push(offer),
            Err(error) if matches!(error.problem(), Some(LayoutProblem::ModelSize(_))) => {
                of_grids.push(decoder);
            }
            Err(_) => {}
        }
    }
    let is_good = |(choice, offer): &(Choice, Offer)| {
        offer.has_known(options) && !is_unlikely(choice, options)
    };
    if found.iter().filter(|it| is_good(it) && it.1.rank() == 0).count() < MOST {
        let read = |decoder| of_grid(tensors, decoder, options);
        let is_large = |it: &(Choice, Offer)| is_good(it) && it.0.layout.anchors() > FEW_ROWS;
        found.extend(of_grids.into_iter().take(MOST).filter_map(read).filter(is_large));
    }
    // Numbers contradict some readings. Those that a setting corrects, which a notice names, are offered if there are no
    // others.
    let contradictions: Vec<_> =
        found.iter().map(|(choice, _)| contradiction(tensors, choice)).collect();
    let least = contradictions.iter().copied().min()?;
    if least == Contradiction::Numbers {
        return None;
    }
    let mut contradictions = contradictions.into_iter();
    found.retain(|_| contradictions.next() == Some(least));
    // Facts contradict others.
    let read = |(choice, _): &(Choice, Offer)| choice.layout.tensors().len();
    let most = found.iter().filter(|it| is_good(it)).map(read).max();
    let mut good: Vec<&(Choice, Offer)> =
        found.iter().filter(|it| is_good(it) && most == Some(read(it))).collect();
    if good.is_empty() {
        let is_likely = |it: &&(Choice, Offer)| !is_unlikely(&it.0, options);
        let has_likely = found.iter().any(|it| is_likely(&it));
        good = found.iter().filter(|it| !has_likely || is_likely(it)).collect();
    }
    good.sort_by_key(|(_, offer)| offer.rank());
    let offers: Vec<&Offer> = good.into_iter().take(MOST).map(|(_, offer)| offer).collect();
    if offers.is_empty() {
        return None;
    }
    let texts: Vec<String> = offers.iter().map(ToString::to_string).collect();
    let mut text = format!("{}; set {} to the right one", texts.join(" or "), Setting::Decoder);
    // A usual reading with another number of classes than the known one, which can be wrong.
    let contradicted = found.iter().find(|(choice, offer)| {
        let is_exported =
            offer.decoder == "yolov8" && choice.layout.groups[0].boxes.anchor_stride == 1;
        let is_usual = offer.classes == Some(COCO) && !is_unlikely(choice, options);
        !offer.has_known(options) && !offers.contains(&offer) && (is_exported || is_usual)
    });
    if let Some((_, offer)) = contradicted {
        text += &format!(", or read {offer}");
    }
    let is_contradicted = contradicted.is_some() || !offers.iter().any(|it| it.has_known(options));
    if is_contradicted && options.num_classes == 0 && options.labels > 0 {
        text += &format!(" (there are {} labels: correct {})", options.labels, Setting::Labels);
    }
    if offers.iter().any(|offer| offer.decoder == "yolox") {
        text += " (yolov5 and yolox read decoded boxes, YOLOX exported with --decode_in_inference; yolox-raw and \
                 yolov5-raw read others)";
    }
    Some(text + "; if it is none of these, describe the tensors in a layout file")
}

impl Offer {
    /// True if it has the known number of classes.
    fn has_known(&self, options: Options) -> bool {
        match (self.classes, options.known_classes()) {
            (Some(classes), Some(known)) => classes == known,
            _ => true,
        }
    }

    /// Usual models are first.
    fn rank(&self) -> u8 {
        match (self.with, self.classes) {
            (Some(With::KeypointShape), _) => 1,
            // Models for poses, masks and oriented boxes have other classes.
            (_, Some(COCO)) if by_name(self.decoder).is_some_and(|it| it.family.task.is_none()) => {
                0
            }
            (_, Some(1) | None) => 0,
            _ => 2,
        }
    }
}

/// Reads the tensors by a decoder, with the setting that is missing, unless that is the size of the model's input.
fn offer(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
) -> Result<(Choice, Offer), ChoiceError> {
    let (choice, with) = match choose(tensors, Some(decoder), options) {
        Err(error) => match error.problem() {
            Some(LayoutProblem::NumClasses(classes)) => {
                let options = Options { num_classes: classes, ..options };
                (choose(tensors, Some(decoder), options)?, Some(With::NumClasses(classes)))
            }
            Some(LayoutProblem::Keypoints(_)) => {
                (with_keypoints(tensors, decoder, options).ok_or(error)?, Some(With::KeypointShape))
            }
            _ => return Err(error),
        },
        Ok(choice) => (choice, None),
    };
    let has_number = decoder.label(0).is_none()
        && !choice.layout.has_class_field()
        && with != Some(With::KeypointShape);
    let classes = choice.layout.classes - choice.layout.first_label() as usize;
    let offer = Offer { decoder: decoder.name(), classes: has_number.then_some(classes), with };
    Ok((choice, offer))
}

/// Reads the tensors with some shape of keypoints. The tensors do not determine it.
fn with_keypoints(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
) -> Option<Choice> {
    let shapes =
        (1..=133).flat_map(|count| [3, 2].map(|components| KeypointShape { count, components }));
    shapes.filter(|_| options.keypoints.is_none()).find_map(|shape| {
        let options = Options { keypoints: Some(shape), ..options };
        choose(tensors, Some(decoder), options).ok()
    })
}

/// Reads the tensors with some size of the model's input.
fn of_grid(
    tensors: &[TensorView<'_>],
    decoder: &'static Decoder,
    options: Options,
) -> Option<(Choice, Offer)> {
    let sizes = SIDES.flat_map(|long| {
        QUOTIENTS.into_iter().flat_map(move |[height, width]| {
            let short = (long * height).div_ceil(width);
            [[long, short], [short, long]]
        })
    });
    let fit = |[width, height]: [usize; 2]| {
        let model_size = Some([width, height].map(|side| (32 * side) as f32));
        offer(tensors, decoder, Options { model_size, ..options }).ok()
    };
    let (choice, found) = sizes.into_iter().find_map(fit)?;
    found.with.is_none().then_some((choice, Offer { with: Some(With::ModelSize), ..found }))
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.decoder)?;
        match self.classes {
            Some(1) => write!(f, " with 1 class")?,
            Some(classes) => write!(f, " with {classes} classes")?,
            None => {}
        }
        let setting = match self.with {
            Some(With::ModelSize) => Setting::ModelSize.to_string(),
            Some(With::KeypointShape) => Setting::KeypointShape.to_string(),
            Some(With::NumClasses(classes)) => Setting::NumClasses.to(classes),
            None => return Ok(()),
        };
        write!(f, " (set {setting} too)")
    }
}
