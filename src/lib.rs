//! Decodes detector tensors on video buffers and suppresses duplicate detections.
//!
//! Data flows one way, and the modules are the stations on its way: [`tensor`] (what arrives and
//! where it lies), [`decoder`] (what it means), [`engine`] (decode and suppression), [`region`] (what
//! leaves). The [`elements`] drive them; `nmsfilter` is the one that the plugin is for. [`device`] is
//! the way to a GPU, for tensors that lie there and for the engine that runs there.
#![warn(missing_docs)]

pub mod decoder;
pub mod device;
pub mod elements;
pub mod engine;
mod file;
pub mod input;
pub mod output;
mod plugin;
pub mod tensor;
mod text;
mod type_names;

pub use plugin::plugin_register_static;
