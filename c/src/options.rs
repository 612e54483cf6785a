// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about a model that its tensors do not contain.

use nmsfilter_core::nms::{self, KeypointShape};

use crate::border::{Failure, sized_struct};
use crate::enumeration::value_of;

/// The form of the boxes that the decoder `boxes` reads. Other decoders define their form.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum BoxFormat {
    /// Left, upper, right and lower edge.
    Corners = 0,
    /// Center x, center y, width, height.
    Center = 1,
    /// Left edge, upper edge, side.
    Square = 2,
    /// Distances from a point to the left, upper, right and lower edge.
    Distances = 3,
}

/// The unit of coordinates.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Coordinates {
    /// The decoder's unit, if it has one; else normalized if the id ends in "-normalized", and pixels otherwise.
    Auto = 0,
    /// Pixels of the model's input.
    Pixels = 1,
    /// Fractions of the width and height of the model's input, 0 to 1.
    Normalized = 2,
}

/// The order of a tensor's dimensions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Channels {
    /// The order that shapes have; an error if both fit.
    Auto = 0,
    /// The numbers of an anchor or pixel before the anchors, as [1,C,H,W] and [1,4+C,N].
    First = 1,
    /// After the anchors, as [1,H,W,C] and [1,N,4+C].
    Last = 2,
}

/// The function that turns scores into probabilities.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum ScoreActivation {
    /// The decoder's activation.
    Default = 0,
    /// None: scores are probabilities, or have no unit.
    None = 1,
    /// The logistic function.
    Sigmoid = 2,
    /// Softmax over all scores of an anchor.
    Softmax = 3,
}

/// Which of an anchor's scores is the background's, also called "no object".
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Background {
    /// The decoder's. With the decoder detr, the last if class_count or label_count is one less than the number of scores,
    /// which then are softmax.
    Auto = 0,
    /// None: each score belongs to a class.
    None = 1,
    /// The first. The next score belongs to class 0, or to class 1 if class_count or label_count counts the background.
    First = 2,
    /// The last.
    Last = 3,
}

/// Facts about a model that its tensors do not contain. By default, all bytes but `size` are 0: nothing is known.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// sizeof(NmsfilterOptions).
    pub size: usize,
    /// The width of the model's input in pixels, by which normalized coordinates are multiplied; 0 if it is unknown, and
    /// normalized boxes remain so. Some decoders and masks need it.
    pub model_width: f32,
    /// The height of the model's input.
    pub model_height: f32,
    /// 1 if the first of three dimensions is the number of images of a batch; 0 if other numbers than 1 are an error.
    pub batch: u32,
    /// An NmsfilterBoxFormat.
    pub box_format: u32,
    /// An NmsfilterCoordinates.
    pub coordinates: u32,
    /// An NmsfilterScoreActivation.
    pub score_activation: u32,
    /// The number of classes; 0 if it is unknown. Tensors with another number are an error.
    pub class_count: usize,
    /// The number of labels that are known; 0 if none are. It helps to choose a decoder, and is not required.
    pub label_count: usize,
    /// The number of keypoints of a detection; 0 if it is unknown.
    pub keypoint_count: u32,
    /// The number of components of a keypoint: 2 for x and y, 3 with a visibility.
    pub keypoint_components: u32,
    /// An NmsfilterBackground.
    pub background: u32,
    /// An NmsfilterChannels, for tensors whose shapes fit both orders of dimensions.
    pub channels: u32,
}

sized_struct!(Options, "NmsfilterOptions", keypoint_components: u32);

impl Options {
    /// The options, and the size of the model's input.
    ///
    /// # Errors
    /// If a field has no valid value.
    pub fn to_nms(self) -> Result<(nms::Options, [f32; 2]), Failure> {
        let error = |field: &str, expected: &str, got: &dyn std::fmt::Display| {
            Failure::argument(format!("options: {field}: expected {expected}, got {got}"))
        };
        let mut options = nms::Options::default();
        let model_size = match [self.model_width, self.model_height] {
            [0.0, 0.0] => [1.0; 2],
            sides => {
                nms::check_model_size(sides)?;
                sides
            }
        };
        options.batch = flag("options: batch", self.batch)?;
        options.box_format = value_of!("options: box_format", self.box_format, BoxFormat => nms::BoxFormat, [
            Corners, Center, Square, Distances
        ])?;
        options.coordinates = value_of!("options: coordinates", self.coordinates, Coordinates => nms::Coordinates, [
            Auto, Pixels, Normalized
        ])?;
        options.channels = value_of!("options: channels", self.channels, Channels => nms::Channels, [Auto, First, Last])?;
        options.score_activation = match self.score_activation {
            0 => None,
            number => Some(
                value_of!("options: score_activation", number, ScoreActivation => nms::Activation, [
                    None, Sigmoid, Softmax
                ])?,
            ),
        };
        options.background = match self.background {
            0 => None,
            number => Some(
                value_of!("options: background", number, Background => nms::Background, [None, First, Last])?,
            ),
        };
        (options.num_classes, options.labels) = (self.class_count, self.label_count);
        options.keypoints = match (self.keypoint_count, self.keypoint_components) {
            (0, 0) => None,
            (count @ 1.., components @ (2 | 3)) => {
                Some(KeypointShape { count: count as usize, components: components as usize })
            }
            (count, components) => {
                return Err(error(
                    "keypoint_count and keypoint_components",
                    "a number with 2 or 3, or 0 and 0",
                    &format_args!("{count} and {components}"),
                ));
            }
        };
        Ok((options, model_size))
    }
}

/// The truth of a number.
///
/// # Errors
/// If it is neither 0 nor 1.
pub fn flag(field: &str, number: u32) -> Result<bool, Failure> {
    match number {
        0 | 1 => Ok(number == 1),
        other => Err(Failure::argument(format!("{field}: expected 0 or 1, got {other}"))),
    }
}

#[cfg(test)]
#[allow(
    clippy::field_reassign_with_default,
    reason = "other packages cannot make these structures of their fields"
)]
mod tests {
    use super::*;

    const NOTHING: Options = Options {
        size: size_of::<Options>(),
        model_width: 0.0,
        model_height: 0.0,
        batch: 0,
        box_format: 0,
        coordinates: 0,
        score_activation: 0,
        class_count: 0,
        label_count: 0,
        keypoint_count: 0,
        keypoint_components: 0,
        background: 0,
        channels: 0,
    };

    #[test]
    fn zeros_are_the_defaults_of_the_rust_interface() {
        assert_eq!(NOTHING.to_nms().unwrap(), (nms::Options::default(), [1.0; 2]));
    }

    #[test]
    fn every_field_has_its_effect() {
        let options = Options {
            model_width: 640.0,
            model_height: 480.0,
            batch: 1,
            box_format: BoxFormat::Center as u32,
            coordinates: Coordinates::Normalized as u32,
            score_activation: ScoreActivation::Softmax as u32,
            class_count: 80,
            label_count: 81,
            keypoint_count: 17,
            keypoint_components: 3,
            background: Background::Last as u32,
            channels: Channels::Last as u32,
            ..NOTHING
        };
        let mut expected = nms::Options::default();
        expected.batch = true;
        expected.box_format = nms::BoxFormat::Center;
        expected.coordinates = nms::Coordinates::Normalized;
        expected.score_activation = Some(nms::Activation::Softmax);
        (expected.num_classes, expected.labels) = (80, 81);
        expected.background = Some(nms::Background::Last);
        expected.channels = nms::Channels::Last;
        expected.keypoints = Some(KeypointShape { count: 17, components: 3 });
        assert_eq!(options.to_nms().unwrap(), (expected, [640.0, 480.0]));
    }
}
