//! Decoding and suppression without GStreamer.
pub use crate::engine::*;
