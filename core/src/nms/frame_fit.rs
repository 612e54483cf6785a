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
    /// Width and height of the model's input in pixels; if unknown, those of the frame or the region.
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
    /// The frame is letterboxed, and the size of the model's input is unknown.
    #[error("letterbox: {}; set {}", MappingError::LetterboxWithoutModel, Setting::ModelSize)]
    Letterbox,
    /// The frame has no pixels.
    #[error("frame_size: {0}")]
    Frame(MappingError),
    /// A region is not inside the frame.
    #[error("regions: {0}")]
    Region(MappingError),
}

impl From<MappingError> for FitError {
    fn from(error: MappingError) -> Self {
        match error {
            MappingError::LetterboxWithoutModel => Self::Letterbox,
            MappingError::RegionOutside { .. } => Self::Region(error),
            error => Self::Frame(error),
        }
    }
}

impl FrameFit {
    /// The mapping of whole frames.
    ///
    /// # Errors
    /// If the sizes do not fit the letterbox, or are invalid.
    pub fn mapping(&self) -> Result<Mapping, FitError> {
        Ok(Mapping::new(self.frame, self.model_pixels()?.unwrap_or_default(), self.letterbox)?)
    }

    /// The mappings of regions, each of which was scaled as if it were a frame.
    ///
    /// # Errors
    /// The errors of [`mapping`](Self::mapping), and if a region is not inside the frame.
    pub fn regions(&self, regions: &[FrameRegion]) -> Result<Vec<Mapping>, FitError> {
        let model = self.model_pixels()?.unwrap_or_default();
        let mapping = |&region| Ok(Mapping::of_region(self.frame, region, model, self.letterbox)?);
        regions.iter().map(mapping).collect()
    }

    fn model_pixels(&self) -> Result<Option<[u32; 2]>, FitError> {
        let Some(size) = self.model else { return Ok(None) };
        check_model_size(size)?;
        let whole = size.map(|side| side as u32);
        if whole.map(|side| side as f32) == size {
            Ok(Some(whole))
        } else {
            Err(FitError::Model(size))
        }
    }
}
