//! What the element keeps between start and stop, and what it does with a frame.

use std::fmt;

use super::NmsFilter;
use super::error::FrameError;
use super::imp::CAT;
use super::notices::Notices;
use super::plan::Plan;
use super::settings::Settings;
use super::stats::Counts;
use super::wanted::Wanted;
use crate::engine::Engine;
use crate::input::{self, Tensors};
use crate::output::{self, Kinds, Labels, Region};
use crate::tensor::TensorView;

/// The engine, and all that is derived once and used for many frames.
pub(super) struct Session {
    engine: Box<dyn Engine>,
    labels: Labels,
    /// Those in force: once a frame is decoded, always such as can be used.
    settings: Settings,
    /// Those that were set since and are not in force.
    wanted: Option<Wanted>,
    /// Width and height, once there are caps.
    frame: Option<[u32; 2]>,
    /// For the settings in force; `None` before the first frame with tensors and after new caps.
    plan: Option<Plan>,
    regions: Vec<Region>,
    /// Whether any frame has been decoded.
    decoded: bool,
    notices: Notices,
}

/// What became of a frame.
pub(super) enum Frame {
    /// It carried no tensors.
    WithoutTensors,
    /// It was decoded.
    Decoded(Counts),
}

impl Session {
    pub fn new(engine: Box<dyn Engine>, labels: Labels, settings: Settings) -> Self {
        Self {
            engine,
            labels,
            settings,
            wanted: None,
            frame: None,
            plan: None,
            regions: Vec::new(),
            decoded: false,
            notices: Notices::default(),
        }
    }

    /// Notes the element's settings; cheap where they have not changed. They come into force with
    /// the next frame that has tensors, if they can be used.
    pub fn follow(&mut self, settings: &Settings) {
        let latest = self.wanted.as_ref().map_or(&self.settings, |wanted| &wanted.settings);
        if latest != settings {
            self.wanted = Some(Wanted::new(settings.clone(), self.wanted.take()));
        }
    }

    /// The failure of the GPU after which the engine went on without it; told once.
    pub fn take_failure(&mut self) -> Option<String> {
        self.engine.take_failure().map(ToString::to_string)
    }

    /// What the engine runs on, where that has come to be known.
    pub fn take_description(&mut self) -> Option<String> {
        self.engine.take_description()
    }

    /// Takes over the size of the frames to come.
    pub fn set_frame(&mut self, frame: [u32; 2]) {
        self.frame = Some(frame);
        self.plan = None;
    }

    /// Reads the tensors of `buffer`, decodes and suppresses, and attaches the survivors to it.
    pub fn process(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<Frame, FrameError> {
        let pts = buffer.pts();
        let tensors = Tensors::of(buffer)?;
        self.notices.unread_tensors(element, &tensors);
        if tensors.is_empty() {
            return Ok(Frame::WithoutTensors);
        }
        let views = tensors.views();
        self.prepare(element, &views, pts)?;
        let plan = self.plan.as_ref().expect("it has just been prepared");
        let outcome = self.engine.run(&views, &plan.choice.layout, &plan.params)?;

        self.regions.clear();
        // Every survivor has a region: the engine rejects boxes that cannot be seen.
        self.regions
            .extend(outcome.image(0).survivors.iter().filter_map(|d| plan.mapping.region(d)));
        let counts = Counts::from(&outcome);
        drop(views);
        drop(tensors);
        self.attach(element, buffer)?;
        self.decoded = true;
        self.notices.max_detections(element, self.settings.max_detections, counts.survivors);
        Ok(Frame::Decoded(counts))
    }

    /// Attaches the regions, and removes the tensors where they are not to stay.
    fn attach(
        &mut self,
        element: &NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<(), FrameError> {
        let plan = self.plan.as_ref().expect("the regions are made by it");
        let (frame, kinds) = (plan.mapping.frame(), Kinds::from(self.settings.attach));
        let best = (frame, self.regions.first());
        self.notices.repeated_region(element, buffer, best, &mut self.labels, kinds);
        output::attach(buffer, frame, &self.regions, &mut self.labels, kinds)?;
        if !self.settings.keep_tensors {
            input::remove(buffer);
        }
        Ok(())
    }

    /// Brings the wanted settings into force where they can be used with these tensors, and makes
    /// the plan. Where they cannot, it is an error before the first frame is decoded; afterwards
    /// the settings in force stay, and the user is told if that lasts.
    fn prepare(
        &mut self,
        element: &NmsFilter,
        tensors: &[TensorView<'_>],
        pts: Option<gst::ClockTime>,
    ) -> Result<(), FrameError> {
        let suits = self.plan.as_ref().is_some_and(|plan| plan.suits(tensors));
        if let Some(mut wanted) = self.wanted.take() {
            if !suits || !wanted.is_tried() {
                match Plan::new(tensors, &wanted.settings, &self.labels, self.frame, &*self.engine)
                {
                    Ok(plan) => {
                        self.settings = wanted.settings;
                        self.take_over(element, tensors, plan);
                        return Ok(());
                    }
                    Err(error) if self.decoded => wanted.refuse(element, error, pts),
                    Err(error) => {
                        self.wanted = Some(wanted);
                        return Err(error);
                    }
                }
            }
            wanted.remind(element, pts);
            self.wanted = Some(wanted);
        }
        match suits {
            true => Ok(()),
            false => self.renew_plan(element, tensors).map_err(|error| {
                // Of settings that cannot be used, either, those that are set say more.
                self.wanted.take().and_then(Wanted::into_error).unwrap_or(error)
            }),
        }
    }

    /// Makes the plan for other tensors or caps under the settings in force.
    fn renew_plan(
        &mut self,
        element: &NmsFilter,
        tensors: &[TensorView<'_>],
    ) -> Result<(), FrameError> {
        if let Some(plan) = &mut self.plan
            && plan.adapt(tensors, &self.settings, &self.labels)?
        {
            return Ok(());
        }
        let plan = Plan::new(tensors, &self.settings, &self.labels, self.frame, &*self.engine)?;
        self.take_over(element, tensors, plan);
        Ok(())
    }

    fn take_over(&mut self, element: &NmsFilter, tensors: &[TensorView<'_>], plan: Plan) {
        let (choice, frame) = (&plan.choice, plan.mapping.frame());
        gst::info!(
            CAT,
            obj = element,
            "decoder {} chosen {}: {} anchors, {} classes, {} coordinates; frame {}x{}, tensors in \
             {} memory",
            choice.decoder.name(),
            choice.reason,
            choice.layout.anchors,
            choice.layout.classes,
            if choice.layout.normalized { "normalized" } else { "pixel" },
            frame[0],
            frame[1],
            if tensors.iter().any(TensorView::is_on_device) { "device" } else { "host" },
        );
        let (labels, classes) = (self.labels.count(), choice.layout.classes);
        if labels > 0 && labels != classes {
            gst::info!(
                CAT,
                obj = element,
                "the label file has {labels} labels for {classes} classes"
            );
        }
        gst::debug!(CAT, obj = element, "{:?}, {:?}", plan.params, plan.mapping);
        self.labels.set_decoder(choice.decoder);
        self.plan = Some(plan);
    }
}

/// What a developer wants to know of it in an error message, besides properties.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine {}, ", self.engine.name())?;
        match self.frame {
            Some([width, height]) => write!(f, "frame {width}x{height}"),
            None => f.write_str("no frame"),
        }
    }
}
