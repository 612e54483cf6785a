// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where frames, or regions of frames, are in the model's input.
//!
//! In: sizes, and how frames were scaled. Out: [`Mapping`]s, for [`Nms::frame`](super::Nms::frame) and
//! [`Nms::regions`](super::Nms::regions).

use super::{ParamError, check_model_size};
use crate::geometry::{FrameRegion, Letterbox, Mapping, MappingError};
use crate::wording::Setting;

/// How frames were scaled to the model's input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameFit {
    /// Width and height of the frame in pixels.
    pub frame: [u32; 2],
    /// Width and height of the model's input in pixels; if unknown, of the frame or the region.
    pub model: Option<[f32; 2]>,
    /// Where the borders are.
    pub letterbox: Letterbox,
}

/// Frames cannot have been scaled so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// The size of the model's input is invalid.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The model's input has no whole pixels.
    #[error("{setting}: expected whole numbers of pixels with frame_size, got {0:?}", setting = Setting::ModelSize)]
    Model([f32; 2]),
    /// The frame or a region cannot be mapped to the model's input.
    #[error("{}", of_mapping(.0))]
    Mapping(#[from] MappingError),
}

/// The text of an error of frame, letterbox or regions, with the setting that it is about.
fn of_mapping(error: &MappingError) -> String {
    match error {
        MappingError::LetterboxWithoutModel => {
            format!("letterbox: {error}; set {}", Setting::ModelSize)
        }
        MappingError::RegionOutside { .. } => format!("regions: {error}"),
        _ => format!("frame_size: {error}"),
    }
}

impl FrameFit {
    /// The mapping of whole frames.
    ///
    /// # Errors
    /// If the sizes do not fit the letterbox, or are invalid.
    pub fn mapping(&self) -> Result<Mapping, FitError> {
        Ok(Mapping::new(self.frame, self.model_pixels()?, self.letterbox)?)
    }

    /// The mappings of regions, each of which was scaled as if it were a frame.
    ///
    /// # Errors
    /// The errors of [`mapping`](Self::mapping), and if a region is not inside the frame.
    pub fn regions(&self, regions: &[FrameRegion]) -> Result<Vec<Mapping>, FitError> {
        let model = self.model_pixels()?;
        let mapping = |&region| Ok(Mapping::of_region(self.frame, region, model, self.letterbox)?);
        regions.iter().map(mapping).collect()
    }

    /// The size of the model's input, or zeros if it is not known.
    fn model_pixels(&self) -> Result<[u32; 2], FitError> {
        let Some(size) = self.model else { return Ok([0; 2]) };
        check_model_size(size)?;
        let whole = size.map(|side| side as u32);
        if whole.map(|side| side as f32) == size { Ok(whole) } else { Err(FitError::Model(size)) }
    }
}
