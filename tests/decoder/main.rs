// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which decoder reads which tensors, and the errors when no decoder or several decoders fit.

#[path = "../support/core.rs"]
mod support;

mod choice;
mod description;
mod layout_files;
mod masks2026;
mod models2026;
mod prototypes;
mod score_activation;
mod yolo_tasks;
mod yolox;
