//! The kernels as an engine.

use gstnmsfilter::engine::{Detection, Engine, EngineError, Outcome, Params};
use gstnmsfilter::head::Layout;
use gstnmsfilter::tensor::{Elements, MappedTensor, Tensor};
use nmsfilter_emulated_kernels::{Device, Field, Frame, Memory, lanes_for};

/// Runs the CUDA kernels on the host.
pub struct Emulated {
    device: Device,
    memory: Memory,
    survivors: Vec<Detection>,
    frames: u32,
    /// The longest chain of decisions of the last frame.
    pub rounds: usize,
}

impl Emulated {
    pub fn on(device: Device) -> Self {
        Self { device, memory: Memory::new(0), survivors: Vec::new(), frames: 0, rounds: 0 }
    }
}

/// Address of the first element, bytes of one, and whether it is half precision.
fn place(tensor: &MappedTensor<'_>) -> (u64, u64, bool) {
    match tensor.elements() {
        Elements::F32(elements) => (elements.as_ptr().addr() as u64, 4, false),
        Elements::F16(elements) => (elements.as_ptr().addr() as u64, 2, true),
    }
}

impl Engine for Emulated {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn run(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError> {
        let boxes = tensors[layout.boxes.tensor].map()?;
        let scores = tensors[layout.scores.tensor].map()?;
        let field = |field: &gstnmsfilter::head::Field, tensor: &MappedTensor<'_>| {
            let (address, size, _) = place(tensor);
            Field {
                address: address + field.offset as u64 * size,
                anchor_stride: field.anchor_stride as u64,
                component_stride: field.component_stride as u64,
            }
        };
        let objectness = layout.objectness.as_ref().map(|objectness| {
            assert_eq!(objectness.tensor, layout.scores.tensor, "they lie together in every head");
            field(objectness, &scores)
        });
        let thresholds = &params.thresholds;
        self.frames += 1;
        let frame = Frame {
            boxes: field(&layout.boxes, &boxes),
            scores: field(&layout.scores, &scores),
            objectness: objectness.unwrap_or_default(),
            class_thresholds: thresholds.per_class.as_ptr().addr() as u64,
            listed: thresholds.per_class.len() as u32,
            threshold: thresholds.default,
            lowest_threshold: thresholds.lowest(layout.classes),
            anchors: layout.anchors as u32,
            classes: layout.classes as u32,
            lanes: lanes_for(layout.classes as u32),
            box_format: layout.box_format as u32,
            scale: params.scale,
            min_size: params.sizes.min,
            max_size: params.sizes.max,
            method: params.method as u32,
            overlap: params.overlap as u32,
            iou_threshold: params.iou_threshold,
            pixel_offset: params.pixel_offset,
            threshold_inclusive: params.threshold_inclusive.into(),
            class_agnostic: params.class_agnostic.into(),
            max_candidates: params.max_candidates as u32,
            max_detections: params.max_detections as u32,
            sequence: self.frames,
        };
        if self.memory.capacity() < frame.anchors {
            self.memory = Memory::new(frame.anchors);
        }
        // SAFETY: the tensors are mapped for as long as the kernels run, and `map` has checked
        // that they hold what the layout says.
        let (outcome, survivors) =
            unsafe { self.memory.run(&frame, place(&boxes).2, place(&scores).2, self.device) };
        assert_eq!(outcome.sequence, self.frames);
        self.rounds = outcome.rounds as usize;
        self.survivors.clear();
        self.survivors.extend(survivors.iter().map(|&[x1, y1, x2, y2, score, class, anchor]| {
            let [x1, y1, x2, y2, score] = [x1, y1, x2, y2, score].map(f32::from_bits);
            Detection { x1, y1, x2, y2, score, class, anchor }
        }));
        Ok(Outcome {
            survivors: &self.survivors,
            candidates: outcome.candidates as usize,
            rejected: outcome.rejected as usize,
            bytes_uploaded: 0,
            bytes_downloaded: 0,
        })
    }
}
