// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the regions of a frame on which a model runs.
//!
//! In: a buffer, the size of its frame, and [`RegionSettings`]. Out: the regions, which are pictures of one or more
//! batches. They are the whole frame, tiles of it, the regions of a list, or the regions of interest on the buffer.

mod label_watch;
mod list;
mod objects;
mod tiles;

use label_watch::LabelWatch;
pub use label_watch::MissingLabels;
pub use list::MAX_LISTED;
pub use tiles::{MAX_OVERLAP, MAX_TILES, tiles};

use gstnmsfilter::input::region::TensorRegion;
use nmsfilter_core::geometry::FrameRegion;

/// The kinds of regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegionKind {
    /// The whole frame.
    #[default]
    Frame,
    /// Overlapping tiles of the frame.
    Tiles,
    /// The regions of interest or objects on the buffer.
    Rois,
    /// The regions of a list.
    List,
}

/// Which regions are chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionSettings {
    /// The kind of regions.
    pub kind: RegionKind,
    /// The width and height of tiles in pixels of the frame; 0 stands for the side of the model's input.
    pub tile_size: [u32; 2],
    /// The overlap of two tiles as a fraction of their side, 0 to [`MAX_OVERLAP`].
    pub tile_overlap: f64,
    /// True if the whole frame follows the tiles, if there are several.
    pub full_frame: bool,
    /// The list of regions as text.
    pub list: Option<String>,
    /// The labels of the regions of interest to run on, separated by commas; `None` for all.
    pub roi_labels: Option<String>,
    /// The margin on each side of a region of interest, as a fraction of its width or height.
    pub roi_margin: f64,
    /// The greatest number of regions of interest of a frame; 0 for no limit. The first ones are chosen.
    pub roi_limit: u32,
}

impl Default for RegionSettings {
    fn default() -> Self {
        Self {
            kind: RegionKind::Frame,
            tile_size: [0; 2],
            tile_overlap: 0.2,
            full_frame: true,
            list: None,
            roi_labels: None,
            roi_margin: 0.0,
            roi_limit: 0,
        }
    }
}

/// The reason why regions cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// The list is malformed.
    #[error("region-list: {0}")]
    List(String),
    /// There is no list.
    #[error(
        "regions=list needs region-list: set it to left,top,width,height of each region, as in 0,0,640,480"
    )]
    NoList,
    /// A region of the list has no pixels in the frame.
    #[error(
        "region-list: the region {region} is outside of the frame of {}x{}; regions are in pixels of the frame", frame[0], frame[1]
    )]
    Outside {
        /// The region.
        region: FrameRegion,
        /// Width and height of the frame.
        frame: [u32; 2],
    },
    /// There are too many tiles.
    #[error(
        "tiles of {}x{} pixels: the frame has more than {MAX_TILES} of them; set tile-width and tile-height to larger \
         numbers", size[0], size[1]
    )]
    Tiles {
        /// Width and height of a tile.
        size: [u32; 2],
    },
}

impl RegionSettings {
    /// Returns whether regions of interest with this label are wanted.
    fn has_label(&self, label: &str) -> bool {
        let is_label = |wanted: &str| wanted.trim() == label;
        self.roi_labels.as_ref().is_none_or(|labels| labels.split(',').any(is_label))
    }

    /// Checks the settings that do not depend on the frame.
    ///
    /// # Errors
    /// If a list is needed, and it is missing or malformed.
    pub fn check(&self) -> Result<(), RegionError> {
        match self.kind {
            RegionKind::List => self.listed().map(drop),
            RegionKind::Frame | RegionKind::Tiles | RegionKind::Rois => Ok(()),
        }
    }

    fn listed(&self) -> Result<Vec<FrameRegion>, RegionError> {
        let text = self.list.as_ref().ok_or(RegionError::NoList)?;
        list::parse(text).map_err(RegionError::List)
    }

    /// Returns the regions of frames of this size, for a model with an input of `model` pixels.
    ///
    /// # Errors
    /// If the list is missing or malformed, a region of it is outside of the frame, or there are too many tiles.
    fn of_frame(&self, frame: [u32; 2], model: [u32; 2]) -> Result<Vec<FrameRegion>, RegionError> {
        match self.kind {
            RegionKind::Frame => Ok(vec![FrameRegion::whole(frame)]),
            RegionKind::Rois => Ok(Vec::new()),
            RegionKind::List => {
                let clip = |region: FrameRegion| {
                    clipped(region, frame).ok_or(RegionError::Outside { region, frame })
                };
                self.listed()?.into_iter().map(clip).collect()
            }
            RegionKind::Tiles => {
                let size = [0, 1].map(|axis| match self.tile_size[axis] {
                    0 => model[axis],
                    side => side,
                });
                let tiles = tiles::tiles(frame, size, self.tile_overlap);
                let mut tiles = tiles.ok_or(RegionError::Tiles { size })?;
                if self.full_frame && tiles.len() > 1 {
                    tiles.push(FrameRegion::whole(frame));
                }
                Ok(tiles)
            }
        }
    }
}

/// Returns the part of a region that is in the frame; `None` if it has no pixels.
fn clipped(region: FrameRegion, frame: [u32; 2]) -> Option<FrameRegion> {
    let FrameRegion { left, top, width, height } = region;
    let [width, height] =
        [width.min(frame[0].saturating_sub(left)), height.min(frame[1].saturating_sub(top))];
    Some(FrameRegion { left, top, width, height }).filter(|region| region.is_inside(frame))
}

/// The regions of the current frame.
#[derive(Debug, Default)]
pub struct Regions {
    /// The settings in force.
    settings: RegionSettings,
    /// Settings that were not valid for the current sizes.
    rejected: Option<RegionSettings>,
    /// The sizes of the frame and of the model's input for which `chosen` was computed.
    sizes: Option<[[u32; 2]; 2]>,
    chosen: Vec<TensorRegion>,
    /// The pixels of `chosen`.
    pixels: Vec<FrameRegion>,
    label_watch: LabelWatch,
    missing_labels: Option<MissingLabels>,
}

impl Regions {
    /// Returns the kind of the regions.
    pub fn kind(&self) -> RegionKind {
        self.settings.kind
    }

    /// Returns the regions that were chosen last.
    pub fn chosen(&self) -> &[TensorRegion] {
        &self.chosen
    }

    /// Returns the labels that no object has had, once.
    pub fn take_missing_labels(&mut self) -> Option<MissingLabels> {
        self.missing_labels.take()
    }

    /// Returns the pixels of the regions that were chosen last.
    pub fn pixels(&self) -> &[FrameRegion] {
        &self.pixels
    }

    /// Chooses the regions for a buffer with a frame of this size, by these settings. Nothing is computed again if
    /// neither the settings nor the sizes have changed, except for regions of interest. If settings are not valid for
    /// frames of which earlier ones had regions, the earlier settings stay in force, and the error is returned once as
    /// `Ok(Some(error))`.
    ///
    /// # Errors
    /// If the settings are not valid for the first frame of these sizes.
    pub fn choose(
        &mut self,
        buffer: &gst::BufferRef,
        settings: &RegionSettings,
        sizes: [[u32; 2]; 2],
    ) -> Result<Option<RegionError>, RegionError> {
        let [frame, model] = sizes;
        let has_sizes = self.sizes == Some(sizes);
        let mut rejection = None;
        if has_sizes && self.settings == *settings {
            self.rejected = None;
        } else if !has_sizes || self.rejected.as_ref() != Some(settings) {
            match settings.of_frame(frame, model) {
                Ok(pixels) => {
                    self.chosen = pixels.iter().copied().map(TensorRegion::new).collect();
                    (self.pixels, self.settings) = (pixels, settings.clone());
                    (self.sizes, self.rejected) = (Some(sizes), None);
                }
                Err(error) if has_sizes => {
                    self.rejected = Some(settings.clone());
                    rejection = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        if self.settings.kind == RegionKind::Rois {
            self.chosen.clear();
            objects::add(buffer, frame, &self.settings, &mut self.chosen);
            if self.settings.roi_labels.is_some() {
                let labels = objects::labels(buffer);
                self.missing_labels = self.label_watch.add(&self.settings, labels);
            }
            self.pixels.clear();
            self.pixels.extend(self.chosen.iter().map(|region| region.pixels));
        }
        Ok(rejection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(settings: &RegionSettings, frame: [u32; 2]) -> Result<Vec<String>, RegionError> {
        let mut regions = Regions::default();
        regions.choose(gst::Buffer::new().as_ref(), settings, [frame, [640, 640]])?;
        Ok(regions.pixels().iter().map(ToString::to_string).collect())
    }

    fn of(kind: RegionKind) -> RegionSettings {
        gst::init().unwrap();
        RegionSettings { kind, ..RegionSettings::default() }
    }

    #[test]
    fn the_whole_frame_follows_its_tiles() {
        let expected = ["0,0,640,480", "160,0,640,480", "0,0,800,480"];
        assert_eq!(regions(&of(RegionKind::Tiles), [800, 480]).unwrap(), expected);
        let without = RegionSettings { full_frame: false, ..of(RegionKind::Tiles) };
        assert_eq!(regions(&without, [800, 480]).unwrap(), expected[..2]);
        // A single tile is the frame.
        assert_eq!(regions(&of(RegionKind::Tiles), [640, 480]).unwrap(), ["0,0,640,480"]);
    }

    #[test]
    fn regions_of_the_list_end_at_the_frame() {
        let list =
            |text: &str| RegionSettings { list: Some(text.to_owned()), ..of(RegionKind::List) };
        let found = regions(&list("0,0,100,100;600,400,100,100"), [640, 480]);
        assert_eq!(found.unwrap(), ["0,0,100,100", "600,400,40,80"]);
        let error = regions(&list("640,0,100,100"), [640, 480]).unwrap_err().to_string();
        assert!(error.contains("640,0,100,100 is outside of the frame of 640x480"), "{error}");
        assert_eq!(regions(&of(RegionKind::List), [640, 480]), Err(RegionError::NoList));
    }

    #[test]
    fn settings_that_are_not_valid_leave_the_earlier_regions_in_force() {
        let mut regions = Regions::default();
        let buffer = gst::Buffer::new();
        let sizes = [[800, 480], [640, 640]];
        regions.choose(&buffer, &of(RegionKind::Tiles), sizes).unwrap();
        let list = of(RegionKind::List);
        let rejected = regions.choose(&buffer, &list, sizes);
        assert_eq!(rejected, Ok(Some(RegionError::NoList)));
        assert_eq!((regions.kind(), regions.pixels().len()), (RegionKind::Tiles, 3));
        assert_eq!(regions.choose(&buffer, &list, sizes), Ok(None), "the error is returned once");
        let other_sizes = [[640, 480], [640, 640]];
        assert_eq!(regions.choose(&buffer, &list, other_sizes), Err(RegionError::NoList));
    }
}
