// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions: the survivors in pixels of their frame.
//!
//! In: survivors with their details, and the mapping from their image to the frame. Out: the data that the writers
//! attach.

use std::ops::Range;

use super::classification::ClassifiedImage;
use super::detailed::DetailedRegions;
use crate::input::region::TensorRegion;
use nmsfilter_core::decoder::classifier::ClassScore;
use nmsfilter_core::engine::detail::{Detail, Point};
use nmsfilter_core::engine::{Detection, Mask};
use nmsfilter_core::geometry::{Corners, Mapping, OrientedBox};

/// A detection in pixels of the video frame, clipped to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// The left edge.
    pub x1: f32,
    /// The upper edge.
    pub y1: f32,
    /// The right edge; `x2 > x1`.
    pub x2: f32,
    /// The lower edge; `y2 > y1`.
    pub y2: f32,
    /// The score of the detection.
    pub confidence: f32,
    /// The class of the detection.
    pub class: u32,
    /// The id of the region of interest or object in which the detection was found, or in a batch of DeepStream, the
    /// number of the object in the order in which the objects were attached to the frame. `None` if the model ran on the
    /// whole frame or on a tile.
    pub parent: Option<i32>,
}

impl Region {
    /// Creates the region of a survivor with the mapping of its image. `None` if the survivor is outside the frame.
    pub fn of(detection: &Detection, mapping: &Mapping) -> Option<Self> {
        let Corners { x1, y1, x2, y2 } = mapping.frame_box(detection.corners())?;
        let (confidence, class) = (detection.score, detection.class);
        Some(Self { x1, y1, x2, y2, confidence, class, parent: None })
    }

    /// Returns the region in whole pixels (left, top, width, height). It has at least one pixel, and is within the
    /// frame.
    pub fn pixels(&self, frame: [u32; 2]) -> [u32; 4] {
        let span = |low: f32, high: f32, limit: u32| {
            // Both numbers are within 0..=limit, because regions are clipped.
            let low = rounded(low).min(limit - 1);
            let high = rounded(high).clamp(low + 1, limit);
            (low, high - low)
        };
        let (x, w) = span(self.x1, self.x2, frame[0]);
        let (y, h) = span(self.y1, self.y2, frame[1]);
        [x, y, w, h]
    }
}

/// The nearest integer, the greater one if two are as near. `number` is not negative. `f32::round` would be a call for
/// processors that lack the instruction.
fn rounded(number: f32) -> u32 {
    let whole = number as u32;
    whole.saturating_add(u32::from(number - whole as f32 >= 0.5))
}

/// The details of a region, in addition to its upright box.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionDetail {
    /// The oriented box in pixels of the frame, not clipped. The region is its bounds.
    pub oriented: Option<OrientedBox>,
    /// The range of the region's points in [`DetailedRegions::points`].
    pub points: Range<usize>,
    /// True if the model outputs the visibility of points.
    pub has_visibility: bool,
    /// The mask.
    pub mask: Option<RegionMask>,
}

/// The mask of a region: rows of bits. Each row is padded to whole bytes, and begins with the most significant bit.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionMask {
    /// The number of bits per row.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
    /// The part of the frame that the mask covers: left, upper, right and lower edge in pixels.
    pub area: [f32; 4],
    /// The range of the mask's rows in [`DetailedRegions::mask_bytes`].
    pub bytes: Range<usize>,
}

impl RegionMask {
    /// Returns the number of bytes per row.
    pub fn stride(&self) -> usize {
        self.width.div_ceil(8) as usize
    }
}

/// A frame of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId {
    /// The index of the frame in the buffer.
    pub index: usize,
    /// Width and height in pixels.
    pub size: [u32; 2],
    /// The index of the model of the frame's tensors among the models of the element.
    pub model: usize,
}

/// The regions of the frames of a buffer.
#[derive(Clone, Debug, Default)]
pub struct FrameRegions {
    /// The regions of all frames.
    regions: Vec<Region>,
    /// The details of regions. Regions of frames whose model outputs no details have none.
    details: Vec<RegionDetail>,
    /// The points of all regions, in pixels of the frame.
    points: Vec<Point>,
    /// The masks of all regions.
    mask_bytes: Vec<u8>,
    /// The images of which a classifier has found the classes.
    classified: Vec<ClassifiedImage>,
    /// The classes of all images.
    classes: Vec<ClassScore>,
    frames: Vec<Frame>,
}

/// A frame of a buffer, with the ranges of its regions and details.
#[derive(Clone, Debug)]
struct Frame {
    id: FrameId,
    /// The range of its regions.
    regions: Range<usize>,
    /// The range of these regions' details: one per region, or none.
    details: Range<usize>,
    /// Which of the classified images are parts of it.
    classified: Range<usize>,
}

impl FrameRegions {
    /// Removes all frames. The memory is kept for the next buffer.
    pub fn clear(&mut self) {
        self.regions.clear();
        self.details.clear();
        self.points.clear();
        self.mask_bytes.clear();
        self.classified.clear();
        self.classes.clear();
        self.frames.clear();
    }

    /// Adds a frame with its regions, in descending rank. Frames can be added in any order.
    pub fn add(&mut self, id: FrameId, regions: impl Iterator<Item = Region>) {
        let (first, first_detail) = (self.regions.len(), self.details.len());
        self.regions.extend(regions);
        self.frames.push(Frame {
            id,
            regions: first..self.regions.len(),
            details: first_detail..first_detail,
            classified: self.classified.len()..self.classified.len(),
        });
    }

    /// Adds the details of a survivor. They belong to the first region of the last frame that has no details yet. A
    /// mask comes with the part of the frame that it covers.
    ///
    /// # Panics
    /// If no frame was added.
    pub fn add_detail(
        &mut self,
        detail: &Detail<'_>,
        mask: Option<(Mask<'_>, [f32; 4])>,
        mapping: &Mapping,
    ) {
        let points = detail.points;
        let first = self.points.len();
        self.points.extend(points.iter().map(|point| {
            let [x, y] = mapping.frame_point([point.x, point.y]);
            Point { x, y, ..point }
        }));
        self.frames.last_mut().expect("the frame of the region was added").details.end += 1;
        self.details.push(RegionDetail {
            oriented: detail.oriented_box.map(|oriented| mapping.frame_oriented_box(&oriented)),
            points: first..self.points.len(),
            has_visibility: points.has_visibility(),
            mask: mask.map(|(mask, area)| {
                let first = self.mask_bytes.len();
                self.mask_bytes.extend_from_slice(mask.bytes);
                let Mask { width, height, .. } = mask;
                RegionMask { width, height, area, bytes: first..self.mask_bytes.len() }
            }),
        });
    }

    /// Adds an output of a classifier for an image of the last frame, whose classes `classify` appends to its argument, the
    /// best first. `region` is the part of the frame that is the image; `None` for the whole frame. The outputs of an image
    /// follow one another, the first with the index 0.
    ///
    /// # Errors
    /// The errors of `classify`.
    ///
    /// # Panics
    /// If no frame was added.
    pub fn add_classified<E>(
        &mut self,
        region: Option<TensorRegion>,
        output: usize,
        classify: impl FnOnce(&mut Vec<ClassScore>) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = self.classes.len();
        classify(&mut self.classes)?;
        let classes = first..self.classes.len();
        self.classified.push(ClassifiedImage { region, output, classes });
        self.frames.last_mut().expect("the frame of the image was added").classified.end += 1;
        Ok(())
    }

    /// Returns the number of frames that were added.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Removes the frames after the first `count` and their classified images. They must have no regions.
    pub fn truncate_classified(&mut self, count: usize) {
        self.frames.truncate(count);
        self.classified.truncate(self.frames.last().map_or(0, |frame| frame.classified.end));
        self.classes.truncate(self.classified.last().map_or(0, |image| image.classes.end));
    }

    /// Sorts the frames by their index.
    pub fn sort_frames(&mut self) {
        self.frames.sort_unstable_by_key(|frame| frame.id.index);
    }

    /// Returns the number of regions and classes of all frames.
    pub fn survivors(&self) -> usize {
        self.regions.len() + self.classes.len()
    }

    /// Each frame and its regions, also frames without a region.
    pub fn frames(&self) -> impl Iterator<Item = (FrameId, DetailedRegions<'_>)> {
        self.frames.iter().map(|frame| {
            let found = DetailedRegions {
                regions: &self.regions[frame.regions.clone()],
                details: &self.details[frame.details.clone()],
                points: &self.points,
                mask_bytes: &self.mask_bytes,
                classified: &self.classified[frame.classified.clone()],
                classes: &self.classes,
            };
            (frame.id, found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmsfilter_core::decoder::{self, Options};
    use nmsfilter_core::engine::{Cpu, Engine, ImagePlace, Job, MaskSize, Method, Params};
    use nmsfilter_core::geometry::{Bounds, Letterbox};
    use nmsfilter_core::tensor::TensorView;

    #[test]
    fn regions_are_those_of_their_frames_in_the_order_of_the_frames() {
        let region = |class| Region {
            x1: 0.0,
            y1: 0.0,
            x2: 1.0,
            y2: 1.0,
            confidence: 0.5,
            class,
            parent: None,
        };
        let mut regions = FrameRegions::default();
        let frame = |index| FrameId { index, size: [640, 480], model: 0 };
        regions.add(frame(4), [region(1), region(2)].into_iter());
        regions.add(frame(0), std::iter::empty());
        regions.add(frame(2), [region(3)].into_iter());
        regions.sort_frames();
        let expected: [(usize, &[Region]); 3] =
            [(0, &[]), (2, &[region(3)]), (4, &[region(1), region(2)])];
        assert!(regions.frames().map(|(frame, found)| (frame.index, found.regions)).eq(expected));
        assert_eq!(regions.survivors(), 3);
        regions.clear();
        assert!(regions.survivors() == 0 && regions.frames().next().is_none());
    }

    #[test]
    fn a_region_covers_at_least_one_pixel_inside_the_frame() {
        let region = Region {
            x1: 99.8,
            y1: 0.1,
            x2: 100.0,
            y2: 0.2,
            confidence: 0.5,
            class: 0,
            parent: None,
        };
        assert_eq!(region.pixels([100, 50]), [99, 0, 1, 1]);
    }

    #[test]
    fn numbers_are_rounded_half_up() {
        let near_half = [0.5_f32.next_down(), 0.5, 0.5_f32.next_up()];
        let powers = [0.0, 1.0, 2.0, 1023.0, 4_194_304.0, 8_388_607.0, 16_777_216.0, 4e9, 4.3e9];
        for number in powers.iter().flat_map(|power| near_half.map(|part| power + part)) {
            assert_eq!(rounded(number), number.round() as u32, "{number}");
        }
        let mut rng = fastrand::Rng::with_seed(8);
        for number in (0..100_000).map(|_| rng.f32() * 8192.0) {
            assert_eq!(rounded(number), number.round() as u32, "{number}");
        }
    }

    /// The mask of a box has the pixels of the region of interest.
    #[test]
    fn a_mask_of_the_frame_has_the_whole_pixels_of_the_region() {
        const BOXES: usize = 1_000;
        let mut rng = fastrand::Rng::with_seed(4);
        let rows: Vec<f32> = (0..BOXES)
            .flat_map(|_| {
                let [x, y] = [0, 1].map(|_| rng.f32() * 700.0 - 30.0);
                let [w, h] = [0, 1].map(|_| rng.f32() * rng.f32() * 300.0);
                [x, y, x + w, y + h, 0.5, 0.0, 1.0]
            })
            .collect();
        let prototypes = [0.0f32; 120 * 160];
        let tensors = [
            TensorView::from_slice("output0", &[1, BOXES, 7], &rows),
            TensorView::from_slice("output1", &[1, 1, 120, 160], &prototypes),
        ];
        let decoder = decoder::by_name("end2end-seg");
        let layout = decoder::choose(&tensors, decoder, Options::default()).unwrap().layout;
        for letterbox in [Letterbox::None, Letterbox::Center, Letterbox::TopLeft] {
            for frame in [[1920, 1080], [333, 517], [1, 1]] {
                let mapping = Mapping::new(frame, [640, 480], letterbox).unwrap();
                let params = Params {
                    method: Method::None,
                    mask_size: MaskSize::Frame,
                    ..Params::default()
                };
                let place =
                    ImagePlace { visible: Bounds::ANY, ..ImagePlace::in_frame(&mapping, 0) };
                let mut engine = Cpu::default();
                let outcome =
                    engine.run(Job::new(&tensors, &layout, &params, &[place])).unwrap().group(0);
                let mut compared = 0;
                for (index, detection) in outcome.survivors.iter().enumerate() {
                    let Some(region) = Region::of(detection, &mapping) else { continue };
                    let mask = outcome.masks.get(index).expect("all masks together are small");
                    let area = [mask.left, mask.top, mask.width, mask.height];
                    assert_eq!(area, region.pixels(frame), "{detection:?}");
                    compared += 1;
                }
                assert!(compared > BOXES / 4, "{compared} regions in a frame of {frame:?}");
            }
        }
    }
}
