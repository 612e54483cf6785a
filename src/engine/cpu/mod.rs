//! The engine for the host: decode streams the tensor once; suppression compares a candidate with
//! several boxes at a time, and of many only with those near it. The compiler vectorizes; where an
//! x86-64 processor has AVX2, it is twice as wide. Buffers are kept from frame to frame.
//!
//! What is `#[inline(always)]` here is compiled for its caller's processor: once as all is, once with
//! AVX2.

mod admit;
mod block;
mod cells;
mod decode;
mod order;
mod outranking;
mod pairs;
mod score;

use super::params::cap;
use super::{Detection, DeviceWork, Engine, EngineError, ImageCounts, Method, Outcome, Overlap, Params};
use super::validate::validate;
use crate::decoder::Layout;
use crate::tensor::{Elements, TensorView};
use block::{IOU, Lane, REPRESENTATIVE, Rule, Rules, SMALLER};
use decode::CandidateDecoder;
use order::Order;
use outranking::Outranking;

/// The engine that runs on the CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    decoder: CandidateDecoder,
    order: Order,
    outranking: Outranking,
    images: Vec<ImageCounts>,
    /// Of all images.
    survivors: Vec<Detection>,
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn run(
        &mut self,
        tensors: &[TensorView<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError> {
        validate(tensors, layout, params)?;
        let boxes = tensors[layout.boxes.tensor].elements()?;
        let scores = tensors[layout.scores.tensor].elements()?;
        self.images.clear();
        self.survivors.clear();
        for image in 0..layout.images {
            let (layout, decoder) = (&layout.of_image(image), &mut self.decoder);
            match (boxes, scores) {
                (Elements::F32(b), Elements::F32(s)) => decoder.decode(layout, params, b, s),
                (Elements::F16(b), Elements::F16(s)) => decoder.decode(layout, params, b, s),
                (Elements::F32(b), Elements::F16(s)) => decoder.decode(layout, params, b, s),
                (Elements::F16(b), Elements::F32(s)) => decoder.decode(layout, params, b, s),
            }
            let first = self.survivors.len();
            self.suppress(params);
            self.images.push(ImageCounts {
                first,
                survivors: self.survivors.len() - first,
                candidates: self.decoder.candidates.len(),
                rejected: self.decoder.rejected,
            });
        }
        Ok(Outcome {
            engine: self.name(),
            images: &self.images,
            detections: &self.survivors,
            device: DeviceWork::default(),
        })
    }
}

impl Cpu {
    fn suppress(&mut self, params: &Params) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            unsafe { self.suppress_with_avx2(params) };
            return;
        }
        self.suppress_as_compiled(params);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn suppress_with_avx2(&mut self, params: &Params) {
        self.suppress_as_compiled(params);
    }

    #[inline(always)]
    fn suppress_as_compiled(&mut self, params: &Params) {
        match (params.overlap, params.threshold_inclusive) {
            (Overlap::Iou, false) => self.suppress_by::<IOU, false>(params),
            (Overlap::Iou, true) => self.suppress_by::<IOU, true>(params),
            (Overlap::Representative, false) => self.suppress_by::<REPRESENTATIVE, false>(params),
            (Overlap::Representative, true) => self.suppress_by::<REPRESENTATIVE, true>(params),
            (Overlap::Smaller, false) => self.suppress_by::<SMALLER, false>(params),
            (Overlap::Smaller, true) => self.suppress_by::<SMALLER, true>(params),
        }
    }

    #[inline(always)]
    fn suppress_by<const OVERLAP: u8, const INCLUSIVE: bool>(&mut self, params: &Params) {
        // One class is as good as none.
        let classes = !params.class_agnostic && self.decoder.classes > 1;
        match (params.pixel_offset != 0.0, classes) {
            (false, false) => self.suppress_with::<Rules<OVERLAP, INCLUSIVE, false, false>>(params),
            (false, true) => self.suppress_with::<Rules<OVERLAP, INCLUSIVE, false, true>>(params),
            (true, false) => self.suppress_with::<Rules<OVERLAP, INCLUSIVE, true, false>>(params),
            (true, true) => self.suppress_with::<Rules<OVERLAP, INCLUSIVE, true, true>>(params),
        }
    }

    #[inline(always)]
    fn suppress_with<R: Rule>(&mut self, params: &Params) {
        let rule = R::new(params);
        let candidates = &self.decoder.candidates;
        let contenders = candidates.len().min(cap(params.max_candidates));
        let mut survivors = std::mem::take(&mut self.survivors);
        let most = survivors.len().saturating_add(cap(params.max_detections));
        self.outranking.clear();
        let mut lanes = [Lane::default(); 32];
        'all: for keys in self.order.of(candidates, contenders).chunks(lanes.len()) {
            // Fetched together: one by one, each would be waited for.
            for (lane, &key) in lanes.iter_mut().zip(keys) {
                *lane = Lane::new(&candidates[order::index(key)], params);
            }
            for (lane, &key) in lanes.iter().zip(keys) {
                if survivors.len() == most {
                    break 'all;
                }
                let survives = params.method == Method::None || !self.outranking.meet(lane, rule);
                if survives {
                    // Not `push`: its copy by way of the stack costs more than the comparison.
                    let candidate = &candidates[order::index(key)];
                    survivors.extend_from_slice(std::slice::from_ref(candidate));
                }
                if params.method == Method::MapReduce
                    || (survives && params.method == Method::Greedy)
                {
                    self.outranking.push(lane, contenders);
                }
            }
        }
        self.survivors = survivors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoder;

    /// Where there is AVX2 no other test runs what is for processors without.
    #[test]
    fn all_widths_give_the_same_bits() {
        let mut rng = fastrand::Rng::with_seed(2020);
        let columns: Vec<f32> = (0..84 * 1000)
            .map(|i| if i < 4000 { 20.0 + rng.f32() * 100.0 } else { rng.f32() })
            .collect();
        let tensors = [TensorView::from_slice("yolo-v8-out", &[1, 84, 1000], &columns)];
        let layout = decoder::choose(&tensors, None, decoder::Options::default()).unwrap().layout;
        let params = Params { class_agnostic: true, ..Params::default() };
        let mut found = Cpu::default();
        found.run(&tensors, &layout, &params).unwrap();
        let mut plain = Cpu::default();
        plain.decoder.decode_as_compiled(&layout, &params, &columns, &columns);
        plain.suppress_as_compiled(&params);
        assert_eq!(plain.decoder.candidates, found.decoder.candidates);
        assert_eq!(plain.survivors, found.survivors);
        assert!((20..900).contains(&found.survivors.len()), "{} survivors", found.survivors.len());
    }
}
