// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that several tests of this program use.

use gstnmsfilter::input::custom_meta::NewTensor;
use nmsfilter_core::decoder::{self, Layout};
use nmsfilter_core::engine::{Outcome, Params, SizeLimits};
use nmsfilter_core::tensor::{ElementType, TensorView};

/// Returns the number of random scenes.
pub fn scenes() -> u64 {
    let value = std::env::var("NMSFILTER_TEST_SCENES").ok();
    value.map_or(300, |value| value.parse().expect("NMSFILTER_TEST_SCENES is a number"))
}

/// The parameters that are stored on the GPU: class thresholds and class rules.
#[derive(Default)]
pub struct OnGpu {
    thresholds: Vec<f32>,
    rules: Vec<[f32; 5]>,
}

impl OnGpu {
    /// Returns the number of bytes that a run with `params` copies to the GPU: the thresholds and
    /// rules that changed. If there are none, those of an earlier run stay on the GPU.
    pub fn uploaded(&mut self, params: &Params) -> u64 {
        let mut bytes = 0;
        let thresholds = &params.thresholds.per_class;
        if !thresholds.is_empty() && self.thresholds != *thresholds {
            bytes += 4 * thresholds.len() as u64;
            self.thresholds.clone_from(thresholds);
        }
        let rule = |class: u32| {
            let sizes = params.class_rules[class as usize].sizes.unwrap_or(params.sizes);
            let SizeLimits { min, max } = sizes;
            [params.iou_threshold_of(class), min[0], min[1], max[0], max[1]]
        };
        let rules: Vec<_> = (0..params.class_rules.len() as u32).map(rule).collect();
        if !rules.is_empty() && rules != self.rules {
            bytes += 20 * rules.len() as u64;
            self.rules = rules;
        }
        bytes
    }
}

/// Returns the number of bytes that are copied to the host: the counts of each image, once per
/// launch, and the survivors.
pub fn bytes_downloaded(outcome: &Outcome<'_>) -> u64 {
    let survivors: usize = outcome.groups().map(|image| image.survivors.len()).sum();
    32 * outcome.device.launches * outcome.groups().len() as u64 + 28 * survivors as u64
}

/// A tensor of f32 in the memory of a buffer.
pub fn tensor_in(id: &str, shape: &[usize], data: &gst::BufferRef) -> NewTensor {
    NewTensor::new(id, ElementType::F32, shape, data.to_owned()).unwrap()
}

/// Chooses a layout by the ids of the tensors.
pub fn layout(tensors: &[TensorView<'_>]) -> Layout {
    decoder::choose(tensors, None, decoder::Options::default()).unwrap().layout
}
