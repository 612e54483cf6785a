// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where frames are in the model's input.
//!
//! In: fields of NmsfilterParams, and the size of the model's input. Out: the place of images in the core.

use nmsfilter_core::geometry::{self, FrameRegion, Mapping};
use nmsfilter_core::nms::{Bounds, FitError, FrameFit, FrameMap, ImagePlace, Nms};

use crate::border::{self, Failure};
use crate::enumeration::value_of;
use crate::params::Params;
use crate::words::in_c;

/// How frames were scaled to the model's input.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub enum Letterbox {
    /// Stretched: each axis by its own ratio, without borders.
    None = 0,
    /// Both axes by one ratio, with borders on both sides, as Ultralytics.
    Center = 1,
    /// Both axes by one ratio, with a border on the right or at the bottom, as YOLOX.
    TopLeft = 2,
}

impl Letterbox {
    /// The value for one of the core.
    pub fn of(core: geometry::Letterbox) -> Self {
        match core {
            geometry::Letterbox::Center => Self::Center,
            geometry::Letterbox::TopLeft => Self::TopLeft,
            _ => Self::None,
        }
    }
}

/// A part of a frame, in whole pixels. This record does not change.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Region {
    /// The first column.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
}

/// The frame of some parameters.
#[derive(Debug)]
pub struct Frame {
    visible: Bounds,
    /// `None` without a frame.
    size: Option<[u32; 2]>,
    letterbox: geometry::Letterbox,
    /// The position in the model's input, if the program has computed it.
    map: Option<FrameMap>,
    regions: Vec<FrameRegion>,
}

impl Default for Frame {
    fn default() -> Self {
        let letterbox = geometry::Letterbox::None;
        Self { visible: Bounds::ANY, size: None, letterbox, map: None, regions: Vec::new() }
    }
}

impl Frame {
    /// Reads the fields.
    ///
    /// # Errors
    /// If a field has no valid value.
    ///
    /// # Safety
    /// The pointer to regions is NULL or valid for as many.
    pub unsafe fn read(params: &Params) -> Result<Self, Failure> {
        let [left, top, right, bottom] = params.visible;
        let visible = Bounds { left, top, right, bottom };
        let (ratio, offset) = (params.frame_ratio, params.frame_offset);
        let size = (params.frame_size != [0; 2]).then_some(params.frame_size);
        // SAFETY: the caller guarantees it.
        let regions =
            unsafe { border::slice(params.regions, params.region_count, "params: regions") }?;
        if size.is_none() && !regions.is_empty() {
            return Err(Failure::argument(
                "params: frame_size: expected the size of the frame that has the regions, got 0 and 0",
            ));
        }
        let map = size.filter(|_| ratio != [0.0; 2]).map(|size| FrameMap { size, ratio, offset });
        let unknown = size.map(|size| FrameMap { size, ratio: [1.0; 2], offset: [0.0; 2] });
        ImagePlace { visible, frame: map.or(unknown), ..ImagePlace::in_model([1.0; 2]) }.check()?;
        let region =
            |&Region { left, top, width, height }: &_| FrameRegion { left, top, width, height };
        Ok(Self {
            visible,
            size,
            letterbox: value_of!("params: letterbox", params.letterbox, Letterbox => geometry::Letterbox, [
                None, Center, TopLeft
            ])?,
            map,
            regions: regions.iter().map(region).collect(),
        })
    }

    /// Returns true if there is a frame.
    pub fn is_known(&self) -> bool {
        self.size.is_some()
    }

    /// Sets the place of images for the model's input of `nms`.
    ///
    /// # Errors
    /// If the sizes do not fit the letterbox, or a region is not inside the frame.
    pub fn place(&self, nms: &mut Nms) -> Result<(), Failure> {
        (nms.visible, nms.frame) = (self.visible, self.map);
        nms.regions.clear();
        let Some(frame) = self.size.filter(|_| self.map.is_none() || !self.regions.is_empty())
        else {
            return Ok(());
        };
        let model = (nms.model_size != [1.0; 2]).then_some(nms.model_size);
        let fit = FrameFit { frame, model, letterbox: self.letterbox };
        let mapping: Mapping = fit.mapping()?;
        nms.frame = Some(mapping.frame_map());
        if self.visible == Bounds::ANY {
            nms.visible = mapping.visible();
        }
        nms.regions = fit.regions(&self.regions)?;
        Ok(())
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Param(error) => error.into(),
            error => Self::argument(format!("params: {}", in_c(error))),
        }
    }
}
