//! The engine for the host: decode streams the tensor once, suppression compares against flat
//! arrays in lanes that the compiler vectorises. Buffers are kept from frame to frame.

mod admit;
mod decode;
mod lanes;

use super::params::cap;
use super::{Detection, DeviceWork, Engine, EngineError, Method, Outcome, Params, check_anchors};
use crate::head::Layout;
use crate::tensor::{Elements, Tensor};
use decode::Decoder;
use lanes::Lanes;

/// The engine that runs on the CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    decoder: Decoder,
    /// Boxes that suppress those ranked below them.
    outranking: Lanes,
    survivors: Vec<Detection>,
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn run(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError> {
        check_anchors(layout)?;
        self.decode(tensors, layout, params)?;

        let candidates = &mut self.decoder.candidates;
        let count = candidates.len();
        let cap_in = cap(params.max_candidates);
        if cap_in < count {
            candidates.select_nth_unstable_by(cap_in, Detection::rank);
            candidates.truncate(cap_in);
        }
        // No two rank alike, so an unstable sort gives one order only.
        candidates.sort_unstable_by(Detection::rank);
        self.suppress(params);
        Ok(Outcome {
            engine: self.name(),
            survivors: &self.survivors,
            candidates: count,
            rejected: self.decoder.rejected,
            device: DeviceWork::default(),
        })
    }
}

impl Cpu {
    fn decode(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<(), EngineError> {
        let boxes = tensors[layout.boxes.tensor].map()?;
        let apart = layout.scores.tensor != layout.boxes.tensor;
        let scores = apart.then(|| tensors[layout.scores.tensor].map()).transpose()?;
        let scores = scores.as_ref().unwrap_or(&boxes);

        let decoder = &mut self.decoder;
        match (boxes.elements(), scores.elements()) {
            (Elements::F32(b), Elements::F32(s)) => decoder.run(layout, params, b, s),
            (Elements::F16(b), Elements::F16(s)) => decoder.run(layout, params, b, s),
            (Elements::F32(b), Elements::F16(s)) => decoder.run(layout, params, b, s),
            (Elements::F16(b), Elements::F32(s)) => decoder.run(layout, params, b, s),
        }
        Ok(())
    }

    fn suppress(&mut self, params: &Params) {
        self.survivors.clear();
        self.outranking.clear();
        let cap = cap(params.max_detections);
        for candidate in &self.decoder.candidates {
            if self.survivors.len() == cap {
                break;
            }
            let survives = match params.method {
                Method::None => true,
                Method::Greedy | Method::MapReduce => !self.outranking.meet(candidate, params),
            };
            if survives {
                self.survivors.push(*candidate);
            }
            if survives || params.method == Method::MapReduce {
                self.outranking.push(candidate, params);
            }
        }
    }
}

impl Detection {
    /// Higher scores first, then earlier rows.
    fn rank(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(self.anchor.cmp(&other.anchor))
    }
}
