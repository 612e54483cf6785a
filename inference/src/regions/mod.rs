// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the regions of a frame on which a model runs.
//!
//! In: a buffer, the size of its frame, and [`RegionSettings`]. Out: the regions, which are pictures of one or more
//! batches. They are the whole frame, tiles of it, the regions of a list, or the regions of interest on the buffer.

mod list;
mod objects;
mod watch;

pub use list::MAX_LISTED;
pub use nmsfilter_core::geometry::{MAX_OVERLAP, MAX_TILES, tiles};
use watch::RegionWatch;

use crate::inference::error::InferenceError;
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

/// Which regions are chosen. The default is the whole frame.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// True if the model also runs on regions of interest that a tracker has predicted.
    pub roi_predicted: bool,
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
    pub fn check(&self) -> Result<(), InferenceError> {
        if self.kind == RegionKind::List {
            self.listed([1; 2])?;
        }
        Ok(())
    }

    fn listed(&self, frame: [u32; 2]) -> Result<Vec<FrameRegion>, InferenceError> {
        let text = self.list.as_ref().ok_or_else(|| {
            InferenceError::Settings(
                "regions=list needs region-list: set it to left,top,width,height of each region, \
                 as in 0,0,640,480, or to an empty list"
                    .to_owned(),
            )
        })?;
        list::parse(text, frame)
            .map_err(|problem| InferenceError::Settings(format!("region-list: {problem}")))
    }

    /// Returns the regions of frames of this size, for a model with an input of `model` pixels, and the regions of the list
    /// without a pixel in the frame.
    ///
    /// # Errors
    /// If the list is missing or malformed, or there are too many tiles.
    fn of_frame(
        &self,
        [frame, model]: [[u32; 2]; 2],
    ) -> Result<[Vec<FrameRegion>; 2], InferenceError> {
        let all = match self.kind {
            RegionKind::Frame => vec![FrameRegion::whole(frame)],
            RegionKind::Rois => Vec::new(),
            RegionKind::List => self.listed(frame)?,
            RegionKind::Tiles => {
                let size = [0, 1].map(|axis| match self.tile_size[axis] {
                    0 => model[axis],
                    side => side,
                });
                let tiles = tiles(frame, size, self.tile_overlap);
                let mut tiles = tiles.ok_or_else(|| {
                    let [width, height] = size;
                    InferenceError::Settings(format!(
                        "tiles of {width}x{height} pixels: the frame has more than {MAX_TILES} of \
                         them; set tile-width and tile-height to larger numbers"
                    ))
                })?;
                if self.full_frame && tiles.len() > 1 {
                    tiles.push(FrameRegion::whole(frame));
                }
                tiles
            }
        };
        let [mut inside, mut outside] = [(); 2].map(|()| Vec::new());
        for region in all {
            let FrameRegion { left, top, width, height } = region;
            match objects::with_margin([left, top, width, height].map(i64::from), 0.0, frame) {
                Some(region) => inside.push(region),
                None => outside.push(region),
            }
        }
        Ok([inside, outside])
    }
}

/// The regions of the current frame.
#[derive(Debug, Default)]
pub struct Regions {
    /// The settings in force.
    pub settings: RegionSettings,
    /// Settings that were refused.
    refused: Option<RegionSettings>,
    /// The regions of the list that were outside of a frame, for which there was a notice.
    left_out: Vec<FrameRegion>,
    /// The sizes of the frame and of the model's input for which `chosen` was computed.
    sizes: Option<[[u32; 2]; 2]>,
    /// The regions that were chosen last.
    pub chosen: Vec<TensorRegion>,
    pub(crate) watch: RegionWatch,
}

impl Regions {
    /// Chooses the regions for a buffer with a frame of this size, by these settings. `sizes` are of the frame and
    /// of the model's input. Nothing is computed again if neither the settings nor the sizes have changed, except for
    /// regions of interest. New settings that are not valid are refused: the earlier ones stay in force, also for other
    /// sizes, until there are others. Regions of a list that are outside of frames of another size are left out. Returns
    /// what a user should know of this, while the stream continues.
    ///
    /// # Errors
    /// If the settings are not valid for the first frame, or tiles are too many for frames of another size.
    pub fn choose(
        &mut self,
        buffer: &gst::BufferRef,
        settings: &RegionSettings,
        sizes: [[u32; 2]; 2],
    ) -> Result<Vec<String>, InferenceError> {
        let frame = sizes[0];
        let mut notices = Vec::new();
        let is_first = self.sizes.is_none();
        if self.settings == *settings && !is_first {
            self.refused = None;
        } else if self.refused.as_ref() != Some(settings) {
            let found = settings.of_frame(sizes).and_then(|[inside, outside]| match outside.first() {
                None => Ok(inside),
                Some(region) => Err(InferenceError::Settings(format!(
                    "region-list: the region {region} is outside of the frame of {}x{}; regions are \
                     in pixels of the frame",
                    frame[0], frame[1]
                ))),
            });
            match found {
                Ok(pixels) => {
                    self.settings = settings.clone();
                    (self.refused, self.left_out) = (None, Vec::new());
                    self.set(pixels, sizes);
                }
                Err(error) if is_first => return Err(error),
                Err(error) => {
                    self.refused = Some(settings.clone());
                    notices.push(format!("{error}; the earlier regions stay in force"));
                }
            }
        }
        if self.sizes != Some(sizes) {
            notices.extend(self.change_sizes(sizes)?);
        }
        if self.settings.kind == RegionKind::Rois {
            self.chosen.clear();
            objects::add(buffer, frame, &self.settings, &mut self.chosen);
            let labels = objects::labels(buffer);
            notices.extend(self.watch.add(&self.settings, labels, !self.chosen.is_empty()));
        } else {
            self.watch = RegionWatch::default();
        }
        Ok(notices)
    }

    /// Computes the regions of the settings in force for other sizes.
    fn change_sizes(&mut self, sizes: [[u32; 2]; 2]) -> Result<Option<String>, InferenceError> {
        let [inside, outside] = self.settings.of_frame(sizes)?;
        let (mut first, count) = (None, outside.len());
        for region in outside {
            // Frames of several streams can change their size back and forth.
            if !self.left_out.contains(&region) {
                self.left_out.push(region);
                first.get_or_insert(region);
            }
        }
        self.set(inside, sizes);
        let [width, height] = sizes[0];
        Ok(first.map(|first| {
            format!(
                "region-list: frames are now {width}x{height} pixels, and {count} of the regions are outside of them, the \
                 first is {first}; they are left out"
            )
        }))
    }

    fn set(&mut self, pixels: Vec<FrameRegion>, sizes: [[u32; 2]; 2]) {
        let region = |pixels| TensorRegion { pixels, parent: None };
        self.chosen = pixels.into_iter().map(region).collect();
        self.sizes = Some(sizes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(settings: &RegionSettings, frame: [u32; 2]) -> Result<Vec<String>, InferenceError> {
        let mut regions = Regions::default();
        regions.choose(gst::Buffer::new().as_ref(), settings, [frame, [640, 640]])?;
        Ok(regions.chosen.iter().map(|region| region.pixels.to_string()).collect())
    }

    fn of(kind: RegionKind) -> RegionSettings {
        gst::init().unwrap();
        RegionSettings { kind, tile_overlap: 0.2, full_frame: true, ..Default::default() }
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
        let error = regions(&of(RegionKind::List), [640, 480]).unwrap_err().to_string();
        assert!(error.starts_with("regions=list needs region-list: set it to"), "{error}");
    }

    #[test]
    fn settings_that_are_refused_leave_the_earlier_regions_in_force() {
        gst::init().unwrap();
        let mut regions = Regions::default();
        let buffer = gst::Buffer::new();
        let mut choose = |settings: &RegionSettings, frame| {
            let notices = regions.choose(&buffer, settings, [frame, [640, 640]]);
            (
                notices.map_err(|error| error.to_string()),
                regions.settings.kind,
                regions.chosen.len(),
            )
        };
        let (tiles, list) = (of(RegionKind::Tiles), of(RegionKind::List));
        let wide = [800, 480];
        assert_eq!(choose(&tiles, wide), (Ok(vec![]), RegionKind::Tiles, 3));
        let refused = format!("{}; the earlier regions stay in force", list.check().unwrap_err());
        let refused = Ok(vec![refused]);
        assert_eq!(choose(&list, wide), (refused.clone(), RegionKind::Tiles, 3));
        assert_eq!(choose(&list, wide), (Ok(vec![]), RegionKind::Tiles, 3), "once");
        // Tiles of another frame.
        assert_eq!(choose(&list, [640, 480]), (Ok(vec![]), RegionKind::Tiles, 1));
        assert_eq!(choose(&tiles, wide), (Ok(vec![]), RegionKind::Tiles, 3));
        assert_eq!(choose(&list, [640, 480]), (refused, RegionKind::Tiles, 1), "set again");
    }

    #[test]
    fn regions_that_are_outside_of_smaller_frames_are_left_out_with_a_notice() {
        let list =
            |text: &str| RegionSettings { list: Some(text.to_owned()), ..of(RegionKind::List) };
        let three = list("0,0,10,10;40,30,20,10;center-square");
        let mut regions = Regions::default();
        let buffer = gst::Buffer::new();
        let mut choose = |settings: &RegionSettings, frame| {
            let notices = regions.choose(&buffer, settings, [frame, [640, 640]]).unwrap();
            let pixels: Vec<_> =
                regions.chosen.iter().map(|region| region.pixels.to_string()).collect();
            (notices.join("\n"), pixels.join(";"))
        };
        let none = String::new();
        let all = (none.clone(), "0,0,10,10;40,30,20,10;8,0,48,48".to_owned());
        assert_eq!(choose(&three, [64, 48]), all);
        let notice = "region-list: frames are now 32x24 pixels, and 1 of the regions are outside of them, the first is \
                      40,30,20,10; they are left out";
        let smaller = "0,0,10,10;4,0,24,24".to_owned();
        assert_eq!(choose(&three, [32, 24]), (notice.to_owned(), smaller.clone()));
        assert_eq!(choose(&three, [32, 24]), (none.clone(), smaller.clone()));
        // Frames of another stream on this buffer.
        assert_eq!(choose(&three, [64, 48]), all);
        assert_eq!(choose(&three, [32, 24]), (none.clone(), smaller.clone()));
        // A region that is outside when the list is set.
        let (notice, pixels) = choose(&list("32,0,5,5"), [32, 24]);
        assert!(notice.ends_with("the earlier regions stay in force"), "{notice}");
        assert_eq!(pixels, smaller);
        assert_eq!(choose(&list(""), [32, 24]), (none.clone(), none));
    }
}
