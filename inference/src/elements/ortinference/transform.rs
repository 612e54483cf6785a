// SPDX-License-Identifier: MIT OR Apache-2.0
//! The element as a `BaseTransform`: start and stop, negotiation, and each buffer.
//!
//! In: caps, events, and frames. Out: these buffers with tensors; errors.

use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use gst_newer::Capabilities;
use gst_video::{VideoInfo, VideoMeta};

use super::enums::OrtInferenceRegions;
use super::imp::OrtInference;
use super::latency::Latency;
use super::messages::MANY_PICTURES;
use super::schedule::Schedule;
use super::settings::Settings;
use super::state::{State, for_each_frame, frame_format};
use super::stats::Stats;
use crate::inference::CAT;
use crate::inference::error::InferenceError;
use crate::inference::provider::Provider;
use crate::inference::{Inference, InferenceOptions};
use crate::regions::Regions;
use gstnmsfilter::elements::{lock, not_started, property};
use gstnmsfilter::input::analytics_batch;

impl BaseTransformImpl for OrtInference {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    // Metadata is attached to every buffer, so the element is never in passthrough mode.
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = true;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        Capabilities::get().custom_meta.map_err(|missing| {
            gst::error_msg!(gst::LibraryError::Init, ("tensors cannot be attached: {missing}"))
        })?;
        self.interrupt.clear();
        let settings = lock(&self.settings).clone();
        *lock(&self.stats) = Stats::default();
        let state = self
            .open(&settings)
            .map_err(|error| error.message(&property::non_default(self.obj().upcast_ref())))?;
        self.post_model(&state);
        *lock(&self.latency) = Latency::new(state.batch_wait());
        *lock(&self.state) = Some(state);
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.finish_regions();
        self.post_stats();
        *lock(&self.state) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let mut state = lock(&self.state);
        let Some(state) = state.as_mut() else {
            return Ok(());
        };
        state.has_streams = analytics_batch::is_batch(incaps);
        if state.has_streams {
            return Ok(());
        }
        let frame = VideoInfo::from_caps(incaps)?;
        if state.frame.is_none()
            && !self.has_regions()
            && let (Some(batch @ 2..), None) = (state.options.batch, &state.options.instance_id)
        {
            self.warn(&format!(
                "batch-size={batch} without model-instance-id: each run takes as long as a run of {batch} frames, but has a \
                 single frame; set the same model-instance-id in the elements of all streams, or leave batch-size at 0"
            ));
        }
        let result = self.set_frame(state, &frame);
        result.map_err(|error| gst::loggable_error!(CAT, "{incaps}: {error}"))?;
        let [from, to] =
            [[frame.width(), frame.height()], state.inference.member.model().model.input.size];
        gst::info!(CAT, imp = self, "frames of {from:?} are scaled to the model's {to:?}");
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.type_() {
            gst::EventType::Eos => {
                if let Some(state) = &*lock(&self.state) {
                    state.inference.member.pause();
                }
                self.finish_regions();
                self.post_stats();
            }
            gst::EventType::FlushStart => self.interrupt.set(),
            gst::EventType::FlushStop => {
                self.interrupt.clear();
                if let Some(state) = lock(&self.state).as_mut() {
                    state.schedule = Schedule::default();
                }
            }
            _ => {}
        }
        self.parent_sink_event(event)
    }

    /// Proposes any layout of a frame's planes, as GstVideoFilter does. Otherwise decoders that pad rows would copy each
    /// frame. A batch of streams has no planes.
    fn propose_allocation(
        &self,
        decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decide_query, query)?;
        let is_frame = |caps: &gst::CapsRef| {
            caps.structure(0).is_some_and(|structure| structure.has_name("video/x-raw"))
        };
        if query.get().0.is_some_and(is_frame)
            && query.find_allocation_meta::<VideoMeta>().is_none()
        {
            query.add_allocation_meta::<VideoMeta>(None);
        }
        Ok(())
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let has_answer = BaseTransformImplExt::parent_query(self, direction, query);
        if has_answer
            && direction == gst::PadDirection::Src
            && let gst::QueryViewMut::Latency(query) = query.view_mut()
        {
            let (is_live, min, max) = query.result();
            let mut latency = lock(&self.latency);
            latency.is_live = is_live;
            let time = latency.time();
            query.set(is_live, min.saturating_add(time), max.map(|max| max.saturating_add(time)));
        }
        has_answer
    }

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        buffer: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let result = self.parent_submit_input_buffer(is_discont, buffer);
        // With qos=true, the base class drops late buffers here, and posts the message QOS.
        if result == Ok(gst_base::BASE_TRANSFORM_FLOW_DROPPED) {
            lock(&self.stats).dropped += 1;
        }
        result
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        // The state is moved out of the mutex, so that no lock is held while the model runs.
        let Some(mut state) = lock(&self.state).take() else {
            return Err(not_started(self.obj().upcast_ref()));
        };
        let (interval, max_rate) = {
            let settings = lock(&self.settings);
            (settings.inference_interval, settings.max_rate)
        };
        let result = if state.schedule.chooses(interval, max_rate, buffer.pts()) {
            self.process_buffer(&mut state, buffer)
        } else {
            state.skip(buffer).map(|frames| lock(&self.stats).skipped += frames)
        };
        *lock(&self.state) = Some(state);
        if let Err(error) = result {
            if matches!(error, InferenceError::Interrupted) {
                return Err(gst::FlowError::Flushing);
            }
            let properties = property::non_default(self.obj().upcast_ref());
            self.post_error_message(error.message(&properties));
            return Err(gst::FlowError::Error);
        }
        Ok(gst::FlowSuccess::Ok)
    }
}

impl OrtInference {
    /// Opens the model with the first provider that can run it.
    fn open(&self, settings: &Settings) -> Result<State, InferenceError> {
        let options = settings.options()?;
        let chosen = settings.provider.chosen();
        if chosen.is_none() {
            match Inference::open(&options, Provider::Cuda, &self.interrupt) {
                Ok(inference) => return Ok(self.state(inference, options, true)),
                Err(error @ InferenceError::Installation(_)) => self.warn_of_cpu(&error),
                Err(error) => gst::info!(CAT, imp = self, "not on a GPU: {error}"),
            }
        }
        let provider = chosen.unwrap_or(Provider::Cpu);
        // Opening the model runs a full batch.
        if let (Provider::Cpu, Some(batch)) = (provider, options.batch)
            && batch > MANY_PICTURES
        {
            self.warn(&format!(
                "batch-size={batch}: on the CPU a run with {batch} pictures takes as long as {batch} runs, and needs memory \
                 for all of them, even when the model is opened; set batch-size to the number of streams"
            ));
        }
        let inference = Inference::open(&options, provider, &self.interrupt)?;
        Ok(self.state(inference, options, false))
    }

    fn state(&self, inference: Inference, options: InferenceOptions, is_auto: bool) -> State {
        State {
            inference,
            options,
            name: self.obj().name(),
            is_auto,
            schedule: Schedule::default(),
            regions: Regions::default(),
            frame: None,
            has_streams: false,
        }
    }

    /// Returns whether the model runs on parts of frames.
    fn has_regions(&self) -> bool {
        lock(&self.settings).regions != OrtInferenceRegions::Frame
    }

    /// Sets the format of the frames that follow.
    fn set_frame(&self, state: &mut State, frame: &VideoInfo) -> Result<(), InferenceError> {
        let result = self.or_on_cpu(state, |state| state.inference.pictures.set_frame(frame));
        state.frame = result.is_ok().then(|| frame.clone());
        result
    }

    /// Runs the model on the frame or its regions, or on each frame of a batch or its regions, and measures the latency.
    fn process_buffer(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        let start = Instant::now();
        match (state.has_streams, self.has_regions()) {
            (false, _) => self.process(state, buffer),
            (true, false) => self.process_streams(state, buffer),
            // The regions of a frame share runs, but different frames do not.
            (true, true) => for_each_frame(buffer, &(0..usize::MAX), |_, frame| {
                let format = frame_format(frame)?;
                self.set_frame(state, &format)?;
                self.process(state, frame.make_mut())
            }),
        }?;
        // On a GPU, the run continues after this function.
        let gpu_time = state.inference.last_run.gpu_time.unwrap_or_default();
        let has_changed = lock(&self.latency).add(start.elapsed() + gpu_time);
        if has_changed {
            self.post_latency();
        }
        Ok(())
    }

    /// Runs the model on the frames of a batch, and counts the frames. Each run takes as many frames as the model's
    /// batch has room for.
    fn process_streams(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        let frames = analytics_batch::frame_count(buffer);
        let mut done = 0;
        while done < frames {
            let start = Instant::now();
            let (taken, uploaded) =
                self.or_on_cpu(state, |state| state.run_streams(buffer, done..frames))?;
            let inference = &state.inference;
            let (provider, run) = (inference.member.model().provider.name(), inference.last_run);
            let time = start.elapsed() / taken as u32;
            for index in 0..taken {
                let uploaded = if index == 0 { uploaded } else { 0 };
                lock(&self.stats).count((1, run.pictures), (provider, run), uploaded, time);
            }
            done += taken;
        }
        Ok(())
    }

    /// Runs the model on the frame or its regions, attaches the outputs, and counts the frame. New settings of regions that
    /// are not valid for the running stream, and regions outside of smaller frames, cause warnings.
    fn process(
        &self,
        state: &mut State,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), InferenceError> {
        let start = Instant::now();
        let settings = lock(&self.settings).regions();
        let frame = state.frame.as_ref().expect("the frames' format is set");
        let frame = [frame.width(), frame.height()];
        let sizes = [frame, state.inference.member.model().model.input.size];
        for notice in state.regions.choose(buffer, &settings, sizes)? {
            self.warn(&notice);
        }
        self.or_on_cpu(state, |state| state.run(buffer))?;
        let State { inference, regions, .. } = state;
        let (run, uploaded) = (inference.last_run, inference.pictures.uploaded);
        let provider = inference.member.model().provider.name();
        let batched = (regions.chosen.len(), inference.batched);
        lock(&self.stats).count(batched, (provider, run), uploaded, start.elapsed());
        Ok(())
    }

    /// Warns at the end of a stream in which the model has run on no region of interest.
    fn finish_regions(&self) {
        let why = lock(&self.state).as_mut().and_then(|state| state.regions.watch.finish());
        if let Some(why) = why {
            self.warn(&why);
        }
    }

    /// Calls `act`. If the GPU fails and the CPU may replace it, opens the model on the CPU and calls `act` again.
    fn or_on_cpu<T>(
        &self,
        state: &mut State,
        mut act: impl FnMut(&mut State) -> Result<T, InferenceError>,
    ) -> Result<T, InferenceError> {
        match act(state) {
            Err(error) if state.is_auto && error.is_gpu_failure() => {
                self.warn_of_cpu(&error);
                state.replace_gpu(&self.interrupt)?;
                act(state)
            }
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_before_the_start_is_an_error_on_the_bus() {
        gst::init().unwrap();
        let element: super::super::OrtInference = gst::glib::Object::new();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let mut buffer = gst::Buffer::new();
        let result = element.imp().transform_ip(buffer.get_mut().unwrap());
        assert_eq!(result, Err(gst::FlowError::Error));
        assert!(bus.pop_filtered(&[gst::MessageType::Error]).is_some());
    }
}
