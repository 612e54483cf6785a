// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the element from start to stop.
//!
//! In: buffers. Out: these buffers with regions, and counts. A session reads the tensors of a buffer as a list of
//! images ([`Images`]), which are decoded ([`FrameDecoder`]), and attaches the regions (`attach`). A buffer that is a
//! frame, a batch of DeepStream and a batch of GStreamer's analytics library differ in the reader and in where
//! the regions are attached.

use std::fmt;
use std::sync::Arc;

use arrayvec::ArrayVec;
use gst_newer::AnalyticsBatchMeta;

use super::CAT;
use super::NmsFilter;
use super::clock::Clock;
use super::decode::FrameDecoder;
use super::error::FrameError;
use super::model::Model;
use super::notices;
use super::settings::Settings;
use super::stats::{FrameCounts, Stats};
use super::words::ElementNotice;
use crate::deepstream::FrameCaps;
use crate::elements::frame_size;
use crate::input::InputError;
use crate::input::Tensors;
use crate::input::analytics_batch::{self, FrameToRead};
use crate::input::deepstream::{self, Found};
use crate::input::inference_mark;
use crate::input::selection::{Selection, SetReader, SetTensors};
use crate::input::source::{FrameTensors, ImageFrame, Images};
use crate::output::{Labels, MaskBuffers};
use nmsfilter_core::engine::Engine;

/// The greatest number of frames of a batch of GStreamer's analytics library that one run decodes.
const MAX_FRAMES: usize = 16;

/// The greatest number of models that are kept from one batch to the next.
const MAX_MODELS: usize = 64;

/// The engine, and everything that is computed once and used for many frames.
pub(super) struct Session {
    pub(super) decoder: FrameDecoder,
    /// The models whose tensors the element decodes, each at its index. The first is for buffers that are frames and for
    /// batches of DeepStream; its model can change from buffer to buffer. Each further one is for one model of the frames of
    /// a batch of GStreamer's analytics library, whose streams can have different models.
    pub(super) models: Vec<Model>,
    /// The reader of DeepStream's batches.
    pub(super) batches: deepstream::Reader,
    /// The reader of all other tensors.
    pub(super) tensor_sets: SetReader,
    /// The values of the properties that the models have.
    properties: Arc<Settings>,
    /// The caps of the current frame or batch of DeepStream.
    caps: Option<FrameCaps>,
    /// True if buffers are batches of GStreamer's analytics library.
    pub(super) has_streams: bool,
    pub(super) mask_buffers: MaskBuffers,
    pub(super) clock: Clock,
}

impl Session {
    pub fn new(
        engine: Box<dyn Engine>,
        labels: Labels,
        batches: deepstream::Reader,
        properties: Arc<Settings>,
        settings: Settings,
    ) -> Self {
        let selection = Selection::new(settings.tensors_from.as_deref());
        Self {
            decoder: FrameDecoder::new(engine),
            models: vec![Model::new(labels, settings)],
            properties,
            batches,
            tensor_sets: SetReader::new(selection),
            caps: None,
            has_streams: false,
            mask_buffers: MaskBuffers::default(),
            clock: Clock::default(),
        }
    }

    /// Stores the element's settings if they have changed. They come into force with the next frame
    /// that has tensors, if they are valid for it.
    pub fn update_settings(&mut self, properties: &Arc<Settings>) {
        if !Arc::ptr_eq(&self.properties, properties) {
            self.properties = properties.clone();
            self.models.iter_mut().for_each(|model| model.update_settings(properties));
        }
    }

    /// Sets the size of the following frames, and whether they are in NVMM memory.
    pub fn set_caps(&mut self, size: [u32; 2], is_nvmm: bool) {
        self.caps = Some(FrameCaps { size, is_nvmm });
        self.has_streams = false;
        self.models[0].is_stale = true;
    }

    /// Posts the warnings that are due at the end of the stream.
    pub fn end_stream(&mut self, element: &NmsFilter) {
        self.decoder.notices.finish(element);
        for model in &mut self.models {
            model.finish(element, &mut self.decoder.notices);
        }
    }

    /// Begins another segment; without one, continues in the current one after a flush.
    pub fn restart_clock(&mut self, segment: Option<&gst::Segment>) {
        self.clock.restart(segment);
        self.decoder.notices.restart_clock();
        self.models.iter_mut().for_each(Model::restart_clock);
    }

    /// Counts the survivors of the last buffer by their labels.
    pub fn count_labels(&mut self, stats: &mut Stats) {
        for (frame, found) in self.decoder.regions.frames() {
            let labels = &mut self.models[frame.model].labels;
            found.regions.iter().for_each(|it| stats.count_label(labels.quark(it.class)));
            for image in found.classified {
                for class in &found.classes[image.classes.clone()] {
                    stats.count_label(labels.quark_of_output(image.output, class.class));
                }
            }
        }
    }

    /// Reads the tensors of `buffer`, decodes and suppresses, and attaches the survivors to it, or to the frames of its
    /// batch. A frame of a batch that has other references is replaced by a copy.
    ///
    /// # Errors
    /// If tensors cannot be read, settings are not valid for the first frame that is decoded, the
    /// engine fails, or metadata cannot be attached.
    pub fn process(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<FrameCounts, FrameError> {
        self.decoder.begin(self.clock.advance(buffer.pts()));
        let batch = if self.has_streams {
            self.decode_streams(element, buffer)?;
            None
        } else {
            self.decode_buffer(element, buffer)?
        };
        let FrameDecoder { regions, counts, notices, now, .. } = &mut self.decoder;
        regions.sort_frames();
        counts.survivors = regions.survivors();
        if counts.frames + counts.frames_lost > 0 {
            notices.set_has_tensors();
        } else if counts.frames_without_tensors > 0 {
            if inference_mark::has_no_regions(buffer) {
                // There was no region to run the model on, which is no sign of missing tensors.
                counts.frames_without_tensors = 1;
            } else {
                notices.without_tensors(element, *now);
            }
        }
        self.attach(element, buffer, batch)?;
        Ok(self.decoder.counts)
    }

    /// Finds the regions of a frame, or of the frames of a batch of DeepStream, which is returned if its tensors were decoded.
    fn decode_buffer(
        &mut self,
        element: &NmsFilter,
        buffer: &gst::BufferRef,
    ) -> Result<Option<Found>, FrameError> {
        let Self { models, batches, decoder, caps, .. } = self;
        let (model, caps) = (&mut models[0], *caps);
        let (mut all_frames, mut decoded) = (1, None);
        if let Some(batch) = batches.read(buffer, caps, !model.decoded)? {
            all_frames = batch.found.all_frames;
            decoder.notices.batch(element, &batch, &model.settings);
            if !batch.images.is_empty() {
                model.set_description(None)?;
                let has_size = model.settings.model_width > 0 || !batch.has_no_model_size();
                if batch.are_regions() && !has_size {
                    let text = ElementNotice::UnknownModelSize.to_string();
                    return Err(FrameError::Tensors(text));
                }
                if !model.has_reading() {
                    let (version, found) = (batch.meta.structures.version, batch.found);
                    gst::debug!(CAT, obj = element, "DeepStream {version}, {found:?}");
                }
                decoder.decode(element, Images::Batch(&batch), model)?;
                decoded = Some(batch.found);
            }
        }
        if decoded.is_none() {
            let size = caps.map(|caps| caps.size);
            self.decode_frames::<1>(element, std::iter::once((None, size, buffer)))?;
        }
        let counts = &mut self.decoder.counts;
        counts.frames_without_tensors = all_frames - counts.frames - counts.frames_lost;
        Ok(decoded)
    }

    /// Finds the regions of the frames of a batch of GStreamer's analytics library.
    fn decode_streams(
        &mut self,
        element: &NmsFilter,
        buffer: &gst::BufferRef,
    ) -> Result<(), FrameError> {
        let Some(batch) = buffer.meta::<AnalyticsBatchMeta>() else { return Ok(()) };
        if self.models.len() > MAX_MODELS {
            self.models.truncate(1);
        }
        let frames = analytics_batch::frames(&batch);
        let frames = frames.map(|it| (Some(it.stream), stream_size(&it), it.buffer));
        self.decode_frames::<MAX_FRAMES>(element, frames)
    }

    /// Finds the regions of frames, each with the number of its stream in a batch, and its size if it is known. Frames that
    /// follow one another and whose tensors are alike are decoded together, at most `MOST` of them.
    fn decode_frames<'b, const MOST: usize>(
        &mut self,
        element: &NmsFilter,
        frames: impl Iterator<Item = (Option<u32>, Option<[u32; 2]>, &'b gst::BufferRef)>,
    ) -> Result<(), FrameError> {
        let Self { models, tensor_sets, decoder, .. } = self;
        let mut waiting = ArrayVec::<FrameTensors<'_>, MOST>::new();
        let mut model_of_waiting = 0;
        for (index, (stream, size, buffer)) in frames.enumerate() {
            let in_stream = |error: InputError| FrameError::from(error).in_stream(stream);
            let mut set = SetTensors::default();
            let sets = tensor_sets.read(buffer, &mut set).map_err(in_stream)?;
            decoder.notices.other_sets(element, &tensor_sets.selection, &sets);
            decoder.notices.post(element, notices::of_unread(set.counts()));
            if set.is_empty() {
                decoder.counts.frames_without_tensors += 1;
                continue;
            }
            let selected = match stream {
                None => 0,
                Some(stream) => select(models, stream, set.first()).map_err(in_stream)?,
            };
            let model = models[selected].set_description(set.model()).map_err(in_stream)?;
            let size = size.ok_or_else(|| FrameError::NoCaps.in_stream(stream))?;
            let frame = ImageFrame { index, stream, size, region: None, model };
            if !set.regions.is_empty() {
                // A frame with regions is decoded in a separate run.
                place_regions(frame, &mut set.regions).map_err(|error| error.in_stream(stream))?;
                decoder.decode(element, Images::Frames(&set.regions), &mut models[selected])?;
                continue;
            }
            set.frame.frame = frame;
            let is_like = |first: &FrameTensors<'_>| {
                selected == model_of_waiting && first.are_like(&set.frame)
            };
            if waiting.is_full() || !waiting.first().is_none_or(is_like) {
                let model = &mut models[model_of_waiting];
                decoder.decode(element, Images::Frames(&waiting), model)?;
                waiting.clear();
            }
            if waiting.is_empty() {
                model_of_waiting = selected;
            }
            waiting.push(set.frame);
        }
        if !waiting.is_empty() {
            let model = &mut models[model_of_waiting];
            decoder.decode(element, Images::Frames(&waiting), model)?;
        }
        Ok(())
    }
}

/// The index of the model for tensors of a frame of `stream`. Streams whose tensors and model are equal have one model
/// here. Tensors whose shapes change from frame to frame have one per stream. Does not allocate if the model is known.
///
/// # Errors
/// If the caps of the tensors describe no model.
fn select(
    models: &mut Vec<Model>,
    stream: u32,
    tensors: &Tensors<'_>,
) -> Result<usize, InputError> {
    let (caps, views) = (tensors.model(), tensors.views());
    let further = || models.iter().filter(|it| it.stream.is_some() && it.has_description(caps));
    let is_equal = |it: &&Model| it.reading().is_some_and(|of| of.tensors().has_tensors(&views));
    let is_own = |it: &&Model| {
        it.stream == Some(stream) && it.reading().is_none_or(|of| of.tensors().has_ids(&views))
    };
    if let Some(known) = further().find(is_equal).or_else(|| further().find(is_own)) {
        return Ok(known.index);
    }
    let mut model = models[0].of_stream(models.len(), stream);
    model.set_description(caps)?;
    models.push(model);
    Ok(models.len() - 1)
}

/// Sets the frame of its regions, whose tensors must be alike, so that their boxes can be compared.
fn place_regions(frame: ImageFrame, regions: &mut [FrameTensors<'_>]) -> Result<(), FrameError> {
    for image in &mut *regions {
        image.frame = ImageFrame { region: image.frame.region, ..frame };
    }
    match regions.iter().find(|image| !regions[0].are_like(image)) {
        None => Ok(()),
        Some(other) => Err(FrameError::Tensors(format!(
            "the tensors of the frame's regions differ: {}, and {}; expected the same ids, types and shapes for every region, so \
             use a model whose outputs have a fixed size",
            regions[0].tensors, other.tensors
        ))),
    }
}

/// Returns the size of a frame of a batch, from the caps of its stream, or else from its metadata.
fn stream_size(frame: &FrameToRead<'_>) -> Option<[u32; 2]> {
    let caps = frame.caps.as_deref();
    caps.and_then(|caps| frame_size(caps).ok()).or_else(|| {
        let meta = frame.buffer.meta::<gst_video::VideoMeta>()?;
        Some([meta.width(), meta.height()])
    })
}

/// The debug information of error messages, besides properties.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine {}, ", self.decoder.engine.name())?;
        match self.caps {
            Some(FrameCaps { size: [width, height], .. }) => write!(f, "frame {width}x{height}"),
            None => f.write_str("no frame"),
        }
    }
}
