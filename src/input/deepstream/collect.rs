// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the lists of a batch.
//!
//! In: a locked batch. Out: the frames, regions of interest or objects that have tensors of the selected inference element,
//! their layers, and the addresses of the layers.

use super::crop::cropped;
use super::layer::Layer;
use super::memory::{Addresses, LayerMemory};
use super::region_fits;
use super::{Batch, BatchImage, Elsewhere, HAS_CURRENT_HOST_COPY, OutsideObject, TensorPlace};
use crate::deepstream::{DeepStreamError, FrameMeta, LayerMeta, LockedBatch, TensorMeta};
use crate::input::model::ModelInput;
use crate::input::region::TensorRegion;
use crate::input::source::ImageFrame;
use crate::input::{InputError, MAX_TENSORS};

impl<'a> Batch<'a> {
    /// Reads the lists of the batch. If no frame has tensors, `search_elsewhere` says whether to search for tensors of objects
    /// and of regions of interest.
    ///
    /// # Errors
    /// If the metadata is damaged, or frames have different layers.
    pub(super) fn collect(
        &mut self,
        batch: &LockedBatch<'a>,
        search_elsewhere: bool,
    ) -> Result<(), InputError> {
        self.images.clear();
        let is_selected = self.found.unique_id != 0;
        if !is_selected {
            self.found.unique_id = lowest_unique_id(batch)?.unwrap_or(0);
        }
        for (index, frame) in batch.frames()?.enumerate() {
            let frame = frame?;
            self.found.all_frames += 1;
            if let Some(tensor) = self.select(batch, batch.tensors(frame))? {
                let size = self.size(batch, frame)?.map(even);
                self.add_image(batch, (index, size, None), tensor)?;
            }
        }
        if self.images.is_empty() && is_selected {
            self.found.place = TensorPlace::Regions;
            self.collect_regions(batch)?;
        }
        if self.images.is_empty() && is_selected {
            self.found.place = TensorPlace::Objects;
            for (index, frame) in batch.frames()?.enumerate() {
                self.collect_objects(batch, index, frame?)?;
            }
        }
        if self.images.is_empty() && search_elsewhere {
            let found = elsewhere(batch)?;
            // If an element is selected, other tensors are no mistake, unless they cannot be read.
            self.found.elsewhere =
                found.filter(|found| !is_selected || *found == Elsewhere::UnknownRegions);
        }
        // Images of one run follow each other, in the order of the batch, and of the objects of a frame.
        self.images.sort_unstable_by_key(|image| {
            let ImageFrame { index, region, .. } = image.frame;
            (image.run(), index, region.and_then(|region| region.parent), image.first)
        });
        Ok(())
    }

    /// Adds the objects of `frame`, whose index in the batch is `index`, that have tensors.
    fn collect_objects(
        &mut self,
        batch: &LockedBatch<'a>,
        index: usize,
        frame: FrameMeta<'_>,
    ) -> Result<(), InputError> {
        let objects = batch.object_list(frame);
        let count = objects.clone().count();
        let first = self.images.len();
        for (position, object) in objects.enumerate() {
            let object = object?;
            let Some(tensor) = self.select(batch, batch.object_tensors(object))? else { continue };
            let (rect, size) = (batch.rect(object), self.size(batch, frame)?);
            let Some(pixels) = cropped(rect, size) else {
                self.found.outside = Some(OutsideObject { rect, frame: size });
                continue;
            };
            let region = TensorRegion { pixels, parent: Some(number_of(position, count)) };
            // The boxes of a frame are compared with each other, so they must be of one model.
            let model = ModelInput::from(batch.model(tensor));
            if self.images.get(first).is_some_and(|image| image.frame.model != model) {
                return Err(different_models(index, self.found.unique_id));
            }
            self.add_image(batch, (index, size, Some(region)), tensor)?;
        }
        Ok(())
    }

    /// Adds the regions of interest that have tensors.
    fn collect_regions(&mut self, batch: &LockedBatch<'a>) -> Result<(), InputError> {
        let mut fits = region_fits::all();
        for region in batch.regions()? {
            let Some(tensor) = self.select(batch, batch.region_tensors(region))? else { continue };
            let mut frames = batch.frames()?.flatten().enumerate();
            let Some((index, frame)) = frames.find(|(_, frame)| batch.is_in_frame(region, *frame))
            else {
                return Err(unusable(NO_FRAME));
            };
            let (rect, size) = (batch.region_rect(region), self.size(batch, frame)?);
            let Some(pixels) = cropped(rect, size) else {
                self.found.outside = Some(OutsideObject { rect, frame: size });
                continue;
            };
            let model = ModelInput::from(batch.model(tensor)).size;
            let Some(input) = model else {
                return Err(unusable(NO_MODEL_SIZE));
            };
            if self.images.first().is_some_and(|image| image.frame.model.size != model) {
                return Err(different_models(index, self.found.unique_id));
            }
            region_fits::add(&mut fits, pixels.size(), input, batch.region_scaling(region))?;
            let objects = batch.object_list(frame);
            let count = objects.clone().count();
            let position = objects.flatten().position(|object| batch.is_object(region, object));
            let parent = position.map(|position| number_of(position, count));
            let region = TensorRegion { pixels, parent };
            self.add_image(batch, (index, size, Some(region)), tensor)?;
        }
        // The tensors have the settings of nvinfer, but nvdspreprocess has scaled.
        let letterbox = fits.first().copied();
        for image in self.images.iter_mut() {
            let known = ModelInput { letterbox, letterbox_is_assumed: false, ..image.frame.model };
            image.frame.model = known;
        }
        Ok(())
    }

    /// Returns the first of these tensors that is of the selected inference element.
    fn select<'l>(
        &mut self,
        batch: &LockedBatch<'a>,
        tensors: impl Iterator<Item = Result<TensorMeta<'l>, DeepStreamError>>,
    ) -> Result<Option<TensorMeta<'l>>, DeepStreamError> {
        let mut selected = None;
        for tensor in tensors {
            let tensor = tensor?;
            match batch.unique_id(tensor) {
                id if id == self.found.unique_id => {
                    selected.get_or_insert(tensor);
                }
                other => self.found.other_id = Some(other),
            }
        }
        Ok(selected)
    }

    /// Returns the size of `frame`, or else the size in the caps, which a single source has.
    fn size(
        &mut self,
        batch: &LockedBatch<'a>,
        frame: FrameMeta<'_>,
    ) -> Result<[u32; 2], InputError> {
        if let Some(size) = batch.size(frame, self.surfaces.as_ref()) {
            return Ok(size);
        }
        self.found.size_of_caps = self.caps_size;
        self.caps_size.ok_or_else(|| unusable("neither the frames nor the caps have a size"))
    }

    /// Adds an image, by the index of its frame, the frame's size and the part of it, and its layers. The first image
    /// determines the layers of the batch.
    fn add_image(
        &mut self,
        batch: &LockedBatch<'a>,
        (frame, size, region): (usize, [u32; 2], Option<TensorRegion>),
        tensor: TensorMeta<'_>,
    ) -> Result<(), InputError> {
        let is_first = self.images.is_empty();
        let gpu = batch.gpu(tensor);
        let first = self.images.len() * self.layers.len();
        let mut count = 0;
        for meta in batch.layers(tensor)? {
            let layer = if count < MAX_TENSORS { Layer::new(batch, &meta)? } else { None };
            let Some(layer) = layer else {
                self.found.unread += usize::from(is_first);
                continue;
            };
            let bytes = layer.bytes();
            if is_first {
                self.layers.push(layer);
            } else if self.layers.get(count) != Some(&layer) {
                return Err(different_layers(frame));
            }
            if self.memories.len() == first + count {
                self.memories.push(LayerMemory::default());
            }
            let LayerMeta { host, device, .. } = meta;
            let host_is_current = self.meta.structures.version <= HAS_CURRENT_HOST_COPY;
            self.memories[first + count].set(Addresses {
                host,
                device,
                bytes,
                gpu,
                host_is_current,
            });
            count += 1;
        }
        if count != self.layers.len() {
            return Err(different_layers(frame));
        }
        let model = batch.model(tensor).into();
        let frame = ImageFrame { index: frame, stream: None, size, region, model };
        self.images.push(BatchImage { frame, first });
        Ok(())
    }
}

/// The number of the object at `position` of a list of `count` objects, of which the object that was attached last is the
/// first.
fn number_of(position: usize, count: usize) -> i32 {
    i32::try_from(count - 1 - position).expect("a list is not that long")
}

/// Returns the lowest id of any inference element whose tensors are attached to a frame. The order of the metadata
/// is not used, because it varies: DeepStream inserts new metadata at the front, and a copy of a buffer has it in
/// reverse order.
fn lowest_unique_id(batch: &LockedBatch<'_>) -> Result<Option<u32>, DeepStreamError> {
    let mut lowest = None;
    for frame in batch.frames()? {
        for tensor in batch.tensors(frame?) {
            let id = batch.unique_id(tensor?);
            lowest = Some(lowest.map_or(id, |lowest: u32| lowest.min(id)));
        }
    }
    Ok(lowest)
}

/// Looks for tensors elsewhere in a batch, if no frame has any. If several inference elements have tensors on objects,
/// the one that ran last is found, whose tensors come first.
fn elsewhere(batch: &LockedBatch<'_>) -> Result<Option<Elsewhere>, DeepStreamError> {
    for region in batch.regions()? {
        if let Some(tensor) = batch.region_tensors(region).next() {
            return Ok(Some(Elsewhere::Regions(batch.unique_id(tensor?))));
        }
    }
    if batch.has_batch_tensors() {
        return Ok(Some(Elsewhere::UnknownRegions));
    }
    let is_unknown = batch.layout().regions.is_none();
    for frame in batch.frames()? {
        let frame = frame?;
        for object in batch.object_list(frame) {
            if let Some(tensor) = batch.object_tensors(object?).next() {
                return Ok(Some(Elsewhere::Objects(batch.unique_id(tensor?))));
            }
        }
        if is_unknown && batch.has_region(frame) {
            return Ok(Some(Elsewhere::UnknownRegions));
        }
    }
    Ok(None)
}

fn unusable(problem: impl Into<String>) -> InputError {
    DeepStreamError(problem.into()).into()
}

fn different_layers(frame: usize) -> InputError {
    unusable(format!(
        "frame {frame} of the batch has other layers than the frames before it; expected the same \
         outputs of one model for each frame"
    ))
}

/// Why a region of interest cannot be placed.
const NO_FRAME: &str = "a region of interest with tensors is of no frame of its batch; place nmsfilter before elements that \
                        move frames from batch to batch";

/// Why it is not known how a region of interest was scaled.
const NO_MODEL_SIZE: &str = "the tensors of regions of interest do not contain the size of the model's input; place \
                             nmsfilter directly downstream of nvinfer";

fn different_models(frame: usize, unique_id: u32) -> InputError {
    unusable(format!(
        "the objects or regions of frame {frame} of the batch have tensors of models with different inputs, all of unique-id \
         {unique_id}; expected one model: give each inference element a gie-unique-id of its own"
    ))
}

/// Makes a side even, because nvinfer does not read the last row or column if the number of rows or columns is odd.
fn even(side: u32) -> u32 {
    (side & !1).max(1)
}
