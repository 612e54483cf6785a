// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the images of a buffer to regions.
//!
//! In: [`Images`], and the model of each. Out: [`FrameRegions`], counts, and notices. Images of one
//! model are decoded in one run of the engine, each at its place in its frame. A frame, or the regions of a frame, are a
//! group of images: their boxes are compared.

use std::ops::Range;
use std::time::Duration;

use super::CAT;
use super::NmsFilter;
use super::clock::SECOND;
use super::error::FrameError;
use super::model::Model;
use super::notices::{self, Notices};
use super::reading::{ModelReading, ModelTensors};
use super::settings::SettingsError;
use super::settings::region_rules::RegionRules;
use super::stats::FrameCounts;
use crate::input::source::{ImageFrame, Images};
use crate::output::{FrameId, FrameRegions, Region, mask_area};
use nmsfilter_core::engine::{
    BoxPixels, Engine, EngineError, ImagePlace, Job, Outcome, image_groups,
};
use nmsfilter_core::geometry::{Mapping, MappingError};
use nmsfilter_core::reading::{BoxReading, Output};
use nmsfilter_core::tensor::{TensorError, TensorProblem};

/// Decodes images, and keeps memory for the next buffer.
pub(super) struct FrameDecoder {
    pub engine: Box<dyn Engine>,
    pub regions: FrameRegions,
    pub counts: FrameCounts,
    pub notices: Notices,
    /// The time of the buffer.
    pub now: Duration,
    /// The mapping and the place of each image of the current run.
    mappings: Vec<Mapping>,
    places: Vec<ImagePlace>,
    /// The GPU failure after which the engine continued on the CPU, until it is taken.
    pub failure: Option<String>,
    /// When the engine continued on the CPU after a failure of the GPU.
    gpu_failed: Option<Duration>,
}

impl FrameDecoder {
    pub fn new(engine: Box<dyn Engine>) -> Self {
        Self {
            engine,
            regions: FrameRegions::default(),
            counts: FrameCounts::default(),
            notices: Notices::default(),
            now: Duration::ZERO,
            mappings: Vec::new(),
            places: Vec::new(),
            failure: None,
            gpu_failed: None,
        }
    }

    /// Begins the buffer of this time.
    pub fn begin(&mut self, now: Duration) {
        self.now = now;
        self.regions.clear();
        self.counts = FrameCounts { engine: self.engine.name(), ..FrameCounts::default() };
    }

    /// Finds the regions of images whose tensors are of the model `model`. Frames whose
    /// tensors were in the memory of a GPU that has failed are counted as lost.
    ///
    /// # Errors
    /// If settings are not valid for the first images that are decoded, no decoder reads the tensors, or the engine fails.
    pub fn decode(
        &mut self,
        element: &NmsFilter,
        images: Images<'_, '_>,
        model: &mut Model,
    ) -> Result<(), FrameError> {
        images.runs().try_for_each(|run| self.decode_run(element, images, run, &mut *model))
    }

    /// Decodes a range of images. If one run cannot decode several, they are decoded one by one, so that an error is the
    /// error of its frame.
    fn decode_run(
        &mut self,
        element: &NmsFilter,
        images: Images<'_, '_>,
        run: Range<usize>,
        model: &mut Model,
    ) -> Result<(), FrameError> {
        let result = self.try_run(element, images, run.clone(), &mut *model);
        if let Some(failure) = self.engine.take_failure() {
            self.failure = Some(failure.to_string());
            self.gpu_failed = Some(self.now);
        }
        let Err(error) = result else { return Ok(()) };
        let stream = images.frame(run.start).stream;
        let is_one_by_one = stream.is_some() || matches!(error, FrameError::OtherInput);
        if run.len() > 1 && is_one_by_one && !images.are_regions() && !error.is_device_error() {
            return run.into_iter().try_for_each(|image| {
                self.decode_run(element, images, image..image + 1, &mut *model)
            });
        }
        if !self.is_lost_with_gpu(&error) {
            return Err(error.in_stream(stream));
        }
        gst::warning!(CAT, obj = element, "the tensors are lost with the GPU: {error}");
        self.counts.frames_lost += images.count_frames(run);
        Ok(())
    }

    /// Decodes a range of images in one run.
    fn try_run(
        &mut self,
        element: &NmsFilter,
        images: Images<'_, '_>,
        run: Range<usize>,
        model: &mut Model,
    ) -> Result<(), FrameError> {
        let now = self.now;
        let Self { engine, regions, counts, notices, mappings, places, .. } = self;
        let (tensors, are_separate) = (images.tensors(run.clone()), images.are_separate(&run));
        let of_first = images.tensors(run.start..run.start + 1);
        let read = if are_separate { of_first.views() } else { tensors.views() };
        let mut views = tensors.views();
        let first = images.frame(run.start);
        let of_model = ModelTensors {
            tensors: &read,
            frame: first.image_size(),
            model: first.model,
            family: model.family(),
            batch: images.batch(),
        };
        model
            .update((element, &mut *notices), &**engine, of_model, now)
            .map_err(|error| error.with_signatures(&model.info.signatures))?;
        if let Output::Classes(_) = model.made().reading.output {
            return self.classify(element, images, run, model);
        }
        model.place_images(run.clone().map(|image| images.frame(image)), mappings, places)?;
        let (index_of_model, limit) = (model.index, model.settings.scalars.max_detections);
        let ModelReading { reading, quantization, region_rules, .. } = model.made();
        let Output::Boxes(detector) = &mut reading.output else {
            unreachable!("classes are above")
        };
        if are_separate {
            detector.prepare_images(run.len(), &views);
        }
        quantization.apply(&mut views);
        let layout = detector.layout(are_separate);
        let outcome = engine.run(Job::new(&views, layout, detector.params(), places))?;
        add_outcome(regions, &outcome, (detector, region_rules), (mappings, places), |image| {
            (images.frame(run.start + image), index_of_model)
        });
        counts.add(&outcome);
        let told = detector.observe(&outcome, &views, places, are_separate, Some(now));
        notices.of_reading(element, told, &mut model.labels);
        let most = outcome.groups().map(|group| group.survivors.len()).max().unwrap_or(0);
        notices.post(element, notices::of_limit(limit, most));
        model.decoded = true;
        Ok(())
    }

    /// Finds the classes of a range of images. After an error nothing of the range is left: its frames can be decoded one by
    /// one.
    fn classify(
        &mut self,
        element: &NmsFilter,
        images: Images<'_, '_>,
        run: Range<usize>,
        model: &mut Model,
    ) -> Result<(), FrameError> {
        let (frames, counts) = (self.regions.frame_count(), self.counts);
        let mut classify =
            |image: usize| self.classify_image(element, images, (image, image == run.start), model);
        if let Err(error) = run.clone().try_for_each(&mut classify) {
            self.regions.truncate_classified(frames);
            self.counts = counts;
            return Err(error);
        }
        self.counts.engine = "cpu";
        model.decoded = true;
        Ok(())
    }

    /// Finds the classes of an image, which `is_first` of its run or not.
    fn classify_image(
        &mut self,
        element: &NmsFilter,
        images: Images<'_, '_>,
        (image, is_first): (usize, bool),
        model: &mut Model,
    ) -> Result<(), FrameError> {
        let Self { regions, counts, notices, now, .. } = self;
        let index_of_model = model.index;
        let ModelReading { reading, quantization, .. } = model.made();
        let Output::Classes(classifier) = &mut reading.output else {
            unreachable!("the reading is of classes")
        };
        let ImageFrame { index: frame, size, region, .. } = images.frame(image);
        if let Some(region) = region.filter(|region| !region.pixels.is_inside(size)) {
            let error = MappingError::RegionOutside { region: region.pixels, frame: size };
            return Err(SettingsError::from(error).into());
        }
        if is_first || !images.are_regions() {
            regions.add(FrameId { index: frame, size, model: index_of_model }, std::iter::empty());
            counts.frames += 1;
        }
        let tensors = images.tensors(image..image + 1);
        let mut views = tensors.views();
        quantization.apply(&mut views);
        counts.candidates += 1;
        let (mut is_rejected, mut told) = (false, Vec::new());
        for output in 0..classifier.outputs().len() {
            regions.add_classified(region, output, |found| {
                let classified =
                    classifier.classify::<FrameError>(output, &views, found, Some(*now))?;
                is_rejected |= !classified.is_finite;
                told.extend(classified.notices);
                Ok::<(), FrameError>(())
            })?;
        }
        notices.of_reading(element, told, &mut model.labels);
        counts.rejected += usize::from(is_rejected);
        Ok(())
    }

    /// Returns true if tensors cannot be read because they were in the memory of a GPU that has failed less than a
    /// second ago. Upstream elements need that time to notice the failure, too.
    fn is_lost_with_gpu(&self, error: &FrameError) -> bool {
        matches!(
            error,
            FrameError::Engine(EngineError::Tensor(TensorError {
                problem: TensorProblem::Map { .. },
                ..
            }))
        ) && self.gpu_failed.is_some_and(|failed| self.now - failed < SECOND)
    }
}

/// Adds the regions of the groups of a run: one group per frame. `image` returns the frame of the image with an index, and
/// the index of its model.
fn add_outcome(
    regions: &mut FrameRegions,
    outcome: &Outcome<'_>,
    (detector, region_rules): (&BoxReading, &RegionRules),
    (mappings, places): (&[Mapping], &[ImagePlace]),
    image: impl Fn(usize) -> (ImageFrame, usize),
) {
    let (layout, details) = (&detector.choice().layout, detector.details());
    for (group, images) in outcome.groups().zip(image_groups(places)) {
        let first = images.start;
        let parent_of = |image: &ImageFrame| image.region.and_then(|region| region.parent);
        let (first_image, model) = image(first);
        let (index, parent) = (first_image.index, parent_of(&first_image));
        let frame = FrameId { index, size: mappings[first].frame(), model };
        // Boxes of regions are in pixels of the frame already.
        let of_boxes = match places[first].boxes {
            BoxPixels::Frame => Mapping::identity(frame.size).expect("the frame has pixels"),
            _ => mappings[first],
        };
        let image_of = |survivor| match images.len() {
            1 => first,
            _ => first + outcome.image_of(survivor),
        };
        // Every survivor has a region, unless a configuration of nvinfer has limits that it exceeds: the engine
        // rejects boxes outside of the frame.
        let region_of = |survivor| {
            let region = Region::of(survivor, &of_boxes)?;
            let parent = match images.len() {
                1 => parent,
                _ => parent_of(&image(image_of(survivor)).0),
            };
            let region = Region { parent, ..region };
            region_rules.keep(&region, frame.size).then_some(region)
        };
        regions.add(frame, group.survivors.iter().filter_map(region_of));
        if details.is_empty() {
            continue;
        }
        let rows = group.columns.chunks(outcome.column_components);
        for (index, (survivor, row)) in group.survivors.iter().zip(rows).enumerate() {
            if region_of(survivor).is_none() {
                continue;
            }
            let (mapping, place) = (&mappings[image_of(survivor)], &places[image_of(survivor)]);
            let detail = details.of(layout, place.unit(layout), survivor, row);
            let mask = group.masks.get(index).map(|mask| {
                let how = (layout, detector.params());
                (mask, mask_area(&mask, how, place, mapping))
            });
            regions.add_detail(&detail, mask, mapping);
        }
    }
}
