//! What the element keeps between start and stop, and what it does with a frame.

use std::fmt;

use super::class_rules;
use super::error::FrameError;
use super::imp::CAT;
use super::settings::Settings;
use super::stats::Counts;
use crate::engine::{Engine, Params};
use crate::head::{self, Choice};
use crate::region::{self, Labels, Mapping, Region};
use crate::tensor::{self, ElementType, Shape, Tensor, Tensors};

/// The engine, and all that is derived once and used for many frames.
pub(super) struct Session {
    engine: Box<dyn Engine>,
    labels: Labels,
    settings: Settings,
    /// Width and height, once there are caps.
    frame: Option<[u32; 2]>,
    /// `None` before the first frame with tensors and after any change.
    plan: Option<Plan>,
    regions: Vec<Region>,
}

/// How to process frames like the last one.
struct Plan {
    tensors: Vec<Signature>,
    choice: Choice,
    mapping: Mapping,
    params: Params,
}

/// What the choice of a head depends on.
#[derive(Default)]
struct Signature {
    id: String,
    element: ElementType,
    shape: Shape,
}

impl PartialEq<Tensor<'_>> for Signature {
    fn eq(&self, tensor: &Tensor<'_>) -> bool {
        self.id == tensor.id && self.element == tensor.element && self.shape == tensor.shape
    }
}

/// What became of a frame.
pub(super) enum Frame {
    /// It carried no tensors.
    WithoutTensors,
    /// It was decoded; `outside` survivors lay wholly outside the picture.
    Decoded { counts: Counts, outside: usize },
}

impl Session {
    pub fn new(engine: Box<dyn Engine>, labels: Labels, settings: Settings) -> Self {
        Self { engine, labels, settings, frame: None, plan: None, regions: Vec::new() }
    }

    /// Takes over the element's settings; cheap where they have not changed.
    pub fn follow(&mut self, settings: &Settings) {
        if self.settings != *settings {
            self.settings = settings.clone();
            self.plan = None;
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

    /// Reads the tensors of `buffer`, decodes and suppresses, and hangs the survivors on it.
    pub fn process(
        &mut self,
        element: &super::NmsFilter,
        buffer: &mut gst::BufferRef,
    ) -> Result<Frame, FrameError> {
        let tensors = tensor::read(buffer)?;
        if tensors.is_empty() {
            return Ok(Frame::WithoutTensors);
        }
        let plan = match self.plan.take() {
            Some(plan) if plan.suits(&tensors) => plan,
            previous => self.make_plan(element, &tensors, previous)?,
        };
        let plan = self.plan.insert(plan);
        let outcome = self.engine.run(&tensors, &plan.choice.layout, &plan.params)?;

        self.regions.clear();
        self.regions.extend(outcome.survivors.iter().filter_map(|d| plan.mapping.region(d)));
        let counts = Counts::from(&outcome);
        drop(tensors);
        let (frame, kinds) = (plan.mapping.frame(), self.settings.attach);
        region::attach(buffer, frame, &self.regions, &mut self.labels, kinds)?;
        if !self.settings.keep_tensors {
            tensor::remove(buffer);
        }
        let outside = counts.survivors - self.regions.len();
        Ok(Frame::Decoded { counts, outside })
    }

    /// Chooses the head and derives the engine's parameters; `previous` was made for other tensors
    /// under the same settings and caps.
    fn make_plan(
        &mut self,
        element: &super::NmsFilter,
        tensors: &Tensors<'_>,
        previous: Option<Plan>,
    ) -> Result<Plan, FrameError> {
        let settings = &self.settings;
        let choice = head::choose(tensors, settings.decoder.head(), settings.head_options())?;
        if let Some(plan) = previous.filter(|plan| plan.choice.layout.is_kin(&choice.layout)) {
            return Ok(plan.for_tensors(tensors, choice));
        }

        let frame = self.frame.ok_or(FrameError::NoCaps)?;
        let model = [settings.model_width, settings.model_height];
        let mapping = Mapping::new(frame, model, settings.letterbox)?;
        let thresholds = class_rules::thresholds(
            settings.score_threshold,
            settings.classes.as_deref(),
            settings.class_thresholds.as_deref(),
            &self.labels,
        )?;
        let params = settings.params(&choice.layout, &mapping, thresholds);
        gst::info!(
            CAT,
            obj = element,
            "decoder {} chosen {}: {} anchors, {} classes, {} coordinates; frame {}x{}, tensors in \
             {} memory",
            choice.head.name(),
            choice.reason,
            choice.layout.anchors,
            choice.layout.classes,
            if choice.layout.normalised { "normalised" } else { "pixel" },
            frame[0],
            frame[1],
            if tensors.iter().any(Tensor::is_on_device) { "device" } else { "host" },
        );
        gst::debug!(CAT, obj = element, "{params:?}, {mapping:?}");
        self.labels.set_head(choice.head);
        let plan = Plan { tensors: Vec::new(), choice: choice.clone(), mapping, params };
        Ok(plan.for_tensors(tensors, choice))
    }
}

impl Plan {
    /// The same for tensors of other shapes, such as windows of which there are as many as were
    /// found. Allocates nothing where ids stay.
    fn for_tensors(mut self, tensors: &Tensors<'_>, choice: Choice) -> Self {
        self.tensors.resize_with(tensors.len(), Signature::default);
        for (ours, theirs) in self.tensors.iter_mut().zip(tensors) {
            if ours.id != theirs.id {
                ours.id = theirs.id.to_owned();
            }
            ours.element = theirs.element;
            ours.shape = theirs.shape.clone();
        }
        self.choice = choice;
        self
    }

    /// Whether it was made for tensors like these.
    fn suits(&self, tensors: &Tensors<'_>) -> bool {
        self.tensors.len() == tensors.len()
            && self.tensors.iter().zip(tensors).all(|(ours, theirs)| ours == theirs)
    }
}

/// What a developer wants to know of it in an error message.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine {}, frame {:?}, {:?}", self.engine.name(), self.frame, self.settings)
    }
}
