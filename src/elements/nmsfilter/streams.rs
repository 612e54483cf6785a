// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames of a batch of GStreamer's analytics library.
//!
//! In: a buffer with the frames of several streams. Out: the same buffer, and regions on its frames. Each frame is decoded
//! by the plan of its stream. Frames that follow each other and whose plans are equal are decoded in one run of the
//! engine, an image each; the outcome of an image does not depend on the others.

use arrayvec::ArrayVec;
use gst_analytics::AnalyticsBatchMeta;

use super::NmsFilter;
use super::error::FrameError;
use super::plan::PlanInput;
use super::session::{FrameResult, Session, add_outcome};
use super::stats::FrameCounts;
use crate::elements::{frame_size, is_nvmm};
use crate::input::Tensors;
use crate::input::analytics_batch::{self, FrameToRead, HasTensors, StreamFrame};
use crate::input::deepstream::BatchCaps;
use crate::input::model::ModelInput;
use crate::output::sink::OutputError;
use crate::output::{self, Kinds};
use nmsfilter_core::contradictions::Run;
use nmsfilter_core::engine::Outcome;
use nmsfilter_core::geometry::Mapping;
use nmsfilter_core::tensor::TensorView;

/// The greatest number of frames of one run.
const MAX_FRAMES: usize = 16;

/// A frame with tensors that are to be decoded.
struct Waiting<'a> {
    /// Its index among the frames of the batch.
    frame: usize,
    /// The number of its stream.
    stream: u32,
    /// The index of its stream's planner.
    planner: usize,
    size: Option<[u32; 2]>,
    pts: Option<gst::ClockTime>,
    tensors: Tensors<'a>,
    model: ModelInput,
    /// By the plan in force.
    mapping: Option<Mapping>,
}

impl HasTensors for Waiting<'_> {
    fn tensors(&self) -> usize {
        self.tensors.len()
    }

    fn tensor(&self, index: usize) -> TensorView<'_> {
        self.tensors.view(index)
    }
}

impl Session {
    /// Reads the tensors of the frames of the batch, decodes and suppresses, and attaches the survivors to them. A frame
    /// with tensors that has other references is replaced by a copy.
    ///
    /// # Errors
    /// As of [`process`](Self::process), with the number of the stream.
    pub(super) fn process_streams(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<FrameResult, FrameError> {
        self.regions.clear();
        self.decoded_by.clear();
        self.planners.begin_batch();
        let mut counts = FrameCounts { engine: self.engine.name(), ..FrameCounts::default() };
        if let Some(batch) = buffer.meta::<AnalyticsBatchMeta>() {
            self.decode_streams(element, &batch, &mut counts)?;
        }
        self.frames = self.decoded_by.len();
        self.regions.sort_frames();
        let (mut frame, mut position) = (0, 0);
        analytics_batch::try_for_each_frame(buffer, |mut of_stream| {
            if let Some(planner) = self.decoded_by[frame] {
                self.attach_to_frame(element, &mut of_stream, planner, (frame, position))
                    .map_err(|error| of_number(of_stream.stream, error))?;
                position += 1;
            }
            frame += 1;
            Ok::<(), FrameError>(())
        })?;
        counts.survivors = self.regions.all().regions.len();
        Ok(match counts.frames + counts.frames_lost {
            0 => FrameResult::WithoutTensors,
            _ => FrameResult::Decoded(counts),
        })
    }

    /// Finds the regions of all frames.
    fn decode_streams<'b>(
        &mut self,
        element: &NmsFilter,
        batch: &'b AnalyticsBatchMeta,
        counts: &mut FrameCounts,
    ) -> Result<(), FrameError> {
        let mut waiting = ArrayVec::<Waiting<'b>, MAX_FRAMES>::new();
        for (frame, to_read) in analytics_batch::frames(batch).enumerate() {
            self.decoded_by.push(None);
            let number = to_read.stream;
            let read = self.sources.tensor_sets.read(to_read.buffer);
            let (tensors, sets) = read.map_err(|error| of_number(number, error.into()))?;
            self.warnings.other_sets(element, self.sources.tensor_sets.selection(), &sets);
            self.warnings.unread_tensors(element, tensors.len(), tensors.unread());
            if tensors.is_empty() {
                counts.frames_without_tensors += 1;
                continue;
            }
            let caps = batch_caps(&to_read);
            let mapping = self.common_mapping(number, caps, &tensors, &waiting);
            if mapping.is_none() || waiting.is_full() {
                // What follows can change the plans of frames that are waiting.
                self.run_waiting(element, &mut waiting, counts)?;
            }
            let planner = self.planners.select_stream(number, caps);
            let model = self.planners.of_stream_mut(planner).set_model(tensors.model());
            let model = model.map_err(|error| of_number(number, error.into()))?;
            let mapping = mapping.or_else(|| {
                let views = tensors.views();
                self.planners.of_stream(planner).steady_mapping(tensors.model(), &views, caps.size)
            });
            let (stream, size, pts) = (number, caps.size, to_read.buffer.pts());
            let next = Waiting { frame, stream, planner, size, pts, tensors, model, mapping };
            match mapping {
                Some(_) => waiting.push(next),
                None => self.run_alone(element, &next, counts)?,
            }
        }
        self.run_waiting(element, &mut waiting, counts)
    }

    /// The mapping to a frame with these tensors, if the plan in force for its stream is equal to that of the frames that
    /// are waiting, of which there are any.
    fn common_mapping(
        &self,
        stream: u32,
        caps: BatchCaps,
        tensors: &Tensors<'_>,
        waiting: &[Waiting<'_>],
    ) -> Option<Mapping> {
        let first = waiting.first()?;
        let planner = self.planners.of_stream(self.planners.stream(stream, caps)?);
        let mapping = planner.steady_mapping(tensors.model(), &tensors.views(), caps.size)?;
        let of_first = self.planners.of_stream(first.planner).plan()?;
        let is_equal = planner.plan()?.is_equal(&mapping, of_first, &first.mapping?);
        is_equal.then_some(mapping)
    }

    /// Decodes the frames that are waiting in one run. If that fails, each by itself, so that the error is that of its frame.
    fn run_waiting(
        &mut self,
        element: &NmsFilter,
        waiting: &mut ArrayVec<Waiting<'_>, MAX_FRAMES>,
        counts: &mut FrameCounts,
    ) -> Result<(), FrameError> {
        let result = match &waiting[..] {
            [] => Ok(()),
            [alone] => self.run_alone(element, alone, counts),
            several => match self.run_together(element, several, counts) {
                Some(()) => Ok(()),
                None => several.iter().try_for_each(|one| self.run_alone(element, one, counts)),
            },
        };
        waiting.clear();
        result
    }

    /// Decodes frames whose plans are equal; `None` if the engine fails.
    fn run_together(
        &mut self,
        element: &NmsFilter,
        frames: &[Waiting<'_>],
        counts: &mut FrameCounts,
    ) -> Option<()> {
        let Self { engine, planners, regions, warnings, .. } = self;
        let first = &frames[0];
        let mapping = first.mapping?;
        let images = analytics_batch::images_of(frames);
        let mut views = analytics_batch::views_of_images(&images);
        let planner = planners.of_stream_mut(first.planner);
        planner.plan_mut()?.prepare_images(frames.len(), &views);
        let limit = planner.settings().max_detections;
        let (plan, contradictions) = planner.plan_and_contradictions()?;
        plan.quantization().apply(&mut views);
        let params = plan.params(&mapping);
        let layout = plan.layout_of_images();
        let outcome = engine.run(&views, layout, params);
        if let Ok(outcome) = &outcome {
            let indices = frames.iter().map(|frame| frame.frame);
            let wants_evidence = contradictions.are_open();
            let evidence = add_outcome(regions, outcome, indices, plan, &mapping, wants_evidence);
            counts.add(outcome);
            let anchors = plan.anchors(params);
            let run = Run { tensors: &views, layout, params };
            contradictions.add(element, outcome, run, evidence, anchors, first.pts);
            warnings.max_detections(element, limit, most_survivors(outcome));
        }
        let is_done = outcome.is_ok();
        self.note_failure(first.pts);
        if !is_done {
            return None;
        }
        for frame in frames {
            self.decoded_by[frame.frame] = Some(frame.planner);
        }
        Some(())
    }

    /// Decodes a frame by itself, after its plan has been made or adapted.
    fn run_alone(
        &mut self,
        element: &NmsFilter,
        frame: &Waiting<'_>,
        counts: &mut FrameCounts,
    ) -> Result<(), FrameError> {
        let result = self.try_run_alone(element, frame, counts);
        self.note_failure(frame.pts);
        match result {
            Ok(()) => self.decoded_by[frame.frame] = Some(frame.planner),
            Err(error) => {
                self.check_loss(element, error, frame.pts)
                    .map_err(|error| of_number(frame.stream, error))?;
                counts.frames_lost += 1;
            }
        }
        Ok(())
    }

    fn try_run_alone(
        &mut self,
        element: &NmsFilter,
        frame: &Waiting<'_>,
        counts: &mut FrameCounts,
    ) -> Result<(), FrameError> {
        let Self { engine, planners, regions, warnings, .. } = self;
        let planner = planners.of_stream_mut(frame.planner);
        let mut views = frame.tensors.views();
        let input = PlanInput {
            tensors: &views,
            frame: frame.size,
            model: frame.model,
            family: planner.family(),
            batch: None,
        };
        let (plan, mapping, contradictions) =
            planner.update(element, &**engine, input, frame.pts)?;
        let params = plan.params(&mapping);
        plan.quantization().apply(&mut views);
        let layout = &plan.choice().layout;
        let outcome = engine.run(&views, layout, params)?;
        let indices = std::iter::once(frame.frame);
        let wants_evidence = contradictions.are_open();
        let evidence = add_outcome(regions, &outcome, indices, plan, &mapping, wants_evidence);
        counts.add(&outcome);
        let run = Run { tensors: &views, layout, params };
        contradictions.add(element, &outcome, run, evidence, plan.anchors(params), frame.pts);
        let most_survivors = most_survivors(&outcome);
        planner.decoded = true;
        warnings.max_detections(element, planner.settings().max_detections, most_survivors);
        Ok(())
    }

    /// Attaches the regions of a frame, which has this index in the batch, and this position among those that were
    /// decoded; removes the tensors unless `keep-tensors` is set.
    fn attach_to_frame(
        &mut self,
        element: &NmsFilter,
        of_stream: &mut StreamFrame<'_>,
        planner: usize,
        (frame, position): (usize, usize),
    ) -> Result<(), FrameError> {
        let Self { planners, regions, warnings, sources, mask_buffers, survivor_labels, .. } = self;
        let planner = planners.of_stream_mut(planner);
        let settings = planner.settings();
        let (kinds, keep_tensors) = (Kinds::from(settings.attach), settings.keep_tensors);
        let labels = &mut planner.labels;
        let (index, size, regions) =
            regions.frame(position).expect("each frame that was decoded has regions or none");
        assert_eq!(index, frame, "the frames to write are those that were read");
        if let Some(best) = regions.iter().next() {
            warnings.repeated_region(element, best.region, || {
                output::is_attached(of_stream.buffer(), size, best, labels, kinds)
            });
        }
        if !keep_tensors {
            // The reader removes the set that it has read last.
            sources.tensor_sets.read(of_stream.buffer())?;
        }
        let buffer = of_stream.make_mut();
        output::attach(buffer, size, regions, labels, mask_buffers, kinds)
            .map_err(OutputError::from)?;
        if !keep_tensors {
            sources.tensor_sets.remove(buffer);
        }
        survivor_labels.extend(regions.regions.iter().map(|region| labels.quark(region.class)));
        Ok(())
    }
}

/// The error of a frame of the stream with this number.
fn of_number(number: u32, error: FrameError) -> FrameError {
    FrameError::Stream { number, error: Box::new(error) }
}

/// The most survivors of an image.
fn most_survivors(outcome: &Outcome<'_>) -> usize {
    outcome.images().map(|image| image.survivors.len()).max().unwrap_or(0)
}

/// The caps of a frame's stream, or without them the size that the frame itself has.
fn batch_caps(frame: &FrameToRead<'_>) -> BatchCaps {
    let caps = frame.caps.as_deref();
    let size = caps.and_then(|caps| frame_size(caps).ok()).or_else(|| {
        let meta = frame.buffer.meta::<gst_video::VideoMeta>()?;
        Some([meta.width(), meta.height()])
    });
    BatchCaps { size, is_nvmm: caps.is_some_and(is_nvmm) }
}
